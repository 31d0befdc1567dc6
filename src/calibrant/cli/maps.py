"""Maps by the name that a user types, and the columns that a map adds to a table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.cli.columns import Columns, Task, guessed_column, require_columns
from calibrant.cli.console import refuse, stop
from calibrant.data import validation
from calibrant.data.features import Kind
from calibrant.data.forecasts import Forecast, Gaussian, Quantiles, Samples
from calibrant.data.labels import numbered
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.numerics.arrays import Floats, expit, softmax
from calibrant.pu.recalibration import PURecalibrator
from calibrant.recalibrate.base import BinaryRecalibrator, Recalibrator
from calibrant.recalibrate.feature_map import FeatureMap
from calibrant.recalibrate.regression_base import ForecastRecalibrator
from calibrant.scale.csv_files import MISSING_NUMBERS

_BASES = (Recalibrator, BinaryRecalibrator, ForecastRecalibrator, PURecalibrator)
#: What the maps of each task change, in words.
_WORDS: dict[Task, str] = {
    "binary": "binary probabilities",
    "multiclass": "multiclass probabilities",
    "spread": "predicted means and standard deviations",
    "quantiles": "predicted quantiles",
    "members": "the members of an ensemble",
    "unlabeled": "probabilities and are fitted to positive-unlabeled data",
}


def map_named(method: str, task: Task = "binary") -> Any:
    """An unfitted map; "auto" is `Auto` for probabilities, `PUAverage` with unlabeled rows, else `AutoForecast`."""
    known = _known(task)
    automatic = {"binary": "auto", "multiclass": "auto", "unlabeled": "puaverage"}.get(task, "autoforecast")
    wanted = automatic if method.lower() == "auto" else method.lower()
    if wanted not in known:
        listed = ", ".join(sorted(made.__name__ for made in known.values()))
        other = next((words for kind, words in _WORDS.items() if method.lower() in _known(kind)), None)
        why = "" if other is None or other.startswith("prob") else f" {method} is a map of {other}."
        stop(f"--method must be auto or one of {listed}, which change {_WORDS[task]}; got {method!r}.{why}")
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
    elif task in ("binary", "multiclass"):
        fits = issubclass(found, Recalibrator) and (task == "binary" or found._multiclass)
    elif task == "quantiles":
        fits = issubclass(found, ForecastRecalibrator) and found.__name__ in ("AutoForecast", "Conformal")
    else:  # a distribution is no columns
        fits = issubclass(found, ForecastRecalibrator) and found.__name__ != "CdfIsotonic"
    usable = found is not FeatureMap  # which `calibrant audit` makes, with features
    return usable and fits and all(one.default is not one.empty for one in inspect.signature(found).parameters.values())


Numbers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class NewColumns:
    """The columns that a map reads, the names of those that it adds, and how to compute these.

    `features` are the further columns that a map with features reads, and the kind of each.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    compute: Callable[[Floats, Mapping[str, NDArray[Any]]], Floats]
    features: Mapping[str, Kind] = field(default_factory=dict)

    @classmethod
    def of(cls, fitted: Any, inputs: Columns, header: Sequence[str], *, suffix: str, notes: list[str]) -> NewColumns:
        """The columns for a fitted map and a table with these names of columns."""
        inputs = inputs.expanded(header)
        forecast = [inputs.mean is not None or inputs.std is not None, bool(inputs.quantiles), bool(inputs.members)]
        words = "Give either --prob, or --mean and --std, or --quantiles, or --members."
        refuse(sum(forecast) + bool(inputs.prob) > 1, words)
        if isinstance(fitted, ForecastRecalibrator):
            made = _of_forecasts(fitted, inputs, suffix)
        elif any(forecast):
            stop(f"The map is a {type(fitted).__name__}, which changes probabilities: give --prob.")
        else:
            names = inputs.prob or (guessed_column("prob", header, notes),)
            made = _of_probabilities(fitted, _in_order(names, inputs.classes, fitted), suffix, inputs)
        read = (*made.inputs, *made.features)
        require_columns(read, header)
        for name in read:
            words = f"There are {list(header).count(name)} columns called {name!r}: rename all but one."
            refuse(list(header).count(name) > 1, words)
        taken = [name for name in made.outputs if name in header]
        listed = ", ".join(map(repr, taken or made.outputs))
        words = f"The file has a column {listed} already: choose other names of the new columns by --suffix TEXT."
        refuse(taken or len(set(made.outputs)) < len(made.outputs), words)
        return made

    def of_batch(self, columns: Sequence[Numbers], features: Sequence[Sequence[Any]], first: int) -> list[Floats]:
        """The new columns of a batch of rows, of which the first has this number (from 1); features may be text."""
        if not len(columns[0]):
            return [np.zeros(0) for _ in self.outputs]
        try:
            named = zip(self.inputs, columns, strict=True)
            read = [validation.column(f"Column {name!r}", values) for name, values in named]
            kinds = zip(self.features.items(), features, strict=True)
            given = {name: _feature(name, kind, values, first) for (name, kind), values in kinds}
            made = self.compute(np.stack(read, axis=1).astype(np.float64, copy=False), given)
        except InvalidPredictions as error:
            where = f" Rows are counted from row {first:,} of the file, which is 0." if first > 1 else ""
            fail(f"{error}{where}", cause=error)
        return [np.ascontiguousarray(made[:, k]) for k in range(len(self.outputs))]


