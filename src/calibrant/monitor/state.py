"""The state of a monitor as a JSON file: written whole or not at all, and checked when it is read back."""

from __future__ import annotations

import json
import math
import os
from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calibrant._atomic_write import replacing
from calibrant._version import __version__
from calibrant.data.saved_files import InvalidFile, layout_version, parsed_json, reading_back
from calibrant.monitor.bets import CELLS
from calibrant.numerics.arrays import Floats

if TYPE_CHECKING:
    from calibrant.monitor.blocks import Blocks
    from calibrant.monitor.monitoring import Monitor

M = TypeVar("M", bound="Monitor")
FORMAT = "calibrant-monitor"
#: The layout that is written and read. Test: tests/monitor/test_state.py::test_what_is_damaged_is_refused.
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
        message = f"{os.fspath(path)} is not the state of a monitor: its format is not {FORMAT!r}."
        raise InvalidFile(message)
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
    """Probabilities as whole numbers of 48 bits in base 64, a third of the text that their digits would need.

    >>> _unpacked(_packed(np.array([0.0, 0.3, 1.0]))).round(14).tolist()
    [0.0, 0.3, 1.0]
    """
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
