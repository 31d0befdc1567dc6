"""Binned errors: the formula written out, foreign references, invariants, and behaviour in known worlds.

The debiased error: closed form, folded normal, and less bias in known worlds.

The sweep: the largest number of bins in order, found as the definition says, and stable under ties.
"""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

import calibrant as cal
from calibrant.estimators.binned import debiased_power, folded_normal_power, largest_rising
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.results.target import Clipped, batched, name_of
from tests.estimators.batches import WORLDS, assert_as_one_by_one

scores = st.one_of(st.floats(0, 1), st.integers(0, 10).map(lambda k: k / 10))
rows = st.lists(st.tuples(scores, st.booleans()), min_size=1, max_size=50)
binnings = st.one_of(st.integers(1, 12).map(cal.EqualWidth), st.integers(1, 12).map(cal.EqualMass))
norms = st.one_of(st.just(1), st.just(2), st.just(math.inf), st.floats(1, 6))

ESTIMATORS = [
    cal.ece,
    cal.mce,
    cal.estimators.label_binned_ece,
    cal.debiased_ece,
    cal.sweep_ece,
    cal.ks_error,
    cal.brier,
]


def columns(rows):
    p, y = zip(*rows, strict=True)
    return np.array(y, dtype=int), np.array(p, dtype=float)


def written_out(y, p, edges, norm):
    """The definition, bin by bin, in plain Python."""
    total, largest = 0.0, 0.0
    for k in range(len(edges) - 1):
        inside = [
            i for i in range(len(p)) if (edges[k] < p[i] or k == 0) and (p[i] <= edges[k + 1] or k == len(edges) - 2)
        ]
        inside = [i for i in inside if k == 0 or p[i] > edges[k]]
        if inside:
            gap = abs(math.fsum(p[i] for i in inside) - sum(y[i] for i in inside)) / len(inside)
            total, largest = total + len(inside) / len(p) * gap**norm if norm < math.inf else 0.0, max(largest, gap)
    return largest if norm == math.inf else total ** (1 / norm)


@pytest.mark.no_cover
@given(rows, binnings, norms)
def test_ece_is_the_formula_written_out(rows, bins, norm):
    y, p = columns(rows)
    estimate = cal.ece(y, p, bins=bins, norm=norm)
    assert estimate == pytest.approx(written_out(y, p, estimate.bins.edges, norm), abs=1e-12)
    assert estimate.n == len(p)


def test_ece_of_equal_width_bins_agrees_with_scikit_learn():
    rng = np.random.default_rng(3)
    p = rng.beta(0.7, 1.3, 5000)
    y = (rng.random(5000) < p**1.3).astype(int)
    observed, predicted = calibration_curve(y, p, n_bins=15)
    table = cal.ece(y, p, bins=cal.EqualWidth(15)).bins.filled()
    np.testing.assert_allclose(table.predicted_mean, predicted, rtol=1e-12)
    np.testing.assert_allclose(table.observed_mean, observed, rtol=1e-12)


@pytest.mark.no_cover
@given(rows, binnings, norms)
def test_errors_lie_between_zero_and_one_and_grow_with_the_norm(rows, bins, norm):
    y, p = columns(rows)
    first, second = cal.ece(y, p, bins=bins), cal.ece(y, p, bins=bins, norm=norm)
    assert -1e-12 <= first <= second + 1e-9 <= 1 + 1e-8
    assert second <= cal.mce(y, p, bins=bins) + 1e-9


@pytest.mark.no_cover
@given(rows, binnings)
def test_label_binning_is_at_least_plain_binning(rows, bins):
    y, p = columns(rows)
    for norm in (1, 2):
        plain, by_label = (f(y, p, bins=bins, norm=norm) for f in (cal.ece, cal.estimators.label_binned_ece))
        assert by_label >= plain - 1e-12
        edges = plain.bins.edges
        own = plain.bins.observed_mean[np.searchsorted(edges[1:-1], p, side="left")]
        assert by_label == pytest.approx(np.mean(np.abs(p - own) ** norm) ** (1 / norm), abs=1e-12)


@pytest.mark.no_cover
@given(rows, st.sampled_from(ESTIMATORS), st.randoms(use_true_random=False))
def test_no_estimator_depends_on_the_order_of_rows(rows, estimator, random):
    shuffled = random.sample(rows, len(rows))
    assert estimator(*columns(rows)) == pytest.approx(estimator(*columns(shuffled)), abs=1e-9)


