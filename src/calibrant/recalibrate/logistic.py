"""Maps that are a logistic regression on functions of the log odds, and the one Newton solver behind them."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.numerics.special import expit
from calibrant.recalibrate.base import BinaryRecalibrator
from calibrant.recalibrate.inputs import Cells, Scores


class LogisticMap(BinaryRecalibrator):
    """Base of the maps whose log odds are linear in some features of the stated log odds.

    A stated 0 or 1 has no finite log odds. It counts as half as far from certainty as the nearest other score: 0
    among votes of 100 trees is not the 1e-38 it would be among those of a neural network.
    """

    #: Whether later scores beyond those fitted count as the last of them (for maps that may turn there).
    _bounded: ClassVar[bool] = False
    limits_: Floats
    coefficients_: Floats

    def _fit_cells(self, cells: Cells) -> None:
        self.limits_ = _limits(cells, bounded=self._bounded)
        self._fit_log_odds(np.clip(cells.log_odds, *self.limits_), cells.weight, cells.positive)

    def _map(self, scores: Scores) -> Floats:
        return expit(self._recalibrated(np.clip(scores.log_odds, *self.limits_)))

    def _predict(self, scores: Scores) -> Floats:
        return two_columns(self._recalibrated(np.clip(scores.log_odds, *self.limits_)))

    @abstractmethod
    def _fit_log_odds(self, x: Floats, weight: Floats, positive: Floats) -> None:
        """Set the coefficients."""

    def _recalibrated(self, x: Floats) -> Floats:
        """Recalibrated log odds."""
        return self._features(x) @ self.coefficients_

    @abstractmethod
    def _features(self, x: Floats) -> Floats:
        """The features of log odds, of shape (n, number of coefficients)."""


def _limits(cells: Cells, *, bounded: bool) -> Floats:
    """Lowest and highest log odds the map tells apart."""
    x, p = cells.log_odds, cells.probability
    low, high = (
        (np.zeros(len(x), dtype=bool), np.zeros(len(x), dtype=bool)) if cells.scores.logits else (p <= 0, p >= 1)
    )
    inner = x[~(low | high)]
    if len(inner) == 0:
        edge = np.log(2 * cells.total + 1)  # nothing but certainty: any finite number does
        return np.array([-edge, edge])
    half = np.log(2)
    return np.array(
        [
            inner.min() - half if bounded or low.any() else -np.inf,
            inner.max() + half if bounded or high.any() else np.inf,
        ]
    )


def two_columns(log_odds: Floats) -> Floats:
    """Probabilities of both classes, each accurate however close to 0."""
    return np.stack([expit(-log_odds), expit(log_odds)], axis=1)
