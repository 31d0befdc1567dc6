"""The monotone sweep: as many bins as the data can carry."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Column, Columns, binary
from calibrant.estimators.binned import check_norm, gap_norm, mass_norm, result, with_norm
from calibrant.numerics.arrays import Floats
from calibrant.numerics.equal_mass import Rank, RunningWeight, SortedSamples, positions_of
from calibrant.numerics.sorting import SortedRows, sorted_rows
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import EqualMass, EqualWidth, check_rank
from calibrant.table.bintable import BinTable
from calibrant.table.from_rows import bin_samples, equal_mass_table
from calibrant.table.of_data import Data, fine
from calibrant.table.task import Spread

Family = type[EqualMass] | type[EqualWidth]

#: Rows in perfect order, which would be swept to the end, are looked for at this number of bins.
#: Speed: most sweeps of other rows have ended by then; no result depends on it.
_ORDER_CHECK = 32


def _of_samples(samples: SortedSamples, *, bins: Family = EqualMass, norm: float = 1, rank: Rank = "floor") -> Floats:
    norm, bins = check_norm(norm), _check_family(bins, rank)
    chosen = largest_rising(samples, bins, rank)
    values = np.empty(len(samples))
    for n_bins in np.unique(chosen):
        which = np.flatnonzero(chosen == n_bins)
        found = bin_samples(samples, _of_family(bins, int(n_bins), rank), which)
        values[which] = mass_norm(found.mass, found.share, norm)
    return values


@estimates("true error", batched=_of_samples)
def sweep_ece(
    data: Data = None,
    y_prob: Column = None,
    *,
    bins: Family = EqualMass,
    norm: float = 1,
    rank: Rank = "floor",
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Monotonic sweep calibration error, ECE_sweep: binned, with the most bins whose outcomes rise.

    .. math:: b^\star = \max\{b : \bar y_1 \le \dots \le \bar y_{b'} \text{ for every } b' \le b\}

    and the result is `ece` with b* bins. A true calibration curve rises, so bins whose outcomes do not rise are too
    small to be reliable. Equal scores are never split, so the result does not depend on the order of the rows
    (published code splits them and moves by a tenth). Where every b is in order (separable outcomes) each distinct
    score is a bin.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
    bins : EqualMass or EqualWidth
        The family of binnings to sweep through.
    norm : float
        As for `ece`. The paper uses 2.
    rank : "floor" or "ceil"
        How `EqualMass` rounds the ranks of its edges. "ceil" is that of the code published with the paper, whose
        numbers then come out where no scores are tied.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), eq. 8 and Algorithm 1.

    Examples
    --------
    >>> sweep_ece([1, 0, 0, 1, 0, 1], [0.1, 0.2, 0.4, 0.6, 0.7, 0.9])
    <ECE_sweep (L1) 0.2167, n=6, EqualMass(n_bins=3)>
    """
    norm = check_norm(norm)
    return swept(_source(data, y_prob), _check_family(bins, rank), norm, rank)


def _check_family(bins: Family, rank: Rank) -> Family:
    if bins not in (EqualMass, EqualWidth):
        message = (
            "The sweep chooses the number of bins itself, so bins must be the class EqualMass or EqualWidth, got "
            f"{bins!r}; for a given number of bins use ece or ence."
        )
        raise ValueError(message)
    if check_rank(rank) != "floor" and bins is not EqualMass:
        message = f"rank={rank!r} is for bins=EqualMass; EqualWidth has no ranks."
        raise ValueError(message)
    return bins


def _of_family(bins: Family, n_bins: int, rank: Rank) -> EqualMass | EqualWidth:
    return EqualMass(n_bins, rank) if bins is EqualMass else EqualWidth(n_bins)


def swept(source: SortedRows | BinTable, bins: Family = EqualMass, norm: float = 1, rank: Rank = "floor") -> Estimate:
    """The sweep of sorted rows or of a fine table, of probabilities or of spreads."""
    if isinstance(source, SortedRows):
        n_bins = int(largest_rising(SortedSamples.of_rows(source), bins, rank)[0])
        if bins is EqualMass:
            table = BinTable(*equal_mass_table(source, n_bins, rank))
        else:
            table = BinTable.of(source.rows, bins(n_bins))
    else:
        n_bins = _largest_rising_of_cells(source, bins, rank)
        table = source.coarsen(_of_family(bins, n_bins, rank))
    table.task.warn(table)
    found = repr(_of_family(bins, n_bins, rank))
    return result(gap_norm(table, norm), with_norm("ECE_sweep", norm), found, table, bins=n_bins)


