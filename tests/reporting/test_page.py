"""A real browser opens the pages: controls work, numbers are the library's, nothing is fetched, no errors."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARTIFACTS = Path(__file__).parents[2] / "artifacts"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="LOUD: no Chromium here, so no page was opened in a browser"),
]
rng = np.random.default_rng(1)
P = rng.random(2000)
BINARY = cal.Binary(rng.random(2000) < 0.5 + 0.6 * (P - 0.5), P)
GROUPS = np.where(rng.random(2000) < 0.4, "<script>alert(1)</script>", "plain")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open a report; fail on console messages, page errors and requests other than the page itself."""
    troubles = []

    def opened(report, *, width=1200):
        path = report.save(tmp_path / "report.html")
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: request.url == path.as_uri() or troubles.append(request.url))
        page.goto(path.as_uri())
        ready(page)
        return page

    yield opened
    assert troubles == []


def ready(page):
    page.wait_for_function("document.documentElement.dataset.ready === 'yes'", timeout=60_000)


def keep(page, name):
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png", full_page=True)


def test_the_slider_the_cut_the_group_and_the_theme_work(visit):
    report = cal.report(BINARY, by=GROUPS, title="Title with <b>tags</b>")
    page = visit(report)
    assert page.inner_text("h1") == "Title with <b>tags</b>"
    assert page.inner_text("#verdict") == report.verdict
    assert page.inner_text("#ece") == f"{cal.ece(BINARY):.4f}"
    page.evaluate("const s = document.getElementById('bins'); s.value = 11; s.dispatchEvent(new Event('input'))")
    ready(page)
    assert page.inner_text("#ece") == f"{cal.ece(BINARY, bins=cal.EqualMass(30)):.4f}"
    page.select_option("#method", "width")
    ready(page)
    assert page.inner_text("#ece") == f"{cal.ece(BINARY, bins=cal.EqualWidth(30)):.4f}"
    page.select_option("#group", "<script>alert(1)</script>")
    ready(page)
    own = cal.Binary(BINARY.y_true[GROUPS != "plain"], P[GROUPS != "plain"])
    assert page.inner_text("#ece") == f"{cal.ece(own, bins=cal.EqualWidth(30)):.4f}"
    keep(page, "binary-light")
    page.click("#theme")
    ready(page)
    assert page.get_attribute("html", "data-theme") == "dark"
    page.select_option("#method", "corp")
    ready(page)
    keep(page, "binary-dark")


def test_the_stage_after_recalibration_has_less_error(visit):
    page = visit(cal.report(BINARY))
    before = float(page.inner_text("#ece"))
    after = page.eval_on_selector("#stage", "box => box.options[1].value")
    page.select_option("#stage", after)
    ready(page)
    assert float(page.inner_text("#ece")) < before / 2


def test_a_narrow_screen_needs_no_sideways_scrolling(visit):
    page = visit(cal.report(BINARY, by=GROUPS), width=320)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    keep(page, "binary-narrow")


def test_everything_can_be_reached_with_the_keyboard(visit):
    page = visit(cal.report(BINARY))
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"theme", "bins", "method", "group", "stage"} <= reached


@pytest.mark.parametrize("task", ["regression", "multiclass", "unlabeled"])
def test_the_other_tasks_open_without_errors(visit, task):
    sigma = np.exp(0.5 * rng.standard_normal(800))
    data = {
        "regression": lambda: cal.Gaussian(1.4 * sigma * rng.standard_normal(800), np.zeros(800), sigma),
        "multiclass": lambda: cal.Multiclass(rng.integers(0, 3, 600), rng.dirichlet(np.ones(3), 600)),
        "unlabeled": lambda: cal.PositiveUnlabeled(rng.beta(3, 1, 300), rng.random(2000), prior=0.4),
    }[task]()
    report = cal.report(data)
    page = visit(report)
    assert page.inner_text("#verdict") == report.verdict
    assert page.locator("figure svg").count() >= 1
    keep(page, task)
