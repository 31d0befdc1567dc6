"""Logarithmic scores: the floor that bounds them, and the rows whose score is infinite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.validation import as_number
from calibrant.numerics.arrays import Floats

#: What `log_provenance` may say in the details of a result.
PROVENANCE = ("floor", "infinite_rows", "first_infinite_row", "message")


def check_floor(floor: float) -> float:
    """`floor` as a float in [0, 0.5)."""
    value = as_number(floor)
    if not 0 <= value < 0.5:
        message = f"floor must lie in [0, 0.5), got {floor!r}."
        raise ValueError(message)
    return value


def floored(p: Floats, floor: float) -> Floats:
    r"""Probabilities no nearer to 0 and 1 than `floor`.

    .. math:: p' = \min(\max(p, \varepsilon), 1 - \varepsilon), \qquad
              p'_k = c\,\min(\max(p_k, \varepsilon), 1 - \varepsilon) \text{ for rows of several classes}

    where c gives the row the sum it had before. For two classes c is 1, so that both forms agree.

    >>> floored(np.array([0.0, 0.3, 1.0]), 0.01)
    array([0.01, 0.3 , 0.99])
    >>> floored(np.array([[0.0, 0.2, 0.8]]), 0.05).round(3)
    array([[0.048, 0.19 , 0.762]])
    """
    if floor == 0:
        return p
    raised = np.clip(p, floor, 1 - floor)
    if p.ndim == 1 or p.shape[1] == 1:
        return raised
    return raised * (p.sum(axis=1, keepdims=True) / raised.sum(axis=1, keepdims=True))


def log_losses(p: Floats, positives: Floats, negatives: Floats) -> Floats:
    """-positives log p - negatives log(1 - p), with 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(positives > 0, -positives * np.log(p), 0.0)
        misses = np.where(negatives > 0, -negatives * np.log1p(-p), 0.0)
    total: Floats = hits + misses
    return total


def infinite_rows(losses: Floats) -> NDArray[np.intp]:
    """Numbers of the rows whose loss is infinite."""
    if np.isfinite(losses.sum()):  # a sum takes a fraction of the time of a comparison
        return np.empty(0, np.intp)
    return np.flatnonzero(np.isinf(losses))


def log_provenance(
    method: str, floor: float, *, infinite: int | None = 0, first: int | None = None
) -> tuple[str, dict[str, Any]]:
    """The method in words and the details of a mean log score: its floor, or the rows that make it infinite.

    `infinite` is the number of rows, None where it is unknown (a table of weighted rows); `first` the first of them.

    >>> log_provenance("mean", 1e-6)
    ('mean, floor=1e-06', {'floor': 1e-06})
    >>> log_provenance("mean", 0.0, infinite=2, first=7)[0]
    'mean, infinite for 2 rows'
    """
    if floor > 0:
        return f"{method}, floor={floor:g}", {"floor": floor}
    if infinite == 0:
        return method, {}
    rows = "some rows" if infinite is None else f"{infinite} row{'s' if infinite > 1 else ''}"
    where = "" if first is None else f" (first: row {first})"
    message = (
        f"The log score is infinite for {rows}{where}, whose outcome had a predicted probability (or density) of 0. "
        "Pass floor=1e-6, for instance, to raise probabilities to at least that: no score then exceeds 13.8."
    )
    details = {"infinite_rows": infinite, "first_infinite_row": first, "message": message}
    return f"{method}, infinite for {rows}", details
