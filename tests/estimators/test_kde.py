"""ECE_KDE against sums over kernels written out, and against the published code."""

import json
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.numerics.sorted_samples import SortedSamples
from calibrant.results.target import batched
from tests.estimators.batches import WORLDS, assert_as_one_by_one

PEERS = json.loads((Path(__file__).parents[1] / "reference" / "smooth_peers.json").read_text(encoding="utf8"))


def triweight(distance, bandwidth):
    u = distance / (3 * bandwidth)
    return 35 / 32 * np.maximum(1 - u**2, 0) ** 3 / (3 * bandwidth)


def by_brute_force(y, p, bandwidth, norm=1, weight=None, nodes=4001):
    """The definition: every image of every score, and the trapezoid rule."""
    x = np.linspace(0, 1, nodes)
    weight = np.ones(len(p)) if weight is None else weight
    images = [sign * p + 2 * k for k in range(-2, 3) for sign in (1, -1)]
    kernel = sum(triweight(x[:, None] - image, bandwidth) for image in images)
    every, positive = kernel @ weight, kernel @ (weight * y)
    some = every / weight.sum() > 1e-6
    gap = np.abs(x[some] - positive[some] / every[some])
    if np.isinf(norm):
        return gap.max()
    power = np.zeros(nodes)
    power[some] = gap**norm * every[some]
    return (np.trapezoid(power, x) / np.trapezoid(every, x)) ** (1 / norm)


def as_shipped(y, p, bandwidth, order):
    """What the code of the paper does: reflect at the nearer end, drop the ends, take no root."""
    x = np.linspace(-0.6, 1.6, 2**14)

    def density(scores):
        images = np.concatenate([scores, np.where(scores < 0.5, -scores, 2 - scores)])
        values = np.zeros(len(x))
        for image in images:
            values += triweight(x - image, bandwidth) / len(images)
        values[(x <= 0) | (x >= 1)] = 0
        return 2 * values

    positive, every = density(p[y == 1]), density(p)
    some = np.maximum(positive, every) > 1e-6
    integrand = np.zeros(len(x))
    curve = np.minimum(1, y.mean() * positive[some] / every[some])
    integrand[some] = np.abs(x[some] - curve) ** order * every[some]
    return np.trapezoid(integrand, x) / np.trapezoid(every, x)


def interior_sample(seed, n):
    rng = np.random.default_rng(seed)
    p = 0.25 + 0.5 * rng.random(n)
    return (rng.random(n) < p**1.5).astype(int), p


