"""ECE_KDE and smooth ECE against their definitions and the published code, from rows and from tables.

The Kolmogorov-Smirnov error, and binary estimators averaged over classes.
"""

import json
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.estimators.smooth_errors import SIZE, fixed_point, linearly_binned
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.numerics.rows import Rows
from calibrant.results.target import batched
from calibrant.table import Distinct, HybridGrid
from tests.estimators.batches import WORLDS, assert_as_one_by_one

RNG = np.random.default_rng(0)
P = RNG.beta(0.5, 0.5, 300).round(3)
Y = RNG.random(300) < P
WEIGHT = RNG.exponential(size=300)
LABELLED = cal.Binary(Y, P)
WEIGHTED = cal.Binary(Y, P, weight=WEIGHT)
CASE_CONTROL = cal.PositiveUnlabeled(P[Y], P, prior=0.3)
SINGLE_SAMPLE = cal.PositiveUnlabeled.from_labels(
    Y & (RNG.random(300) < 0.6), P, scenario="single-sample", label_frequency=0.6, weight=WEIGHT
)
ALL = [LABELLED, WEIGHTED, CASE_CONTROL, SINGLE_SAMPLE]
NAMES = ["labelled", "weighted", "case-control", "single-sample"]


def nodes_by_hand(scores, weights):
    """Each weight shared between the nodes around its score, in proportion to nearness."""
    masses = np.zeros(SIZE + 1)
    for score, weight in zip(scores, weights, strict=True):
        left = int(np.floor(score * SIZE))
        beyond = score * SIZE - left
        masses[left] += weight * (1 - beyond)
        if beyond:
            masses[left + 1] += weight * beyond
    return masses


@pytest.mark.parametrize("data", [LABELLED, WEIGHTED], ids=NAMES[:2])
def test_shares_of_labelled_rows_by_hand(data):
    weight = np.ones(300) if data.weight is None else WEIGHT
    nodes = linearly_binned(data, None, needed_by="this")
    np.testing.assert_allclose(nodes.population, nodes_by_hand(P, weight) / weight.sum(), atol=1e-14)
    np.testing.assert_allclose(nodes.positives, nodes_by_hand(P, weight * Y) / weight.sum(), atol=1e-14)
    assert nodes.n == 300
    assert nodes.effective_n == pytest.approx(weight.sum() ** 2 / (weight**2).sum())


def test_labelled_positives_have_the_share_of_the_prior():
    nodes = linearly_binned(CASE_CONTROL, None, needed_by="this")
    np.testing.assert_allclose(nodes.population, nodes_by_hand(P, np.ones(300)) / 300, atol=1e-14)
    np.testing.assert_allclose(nodes.positives, 0.3 * nodes_by_hand(P[Y], np.ones(Y.sum())) / Y.sum(), atol=1e-14)
    assert nodes.n == 300 + Y.sum()
    assert nodes.effective_n == 300


def test_labels_of_a_single_sample_are_divided_by_their_frequency():
    nodes = linearly_binned(SINGLE_SAMPLE, None, needed_by="this")
    positive, weight = SINGLE_SAMPLE.positive, SINGLE_SAMPLE.positive_weight
    np.testing.assert_allclose(nodes.positives, nodes_by_hand(positive, weight / 0.6) / WEIGHT.sum(), atol=1e-14)
    assert nodes.population.sum() == pytest.approx(1)
    assert nodes.n == 300


@pytest.mark.parametrize("data", ALL, ids=NAMES)
def test_the_exact_table_has_the_nodes_of_its_rows(data):
    rows, cells = (linearly_binned(some, None, needed_by="this") for some in (data, cal.BinTable.of(data, Distinct())))
    np.testing.assert_allclose(cells.population, rows.population, atol=1e-13)
    np.testing.assert_allclose(cells.positives, rows.positives, atol=1e-13)
    assert cells.effective_n == pytest.approx(rows.effective_n)


@pytest.mark.parametrize("data", ALL[:3], ids=NAMES[:3])
def test_the_exact_table_has_as_many_rows(data):
    assert linearly_binned(cal.BinTable.of(data, Distinct()), None, needed_by="this").n == len(data)


