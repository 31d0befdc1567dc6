"""Quantities that follow from evidence."""

from dataclasses import replace

import pytest

from calibrant.reporting.verdicts.evidence import Probabilities, VerdictTest
from calibrant.results.estimate import Value
from tests.reporting.verdicts.evidence_samples import PLAIN, RARE


def test_the_gap_has_the_interval_of_the_ratio():
    gap = replace(PLAIN, predicted=0.4, ratio=Value(0.75, 0.7, 0.8)).gap
    assert (gap.value, gap.low, gap.high) == pytest.approx((0.1, 0.08, 0.12))
    assert replace(PLAIN, ratio=None).gap is None


def test_the_rarer_outcome():
    assert RARE.rare
    assert replace(RARE, events=19500).rare
    assert not PLAIN.rare
    assert PLAIN.rarer == pytest.approx(0.3)
    assert Probabilities(n=0).base_rate == 0.0
    assert RARE.expected == pytest.approx(732)


def test_a_test_rejects_below_the_level():
    assert VerdictTest("x", 0.049).rejects
    assert not VerdictTest("x", 0.05).rejects
