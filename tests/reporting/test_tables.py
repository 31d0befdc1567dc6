"""The tables of a report as text."""

from functools import partial

import pytest

import calibrant as cal
from calibrant.reporting.contents import (
    Classes,
    Coverage,
    GroupRow,
    Groups,
    MapRow,
    Number,
    Recalibration,
    Shares,
    Spread,
    Value,
)
from calibrant.reporting.tables import (
    classes_table,
    estimate_texts,
    groups_table,
    number_texts,
    recalibration_table,
    shares_table,
    spread_table,
    tables,
    time_table,
)
from calibrant.results.estimate import Significance
from tests.reporting.samples import OVER, SPREAD
from tests.reporting.verdicts.evidence_samples import group, over_time


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
    assert made.note == "1 of 2 classes, largest deviations first."


def test_maps_show_what_remains_and_what_is_gained():
    rows = (
        MapRow("Platt scaling", 2, Value(0.001, 0.0, 0.003), Value(0.017, 0.009, 0.025), "best"),
        MapRow("Spline", 5, Value(0.011, 0.006, 0.016), Value(-0.002, -0.01, 0.006), "may not help"),
    )
    made = recalibration_table(Recalibration("log loss", 0.41234, rows))
    assert made.heading == "Recalibration, cross-validated (log loss before: 0.4123)"
    assert made.rows == [
        ("Platt scaling", "≤ 0.30", "1.7 (0.9 to 2.5)", "best"),
        ("Spline", "1.10 (0.60 to 1.60)", "−0.2 (−1.0 to 0.6)", "may not help"),
    ]


def test_time_coverage_and_shares():
    made = time_table(over_time())
    assert made.rows[2][0] == "September 2025"
    assert made.rows[2][-1] == "flagged"
    spread = Spread("", (), (Coverage(0.9, Value(0.825, 0.81, 0.84)),), (), (0, 1))
    assert spread_table(spread).rows == [("90 %", "82.5 %", "81.0 to 84.0 %")]
    shares = Shares(0.2, (0.2,), (Value(0.06, 0.047, 0.067),), None, ())
    assert shares_table(shares).rows == [("20 %", "6.0", "4.7 to 6.7")]


@pytest.mark.parametrize(
    ("number", "texts"),
    [
        (Number("e", Value(0.001, 0.0, 0.003), 0.0, "points", "", "x", ""), ("≤ 0.30", "points", "")),
        (Number("e", Value(0.01, 0.006, 0.014), 0.0, "points", "", "x", ""), ("1.0", "points", "0.6 to 1.4")),
        (
            Number("gap", Value(0.001, -0.01, 0.012), 0.0, "points", "under", "over", ""),
            ("0.1", "points", "−1.0 to 1.2"),
        ),
        (Number("c", Value(0.825, 0.81, 0.84), 0.9, "percent", "a", "b", ""), ("82.5", "%", "81.0 to 84.0 %")),
        (Number("r", Value(0.83, 0.77, 0.9), 1.0, "ratio", "a", "b", ""), ("0.83", "", "0.77 to 0.90")),
        (Number("x", Value(3.21), 0.0, "none", "a", "b", ""), ("3.2", "", "")),
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
    assert estimate_texts(cal.calibration_error(OVER))[0].endswith(" points")


def test_every_table_is_whole(over):
    for table in tables(over):
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
