"""The table of groups: sorted by evidence, safe to print and to show."""

import json

import numpy as np

import calibrant as cal
from calibrant.inference import ByGroup, GroupResult
from calibrant.results.estimate import Interval, Significance


def result(group, p, *, value=0.1, column="", interval=True, **more):
    between = Interval(value - 0.05, value + 0.05, 0.95, "") if interval else None
    estimate = cal.Estimate(value, name="ECE (L1)", method="", n=50, interval=between)
    test = Significance(p, p, "test", 50)
    return GroupResult(column, group, estimate, test, p / 2, events=9, predicted=0.3, observed=0.2, **more)


def test_most_evidence_comes_first_and_then_the_larger_error():
    made = ByGroup((result("a", 1.0), result("b", 0.01), result("c", 1.0, value=0.3)), n=150)
    assert [row.group for row in made.ranked] == ["b", "c", "a"]
    assert [line.split()[0] for line in str(made).splitlines()[3:6]] == ["b", "c", "a"]
    assert list(made.estimates) == ["a", "b", "c"]
    assert made.worst.p_value == 0.01
    assert made.worst.null == "every group calibrated"


def test_the_printed_table_says_how_many_and_in_which_direction():
    made = ByGroup((result("a", 0.001, direction="too high"), result("b", 0.5, interval=False)), n=100)
    lines = str(made).splitlines()
    assert lines[0].startswith("2 groups, 1 of them significantly miscalibrated")
    assert "too high" in lines[3]
    assert "0.0500 to 0.1500" in lines[3]
    assert " to " not in lines[4]
    assert str(ByGroup((result("a", 0.001),), n=100)).startswith("1 group, 1 of them")


def test_names_of_groups_are_escaped_in_html():
    shown = ByGroup((result("<script>alert(1)</script>", 0.5),), n=50)._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "none of them" in shown


def test_many_groups_print_the_first_and_say_so():
    made = ByGroup(tuple(result(k, 1.0) for k in range(500)), n=25_000)
    assert len(str(made).splitlines()) == 25
    assert "the 20 groups with the most evidence" in str(made)


def test_groups_of_several_columns_are_told_apart():
    made = ByGroup((result(1, 0.5, column="x"), result(1, 0.2, column="y")), n=50)
    assert list(made.estimates) == [("x", 1), ("y", 1)]
    assert "y = 1" in made.worst.method
    assert "2 groups of 2 columns" in str(made)


def test_everything_goes_into_json():
    day = np.datetime64("2024-01-01").tolist()
    made = ByGroup((result(("DK", day), 0.5), result(1, 0.1), result("1", 0.2)), n=150)
    rows = json.loads(json.dumps(made.to_dict()))["groups"]
    assert [row["group"] for row in rows] == [1, "1", ["DK", "2024-01-01"]]
    assert rows[0]["gap"] == 0.3 - 0.2


def test_control_characters_of_names_are_written_out():
    evil = "\x1b]0;title\x07\u202ered\nnext"
    rng = np.random.default_rng(0)
    p, by = rng.random(60), np.repeat([evil, "plain"], 30)
    found = cal.by_group(cal.brier, rng.random(60) < p**3, p, by={"\x1b[2Jcolumn": by, "other": by})
    for text in (repr(found), str(found), found._repr_html_(), repr(found.rows[0]), found.worst.method):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "\\x1b[2Jcolumn = \\x1b]0;title\\x07\\u202ered\\nnext" in str(found)
    assert found.rows[0].group == evil  # the value itself is kept


def test_groups_count_as_miscalibrated_at_five_percent():
    made = ByGroup((result("a", 0.03), result("b", 0.04), result("c", 0.07)), n=150)
    assert str(made).startswith("3 groups, 2 of them significantly miscalibrated (5%")


def test_groups_are_significant_below_five_percent():
    rows = tuple(
        GroupResult("", k, cal.Estimate(0.1, name="ECE", method="", n=9), Significance(1.0, p, "", 9), 0.5)
        for k, p in enumerate((0.04, 0.06))
    )
    found = cal.inference.forest_rows(ByGroup(rows, n=18))
    assert sorted((row.group, row.significant) for row in found) == [("0", True), ("1", False)]
