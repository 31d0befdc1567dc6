"""The ridged matrix on log probabilities: its optimum and its precision."""

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant.numerics.matrix_residual import ResidualMatrix
from calibrant.numerics.special import log_softmax


def confused(rng, n=3000):
    """Logits of three classes; what is seen as the first is often the second."""
    z = log_softmax(rng.normal(size=(n, 3)))
    confusion = np.array([[-0.5, 0.9, 0.0], [0.0, 0.0, 0.0], [0.3, 0.0, 0.0]])
    labels = (z + (z - z.mean(axis=0)) @ confusion + rng.gumbel(size=z.shape)).argmax(axis=1)
    return z.astype(np.float32), labels, confusion


def standardised(z):
    centred = z - z.mean(axis=0)
    scale = np.sqrt(np.mean(centred**2))
    return centred / scale, scale


def ones(n):
    return np.ones(n, np.float32)


def test_the_matrix_minimises_the_penalised_loss():
    rng = np.random.default_rng(0)
    z, labels, _ = confused(rng, 300)
    weight = rng.uniform(0.5, 1.5, 300).astype(np.float32)
    inputs, _ = standardised(z)
    residual = ResidualMatrix(inputs, labels, weight)
    contribution = residual.fit(z, updates=4)
    precision = residual.precision

    def loss(matrix):
        logs = log_softmax(z + inputs @ matrix.reshape(3, 3))
        return -weight @ logs[np.arange(300), labels] + precision / 2 * matrix @ matrix

    residual.fit(z, updates=1)
    best = minimize(loss, np.zeros(9)).fun
    assert loss(residual.matrix.ravel()) == pytest.approx(best, abs=0.05)
    np.testing.assert_allclose(contribution, inputs @ residual.matrix, atol=0.2)


def test_a_confusion_is_found_and_calibrated_rows_get_next_to_nothing():
    rng = np.random.default_rng(1)
    z, labels, confusion = confused(rng)
    inputs, scale = standardised(z)
    found = ResidualMatrix(inputs, labels, ones(3000))
    found.fit(z, updates=4)
    per_log = found.matrix / scale
    # logits are known up to a constant per row
    gap = (per_log - confusion) - (per_log - confusion).mean(axis=1, keepdims=True)
    z_gap = (z - z.mean(axis=0)) @ gap
    assert np.sqrt(np.mean(z_gap**2)) < 0.15
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    nothing = ResidualMatrix(inputs, labels, ones(3000))
    assert np.abs(nothing.fit(z, updates=4)).max() < 0.15
    assert nothing.precision > 5 * found.precision
