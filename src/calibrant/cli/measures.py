"""The numbers of `calibrant measure` and whether they pass, and the models that `calibrant compare` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from calibrant.cli.columns import Columns, separated
from calibrant.cli.console import refuse, stop
from calibrant.data.forecasts import Forecast, Quantiles
from calibrant.data.judged import Judged
from calibrant.data.predictions import Multiclass, Predictions
from calibrant.estimators.binned import debiased_ece, ece, sweep_ece
from calibrant.estimators.multiclass import classwise
from calibrant.estimators.proper_scores import accuracy, brier, log_loss
from calibrant.estimators.recommended import calibration_error
from calibrant.estimators.regression_coverage import quantile_error
from calibrant.estimators.regression_scores import crps, pinball
from calibrant.estimators.regression_spread import ence
from calibrant.estimators.validation_study import calibration_slope, observed_expected
from calibrant.inference.comparison import Comparison
from calibrant.inference.gates import Check, Decision, Gate, headline_error, headline_errors, weak_limits
from calibrant.inference.intervals import interval
from calibrant.inference.judged import judged_estimate
from calibrant.results.estimate import Estimate, printable
from calibrant.table.bintable import ALL_ROWS, group_tables
from calibrant.table.task import Unlabeled, task_of


def gates_of(fail_above: float | None, limits: Sequence[str], by: Any) -> tuple[Gate, ...]:
    """The rules that --fail-above and --limit say."""
    gates = [] if fail_above is None else [Gate(fail_above, by=by)]
    for text in limits:
        of, _, value = text.partition("=")
        try:
            low, *high = (float(part) for part in value.split(":"))
            limit = (low, *high) if high else low
        except ValueError:
            limit = ()
        if isinstance(limit, tuple) and len(limit) != 2:
            stop(f"--limit takes NAME=NUMBER or NAME=LOW:HIGH, such as error=0.02 or oe=0.8:1.25, not {text!r}.")
        gates.append(Gate(limit, by=by, of=of.strip()))
    twice = [gate.of for place, gate in enumerate(gates) if any(gate.of == other.of for other in gates[:place])]
    if twice:
        stop(f"{twice[0]} is limited twice; --fail-above X is short for --limit error=X.")
    return tuple(gates)


def missing_check(left_out: float, most: float, by: Any) -> tuple[Check, ...]:
    """A failed check if more than the accepted share of the rows was left out for missing values; else none."""
    refuse(not 0 <= most <= 1, f"--max-missing must lie in [0, 1], got {most!r}.")  # also where it is NaN
    if left_out <= most:
        return ()
    sentence = (
        f"{100 * left_out:.3g} % of the rows were left out for missing values, and at most {100 * most:.3g} % may be "
        "(--max-missing)."
    )
    return (Check("missing", ALL_ROWS, most, by, "failed", sentence),)


@dataclass(frozen=True)
class Measuring:
    """What to measure, and the gates it must pass: with `per_group` in every group too, adjusted for their number.

    `max_missing` is the largest share of rows left out with which a gate can pass. A gate per group takes `all_groups`.
    """

    norm: float = 1.0
    level: float = 0.95
    gates: tuple[Gate, ...] = ()
    per_group: bool = False
    max_missing: float = 0.05
    all_groups: bool = False

    def __post_init__(self) -> None:
        words = "--per-group says what --fail-above and --limit apply to: give one of them as well."
        refuse(self.per_group and not self.gates, words)

    def of(self, data: Any, by: Any, left_out: float = 0.0) -> Measured:
        """The errors of all rows and of each group, and what the gates say of them."""
        refuse(self.per_group and by is None, "--per-group needs the groups: give --by COLUMN.")
        words = "Groups of positive-unlabeled rows may differ in their prior: measure each with its own --prior."
        refuse(by is not None and isinstance(task_of(data), Unlabeled), words)
        if isinstance(data, Judged):
            return self._of_judged(data, by)
        one = data.top_label() if isinstance(data, Multiclass) else data
        whole = [headline_error(one, norm=self.norm, level=self.level), *_others(one, self.norm)]
        if isinstance(data, Multiclass):
            whole += [classwise(ece, data), brier(data), log_loss(data)]
        every, largest = group_tables(one, by, most=None), list(group_tables(one, by))
        parts = every if self.per_group or self.all_groups else {name: every[name] for name in largest}
        groups = headline_errors(parts, norm=self.norm, level=self.level, adjusted=self.per_group)
        decision = self._decision(data, whole[0], parts if self.per_group else {}, groups, left_out)
        shown = every if self.all_groups else largest
        return Measured(whole, {name: groups[name] for name in shown}, len(every) - len(shown), decision)

    def _of_judged(self, data: Judged, by: Any) -> Measured:
        """The error, accuracy, observed : expected and slope of judged answers, and the error of each group.

        The error of a group without a gold label is NaN.
        """
        words = "Groups of judged answers are shown but have no gate: leave out --per-group, or give each its own file."
        refuse(self.per_group, words)
        words = "Of judged answers only the error has a gate: --fail-above, or --limit error=LIMIT."
        refuse(any(gate.of != "error" for gate in self.gates), words)
        estimator = partial(calibration_error, norm=self.norm)
        error = interval(estimator, data, level=self.level)
        more = [interval(one, data, level=self.level) for one in (accuracy, observed_expected, calibration_slope)]
        checks = tuple(check for gate in self.gates for check in gate.decide(error, {}).checks)
        every = group_tables(data, by, most=None)
        shown = every if self.all_groups else group_tables(data, by)
        measured = {
            name: interval(estimator, part, level=self.level) if part.known.any() else judged_estimate(estimator, part)
            for name, part in shown.items()
        }
        return Measured([error, *more], measured, len(every) - len(shown), Decision(checks) if checks else None)

    def _decision(
        self, data: Any, error: Estimate, parts: Mapping[Any, Any], errors: Mapping[Any, Estimate], left_out: float
    ) -> Decision | None:
        """What the gates say of the data and its parts, of which the errors are known."""
        if not self.gates:
            return None
        options = {"norm": self.norm, "level": self.level}
        checks: list[Check] = [*missing_check(left_out, self.max_missing, self.gates[0].by)]
        for gate in self.gates:
            if gate.of == "error":
                found, each = error, {name: errors[name] for name in parts}
            else:
                found, each = gate.estimate(data, **options), gate.estimates(parts, **options)
            checks.extend(gate.decide(found, each).checks)
        warnings = weak_limits(self.gates, data)
        weak = sum(bool(weak_limits(self.gates, part)) for part in parts.values())
        more = (f"the limit of the error is as weak in {weak:,} of {len(parts):,} groups.",) if weak else ()
        return Decision(tuple(checks), (*warnings, *more))


@dataclass(frozen=True, eq=False)
class Measured:
    """Estimates of all rows, headline first, that of each group but those `not_shown`, and what the gates say."""

    whole: list[Estimate]
    groups: Mapping[Any, Estimate] = field(default_factory=dict)
    not_shown: int = 0
    decision: Decision | None = None


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
    "Name the predictions of two models, one option each: --prob a --prob b; for multiclass data "
    '--prob "a_*" --prob "b_*" or --prob a0,a1,a2 --prob b0,b1,b2; --mean a --std s --mean b --std t; '
    '--quantiles "a_*" --quantiles "b_*"; or --members "a_*" --members "b_*".'
)

#: The errors by which models are compared, in words.
_ERRORS = {
    "calibration_error": "Calibration error (L1)",
    "variational_error": "Calibration error of whole vectors (L1)",
    "ence": "Expected normalized calibration error (ENCE) of the spread",
    "quantile_error": "Mean distance between level and share of outcomes below the quantile",
}


#: The options of predictions and their values, in the order in which they were given.
Given = Mapping[str, Sequence[str]]


def compared(columns: Columns, given: Given) -> Columns:
    """The first model, with the second among its `others`."""
    named = {name: values for name, values in given.items() if values}
    kinds = ({"prob"}, {"mean", "std"}, {"quantiles"}, {"members"})
    if set(named) not in kinds or any(len(values) != 2 for values in named.values()):
        stop(_USAGE)
    models: list[dict[str, Any]] = [
        {name: one[k] if name in ("mean", "std") else separated(one[k], (), f"--{name}") for name, one in named.items()}
        for k in (0, 1)
    ]
    return replace(columns, **models[0], others=(replace(columns, **models[1]),))


def names_of(given: Given) -> tuple[str, str]:
    """What the two models are called: as their options are, if these differ."""
    first, second = (", ".join(values[k] for values in given.values() if values) for k in (0, 1))
    return (first, second) if first != second else ("first", "second")


def sentence(found: Comparison) -> str:
    """A comparison in words; a model is said to be better only where the interval of the difference excludes 0."""
    a, b, limits = printable(found.a), printable(found.b), found.interval
    p = "p < 0.001" if found.adjusted < 0.001 else f"p = {found.adjusted:.3f}"
    name = _ERRORS[found.estimator.partition("(")[0]]
    values = f"{name}, of each model alone: {found.value_a:.4f} for {a}, {found.value_b:.4f} for {b}."
    of_what = " less its bias" if limits.method.startswith("Bootstrap") else " of the true errors"
    note = f"\n{found.note}" if found.note else ""
    difference = (
        f"Difference{of_what}, {a} minus {b}: {found.difference:.4f} ({100 * limits.level:g} % interval "
        f"{limits.low:.4f} to {limits.high:.4f}), {p}.{note}"
    )
    if limits.low <= 0 <= limits.high:
        return f"{values}\n{difference}\nNo significant difference detected."
    better = a if found.difference < 0 else b
    return f"{values}\n{difference}\n{better} is better calibrated."


def estimator_of(data: Predictions) -> Any:
    """The calibration error by which models of this task are compared; its differences have an interval."""
    from calibrant.estimators.variational import variational_error

    if isinstance(data, Quantiles):
        return quantile_error
    if isinstance(data, Forecast):
        return ence
    return variational_error if isinstance(data, Multiclass) else calibration_error
