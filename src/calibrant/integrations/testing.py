"""A check for test suites: raise an error where a model is shown to be worse calibrated than it may be."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Predictions, binary
from calibrant.data.validation import fail
from calibrant.inference.gates import Decision, End, Gate, weak_limits
from calibrant.results.estimate import Estimate
from calibrant.table.bintable import BinTable, group_tables

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
    limits: Mapping[str, float | tuple[float, float]] | None = None,
) -> Estimate:
    """Raise an `AssertionError` if the calibration error is above `below`; else return the estimate.

    The confidence interval decides, as for ``calibrant measure --fail-above``: the model fails if the whole interval is
    above `below`, passes if the whole interval is below, and otherwise there are too few rows to decide. With
    ``by="lower"`` only a failed model raises the error: a model whose true error is at most `below` does so with a
    probability of at most about (1 - `level`) / 2, but with few rows nearly every model passes. With ``by="upper"`` too
    few rows raise the error as well. ``by="estimate"`` compares the estimate alone, which may fail by chance.

    A limit that is not below the share of events (or of non-events) gives a `UserWarning`, because predicting 0 for
    every row would not exceed it.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
        For multiclass data, the top label counts.
    below : float in [0, 1)
        The largest acceptable error, as a probability: 0.02 is two points.
    by : {"lower", "estimate", "upper"}
        What raises the error; see `calibrant.inference.Gate`.
    level : float in (0, 1)
    per_group : array-like of shape (n,), or mapping of group to table, optional
        Each group must pass as well. Lower ends hold simultaneously for all groups at the level; upper ends need no
        adjustment, since every group has to pass by itself.
    limits : mapping, optional
        Further limits by the names of `calibrant.inference.Gate`, e.g. ``{"relative": 0.25, "oe": (0.8, 1.25)}``.

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
    AssertionError: Gate: failed. The calibration error is between ... points; the limit is 2 points (shown to be ...).
    """
    gates = [Gate(below, by=by), *(Gate(limit, by=by, of=name) for name, limit in (limits or {}).items())]
    task = data if isinstance(data, BinTable) else binary(data, y_prob)
    if per_group is not None and isinstance(task, PositiveUnlabeled):
        fail("Groups of positive-unlabeled rows may differ in their prior: assert each with its own prior.")
    parts = {} if per_group is None else group_tables(task, per_group, most=None)
    whole = [gate.estimate(task, level=level) for gate in gates]
    decision = Decision.of(
        gate.decide(found, gate.estimates(parts, level=level)) for gate, found in zip(gates, whole, strict=True)
    )
    for sentence in weak_limits(gates, task):
        warnings.warn(sentence[:1].upper() + sentence[1:], UserWarning, stacklevel=2)
    if not gates[0].accepts(decision):
        raise AssertionError("\n".join(decision.lines))
    return whole[0]
