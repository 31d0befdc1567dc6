"""The reliability diagram, where the error sits, and rows around and above a decision threshold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.inference.reliability import ReliabilityCurve, reliability_curve
from calibrant.inference.sample import coarse_cells
from calibrant.numerics.arrays import Floats
from calibrant.numerics.isotonic import pool_adjacent_violators
from calibrant.numerics.special import expit, log_odds
from calibrant.reporting.contents import Axis, Band, Bin, Curve, Reliability, Threshold
from calibrant.reporting.part import Part
from calibrant.reporting.sections.bins import ScoreBins, average_design_effect
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.reporting.sections.score_edges import inner_log_odds, linear_edges, log_odds_edges, two_digits
from calibrant.table.binning import Edges
from calibrant.table.bintable import BinTable

#: Up to this many distinct scores, each is a bin of its own.
FEW_SCORES = 20
#: Events rarer than this (or as rare non-events) start the diagram on log odds.
RARE = 0.05
#: Ranges in which the error is located.
RANGES = 5
#: Points of a band that a figure needs, at most.
BAND_POINTS = 200
#: Bars of the histogram on probabilities and on log odds.
LINEAR_BARS, LOG_ODDS_BARS = 40, 48
#: Rows around a threshold: within this distance on log odds, doubled up to twice where fewer than these are there.
NEAR, NEAR_ROWS = 0.25, 100
#: Share of the rows with the highest scores that are looked at without a threshold.
TOP = 0.05
#: Effective rows that a cell of the bands needs where rows are clustered.
_CLUSTER_ROWS = 20


def reliability_section(part: Part, *, threshold: float | None = None) -> Reliability:
    """Observed against predicted frequencies of one part of the data."""
    cells = part.cells
    if not len(cells):
        message = "No row has both a prediction and an outcome."
        raise CannotBuild(message)
    bins, distinct = ScoreBins(part), _distinct_scores(cells)
    own = bins.each_score() if distinct is not None and distinct <= FEW_SCORES else None
    found: dict[Axis, tuple[Bin, ...]] = {"linear": bins.between(linear_edges(cells)) if own is None else own}
    edges = log_odds_edges(cells)
    if edges is not None:
        found["log odds"] = bins.between(edges) if own is None else own
    located = found.get("log odds", found["linear"])
    rate = float(cells.observed.sum() / cells.total)
    bands = _bands(part)
    return Reliability(
        curve=replace(corp_curve(cells), confidence=_band(bands, bands.confidence_low, bands.confidence_high)),
        consistency=_band(bands, bands.consistency_low, bands.consistency_high),
        bins=found,
        histogram=_histograms(cells),
        ranges=_ranges(bins, located),
        axis="log odds" if min(rate, 1 - rate) < RARE and "log odds" in found else "linear",
        distinct=distinct,
        threshold=None if threshold is None else _threshold(bins, threshold),
        top=_top(bins),
    )


def corp_curve(cells: BinTable) -> Curve:
    """The isotonic curve by its blocks, without a band."""
    starts, weight, observed = pool_adjacent_violators(cells.weight, cells.observed)
    ends = np.append(starts[1:], len(cells)) - 1
    return Curve(
        tuple(cells.low[starts].tolist()), tuple(cells.high[ends].tolist()), tuple((observed / weight).tolist())
    )


def confidence_band(part: Part) -> Band:
    """The band in which the true curve lies, if it rises."""
    bands = _bands(part, draws=2)
    return _band(bands, bands.confidence_low, bands.confidence_high)


def _bands(part: Part, *, draws: int = 200) -> ReliabilityCurve:
    """Both bands; clustered rows count less, by their average design effect in ten bins of scores."""
    table, effect = part.cells, average_design_effect(part)
    if effect > 1:
        rows = table.population.effective_n / effect
        table = coarse_cells(table, int(np.clip(rows / _CLUSTER_ROWS, 8, 512)))
        sums = table.sums.copy()
        sums[2] *= effect
        table = replace(table, sums=sums)
    return reliability_curve(table, draws=draws, seed=part.seed)


def _band(curve: ReliabilityCurve, low: Floats, high: Floats) -> Band:
    """The band with as many points as a figure needs: those where it changes, and few between."""
    keep = _kept(low, high)
    if len(keep) > BAND_POINTS:
        keep = keep[np.unique(np.round(np.linspace(0, len(keep) - 1, BAND_POINTS)).astype(np.intp))]
    return Band(*(tuple(values[keep].tolist()) for values in (curve.predicted, low, high)))


def _kept(low: Floats, high: Floats) -> NDArray[np.intp]:
    """The first and last of every run of points with the same limits."""
    change = (np.diff(low) != 0) | (np.diff(high) != 0)
    ends = np.concatenate([[True], change]) | np.concatenate([change, [True]])
    return np.flatnonzero(ends)


def _distinct_scores(cells: BinTable) -> int | None:
    """The number of distinct scores; None where a cell holds several."""
    return len(cells) if np.array_equal(cells.low, cells.high) else None


def _histograms(cells: BinTable) -> dict[Axis, tuple[tuple[float, float, float], ...]]:
    """Rows per bar; on log odds the outermost bars also hold what lies beyond them, 0 and 1 included."""
    found: dict[Axis, tuple[tuple[float, float, float], ...]] = {
        "linear": _bars(cells, np.linspace(0.0, 1.0, LINEAR_BARS + 1))
    }
    limits = inner_log_odds(cells)
    if limits is not None:
        found["log odds"] = _bars(cells, expit(np.linspace(*limits, LOG_ODDS_BARS + 1)))
    return found


def _bars(cells: BinTable, edges: Floats) -> tuple[tuple[float, float, float], ...]:
    rows = cells.coarsen(Edges(np.concatenate([[0.0], edges[1:-1], [1.0]]))).count
    return tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), rows.tolist(), strict=True))


def _ranges(bins: ScoreBins, located: tuple[Bin, ...]) -> tuple[Bin, ...]:
    """Neighbouring bins joined to five ranges that expect about as much noise each, with their share of the gaps."""
    gap = np.array([abs(one.events - one.n * one.predicted) for one in located])
    noise = np.cumsum([max(one.n * one.predicted * (1 - one.predicted), 1e-12) for one in located])
    wanted = noise[-1] * np.arange(1, RANGES) / RANGES
    ends = np.unique([*(np.abs(noise[:, None] - wanted).argmin(axis=0) + 1), len(located)])
    starts = np.concatenate([[0], ends[:-1]])
    made = bins.between(np.array([located[0].low, *(located[end - 1].high for end in ends)]))
    share = np.add.reduceat(gap, starts) / max(float(gap.sum()), 1e-300)
    return tuple(
        replace(one, low=located[start].low, share=part)
        for one, start, part in zip(made, starts, share.tolist(), strict=True)
    )


def _threshold(bins: ScoreBins, at: float) -> Threshold:
    reach, around = NEAR, None
    for _ in range(3):
        around = _around(bins, at, reach)
        if around is not None and around.n >= NEAR_ROWS:
            break
        reach *= 2
    return Threshold(at, around, bins.inside(at, 1.0))


def _around(bins: ScoreBins, at: float, reach: float) -> Bin | None:
    if not 0 < at < 1:
        return None
    middle = float(log_odds(at))
    low, high = two_digits(expit(np.array([middle - reach, middle + reach]))).tolist()
    return bins.inside(min(low, at), max(high, at))


def _top(bins: ScoreBins) -> Bin | None:
    """The rows with the highest scores, about a twentieth; None where that is all rows."""
    cells = bins.part.cells
    above = np.cumsum(cells.weight[::-1])[::-1] / cells.total
    first = int(np.searchsorted(-above, -TOP, side="left"))  # the lowest cell with at most that share above it
    first = min(first, len(cells) - 1)
    return None if first == 0 else bins.inside(float(cells.low[first]), 1.0)
