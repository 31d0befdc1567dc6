"""The number of events in some rows against what their predictions say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.table.bintable import BinTable

LEVEL = 0.95


def events_of(data: Predictions) -> Binary:
    """Rows with events; of several classes, that the predicted class is right."""
    if isinstance(data, Binary):
        return data
    if isinstance(data, Multiclass):
        return data.top_label()
    message = f"{type(data).__name__} has no events."
    raise CannotBuild(message)


@dataclass(frozen=True)
class EventCount:
    r"""Observed events O, expected events E and the variance V of a calibrated model.

    The sum of independent outcomes with different probabilities is very nearly binomial with the same mean and
    variance, that is with :math:`N = E^2 / (E - V)` rows of probability :math:`\pi = 1 - V / E`; exactly so where all
    probabilities are equal. Dependent or weighted rows have a larger variance: all three numbers are then divided by
    the same factor, which leaves O : E as it is.
    """

    observed: float
    expected: float
    variance: float

    @classmethod
    def of(cls, table: BinTable, design_effect: float = 1.0) -> EventCount:
        """From the cells of a table."""
        p = np.clip(table.predicted_mean, 0.0, 1.0)
        unit = float(table.weight_squares.sum()) / table.total * design_effect
        observed, expected = float(table.observed.sum()), float(table.predicted.sum())
        return cls(observed / unit, expected / unit, float(table.weight @ (p * (1 - p))) / unit)

    @property
    def p_value(self) -> float:
        """Two-sided: twice the smaller tail, at most 1."""
        from scipy.special import betainc

        if not self.variance > 0:
            return 1.0 if np.isclose(self.observed, self.expected) else 0.0
        size, chance = self._binomial
        x = min(max(self.observed, 0.0), size)
        at_least = float(betainc(x, size - x + 1, chance)) if x > 0 else 1.0
        at_most = 1 - float(betainc(x + 1, size - x, chance)) if x < size else 1.0
        return min(2 * min(at_least, at_most), 1.0)

    def null_ratio(self) -> tuple[float, float]:
        """Between which O : E a calibrated model lies with a probability of at least 95 %."""
        from scipy.special import bdtrik

        if not self.variance > 0:
            return 1.0, 1.0
        size, chance = self._binomial
        low, high = (
            float(np.clip(np.ceil(bdtrik(q, size, chance) - 1e-9), 0, size)) for q in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
        )
        return low / self.expected, high / self.expected

    @property
    def _binomial(self) -> tuple[float, float]:
        chance = max(1 - self.variance / self.expected, 1e-12)
        return self.expected / chance, chance