EQUAL_WIDTH = cal.EqualWidth(10)  # bins of equal mass are cut by rows, not by the unit of their weights
PLUG_INS = [partial(each, bins=EQUAL_WIDTH) for each in (cal.ece, cal.mce, cal.estimators.label_binned_ece)]
PLUG_INS += [cal.ks_error, cal.brier]


@pytest.mark.no_cover
@given(rows, st.sampled_from(PLUG_INS), st.lists(st.integers(0, 3), min_size=50, max_size=50))
def test_a_whole_weight_counts_as_that_many_rows(rows, estimator, weight):
    y, p = columns(rows)
    weight = np.array(weight[: len(p)])
    assume(weight.any())
    weighted = estimator(cal.Binary(y, p, weight=weight))
    repeated = estimator(np.repeat(y, weight), np.repeat(p, weight))
    assert weighted == pytest.approx(repeated, abs=1e-9)


@pytest.mark.no_cover
@given(rows, st.sampled_from([*PLUG_INS, cal.debiased_ece]), st.floats(0.1, 10))
def test_the_scale_of_real_weights_does_not_matter(rows, estimator, factor):
    y, p = columns(rows)
    weight = np.linspace(1, 2, len(p)) * math.pi
    one, other = (estimator(cal.Binary(y, p, weight=w)) for w in (weight, weight * factor))
    assert one == pytest.approx(other, abs=1e-7)


@pytest.mark.no_cover
@given(rows, st.sampled_from([cal.ece, cal.mce, cal.debiased_ece]), binnings)
def test_estimators_on_tables_equal_those_on_rows(rows, estimator, bins):
    y, p = columns(rows)
    data = cal.Binary(y, p)
    direct = estimator(data, bins=bins)
    assert estimator(cal.BinTable.of(data, bins)) == pytest.approx(direct, abs=1e-9)
    assert estimator(cal.BinTable.of(data, cal.table.Distinct()), bins=bins) == pytest.approx(direct, abs=1e-9)


def test_a_perfect_table_has_no_error():
    y, p = [0, 1, 0, 0, 0, 1, 1, 1], [0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 1.0, 1.0]
    for estimator in (cal.ece, cal.mce, cal.estimators.label_binned_ece, cal.sweep_ece, cal.ks_error):
        assert estimator(y, p) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("score", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("label", [0, 1])
def test_tiny_and_constant_inputs_are_defined(n, score, label):
    y, p = [label] * n, [score] * n
    for estimator in (cal.ece, cal.mce, cal.estimators.label_binned_ece, cal.sweep_ece, cal.ks_error):
        assert estimator(y, p) == pytest.approx(abs(score - label), abs=1e-12)
        assert estimator(y, np.array(p, np.float32)) == pytest.approx(abs(score - label), abs=1e-6)


def test_a_bad_norm_is_named():
    for norm in (0.5, -1, float("nan")):
        with pytest.raises(ValueError, match="norm must be a number of at least 1"):
            cal.ece([0, 1], [0.2, 0.7], norm=norm)


def test_several_classes_are_refused_with_the_choices():
    data = cal.Multiclass([0, 1], [[0.6, 0.4], [0.3, 0.7]])
    with pytest.raises(cal.InvalidPredictions, match=r"top_label\(\).*one_vs_rest\(\).*classwise.*kernel_error"):
        cal.ece(data)


def test_plain_ece_is_biased_upward_for_a_calibrated_model():
    rng = np.random.default_rng(0)
    values = []
    for _ in range(200):
        p = rng.random(300)
        values.append(cal.ece(rng.random(300) < p, p))
    assert 0.04 < np.mean(values) < 0.09  # the truth is 0


def test_fine_tables_are_required_where_scores_matter():
    table = cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.EqualWidth(2))
    for estimator in (cal.estimators.label_binned_ece, cal.sweep_ece, cal.ks_error, cal.brier):
        with pytest.raises(ValueError, match="needs a fine table"):
            estimator(table)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "estimator",
    [
        cal.ece,
        partial(cal.ece, bins=cal.EqualWidth(15), norm=2),
        partial(cal.ece, bins=cal.Edges([0, 0.3, 0.5, 1]), norm=3),
        partial(cal.ece, bins=cal.pu.PaperBins()),
        partial(cal.ece, norm=math.inf),
        partial(partial(cal.ece, norm=2), bins=cal.EqualMass(5)),
        cal.mce,
        partial(cal.mce, bins=cal.EqualWidth(7)),
    ],
    ids=name_of,
)
def test_many_samples_at_once_give_what_each_gives(estimator):
    assert_as_one_by_one(estimator)


