"""The section on reliability: score ranges, diagram, decision threshold, ECE by number of bins.

The edges of a diagram have few digits and are evenly spaced on log odds or on probabilities. The plain ECE is shown
with the range that a calibrated model of the same size would show.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary
from calibrant.data.validation import fail
from calibrant.inference.reliability import ReliabilityCurve, reliability_curve
from calibrant.inference.sample import cluster_labels, coarse_cells, design_effect, row_clusters
from calibrant.numerics.arrays import Floats, expit, log_odds
from calibrant.numerics.cells import FEWEST_EFFECTIVE
from calibrant.numerics.confidence_limits import mid_p_interval
from calibrant.numerics.equal_mass import equal_mass_places, positions_of, sums_between
from calibrant.numerics.random_draws import generator
from calibrant.numerics.smoothers import pool_adjacent_violators
from calibrant.reporting import contents
from calibrant.reporting.contents import Bin, CannotBuild
from calibrant.reporting.evidence import FEW_SCORES, Part
from calibrant.results.estimate import Value
from calibrant.table.binning import Edges, EqualMass
from calibrant.table.bintable import BinTable


@dataclass(frozen=True, eq=False)
class ScoreBins:
    r"""Bins of one part of the data.

    The interval of an observed frequency is mid-P with Kish's number of rows. Rows of clusters count less, by the
    design effect in the bin,

    .. math:: d = \frac{1}{\sum_i r_i^2} \sum_c \frac{(\sum_{i \in c} r_i)^2}{1 - s_c} \cdot \frac{t^2}{z^2} \ge 1,
              \qquad r_i = w_i (y_i - \bar y),

    with :math:`s_c` the share of a cluster in the bin, which pulls the frequency towards its own, t Student's quantile
    for one degree of freedom less than effective clusters, and z the normal one. Where all outcomes are the same, or
    fewer than two clusters are effective, nothing is known of the dependence, and each of these counts as one row.
    """

    part: Part

    def between(self, edges: Floats) -> tuple[Bin, ...]:
        """Bins (low, high] with these edges, the first with its low edge; empty ones are left out."""
        return self._bins(self.part.cells.coarsen(Edges(edges)), edges[1:-1])

    def each_score(self) -> tuple[Bin, ...]:
        """One bin per distinct score."""
        cells = self.part.cells
        return self._bins(cells, cells.high[:-1])

    def inside(self, low: float, high: float) -> Bin | None:
        """The rows with low <= score <= high; None if there are none."""
        edges = [0.0, *([float(np.nextafter(low, 0.0))] if low > 0 else []), *([high] if high < 1 else []), 1.0]
        table = self.part.cells.coarsen(Edges(edges))
        wanted = int(low > 0)
        if not table.weight[wanted] > 0:
            return None
        before = int(np.count_nonzero(table.weight[:wanted] > 0))
        return replace(self._bins(table, np.array(edges[1:-1]))[before], low=low)

    def _bins(self, table: BinTable, inner: Floats) -> tuple[Bin, ...]:
        """The bins of a table that have rows; `inner` are the edges between its bins."""
        some = np.flatnonzero(table.weight > 0)
        rate, size = table.observed_mean[some], table.effective_count[some]
        if self._clustered is not None:
            size = self._clustered.sizes(np.searchsorted(inner, self._clustered.score, side="left"), some, rate, size)
        low, high = mid_p_interval(rate * size, size, 0.95)
        mean, count = table.predicted_mean[some], table.count[some]
        events = np.where(table.weight[some] == count, table.observed[some], count * rate)
        columns = (column.tolist() for column in (table.low[some], table.high[some], count, events, mean))
        return tuple(Bin(*row) for row in zip(*columns, Value.rows(rate, low, high), strict=True))

    @cached_property
    def _clustered(self) -> ClusteredRows | None:
        data = self.part.data
        return ClusteredRows.of(data) if isinstance(data, Binary) and data.group is not None else None


@dataclass(frozen=True, eq=False)
class ClusteredRows:
    """Rows that depend on each other within clusters."""

    score: Floats
    outcome: Floats
    weight: Floats
    cluster: NDArray[np.intp]

    @classmethod
    def of(cls, data: Binary) -> ClusteredRows:
        """The rows of predictions that have a group."""
        weight = np.ones(len(data)) if data.weight is None else data.weight.astype(np.float64)
        p, y = data.y_prob.astype(np.float64), data.y_true.astype(np.float64)
        return cls(p, y, weight, cluster_labels(data, len(data)))

    def sizes(self, index: NDArray[np.intp], some: NDArray[np.intp], rate: Floats, size: Floats) -> Floats:
        """How many independent rows each of the bins `some` is worth; `index` is the bin of each row."""
        from scipy.special import ndtri, stdtrit

        means = np.zeros(int(max(index.max(), some.max())) + 1)
        means[some] = rate
        residual = self.weight * (self.outcome - means[index])
        pairs, pair = np.unique(index * (int(self.cluster.max()) + 1) + self.cluster, return_inverse=True)
        bin_of_pair = pairs // (int(self.cluster.max()) + 1)

        def of_bins(values: Floats) -> Floats:
            return np.bincount(bin_of_pair, values, len(means))[some].astype(np.float64, copy=False)

        weight, sums = (np.bincount(pair.reshape(-1), values) for values in (self.weight, residual))
        part = weight / np.bincount(bin_of_pair, weight)[bin_of_pair]
        alone, clusters = np.bincount(index, residual**2, len(means))[some], 1 / of_bins(part**2)
        together = of_bins(sums**2 / np.maximum(1 - part, 1e-9))
        student = (stdtrit(np.maximum(clusters - 1, 1.0), 0.975) / float(ndtri(0.975))) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            effect = np.maximum(together / alone * student, 1.0)
        known = (alone > 1e-9 * np.maximum(size, 1.0)) & (clusters >= FEWEST_EFFECTIVE * (1 - 1e-9))
        return np.where(known, size / effect, np.minimum(size, clusters))


def average_design_effect(part: Part) -> float:
    """By how much dependence within clusters raises the variance of observed frequencies in tenths of the rows."""
    data = part.data
    if not isinstance(data, Binary) or data.group is None:
        return 1.0
    rows, table = ClusteredRows.of(data), part.cells.coarsen(EqualMass(10)).filled()
    index = np.searchsorted(table.high[:-1], rows.score, side="left")
    residual = rows.weight * (rows.outcome - table.observed_mean[index])
    return design_effect((residual * (index == k) for k in range(len(table))), row_clusters(data, len(data)))


#: Scores farther out than this share of the rows do not stretch the log-odds axis.
#: Test: tests/reporting/sections/test_reliability.py::test_far_scores_do_not_stretch_the_axis.
_TAIL = 0.001
#: Bins that a diagram shows, about.
#: Test: tests/reporting/sections/test_reliability.py::test_linear_edges_are_multiples_of_a_round_step.
BINS = 12
#: Steps that people count in.
#: Test: tests/reporting/sections/test_reliability.py::test_linear_edges_are_multiples_of_a_round_step.
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def log_odds_edges(cells: BinTable, bins: int = BINS) -> Floats | None:
    """Edges evenly spaced on log odds, rounded to two digits; None where fewer than two scores have finite log odds."""
    limits = inner_log_odds(cells)
    if limits is None:
        return None
    inner = expit(np.linspace(*limits, bins + 1)[1:-1])
    low, high = float(cells.low[0]), float(cells.high[-1])
    rounded = np.unique(two_digits(inner))
    return np.concatenate([[_outward(low, down=True)], rounded[(rounded > low) & (rounded < high)], [_outward(high)]])


def linear_edges(cells: BinTable, bins: int = BINS) -> Floats:
    """Edges at multiples of 1, 2, 2.5 or 5 times a power of ten, from below the lowest score to above the highest."""
    low, high = float(cells.low[0]), float(cells.high[-1])
    if not low < high:
        return np.array([low, high])
    wanted = (high - low) / bins
    unit = 10.0 ** np.floor(np.log10(wanted))
    step = next(unit * factor for factor in _STEPS if unit * factor >= wanted * (1 - 1e-9))
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return np.clip(np.round(np.arange(first, last + 1) * step, 12), 0.0, 1.0)


def inner_log_odds(cells: BinTable) -> tuple[float, float] | None:
    """Log odds between which nearly all uncertain scores lie; None where there are not two of them."""
    p = cells.predicted_mean
    inside = (p > 0) & (p < 1)
    z, running = log_odds(p[inside]), np.cumsum(cells.weight[inside])
    if len(z) < 2 or z[0] == z[-1]:
        return None
    total = float(running[-1])
    low, high = (z[min(int(np.searchsorted(running, total * share)), len(z) - 1)] for share in (_TAIL, 1 - _TAIL))
    return (float(low), float(high)) if low < high else (float(z[0]), float(z[-1]))


def two_digits(p: Floats) -> Floats:
    """Probabilities rounded to two significant digits, near 1 those of the complement.

    >>> two_digits(np.array([0.01234, 0.5, 0.98766]))
    array([0.012, 0.5  , 0.988])
    """
    near = np.minimum(p, 1 - p)
    decimals = 1 - np.floor(np.log10(np.maximum(near, 1e-300)))
    scale = 10.0**decimals
    rounded = np.round(near * scale) / scale
    return np.where(p <= 0.5, rounded, np.round(1 - rounded, 15))


def _outward(score: float, *, down: bool = False) -> float:
    """The score itself if it has two digits, else the next such number below or above it."""
    if score in (0.0, 1.0):
        return score
    rounded = float(two_digits(np.array([score]))[0])
    if rounded == score or (rounded < score) == down:
        return rounded
    near = min(score, 1 - score)
    unit = 10.0 ** (np.floor(np.log10(near)) - 1)
    return float(np.clip(round(rounded + (-unit if down else unit), 15), 0.0, 1.0))


#: Events rarer than this (or as rare non-events) start the diagram on log odds.
#: Test: tests/reporting/sections/test_reliability.py::test_rare_events_start_on_log_odds.
RARE = 0.05
#: Ranges in which the error is located, points of a band at most, and bars of the histogram on either axis.
#: Test: tests/reporting/sections/test_reliability.py::test_sizes_of_the_section.
RANGES, BAND_POINTS, LINEAR_BARS, LOG_ODDS_BARS = 5, 200, 40, 48
#: Rows around a threshold: within this distance on log odds, doubled up to twice where fewer than these are there.
#: Test: tests/reporting/sections/test_reliability.py::test_rows_near_a_threshold.
NEAR, NEAR_ROWS = 0.25, 100
#: Share of the rows with the highest scores that are looked at without a threshold.
#: Test: tests/reporting/sections/test_reliability.py::test_the_highest_scores.
TOP = 0.05
#: Effective rows that a cell of the bands needs where rows are clustered.
#: Test: tests/reporting/sections/test_reliability.py::test_cells_of_clustered_bands_hold_twenty_rows.
_CLUSTER_ROWS = 20


def reliability_section(part: Part, *, threshold: float | None = None) -> contents.Reliability:
    """Observed against predicted frequencies of one part of the data."""
    cells = part.cells
    if not len(cells):
        fail("No row has both a prediction and an outcome.", CannotBuild)
    bins, distinct = ScoreBins(part), len(cells) if np.array_equal(cells.low, cells.high) else None
    own = bins.each_score() if distinct is not None and distinct <= FEW_SCORES else None
    found: dict[contents.Axis, tuple[Bin, ...]] = {"linear": bins.between(linear_edges(cells)) if own is None else own}
    edges = log_odds_edges(cells)
    if edges is not None:
        found["log odds"] = bins.between(edges) if own is None else own
    located = found.get("log odds", found["linear"])
    rate = float(cells.observed.sum() / cells.total)
    bands = _bands(part)
    return contents.Reliability(
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


def corp_curve(cells: BinTable) -> contents.Curve:
    """The isotonic curve by its blocks, without a band."""
    starts, weight, observed = pool_adjacent_violators(cells.weight, cells.observed)
    ends = np.append(starts[1:], len(cells)) - 1
    low, high = tuple(cells.low[starts].tolist()), tuple(cells.high[ends].tolist())
    return contents.Curve(low, high, tuple((observed / weight).tolist()))


def confidence_band(part: Part) -> contents.Band:
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


def _band(curve: ReliabilityCurve, low: Floats, high: Floats) -> contents.Band:
    """The band with as many points as a figure needs: those where it changes, and few between."""
    change = (np.diff(low) != 0) | (np.diff(high) != 0)
    keep = np.flatnonzero(np.concatenate([[True], change]) | np.concatenate([change, [True]]))
    if len(keep) > BAND_POINTS:
        keep = keep[np.unique(np.round(np.linspace(0, len(keep) - 1, BAND_POINTS)).astype(np.intp))]
    return contents.Band(*(tuple(values[keep].tolist()) for values in (curve.predicted, low, high)))


def _histograms(cells: BinTable) -> dict[contents.Axis, tuple[tuple[float, float, float], ...]]:
    """Rows per bar; on log odds the outermost bars also hold what lies beyond them, 0 and 1 included."""
    found: dict[contents.Axis, tuple[tuple[float, float, float], ...]] = {
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


def _threshold(bins: ScoreBins, at: float) -> contents.Threshold:
    around = None
    for reach in (NEAR, 2 * NEAR, 4 * NEAR) if 0 < at < 1 else ():
        middle = float(log_odds(at))
        low, high = two_digits(expit(np.array([middle - reach, middle + reach]))).tolist()
        around = bins.inside(min(low, at), max(high, at))
        if around is not None and around.n >= NEAR_ROWS:
            break
    return contents.Threshold(at, around, bins.inside(at, 1.0))


def _top(bins: ScoreBins) -> Bin | None:
    """The rows with the highest scores, about a twentieth; None where that is all rows."""
    cells = bins.part.cells
    above = np.cumsum(cells.weight[::-1])[::-1] / cells.total
    first = int(np.searchsorted(-above, -TOP, side="left"))  # the lowest cell with at most that share above it
    first = min(first, len(cells) - 1)
    return None if first == 0 else bins.inside(float(cells.low[first]), 1.0)


#: The numbers of bins that are tried, as long as bins of equal mass have enough rows.
#: Test: tests/reporting/sections/test_reliability.py::test_a_bin_needs_rows.
STOPS = (2, 3, 5, 8, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000)
#: Rows that a bin of equal mass needs.
#: Test: tests/reporting/sections/test_reliability.py::test_a_bin_needs_rows.
FEWEST_ROWS = 2
#: Simulated samples of a calibrated model.
#: Derived: the share of samples beyond a quantile of 5 % has a standard error of 2 %, enough for a figure.
DRAWS = 100
#: The quantiles of their ECE that are shown.
#: Test: tests/reporting/sections/test_reliability.py::test_the_range_is_that_of_calibrated_samples.
QUANTILES = (0.05, 0.95)


#: Thresholds beside the user's own, and the factor of its odds up to which they go, in both directions.
#: Test: tests/reporting/sections/test_reliability.py::test_net_benefit_around_the_threshold.
_THRESHOLDS, _FACTOR = 41, 4.0


def net_benefit_section(part: Part, threshold: float) -> contents.NetBenefit:
    """The decision curve around a threshold, from a quarter of its odds to four times these."""
    from calibrant.inference.decision_curves import net_benefit

    odds = threshold / (1 - threshold) * np.geomspace(1 / _FACTOR, _FACTOR, _THRESHOLDS)
    found = net_benefit(part.sample, thresholds=odds / (1 + odds))
    return contents.NetBenefit(
        threshold, tuple(found.threshold.tolist()), tuple(Value.rows(found.value, found.low, found.high)),
        tuple(found.treat_all.tolist()),
    )  # fmt: skip


def bin_counts(part: Part) -> contents.BinCounts:
    r"""ECE for 2 to 1000 bins, of equal mass and of equal width.

    The range of a calibrated model is that of the ECE in bins of equal mass of samples with the same predictions and
    outcomes drawn from them. Rows are pooled to the segments between all the edges of all the numbers of bins, in which
    events are binomial, with the effective sample size where these are weighted or clustered.
    """
    cells = part.cells
    counts = [stop for stop in STOPS if stop * FEWEST_ROWS <= cells.n]
    if len(cells) < 2 or len(counts) < 2:
        fail("The number of bins matters only for several scores and more than a few rows.", CannotBuild)
    places = equal_mass_places(cells.weight, cells.weight_squares, cells.low, cells.high, counts, EqualMass.rank)
    union = np.unique(np.concatenate(places))
    index = [np.searchsorted(union, place) for place in places]
    segments = sums_between(cells.sums, union)
    observed = (segments[3] - segments[4])[:, None] / cells.total
    noise = _calibrated_gaps(segments, cells.total, average_design_effect(part), part.seed)
    low, high = np.quantile(_binned_errors(noise, index), QUANTILES, axis=1)
    return contents.BinCounts(
        counts=tuple(counts),
        equal_mass=tuple(_binned_errors(observed, index)[:, 0].tolist()),
        equal_width=_equal_width_errors(cells, counts),
        null_low=tuple(low.tolist()),
        null_high=tuple(high.tolist()),
    )


def _calibrated_gaps(segments: Floats, total: float, effect: float, seed: int) -> Floats:
    """Simulated gaps of a calibrated model, as shares of the total weight: segments by draws."""
    weight = segments[1]
    p = np.clip(segments[3] / weight, 0.0, 1.0)
    count = weight**2 / segments[2] / effect
    whole = np.maximum(np.floor(count + 1e-9), 1.0)
    rng = generator(seed, "band of score ranges")
    drawn = rng.binomial(whole.astype(np.int64)[:, None], p[:, None], (len(p), DRAWS))
    scale = weight / total * np.sqrt(whole / count)
    return np.asarray((p[:, None] - drawn / whole[:, None]) * scale[:, None])


def _binned_errors(gaps: Floats, index: list[NDArray[np.intp]]) -> Floats:
    """Sums of absolute gaps of the bins that start at the given segments: numbers of bins by draws."""
    running = np.concatenate([np.zeros((1, gaps.shape[1])), np.cumsum(gaps, axis=0)])
    starts, ends = (np.concatenate([edges[part] for edges in index]) for part in (slice(-1), slice(1, None)))
    first = np.cumsum([0, *(len(edges) - 1 for edges in index[:-1])])
    return np.asarray(np.add.reduceat(np.abs(running[ends] - running[starts]), first, axis=0))


def _equal_width_errors(cells: BinTable, counts: list[int]) -> tuple[float, ...]:
    edges = [np.linspace(0.0, 1.0, stop + 1) for stop in counts]
    union = np.unique(np.concatenate(edges))
    segments = sums_between(cells.sums, positions_of(union, cells.low, cells.high))
    gaps = (segments[3] - segments[4])[:, None] / cells.total
    return tuple(_binned_errors(gaps, [np.searchsorted(union, some) for some in edges])[:, 0].tolist())
