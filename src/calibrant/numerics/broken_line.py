"""Functions of one variable, kept as lines between points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.numerics.arrays import Floats

#: Intervals are halved at most this often.
_HALVINGS = 24


def broken_line(function: Callable[[Floats], Floats], points: Floats, *, tolerance: float) -> tuple[Floats, Floats]:
    """Points, and the values there, between which straight lines are close to a continuous function.

    Intervals are halved until a line misses the function at their quarters by at most `tolerance`.

    Parameters
    ----------
    function : callable
        From an array of numbers to their values.
    points : array, rising
        Where to begin: the ends, and where the function has corners.
    tolerance : float

    Examples
    --------
    >>> x, y = broken_line(np.square, np.array([0.0, 1.0]), tolerance=0.02)
    >>> x
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    x = np.asarray(points, dtype=np.float64)
    y = function(x)
    open_ends = np.ones(len(x) - 1, dtype=bool)
    for _ in range(_HALVINGS):
        left = np.flatnonzero(open_ends)
        if not len(left):
            break
        width, rise = x[left + 1] - x[left], y[left + 1] - y[left]
        share = np.array([0.25, 0.5, 0.75])[:, None]
        inside = function((x[left] + share * width).ravel()).reshape(3, -1)
        lines = y[left] + share * rise
        far = np.abs(inside - lines).max(axis=0) > tolerance
        halved, middle = left[far], inside[1, far]
        open_ends[left[~far]] = False
        x = np.insert(x, halved + 1, x[halved] + width[far] / 2)
        y = np.insert(y, halved + 1, middle)
        open_ends = np.insert(open_ends, halved + 1, True)
    return x, y