@pytest.mark.no_cover
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=80), st.integers(1, 12))
def test_the_square_is_lowered_by_the_variance_of_the_mean_outcome(rows, n):
    p, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    estimate = cal.debiased_ece(y, p, bins=cal.EqualMass(n), norm=2)
    edges, total = estimate.bins.edges, 0.0
    index = np.searchsorted(edges[1:-1], p, side="left")
    for k in range(len(edges) - 1):
        size = (index == k).sum()
        if size > 1:
            gap, rate = (p - y)[index == k].mean(), y[index == k].mean()
            total += size / len(p) * (gap**2 - rate * (1 - rate) / (size - 1))
    power = estimate.details["power"]
    assert power == pytest.approx(total, abs=1e-12)
    assert estimate == pytest.approx(np.sign(power) * np.sqrt(abs(power)))


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3, 4])
@pytest.mark.parametrize("gap", [-0.3, 0.0, 0.002, 0.05])
def test_the_expected_power_is_that_of_normal_draws(norm, gap):
    rng = np.random.default_rng(1)
    draws = np.abs(gap + 0.04 * rng.standard_normal(400_000)) ** norm
    exact = folded_normal_power(np.array([gap]), np.array([0.04**2]), norm)[0]
    assert exact == pytest.approx(draws.mean(), abs=5 * draws.std() / np.sqrt(len(draws)))


@pytest.mark.parametrize("norm", [1, 1.5, 3])
def test_without_noise_the_power_is_the_plain_one(norm):
    gap = np.array([-0.2, 0.0, 0.7])
    np.testing.assert_allclose(folded_normal_power(gap, np.zeros(3), norm), np.abs(gap) ** norm, atol=1e-15)


@pytest.mark.parametrize("norm", [1.5, 3, 4])
def test_the_expansion_for_small_noise_meets_the_series(norm):
    gap = np.array([0.2499, 0.2501])
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    exact = (np.abs(gap[:, None] + 0.01 * nodes) ** norm @ weights) / weights.sum()
    np.testing.assert_allclose(folded_normal_power(gap, np.full(2, 1e-4), norm), exact, rtol=1e-7)


def test_the_fourth_power_is_exactly_unbiased():
    gap, variance = np.array([-0.1, 0.03, 0.4]), np.array([1e-3, 1e-4, 2e-2])
    hermite = gap**4 - 6 * gap**2 * variance + 3 * variance**2
    np.testing.assert_allclose(debiased_power(gap, variance, 4), hermite, rtol=1e-9, atol=1e-12)


def test_the_general_formula_meets_the_closed_form_at_two():
    gap, variance = np.array([-0.1, 0.03, 0.4]), np.array([1e-3, 1e-4, 2e-2])
    np.testing.assert_allclose(debiased_power(gap, variance, 2), debiased_power(gap, variance, 2 + 1e-9), rtol=1e-6)


@pytest.mark.no_cover
@pytest.mark.parametrize("norm", [1, 2, 3])
def test_most_of_the_bias_is_gone_for_a_calibrated_model(norm):
    rng = np.random.default_rng(0)
    plain, debiased = [], []
    for _ in range(300):
        p = rng.random(400)
        y = rng.random(400) < p
        plain.append(cal.ece(y, p, norm=norm) ** norm)
        debiased.append(cal.debiased_ece(y, p, norm=norm).details["power"])
    assert abs(np.mean(debiased)) < (0.65 if norm == 1 else 0.1) * np.mean(plain)
    if norm == 2:  # exactly unbiased but for the spread of p within bins
        assert abs(np.mean(debiased)) < 3 * np.std(debiased) / np.sqrt(300) + 1e-4


def test_a_miscalibrated_model_keeps_its_error():
    rng = np.random.default_rng(5)
    p = rng.random(200_000)
    y = rng.random(200_000) < p**2
    assert cal.debiased_ece(y, p, bins=cal.EqualMass(100), norm=2) == pytest.approx(
        0.18257, abs=0.003
    )  # E(p - p^2)^2 = 1/30


def test_weights_count_through_their_effective_number():
    y, p = np.array([0, 1, 1, 0]), np.full(4, 0.5)
    estimate = cal.debiased_ece(cal.Binary(y, p, weight=[1, 1, 1, 3]), bins=cal.EqualMass(1), norm=2)
    effective = 36 / 12
    rate = 2 / 6
    assert estimate.details["power"] == pytest.approx((0.5 - rate) ** 2 - rate * (1 - rate) / (effective - 1))