@pytest.mark.parametrize("data", ALL, ids=NAMES)
def test_a_grid_keeps_totals_and_mean_scores_of_either_outcome(data):
    rows, cells = (
        linearly_binned(some, None, needed_by="this") for some in (data, cal.BinTable.of(data, HybridGrid(16)))
    )
    for name in ("population", "positives"):
        one, other = getattr(rows, name), getattr(cells, name)
        assert other.sum() == pytest.approx(one.sum(), abs=1e-12)
        assert other @ cells.position == pytest.approx(one @ rows.position, abs=1e-12)
    assert (cells.population >= -1e-15).all()
    assert (cells.positives >= -1e-15).all()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_the_residual_keeps_its_total_and_forgets_the_order_of_rows(rows, random):
    p, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    nodes = linearly_binned(y, p, needed_by="this")
    assert nodes.residual.sum() == pytest.approx(np.mean(y - p), abs=1e-12)
    assert nodes.residual @ nodes.position == pytest.approx(np.mean((y - p) * p), abs=1 / SIZE**2)
    p, y = (np.array(column, dtype=float) for column in zip(*random.sample(rows, len(rows)), strict=True))
    np.testing.assert_allclose(linearly_binned(y, p, needed_by="this").residual, nodes.residual, atol=1e-14)


