"""What PositiveUnlabeled accepts and refuses, and the single-sample scenario."""

import numpy as np
import pytest

import calibrant as cal
from tests.pu.worlds import LESS, everybody


def censored(seed, n, frequency, world=LESS):
    rng = np.random.default_rng(seed)
    p, y = everybody(rng, n, world)
    return p, y & (rng.random(n) < frequency), y


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_a_prior_outside_the_open_unit_interval_is_refused(prior):
    with pytest.raises(cal.InvalidPredictions, match=r"prior must lie in \(0, 1\)"):
        cal.PositiveUnlabeled([0.5], [0.5], prior=prior)


def test_empty_sides_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="positive is empty"):
        cal.PositiveUnlabeled([], [0.5], prior=0.5)
    with pytest.raises(cal.InvalidPredictions, match="unlabeled is empty"):
        cal.PositiveUnlabeled([0.5], [], prior=0.5)


def test_the_share_of_positives_is_given_once():
    with pytest.raises(cal.InvalidPredictions, match="Give the prior"):
        cal.PositiveUnlabeled([0.5], [0.5])
    with pytest.raises(cal.InvalidPredictions, match="Give the prior"):
        cal.PositiveUnlabeled([0.5], [0.5], prior=0.5, label_frequency=0.5, scenario="single-sample")
    with pytest.raises(cal.InvalidPredictions, match="single-sample"):
        cal.PositiveUnlabeled([0.5], [0.5], label_frequency=0.5)
    with pytest.raises(cal.InvalidPredictions, match="scenario must be"):
        cal.PositiveUnlabeled([0.5], [0.5], prior=0.5, scenario="censoring")


def test_a_label_frequency_below_the_share_of_labelled_rows_is_refused():
    with pytest.raises(cal.InvalidPredictions, match="more than all rows"):
        cal.PositiveUnlabeled([0.5, 0.6], [0.5], label_frequency=0.5, scenario="single-sample")


def test_weights_must_leave_something_on_both_sides():
    with pytest.raises(cal.InvalidPredictions, match="all zero"):
        cal.PositiveUnlabeled([0.5], [0.5, 0.6], prior=0.5, weight=[0, 1, 1])


def test_labels_may_be_marked_in_any_usual_way():
    p, s, _ = censored(1, 200, 0.5)
    expected = cal.ece(cal.PositiveUnlabeled(p[s], p[~s], prior=0.5))
    for marks in (s, s.astype(int), np.where(s, 1, -1), s.tolist()):
        data = cal.PositiveUnlabeled.from_labels(marks, p, prior=0.5, scenario="case-control")
        assert cal.ece(data) == expected
    with pytest.raises(cal.InvalidPredictions, match="marks 0 of 3"):
        cal.PositiveUnlabeled.from_labels([0, 0, 0], [0.1, 0.2, 0.3], prior=0.5, scenario="case-control")
    with pytest.raises(cal.InvalidPredictions, match="must be 1"):
        cal.PositiveUnlabeled.from_labels([0, 1, 2], [0.1, 0.2, 0.3], prior=0.5, scenario="case-control")


def test_single_sample_pu_ece_is_that_of_inverse_probability_labels():
    p, s, _ = censored(2, 4000, 0.3)
    data = cal.PositiveUnlabeled.from_labels(s, p, label_frequency=0.3, scenario="single-sample")
    which = np.searchsorted(np.linspace(0, 1, 21)[1:-1], p, side="left")
    expected = np.abs(np.bincount(which, s / 0.3 - p, 20)).sum() / len(p)
    assert cal.ece(data, bins=cal.EqualWidth(20)) == pytest.approx(expected, abs=1e-14)


def test_single_sample_with_the_prior_is_the_same_estimate():
    p, s, _ = censored(3, 4000, 0.3)
    by_frequency = cal.PositiveUnlabeled.from_labels(s, p, label_frequency=0.3, scenario="single-sample")
    by_prior = cal.PositiveUnlabeled.from_labels(s, p, prior=by_frequency.prior, scenario="single-sample")
    assert cal.ece(by_prior) == pytest.approx(cal.ece(by_frequency), abs=1e-14)


@pytest.mark.parametrize(("frequency", "expected"), [(0.1, 0.0870), (0.3, 0.0788), (0.7, 0.0756)])
def test_single_sample_estimates_are_near_the_recorded_ones(frequency, expected):
    values = []
    for seed in range(8):
        p, s, _ = censored(seed, 20_000, frequency)
        data = cal.PositiveUnlabeled.from_labels(s, p, label_frequency=frequency, scenario="single-sample")
        values.append(cal.ece(data, bins=cal.EqualWidth(20)))
    assert np.mean(values) == pytest.approx(expected, abs=0.006)


def test_tables_of_single_samples_with_known_label_frequency_add_up():
    p, s, _ = censored(4, 4000, 0.3)
    tables = []
    for part in (slice(None), slice(0, 1500), slice(1500, None)):
        data = cal.PositiveUnlabeled.from_labels(s[part], p[part], label_frequency=0.3, scenario="single-sample")
        tables.append(cal.BinTable.of(data, cal.EqualWidth(10)))
    whole, first, second = tables
    assert cal.ece(first + second) == pytest.approx(cal.ece(whole), abs=1e-14)
    assert cal.pu.Gaps.of(first + second).prior == pytest.approx(cal.pu.Gaps.of(whole).prior)


def test_rows_of_positive_unlabeled_data_are_not_handed_out_as_pairs():
    with pytest.raises(cal.InvalidPredictions, match="no outcome each"):
        cal.PositiveUnlabeled([0.5], [0.5], prior=0.5).rows()
