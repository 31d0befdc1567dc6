"""Many small penalised logistic regressions at once: different data and penalties, of one design or one each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from calibrant.numerics.arrays import Codes, Floats, expit, softplus

#: Multiplications up to which OpenBLAS uses one thread. Reference: OpenBLAS, interface/gemm.c, SMP_THRESHOLD_MIN times
#: GEMM_MULTITHREAD_THRESHOLD.
_ONE_THREAD = 2**18

#: Lines at a time, at most. Speed: benchmarks/latency.py; no result depends on it.
_LINES = 96


def product(left: Floats, right: Floats) -> Floats:
    """The product of two matrices by one thread, in pieces that are never divided among threads.

    Thousands of products of a millisecond each are slower with threads, which wait for each other.
    """
    inner, columns = right.shape
    found = np.empty((len(left), columns))
    lines = max(1, min(len(left), _LINES, _ONE_THREAD // inner))
    width = max(1, _ONE_THREAD // (lines * inner))
    for start in range(0, len(left), lines):
        rows = slice(start, start + lines)
        for first in range(0, columns, width):
            part = slice(first, first + width)
            np.matmul(left[rows], right[:, part], out=found[rows, part])
    return found


#: Newton's method stops when half a squared step promises less than this in log-likelihood. Test:
#: tests/numerics/test_smoothers.py::test_curves_fitted_with_these_constants.
DECREMENT = 1e-3
#: A step that promises less than this leaves the Hessian as it is. Speed: benchmarks/latency.py; results move by less
#: than `DECREMENT` allows.
KEEP_MATRIX = 2.0


@dataclass(frozen=True, eq=False)
class LogisticFits:
    """A stack of fits of what `logistic_fits` was given, the first axes running over data sets and penalties.

    `eta` holds fitted logits of bins, `evidence` Laplace approximations of log marginal likelihoods, and `factor` the
    Cholesky factors of the Hessians, (..., p, p).
    """

    coefficients: Floats
    eta: Floats
    evidence: Floats
    factor: Floats
    basis: Floats
    precision: Floats
    positive: Floats
    negative: Floats

    @cached_property
    def covariance(self) -> Floats:
        """Posterior covariance C of the coefficients, (..., p, p)."""
        return np.asarray(self._root.swapaxes(-1, -2) @ self._root)

    @cached_property
    def variance(self) -> Floats:
        """Posterior variance of the logit of each bin under the Gaussian prior that the penalty stands for."""
        half = self._root @ (self.basis.T if self.basis.ndim == 2 else self.basis.swapaxes(-1, -2)[:, None])
        return np.asarray(np.einsum("djpm,djpm->djm", half, half))

    @cached_property
    def held_out(self) -> Floats:
        """Log-likelihood of every row under the fit without that row, by one Newton step from the full fit."""
        eta, variance, mean = self.eta, self.variance, expit(self.eta)
        room = np.maximum(1 - variance * mean * (1 - mean), 0.05)
        without_one, without_zero = eta - variance * (1 - mean) / room, eta + variance * mean / room
        hits = np.einsum("dm,djm->dj", self.positive, softplus(-without_one))
        return np.asarray(-hits - np.einsum("dm,djm->dj", self.negative, softplus(without_zero)))

    @cached_property
    def sampling_variance(self) -> Floats:
        r"""Variance of each fitted logit over new outcomes, where all data sets have the same basis.

        The sandwich :math:`\phi' C H C \phi` with :math:`C = (H + P)^{-1}`, H the information and P the precision.
        """
        moved = self.covariance @ self.basis.T
        return np.asarray(self.variance - np.einsum("jp,djpm->djm", self.precision, moved**2))

    @cached_property
    def _root(self) -> Floats:
        return np.asarray(np.linalg.inv(self.factor))


def logistic_fits(
    basis: Floats,
    offset: Floats,
    positive: Floats,
    negative: Floats,
    precision: Floats,
    *,
    start: Floats | None = None,
    tolerance: float = DECREMENT,
) -> LogisticFits:
    """Fit logit P(y=1) = offset + basis @ b by penalised likelihood, b ~ N(0, 1/precision).

    Basis, (m, p) or (d, m, p), and offset are those of all d data sets or one of each; `positive` and `negative` count
    the rows of each bin, (d, m). Each data set is fitted with each of the diagonal penalties, (j, p), from `start`, (d,
    q), on; twice the gain left at the end is at most `tolerance`.
    """
    d, j = len(positive), len(precision)
    ones, penalty = np.repeat(positive, j, axis=0), np.tile(precision, (d, 1))
    first = np.zeros_like(penalty)
    if start is not None:
        first[:, : start.shape[1]] = np.repeat(start, j, axis=0)
    designs = _Designs(basis[None], d * j) if basis.ndim == 2 else _Designs(basis, j)
    shift = offset if offset.ndim == 1 else np.repeat(offset, j, axis=0)
    stack, every = _Stack(designs, shift, ones, ones + np.repeat(negative, j, axis=0), penalty), np.arange(d * j)
    b, value, mean = newton(stack, first, tolerance=tolerance, keep=KEEP_MATRIX)
    eta, factor = stack.logits(b, every), np.asarray(np.linalg.cholesky(stack.hessians(mean, every)), np.float64)
    evidence = value + 0.5 * np.log(penalty).sum(axis=1) - np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    b, eta, evidence, factor = (one.reshape(d, j, *one.shape[1:]) for one in (b, eta, evidence, factor))
    return LogisticFits(b, eta, evidence, factor, basis, precision, positive, negative)


def unfitted(offset: Floats, positive: Floats, negative: Floats) -> LogisticFits:
    """The predicted probabilities as they are, in the same shape as fits of one penalty."""
    eta = np.broadcast_to(offset, (len(positive), 1, len(offset)))
    likelihood = (positive @ offset - (positive + negative) @ softplus(offset))[:, None]
    shape = (len(positive), 1, 0)
    none, factor, basis = np.empty(shape), np.empty((*shape, 0)), np.empty((len(offset), 0))
    return LogisticFits(none, eta, likelihood, factor, basis, none[0], positive, negative)


class Problems(Protocol):
    """Several concave problems. `which`, rising, says which of them the rows of the other arguments belong to."""

    def evaluate(self, b: Floats, which: Codes) -> tuple[Floats, Floats]:
        """Objectives (s,), and what their derivatives are made of, (s, ...)."""

    def gradients(self, b: Floats, state: Floats, which: Codes) -> Floats:
        """The gradients, (s, p)."""

    def hessians(self, state: Floats, which: Codes) -> Floats:
        """Minus the second derivatives, (s, p, p)."""


def newton(
    problems: Problems, b: Floats, *, tolerance: float, keep: float = 0.0, unseen: int = 0
) -> tuple[Floats, Floats, Floats]:
    """Newton's method with step halving on all problems that have not converged: b, which is changed, values, states.

    A problem has converged where twice the gain that its next step promises is at most `tolerance`; one whose last step
    promised at most `keep` keeps its matrix. In the end, `unseen` steps are taken of all problems, whose gain is below
    rounding. Values and states are those before the last of them.
    """
    every = live = np.arange(len(b))
    promised, steps, inverse = np.full(len(b), np.inf), np.empty_like(b), np.empty((*b.shape, b.shape[1]))
    value, state = problems.evaluate(b, live)
    for _ in range(60):
        stale = live[promised[live] > keep]
        if len(stale):
            inverse[stale] = _inverse(problems.hessians(state[stale], stale))
        gradient = problems.gradients(b[live], state[live], live)
        step = (inverse[live] @ gradient[..., None])[..., 0]
        decrement = np.einsum("sp,sp->s", gradient, step)
        promised[live], steps[live] = decrement, step
        moving = decrement > tolerance
        if not moving.any():
            break
        live, step, decrement = live[moving], step[moving], decrement[moving]
        b[live], value[live], state[live] = _backtracked(problems, live, b[live], value[live], step, decrement)
    for number in range(unseen):
        if number:
            value, state = problems.evaluate(b, every)
            inverse = _inverse(problems.hessians(state, every))
            steps = (inverse @ problems.gradients(b, state, every)[..., None])[..., 0]
        b += steps
    return b, value, state


def _inverse(matrices: Floats) -> Floats:
    """Inverses, with the matrices scaled to a diagonal of ones, which 1e-12 keeps away from singular."""
    scale = np.sqrt(np.einsum("sii->si", matrices))
    scale[scale == 0] = 1.0
    outer = scale[:, :, None] * scale[:, None, :]
    scaled = matrices / outer
    np.einsum("sii->si", scaled)[:] += 1e-12
    found = np.linalg.inv(scaled)
    found /= outer
    return np.asarray(found)


def _backtracked(
    problems: Problems, live: Codes, b: Floats, value: Floats, step: Floats, decrement: Floats
) -> tuple[Floats, Floats, Floats]:
    """Halve the steps that do not gain enough: with offsets far from the outcomes a full step overshoots."""
    length = np.ones(len(value))
    while True:
        new = b + length[:, None] * step
        found, state = problems.evaluate(new, live)
        short = ~(found >= value + 1e-4 * length * decrement) & (length > 1e-10)
        if not short.any():
            return new, found, state
        length[short] /= 2


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients at the optimum, with the curvature (Hessian of the total loss, penalty included) and loss there."""

    coefficients: Floats
    curvature: Floats
    loss: float