def test_nodes_are_equally_spaced_and_a_score_on_one_goes_there_whole():
    nodes = linearly_binned([1, 0, 1], [0.0, 0.5, 1.0], needed_by="this")
    np.testing.assert_array_equal(nodes.position, np.arange(SIZE + 1) / SIZE)
    assert np.flatnonzero(nodes.population).tolist() == [0, SIZE // 2, SIZE]
    np.testing.assert_allclose(nodes.residual[[0, SIZE // 2, SIZE]], [1 / 3, -1 / 6, 0])


def test_what_has_no_probabilities_is_refused():
    with pytest.raises(ValueError, match=r"^this needs probabilities, got Gaussian predictions"):
        linearly_binned(cal.Gaussian([0.0, 1.0], [0.0, 0.0], [0.2, 0.4]), None, needed_by="this")
    with pytest.raises(ValueError, match=r"^this needs a fine table"):
        linearly_binned(cal.BinTable.of(LABELLED, cal.EqualWidth(4)), None, needed_by="this")
    spreads = cal.BinTable.of(cal.Gaussian([0.0, 1.0], [0.0, 0.0], [0.2, 0.4]), Distinct())
    with pytest.raises(ValueError, match=r"^this needs probabilities and outcomes"):
        linearly_binned(spreads, None, needed_by="this")


@pytest.mark.parametrize("key", [[-0.2, 0.5], [0.5, 1.2]])
def test_cells_outside_the_unit_interval_are_refused(key):
    key = np.array(key)
    table = cal.BinTable.of(Rows(key, key, np.array([0, 1], np.int8), np.ones(2)), Distinct())
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        linearly_binned(table, None, needed_by="this")


KDE_PEERS = json.loads((Path(__file__).parents[1] / "reference" / "smooth_peers.json").read_text(encoding="utf8"))


def triweight(distance, bandwidth):
    u = distance / (3 * bandwidth)
    return 35 / 32 * np.maximum(1 - u**2, 0) ** 3 / (3 * bandwidth)


def kde_by_brute_force(y, p, bandwidth, norm=1, weight=None, nodes=4001):
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


def kde_interior_sample(seed, n):
    rng = np.random.default_rng(seed)
    p = 0.25 + 0.5 * rng.random(n)
    return (rng.random(n) < p**1.5).astype(int), p


def kde_sample(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    p = {"uniform": rng.random(n), "skewed": rng.beta(0.2, 0.2, n), "tied": np.round(rng.random(n), 1)}[kind]
    return (rng.random(n) < p**1.3).astype(int), p


@pytest.mark.no_cover
@pytest.mark.parametrize("norm", [1, 2, 3.5, np.inf])
@pytest.mark.parametrize("kind", ["uniform", "skewed", "tied"])
def test_the_error_equals_the_sums_written_out(kind, norm):
    y, p = kde_sample(kind, 80)
    error = cal.kde_ece(y, p, norm=norm, bandwidth=0.04)
    assert error == pytest.approx(kde_by_brute_force(y, p, 0.04, norm), abs=2e-3 if np.isinf(norm) else 1e-5)


def test_the_usual_bandwidth_is_that_of_all_scores():
    y, p = kde_sample("skewed", 300)
    error = cal.kde_ece(y, p)
    assert error.details["bandwidth"] == pytest.approx(np.std(p) * 600**-0.2, rel=1e-6)
    assert error == pytest.approx(cal.kde_ece(y, p, bandwidth=error.details["bandwidth"]), abs=1e-14)


def test_a_kernel_wider_than_the_range_is_reflected_again_and_again():
    y, p = kde_sample("uniform", 40)
    assert cal.kde_ece(y, p, bandwidth=0.9) == pytest.approx(kde_by_brute_force(y, p, 0.9), abs=1e-6)
    assert cal.kde_ece(y, p, bandwidth=0.9, norm=2) == pytest.approx(kde_by_brute_force(y, p, 0.9, 2), abs=1e-6)


def test_weights_enter_the_kernels():
    y, p = kde_sample("uniform", 80)
    weight = np.random.default_rng(1).exponential(size=80)
    error = cal.kde_ece(cal.Binary(y, p, weight=weight), bandwidth=0.05)
    assert error == pytest.approx(kde_by_brute_force(y, p, 0.05, weight=weight), abs=1e-5)


@pytest.mark.no_cover
def test_without_the_root_it_is_the_number_of_the_published_code():
    y, p = kde_interior_sample(5, 300)
    bandwidth = np.std(p[y == 1]) * 600**-0.2
    for order in (1, 2):
        ours = cal.kde_ece(y, p, norm=order, bandwidth=bandwidth)
        assert ours**order == pytest.approx(as_shipped(y, p, bandwidth, order), rel=1e-4)
    assert cal.kde_ece(y, p, norm=2) > 5 * as_shipped(y, p, bandwidth, 2)


def test_without_the_root_it_is_the_number_of_the_published_code_on_its_own_density_package():
    for case in KDE_PEERS["KDEpy"]["cases"]:
        y, p = kde_interior_sample(case["seed"], case["n"])
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


kde_rows = st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1), st.integers(0, 3)), min_size=1, max_size=30).filter(
    lambda rows: any(weight for _, _, weight in rows)
)


@pytest.mark.no_cover
@settings(max_examples=25, deadline=None)
@given(rows=kde_rows, seed=st.integers(0, 99))
def test_kde_order_does_not_matter_and_a_weight_of_two_is_a_row_twice(rows, seed):
    y, p, weight = (np.array(column) for column in zip(*rows, strict=True))
    order = np.random.default_rng(seed).permutation(len(y))
    error = cal.kde_ece(cal.Binary(y, p, weight=weight))
    assert 0 <= error <= 1
    assert cal.kde_ece(cal.Binary(y[order], p[order], weight=weight[order])) == pytest.approx(error, abs=1e-8)
    fixed = cal.kde_ece(cal.Binary(y, p, weight=weight), bandwidth=0.1)  # the default one is by the effective n
    repeated = cal.kde_ece(np.repeat(y, weight), np.repeat(p, weight), bandwidth=0.1)
    assert repeated == pytest.approx(float(fixed), abs=1e-8)


def test_scaling_weights_that_are_not_whole_changes_nothing():
    y, p = kde_sample("uniform", 80)
    weight = np.random.default_rng(2).exponential(size=80)
    small, large = (cal.kde_ece(cal.Binary(y, p, weight=scale * weight)) for scale in (0.01, 100.0))
    assert small == pytest.approx(large, abs=1e-12)


def test_kde_tables_give_what_rows_give():
    y, p = kde_sample("skewed", 5000)
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


def test_kde_single_precision_scores_are_summed_in_double():
    y, p = kde_sample("uniform", 1000)
    single = p.astype(np.float32)
    assert cal.kde_ece(y, single) == pytest.approx(cal.kde_ece(y, single.astype(float)), abs=1e-14)


def test_kde_positive_unlabeled_rows_and_their_tables_agree():
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


PEERS = json.loads((Path(__file__).parents[1] / "reference" / "smooth_peers.json").read_text(encoding="utf8"))


def reflected_gaussian(t, p, sigma):
    reach = int(np.ceil(4 * sigma)) + 1
    images = [sign * p + 2 * k for k in range(-reach, reach + 1) for sign in (1, -1)]
    near = [image for image in images if -9 * sigma <= image <= 1 + 9 * sigma]
    return sum(np.exp(-((t - image) ** 2) / (2 * sigma**2)) for image in near) / (np.sqrt(2 * np.pi) * sigma)


def by_brute_force(y, p, sigma, weight=None, nodes=20_001):
    weight = np.ones(len(p)) if weight is None else np.asarray(weight)
    t, smoothed = np.linspace(0, 1, nodes), np.zeros(nodes)
    for one_y, one_p, one_w in zip(y, p, weight, strict=True):
        smoothed += one_w * (one_y - one_p) * reflected_gaussian(t, one_p, sigma)
    return np.trapezoid(np.abs(smoothed), t) / weight.sum()


def sample(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    p = {"uniform": rng.random(n), "skewed": rng.beta(0.1, 0.1, n), "tied": np.round(rng.random(n), 1)}[kind]
    return (rng.random(n) < p**1.3).astype(int), p


@pytest.mark.no_cover
@pytest.mark.parametrize("sigma", [0.005, 0.02, 0.1, 0.5, 1.5])
@pytest.mark.parametrize("kind", ["uniform", "skewed", "tied"])
def test_a_fixed_width_equals_the_integral(kind, sigma):
    y, p = sample(kind, 60)
    assert cal.smooth_ece(y, p, sigma=sigma) == pytest.approx(by_brute_force(y, p, sigma), abs=1e-6)


def test_a_narrow_kernel_stays_within_the_documented_bound():
    y, p = sample("uniform", 60)
    sigma = 5e-4
    bound = (2**-16 / sigma) ** 2 / 8 * np.abs(y - p).mean() + 1e-5
    assert abs(cal.smooth_ece(y, p, sigma=sigma) - by_brute_force(y, p, sigma, nodes=200_001)) < bound


@pytest.mark.parametrize("kind", ["uniform", "skewed", "tied"])
def test_the_error_is_the_width_at_which_the_error_is_the_width(kind):
    y, p = sample(kind, 60)
    error = cal.smooth_ece(y, p)
    assert by_brute_force(y, p, error.value) == pytest.approx(error, abs=1e-6)
    assert cal.smooth_ece(y, p, sigma=error.value) == pytest.approx(error, abs=1e-12)
    assert error.details["sigma"] == error.value


def test_weights_enter_the_integral():
    y, p = sample("skewed", 60)
    weight = np.random.default_rng(1).exponential(size=60)
    error = cal.smooth_ece(cal.Binary(y, p, weight=weight), sigma=0.03)
    assert error == pytest.approx(by_brute_force(y, p, 0.03, weight), abs=1e-6)


@pytest.mark.parametrize("score", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("sigma", [0.001, 0.05, 1.0])
def test_an_atom_has_the_same_mass_wherever_it_is(score, sigma):
    outcome = int(score < 0.5)
    y, p = [outcome] * 3, [score] * 3
    assert cal.smooth_ece(y, p, sigma=sigma) == pytest.approx(abs(outcome - score), abs=1e-12)
    assert cal.smooth_ece(y, p) == pytest.approx(abs(outcome - score), abs=1e-12)


def test_the_authors_code_agrees_away_from_the_ends():
    for case in PEERS["relplot"]["interior"]:
        y, p = interior_sample(case)
        assert cal.smooth_ece(y, p, sigma=case["sigma"]) == pytest.approx(case["smECE_sigma"], rel=5e-3)


def test_the_authors_code_gives_an_atom_at_the_end_half_its_mass():
    case = PEERS["relplot"]["half_at_one_half_at_one_half"]
    right, halved = (1.0 + 0.5) / 2, (1.0 / 2 + 0.5) / (1 / 2 + 1)
    y, p = np.zeros(100), np.repeat([1.0, 0.5], 50)
    assert cal.smooth_ece(y, p, sigma=case["sigma"]) == pytest.approx(right, abs=1e-12)
    assert case["smECE_sigma"] == pytest.approx(halved, abs=0.005)


def interior_sample(case):
    """The sample that tests/reference/smooth_peers.py hands to the peers."""
    rng = np.random.default_rng(case["seed"])
    p = 0.25 + 0.5 * rng.random(case["n"])
    return (rng.random(case["n"]) < p**1.5).astype(int), p


def test_tables_give_what_rows_give():
    y, p = sample("skewed", 5000)
    data = cal.Binary(y, p)
    error = cal.smooth_ece(data)
    assert cal.smooth_ece(cal.BinTable.of(data, cal.table.Distinct())) == pytest.approx(error, abs=1e-12)
    assert cal.smooth_ece(cal.BinTable.of(data, cal.table.HybridGrid())) == pytest.approx(error, abs=1e-7)


def test_a_table_of_bins_is_refused():
    table = cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.EqualWidth(2))
    with pytest.raises(ValueError, match="needs a fine table"):
        cal.smooth_ece(table)


rows = st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1), st.integers(0, 3)), min_size=1, max_size=30).filter(
    lambda rows: any(weight for _, _, weight in rows)
)


