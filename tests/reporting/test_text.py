"""A report in words: facts, answers, tables, escapes, in every form."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.contents import (
    Classes,
    Contents,
    Coverage,
    Facts,
    GroupRow,
    Groups,
    MapRow,
    Number,
    Omitted,
    Recalibration,
    Shares,
    Spread,
    Verdict,
)
from calibrant.reporting.model import Finding, Report
from calibrant.reporting.text import (
    classes_table,
    coverage_table,
    estimate_texts,
    facts,
    groups_table,
    in_markdown,
    number_texts,
    recalibration_table,
    shares_table,
    tables,
    time_table,
)
from calibrant.results.estimate import Significance, Value, printable
from tests.fuzz.hostile_texts import HOSTILE, check_markdown
from tests.reporting.samples import CALIBRATED, OVER, SPREAD
from tests.reporting.verdicts.evidence_samples import group, over_time

#: Words of the first edition that readers stumbled over.
FORBIDDEN = (
    "stated", "beside it", "can be shown", "bring it to", "if perfect", "averaged smoothers", "came out the other way",
    "error left", "MultiScale", "EqualMass", "EqualWidth", "PaperBins", "_debias", "_sweep", "smECE", "C_v", "z^2",
    "p = 0.000", "−0.0 ", "None", "nan",
)  # fmt: skip


@pytest.mark.no_cover
def test_all_forms_carry_the_verdict_and_escape_what_users_named(over):
    sentence = over.verdict.sentence
    assert sentence.split()[-1] in str(over)
    assert json.loads(over.to_json())["verdict"]["sentence"] == sentence
    assert sentence in over.to_markdown()
    assert "&lt;script&gt;" in over.to_markdown()
    assert 'a "quoted" \\| group' in over.to_markdown()
    for html in (over.to_html(), over._repr_html_()):
        assert "<script>alert(1)" not in html
        assert "<b>confident</b>" not in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


@pytest.mark.no_cover
@pytest.mark.parametrize("data", [CALIBRATED, SPREAD], ids=["binary", "regression"])
def test_no_word_of_the_first_edition_and_no_python_reaches_a_reader(over, data):
    for report in (over, cal.report(data)):
        for text in (str(report), report.to_markdown()):
            assert [word for word in FORBIDDEN if word in text] == []


def test_the_terminal_shows_verdict_answers_findings_and_tables(over):
    text = str(over)
    order = [
        "Not calibrated",
        "How sure:",
        "What it means:",
        "What to do:",
        "Findings",
        "In numbers",
        "Estimates",
        "Tests",
    ]
    places = [text.index(word) for word in order]
    assert places == sorted(places)
    assert all(len(line) <= 100 for line in text.split("In numbers")[0].splitlines())
    assert not any(line.lstrip().startswith("%") for line in text.splitlines())


def test_control_characters_reach_neither_a_terminal_nor_a_page():
    evil = "\x1b]0;title\x07\x1b[31m\u202ered"
    row = GroupRow(evil, 9, Value(1.2), Value(0.1), "not flagged", 0.5, flagged=False, observed=3, expected=4)
    found = Report(
        evil,
        Contents(
            "binary",
            Facts(9, model=evil, source=evil),
            Verdict("B5", "not significant", "note", None, f"Worst is {evil}."),
            (),
            (Groups(evil, (row,), omitted=evil),),
            (Omitted(evil, evil),),
        ),
        findings=(Finding("CAL202", "note", f"Group {evil} is off."),),
    )
    for text in (str(found), found.to_markdown(), found._repr_html_()):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "x1b" in text


def test_facts_that_are_not_known_are_left_out(over):
    assert facts(over.contents).startswith("3,000 rows · ")
    bare = replace(over.contents, facts=Facts(5))
    assert facts(bare) == "5 rows"
    whole = Facts(5, "payment", "fraud", 1, 0.2, 0.3, 4.0, 3, "2025", "gbm", "file")
    assert facts(replace(bare, facts=whole)) == (
        "5 payments · 1 fraud (20 %) · mean prediction 30 % · effective sample size 4 · 3 groups of dependent "
        "rows · 2025 "
        "· gbm · file"
    )
    several = replace(bare, kind="classes", facts=Facts(5, classes=3, base_rate=0.5, mean_prediction=0.6))
    assert facts(several) == "5 rows · 3 classes · accuracy 50 % · mean confidence 60 %"
    unlabeled = replace(bare, kind="unlabeled", facts=Facts(5, events=2, base_rate=0.5))
    assert facts(unlabeled) == "5 rows · 2 labelled positives · assumed share of positives 50 %"


def test_groups_show_all_that_are_flagged_and_the_largest_others():
    rows = tuple(
        group(f"g{k}", flagged=k < 3, direction="too low" if k < 3 else "not flagged", n=100.0 + k) for k in range(40)
    )
    made = groups_table(Groups("country", rows))
    assert made.heading == "Countries"
    assert len(made.rows) == 20
    assert {"g0", "g1", "g2", "g39"} < {row[0] for row in made.rows}
    assert made.note == "20 more groups, not flagged."
    assert made.columns[:4] == ("Country", "Rows", "Observed", "Expected")
    assert made.columns[4:] == ("O:E", "95 % interval", "Error, points", "Direction", "Adjusted p")


def test_groups_of_forecasts_have_a_ratio_and_no_events():
    row = GroupRow("1 day", 50, Value(1.5, 1.4, 1.6), Value(0.02, 0.01, 0.03), "too narrow", 0.001, flagged=True)
    made = groups_table(Groups("lead time", (row,)))
    assert made.columns[2] == "Ratio"
    assert made.rows[0][2:4] == ("1.50", "1.40 to 1.60")


def test_classes_say_how_many_are_shown():
    test = Significance(0.1, 0.1, "VectorTest", 9)
    made = classes_table(Classes(test, (group("a"), group("b")), (), (), 1))
    assert made.note == "1 of 2 classes: flagged ones first, by the size of their error."


def test_maps_show_what_remains_and_what_is_gained():
    rows = (
        MapRow("Platt scaling", 2, Value(0.001, 0.0, 0.003), Value(0.017, 0.009, 0.025), "best"),
        MapRow("Spline", 5, Value(0.011, 0.006, 0.016), Value(-0.002, -0.01, 0.006), "may not help"),
    )
    made = recalibration_table(Recalibration("log loss", 0.41234, rows))
    assert made.heading == "Recalibration, cross-validated (log loss before: 0.4123)"
    assert made.rows == [
        ("Platt scaling", "≤ 0.30", "1.7 (0.9 to 2.5)", "best"),
        ("Spline", "1.1 (0.6 to 1.6)", "−0.2 (−1.0 to 0.6)", "may not help"),
    ]


def test_time_coverage_and_shares():
    made = time_table(over_time())
    assert made.rows[2][0] == "September 2025"
    assert made.rows[2][-1] == "flagged"
    spread = Spread("", (), (Coverage(0.9, Value(0.825, 0.81, 0.84)),), (), (0, 1))
    assert coverage_table(spread).rows == [("90 %", "82.5 %", "81.0 to 84.0 %")]
    shares = Shares(0.2, (0.2,), (Value(0.06, 0.047, 0.067),), None, ())
    assert shares_table(shares).rows == [("20 %", "6.0", "4.7 to 6.7")]


@pytest.mark.parametrize(
    ("number", "texts"),
    [
        (Number("e", Value(0.001, 0.0, 0.003), 0.0, "points", "", "x", ""), ("at most 0.30", "points", "")),
        (Number("e", Value(0.01, 0.006, 0.014), 0.0, "points", "", "x", ""), ("1.0", "points", "0.6 to 1.4")),
        (
            Number("gap", Value(0.001, -0.01, 0.012), 0.0, "points", "under", "over", ""),
            ("0.1", "points", "−1.0 to 1.2"),
        ),
        (Number("c", Value(0.825, 0.81, 0.84), 0.9, "percent", "a", "b", ""), ("82.5", "%", "81.0 to 84.0 %")),
        (Number("r", Value(0.83, 0.77, 0.9), 1.0, "ratio", "a", "b", ""), ("0.83", "", "0.77 to 0.90")),
        (Number("x", Value(3.21), 0.0, "none", "a", "b", ""), ("3.21", "", "")),
    ],
)
def test_large_numbers(number, texts):
    assert number_texts(number) == texts


def test_estimates_have_units():
    part = cal.interval(cal.ece, OVER)
    value, ends = estimate_texts(part)
    assert value.endswith(" points")
    assert " to " in ends
    assert estimate_texts(cal.coverage(SPREAD))[0].endswith(" %")
    assert estimate_texts(partial(cal.brier)(OVER))[0] == f"{cal.brier(OVER):.4f}"
    assert estimate_texts(cal.variational_error(OVER))[0].endswith(" points")
    assert estimate_texts(cal.overconfidence(OVER))[0].endswith(" points")


def test_every_table_is_whole(over):
    for table in tables(over):
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)


@pytest.mark.parametrize("text", HOSTILE)
def test_user_text_stays_text_in_markdown(text):
    from markdown_it import MarkdownIt

    for lines in (in_markdown(text), f"# {in_markdown(text)}", f"- {in_markdown(text)}"):
        inline = [token for token in MarkdownIt("commonmark").parse(lines) if token.type == "inline"]
        assert [child.type for token in inline for child in token.children] == ["text"]
        assert inline[0].children[0].content.strip() == printable(text).strip()


def test_a_group_cannot_become_an_image_or_a_link():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    names = np.where(np.arange(400) % 2, "![t](https://x.example/track.png)", "www.x.example")
    found = cal.report(cal.Binary(rng.random(400) < p, p), by={"a*b": names}, title="[t](u)").to_markdown()
    assert "!\\[t\\](https\\://x.example/track.png)" in found
    assert "www\\.x.example" in found
    assert found.startswith("# \\[t\\](u)\n")
    check_markdown(found)