class _One:
    """A single problem, given by a function that returns the loss to be minimised, its gradient and its Hessian."""

    def __init__(self, derivatives: Callable[[Floats], tuple[float, Floats, Floats]]) -> None:
        self.derivatives = derivatives

    def evaluate(self, b: Floats, which: Codes) -> tuple[Floats, Floats]:
        loss, gradient, hessian = self.derivatives(b[0])
        return np.array([-loss]), np.append(-gradient, hessian)[None]

    def gradients(self, b: Floats, state: Floats, which: Codes) -> Floats:
        return state[:, : b.shape[1]]

    def hessians(self, state: Floats, which: Codes) -> Floats:
        size = int(np.sqrt(state.shape[1]))  # of p + p * p numbers
        return state[:, size:].reshape(-1, size, size)


def minimum(derivatives: Callable[[Floats], tuple[float, Floats, Floats]], start: Floats, total: float) -> Fit:
    """The minimum of one convex loss of rows of this total weight, to rounding.

    Below a gain of 1e-13 per unit of weight, two losses differ by less than their rounding.
    """
    problem, b = _One(derivatives), start[None].astype(np.float64)
    b, value, state = newton(problem, b, tolerance=1e-13 * total, unseen=2)
    return Fit(b[0], problem.hessians(state, np.arange(1))[0], -float(value[0]))


