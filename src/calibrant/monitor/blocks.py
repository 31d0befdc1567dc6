r"""The state of a monitor: sums by block of periods, the evidence since the start of each, and its JSON file.

The evidence against calibration is a weighted sum over the periods j since which the model may have been off,

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
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant._atomic_write import replacing
from calibrant._version import __version__
from calibrant.data.saved_files import InvalidFile, layout_version, parsed_json, reading_back
from calibrant.data.validation import fail
from calibrant.monitor.bets import CELLS, Bets, Gains, log_evidence, log_sum
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import row_blocks

if TYPE_CHECKING:
    from calibrant.monitor.monitoring import Monitor


#: A start at an odd period is kept for this many periods, one at a multiple of 2^v for 2^v times as many; of groups a
#: quarter of it. Test: tests/monitor/test_blocks.py::test_recent_starts_are_kept_one_by_one_and_early_ones_sparsely.
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
    """Starts, the logarithm of each one's own evidence and of its weighted one, and the logarithm of the whole."""

    starts: list[int]
    own: Floats
    weighted: Floats
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
        self._evidence[arl] = Evidence(starts, own, weighted, float(log_sum(weighted, axis=0)))
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
#: The layout that is written and read. Test: tests/monitor/test_blocks.py::test_what_is_damaged_is_refused.
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
