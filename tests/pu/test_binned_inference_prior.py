"""Estimates of the class prior.

The guarantees: Theorems 1 and 2, the sharper bound, and the exact band of priors.
"""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import calibrant as cal
from calibrant import pu
from tests.pu.worlds import LESS, TRUE_ERROR, drawn


def draw(rng, n_positive, n_unlabeled, prior, centre):
    y = rng.random(n_unlabeled) < prior
    return rng.normal(centre, 1, n_positive), rng.normal(0, 1, n_unlabeled) + centre * (2 * y - 1)


@pytest.mark.parametrize(("prior", "expected"), [(0.1, 0.148), (0.3, 0.337), (0.5, 0.524), (0.7, 0.716)])
def test_best_bin_is_near_its_recorded_means_and_its_interval_covers(prior, expected):
    rng = np.random.default_rng(0)
    estimates = [pu.estimate_prior(*draw(rng, 1000, 10_000, prior, 1)) for _ in range(20)]
    assert np.mean(estimates) == pytest.approx(expected, abs=0.015)
    assert all(prior in estimate.interval for estimate in estimates)


def test_best_bin_is_the_formula_at_every_threshold():
    rng = np.random.default_rng(1)
    positive, unlabeled = (np.round(values, 1) for values in draw(rng, 30, 80, 0.4, 1))
    size = np.sqrt(np.log(4 / 0.1) / 2)
    best = (np.inf, None)
    for cut in unlabeled:
        q_u, q_p = np.mean(unlabeled >= cut), np.mean(positive >= cut)
        if q_p > 0:
            upper = q_u / q_p + 1.01 / q_p * size * (80**-0.5 + 30**-0.5)
            best = min(best, (upper, q_u / q_p))
    assert pu.estimate_prior(positive, unlabeled) == pytest.approx(min(best[1], 1.0))


def test_elkan_noto_finds_the_prior_of_classes_that_do_not_overlap():
    rng = np.random.default_rng(2)
    n_positive, n_unlabeled, prior = 1000, 10_000, 0.3
    positive, unlabeled = draw(rng, n_positive, n_unlabeled, prior, 6)

    def labelled(x):  # P(s = 1 | x) in the pooled sample
        posterior = expit(12 * x + np.log(prior / (1 - prior)))
        return n_positive * posterior / (n_positive * posterior + n_unlabeled * prior)

    estimate = pu.estimate_prior(labelled(positive), labelled(unlabeled), method=pu.ElkanNoto())
    assert estimate == pytest.approx(prior, abs=0.01)
    frequency = 0.4
    single = pu.estimate_prior(
        np.full(120, frequency), np.full(880, 0.1), method=pu.ElkanNoto(scenario="single-sample")
    )
    assert single == pytest.approx(0.12 / frequency)
    with pytest.raises(cal.InvalidPredictions, match=r"\[0, 1\]"):
        pu.estimate_prior(positive, unlabeled, method=pu.ElkanNoto())


def test_the_estimate_feeds_the_band():
    rng = np.random.default_rng(3)
    positive, unlabeled = draw(rng, 1000, 10_000, 0.5, 1)
    prior = pu.estimate_prior(positive, unlabeled)
    data = cal.PositiveUnlabeled(expit(2 * positive), expit(2 * unlabeled), prior=float(prior))
    band = pu.prior_band(data, prior.interval.low, prior.interval.high)
    assert band.exact.low <= cal.ece(data) <= band.exact.high


def test_empty_samples_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="positive is empty"):
        pu.estimate_prior([], [0.1])


LIPSCHITZ = 1.522  # of the less calibrated world
scores = st.lists(st.integers(0, 20).map(lambda k: k / 20), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("n", "width", "mass", "likely", "best"),
    [(100, 0.545, 0.837, 0.595, 0.436), (1000, 0.253, 0.378, 0.265, 0.202), (10_000, 0.120, 0.174, 0.123, 0.094)],
)
def test_theorem_1_has_its_recorded_values(n, width, mass, likely, best):
    sizes = {"prior": 0.5, "n_positive": n, "n_unlabeled": 10 * n, "lipschitz": LIPSCHITZ}
    assert pu.bias_bound(**sizes) == pytest.approx(width, abs=6e-4)
    assert pu.bias_bound(**sizes, bins=cal.pu.PaperBins(cal.EqualMass)) == pytest.approx(mass, abs=6e-4)
    assert pu.bias_bound(**sizes, delta=0.05) == pytest.approx(likely, abs=6e-4)
    assert pu.bias_bound(**sizes, bins=cal.pu.BoundBins(LIPSCHITZ)) == pytest.approx(best, abs=6e-4)


def test_theorem_1_is_its_formula():
    v = 0.09 / 50 + 1 / 400
    expected = 3 / 8 + math.sqrt(2 * v * (8 * math.log(2) + math.log(20)))
    sizes = {"prior": 0.3, "n_positive": 50, "n_unlabeled": 400, "lipschitz": 2.0, "delta": 0.05}
    assert pu.bias_bound(**sizes, bins=cal.EqualWidth(8)) == pytest.approx(expected)
    m, c = 392, 8 * math.log(2) + math.log(20)
    expected = 3 / 8 + 7 * 8 / m + math.sqrt(2 * c) * (3 / math.sqrt(m) + math.sqrt(0.09 / 50 + 1 / m))
    assert pu.bias_bound(**sizes, bins=cal.EqualMass(8)) == pytest.approx(expected)


