"""From data to held-out contributions, and from these to estimates: the engine behind the variational functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.predictions import Binary, Multiclass, binary
from calibrant.estimators import variational_norms as norms_
from calibrant.estimators.cross_fitting import (
    Held,
    held_binary,
    held_multiclass,
    held_table,
    held_tables,
    mapped,
    name_of,
)
from calibrant.estimators.lower_bound import (
    MIXED,
    Bound,
    SplitSampleBound,
    cross_fitted_interval,
    split_sample_interval,
)
from calibrant.estimators.variational_norms import Norm
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate, Interval
from calibrant.table.bintable import BinTable

TopLabel = Literal[False, "reduced", "full"]
Part = Literal["all", "over", "under"]

#: A split sample divides its training part into this many, inside which the map is tuned.
TRAINING_PARTS = 5


@dataclass(frozen=True)
class Settings:
    """How to make maps and what to do with them; see `calibration_error`."""

    recalibrator: Any = None
    folds: int = 5
    repeats: int = 1
    seed: int = 0
    top_label: TopLabel = False
    bound: Bound | None = None

    def __post_init__(self) -> None:
        for name, least in (("folds", 2), ("repeats", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                message = f"{name} must be a whole number of at least {least}, got {value!r}."
                raise ValueError(message)
        if self.top_label not in (False, "reduced", "full"):
            message = f"top_label must be False, 'reduced' or 'full', got {self.top_label!r}."
            raise ValueError(message)

    @property
    def sizes(self) -> list[float]:
        """Relative sizes of the folds; for a split sample the parts to train on, and last the part to measure on."""
        if isinstance(self.bound, SplitSampleBound):
            return [self.bound.train / TRAINING_PARTS] * TRAINING_PARTS + [1 - self.bound.train]
        return [1.0] * self.folds


@dataclass(frozen=True, eq=False)
class Variational:
    """Held-out rows with their maps, one `Held` per repeat."""

    runs: list[Held]
    settings: Settings
    method: str

    @classmethod
    def of(cls, data: Any, y_prob: ArrayLike | None, settings: Settings) -> Variational:
        """Deal into folds, fit the maps."""
        split = isinstance(settings.bound, SplitSampleBound)
        tables = isinstance(data, Sequence) and len(data) > 0 and isinstance(data[0], BinTable)
        if tables and split:
            message = "A list of tables has its folds already; give one table (or the rows) for a split sample."
            raise ValueError(message)
        runs = []
        for repeat in range(1 if split or tables else settings.repeats):
            held = _held(data, y_prob, settings, tables=tables, seed=[settings.seed, repeat])
            targets = [TRAINING_PARTS] if split else None
            held = mapped(held, settings.recalibrator, targets=targets)
            if split:
                _require_plain(held)
                held = held.take(held.fold == TRAINING_PARTS)
                held = replace(held, n=round(float(held.weight.sum())))
            runs.append(_top(held) if settings.top_label == "full" else held)
        folds = f"{runs[0].folds} folds" if not split else "split sample"
        again = f" x {len(runs)}" if len(runs) > 1 else ""
        words = name_of(settings.recalibrator, held.stated.shape[1])
        return cls(runs, settings, f"{folds}{again}, {words}")

    def error(self, norm: Norm) -> Estimate:
        """The calibration error in one norm."""
        name = "Calibration error" if not self.runs[0].confidence else "Confidence calibration error"
        if self.settings.top_label == "full":
            name += " given the vector"
        details = {}
        if self.runs[0].stated.shape[1] == 1:
            parts = {part: self._values(norm, part)[0] for part in ("over", "under")}
            details = {"overconfidence": parts["over"], "underconfidence": parts["under"]}
        return self._estimate(norm, "all", name, **details)

    def part(self, norm: Norm, part: Part) -> Estimate:
        """Over- or underconfidence in one norm."""
        if self.runs[0].stated.shape[1] > 1:
            message = "Over- and underconfidence of several classes are those of the top label."
            raise ValueError(message)
        return self._estimate(norm, part, f"{part.capitalize()}confidence")

    def refinement(self, score: Literal["brier", "log_loss"]) -> Estimate:
        """Mean score of the recalibrated probabilities."""
        if score not in ("brier", "log_loss"):
            message = f"score must be 'brier' or 'log_loss', got {score!r}."
            raise ValueError(message)
        value, error = self._mean(lambda held: _losses(held, score))
        return Estimate(
            value,
            name=f"Refinement ({score})",
            method=self.method,
            n=self.runs[0].n,
            details={"standard_error": error},
        )

    def _estimate(self, norm: Norm, part: Part, name: str, **details: float) -> Estimate:
        value, error = self._values(norm, part)
        return Estimate(
            value,
            name=f"{name} ({norms_.label(norm)})",
            method=self.method,
            n=self.runs[0].n,
            interval=self._interval(norm, part, value, error),
            details={"standard_error": error, **details},
        )

    def _values(self, norm: Norm, part: Part) -> tuple[float, float]:
        """Estimate and plain standard error."""
        return self._mean(lambda held: _contributions(held, norm, part))

    def _mean(self, values_of: Callable[[Held], Floats]) -> tuple[float, float]:
        """Mean over the entries and its plain standard error, averaged over the repeats."""
        found = []
        for held in self.runs:
            values = values_of(held)
            found.append((float(held.weight @ values / held.weight.sum()), _standard_error(held, values)))
        value, error = np.mean(found, axis=0)
        return float(value), float(error)

    def _interval(self, norm: Norm, part: Part, value: float, error: float) -> Interval | None:
        bound = self.settings.bound
        if bound is None:
            return None
        if not isinstance(bound, SplitSampleBound):
            return cross_fitted_interval(value, error, bound)
        held = self.runs[0]
        size = norms_.size_bound(norm, held.stated.shape[1])
        if norm == "kl":  # any map gives a valid bound, so one with bounded losses is taken; gains may be cut
            held = held.with_map((1 - MIXED) * _of(held) + MIXED * held.stated)
            size = float(-np.log(MIXED))
        if size is None:
            message = "The split-sample bound needs bounded contributions: give the Distance a `bound`."
            raise ValueError(message)
        values = _contributions(held, norm, part)
        return split_sample_interval(values, held.weight, size, bound, seed=self.settings.seed)


def _held(data: Any, y_prob: ArrayLike | None, settings: Settings, *, tables: bool, seed: Any) -> Held:
    """The entries of whatever the user gave, dealt into folds."""
    if tables:
        return held_tables(data)
    if isinstance(data, BinTable):
        return held_table(data, settings.sizes, seed)
    task = binary(data, y_prob)
    if isinstance(task, Multiclass):
        if settings.top_label == "reduced":
            return replace(held_binary(task.top_label(), settings.sizes, seed), confidence=True)
        return held_multiclass(task, settings.sizes, seed)
    if not isinstance(task, Binary):
        message = f"The variational estimate needs Binary or Multiclass predictions, got {type(task).__name__}."
        raise TypeError(message)
    return held_binary(task, settings.sizes, seed)


def _top(held: Held) -> Held:
    """The predicted class alone, with the map of the whole vector."""
    if held.stated.shape[1] == 1:
        return held
    best = held.stated.argmax(axis=1)[:, None]
    taken: dict[str, Any] = {
        name: np.take_along_axis(values, best, axis=1)
        for name, values in (("stated", held.stated), ("outcome", held.outcome), ("mapped", _of(held)))
    }
    return replace(held, confidence=True, **taken)


def _contributions(held: Held, norm: Norm, part: Part) -> Floats:
    """Per entry; those of the other side count as zero."""
    values = norms_.contributions(norm, held.stated, _of(held), held.outcome)
    if part == "all":
        return values
    f, g = held.stated[:, 0], _of(held)[:, 0]
    over = g < f if held.confidence else np.where(f > 0.5, g < f, (f < 0.5) & (g > f))
    return np.where(over == (part == "over"), values, 0.0)


def _losses(held: Held, score: str) -> Floats:
    g, y = _of(held), held.outcome
    if score == "brier":
        return np.einsum("nd,nd->n", g - y, g - y)
    if g.shape[1] == 1:
        g, y = np.hstack([1 - g, g]), np.hstack([1 - y, y])
    with np.errstate(divide="ignore"):
        return -np.log(np.einsum("nd,nd->n", g, y))


def _standard_error(held: Held, values: Floats) -> float:
    """Of the weighted mean, with groups (if there are any) as units; infinite if a value is."""
    if not np.isfinite(values).all():
        return float("inf")
    total = held.weight.sum()
    residual = values - held.weight @ values / total
    if held.group is None:
        return float(np.sqrt(held.squares @ residual**2) / total)
    _, unit = np.unique(held.group, return_inverse=True)
    sums = np.bincount(unit.reshape(-1), held.weight * residual)
    return float(np.sqrt(sums @ sums) / total)


def _require_plain(held: Held) -> None:
    if held.group is not None or not np.array_equal(held.weight, held.squares):
        message = "The split-sample bound is exact only for independent rows without weights; use CrossFittedBound."
        raise ValueError(message)


def _of(held: Held) -> Floats:
    if held.mapped is None:
        message = "These rows have no map yet."
        raise RuntimeError(message)
    return held.mapped
