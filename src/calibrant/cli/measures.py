"""The numbers of `calibrant measure` and whether they pass, and the models that `calibrant compare` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from calibrant.cli.columns import Columns, separated
from calibrant.cli.console import UsageError
from calibrant.data.forecasts import Forecast, Quantiles
from calibrant.data.predictions import Multiclass, Predictions
from calibrant.estimators.binned import ece
from calibrant.estimators.debiased import debiased_ece
from calibrant.estimators.multiclass import classwise
from calibrant.estimators.proper_scores import brier, log_loss
from calibrant.estimators.regression_scores import crps, pinball
from calibrant.estimators.regression_spread import ence
from calibrant.estimators.sweep import sweep_ece
from calibrant.inference.comparison import Comparison
from calibrant.inference.gates import Gate, headline_error, headline_errors
from calibrant.results.estimate import Estimate, printable
from calibrant.table.of_data import group_tables
from calibrant.table.task import Unlabeled, task_of


@dataclass(frozen=True)
class Measuring:
    """What to measure, and the gate it must pass.

    Attributes
    ----------
    norm, level : float
        Of the headline error and of its interval.
    gate : Gate or None
    per_group : bool
        Whether every group must pass as well; the intervals of groups are then adjusted for their number where the
        lower end decides.
    """

    norm: float = 1.0
    level: float = 0.95
    gate: Gate | None = None
    per_group: bool = False

    def __post_init__(self) -> None:
        if self.per_group and self.gate is None:
            message = "--per-group says what --fail-above applies to: give --fail-above as well."
            raise UsageError(message)

    def of(self, data: Any, by: Any) -> Measured:
        """The errors of all rows, and of each group."""
        if self.per_group and by is None:
            message = "--per-group needs the groups: give --by COLUMN."
            raise UsageError(message)
        if by is not None and isinstance(task_of(data), Unlabeled):
            message = "Groups of positive-unlabeled rows may differ in their prior: measure each with its own --prior."
            raise UsageError(message)
        one = data.top_label() if isinstance(data, Multiclass) else data
        whole = [headline_error(one, norm=self.norm, level=self.level), *_others(one, self.norm)]
        if isinstance(data, Multiclass):
            whole += [classwise(ece, data), brier(data), log_loss(data)]
        if not self.per_group:
            return Measured(
                whole, headline_errors(group_tables(one, by), norm=self.norm, level=self.level, adjusted=False)
            )
        adjusted = self.gate is not None and self.gate.by == "lower"
        parts = group_tables(one, by, most=None)
        return Measured(whole, headline_errors(parts, norm=self.norm, level=self.level, adjusted=adjusted))

    def failures(self, found: Measured) -> list[str]:
        """Why the gate fails; nothing if it does not."""
        if self.gate is None:
            return []
        groups = found.groups if self.per_group else {}
        return self.gate.failures({"all rows": found.whole[0]}) + self.gate.failures(groups)


@dataclass(frozen=True, eq=False)
class Measured:
    """Estimates of all rows, the headline first, and the headline of each group."""

    whole: list[Estimate]
    groups: Mapping[Any, Estimate] = field(default_factory=dict)


def _others(data: Any, norm: float) -> list[Estimate]:
    """What else is said of all rows."""
    if isinstance(data, Quantiles):
        return [pinball(data)]
    if isinstance(data, Forecast):
        return [ence(data), crps(data)]
    if isinstance(task_of(data), Unlabeled):
        return []
    return [ece(data, norm=norm), debiased_ece(data, norm=norm), sweep_ece(data, norm=norm)]


_USAGE = (
    "Name the predictions of two models, one option each: --prob a --prob b; for several classes "
    '--prob "a_*" --prob "b_*" or --prob a0,a1,a2 --prob b0,b1,b2; --mean a --std s --mean b --std t; '
    '--quantiles "a_*" --quantiles "b_*"; or --members "a_*" --members "b_*".'
)

#: The errors by which models are compared, in words.
_ERRORS = {
    "debiased_ece": "Debiased ECE (L1)",
    "calibration_error": "Calibration error of whole vectors (L1)",
    "ence": "Expected normalized calibration error (ENCE) of the spread",
    "quantile_error": "Mean distance between level and share of outcomes below the quantile",
}


@dataclass(frozen=True)
class Given:
    """The options of predictions, in the order in which they were given."""

    prob: Sequence[str] = ()
    mean: Sequence[str] = ()
    std: Sequence[str] = ()
    quantiles: Sequence[str] = ()
    members: Sequence[str] = ()


def compared(columns: Columns, given: Given) -> Columns:
    """The first model, with the second among its `others`.

    >>> made = compared(Columns("y"), Given(prob=["a0,a1", "b0,b1"]))
    >>> made.prob, made.others[0].prob
    (('a0', 'a1'), ('b0', 'b1'))
    """
    several = {"prob": given.prob, "quantiles": given.quantiles, "members": given.members}
    kinds = {name: values for name, values in several.items() if values}
    spread = bool(given.mean or given.std)
    if len(kinds) + spread != 1 or any(len(values) != 2 for values in kinds.values()):
        raise UsageError(_USAGE)
    if spread:
        if not len(given.mean) == len(given.std) == 2:
            raise UsageError(_USAGE)
        first, second = (replace(columns, mean=m, std=s) for m, s in zip(given.mean, given.std, strict=True))
    else:
        ((name, values),) = kinds.items()
        option = f"--{name}"
        made: list[dict[str, Any]] = [{name: separated(text, (), option)} for text in values]
        first, second = (replace(columns, **fields) for fields in made)
    return replace(first, others=(replace(second, weight=columns.weight),))


def names_of(given: Given) -> tuple[str, str]:
    """What the two models are called: as their options are, if these differ.

    >>> names_of(Given(mean=["m", "m"], std=["s", "t"]))
    ('m, s', 'm, t')
    """
    spread = [f"{mean}, {std}" for mean, std in zip(given.mean, given.std, strict=False)]
    first, second = given.prob or given.quantiles or given.members or spread
    return (first, second) if first != second else ("first", "second")


def sentence(found: Comparison) -> str:
    """A comparison in words.

    Which model is better calibrated is said only where the interval of the difference does not hold 0.
    """
    a, b, limits = printable(found.a), printable(found.b), found.interval
    p = "p < 0.001" if found.adjusted < 0.001 else f"p = {found.adjusted:.3f}"
    name = _ERRORS[found.estimator.partition("(")[0]]
    values = f"{name}: {found.value_a:.4f} for {a}, {found.value_b:.4f} for {b}."
    of_what = " less its bias" if limits.method.startswith("Bootstrap") else " of the true errors"
    difference = (
        f"Difference{of_what}, {a} minus {b}: {found.difference:.4f} ({100 * limits.level:g} % interval "
        f"{limits.low:.4f} to {limits.high:.4f}), {p}."
    )
    if limits.low <= 0 <= limits.high:
        return f"{values}\n{difference}\nNo significant difference detected."
    better = a if found.difference < 0 else b
    return f"{values}\n{difference}\n{better} is better calibrated."


def estimator_of(data: Predictions) -> Any:
    """The calibration error by which models of this task are compared.

    It is one whose differences have an interval for the true errors: of whole vectors for several classes, of the
    spread for forecasts that have one, of the shares below quantiles for others.
    """
    from calibrant.estimators.debiased import debiased_ece
    from calibrant.estimators.regression_coverage import quantile_error
    from calibrant.estimators.regression_spread import ence
    from calibrant.estimators.variational import calibration_error

    if isinstance(data, Quantiles):
        return quantile_error
    if isinstance(data, Forecast):
        return ence
    return calibration_error if isinstance(data, Multiclass) else partial(debiased_ece, norm=1)
