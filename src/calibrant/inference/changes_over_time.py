"""Calibration over time: periods of the calendar, observed and expected totals of each, and a test for a change.

The test of a change point allows for the search over all points of time. It works on residuals of a model that is the
same at all times, so events and squared standardised errors share it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.array_likes import UnreadableArrayError, read
from calibrant.data.forecasts import Forecast, Gaussian
from calibrant.data.groups import group_names
from calibrant.data.predictions import Binary
from calibrant.data.validation import InvalidPredictions, one_dimension
from calibrant.estimators.regression_spread import mean_squared_z, scale_factor
from calibrant.estimators.validation_study import joint_fit, observed_expected, recalibration_line
from calibrant.inference.calibration_tests import calibration_test
from calibrant.inference.forecasts import MeanSquaredZ
from calibrant.inference.intervals import interval
from calibrant.inference.sample import cluster_labels, design_effect
from calibrant.numerics.arrays import Floats
from calibrant.numerics.logistic.binary import affine
from calibrant.numerics.random_draws import generator
from calibrant.numerics.special import expit, log_odds
from calibrant.results.estimate import Value
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable, merge

#: More periods than these become longer ones.
MOST = 40
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: Steps of numbers.
_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, eq=False)
class Periods:
    """Names of the periods in order of time, and the period of each row: -1 where its time is missing."""

    names: list[str]
    index: NDArray[np.intp]


def periods(values: Any, *, name: str, length: int) -> Periods:
    """Dates and texts of dates as days, weeks, months, quarters or years; numbers by value or in equal steps.

    The shortest periods of which there are at most 40. Other texts are taken in alphabetical order, neighbours joined
    where they are too many.

    Examples
    --------
    >>> import numpy as np
    >>> periods(["2025-01-31", "2025-02-01", None, "2025-02-28"], name="day", length=4).index
    array([ 0,  1, -1,  2])
    >>> days = np.datetime64("2025-01-01") + np.arange(365)
    >>> periods(days, name="day", length=365).names[:2]
    ['Jan 2025', 'Feb 2025']
    """
    try:
        array, missing = read(values)
    except UnreadableArrayError as error:
        raise InvalidPredictions(error.about(name)) from error.__cause__
    array = one_dimension(name, array, length)
    known = np.ones(length, dtype=bool) if missing is None else ~missing.reshape(-1)
    if array.dtype.kind == "f":
        known &= np.isfinite(array)
    if not known.any():
        return Periods([], np.full(length, -1, dtype=np.intp))
    dates = _dates(array[known])
    if dates is not None:
        names, inverse = _calendar(dates)
    elif array.dtype.kind in "iuf":
        names, inverse = _numbers(array[known].astype(np.float64))
    else:
        names, inverse = _labels(array[known])
    index = np.full(length, -1, dtype=np.intp)
    index[known] = inverse
    return Periods(names, index)


def _dates(values: NDArray[Any]) -> NDArray[np.datetime64] | None:
    """Times in seconds; None where the values are no dates."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[s]")
    if values.dtype.kind not in "OU" or all(isinstance(value, int | float) for value in values[:1]):
        return None
    distinct, inverse = np.unique([str(value) for value in values], return_inverse=True)
    if not all(text[:4].isdigit() and len(text) >= 7 and text[4] == "-" for text in distinct):
        return None
    try:
        return np.array([text[:19] for text in distinct], dtype="datetime64[s]")[inverse.reshape(-1)]
    except ValueError:
        return None


