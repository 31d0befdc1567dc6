"""Integrals of functions with kinks and steps: Gauss-Lobatto panels, halved where they disagree with their halves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.numerics.arrays import Floats


def _lobatto(n: int) -> tuple[Floats, Floats]:
    """Nodes and weights of the Gauss-Lobatto rule on [-1, 1], which is exact for polynomials up to degree 2n - 3."""
    basis = np.polynomial.legendre.Legendre.basis(n - 1)
    nodes = np.concatenate([[-1.0], basis.deriv().roots(), [1.0]])
    return nodes, 2 / (n * (n - 1) * basis(nodes) ** 2)


#: Nodes at both ends and in the middle: without them, a kink or step next to one of these goes unnoticed.
_NODES, _WEIGHTS = _lobatto(11)

#: Halvings of a panel: enough to shrink a step to nothing.
_ROUNDS = 60


def integral(function: Callable[[Floats], Floats], panels: Floats, *, tolerance: float = 1e-12) -> float:
    """Integral of a vectorised `function` over neighbouring `panels` (rising edges), to about `tolerance` a panel.

    >>> round(integral(lambda x: np.abs(x - 0.3), np.array([0.0, 0.5, 1.0])), 10)
    0.29
    """
    left, right = panels[:-1], panels[1:]
    whole, total = _panel_integrals(function, left, right), 0.0
    for _ in range(_ROUNDS):
        middle = (left + right) / 2
        first, second = _panel_integrals(function, left, middle), _panel_integrals(function, middle, right)
        bad = np.abs(first + second - whole) > tolerance
        total += float((first + second)[~bad].sum())
        if not bad.any():
            return total
        left, right = np.concatenate([left[bad], middle[bad]]), np.concatenate([middle[bad], right[bad]])
        whole = np.concatenate([first[bad], second[bad]])
    return total + float(whole.sum())


def graded(low: float, high: float, *, panels: int = 64) -> Floats:
    """Edges from low < 0 to high > 0 that are dense about 0 and spread out in the tails, as log-odds are."""
    return np.sinh(np.linspace(np.arcsinh(low), np.arcsinh(high), panels + 1))


def _panel_integrals(function: Callable[[Floats], Floats], left: Floats, right: Floats) -> Floats:
    half = (right - left) / 2
    at = (left + right)[:, None] / 2 + half[:, None] * _NODES
    values = function(at.ravel()).reshape(at.shape)
    return np.asarray(half * (values @ _WEIGHTS))
