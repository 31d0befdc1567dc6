"""What an estimator estimates, declared where it is defined, and what it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from types import FunctionType
from typing import Any, Literal, TypeVar, cast, get_args

import numpy as np

from calibrant.data.forecasts import Gaussian
from calibrant.data.predictions import Binary, BinnedColumns, Columns, Predictions
from calibrant.data.validation import fail

Estimator = Callable[[Any], float]
F = TypeVar("F", bound=Callable[..., Any])

#: "true error": the calibration error of the population in a norm, whatever the estimator's bias. "binned error": that
#: of the model whose predictions are averaged within bins. "expected estimate": the expectation of the estimator.
#: "relative spread error": the norm of r - 1, with r² the mean squared error over sigma², given sigma; "variance
#: error": the mean of |r² - 1| sigma².
#: The others name the population value of the statistic.
Quantity = Literal[
    "true error",
    "binned error",
    "expected estimate",
    "relative spread error",
    "variance error",
    "scale factor",
    "over- or underconfidence",
    "smooth error",
    "kernel error",
    "cumulative error",
    "cumulative range",
    "classwise mean",
    "coverage error",
    "group coverage error",
    "coverage",
    "dispersion",
    "mean score",
    "accuracy",
    "refinement",
    "ranking",
    "observed to expected ratio",
    "calibration intercept",
    "calibration slope",
    "calibration decision loss",
    "risk-coverage area",
]
#: Whose error it is. "score": of one probability, given itself. "confidence": of the top label, given its confidence;
#: "confidence given vector": of the top label, given all probabilities. "vector": of all classes, given all of them.
#: "score and features": of one probability, given itself and the features of its row.
Of = Literal["score", "confidence", "confidence given vector", "vector", "score and features"]

#: The errors of a predicted spread.
SPREAD_ERRORS: tuple[Quantity, ...] = ("relative spread error", "variance error")


@dataclass(frozen=True)
class Target:
    """What is estimated: a quantity, and its norm where it has one.

    `interval` and `compare` choose their method by it. Estimators of this package declare it by `estimates`, and every
    `Estimate` carries it with the norm that was asked for.

    Attributes
    ----------
    quantity : str
        "true error", "binned error", "mean score", ...
    norm : float, str, Distance or None
        The norm of an error: a number of at least 1 (or infinity), or "squared", "kl".
    of : {"score", "confidence", "confidence given vector", "vector", "score and features"}
        Whose error it is: that of one probability (given itself, or also the features of its row), of the top label,
        or of the whole vector of class probabilities.
    losses : callable or None
        The loss of each row of some data, where the estimate is their mean. Not part of what is estimated: targets
        that differ only here are equal.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.ece([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], norm=2).target
    Target(quantity='true error', norm=2.0)
    >>> str(Target("true error", 2.0)), str(Target("mean score"))
    ('true error (L2)', 'mean score')
    """

    quantity: Quantity
    norm: Any = None
    of: Of = field(default="score", repr=False)
    losses: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.quantity not in get_args(Quantity):
            message = f"quantity must be one of {', '.join(map(repr, get_args(Quantity)))}, got {self.quantity!r}."
            raise ValueError(message)
        if isinstance(self.norm, int):
            object.__setattr__(self, "norm", float(self.norm))

    def __str__(self) -> str:
        if self.norm is None:
            return self.quantity
        norm = f"L{self.norm:g}" if isinstance(self.norm, float) else getattr(self.norm, "name", self.norm)
        return f"{self.quantity} ({norm})"

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON; an infinite norm is the text "inf"."""
        plain = self.norm is None or (isinstance(self.norm, float) and self.norm != float("inf"))
        return {"quantity": self.quantity, "norm": self.norm if plain else str(getattr(self.norm, "name", self.norm))}


