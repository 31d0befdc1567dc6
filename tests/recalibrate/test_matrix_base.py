"""What affine maps share: normalised logarithms, the fit, and a warning where it gives up."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning

from calibrant import recalibrate as rc
from calibrant.numerics import truncated_newton
from calibrant.numerics.special import LOG_FLOOR
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.matrix_base import RIDGE, normalised_logs


def world(n=300, k=3, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    return z, (0.5 * z + rng.gumbel(size=z.shape)).argmax(axis=1)


def test_logits_and_their_softmax_have_the_same_logarithms():
    z, _ = world()
    logs = normalised_logs(Scores.of(z + 7, input="logits"))
    np.testing.assert_allclose(logs, log_softmax(z, axis=1), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(logs, normalised_logs(Scores.of(softmax(z, axis=1), input="probabilities")), atol=1e-12)


def test_impossible_classes_are_floored():
    logs = normalised_logs(Scores.of([[1e5, 0.0, -1e5]], input="logits"))
    np.testing.assert_allclose(logs, [[0, LOG_FLOOR, LOG_FLOOR]])
    np.testing.assert_allclose(normalised_logs(Scores.of([[1.0, 0.0]], input="probabilities")), [[0, LOG_FLOOR]])


@pytest.mark.parametrize("kind", [rc.MatrixScaling, rc.VectorScaling])
def test_prediction_is_the_softmax_of_the_affine_map(kind):
    z, y = world()
    fitted = kind(input="logits").fit(z, y)
    matrix = fitted.matrix_ if kind is rc.MatrixScaling else np.diag(fitted.scale_)
    logs = log_softmax(z, axis=1)
    expected = softmax(logs @ matrix.T + fitted.intercept_, axis=1)
    np.testing.assert_allclose(fitted.predict_proba(z), expected, rtol=1e-9)
    away = ((matrix - np.eye(3)) ** 2).sum() + (fitted.intercept_**2).sum()
    loss = -np.log(expected[np.arange(len(y)), y]).mean() + RIDGE * away
    assert fitted.objective_ == pytest.approx(loss, rel=1e-10)


def test_the_columns_of_a_map_can_be_permuted():
    z, y = world()
    order = np.array([2, 0, 1])
    plain = rc.MatrixScaling(input="logits").fit(z, y).predict_proba(z)
    turned = rc.MatrixScaling(input="logits").fit(z[:, order], np.argsort(order)[y]).predict_proba(z[:, order])
    np.testing.assert_allclose(turned, plain[:, order], atol=1e-6)


def test_a_fit_that_stops_early_says_what_else_to_try(monkeypatch):
    monkeypatch.setattr(truncated_newton, "_PRODUCTS", 1)
    z, y = world()
    with pytest.warns(ConvergenceWarning, match="12 parameters are many for 300 rows; consider Structured"):
        rc.MatrixScaling(input="logits").fit(z, y)
