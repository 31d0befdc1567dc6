"""A check for test suites: fail where a model is surely worse calibrated than it may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Predictions, binary
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.gates import End, Gate, headline_error, headline_errors
from calibrant.results.estimate import Estimate
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import group_tables

__all__ = ["assert_calibrated"]


def assert_calibrated(
    data: Predictions | BinTable | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    *,
    below: float = 0.02,
    by: End = "lower",
    level: float = 0.95,
    per_group: ArrayLike | Mapping[Any, BinTable] | None = None,
) -> Estimate:
    """Raise an `AssertionError` if the calibration error is above `below`; else return the estimate.

    By default the lower end of a two-sided interval decides, as for ``calibrant measure --fail-above``: a model whose
    true error is at most `below` fails with a chance of at most about (1 - `level`) / 2, at any number of rows. The
    other side of that coin: few rows pass nearly everything. ``by="upper"`` demands that the error is shown to be
    small, so that few rows fail; ``by="estimate"`` compares the estimate itself, which fails by chance.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
        Of several classes, the top label counts.
    below : float in [0, 1)
        The largest error to be accepted, as a probability: 0.02 is two points.
    by : {"lower", "estimate", "upper"}
        Which number decides; see `calibrant.inference.Gate`.
    level : float in (0, 1)
    per_group : array-like of shape (n,), or mapping of group to table, optional
        Each group must pass as well. The intervals of the groups are adjusted for their number where the lower end
        decides; where the upper end does, each group has to show its error by itself, which needs no adjustment.

    Returns
    -------
    Estimate
        That of all rows, with its interval: see `calibrant.inference.headline_error`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> assert_calibrated(rng.random(2000) < p, p).n
    2000
    >>> assert_calibrated(rng.random(2000) < p**2, p)
    Traceback (most recent call last):
    AssertionError: Not calibrated. all rows: the lower end of ... is above 0.02
    """
    gate = Gate(below, by=by)
    task = data if isinstance(data, BinTable) else binary(data, y_prob)
    whole = headline_error(task, level=level)
    failed = gate.failures({"all rows": whole})
    if per_group is not None:
        parts = group_tables(_groupable(task), per_group, most=None)
        failed += gate.failures(headline_errors(parts, level=level, adjusted=by == "lower"))
    if failed:
        message = f"Not calibrated. {'; '.join(failed)}"
        raise AssertionError(message)
    return whole


def _groupable(task: Any) -> Any:
    if isinstance(task, PositiveUnlabeled):
        message = "Groups of positive-unlabeled rows may differ in their prior: assert each with its own prior."
        raise InvalidPredictions(message)
    return task
