"""The rows of a batch of a training loop, whatever its shape and device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Multiclass
from calibrant.data.validation import InvalidPredictions, as_array


def batch_rows(preds: Any, target: Any, ignore_index: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Outcomes and probabilities of a batch; of several classes, those of the top label."""
    p, y = _host("preds", preds), _host("target", target)
    if p.ndim == y.ndim + 1 and p.shape[:1] + p.shape[2:] == y.shape:
        p = np.moveaxis(p, 1, -1).reshape(-1, p.shape[1])
    elif p.shape == y.shape:
        p = p.reshape(-1)
    else:
        message = f"preds must have the shape of target, or one more axis (classes); got {p.shape} and {y.shape}."
        raise InvalidPredictions(message)
    y = y.reshape(-1)
    if ignore_index is not None:
        keep = y != ignore_index
        p, y = p[keep], y[keep]
    if p.ndim == 2 and len(y):
        top = Multiclass(y, p).top_label()
        p, y = top.y_prob, top.y_true
    return y, p


def _host(name: str, values: Any) -> NDArray[Any]:
    """As a NumPy array, from whatever device."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return as_array(name, values)
