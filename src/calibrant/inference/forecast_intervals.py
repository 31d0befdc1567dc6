"""Intervals of the scale factor of predicted spreads, and of coverage: over all rows, few clusters, and by group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtr, ndtri

from calibrant.data import validation
from calibrant.data.forecasts import Forecast, Quantiles, Samples
from calibrant.data.validation import fail
from calibrant.estimators import regression_common as common
from calibrant.estimators.regression_scores import covered
from calibrant.estimators.regression_spread import stretch_slope
from calibrant.inference.inversion import spread_fit
from calibrant.inference.inversion.spread import TAILS
from calibrant.inference.sample import sums_by
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import effective_n
from calibrant.results.estimate import Estimate, Interval, Significance
from calibrant.results.target import Target


@dataclass(frozen=True)
class Wilson:
    r"""Wilson's interval of a share of rows, such as one coverage.

    .. math:: \frac{\hat p + z^2/2N \pm z\sqrt{\hat p(1-\hat p)/N + z^2/4N^2}}{1 + z^2/N}

    with N Kish's number of rows. Over clusters N is the smaller of :math:`\\hat p(1-\\hat p)/V`, V being the jackknife
    variance over clusters, and of the rows that count if errors are normal with the correlation seen within clusters,
    and z is the quantile of Student's distribution with one degree of freedom less than effective clusters. Nothing is
    claimed of fewer than 6 of these.

    References
    ----------
    Wilson (1927), Probable Inference, the Law of Succession, and Statistical Inference.

    Examples
    --------
    >>> import calibrant as cal
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> str(cal.interval(cal.coverage, cal.Gaussian(y, np.zeros(500), np.ones(500))).interval)
    '[0.8906, 0.939]'
    """

    serves: ClassVar[str] = "an estimate"

    def interval(self, data: Any, estimate: Estimate, *, level: float = 0.95) -> Interval:
        """The interval of an estimate that is a mean of zeros and ones."""
        level = validation.fraction("level", level)
        losses = None if estimate.target is None else estimate.target.losses
        if losses is None or not isinstance(data, Forecast):
            fail(f"Wilson needs a share of rows of a forecast, such as coverage, not {estimate!r}.")
        inside = losses(data)
        share, clusters = min(max(float(estimate), 0.0), 1.0), spread_fit.forecast_clusters(data, len(inside))
        words = "independent rows (or clusters)"
        if clusters is None:
            size, reach = effective_n(data.flat_weight, len(inside)), float(ndtri((1 + level) / 2))
        else:
            clusters.require_enough()
            variance = mean_variance(inside - share, clusters)
            alone = float(clusters.share @ (inside - share) ** 2) / variance if variance > 0 else np.inf
            size = max(min(clusters.normal_rows(clusters.correlation**2), alone), 1.0)
            reach = clusters.reach(level)
            words = clusters.words + words
        low, high = wilson_limits(share, size, reach)
        return Interval(low, high, level=level, method=repr(self), assumption=words, target=estimate.target)


def wilson_limits(share: float, size: float, reach: float) -> tuple[float, float]:
    """Wilson's limits of a share of so many rows, `reach` standard errors to either side."""
    square = reach**2
    middle = (share + square / (2 * size)) / (1 + square / size)
    width = np.sqrt(square * share * (1 - share) / size + (square / (2 * size)) ** 2) / (1 + square / size)
    return 0.0 if share == 0 else float(middle - width), 1.0 if share == 1 else float(middle + width)


def mean_variance(residual: Floats, clusters: spread_fit.ForecastClusters) -> float:
    """Jackknife variance over clusters of the mean of a column whose residuals from it these are."""
    number = len(clusters.size)
    sums = np.bincount(clusters.label, clusters.share * residual)
    return (number - 1) / number * float(((sums / (1 - clusters.size)) ** 2).sum())


