"""SKCE against the double sum written out, and its kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

import calibrant as cal
from calibrant.estimators import kernel as kernel_forms
from calibrant.estimators.kernel import BLOCK, GaussianKernel, LaplaceKernel, Residuals, squared_distances

KERNELS = [cal.estimators.LaplaceKernel(0.3), cal.estimators.GaussianKernel(0.3)]


def similarity(kernel, p, q):
    distance = np.linalg.norm(np.atleast_1d(p - q))
    if isinstance(kernel, cal.estimators.LaplaceKernel):
        return np.exp(-distance / kernel.bandwidth)
    return np.exp(-(distance**2) / (2 * kernel.bandwidth**2))


def by_double_sum(residual, p, kernel, weight=None, unbiased=True):
    weight = np.ones(len(p)) if weight is None else weight
    total = pairs = 0.0
    for i in range(len(p)):
        for j in range(len(p)):
            if unbiased and i == j:
                continue
            both = weight[i] * weight[j]
            total += both * similarity(kernel, p[i], p[j]) * np.dot(residual[i], residual[j])
            pairs += both
    return total / pairs


def binary_sample(n, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2)
    p[:2] = 0.0, 1.0
    return (rng.random(n) < p**2).astype(int), p, rng.exponential(size=n)


def class_sample(n, classes, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(classes), n)
    y = (rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1).clip(0, classes - 1)
    return y, p, rng.exponential(size=n)


@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
def test_binary_error_is_the_double_sum(kernel, unbiased):
    y, p, weight = binary_sample(60)
    plain = cal.kernel_error(y, p, kernel=kernel, unbiased=unbiased)
    assert plain == pytest.approx(by_double_sum(y - p, p, kernel, unbiased=unbiased), abs=1e-14)
    weighted = cal.kernel_error(cal.Binary(y, p, weight=weight), kernel=kernel, unbiased=unbiased)
    assert weighted == pytest.approx(by_double_sum(y - p, p, kernel, weight, unbiased), abs=1e-14)


@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [3, 20])
def test_canonical_error_is_the_double_sum(classes, kernel, unbiased):
    y, p, weight = class_sample(50, classes)
    residual = np.eye(classes)[y] - p
    plain = cal.kernel_error(cal.Multiclass(y, p), kernel=kernel, unbiased=unbiased)
    assert plain == pytest.approx(by_double_sum(residual, p, kernel, unbiased=unbiased), abs=1e-12)
    weighted = cal.kernel_error(cal.Multiclass(y, p, weight=weight), kernel=kernel, unbiased=unbiased)
    assert weighted == pytest.approx(by_double_sum(residual, p, kernel, weight, unbiased), abs=1e-12)


@pytest.mark.parametrize("kernel", [*KERNELS, cal.estimators.LaplaceKernel()])
def test_an_exact_table_gives_what_rows_give(kernel):
    y, p, weight = binary_sample(500)
    for data in (cal.Binary(y, p), cal.Binary(y, p, weight=np.round(p, 1) + 0.5)):  # weights alike within a cell
        error = cal.kernel_error(data, kernel=kernel)
        assert cal.kernel_error(cal.BinTable.of(data, cal.table.Distinct()), kernel=kernel) == pytest.approx(
            error, abs=1e-12
        )
    uneven = cal.Binary(y, p, weight=weight)
    biased = cal.kernel_error(uneven, kernel=kernel, unbiased=False)
    table = cal.BinTable.of(uneven, cal.table.Distinct())
    assert cal.kernel_error(table, kernel=kernel, unbiased=False) == pytest.approx(biased, abs=1e-12)


def test_a_grid_table_is_near_and_a_table_of_bins_is_refused():
    rng = np.random.default_rng(2)
    p = rng.random(2000)
    data = cal.Binary(rng.random(2000) < p**2, p)
    near = cal.kernel_error(cal.BinTable.of(data, cal.table.HybridGrid()))
    assert near == pytest.approx(cal.kernel_error(data), abs=1e-7)
    with pytest.raises(ValueError, match="needs a fine table"):
        cal.kernel_error(cal.BinTable.of(data, cal.EqualWidth(10)))


def test_two_classes_are_a_binary_task_counted_twice():
    y, p, _ = binary_sample(80)
    two = cal.Multiclass(y, np.column_stack([1 - p, p]))
    one = cal.kernel_error(y, p, kernel=cal.estimators.LaplaceKernel(0.2))
    assert cal.kernel_error(two, kernel=cal.estimators.LaplaceKernel(0.2 * np.sqrt(2))) == pytest.approx(
        2 * one, abs=1e-14
    )


@pytest.mark.no_cover
@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1), st.integers(1, 3)), min_size=2, max_size=25),
    seed=st.integers(0, 99),
)
def test_order_does_not_matter_and_for_the_biased_version_a_weight_of_two_is_a_row_twice(rows, seed):
    y, p, weight = (np.array(column) for column in zip(*rows, strict=True))
    order = np.random.default_rng(seed).permutation(len(y))
    kernel = cal.estimators.LaplaceKernel(0.2)
    error = cal.kernel_error(y, p, kernel=kernel)
    assert -1 <= error <= 1
    assert cal.kernel_error(y[order], p[order], kernel=kernel) == pytest.approx(error, abs=1e-13)
    biased = cal.kernel_error(cal.Binary(y, p, weight=weight), kernel=kernel, unbiased=False)
    assert biased >= -1e-15
    repeated = cal.kernel_error(np.repeat(y, weight), np.repeat(p, weight), kernel=kernel, unbiased=False)
    assert repeated == pytest.approx(biased, abs=1e-13)


def test_for_the_unbiased_version_a_weight_of_two_is_not_a_row_twice():
    weighted = cal.kernel_error(cal.Binary([0, 1], [0.3, 0.6], weight=[2, 1]), kernel=cal.estimators.LaplaceKernel(1.0))
    repeated = cal.kernel_error([0, 0, 1], [0.3, 0.3, 0.6], kernel=cal.estimators.LaplaceKernel(1.0))
    assert weighted == pytest.approx(-0.3 * 0.4 * np.exp(-0.3), abs=1e-15)
    assert repeated == pytest.approx((0.3**2 - 2 * 0.3 * 0.4 * np.exp(-0.3)) / 3, abs=1e-15)


def test_it_is_unbiased_where_the_truth_is_known():
    rng = np.random.default_rng(5)
    calibrated, shifted = [], []
    for _ in range(300):
        p = 0.2 + 0.5 * rng.random(100)
        u = rng.random(100)
        calibrated.append(cal.kernel_error(u < p, p, kernel=cal.estimators.LaplaceKernel(0.2)).value)
        shifted.append(cal.kernel_error(u < p + 0.1, p, kernel=cal.estimators.LaplaceKernel(0.2)).value)
    distance = 0.5 * np.abs(np.subtract.outer(*2 * [(np.arange(1000) + 0.5) / 1000]))
    truth = 0.01 * np.exp(-distance / 0.2).mean()
    for values, true in ((calibrated, 0.0), (shifted, truth)):
        assert abs(np.mean(values) - true) < 3 * np.std(values) / np.sqrt(300)
    assert np.min(calibrated) < 0


def test_few_rows():
    with pytest.raises(cal.InvalidPredictions, match="at least two rows"):
        cal.kernel_error([1], [0.7])
    with pytest.raises(cal.InvalidPredictions, match="at least two rows"):
        cal.kernel_error(cal.Multiclass([0, 1], [[0.5, 0.5], [0.2, 0.8]], weight=[0, 1]))
    assert cal.kernel_error([1], [0.75], unbiased=False) == 0.0625
    assert cal.kernel_error([0, 1], [0.5, 0.5]) == -0.25
    assert cal.kernel_error([1, 1, 1], [1.0, 1.0, 1.0]) == 0


def test_single_precision_scores_are_summed_in_double():
    y, p, _ = class_sample(200, 3)
    single = p.astype(np.float32)
    double = cal.kernel_error(cal.Multiclass(y, single.astype(float)))
    assert cal.kernel_error(cal.Multiclass(y, single)) == pytest.approx(double, abs=1e-14)
    y, p, _ = binary_sample(200)
    single = p.astype(np.float32)
    assert cal.kernel_error(y, single) == pytest.approx(cal.kernel_error(y, single.astype(float)), abs=1e-14)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="bandwidth must be a positive number"):
        cal.estimators.LaplaceKernel(0)
    with pytest.raises(ValueError, match="bandwidth must be a positive number"):
        cal.estimators.GaussianKernel(-1.0)
    with pytest.raises(TypeError, match="Give either predictions or"):
        cal.kernel_error(cal.Multiclass([0, 1], [[0.5, 0.5], [0.2, 0.8]]), [0.2, 0.3])
    with pytest.raises(ValueError, match="at least two positives"):
        cal.kernel_error(cal.BinTable.of(cal.PositiveUnlabeled([0.8], [0.2, 0.8], prior=0.3), cal.table.Distinct()))
    with pytest.raises(ValueError, match="needs probabilities and their outcomes"):
        cal.kernel_error(cal.Gaussian([1.0, 2.0], mean=[1.2, 2.0], std=[0.3, 0.4]))


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


def test_the_usual_bandwidth_is_the_median_distance_of_1024_scores():
    rng = np.random.default_rng(4)
    p = rng.random(3072)
    y, some = rng.random(3072) < p, np.sort(p)[1::3]
    distances = np.abs(np.subtract.outer(some, some))[np.triu_indices(1024, 1)]
    assert cal.kernel_error(y, p).details["bandwidth"] == pytest.approx(np.median(distances), rel=1e-9)
