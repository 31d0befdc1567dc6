"""Some of the rows of any predictions, without checking them again."""

from __future__ import annotations

import copy
from typing import Any

from numpy.typing import NDArray

from calibrant.data.distributions import Gaussian, Quantiles, Samples
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions

#: The columns of each task that have one entry per row.
_COLUMNS: dict[type[Predictions], tuple[str, ...]] = {
    Binary: ("y_true", "y_prob"),
    Multiclass: ("y_true", "y_prob"),
    Gaussian: ("y_true", "mean", "std"),
    Quantiles: ("y_true", "values"),
    Samples: ("y_true", "draws"),
}


def taken(data: Predictions, rows: NDArray[Any]) -> Any:
    """The given rows, by number (repeats allowed) or mask.

    >>> import numpy as np
    >>> taken(Binary([0, 1, 1], [0.2, 0.7, 0.9]), np.array([0, 0, 2])).y_prob
    array([0.2, 0.2, 0.9])
    """
    columns = next((names for kind, names in _COLUMNS.items() if isinstance(data, kind)), None)
    if columns is None:
        message = (
            f"Rows of {type(data).__name__} cannot be taken apart; give Binary, Multiclass, Gaussian, ... instead."
        )
        raise InvalidPredictions(message)
    some = copy.copy(data)
    for name in (*columns, "weight", "group"):
        values = getattr(data, name)
        if values is not None:
            setattr(some, name, values[rows])
    return some