@dataclass(frozen=True)
class LogMeanSquare:
    r"""L = log of the mean z², its standard error, and `missing`: what rare large errors not in the sample may add.

    :math:`\mathrm{se}^2 = (\kappa - 1)/(N - 1)`, κ being the kurtosis of the z-scores, at least 3 below 20 rows.
    """

    value: float
    error: float
    missing: float
    heavy_tails: bool
    clusters: spread_fit.ForecastClusters | None = None

    @classmethod
    def of(cls, data: Any, *, needed_by: str) -> LogMeanSquare:
        """From forecasts that have a standard deviation, or a fine table of them."""
        if isinstance(data, Samples):
            return cls._of_ensemble(data)
        cells = spread_fit.SpreadCells.of(data, needed_by=needed_by)
        spread_fit.require_errors(cells)
        mean, size = cells.mean_square, cells.effective_n
        if cells.clusters is not None and cells.row_second is not None:
            size = cells.clusters.effective
            floor = 2 / cells.clusters.normal_rows(cells.clusters.correlation**2)  # of normal errors as alike
            variance = max(_log_variance(cells.row_second, cells.clusters), floor)
        elif cells.row_share is not None and cells.row_second is not None:
            squares = float((cells.row_share**2) @ (cells.row_second - mean) ** 2) / mean**2
            variance = squares * size / max(size - 1, 1.0)
        else:
            variance = max(float(cells.fourth.sum()) / mean**2 - 1, 0.0) / max(size - 1, 1.0)
        if cells.clusters is None and size < spread_fit.FEW_EFFECTIVE:
            if size < spread_fit.LEAST_EFFECTIVE - 1e-9:
                message = "The rows count as {:.3g}, too few for an interval or test of the spread: give {}."
                fail(message.format(size, spread_fit.LEAST_EFFECTIVE))
            variance = max(variance, 2 / size)  # few errors that happen to be alike: no more certain than normal ones
        kurtosis = 1 + variance * size
        missing = spread_fit.missing_mass(kurtosis, cells.largest_share)
        tails = cells.heavy_tails(size, kurtosis)
        return cls(float(np.log(mean)), float(np.sqrt(variance)), missing, tails, cells.clusters)

    @classmethod
    def _of_ensemble(cls, data: Samples) -> LogMeanSquare:
        """The logarithm of the squared stretch of an ensemble; its terms are bounded, so that none can be missing."""
        factor = common.stretch_factor(data)
        if factor == 0:
            fail(spread_fit.NO_ERRORS.format(n=len(data)))
        residual = common.pooled_squares(common.squared_t(data) / factor**2, data.draws.shape[1]) - 1
        slope, clusters = stretch_slope(data, factor), spread_fit.forecast_clusters(data, len(data))
        if clusters is None:
            size = effective_n(data.weight, len(data))
            variance = common.mean_of(residual**2, data.weight) / max(size - 1, 1.0) / slope**2
        else:
            variance = mean_variance(residual, clusters)
            floor = common.mean_of(residual**2, data.weight) / clusters.normal_rows(clusters.correlation**2)
            variance = max(variance, floor) / slope**2
        return cls(2 * float(np.log(factor)), float(np.sqrt(variance)), 0.0, heavy_tails=False, clusters=clusters)

    def statistic(self, null: float = 0.0) -> float:
        """L less its null value over its standard error; below it L is first raised by what may be missing."""
        apart = self.value - null
        toward = apart if apart > 0 else min(apart + self.missing, 0.0)
        if self.error > 0:
            return toward / self.error
        return 0.0 if toward == 0 else float(np.copysign(np.inf, toward))

    def ends(self, level: float) -> tuple[float, float]:
        """The interval of L.

        Over clusters with Student's quantile, and an upper end no lower than that of a chi-square with this variance.
        """
        if self.clusters is None:
            reach = above = float(ndtri((1 + level) / 2)) * self.error
        else:
            reach = above = self.clusters.reach(level) * self.error
            freedom = 2 / self.error**2 if self.error > 0 else np.inf
            if np.isfinite(freedom):
                above = max(reach, float(np.log(freedom / chdtri(freedom, (1 + level) / 2))))
        return self.value - reach, self.value + above + self.missing


