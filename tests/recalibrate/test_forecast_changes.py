"""Changes of forecasts, their losses and bounds, are the formulas written out."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import recalibrate as rc
from calibrant.recalibrate.forecast_changes import QuantileChanges, SpreadChanges, changes_of

SPREADS = cal.Gaussian([1.0, 4.0, -1.0], [0.0, 3.0, 0.0], [1.0, 2.0, 0.5], weight=[1.0, 2.0, 1.0])
QUANTILES = cal.Quantiles([0.5, 3.0], [0.1, 0.5, 0.9], [[-1.0, 0.0, 1.0], [0.0, 2.0, 6.0]])


def test_the_loss_of_a_factor_is_that_of_the_stretched_gaussian():
    changes, factor = changes_of(SPREADS), np.array([[1.5], [0.5], [2.0]])
    stretched = cal.Gaussian(SPREADS.y_true, SPREADS.mean, SPREADS.std * factor[:, 0])
    expected = [cal.nll(stretched.take(np.array([k]))).value - np.log(2 * np.pi) / 2 for k in range(3)]
    np.testing.assert_allclose(changes.losses(np.log(factor)), expected)
    np.testing.assert_allclose(changes.losses(changes.none), changes.losses(np.zeros((3, 1))))


def test_the_loss_of_shifts_is_the_pinball_loss():
    shift = np.array([[0.1, 0.2, 0.3], [-0.5, 0.0, 0.5]])
    moved = cal.Quantiles(QUANTILES.y_true, QUANTILES.levels, QUANTILES.values + shift)
    assert changes_of(QUANTILES).losses(shift).mean() == pytest.approx(cal.pinball(moved).value)


def test_what_a_map_changes_is_read_off_its_result():
    scaled = rc.StdScaling().fit(SPREADS)
    np.testing.assert_allclose(SpreadChanges(SPREADS).of(scaled, 1e12)[:, 0], np.log(scaled.scale_[0]))
    drawn = 0.5 * np.log((5 + 3 * scaled.scale_[0] ** 2) / 8)
    np.testing.assert_allclose(SpreadChanges(SPREADS).of(scaled, 3)[:, 0], drawn)
    data = cal.Quantiles(np.arange(20.0), [0.5], np.zeros((20, 1)))
    np.testing.assert_allclose(QuantileChanges(data).of(rc.Conformal().fit(data), 20), 10.0, atol=0.5)


def test_bounds_keep_from_certainty_only():
    changes = SpreadChanges(SPREADS)
    bounded = changes.bounded(np.array([[-9.0], [-0.1], [9.0]]), 8)
    np.testing.assert_allclose(np.exp(bounded[:, 0]), [1 / 3, np.exp(-0.1), np.exp(9)])
    closed = QuantileChanges(QUANTILES).bounded(-QUANTILES.values + QUANTILES.values[:, [1]], 3)
    np.testing.assert_allclose(QUANTILES.values + closed, [[-0.5, 0.0, 0.5], [1.0, 2.0, 4.0]])


def test_the_error_if_the_forecasts_were_true_is_that_of_simulated_gains():
    n, s = 4000, 1.4
    rng = np.random.default_rng(0)
    for scale in (1.0, s):
        z = scale * rng.normal(size=n)
        changes = SpreadChanges(cal.Gaussian(z, 0 * z, 0 * z + 1))
        gain = changes.losses(changes.none) - changes.losses(np.full((n, 1), np.log(s)))
        assert gain.std() / np.sqrt(n) <= 1.05 * changes.error_if_true(np.full((n, 1), np.log(s)))
    assert gain.std() / np.sqrt(n) >= 0.95 * changes.error_if_true(np.full((n, 1), np.log(s)))


def test_heavy_tails_lower_the_evidence():
    rng = np.random.default_rng(0)
    wide = np.full((500, 1), np.log(1.2))
    found = []
    for z in (rng.normal(size=500), rng.standard_t(3, 500)):
        changes = SpreadChanges(cal.Gaussian(z, 0 * z, 0 * z + 1))
        none, stretched = changes.log_likelihoods([changes.none, wide])
        plain = (changes.losses(changes.none) - changes.losses(wide)).sum()
        found.append((stretched - none) / plain)
    assert found[0] == pytest.approx(1, abs=0.25)
    assert found[1] < 0.6
