"""Errors of predicted spreads and of positive-unlabeled models, compared on the same rows."""

import numpy as np
import pytest

import calibrant as cal
from tests.inference.spreads import forecasts
from tests.inference.worlds import models


def two_spreads(seed, n=600, factor=1.0):
    """Two forecasts of the same outcomes, of which the second gives its spread times a factor."""
    rng = np.random.default_rng(seed)
    first = forecasts(rng, n)
    return first, cal.Gaussian(first.y_true, first.mean, first.std * factor)


def test_equal_spreads_are_seldom_called_different():
    alarms = []
    for k in range(60):
        rng = np.random.default_rng([5, k])
        std = np.exp(0.5 * rng.standard_normal((2, 400)))
        parts = rng.standard_normal((2, 400)) * std  # each model knows one part of the error and its spread
        y = parts.sum(axis=0)
        pair = [cal.Gaussian(y, parts[j], 1.2 * std[1 - j]) for j in (0, 1)]
        alarms.append(cal.compare(cal.ence, *pair).p_value <= 0.05)
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


def test_a_worse_spread_is_found_and_the_models_can_be_exchanged():
    good, bad = two_spreads(1, factor=0.7)
    found, back = cal.compare(cal.ence, bad, good), cal.compare(cal.ence, good, bad)
    assert "PairedFits" in found.interval.method
    assert found.interval.low > 0.2
    assert found.p_value < 1e-6
    assert found.difference == pytest.approx(-back.difference, abs=1e-12)


def test_positive_unlabeled_models_are_compared_by_their_true_errors():
    rng = np.random.default_rng(1)
    p = rng.random(6000)
    y = rng.random(6000) < p
    labelled = y & (rng.random(6000) < 0.4)
    honest, wrong = (
        cal.PositiveUnlabeled.from_labels(labelled, q, scenario="single-sample", label_frequency=0.4) for q in (p, p**3)
    )
    found = cal.compare(cal.ece, wrong, honest)
    assert found.interval.low <= 0.25 <= found.interval.high  # E(p - p^3)
    assert found.p_value < 1e-3


def test_other_errors_and_predictions_are_refused():
    good, bad = two_spreads(2, n=100)
    with pytest.raises(TypeError, match="use Bootstrap"):
        cal.compare(cal.crps, good, bad, method=cal.inference.PairedFits())
    with pytest.raises(TypeError, match="use Bootstrap"):
        cal.compare(cal.ece, *models(100), method=cal.inference.PairedFits())
    with pytest.raises(ValueError, match="whole number"):
        cal.inference.PairedFits(draws=1)
