"""Predicted spreads and positive-unlabeled models, compared on the same rows by their fitted gaps."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.comparison_fits import FittedGap
from calibrant.results import Target
from tests.inference.spreads import forecasts
from tests.inference.worlds import models
from tests.pu.worlds import CALIBRATED, drawn

TRUE, SPREAD = Target("true error", 1), Target("relative spread error", 1)


def single_sample(rng, n):
    p = rng.random(n)
    labelled = rng.random(n) < 0.3 * p
    return cal.PositiveUnlabeled.from_labels(labelled, p, scenario="single-sample", label_frequency=0.3)


SAMPLES = {
    "spread": (lambda rng: forecasts(rng, 1500), SPREAD),
    "two samples": (lambda rng: drawn(rng, 300, 1500, CALIBRATED), TRUE),
    "single sample": (lambda rng: single_sample(rng, 3000), TRUE),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("task", SAMPLES)
def test_the_noise_of_the_influence_is_that_of_repeated_samples(task):
    """Calibrated: the squared length of the coordinates is noise alone."""
    sample, target = SAMPLES[task]
    rng = np.random.default_rng(0)
    fits = [FittedGap.of(sample(rng), target) for _ in range(60)]
    seen = np.array([(fit.coordinates**2).sum() for fit in fits])
    expected = np.mean([fit.noise for fit in fits])
    assert expected == pytest.approx(seen.mean(), abs=4 * seen.std() / np.sqrt(60))
    assert fits[0].influence.sum(axis=0) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("task", SAMPLES)
def test_shapes_have_the_size_of_the_fit_and_functions_are_orthonormal(task):
    sample, target = SAMPLES[task]
    fit = FittedGap.of(sample(np.random.default_rng(1)), target)
    size = np.sqrt((fit.coordinates**2).sum())
    assert [np.sqrt((one**2).sum()) for one in fit.shapes()] == pytest.approx([size, size])
    np.testing.assert_allclose(fit.half.T @ (fit.half * fit.share[:, None]), np.eye(fit.half.shape[1]), atol=1e-8)


def test_copies_in_clusters_have_the_noise_of_the_rows():
    spread, rows = forecasts(np.random.default_rng(2), 400), np.repeat(np.arange(400), 3)
    copies = cal.Gaussian(spread.y_true[rows], spread.mean[rows], spread.std[rows], group=rows)
    assert FittedGap.of(copies, SPREAD).noise > 0.7 * FittedGap.of(spread, SPREAD).noise


def test_several_classes_are_refused():
    with pytest.raises(TypeError, match="positive-unlabeled predictions and predicted spreads"):
        FittedGap.of(cal.Multiclass([0, 1, 2], np.full((3, 3), 1 / 3)), TRUE)


def two_spreads(seed, n=600, factor=1.0):
    """Two forecasts of the same outcomes, of which the second gives its spread times a factor."""
    rng = np.random.default_rng(seed)
    first = forecasts(rng, n)
    return first, cal.Gaussian(first.y_true, first.mean, first.std * factor)


@pytest.mark.no_cover
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
