"""The page of an audit."""

import json

import pytest

from calibrant.reporting.audit_page import audit_page, save_page, sentence, to_json
from tests.reporting.audits import classes, coverage, found
from tests.reporting.layout.test_page import CHROMIUM, browser  # noqa: F401


def test_the_page_has_the_verdict_segments_features_and_the_repair(tmp_path):
    save_page(found(), tmp_path / "page.html", source="a & b.csv", call="calibrant audit a.csv", note="Sampled.")
    html = (tmp_path / "page.html").read_text(encoding="utf8")
    for words in (
        "Miscalibrated for some rows",
        "a &amp; b.csv",
        "calibrant audit a.csv",
        "Sampled.",
        "audit.repair()",
    ):
        assert words in html
    assert "&lt;b&gt;app&lt;/b&gt;" in html
    assert "<b>app</b>" not in html
    assert "probability that any segment below is false is at most" in html


def test_nothing_found_claims_nothing():
    html = audit_page(found(0.0))
    assert "Nothing found" in html
    assert "No segment is confirmed to be off" in html
    assert "may have missed small errors" in html


def test_no_repair_is_offered_where_there_is_none():
    said = sentence(coverage())
    assert said.startswith("Given the features, the coverage of intervals is off by at least ")
    assert "where kind = a: " in said
    assert said.endswith("% of outcomes lie in intervals that should hold 90.0 %.")
    html = audit_page(coverage(), call="calibrant audit forecasts.csv")
    assert "repair" not in html.lower()
    assert "Train the model on these features." in html
    html = audit_page(classes(), call="calibrant audit classes.csv")
    assert "one_vs_rest" in html
    assert "for the class 2 where kind = a: predicted 33.0 %" in sentence(classes())


def test_a_gain_of_nothing_is_zero():
    assert "0.000" not in audit_page(found(0.0))


def test_json_has_the_sentence_and_only_plain_numbers():
    made = json.loads(to_json(found()))
    assert made["sentence"] == sentence(found())
    assert made["segments"][0]["direction"] == "too low"
    assert made["error"]["l1"]["interval"]["high"] is None


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out_of_the_page(tmp_path, width, browser):  # noqa: F811
    save_page(found(), tmp_path / "page.html", call="calibrant audit a.csv --truth outcome --prob score")
    view = browser.new_page(viewport={"width": width, "height": 900})
    view.goto((tmp_path / "page.html").as_uri())
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    view.close()
