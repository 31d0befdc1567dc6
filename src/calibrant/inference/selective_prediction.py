"""Selective prediction: how the error falls if the least confident predictions are not made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data import validation
from calibrant.data.predictions import Multiclass, Predictions, binary
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.recalibration_framework import probability_cells
from calibrant.numerics.arrays import Floats
from calibrant.numerics.binomial_interval import mid_p_interval
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import Data

#: The most points of a curve that are returned, each with its interval; the areas are of all rows.
MOST_POINTS = 1000


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Error of the predictions that are made, against the share that is made; from `risk_coverage`.

    Attributes
    ----------
    confidence : array, descending
        Predictions of at least this confidence are made. At most 1000 points of the curve are given; the areas are of
        all rows.
    coverage, risk, low, high : arrays
        The share that is made, the share of errors among them, and its pointwise interval.
    aurc, ideal, excess : float
        Area under the curve, that of the ideal order of the same errors, and their difference.

    Examples
    --------
    >>> curve = risk_coverage([1, 0, 1, 0], [0.9, 0.2, 0.3, 0.4])
    >>> curve.confidence, curve.risk.round(2)
    (array([0.9, 0.8, 0.7, 0.6]), array([0.  , 0.  , 0.33, 0.25]))
    """

    confidence: Floats
    coverage: Floats
    risk: Floats
    low: Floats
    high: Floats
    aurc: float
    ideal: float
    level: float
    n: int

    def __repr__(self) -> str:
        return f"<RiskCoverage, AURC {self.aurc:.4g}, excess {self.excess:.4g}, n={self.n:_}>"

    @property
    def excess(self) -> float:
        """The area above that of the ideal order, in which all errors come last."""
        return self.aurc - self.ideal

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        columns = {name: getattr(self, name).tolist() for name in ("confidence", "coverage", "risk", "low", "high")}
        return {**columns, **{name: getattr(self, name) for name in ("aurc", "ideal", "excess", "level", "n")}}


def risk_coverage(data: Data, y_prob: ArrayLike | None = None, /, *, level: float = 0.95) -> RiskCoverage:
    r"""Risk-coverage curve: the error rate among the most confident predictions, for each share of them.

    The predicted class is the more probable one (the event at 1/2), its confidence max(p, 1 - p), the risk the share of
    wrong predictions among those of at least some confidence. With rows in the order of falling confidence,

    .. math:: \mathrm{AURC} = \frac1n \sum_{k=1}^n \frac1k \sum_{i \le k} \mathbf 1\{\text{row } i \text{ is wrong}\}

    and `excess` is its distance from the ideal order, in which all wrong rows come last. Rows of equal confidence are
    never split: each counts with their mean error. The interval of each risk is the mid-P interval of a share, for a
    confidence fixed in advance. Weights count by Kish's number of rows; rows with a group are refused. The area itself
    has a bootstrap interval: ``interval(lambda d: risk_coverage(d).aurc, data, method=Bootstrap())``.

    References
    ----------
    El-Yaniv, Wiener (2010), On the Foundations of Noise-free Selective Classification; Geifman, Uziel, El-Yaniv (2019),
    Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers.

    Examples
    --------
    >>> risk_coverage([1, 0, 1, 0], [0.9, 0.2, 0.3, 0.4])  # the third is wrong: (0 + 0 + 1/3 + 1/4) / 4
    <RiskCoverage, AURC 0.1458, excess 0.08333, n=4>
    """
    level = validation.fraction("level", level)
    task = data if isinstance(data, BinTable) else binary(data, y_prob)
    if isinstance(task, Predictions) and task.group is not None:
        message = "risk_coverage has no interval for rows with a group yet; leave group out if rows are independent."
        raise InvalidPredictions(message)
    confidence, weight, squares, wrong, n = _by_confidence(task)
    unit = float(weight.sum() / squares.sum())
    running, errors = np.cumsum(weight), np.cumsum(wrong)
    total = float(running[-1])
    shown = _shown(running)
    risk, size = (errors / running)[shown].clip(0.0, 1.0), (running**2 / np.cumsum(squares))[shown]
    low, high = mid_p_interval(risk * size, size, level)
    bad = float(errors[-1])
    ideal = _area(np.array([total - bad, bad]) * unit, np.array([0.0, bad]) * unit)
    area = _area(weight * unit, wrong * unit)
    return RiskCoverage(confidence[shown], running[shown] / total, risk, low, high, area, ideal, level, n)


def _shown(running: Floats) -> NDArray[np.intp]:
    """All points of the curve, or of many those next to equally spaced coverages."""
    if len(running) <= MOST_POINTS:
        return np.arange(len(running))
    wanted = running[-1] * np.arange(1, MOST_POINTS + 1) / MOST_POINTS
    return np.unique(np.minimum(np.searchsorted(running, wanted), len(running) - 1))


def _by_confidence(task: Predictions | BinTable) -> tuple[Floats, Floats, Floats, Floats, int]:
    """Confidence, weight, squared weight and weight of wrong rows, in the order of falling confidence; rows."""
    top = isinstance(task, Multiclass)
    one = task.top_label() if isinstance(task, Multiclass) else task
    cells = probability_cells(one, None, needed_by="risk_coverage")
    score = np.where(cells.low == cells.high, cells.low, cells.predicted_mean)
    event = (score >= 0.5) | top
    confidence = np.where(event, score, 1 - score)
    wrong = np.where(event, cells.weight - cells.observed, cells.observed)
    values, place = np.unique(-np.round(confidence, 12), return_inverse=True)  # 0.9 and 1 - 0.1 are one confidence
    columns = (cells.weight, cells.weight_squares, wrong)
    sums = [np.bincount(place, column, len(values)).astype(np.float64) for column in columns]
    falling: Floats = -values.astype(np.float64)
    return falling, sums[0], sums[1], np.maximum(sums[2], 0.0), cells.n


def _area(weight: Floats, wrong: Floats) -> float:
    """Mean over rows of the risk up to each, with the rows of a cell sharing their errors equally."""
    from scipy.special import digamma

    some = weight > 0
    weight, wrong = weight[some], wrong[some]
    before, errors = np.cumsum(weight) - weight, np.cumsum(wrong) - wrong
    rate = wrong / weight
    steps = digamma(before + weight + 1) - digamma(before + 1)  # the sum of 1 / k over the rows of the cell
    return float((rate * weight + (errors - rate * before) * steps).sum() / weight.sum())
