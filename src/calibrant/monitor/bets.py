r"""Bets against calibration, their evidence over time as the state of a monitor, and confidence sequences for means.

A row with outcome y and predicted probability p multiplies the wealth of a bet on a shift d of the log odds by

.. math:: e_d(y, p) = \frac{e^{d y}}{1 - p + p\,e^d}.

If P(y = 1) = p given everything that was used before, this factor has mean 1, so that the wealth is a nonnegative
martingale: it exceeds 1 / alpha at any time with a probability of at most alpha (Ville's inequality). The logarithm of
the wealth is concave in p, so sums of rows that share a cell of scores can take the mean of p for each of them: that
only lowers the wealth. A row of weight w in [0, 1] counts as the power w of its factor, whose mean is at most 1
(Jensen); the same holds for rows of one cluster whose weights sum to 1, whatever their dependence (Hölder).

With a tolerance, a bet on higher outcomes is made against the largest probability that is allowed, and one on lower
outcomes against the smallest: the factor grows (falls) with y, so its mean is at most 1 for all probabilities between.

The evidence is a fixed average of the wealth of all bets: of one shift of all scores, of shifts that grow with the
log odds, of a shift in one of 2, 4, 8 or 16 ranges of scores, and of independent shifts in all of these ranges.

Confidence sequences are valid whenever one looks, too.
For residuals :math:`r_i \ge -1` and :math:`0 < \lambda < 1`, :math:`\exp(\lambda r - \psi(\lambda) r^2) \le 1 + \lambda
r` with :math:`\psi(\lambda) = -\log(1-\lambda) - \lambda` (Fan, Grama, Liu 2015). Hence for the mean g of the
conditional means of n residuals, which may differ from row to row,

.. math:: \exp\bigl(\lambda (n g - \textstyle\sum r_i) - \psi(\lambda) \sum r_i^2\bigr)

is at most a nonnegative supermartingale that starts at 1; so is its average over several lambda. By Ville's inequality
all g for which the average ever reaches 2 / alpha can be excluded, on either side.

Over time, the evidence is a weighted sum over the periods j since which the model may have been off,

.. math:: M = \sum_j w_j E_j, \qquad \sum_j w_j \le 1,

where :math:`E_j` is the evidence of the rows dated in period j or later. Each row multiplies each :math:`E_j` by a
factor of mean at most 1 whatever its date, so that M is dominated by a nonnegative martingale in the order in which
rows arrive: rows may be late, in any order, and in deliveries of any size.

Period j is a start as long as :math:`16 \cdot 2^v` periods have not passed, with :math:`2^v` the largest power of 2
that divides j: recent starts are kept one by one, early ones more and more sparsely, about :math:`8 \log_2 T` in all.
Rows of periods that are no longer starts are added to the block of the latest start before them. Which start that is
depends on the period and on the last period alone, so that the same rows give the same blocks in any order.
"""

from __future__ import annotations

import json
import math
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from calibrant._atomic_write import replacing
from calibrant._version import __version__
from calibrant.data.predictions import Binary
from calibrant.data.saved_files import InvalidFile, layout_version, parsed_json, reading_back
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats, expit
from calibrant.numerics.rows import row_blocks
from calibrant.results.estimate import Estimate, Interval
from calibrant.results.target import Target

if TYPE_CHECKING:
    from calibrant.monitor.monitoring import Monitor

