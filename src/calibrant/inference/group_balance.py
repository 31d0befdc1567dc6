"""Predicted and observed events of one group, and the direction of their difference."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.inference.cluster_sums import ClusteredRows
from calibrant.numerics.arrays import Floats

#: Number of standard errors beyond which a mean gap has a direction.
_CLEAR = 2.0


def balance(data: Predictions) -> dict[str, Any]:
    """Events, mean prediction and mean outcome of a group; of the predicted class, for several classes.

    >>> import calibrant as cal
    >>> balance(cal.Binary([0, 0, 1, 0] * 50, [0.9] * 200))["direction"]
    'too high'
    """
    if isinstance(data, Multiclass):
        data = data.top_label()
    if not isinstance(data, Binary):
        return {}
    share = np.full(len(data), 1 / len(data)) if data.weight is None else data.weight / data.weight.sum()
    p = data.y_prob.astype(np.float64)
    predicted, observed = float(share @ p), float(share @ data.y_true)
    clear = abs(predicted - observed) > _CLEAR * _gap_error(data, p, share)
    return {
        "events": int(data.y_true.sum()),
        "predicted": predicted,
        "observed": observed,
        "direction": ("too high" if predicted > observed else "too low") if clear else "",
    }


def _gap_error(data: Binary, p: Floats, share: Floats) -> float:
    """The standard error of the mean gap: if the group is calibrated, or from its clusters."""
    if data.group is not None:
        return float(ClusteredRows.of(data).sums().gap_error[0])
    return float(np.sqrt(share**2 @ (p * (1 - p))))