def _source(data: Data, y_prob: Column) -> SortedRows | BinTable:
    """Sorted rows where whole counts will do, else the fine table."""
    if isinstance(data, BinTable):
        return fine(data, None, needed_by="sweep_ece")
    predictions = binary(data, y_prob)
    first, *_ = predictions.parts()
    if first.plain_binary:
        return sorted_rows(first)
    return fine(predictions, None, needed_by="sweep_ece")


def largest_rising(samples: SortedSamples, bins: Family = EqualMass, rank: Rank = "floor") -> NDArray[np.intp]:
    """b* of each sample: the last number of bins before the first whose mean outcomes fall, in whole numbers."""
    by_loop = bins is EqualMass and rank == "floor" and len(samples) == 1
    if by_loop and (found := samples.largest_rising()) is not None:
        return np.array([found])
    chosen = np.full(len(samples), samples.n, dtype=np.intp)
    active = np.arange(len(samples))
    for n_bins in range(2, samples.n + 1):
        if n_bins == _ORDER_CHECK:
            active = active[[not _rises_everywhere(samples, sample) for sample in active.tolist()]]
        which = None if len(active) == len(samples) else active
        if bins is EqualMass:
            cuts = samples.equal_mass_cuts(n_bins, which, rank)
        else:
            cuts = samples.cuts_at(EqualWidth(n_bins).edges, which)
        falls = _falls(cuts[..., 1:] - cuts[..., :-1], samples.observed(cuts, which))
        if falls.any():
            chosen[active[falls]] = n_bins - 1
            active = active[~falls]
        if not len(active):
            break
    return chosen


def _rises_everywhere(samples: SortedSamples, sample: int) -> bool:
    """Whether the mean outcomes of the distinct scores never fall: then those of no bins do."""
    if not samples.tied:  # each row is a bin, and its outcome the mean
        outcome = samples.outcome[sample]
        return not bool((outcome[1:] < outcome[:-1]).any())
    cuts, which = samples.run_ends(sample), np.array([sample])
    return not bool(_falls(np.diff(cuts), samples.observed(cuts, which)[0]))


def _largest_rising_of_cells(cells: BinTable, bins: Family, rank: Rank = "floor") -> int:
    """b* on cells that may carry weights and may be cut: running sums at places between and within cells."""
    weight = np.concatenate([[0.0], np.cumsum(cells.weight)])
    observed = np.concatenate([[0.0], np.cumsum(cells.observed)])
    equal_mass = RunningWeight.of(cells.weight, cells.weight_squares, atom=cells.low == cells.high)
    unit = cells.observed.sum() / cells.total if isinstance(cells.task, Spread) else 1.0
    tolerance = 1e-12 * unit  # sums of weights and parts of cells carry rounding
    ends = _ends_of_weight(weight)
    most = cells.task.most_bins(cells)
    if not _falls(np.diff(weight[ends]), np.diff(observed[ends]), tolerance):
        return most
    for n_bins in range(2, most + 1):
        if bins is EqualMass:
            at = equal_mass.cuts(n_bins, rank)
        else:
            at = positions_of(EqualWidth(n_bins).edges, cells.low, cells.high)
        if _falls(np.diff(_at(weight, at)), np.diff(_at(observed, at)), tolerance):
            return n_bins - 1
    return most


def _ends_of_weight(weight: Floats) -> NDArray[np.intp]:
    """The places that end a cell of some weight; cells without weight (positives alone) join the next that has some.

    Bins are (low, high], so an equal-mass edge at an unlabeled score takes in the positives below it.
    """
    ends = np.flatnonzero(np.diff(weight, prepend=-1.0) > 0)
    ends[-1] = len(weight) - 1
    return ends


def _at(running: Floats, at: Floats) -> Floats:
    """Running sums at places between cells; 3.25 is a quarter into the fourth cell."""
    whole = at.astype(np.intp)
    after = running[np.minimum(whole + 1, len(running) - 1)]
    return running[whole] + (at - whole) * (after - running[whole])


def _falls(weight: NDArray[Any], observed: NDArray[Any], tolerance: float = 0.0) -> NDArray[np.bool_]:
    """Whether a mean outcome along the last axis is below that of an earlier bin; bins without weight have none."""
    filled = weight > 0
    if filled.all():
        rate = observed / weight
        before = rate[..., :-1] - tolerance if tolerance else rate[..., :-1]
        return np.asarray((rate[..., 1:] < before).any(axis=-1))
    rate = np.divide(observed, weight, out=np.full(observed.shape, -np.inf), where=filled)
    highest = np.maximum.accumulate(rate, axis=-1)  # before the first fall, the last filled is the highest
    return np.asarray((filled[..., 1:] & (rate[..., 1:] < highest[..., :-1] - tolerance)).any(axis=-1))