#: Cells of the log odds between -LARGEST and LARGEST, in which rows are summed.
#: Test: tests/monitor/test_bets.py::test_cells_lose_little_of_the_evidence_of_the_rows.
CELLS, LARGEST = 128, 12.0
#: Ranges of scores, with equal shares of the reference, of which bets are made apart.
#: Test: tests/monitor/test_bets.py::test_a_range_of_one_sixteenth_is_bet_on.
LEAVES = 16
#: Sizes of the shifts that are bet on, in both directions: from a hundredth of the rate at 1/2 to odds times 30.
#: Test: tests/monitor/test_bets.py::test_shifts_of_every_size_are_found_almost_as_fast_as_by_the_best_bet.
SIZES = 0.03 * 2.2 ** np.arange(7)
#: Pairs of a shift, and of its growth with the standardised log odds.
#: Test: tests/monitor/test_bets.py::test_slopes_are_found_almost_as_fast_as_by_the_best_bet.
_GROWTH = (0.06, 0.12, 0.25, 0.5, 1.0)
SLOPES = np.array([(shift, sign * size) for sign in (1, -1) for size in _GROWTH for shift in (-0.3, 0.0, 0.3)])
#: Prior weight of each kind of bet: all scores alike, by slope, one range, all ranges apart. Derived: they sum to 1;
#: the logarithm of a weight is what its kind loses, at most log(1 / 0.15) = 1.9 of the evidence that an alarm needs.
SHIFT, SLOPE, ONE_RANGE, ALL_RANGES = 0.3, 0.25, 0.3, 0.15
#: Prior probability that a range is calibrated when all are bet on apart. Derived: indifference.
QUIET = 0.5
#: Smallest share of the reference that a cell counts for, so that scores not seen there have a range too, and the
#: smallest standard deviation of the log odds. Derived: both only keep divisions possible.
_LEAST_SHARE, _LEAST_SPREAD = 1e-3, 0.1
#: Log odds beyond so many standard deviations of the reference count as such, so that no bet is reckless there.
#: Derived: a shift of 0.3 + 1.0 * 3 is the largest of `SIZES`.
_FARTHEST = 3.0


class Gains(NamedTuple):
    """Logarithms of the wealth of single bets: by range and shift, and by slope. Those of several periods add up."""

    ranges: Floats
    slopes: Floats


def cells_of(y_prob: Floats, cells: int = CELLS) -> NDArray[np.intp]:
    """The cell of each predicted probability; 0 and 1 are in the outermost ones."""
    with np.errstate(divide="ignore"):
        log_odds = np.log(y_prob) - np.log1p(-y_prob)
    inside = np.clip((log_odds + LARGEST) * (cells / (2 * LARGEST)), 0, cells - 1)
    return inside.astype(np.intp)


@dataclass(frozen=True, eq=False)
class Bets:
    """What is bet on, given the scores of a reference but never its outcomes.

    `leaf` is the range of scores, of `LEAVES`, that each cell belongs to, and `slopes` (slopes, cells) the shift of
    each cell by each bet on a slope; relative errors of the odds up to `tolerance` are allowed, and of probabilities
    absolute ones up to `points`.
    """

    leaf: NDArray[np.intp]
    slopes: Floats
    tolerance: float
    points: float

    @classmethod
    def on_scores(cls, reference: Floats, tolerance: float, points: float) -> Bets:
        """Bets on predicted probabilities; `reference` counts the rows of each cell."""
        mass = reference + _LEAST_SHARE * max(float(reference.sum()), 1.0) / len(reference)
        middle = (np.cumsum(mass) - mass / 2) / mass.sum()
        leaf = np.minimum((LEAVES * middle).astype(np.intp), LEAVES - 1)
        log_odds = cell_log_odds(len(reference))[:-1] + LARGEST / len(reference)
        mean = float(np.average(log_odds, weights=mass))
        spread = max(math.sqrt(float(np.average((log_odds - mean) ** 2, weights=mass))), _LEAST_SPREAD)
        standardised = np.clip((log_odds - mean) / spread, -_FARTHEST, _FARTHEST)
        return cls(leaf, SLOPES[:, :1] + SLOPES[:, 1:] * standardised, tolerance, points)

    @classmethod
    def on_tree(cls, tolerance: float, points: float) -> Bets:
        """Bets on the halves of a probability integral transform: cells are the nodes of a binary tree, root first.

        The slope is that of the two nodes below the root in opposite directions: a spread that is too small or large.
        """
        opposite = np.zeros(LEAVES)
        opposite[1], opposite[2] = -1.0, 1.0
        return cls(np.arange(LEAVES), SLOPES[:, :1] + SLOPES[:, 1:] * opposite, tolerance, points)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.leaf)

    def allowed(self, p: Floats, sign: int) -> Floats:
        """The largest (sign 1) or smallest (sign -1) probability within the tolerance."""
        odds = (1 + self.tolerance) ** sign
        return np.clip(p * odds / (1 + p * (odds - 1)) + sign * self.points, 0.0, 1.0)

    def gains(self, sums: Floats) -> Gains:
        """From the sums of weights, predictions and outcomes of each cell (last axes: cells by 3)."""
        some = np.flatnonzero(sums[..., 0].reshape(-1, self.cells).any(axis=0))
        weight, predicted, observed = np.moveaxis(sums[..., some, :], -1, 0)
        p = predicted / np.where(weight > 0, weight, 1.0)
        most, least = self.allowed(p, 1), self.allowed(p, -1)
        shifts = [
            observed[..., None] * d - weight[..., None] * np.log1p(against[..., None] * np.expm1(d))
            for d, against in ((SIZES, most), (-SIZES, least))
        ]
        own_range = (np.arange(LEAVES)[:, None] == self.leaf[some]).astype(np.float64)
        ranges = np.einsum("lc,...cd->...ld", own_range, np.concatenate(shifts, axis=-1))
        d = self.slopes[:, some]
        against = np.where(d > 0, most[..., None, :], least[..., None, :])
        slopes = d * observed[..., None, :] - weight[..., None, :] * np.log1p(against * np.expm1(d))
        return Gains(ranges, slopes.sum(axis=-1))


