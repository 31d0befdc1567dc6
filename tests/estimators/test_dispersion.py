"""Mean squared z-score and the dispersion of the predicted spread."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from tests.estimators.test_regression_spread import world


def test_dispersion_is_equation_nine():
    std = world(100).std
    assert cal.std_dispersion(std, std, std) == pytest.approx(np.std(std, ddof=1) / np.mean(std))


def test_the_mean_squared_z_is_its_formula_and_has_its_normal_reference():
    data = world(500, tail=6)
    z = (data.y_true - data.mean) / data.std
    found = cal.mean_squared_z(data)
    assert found == pytest.approx((z**2).mean(), rel=1e-12)
    assert found.details["largest_share"] == pytest.approx((z**2).max() / (z**2).sum())
    null = found.details["null"]
    kurtosis = stats.moment(z, 4, center=0) / stats.moment(z, 2, center=0) ** 2
    assert null["kurtosis"] == pytest.approx(kurtosis)
    assert (null["mean"], null["sd"]) == pytest.approx((1.0, np.sqrt((kurtosis - 1) / 500)))


@pytest.mark.parametrize("metric", [cal.mean_squared_z, cal.std_dispersion])
def test_weights_are_repeated_rows_and_a_table_is_its_rows(metric):
    data = world(200)
    times = np.random.default_rng(1).integers(1, 4, 200)
    columns = [np.repeat(column, times) for column in (data.y_true, data.mean, data.std)]
    weighted = cal.Gaussian(data.y_true, data.mean, data.std, weight=times)
    table = metric(cal.BinTable.of(weighted, cal.table.Distinct()))
    assert metric(weighted) == pytest.approx(float(table), rel=1e-12)
    repeated = metric(*columns)
    if metric is cal.mean_squared_z:
        assert metric(weighted) == pytest.approx(float(repeated), rel=1e-12)
    else:  # one degree of freedom is a row of average weight, not a copy
        assert metric(weighted) == pytest.approx(float(repeated), rel=0.01)


def test_the_dispersion_of_weighted_rows_written_out():
    data = world(50)
    w = np.random.default_rng(2).random(50)
    s = data.std
    mean = w @ s / w.sum()
    expected = np.sqrt(w @ (s - mean) ** 2 / (w.sum() - w @ w / w.sum())) / mean
    found = cal.std_dispersion(cal.Gaussian(data.y_true, data.mean, s, weight=w))
    assert found == pytest.approx(expected, rel=1e-12)
    assert cal.std_dispersion(cal.Gaussian(data.y_true, data.mean, s, weight=7 * w)) == pytest.approx(
        float(found), rel=1e-12
    )


def test_the_unit_of_the_target_cancels_and_a_constant_spread_has_no_dispersion():
    data = world(100)
    scaled = cal.Gaussian(10 * data.y_true, 10 * data.mean, 10 * data.std)
    for metric in (cal.mean_squared_z, cal.std_dispersion):
        assert metric(scaled) == pytest.approx(float(metric(data)), rel=1e-12)
    assert cal.std_dispersion(data.y_true, data.mean, np.full(100, 2.0)) == 0.0
    assert cal.std_dispersion([1.0], [0.0], [1.0]) == 0.0
    found = cal.std_dispersion(data)
    assert found.details["variance_dispersion"] == pytest.approx(
        np.std(data.std**2, ddof=1) / np.mean(data.std**2), rel=1e-12
    )


def test_an_ensemble_is_compared_with_leave_one_out_ensembles():
    rng = np.random.default_rng(3)
    data = cal.Samples(rng.normal(size=2000), rng.normal(size=(2000, 8)))
    null = cal.mean_squared_z(data).details["null"]
    assert null["law"] == "leave-one-out ensembles"
    # the squared z of a normal outcome given mean and variance of m normal draws: (1 + 1/m) (m - 1) / (m - 3), m = 7
    assert null["mean"] == pytest.approx((1 + 1 / 7) * 6 / 4, rel=0.15)
