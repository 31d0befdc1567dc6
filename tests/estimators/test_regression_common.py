"""What the regression metrics share."""

import numpy as np
import pytest
from scipy import integrate, special, stats

import calibrant as cal
from calibrant.estimators.regression_common import (
    by_output,
    cell_scores,
    central_interval,
    forecast,
    mean_of,
    normal_scores,
    null_reference,
    rank_scores,
    ratio_variance,
    root_mean_gap,
    spread_table,
    squared_error_kurtosis,
    table_kurtosis,
)


def test_plain_arrays_are_gaussian_and_predictions_are_themselves():
    data = cal.Gaussian([1.0, 2.0], [0.0, 0.0], [1.0, 2.0])
    assert forecast(data, None, None) is data
    assert isinstance(forecast([1.0], [0.0], [1.0]), cal.Gaussian)
    with pytest.raises(TypeError, match="not both"):
        forecast(data, [0.0], None)
    with pytest.raises(TypeError, match="or y_true, mean and std"):
        forecast([1.0], [0.0], None)
    with pytest.raises(TypeError, match=r"needs predicted distributions .*, got Binary"):
        forecast(cal.Binary([0, 1], [0.2, 0.7]), None, None)
    with pytest.raises(TypeError, match="got a table"):
        forecast(cal.BinTable.of(data, cal.table.Distinct()), None, None)


def test_a_table_says_when_ties_leave_fewer_bins():
    y, mean, std = np.ones(100), np.zeros(100), np.repeat([1.0, 2.0], 50)
    _, words = spread_table(y, mean, std, cal.EqualMass(10), needed_by="ence")
    assert words == "EqualMass(n_bins=10), 2 after ties"
    table, words = spread_table(y, mean, np.arange(1.0, 101), cal.EqualMass(10), needed_by="ence")
    assert words == "EqualMass(n_bins=10)"
    assert spread_table(table, None, None, cal.EqualMass(5), needed_by="ence") == (table, "10 given bins")


def test_central_intervals_are_quantiles():
    low, high = central_interval(cal.Gaussian([0.0], [1.0], [2.0]), 0.9)
    assert (low[0], high[0]) == pytest.approx(stats.norm.interval(0.9, 1.0, 2.0))


def test_several_outputs_are_measured_one_by_one():
    data = cal.Gaussian(np.ones((3, 2)), np.zeros((3, 2)), np.ones((3, 2)))
    assert by_output(data, cal.nll) == {"outputs": [cal.nll(one).value for one in data.outputs]}
    assert by_output(data.outputs[0], cal.nll) == {}


def test_means_are_weighted():
    assert mean_of(np.array([1.0, 3.0]), None) == 2.0
    assert mean_of(np.array([1.0, 3.0]), np.array([3.0, 1.0])) == 1.5


def test_a_reference_has_a_normal_range_unless_one_is_given():
    null = null_reference(2.0, 0.5, "words", kurtosis=3.0)
    assert (null["low"], null["high"]) == pytest.approx(stats.norm.interval(0.95, 2.0, 0.5))
    assert (null["law"], null["kurtosis"]) == ("words", 3.0)
    assert null_reference(2.0, 0.5, "words", low=0.0, high=9.0)["high"] == 9.0


def test_the_kurtosis_of_the_errors_is_that_of_scipy():
    z = np.random.default_rng(0).standard_t(8, 500)
    w = np.random.default_rng(1).random(500)
    assert squared_error_kurtosis(z**2, None) == pytest.approx((z**4).mean() / (z**2).mean() ** 2)
    assert squared_error_kurtosis(z**2, w) == pytest.approx(w @ z**4 * w.sum() / (w @ z**2) ** 2)
    assert squared_error_kurtosis(np.zeros(3), None) == 1.0
    exact = cal.BinTable.of(cal.Gaussian(z, np.zeros(500), np.ones(500)), cal.table.Distinct())
    assert table_kurtosis(exact) == pytest.approx(squared_error_kurtosis(z**2, None))


