"""Measured cells, a target in a world at one size: pooled over blocks, and compared with what is required of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from reproduce.coverage_files import Line

#: Required: least share covered, most lower ends above the truth (two-sided and one-sided), most calibrated models
#: whose interval excludes zero; and what clustered rows are held to instead.
COVERED, LOW_ABOVE, LOWER_ABOVE, ZERO_EXCLUDED = 0.93, 0.035, 0.06, 0.03
CLUSTERED_COVERED, CLUSTERED_LOW_ABOVE = 0.92, 0.05
#: One in this many samples gets the one-sided bounds.
ONE_SIDED_PART = 5
_HEAD = ("target", "world", "n", "block", "truth", "samples", "tuned", "promised")


@dataclass(frozen=True)
class Cell:
    """One target in one world at one size."""

    target: str
    world: str
    n: int
    truth: float
    samples: int
    tuned: bool
    promised: bool
    means: dict[str, float]

    @property
    def calibrated(self) -> bool:
        """Whether the true error is zero."""
        return self.truth == 0

    @property
    def required(self) -> dict[str, float]:
        """The largest share of samples in which each thing may go wrong."""
        clustered, one_sided = "clusters" in self.world, "lower bound" in self.target
        covered, low = (CLUSTERED_COVERED, CLUSTERED_LOW_ABOVE) if clustered else (COVERED, LOW_ABOVE)
        low = LOWER_ABOVE if one_sided else low
        limits = {"missed": 1 - covered, "low_above": low, "lower_above": LOWER_ABOVE}
        if self.calibrated:
            limits["zero_excluded"] = LOWER_ABOVE if one_sided else CLUSTERED_LOW_ABOVE if clustered else ZERO_EXCLUDED
        return limits

    @property
    def faults(self) -> dict[str, float]:
        """What goes wrong more often than it may, with its share of the samples."""
        shares = {"missed": 1 - self.means["covered"], **self.means}
        return {key: shares[key] for key, most in self.required.items() if shares.get(key, 0.0) > most + 1e-9}

    @property
    def chance(self) -> float:
        """How often faults would be as frequent by chance, if they were just as frequent as allowed; else 1."""
        from scipy.stats import binom

        found = [1.0]
        for key, share in self.faults.items():
            samples = round(self.samples / (ONE_SIDED_PART if key == "lower_above" else 1))
            found.append(float(binom.sf(round(share * samples) - 1, samples, self.required[key])))
        return min(found)


def cells_of(lines: Iterable[Line]) -> list[Cell]:
    """The cells of a file, in the order in which they first occur; levels of comparisons do not count as coverage."""
    groups: dict[tuple[str, str, int], list[Line]] = {}
    for line in lines:
        if str(line.get("target", "")).endswith("called different"):
            continue
        groups.setdefault(_place(line), []).append(line)
    return [_pooled(*key, blocks) for key, blocks in groups.items()]


def _place(line: Line) -> tuple[str, str, int]:
    """Target, world and rows. In files of other scripts the world may be spread over columns, and rows over samples."""
    if "world" in line and "n" in line:
        return str(line.get("target", "L1")), str(line["world"]), int(_number(line["n"]))
    heads = {key: line[key] for key in list(line)[: list(line).index("samples")]}
    words = [str(value) for key, value in heads.items() if isinstance(value, str) and key != "target"]
    rows = [_number(value) for key, value in heads.items() if key.split("_")[0] == "n"]
    return str(line.get("target", "L1")), ", ".join(words), int(sum(rows))


def _pooled(target: str, world: str, n: int, blocks: list[Line]) -> Cell:
    samples = [_number(block["samples"]) for block in blocks]
    keys = dict.fromkeys(
        key for block in blocks for key, value in block.items() if key not in _HEAD and isinstance(value, int | float)
    )
    means = {}
    for key in keys:
        known = [(_number(block[key]), size) for block, size in zip(blocks, samples, strict=True) if key in block]
        means[key] = float(np.average([value for value, _ in known], weights=[size for _, size in known]))
    first = blocks[0]
    tuned, promised = (bool(_number(first.get(key, default))) for key, default in (("tuned", 0), ("promised", 1)))
    return Cell(target, world, n, _number(first["truth"]), int(sum(samples)), tuned, promised, means)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float(str(value) == "True")