def crossing(excess: Callable[[float], float], inside: float, step: float) -> float:
    """Where a convex function, negative at `inside`, crosses zero towards `step`; infinite after 40 doublings."""
    from scipy.optimize import brentq

    near, far = inside, inside + step
    for _ in range(40):
        if excess(far) > 0:
            return float(brentq(excess, near, far, rtol=1e-10))
        near, far, step = far, far + 2 * step, 2 * step
    return float(np.sign(step) * np.inf)


def log_linear_fits(basis: Floats, mass: Floats, seen: Floats, start: Floats, penalty: Floats) -> Floats:
    r"""Coefficients b, (s, p), of log(seen / mass) by penalised gamma quasi-likelihood, from `start` on.

    .. math:: \min_b \sum_i \bigl[m_i \eta_i + s_i e^{-\eta_i}\bigr] + \tfrac12 b^T P b, \qquad \eta = X b

    `basis` X is (m, p); `mass` and `seen` are those of each problem, (s, m), and the penalty P is (p, p).
    """
    rounding = 1e-13 * float(mass.sum(axis=1).min())  # as in `minimum`
    return newton(_LogLinear(basis, mass, seen, penalty), start.astype(np.float64), tolerance=rounding, unseen=1)[0]


@dataclass(frozen=True, eq=False)
class _LogLinear:
    """The problems of `log_linear_fits`."""

    basis: Floats
    mass: Floats
    seen: Floats
    penalty: Floats

    def evaluate(self, b: Floats, which: Codes) -> tuple[Floats, Floats]:
        eta = b @ self.basis.T
        with np.errstate(over="ignore"):
            state = self.seen[which] * np.exp(-eta)
        value = -np.einsum("sm,sm->s", self.mass[which], eta) - state.sum(axis=1)
        return value - 0.5 * np.einsum("sp,sp->s", b @ self.penalty, b), state

    def gradients(self, b: Floats, state: Floats, which: Codes) -> Floats:
        return np.asarray((state - self.mass[which]) @ self.basis - b @ self.penalty)

    def hessians(self, state: Floats, which: Codes) -> Floats:
        return np.asarray((state @ self._pairs).reshape(-1, *self.penalty.shape) + self.penalty)

    @cached_property
    def _pairs(self) -> Floats:
        """Products of all pairs of columns, (m, p * p)."""
        return np.asarray((self.basis[:, :, None] * self.basis[:, None]).reshape(len(self.basis), -1))


