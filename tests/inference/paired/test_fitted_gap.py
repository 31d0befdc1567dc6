"""Fitted gaps of spreads and positive-unlabeled predictions, with what each row adds to them."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.paired.fitted_gap import FittedGap
from calibrant.results import Target
from tests.inference.spreads import forecasts
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
