"""The numbers of a validation study: observed over expected, intercept and slope, integrated calibration index."""

from __future__ import annotations

from typing import Literal, Unpack, get_args

import numpy as np

from calibrant.data.predictions import Binary, Column, Columns, binary
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.estimators.binned import result
from calibrant.numerics.arrays import GRID_CELLS, GRID_ROWS, Floats, log_odds
from calibrant.numerics.logistic.binary import LogisticLine
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import EqualMass, HybridGrid
from calibrant.table.bintable import BinTable, Data, fine
from calibrant.table.task import Unlabeled


@estimates("observed to expected ratio")
def observed_expected(data: Data = None, y_prob: Column = None, **columns: Unpack[Columns]) -> Estimate:
    r"""O:E ratio: the number of events observed over the number predicted.

    .. math:: \frac{O}{E} = \frac{\sum_i w_i y_i}{\sum_i w_i p_i}

    1 if the predictions are right on average ("calibration in the large"), above 1 if they are too low. The target is
    the ratio of the means of outcome and prediction in the population; its interval is by `calibrant.inference.MidP`.
    ``details`` holds "observed" and "expected", the two weighted means times the number of rows.

    References
    ----------
    Riley, Debray, Snell et al. (2021), Minimum sample size for external validation of a clinical prediction model with
    a binary outcome; Debray et al. (2017), A guide to systematic review and meta-analysis of prediction model
    performance.

    Examples
    --------
    >>> found = observed_expected([0, 1, 1, 0], [0.2, 0.6, 0.9, 0.3])
    >>> found
    <O:E ratio 1, n=4, exact>
    >>> found.details
    {'observed': 2.0, 'expected': 2.0}
    """
    cells = probability_cells(data, y_prob, needed_by="observed_expected")
    observed, expected = float(cells.observed.sum()), float(cells.predicted.sum())
    if not expected > 0:
        fail("observed_expected needs predictions above 0, but y_prob is 0 in all rows: no events are expected.")
    rows = cells.n / cells.total
    details = {"observed": observed * rows, "expected": expected * rows}
    return result(observed / expected, "O:E ratio", "exact", cells, **details)


@estimates("calibration intercept")
def calibration_intercept(data: Data = None, y_prob: Column = None, **columns: Unpack[Columns]) -> Estimate:
    r"""Calibration intercept ("in the large"): the shift of all log odds after which predictions are right on average.

    .. math:: \operatorname{logit} P(Y = 1) = a + \operatorname{logit} p, \qquad
              \sum_i w_i \operatorname{expit}(a + \operatorname{logit} p_i) = \sum_i w_i y_i

    with the slope fixed at 1: 0 if calibrated, positive if predictions are too low. For the intercept of the fit in
    which the slope is free, see `calibration_slope`. Without events it is minus infinity, without non-events plus
    infinity. Rows predicted exactly 0 or 1 stay there whatever the shift: they are left out, and `method` says so.

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression; Steyerberg (2019), Clinical Prediction
    Models, 15.3; Van Calster et al. (2016), A calibration hierarchy for risk models was defined.

    Examples
    --------
    >>> calibration_intercept([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])  # log(3), since three quarters had the event
    <Calibration intercept 1.099, n=4, maximum likelihood, slope 1>
    >>> calibration_intercept([0, 0], [0.1, 0.2])
    <Calibration intercept -inf, n=2, maximum likelihood, slope 1, no events>
    """
    cells = probability_cells(data, y_prob, needed_by="calibration_intercept")
    line, left_out = recalibration_line(cells)
    words = ", ".join(["maximum likelihood, slope 1", *_reasons(line, left_out, slope=False)])
    return result(line.intercept(1.0), "Calibration intercept", words, cells, left_out=left_out)


@estimates("calibration slope")
def calibration_slope(data: Data = None, y_prob: Column = None, **columns: Unpack[Columns]) -> Estimate:
    r"""Calibration slope: the factor of the log odds that fits the outcomes best.

    .. math:: \operatorname{logit} P(Y = 1) = a + b \operatorname{logit} p

    by maximum likelihood in a and b jointly. 1 if calibrated, below 1 if predictions are too extreme (as after
    overfitting), above 1 if they are too moderate. ``details["intercept"]`` is the a of the joint fit, which is *not*
    `calibration_intercept`: it is the log odds of the event where 1/2 was predicted.

    The slope is infinite if the outcomes are separated, that is if all events have higher (plus infinity) or lower
    scores than all others, ties allowed; and NaN, undetermined, if only one outcome was observed or all scores are the
    same. `method` says so, and the interval is then one-sided or the whole line. Rows predicted exactly 0 or 1 have no
    log odds: they are left out, and `method` says so.

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression; Miller, Hui, Tierney (1991), Validation
    techniques for logistic regression models; Steyerberg (2019), Clinical Prediction Models, 15.3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=5000)
    >>> found = calibration_slope(rng.random(5000) < 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-2 * z)))  # too extreme
    >>> round(found, 1), abs(found.details["intercept"]) < 0.1
    (0.5, True)
    >>> calibration_slope([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8])
    <Calibration slope inf, n=4, maximum likelihood, separated outcomes>
    """
    cells = probability_cells(data, y_prob, needed_by="calibration_slope")
    line, left_out = recalibration_line(cells)
    words = ", ".join(["maximum likelihood", *_reasons(line, left_out, slope=True)])
    intercept, slope = joint_fit(line)
    return result(slope, "Calibration slope", words, cells, intercept=intercept, left_out=left_out)


def joint_fit(line: LogisticLine) -> tuple[float, float]:
    """Intercept and slope; infinite or NaN where the data do not determine them."""
    if line.only_outcome is not None:
        return line.intercept(0.0), np.nan
    if line.z[0] == line.z[-1]:
        return np.nan, np.nan
    if line.separation:
        return np.nan, line.separation * np.inf
    return line.fit()