def sample(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    p = {"uniform": rng.random(n), "skewed": rng.beta(0.2, 0.2, n), "tied": np.round(rng.random(n), 1)}[kind]
    return (rng.random(n) < p**1.3).astype(int), p


@pytest.mark.no_cover
@pytest.mark.parametrize("norm", [1, 2, 3.5, np.inf])
@pytest.mark.parametrize("kind", ["uniform", "skewed", "tied"])
def test_the_error_equals_the_sums_written_out(kind, norm):
    y, p = sample(kind, 80)
    error = cal.kde_ece(y, p, norm=norm, bandwidth=0.04)
    assert error == pytest.approx(by_brute_force(y, p, 0.04, norm), abs=2e-3 if np.isinf(norm) else 1e-5)


def test_the_usual_bandwidth_is_that_of_all_scores():
    y, p = sample("skewed", 300)
    error = cal.kde_ece(y, p)
    assert error.details["bandwidth"] == pytest.approx(np.std(p) * 600**-0.2, rel=1e-6)
    assert error == pytest.approx(cal.kde_ece(y, p, bandwidth=error.details["bandwidth"]), abs=1e-14)


def test_a_kernel_wider_than_the_range_is_reflected_again_and_again():
    y, p = sample("uniform", 40)
    assert cal.kde_ece(y, p, bandwidth=0.9) == pytest.approx(by_brute_force(y, p, 0.9), abs=1e-6)
    assert cal.kde_ece(y, p, bandwidth=0.9, norm=2) == pytest.approx(by_brute_force(y, p, 0.9, 2), abs=1e-6)


def test_weights_enter_the_kernels():
    y, p = sample("uniform", 80)
    weight = np.random.default_rng(1).exponential(size=80)
    error = cal.kde_ece(cal.Binary(y, p, weight=weight), bandwidth=0.05)
    assert error == pytest.approx(by_brute_force(y, p, 0.05, weight=weight), abs=1e-5)


@pytest.mark.no_cover
def test_without_the_root_it_is_the_number_of_the_published_code():
    y, p = interior_sample(5, 300)
    bandwidth = np.std(p[y == 1]) * 600**-0.2
    for order in (1, 2):
        ours = cal.kde_ece(y, p, norm=order, bandwidth=bandwidth)
        assert ours**order == pytest.approx(as_shipped(y, p, bandwidth, order), rel=1e-4)
    assert cal.kde_ece(y, p, norm=2) > 5 * as_shipped(y, p, bandwidth, 2)


def test_without_the_root_it_is_the_number_of_the_published_code_on_its_own_density_package():
    for case in PEERS["KDEpy"]["cases"]:
        y, p = interior_sample(case["seed"], case["n"])
        ours = cal.kde_ece(y, p, norm=case["order"], bandwidth=case["bandwidth"])
        assert ours ** case["order"] == pytest.approx(case["shipped"], rel=1e-3)


@pytest.mark.parametrize("norm", [1, 2, np.inf])
@pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
def test_one_distinct_score_is_compared_with_its_mean_outcome(score, norm):
    error = cal.kde_ece([0, 1, 1, 1], [score] * 4, norm=norm)
    assert error == pytest.approx(abs(score - 0.75), abs=2e-5)


def test_atoms_at_the_ends_have_their_whole_mass():
    y, p = np.zeros(100), np.repeat([1.0, 0.5], 50)
    assert cal.kde_ece(y, p, bandwidth=1e-3) == pytest.approx(0.75, abs=1e-3)
    assert cal.kde_ece(1 - y, 1 - p, bandwidth=1e-3) == pytest.approx(0.75, abs=1e-3)


rows = st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1), st.integers(0, 3)), min_size=1, max_size=30).filter(
    lambda rows: any(weight for _, _, weight in rows)
)


@pytest.mark.no_cover
@settings(max_examples=25, deadline=None)
@given(rows=rows, seed=st.integers(0, 99))
def test_order_does_not_matter_and_a_weight_of_two_is_a_row_twice(rows, seed):
    y, p, weight = (np.array(column) for column in zip(*rows, strict=True))
    order = np.random.default_rng(seed).permutation(len(y))
    error = cal.kde_ece(cal.Binary(y, p, weight=weight))
    assert 0 <= error <= 1
    assert cal.kde_ece(cal.Binary(y[order], p[order], weight=weight[order])) == pytest.approx(error, abs=1e-8)
    fixed = cal.kde_ece(cal.Binary(y, p, weight=weight), bandwidth=0.1)  # the default one is by the effective n
    repeated = cal.kde_ece(np.repeat(y, weight), np.repeat(p, weight), bandwidth=0.1)
    assert repeated == pytest.approx(float(fixed), abs=1e-8)


def test_scaling_weights_that_are_not_whole_changes_nothing():
    y, p = sample("uniform", 80)
    weight = np.random.default_rng(2).exponential(size=80)
    small, large = (cal.kde_ece(cal.Binary(y, p, weight=scale * weight)) for scale in (0.01, 100.0))
    assert small == pytest.approx(large, abs=1e-12)