@dataclass(frozen=True)
class Arguments:
    """How a function is called: the names of its positional arguments, data first, and of its options.

    `passes_on` where other options are those of a function that it calls.
    """

    function: str
    positional: tuple[str, ...]
    options: frozenset[str]
    passes_on: bool = False

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Arguments | None:
        """Those of a function that takes `Columns`; None for others."""
        parameters = inspect.signature(function).parameters.values()
        positional = tuple(one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD)
        rest = next((one.name for one in parameters if one.kind is one.VAR_KEYWORD), "")
        if len(positional) < 2 or rest not in ("columns", "options"):
            return None
        options = frozenset(one.name for one in parameters if one.kind is one.KEYWORD_ONLY)
        return cls(function.__name__, positional, options, passes_on=rest == "options")

    def arranged(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional arguments and options, where columns that were given by name are in their place."""
        known = {*self.positional, *Columns.__annotations__}
        named = {name: options[name] for name in options.keys() - self.options if name in known or not self.passes_on}
        if not named:
            return args, options
        options = {name: value for name, value in options.items() if name not in named}
        if unknown := sorted(named.keys() - {*known, "n_bins"}):
            words = f"it takes {', '.join(sorted({*self.options, *known} - {'data'}))}"
            fail(f"{self.function}() has no argument {', '.join(map(repr, unknown))}; {words}.", TypeError)
        if (n_bins := named.pop("n_bins", None)) is not None:
            if "bins" not in self.options or "bins" in options:
                why = "give bins or n_bins, not both" if "bins" in options else "there are no bins to be chosen"
                fail(f"{self.function}() does not take n_bins here: {why}.", TypeError)
            options["bins"] = n_bins
        rows = {name: values for name in ("weight", "group") if (values := named.pop(name, None)) is not None}
        given = {name: values for name, values in zip(self.positional, args, strict=False) if values is not None}
        if "y_true" in named:
            named.setdefault(self.positional[0], named.pop("y_true"))
        if twice := [name for name in named if name in given] or ["y_true"] * ("y_true" in named):
            fail(f"{self.function}() got {twice[0]} twice, by position and by name.", TypeError)
        every = [(given | named).get(name) for name in self.positional]
        return (tuple(every) if not rows else (self._task(every, rows), *[None] * len(every[1:]))), options

    def _task(self, columns: list[Any], rows: Mapping[str, Any]) -> Predictions:
        """The task of columns with weights or groups."""
        kind, of = ("Binary", "y_true, y_prob") if "y_prob" in self.positional else ("Gaussian", "y_true, mean, std")
        wanted = 1 + of.count(",")
        if isinstance(columns[0], Predictions) or any(values is None for values in columns[:wanted]):
            fail(f"{' and '.join(rows)} belong to the predictions: {kind}({of}, {next(iter(rows))}=...).", TypeError)
        return (Binary if kind == "Binary" else Gaussian).borrowing(*columns[:wanted], **rows)


def takes_columns(function: F) -> F:
    """Let a function of (data, y_prob) or (data, mean, std) take its columns by name, too (a decorator).

    ``f(y_true=y, y_prob=p, weight=w)`` is ``f(Binary(y, p, weight=w))``, and ``n_bins=15`` is ``bins=15``.
    """
    arguments = Arguments.of(function)
    if arguments is None:
        fail(f"{function.__name__} declares no **columns.", TypeError)
    arranged, own = arguments.arranged, arguments.options

    def taking(*args: Any, **options: Any) -> Any:
        if not options.keys() <= own:
            args, options = arranged(args, options)
        return function(*args, **options)

    return redefined(function, taking)


def redefined(function: F, wrapper: Callable[..., Any]) -> F:
    """The wrapper with name, documentation and signature of the function; columns by name are listed one by one."""
    # Defined among the names of the function's own module: else doctest takes it for an import and skips it.
    code: Any = wrapper
    own: Any = FunctionType(code.__code__, getattr(function, "__globals__", {}), code.__name__, None, code.__closure__)
    own = wraps(function)(own)
    if (arguments := Arguments.of(function)) is not None:
        shown = inspect.signature(function)
        named = BinnedColumns.__annotations__ if "bins" in arguments.options else Columns.__annotations__
        kind = inspect.Parameter.KEYWORD_ONLY
        more = [inspect.Parameter(name, kind, default=None, annotation=words) for name, words in named.items()]
        *first, rest = shown.parameters.values()
        own.__signature__ = shown.replace(parameters=[*first, *more, *([rest] if arguments.passes_on else [])])
    return cast(F, own)


def estimates(
    quantity: Quantity,
    *,
    norm: Any = None,
    batched: Callable[..., Any] | None = None,
    losses: Callable[..., Any] | None = None,
) -> Callable[[F], F]:
    """Declare what a function estimates (a decorator), so that `interval` and `compare` know which method serves it.

    Every `Estimate` the function returns carries the `Target`, with the norm of the call where the function has an
    argument `norm`.

    Parameters
    ----------
    quantity : str
        See `Target`.
    norm : float or str, optional
        Only where the function has no argument `norm`.
    batched : callable, optional
        The same estimator of many samples at once, for simulations: it takes `SortedSamples` and the same options, and
        returns an array with one estimate per sample.
    losses : callable, optional
        Where the estimate is a mean over rows: the loss of each row. It takes the predictions and the same options.

    Examples
    --------
    >>> import calibrant as cal
    >>> @estimates("mean score")
    ... def absolute_error(data):
    ...     return float(abs(data.y_true - data.y_prob).mean())
    >>> data = cal.Binary([0, 1, 1, 0] * 50, [0.1, 0.6, 0.9, 0.3] * 50)
    >>> cal.interval(absolute_error, data).interval.target
    Target(quantity='mean score', norm=None)
    """

    def declare(function: F) -> F:
        target = Target(quantity, norm if norm is not None else _default_norm(function))

        def attached(found: Any, options: Mapping[str, Any]) -> Any:
            if not hasattr(found, "with_target") or found.target is not None:
                return found  # the estimator knows best, e.g. the norm of what it is a mean of
            own = replace(target, norm=options["norm"]) if "norm" in options else target
            return found.with_target(own if losses is None else replace(own, losses=partial(losses, **options)))

        arguments = Arguments.of(function)

        def declared(*args: Any, **options: Any) -> Any:
            if arguments is not None and not options.keys() <= arguments.options:
                args, options = arguments.arranged(args, options)
            return attached(function(*args, **options), options)

        own = redefined(function, declared)
        setattr(own, "__target__", target)  # noqa: B010 - mypy knows no attributes of functions
        setattr(own, "__batched__", batched)  # noqa: B010
        return own

    return declare


def declared_by(estimator: Any) -> Target | None:
    """The target an estimator was declared with, read through `functools.partial` and `Clipped`; None without one."""
    function, options = _unwrap(estimator)
    target: Target | None = getattr(function, "__target__", None)
    return replace(target, norm=options["norm"]) if target is not None and "norm" in options else target


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


def batched(estimator: Estimator) -> Callable[[Any], Any] | None:
    """What an estimator declared for many samples at once, with its options; None where it declared nothing."""
    if isinstance(estimator, Clipped):
        inner = batched(estimator.estimator)
        return None if inner is None else lambda samples: np.maximum(inner(samples), 0.0)
    if isinstance(estimator, partial) and estimator.args:
        return None
    function, options = _unwrap(estimator)
    declared = getattr(function, "__batched__", None)
    return None if declared is None else partial(declared, **options)


def name_of(estimator: Estimator) -> str:
    """Words for an estimator and its options, e.g. ``ece(norm=2)``."""
    if isinstance(estimator, Clipped):
        return repr(estimator)
    function, options = _unwrap(estimator)
    name = getattr(function, "__qualname__", None) or repr(function)
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in sorted(options.items()))})" if options else name


def norm_of(estimator: Estimator) -> Any:
    """The norm an estimator was given or defaults to; infinity for the maximum, 1 where it says nothing."""
    function, options = _unwrap(estimator)
    target = declared_by(estimator)
    found = target.norm if target is not None else options.get("norm", _default_norm(function))
    return 1.0 if found is None else found


def _default_norm(function: Callable[..., Any]) -> Any:
    """The default of the argument `norm`; None where there is no such argument or it must be given."""
    try:
        parameter = inspect.signature(function).parameters.get("norm")
    except (TypeError, ValueError):  # builtins without a signature
        return None
    return None if parameter is None or parameter.default is inspect.Parameter.empty else parameter.default


def _unwrap(estimator: Estimator) -> tuple[Estimator, dict[str, Any]]:
    """The function inside `functools.partial` and `Clipped`, and the options on the way to it."""
    options: dict[str, Any] = {}
    while isinstance(estimator, partial | Clipped):
        if isinstance(estimator, Clipped):
            estimator = estimator.estimator
            continue
        options = {**estimator.keywords, **options}
        estimator = estimator.func
    return estimator, options
