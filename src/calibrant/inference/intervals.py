"""`interval`: an estimate with a confidence interval, by the method with the best measured coverage for its target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Protocol, TypeGuard, get_args, runtime_checkable

from numpy import isfinite

from calibrant.data import validation
from calibrant.data.judged import Judged
from calibrant.data.predictions import Binary, Column, Columns, Multiclass, Predictions, binary
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.inference.bootstrap import Bootstrap, Clustered
from calibrant.inference.inversion.binary import Inversion
from calibrant.results.estimate import Estimate, Interval
from calibrant.results.target import SPREAD_ERRORS, Arguments, Target, declared_by, name_of
from calibrant.table.bintable import BinTable, Data
from calibrant.table.task import Unlabeled, task_of

Estimator = Callable[[Any], float]


@runtime_checkable
class Method(Protocol):
    """A method of intervals. What it serves decides what it is asked for; see `BY_METHOD`."""

    serves: ClassVar[str]

    def interval(self, *asked: Any, **options: Any) -> Interval:
        """The interval of what it is asked for."""


#: Methods that are asked for by name.
MethodName = Literal["inversion", "bootstrap", "isotonic", "delta"]
_ARGUMENTS = Arguments("interval", ("data", "y_prob"), frozenset())

#: The targets that `NormBand` is for.
NORMS_OF_GAP = ("cumulative error", "cumulative range", "smooth error", "kernel error")


def _method_of_forecasts(quantity: str) -> Method | None:
    """The method for what only predicted distributions have, by target."""
    if quantity in SPREAD_ERRORS:
        from calibrant.inference.inversion.spread import SpreadInversion

        return SpreadInversion()
    if quantity == "coverage error":
        from calibrant.inference.inversion.spread import PitInversion

        return PitInversion()
    if quantity in ("scale factor", "coverage"):
        from calibrant.inference.forecast_intervals import LogScale, Wilson

        return LogScale() if quantity == "scale factor" else Wilson()
    return None


def _method_of_validation(quantity: str) -> Method | None:
    """The method for accuracy and the numbers of the logistic recalibration framework, by target."""
    if quantity not in ("accuracy", "observed to expected ratio", "calibration intercept", "calibration slope"):
        return None
    from calibrant.inference.validation_intervals import MidP, ProfileLikelihood

    return ProfileLikelihood() if quantity == "calibration slope" else MidP()


def default_method(estimator: Estimator, target: Target | None, data: Predictions | BinTable) -> Method:
    """The method with the best measured coverage for this target, task and clustering."""
    wanted = require_target(estimator, target)
    norm = wanted.norm
    if isinstance(task_of(data), Unlabeled):
        from calibrant.pu.inversion import PUInversion

        return PUInversion()
    if isinstance(data, Multiclass):
        return _default_of_classes(estimator, wanted, data)
    named = _method_of_forecasts(wanted.quantity) or _method_of_validation(wanted.quantity)
    if named is not None:
        return named
    if wanted.quantity in NORMS_OF_GAP and isinstance(data, Binary | BinTable):
        from calibrant.inference.norm_bounds import NormBand

        return NormBand()
    if not is_true_error(target) or not (isinstance(norm, float) or norm == "squared"):
        from calibrant.inference.score_intervals import EventLosses, PlacementScore, knows

        if knows(target, data):
            return PlacementScore() if wanted.quantity == "ranking" else EventLosses()
        return Bootstrap() if getattr(data, "group", None) is None else Clustered()
    if norm != math.inf:
        return Inversion()
    from calibrant.inference.norm_bounds import LargestGapBound

    return LargestGapBound()


def require_target(estimator: Estimator, target: Target | None) -> Target:
    """Refuse an estimator without a declared target."""
    if target is not None:
        return target
    message = (
        f"{name_of(estimator)} does not declare its target, so no method can be chosen: pass method=Bootstrap(), or "
        'declare it, e.g. @calibrant.results.estimates("mean score").'
    )
    raise TypeError(message)


def is_true_error(target: Target | None) -> TypeGuard[Target]:
    """Whether the calibration error of the population is the target."""
    return target is not None and target.quantity == "true error"


def _default_of_classes(estimator: Estimator, target: Target, data: Multiclass) -> Method:
    """For multiclass data: a bound of the error of whole vectors, an interval of that of single classes."""
    if target.quantity == "true error":
        from calibrant.inference.learned_bounds import SequentialBound

        return SequentialBound()
    if target.quantity == "classwise mean" and target.norm in (1.0, 2.0):
        from calibrant.inference.inversion.classwise import ClasswiseInversion

        return ClasswiseInversion()
    if target.quantity == "accuracy":
        from calibrant.inference.validation_intervals import MidP

        return MidP()
    if target.quantity == "mean score":
        return Bootstrap() if data.group is None else Clustered()
    message = (
        f"No interval of {name_of(estimator)} for multiclass data is known to cover. Use variational_error (a lower "
        "bound of the error of the whole vector), classwise(ece) in L1 or L2, data.top_label(), or calibration_test; "
        "method=Bootstrap() gives an interval for the expected estimate only."
    )
    raise InvalidPredictions(message)


def interval(
    estimator: Estimator,
    data: Data = None,
    y_prob: Column = None,
    *,
    level: float = 0.95,
    method: Method | MethodName | None = None,
    **options: Any,
) -> Estimate:
    """The estimate with a confidence interval, which states its target, method, side and assumptions.

    The estimate is ``estimator(data)``. For calibration errors (`ece`, `sweep_ece`, `averaged_error`,
    `variational_error`, ...) the interval is for the *true* error in their norm, not for the expectation of the
    estimator. It is the same for all of these estimators, allows for their bias, and need not contain the estimate;
    `Estimate.note` then says so. The same holds for errors of predicted spreads (`ence`, `uce`, ...) and of coverage.
    Mean losses and the AUC of binary predictions get intervals that are valid with few events, other estimators a
    bootstrap interval.

    Parameters
    ----------
    estimator : callable
        Any estimator of this package, `functools.partial` of one (``partial(cal.ece, norm=2)``), or a function that
        returns the `Estimate` of one. Your own estimators need either ``method=Bootstrap()`` or a declared target, see
        `calibrant.results.estimates`.
    data : Predictions, BinTable, or y_true
        With plain arrays, `y_prob` comes next; ``y_true=``, ``y_prob=``, ``weight=`` and ``group=`` may be named.
    level : float in (0, 1)
    method : "inversion", "bootstrap", "isotonic", "delta", or one of the classes below, optional
        The default depends on the `Target` of the estimate, the task and whether rows are clustered:

        - calibration errors: `Inversion`; in the infinite norm `LargestGapBound`; for positive-unlabeled data
          `calibrant.pu.PUInversion`;
        - `ks_error`, `kuiper_error`, `smooth_ece`, `kernel_error`: `NormBand`;
        - multiclass data: `SequentialBound`, a lower bound, for the whole vector (`variational_error`), since no upper
          bound is valid without assumptions; `ClasswiseInversion` for ``partial(cal.classwise, cal.ece)``; the method
          of binary data for the top label;
        - forecasts: `SpreadInversion` for errors of the spread, `LogScale` for the scale factor, `PitInversion` for
          errors of coverage, `Wilson` for one coverage;
        - `accuracy`, `observed_expected`, `calibration_intercept`: `MidP`; `calibration_slope`: `ProfileLikelihood`;
        - binary predictions: `PlacementScore` for `auc`, `EventLosses` for mean losses (`brier`, `log_loss`);
        - `Judged` data: methods of their own;
        - everything else: `Bootstrap`, or `Clustered` for rows with a group.

        Also available: `ChiSquareMixture` (L2), `SplitLowerBound`, and `calibrant.pu.DebiasedDelta`.
    **options
        Options of the estimator: ``interval(cal.ece, data, norm=2)`` is ``interval(partial(cal.ece, norm=2), data)``.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> e = interval(cal.ece, cal.Binary(rng.random(2000) < p**2, p))  # the true error is 1/6
    >>> e
    <ECE (L1) 0.17... [0.15..., 0.19...] at 95%, n=2_000, EqualMass(n_bins=15)>
    >>> e.interval.method, str(e.interval.target)
    ("Inversion(draws=299, seed=0, side='two-sided')", 'true error (L1)')
    >>> low, high = e.interval
    >>> print(e)
    0.17... (95% interval 0.15... to 0.19...)
    """
    level = validation.fraction("level", level)
    named = {name: options.pop(name) for name in Columns.__annotations__ if name in options}
    if named:
        (data, y_prob, *_), _ = _ARGUMENTS.arranged((data, y_prob), named)
    estimator = partial(estimator, **options) if options else estimator
    task = data if isinstance(data, BinTable) else binary(data, y_prob)
    if isinstance(task, Judged):
        from calibrant.inference.judged import judged_interval

        return judged_interval(estimator, task, level=level, method=method)
    task = task.sorted_once() if isinstance(task, Binary) else task
    estimate = as_estimate(estimator, task)
    method = _checked_method(method, estimate.target, task)
    if isinstance(task, Multiclass):
        of = "score" if estimate.target is None else estimate.target.of
        if of in ("confidence", "confidence given vector") and not isinstance(method, Bootstrap):
            return _of_top_label(estimate, task, level, method)
        _require_error_of_classes(estimator, estimate, method)
    chosen = default_method(estimator, estimate.target, task) if method is None else method
    return estimate.with_interval(BY_METHOD[chosen.serves](chosen, _Asked(estimator, estimate, task, level)))


def _checked_method(method: Method | str | None, target: Target | None, data: Predictions | BinTable) -> Method | None:
    """The method itself, or the one that is called so; those of `MethodName` depend on target and task."""
    if method == "bootstrap":
        return Bootstrap() if getattr(data, "group", None) is None else Clustered()
    if method == "inversion":
        if isinstance(task_of(data), Unlabeled):
            from calibrant.pu.inversion import PUInversion

            return PUInversion()
        if isinstance(data, Multiclass):
            from calibrant.inference.inversion.classwise import ClasswiseInversion

            return ClasswiseInversion()
        wanted = None if target is None else _method_of_forecasts(target.quantity)
        return Inversion() if wanted is None else wanted
    if method == "isotonic":
        from calibrant.inference.reliability import IsotonicBand

        return IsotonicBand()
    if method == "delta":
        from calibrant.pu.binned_inference import DebiasedDelta

        return DebiasedDelta()
    if method is not None and (isinstance(method, type | str) or not isinstance(method, Method)):
        names = ", ".join(map(repr, get_args(MethodName)))
        fail(f"method must be {names}, or Inversion(), Bootstrap(), IsotonicBand(), ..., got {method!r}.", TypeError)
    return method


def as_estimate(estimator: Estimator, data: Predictions | BinTable) -> Estimate:
    """The estimate with its target: its own, or else the one declared by the estimator."""
    if isinstance(data, Judged):
        from calibrant.inference.judged import judged_estimate

        return judged_estimate(estimator, data)
    found = estimator(data)
    if not isinstance(found, Estimate):
        n = data.n if isinstance(data, BinTable) else len(data)
        found = Estimate(float(found), name=name_of(estimator), method="", n=n)
    declared = declared_by(estimator) if found.target is None else None
    return found if declared is None else found.with_target(declared)


def bootstrap_target(target: Target | None) -> Target | None:
    """The target of a bootstrap interval: the expectation of an estimator, not the true error it estimates."""
    if target is None or target.quantity != "true error":
        return target
    return Target("expected estimate", target.norm)


@dataclass(frozen=True, eq=False)
class _Asked:
    """What an interval is asked for: an estimator, its estimate of these data, and a level."""

    estimator: Estimator
    estimate: Estimate
    data: Predictions | BinTable
    level: float

    def require_true_error(self, method: Method) -> Target:
        """The target, if it is a calibration error."""
        target = self.estimate.target
        if target is None or not is_true_error(target):
            message = (
                f"{type(method).__name__} is for calibration errors; use Bootstrap() for {name_of(self.estimator)}."
            )
            raise TypeError(message)
        return target


def _bootstrapped(method: Bootstrap, asked: _Asked) -> Interval:
    target = asked.estimate.target
    found = method.interval(asked.estimator, asked.data, level=asked.level)
    found = replace(found, target=bootstrap_target(target))
    if not is_true_error(target):
        return found
    return replace(found, low=max(0.0, found.low), high=max(0.0, found.high))


def _of_classes(method: Any, asked: _Asked) -> Interval:
    """The interval of a Multiclass for the target that the method is for."""
    data, target, wanted = asked.data, asked.estimate.target, method.quantity
    if not isinstance(data, Multiclass) or target is None or target.quantity != wanted or target.norm is None:
        message = (
            f"{type(method).__name__} is for the {wanted} of Multiclass predictions, not {asked.estimate.name} of "
            f"{data!r}."
        )
        raise TypeError(message)
    return method.interval(data, norm=target.norm, level=asked.level)


def _of_forecast(method: Method, asked: _Asked) -> Interval:
    if asked.estimate.target is None:
        fail(f"{type(method).__name__} needs an estimate with a declared target, not {asked.estimate!r}.", TypeError)
    return method.interval(asked.data, asked.estimate.target, level=asked.level)


def _of_positives(method: Method, asked: _Asked) -> Interval:
    """The interval for the true error, or by the older methods that in the bins of the estimate."""
    from calibrant.pu.inversion import PUInversion

    target, table = asked.require_true_error(method), asked.estimate.bins
    data: Any = asked.data
    if not isinstance(task_of(data), Unlabeled):
        fail(f"{type(method).__name__} is for positive-unlabeled data, not {data!r}.")
    if isinstance(method, PUInversion):
        return method.interval(data, norm=target.norm, level=asked.level)
    if table is None or table.fine or target.norm != 1:
        fail(f"{type(method).__name__} is for binned errors with norm=1, such as ece; use PUInversion().")
    if not isfinite(table.predicted_squares).all() and not (isinstance(data, BinTable) and not data.fine):
        cut: Any = table.cut  # the same bins, with the sums of squares, which the estimate did not need
        table = data.coarsen(cut) if isinstance(data, BinTable) else BinTable.of(data, cut)
    return method.interval(table, level=asked.level)


def _of_error(method: Method, asked: _Asked) -> Interval:
    target, data, level = asked.require_true_error(method), asked.data, asked.level
    norm = target.norm
    if not getattr(method, "any_norm", False) and norm != "squared" and not isinstance(norm, float):
        message = f"{type(method).__name__} needs a norm that is a number or 'squared', got {norm!r}; use Bootstrap()."
        raise ValueError(message)
    if getattr(method, "any_norm", False) or norm != "squared":
        return method.interval(data, norm=norm, level=level)
    root = method.interval(data, norm=2.0, level=level)
    squared = None if root.target is None else replace(root.target, norm="squared")
    return replace(root, low=root.low**2, high=root.high**2, target=squared)


#: What each kind of method is asked for.
BY_METHOD: dict[str, Callable[[Any, _Asked], Interval]] = {
    "error": _of_error,
    "norm of the gap": lambda method, asked: method.interval(asked.estimate, asked.data, level=asked.level),
    "any estimate": _bootstrapped,
    "positives": _of_positives,
    "classes": _of_classes,
    "forecasts": _of_forecast,
    "an estimate": lambda method, asked: method.interval(asked.data, asked.estimate, level=asked.level),
}


def _require_error_of_classes(estimator: Estimator, estimate: Estimate, method: Method | None) -> None:
    """Refuse an error of one score that was computed inside: its bound is not that of the whole vector."""
    target = estimate.target
    if is_true_error(target) and target.of == "score" and not isinstance(method, Bootstrap):
        fail(
            f"{name_of(estimator)} measures one score of multiclass data: give interval() that task itself, e.g. "
            "interval(ece, data.top_label()) or interval(ece, data.one_vs_rest()[label])."
        )


def _of_top_label(estimate: Estimate, data: Multiclass, level: float, method: Method | None) -> Estimate:
    """The error of the confidence is that of a binary task; given the whole vector it is at least as large."""
    from calibrant.estimators.variational import variational_error

    target = estimate.target or Target("true error", 1)
    norm = target.norm
    found = interval(partial(variational_error, norm=norm), data.top_label(), level=level, method=method).interval
    if found is not None and target.of == "confidence given vector":
        words = f"{found.assumption}; a lower bound only, since the error given the whole vector is at least as large"
        found = replace(found, high=math.inf, side="lower", assumption=words)
    return estimate if found is None else estimate.with_interval(found)
