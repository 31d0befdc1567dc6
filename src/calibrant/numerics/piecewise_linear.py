"""Curves approximated by broken lines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.numerics.arrays import Floats

#: Into how many parts an interval is divided at once, and how often. Derived: each time four halvings are tried and
#: their quarters looked at, which takes 32 parts; six times are 24 halvings, to 6e-8 of the interval.
_PARTS, _ROUNDS = 32, 6


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
    places = _divided(x[:-1], x[1:])
    values = function(np.append(places[:-1], x[-1]))
    within = values[:-1].reshape(_PARTS, -1)
    y = np.append(within[0], values[-1])
    middles, ends = _halved(np.stack([places, np.vstack([within, y[1:]])]), tolerance)
    found = [np.stack([x, y]), middles]
    for _ in range(_ROUNDS - 1):
        if not ends.size:
            break
        (left, right), (low, high) = ends
        places = _divided(left, right)
        within = function(places[1:-1].ravel()).reshape(_PARTS - 1, -1)
        middles, ends = _halved(np.stack([places, np.vstack([low, within, high])]), tolerance)
        found.append(middles)
    x, y = np.concatenate(found, axis=1)
    order = np.argsort(x)
    return x[order], y[order]


def _divided(left: Floats, right: Floats) -> Floats:
    """Points at equal distances from the left end of each interval to the right one, (parts + 1, m)."""
    places = left + np.linspace(0, 1, _PARTS + 1)[:, None] * (right - left)
    places[-1] = right
    return np.asarray(places)


def _halved(points: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Points (2, middles) at which intervals (2, parts + 1, m) are halved, and the ends (2, 2, m) that are left open.

    An interval of four parts is the last whose quarters are known. One call of the function for several halvings is
    what saves time: most of its cost does not depend on the number of points.
    """
    y, width, middles = points[1], points.shape[1] - 1, []
    is_open = np.ones((1, points.shape[2]), dtype=bool)
    while width >= 4:
        start = np.arange(0, points.shape[1] - 1, width)
        rise = y[start + width] - y[start]
        gaps = [np.abs(y[start + k * width // 4] - y[start] - k / 4 * rise) for k in (1, 2, 3)]
        far = is_open & (np.max(gaps, axis=0) > tolerance)
        middles.append(points[:, start + width // 2][:, far])
        is_open, width = np.repeat(far, 2, axis=0), width // 2
    start = np.arange(0, points.shape[1] - 1, width)
    ends = np.stack([points[:, start][:, is_open], points[:, start + width][:, is_open]], axis=1)
    return np.concatenate(middles, axis=1), ends
