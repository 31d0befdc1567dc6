"""Stacks of penalised logistic fits: against single fits by a general optimiser, and against refits."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from calibrant.numerics.logistic.stacked import log_linear_fits, logistic_fits, product, unfitted


def test_batched_fits_equal_single_fits_by_a_general_optimiser():
    rng = np.random.default_rng(0)
    m, p = 30, 4
    basis, offset = rng.normal(size=(m, p)), rng.normal(size=m)
    positive, negative = rng.integers(0, 9, (3, m)).astype(float), rng.integers(0, 9, (3, m)).astype(float)
    precision = np.array([[1.0, 2.0, 3.0, 4.0], [0.1, 0.1, 0.1, 0.1]])
    fits = logistic_fits(basis, offset, positive, negative, precision)
    for d in range(3):
        for j in range(2):

            def loss(b, d=d, j=j):
                eta = offset + basis @ b
                return (positive[d] + negative[d]) @ np.logaddexp(0, eta) - positive[d] @ eta + precision[j] @ b**2 / 2

            best = minimize(loss, np.zeros(p), method="BFGS")
            assert fits.eta[d, j] == pytest.approx(offset + basis @ best.x, abs=0.02)
            mean = expit(fits.eta[d, j])
            hessian = (basis.T * ((positive[d] + negative[d]) * mean * (1 - mean))) @ basis + np.diag(precision[j])
            variance = np.einsum("mp,pq,mq->m", basis, np.linalg.inv(hessian), basis)
            assert fits.variance[d, j] == pytest.approx(variance)
            inverse = np.linalg.inv(hessian)
            moved = basis @ inverse @ (hessian - np.diag(precision[j])) @ inverse
            sandwich = np.einsum("mp,mp->m", moved, basis)
            assert fits.sampling_variance[d, j] == pytest.approx(sandwich)
            evidence = -loss(best.x) + np.log(precision[j]).sum() / 2 - np.linalg.slogdet(hessian)[1] / 2
            assert fits.evidence[d, j] == pytest.approx(evidence, abs=0.01)


def test_the_leave_one_out_likelihood_is_that_of_refits():
    rng = np.random.default_rng(1)
    m = 40
    basis, offset = np.column_stack([np.ones(m), np.linspace(-1, 1, m)]), np.zeros(m)
    y = (rng.random(m) < 0.4).astype(float)[None]
    precision = np.ones((1, 2))
    quick = logistic_fits(basis, offset, y, 1 - y, precision).held_out[0, 0]
    slow = 0.0
    for i in range(m):
        keep = (np.arange(m) != i).astype(float)
        eta = logistic_fits(basis, offset, y * keep, (1 - y) * keep, precision).eta[0, 0, i]
        slow -= np.logaddexp(0, -eta if y[0, i] else eta)
    assert quick == pytest.approx(slow, abs=0.02)


def test_where_newton_begins_does_not_matter():
    rng = np.random.default_rng(2)
    basis, offset = rng.normal(size=(20, 3)), 4 * rng.normal(size=20)
    positive, negative = rng.integers(0, 50, (2, 2, 20)).astype(float)
    precision = np.array([[1.0, 1.0, 1.0]])
    plain = logistic_fits(basis, offset, positive, negative, precision)
    moved = logistic_fits(basis, offset, positive, negative, precision, start=np.full((2, 2), 3.0))
    np.testing.assert_allclose(moved.eta, plain.eta, atol=0.03)
    np.testing.assert_allclose(moved.evidence, plain.evidence, atol=0.01)


def test_a_strong_penalty_leaves_the_offset():
    rng = np.random.default_rng(3)
    basis, offset = rng.normal(size=(20, 3)), rng.normal(size=20)
    positive, negative = rng.integers(0, 9, (2, 1, 20)).astype(float)
    fits = logistic_fits(basis, offset, positive, negative, np.full((1, 3), 1e9))
    none = unfitted(offset, positive, negative)
    np.testing.assert_allclose(fits.eta, none.eta, atol=1e-5)
    np.testing.assert_allclose(fits.held_out, none.held_out, atol=1e-3)
    likelihood = positive[0] @ np.log(expit(offset)) + negative[0] @ np.log(expit(-offset))
    assert none.evidence[0, 0] == pytest.approx(likelihood)
    assert not none.variance.any()


@pytest.mark.parametrize("penalties", [1, 4])
def test_data_sets_with_designs_of_their_own_are_fitted_as_if_alone(penalties):
    rng = np.random.default_rng(4)
    bases, offsets = rng.normal(size=(3, 25, 3)), 2 * rng.normal(size=(3, 25))
    positive, negative = rng.integers(0, 30, (2, 3, 25)).astype(float)
    positive[1, 20:] = negative[1, 20:] = 0.0  # empty bins count nothing
    precision = rng.uniform(0.1, 2.0, (penalties, 3))
    together = logistic_fits(bases, offsets, positive, negative, precision)
    for d in range(3):
        some = slice(20) if d == 1 else slice(None)
        outcomes = positive[d : d + 1, some], negative[d : d + 1, some]
        alone = logistic_fits(bases[d, some], offsets[d, some], *outcomes, precision)
        for part in ("coefficients", "evidence", "held_out", "covariance"):
            np.testing.assert_allclose(getattr(together, part)[d], getattr(alone, part)[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(together.variance[d][:, some], alone.variance[0], rtol=1e-9)


@pytest.mark.parametrize("shape", [(1, 1, 1), (300, 154, 630), (5, 300_000, 2), (97, 4, 3), (0, 3, 2)])
def test_pieces_make_up_the_product(shape):
    lines, inner, columns = shape
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((lines, inner)), rng.standard_normal((inner, columns))
    np.testing.assert_allclose(product(left, right), left @ right, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(product(left, right.T.copy().T), left @ right, rtol=1e-9, atol=1e-9)


def test_log_linear_fits_are_where_the_gradient_vanishes():
    rng = np.random.default_rng(0)
    basis = np.column_stack([np.ones(40), np.linspace(-1, 1, 40), np.linspace(-1, 1, 40) ** 2])
    mass, penalty = rng.uniform(0.5, 2, (3, 40)), np.diag([0.0, 0.1, 0.2])
    seen = mass * np.exp(0.5 - basis[:, 1]) * rng.gamma(5, 0.2, mass.shape)
    found = log_linear_fits(basis, mass, seen, np.zeros((3, 3)), penalty)
    gradient = (mass - seen * np.exp(-found @ basis.T)) @ basis + found @ penalty
    assert np.abs(gradient).max() < 1e-10
    alone = [log_linear_fits(basis, mass[[k]], seen[[k]], np.zeros((1, 3)), penalty)[0] for k in range(3)]
    assert found == pytest.approx(np.array(alone), abs=1e-10)