def _log_variance(squares: Floats, clusters: spread_fit.ForecastClusters) -> float:
    """Jackknife variance over clusters of the logarithm of a mean of squares."""
    number, terms = len(clusters.size), np.bincount(clusters.label, clusters.share * squares)
    rest = np.maximum(terms.sum() - terms, 1e-300) / (1 - clusters.size)
    return (number - 1) / number * float(((np.log(rest) - np.log(terms.sum())) ** 2).sum())


@dataclass(frozen=True)
class LogScale:
    r"""Interval of the scale factor (or of its square, the mean squared z-score) on the logarithmic scale.

    .. math:: s \in \exp\bigl(\tfrac12 [L - z\,\mathrm{se},\; L + z\,\mathrm{se} + m]\bigr), \qquad
              L = \log\overline{z^2}, \quad \mathrm{se}^2 = \frac{\kappa-1}{N-1}

    with m the amount by which L may be too low because rare large errors are not in the sample: between 1.5 and 3 times
    the share of the largest term in the sum of z², more with heavier tails. Weights count by Kish's number of rows.
    Over clusters the variance is that of the jackknife, or that of normal errors with the correlation seen within
    clusters if larger, and z the quantile of Student's distribution; with fewer than 6 effective clusters nothing is
    claimed. For ensembles L is the logarithm of the squared stretch, see `calibrant.scale_factor`, whose terms are
    bounded, and m is 0.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> std = rng.uniform(1, 3, 1000)
    >>> found = cal.interval(cal.scale_factor, cal.Gaussian(1.2 * std * rng.normal(size=1000), np.zeros(1000), std))
    >>> str(found.interval), str(found.interval.target)
    ('[1.18, 1.293]', 'scale factor')
    """

    serves: ClassVar[str] = "forecasts"

    def interval(self, data: Any, target: Target, *, level: float = 0.95) -> Interval:
        """The interval of the factor, or of its square for a target of norm "squared"."""
        level = validation.fraction("level", level)
        if target.quantity != "scale factor":
            fail(f"LogScale is for scale_factor and mean_squared_z, not for a target {str(target)!r}.", TypeError)
        found = LogMeanSquare.of(data, needed_by="LogScale")
        few = ""
        if found.clusters is not None:
            found.clusters.require_enough()
            few = found.clusters.words
        power = 1.0 if target.norm == "squared" else 0.5
        low, high = (float(np.exp(power * end)) for end in found.ends(level))
        words = few + "independent rows (or clusters); a finite fourth moment of the errors"
        words = f"{TAILS}; {words}" if found.heavy_tails else words
        return Interval(low, high, level=level, method=repr(self), assumption=words, target=target)


Direction = Literal["too high", "too low", "too narrow", "too wide", ""]

#: What the limits of coverages assume that hold for all groups together.
ALL_GROUPS = "independent rows; for all groups together"

#: Simulated samples of a test of groups, at most and at least, and counts of cells that they have together.
#: Test: tests/inference/test_forecast_intervals.py::test_many_groups_take_fewer_simulated_samples.
_MOST, _FEWEST, _COUNTS = 1999, 199, 50_000_000