def cell_log_odds(cells: int = CELLS) -> Floats:
    """The edges of the cells, as log odds."""
    return np.linspace(-LARGEST, LARGEST, cells + 1)


def cell_edges(cells: int = CELLS) -> Floats:
    """The edges of the cells, as probabilities; the outermost cells reach to 0 and 1."""
    edges = expit(cell_log_odds(cells))
    edges[[0, -1]] = 0.0, 1.0
    return np.asarray(edges)


def log_evidence(gains: Gains) -> Floats:
    """Logarithm of the average wealth of all bets."""
    by_range = log_mean(_nested(gains.ranges), axis=-1)  # 1 + 2 + 4 + 8 + 16 ranges
    apart = np.logaddexp(math.log(QUIET), math.log(1 - QUIET) + by_range)
    levels = _levels()
    parts = [math.log(SHIFT) + by_range[..., 0], math.log(SLOPE) + log_mean(gains.slopes, axis=-1)]
    parts += [math.log(ONE_RANGE / len(levels)) + log_mean(by_range[..., level], axis=-1) for level in levels]
    parts += [math.log(ALL_RANGES / len(levels)) + apart[..., level].sum(axis=-1) for level in levels]
    return log_sum(np.stack(parts, axis=-1), axis=-1)


class Strongest(NamedTuple):
    """The range of scores with most evidence: its leaves, and the mean shift of the log odds by their wealth."""

    leaves: slice
    shift: float


def strongest(gains: Gains) -> Strongest:
    """Where the predictions are off most clearly."""
    nested = _nested(gains.ranges)
    sizes = [level.stop - level.start for level in _levels()]
    prior = np.concatenate([[SHIFT], *(np.full(size, ONE_RANGE / 4 / size) for size in sizes)])
    node = int(np.argmax(log_mean(nested, axis=-1) + np.log(prior)))
    depth = (node + 1).bit_length() - 1
    width = LEAVES >> depth
    first = (node + 1 - (1 << depth)) * width
    share = np.exp(nested[node] - nested[node].max())
    shift = float(share @ np.concatenate([SIZES, -SIZES]) / share.sum())
    return Strongest(slice(first, first + width), shift)


def log_sum(values: Floats, axis: int) -> Floats:
    """Logarithm of the sum of exponentials."""
    largest = values.max(axis=axis, keepdims=True)
    return np.squeeze(largest, axis) + np.log(np.exp(values - largest).sum(axis=axis))


def log_mean(values: Floats, axis: int) -> Floats:
    """Logarithm of the mean of exponentials."""
    return log_sum(values, axis) - math.log(values.shape[axis])


