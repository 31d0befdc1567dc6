"""Mid-P intervals of the O:E ratio and of the calibration intercept: both say how many events are expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.estimators.recalibration_framework import recalibration_line
from calibrant.inference.sample import Sample, independent_rows_counted
from calibrant.inference.score_covariance import Columns, ScoreCovariance
from calibrant.numerics.arrays import Floats
from calibrant.numerics.binomial_interval import mid_p_interval
from calibrant.numerics.special import expit, log_odds
from calibrant.results.estimate import Estimate, Interval
from calibrant.table.bintable import BinTable

WORDS = "independent rows (or clusters)"


@dataclass(frozen=True)
class MidP:
    r"""Mid-P interval of the number of events, as O:E ratio or as calibration intercept.

    The rate of events has the mid-P interval of a binomial share, which holds from no events on, with the number of
    rows that gives the share the variance it has around the predictions,

    .. math:: n^\star = \frac{\bar y (1 - \bar y)}{V}, \qquad
              V = \max\Bigl(\frac{1}{W^2}\sum_i w_i^2 (y_i - m_i)^2,\; \frac{1}{W^2}\sum_i w_i^2 m_i (1 - m_i)\Bigr)

    where :math:`m_i` is the prediction made right on average: times O:E, or with its log odds shifted. The first sum is
    over clusters where there are some, with Student's quantile for those that carry the variance. Nothing is assumed of
    the predictions otherwise. The ends are divided by the mean prediction, or become intercepts: the shifts at which so
    many events are expected.

    References
    ----------
    Lancaster (1961), Significance Tests in Discrete Distributions; Korn, Graubard (1998), Confidence intervals for
    proportions with small expected number of positive counts. Coverage measured in worlds of known truth is in
    reproduce/results/decisions_coverage.csv.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.interval(cal.observed_expected, cal.Binary([0] * 99 + [1], [0.03] * 100))
    >>> found
    <O:E ratio 0.3333 [0.01627, 1.621] at 95%, n=100, exact>
    """

    def interval(self, data: Predictions | BinTable, estimate: Estimate, *, level: float = 0.95) -> Interval:
        """The interval of an O:E ratio or calibration intercept of `data`."""
        level = validation.fraction("level", level)
        quantity = None if estimate.target is None else estimate.target.quantity
        data = independent_rows_counted(data, needed_by="MidP")
        if quantity == "observed to expected ratio":
            low, high = self._ratio(data, level)
        elif quantity == "calibration intercept":
            low, high = self._intercept(data, level)
        else:
            message = f"MidP is for observed_expected and calibration_intercept, not for {estimate.name}."
            raise TypeError(message)
        return Interval(low, high, level=level, method=repr(self), assumption=WORDS, target=estimate.target)

    def _ratio(self, data: Predictions | BinTable, level: float) -> tuple[float, float]:
        table = Sample.of(data, needed_by="MidP").table
        ratio = float(table.observed.sum() / table.predicted.sum())
        low, high = _rate_limits(data, table, lambda p: ratio * p, level)
        mean = float(table.predicted.sum()) / table.total
        return low / mean, high / mean

    def _intercept(self, data: Predictions | BinTable, level: float) -> tuple[float, float]:
        table = Sample.of(data, needed_by="MidP").table
        table = table.take(_uncertain(table.predicted_mean))
        line, _ = recalibration_line(table)
        shift, size = line.intercept(1.0), float(line.weight.sum())
        low, high = _rate_limits(data, table, lambda p: _shifted(p, shift), level)
        return line.intercept(1.0, events=low * size), line.intercept(1.0, events=high * size)


def _rate_limits(data: Predictions | BinTable, table: BinTable, fitted: Columns, level: float) -> tuple[float, float]:
    """Limits of the rate of events in `table`, which is that of `data`, perhaps without rows predicted 0 or 1."""
    whole = Sample.of(data, needed_by="MidP").table
    some = len(table) < len(whole)

    def counted(p: Floats) -> Floats:
        return (_uncertain(p) if some else np.ones(len(p)))[:, None].astype(np.float64)

    rate = float(np.clip(table.observed.sum() / table.total, 0.0, 1.0))
    spread = ScoreCovariance.of(data, fitted=fitted, columns=counted, needed_by="MidP")
    size = table.population.effective_n
    if 0 < rate < 1:
        unit = whole.total / float(whole.weight_squares.sum())
        mean = np.clip(fitted(table.predicted_mean), 0.0, 1.0)
        by_model = unit**2 * float(table.weight_squares @ (mean * (1 - mean)))
        variance = (
            max(float(spread.matrix[0, 0]) * spread.inflation(level, np.ones(1)), by_model) / (unit * table.total) ** 2
        )
        size = rate * (1 - rate) / variance
    elif spread.cluster_sums is not None:
        size = min(size, float(len(spread.cluster_sums)))  # nothing is known of the spread within clusters
    low, high = mid_p_interval(rate * size, size, level)
    return float(low), float(high)


def _uncertain(p: Floats) -> NDArray[np.bool_]:
    return np.asarray((p > 0) & (p < 1))


def _shifted(p: Floats, shift: float) -> Floats:
    """Predictions with their log odds shifted; 0 and 1 stay."""
    return np.where(_uncertain(p), expit(log_odds(p) + shift), p)
