"""One function from predictions to a report, whatever the task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.forecasts import Forecast
from calibrant.data.predictions import Multiclass, Predictions, binary
from calibrant.reporting.model import Report
from calibrant.table.bintable import BinTable
from calibrant.table.task import Spread, task_of
from calibrant.table.unlabeled import Unlabeled


def report(
    data: Predictions | BinTable | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    *,
    by: ArrayLike | Mapping[Any, BinTable | ArrayLike] | None = None,
    title: str | None = None,
    seed: int = 0,
) -> Report:
    """Calibration report of `data`: a verdict, estimates with intervals, tests, recalibration, groups and findings.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
        Several classes are measured by their top label. A table gives the same report from any number of rows.
    by : array-like, optional
        Group of each row, or a dictionary of such arrays, one grouping each; a table per group where `data` is a table.
        The report then has a line and a curve per group.
    title : str, optional
    seed : int
        Of the folds and the resampling.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = cal.report(cal.Binary(rng.random(2000) < 0.5 + 0.6 * (p - 0.5), p), title="Demo")
    >>> found.verdict
    'Over-confident by ...'
    """
    validation.seed(seed)
    given: Any = data if isinstance(data, BinTable) else binary(data, y_prob)
    named = "Calibration report" if title is None else title
    tables = isinstance(by, Mapping) and (not by or any(isinstance(part, BinTable) for part in by.values()))
    if tables and not isinstance(given, BinTable):
        message = "A table per group goes with a table of all rows; for rows, give the group of each as by=."
        raise TypeError(message)
    groups: Any = by
    if isinstance(given, Multiclass):
        from calibrant.reporting.probabilities import top_label_report

        return top_label_report(given, by=groups, title=named, seed=seed)
    task = task_of(given)
    if isinstance(task, Unlabeled):
        from calibrant.reporting.unlabeled import unlabeled_report

        return unlabeled_report(given, title=named)
    if isinstance(task, Spread) or isinstance(given, Forecast):
        from calibrant.reporting.regression import forecast_report

        return forecast_report(given, by=groups, title=named, seed=seed)
    from calibrant.reporting.probabilities import probability_report

    return probability_report(given, by=groups, title=named, seed=seed)
