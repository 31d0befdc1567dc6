"""Maps by the name that a user types."""

from __future__ import annotations

import inspect
from typing import Any

from calibrant.cli.columns import Task
from calibrant.cli.formats import UsageError
from calibrant.pu.recalibration import PURecalibrator
from calibrant.recalibrate.base import BinaryRecalibrator, Recalibrator
from calibrant.recalibrate.regression_base import ForecastRecalibrator

_BASES = (Recalibrator, BinaryRecalibrator, ForecastRecalibrator, PURecalibrator)
#: What the maps of each task change, in words.
_WORDS: dict[Task, str] = {
    "event": "the probability of one event",
    "classes": "the probabilities of several classes",
    "spread": "predicted means and standard deviations",
    "quantiles": "predicted quantiles",
    "members": "the members of an ensemble",
    "unlabeled": "probabilities and are fitted to positive-unlabeled data",
}


def map_named(method: str, task: Task = "event") -> Any:
    """An unfitted map; "auto" is `Auto` for probabilities, `PUAverage` with unlabeled rows, else `AutoForecast`.

    >>> map_named("platt"), map_named("auto", "quantiles"), map_named("auto", "unlabeled")
    (Platt(), AutoForecast(), PUAverage())
    """
    known = _known(task)
    automatic = {"event": "auto", "classes": "auto", "unlabeled": "puaverage"}.get(task, "autoforecast")
    wanted = automatic if method.lower() == "auto" else method.lower()
    if wanted not in known:
        raise UsageError(_unknown(method, task, known))
    return known[wanted]()


def _known(task: Task) -> dict[str, type]:
    """The maps of a task by their names in lower case."""
    from calibrant import pu, recalibrate

    room = pu if task == "unlabeled" else recalibrate
    return {name.lower(): getattr(room, name) for name in dir(room) if _fits(getattr(room, name), task)}


def _fits(found: Any, task: Task) -> bool:
    """Whether this is a map of that task, not the base of maps, that needs no arguments."""
    if not isinstance(found, type) or found in _BASES:
        return False
    if task == "unlabeled":
        fits = issubclass(found, PURecalibrator)
    elif task in ("event", "classes"):
        fits = issubclass(found, Recalibrator) and (task == "event" or found._multiclass)
    else:
        fits = issubclass(found, ForecastRecalibrator) and _changes(found.__name__, task)
    return fits and all(one.default is not one.empty for one in inspect.signature(found).parameters.values())


def _changes(name: str, task: Task) -> bool:
    """Whether a map of forecasts takes this kind and gives columns that a file can hold."""
    if task == "quantiles":
        return name in ("AutoForecast", "Conformal")
    return name != "CdfIsotonic"  # which gives distributions that are no columns


def _unknown(method: str, task: Task, known: dict[str, type]) -> str:
    listed = ", ".join(sorted(made.__name__ for made in known.values()))
    other = next((words for kind, words in _WORDS.items() if method.lower() in _known(kind)), None)
    why = "" if other is None else f" {method} is a map of {other}." if not other.startswith("prob") else ""
    return f"--method must be auto or one of {listed}, which change {_WORDS[task]}; got {method!r}.{why}"
