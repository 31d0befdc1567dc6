"""The lower limit by duality: its statistic written out, its mean below the L1 error, zero kept."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.binary_error.dual_bound import CHOSEN_SHAPE, FOLDS, DualBound
from calibrant.inference.binary_error.fine_sample import FineSample
from calibrant.inference.binary_error.inversion import Inversion, Limits


def bound_of(curve, n=2000, seed=0, group=None, draws=199):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    data = cal.Binary(rng.random(n) < curve(p), p, group=group)
    limits = Limits.of(FineSample.of(data, needed_by=""), Inversion(draws, seed), norms=(1.0,), level=0.95)
    return DualBound(limits.smooth, seed)


def test_the_statistic_is_the_held_out_gap_times_its_fitted_sign():
    bound = bound_of(lambda p: p**1.5)
    cells, rows = bound.part.cells, np.round(bound.part.cells.count)
    sums = np.random.default_rng(1).standard_normal((FOLDS, len(rows), 1))
    expected = 0.0
    for fold in range(FOLDS):
        others = (sums.sum(axis=0) - sums[fold])[:, 0] / rows
        ratio = bound.part.shape.fit(others) / bound._error
        expected += float((cells.share / rows) @ (np.clip(ratio, -1, 1) * sums[fold, :, 0]))
    assert bound.statistic(sums)[0] == pytest.approx(expected)


def test_folds_deal_out_every_row_once():
    bound = bound_of(lambda p: p)
    assert np.array_equal(bound._sizes.sum(axis=0), bound._rows)
    assert bound._sizes.max() - bound._rows.min() // FOLDS <= bound._rows.max() // FOLDS + 1


@pytest.mark.parametrize("group", [None, np.arange(2000) // 5])
def test_simulated_sums_have_mean_and_variance_of_outcomes(group):
    bound = bound_of(lambda p: p, group=group, draws=1000)
    gap = np.full(len(bound._rows), 0.05)
    total = bound.simulated(gap, bound.part.cells.predicted).sum(axis=0) / bound._rows[:, None]
    np.testing.assert_allclose(total.mean(axis=1), 0.05, atol=0.03)
    variance = bound.part.cells.predicted * (1 - bound.part.cells.predicted) / bound.part.cells.count
    assert float(np.mean(total.var(axis=1)) / np.mean(variance)) == pytest.approx(1, abs=0.25)


def test_the_limit_is_positive_for_a_large_gap_and_zero_for_none():
    for seed in range(3):
        assert 0.1 < bound_of(lambda p: p**2, seed=seed).limit() < 1 / 6
        assert bound_of(lambda p: p, seed=seed).limit() == 0


def test_where_all_outcomes_are_alike_the_limit_is_that_of_a_proportion():
    """No event in 50 rows of score 0.5 leaves room for a rate of 1 - risk^(1/50), which is 0.078."""
    data = cal.Binary(np.zeros(50, dtype=int), np.full(50, 0.5))
    found = Inversion(999).intervals(data, norms=(1.0, 2.0))
    assert all(0.36 < interval.low <= 0.5 - 0.07 for interval in found)


def test_a_limit_is_not_positive_by_rounding():
    rng = np.random.default_rng(0)
    for seed in range(20):  # no event, and hardly any expected: what is seen is what most simulated samples show
        data = cal.Binary(np.zeros(20, int), rng.beta(1, 499, 20))
        assert Inversion(99, seed).intervals(data, norms=(1.0,))[0].low == 0


def test_a_shape_chosen_for_what_it_shows_must_reject_zero_at_a_third_of_the_risk():
    usual, chosen = bound_of(lambda p: p), bound_of(lambda p: p + 0.15 * np.sin(12 * np.pi * p) * (p > 0.1) * (p < 0.9))
    assert (usual.part.shape_is_chosen, chosen.part.shape_is_chosen) == (False, True)
    for bound, part in ((usual, 1.0), (chosen, CHOSEN_SHAPE)):
        above = np.mean(bound._of_zero > bound._highest_of_zero())
        assert above == pytest.approx(part * bound.part.risk, abs=1 / len(bound._of_zero))
    assert chosen.limit() > 0


def test_zero_is_kept_where_a_chosen_shape_rejects_it_at_the_whole_risk_only(monkeypatch):
    bound = bound_of(lambda p: p + 0.15 * np.sin(12 * np.pi * p) * (p > 0.1) * (p < 0.9))
    between = np.quantile(bound._of_zero, [1 - bound.part.risk, 1 - CHOSEN_SHAPE * bound.part.risk], method="weibull")
    monkeypatch.setattr(DualBound, "observed", lambda _: float(between.mean()))
    monkeypatch.setattr(type(bound.part), "_near", None)
    assert between[0] < between[1]
    assert bound.limit() == 0
    monkeypatch.setattr(type(bound.part), "shape_is_chosen", False)
    assert bound.limit() > 0
