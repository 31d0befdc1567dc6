"""The monotone sweep: as many bins as the data can carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.binning import Distinct, EqualMass, EqualWidth
from calibrant.bintable import BinTable, equal_mass_cuts, equal_mass_table, places_of
from calibrant.estimate import Estimate
from calibrant.estimators.common import Data, check_norm, fine, gap_norm, result, with_norm
from calibrant.kernels import Floats, SortedRows, sorted_rows
from calibrant.predictions import binary


def sweep_ece(
    data: Data,
    y_prob: ArrayLike | None = None,
    /,
    *,
    bins: type[EqualMass] | type[EqualWidth] = EqualMass,
    norm: float = 1,
) -> Estimate:
    r"""Monotonic sweep calibration error, ECE_sweep: binned, with the most bins whose outcomes rise.

    .. math:: b^\star = \max\{b : \bar y_1 \le \dots \le \bar y_{b'} \text{ for every } b' \le b\}

    and the result is `ece` with b* bins. A true calibration curve rises, so bins in disorder are too small to be
    believed. Equal scores are never parted, so the result does not depend on the order of the rows (published code
    splits them and moves by a tenth). Where every b is in order (separable outcomes) each distinct score is a bin.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
    bins : EqualMass or EqualWidth
        The family of binnings to sweep through.
    norm : float
        As for `ece`. The paper uses 2.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), eq. 8 and Algorithm 1.

    Examples
    --------
    >>> sweep_ece([1, 0, 0, 1, 0, 1], [0.1, 0.2, 0.4, 0.6, 0.7, 0.9])
    <ECE_sweep 0.2167, n=6, EqualMass(n=3)>
    """
    norm = check_norm(norm)
    ranked = _ranked(data, y_prob)
    n = ranked.largest_rising(bins)
    table = ranked.table(bins, n)
    return result(gap_norm(table, norm), with_norm("ECE_sweep", norm), repr(bins(n)), table, bins=n)


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Running sums of weight and outcome over cells in the order of the score, each beginning with 0."""

    source: SortedRows | BinTable
    low: NDArray[Any]
    high: NDArray[Any]
    weight: Floats
    observed: Floats

    def largest_rising(self, bins: type[EqualMass] | type[EqualWidth]) -> int:
        """b*: the last number of bins before the first whose mean outcomes fall somewhere."""
        whole = bool(np.all(self.weight == np.floor(self.weight)))
        tolerance = 0.0 if whole else 1e-12  # whole counts divide alike; running sums of real weights do not
        if _rises(np.diff(self.weight), np.diff(self.observed), tolerance):
            return len(self.weight) - 1
        atom = self.low == self.high
        for n in range(2, len(self.weight)):
            if bins is EqualMass:
                at = equal_mass_cuts(self.weight[1:], n, atom=atom)
            else:
                at = places_of(EqualWidth(n).edges, self.low, self.high)
            if not _rises(np.diff(_at(self.weight, at)), np.diff(_at(self.observed, at)), tolerance):
                return n - 1
        return len(self.weight) - 1

    def table(self, bins: type[EqualMass] | type[EqualWidth], n: int) -> BinTable:
        """The bins that were chosen."""
        if isinstance(self.source, BinTable):
            return self.source.coarsen(bins(n))
        if bins is EqualMass:
            return equal_mass_table(self.source, n)
        return BinTable.of(self.source.pairs, bins(n))


def _ranked(data: Data, y_prob: ArrayLike | None) -> _Ranked:
    if isinstance(data, BinTable):
        cells = fine(data, None, needed_by="sweep_ece")
        outcomes = np.cumsum(cells.observed * cells.observed_scale)
        return _Ranked(cells, cells.low, cells.high, _from_zero(np.cumsum(cells.weight)), _from_zero(outcomes))
    predictions = binary(data, y_prob)
    pairs = predictions.pairs()
    if not pairs.plain_binary:  # weights, or a prior: go through the exact table
        return _ranked(BinTable.of(predictions, Distinct()), None)
    rows = sorted_rows(pairs)
    key = rows.pairs.key[rows.ends - 1]
    observed = np.cumsum(rows.pairs.observed, dtype=np.int64)[rows.ends - 1]
    return _Ranked(rows, key, key, _from_zero(rows.ends), _from_zero(observed))


def _from_zero(running: NDArray[Any]) -> Floats:
    return np.concatenate([[0.0], running])


def _at(running: Floats, at: Floats) -> Floats:
    """Running sums at places between cells; 3.25 is a quarter into the fourth cell."""
    whole = at.astype(np.intp)
    after = running[np.minimum(whole + 1, len(running) - 1)]
    return running[whole] + (at - whole) * (after - running[whole])


def _rises(weight: Floats, observed: Floats, tolerance: float) -> bool:
    some = weight > 0
    if not some.all():
        weight, observed = weight[some], observed[some]
    rate = observed / weight
    return not bool(np.any(rate[1:] < rate[:-1] - tolerance))
