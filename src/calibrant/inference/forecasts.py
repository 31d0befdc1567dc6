"""Tests of predicted distributions: z-scores and PIT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, kolmogorov, ndtr, stdtr

from calibrant.data.forecasts import Distribution, Gaussian, Samples
from calibrant.data.validation import fail
from calibrant.estimators import regression_common as common
from calibrant.estimators.regression_coverage import pit_curve
from calibrant.estimators.regression_spread import mean_squared_z
from calibrant.inference.forecast_intervals import LogMeanSquare
from calibrant.inference.forecast_places import too_few_clusters, width_code
from calibrant.inference.sample import row_clusters
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import mean_and_error
from calibrant.results.estimate import Component, Significance
from calibrant.table.binning import Cut, EqualMass


@dataclass(frozen=True)
class MeanSquaredZ:
    r"""Robust test that the mean of :math:`z^2 = (y-\mu)^2/\sigma^2` is 1.

    With :math:`L = \log\overline{z^2}` and its standard error :math:`\mathrm{se} = \sqrt{(\kappa-1)/(N-1)}` from the
    kurtosis κ of the z-scores, the statistic is L / se, referred to the normal distribution. A sample of heavy-tailed
    errors often lacks the large ones; then both L and its standard error are too small. A negative L is therefore
    raised by what may be missing (see `LogScale`), at most to zero.

    Examples
    --------
    >>> import calibrant as cal
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> cal.calibration_test(cal.Gaussian(y, np.zeros(1000), np.full(1000, 2.0)), method=MeanSquaredZ()).method
    'mean z^2 = 0.2391'
    """

    def test(self, data: common.ForecastData) -> Significance:
        """Two-sided."""
        value = mean_squared_z(data)
        perfect = float(np.log(value.details["null"]["mean"]))  # 0 but for ensembles, whose spread is itself uncertain
        z = LogMeanSquare.of(common.table_or_forecast(data, None, None), needed_by="MeanSquaredZ").statistic(perfect)
        return Significance(z, float(2 * ndtr(-abs(z))), method=f"mean z^2 = {float(value):.4g}", n=value.n)


@dataclass(frozen=True)
class PitUniformity:
    r"""Kolmogorov-Smirnov test that the probability integral transforms F(y) are uniform.

    With weights, n is Kish's effective sample size. For draws, quantiles and counts the transforms are known only up to
    an interval, over which they are spread; the test is then conservative.

    Examples
    --------
    >>> import calibrant as cal
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> sharp, wide = (cal.Gaussian(y, np.zeros(1000), np.full(1000, sd)) for sd in (1.0, 2.0))
    >>> PitUniformity().test(sharp).p_value > 0.05, PitUniformity().test(wide).p_value < 0.001
    (True, True)
    """

    def test(self, data: common.ForecastData) -> Significance:
        """Large values are evidence against calibration."""
        task: Any = common.forecast(data, None, None)
        curve = pit_curve(task)
        root = np.sqrt(curve.size)
        distance = curve.distance(np.inf)
        p_value = float(kolmogorov(distance * (root + 0.12 + 0.11 / root)))  # Stephens' correction for small n
        return Significance(distance, p_value, method="PIT uniformity (Kolmogorov-Smirnov)", n=task.y_true.size)


@dataclass(frozen=True)
class SpreadChiSquare:
    r"""Chi-square test that the errors match the predicted spread in every bin of the spread.

    .. math:: \sum_k \frac{(\mathrm{MSE}_k / \mathrm{MV}_k - 1)^2}{v_k} \sim \chi^2_K, \qquad
              v_k = (\kappa - 1)\,\overline{\sigma^4}_k / (n_k\,\mathrm{MV}_k^2)

    The ratio is taken to the power one third, where it is nearly normal (Wilson and Hilferty), and κ is the kurtosis of
    the errors.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> std = rng.uniform(0.5, 1.5, 1000)
    >>> data = cal.Gaussian(std * rng.normal(size=1000), np.zeros(1000), 0.8 * std)
    >>> cal.calibration_test(data, method=cal.inference.SpreadChiSquare()).p_value < 0.05
    True
    """

    bins: Cut | int = EqualMass(10)

    def test(self, data: common.ForecastData) -> Significance:
        """Large values are evidence against calibration."""
        table, words = common.spread_table(data, None, None, self.bins, needed_by="SpreadChiSquare")
        some = table.filled()
        variance = common.ratio_variance(some, max(common.table_kurtosis(table), 1 + 1e-9))
        ratio = some.observed_mean / some.predicted_mean
        z = (np.cbrt(ratio) - (1 - variance / 9)) / np.sqrt(variance / 9)
        statistic = float(z @ z)
        p_value = float(chdtrc(len(some), statistic))
        return Significance(statistic, p_value, method=f"spread chi square, {words}", n=table.n)


@dataclass(frozen=True)
class Moments:
    r"""Test of predicted means and standard deviations alone, for forecasts that claim no more than these.

    With :math:`z = (y - \mu) / \sigma`, three statements are tested, each with the variance found in the sample:
    mean z is 0 (*bias*, Student's test), mean :math:`z^2` is 1 (*spread*, `MeanSquaredZ`), and :math:`z^2` does not
    depend on the predicted width (*spread by width*: the covariance with the number of its fifth). Their shares of the
    level are 0.4, 0.4 and 0.2, and the p-value is :math:`\min_k p_k / w_k` (Bonferroni). For draws, mean and standard
    deviation are those of all m + 1 values of a row, outcome included: then both means are right for draws of any law.
    Clusters are units; fewer than 12 effective ones are too few, and p is NaN.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> heavy = cal.Gaussian(rng.standard_t(5, 1000) * 0.6**0.5, np.zeros(1000), np.ones(1000))
    >>> cal.calibration_test(heavy).p_value < 0.05, cal.calibration_test(heavy, method=Moments()).p_value > 0.05
    (True, True)
    """

    def test(self, data: common.ForecastData) -> Significance:
        """The statistic is the smallest p-value over its share."""
        claimed = _claimed(common.forecast(data, None, None))
        z = claimed.z()
        weight = np.ones(len(z)) if claimed.flat_weight is None else claimed.flat_weight
        clusters = row_clusters(claimed, len(z))
        few = too_few_clusters(weight, clusters)
        if few.reason:
            return Significance(np.nan, np.nan, method=repr(self), n=len(claimed), details=few._asdict())
        statistics = {"bias": _ratio(z, weight, clusters)}
        table = common.table_or_forecast(claimed, None, None)
        statistics["spread"] = LogMeanSquare.of(table, needed_by="Moments").statistic()
        code = width_code(claimed.std.astype(np.float64).ravel())
        if np.ptp(code) > 0:
            squares = z**2 / float(weight @ z**2 / weight.sum()) - 1
            code = code - float(weight @ code) / weight.sum()
            statistics["spread by width"] = _ratio(code * squares, weight, clusters)
        shares = {"bias": 0.4, "spread": 0.4, "spread by width": 0.2}
        total, freedom = sum(shares[name] for name in statistics), few.effective - 1
        made = tuple(
            Component(name, float(2 * stdtr(freedom, -abs(t))), shares[name] / total, -1 if t > 0 else 1)
            for name, t in statistics.items()
        )
        decided = min(made, key=lambda one: one.p_value / one.share)
        smallest = min(decided.p_value / decided.share, 1.0)
        return Significance(smallest, smallest, method=repr(self), n=len(claimed), components=made, decided=decided)


def _ratio(values: Floats, weight: Floats, clusters: Any) -> float:
    """A mean over its standard error."""
    mean, error = mean_and_error(values, weight, clusters)
    return mean / error if error > 0 else float(np.copysign(np.inf, mean)) if mean else 0.0


def _claimed(data: Any) -> Gaussian:
    """The predicted means and standard deviations; of draws, those of all values of a row."""
    if isinstance(data, Gaussian):
        return data
    if isinstance(data, Samples):
        pooled = np.concatenate([data.y_true[:, None], data.draws], axis=1).astype(np.float64)
        mean, std = pooled.mean(axis=1), pooled.std(axis=1)
    elif isinstance(data, Distribution):
        mean, std = data.mean, data.std
    else:
        fail(f"Moments needs predicted means and standard deviations, not {data!r}.", TypeError)
    return Gaussian.borrowing(data.y_true, mean, std, weight=data.weight, group=data.group)
