"""The squared kernel calibration error of labelled and of positive-unlabeled rows, with its kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Column, Columns, Multiclass, binary
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import Distinct
from calibrant.table.bintable import BinTable, Data, fine
from calibrant.table.task import Unlabeled, task_of


@dataclass(frozen=True)
class _Kernel:
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        if self.bandwidth is not None and not 0 < self.bandwidth < math.inf:
            fail(f"bandwidth must be a positive number, got {self.bandwidth!r}.", ValueError)


class LaplaceKernel(_Kernel):
    """``exp(-|p - q| / bandwidth)``, with the Euclidean distance; None takes the median distance of the predictions.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.kernel_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], kernel=LaplaceKernel(bandwidth=0.2))
    <SKCE 0.0008131, n=4, unbiased, LaplaceKernel(bandwidth=0.2)>
    """


class GaussianKernel(_Kernel):
    """``exp(-|p - q|^2 / (2 bandwidth^2))``; None takes the median distance of the predictions.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.kernel_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], kernel=GaussianKernel(bandwidth=0.2))
    <SKCE 0.003887, n=4, unbiased, GaussianKernel(bandwidth=0.2)>
    """


Kernel = LaplaceKernel | GaussianKernel
"""What `kernel_error` takes as `kernel=`."""


@estimates("kernel error")
def kernel_error(
    data: Data = None,
    y_prob: Column = None,
    *,
    kernel: Kernel = LaplaceKernel(),
    unbiased: bool = True,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Squared kernel calibration error, SKCE, by default its unbiased estimate.

    .. math:: \frac{\sum_{i \ne j} w_i w_j\, k(p_i, p_j)\, \langle e_{y_i} - p_i,\, e_{y_j} - p_j\rangle}
              {\sum_{i \ne j} w_i w_j}

    For multiclass data p is the whole vector of probabilities and e_y the one-hot outcome, so this asks for
    calibration in the strongest (canonical) sense. For a binary task p is the probability of the event and the inner
    product is (y_i - p_i)(y_j - p_j); the same task as two classes counts each residual twice and its distances are
    sqrt(2) longer, so it gives 2 x this value at sqrt(2) x the bandwidth. The expectation is zero if and only if the
    predictions are calibrated. It is the *square* of an error, and an unbiased estimate of it may be negative;
    `.clipped` is max(0, value).

    Positive-unlabeled data give an unbiased estimate of the same number, by pairs within and between the two samples.

    Binary tasks go through the exact table. There the Laplace kernel takes one sorted pass and the Gaussian kernel
    about 13 + 1.4 / bandwidth passes, O(n log n); whole vectors take all pairs in blocks of 1024, O(n^2) time and O(n)
    memory, and so does a Gaussian kernel so narrow that there are fewer than four rows for each of its passes.

    Parameters
    ----------
    data : Predictions, fine BinTable (binary), or y_true
        The table keeps sums of w times squares, so a table of rows whose weights differ *within a cell* takes the
        cell's average weight for the pairs of a row with itself. All else is exact on an exact table.
    kernel : LaplaceKernel or GaussianKernel
        Its bandwidth is by default the median distance among at most 1024 predictions, taken at equal steps of weight
        in sorted order: no draw is involved, and the order of the rows does not matter.
    unbiased : bool
        False gives the biased version, which keeps pairs i = j and is never below zero except for rounding. In this
        version a weight of 2 is the same as two copies of the row. In the unbiased one it is not: two copies of a row
        form a pair, a row and itself do not.

    References
    ----------
    Widmann, Lindsten, Zachariah (2019), Calibration tests in multi-class classification: A unifying framework,
    table 1 (there SKCE_uq and SKCE_b).

    Examples
    --------
    >>> kernel_error([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], kernel=LaplaceKernel(0.5))
    <SKCE -0.05107, n=4, unbiased, LaplaceKernel(bandwidth=0.5)>
    """
    if isinstance(data, PositiveUnlabeled | BinTable) and isinstance(task := task_of(data), Unlabeled):
        return pu_kernel_error(data, task, kernel, unbiased=unbiased)
    rows = _canonical(data) if isinstance(data, Multiclass) and y_prob is None else _scalar(data, y_prob)
    if unbiased and not rows.total**2 > rows.weight_squares:
        fail("kernel_error needs at least two rows that have weight: its unbiased version is a mean over pairs.")
    bandwidth = rows.median_distance() if kernel.bandwidth is None else float(kernel.bandwidth)
    power = rows.quadratic_form(kernel, bandwidth)
    over, pairs = (rows.diagonal, rows.total**2 - rows.weight_squares) if unbiased else (0.0, rows.total**2)
    return _skce((power - over) / pairs, kernel, bandwidth, rows.n, unbiased=unbiased)