def _nested(ranges: Floats) -> Floats:
    """Gains of the whole, of halves, quarters, eighths and sixteenths, along the axis of ranges."""
    found = [ranges]
    while found[0].shape[-2] > 1:
        found.insert(0, found[0][..., ::2, :] + found[0][..., 1::2, :])
    return np.concatenate(found, axis=-2)


def _levels() -> list[slice]:
    """The places of halves, quarters, eighths and sixteenths in the list of nested ranges."""
    return [slice(size - 1, 2 * size - 1) for size in (2, 4, 8, 16)]


#: Bets on the mean, of which the average is taken: limits are at most 1.6 times as far as by the best bet, for sums of
#: squares up to 1e6. Test: tests/monitor/test_bets.py::test_the_bets_are_near_the_best_one_for_any_sum_of_squares.
BETS = 0.9 * 1.9 ** -np.arange(13.0)


def mean_sequence(n: float, total: float, squares: float, alpha: float) -> tuple[float, float]:
    """Limits of the mean of n residuals in [-1, 1] with this sum and sum of squares, valid at any time."""
    return max(-_upper(n, -total, squares, alpha), -1.0), min(_upper(n, total, squares, alpha), 1.0)


def _upper(n: float, total: float, squares: float, alpha: float) -> float:
    """The largest mean that is not excluded."""
    cost = (-np.log1p(-BETS) - BETS) * squares

    def excess(mean: float) -> float:
        return float(log_mean(BETS * (n * mean - total) - cost, axis=0)) - math.log(2 / alpha)

    return 1.0 if excess(1.0) <= 0 else float(brentq(excess, total / n, 1.0, xtol=1e-12))


def improvement(y_true: ArrayLike, before: ArrayLike, after: ArrayLike, *, alpha: float = 0.05) -> Estimate:
    r"""How much lower the Brier score is with repaired predictions, with limits that are valid at any time.

    .. math:: \frac1n \sum_i (f_i - y_i)^2 - (g_i - y_i)^2

    where f are the predictions before and g those after the repair. Give all rows since the repair at each look. Keep
    the repair while the interval reaches above 0; roll it back once its upper end is below 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(3000)
    >>> improvement(rng.random(3000) < truth, truth**2, truth).interval.low > 0
    True
    """
    old, new = Binary(y_true, before), Binary(y_true, after)
    if len(old) != len(new):
        fail(f"before has {len(old):,} rows and after {len(new):,}: give both for the same rows.")
    fall = (old.y_prob - old.y_true) ** 2 - (new.y_prob - new.y_true) ** 2
    low, high = mean_sequence(len(fall), float(fall.sum()), float((fall**2).sum()), alpha)
    value = Estimate(float(fall.mean()), name="Fall of the Brier score", method="confidence sequence", n=len(fall))
    return value.with_interval(sequence_interval(low, high, 1 - alpha, Target("mean score")))


def sequence_interval(low: float, high: float, level: float, target: Target | None = None) -> Interval:
    """The limits as an interval."""
    return Interval(low, high, level=level, method="confidence sequence, valid at any time", target=target)


def closed_testing(evidence: Floats) -> Floats:
    """E-values adjusted for all of them (Vovk and Wang 2021): the least average over all sets that contain each."""
    order = np.sort(evidence)
    sums = np.concatenate([[0.0], np.cumsum(order)])
    rank = np.searchsorted(order, evidence)
    return np.array([((e + sums[: k + 1]) / np.arange(1, k + 2)).min() for e, k in zip(evidence, rank, strict=True)])


#: A start at an odd period is kept for this many periods, one at a multiple of 2^v for 2^v times as many; of groups a
#: quarter of it.
#: Test: tests/monitor/test_bets_blocks.py::test_recent_starts_are_kept_one_by_one_and_early_ones_sparsely.
LIFE = 16
#: The weight of the first period: that the model was off from the beginning. Derived: half for that, half for later.
FIRST = 0.5
#: Shift of the period in the weights of later ones. Derived: the sum of 1 / ((j + 10) log(j + 10)^2) over j >= 1 is at
#: most its integral from 0, 1 / log(10).
_OFFSET = 10


