"""Severity relative to the base rate, the decision and the tolerance."""

from dataclasses import replace

import pytest

from calibrant.reporting.contents import Bin, Threshold, Value
from calibrant.reporting.verdicts.severity import (
    changed,
    group_severity,
    limit,
    of_probabilities,
    outside,
    small,
    unruled,
)
from tests.reporting.verdicts.evidence_samples import ACCEPTS, PLAIN, group, groups, over_time

#: The rarer outcome of these has a frequency of 30 %: 5 % of it are 1.5 points, 2 % are 0.6, 10 % are 3.
CASES = [
    ({"error": Value(0.02, 0.0151, 0.03)}, "problem"),
    ({"error": Value(0.02, 0.0149, 0.03)}, "caution"),
    ({"error": Value(0.004, 0.003, 0.0059)}, "note"),
    ({"error": Value(0.004, 0.003, 0.0061)}, "caution"),
    ({"error": Value(0.01, 0.002, 0.02), "ratio": Value(0.85, 0.8, 0.89)}, "problem"),
    ({"error": Value(0.01, 0.002, 0.02), "ratio": Value(0.85, 0.8, 0.91)}, "caution"),
    ({"error": Value(0.01, 0.002, 0.02), "slope": Value(1.3, 1.19, 1.4)}, "problem"),
    ({"error": Value(0.01, 0.002, 0.02), "slope": Value(1.3, 1.1, 1.4)}, "caution"),
    ({"test": ACCEPTS, "error": Value(0.01, 0, 0.029)}, "note"),
    ({"test": ACCEPTS, "error": Value(0.01, 0, 0.031)}, "caution"),
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
    assert unruled(replace(PLAIN, error=None))
    assert limit(PLAIN, 0.1) == pytest.approx(0.03)
