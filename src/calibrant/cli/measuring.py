"""The numbers of `calibrant measure`, of every task, and whether they pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant.cli.formats import UsageError
from calibrant.data.forecasts import Forecast, Quantiles
from calibrant.data.predictions import Multiclass
from calibrant.estimators.binned import ece
from calibrant.estimators.debiased import debiased_ece
from calibrant.estimators.multiclass import classwise
from calibrant.estimators.proper_scores import brier, log_loss
from calibrant.estimators.regression_scores import crps, pinball
from calibrant.estimators.regression_spread import ence
from calibrant.estimators.sweep import sweep_ece
from calibrant.inference.gates import Gate, headline_error, headline_errors
from calibrant.reporting.groups import group_tables
from calibrant.results.estimate import Estimate
from calibrant.table.task import task_of
from calibrant.table.unlabeled import Unlabeled


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
