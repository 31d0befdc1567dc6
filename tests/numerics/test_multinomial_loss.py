"""The penalised multinomial log loss: the formula written out, and its derivatives by differences."""

import numpy as np
import pytest

from calibrant.numerics import multinomial_loss
from calibrant.numerics.multinomial_loss import MatrixLogLoss, Penalty, VectorLogLoss
from calibrant.numerics.special import log_softmax

PENALTY = Penalty(intercept=0.3, diagonal=0.7, off_diagonal=1.1)


def problem(kind, *, weighted, n=40, k=3, seed=0):
    rng = np.random.default_rng(seed)
    z = log_softmax(rng.normal(size=(n, k)))
    codes = rng.integers(0, k, n)
    weight = rng.uniform(0.5, 3, n) if weighted else None
    return kind(np.ascontiguousarray(z.T), codes, weight, PENALTY), z, codes, weight


def objective(kind, theta, z, codes, weight):
    k = z.shape[1]
    if kind is MatrixLogLoss:
        theta = theta.reshape(k, k + 1)
        matrix, intercept = theta[:, :k], theta[:, k]
    else:
        matrix, intercept = np.diag(theta[:k]), theta[k:]
    logs = log_softmax(z + z @ matrix.T + intercept)[np.arange(len(z)), codes]
    diagonal = np.diag(matrix)
    off = (matrix**2).sum() - diagonal @ diagonal
    penalty = 0.3 * intercept @ intercept + 0.7 * diagonal @ diagonal + 1.1 * off
    return -np.average(logs, weights=weight) + penalty


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_value_gradient_and_hessian(kind, weighted):
    loss, z, codes, weight = problem(kind, weighted=weighted)
    rng = np.random.default_rng(1)
    theta = rng.normal(size=loss.cost.size) * 0.3
    value, gradient = loss.evaluate(theta)
    assert value == pytest.approx(objective(kind, theta, z, codes, weight), rel=1e-12)
    step = 1e-5
    for j, unit in enumerate(np.eye(len(theta))):
        up, down = (objective(kind, theta + sign * step * unit, z, codes, weight) for sign in (1, -1))
        assert gradient[j] == pytest.approx((up - down) / (2 * step), abs=1e-8)
    direction = rng.normal(size=len(theta))
    loss.evaluate(theta)
    product = loss.hessian_times(direction)
    up, down = (loss.evaluate(theta + sign * step * direction)[1] for sign in (1, -1))
    np.testing.assert_allclose(product, (up - down) / (2 * step), atol=1e-7)


@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_blocks_of_rows_add_up(kind, monkeypatch):
    whole, *_ = problem(kind, weighted=True, n=300)
    monkeypatch.setattr(multinomial_loss, "_BLOCK", 1)
    parts, *_ = problem(kind, weighted=True, n=300)
    assert len(parts._blocks) > 1
    theta = np.random.default_rng(2).normal(size=whole.cost.size)
    for first, second in zip(whole.evaluate(theta), parts.evaluate(theta), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-12)
    np.testing.assert_allclose(whole.hessian_times(theta), parts.hessian_times(theta), rtol=1e-10)


@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_the_dense_preconditioner_is_the_inverse_hessian(kind):
    loss, *_ = problem(kind, weighted=True)
    loss.evaluate(np.random.default_rng(3).normal(size=loss.cost.size) * 0.3)
    solve = loss.preconditioner()
    gradient = np.random.default_rng(4).normal(size=loss.cost.size)
    np.testing.assert_allclose(loss.hessian_times(solve(gradient)), gradient, atol=1e-6)


@pytest.mark.parametrize("blocks", [200, 2])
@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_structured_preconditioners_are_positive_and_near(kind, blocks, monkeypatch):
    monkeypatch.setattr(multinomial_loss, "_DENSE", 1)
    monkeypatch.setattr(multinomial_loss, "_BLOCKS", blocks)
    loss, *_ = problem(kind, weighted=False, n=400, k=4)
    loss.evaluate(loss.start)
    solve = loss.preconditioner()
    matrix = np.stack([solve(unit) for unit in np.eye(loss.cost.size)])
    hessian = np.stack([loss.hessian_times(unit) for unit in np.eye(loss.cost.size)])
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-10)
    values = np.linalg.eigvals(matrix @ hessian).real
    assert values.min() > 0.1
    assert values.max() < 5


def test_huge_logits_do_not_overflow():
    z = np.array([[-1000.0, 0.0], [0.0, -1000.0], [-500.0, -500.0]])
    value, gradient = VectorLogLoss(z, np.array([0, 1]), None, PENALTY).evaluate(np.zeros(6))
    assert value == pytest.approx(1000.0)
    assert np.isfinite(gradient).all()
