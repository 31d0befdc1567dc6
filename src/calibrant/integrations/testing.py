"""A check for test suites: fail where a model is surely worse calibrated than it may be."""

from __future__ import annotations

from functools import partial

from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.forecasts import Forecast
from calibrant.data.predictions import Multiclass, Predictions, binary
from calibrant.results.estimate import Estimate, Interval
from calibrant.table.binning import PaperBins
from calibrant.table.bintable import BinTable
from calibrant.table.task import task_of
from calibrant.table.unlabeled import Unlabeled

__all__ = ["assert_calibrated"]


def assert_calibrated(
    data: Predictions | BinTable | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    *,
    below: float = 0.02,
    level: float | None = 0.95,
) -> Estimate:
    """Raise an `AssertionError` if the calibration error is above `below` beyond doubt; else return the estimate.

    A threshold on the bare estimate makes tests fail by chance. So the lower end of a one-sided interval decides: a
    model whose true error is at most `below` fails with a chance of about 1 - `level`, at any number of rows. The other
    side of that coin: few rows pass nearly everything. `level=None` compares the estimate itself.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
        Of several classes, the top label counts.
    below : float
        The largest error to be accepted, as a probability: 0.02 is two points.
    level : float in (0, 1), or None

    Returns
    -------
    Estimate
        For probabilities the L1 error: `calibration_error` with its cross-fitted lower bound, or `averaged_error`
        without level. For predicted distributions `interval_error`, less the highest value that a perfect forecaster
        shows 97.5 times in a hundred, whatever the level. For positive-unlabeled data `ece` in
        `pu.PaperBins` with its interval.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> assert_calibrated(rng.random(2000) < p, p).n
    2000
    >>> assert_calibrated(rng.random(2000) < p**2, p)
    Traceback (most recent call last):
    AssertionError: The calibration error is above 0.02: ...
    """
    below = validation.fraction("below", below)
    task = data if isinstance(data, BinTable) else binary(data, y_prob)
    estimate = _estimate(task, level if level is None else validation.fraction("level", level))
    decisive = estimate.value if level is None or estimate.interval is None else estimate.interval.low
    if decisive > below:
        message = f"The calibration error is above {below:g}: {estimate!r}."
        raise AssertionError(message)
    return estimate


def _estimate(task: Predictions | BinTable, level: float | None) -> Estimate:
    """The error of this task, with an interval whose lower end is meant one-sided."""
    from calibrant.estimators.averaged import averaged_error
    from calibrant.estimators.binned import ece
    from calibrant.estimators.lower_bound import CrossFittedBound
    from calibrant.estimators.variational import calibration_error

    if isinstance(task_of(task), Unlabeled):
        from calibrant.inference.intervals import interval

        return interval(partial(ece, bins=PaperBins()), task, level=0.95 if level is None else 2 * level - 1)
    if isinstance(task, Forecast):
        return _coverage_gap(task, level)
    one = task.top_label() if isinstance(task, Multiclass) else task
    if level is None:
        return averaged_error(one, norm=1)
    return calibration_error(one, bound=CrossFittedBound(level=level))


def _coverage_gap(task: Forecast, level: float | None) -> Estimate:
    """The interval error; a calibrated forecaster of this size stays below the upper end of its null range."""
    from calibrant.estimators.regression_coverage import interval_error

    estimate = interval_error(task)
    if level is None:
        return estimate
    reach = float(estimate.details["null"]["high"])
    how = "estimate less the highest value of a perfect forecaster"
    return estimate.with_interval(Interval(max(0.0, estimate.value - reach), 1.0, 0.95, how, side="lower"))