@dataclass(frozen=True, eq=False)
class CoverageByGroup:
    r"""Test that quantiles or ensembles are calibrated in every group of rows, without a trend over ordered groups.

    The scores of bias and spread of the cells or ranks in which outcomes lie, and whether these are inside an interval
    of nominal coverage, are summed over each group and, multiplied by the centred number of the group, over all groups.
    The largest of all standardised sums is compared with those of simulated counts: one p-value for all groups,
    adjusted ones for each, and simultaneous limits for coverages, which exclude the nominal one only where the adjusted
    p-value is small.

    Attributes
    ----------
    sums : array of shape (groups, scores)
        Of bias (positive: forecasts too low), spread (positive: too narrow), and coverage if asked.
    trend : array of shape (scores,) or None
        The same for the trend; None where groups have no order.
    alone, largest : arrays
        The largest simulated sum of each group, (samples, groups), and of all, (samples,), sorted.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> horizon = np.repeat([1, 2, 3], 400)
    >>> y = np.array([0.8, 1.0, 1.2])[horizon - 1] * rng.normal(size=1200)
    >>> data = cal.Quantiles(y, [0.05, 0.5, 0.95], np.tile([-1.645, 0, 1.645], (1200, 1)))
    >>> found = CoverageByGroup.of(data, horizon - 1, ordered=True)
    >>> found.trend_p_value < 0.01, found.direction(0), found.direction(2)
    (True, 'too wide', 'too narrow')
    """

    sums: Floats
    trend: Floats | None
    alone: Floats
    largest: Floats

    @classmethod
    def of(
        cls, data: Quantiles | Samples, member: NDArray[np.intp], *, nominal: float | None = None, ordered: bool = False
    ) -> CoverageByGroup:
        """From independent rows and the number of each row's group."""
        cells = _Cells.of(data, nominal)
        weight = np.ones(len(data)) if data.weight is None else data.weight
        groups = int(member.max()) + 1
        total, squares = (np.bincount(member, column, groups) for column in (weight, weight**2))
        size = total**2 / squares
        row = cells.row_scores(data) * weight[:, None]
        sums = sums_by(member, row, groups) / np.sqrt(squares)[:, None]
        x = np.arange(groups) - np.arange(groups) @ size / size.sum() if ordered and groups > 2 else None
        line = None if x is None else x * np.sqrt(size) / np.sqrt(size @ x**2)
        drawn = cells.drawn(size)
        alone = np.abs(drawn).max(axis=2)
        largest = alone.max(axis=1)
        if line is not None:
            largest = np.maximum(largest, np.abs(np.einsum("g,bgk->bk", line, drawn)).max(axis=1))
        return cls(sums, None if line is None else line @ sums, alone, np.sort(largest))

    @property
    def p_values(self) -> Floats:
        """Of each group by itself."""
        seen = np.abs(self.sums).max(axis=1)
        found = (1 + (self.alone >= seen - 1e-9).sum(axis=0)) / (len(self.alone) + 1)
        return self._beyond(found, seen, self.sums.shape[1])

    @property
    def adjusted(self) -> Floats:
        """Of each group, for all groups and the trend."""
        return self._adjusted(np.abs(self.sums).max(axis=1))

    @property
    def trend_p_value(self) -> float:
        """Of the trend, for all groups and the trend."""
        return float("nan") if self.trend is None else float(self._adjusted(np.abs(self.trend).max(keepdims=True))[0])

    def reach(self, level: float) -> float:
        """Standard errors to either side within which the sums of all groups are with this probability."""
        rank = min(int(np.ceil((len(self.largest) + 1) * level)), len(self.largest))
        return float(self.largest[rank - 1])

    @property
    def with_coverage(self) -> bool:
        """Whether a coverage is one of the scores."""
        return self.sums.shape[1] > 2

    def with_limits(self, estimate: Estimate, size: float, level: float) -> Estimate:
        """The coverage of a group of so many rows, with limits that hold for all groups together."""
        low, high = wilson_limits(float(estimate), size, self.reach(level))
        made = Interval(low, high, level=level, method=repr(Wilson()), assumption=ALL_GROUPS, target=estimate.target)
        return estimate.with_interval(made)

    def trend_test(self, n: int) -> Significance | None:
        """The test of a trend of bias and spread over the groups; None where they have no order."""
        if self.trend is None:
            return None
        bias, spread = (float(value) for value in self.trend[:2])
        details = {"bias": bias, "spread": spread, "direction": _words(bias, spread)}
        method = f"trend over {len(self.sums)} groups in order, adjusted for all groups"
        statistic = float(np.abs(self.trend).max())
        return Significance(statistic, self.trend_p_value, method=method, n=n, null="no trend", details=details)

    def direction(self, group: int) -> Direction:
        """The larger of bias and spread of a group, in words."""
        return _words(*self.sums[group, :2].tolist())

    def _adjusted(self, seen: Floats) -> Floats:
        above = len(self.largest) - np.searchsorted(self.largest, seen - 1e-9)
        tests = self.sums.size + (0 if self.trend is None else len(self.trend))
        return self._beyond((1 + above) / (len(self.largest) + 1), seen, tests)

    def _beyond(self, ranks: Floats, seen: Floats, tests: int) -> Floats:
        """Ranks, or Bonferroni's normal tails where no simulated sample is as extreme."""
        last = 1 / (len(self.largest) + 1)
        return np.where(ranks > last, ranks, np.minimum(ranks, 2 * tests * ndtr(-seen)))