def start_weight(period: int, *, arl: bool = False) -> float:
    r"""The weight of a start, fixed in advance; the sum over all periods is at most 1.

    .. math:: w_0 = \tfrac12, \qquad w_j = \tfrac12 u_j \sum_{v: 2^v | j} \frac{2^v}{(v+1)(v+2)}, \qquad
              u_j = \frac{\log 10}{(j + 10) \log^2(j + 10)}

    For a mean time between false alarms (`arl`) u is 1 and w_0 too: the sum up to period t is at most t + 1.
    """
    if period == 0:
        return 1.0 if arl else FIRST
    powers = range((period & -period).bit_length())
    level = sum(2.0**v / ((v + 1) * (v + 2)) for v in powers)
    if arl:
        return level
    return (1 - FIRST) * math.log(_OFFSET) / ((period + _OFFSET) * math.log(period + _OFFSET) ** 2) * level


class Evidence(NamedTuple):
    """Starts, the logarithm of each one's own evidence, and that of the whole."""

    starts: list[int]
    own: Floats
    total: float


class Since(NamedTuple):
    """Sums of the rows since a period: by cell (weights, predictions, outcomes), and of squared residuals."""

    sums: Floats
    squares: float


class Blocks:
    """The rows of one series, all rows or those of a group, as sums per block of periods.

    By first period of the block, `sums` are the weights, predictions and outcomes of each cell, shape (cells, 3), and
    `squares` the sums of squared residuals; `life` is explained at `LIFE`.
    """

    def __init__(self, bets: Bets, life: int = LIFE) -> None:
        self.bets, self.life = bets, life
        self.now = 0
        self.pinned: tuple[int, ...] = ()
        self.sums: dict[int, Floats] = {}
        self.squares: dict[int, float] = {}
        self._gains: dict[int, Gains] = {}
        self._evidence: dict[bool, Evidence] = {}  # of what has not changed since it was asked for

    def advance(self, now: int, pinned: Iterable[int] = ()) -> None:
        """Move on to a period, and join the blocks whose starts are not kept any longer; those `pinned` are."""
        self.now, self.pinned = now, tuple(sorted(pinned))
        for start in sorted(self.sums, reverse=True):
            if self._start_of(start) != start:
                self._gains.pop(start, None)
                self.add(start, self.sums.pop(start), self.squares.pop(start))

    def add(self, period: int, sums: Floats, squares: float) -> None:
        """Add the sums of rows of one period."""
        start = self._start_of(period)
        self.sums[start] = self.sums.get(start, 0.0) + sums
        self.squares[start] = self.squares.get(start, 0.0) + squares
        self._gains.pop(start, None)
        self._evidence = {}

    def evidence(self, *, arl: bool = False) -> Evidence:
        """The evidence since each start, and in all; with the weights of a mean time between false alarms for `arl`."""
        if arl in self._evidence:
            return self._evidence[arl]
        starts = sorted(self.sums)
        self._gains |= {start: self.bets.gains(self.sums[start]) for start in starts if start not in self._gains}
        since = [
            np.cumsum(np.stack([self._gains[start][kind] for start in starts])[::-1], axis=0)[::-1] for kind in (0, 1)
        ]
        own = log_evidence(Gains(*since))
        weighted = own + np.log([start_weight(start, arl=arl) for start in starts])
        self._evidence[arl] = Evidence(starts, own, float(log_sum(weighted, axis=0)))
        return self._evidence[arl]

    def since(self, start: int) -> Since:
        """The sums of all blocks from this start on; of the last one if there is none."""
        later = [one for one in self.sums if one >= start] or [max(self.sums)]
        return Since(np.sum([self.sums[one] for one in later], axis=0), sum(self.squares[one] for one in later))

    def faded(self, half_life: float) -> Floats:
        """The sums with older blocks counted less: half for each `half_life` periods between their middle and now."""
        starts = sorted(self.sums)
        ends = [*starts[1:], self.now + 1]
        ages = [self.now - (start + end - 1) / 2 for start, end in zip(starts, ends, strict=True)]
        faded = [self.sums[start] * 0.5 ** (age / half_life) for start, age in zip(starts, ages, strict=True)]
        return np.sum(faded, axis=0)

    def _start_of(self, period: int) -> int:
        """The latest start that is kept and not after a period."""
        last = max((start for start in self.pinned if start <= period), default=-1)
        while period > last and period > 0 and self.now - period >= self.life * (period & -period):
            period &= period - 1  # without its lowest bit: the next earlier start, which lives longer
        return period


