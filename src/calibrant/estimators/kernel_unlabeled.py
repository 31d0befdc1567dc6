"""The squared kernel calibration error from positives and unlabeled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.common import fine
from calibrant.estimators.kernel_forms import Rows
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate

if TYPE_CHECKING:
    from calibrant.data.positive_unlabeled import PositiveUnlabeled
    from calibrant.estimators.kernel_forms import Kernel
    from calibrant.table.bintable import BinTable


def pu_kernel_error(data: PositiveUnlabeled | BinTable, kernel: Kernel, *, unbiased: bool) -> Estimate:
    r"""SKCE without negatives.

    .. math:: \pi^2\,\mathrm{mean}_{i \ne j \in P}\, k(p_i, p_j) - 2\pi\,\mathrm{mean}_{P \times U}\, p_j k(p_i, p_j)
              + \mathrm{mean}_{i \ne j \in U}\, p_i p_j k(p_i, p_j)

    Pairs of a row with itself are left out, in a single sample also those of a labelled row with its own copy among
    all rows; where its label frequency c is known, residuals s / c - p take the place of the three means.
    """
    cells = fine(data, None, needed_by="kernel_error")
    seen = cells.weight + cells.observed
    at = ((cells.predicted + cells.product) / seen)[:, None]
    n, observed, total = cells.n, float(cells.observed.sum()), cells.total
    few, many = float(cells.observed_squares.sum()), float(cells.weight_squares.sum())
    if unbiased and not (observed**2 > few and total**2 > many):
        message = "kernel_error needs at least two positives and two unlabeled rows: it is a mean over pairs."
        raise InvalidPredictions(message)
    middle = Rows(at, cells.weight[:, None], cells.weight, 0.0, 0.0, n)
    bandwidth = middle.median_distance() if kernel.bandwidth is None else float(kernel.bandwidth)

    def form(residual: Floats) -> float:
        return Rows(at, residual[:, None], seen, 0.0, 0.0, n).quadratic_form(kernel, bandwidth)

    first, last = form(cells.observed), form(cells.predicted)
    cross = (form(cells.observed + cells.predicted) - first - last) / 2
    known = cells.label_frequency is not None
    if unbiased:
        heavy = cells.weight_squares[cells.weight > 0] / cells.weight[cells.weight > 0]
        first = (first - few) / (total**2 - many if known else observed**2 - few)
        last = (last - float(heavy @ cells.predicted_squares[cells.weight > 0])) / (total**2 - many)
        own = float(cells.product.sum()) * few / observed if cells.nested else 0.0
        cross = (cross - own) / (total**2 - many if known else observed * total - (few if cells.nested else 0.0))
    else:
        first, last = first / (total if known else observed) ** 2, last / total**2
        cross = cross / (total if known else observed) / total
    scale = cells.observed_scale if known else cells.observed_scale * observed / total
    value = scale**2 * first - 2 * scale * cross + last
    method = f"{'unbiased' if unbiased else 'biased'}, {type(kernel).__name__}(bandwidth={bandwidth:.4g})"
    return Estimate(value, name="SKCE", method=method, n=n, details={"bandwidth": bandwidth})
