"""Many small penalised logistic regressions at once: same design, different data and penalties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.numerics.small_products import product
from calibrant.numerics.special import expit

#: Newton stops when half a squared step promises less than this in log-likelihood.
DECREMENT = 1e-3
MAX_STEPS = 60
#: A step that promises less than this leaves the Hessian as it is.
KEEP_MATRIX = 2.0


@dataclass(frozen=True, eq=False)
class LogisticFits:
    """A stack of fits, the first axes running over data sets and penalties.

    Attributes
    ----------
    coefficients : array (..., p)
    eta : array (..., m)
        Fitted logit of each bin.
    variance : array (..., m)
        Posterior variance of that logit under the Gaussian prior that the penalty stands for.
    evidence : array (...)
        Laplace approximation of the log marginal likelihood.
    held_out : array (...)
        Log-likelihood of every row under the fit without that row (one Newton step from the full fit).
    covariance : array (..., p, p)
        Posterior covariance C of the coefficients.
    """

    coefficients: Floats
    eta: Floats
    variance: Floats
    evidence: Floats
    held_out: Floats
    covariance: Floats

    def sampling_variance(self, basis: Floats, precision: Floats) -> Floats:
        r"""Variance of each fitted logit over new outcomes, of the same basis and penalties.

        The sandwich :math:`\phi' C H C \phi` with :math:`C = (H + P)^{-1}`, H the information and P the precision.
        """
        moved = self.covariance @ basis.T
        return np.asarray(self.variance - np.einsum("jp,djpm->djm", precision, moved**2))


def logistic_fits(
    basis: Floats, offset: Floats, positive: Floats, negative: Floats, precision: Floats, *, start: Floats | None = None
) -> LogisticFits:
    """Fit logit P(y=1) = offset + basis @ b by penalised likelihood, b ~ N(0, 1/precision).

    Parameters
    ----------
    basis : array (m, p)
    offset : array (m,)
    positive, negative : array (d, m)
        Number of rows with outcome 1 and 0 per bin, for d data sets.
    precision : array (j, p)
        Each data set is fitted with each of these diagonal penalties.
    start : array (d, q), optional
        Where Newton begins in the first q coefficients of each data set.
    """
    d, j = len(positive), len(precision)
    ones = np.repeat(positive, j, axis=0)
    total = ones + np.repeat(negative, j, axis=0)
    penalty = np.tile(precision, (d, 1))
    first = np.zeros_like(penalty)
    if start is not None:
        first[:, : start.shape[1]] = np.repeat(start, j, axis=0)
    b, eta, chol = _newton(basis, offset, ones, total, penalty, first)
    root = np.linalg.inv(chol)
    half = root @ basis.T
    variance = np.einsum("spm,spm->sm", half, half)
    evidence = (
        _objective(eta, b, ones, total, penalty)
        + 0.5 * np.log(penalty).sum(axis=1)
        - np.log(np.diagonal(chol, axis1=1, axis2=2)).sum(axis=1)
    )
    held_out = _held_out(eta, variance, ones, total)
    shape = (d, j)
    return LogisticFits(
        b.reshape(*shape, -1),
        eta.reshape(*shape, -1),
        variance.reshape(*shape, -1),
        evidence.reshape(shape),
        held_out.reshape(shape),
        (root.transpose(0, 2, 1) @ root).reshape(*shape, *root.shape[1:]),
    )


def unfitted(offset: Floats, positive: Floats, negative: Floats) -> LogisticFits:
    """The predicted probabilities as they are, in the same shape as fits of one penalty."""
    eta = np.broadcast_to(offset, (len(positive), 1, len(offset)))
    likelihood = (positive @ offset - (positive + negative) @ np.logaddexp(0, offset))[:, None]
    none = np.zeros((len(positive), 1, 0))
    return LogisticFits(none, eta, np.zeros_like(eta), likelihood, likelihood, none[..., None])


def _newton(
    basis: Floats, offset: Floats, ones: Floats, total: Floats, penalty: Floats, b: Floats
) -> tuple[Floats, Floats, Floats]:
    """Newton with step halving on all problems that have not converged; coefficients, logits, Cholesky factors.

    A problem whose last step promised little keeps its matrix: near the optimum a slightly old one still converges
    in a step or two, and costs no factorisation.
    """
    products = _Products(basis)
    eta, inverse = offset + product(b, basis.T), np.empty((*b.shape, b.shape[1]))
    value = _objective(eta, b, ones, total, penalty)
    live, promised = np.arange(len(b)), np.full(len(b), np.inf)
    for _ in range(MAX_STEPS):
        mean, stale = expit(eta[live]), promised[live] > KEEP_MATRIX
        if stale.any():
            old = live[stale]
            inverse[old] = np.linalg.inv(products.hessian(mean[stale], total[old], penalty[old]))
        gradient = product(ones[live] - total[live] * mean, basis) - penalty[live] * b[live]
        step = (inverse[live] @ gradient[..., None])[..., 0]
        decrement = np.einsum("sp,sp->s", gradient, step)
        promised[live] = decrement
        moving = decrement > DECREMENT
        live, step, decrement = live[moving], step[moving], decrement[moving]
        if not len(live):
            break
        b[live], eta[live], value[live] = _backtracked(
            (b[live], eta[live], value[live]),
            (step, product(step, basis.T), decrement),
            (ones[live], total[live], penalty[live]),
        )
    return b, eta, np.asarray(np.linalg.cholesky(products.hessian(expit(eta), total, penalty)), np.float64)


class _Products:
    """Products of the columns of a basis, each pair once: the Hessians of many problems are then one product."""

    def __init__(self, basis: Floats) -> None:
        p = basis.shape[1]
        upper, lower = np.triu_indices(p)
        self.products = basis[:, upper] * basis[:, lower]
        self.place = np.empty((p, p), np.intp)
        self.place[upper, lower] = self.place[lower, upper] = np.arange(len(upper))

    def hessian(self, mean: Floats, total: Floats, penalty: Floats) -> Floats:
        """Of each problem of the stack, at these fitted probabilities."""
        result: Floats = product(total * mean * (1 - mean), self.products)[:, self.place]
        diagonal = np.arange(penalty.shape[1])
        result[:, diagonal, diagonal] += penalty
        return result


def _backtracked(
    start: tuple[Floats, Floats, Floats],
    direction: tuple[Floats, Floats, Floats],
    data: tuple[Floats, Floats, Floats],
) -> tuple[Floats, Floats, Floats]:
    """Halve the steps that do not gain enough: with offsets far from the outcomes a full step overshoots."""
    b, eta, value = start
    step, move, decrement = direction
    length = np.ones(len(value))
    while True:
        new_b, new_eta = b + length[:, None] * step, eta + length[:, None] * move
        new_value = _objective(new_eta, new_b, *data)
        short = (new_value < value + 1e-4 * length * decrement) & (length > 1e-6)
        if not short.any():
            return new_b, new_eta, new_value
        length[short] /= 2


def _objective(eta: Floats, b: Floats, ones: Floats, total: Floats, penalty: Floats) -> Floats:
    likelihood = np.einsum("sm,sm->s", ones, eta) - np.einsum("sm,sm->s", total, np.logaddexp(0, eta))
    return likelihood - 0.5 * np.einsum("sp,sp->s", penalty, b * b)


def _held_out(eta: Floats, variance: Floats, ones: Floats, total: Floats) -> Floats:
    """Leave-one-row-out log-likelihood in closed form; the leverage is kept below 1 for bins of one row."""
    mean = expit(eta)
    room = np.maximum(1 - variance * mean * (1 - mean), 0.05)
    without_one, without_zero = eta - variance * (1 - mean) / room, eta + variance * mean / room
    hits = np.einsum("sm,sm->s", ones, np.logaddexp(0, -without_one))
    return -hits - np.einsum("sm,sm->s", total - ones, np.logaddexp(0, without_zero))