def test_either_sample_may_be_infinite():
    some = pu.bias_bound(prior=0.5, n_positive=math.inf, n_unlabeled=1000, bins=cal.EqualWidth(10))
    assert some == pytest.approx(0.2 + math.sqrt(2 * 10 * math.log(2) / 1000))
    for bins in (cal.pu.PaperBins(), cal.pu.PaperBins(cal.EqualMass), cal.pu.BoundBins(1, cal.EqualMass)):
        assert 0 < pu.bias_bound(prior=0.5, n_positive=1000, n_unlabeled=math.inf, bins=bins) < 1
    both = pu.bias_bound(prior=0.5, n_positive=math.inf, n_unlabeled=math.inf, bins=cal.EqualWidth(100))
    assert both == pytest.approx(0.02)
    with pytest.raises(ValueError, match="must be given"):
        pu.bias_bound(prior=0.5, n_positive=math.inf, n_unlabeled=math.inf)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"prior": 1.0}, "prior must lie"),
        ({"n_positive": 0}, "n_positive must be at least 1"),
        ({"delta": 2.0}, "delta must lie"),
        ({"lipschitz": -1.0}, "lipschitz"),
        ({"bins": cal.EqualMass(600)}, "two unlabeled rows per"),
        ({"bins": 1.5}, "bins must be"),
        ({"bins": cal.Edges([0, 0.5, 1])}, "bins must be"),
    ],
)
def test_bad_arguments_of_the_bound_are_refused(change, match):
    sizes = {"prior": 0.5, "n_positive": 100, "n_unlabeled": 1000, **change}
    with pytest.raises((ValueError, TypeError), match=match):
        pu.bias_bound(**sizes)


def test_both_bounds_hold_in_simulation_and_the_sharper_is_about_half():
    rng = np.random.default_rng(0)
    for n in (100, 1000):
        draws = [drawn(rng, n, 10 * n, LESS) for _ in range(40)]
        errors = np.array([abs(cal.ece(data, bins=cal.pu.PaperBins()) - TRUE_ERROR[LESS]) for data in draws])
        sizes = {"prior": 0.5, "n_positive": n, "n_unlabeled": 10 * n, "lipschitz": LIPSCHITZ}
        sharp = np.mean([pu.sharp_bias_bound(data, lipschitz=LIPSCHITZ) for data in draws])
        assert errors.mean() < sharp < 0.6 * pu.bias_bound(**sizes)
        assert errors.max() < pu.bias_bound(**sizes, delta=0.05)
        likely = [pu.sharp_bias_bound(data, lipschitz=LIPSCHITZ, delta=0.05) for data in draws]
        assert np.mean(errors > likely) <= 0.05


def quiet_band(data, low, high, bins):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pu.prior_band(data, low, high, bins=bins)


@pytest.mark.no_cover
@settings(max_examples=100, deadline=None)
@given(scores, scores, st.floats(0.05, 0.95), st.floats(0, 0.95), st.integers(1, 9))
def test_theorem_2_holds_on_every_input(positive, unlabeled, prior, other, n):
    bins = cal.EqualWidth(n)
    data = cal.PositiveUnlabeled(positive, unlabeled, prior=prior)
    low, high = min(prior, other), max(prior, other)
    band = quiet_band(data, low, high, bins)
    assert band.theorem.low - 1e-12 <= band.exact.low <= band.exact.high <= band.theorem.high + 1e-12
    assert band.minimum <= band.exact.low + 1e-12
    for between in np.linspace(low, high, 7)[1:-1]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = cal.ece(cal.PositiveUnlabeled(positive, unlabeled, prior=max(between, 1e-9)), bins=bins)
        assert band.exact.low - 1e-9 <= value <= band.exact.high + 1e-9
        assert abs(value - band.estimate) <= abs(between - prior) + 1e-9


def test_the_band_has_its_recorded_ends():
    rng = np.random.default_rng(0)
    bands = [pu.prior_band(drawn(rng, 1000, 10_000, LESS), 0.45, 0.55, bins=cal.EqualWidth(15)) for _ in range(20)]
    assert np.mean([band.exact.low for band in bands]) == pytest.approx(0.055, abs=0.005)
    assert np.mean([band.exact.high for band in bands]) == pytest.approx(0.126, abs=0.005)
    assert np.mean([band.minimising_prior for band in bands]) == pytest.approx(0.427, abs=0.01)
    assert np.mean([band.minimum for band in bands]) == pytest.approx(0.051, abs=0.004)


def test_the_band_refuses_priors_in_disorder():
    data = cal.PositiveUnlabeled([0.5], [0.5], prior=0.5)
    with pytest.raises(ValueError, match="low <= high"):
        pu.prior_band(data, 0.6, 0.4)
