"""Profile-likelihood interval of the calibration slope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.estimators.recalibration_framework import joint_fit, recalibration_line
from calibrant.inference.sample import Sample, independent_rows_counted
from calibrant.inference.score_covariance import ScoreCovariance
from calibrant.numerics.arrays import Floats
from calibrant.numerics.logistic import affine
from calibrant.numerics.logistic_line import LogisticLine
from calibrant.numerics.special import expit, log_odds
from calibrant.results.estimate import Estimate, Interval, Side
from calibrant.table.bintable import BinTable


@dataclass(frozen=True)
class ProfileLikelihood:
    r"""Profile-likelihood interval of the calibration slope, adjusted for clusters, weights and other curves.

    .. math:: \Bigl\{ b : 2\bigl[\ell(\hat a, \hat b) - \max_a \ell(a, b)\bigr] \le
              z^2 \max(1, \kappa) \Bigr\}, \qquad
              \kappa = \frac{(H^{-1} J H^{-1})_{bb}}{(H^{-1})_{bb}}

    with H the information, J the sum of squares of the observed scores over rows or clusters (the sandwich), and z the
    normal quantile, Student's with clusters. Unlike an interval of plus and minus some standard errors it stays right
    with few events. Where outcomes are separated it has one end; where only one outcome was observed, or one score,
    every slope is possible. `assumption` says so.

    References
    ----------
    Venzon, Moolgavkar (1988), A Method for Computing Profile-Likelihood-Based Confidence Intervals; Heinze, Schemper
    (2002), A solution to the problem of separation in logistic regression; Chandler, Bate (2007), Inference for
    clustered data using the independence loglikelihood. Coverage measured in worlds of known truth is in
    reproduce/results/decisions_coverage.csv.

    Examples
    --------
    >>> import calibrant as cal
    >>> separated = cal.interval(cal.calibration_slope, cal.Binary([0, 0, 0, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.8]))
    >>> separated.interval.side, round(separated.interval.low, 2), separated.interval.high
    ('lower', 0.8, inf)
    """

    def interval(self, data: Predictions | BinTable, estimate: Estimate, *, level: float = 0.95) -> Interval:
        """The interval of a calibration slope of `data`."""
        from scipy.special import ndtri

        level = validation.fraction("level", level)
        if estimate.target is None or estimate.target.quantity != "calibration slope":
            message = f"ProfileLikelihood is for calibration_slope, not for {estimate.name}."
            raise TypeError(message)
        data = independent_rows_counted(data, needed_by="ProfileLikelihood")
        line, _ = recalibration_line(Sample.of(data, needed_by="ProfileLikelihood").table)
        rise = float(ndtri((1 + level) / 2)) ** 2 / 2 * _adjustment(data, line, level)
        low, high = line.slope_limits(rise)
        side, words = _side(low, high)
        return Interval(low, high, level=level, method=repr(self), side=side, assumption=words, target=estimate.target)


def _side(low: float, high: float) -> tuple[Side, str]:
    words = "independent rows (or clusters)"
    if np.isinf(low) and np.isinf(high):
        return "two-sided", f"{words}; one outcome or one score only, so that every slope is possible"
    if np.isinf(low) or np.isinf(high):
        return (
            "upper" if np.isinf(low) else "lower"
        ), f"{words}; separated outcomes, which bound the slope on one side"
    return "two-sided", words


def _adjustment(data: Predictions | BinTable, line: LogisticLine, level: float) -> float:
    """By how much the variance of the slope exceeds what the likelihood says; at least 1."""
    intercept, slope = joint_fit(line)
    if not np.isfinite(intercept + slope):  # at an infinite slope nothing varies: take that of a calibrated model
        intercept, slope = line.intercept(1.0), 1.0
    if not np.isfinite(intercept) or line.z[0] == line.z[-1]:
        return 1.0

    def fitted(p: Floats) -> Floats:
        return expit(intercept + slope * _finite(p))

    def columns(p: Floats) -> Floats:
        return affine(_finite(p)) * ((p > 0) & (p < 1))[:, None]

    spread = ScoreCovariance.of(data, fitted=fitted, columns=columns, needed_by="ProfileLikelihood")
    inverse = np.linalg.inv(line.curvature(intercept, slope))
    ratio = float((inverse @ spread.matrix @ inverse)[1, 1] / inverse[1, 1])
    return max(1.0, ratio) * spread.inflation(level, inverse[1])


def _finite(p: Floats) -> Floats:
    """Log odds, with 0 where they are infinite: these rows are not counted."""
    return np.where((p > 0) & (p < 1), log_odds(p), 0.0)