@pytest.mark.no_cover
@settings(max_examples=25, deadline=None)
@given(rows=rows, seed=st.integers(0, 99))
def test_order_does_not_matter_and_a_weight_of_two_is_a_row_twice(rows, seed):
    y, p, weight = (np.array(column) for column in zip(*rows, strict=True))
    order = np.random.default_rng(seed).permutation(len(y))
    error = cal.smooth_ece(cal.Binary(y, p, weight=weight))
    assert 0 <= error <= 1
    assert cal.smooth_ece(cal.Binary(y[order], p[order], weight=weight[order])) == pytest.approx(error, abs=1e-9)
    assert cal.smooth_ece(np.repeat(y, weight), np.repeat(p, weight)) == pytest.approx(error, abs=1e-9)
    mirrored = cal.smooth_ece(cal.Binary(1 - y, 1 - p, weight=weight))
    assert mirrored == pytest.approx(error, abs=1e-6)


@pytest.mark.no_cover
@settings(max_examples=25, deadline=None)
@given(rows=rows)
def test_a_wider_kernel_never_finds_a_larger_error(rows):
    y, p, _ = zip(*rows, strict=True)
    errors = [cal.smooth_ece(y, p, sigma=sigma).value for sigma in (0.002, 0.01, 0.05, 0.2, 1.0)]
    assert np.all(np.diff(errors) <= 1e-6)


