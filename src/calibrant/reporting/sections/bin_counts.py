"""Plain ECE against the number of bins, with the range that a calibrated model of the same size would show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.estimators.norms import weighted_norm
from calibrant.numerics.arrays import Floats
from calibrant.numerics.equal_mass import sums_between
from calibrant.reporting.contents import BinCounts
from calibrant.reporting.part import Part
from calibrant.reporting.sections.bins import average_design_effect
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.table.binning import EqualMass, EqualWidth
from calibrant.table.bintable import BinTable

#: The numbers of bins that are tried, as long as a bin of equal mass has at least so many rows.
STOPS = (2, 3, 5, 8, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000)
FEWEST_ROWS = 2
#: Simulated samples of a calibrated model, and the quantiles of their ECE.
DRAWS, QUANTILES = 100, (0.05, 0.95)


def bin_counts(part: Part) -> BinCounts:
    r"""ECE for 2 to 1000 bins, of equal mass and of equal width.

    The range of a calibrated model is that of the ECE in bins of equal mass of samples with the same predictions and
    outcomes drawn from them. Rows are pooled to the segments between all the edges of all the numbers of bins, in which
    events are binomial, with the effective number of rows where these are weighted or clustered.
    """
    cells = part.cells
    counts = [stop for stop in STOPS if stop * FEWEST_ROWS <= cells.n]
    if len(cells) < 2 or len(counts) < 2:
        message = "The number of bins matters only for several scores and more than a few rows."
        raise CannotBuild(message)
    places = [cells.places(EqualMass(stop)) for stop in counts]
    union = np.unique(np.concatenate(places))
    index = [np.searchsorted(union, place) for place in places]
    segments = sums_between(cells.sums, union)
    observed = (segments[3] - segments[4])[:, None] / cells.total
    noise = _calibrated_gaps(segments, cells.total, average_design_effect(part), part.seed)
    low, high = np.quantile(_binned_errors(noise, index), QUANTILES, axis=1)
    return BinCounts(
        counts=tuple(counts),
        equal_mass=tuple(_binned_errors(observed, index)[:, 0].tolist()),
        equal_width=tuple(_equal_width_error(cells, stop) for stop in counts),
        null_low=tuple(low.tolist()),
        null_high=tuple(high.tolist()),
    )


def _calibrated_gaps(segments: Floats, total: float, effect: float, seed: int) -> Floats:
    """Simulated gaps of a calibrated model, as shares of the total weight: segments by draws."""
    weight = segments[1]
    p = np.clip(segments[3] / weight, 0.0, 1.0)
    count = weight**2 / segments[2] / effect
    whole = np.maximum(np.floor(count + 1e-9), 1.0)
    drawn = np.random.default_rng([seed, 3]).binomial(whole.astype(np.int64)[:, None], p[:, None], (len(p), DRAWS))
    scale = weight / total * np.sqrt(whole / count)
    return np.asarray((p[:, None] - drawn / whole[:, None]) * scale[:, None])


def _binned_errors(gaps: Floats, index: list[NDArray[np.intp]]) -> Floats:
    """Sums of absolute gaps of the bins that start at the given segments: numbers of bins by draws."""
    running = np.concatenate([np.zeros((1, gaps.shape[1])), np.cumsum(gaps, axis=0)])
    starts, ends = (np.concatenate([edges[part] for edges in index]) for part in (slice(-1), slice(1, None)))
    first = np.cumsum([0, *(len(edges) - 1 for edges in index[:-1])])
    return np.asarray(np.add.reduceat(np.abs(running[ends] - running[starts]), first, axis=0))


def _equal_width_error(cells: BinTable, bins: int) -> float:
    some = cells.coarsen(EqualWidth(bins)).filled()
    return float(weighted_norm(some.predicted_mean - some.observed_mean, some.share, 1))
