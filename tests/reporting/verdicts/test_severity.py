"""Severity by base rate, decision and tolerance, and how often a calibrated model is accused."""

from dataclasses import replace

import numpy as np
import pytest

from calibrant.reporting.contents import Bin, Change, Threshold
from calibrant.reporting.verdicts.evidence import Forecasts, VerdictTest
from calibrant.reporting.verdicts.forecasts import FORECASTS
from calibrant.reporting.verdicts.severity import (
    changed,
    flagged_groups,
    group_severity,
    judged_together,
    limit,
    of_probabilities,
    outside,
    significant,
    small,
)
from calibrant.results.estimate import Value
from tests.reporting.verdicts.evidence_samples import ACCEPTS, PLAIN, REJECTS, group, groups, over_time

#: The rarer outcome of these has a frequency of 30 %: the limit of 5 % of it is 1.5 points.
CASES = [
    ({"error": Value(0.02, 0.0151, 0.03)}, "problem"),
    ({"error": Value(0.02, 0.0149, 0.03)}, "caution"),
    ({"error": Value(0.01, 0.003, 0.0149)}, "note"),
    ({"error": Value(0.01, 0.003, 0.0151)}, "caution"),
    ({"error": Value(0.01, 0.002, 0.02), "ratio": Value(0.85, 0.8, 0.89)}, "problem"),
    ({"error": Value(0.01, 0.002, 0.02), "ratio": Value(0.85, 0.8, 0.91)}, "caution"),
    ({"error": Value(0.01, 0.002, 0.02), "slope": Value(1.3, 1.19, 1.4)}, "problem"),
    ({"error": Value(0.01, 0.002, 0.02), "slope": Value(1.3, 1.1, 1.4)}, "caution"),
    ({"test": ACCEPTS, "error": Value(0.01, 0, 0.0149)}, "note"),
    ({"test": ACCEPTS, "error": Value(0.01, 0, 0.0151)}, "caution"),
    ({"test": ACCEPTS, "error": None}, "caution"),
    ({"error": Value(0.02, 0.0151, 0.03), "tolerance": 0.016}, "caution"),
    ({"error": Value(0.02, 0.017, 0.03), "tolerance": 0.016}, "problem"),
    ({"error": Value(0.02, 0.0151, 0.03), "tolerance": 0.031}, "note"),
    ({"test": ACCEPTS, "error": Value(0.01, 0, 0.029), "tolerance": 0.02}, "caution"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "severity"), CASES)
def test_severity(changes, severity):
    assert of_probabilities(replace(PLAIN, **changes)) == severity


def test_a_wrong_frequency_at_the_threshold_is_a_problem():
    around = Bin(0.08, 0.12, 100, 20, 0.1, Value(0.2, 0.13, 0.29))
    weak = replace(PLAIN, error=Value(0.004, 0.003, 0.0059))
    assert of_probabilities(replace(weak, threshold=Threshold(0.1, around, None))) == "problem"
    right = replace(around, observed=Value(0.11, 0.06, 0.2))
    assert of_probabilities(replace(weak, threshold=Threshold(0.1, right, None))) == "note"


def test_groups_and_periods_count_even_where_all_rows_together_look_right():
    quiet = replace(PLAIN, test=ACCEPTS, error=Value(0.001, 0, 0.002))
    assert of_probabilities(quiet) == "note"
    assert of_probabilities(replace(quiet, groups=(groups(group(flagged=False)),))) == "note"
    assert of_probabilities(replace(quiet, groups=(groups(group()),))) == "problem"
    assert of_probabilities(replace(quiet, over_time=over_time())) == "problem"


def test_the_severity_of_a_group():
    assert group_severity(group()) == "problem"
    mild = replace(group(), ratio=Value(1.05, 1.01, 1.1), error=Value(0.01, 0.002, 0.02))
    assert group_severity(mild) == "caution"
    assert group_severity(replace(mild, error=Value(0.01, 0.011, 0.02))) == "problem"
    assert group_severity(mild, tolerance=0.05) == "note"
    assert group_severity(replace(mild, error=Value(0.01))) == "caution"


