"""Calibration over time: `over_time`, periods of the calendar, their totals, and a test for a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrik, betainc

from calibrant.data import validation
from calibrant.data.forecasts import Forecast, Gaussian
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions, UnsupportedPredictions, fail
from calibrant.estimators.regression_spread import mean_squared_z, scale_factor
from calibrant.estimators.validation_study import joint_fit, observed_expected, recalibration_line
from calibrant.inference.group_tests import spread_p_value
from calibrant.inference.groupings import MOST, periods_of
from calibrant.inference.intervals import interval
from calibrant.inference.multiplicity import holm
from calibrant.inference.sample import cluster_labels, design_effect, sums_by
from calibrant.numerics.arrays import Floats, expit, log_odds
from calibrant.numerics.logistic.binary import affine
from calibrant.numerics.random_draws import generator
from calibrant.results.estimate import Value, printable, text_table
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable, merge, pooled_on
from calibrant.table.task import Spread


@dataclass(frozen=True)
class Period:
    """Observed and expected events in one period; for forecasts, squared standardised errors and their number.

    Attributes
    ----------
    name : str
    n, observed, expected : float
        Rows, and the two sums; for weighted rows their shares times the number of rows.
    ratio : Value
        Observed over expected (for forecasts the error-to-spread ratio), with its interval.
    null : tuple of float
        Between which ratios a calibrated model lies in 95 % of samples.
    p_value : float
        For the hypothesis that the model is calibrated in this period, adjusted for the number of periods (Holm).

    >>> Period("May", 200.0, 30.0, 40.0, Value(0.75, 0.53, 1.04), (0.72, 1.28), 0.09).ratio.value
    0.75
    """

    name: str
    n: float
    observed: float
    expected: float
    ratio: Value
    null: tuple[float, float]
    p_value: float


@dataclass(frozen=True)
class Change:
    """The most likely point of change: the first period after it, and the ratio before and since.

    `p_value` allows for the search over all points.

    >>> Change(2, Value(1.0), Value(0.7), 0.004).first
    2
    """

    first: int
    before: Value
    after: Value
    p_value: float


@dataclass(frozen=True, eq=False)
class OverTime:
    """Calibration by period, in order of time.

    Attributes
    ----------
    periods : tuple of Period
    change : Change or None
        None where there is nothing to split, or (tables of forecasts) where rows are needed to test it.
    quantity : {"observed : expected", "error-to-spread ratio"}
        What the ratios are.
    level : float
        Of the intervals.
    left_out : int
        Rows without a time.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.over_time(cal.Binary([0, 1, 0, 1], [0.2, 0.7, 0.4, 0.6]), ["May", "May", "June", "June"])
    >>> len(found), found.quantity
    (2, 'observed : expected')
    """

    periods: tuple[Period, ...]
    change: Change | None
    quantity: Literal["observed : expected", "error-to-spread ratio"]
    level: float = 0.95
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.periods)

    def __iter__(self) -> Iterator[Period]:
        return iter(self.periods)

    def found(self, alpha: float = 0.05) -> list[str]:
        """Periods whose adjusted p-value is at most `alpha`."""
        return [one.name for one in self.periods if one.p_value <= alpha]

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        head = ["period", "n", "observed", "expected", self.quantity, f"{100 * self.level:g} % interval", "adjusted p"]
        lines = [head]
        for one in self.periods:
            low, high = one.ratio.low, one.ratio.high
            ends = "" if low is None or high is None else f"{low:.3g} to {high:.3g}"
            sums = [f"{value:,.6g}" for value in (one.n, one.observed, one.expected)]
            lines.append([printable(one.name), *sums, f"{one.ratio.value:.3g}", ends, f"{one.p_value:.3g}"])
        return "\n".join([*text_table(lines), self._change_in_words()])

    def _change_in_words(self) -> str:
        if self.change is None:
            return "No change could be tested."
        name, before, after = self.periods[self.change.first].name, self.change.before.value, self.change.after.value
        return (
            f"Most likely change: from {printable(name)} on, {before:.3g} before and {after:.3g} since "
            f"(p = {self.change.p_value:.3g}, adjusted for the search)."
        )

    def _repr_html_(self) -> str:
        from calibrant.reporting.notebook import over_time_html

        return over_time_html(self, self._change_in_words())


def over_time(
    data: Predictions | BinTable,
    time: ArrayLike | Mapping[Any, BinTable],
    *,
    periods: int | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> OverTime:
    r"""Calibration by period, and whether it changed at some point in time.

    Per period, the events observed over those expected, :math:`\sum y_i / \sum p_i` (for forecasts the error-to-spread
    ratio, the root of the mean squared :math:`z_i = (y_i - \mu_i) / \sigma_i`), with an interval and a p-value adjusted
    for the number of periods (Holm). The test of a change asks whether one logistic recalibration, the same at all
    times, explains the periods (one common ratio for forecasts): a model that is always off by the same amount has not
    changed. With :math:`R_k` the sum of its residuals up to period k, :math:`V_k` its variance and :math:`c_k` its
    covariance with the scores of the fitted parameters, whose information is H,

    .. math:: T = \max_k \frac{R_k^2}{V_k - c_k' H^{-1} c_k}

    is ranked among 999 samples drawn from that model; residuals of weighted or dependent rows, and of forecasts, get
    random signs instead, cluster by cluster, where those of a cluster are from a fit to the others. The p-value
    therefore allows for the search over all points.

    Parameters
    ----------
    data : Binary, Multiclass, Forecast or fine BinTable
        For multiclass data, the event is that the predicted class is right. A table of all rows goes with a table per
        period.
    time : array-like, or mapping of periods, in order, to tables
        Dates, dates as text, numbers, or sortable names. Rows without a time are left out.
    periods : int, optional
        At most this many periods, 40 by default: days become weeks, months, quarters or years, and numbers steps.
    level : float
        Of the intervals.
    seed : int
        Of the simulated samples.

    References
    ----------
    Andrews (1993), Tests for parameter instability and structural change with unknown change point, Econometrica 61.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> month, p = np.arange(4000) // 1000, rng.uniform(0.1, 0.5, 4000)
    >>> found = cal.over_time(cal.Binary(rng.random(4000) < np.where(month < 2, p, 0.6 * p), p), month)
    >>> [round(one.ratio.value, 1) for one in found], found.found()
    ([1.0, 1.0, 0.7, 0.6], ['2', '3'])
    >>> found.change.first, found.change.p_value
    (2, 0.001)
    """
    level = validation.fraction("level", level)
    most = MOST if periods is None else validation.whole("periods", periods, minimum=2)
    validation.seed(seed)
    names, totals, left_out = _totals(data, time, most, seed)
    if len(names) < 2:
        fail("time has fewer than two periods.")
    rows = tuple(
        Period(name, *totals.numbers(k), totals.ratio(k, k + 1, level), totals.null(k), p)
        for k, (name, p) in enumerate(zip(names, holm(totals.p_values.tolist()), strict=True))
    )
    residuals = totals.residuals()
    at = None if residuals is None else change_point(residuals)
    if at is None:
        return OverTime(rows, None, totals.quantity, level, left_out)
    first, p_value = at
    ratios = totals.ratio(0, first, level), totals.ratio(first, len(names), level)
    return OverTime(rows, Change(first, *ratios, p_value), totals.quantity, level, left_out)


def _totals(data: Any, time: Any, most: int, seed: int) -> tuple[list[str], EventTotals | SpreadTotals, int]:
    """Names of the periods, their totals, and how many rows have no time."""
    if isinstance(time, Mapping):
        names, tables = [str(name) for name in time], list(time.values())
        if tables and isinstance(tables[0].task, Spread):
            return names, SpreadTotals(tables, None, None, seed), 0
        return names, EventTotals([one.filled() for one in tables], None, None, seed), 0
    if isinstance(data, BinTable):
        fail("A table has no rows to put in order; give one table per period.")
    data = data.top_label() if isinstance(data, Multiclass) else data
    if not isinstance(data, Binary | Forecast):
        fail(f"{type(data).__name__} has no events and no spread to follow over time.", UnsupportedPredictions)
    data.require_same_rows(time=time)
    found = periods_of(time, name="time", length=len(data), most=most)
    known = found.index >= 0
    some, index = (data, found.index) if known.all() else (data.take(known), found.index[known])
    of_rows: Any = SpreadTotals.of_rows if isinstance(some, Forecast) else EventTotals.of_rows
    return found.names, of_rows(some, index, len(found.names), seed), int(np.count_nonzero(~known))


#: Simulated samples of a model that does not change.
#: Derived: the smallest p-value is 1 / 1000, and the standard error of one of 0.05 is 0.007.
DRAWS = 999
#: The share of the variance that either side of a split needs: one odd period at an end is not a change.
#: Test: tests/inference/test_changes_over_time.py::test_one_odd_period_at_an_end_is_no_change.
_LEAST_SHARE = 0.02


class Residuals(NamedTuple):
    """Residuals, by period, of a model that is the same at all times and was fitted to all rows.

    `scores` (periods, parameters) is the covariance of their sums with the scores of the fitted parameters, whose
    `information` is H; `drawn` (periods, draws) and `drawn_scores` (parameters, draws) are of simulations.
    """

    sums: Floats
    variance: Floats
    scores: Floats
    information: Floats
    drawn: Floats
    drawn_scores: Floats


def change_point(found: Residuals) -> tuple[int, float] | None:
    r"""The first period after the most likely change, and the p-value of that; None where there is nothing to split.

    The statistic is that of `over_time` with :math:`R_k - c_k' H^{-1} U` in place of :math:`R_k`. The scores U are zero
    in the data, since the model was fitted to them; in simulated samples that term stands for the fit to each.
    """
    inverse = np.linalg.pinv(found.information)
    before, variance = (np.cumsum(values, axis=0)[:-1] for values in (found.scores, found.variance))
    spread = variance - np.einsum("kp,pq,kq->k", before, inverse, before)
    share = variance / max(float(found.variance.sum()), 1e-300)
    allowed = (share >= _LEAST_SHARE) & (share <= 1 - _LEAST_SHARE) & (spread > 1e-9 * variance)
    if not allowed.any():
        return None
    sums = np.concatenate([found.sums[:, None], found.drawn], axis=1)
    scores = np.concatenate([np.zeros((len(inverse), 1)), found.drawn_scores], axis=1)
    bridge = np.cumsum(sums, axis=0)[:-1] - before @ inverse @ scores
    statistics = bridge[allowed] ** 2 / spread[allowed, None]
    largest = statistics.max(axis=0)
    p_value = (1 + np.count_nonzero(largest[1:] >= largest[0] * (1 - 1e-9))) / len(largest)
    return int(np.flatnonzero(allowed)[statistics[:, 0].argmax()]) + 1, float(p_value)


def left_out(
    by_cluster: Floats, scores: Floats, place: NDArray[np.intp], cluster: NDArray[np.intp], weighted: Floats, x: Floats
) -> Floats:
    r"""Residuals of each cluster from a fit to the others: by period (from `by_cluster`), then their scores.

    A fit to all is drawn towards a cluster that dominates it: the residuals of that one are too small by as much as
    they are in each simulated sample, where this would count twice. With :math:`s_c` the scores of a cluster and
    :math:`H_c` its part of the information H, the parameters without it differ by :math:`(H - H_c)^{-1} s_c` (one step
    of Newton's method). `place` is the cell of each row in `by_cluster`, flattened; `weighted` and `x` are its
    derivatives and columns.
    """
    columns = range(x.shape[1])
    parts = np.stack([total(place, weighted[:, k], by_cluster.size).reshape(by_cluster.shape) for k in columns], axis=2)
    own = np.stack([sums_by(cluster, weighted * x[:, [k]], len(by_cluster)) for k in columns], axis=2)
    rest = own.sum(axis=0) - own
    rest += 1e-9 * np.trace(own.sum(axis=0)) * np.eye(x.shape[1])  # of one score only, or of one cluster
    step = np.linalg.solve(rest, scores[:, :, None])
    return np.concatenate([by_cluster + (parts @ step)[:, :, 0], scores + (own @ step)[:, :, 0]], axis=1)


def random_signs(parts: Floats, seed: int) -> Floats:
    """Sums over clusters of their parts (clusters by columns) with random signs: columns by draws."""
    signs = np.where(generator(seed, "signs of periods").random((len(parts), DRAWS)) < 0.5, -1.0, 1.0)
    return np.asarray(parts.T @ signs)


def total(index: NDArray[np.intp], values: Floats, size: int) -> Floats:
    """Sums of the values with each index."""
    return np.asarray(np.bincount(index, values, size), dtype=np.float64)


@dataclass(frozen=True)
class EventCount:
    r"""Observed events O, expected events E and the variance V of a calibrated model.

    The sum of independent outcomes is very nearly that of :math:`N = E^2 / (E - V)` rows of probability :math:`\pi = 1
    - V / E`. Dependent or weighted rows vary more: all three numbers are divided by the same factor.
    """

    observed: float
    expected: float
    variance: float

    @classmethod
    def of(cls, table: BinTable, design_effect: float = 1.0) -> EventCount:
        """From the cells of a table."""
        p = np.clip(table.predicted_mean, 0.0, 1.0)
        unit = float(table.weight_squares.sum()) / table.total * design_effect
        observed, expected = float(table.observed.sum()), float(table.predicted.sum())
        return cls(observed / unit, expected / unit, float(table.weight @ (p * (1 - p))) / unit)

    @property
    def p_value(self) -> float:
        """Two-sided: twice the smaller tail, at most 1."""
        if not self.variance > 0:
            return 1.0 if np.isclose(self.observed, self.expected) else 0.0
        size, chance = self._binomial
        x = min(max(self.observed, 0.0), size)
        at_least = float(betainc(x, size - x + 1, chance)) if x > 0 else 1.0
        at_most = 1 - float(betainc(x + 1, size - x, chance)) if x < size else 1.0
        return min(2 * min(at_least, at_most), 1.0)

    def null_ratio(self) -> tuple[float, float]:
        """Between which O : E a calibrated model lies with a probability of at least 95 %."""
        if not self.variance > 0:
            return 1.0, 1.0
        size, chance = self._binomial
        low, high = (float(np.clip(np.ceil(bdtrik(q, size, chance) - 1e-9), 0, size)) for q in (0.025, 0.975))
        return low / self.expected, high / self.expected

    @property
    def _binomial(self) -> tuple[float, float]:
        chance = max(1 - self.variance / self.expected, 1e-12)
        return self.expected / chance, chance


#: Cells of scores that the events of one period are simulated in.
#: Derived: scores of one cell are at most 1/64 apart, so that pooling adds at most 1/128² to the variance p (1 - p) of
#: an outcome, which simulated samples cannot tell.
_GRID = HybridGrid(cells=128)


@dataclass(frozen=True, eq=False)
class _Totals:
    """What is known of each period, and all rows with the period of each, where these are needed."""

    parts: list[Any]
    data: Any
    index: NDArray[np.intp] | None
    seed: int

    def joined(self, start: int, end: int) -> Any:
        """The rows of some periods, or their table."""
        if self.data is None or self.index is None:
            return merge(self.parts[start:end])
        return self.data.take((self.index >= start) & (self.index < end))


class EventTotals(_Totals):
    """Observed and expected events by period: the cells of each, and rows where these are clustered or weighted."""

    parts: list[BinTable]
    data: Binary | None
    quantity: ClassVar[Literal["observed : expected"]] = "observed : expected"

    @classmethod
    def of_rows(cls, data: Binary, index: NDArray[np.intp], size: int, seed: int) -> EventTotals:
        """Rows, and the period of each."""
        cut = HybridGrid() if len(data) > 1 << 16 else Distinct()
        tables = [BinTable.of(data.take(index == k), cut).filled() for k in range(size)]
        plain = data.group is None and data.weight is None
        return cls(tables, None if plain else data, None if plain else index, seed)

    def numbers(self, k: int) -> tuple[float, float, float]:
        """Rows, observed and expected events of a period."""
        table = self.parts[k]
        rows = table.n / table.total
        return float(table.n), float(table.observed.sum()) * rows, float(table.predicted.sum()) * rows

    def ratio(self, start: int, end: int, level: float = 0.95) -> Value:
        """Observed over expected events of some periods."""
        try:
            return Value.of(interval(observed_expected, self.joined(start, end), level=level))
        except InvalidPredictions:  # nothing was expected, or too few clusters
            table = merge(self.parts[start:end])
            observed, expected = float(table.observed.sum()), float(table.predicted.sum())
            return Value(observed / expected if expected > 0 else np.inf if observed > 0 else np.nan)

    def null(self, k: int) -> tuple[float, float]:
        """Between which ratios a calibrated model lies in 95 % of samples."""
        return self._counts[k].null_ratio()

    @property
    def p_values(self) -> Floats:
        """Of the number of events in each period."""
        return np.array([count.p_value for count in self._counts])

    @cached_property
    def _counts(self) -> list[EventCount]:
        return [EventCount.of(table, self._design_effect(k)) for k, table in enumerate(self.parts)]

    def _design_effect(self, k: int) -> float:
        if self.data is None or self.data.group is None:
            return 1.0
        some = self.joined(k, k + 1)
        weight = 1.0 if some.weight is None else some.weight
        return design_effect([weight * (some.y_true - some.y_prob)], cluster_labels(some, len(some)))

    def residuals(self) -> Residuals | None:
        """Of the logistic recalibration of all periods together; None where outcomes allow none."""
        model = _constant_model(merge(self.parts))
        if model is None or self.data is None or self.index is None:
            return None if model is None else self._simulated_residuals(model)
        return self._signed_residuals(self.data, self.index, model)

    def _simulated_residuals(self, model: tuple[float, float]) -> Residuals:
        pooled = [pooled_on(_GRID, table) for table in self.parts]
        index = np.repeat(np.arange(len(pooled)), [len(table) for table in pooled])
        score, count, observed = (
            np.concatenate([getattr(table, name) for table in pooled])
            for name in ("predicted_mean", "weight", "observed")
        )
        design, chance = _fitted(score, model)
        sums, variance = observed - count * chance, count * chance * (1 - chance)
        rng = generator(self.seed, "change point")
        whole = np.maximum(np.rint(count), 1).astype(np.int64)
        drawn = rng.binomial(whole[:, None], chance[:, None], (len(count), DRAWS)) - (whole * chance)[:, None]
        size, weighted = len(pooled), design * variance[:, None]
        sums, variance = (total(index, one, size) for one in (sums, variance))
        draws = np.add.reduceat(drawn, np.searchsorted(index, np.arange(size)), axis=0)
        scores = sums_by(index, weighted, size)
        return Residuals(sums, variance, scores, weighted.T @ design, draws, design.T @ drawn)

    def _signed_residuals(self, data: Binary, index: NDArray[np.intp], model: tuple[float, float]) -> Residuals:
        """The same for dependent or weighted rows, whose residuals are given random signs, cluster by cluster."""
        size = len(self.parts)
        weight = np.ones(len(data)) if data.weight is None else data.weight.astype(np.float64)
        design, chance = _fitted(data.y_prob.astype(np.float64), model)
        sums = weight * (data.y_true - chance)
        cluster = cluster_labels(data, len(data))
        place = cluster * size + index
        by_cluster = total(place, sums, (int(cluster.max()) + 1) * size).reshape(-1, size)
        scores = sums_by(cluster, design * sums[:, None], len(by_cluster))
        weighted = design * (weight * chance * (1 - chance))[:, None]
        drawn = random_signs(left_out(by_cluster, scores, place, cluster, weighted, design), self.seed)
        effect = max(float((by_cluster**2).sum()) / max(float(sums @ sums), 1e-300), 1.0)
        variance = total(index, effect * weight**2 * chance * (1 - chance), size)
        scores, information = sums_by(index, weighted, size), weighted.T @ design
        return Residuals(by_cluster.sum(axis=0), variance, scores, information, drawn[:size], drawn[size:])


def _constant_model(cells: BinTable) -> tuple[float, float] | None:
    """Intercept and slope that fit all rows; the intercept alone where the slope is not determined."""
    try:
        line, _ = recalibration_line(cells)
    except InvalidPredictions:  # scores of 0 and 1 only
        return None
    intercept, slope = joint_fit(line)
    if not np.isfinite(intercept + slope):
        intercept, slope = line.intercept(1.0), 1.0
    return (intercept, slope) if np.isfinite(intercept) else None


def _fitted(score: Floats, model: tuple[float, float]) -> tuple[Floats, Floats]:
    """Columns and probabilities of the model; rows predicted 0 or 1 keep their prediction."""
    inside = (score > 0) & (score < 1)
    odds = np.where(inside, log_odds(np.where(inside, score, 0.5)), 0.0)
    chance = np.where(inside, expit(model[0] + model[1] * odds), score)
    return affine(odds) * inside[:, None], np.clip(chance, 0.0, 1.0)


class SpreadTotals(_Totals):
    """Squared standardised errors by period: observed is their sum, expected the number of forecasts."""

    quantity: ClassVar[Literal["error-to-spread ratio"]] = "error-to-spread ratio"

    @classmethod
    def of_rows(cls, data: Forecast, index: NDArray[np.intp], size: int, seed: int) -> SpreadTotals:
        """Forecasts, and the period of each."""
        return cls([data.take(index == k) for k in range(size)], data, index, seed)

    def numbers(self, k: int) -> tuple[float, float, float]:
        """Forecasts, sum of squared standardised errors, and its expectation."""
        part = self.parts[k]
        n = float(part.n if isinstance(part, BinTable) else len(part))
        return n, n * float(mean_squared_z(part)), n

    def ratio(self, start: int, end: int, level: float = 0.95) -> Value:
        """Error-to-spread ratio of some periods."""
        part = self.parts[start] if end == start + 1 else self.joined(start, end)
        try:
            return Value.of(interval(scale_factor, part, level=level))
        except (InvalidPredictions, ValueError):
            return Value(float(scale_factor(part)))

    def null(self, k: int) -> tuple[float, float]:
        """Between which ratios a calibrated forecaster lies in 95 % of samples."""
        null = scale_factor(self.parts[k]).details["null"]
        return float(null["low"]), float(null["high"])

    @property
    def p_values(self) -> Floats:
        """Of the mean squared standardised error of each period; NaN where it cannot be tested."""
        return np.array([spread_p_value(part) for part in self.parts])

    def residuals(self) -> Residuals | None:
        """Of a ratio that is the same at all times, with random signs; None without rows of means and spreads."""
        data, index = self.data, self.index
        if not isinstance(data, Gaussian) or index is None or data.y_true.ndim > 1:
            return None
        squared = ((data.y_true - data.mean) / data.std) ** 2
        weight = np.ones(len(data)) if data.weight is None else data.weight.astype(np.float64)
        sums = weight * (squared - np.average(squared, weights=weight))
        size, cluster = len(self.parts), cluster_labels(data, len(data))
        place = cluster * size + index
        by_cluster = total(place, sums, (int(cluster.max()) + 1) * size).reshape(-1, size)
        whole, unit = by_cluster.sum(axis=1, keepdims=True), np.ones((len(sums), 1))
        drawn = random_signs(left_out(by_cluster, whole, place, cluster, weight[:, None], unit), self.seed)
        effect = float((whole**2).sum()) / max(float(weight @ weight), 1e-300)
        variance, scores = total(index, effect * weight**2, size), total(index, weight, size)[:, None]
        information = np.array([[float(weight.sum())]])
        return Residuals(by_cluster.sum(axis=0), variance, scores, information, drawn[:size], drawn[size:])
