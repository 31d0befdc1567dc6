"""What is known of an estimator: its name, its norm, and whether it can run on many samples at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from calibrant.estimators.binned import ece, mce
from calibrant.estimators.common import check_norm
from calibrant.estimators.debiased import debiased_ece
from calibrant.estimators.kde import kde_ece
from calibrant.estimators.sweep import sweep_ece
from calibrant.numerics.arrays import Floats
from calibrant.results.target import Clipped, Estimator, _unwrap
from calibrant.simulate import batched
from calibrant.simulate import batched_kde as batch_kde
from calibrant.simulate.batched import Batch
from calibrant.table.binning import Edges, EqualMass, EqualWidth, as_binning


def vectorised(estimator: Estimator) -> Callable[[Batch], Floats] | None:
    """The same estimator for a whole batch of samples, or None where there is only the one for a single sample."""
    if isinstance(estimator, Clipped):
        inner = vectorised(estimator.estimator)
        return None if inner is None else lambda samples: np.maximum(inner(samples), 0.0)
    if isinstance(estimator, partial) and estimator.args:
        return None
    function, options = _unwrap(estimator)
    if not set(options) <= {"bins", "norm"}:
        return None
    if function is sweep_ece:
        family = options.get("bins", EqualMass)
        return partial(batched.sweep_ece, bins=family, norm=check_norm(options.get("norm", 1)))
    if function is kde_ece and "bins" not in options:
        return partial(batch_kde.kde_ece, norm=check_norm(options.get("norm", 1)))
    bins = as_binning(options.get("bins", EqualMass(15)))
    if not _covers_all_scores(bins):
        return None
    if function is mce and "norm" not in options:
        return partial(batched.ece, bins=bins, norm=math.inf)
    if function is ece:
        return partial(batched.ece, bins=bins, norm=check_norm(options.get("norm", 1)))
    norm = check_norm(options.get("norm", 2))
    if function is debiased_ece and np.isfinite(norm):
        return partial(batched.debiased_ece, bins=bins, norm=norm)
    return None


def _covers_all_scores(bins: Any) -> bool:
    if isinstance(bins, EqualMass):
        return True
    return isinstance(bins, (EqualWidth, Edges)) and bins.edges[0] <= 0 and bins.edges[-1] >= 1
