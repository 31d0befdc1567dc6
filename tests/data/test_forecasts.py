"""Predicted distributions are checked once, and say where an outcome falls."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import calibrant as cal


def test_a_standard_deviation_of_zero_is_refused_with_its_row():
    with pytest.raises(
        cal.InvalidPredictions, match=r"std must be positive, but 2 of 3 rows do not \(first: std\[1\] = 0\)"
    ):
        cal.Gaussian([1, 2, 3], [1, 2, 3], [1.0, 0.0, -1.0])


@pytest.mark.parametrize("name", ["y_true", "mean", "std"])
def test_missing_values_are_refused_by_name(name):
    columns = {"y_true": [1.0, 2.0], "mean": [1.0, 2.0], "std": [1.0, 1.0]}
    columns[name] = [1.0, np.nan]
    with pytest.raises(cal.InvalidPredictions, match=f"{name} must be finite"):
        cal.Gaussian(**columns)


def test_shapes_that_do_not_match_are_refused():
    with pytest.raises(cal.InvalidPredictions, match=r"mean has shape \(2,\), expected \(3,\)"):
        cal.Gaussian([1, 2, 3], [1, 2], [1, 1])
    with pytest.raises(cal.InvalidPredictions, match=r"std has shape"):
        cal.Gaussian(np.ones((4, 2)), np.ones((4, 2)), np.ones((4, 3)))
    with pytest.raises(cal.InvalidPredictions, match="rows"):
        cal.Quantiles([1.0], [0.1, 0.9], [[0, 1], [0, 1]])
    with pytest.raises(cal.InvalidPredictions, match="at least two columns"):
        cal.Samples([1.0, 2.0], [[1.0], [2.0]])


def test_a_column_of_shape_n_1_does_not_broadcast():
    data = cal.Gaussian(np.ones((5, 1)), np.zeros(5), np.ones((5, 1)))
    assert data.y_true.shape == data.mean.shape == (5,)


def test_crossing_quantiles_are_counted_and_can_be_sorted():
    values = [[0.0, 1.0], [2.0, 1.0], [3.0, 0.0]]
    with pytest.raises(cal.InvalidPredictions, match=r"2 of 3 rows do not \(first: values\[1\].*sort=True"):
        cal.Quantiles([0, 0, 0], [0.1, 0.9], values)
    assert cal.Quantiles([0, 0, 0], [0.1, 0.9], values, sort=True).values[1].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("levels", [[0.0, 0.5], [0.5, 1.0], [0.9, 0.1], [0.5, 0.5]])
def test_levels_outside_the_open_interval_or_falling_are_refused(levels):
    with pytest.raises(cal.InvalidPredictions, match="levels must"):
        cal.Quantiles([1.0], levels, [[1.0, 2.0]])


def test_a_level_that_was_not_predicted_is_refused_with_those_that_were():
    data = cal.Quantiles([1.0], [0.1, 0.9], [[0.0, 2.0]])
    with pytest.raises(cal.InvalidPredictions, match=r"no quantile at level 0.25; theirs are \[0.1, 0.9\]"):
        cal.coverage(data, nominal=0.5)


@pytest.mark.parametrize("make", [pd.Series, pl.Series, np.array, list])
def test_columns_may_come_from_any_library(make):
    data = cal.Gaussian(make([1.0, 2.0, 4.0]), make([1.0, 2.0, 3.0]), make([1.0, 1.0, 2.0]))
    assert cal.mean_squared_z(data) == pytest.approx(0.25 / 3)


def test_the_rank_of_an_outcome_among_draws_is_uniform_and_ties_widen_it():
    data = cal.Samples([2.0, 2.0], [[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]])
    assert [bound.tolist() for bound in data.pit()] == [[0.25, 0.0], [0.75, 0.25]]


def test_weight_and_group_ride_along_to_every_output():
    data = cal.Gaussian(np.zeros((3, 2)), np.zeros((3, 2)), np.ones((3, 2)), weight=[1, 2, 3], group=["a", "a", "b"])
    assert data.flat_weight.tolist() == [1, 1, 2, 2, 3, 3]
    assert [output.weight.tolist() for output in data.outputs] == [[1, 2, 3]] * 2
    wide = cal.Distribution(np.zeros((3, 2)), stats.norm(np.zeros((3, 2)), [1.0, 2.0]))
    assert [float(output.std[0]) for output in wide.outputs] == [1.0, 2.0]


def test_perfect_means_and_single_rows_are_measured():
    for data in (cal.Gaussian([1.0, 2.0], [1.0, 2.0], [1.0, 2.0]), cal.Gaussian([1.0], [0.0], [1.0])):
        for metric in (
            cal.ence,
            cal.uce,
            cal.debiased_ence,
            cal.sweep_ence,
            cal.mean_squared_z,
            cal.nll,
            cal.estimators.sharpness,
        ):
            assert np.isfinite(metric(data))
            assert np.isfinite(metric(data).details["null"]["sd"])


SPREAD_MEASURES = [
    cal.ence,
    cal.uce,
    cal.debiased_ence,
    cal.sweep_ence,
    cal.mean_squared_z,
    cal.std_dispersion,
    cal.estimators.sharpness,
]
SCORES = [cal.crps, cal.nll, cal.interval_error, cal.coverage]


def in_unit(unit):
    rng = np.random.default_rng(0)
    std = rng.random(200) + 0.5
    return cal.Gaussian(unit * rng.normal(size=200) * std, np.zeros(200), unit * std)


@pytest.mark.parametrize("measure", SPREAD_MEASURES, ids=lambda measure: measure.__name__)
@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e-75, 1e-40, 1e40, 1e75, 1e160, 1e299])
def test_measures_of_spread_are_right_in_any_unit_or_refused(measure, unit):
    """Units of measures that have one are divided out; those near the limits keep all their digits."""
    if not 1e-70 < unit < 1e70:
        with pytest.raises(cal.InvalidPredictions, match=r"1e-?72.*another unit"):
            measure(in_unit(unit))
        return
    power = {"uce": 2, "sharpness": 1}.get(measure.__name__, 0)
    assert float(measure(in_unit(unit))) / unit**power == pytest.approx(float(measure(in_unit(1.0))), rel=1e-9)


@pytest.mark.parametrize("measure", SCORES, ids=lambda measure: measure.__name__)
@pytest.mark.parametrize("unit", [1e-160, 1e160])
def test_scores_without_squares_are_right_in_extreme_units(measure, unit):
    found, expected = float(measure(in_unit(unit))), float(measure(in_unit(1.0)))
    shown = {"crps": found / unit, "nll": found - np.log(unit)}.get(measure.__name__, found)
    assert shown == pytest.approx(expected, rel=1e-9)


def test_outcomes_whose_differences_overflow_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="mean must be at most 1e300 in size, but 1 of 2"):
        cal.Gaussian([1e10, 1e10], [0, -1e308], [1, 1])
    with pytest.raises(cal.InvalidPredictions, match="draws must be at most 1e300"):
        cal.Samples([0.0], [[0.0, 1e308]])


class _TwoRows:
    def cdf(self, y):
        return np.array([0.5, 0.5])

    def ppf(self, p):
        return p


def test_a_distribution_needs_its_functions():
    with pytest.raises(cal.InvalidPredictions, match="dist needs a method cdf"):
        cal.Distribution([1.0], object())
    with pytest.raises(cal.InvalidPredictions, match=r"has shape \(2,\), expected \(3,\)"):
        cal.Distribution([1.0, 2.0, 3.0], _TwoRows())


def test_spread_metrics_refuse_a_distribution_without_variance():
    data = cal.Distribution([0.0, 1.0], stats.cauchy(0, 1))
    with pytest.raises(cal.InvalidPredictions, match=r"dist.std\(\) must be positive and finite"):
        cal.ence(data)
    assert cal.quantile_error(data) > 0


def test_a_gaussian_and_the_same_scipy_distribution_are_measured_alike():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=400), rng.lognormal(0, 0.5, 400)
    y = mean + std * rng.normal(size=400)
    gaussian, other = cal.Gaussian(y, mean, std), cal.Distribution(y, stats.norm(mean, std))
    for metric in (cal.ence, cal.interval_error, cal.coverage, cal.nll, cal.pinball, cal.interval_score):
        assert metric(gaussian) == pytest.approx(metric(other), rel=1e-12)
    assert cal.crps(gaussian) == pytest.approx(cal.crps(other), rel=1e-5)


def test_new_style_scipy_distributions_and_mixtures_work():
    y = np.array([0.1, 1.4, 2.0])
    normal = stats.Normal(mu=np.zeros(3), sigma=np.ones(3))
    assert cal.ence(cal.Distribution(y, normal)) == pytest.approx(cal.ence(y, np.zeros(3), np.ones(3)))
    mixture = stats.Mixture([stats.Normal(mu=0, sigma=1), stats.Normal(mu=2, sigma=1)], weights=[0.5, 0.5])
    below = stats.norm.cdf(y) / 2 + stats.norm.cdf(y - 2) / 2
    assert cal.Distribution(y, mixture).pit()[0] == pytest.approx(below)


def test_counts_get_the_interval_between_two_steps_of_their_distribution():
    rate = np.full(5000, 2.5)
    y = np.random.default_rng(1).poisson(rate)
    data = cal.Distribution(y, stats.poisson(rate))
    low, high = data.pit()
    assert low == pytest.approx(stats.poisson.cdf(y - 1, rate), abs=1e-12)
    assert high == pytest.approx(stats.poisson.cdf(y, rate))
    assert cal.pit_error(data).details["p_value"] > 0.01


@pytest.mark.no_cover
@pytest.mark.parametrize("loc", [0.0, [0.0, 0.0], np.zeros((5, 2))])
def test_parameters_of_any_shape_serve_several_outputs(loc):
    y = np.random.default_rng(0).normal(size=(5, 2))
    data = cal.Distribution(y, stats.norm(loc, 1.0))
    twin = cal.Gaussian(y, np.zeros((5, 2)), np.ones((5, 2)))
    for metric in (cal.ence, cal.quantile_error, cal.coverage, cal.pinball):
        found, wanted = metric(data), metric(twin)
        assert found == pytest.approx(wanted)
        assert found.details["outputs"] == pytest.approx(wanted.details["outputs"])


def test_quantiles_in_the_wrong_order_of_arguments_are_told_so():
    with pytest.raises(cal.InvalidPredictions, match=r"the order is Quantiles\(y_true, levels, values\)"):
        cal.Quantiles([1.0, 3.0], [[0, 1, 2], [1, 2, 3]], [0.1, 0.5, 0.9])
