"""Positive-unlabeled data: the error for a range of assumed shares of positives, and the shares implied by score."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import numpy as np

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.estimators.binned import ece
from calibrant.inference.intervals import interval
from calibrant.pu.inference import reliability
from calibrant.reporting.contents import Bin, Shares, Value
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.table.binning import Distinct, EqualMass, PaperBins
from calibrant.table.bintable import BinTable
from calibrant.table.unlabeled import Gaps, Unlabeled, largest_prior

#: Assumed shares, as multiples of the given one.
MULTIPLES = np.linspace(0.6, 1.4, 17)
#: Score ranges in which shares are implied.
BINS = 12


def shares_section(data: PositiveUnlabeled | BinTable) -> Shares:
    """PU-ECE with its interval for 17 shares around the given one, which is the middle of them.

    The given share decides the level of the implied ones: if it is too large by a tenth, so are they.
    """
    cells = data if isinstance(data, BinTable) else BinTable.of(data, Distinct())
    if not isinstance(cells.task, Unlabeled):
        message = "Shares of positives are assumed only for positive-unlabeled data."
        raise CannotBuild(message)
    if not cells.observed.sum() > 0 or not cells.total > 0:
        message = "There are no labelled positives, or no unlabeled rows."
        raise CannotBuild(message)
    prior = Gaps.of(cells).prior
    priors = np.unique(np.clip(prior * MULTIPLES, 1e-9, 1 - 1e-9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shares above 1 are shown, and a finding
        errors = tuple(_error(cells, float(assumed), own=bool(np.isclose(assumed, prior))) for assumed in priors)
        return Shares(
            prior=float(prior),
            priors=tuple(priors.tolist()),
            errors=errors,
            largest=_largest(cells),
            implied=_implied(cells),
        )


def _error(cells: BinTable, prior: float, *, own: bool) -> Value:
    nested = isinstance(cells.task, Unlabeled) and cells.task.nested
    assumed = cells if own else replace(cells, task=Unlabeled(prior, nested=nested))
    estimate = interval(partial(ece, bins=PaperBins()), assumed)
    limits = estimate.interval
    value = float(max(estimate, 0.0))
    return Value(value) if limits is None else Value(value, max(float(limits.low), 0.0), float(limits.high))


def _largest(cells: BinTable) -> float | None:
    """The largest share that these data allow."""
    found = float(largest_prior(cells.coarsen(EqualMass(15)) if cells.fine else cells))
    return found if np.isfinite(found) else None


def _implied(cells: BinTable) -> tuple[Bin, ...]:
    """Score ranges of the unlabeled rows with the share of positives that the labelled ones imply."""
    table = cells.coarsen(EqualMass(BINS)) if cells.fine else cells
    found = reliability(table)
    some = table.take((table.weight > 0) | (table.observed > 0))
    some = some if len(some) == len(found.rate) else table.filled()
    columns = (some.low, some.high, found.share * cells.total, some.observed, found.predicted)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    limits = zip(found.rate.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
    return tuple(
        Bin(low, high, n, events, predicted, Value(*value))
        for (low, high, n, events, predicted), value in zip(rows, limits, strict=True)
    )
