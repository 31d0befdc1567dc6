"""Kernels, quadratic forms of residuals in them, and the median distance."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

import calibrant as cal
from calibrant.estimators import kernel_forms
from calibrant.estimators.kernel_forms import BLOCK, GaussianKernel, LaplaceKernel, Residuals, squared_distances
from tests.estimators.test_kernel import KERNELS, binary_sample, class_sample


@pytest.mark.no_cover
@pytest.mark.parametrize("kernel", KERNELS)
def test_blocks_add_up_to_the_whole(kernel):
    n = 2 * BLOCK + 77
    y, p, _ = class_sample(n, 3)
    residual = np.eye(3)[y] - p
    distance = np.sqrt(((p[:, None] - p[None]) ** 2).sum(axis=2))
    weights = (
        np.exp(-distance / 0.3)
        if isinstance(kernel, cal.estimators.LaplaceKernel)
        else np.exp(-(distance**2) / (2 * 0.3**2))
    )
    pairs = weights * (residual @ residual.T)
    direct = (pairs.sum() - np.trace(pairs)) / (n * (n - 1))
    assert cal.kernel_error(cal.Multiclass(y, p), kernel=kernel) == pytest.approx(direct, abs=1e-14)


@pytest.mark.parametrize("bandwidth", [0.5, 0.01, 1e-4, 1e-12])
def test_the_sorted_pass_equals_all_pairs_at_any_bandwidth(bandwidth):
    rng = np.random.default_rng(1)
    p = np.concatenate([rng.random(300), rng.random(300) * 1e-3])
    y = (rng.random(600) < p).astype(int)
    residual = y - p
    pairs = np.exp(-np.abs(np.subtract.outer(p, p)) / bandwidth) * np.outer(residual, residual)
    direct = (pairs.sum() - np.trace(pairs)) / (600 * 599)
    assert cal.kernel_error(y, p, kernel=cal.estimators.LaplaceKernel(bandwidth)) == pytest.approx(direct, abs=1e-13)


@pytest.mark.no_cover
@pytest.mark.parametrize("bandwidth", [5.0, 0.5, 0.1, 0.02, 1e-3, 1e-9])
@pytest.mark.parametrize("kind", ["spread", "confident", "tied", "far"])
def test_waves_equal_all_pairs_at_any_bandwidth(bandwidth, kind):
    rng = np.random.default_rng(2)
    p = {
        "spread": rng.random(1500),
        "confident": np.concatenate([1e-6 * rng.random(900), 1 - 1e-6 * rng.random(600)]),
        "tied": rng.integers(0, 11, 1500) / 10,
        "far": 1e6 + rng.random(1500),  # no probabilities, but the sum has no need of them
    }[kind]
    residual = rng.normal(size=1500)
    pairs = np.exp(-((np.subtract.outer(p, p) / bandwidth) ** 2) / 2) * np.outer(residual, residual)
    rows = Residuals(p[:, None], residual[:, None], np.ones(1500), 0.0, 1500.0, 1500)
    found = rows.quadratic_form(GaussianKernel(bandwidth), bandwidth)
    assert found == pytest.approx(pairs.sum(), abs=1e-14 * np.abs(pairs).sum())


def test_a_gaussian_kernel_of_many_scores_needs_no_pairs(monkeypatch):
    monkeypatch.setattr(kernel_forms, "squared_distances", None)  # a billion pairs would take minutes
    rng = np.random.default_rng(5)
    p = rng.random(200_000)
    found = cal.kernel_error(rng.random(200_000) < p**2, p, kernel=GaussianKernel(0.1))
    x = (np.arange(2000) + 0.5) / 2000
    gap = x - x**2
    truth = gap @ np.exp(-(np.subtract.outer(x, x) ** 2) / 0.02) @ gap / 2000**2
    assert found == pytest.approx(truth, rel=0.05)


@pytest.mark.no_cover
def test_the_usual_bandwidth_is_the_median_distance_and_ignores_row_order():
    y, p, _ = binary_sample(200)
    error = cal.kernel_error(y, p)
    distances = np.abs(np.subtract.outer(p, p))[np.triu_indices(200, 1)]
    assert error.details["bandwidth"] == pytest.approx(np.median(distances), abs=1e-12)
    y, p, _ = class_sample(3000, 4)
    order = np.random.default_rng(3).permutation(3000)
    there, back = cal.kernel_error(cal.Multiclass(y, p)), cal.kernel_error(cal.Multiclass(y[order], p[order]))
    assert there.details == back.details
    assert there == pytest.approx(back, abs=1e-15)
    sampled = np.sqrt(squared_distances(p, p)[np.triu_indices(3000, 1)])
    assert there.details["bandwidth"] == pytest.approx(np.median(sampled), rel=0.02)


def test_ties_leave_a_usable_bandwidth():
    assert cal.kernel_error([0, 1, 1], [0.4, 0.4, 0.4]).details["bandwidth"] == 1.0
    mostly = cal.kernel_error([0, 1, 1, 0, 1, 0], [0.4, 0.4, 0.4, 0.4, 0.4, 0.9])
    assert mostly.details["bandwidth"] == pytest.approx(0.5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("columns", [1, 3])
def test_the_quadratic_form_is_the_sum_over_all_pairs(kernel, columns):
    rng = np.random.default_rng(4)
    at, residual = rng.random((80, columns)), rng.normal(size=(80, columns))
    at = np.sort(at, axis=0) if columns == 1 else at
    distance = squareform(pdist(at))
    scale = distance / 0.3 if isinstance(kernel, LaplaceKernel) else distance**2 / (2 * 0.3**2)
    expected = (np.exp(-scale) * (residual @ residual.T)).sum()
    found = Residuals(at, residual, np.ones(80), 0.0, 80.0, 80).quadratic_form(kernel, 0.3)
    assert found == pytest.approx(expected, rel=1e-11)
    assert found >= 0  # both kernels are positive definite


def test_distances_of_almost_equal_rows_are_exact():
    p = np.array([[0.5, 0.5], [0.5 + 1e-9, 0.5 - 1e-9]])
    assert np.sqrt(squared_distances(p, p)[0, 1]) == pytest.approx(np.sqrt(2) * 1e-9, rel=1e-6)


def test_weights_are_repeated_rows_for_the_median():
    at = np.array([[0.0], [0.2], [1.0]])
    once = Residuals(at, at, np.array([1.0, 3.0, 1.0]), 0.0, 0.0, 5).median_distance()
    again = Residuals(at[[0, 1, 1, 1, 2]], at[[0, 1, 1, 1, 2]], np.ones(5), 0.0, 0.0, 5).median_distance()
    assert once == again


@pytest.mark.parametrize("kernel", [LaplaceKernel, GaussianKernel])
@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.inf, np.nan])
def test_a_bandwidth_is_a_positive_number(kernel, bandwidth):
    with pytest.raises(ValueError, match="bandwidth must be a positive number"):
        kernel(bandwidth)


@pytest.mark.parametrize("unit", [0.001, 3.0, 1e-150, 1e150])
def test_the_median_distance_does_not_depend_on_the_unit_of_weights(unit):
    """Steps of weight that end exactly at a row: rounding of the running weight must not decide which row is meant."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, y = rng.random(20), rng.integers(0, 2, 20)
        weight = np.where(rng.random(20) < 0.3, 0.0, 1.0) + np.eye(1, 20)[0]
        found = cal.kernel_error(cal.Binary(y, p, weight=weight * unit)).details["bandwidth"]
        assert found == cal.kernel_error(cal.Binary(y, p, weight=weight)).details["bandwidth"]
