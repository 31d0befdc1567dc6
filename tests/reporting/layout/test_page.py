"""Pages load nothing, answer to keyboard and pointer in a real browser, fit a phone, and show all that was measured.

What the figures of hand-made contents look like is kept in `snapshots/figures.txt`, a digest for each section;
`python -m tests.reporting.layout.test_page` writes it anew. Look at the pages before and after.
"""

import base64
import hashlib
import re
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.contents import Facts, Number, OverTime
from calibrant.reporting.layout import page as top
from calibrant.reporting.layout.page import details_block, footer, fragment_style, sheet, style_text
from calibrant.reporting.model import Finding, Measure, Report
from calibrant.results.estimate import Significance, Value
from tests.reporting import hand_made
from tests.reporting.accessibility import AXE, axe_findings, own_findings
from tests.reporting.samples import OVER

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
FINDINGS = (
    Finding("CAL201", "problem", "The predictions are not calibrated (multiscale test, p ≤ 0.001, n = 20,000)."),
    Finding("CAL301", "problem", "7 of 9 countries are miscalibrated after adjustment."),
    Finding("CAL401", "caution", "The plain ECE ranges from 0.7 points (2 bins) to 2.4 points (1,000 bins)."),
    Finding("CAL501", "note", "Recalibration helps."),
)


Y, P = np.random.default_rng(5).random(400) < 0.4, np.random.default_rng(6).random(400)
UGLY = {
    "decisions": lambda: cal.report(cal.Binary(Y, (P > 0.5).astype(float))),
    "one score": lambda: cal.report(cal.Binary(Y, np.full(400, 0.3))),
    "one outcome": lambda: cal.report(cal.Binary(np.zeros(400), 0.1 * P)),
    "three rows": lambda: cal.report(cal.Binary([0, 1, 1], [0.2, 0.5, 0.9])),
    "certain scores": lambda: cal.report(cal.Binary(Y, np.round(P, 1))),
    "rare events": lambda: cal.report(cal.Binary(np.arange(400) < 3, 1e-4 * P), threshold=0.5),
    "one period": lambda: cal.report(cal.Binary(Y, P), time=np.zeros(400), by=np.zeros(400)),
    "four rows of three classes": lambda: cal.report(cal.Multiclass([0, 1, 2, 0], np.full((4, 3), 1 / 3))),
    "classes decided": lambda: cal.report(cal.Multiclass(np.arange(60) % 3, np.eye(3)[np.arange(60) % 2])),
    "constant spread": lambda: cal.report(cal.Gaussian(P, np.zeros(400), np.ones(400))),
    "three forecasts": lambda: cal.report(cal.Gaussian([1.0, 2.0, 3.0], [1.0, 2.0, 2.0], [1.0, 1.0, 2.0])),
    "few positives": lambda: cal.report(cal.PositiveUnlabeled(P[:8], P, prior=0.3)),
    "too large a share": lambda: cal.report(cal.PositiveUnlabeled(P[:60], P, prior=0.95)),
}


@cache
def ugly(name):
    return UGLY[name]()