def test_groups_of_rows_that_match_their_score_have_no_error():
    assert cal.smooth_ece([0, 1, 0, 0, 0, 1], [0.5, 0.5, 0.25, 0.25, 0.25, 0.25]) == pytest.approx(0, abs=1e-12)
    assert cal.smooth_ece([0, 1], [0.0, 1.0]) == 0


def test_an_error_everywhere_alike_is_found_whatever_the_scores():
    rng = np.random.default_rng(3)
    n = 200_000
    p = 0.1 + 0.7 * rng.random(n)
    assert cal.smooth_ece(rng.random(n) < p + 0.1, p) == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_of_one_outcome(n):
    error = cal.smooth_ece([0] * n, np.full(n, 0.25))
    assert error == pytest.approx(0.25, abs=1e-9)
    assert error.n == n


def test_single_precision_scores_are_summed_in_double():
    y, p = sample("uniform", 1000)
    single = p.astype(np.float32)
    assert cal.smooth_ece(y, single) == pytest.approx(cal.smooth_ece(y, single.astype(float)), abs=1e-14)


def test_positive_unlabeled_rows_and_their_tables_agree():
    rng = np.random.default_rng(4)
    everybody = rng.random(4000)
    positive = everybody[rng.random(4000) < everybody]
    data = cal.PositiveUnlabeled(positive, everybody, prior=0.5)
    error = cal.smooth_ece(data)
    assert error < 0.02
    assert cal.smooth_ece(cal.BinTable.of(data, cal.table.Distinct())) == pytest.approx(error, abs=1e-9)
    assert cal.smooth_ece(cal.PositiveUnlabeled(positive, everybody, prior=0.3)) > 0.1


@pytest.mark.parametrize("sigma", [0, -1, np.nan, np.inf])
def test_a_width_must_be_positive(sigma):
    with pytest.raises(ValueError, match="sigma must be a positive number"):
        cal.smooth_ece([0, 1], [0.2, 0.7], sigma=sigma)


def test_other_tasks_are_refused():
    with pytest.raises(ValueError, match="needs probabilities, got Gaussian"):
        cal.smooth_ece(cal.Gaussian([1.0], mean=[1.2], std=[0.3]))
    with pytest.raises(cal.InvalidPredictions, match="Choose what to measure"):
        cal.smooth_ece(cal.Multiclass([0, 1], [[0.8, 0.2], [0.3, 0.7]]))
    with pytest.raises(cal.InvalidPredictions, match="y_prob must lie in"):
        cal.smooth_ece([0, 1], [0.2, 1.7])
    with pytest.raises(ValueError, match="holds predicted spreads"):
        cal.smooth_ece(cal.BinTable.of(cal.Gaussian([1.0], mean=[1.2], std=[3.0]), cal.table.Distinct()))