def test_the_spread_within_bins_is_divided_out_of_the_kurtosis():
    rng = np.random.default_rng(2)
    std = rng.lognormal(0, 0.5, 200_000)
    one = cal.BinTable.of(cal.Gaussian(std * rng.normal(size=200_000), 0 * std, std), cal.EqualMass(20))
    assert table_kurtosis(one) == pytest.approx(3.0, abs=0.1)


@pytest.mark.no_cover
def test_the_variance_of_the_mean_square_is_that_of_calibrated_bins():
    rng = np.random.default_rng(3)
    std = np.sort(rng.lognormal(0, 0.5, 60))
    ratios = []
    for _ in range(3000):
        table = cal.BinTable.of(cal.Gaussian(std * rng.normal(size=60), 0 * std, std), cal.EqualMass(2))
        ratios.append(table.observed_mean / table.predicted_mean)
    assert np.var(ratios, axis=0) == pytest.approx(ratio_variance(table, 3.0), rel=0.1)


@pytest.mark.no_cover
@pytest.mark.parametrize("shape", [0.7, 5.0, 60.0, 99.0, 101.0, 150.0, 3000.0])
def test_the_gap_of_a_root_mean_square_is_the_integral_over_its_gamma_law(shape):
    law = stats.gamma(shape, scale=1 / shape)
    wide = law.std() * (12 if shape > 10 else 60)
    parts = [(max(0.0, 1 - wide), 1.0), (1.0, 1 + wide)]

    def expected(power):
        def integrand(g):
            return abs(np.sqrt(g) - 1) ** power * law.pdf(g)

        return sum(integrate.quad(integrand, *part, epsabs=1e-14)[0] for part in parts)

    gap, sd = root_mean_gap(np.array([1 / shape]))
    assert gap[0] == pytest.approx(expected(1), rel=1e-6)
    assert sd[0] == pytest.approx(np.sqrt(expected(2) - expected(1) ** 2), rel=1e-6)


def test_the_expansion_of_the_mean_root_meets_the_quotient_of_gamma_functions():
    for shape in (100.0, 200.0, 1000.0):
        root = np.exp(special.gammaln(shape + 0.5) - special.gammaln(shape)) / np.sqrt(shape)
        gap, sd = root_mean_gap(np.array([1 / shape]))
        assert gap[0] ** 2 + sd[0] ** 2 == pytest.approx(2 - 2 * root, rel=1e-7)


def test_no_variance_leaves_no_gap():
    gap, sd = root_mean_gap(np.array([0.0]))
    assert gap[0] < 1e-7
    assert sd[0] < 1e-7


def test_scores_of_cells_are_orthonormal_and_mean_what_they_say():
    for edges in (np.linspace(0, 1, 7), np.array([0, 0.05, 0.25, 0.5, 0.9, 1])):
        scores, share = cell_scores(edges), np.diff(edges)
        np.testing.assert_allclose(share @ scores, 0, atol=1e-12)
        np.testing.assert_allclose((scores * share[:, None]).T @ scores, np.eye(2), atol=1e-12)
        assert (np.diff(scores[:, 0]) > 0).all()
        assert scores[0, 1] > 0 < scores[-1, 1]


def test_two_cells_have_no_score_of_the_spread():
    assert cell_scores(np.array([0, 0.5, 1.0]))[:, 1].tolist() == [0, 0]
    assert cell_scores(np.array([0, 0.3, 1.0]))[:, 1].tolist() == [0, 0]
    assert cell_scores(np.array([0, 0.002, 0.9, 1.0]))[:, 1].any()


def test_ranks_that_tie_share_their_scores():
    data = cal.Samples([1.0, 1.0], [[0.0, 1.0, 1.0, 2.0], [0.0, 0.5, 1.5, 2.0]])
    alone = cell_scores(np.arange(6) / 5)
    np.testing.assert_allclose(rank_scores(data), [alone[1:4].mean(axis=0), alone[2]])


def test_transforms_of_certain_forecasts_have_finite_scores():
    data = cal.Gaussian([0.0, 100.0, -100.0], [0.0] * 3, [1.0] * 3)
    assert normal_scores(data)[0] == 0
    assert np.isfinite(normal_scores(data)).all()