def tree_sums(low: Floats, high: Floats, weight: Floats, period: NDArray[np.intp], periods: int, leaves: int) -> Floats:
    """Probability integral transforms as sums of the nodes of a binary tree, root first: periods by nodes by 3.

    An interval (of a rank, a count, or between quantiles) is spread over it evenly: the logarithm of its wealth is the
    mean over a transform drawn in it, whose exponential has mean at most 1 (Jensen).
    """
    point = high <= low
    leaf = np.minimum((low[point] * leaves).astype(np.intp), leaves - 1)
    in_leaf = np.zeros((periods, leaves))
    np.add.at(in_leaf, (period[point], leaf), weight[point])
    edges = np.arange(leaves + 1) / leaves
    intervals = np.flatnonzero(~point)
    for block in row_blocks(len(intervals), leaves):
        some = intervals[block]
        below = np.clip((edges - low[some, None]) / (high - low)[some, None], 0.0, 1.0)
        np.add.at(in_leaf, period[some], np.diff(below, axis=1) * weight[some, None])
    found = np.zeros((periods, leaves, 3))
    for depth in range(leaves.bit_length() - 1):
        halves = in_leaf.reshape(periods, 2 ** (depth + 1), -1).sum(axis=2)
        whole = halves[:, ::2] + halves[:, 1::2]
        found[:, 2**depth - 1 : 2 ** (depth + 1) - 1] = np.stack([whole, whole / 2, halves[:, 1::2]], axis=2)
    return found


M = TypeVar("M", bound="Monitor")
FORMAT = "calibrant-monitor"
#: The layout that is written and read. Test: tests/monitor/test_bets_blocks.py::test_what_is_damaged_is_refused.
VERSION = 1
#: The largest whole number of 48 bits. Derived: a mean is then off by at most 2e-15.
_LARGEST = 2**48 - 1
#: Settings, and what is counted; both are attributes of the monitor.
_SETTINGS = ("alpha", "arl", "tolerance", "points", "horizon")
_COUNTS = ("kind", "columns", "dates", "origin", "now", "deliveries", "rows", "alarmed", "declared")