def _calendar(times: NDArray[np.datetime64]) -> tuple[list[str], NDArray[np.intp]]:
    days = times.astype("datetime64[D]")
    months = times.astype("datetime64[M]").astype(np.int64)
    weeks = (days.astype(np.int64) + 3) // 7  # weeks start on Mondays; 1970 began on a Thursday
    choices: tuple[tuple[NDArray[np.int64], Callable[[int], str]], ...] = (
        (days.astype(np.int64), lambda k: str(np.datetime64(int(k), "D"))),
        (weeks, lambda k: f"week of {np.datetime64(int(7 * k - 3), 'D')}"),
        (months, lambda k: f"{_MONTHS[k % 12]} {1970 + k // 12}"),
        (months // 3, lambda k: f"Q{k % 4 + 1} {1970 + k // 4}"),
        (months // 12, lambda k: f"{1970 + k}"),
    )
    for number, shown in choices:
        distinct, inverse = np.unique(number, return_inverse=True)
        if len(distinct) <= MOST:
            return [shown(k) for k in distinct.tolist()], inverse.reshape(-1)
    return _joined([f"{1970 + k}" for k in distinct.tolist()], inverse.reshape(-1))


def _numbers(values: NDArray[np.float64]) -> tuple[list[str], NDArray[np.intp]]:
    distinct, inverse = np.unique(values, return_inverse=True)
    if len(distinct) <= MOST:
        return [f"{value:g}" for value in distinct.tolist()], inverse.reshape(-1)
    wanted = float(distinct[-1] - distinct[0]) / (MOST / 2)
    unit = 10.0 ** np.floor(np.log10(wanted))
    step = next(unit * factor for factor in _STEPS if unit * factor >= wanted * (1 - 1e-9))
    ranges, inverse = np.unique(np.floor(values / step), return_inverse=True)
    return [f"{k * step:g} to {(k + 1) * step:g}" for k in ranges.tolist()], inverse.reshape(-1)


def _labels(values: NDArray[Any]) -> tuple[list[str], NDArray[np.intp]]:
    names, index = group_names(values)
    texts = [str(name) for name in names]
    return (texts, index) if len(texts) <= MOST else _joined(texts, index)


def _joined(names: list[str], index: NDArray[np.intp]) -> tuple[list[str], NDArray[np.intp]]:
    """Neighbouring periods joined, as many to each."""
    size = -(-len(names) // MOST)
    parts = [names[start : start + size] for start in range(0, len(names), size)]
    return [part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts], index // size


DRAWS = 999
#: The share of the variance that either side of a split needs: one odd period at an end is no change.
_LEAST_SHARE = 0.02


class ChangePoint(NamedTuple):
    """The first period after the most likely change, and the p-value of the largest statistic over all splits."""

    first: int
    p_value: float


class Residuals(NamedTuple):
    """Residuals, by period, of a model that is the same at all times and was fitted to all rows.

    Attributes
    ----------
    sums, variance : array (periods,)
        Sum of the residuals, and its variance.
    scores : array (periods, parameters)
        Covariance of the sum with the scores of the fitted parameters: the sum of v x.
    information : array (parameters, parameters)
    drawn, drawn_scores : array (periods, draws), array (parameters, draws)
        Sums of the residuals, and scores, of simulated samples of the model.
    """

    sums: Floats
    variance: Floats
    scores: Floats
    information: Floats
    drawn: Floats
    drawn_scores: Floats


def change_point(found: Residuals) -> ChangePoint | None:
    r"""The largest standardised sum of residuals before any split, ranked among those of simulated samples.

    With :math:`R_k` the sum of residuals up to period k, :math:`V_k` its variance, :math:`c_k` its covariance with the
    scores U of the fitted parameters, and H their information,

    .. math:: T = \max_k \frac{(R_k - c_k' H^{-1} U)^2}{V_k - c_k' H^{-1} c_k}.

    U is zero in the data, since the model was fitted to them; in simulated samples that term stands for the fit to
    each. The p-value is the rank of T, so that it allows for the search, and is at least 1 / (draws + 1). None where
    there is nothing to split.
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
    return ChangePoint(int(np.flatnonzero(allowed)[statistics[:, 0].argmax()]) + 1, float(p_value))


def random_signs(parts: Floats, seed: int) -> Floats:
    """Sums over clusters of their parts (clusters by columns) with random signs: columns by draws."""
    signs = np.where(generator(seed, "signs of periods").random((len(parts), DRAWS)) < 0.5, -1.0, 1.0)
    return np.asarray(parts.T @ signs)


def summed(index: NDArray[np.intp], values: Floats, size: int) -> Floats:
    """Sums of the rows of `values` with each index: size by columns."""
    return np.stack([total(index, column, size) for column in values.T], axis=1)


def total(index: NDArray[np.intp], values: Floats, size: int) -> Floats:
    """Sums of the values with each index."""
    return np.asarray(np.bincount(index, values, size), dtype=np.float64)


LEVEL = 0.95


@dataclass(frozen=True)
class EventCount:
    r"""Observed events O, expected events E and the variance V of a calibrated model.

    The sum of independent outcomes with different probabilities is very nearly binomial with the same mean and
    variance, that is with :math:`N = E^2 / (E - V)` rows of probability :math:`\pi = 1 - V / E`; exactly so where all
    probabilities are equal. Dependent or weighted rows have a larger variance: all three numbers are then divided by
    the same factor, which leaves O : E as it is.
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
        from scipy.special import betainc

        if not self.variance > 0:
            return 1.0 if np.isclose(self.observed, self.expected) else 0.0
        size, chance = self._binomial
        x = min(max(self.observed, 0.0), size)
        at_least = float(betainc(x, size - x + 1, chance)) if x > 0 else 1.0
        at_most = 1 - float(betainc(x + 1, size - x, chance)) if x < size else 1.0
        return min(2 * min(at_least, at_most), 1.0)

    def null_ratio(self) -> tuple[float, float]:
        """Between which O : E a calibrated model lies with a probability of at least 95 %."""
        from scipy.special import bdtrik

        if not self.variance > 0:
            return 1.0, 1.0
        size, chance = self._binomial
        low, high = (
            float(np.clip(np.ceil(bdtrik(q, size, chance) - 1e-9), 0, size)) for q in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
        )
        return low / self.expected, high / self.expected

    @property
    def _binomial(self) -> tuple[float, float]:
        chance = max(1 - self.variance / self.expected, 1e-12)
        return self.expected / chance, chance


#: Cells of scores that the events of one period are simulated in.
_GRID = HybridGrid(cells=128)


@dataclass(frozen=True, eq=False)
class EventTotals:
    """Observed and expected events by period.

    Attributes
    ----------
    tables : list of BinTable
        The cells of each period.
    rows : Binary or None
        Rows that are clustered or weighted, whose variance the cells do not tell.
    index : array or None
        The period of each of these rows.
    """

    tables: list[BinTable]
    rows: Binary | None
    index: NDArray[np.intp] | None
    seed: int

    @classmethod
    def of_tables(cls, tables: list[BinTable], seed: int) -> EventTotals:
        """One table per period."""
        return cls(tables, None, None, seed)

    @classmethod
    def of_rows(cls, data: Binary, index: NDArray[np.intp], size: int, seed: int) -> EventTotals:
        """Rows, and the period of each."""
        cells = [HybridGrid() if len(data) > 1 << 16 else Distinct()] * size
        parts = [data.take(index == k) for k in range(size)]
        tables = [BinTable.of(part, cut).filled() for part, cut in zip(parts, cells, strict=True)]
        plain = data.group is None and data.weight is None
        return cls(tables, None if plain else data, None if plain else index, seed)

    def numbers(self, k: int) -> tuple[float, float, float]:
        """Rows, observed and expected events of a period."""
        table = self.tables[k]
        rows = table.n / table.total
        return float(table.n), float(table.observed.sum()) * rows, float(table.predicted.sum()) * rows

    def ratio(self, start: int, end: int) -> Value:
        """Observed over expected events of some periods."""
        part: Any = merge(self.tables[start:end])
        if self.rows is not None and self.index is not None:
            part = self.rows.take((self.index >= start) & (self.index < end))
        try:
            found = interval(observed_expected, part)
        except InvalidPredictions:  # nothing was expected, or too few clusters
            table = merge(self.tables[start:end])
            observed, expected = float(table.observed.sum()), float(table.predicted.sum())
            return Value(observed / expected if expected > 0 else np.inf if observed > 0 else np.nan)
        limits = found.interval
        return Value(float(found)) if limits is None else Value(float(found), limits.low, limits.high)

    def null(self, k: int) -> tuple[float, float]:
        """Between which ratios a calibrated model lies in 95 % of samples."""
        return self._counts[k].null_ratio()

    @property
    def p_values(self) -> Floats:
        """Of the number of events in each period."""
        return np.array([count.p_value for count in self._counts])

    @cached_property
    def _counts(self) -> list[EventCount]:
        return [EventCount.of(table, self._design_effect(k)) for k, table in enumerate(self.tables)]

    def _design_effect(self, k: int) -> float:
        if self.rows is None or self.index is None or self.rows.group is None:
            return 1.0
        some = self.rows.take(self.index == k)
        weight = 1.0 if some.weight is None else some.weight
        return design_effect([weight * (some.y_true - some.y_prob)], cluster_labels(some, len(some)))

    def residuals(self) -> Residuals | None:
        """Of the logistic recalibration of all periods together; None where outcomes allow none."""
        whole = merge(self.tables)
        model = _constant_model(whole)
        if model is None:
            return None
        if self.rows is not None and self.index is not None:
            return self._signed_residuals(model)
        return self._simulated_residuals(model)

    def _simulated_residuals(self, model: tuple[float, float]) -> Residuals:
        pooled = [_pooled(table) for table in self.tables]
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
        size = len(pooled)
        starts = np.searchsorted(index, np.arange(size))
        return Residuals(
            sums=total(index, sums, size),
            variance=total(index, variance, size),
            scores=summed(index, design * variance[:, None], size),
            information=(design * variance[:, None]).T @ design,
            drawn=np.add.reduceat(drawn, starts, axis=0),
            drawn_scores=design.T @ drawn,
        )

    def _signed_residuals(self, model: tuple[float, float]) -> Residuals:
        """The same for dependent or weighted rows, whose residuals are given random signs, cluster by cluster."""
        data, index, size = self.rows, self.index, len(self.tables)
        if data is None or index is None:  # pragma: no cover - asked for rows only
            raise RuntimeError
        weight = np.ones(len(data)) if data.weight is None else data.weight.astype(np.float64)
        design, chance = _fitted(data.y_prob.astype(np.float64), model)
        sums = weight * (data.y_true - chance)
        cluster = cluster_labels(data, len(data))
        by_cluster = np.bincount(cluster * size + index, sums, (int(cluster.max()) + 1) * size).reshape(-1, size)
        scores = summed(cluster, design * sums[:, None], len(by_cluster))
        drawn = random_signs(np.concatenate([by_cluster, scores], axis=1), self.seed)
        effect = max(float((by_cluster**2).sum()) / max(float(sums @ sums), 1e-300), 1.0)
        variance = effect * weight**2 * chance * (1 - chance)
        return Residuals(
            sums=by_cluster.sum(axis=0),
            variance=total(index, variance, size),
            scores=summed(index, design * (weight * chance * (1 - chance))[:, None], size),
            information=(design * (weight * chance * (1 - chance))[:, None]).T @ design,
            drawn=drawn[:size],
            drawn_scores=drawn[size:],
        )


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


def _pooled(table: BinTable) -> BinTable:
    """Cells of one cell of the grid added up."""
    key = _GRID.index(table.predicted_mean)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key) > 0]))
    ends = np.append(starts[1:], len(key)) - 1
    sums = np.add.reduceat(table.sums, starts, axis=1)
    return replace(table, cut=_GRID, key=key[starts], low=table.low[starts], high=table.high[ends], sums=sums)


