r"""Penalised matrix scaling of many classes in single precision, with a bound on what is left to gain.

The objective is that of `multinomial_loss`. Scaled by the diagonal of its Hessian at the start it is so well
conditioned that a few steps of L-BFGS suffice. Every eigenvalue of the Hessian is at least that of the penalty, so that
at any point with gradient g

.. math:: f - f^* \le \tfrac12\, g^\top (2 \Lambda)^{-1} g, \qquad \Lambda = \text{the costs of the parameters},

and the search ends when this is below the tolerance. Near the minimum, values differ by less than their rounding in
single precision, which stops L-BFGS sooner or later, depending on the processor; steps by gradients alone, which are
more precise, then finish the search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.numerics.arrays import Codes, Floats, Reals, row_blocks
from calibrant.numerics.special import row_max, row_sum

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
