import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.monitor_page import monitor_page, save_page
from tests.reporting.layout.test_page import CHROMIUM, browser  # noqa: F401


def watched(rate, *, days=40, groups=False, kind="binary", **options):
    rng, monitor = np.random.default_rng(0), cal.Monitor(**options)
    for day in range(days):
        p = rng.beta(1, 3, 150)
        y = rng.random(150) < rate(p, day)
        group = rng.choice(["a", "<b>&"], 150) if groups else None
        if kind == "forecast":
            status = monitor.update(cal.Gaussian(rng.normal(size=150), np.zeros(150), np.full(150, 0.6)), time=day)
        else:
            status = monitor.update(
                y, p, time=f"2026-03-{day + 1:02d}" if day < 31 else f"2026-04-{day - 30:02d}", group=group
            )
    return monitor, status


def test_an_alarm_is_the_first_thing_on_the_page():
    html = monitor_page(*watched(lambda p, day: p * (0.5 if day > 20 else 1)), state="model.json")
    assert "Alarm on 2026-03-2" in html
    assert "Recalibrate, deploy, and start a new monitor" in html
    assert "passed the limit on" in html
    assert "Reliability since" in html
    assert "model.json" in html


def test_a_quiet_model_needs_nothing():
    html = monitor_page(*watched(lambda p, day: p))
    assert "No alarm" in html
    assert "Nothing. Add the next outcomes" in html
    assert "is below the limit" in html


def test_few_rows_are_said_to_be_few():
    html = monitor_page(*watched(lambda p, day: p, days=1))
    assert "Not enough rows yet" in html


def test_names_of_groups_are_escaped():
    html = monitor_page(*watched(lambda p, day: p, groups=True))
    assert "<b>&" not in html
    assert "&lt;b&gt;&amp;" in html
    assert "0 of 2 groups are shown to be off" in html


def test_forecasts_have_their_own_words_and_no_reliability_diagram():
    html = monitor_page(*watched(lambda p, day: p, kind="forecast", days=12))
    assert "central half" in html
    assert "Reliability since" not in html
    assert "repair()" not in html


def test_a_mean_time_between_alarms_is_named_as_the_promise():
    html = monitor_page(*watched(lambda p, day: p, days=3, arl=1000))
    assert "once in 1,000 periods on average" in html


def test_the_page_is_written_whole(tmp_path):
    save_page(*watched(lambda p, day: p, days=3), tmp_path / "status.html")
    text = (tmp_path / "status.html").read_text(encoding="utf8")
    assert text.startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")
    assert [one.name for one in tmp_path.iterdir()] == ["status.html"]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out_of_the_page(tmp_path, width, browser):  # noqa: F811
    save_page(*watched(lambda p, day: p * 0.5, groups=True), tmp_path / "status.html")
    view = browser.new_page(viewport={"width": width, "height": 900})
    view.goto((tmp_path / "status.html").as_uri())
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    view.close()
