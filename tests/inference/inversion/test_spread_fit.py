"""The fitted ratio of squared error and variance, and the cells it is fitted to."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.inversion.spread_fit import SpreadCells, SpreadFit, _stepped, log_ratio_fit, missing_mass
from calibrant.numerics.inversion import orthonormal_hats
from tests.inference.spreads import forecasts


def fit(data):
    return SpreadFit.of(SpreadCells.of(data, needed_by="test"), 99, np.random.default_rng(0))


def test_the_fit_finds_a_constant_ratio_and_one_that_depends_on_sigma():
    rng = np.random.default_rng(0)
    wide = fit(forecasts(rng, 50_000, factor=1.3))
    assert wide.share @ wide.gap == pytest.approx(2 * np.log(1.3), abs=0.02)
    bent = fit(forecasts(rng, 50_000, power=-0.3))
    expected = -0.6 * np.log(np.sqrt(bent.variance))
    assert np.sqrt(bent.share @ (bent.gap - expected) ** 2) < 0.06
    assert bent.kurtosis == pytest.approx(3, abs=0.2)


def test_the_equations_of_the_fit_are_solved():
    rng = np.random.default_rng(1)
    position, share, ratio = np.linspace(0, 1, 40), rng.dirichlet(np.ones(40)), rng.gamma(2, 1, (3, 40))
    half = orthonormal_hats(position, share, 5)
    found = log_ratio_fit(half, share, ratio, steps=200)
    np.testing.assert_allclose((share * (ratio * np.exp(-found) - 1)) @ half, 0, atol=1e-5)


@pytest.mark.no_cover
def test_simulated_noise_is_that_of_repeated_samples():
    rng = np.random.default_rng(2)
    fits = [fit(forecasts(rng, 1000)) for _ in range(60)]
    seen = np.var([one.share @ one.gap for one in fits])
    assert np.mean([np.var(one.noise @ one.share) for one in fits]) == pytest.approx(seen, rel=0.5)


def test_few_distinct_spreads_have_a_level_each_and_one_spread_a_constant():
    rng = np.random.default_rng(3)
    std = np.repeat([1.0, 2.0, 4.0], 300)
    factor = np.repeat([1.0, 1.5, 0.7], 300)
    three = fit(cal.Gaussian(factor * std * rng.normal(size=900), np.zeros(900), std))
    np.testing.assert_allclose(np.exp(three.gap / 2), [1, 1.5, 0.7], rtol=0.15)
    assert len(fit(cal.Gaussian(rng.normal(size=90), np.zeros(90), np.ones(90))).gap) == 1


def test_clusters_divide_the_number_of_rows():
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(200), 5)
    data = forecasts(rng, 1000)
    together = cal.Gaussian(data.std * np.repeat(rng.normal(size=200), 5), data.mean, data.std, group=group)
    assert fit(together).effective_n < 300
    assert fit(data).effective_n == pytest.approx(1000)


def test_missing_mass_grows_with_the_largest_term_and_the_tails():
    assert missing_mass(3, 0.1) == pytest.approx(0.15)
    assert missing_mass(1000, 0.1) == pytest.approx(0.3, abs=0.01)


def test_outcomes_equal_to_the_means_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="y_true equals the predicted mean in all 20 rows"):
        fit(cal.Gaussian(np.zeros(20), np.zeros(20), np.ones(20)))


def test_a_slope_between_clear_values_of_opposite_sign_becomes_a_jump():
    center = (np.arange(20) + 0.5) / 20
    gap = np.interp(center, [0, 0.25, 0.5, 0.75, 1], [-0.4, -0.4, 0.6, 0.6, 0.6])
    found = _stepped(center, gap, np.full(20, 0.1), 5)
    outside = (center < 0.25) | (center > 0.5)
    np.testing.assert_array_equal(found[outside], gap[outside])
    np.testing.assert_allclose(found[~outside], np.where(center[~outside] < 0.375, -0.4, 0.6), atol=0.11)
    np.testing.assert_array_equal(_stepped(center, gap, np.full(20, 0.3), 5), gap)  # too uncertain to be clear
    np.testing.assert_array_equal(_stepped(center, np.abs(gap), np.full(20, 0.01), 5), np.abs(gap))  # of one sign


def test_the_excess_is_that_of_squared_errors_over_variances():
    data = forecasts(np.random.default_rng(3), 2000, factor=1.3)
    fit = SpreadFit.of(SpreadCells.of(data, needed_by=""), 199, np.random.default_rng(0))
    assert fit.excess.sum() == pytest.approx(np.mean(data.y_true**2 - data.std**2))
    squares = data.y_true**2
    assert fit.excess_error == pytest.approx(np.sqrt(np.mean((squares - 1.69 * data.std**2) ** 2) / 2000), rel=0.25)


def test_cells_of_rows_and_of_their_table_agree():
    rng = np.random.default_rng(0)
    data = forecasts(rng, 400)
    rounded = cal.Gaussian(data.y_true, data.mean, np.maximum(data.std.round(1), 0.1))
    for one in (data, rounded):
        rows = SpreadCells.of(one, needed_by="test")
        table = SpreadCells.of(cal.BinTable.of(one, cal.table.Distinct()), needed_by="test")
        for name in ("sigma", "share", "share_squares", "second", "fourth"):
            np.testing.assert_allclose(getattr(rows, name), getattr(table, name), rtol=1e-9)
        assert np.all(table.largest >= rows.largest * (1 - 1e-9))  # a bound where rows are not known
        assert np.all(table.largest_fourth >= rows.largest_fourth * (1 - 1e-9))
    assert SpreadCells.of(data, needed_by="test").mean_square == pytest.approx(cal.mean_squared_z(data))


def test_outputs_of_one_row_are_a_cluster_and_rows_without_weight_are_left_out():
    rng = np.random.default_rng(1)
    y = rng.normal(size=(50, 3))
    wide = SpreadCells.of(cal.Gaussian(y, np.zeros_like(y), np.ones_like(y)), needed_by="test")
    assert wide.cluster is not None
    assert np.bincount(wide.cluster).tolist() == [3] * 50
    assert wide.largest_share == pytest.approx((y**2).sum(axis=1).max() / (y**2).sum())
    weight = np.where(np.arange(60) < 50, 2.0, 0.0)
    data = forecasts(rng, 60, weight=weight)
    alone = SpreadCells.of(data.take(np.arange(50)), needed_by="test")
    some = SpreadCells.of(data, needed_by="test")
    assert (some.effective_n, some.mean_square) == pytest.approx((50, alone.mean_square))
