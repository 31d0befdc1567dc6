"""Upper limit of the error: the fitted gap and the largest misfit that the data do not exclude."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.inference.binary_error.pooled_cells import PooledCells
from calibrant.inference.binary_error.resolution import Resolution
from calibrant.numerics.arrays import Floats

#: Misfit is measured in units of sigma to this power in L1, which minimises the limit of a calibrated model, and not at
#: all weighted in L2.
POWER = 4 / 3

#: What jumps and slopes lose inside cells in L2, as a part of the squared differences between their neighbours; less in
#: smaller norms, and nothing in L1. A jump at a random place of a cell needs 0.10.
WITHIN = 0.15

#: Standard deviations of the product of misfit and noise.
CROSS = 2.4

#: Directions in which the uncertainties of the fitted part and of the misfit are combined, and steps of bisection.
DIRECTIONS, BISECTIONS = 13, 45


@dataclass(frozen=True, eq=False)
class MisfitBound:
    r"""The largest norm of fitted gap and misfit together.

    The squared misfit beyond the fit, :math:`\sum_j w_j u_j s_j^2`, is estimated by that of the residuals less their
    noise; its upper limit adds the noise that a low quantile of the simulated sum leaves room for. The misfit is put
    where it raises the norm most. The uncertainty of the fitted part and of the misfit are combined along a quarter of
    an ellipse, as for independent estimates.
    """

    resolution: Resolution
    noise: Floats
    shape: Floats
    risk: float

    def upper(self, norm: float, middle: float, high: float) -> float:
        """The upper limit in a norm of 1 to 2, given the middle and the upper limit of the fitted part."""
        cells, sigma = self.resolution.cells, self.resolution.sigma
        level = sigma ** (POWER * (2 / norm - 1))
        likely, largest = self.squared_misfit(cells.share / level, within=WITHIN * (norm - 1))
        angle = np.linspace(0, np.pi / 2, DIRECTIONS)
        fitted = np.sqrt(middle**2 + np.cos(angle) * (high**2 - middle**2))
        misfit = likely + np.sin(angle) * (largest - likely)
        room = float(cells.share @ np.maximum(cells.predicted, 1 - cells.predicted) ** norm) ** (1 / norm)
        found = max(high, float(largest_norms(cells, self.shape, fitted, misfit, level, norm).max()))
        return min(found, max(room, high))

    def squared_misfit(self, weight: Floats, *, within: float) -> tuple[float, float]:
        """The likely squared misfit, at least zero, and its upper limit; both 0 if nothing is smoothed."""
        cells, sigma = self.resolution.cells, self.resolution.sigma
        inside = within * _differences(cells, weight, sigma)
        if self.resolution.fit.identity:
            return inside, inside
        simulated = weight @ self.noise**2
        mean = float(simulated.mean())
        excess = float(weight @ (cells.gap - self.resolution.gap) ** 2) - mean
        room = mean - float(np.quantile(simulated, self.risk))
        likely = max(excess, 0.0) + inside
        largest = likely + room
        if excess > 0:
            per_misfit = float(np.sum(weight**2 * sigma**2 / cells.count)) / float(weight.sum())
            for _ in range(3):
                largest = likely + float(np.sqrt(room**2 + CROSS**2 * 4 * per_misfit * largest))
        return likely, largest


def largest_norms(
    cells: PooledCells, shape: Floats, size: Floats, misfit: Floats, level: Floats, norm: float
) -> Floats:
    r"""Largest norm of a gap whose fitted part has the shape and these sizes, and whose misfit has these squares.

    A cell with mean gap g and variance s² of the gap inside has a mean absolute gap of at most √(g² + s²). Subject to
    Σ w s² / level = misfit, the norm is largest where √(g² + s²) is the larger of g and a multiple of
    level^(1 / (2 - norm)).
    """
    if norm >= 2:
        return np.sqrt(size**2 + misfit)
    length = float(cells.share @ np.abs(shape) ** norm) ** (1 / norm)
    gap = (np.abs(shape) / length if length > 0 else np.ones_like(shape))[:, None] * size
    unit, weight = level[:, None] ** (1 / (2 - norm)), cells.share / level
    most = float(misfit.max()) / float(weight @ unit[:, 0] ** 2)
    top = float((gap / unit).max()) + float(np.sqrt(most)) + 1e-12
    low, high = np.zeros_like(size), np.full_like(size, top)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        over = weight @ (np.maximum(gap, middle * unit) ** 2 - gap**2) > misfit
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.asarray((cells.share @ np.maximum(gap, low * unit) ** norm) ** (1 / norm))


def _differences(cells: PooledCells, weight: Floats, sigma: Floats) -> float:
    """Squared differences between the neighbours of cells of several scores, less their noise."""
    if len(weight) <= 4:
        return 0.0
    between = ~(cells.atom[2:] | cells.single[1:-1] | cells.atom[:-2])
    variance = sigma**2 / cells.count
    squares = (cells.gap[2:] - cells.gap[:-2]) ** 2 - variance[2:] - variance[:-2]
    return max(0.0, float((weight[1:-1] * between) @ squares))