_FLAGS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def _feature(name: str, kind: Kind, values: Sequence[Any], first: int) -> NDArray[Any]:
    """A feature as a map takes it, from text or values; nothing, and words for it, is missing."""
    makers: dict[Kind, Callable[[Any], Any]] = {
        "number": float,
        "flag": lambda value: _FLAGS[str(value).strip().lower()],
        "category": str,
    }
    missing = np.nan if kind == "number" else None
    found: list[Any] = []
    for row, value in enumerate(values, first):
        absent = value is None or (isinstance(value, str) and value.strip().lower() in ("", *MISSING_NUMBERS))
        try:
            found.append(missing if absent else makers[kind](value))
        except (TypeError, ValueError, KeyError):
            expected = "a number" if kind == "number" else "true or false"
            fail(f"Column {name!r} must be {expected}, as in the fit, but is {value!r} in row {row:,}.")
    return np.array(found, dtype=np.float64 if kind == "number" else object)


def _in_order(names: tuple[str, ...], labels: tuple[str, ...], fitted: Any) -> tuple[str, ...]:
    """Columns whose names say their class, in the order of the map's classes; others as they were given."""
    classes = list(fitted.classes_)
    for known, wanted in ((labels, [str(one) for one in classes]), (numbered(names) or (), classes)):
        if len(names) > 1 and sorted(map(str, known)) == sorted(map(str, wanted)):
            place: dict[Any, str] = dict(zip(known, names, strict=True))
            return tuple(place[label] for label in wanted)
    return names


def _of_probabilities(fitted: Any, names: tuple[str, ...], suffix: str, inputs: Columns) -> NewColumns:
    unit, with_features = 100 if inputs.percent else 1, isinstance(fitted, FeatureMap)
    fitted_to = fitted.n_features_in_
    words = f"The map was fitted to {fitted_to} columns of probabilities, but --prob names {len(names)}."
    refuse(fitted_to != len(names), words)
    features = {one["name"]: one["kind"] for one in fitted.features_} if with_features else {}

    def compute(values: Floats, given: Mapping[str, NDArray[Any]]) -> Floats:
        values = values / unit if inputs.percent else values
        if inputs.logits:
            values = softmax(values) if len(names) > 1 else expit(values)
        if fitted.input == "probabilities":
            for k, name in enumerate(names):
                validation.in_unit_interval(f"Column {name!r}", values[:, k], clip=fitted.clip)
        more = {"features": given} if with_features else {}
        made: Floats = fitted.predict_proba(values[:, 0] if len(names) == 1 else values, **more)
        return unit * (made[:, 1:] if len(names) == 1 else made)

    return NewColumns(names, tuple(f"{name}{suffix}" for name in names), compute, features)


def _of_forecasts(fitted: ForecastRecalibrator, inputs: Columns, suffix: str) -> NewColumns:
    """A map of means and standard deviations, quantiles or members; what it gives is tried on one row."""
    name, forecast = type(fitted).__name__, _forecasts(inputs)
    if forecast is None:
        stop(
            f"The map is a {name}, which changes predicted distributions: give --mean and --std, or --quantiles, or "
            "--members."
        )
    spread = (inputs.mean or "", inputs.std or "")
    names = tuple(column for _, column in inputs.levels) or inputs.members or spread
    trial = np.arange(float(len(names)))[None, :]

    def compute(values: Floats, _: Mapping[str, NDArray[Any]]) -> Floats:
        fixed = fitted.transform(forecast(values))
        if isinstance(fixed, Quantiles):
            return fixed.values
        if isinstance(fixed, Samples):
            return fixed.draws.astype(np.float64, copy=False)
        return np.column_stack([fixed.mean, fixed.std])

    try:
        fixed = fitted.transform(forecast(trial))
    except (InvalidPredictions, TypeError) as error:
        stop(f"The map {name} cannot change these columns: {error}", cause=error)
    if isinstance(fixed, Quantiles) and not inputs.quantiles:
        return NewColumns(names, tuple(f"q{level:g}{suffix}" for level in fixed.levels), compute)
    return NewColumns(names, tuple(f"{column}{suffix}" for column in names), compute)


def _forecasts(inputs: Columns) -> Callable[[Floats], Forecast] | None:
    """How columns of numbers become forecasts, whose outcomes do not matter; None where none are named."""
    if inputs.quantiles:
        return lambda values: Quantiles(np.zeros(len(values)), [level for level, _ in inputs.levels], values)
    if inputs.members:
        return lambda values: Samples(values[:, 0], values)
    if inputs.mean is not None and inputs.std is not None:
        return lambda values: Gaussian(values[:, 0], values[:, 0], values[:, 1])
    return None