def pu_kernel_error(data: PositiveUnlabeled | BinTable, task: Unlabeled, kernel: Kernel, *, unbiased: bool) -> Estimate:
    r"""SKCE without negatives.

    .. math:: \pi^2\,\mathrm{mean}_{i \ne j \in P}\, k(p_i, p_j) - 2\pi\,\mathrm{mean}_{P \times U}\, p_j k(p_i, p_j)
              + \mathrm{mean}_{i \ne j \in U}\, p_i p_j k(p_i, p_j)

    Pairs of a row with itself are left out, in a single sample also those of a labelled row with its own copy among
    all rows; where its label frequency c is known, residuals s / c - p replace the three means.
    """
    cells = fine(data, None, needed_by="kernel_error")
    seen, at = cells.weight + cells.observed, task.mean_score(cells)[:, None]
    n, observed, total = cells.n, float(cells.observed.sum()), cells.total
    few, many = float(cells.observed_squares.sum()), float(cells.weight_squares.sum())
    if unbiased and not (observed**2 > few and total**2 > many):
        fail("kernel_error needs at least two positives and two unlabeled rows: it is a mean over pairs.")
    middle = Residuals(at, cells.weight[:, None], cells.weight, 0.0, 0.0, n)
    bandwidth = middle.median_distance() if kernel.bandwidth is None else float(kernel.bandwidth)

    def form(residual: Floats) -> float:
        return Residuals(at, residual[:, None], seen, 0.0, 0.0, n).quadratic_form(kernel, bandwidth)

    first, last = form(cells.observed), form(cells.predicted)
    cross = (form(cells.observed + cells.predicted) - first - last) / 2
    known = task.label_frequency is not None
    if unbiased:
        heavy = cells.weight_squares[cells.weight > 0] / cells.weight[cells.weight > 0]
        first = (first - few) / (total**2 - many if known else observed**2 - few)
        last = (last - float(heavy @ cells.predicted_squares[cells.weight > 0])) / (total**2 - many)
        copies = float(cells.product.sum()) * few / observed if task.nested else 0.0
        cross = (cross - copies) / (total**2 - many if known else observed * total - (few if task.nested else 0.0))
    else:
        first, last = first / (total if known else observed) ** 2, last / total**2
        cross = cross / (total if known else observed) / total
    scale = cells.observed_scale if known else cells.observed_scale * observed / total
    return _skce(scale**2 * first - 2 * scale * cross + last, kernel, bandwidth, n, unbiased=unbiased)


def _skce(value: float, kernel: Kernel, bandwidth: float, n: int, *, unbiased: bool) -> Estimate:
    kind = type(kernel).__name__
    method = f"{'unbiased' if unbiased else 'biased'}, {kind}(bandwidth={bandwidth:.4g})"
    return Estimate(value, name="SKCE", method=method, n=n, details={"bandwidth": bandwidth, "kernel": kind})


def _scalar(data: Data, y_prob: Column) -> Residuals:
    """A binary task or its fine table: one row per cell."""
    diagonal = None
    if not isinstance(data, BinTable):
        task = binary(data, y_prob)
        rows = task.rows()
        if rows.predicted is not rows.key:
            message = f"kernel_error needs probabilities and their outcomes, got {type(task).__name__} predictions."
            raise ValueError(message)
        single = rows.observed - rows.key.astype(np.float64, copy=False)
        single = single if rows.weight is None else single * rows.weight
        diagonal = float(single @ single)
        data = BinTable.of(rows, Distinct())
    cells = fine(data, None, needed_by="kernel_error")
    if diagonal is None:
        squared_residuals = cells.observed_squares - 2 * cells.product + cells.predicted_squares
        diagonal = float((cells.weight_squares / cells.weight) @ squared_residuals)
    at = np.clip(cells.predicted / cells.weight, cells.low, cells.high)
    residual = cells.observed - cells.weight * at
    squares = float(cells.weight_squares.sum())
    return Residuals(at[:, None], residual[:, None], cells.weight, diagonal, squares, cells.n)


def _canonical(data: Multiclass) -> Residuals:
    n = len(data)
    residual = -data.y_prob.astype(np.float64)
    residual[np.arange(n), data.y_true] += 1
    weight = np.ones(n) if data.weight is None else data.weight
    residual *= weight[:, None]
    diagonal = float(np.einsum("ij,ij->", residual, residual))
    return Residuals(data.y_prob, residual, weight, diagonal, float(weight @ weight), n)


#: Rows per block: pairs of blocks are all that is ever in memory.
#: Speed: of 8,192 rows, blocks of 256 and of 4096 take a third longer; no result depends on it.
BLOCK = 1024
#: Scores among which the median distance is taken.
#: Test: tests/estimators/test_kernel.py::test_the_usual_bandwidth_is_the_median_distance_of_1024_scores.
MEDIAN_OF = 1024
#: Standard deviations beyond which the Gaussian density is zero in double precision. Derived: exp(-9^2 / 2) = 3e-18.
NEGLIGIBLE = 9.0
#: Waves are summed if there are at most so many for each row; with more of them, all pairs take less time.
#: Speed: of 128 rows both then take 0.1 ms, of more rows waves take less; the two agree to 1e-14.
WAVES_PER_ROW = 0.25


@dataclass(frozen=True, eq=False)
class Residuals:
    """Predictions (m, K) with their weighted residuals; `diagonal` is the sum of w^2 |e_y - p|^2 over single rows."""

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
    """Squared Euclidean distances of all pairs of rows, not by a matrix product: it is off by 1e-8 for like rows."""
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
