"""The engine of the variational estimator: cross-fitted contributions, their mean, and lower confidence bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.predictions import Binary, Confidence, Multiclass, Predictions, binary
from calibrant.data.validation import fail, fraction
from calibrant.estimators import cross_fitting as cross
from calibrant.estimators.proper_scores import check_floor, floored, log_provenance
from calibrant.numerics.arrays import BETTING_ROWS, Floats
from calibrant.numerics.confidence_limits import bernstein_lower_bound, betting_lower_bound
from calibrant.numerics.random_draws import generator
from calibrant.results.estimate import Estimate, Interval
from calibrant.results.target import Of, Target
from calibrant.table.bintable import BinTable

#: Share of the predicted probability mixed into the map where losses are unbounded, so that none exceeds -log of it.
#: Test: tests/estimators/test_variational_engine.py::test_the_kl_bound_mixes_a_twentieth_of_the_prediction.
MIXED = 0.05


@dataclass(frozen=True)
class SplitSampleBound:
    """Fit the map on one part of the rows, bound the error on the other: exact for any number of rows.

    Given the map, contributions of the other rows are independent and bounded, and their mean is at most the true
    calibration error. So the true error is above the bound with probability of at least `level`, for every sample
    size, model and map. Up to 65,536 rows the bound is the betting bound of Waudby-Smith and Ramdas (2024), beyond
    them the empirical Bernstein bound of Maurer and Pontil (2009). The estimate itself is then that of the
    evaluation part. Rows must be independent and unweighted. For one probability the bound of every L_p error is that
    of the L1 error, which is the smallest of them.

    Parameters
    ----------
    level : float in (0, 1)
    train : float in (0, 1)
        Share of the rows that the map is fitted on.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> error = cal.variational_error(rng.random(4000) < p**2, p, bound=SplitSampleBound())  # the true error is 1/6
    >>> bool(0.1 < error.interval.low < 1 / 6)
    True
    """

    level: float = 0.95
    train: float = 0.5

    def __post_init__(self) -> None:
        fraction("level", self.level)
        fraction("train", self.train)


@dataclass(frozen=True)
class CrossFittedBound:
    """The estimate minus z times its standard error times `inflation`: uses all rows, and is approximate.

    Folds share training rows, so that contributions are not independent and the plain standard error is too
    small near calibration. The default inflation is the measured one: over the binary worlds of the paper and n = 200
    to 5000, the standard deviation of the L1 estimate over samples was at most 1.50 plain standard errors (see
    reproduce/results/variational.md, which also counts how often the bound failed). Groups of rows are taken as
    units.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> error = cal.variational_error(rng.random(4000) < p**2, p, bound=CrossFittedBound())  # the true error is 1/6
    >>> bool(0.1 < error.interval.low < error)
    True
    """

    level: float = 0.95
    inflation: float = 1.5

    def __post_init__(self) -> None:
        fraction("level", self.level)


Bound = SplitSampleBound | CrossFittedBound


def split_sample_interval(
    contributions: Floats, count: Floats, size: float, bound: SplitSampleBound, *, seed: int, salt: int
) -> Interval:
    """The exact bound from contributions in [-size, size], each of which occurred `count` times.

    Bets are made in a random order, which the contributions must not decide; the `salt` tells samples apart.
    """
    shifted, alpha = (np.clip(contributions, -size, size) + size) / (2 * size), 1 - bound.level
    if count.sum() <= BETTING_ROWS:
        rows = np.repeat(shifted, count.astype(np.intp))
        low = betting_lower_bound(generator(seed, "order of contributions", salt).permutation(rows), alpha)
    else:
        low = bernstein_lower_bound(shifted, count, alpha)
    method = f"{bound!r}, {'betting' if count.sum() <= BETTING_ROWS else 'empirical Bernstein'}"
    assumption = "independent rows; exact for any n"
    return Interval((2 * low - 1) * size, math.inf, bound.level, method, side="lower", assumption=assumption)


TopLabel = Literal[False, "reduced", "full"]
Part = Literal["all", "over", "under"]
Source = Predictions | BinTable | Sequence[BinTable]

#: A split sample divides its training part into this many, inside which the map is tuned.
#: Derived: the default of `folds`.
TRAINING_PARTS = 5


@dataclass(frozen=True)
class Settings:
    """How maps are fitted and what is done with them; see `variational_error`."""

    recalibrator: Any = None
    folds: int = 5
    repeats: int | None = None
    seed: int = 0
    top_label: TopLabel = False
    bound: Bound | None = None
    floor: float = 0.0
    around_half: bool = False

    def __post_init__(self) -> None:
        validation.seed(self.seed)
        for name, minimum in (("folds", 2), ("repeats", 1)):
            if getattr(self, name) is not None:
                validation.whole(name, getattr(self, name), minimum=minimum)
        if self.top_label not in (False, "reduced", "full"):
            fail(f"top_label must be False, 'reduced' or 'full', got {self.top_label!r}.", ValueError)
        check_floor(self.floor)

    @property
    def sizes(self) -> list[float]:
        """Relative sizes of the folds; for a split sample those of the training parts, and last the evaluation part."""
        if isinstance(self.bound, SplitSampleBound):
            return [self.bound.train / TRAINING_PARTS] * TRAINING_PARTS + [1 - self.bound.train]
        return [1.0] * self.folds

    def require_log_score(self, *, used: bool, where: str) -> None:
        """Refuse a floor where no logarithm is taken."""
        if self.floor > 0 and not used:
            fail(f"floor={self.floor:g} bounds log scores only: leave it out, or use {where}.", ValueError)


@dataclass(frozen=True, eq=False)
class Variational:
    """Cross-fitted rows, one `CrossFitted` per repeat, and the estimates they give."""

    runs: list[cross.CrossFitted]
    settings: Settings
    method: str
    source: Source

    @classmethod
    def of(cls, data: Any, y_prob: ArrayLike | None, settings: Settings) -> Variational:
        """Assign rows to folds and fit the maps."""
        split = isinstance(settings.bound, SplitSampleBound)
        source = _source(data, y_prob)
        tables = not isinstance(source, Predictions | BinTable)
        if tables and split:
            fail("A list of tables has its folds already; give one table (or the rows) for a split sample.", ValueError)
        usual = 1
        if isinstance(source, Multiclass) and settings.top_label != "reduced" and settings.recalibrator is None:
            usual = cross.divisions(*source.y_prob.shape)
        repeats = 1 if split or tables else settings.repeats or usual
        seeds, targets = [[settings.seed, repeat] for repeat in range(repeats)], [TRAINING_PARTS] if split else None
        if isinstance(source, Multiclass) and settings.top_label != "reduced":  # in the same order for every seed
            rows = cross.multiclass_rows(source, settings.sizes, seeds[0])
            others = [cross.folds_of(rows, settings.sizes, seed) for seed in seeds[1:]]
            runs = cross.divided(rows, [rows.fold, *others], settings.recalibrator, targets=targets)
        else:
            unfitted = (_rows(source, settings, seed) for seed in seeds)
            runs = [cross.recalibrated(rows, settings.recalibrator, targets=targets) for rows in unfitted]
        name = cross.recalibrator_name(settings.recalibrator, runs[0].columns)
        if split:
            runs = [_evaluation_part(rows) for rows in runs]
        if settings.top_label == "full":
            runs = [_top(rows) for rows in runs]
        folds = f"{runs[0].folds} folds" if not split else "split sample"
        again = f" x {len(runs)}" if len(runs) > 1 else ""
        return cls(runs, settings, f"{folds}{again}, {name}", source)

    def error(self, norm: cross.Norm) -> Estimate:
        """The calibration error in one norm."""
        name = "Variational error"
        of: Of = "vector" if self.runs[0].columns > 1 else "score"
        if self.runs[0].confidence:
            given = self.settings.top_label == "full"
            name = f"Variational confidence error{' given the vector' if given else ''}"
            of = "confidence given vector" if given else "confidence"
        details: dict[str, float] = {"number_of_classes": self.runs[0].columns}
        if self.runs[0].columns == 1:
            parts = {part: self._values(norm, part)[0] for part in ("over", "under")}
            details = {"overconfidence": parts["over"], "underconfidence": parts["under"]}
        return self._estimate(norm, "all", name, **details).with_target(Target("true error", norm, of))

    def part(self, norm: cross.Norm, part: Part) -> Estimate:
        """Over- or underconfidence in one norm."""
        if self.runs[0].columns > 1:
            fail("Over- and underconfidence of multiclass data are those of the top label.", ValueError)
        return self._estimate(norm, part, f"{part.capitalize()}confidence")

    def refinement(self, score: Literal["brier", "log_loss"]) -> Estimate:
        """Mean score of the recalibrated probabilities."""
        if score not in ("brier", "log_loss"):
            fail(f"score must be 'brier' or 'log_loss', got {score!r}.", ValueError)

        def losses(rows: cross.CrossFitted) -> Floats:
            return np.concatenate([_losses(part, score, self.settings.floor) for part in rows.blocks()])

        value, error = self._mean(losses)
        method, details = self._provenance(losses) if score == "log_loss" else (self.method, {})
        details = {"standard_error": error, **details}
        return Estimate(value, name=f"Refinement ({score})", method=method, n=self.runs[0].n, details=details)

    def _estimate(self, norm: cross.Norm, part: Part, name: str, **details: Any) -> Estimate:
        (value, error), method = self._values(norm, part), self.method
        if norm == "kl":
            method, more = self._provenance(lambda rows: self._contributions(rows, norm, part))
            details |= more
        name, interval = f"{name} ({cross.norm_label(norm)})", self._interval(norm, part, value, error)
        details = {"standard_error": error, **details}
        return Estimate(value, name=name, method=method, n=self.runs[0].n, interval=interval, details=details)

    def _values(self, norm: cross.Norm, part: Part) -> tuple[float, float]:
        """Estimate and plain standard error."""
        return self._mean(lambda rows: self._contributions(rows, norm, part))

    def _contributions(self, rows: cross.CrossFitted, norm: cross.Norm, part: Part) -> Floats:
        """Per entry; those of the other side count as zero."""
        values = rows.contributions(norm, floor=self.settings.floor)
        if part == "all":
            return values
        f, g = rows.predicted[:, 0], rows.fitted[:, 0]
        around_half = self.settings.around_half
        over = g < f if rows.confidence and not around_half else np.where(f > 0.5, g < f, (f < 0.5) & (g > f))
        counted = (over == (part == "over")) & ~(around_half & (f == 0.5))
        return np.where(counted, values, 0.0)

    def _mean(self, values_of: Callable[[cross.CrossFitted], Floats]) -> tuple[float, float]:
        """Mean over the entries and its plain standard error, averaged over the repeats."""
        found = []
        for rows in self.runs:
            values = values_of(rows)
            found.append((float(rows.weight @ values / rows.weight.sum()), _standard_error(rows, values)))
        value, error = np.mean(found, axis=0)
        return float(value), float(error)

    def _provenance(self, values_of: Callable[[cross.CrossFitted], Floats]) -> tuple[str, dict[str, Any]]:
        """Method and details of a mean of log scores: its floor, or the rows that make it infinite."""
        rows = self.runs[0]
        infinite = np.flatnonzero(~np.isfinite(values_of(rows)))
        if rows.row is not None:
            first = int(rows.row[infinite].min()) if len(infinite) else None
            return log_provenance(self.method, self.settings.floor, infinite=len(infinite), first=first)
        counted = np.array_equal(rows.weight, rows.weight_squares)
        count = round(float(rows.weight[infinite].sum())) if counted or not len(infinite) else None
        return log_provenance(self.method, self.settings.floor, infinite=count, first=_first_certain_miss(self.source))

    def _interval(self, norm: cross.Norm, part: Part, value: float, error: float) -> Interval | None:
        bound = self.settings.bound
        if bound is None:
            return None
        if not isinstance(bound, SplitSampleBound):
            from scipy.special import ndtri

            low, shared = value - float(ndtri(bound.level)) * bound.inflation * error, "approximate: folds share rows"
            return Interval(low, math.inf, bound.level, repr(bound), side="lower", assumption=shared)
        rows = self.runs[0]
        if rows.columns == 1 and not isinstance(norm, str | cross.Distance):
            norm = 1.0  # contributions to the others have no bound, and none of them is below the L1 error
        size = cross.size_bound(norm, rows.columns)
        if norm == "kl":  # any map gives a valid bound, so one with bounded losses is taken; gains may be cut
            rows = rows.with_map((1 - MIXED) * rows.fitted + MIXED * rows.predicted)
            size = float(-np.log(MIXED))
        if size is None:
            fail("The split-sample bound needs bounded contributions: give the Distance a `bound`.", ValueError)
        values = self._contributions(rows, norm, part)
        salt = crc32(rows.observed.tobytes(), crc32(rows.predicted[:, 0].tobytes()))
        return split_sample_interval(values, rows.weight, size, bound, seed=self.settings.seed, salt=salt)


def _source(data: Any, y_prob: ArrayLike | None) -> Source:
    """The task, the table or the list of tables that the user gave."""
    if isinstance(data, BinTable) or (isinstance(data, Sequence) and len(data) > 0 and isinstance(data[0], BinTable)):
        return data
    return binary(data, y_prob)


def _rows(source: Source, settings: Settings, seed: list[int]) -> cross.CrossFitted:
    """The entries of a task or table in folds."""
    if isinstance(source, BinTable):
        return cross.table_cells(source, settings.sizes, seed)
    if isinstance(source, Binary):
        return replace(cross.binary_rows(source, settings.sizes, seed), confidence=isinstance(source, Confidence))
    if not isinstance(source, Predictions):
        return cross.tables_by_fold(source)
    if not isinstance(source, Multiclass):
        wrong = type(source).__name__
        fail(f"The variational estimate needs Binary or Multiclass predictions, got {wrong}.", TypeError)
    return _rows(source.top_label(), settings, seed)


def _evaluation_part(rows: cross.CrossFitted) -> cross.CrossFitted:
    """The last fold of a split sample, which must be of independent rows without weights."""
    if rows.cluster is not None or not np.array_equal(rows.weight, rows.weight_squares):
        fail(
            "The split-sample bound is exact only for independent rows without weights; use CrossFittedBound.",
            ValueError,
        )
    part = rows.take(rows.fold == TRAINING_PARTS)
    if rows.columns == 1:  # no result depends on the order of rows; multiclass rows have an order of their own
        part = part.take(np.lexsort((part.observed, part.predicted[:, 0])))
    return replace(part, n=round(float(part.weight.sum())))


def _top(rows: cross.CrossFitted) -> cross.CrossFitted:
    """The predicted class alone, with the map of the whole vector."""
    if rows.columns == 1:
        return rows
    best = np.concatenate([part.predicted.argmax(axis=1) for part in rows.blocks()])
    f, g = (np.take_along_axis(p, best[:, None], axis=1).astype(np.float64) for p in (rows.predicted, rows.fitted))
    right = (rows.observed == best).astype(np.float64)
    return replace(rows, confidence=True, observed=right, predicted=f, recalibrated=g)


def _losses(rows: cross.CrossFitted, score: str, floor: float) -> Floats:
    g, y = rows.fitted, rows.outcome
    if score == "brier":
        return np.einsum("nd,nd->n", g - y, g - y)
    g = floored(g, floor)
    if g.shape[1] == 1:
        g, y = np.hstack([1 - g, g]), np.hstack([1 - y, y])
    with np.errstate(divide="ignore"):
        return -np.log(np.einsum("nd,nd->n", g, y))


def _standard_error(rows: cross.CrossFitted, values: Floats) -> float:
    """Of the weighted mean, with clusters (if there are any) as units; infinite if a value is."""
    if not np.isfinite(values).all():
        return float("inf")
    total = rows.weight.sum()
    residual = values - rows.weight @ values / total
    if rows.cluster is None:
        return float(np.sqrt(rows.weight_squares @ residual**2) / total)
    unit = np.unique(rows.cluster, return_inverse=True)[1]
    sums = np.bincount(unit, rows.weight * residual)
    return float(np.sqrt(sums @ sums) / total)


def _first_certain_miss(source: Source) -> int | None:
    """The first row that was predicted with certainty and wrongly, for binary rows that were counted in cells."""
    one = source.top_label() if isinstance(source, Multiclass) else source
    missed = np.abs(one.y_prob - one.y_true) == 1 if isinstance(one, Binary) else np.zeros(1, np.bool_)
    return int(missed.argmax()) if missed.any() else None
