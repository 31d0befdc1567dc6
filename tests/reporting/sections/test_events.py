"""The number of events: its p-value and range against those of simulated sums."""

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.reporting.sections.events import EventCount


def table(p, y, **columns):
    return cal.BinTable.of(cal.Binary(y, p, **columns), cal.table.Distinct())


def test_equal_probabilities_are_binomial():
    count = EventCount.of(table(np.full(40, 0.1), np.arange(40) < 9))
    tail = binom.sf(8, 40, 0.1)
    assert count.p_value == pytest.approx(2 * tail)
    low, high = count.null_ratio()
    assert (low * 4, high * 4) == pytest.approx((binom.ppf(0.025, 40, 0.1), binom.ppf(0.975, 40, 0.1)))


@pytest.mark.no_cover
@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("mean", [-4.0, 0.0])
def test_different_probabilities_are_nearly_so(mean, spread):
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-rng.normal(mean, spread, 150)))
    drawn = (rng.random((40_000, 150)) < p).sum(axis=1)
    for observed in np.quantile(drawn, [0.01, 0.2, 0.9, 0.995]).astype(int):
        count = EventCount.of(table(p, np.arange(150) < observed))
        exact = min(2 * min(np.mean(drawn <= observed), np.mean(drawn >= observed)), 1.0)
        assert count.p_value == pytest.approx(exact, rel=0.3, abs=0.004)


def test_dependent_rows_say_less():
    rows = table(np.full(400, 0.1), np.arange(400) < 60)
    alone, dependent = EventCount.of(rows), EventCount.of(rows, 4.0)
    assert alone.p_value < 0.01 < dependent.p_value
    assert dependent.observed / dependent.expected == pytest.approx(1.5)
    weighted = EventCount.of(table(np.full(400, 0.1), np.arange(400) < 60, weight=np.full(400, 7.0)))
    assert weighted.p_value == pytest.approx(alone.p_value)


def test_certain_predictions():
    right, wrong = (EventCount.of(table(np.array([0.0, 1.0]), [y, 1])) for y in (0, 1))
    assert (right.p_value, wrong.p_value) == (1.0, 0.0)
    assert right.null_ratio() == (1.0, 1.0)