@dataclass(frozen=True, eq=False)
class _Stack:
    """Penalised logistic regressions: their designs and offsets, outcomes 1 and all rows per bin, (s, m), penalties."""

    designs: _Designs
    offset: Floats
    ones: Floats
    total: Floats
    penalty: Floats

    def logits(self, b: Floats, which: Codes) -> Floats:
        """Fitted log odds of every bin."""
        return (self.offset if self.offset.ndim == 1 else self._own(self.offset, which)) + self.designs.logits(b, which)

    def _own(self, values: Floats, which: Codes) -> Floats:
        """The rows of these problems, without a copy where these are all."""
        return values if len(which) == len(self.ones) else values[which]

    def evaluate(self, b: Floats, which: Codes) -> tuple[Floats, Floats]:
        """Penalised log-likelihood, and fitted probabilities."""
        eta = self.logits(b, which)
        mean = expit(eta)
        hits = np.einsum("sm,sm->s", self._own(self.ones, which), eta)
        likelihood = hits - np.einsum("sm,sm->s", self._own(self.total, which), softplus(eta, mean))
        return np.asarray(likelihood - 0.5 * np.einsum("sp,sp->s", self._own(self.penalty, which), b * b)), mean

    def gradients(self, b: Floats, state: Floats, which: Codes) -> Floats:
        residual = self._own(self.ones, which) - self._own(self.total, which) * state
        return self.designs.gradients(residual, which) - self._own(self.penalty, which) * b

    def hessians(self, state: Floats, which: Codes) -> Floats:
        information = self._own(self.total, which) * state * (1 - state)
        return self.designs.hessians(information, self._own(self.penalty, which), which)


class _Designs:
    """Bases (g, m, p) and what Newton's method needs of them; each serves `size` problems that follow each other.

    `live`, rising, says which problems the rows of an argument belong to.
    """

    def __init__(self, bases: Floats, size: int) -> None:
        self.bases, self.ends = bases, size * np.arange(len(bases) + 1)
        self.many = 3 * size >= 2 * bases.shape[2]  # products of pairs of columns pay, as measured

    def logits(self, b: Floats, live: Codes) -> Floats:
        """The products of coefficients and basis."""
        found = np.empty((len(b), self.bases.shape[1]))
        for g, rows in self._parts(live):
            found[rows] = product(b[rows], self.bases[g].T)
        return found

    def gradients(self, residual: Floats, live: Codes) -> Floats:
        """Of the log-likelihoods."""
        found = np.empty((len(residual), self.bases.shape[2]))
        for g, rows in self._parts(live):
            found[rows] = product(residual[rows], self.bases[g])
        return found

    def hessians(self, information: Floats, penalty: Floats, live: Codes) -> Floats:
        """With this information of each bin, and the penalties on the diagonal."""
        p = self.bases.shape[2]
        found, (_, _, place) = np.empty((len(information), p, p)), _column_pairs(p)
        for g, rows in self._parts(live):
            if self.many:
                found[rows] = product(information[rows], self._pairs[g])[:, place]
            else:
                basis = self.bases[g]
                for s in range(rows.start, rows.stop):
                    found[s] = product((basis * information[s][:, None]).T, basis)
        diagonal = np.arange(p)
        found[:, diagonal, diagonal] += penalty
        return found

    @cached_property
    def _pairs(self) -> Floats:
        """Products of the columns, each pair once: the Hessians of many problems of a basis are then one product."""
        upper, lower, _ = _column_pairs(self.bases.shape[2])
        return np.asarray(self.bases[:, :, upper] * self.bases[:, :, lower])

    def _parts(self, live: Codes) -> Iterator[tuple[int, slice]]:
        """Bases with live problems, and where these are."""
        ends = np.searchsorted(live, self.ends).tolist()
        for g, (start, stop) in enumerate(pairwise(ends)):
            if stop > start:
                yield g, slice(start, stop)


@cache
def _column_pairs(p: int) -> tuple[Codes, Codes, Codes]:
    """All pairs of p columns, and where the pair of each two stands among them, (p, p)."""
    upper, lower = np.triu_indices(p)
    place = np.empty((p, p), np.intp)
    place[upper, lower] = place[lower, upper] = np.arange(len(upper))
    return upper, lower, place
