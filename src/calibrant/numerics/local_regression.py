"""Local polynomial regression with nearest-neighbour windows, as in loess."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Floats


def loess(x: Floats, y: Floats, weight: Floats, *, span: float = 0.75, degree: int = 2) -> Floats:
    r"""Fitted values at every x of weighted polynomials around it.

    The window around a point holds the share `span` of the weight nearest to it; inside, weights are tricube,
    :math:`(1 - \lvert d / h \rvert^3)^3`. Every point has its own fit, so the cost is the square of their number.

    References
    ----------
    Cleveland, Devlin (1988), Locally Weighted Regression.

    Examples
    --------
    >>> x = np.linspace(0, 1, 50)
    >>> bool(np.allclose(loess(x, x**2, np.ones(50)), x**2))  # quadratics are reproduced
    True
    """
    distance = np.abs(x[:, None] - x)
    order = np.argsort(distance, axis=1)
    reached = np.cumsum(weight[order], axis=1) >= span * weight.sum() * (1 - 1e-12)
    last = np.take_along_axis(order, reached.argmax(axis=1)[:, None], axis=1)
    width = np.take_along_axis(distance, last, axis=1)
    width = np.where(width > 0, width, 1.0)  # ties fill the window: all of them are at distance zero
    u = (x - x[:, None]) / width
    local = weight * np.clip(1 - np.abs(u) ** 3, 0.0, None) ** 3
    moments = np.stack([(local * u**power).sum(axis=1) for power in range(2 * degree + 1)])
    sides = np.stack([(local * u**power) @ y for power in range(degree + 1)], axis=1)
    rows = np.arange(degree + 1)
    matrix = np.moveaxis(moments[rows[:, None] + rows], -1, 0)
    return np.einsum("ij,ij->i", np.linalg.pinv(matrix, hermitian=True)[:, 0], sides)
