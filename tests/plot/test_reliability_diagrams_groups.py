"""The forest plot: one interval per group."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import ByGroup, GroupResult
from calibrant.results.estimate import Interval, Significance

pytestmark = pytest.mark.usefixtures("unchanged_settings")


def test_the_forest_puts_the_worst_group_on_top_and_fills_those_that_stand_out(ax):
    made = {
        name: cal.Estimate(e, name="ECE", method="", n=9, interval=Interval(e - 0.1, e + 0.1, 0.95, ""))
        for name, e in (("a", 0.2), ("b", 0.4), (3, 0.3))
    }
    tests = {name: Significance(1.0, 0.001 if name == "b" else 0.5, "", 9) for name in made}
    rows = tuple(GroupResult("", name, made[name], tests[name], 0.5) for name in made)
    cal.plot.forest(ByGroup(rows, n=27), ax=ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["b (n = 9)", "3 (n = 9)", "a (n = 9)"]
    squares = [drawn for drawn in ax.lines if drawn.get_marker() == "s"]
    assert [square.get_markerfacecolor() for square in squares] == ["#0072B2", "white", "white"]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [0.3, 0.5])
    assert [row.group for row in cal.inference.forest_rows(made)] == ["b", "3", "a"]


def test_of_very_many_groups_those_with_the_most_evidence_are_drawn(ax):
    made = [cal.Estimate(k / 1000, name="ECE", method="", n=9) for k in range(100)]
    rows = tuple(GroupResult("", k, e, Significance(1.0, 1.0 if k else 0.01, "", 9), 0.5) for k, e in enumerate(made))
    cal.plot.forest(ByGroup(rows, n=900), ax=ax)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert len(labels) == 40
    assert "0 (n = 9)" in labels
    assert "40 of 100 groups" in ax.get_title()
