"""The mean of standardised errors: are the forecasts too high or too low?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibrant.data.forecasts import Gaussian
from calibrant.inference.design_effect import row_clusters
from calibrant.numerics.weights import mean_and_error
from calibrant.reporting.contents import Value


class MeanError(NamedTuple):
    """The mean of z = (y - mean) / std with its interval, and the p-value of a mean of 0."""

    value: Value
    p_value: float


def mean_standardised_error(data: Any, *, level: float = 0.95) -> MeanError | None:
    """Student's interval and test, with clusters as units; None for what has no means and standard deviations.

    >>> from calibrant import Gaussian
    >>> found = mean_standardised_error(Gaussian([1.0, 2.0, 3.0], [0.0, 1.0, 2.5], [1.0, 1.0, 1.0]))
    >>> round(found.value.value, 3), found.p_value < 0.05
    (0.833, True)
    """
    from scipy.special import stdtr, stdtrit

    if not isinstance(data, Gaussian) or len(data) < 2:
        return None
    z = ((data.y_true - data.mean) / data.std).astype(np.float64).reshape(-1)
    weight = np.ones(len(z)) if data.flat_weight is None else data.flat_weight
    clusters = row_clusters(data, len(z))
    mean, error = mean_and_error(z, weight, clusters)
    units = len(z) if clusters is None else int(clusters.max()) + 1
    if units < 2:
        return None
    error *= float(np.sqrt(units / (units - 1)))
    reach = float(stdtrit(units - 1, (1 + level) / 2)) * error
    p_value = 2 * float(stdtr(units - 1, -abs(mean) / error)) if error > 0 else float(mean == 0)
    return MeanError(Value(mean, mean - reach, mean + reach), p_value)
