"""Binned errors: the formula written out, foreign references, invariants, and behaviour in known worlds."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

import calibrant as cal
from calibrant.results.target import name_of
from tests.estimators.batches import assert_as_one_by_one

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
