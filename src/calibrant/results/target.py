"""What an estimator estimates, declared where it is defined, and what it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

Estimator = Callable[[Any], float]


F = TypeVar("F", bound=Callable[..., Any])
Quantity = Literal["true error"]


@dataclass(frozen=True)
class Target:
    """What is estimated: the true calibration error in a norm; None where the estimator's argument `norm` says it."""

    quantity: Quantity
    norm: float | None = None


def estimates(
    quantity: Quantity, *, norm: float | None = None, batched: Callable[..., Any] | None = None
) -> Callable[[F], F]:
    """Declare what a function estimates (a decorator).

    `batched` is the same estimator of many samples at once: it takes `SortedSamples` and the same options, and returns
    an array with one estimate per sample.
    """

    def declare(function: F) -> F:
        setattr(function, "__target__", Target(quantity, norm))  # noqa: B010 - mypy knows no attributes of functions
        setattr(function, "__batched__", batched)  # noqa: B010
        return function

    return declare


def declared_by(estimator: Any) -> Target | None:
    """The target that an estimator, or what `functools.partial` holds, was declared with; None where it has none."""
    return getattr(_unwrap(estimator)[0], "__target__", None)


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
    function, options = _unwrap(estimator)
    name = getattr(function, "__qualname__", None) or repr(function)
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in sorted(options.items()))})" if options else name


def norm_of(estimator: Estimator) -> float:
    """The norm an estimator was given or defaults to; infinity for the maximum, 1 where it says nothing."""
    while isinstance(estimator, Clipped):
        estimator = estimator.estimator
    function, options = _unwrap(estimator)
    declared = declared_by(function)
    if declared is not None and declared.norm is not None:
        return declared.norm
    if "norm" in options:
        return options["norm"]
    try:
        parameter = inspect.signature(function).parameters.get("norm")
    except (TypeError, ValueError):  # builtins without a signature
        return 1.0
    return 1.0 if parameter is None or parameter.default is inspect.Parameter.empty else parameter.default


def _unwrap(estimator: Estimator) -> tuple[Estimator, dict[str, Any]]:
    options: dict[str, Any] = {}
    while isinstance(estimator, partial):
        options = {**estimator.keywords, **options}
        estimator = estimator.func
    return estimator, options
