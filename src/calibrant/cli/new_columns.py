"""What a map adds to a table: the recalibrated columns, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.cli.columns import expanded_levels, guessed_column, levels_and_columns, require_columns
from calibrant.cli.formats import UsageError
from calibrant.cli.patterns import classes_of, expanded
from calibrant.data import validation
from calibrant.data.forecasts import Forecast, Gaussian, Quantiles, Samples
from calibrant.data.labels import numbered
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Floats
from calibrant.recalibrate.regression_base import ForecastRecalibrator

Numbers = NDArray[Any]


@dataclass(frozen=True)
class Inputs:
    """Which columns of the table a map reads, as the options say."""

    prob: tuple[str, ...] = ()
    mean: str | None = None
    std: str | None = None
    quantiles: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    percent: bool = False

    def expanded(self, header: Sequence[str]) -> Inputs:
        """The same with the columns that patterns name."""
        return replace(
            self,
            prob=expanded(self.prob, header, "--prob"),
            quantiles=expanded_levels(self.quantiles, header),
            members=expanded(self.members, header, "--members"),
        )


@dataclass(frozen=True, eq=False)
class NewColumns:
    """The columns that a map reads, the names of those that it adds, and how to compute these."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    compute: Callable[[Floats], Floats]

    @classmethod
    def of(cls, fitted: Any, inputs: Inputs, header: Sequence[str], *, suffix: str, notes: list[str]) -> NewColumns:
        """The columns for a fitted map and a table with these names of columns."""
        labels, inputs = classes_of(inputs.prob, header), inputs.expanded(header)
        forecast = [inputs.mean is not None or inputs.std is not None, bool(inputs.quantiles), bool(inputs.members)]
        if sum(forecast) + bool(inputs.prob) > 1:
            message = "Give either --prob, or --mean and --std, or --quantiles, or --members."
            raise UsageError(message)
        if isinstance(fitted, ForecastRecalibrator):
            made = _of_forecasts(fitted, inputs, suffix)
        elif any(forecast):
            message = f"The map is a {type(fitted).__name__}, which changes probabilities: give --prob."
            raise UsageError(message)
        else:
            names = inputs.prob or (guessed_column("prob", header, notes),)
            made = _of_probabilities(fitted, _in_order(names, labels, fitted), suffix, percent=inputs.percent)
        require_columns(made.inputs, header)
        _require_once(made.inputs, header)
        _require_new(made.outputs, header)
        return made

    def of_batch(self, columns: Sequence[Numbers], first: int) -> list[Floats]:
        """The new columns of a batch of rows, of which the first has this number (from 1)."""
        if not len(columns[0]):
            return [np.zeros(0) for _ in self.outputs]
        try:
            read = [
                validation.column(f"Column {name!r}", values) for name, values in zip(self.inputs, columns, strict=True)
            ]
            made = self.compute(np.stack(read, axis=1).astype(np.float64, copy=False))
        except InvalidPredictions as error:
            where = f" Rows are counted from row {first:,} of the file, which is 0." if first > 1 else ""
            message = f"{error}{where}"
            raise InvalidPredictions(message) from error
        return [np.ascontiguousarray(made[:, k]) for k in range(len(self.outputs))]


def _in_order(names: tuple[str, ...], labels: tuple[str, ...], fitted: Any) -> tuple[str, ...]:
    """Columns whose names say their class, in the order of the map's classes; others as they were given."""
    classes = list(fitted.classes_)
    for known, wanted in ((labels, [str(one) for one in classes]), (numbered(names) or (), classes)):
        if len(names) > 1 and sorted(map(str, known)) == sorted(map(str, wanted)):
            place: dict[Any, str] = dict(zip(known, names, strict=True))
            return tuple(place[label] for label in wanted)
    return names


def _of_probabilities(fitted: Any, names: tuple[str, ...], suffix: str, *, percent: bool) -> NewColumns:
    unit = 100 if percent else 1
    if fitted.n_features_in_ != len(names):
        message = (
            f"The map was fitted to {fitted.n_features_in_} columns of probabilities, but --prob names {len(names)}."
        )
        raise UsageError(message)

    def compute(values: Floats) -> Floats:
        values = values / unit if percent else values
        if fitted.input == "probabilities":
            for k, name in enumerate(names):
                validation.in_unit_interval(f"Column {name!r}", values[:, k], clip=fitted.clip)
        made: Floats = fitted.predict_proba(values[:, 0] if len(names) == 1 else values)
        return unit * (made[:, 1:] if len(names) == 1 else made)

    return NewColumns(names, tuple(f"{name}{suffix}" for name in names), compute)


def _of_forecasts(fitted: ForecastRecalibrator, inputs: Inputs, suffix: str) -> NewColumns:
    """A map of means and standard deviations, quantiles or members; what it gives is tried on one row."""
    name = type(fitted).__name__
    if inputs.quantiles:
        pairs = levels_and_columns(inputs.quantiles)
        levels, names = [level for level, _ in pairs], tuple(column for _, column in pairs)

        def forecast(values: Floats) -> Forecast:
            return Quantiles(np.zeros(len(values)), levels, values)

        trial = np.arange(float(len(names)))[None, :]
    elif inputs.members:
        names = inputs.members

        def forecast(values: Floats) -> Forecast:
            return Samples(values[:, 0], values)

        trial = np.arange(float(len(names)))[None, :]
    elif inputs.mean is not None and inputs.std is not None:
        names = (inputs.mean, inputs.std)

        def forecast(values: Floats) -> Forecast:
            return Gaussian(values[:, 0], values[:, 0], values[:, 1])

        trial = np.array([[0.0, 1.0]])
    else:
        message = (
            f"The map is a {name}, which changes predicted distributions: give --mean and --std, or --quantiles, or "
            "--members."
        )
        raise UsageError(message)

    def compute(values: Floats) -> Floats:
        fixed = fitted.transform(forecast(values))
        if isinstance(fixed, Quantiles):
            return fixed.values
        if isinstance(fixed, Samples):
            return fixed.draws.astype(np.float64, copy=False)
        return np.column_stack([fixed.mean, fixed.std])

    try:
        fixed = fitted.transform(forecast(trial))
    except (InvalidPredictions, TypeError) as error:
        message = f"The map {name} cannot change these columns: {error}"
        raise UsageError(message) from error
    if isinstance(fixed, Quantiles) and not inputs.quantiles:
        return NewColumns(names, tuple(f"q{level:g}{suffix}" for level in fixed.levels), compute)
    return NewColumns(names, tuple(f"{column}{suffix}" for column in names), compute)


def _require_once(names: Sequence[str], header: Sequence[str]) -> None:
    for name in names:
        if list(header).count(name) > 1:
            message = f"There are {list(header).count(name)} columns called {name!r}: rename all but one."
            raise UsageError(message)


def _require_new(names: Sequence[str], header: Sequence[str]) -> None:
    taken = [name for name in names if name in header]
    if taken or len(set(names)) < len(names):
        listed = ", ".join(map(repr, taken or names))
        message = f"The file has a column {listed} already: choose other names of the new columns by --suffix TEXT."
        raise UsageError(message)
