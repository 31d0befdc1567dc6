"""The first screen: facts that are known, the verdict, three numbers, findings that open."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from calibrant.reporting.contents import Facts, Number, Value
from calibrant.reporting.layout import top
from tests.reporting import hand_made

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
    assert found["Assumed share of positives"] == "19.0 %"


def test_the_kind_of_predictions():
    assert top.kicker(hand_made.binary()) == "Calibration report · binary probabilities"
    assert top.kicker(hand_made.multiclass()) == "Calibration report · 7 classes"


def test_the_verdict_holds_its_sentences_and_only_answers_that_exist():
    html = top.verdict(hand_made.BINARY_VERDICT, "fraud")
    assert html.count("<h3>") == 3
    assert "Not calibrated" in html
    bare = replace(hand_made.BINARY_VERDICT, second="", how_sure="", what_it_means="", what_to_do="", state="too few")
    html = top.verdict(bare, "fraud")
    assert "<h3>" not in html
    assert "Too few frauds to judge" in html


def test_severity_decides_colour_and_shape():
    made = {
        top.verdict(replace(hand_made.BINARY_VERDICT, severity=s), "x")[:40] for s in ("problem", "caution", "note")
    }
    assert len(made) == 3


@pytest.mark.parametrize(
    ("value", "unit", "big", "small"),
    [
        (Value(0.0083, 0.005, 0.0102), "points", "0.8", "points (0.5 to 1.0)"),
        (Value(0.001, 0.0, 0.0031), "points", "≤ 0.31", "points"),
        (Value(0.043), "points", "4.3", "points"),
        (Value(0.825, 0.813, 0.836), "percent", "82.5", "% (81.3 to 83.6 %)"),
        (Value(0.27), "percent", "27", "%"),
        (Value(0.83, 0.77, 0.9), "ratio", "0.83", "(0.77 to 0.90)"),
        (Value(-0.23, -0.32, -0.14), "none", "−0.23", "(−0.32 to −0.14)"),
    ],
)
def test_numbers_are_rounded_to_what_their_interval_supports(value, unit, big, small):
    html = str(top.numbers([Number("x", value, 1.0 if unit == "ratio" else 0.0, unit, "", "", "")]))
    assert f'<p class="big">{big} <small>{small}</small></p>' in html.replace("\u00a0", " ")


def test_a_difference_that_may_be_0_is_no_upper_bound():
    gap = Number("gap", Value(0.001, -0.01, 0.012), 0.0, "points", "under-confident", "over-confident", "")
    assert "0.1 <small>points (−1.0 to 1.2)</small>" in str(top.numbers([gap])).replace("\u00a0", " ")


def test_numbers_may_be_missing():
    assert top.numbers(()) is None


def test_findings_open_by_their_address_even_if_a_code_occurs_twice():
    html = top.findings([FINDING, FINDING]).body
    assert 'id="cal301"' in html
    assert 'id="cal301-2"' in html
    assert "<code>PerGroup</code>" in html
    assert 'href="https://docs.example/findings#cal301"' in html
    assert top.findings([]) is None


def test_a_link_that_is_no_address_is_text():
    relative = SimpleNamespace(**{**vars(FINDING), "link": "javascript:alert(1)"})
    assert "href" not in top.findings([relative]).body
