"""Kernels, and quadratic forms of residuals in them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats

#: Rows per block: pairs of blocks are all that is ever in memory.
BLOCK = 1024
#: Scores among which the median distance is taken.
MEDIAN_OF = 1024
#: Standard deviations beyond which the Gaussian density is zero in double precision.
NEGLIGIBLE = 9.0
#: Waves are summed if there are at most so many for each row; with more of them, all pairs take less time.
WAVES_PER_ROW = 0.25


def _require_bandwidth(bandwidth: float | None) -> None:
    if bandwidth is not None and not 0 < bandwidth < math.inf:
        message = f"bandwidth must be a positive number, got {bandwidth!r}."
        raise ValueError(message)


@dataclass(frozen=True)
class LaplaceKernel:
    """``exp(-|p - q| / bandwidth)``, with the Euclidean distance; None takes the median distance of the predictions.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.kernel_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], kernel=LaplaceKernel(bandwidth=0.2))
    <SKCE 0.0008131, n=4, unbiased, LaplaceKernel(bandwidth=0.2)>
    """

    bandwidth: float | None = None

    def __post_init__(self) -> None:
        _require_bandwidth(self.bandwidth)


@dataclass(frozen=True)
class GaussianKernel:
    """``exp(-|p - q|^2 / (2 bandwidth^2))``; None takes the median distance of the predictions.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.kernel_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], kernel=GaussianKernel(bandwidth=0.2))
    <SKCE 0.003887, n=4, unbiased, GaussianKernel(bandwidth=0.2)>
    """

    bandwidth: float | None = None

    def __post_init__(self) -> None:
        _require_bandwidth(self.bandwidth)


Kernel = LaplaceKernel | GaussianKernel
"""What `kernel_error` takes as `kernel=`."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """Predictions of shape (m, K) with their weighted residuals, cells of equal predictions pooled.

    `diagonal` is the sum of w^2 |e_y - p|^2 over single rows, the pairs i = j; `weight_squares` that of w^2.
    """

    predicted: NDArray[Any]
    residual: Floats
    weight: Floats
    diagonal: float
    weight_squares: float
    n: int

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.weight.sum())

    def quadratic_form(self, kernel: Kernel, bandwidth: float) -> float:
        """Sum of k(p_i, p_j) <r_i, r_j> over all pairs, with i = j."""
        if self.predicted.shape[1] == 1:
            at, residual = self.predicted[:, 0], self.residual[:, 0]
            if isinstance(kernel, LaplaceKernel):
                return _laplace_in_order(at, residual, bandwidth)
            if _waves(at, bandwidth) <= WAVES_PER_ROW * len(at):
                return _gaussian_by_waves(at, residual, bandwidth)
        starts = range(0, len(self.predicted), BLOCK)
        parts = []
        for a in starts:
            for b in starts[a // BLOCK :]:
                first, second = slice(a, a + BLOCK), slice(b, b + BLOCK)
                inner = self.residual[first] @ self.residual[second].T
                inner *= similarity(squared_distances(self.predicted[first], self.predicted[second]), kernel, bandwidth)
                parts.append(float(inner.sum()) * (1 if a == b else 2))
        return math.fsum(parts)

    def median_distance(self) -> float:
        """Median distance of predictions taken at equal steps of weight in sorted order; 1 if all are equal."""
        size = min(MEDIAN_OF, self.n)
        order = np.lexsort(self.predicted.T[::-1])
        running = np.cumsum(self.weight[order])
        target = (np.arange(size) + 0.5) / size * running[-1] * (1 - 1e-12)  # running sums of weights carry rounding
        chosen = np.searchsorted(running, target)
        some = self.predicted[order[np.minimum(chosen, len(order) - 1)]]
        distances = np.sqrt(squared_distances(some, some)[np.triu_indices(size, 1)])
        if not distances.any():
            return 1.0
        median = float(np.median(distances))
        return median if median > 0 else float(np.median(distances[distances > 0]))


def similarity(squared: Floats, kernel: Kernel, bandwidth: float) -> Floats:
    """The kernel at squared distances."""
    if isinstance(kernel, GaussianKernel):
        return np.exp(squared / (-2 * bandwidth**2))
    return np.exp(np.sqrt(squared) / -bandwidth)


def squared_distances(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """Squared Euclidean distances of all pairs of rows.

    Rows are subtracted: the faster way through a matrix product is off by 1e-8 for rows that are almost equal, and
    confident models give many of those.
    """
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(first, second, "sqeuclidean"))


def _laplace_in_order(at: Floats, residual: Floats, bandwidth: float) -> float:
    r"""Sum over all pairs of :math:`e^{-|p_i - p_j| / b} r_i r_j` for rising p, in one pass.

    With :math:`S_j = \sum_{i < j} e^{-(p_j - p_i)/b} r_i` it is the sum of r_j (r_j + 2 S_j). The factor splits into
    one of i and one of j, so S is a running sum; segments of 300 bandwidths keep the factors within range.
    """
    total, carried, since = 0.0, 0.0, at[0]
    for segment in _segments(at, 300 * bandwidth):
        p, r = at[segment], residual[segment]
        growth = np.exp((p - p[0]) / bandwidth)
        carried *= math.exp(-(p[0] - since) / bandwidth)
        running = carried + np.cumsum(r * growth)
        before = np.concatenate([[carried], running[:-1]]) / growth
        total += float(r @ r + 2 * (r @ before))
        carried, since = float(running[-1] / growth[-1]), p[-1]
    return total


def _waves(at: NDArray[Any], bandwidth: float) -> float:
    """Number of waves that `_gaussian_by_waves` adds up, not rounded."""
    return NEGLIGIBLE * (float(np.ptp(at)) / bandwidth + NEGLIGIBLE) / math.tau


def _gaussian_by_waves(at: NDArray[Any], residual: Floats, bandwidth: float) -> float:
    r"""Sum over all pairs of :math:`e^{-(p_i - p_j)^2 / 2 b^2} r_i r_j`, a pass over the rows for each wave.

    The kernel is the integral of :math:`e^{i\omega(p_i - p_j)}` under the normal density of ω with standard deviation
    1 / b, so the sum is that of :math:`|\sum_i r_i e^{i\omega p_i}|^2`. The trapezoidal rule repeats the kernel with
    the period 2π / step; where that is nine bandwidths longer than the range of p, it is exact to double precision.
    """
    p = at.astype(np.float64) - float(at[0])
    step = math.tau / (float(np.ptp(p)) + NEGLIGIBLE * bandwidth)
    turn, total = np.exp(1j * step * p), float(residual.sum()) ** 2
    wave = residual.astype(np.complex128)
    for k in range(1, math.ceil(_waves(at, bandwidth)) + 1):
        wave *= turn
        total += 2 * abs(complex(wave.sum())) ** 2 * math.exp(-((k * step * bandwidth) ** 2) / 2)
    return total * step * bandwidth / math.sqrt(math.tau)


def _segments(at: Floats, length: float) -> Iterator[slice]:
    """Slices of the rising `at`, none longer than `length`."""
    start = 0
    while start < len(at):
        end = max(int(np.searchsorted(at, at[start] + length, side="right")), start + 1)
        yield slice(start, end)
        start = end
