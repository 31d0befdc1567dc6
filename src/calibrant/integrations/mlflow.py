"""Reports in MLflow: numbers to plot over runs, the page to read."""

from __future__ import annotations

import math
import re

from calibrant.reporting import Report
from calibrant.results.estimate import Estimate

__all__ = ["log_report", "report_metrics"]


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
    try:
        import mlflow
    except ImportError as error:
        message = "Logging a report needs MLflow: pip install 'calibrant[mlflow]'."
        raise ImportError(message) from error
    metrics = report_metrics(report, prefix=prefix)
    mlflow.log_metrics(metrics)
    mlflow.set_tag(f"{prefix}.verdict", str(report.verdict))
    mlflow.log_text(report.to_json(), f"{prefix}/report.json")
    mlflow.log_text(report.to_markdown(), f"{prefix}/report.md")
    if page:
        mlflow.log_text(report.to_html(), f"{prefix}/report.html")
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
    for measure in report.measures:
        found |= _of_estimate(measure.estimate, found)
    for test in report.tests:
        found.setdefault("p_value", float(test.p_value))
    return {f"{prefix}.{name}": value for name, value in found.items() if math.isfinite(value)}


def _of_estimate(estimate: Estimate, taken: dict[str, float]) -> dict[str, float]:
    """Value and interval under a plain name, which gets a number where an earlier measure has it."""
    plain = re.sub(r"[^a-z0-9]+", "_", estimate.name.lower()).strip("_")
    name, number = plain, 2
    while name in taken:
        name, number = f"{plain}_{number}", number + 1
    values = {name: estimate.value}
    if estimate.interval is not None:
        values |= {f"{name}.low": float(estimate.interval.low), f"{name}.high": float(estimate.interval.high)}
    return values
