"""Totals of each period, tested one by one, and the residuals of a model that is the same at all times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.forecasts import Forecast, Gaussian
from calibrant.data.predictions import Binary
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.dispersion import mean_squared_z, scale_factor
from calibrant.estimators.recalibration_framework import joint_fit, observed_expected, recalibration_line
from calibrant.inference.design_effect import design_effect
from calibrant.inference.forecasts.regression_tests import MeanSquaredZ
from calibrant.inference.intervals import interval
from calibrant.inference.sample import cluster_labels
from calibrant.numerics.arrays import Floats
from calibrant.numerics.logistic import affine
from calibrant.numerics.special import expit, log_odds
from calibrant.reporting.contents import Value
from calibrant.reporting.sections.change_point import DRAWS, Residuals, random_signs, summed, total
from calibrant.reporting.sections.events import EventCount
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable, merge

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
        rng = np.random.default_rng([self.seed, 6])
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
        """Of the mean squared standardised error of each period."""
        return np.array([self._p_value(part) for part in self.parts])

    @staticmethod
    def _p_value(part: Any) -> float:
        try:
            return MeanSquaredZ().test(part).p_value
        except (InvalidPredictions, ValueError):  # a single row says nothing
            return 1.0

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