def test_bins_of_one_row_add_nothing():
    assert cal.debiased_ece([0, 1, 1], [0.1, 0.5, 0.9], bins=cal.EqualMass(3)) == 0.0


def test_negative_values_are_kept_and_clip_on_request():
    estimate = cal.debiased_ece([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5], norm=2)
    assert estimate < 0
    assert estimate.clipped == 0


def test_there_is_no_infinite_norm():
    with pytest.raises(ValueError, match="use mce"):
        cal.debiased_ece([0, 1], [0.2, 0.3], norm=np.inf)


@pytest.mark.parametrize(
    "estimator",
    [
        cal.debiased_ece,
        partial(cal.debiased_ece, norm=2),
        partial(cal.debiased_ece, norm=3),
        Clipped(partial(cal.debiased_ece, bins=cal.EqualWidth(10), norm=2)),
    ],
    ids=name_of,
)
def test_debiased_many_samples_at_once_give_what_each_gives(estimator):
    assert_as_one_by_one(estimator)


def test_many_samples_have_no_infinite_norm_either():
    samples = SortedSamples.of(np.array([[0.2, 0.7]]), np.array([[0, 1]], dtype=np.int8))
    with pytest.raises(ValueError, match="use mce"):
        batched(partial(cal.debiased_ece, norm=np.inf))(samples)


sweep_scores = st.one_of(st.floats(0, 1), st.integers(0, 10).map(lambda k: k / 10))
sweep_rows = st.lists(st.tuples(sweep_scores, st.booleans()), min_size=2, max_size=40)


def by_definition(y, p, family):
    """Algorithm 1: raise b until the mean outcomes of some bins fall."""
    last = cal.ece(y, p, bins=family(1))
    for b in range(2, len(p) + 1):
        estimate = cal.ece(y, p, bins=family(b))
        heights = estimate.bins.filled().observed_mean
        if np.any(np.diff(heights) < 0):
            return last, b - 1
        last = estimate
    return last, len(p)


@given(sweep_rows, st.sampled_from([cal.EqualMass, cal.EqualWidth]))
def test_the_sweep_is_its_algorithm(rows, family):
    p, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    expected, bins = by_definition(y, p, family)
    swept = cal.sweep_ece(y, p, bins=family)
    exact = cal.sweep_ece(cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct()), bins=family)
    for estimate in (swept, exact):
        assert estimate == pytest.approx(expected, abs=1e-12)
        assert estimate.details["bins"] == bins
        assert np.all(np.diff(estimate.bins.filled().observed_mean) >= 0)


def test_a_row_of_weight_three_is_swept_as_three_rows():
    rng = np.random.default_rng(3)
    p, weight = rng.random(60), rng.integers(1, 4, 60)
    y = rng.random(60) < p**2
    weighted = cal.sweep_ece(cal.Binary(y, p, weight=weight), bins=cal.EqualWidth)
    repeated = cal.sweep_ece(np.repeat(y, weight), np.repeat(p, weight), bins=cal.EqualWidth)
    assert weighted == pytest.approx(repeated, abs=1e-12)
    assert weighted.details["bins"] == repeated.details["bins"]


def test_row_order_does_not_matter_with_many_ties():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(2000) < 0.5, 1.0, np.round(rng.random(2000), 2))
    y = (rng.random(2000) < p**2).astype(int)
    values = {float(cal.sweep_ece(y[order], p[order])) for order in (rng.permutation(2000) for _ in range(10))}
    assert max(values) - min(values) < 1e-12


def test_separable_outcomes_make_every_score_a_bin():
    p = np.linspace(0.01, 0.99, 50)
    y = p > 0.5
    swept = cal.sweep_ece(y, p)
    assert swept == pytest.approx(np.mean(np.abs(p - y)), abs=1e-12)
    assert len(swept.bins) == 50


@pytest.mark.no_cover
def test_the_paper_s_number_of_bins_at_two_hundred_rows():
    rng = np.random.default_rng(7)
    counts = []
    for _ in range(400):
        p = rng.random(200)
        counts.append(cal.sweep_ece(rng.random(200) < p, p).details["bins"])
    assert np.mean(counts) == pytest.approx(6.4, abs=3 * np.std(counts) / 20 + 0.05)


def test_the_grid_sweeps_as_the_rows_do():
    rng = np.random.default_rng(2)
    p = rng.beta(2.77, 0.048, 30_000)
    data = cal.Binary(rng.random(30_000) < 1 / (1 + np.exp(-1)) * p, p)
    grid = cal.sweep_ece(cal.BinTable.of(data, cal.table.HybridGrid()))
    assert grid == pytest.approx(cal.sweep_ece(data), abs=2e-4)


