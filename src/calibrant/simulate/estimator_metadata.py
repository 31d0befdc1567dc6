"""What is known of an estimator: its name, its norm, and whether it can run on many samples at once."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calibrant.estimators.binned import ece, mce
from calibrant.estimators.common import check_norm
from calibrant.estimators.debiased import debiased_ece
from calibrant.estimators.kde import kde_ece
from calibrant.estimators.sweep import sweep_ece
from calibrant.numerics.binned_sums import Floats
from calibrant.simulate import batched
from calibrant.simulate import batched_kde as batch_kde
from calibrant.simulate.batched import Batch
from calibrant.table.binning import Edges, EqualMass, EqualWidth

Estimator = Callable[[Any], float]


@dataclass(frozen=True)
class Clipped:
    """An estimator with its negative results set to 0, as papers report the debiased error.

    >>> from calibrant import debiased_ece
    >>> Clipped(debiased_ece)
    Clipped(debiased_ece)
    """

    estimator: Estimator

    def __call__(self, data: Any) -> float:
        """Zero or the estimate, whichever is more."""
        return max(0.0, float(self.estimator(data)))

    def __repr__(self) -> str:
        return f"Clipped({name_of(self.estimator)})"


def name_of(estimator: Estimator) -> str:
    """Words for an estimator and its options, e.g. ``ece(norm=2)``."""
    function, options = _unwrap(estimator)
    name = getattr(function, "__qualname__", None) or repr(function)
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in sorted(options.items()))})" if options else name


def norm_of(estimator: Estimator) -> float:
    """The norm an estimator was given or defaults to; infinity for the maximum, 1 where it says nothing."""
    while isinstance(estimator, Clipped):
        estimator = estimator.estimator
    function, options = _unwrap(estimator)
    if function is mce:
        return math.inf
    if "norm" in options:
        return options["norm"]
    try:
        parameter = inspect.signature(function).parameters.get("norm")
    except (TypeError, ValueError):  # builtins without a signature
        return 1.0
    return 1.0 if parameter is None or parameter.default is inspect.Parameter.empty else parameter.default


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
    bins = options.get("bins", EqualMass(15))
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


def _unwrap(estimator: Estimator) -> tuple[Estimator, dict[str, Any]]:
    options: dict[str, Any] = {}
    while isinstance(estimator, partial):
        options = {**estimator.keywords, **options}
        estimator = estimator.func
    return estimator, options


def _covers_all_scores(bins: Any) -> bool:
    if isinstance(bins, EqualMass):
        return True
    return isinstance(bins, (EqualWidth, Edges)) and bins.edges[0] <= 0 and bins.edges[-1] >= 1