def test_parts():
    assert changed(over_time()) is not None
    assert changed(over_time(significant=False)) is None
    assert changed(None) is None
    assert outside(Value(0.8, 0.7, 0.89), (0.9, 1.1))
    assert not outside(Value(0.8), (0.9, 1.1))
    assert small(replace(PLAIN, error=Value(0.001, 0.0005, 0.002)))
    assert not small(replace(PLAIN, error=None))
    assert limit(0.3, None) == pytest.approx(0.015)
    assert limit(0.3, 0.02) == 0.02


def with_p_values(p, *, of_groups=None, of_change=None):
    """Evidence with the given p-values."""
    found = replace(PLAIN, test=VerdictTest("multiscale test", p, 999))
    if of_groups is not None:
        found = replace(
            found, groups=(groups(*(group(f"g{k}", p=q, flagged=q < 0.05) for k, q in enumerate(of_groups))),)
        )
    if of_change is not None:
        change = Change(2, Value(0.9, 0.8, 1.0), Value(0.6, 0.5, 0.7), of_change, of_change < 0.05)
        found = replace(found, over_time=replace(over_time(), change=change))
    return found


def test_one_test_is_left_as_it_is():
    assert judged_together(PLAIN) is PLAIN


@pytest.mark.no_cover
def test_calibrated_models_are_accused_in_one_of_twenty_reports():
    p = np.random.default_rng(0).random((2000, 3))
    given = [with_p_values(a, of_groups=[b, 1.0], of_change=c) for a, b, c in p.tolist()]
    assert np.mean([significant(one) for one in given]) > 0.12
    assert np.mean([significant(judged_together(one)) for one in given]) == pytest.approx(0.05, abs=0.012)


def test_what_is_clear_is_told_whatever_else_is_tested():
    found = judged_together(with_p_values(0.001, of_groups=[0.002, 0.3], of_change=0.04))
    assert found.test.rejects
    assert changed(found.over_time) is not None
    assert [row.name for row in flagged_groups(found.groups)] == ["g0"]
    assert found.groups[0].rows[0].p_value == pytest.approx(0.004)


def test_what_is_not_flagged_any_more_has_no_direction():
    found = judged_together(with_p_values(0.5, of_groups=[0.03, 0.3], of_change=0.02))
    row = found.groups[0].rows[0]
    assert (row.flagged, row.direction, row.slope, row.flagged_after) == (False, "not flagged", None, None)
    assert row.p_value == pytest.approx(0.06)
    assert changed(found.over_time) is None
    assert not significant(found)


def test_the_words_say_what_was_adjusted_and_only_where_it_matters():
    test = judged_together(with_p_values(0.03, of_groups=[0.4], of_change=0.3)).test
    assert test.in_words == "p = 0.030; adjusted for the 3 tests of this report, p = 0.090"
    assert judged_together(with_p_values(0.01, of_groups=[0.4], of_change=0.3)).test.in_words == "p = 0.010"


def test_groups_that_were_not_tested_are_no_test():
    assert judged_together(with_p_values(0.04, of_groups=[float("nan")])).test.rejects


def test_periods_are_flagged_by_bonferronis_rule():
    given = with_p_values(0.5, of_groups=[0.5], of_change=0.5)
    first = replace(given.over_time.periods[0], p_value=0.02, flagged=True)
    second = replace(given.over_time.periods[1], p_value=0.01, flagged=True)
    time = replace(given.over_time, periods=(first, second))
    assert [one.flagged for one in judged_together(replace(given, over_time=time)).over_time.periods] == [False, True]


def test_forecasts_tell_a_change_over_time():
    given = Forecasts(n=500, test=VerdictTest("error-to-spread test", 0.4), over_time=over_time())
    found = FORECASTS.verdict(judged_together(given))
    assert (found.rule, found.state) == ("RC", "not calibrated")
    assert found.sentence.endswith(
        "but errors changed against the predicted spread from September 2025 on: until August 2025 they were 0.97 "
        "times it (0.89 to 1.06), since then 0.56 times it (0.47 to 0.66)."
    )
    rejecting = replace(given, test=replace(REJECTS, draws=None), ratio=Value(1.3, 1.2, 1.4))
    assert FORECASTS.verdict(rejecting).second.startswith("Errors changed against the predicted spread")
