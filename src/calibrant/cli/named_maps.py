"""Maps by the name that a user types."""

from __future__ import annotations

import inspect
from typing import Any

from calibrant.cli.formats import UsageError
from calibrant.recalibrate.base import BinaryRecalibrator, Recalibrator
from calibrant.recalibrate.regression_base import ForecastRecalibrator

_BASES = (Recalibrator, BinaryRecalibrator, ForecastRecalibrator)


def map_named(method: str, *, spread: bool = False, quantiles: bool = False) -> Any:
    """An unfitted map; "auto" is `Auto` for probabilities, `StdScaling` for spreads and `Conformal` for quantiles.

    >>> map_named("platt"), map_named("auto", spread=True)
    (Platt(), StdScaling())
    """
    from calibrant import recalibrate as maps

    base = ForecastRecalibrator if spread or quantiles else Recalibrator
    known = {name.lower(): name for name in dir(maps) if _can_be_made(getattr(maps, name), base)}
    chosen = "conformal" if quantiles else "stdscaling" if spread else "auto"
    name = known.get(chosen if method.lower() == "auto" else method.lower())
    if name is None:
        listed = ", ".join(sorted(known.values()))
        what = "predicted distributions" if spread or quantiles else "probabilities"
        message = f"--method must be auto or one of {listed}, which change {what}; got {method!r}."
        raise UsageError(message)
    return getattr(maps, name)()


def _can_be_made(found: Any, base: type) -> bool:
    """Whether this is a map of that kind, not the base of maps, that needs no arguments."""
    if not (isinstance(found, type) and issubclass(found, base)) or found in _BASES:
        return False
    parameters = list(inspect.signature(found).parameters.values())
    return all(one.default is not one.empty for one in parameters)
