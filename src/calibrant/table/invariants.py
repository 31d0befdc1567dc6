"""What holds of every table that was made from rows: a file that breaks it was damaged or made up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Floats
from calibrant.table.binning import Distinct, Edges, HybridGrid
from calibrant.table.bintable import BinTable
from calibrant.table.task import Spread
from calibrant.table.unlabeled import Unlabeled

#: Sums of the same rows in another order, or of single precision, differ by less than this part.
ROUNDING = 1e-6


def require_possible(table: BinTable) -> None:
    """Raise `InvalidPredictions` unless some rows could have given this table.

    Counts are whole (but in bins, whose edges may have cut a cell) and not negative, sums of probabilities lie between
    0 and the sum of weights and between the lowest and highest score, sums of squares satisfy the inequality of Cauchy
    and Schwarz, a prior lies in (0, 1], and the keys are those of the cut.

    >>> import calibrant as cal
    >>> require_possible(cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.EqualWidth(2)))
    """
    _require_task(table)
    _require_cells(table)
    with np.errstate(all="ignore"):
        _require_sums(table)
    for reason, count in table.invalid.items():
        validation.whole(f"invalid[{reason!r}]", count, minimum=0)


def _require_task(table: BinTable) -> None:
    if not isinstance(table.task, Unlabeled):
        return
    for name in ("prior", "label_frequency"):
        share = getattr(table.task, name)
        if share is not None and not (isinstance(share, (int, float)) and 0 < share <= 1):
            message = f"{name} must lie in (0, 1], got {share!r}."
            raise InvalidPredictions(message)
    if not isinstance(table.task.nested, bool):
        message = f"nested must be true or false, got {table.task.nested!r}."
        raise InvalidPredictions(message)


def _require_cells(table: BinTable) -> None:
    """Keys that the cut has, bounds in order, and scores that the task can have."""
    key, low, high, cut = table.key, table.low, table.high, table.cut
    for name, values in (("key", key), ("low", low), ("high", high)):
        validation.require(name, values, np.isfinite(values), "must be finite")
    validation.require("low", low, low <= high, "must not be above high")
    if not isinstance(cut, Distinct):
        validation.require("key", key, key == np.floor(key), "must be whole")
    if isinstance(cut, Edges):
        validation.require("key", key, (key >= 0) & (key < len(cut.edges) - 1), "must be the number of a bin")
        validation.require("key", key, np.diff(key, prepend=-1) > 0, "must rise")
        at = key.astype(np.intp)
        validation.require(
            "low", low, (low == cut.edges[at]) & (high == cut.edges[at + 1]), "must be an edge, as high must"
        )
        return
    if isinstance(cut, HybridGrid):
        most = cut.cells * (cut.equal_width or 1)  # edges of equal width divide cells further
        validation.require("key", key, (key >= 0) & (key < most), "must be the number of a cell")
    validation.require("low", low, np.diff(low, prepend=low[:1]) >= 0, "must rise")
    if isinstance(table.task, Spread):
        validation.require("low", low, low > 0, "must be positive, as predicted spreads are")
    else:
        validation.require("low", low, (low >= 0) & (high <= 1), "must lie in [0, 1], as high must")


def _require_sums(table: BinTable) -> None:
    count, weight, predicted, observed = table.count, table.weight, table.predicted, table.observed
    for name in ("count", "weight", "weight_squares", "predicted", "observed", "product", "observed_squares"):
        values = getattr(table, name)
        validation.require(name, values, np.isfinite(values) & (values >= 0), "must be finite and not negative")
    squares = table.predicted_squares
    known = ~np.isnan(squares)  # of bins they may have been left out
    validation.require(
        "predicted_squares", squares, (known | (not table.fine)) & ~(squares < 0), "must not be negative"
    )
    if table.fine:
        validation.require("count", count, count == np.rint(count), "must be whole")
        validation.require("weight", weight, _at_most(table.weight_squares, weight**2), "must fit weight_squares")
    validation.require(
        "weight", weight, _at_most(weight**2, count * table.weight_squares), "must fit count and weight_squares"
    )
    fits = ~known | _at_most(predicted**2, weight * squares)
    validation.require("predicted_squares", squares, fits, "must fit predicted and weight")
    if table.fine:
        power = 2 if isinstance(table.task, Spread) else 1
        inside = _at_most(table.low**power * weight, predicted) & _at_most(predicted, table.high**power * weight)
        validation.require("predicted", predicted, inside, "must lie between low and high times the weight")
    if isinstance(table.task, Spread):
        return
    validation.require("predicted", predicted, _at_most(predicted, weight), "must not exceed the weight")
    validation.require("product", table.product, _at_most(table.product, observed), "must not exceed observed")
    if isinstance(table.task, Unlabeled):
        return
    validation.require("observed", observed, _at_most(observed, weight), "must not exceed the weight")
    validation.require("product", table.product, _at_most(table.product, predicted), "must not exceed predicted")
    validation.require(
        "observed_squares", table.observed_squares, _at_most(table.observed_squares, observed), "must fit observed"
    )


def _at_most(smaller: Floats, larger: Floats) -> NDArray[np.bool_]:
    """Whether one is at most the other but for rounding."""
    return np.asarray(smaller <= larger * (1 + ROUNDING) + np.finfo(np.float64).tiny)