def probability_cells(data: Data, y_prob: Column, *, needed_by: str) -> BinTable:
    """The fine table of labelled probabilities, of weight one where all weigh the same; of many rows on a grid."""
    task = data if isinstance(data, BinTable) else binary(data, y_prob)
    if isinstance(task, Binary) and len(task) > GRID_ROWS:
        task = BinTable.of(task, HybridGrid(GRID_CELLS))
    cells = fine(task, None, needed_by=needed_by)
    if isinstance(cells.task, Unlabeled):
        fail(f"{needed_by} needs the outcome of every row, which positive-unlabeled data do not have.")
    return cells.filled(in_rows=True)


def recalibration_line(cells: BinTable) -> tuple[LogisticLine, int]:
    """The logistic regression on the log odds, in Kish's number of rows, and how many rows of 0 and 1 are left out."""
    p = cells.predicted_mean
    inside = (p > 0) & (p < 1)
    if not inside.any():
        message = (
            f"y_prob must lie strictly between 0 and 1 in some rows to fit intercept and slope, but all {cells.n} rows "
            "are exactly 0 or 1; observed_expected and ece take them."
        )
        raise InvalidPredictions(message)
    unit = cells.total / float(cells.weight_squares.sum())
    weight = cells.weight[inside] * unit
    events = np.clip(cells.observed[inside] * unit, 0.0, weight)
    return LogisticLine(log_odds(p[inside]), weight, events), round(float(cells.count[~inside].sum()))


def _reasons(line: LogisticLine, left_out: int, *, slope: bool) -> list[str]:
    """What a reader must know about this fit."""
    found = []
    if left_out:
        found.append(f"{left_out} rows predicted 0 or 1 left out")
    if line.only_outcome is not None:
        found.append("no events" if line.only_outcome == 0 else "no non-events")
    elif slope and line.z[0] == line.z[-1]:
        found.append("all scores the same")
    elif slope and line.separation:
        found.append("separated outcomes")
    return found


Curve = Literal["smooth", "loess"]

#: The most cells of neighbouring scores on which loess is fitted, each with its own window.
#: Derived: a cell is then 1/768 of a window of three quarters of the rows, in which the curve is a parabola.
LOESS_CELLS = 1024


@estimates("true error", norm=1)
def ici(data: Data = None, y_prob: Column = None, *, curve: Curve = "smooth", **columns: Unpack[Columns]) -> Estimate:
    r"""Integrated calibration index: mean distance between predictions and a flexible calibration curve ĝ.

    .. math:: \mathrm{ICI} = \frac1W \sum_i w_i \lvert p_i - \hat g(p_i) \rvert

    ``details`` holds the median, the 90 % quantile and the maximum of the same distances as "E50", "E90" and "Emax".
    The curve is fitted to the same rows, not cross-fitted, as the literature does: noise that it follows counts as
    distance, so that the ICI of a calibrated model is above 0. The target is the true L1 error, and `interval` gives
    the same interval as for `ece`, which allows for that noise.

    Parameters
    ----------
    data : Binary, fine BinTable, or y_true
    curve : {"smooth", "loess"}
        "smooth" is the average of penalised logistic splines behind `calibrant.recalibrate.Smoothed` (without its
        isotonic steps), shrunk towards the diagonal. "loess" is a local quadratic
        regression of the outcomes on the probabilities with span 0.75, for comparison with published values; it is
        fitted at every score (beyond 1024 scores, at 1024 cells of them) where R interpolates between a few, and
        may leave [0, 1].

    References
    ----------
    Austin, Steyerberg (2019), The Integrated Calibration Index (ICI) and related metrics for quantifying the
    calibration of logistic regression models.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = ici(rng.random(2000) < p**2, p)  # the distances p - p² have mean 1/6 and maximum 1/4
    >>> round(found, 2), round(found.details["Emax"], 2)
    (0.17, 0.28)
    """
    if curve not in get_args(Curve):
        fail(f"curve must be 'smooth' or 'loess', got {curve!r}.", ValueError)
    cells = probability_cells(data, y_prob, needed_by="ici")
    some = cells if curve == "smooth" or len(cells) <= LOESS_CELLS else cells.coarsen(EqualMass(LOESS_CELLS)).filled()
    distance = np.abs(some.predicted_mean - _fitted(some, curve))
    order = np.argsort(distance)
    running = np.cumsum(some.weight[order]) / some.total
    middle, high = (float(distance[order][np.searchsorted(running, q - 1e-12)]) for q in (0.5, 0.9))
    words = "smooth curve" if curve == "smooth" else "loess, span 0.75, degree 2"
    largest = float(distance.max())
    return result(float(some.share @ distance), "ICI (L1)", words, cells, E50=middle, E90=high, Emax=largest)


def _fitted(cells: BinTable, curve: Curve) -> Floats:
    from calibrant.numerics.smoothers import LogitBins, SmootherAverage, loess, raw_logit

    if curve == "loess":
        return loess(cells.predicted_mean, cells.observed_mean, cells.share)
    unit = cells.total / float(cells.weight_squares.sum())
    raw = raw_logit(cells.predicted_mean)
    bins = LogitBins.of(raw, cells.weight * unit)
    ones = np.bincount(bins.index(raw), cells.observed * unit, len(bins)).astype(np.float64)
    none = np.zeros(len(bins))
    zeros = np.maximum(bins.mass - ones, 0.0)
    # The second fold, which is left out, is empty.
    return SmootherAverage.fit(bins, np.stack([ones, none]), np.stack([zeros, none]), [1]).predict(0, raw)
