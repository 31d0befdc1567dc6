"""Decision curves: what acting on predictions is worth, at every threshold of risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.predictions import Binary, Predictions, binary
from calibrant.data.validation import fail
from calibrant.estimators.validation_study import probability_cells
from calibrant.inference.multiplicity import BandKind, check_band, pointwise_level
from calibrant.inference.residual_noise import require_clusters
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.numerics.confidence_limits import combined_share_limits, mid_p_interval
from calibrant.results.estimate import plain_fields
from calibrant.table.bintable import BinTable, Data


@dataclass(frozen=True, eq=False)
class DecisionCurve:
    """Net benefit of a model over thresholds, with intervals; made by `net_benefit`.

    Attributes
    ----------
    threshold, value, low, high : arrays
        The interval [low, high] is for each threshold by itself, or for all at once, as `band` says.
    treat_all : array
        The net benefit of treating everyone; that of treating no one is 0.
    treated : array
        The share of rows at or above each threshold.
    prevalence : float
        The share of events.
    standardized : bool
        Whether values are divided by the prevalence.
    band : {"pointwise", "simultaneous"}

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
    band: BandKind = "pointwise"

    def __repr__(self) -> str:
        words = ", standardized" if self.standardized else ""
        return f"<DecisionCurve, {len(self.threshold)} thresholds, n={self.n:_}{words}>"

    @property
    def useful(self) -> Floats:
        """The thresholds at which the model's value exceeds both treating everyone and treating no one."""
        return self.threshold[self.value > np.maximum(self.treat_all, 0.0)]

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return plain_fields(self)

    def _repr_html_(self) -> str:
        from calibrant.reporting.notebook import decision_curve_html

        return decision_curve_html(self)

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the curve with its band, treating everyone and treating no one (needs matplotlib)."""
        from calibrant.plot.validation import decision_diagram

        return decision_diagram(self, ax=ax, **style)


def net_benefit(
    data: Data,
    y_prob: ArrayLike | None = None,
    /,
    *,
    thresholds: ArrayLike | None = None,
    standardized: bool = False,
    level: float = 0.95,
    band: BandKind = "pointwise",
) -> DecisionCurve:
    r"""Net benefit of treating those with a predicted risk of at least t, at each threshold t: a decision curve.

    .. math:: \mathrm{NB}(t) = \frac{\mathrm{TP}(t)}{n} - \frac{t}{1 - t}\,\frac{\mathrm{FP}(t)}{n}, \qquad
              \mathrm{NB}_\text{all}(t) = \pi - \frac{t}{1 - t} (1 - \pi), \qquad \mathrm{NB}_\text{none} = 0

    A threshold expresses how many unnecessary treatments one necessary treatment is worth. The unit is one necessary
    treatment per row; standardized, it is divided by the prevalence π, and 1 is the best possible. A model is useful at
    t only if its net benefit exceeds that of treating everyone and of treating no one.

    Intervals are pointwise. With ``band="simultaneous"`` they have a higher level, derived from the largest deviation
    of a Gaussian curve whose points have the same correlations. The shares of true and of false positives have mid-P
    intervals, which are combined by the method of variance estimates recovery (MOVER) with their multinomial
    correlation; when standardized, the two are the sensitivity and the ratio of false positives to events. Weights
    count by Kish's number of rows. Clusters divide it by the design effect of the net benefit at that threshold. What
    miscalibration costs at each threshold is `calibrant.inference.miscalibration_cost`.

    Parameters
    ----------
    data : Binary, fine BinTable, or y_true
        A table made by an engine has cells: rows in a cell count as treated if its mean score does.
    thresholds : array-like in (0, 1), optional
        By default 0.01, 0.02, ..., 0.99.
    standardized : bool
        Divide by the prevalence; needs at least one event.
    level : float in (0, 1)
    band : {"pointwise", "simultaneous"}
        Whether each interval is valid alone with probability `level`, or all of them at once.

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
    at = checked_thresholds(thresholds)
    task = data if isinstance(data, BinTable) else binary(data, y_prob)
    counts = _Counts.of(task, at)
    prevalence, odds = counts.events / counts.total, at / (1 - at)
    if standardized and not prevalence > 0:
        fail("standardized=True divides by the prevalence, but y_true has no events.")
    unit = prevalence if standardized else 1.0
    clustered = _ClusteredWorth.of(task, at, odds)
    size = clustered.size(counts.effective_n) if clustered is not None else np.full(len(at), counts.effective_n)
    each = level
    if check_band(band) == "simultaneous":
        each = pointwise_level(counts.covariance(odds) if clustered is None else clustered.covariance(), level)
    true, false = counts.true / counts.total, counts.false / counts.total
    if standardized:
        low, high = _standardized_limits(true, false, prevalence, odds, size, each)
    else:
        low, high = combined_share_limits(np.stack([true, false]), np.stack([np.ones_like(odds), -odds]), size, each)
    treat_all = (prevalence - odds * (1 - prevalence)) / unit
    value = (true - odds * false) / unit
    treated = np.clip(true + false, 0.0, 1.0)
    return DecisionCurve(at, value, low, high, treat_all, treated, prevalence, level, counts.n, standardized, band)


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
        """From rows, counted between the thresholds; or from the cells of a table."""
        if isinstance(task, Binary):
            return cls._of_rows(task, at)
        table = probability_cells(task, None, needed_by="net_benefit")
        score = np.where(table.low == table.high, table.low, table.predicted_mean)  # without rounding, where it is one
        first = np.searchsorted(score, at, side="left")
        above = np.cumsum(np.stack([table.observed, table.weight])[:, ::-1], axis=1)[:, ::-1]
        true, treated = np.pad(above, ((0, 0), (0, 1)))[:, first]
        events, total = float(table.observed.sum()), table.total
        false = np.maximum(treated - true, 0.0)
        return cls(true, false, events, total, table.population.effective_n, table.n)

    @classmethod
    def _of_rows(cls, task: Binary, at: Floats) -> _Counts:
        ascending = np.sort(at)
        passed = np.searchsorted(ascending, task.y_prob.astype(np.float64, copy=False), side="right")
        place, size = 2 * passed + task.y_true, 2 * (len(at) + 1)
        counts = np.bincount(place, task.weight, size).astype(np.float64).reshape(-1, 2)
        above = np.cumsum(counts[::-1], axis=0)[::-1]
        false, true = above[1 + np.searchsorted(ascending, at)].T
        total = float(counts.sum())
        squares = total if task.weight is None else float(task.weight @ task.weight)
        return cls(true, false, float(counts[:, 1].sum()), total, total**2 / squares, len(task))

    def covariance(self, odds: Floats) -> Floats:
        """How the worths of a row at two thresholds vary together: both count where it is treated at the higher one."""
        true, false = self.true / self.total, self.false / self.total
        order = np.arange(len(odds))
        higher = np.where(odds[:, None] >= odds, order[:, None], order)
        value = true - odds * false
        return np.asarray(true[higher] + np.outer(odds, odds) * false[higher] - np.outer(value, value))