@dataclass(frozen=True, eq=False)
class SpreadTotals:
    """Squared standardised errors by period: observed is their sum, expected the number of forecasts."""

    parts: list[Any]
    data: Forecast | None
    index: NDArray[np.intp] | None
    seed: int

    @classmethod
    def of_tables(cls, tables: list[BinTable], seed: int) -> SpreadTotals:
        """One table of spreads per period."""
        return cls(tables, None, None, seed)

    @classmethod
    def of_rows(cls, data: Forecast, index: NDArray[np.intp], size: int, seed: int) -> SpreadTotals:
        """Forecasts, and the period of each."""
        return cls([data.take(index == k) for k in range(size)], data, index, seed)

    def numbers(self, k: int) -> tuple[float, float, float]:
        """Forecasts, sum of squared standardised errors, and its expectation."""
        part = self.parts[k]
        n = float(part.n if isinstance(part, BinTable) else len(part))
        return n, n * float(mean_squared_z(part)), n

    def ratio(self, start: int, end: int) -> Value:
        """Error-to-spread ratio of some periods."""
        part = self.parts[start] if end == start + 1 else self._joined(start, end)
        try:
            found = interval(scale_factor, part)
        except (InvalidPredictions, ValueError):
            return Value(float(scale_factor(part)))
        limits = found.interval
        return Value(float(found)) if limits is None else Value(float(found), limits.low, limits.high)

    def _joined(self, start: int, end: int) -> Any:
        if self.data is None or self.index is None:
            return merge(self.parts[start:end])
        return self.data.take((self.index >= start) & (self.index < end))

    def null(self, k: int) -> tuple[float, float]:
        """Between which ratios a calibrated forecaster lies in 95 % of samples."""
        null = scale_factor(self.parts[k]).details["null"]
        return float(null["low"]), float(null["high"])

    @property
    def p_values(self) -> Floats:
        """Of the mean squared standardised error of each period; NaN where it cannot be tested."""
        return np.array([self._p_value(part) for part in self.parts])

    @staticmethod
    def _p_value(part: Any) -> float:
        try:
            return calibration_test(part, method=MeanSquaredZ()).p_value
        except (InvalidPredictions, ValueError):  # a single row says nothing, nor do rows that depend on each other
            return float("nan")

    def residuals(self) -> Residuals | None:
        """Of a ratio that is the same at all times, with random signs; None without rows of means and spreads."""
        data, index = self.data, self.index
        if not isinstance(data, Gaussian) or index is None or data.y_true.ndim > 1:
            return None
        squared = ((data.y_true - data.mean) / data.std) ** 2
        weight = np.ones(len(data)) if data.weight is None else data.weight.astype(np.float64)
        sums = weight * (squared - np.average(squared, weights=weight))
        size, cluster = len(self.parts), cluster_labels(data, len(data))
        by_cluster = np.bincount(cluster * size + index, sums, (int(cluster.max()) + 1) * size).reshape(-1, size)
        whole = by_cluster.sum(axis=1, keepdims=True)
        drawn = random_signs(np.concatenate([by_cluster, whole], axis=1), self.seed)
        effect = float((whole**2).sum()) / max(float(weight @ weight), 1e-300)
        variance = total(index, effect * weight**2, size)
        return Residuals(
            sums=by_cluster.sum(axis=0),
            variance=variance,
            scores=total(index, weight, size)[:, None],
            information=np.array([[float(weight.sum())]]),
            drawn=drawn[:size],
            drawn_scores=drawn[size:],
        )
