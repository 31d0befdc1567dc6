r"""Truncated Newton for smooth convex problems: conjugate gradients on Hessian-vector products, preconditioned.

The Newton equation H s = -g is solved only roughly far from the minimum. The preconditioner is built once, near
the start, and again where conjugate gradients need many iterations. What is left to gain is known: conjugate gradients
sum up the decrement :math:`g^T H^{-1} g`, twice the distance to the minimum of the local quadratic model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibrant.numerics.arrays import Floats

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