def hand(name, title="Card fraud scores, 2025"):
    return Report(title, getattr(hand_made, name)(), findings=FINDINGS)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open a report; fail on console messages, page errors, dialogs, and requests other than the page itself."""
    troubles = []
    contexts = []

    def opened(report, *, width=1280, scheme="light", script=True, place=""):
        path = report.save(tmp_path / "report.html")
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme, java_script_enabled=script)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: request.url.startswith(path.as_uri()) or troubles.append(request.url))
        page.goto(path.as_uri() + place)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def keep(page, name):
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"report-{name}.png", full_page=True)


FIGURES = Path(__file__).parents[1] / "snapshots" / "figures.txt"


def figure_digests() -> str:
    """A line for each section of each hand-made page: a digest of its drawings."""
    lines = []
    for name in ("binary", "multiclass", "regression", "unlabeled"):
        head, *rest = re.split(r'<section id="([^"]+)"', hand(name).to_html())
        for anchor, part in zip(["numbers", *rest[::2]], [head, *rest[1::2]], strict=True):
            drawn = "".join(re.findall(r"<svg.*?</svg>", part, flags=re.DOTALL))
            lines += [f"{name} {anchor} {hashlib.sha256(drawn.encode()).hexdigest()[:12]}\n"] if drawn else []
    return "".join(lines)


def test_figures_are_drawn_as_before():
    kept, now = FIGURES.read_text(encoding="utf8").splitlines(), figure_digests().splitlines()
    assert now == kept, "figures moved: look at them, then write the snapshot anew"


class TestText:
    """What can be said of the page without a browser."""

    def test_no_text_of_a_user_is_markup(self):
        html = Report(hand_made.HOSTILE, hand_made.hostile(), findings=FINDINGS).to_html()
        assert "<img" not in html
        assert html.count("<script>") == 1
        assert "<img" not in Report(hand_made.HOSTILE, hand_made.hostile())._repr_html_()

    @pytest.mark.parametrize("name", ["binary", "multiclass", "regression", "unlabeled"])
    def test_the_page_holds_verdict_numbers_findings_and_sections(self, name):
        report = hand(name)
        html = report.to_html().replace("\u00a0", " ").replace("&lt;", "<")
        assert report.verdict.sentence in html
        assert all(finding.text in html for finding in report.findings)
        assert all(number.name in html for number in report.contents.numbers)
        ids = re.findall(r' id="([^"]+)"', html)
        assert len(ids) == len(set(ids))
        assert all(target in ids for target in re.findall(r'href="#([^"]+)"', html))
        assert "unsafe" not in re.search(r'Content-Security-Policy" content="([^"]+)"', html)[1]

    def test_no_internal_name_reaches_a_reader(self):
        html = cal.report(*_rows(600)).to_html()
        shown = re.sub(r"<(style|script|pre|code)[^>]*>.*?</\1>", "", html, flags=re.DOTALL)
        assert not re.findall(r"\w+\(\w+=[^)]*\)|&lt;\w+ |\bnan\b|\binf\b|None", shown)

    @pytest.mark.parametrize("name", sorted(UGLY))
    def test_ugly_data_have_a_page_without_broken_figures(self, name):
        report = ugly(name)
        html = report.to_html()
        assert not [text for text in re.findall(r'="([^"]*)"', html) if re.search(r"\b(nan|inf)\b", text)]
        ids = re.findall(r' id="([^"]+)"', html)
        assert len(ids) == len(set(ids))
        assert report.verdict.sentence in html.replace("\u00a0", " ").replace("&lt;", "<")
        assert "<svg" in report._repr_html_()

    def test_decisions_are_not_said_to_agree_with_outcomes(self):
        assert "within chance" not in ugly("decisions").to_html().split("Method notes")[0]

    def test_a_large_report_is_small(self):
        rows = [(f"group {k}", 0.5 + 0.02 * k, 300 + k, "too high" if k < 30 else "not flagged") for k in range(60)]
        periods = hand_made.over_time(change=False).periods
        many = OverTime("week", periods * 3 + periods[:4], None)
        sections = (hand_made.reliability(), many, hand_made.groups(rows), hand_made.groups(rows, "device"))
        contents = hand_made.binary(sections=(*sections, hand_made.recalibration(), hand_made.bin_counts()))
        assert len(Report("Large", contents, findings=FINDINGS).to_html().encode()) <= 400_000

    def test_a_report_without_sections_is_a_page(self):
        html = Report("Bare", hand_made.binary(sections=(), numbers=(), notes=())).to_html()
        assert "Details" in html

    def test_the_notebook_has_the_figures_of_the_page_and_no_script(self):
        report = hand("binary")
        html, page = report._repr_html_(), report.to_html()
        assert "<script" not in html
        figures = re.findall(r'<svg class="fig wide".*?</svg>', html, flags=re.DOTALL)
        assert len(figures) == 2
        assert all(figure in page for figure in figures)
        assert report.verdict.sentence in html.replace("\u00a0", " ")


def _rows(n):
    rng = np.random.default_rng(1)
    p = rng.random(n)
    return rng.random(n) < 0.5 + 0.6 * (p - 0.5), p


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="LOUD: no Chromium here, so no page was opened in a browser")
class TestBrowser:
    """What only a browser can tell."""

    @pytest.mark.parametrize("name", ["binary", "multiclass", "regression", "unlabeled", "hostile"])
    @pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
    def test_pages_fit_the_screen_and_break_no_rule_of_access(self, visit, name, width, scheme):
        page = visit(hand(name), width=width, scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        keep(page, f"{name}-{width}-{scheme}")
        assert own_findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width  # with every fold open
        assert page.locator("img, iframe, object").count() == 0

    @pytest.mark.skipif(
        not AXE.exists(), reason="LOUD: axe-core is not installed (make axe), only our own rules were checked"
    )
    @pytest.mark.parametrize("name", ["binary", "multiclass", "regression", "unlabeled"])
    @pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
    def test_axe_finds_nothing_serious(self, visit, name, width, scheme):
        page = visit(hand(name), width=width, scheme=scheme)
        keep(page, f"{name}-{width}-{scheme}")
        assert axe_findings(page) == []

    def test_one_width_of_each_figure_is_shown_at_its_true_size(self, visit):
        for width, style in ((1280, "wide"), (390, "narrow")):
            page = visit(hand("binary"), width=width)
            shown = page.locator("svg.fig:visible")
            assert shown.count() == 4  # one axis of the diagram, time, before and after, bins
            for k in range(shown.count()):
                assert style in shown.nth(k).get_attribute("class")
                assert shown.nth(k).bounding_box()["width"] == float(shown.nth(k).get_attribute("width"))

    @pytest.mark.parametrize("script", [True, False])
    def test_the_axis_changes_with_or_without_scripts(self, visit, script):
        page = visit(hand("binary"), script=script)
        assert page.locator(".on-logit").is_visible()
        assert not page.locator(".on-linear").is_visible()
        page.get_by_text("linear", exact=True).click()
        assert page.locator(".on-linear").is_visible()
        assert not page.locator(".on-logit").is_visible()
        assert page.locator(".theme").is_visible() == script

    def test_everything_can_be_reached_and_used_by_keyboard(self, visit):
        page = visit(hand("binary"))
        reached = []
        while len(reached) < 80 and reached.count('<a class="skip" href="#main">') < 2:
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.outerHTML.split('>')[0] + '>'"))
            if reached[-1].startswith("<input"):
                page.keyboard.press("ArrowRight")
                assert page.locator(".on-linear").is_visible()
            if page.evaluate("document.activeElement.matches('.findings summary')"):
                page.keyboard.press("Enter")
        wanted = (
            'class="skip"',
            'class="theme"',
            'href="#findings"',
            "<summary>",
            'type="radio"',
            'class="copy"',
            "<pre",
        )
        for piece in wanted:
            assert any(piece in one for one in reached), piece
        assert page.locator(".findings details[open]").count() == len(FINDINGS)

    def test_an_address_opens_its_finding(self, visit):
        page = visit(hand("binary"), place="#cal301")
        assert page.locator("#cal301").evaluate("e => e.open")
        assert not page.locator("#cal201").evaluate("e => e.open")
        assert page.locator("#cal301 .x").inner_text() != ""

    def test_the_pointer_shows_numbers_and_they_stay_on_the_screen(self, visit):
        from playwright.sync_api import expect

        page = visit(hand("binary"))
        dot = page.locator(".on-logit svg.wide g[data-tip] .dot").nth(5)
        dot.hover()
        tip = page.locator("#tip")
        expect(tip).to_have_css("opacity", "1")  # waits without a script in the page, which its policy would refuse
        assert re.match(r"Predicted .*: mean .*\nObserved .*\n.* payments, .* frauds", tip.inner_text())
        box = tip.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 1280

    def test_the_theme_button_goes_both_ways(self, visit):
        page = visit(hand("binary"))
        paper = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(paper) == "rgb(255, 255, 255)"
        page.click(".theme")
        assert page.evaluate(paper) == "rgb(16, 19, 23)"
        assert page.inner_text(".theme") == "Light"
        page.click(".theme")
        assert page.evaluate(paper) == "rgb(255, 255, 255)"

    def test_in_print_folds_are_open_and_controls_gone(self, visit):
        page = visit(hand("binary"), scheme="dark")
        ARTIFACTS.mkdir(exist_ok=True)
        paper = page.pdf(path=ARTIFACTS / "report-print.pdf", format="A4", print_background=True)
        assert len(re.findall(rb"/Type\s*/Page\b", paper)) <= 7
        page.emulate_media(media="print", color_scheme="light")
        assert not page.locator(".theme").is_visible()
        assert not page.locator(".alt").first.is_visible()
        assert page.locator("svg.fig.wide").first.is_visible()

    def test_a_foreign_script_does_not_run(self, browser, tmp_path):
        path = hand("binary").save(tmp_path / "report.html")
        text = path.read_text(encoding="utf8")
        path.write_text(text.replace("</main>", "<script>document.title = 'taken'</script></main>"), encoding="utf8")
        page = browser.new_page()
        page.goto(path.as_uri())
        assert page.title() != "taken"
        page.close()

    def test_a_real_report_opens_without_errors(self, visit):
        y, p = _rows(2000)
        rng = np.random.default_rng(2)
        report = cal.report(cal.Binary(y, p), by={"<b>place</b>": rng.choice(["a<br>", "b", "c"], 2000)}, threshold=0.3)
        page = visit(report, width=390)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert own_findings(page) == []
        assert page.inner_text(".say").replace("\u00a0", " ") == report.verdict.sentence
        keep(page, "real-390")


PAGE = sheet("Title <b>", "text <i>", footer())


def digest(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_names_style_and_script_by_their_hash_and_nothing_else():
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', PAGE)[1]
    script = re.search(r"<script>(.*)</script>", PAGE, re.DOTALL)[1]
    style = re.search(r"<style>(.*)</style>", PAGE, re.DOTALL)[1]
    assert policy == (
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; base-uri 'none'; "
        f"form-action 'none'"
    )
    assert "unsafe" not in policy


def test_text_is_escaped_and_nothing_is_loaded():
    assert "<title>Title &lt;b&gt;</title>" in PAGE
    assert "text &lt;i&gt;" in PAGE
    assert not re.search(r"\b(src|@import|url\(\s*['\"]?http)", PAGE.replace("-src", ""))


def test_the_script_is_small_and_the_style_of_a_notebook_reaches_nothing_outside():
    script = re.search(r"<script>(.*)</script>", PAGE, re.DOTALL)[1]
    assert len(script) < 2000
    for selectors in re.findall(r"^([^{}@/\n][^{}]*)\{", fragment_style().removeprefix("<style>"), re.MULTILINE):
        assert all(".calibrant" in selector for selector in selectors.split(",")), selectors
    assert fragment_style().removeprefix("<style>").removesuffix("</style>") in style_text()


def test_estimates_tests_and_notes_have_a_fold_each():
    measures = (Measure(cal.ece(OVER), headline=True), Measure(cal.brier(OVER)))
    tests = (Significance(1.0, 0.001, "MultiScale(draws=999, seed=0)", 3000, draws=999),)
    body = details_block(Report("Title", hand_made.binary(), measures, tests)).body
    assert body.count('<details class="fold">') == 4
    assert "ECE, 15 equal-mass bins" in body
    assert "Multiscale test (999 simulations)" in body
    assert "≤ 0.001" in body
    assert "<b>Bands.</b>" in body
    assert "<code>group=</code>" in body


def test_what_is_missing_has_no_fold():
    body = details_block(Report("Title", hand_made.binary(notes=()))).body
    assert body.count('<details class="fold">') == 1


def test_notes_are_escaped():
    assert "<img" not in details_block(Report("Title", hand_made.hostile())).body


FINDING = SimpleNamespace(
    code="CAL301",
    severity="problem",
    text="7 of 9 countries are off, p < 0.001.",
    explanation="Why.\n\n**What to do.** Use `PerGroup`.",
    link="https://docs.example/findings#cal301",
)


def test_facts_that_are_not_known_are_left_out():
    assert top.fact_list(hand_made.binary()) == [
        ("Payments", "20,000"),
        ("Frauds", "610 (3.05 %)"),
        ("Mean prediction", "3.66 %"),
        ("Period", "1 Jan to 31 Dec 2025"),
        ("Model", "fraud-gbm 4.2"),
        ("Data", "payments-2025.parquet"),
    ]
    assert top.fact_list(hand_made.binary(facts=Facts(12))) == [("Rows", "12")]
    weighted = Facts(12, effective_rows=7.4, clusters=3)
    assert top.fact_list(hand_made.binary(facts=weighted))[1:] == [
        ("Effective number", "7.4"),
        ("Groups of dependent rows", "3"),
    ]


def test_facts_of_other_tasks():
    names = [name for name, _ in top.fact_list(hand_made.multiclass())]
    assert names == ["Tickets", "Classes", "Accuracy", "Mean confidence", "Model"]
    found = dict(top.fact_list(hand_made.unlabeled()))
    assert found["Labelled positives"] == "700"
    assert found["Assumed share of positives"] == "19 %"


def test_the_kind_of_predictions():
    assert top.kicker(hand_made.binary()) == "Calibration report · binary probabilities"
    assert top.kicker(hand_made.multiclass()) == "Calibration report · 7 classes"


def test_the_verdict_holds_its_sentences_and_only_answers_that_exist():
    html = top.verdict_block(hand_made.BINARY_VERDICT)
    assert html.count("<h3>") == 3
    assert "Not calibrated" in html
    bare = replace(hand_made.BINARY_VERDICT, second="", how_sure="", what_it_means="", what_to_do="", state="too few")
    html = top.verdict_block(bare)
    assert "<h3>" not in html
    assert "Too few to judge" in html


def test_severity_decides_colour_and_shape():
    made = {
        top.verdict_block(replace(hand_made.BINARY_VERDICT, severity=s))[:40] for s in ("problem", "caution", "note")
    }
    assert len(made) == 3


@pytest.mark.parametrize(
    ("value", "unit", "big", "small"),
    [
        (Value(0.0083, 0.005, 0.0102), "points", "0.8", "points (0.5 to 1.0)"),
        (Value(0.001, 0.0, 0.0031), "points", "at most 0.31", "points"),
        (Value(0.043), "points", "4.3", "points"),
        (Value(0.825, 0.813, 0.836), "percent", "82.5", "% (81.3 to 83.6 %)"),
        (Value(0.27), "percent", "27", "%"),
        (Value(0.83, 0.77, 0.9), "ratio", "0.83", "(0.77 to 0.90)"),
        (Value(-0.23, -0.32, -0.14), "none", "−0.23", "(−0.32 to −0.14)"),
    ],
)
def test_numbers_are_rounded_to_what_their_interval_supports(value, unit, big, small):
    html = str(top.numbers_block([Number("x", value, 1.0 if unit == "ratio" else 0.0, unit, "", "", "")]))
    assert f'<p class="big">{big} <small>{small}</small></p>' in html.replace("\u00a0", " ")


def test_a_difference_that_may_be_0_is_no_upper_bound():
    gap = Number("gap", Value(0.001, -0.01, 0.012), 0.0, "points", "under-confident", "over-confident", "")
    assert "0.1 <small>points (−1.0 to 1.2)</small>" in str(top.numbers_block([gap])).replace("\u00a0", " ")


def test_numbers_may_be_missing():
    assert top.numbers_block(()) is None


def test_findings_open_by_their_address_even_if_a_code_occurs_twice():
    html = top.findings_block([FINDING, FINDING]).body
    assert 'id="cal301"' in html
    assert 'id="cal301-2"' in html
    assert "<code>PerGroup</code>" in html
    assert 'href="https://docs.example/findings#cal301"' in html
    assert top.findings_block([]) is None


def test_a_link_that_is_no_address_is_text():
    relative = SimpleNamespace(**{**vars(FINDING), "link": "javascript:alert(1)"})
    assert "href" not in top.findings_block([relative]).body


if __name__ == "__main__":
    FIGURES.write_text(figure_digests(), encoding="utf8")
