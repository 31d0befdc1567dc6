"""Calibration in MLflow: reports with numbers to plot over runs, and metrics for `mlflow.evaluate`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.data.predictions import Binary, Multiclass
from calibrant.data.validation import fail
from calibrant.estimators.recommended import calibration_error
from calibrant.inference.intervals import interval
from calibrant.monitor.status import Status
from calibrant.reporting import Report
from calibrant.results.estimate import Estimate

__all__ = ["evaluation_metric", "log_report", "log_status", "report_metrics"]


def evaluation_metric(
    estimator: Callable[..., Estimate] = calibration_error, *, name: str | None = None, level: float | None = 0.95
) -> Any:
    """A metric for ``mlflow.evaluate(..., extra_metrics=[...])`` (needs mlflow): an estimate with its interval.

    The predictions must be probabilities: of the event, as a column; or of all classes 0, 1, …, as a matrix (from a
    model logged with ``pyfunc_predict_fn="predict_proba"``), whose second column counts where there are two, and the
    top label where there are more. Predicted labels are no probabilities: they would be taken for certainties.

    Parameters
    ----------
    estimator : callable
        From predictions to an `Estimate`; smaller is better.
    name : str, optional
        In MLflow, by default that of the estimator. Logged are ``<name>/value``, ``<name>/low`` and ``<name>/high``.
    level : float in (0, 1), optional
        Of the interval; None leaves it out, for estimators that have none.

    Returns
    -------
    mlflow.models.EvaluationMetric

    Examples
    --------
    >>> import mlflow  # doctest: +SKIP
    >>> table = pd.DataFrame({"clicked": y, "score": p})  # doctest: +SKIP
    >>> mlflow.evaluate(  # doctest: +SKIP
    ...     data=table, targets="clicked", predictions="score", extra_metrics=[evaluation_metric()]
    ... ).metrics
    {'calibration_error/value': 0.031, 'calibration_error/low': 0.012, 'calibration_error/high': 0.055}
    """
    _mlflow()
    from mlflow.metrics import MetricValue
    from mlflow.models import make_metric

    def evaluated(predictions: Any, targets: Any, metrics: Any = None) -> Any:
        y, p = np.asarray(targets), np.asarray(predictions)
        whole = p.ndim == 2 and p.shape[1] != 2
        data = Multiclass(y, p).top_label() if whole else Binary(y, p if p.ndim == 1 else p[:, 1])
        found = estimator(data) if level is None else interval(estimator, data, level=level)
        values = {"value": found.value}
        if found.interval is not None:
            values |= {"low": float(found.interval.low), "high": float(found.interval.high)}
        return MetricValue(aggregate_results=values)

    called = name or getattr(estimator, "__name__", "calibration_error")
    make: Any = make_metric  # untyped there
    return make(eval_fn=evaluated, greater_is_better=False, name=called)


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError as error:
        fail("This needs MLflow: pip install 'calibrant[mlflow]'.", ImportError, cause=error)
    return mlflow


def log_report(report: Report, *, prefix: str = "calibration", page: bool = True) -> dict[str, float]:
    """Log a `Report` to the active MLflow run (needs mlflow; started if there is none).

    Every measure becomes a metric, e.g. ``calibration.ece_l1``, with ``.low`` and ``.high`` where it has an interval,
    and so does the p-value of the first test. The verdict becomes a tag. The report itself becomes the artifacts
    ``report.json``, ``report.md`` and, with `page`, ``report.html`` in a folder named `prefix`.

    Parameters
    ----------
    report : Report
        From `calibrant.report`.
    prefix : str
        Of metrics and tag, and the folder of the artifacts.
    page : bool
        Whether to log the HTML page too, which is about a megabyte.

    Returns
    -------
    dict of str to float
        The metrics that were logged.

    Examples
    --------
    >>> import mlflow  # doctest: +SKIP
    >>> import calibrant as cal
    >>> report = cal.report([0, 1, 0, 1, 1, 0, 1, 0], [0.2, 0.7, 0.4, 0.9, 0.6, 0.1, 0.8, 0.3])
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     log_report(report)
    """
    mlflow = _mlflow()
    metrics = report_metrics(report, prefix=prefix)
    mlflow.log_metrics(metrics)
    mlflow.set_tag(f"{prefix}.verdict", str(report.verdict))
    mlflow.log_text(report.to_json(), f"{prefix}/report.json")
    mlflow.log_text(report.to_markdown(), f"{prefix}/report.md")
    if page:
        mlflow.log_text(report.to_html(), f"{prefix}/report.html")
    return metrics


def log_status(status: Status, *, prefix: str = "monitor", step: int | None = None) -> dict[str, float]:
    """Log the status of a monitor to the active run (needs mlflow): metrics over steps, and the sentence as a tag.

    Logged are ``<prefix>/alarm`` (0 or 1), ``/evidence`` (logarithm, base 10), ``/p_value``, ``/gap`` and
    ``/observed_expected``, the last two with ``_low`` and ``_high``; numbers that are not finite are left out.

    Examples
    --------
    >>> import calibrant as cal
    >>> status = cal.Monitor().update([0, 1, 0], [0.2, 0.6, 0.1])
    >>> log_status(status, step=1)  # doctest: +SKIP
    """
    mlflow = _mlflow()
    found: dict[str, float | None] = {"alarm": status.alarm, "evidence": status.evidence, "p_value": status.p_value}
    for name, estimate in (("gap", status.gap), ("observed_expected", status.observed_expected)):
        found[name] = float(estimate)
        if estimate.interval is not None:
            found |= {f"{name}_low": estimate.interval.low, f"{name}_high": estimate.interval.high}
    known = {name: float(value) for name, value in found.items() if value is not None}
    metrics = {f"{prefix}/{name}": value for name, value in known.items() if math.isfinite(value)}
    mlflow.log_metrics(metrics, step=step)
    mlflow.set_tag(f"{prefix}.status", status.sentence)
    return metrics


def report_metrics(report: Report, *, prefix: str = "calibration") -> dict[str, float]:
    """The metrics of a report by name; values that are not finite are left out, since stores refuse them.

    Examples
    --------
    >>> import calibrant as cal
    >>> report = cal.report([0, 1, 0, 1, 1, 0, 1, 0], [0.2, 0.7, 0.4, 0.9, 0.6, 0.1, 0.8, 0.3])
    >>> round(report_metrics(report)["calibration.brier_score"], 4)
    0.075
    """
    found: dict[str, float] = {"rows": float(report.n)}
    for estimate in (measure.estimate for measure in report.measures):
        plain = re.sub(r"[^a-z0-9]+", "_", estimate.name.lower()).strip("_")
        name, number = plain, 2  # a number where an earlier measure has the name
        while name in found:
            name, number = f"{plain}_{number}", number + 1
        found[name] = estimate.value
        if estimate.interval is not None:
            found |= {f"{name}.low": float(estimate.interval.low), f"{name}.high": float(estimate.interval.high)}
    for test in report.tests:
        found.setdefault("p_value", float(test.p_value))
    return {f"{prefix}.{name}": value for name, value in found.items() if math.isfinite(value)}
