"""Decision curves: what acting on predictions is worth, at every threshold of risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.predictions import Binary, Predictions, binary
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.recalibration_framework import probability_cells
from calibrant.inference.residual_noise import LEAST_CLUSTERS
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.numerics.binomial_interval import mid_p_interval
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import Data


@dataclass(frozen=True, eq=False)
class DecisionCurve:
    """Net benefit of a model over thresholds, with pointwise intervals; made by `net_benefit`.

    Attributes
    ----------
    threshold, value, low, high : arrays
        The interval [low, high] is for each threshold by itself.
    treat_all : array
        The net benefit of treating everyone; that of treating no one is 0.
    treated : array
        The share of rows at or above each threshold.
    prevalence : float
        The share of events.
    standardized : bool
        Whether values are divided by the prevalence.

    Examples
    --------
    >>> curve = net_benefit([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], thresholds=[0.3, 0.5])
    >>> curve
    <DecisionCurve, 2 thresholds, n=4>
    >>> curve.to_dict()["treated"]
    [0.75, 0.25]
    """

    threshold: Floats
    value: Floats
    low: Floats
    high: Floats
    treat_all: Floats
    treated: Floats
    prevalence: float
    level: float
    n: int
    standardized: bool

    def __repr__(self) -> str:
        words = ", standardized" if self.standardized else ""
        return f"<DecisionCurve, {len(self.threshold)} thresholds, n={self.n:_}{words}>"

    @property
    def useful(self) -> Floats:
        """The thresholds at which the model's value exceeds both treating everyone and treating no one."""
        return self.threshold[self.value > np.maximum(self.treat_all, 0.0)]

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        names = ("threshold", "value", "low", "high", "treat_all", "treated")
        columns = {name: getattr(self, name).tolist() for name in names}
        rest = {name: getattr(self, name) for name in ("prevalence", "level", "n", "standardized")}
        return {**columns, **rest}

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the curve with its band, treating everyone and treating no one (needs matplotlib)."""
        from calibrant.plot.decisions import decision_diagram

        return decision_diagram(self, ax=ax, **style)


def net_benefit(
    data: Data,
    y_prob: ArrayLike | None = None,
    /,
    *,
    thresholds: ArrayLike | None = None,
    standardized: bool = False,
    level: float = 0.95,
) -> DecisionCurve:
    r"""Net benefit of treating those with a predicted risk of at least t, at each threshold t: a decision curve.

    .. math:: \mathrm{NB}(t) = \frac{\mathrm{TP}(t)}{n} - \frac{t}{1 - t}\,\frac{\mathrm{FP}(t)}{n}, \qquad
              \mathrm{NB}_\text{all}(t) = \pi - \frac{t}{1 - t} (1 - \pi), \qquad \mathrm{NB}_\text{none} = 0

    A threshold says how many needless treatments one necessary treatment is worth. The unit is one necessary treatment
    per row; standardized, it is divided by the prevalence π, and 1 is the best possible. A model is of use at t only if
    its net benefit exceeds that of treating everyone and of treating no one.

    Intervals are pointwise. The two shares have mid-P intervals, which are combined by the method of variance
    estimates recovery (MOVER) with their multinomial correlation; standardized, the two are the sensitivity and the
    ratio of false positives to events. Weights count by Kish's number of rows. Clusters divide it by the design effect
    of the net benefit at that threshold.

    Parameters
    ----------
    data : Binary, fine BinTable, or y_true
        A table made by an engine has cells: rows in a cell count as treated if its mean score does.
    thresholds : array-like in (0, 1), optional
        By default 0.01, 0.02, ..., 0.99.
    standardized : bool
        Divide by the prevalence; needs at least one event.
    level : float in (0, 1)

    References
    ----------
    Vickers, Elkin (2006), Decision curve analysis: a novel method for evaluating prediction models; Kerr, Brown, Zhu,
    Janes (2016), Assessing the Clinical Impact of Risk Prediction Models With Decision Curves; Zou, Donner (2008),
    Construction of confidence limits about effect measures.

    Examples
    --------
    >>> curve = net_benefit([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], thresholds=[0.5])  # one true positive of four rows
    >>> curve.value, curve.treat_all
    (array([0.25]), array([0.]))
    """
    level = validation.fraction("level", level)
    at = _thresholds(thresholds)
    task = data if isinstance(data, BinTable) else binary(data, y_prob)
    counts = _Counts.of(task, at)
    prevalence, odds = counts.events / counts.total, at / (1 - at)
    if standardized and not prevalence > 0:
        message = "standardized=True divides by the prevalence, but y_true has no events."
        raise InvalidPredictions(message)
    unit = prevalence if standardized else 1.0
    size = counts.size(task, at, odds)
    true, false = counts.true / counts.total, counts.false / counts.total
    if standardized:
        low, high = _standardized_limits(true, false, prevalence, odds, size, level)
    else:
        low, high = _limits(true, false, odds, size, level)
    treat_all = (prevalence - odds * (1 - prevalence)) / unit
    value = (true - odds * false) / unit
    treated = np.clip(true + false, 0.0, 1.0)
    return DecisionCurve(at, value, low, high, treat_all, treated, prevalence, level, counts.n, standardized)


@dataclass(frozen=True, eq=False)
class _Counts:
    """Weights of true and of false positives at each threshold."""

    true: Floats
    false: Floats
    events: float
    total: float
    effective_n: float
    n: int

    @classmethod
    def of(cls, task: Predictions | BinTable, at: Floats) -> _Counts:
        table = probability_cells(task, None, needed_by="net_benefit")
        score = np.where(table.low == table.high, table.low, table.predicted_mean)  # without rounding, where it is one
        first = np.searchsorted(score, at, side="left")
        above = np.cumsum(np.stack([table.observed, table.weight])[:, ::-1], axis=1)[:, ::-1]
        true, treated = np.pad(above, ((0, 0), (0, 1)))[:, first]
        events, total = float(table.observed.sum()), table.total
        false = np.maximum(treated - true, 0.0)
        return cls(true, false, events, total, table.population.effective_n, table.n)

    def size(self, task: Predictions | BinTable, at: Floats, odds: Floats) -> Floats:
        """The number of independent rows that say as much about each net benefit."""
        if not isinstance(task, Binary) or task.group is None:
            return np.full(len(at), self.effective_n)
        sample = Sample.of_rows(task)
        if sample.clusters < LEAST_CLUSTERS:
            message = (
                f"net_benefit needs at least {LEAST_CLUSTERS} groups of rows to know the spread between them, "
                f"got {sample.clusters}."
            )
            raise InvalidPredictions(message)
        found = np.empty(len(at))
        p, y, share = sample.rows.predicted, sample.rows.observed, sample.row_share
        for k, (threshold, cost) in enumerate(zip(at, odds, strict=True)):
            worth = np.where(p >= threshold, np.where(y > 0, 1.0, -cost), 0.0)
            parts = share * (worth - share @ worth)
            alone, together = float(parts @ parts), sample.by_cluster(parts[:, None])[:, 0]
            # Where all rows are worth the same, nothing is known of the spread within clusters.
            effect = float(together @ together) / alone if alone > 0 else self.effective_n / sample.clusters
            found[k] = self.effective_n / max(effect, 1.0)
        return found


def _thresholds(given: ArrayLike | None) -> Floats:
    if given is None:
        return np.arange(1, 100) / 100
    at = validation.probabilities("thresholds", given).astype(np.float64)
    validation.require("thresholds", at, (at > 0) & (at < 1), "must lie strictly between 0 and 1")
    return at


def _limits(true: Floats, false: Floats, odds: Floats, size: Floats, level: float) -> tuple[Floats, Floats]:
    """MOVER of the difference of two shares of one multinomial sample, one of them times the odds."""
    (true_low, true_high), (false_low, false_high) = (mid_p_interval(x * size, size, level) for x in (true, false))
    rest = (1 - true) * (1 - false)
    correlation = -np.sqrt(np.divide(true * false, rest, out=np.zeros_like(rest), where=rest > 0))
    up = _recovered(true_high - true, odds * (false - false_low), correlation)
    down = _recovered(true - true_low, odds * (false_high - false), correlation)
    value = true - odds * false
    return value - down, value + up


def _standardized_limits(
    true: Floats, false: Floats, prevalence: float, odds: Floats, size: Floats, level: float
) -> tuple[Floats, Floats]:
    """MOVER of the sensitivity less the odds times the ratio of false positives to events, which are independent."""
    sensitivity, ratio = np.clip(true / prevalence, 0.0, 1.0), false / prevalence
    events, both = prevalence * size, (prevalence + false) * size
    true_low, true_high = mid_p_interval(sensitivity * events, events, level)
    share = mid_p_interval(false * size, both, level)
    ratio_low, ratio_high = (end / np.maximum(1 - end, 1e-300) for end in share)
    none = np.zeros_like(true)
    up = _recovered(true_high - sensitivity, odds * (ratio - ratio_low), none)
    down = _recovered(sensitivity - true_low, odds * (ratio_high - ratio), none)
    value = sensitivity - odds * ratio
    return value - down, np.minimum(value + up, 1.0)


def _recovered(first: Floats, second: Floats, correlation: Floats) -> Floats:
    """The distance of a limit of a difference from the distances of the limits of its two terms."""
    return np.sqrt(np.maximum(first**2 + second**2 - 2 * correlation * first * second, 0.0))
