r"""Optimisers of penalised log losses: truncated Newton, and L-BFGS on sums in single precision.

`minimise` solves the Newton equation H s = -g by preconditioned conjugate gradients on Hessian-vector products, only
roughly far from the minimum. The preconditioner is built once, near the start, and again where conjugate gradients need
many iterations. They also sum up the decrement :math:`g^T H^{-1} g`, twice the distance to the minimum of the local
quadratic model, which says what is left to gain.

`descend` is for full matrices on many rows. Scaled by the diagonal of its Hessian at the start, the objective is so
well conditioned that a few steps of L-BFGS suffice. Every eigenvalue of the Hessian is at least that of the penalty, so
that at any point with gradient g

.. math:: f - f^* \le \tfrac12\, g^\top (2 \Lambda)^{-1} g, \qquad \Lambda = \text{the costs of the parameters},

and the search ends when this is below the tolerance. Near the minimum, values differ by less than their rounding in
single precision, which stops L-BFGS sooner or later, depending on the processor; steps by gradients alone, which are
more precise, then finish the search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibrant.numerics.arrays import Codes, Floats, Reals, row_blocks
from calibrant.numerics.special import row_max, row_sum

_GRADIENT_STEPS, _HALVINGS = 200, 40

#: Conjugate gradient steps after which the preconditioner is out of date.
_MANY_ITERATIONS = 25

#: Hessian products in all after which the search gives up.
_PRODUCTS = 1000


class Convex(Protocol):
    """An objective that remembers where it was evaluated last: products and preconditioners belong there."""

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Value and gradient."""

    def hessian_times(self, direction: Floats) -> Floats:
        """Hessian at the last evaluated point, times a direction."""

    def preconditioner(self, *, thorough: bool = False) -> Callable[[Floats], Floats]:
        """Something near the inverse Hessian at the last evaluated point, as a map of gradients."""


@dataclass(frozen=True)
class Minimum:
    """Where the search ended.

    Attributes
    ----------
    theta : array
        The parameters.
    value : float
        The objective there.
    gradient : float
        Largest component of the gradient there.
    products : int
        Hessian-vector products taken.
    converged : bool
        Whether the search ended because nothing was left to gain.
    """

    theta: Floats
    value: float
    gradient: float
    products: int
    converged: bool


def minimise(problem: Convex, start: Floats, *, tolerance: float) -> Minimum:
    """Minimum of a convex objective: steps until its quadratic model has less than `tolerance` left to gain."""
    theta, products, converged = start, 0, False
    value, gradient = problem.evaluate(theta)
    solve = problem.preconditioner()
    while products < _PRODUCTS and not converged:
        direction, decrement, iterations = _newton_direction(problem, gradient, solve, tolerance)
        products += iterations
        found = None if decrement <= 2 * tolerance else _line_search(problem, theta, value, gradient, direction)
        converged = found is None  # nothing left to gain, or what is left is below rounding
        if found is not None:
            theta, value, gradient = found
            if iterations > _MANY_ITERATIONS:
                solve = problem.preconditioner(thorough=True)
    return Minimum(theta, value, float(np.abs(gradient).max()), products, converged)


def _newton_direction(
    problem: Convex, gradient: Floats, solve: Callable[[Floats], Floats], tolerance: float
) -> tuple[Floats, float, int]:
    """Solution of H s = -g to a relative error that shrinks with the step, its decrement, and the steps it took."""
    step, residual = np.zeros_like(gradient), -gradient
    preconditioned = solve(residual)
    size = float(residual @ preconditioned)
    target = size * min(0.01, size)
    direction, decrement, iterations = preconditioned.copy(), 0.0, 0
    while iterations < _GRADIENT_STEPS:
        iterations += 1
        curved = problem.hessian_times(direction)
        curvature = float(direction @ curved)
        if not curvature > 0:  # flat to rounding: nothing more can be learnt this way
            break
        length = size / curvature
        step += length * direction
        decrement += length * size
        residual -= length * curved
        preconditioned = solve(residual)
        previous, size = size, float(residual @ preconditioned)
        if size <= target or decrement + size <= tolerance:
            break
        direction = preconditioned + (size / previous) * direction
    return step, decrement, iterations


def _line_search(
    problem: Convex, theta: Floats, value: float, gradient: Floats, direction: Floats
) -> tuple[Floats, float, Floats] | None:
    """The first of the halved steps that decreases the objective enough; None where none does."""
    slope, length = float(gradient @ direction), 1.0
    noise = 4 * np.finfo(np.float64).eps * max(abs(value), 1e-3)
    for _ in range(_HALVINGS):
        trial = theta + length * direction
        found, new = problem.evaluate(trial)
        if found <= value + 1e-4 * length * slope + noise:
            return trial, found, new
        length /= 2
    problem.evaluate(theta)
    return None


