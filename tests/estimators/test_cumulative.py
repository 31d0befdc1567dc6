"""The Kolmogorov-Smirnov error, and binary estimators averaged over classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal


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
