"""Integrals of functions with kinks and steps: Gauss-Legendre panels, halved where they disagree with themselves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.numerics.arrays import Floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)

#: Halvings of a panel: enough to shrink a step to nothing.
_ROUNDS = 60


def integral(function: Callable[[Floats], Floats], panels: Floats, *, tolerance: float = 1e-12) -> float:
    """Integral of a vectorised `function` over neighbouring `panels` (rising edges), to about `tolerance` a panel.

    >>> round(integral(lambda x: np.abs(x - 0.3), np.array([0.0, 0.5, 1.0])), 10)
    0.29
    """
    left, right = panels[:-1], panels[1:]
    whole, total = _gauss(function, left, right), 0.0
    for _ in range(_ROUNDS):
        middle = (left + right) / 2
        first, second = _gauss(function, left, middle), _gauss(function, middle, right)
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


def _gauss(function: Callable[[Floats], Floats], left: Floats, right: Floats) -> Floats:
    half = (right - left) / 2
    at = (left + right)[:, None] / 2 + half[:, None] * _NODES
    values = function(at.ravel()).reshape(at.shape)
    return np.asarray(half * (values @ _WEIGHTS))
