"""Fitted gaps per class, and their noise from labels that are drawn once."""

import numpy as np
import pytest

from calibrant.inference.several_classes.classwise_fit import CELLS, ClasswiseFit
from tests.inference.class_worlds import sample


@pytest.fixture
def fit():
    data, _ = sample(400, 4, temperature=1.5, seed=2)
    return ClasswiseFit.of(data.y_prob, data.y_true)


def test_bases_are_orthonormal_and_reproduce_straight_lines(fit):
    for k, one in enumerate(fit.classes):
        for basis in (one.fit, one.smooth, one.straight):
            assert np.allclose((basis.T * one.share) @ basis, np.eye(basis.shape[1]))
        assert one.straight.shape[1] <= one.smooth.shape[1] < one.fit.shape[1]
        assert one.share.sum() == pytest.approx(1)
        assert len(np.unique(fit.cell[:, k])) == (one.share > 0).sum()


def test_sums_and_outcomes_are_those_of_the_rows(fit):
    residual = fit.sums(fit.probability) - fit.outcomes(fit.labels)
    assert residual.shape == (4, CELLS)
    written_out = (fit.probability - np.eye(4)[fit.labels]).mean(axis=0)
    assert np.allclose(residual.sum(axis=1), written_out)
    fitted = fit.fitted(residual, "fit")
    assert np.allclose(fit.mean_squares(fitted), [(c**2).sum() for c in fit.coordinates(residual)])
    assert np.allclose(fit.of_rows(fitted)[:, 2], fitted[2][fit.cell[:, 2] - 2 * CELLS])
    assert np.allclose(fit.means(np.ones((400, 4)))[0], fit.classes[0].share > 0)


def test_noise_has_mean_zero_and_is_dependent_between_classes(fit):
    noise = fit.noise(fit.probability, 3000, np.random.default_rng(0))
    for one in noise:
        assert np.abs(one.mean(axis=0)).max() < 5 * one.std(axis=0).max() / np.sqrt(3000)
    whole = [some @ (one.fit.T @ one.share) for some, one in zip(noise, fit.classes, strict=True)]
    assert np.allclose(np.sum(whole, axis=0), 0, atol=1e-9)  # one class gains what the others lose


def test_a_constant_probability_is_one_cell():
    fit = ClasswiseFit.of(np.full((20, 2), 0.5), np.arange(20) % 2)
    assert fit.classes[0].fit.shape[1] == 1
    assert fit.fitted(fit.sums(fit.probability) - fit.outcomes(fit.labels), "fit") == pytest.approx(0)
