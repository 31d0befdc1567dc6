"""`interval`: any estimator with a confidence interval, by the method whose coverage was measured for its target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from calibrant.data import validation
from calibrant.data.predictions import Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.binned import ece
from calibrant.estimators.lower_bound import SplitSampleBound
from calibrant.estimators.variational import calibration_error
from calibrant.inference.bootstrap import Bootstrap, Clustered
from calibrant.inference.chi_square_mixture import ChiSquareMixture
from calibrant.inference.inversion import Inversion
from calibrant.inference.isotonic_bands import IsotonicBand
from calibrant.pu import inference as pu
from calibrant.results.estimate import Estimate, Interval
from calibrant.results.target import declared_by, norm_of
from calibrant.table.bintable import BinTable
from calibrant.table.task import task_of
from calibrant.table.unlabeled import Unlabeled

Estimator = Callable[[Any], Estimate]


@dataclass(frozen=True)
class SplitLowerBound:
    """A lower bound without any assumption but independent rows: `SplitSampleBound` of the variational error.

    A map is fitted on a share `train` of the rows; what it gains on the others is at most the true error, and a
    bound of its mean holds for every n, model and map.
    """

    train: float = 0.5
    seed: int = 0

    def interval(self, data: Predictions, *, norm: Any = 1, level: float = 0.95) -> Interval:
        """Everything above the bound."""
        bound = SplitSampleBound(level=level, train=self.train)
        found = calibration_error(data, norm=norm, bound=bound, seed=self.seed).interval
        if found is None:  # pragma: no cover - a bound was asked for
            raise RuntimeError(repr(bound))
        return replace(found, low=max(found.low, 0.0), method=repr(self))


OfError = Inversion | IsotonicBand | ChiSquareMixture | SplitLowerBound
OfEstimator = Bootstrap
OfPositives = pu.DebiasedDelta | pu.BasicBootstrap | pu.Conservative
Method = OfError | OfEstimator | OfPositives


def interval(
    estimator: Estimator, data: Predictions | BinTable, *, level: float = 0.95, method: Method | None = None
) -> Estimate:
    """The estimate with a confidence interval that says its method, its side and what it assumes.

    Estimators of the calibration error (`ece`, `sweep_ece`, `averaged_error`, `calibration_error`, ...) get an interval
    for the *true* error in their norm, not for what the estimator tends to: their bias is no part of it, and the
    interval need not hold the estimate. Other estimators get a bootstrap interval.

    Parameters
    ----------
    estimator : callable
        Any estimator of this package, or `functools.partial` of one: ``partial(cal.ece, norm=2)``.
    data : Predictions or BinTable
    level : float in (0, 1)
    method : optional
        By default `Inversion` for calibration errors, `IsotonicBand` for the infinite norm,
        `calibrant.pu.DebiasedDelta` for positive-unlabeled data, and for everything else `Bootstrap`, or `Clustered`
        for rows with a group. Also `ChiSquareMixture` (L2) and `SplitLowerBound`.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> e = interval(cal.ece, cal.Binary(rng.random(2000) < p**2, p))  # the true error is 1/6
    >>> e
    <ECE (L1) 0.17... [0.15..., 0.1...] at 95%, n=2_000, EqualMass(n_bins=15)>
    >>> e.interval.side, e.interval.method
    ('two-sided', "Inversion(n=999, seed=0, side='two-sided')")
    """
    level = validation.fraction("level", level)
    if method is not None and not isinstance(method, Method):
        message = f"method must be Inversion(), Bootstrap(), IsotonicBand(), ..., got {method!r}."
        raise TypeError(message)
    norm = error_norm(estimator)
    chosen = default_method(estimator, data) if method is None else method
    if isinstance(chosen, OfPositives):
        return _of_positives(estimator, data, level, chosen)
    estimate = estimator(data)
    if isinstance(chosen, Bootstrap):
        found = chosen.interval(estimator, data, level=level)
        return estimate.with_interval(found if norm is None else _not_negative(found))
    if norm is None:
        message = f"{type(chosen).__name__} is for calibration errors; use Bootstrap() for {estimator!r}."
        raise TypeError(message)
    return estimate.with_interval(_of_error(chosen, data, norm, level))


def default_method(estimator: Estimator, data: Predictions | BinTable) -> Method:
    """The method with the best measured coverage for what this estimator aims at."""
    norm = error_norm(estimator)
    if isinstance(task_of(data), Unlabeled):
        return pu.DebiasedDelta()
    grouped, largest = getattr(data, "group", None) is not None, isinstance(norm, float) and math.isinf(norm)
    if norm is None or isinstance(data, Multiclass) or norm == "kl" or (largest and grouped):
        return Clustered() if grouped else Bootstrap()
    return IsotonicBand() if largest else Inversion()


def error_norm(estimator: Callable[[Any], Any]) -> Any:
    """The norm of the true error that an estimator aims at, or None where it aims at something else."""
    target = declared_by(estimator)
    if target is None or target.quantity != "true error":
        return None
    norm = norm_of(estimator)
    return float(norm) if isinstance(norm, int | float) else norm


def _of_error(method: OfError, data: Predictions | BinTable, norm: Any, level: float) -> Interval:
    if isinstance(method, SplitLowerBound):
        if isinstance(data, BinTable):
            message = "SplitLowerBound needs the predictions, not a table: it parts the rows."
            raise InvalidPredictions(message)
        return method.interval(data, norm=norm, level=level)
    if norm == "squared":
        root = method.interval(data, norm=2, level=level)
        return replace(root, low=root.low**2, high=root.high**2)
    if not isinstance(norm, float):
        message = f"{type(method).__name__} needs a norm that is a number or 'squared', got {norm!r}; use Bootstrap()."
        raise ValueError(message)
    if getattr(data, "group", None) is not None and isinstance(method, ChiSquareMixture):
        message = f"{type(method).__name__} needs independent rows, but these have a group; use Inversion()."
        raise InvalidPredictions(message)
    return method.interval(data, norm=norm, level=level)


def _of_positives(estimator: Estimator, data: Any, level: float, method: OfPositives) -> Estimate:
    function: Any = estimator
    options: dict[str, Any] = {}
    while isinstance(function, partial):
        options = {**function.keywords, **options}
        function = function.func
    if function is not ece or options.get("norm", 1) != 1:
        message = "On positive-unlabeled data intervals are available for ece with norm=1 (see calibrant.pu)."
        raise InvalidPredictions(message)
    bins = {"bins": options["bins"]} if "bins" in options else {}
    return pu.pu_interval(data, level=level, method=method, **bins)


def _not_negative(found: Interval) -> Interval:
    return replace(found, low=max(0.0, found.low), high=max(0.0, found.high))