def test_the_fixed_point_of_known_functions():
    assert fixed_point(lambda x: 0.0 * x) == 0
    assert fixed_point(lambda x: 1.0 + 0 * x) == 1
    assert fixed_point(lambda x: np.cos(x) if x < 1 else 0.5) == pytest.approx(0.7390851332151607, abs=1e-12)
    assert fixed_point(lambda x: 0.001 / np.sqrt(x + 1e-12)) == pytest.approx(0.01, rel=1e-6)


@pytest.mark.no_cover
@given(st.lists(st.tuples(st.integers(0, 10).map(lambda k: k / 10), st.booleans()), min_size=1, max_size=50))
def test_the_ks_error_is_the_largest_running_gap(rows):
    p, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    expected = max(abs((p - y)[p <= s].sum()) / len(p) for s in p)
    assert cal.ks_error(y, p) == pytest.approx(expected, abs=1e-12)
    assert cal.ks_error(y, p) <= cal.ece(y, p, bins=cal.EqualMass(50)) + 1e-12


def test_the_ks_error_of_weighted_rows_is_the_largest_running_gap():
    rng = np.random.default_rng(0)
    p, weight = rng.random(80).round(1), rng.exponential(size=80)
    y = rng.random(80) < p**2
    expected = max(abs((weight * (p - y))[p <= s].sum()) for s in p) / weight.sum()
    assert cal.ks_error(cal.Binary(y, p, weight=weight)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("prior", [0.2, 0.35])
def test_labelled_positives_stand_for_all_in_the_running_gap(prior, weighted):
    rng = np.random.default_rng(1)
    positive, unlabeled = rng.beta(4, 2, 30).round(1), rng.random(90).round(1)
    weight = rng.exponential(size=120) if weighted else np.ones(120)
    of_positive, of_unlabeled = weight[:30] / weight[:30].sum(), weight[30:] / weight[30:].sum()
    expected = 0.0
    for s in np.unique([*positive, *unlabeled]):
        predicted = (of_unlabeled * unlabeled)[unlabeled <= s].sum()
        expected = max(expected, abs(predicted - prior * of_positive[positive <= s].sum()))
    data = cal.PositiveUnlabeled(positive, unlabeled, prior=prior, weight=weight if weighted else None)
    assert cal.ks_error(data) == pytest.approx(expected, abs=1e-12)


def test_labels_of_a_single_sample_are_divided_by_their_frequency_in_the_running_gap():
    rng = np.random.default_rng(2)
    p = rng.random(200).round(2)
    labelled = rng.random(200) < 0.4 * p
    expected = max(abs((p - labelled / 0.4)[p <= s].mean() * np.mean(p <= s)) for s in p)
    data = cal.PositiveUnlabeled.from_labels(labelled, p, scenario="single-sample", label_frequency=0.4)
    assert cal.ks_error(data) == pytest.approx(expected, abs=1e-12)


def test_the_top_label_is_the_first_of_equal_maxima_and_keeps_weight_and_group():
    data = cal.Multiclass([1, 0], [[0.5, 0.5], [0.4, 0.6]], weight=[1, 2], group=["x", "y"])
    top = data.top_label()
    np.testing.assert_array_equal(top.y_true, [0, 0])
    np.testing.assert_array_equal(top.weight, [1, 2])
    np.testing.assert_array_equal(top.group, ["x", "y"])


def test_the_kuiper_error_is_the_largest_sum_over_a_range_of_scores():
    rng = np.random.default_rng(7)
    p = np.round(rng.random(60), 2)
    y = rng.random(60) < 0.5
    scores = np.unique(p)
    sums = [abs((p - y)[(p >= low) & (p <= high)].sum()) / 60 for low in scores for high in scores if low <= high]
    found = cal.estimators.kuiper_error(y, p)
    assert found == pytest.approx(max(sums))
    assert cal.ks_error(y, p) <= found <= 2 * cal.ks_error(y, p)


def test_the_interval_of_the_kuiper_error_covers():
    rng = np.random.default_rng(8)
    p = rng.random(1000)
    calibrated = cal.interval(cal.estimators.kuiper_error, rng.random(1000) < p, p).interval
    assert calibrated.low == 0
    bent = cal.interval(cal.estimators.kuiper_error, rng.random(1000) < p**2, p).interval
    assert 0 < bent.low < 1 / 6 < bent.high < 0.25