def save(monitor: Monitor, path: str | os.PathLike[str]) -> None:
    """See `Monitor.save`."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "calibrant": __version__,
        **{name: getattr(monitor, name) for name in (*_SETTINGS, *_COUNTS)},
        "reference": None if monitor.reference is None else [_short(count) for count in monitor.reference],
        "peak": monitor.peak if math.isfinite(monitor.peak) else None,
        "pinned": list(monitor.pinned),
        "shares": monitor.shares,
        "seen": {key: list(when) for key, when in monitor.seen.items()},
        "history": [[period, round(evidence, 4)] for period, evidence in monitor.history],
        "series": {name: _blocks(blocks) for name, blocks in monitor.series.items()},
    }
    with replacing(path) as place:
        place.write_text(json.dumps(content, separators=(",", ":"), allow_nan=False), encoding="utf-8")


def load(cls: type[M], path: str | os.PathLike[str]) -> M:
    """See `Monitor.load`."""
    content = parsed_json(Path(path).read_bytes(), path, "the state of a monitor")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        fail(f"{os.fspath(path)} is not the state of a monitor: its format is not {FORMAT!r}.", InvalidFile)
    layout_version(content.get("version"), (VERSION,), path, content.get("calibrant"))
    with reading_back(path, "a valid state of a monitor"):
        return _restored(cls, content)


def _restored(cls: type[M], content: dict[str, Any]) -> M:
    found = cls(content["alpha"], **{name: content[name] for name in _SETTINGS[1:]})
    for name in _COUNTS:
        setattr(found, name, content[name])
    _require(found.kind in (None, "binary", "multiclass", "forecast"), "its kind is unknown")
    for name in ("now", "deliveries", "rows", "declared"):
        _require(type(content[name]) is int and content[name] >= 0, f"{name!r} is not a count")
    if content["reference"] is not None:
        found.reference = np.array(content["reference"], dtype=np.float64)
        _require(found.reference.shape == (CELLS,) and bool((found.reference >= 0).all()), "its reference is damaged")
    found.peak = -math.inf if content["peak"] is None else float(content["peak"])
    found.pinned = tuple(int(start) for start in content["pinned"])
    found.shares = {str(name): float(share) for name, share in content["shares"].items()}
    _require(all(share > 0 for share in found.shares.values()), "a share of a group is not positive")
    _require(sum(found.shares.values()) <= 1 + 1e-9, "shares of groups exceed 1")
    found.seen = {str(key): (int(period), int(rows)) for key, (period, rows) in content["seen"].items()}
    found.history = [(int(period), float(evidence)) for period, evidence in content["history"]]
    for name, blocks in content["series"].items():
        _restore_blocks(found, str(name), blocks)
    return found


def _restore_blocks(monitor: Monitor, name: str, content: dict[str, Any]) -> None:
    _require(not name or name in monitor.shares, f"the group {name!r} has no share")
    blocks = monitor._blocks(name)
    for start, (cells, weight, observed, means, squares) in content.items():
        period, size = int(start), (len(cells), 3)
        _require(all(type(cell) is int and 0 <= cell < blocks.bets.cells for cell in cells), "a cell is out of range")
        sums = np.zeros((blocks.bets.cells, 3))
        sums[cells] = np.stack([weight, weight * _unpacked(means), observed], axis=1, dtype=np.float64).reshape(size)
        weight, observed = sums[:, 0], sums[:, 2]
        slack = 1e-9 * weight
        _require(0 <= period <= monitor.now, "a period lies after the last one")
        _require(bool((weight >= 0).all() and np.isfinite(sums).all()), "sums of weights are not positive numbers")
        _require(bool(((observed >= 0) & (observed <= weight + slack)).all()), "outcomes exceed the weights")
        _require(0 <= squares <= weight.sum() + slack.sum(), "a sum of squares is out of range")
        blocks.sums[period], blocks.squares[period] = sums, float(squares)
    blocks.advance(monitor.now, monitor.pinned)


def _require(condition: bool, fault: str) -> None:  # noqa: FBT001
    if not condition:
        raise ValueError(fault)


def _blocks(blocks: Blocks) -> dict[str, list[Any]]:
    """By start: the cells that hold rows, their weights, outcomes and mean predictions, and the sum of squares."""
    found = {}
    for start, sums in sorted(blocks.sums.items()):
        cells = np.flatnonzero(sums[:, 0])
        weight, predicted, observed = sums[cells].T
        columns = [cells.tolist(), [*map(_short, weight)], [*map(_short, observed)], _packed(predicted / weight)]
        found[str(start)] = [*columns, _short(blocks.squares[start])]
    return found


def _packed(means: Floats) -> str:
    """Probabilities as whole numbers of 48 bits in base 64, a third of the text that their digits would need."""
    numbers = np.rint(np.clip(means, 0.0, 1.0) * _LARGEST).astype(">u8")
    return b64encode(numbers.view(np.uint8).reshape(-1, 8)[:, 2:].tobytes()).decode("ascii")


def _unpacked(text: str) -> Floats:
    parts = np.frombuffer(b64decode(text, validate=True), dtype=np.uint8).reshape(-1, 6)
    numbers = np.zeros((len(parts), 8), dtype=np.uint8)
    numbers[:, 2:] = parts
    return numbers.view(">u8").reshape(-1) / _LARGEST


def _short(value: float) -> int | float:
    """Whole numbers without a point."""
    return int(value) if value == int(value) else float(value)