def test_tables_give_what_rows_give():
    y, p = sample("skewed", 5000)
    weight = np.random.default_rng(3).exponential(size=5000)
    for data in (cal.Binary(y, p), cal.Binary(y, p, weight=weight)):
        error = cal.kde_ece(data)
        assert cal.kde_ece(cal.BinTable.of(data, cal.table.Distinct())) == pytest.approx(error, abs=1e-10)
        assert cal.kde_ece(cal.BinTable.of(data, cal.table.HybridGrid())) == pytest.approx(error, abs=1e-6)


def test_a_known_error_is_found_and_a_calibrated_model_has_little():
    rng = np.random.default_rng(4)
    n = 200_000
    p = 0.1 + 0.7 * rng.random(n)
    for norm in (1, 2):
        assert cal.kde_ece(rng.random(n) < p + 0.1, p, norm=norm) == pytest.approx(0.1, abs=0.01)
        assert cal.kde_ece(rng.random(n) < p, p, norm=norm) < 0.015


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_of_one_outcome_are_defined(n):
    p = np.array([0.2, 0.9, 0.4])[:n]
    for outcome in (0, 1):
        error = cal.kde_ece(np.full(n, outcome), p)
        assert 0 < error < 1
        assert error.n == n


def test_single_precision_scores_are_summed_in_double():
    y, p = sample("uniform", 1000)
    single = p.astype(np.float32)
    assert cal.kde_ece(y, single) == pytest.approx(cal.kde_ece(y, single.astype(float)), abs=1e-14)


def test_positive_unlabeled_rows_and_their_tables_agree():
    rng = np.random.default_rng(4)
    everybody = rng.random(4000)
    data = cal.PositiveUnlabeled(everybody[rng.random(4000) < everybody], everybody, prior=0.5)
    error = cal.kde_ece(data)
    assert error < 0.05
    assert cal.kde_ece(cal.BinTable.of(data, cal.table.Distinct())) == pytest.approx(error, abs=1e-9)


@pytest.mark.parametrize("bandwidth", [0, -0.1, 2, np.nan])
def test_a_bandwidth_lies_in_the_unit_interval(bandwidth):
    with pytest.raises(ValueError, match=r"bandwidth must lie in \(0, 1\]"):
        cal.kde_ece([0, 1], [0.2, 0.7], bandwidth=bandwidth)


def test_other_mistakes_are_named():
    with pytest.raises(ValueError, match="norm must be"):
        cal.kde_ece([0, 1], [0.2, 0.7], norm=0.5)
    with pytest.raises(ValueError, match="needs probabilities"):
        cal.kde_ece(cal.Gaussian([1.0], mean=[1.2], std=[0.3]))
    with pytest.raises(ValueError, match="needs a fine table"):
        cal.kde_ece(cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.EqualWidth(2)))
    with pytest.raises(cal.InvalidPredictions, match="y_true"):
        cal.kde_ece([0, 2], [0.2, 0.7])


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_many_samples_at_once_give_what_each_gives_on_fewer_nodes(norm):
    tolerance = 2e-5 if math.isfinite(norm) else 2e-3
    estimator = partial(cal.kde_ece, norm=norm)
    assert_as_one_by_one(estimator, sizes=(1, 3, 40, 500), samples=3, tolerance=tolerance)


@pytest.mark.parametrize(("bandwidth", "tolerance"), [(0.1, 1e-6), (0.001, 1e-12)])
def test_many_samples_at_once_take_a_bandwidth(bandwidth, tolerance):
    """A kernel too narrow for the fewer nodes is put on as many as for a single sample."""
    assert_as_one_by_one(partial(cal.kde_ece, bandwidth=bandwidth), sizes=(40,), samples=3, tolerance=tolerance)


def test_a_bandwidth_for_many_samples_is_checked():
    samples = SortedSamples.of(*WORLDS["wide"].draw(np.random.default_rng(0), (2, 9)))
    with pytest.raises(ValueError, match="bandwidth must lie in"):
        batched(partial(cal.kde_ece, bandwidth=2))(samples)
