"""The squared kernel calibration error: unbiased, without bins or smoothing, and for whole vectors of probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Multiclass, binary
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.kernel_forms import Kernel, LaplaceKernel, Residuals
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import Rows
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import Distinct
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import Data, fine
from calibrant.table.task import task_of
from calibrant.table.unlabeled import Unlabeled


@estimates("kernel error")
def kernel_error(
    data: Data | Multiclass,
    y_prob: ArrayLike | None = None,
    /,
    *,
    kernel: Kernel = LaplaceKernel(),
    unbiased: bool = True,
) -> Estimate:
    r"""Squared kernel calibration error, SKCE, by default its unbiased estimate.

    .. math:: \frac{\sum_{i \ne j} w_i w_j\, k(p_i, p_j)\, \langle e_{y_i} - p_i,\, e_{y_j} - p_j\rangle}
              {\sum_{i \ne j} w_i w_j}

    For several classes p is the whole vector of probabilities and e_y the one-hot outcome, so this asks for
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
        False gives the biased version, which keeps pairs i = j and is never below zero but for rounding. For that one
        a weight of 2 is a row twice. For the unbiased one it is not: two copies of a row are a pair, a row and itself
        are none.

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
        message = "kernel_error needs at least two rows that have weight: its unbiased version is a mean over pairs."
        raise InvalidPredictions(message)
    bandwidth = rows.median_distance() if kernel.bandwidth is None else float(kernel.bandwidth)
    power = rows.quadratic_form(kernel, bandwidth)
    over, pairs = (rows.diagonal, rows.total**2 - rows.weight_squares) if unbiased else (0.0, rows.total**2)
    method = f"{'unbiased' if unbiased else 'biased'}, {type(kernel).__name__}(bandwidth={bandwidth:.4g})"
    return Estimate((power - over) / pairs, name="SKCE", method=method, n=rows.n, details=_details(kernel, bandwidth))


def _details(kernel: Kernel, bandwidth: float) -> dict[str, float | str]:
    return {"bandwidth": bandwidth, "kernel": type(kernel).__name__}


def _scalar(data: Data, y_prob: ArrayLike | None) -> Residuals:
    """A binary task or its fine table: one row per cell."""
    diagonal = None
    if not isinstance(data, BinTable):
        task = binary(data, y_prob)
        rows = task.rows()
        if rows.predicted is not rows.key:
            message = f"kernel_error needs probabilities and their outcomes, got {type(task).__name__} predictions."
            raise ValueError(message)
        diagonal = _diagonal(rows)
        data = BinTable.of(rows, Distinct())
    cells = fine(data, None, needed_by="kernel_error")
    if diagonal is None:
        squared_residuals = cells.observed_squares - 2 * cells.product + cells.predicted_squares
        diagonal = float((cells.weight_squares / cells.weight) @ squared_residuals)
    at = np.clip(cells.predicted / cells.weight, cells.low, cells.high)
    residual = cells.observed - cells.weight * at
    squares = float(cells.weight_squares.sum())
    return Residuals(at[:, None], residual[:, None], cells.weight, diagonal, squares, cells.n)


def _diagonal(rows: Rows) -> float:
    residual = rows.observed - rows.key.astype(np.float64, copy=False)
    if rows.weight is not None:
        residual = residual * rows.weight
    return float(residual @ residual)


def _canonical(data: Multiclass) -> Residuals:
    n = len(data)
    residual = -data.y_prob.astype(np.float64)
    residual[np.arange(n), data.y_true] += 1
    weight = np.ones(n) if data.weight is None else data.weight
    residual *= weight[:, None]
    diagonal = float(np.einsum("ij,ij->", residual, residual))
    return Residuals(data.y_prob, residual, weight, diagonal, float(weight @ weight), n)


def pu_kernel_error(data: PositiveUnlabeled | BinTable, task: Unlabeled, kernel: Kernel, *, unbiased: bool) -> Estimate:
    r"""SKCE without negatives.

    .. math:: \pi^2\,\mathrm{mean}_{i \ne j \in P}\, k(p_i, p_j) - 2\pi\,\mathrm{mean}_{P \times U}\, p_j k(p_i, p_j)
              + \mathrm{mean}_{i \ne j \in U}\, p_i p_j k(p_i, p_j)

    Pairs of a row with itself are left out, in a single sample also those of a labelled row with its own copy among
    all rows; where its label frequency c is known, residuals s / c - p take the place of the three means.
    """
    cells = fine(data, None, needed_by="kernel_error")
    seen, at = cells.weight + cells.observed, task.mean_score(cells)[:, None]
    n, observed, total = cells.n, float(cells.observed.sum()), cells.total
    few, many = float(cells.observed_squares.sum()), float(cells.weight_squares.sum())
    if unbiased and not (observed**2 > few and total**2 > many):
        message = "kernel_error needs at least two positives and two unlabeled rows: it is a mean over pairs."
        raise InvalidPredictions(message)
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
    value = scale**2 * first - 2 * scale * cross + last
    method = f"{'unbiased' if unbiased else 'biased'}, {type(kernel).__name__}(bandwidth={bandwidth:.4g})"
    return Estimate(value, name="SKCE", method=method, n=n, details=_details(kernel, bandwidth))