@dataclass(frozen=True, eq=False)
class _ClusteredWorth:
    """Sums over clusters of what each row is worth at each threshold, less the mean; and squares over rows."""

    sums: Floats
    squares: Floats

    @classmethod
    def of(cls, task: Predictions | BinTable, at: Floats, odds: Floats) -> _ClusteredWorth | None:
        """None without clusters."""
        if not isinstance(task, Binary) or task.group is None:
            return None
        sample = Sample.of_rows(task)
        require_clusters(sample.clusters, needed_by="net_benefit")
        sums, squares = np.empty((sample.clusters, len(at))), np.empty(len(at))
        p, y, share = sample.rows.predicted, sample.rows.observed, sample.row_share
        for k, (threshold, cost) in enumerate(zip(at, odds, strict=True)):
            worth = np.where(p >= threshold, np.where(y > 0, 1.0, -cost), 0.0)
            parts = share * (worth - share @ worth)
            squares[k], sums[:, k] = float(parts @ parts), sample.by_cluster(parts[:, None])[:, 0]
        return cls(sums, squares)

    def size(self, effective_n: float) -> Floats:
        """The number of independent rows that say as much about each net benefit."""
        # Where all rows are worth the same, nothing is known of the spread within clusters.
        unknown = np.full(len(self.squares), effective_n / len(self.sums))
        effect = np.divide((self.sums**2).sum(axis=0), self.squares, out=unknown, where=self.squares > 0)
        return np.asarray(effective_n / np.maximum(effect, 1.0))

    def covariance(self) -> Floats:
        """How the net benefits at different thresholds vary together."""
        return np.asarray(self.sums.T @ self.sums)


def checked_thresholds(given: ArrayLike | None) -> Floats:
    """Thresholds strictly between 0 and 1; by default 0.01, 0.02, ..., 0.99."""
    if given is None:
        return np.arange(1, 100) / 100
    at = validation.probabilities("thresholds", given).astype(np.float64)
    validation.require("thresholds", at, (at > 0) & (at < 1), "must lie strictly between 0 and 1")
    return at


def _standardized_limits(
    true: Floats, false: Floats, prevalence: float, odds: Floats, size: Floats, level: float
) -> tuple[Floats, Floats]:
    """MOVER of the sensitivity less the odds times the ratio of false positives to events, which are independent."""
    sensitivity, ratio = np.clip(true / prevalence, 0.0, 1.0), false / prevalence
    events, both = prevalence * size, (prevalence + false) * size
    true_low, true_high = mid_p_interval(sensitivity * events, events, level)
    share = mid_p_interval(false * size, both, level)
    ratio_low, ratio_high = (end / np.maximum(1 - end, 1e-300) for end in share)
    up = np.hypot(true_high - sensitivity, odds * (ratio - ratio_low))
    down = np.hypot(sensitivity - true_low, odds * (ratio_high - ratio))
    value = sensitivity - odds * ratio
    return value - down, np.minimum(value + up, 1.0)