#: Steps after which the search gives up.
_STEPS = 200
#: Corrections that L-BFGS remembers.
_MEMORY = 10
#: Steps by gradients alone, at most.
_LAST_STEPS = 60


@dataclass(frozen=True)
class Descent:
    """Where a search ended.

    Attributes
    ----------
    theta : array of shape (K, K + 1)
        The parameters [A, b].
    value : float
        The objective there.
    gap : float
        A bound on how far the objective is above its minimum.
    """

    theta: Floats
    value: float
    gap: float


def descend(z: Reals, codes: Codes, weight: Floats | None, cost: Floats, *, tolerance: float) -> Descent:
    """Minimum of the penalised log loss of softmax(z + A z + b), from no change, to within `tolerance` if it can be.

    Parameters
    ----------
    z : array of shape (n, K)
        Log probabilities.
    codes : array of shape (n,)
        Outcomes.
    weight : array of shape (n,), optional
    cost : array of shape (K, K + 1)
        Cost of the square of each parameter, all positive.
    tolerance : float
    """
    from scipy.optimize import minimize

    problem = _SingleLoss(z, codes, weight, cost)
    unit = 1 / np.sqrt(problem.curvature() + 2 * cost)

    def objective(x: Floats) -> tuple[float, Floats]:
        value, gradient = problem.evaluate(x.reshape(cost.shape) * unit)
        return value, (gradient * unit).ravel()

    def stop(intermediate_result: Any) -> None:
        if problem.gap <= tolerance:
            raise StopIteration

    options = {"maxiter": _STEPS, "maxcor": _MEMORY, "ftol": 0.0, "gtol": 0.0}
    found = minimize(objective, np.zeros(cost.size), jac=True, method="L-BFGS-B", callback=stop, options=options)
    x = found.x
    if problem.gap > tolerance:
        x = _by_gradients(lambda at: (objective(at)[1], problem.gap), x, tolerance)
    theta = x.reshape(cost.shape) * unit
    if not np.array_equal(theta, problem.at):  # the last point looked at was not taken
        problem.evaluate(theta)
    return Descent(theta, problem.value, problem.gap)


def _by_gradients(evaluate: Callable[[Floats], tuple[Floats, float]], x: Floats, tolerance: float) -> Floats:
    """The point of the smallest bound on a way from `x`, given gradient and bound at any point.

    The length of a step follows from the last two gradients (Barzilai and Borwein 1988); the first is that of a
    function with unit curvature, which the scale of the parameters makes of the objective at the start.
    """
    gradient, least = evaluate(x)
    best, length = x, 1.0
    for _ in range(_LAST_STEPS):
        if least <= tolerance:
            break
        moved = -length * gradient
        x = x + moved
        before, (gradient, gap) = gradient, evaluate(x)
        if gap < least:
            best, least = x, gap
        change = gradient - before
        along = float(moved @ change)
        length = along / float(change @ change) if along > 0 else 1.0
    return best


class _SingleLoss:
    """The objective and its gradient from blocks of rows in single precision; sums are in double precision."""

    def __init__(self, z: Reals, codes: Codes, weight: Floats | None, cost: Floats) -> None:
        from scipy.sparse import csr_array

        n, classes = z.shape
        self.x = np.ones((n, classes + 1), np.float32)
        self.x[:, :classes] = z
        self.codes, self.cost = codes, cost
        self.at, self.value, self.gap = np.full(cost.shape, np.nan), np.inf, np.inf
        self.share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
        self.single_share = self.share.astype(np.float32)
        chosen = csr_array((self.share, (codes, np.arange(n))), shape=(classes, n))
        self.observed: Floats = chosen @ self.x

    def curvature(self) -> Floats:
        """The diagonal of the Hessian of the log loss at no change."""
        total = np.zeros(self.cost.shape)
        for rows in row_blocks(len(self.x), len(self.cost)):
            x = self.x[rows]
            p = np.exp(x[:, :-1])
            p *= (1 - p) * self.single_share[rows, None]
            total += p.T @ x**2
        return np.maximum(total, 0)

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Value and gradient; remembers them with the point and the bound on what is left to gain."""
        single = theta.T.astype(np.float32)
        loss, gradient = 0.0, 2 * self.cost * theta - self.observed
        for rows in row_blocks(len(self.x), len(self.cost)):
            x = self.x[rows]
            p = x @ single
            p += x[:, :-1]
            p -= row_max(p)
            hit = p[np.arange(len(p)), self.codes[rows]]
            np.exp(p, out=p)
            sums = row_sum(p)
            loss += float((np.log(sums[:, 0]) - hit).astype(np.float64) @ self.share[rows])
            p *= self.single_share[rows, None] / sums
            gradient += p.T @ x
        self.at, self.gap = theta, float((gradient**2 / self.cost).sum()) / 4
        self.value = loss + float((self.cost * theta**2).sum())
        return self.value, gradient