def test_only_a_family_of_binnings_can_be_swept():
    with pytest.raises(ValueError, match="EqualMass or EqualWidth"):
        cal.sweep_ece([0, 1], [0.1, 0.2], bins=cal.EqualMass(15))


@pytest.mark.no_cover
def test_cut_cells_whose_rows_are_all_alike_do_not_end_the_sweep():
    """Parts of cells carry rounding: bins of ones only must not seem to fall by a part in 10^16."""
    rng = np.random.default_rng(5)
    p = np.sort(1 - 10 ** rng.uniform(-14, 0, 200_000))
    y = rng.random(len(p)) < p
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid(2**10))
    assert cal.sweep_ece(table).details["bins"] == pytest.approx(cal.sweep_ece(y, p).details["bins"], abs=2)
    ones = cal.BinTable.of(cal.Binary(np.ones(1000), rng.random(1000)), cal.table.HybridGrid(64))
    assert cal.sweep_ece(ones).details["bins"] == 1000


@pytest.mark.parametrize("estimator", [cal.sweep_ece, partial(cal.sweep_ece, bins=cal.EqualWidth, norm=2)], ids=name_of)
def test_sweep_many_samples_at_once_give_what_each_gives(estimator):
    assert_as_one_by_one(estimator)


@pytest.mark.no_cover
@given(st.lists(st.lists(st.tuples(sweep_scores, st.booleans()), min_size=9, max_size=9), min_size=1, max_size=4))
def test_many_samples_are_swept_as_the_algorithm_says(samples):
    p, y = (np.array([[row[column] for row in rows] for rows in samples]) for column in (0, 1))
    both = SortedSamples.of(p.astype(float), y.astype(np.int8))
    for family in (cal.EqualMass, cal.EqualWidth):
        expected = [by_definition(outcome, score, family)[1] for outcome, score in zip(y.astype(float), p, strict=True)]
        assert largest_rising(both, family).tolist() == expected


@pytest.mark.parametrize("bins", [cal.EqualMass, cal.EqualWidth])
def test_the_number_of_bins_of_many_samples_is_that_of_each(bins):
    scores, outcomes = WORLDS["wide"].draw(np.random.default_rng(0), (20, 500))
    expected = [
        cal.sweep_ece(cal.Binary(y, p), bins=bins).details["bins"] for y, p in zip(outcomes, scores, strict=True)
    ]
    assert largest_rising(SortedSamples.of(scores, outcomes), bins).tolist() == expected


def test_many_samples_need_a_family_of_binnings_too():
    samples = SortedSamples.of(np.array([[0.2, 0.7]]), np.array([[0, 1]], dtype=np.int8))
    with pytest.raises(ValueError, match="must be the class"):
        batched(partial(cal.sweep_ece, bins=cal.EqualMass(5)))(samples)


def published_sweep(p, y, norm=2):
    """As the published code: the row of rank r is in bin floor(r b / n); the last b before the first fall."""
    order = np.argsort(p)
    p, y = p[order], y[order]
    for b in range(1, len(p) + 1):
        index = np.arange(len(p)) * b // len(p)
        heights = np.bincount(index, y) / np.bincount(index)
        if np.any(np.diff(heights) < 0):
            break
        gaps = np.bincount(index, p - y) / np.bincount(index)
        last = float(np.sum(np.bincount(index) * np.abs(gaps) ** norm) / len(p)) ** (1 / norm), b
    return last


@pytest.mark.parametrize("seed", range(8))
def test_ranks_rounded_up_give_the_published_sweep(seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(2.8, 0.3, 150 + 7 * seed)
    y = (rng.random(len(p)) < p**1.5).astype(int)
    value, bins = published_sweep(p, y)
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct())
    for found in (cal.sweep_ece(y, p, norm=2, rank="ceil"), cal.sweep_ece(table, norm=2, rank="ceil")):
        assert found == pytest.approx(value, rel=1e-12)
        assert found.details["bins"] == bins
    samples = SortedSamples.of(p[None], y[None].astype(np.int8))
    many = batched(partial(cal.sweep_ece, norm=2, rank="ceil"))(samples)
    np.testing.assert_allclose(many, [value], rtol=1e-12)


def test_ranks_belong_to_equal_mass():
    with pytest.raises(ValueError, match="EqualWidth has no ranks"):
        cal.sweep_ece([0, 1], [0.1, 0.2], bins=cal.EqualWidth, rank="ceil")