def _words(bias: float, spread: float) -> Direction:
    if abs(bias) > abs(spread):
        return "too low" if bias > 0 else "too high"
    return "too narrow" if spread > 0 else "too wide"


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cells between levels or ranks: their probabilities, scores, and the part of each inside the central interval."""

    share: Floats
    scores: Floats
    inside: Floats | None
    nominal: float

    @classmethod
    def of(cls, data: Quantiles | Samples, nominal: float | None) -> _Cells:
        if isinstance(data, Quantiles):
            edges = np.concatenate([[0.0], data.levels, [1.0]])
        else:
            edges = np.arange(data.draws.shape[1] + 2) / (data.draws.shape[1] + 1)
        share, scores = np.diff(edges), common.cell_scores(edges)
        values = data.values if isinstance(data, Quantiles) else data.draws
        if nominal is None or (values == data.y_true[:, None]).any():
            return cls(share, scores, None, 0.0)
        low, high = max((1 - nominal) / 2, edges[1]), min((1 + nominal) / 2, edges[-2])
        inside = np.maximum(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0.0) / share
        return cls(share, scores, np.where(inside > 1 - 1e-9, 1.0, inside), high - low)

    def row_scores(self, data: Quantiles | Samples) -> Floats:
        """The scores of each row; outcomes that tie with draws or quantiles share those of the cells they touch."""
        if isinstance(data, Samples):
            scores = common.rank_scores(data)
        else:
            first = (data.values < data.y_true[:, None]).sum(axis=1)
            last = (data.values <= data.y_true[:, None]).sum(axis=1)
            tied = (first < last).any()
            scores = nearest_division(first, last, self.share) @ self.scores if tied else self.scores[first]
        if self.inside is None:
            return scores
        held = (covered(data, nominal=self.nominal) - self.nominal) / np.sqrt(self.nominal * (1 - self.nominal))
        return np.column_stack([scores, held])

    def drawn(self, size: Floats) -> Floats:
        """Standardised sums of simulated counts, (samples, groups, scores)."""
        rng = generator(0, "cells of groups of forecasts")
        samples = int(np.clip(_COUNTS // (len(size) * len(self.share)), _FEWEST, _MOST))
        columns = self.scores.shape[1] + (self.inside is not None)
        found = np.empty((samples, len(size), columns))
        for k, rows in enumerate(np.maximum(np.rint(size), 1).astype(int)):
            counts = rng.multinomial(rows, self.share, samples)
            found[:, k, : self.scores.shape[1]] = counts @ self.scores / np.sqrt(rows)
            if self.inside is not None:
                held = rng.binomial(counts, self.inside).sum(axis=1) - rows * self.nominal
                found[:, k, -1] = held / np.sqrt(rows * self.nominal * (1 - self.nominal))
        return found


def nearest_division(low: NDArray[np.intp], high: NDArray[np.intp], chance: Floats) -> Floats:
    """Rows in cells from `low` to `high`, divided by least Kullback-Leibler divergence from the expected counts.

    Where outcomes equal quantiles, F(y) is known only up to their levels; this is never less likely than the truth.
    """
    patterns, which, count = np.unique(np.stack([low, high], 1), axis=0, return_inverse=True, return_counts=True)
    cell = np.arange(len(chance))
    share = ((cell >= patterns[:, :1]) & (cell <= patterns[:, 1:])).astype(np.float64)
    share /= share.sum(axis=1, keepdims=True)
    for _ in range(200):
        share *= np.sqrt(len(low) * chance / np.maximum(count @ share, 1e-9))
        share /= share.sum(axis=1, keepdims=True)
    return np.asarray(share[which.reshape(-1)])
