"""What acting on predictions is worth at every threshold of risk, and what miscalibration costs there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Predictions, binary
from calibrant.data.validation import fail
from calibrant.estimators.cross_fitting import CrossFitted, binary_rows, recalibrated, recalibrator_name, table_cells
from calibrant.estimators.validation_study import probability_cells
from calibrant.inference.multiplicity import BandKind, check_band, pointwise_level
from calibrant.inference.sample import Sample, design_effect, require_clusters
from calibrant.numerics.arrays import Floats
from calibrant.numerics.confidence_limits import combined_share_limits, mid_p_interval
from calibrant.results.estimate import Estimate, Interval, plain_fields
from calibrant.results.target import Target
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


#: Scores from which rows could be treated instead, and thresholds at which the decision loss looks for the largest.
#: Speed: more would differ by less than a two-thousandth of the rows, or a hundredth of the thresholds.
_PLACES, _THRESHOLDS = 2048, 100


@dataclass(frozen=True, eq=False)
class MiscalibrationCost:
    """What miscalibration costs at each threshold, in units of net benefit; made by `miscalibration_cost`.

    Attributes
    ----------
    threshold, before, after : arrays
        Net benefit of the predictions, and of their recalibration on rows that it was not fitted to.
    cost, low, high : arrays
        `after` less `before`, or 0 where that is negative, with the interval of the true cost, pointwise or
        simultaneous as `band` says.
    decision_loss : Estimate
        The calibration decision loss, with its interval.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> found = miscalibration_cost(rng.random(3000) < p**3, p, thresholds=[0.2, 0.5])
    >>> found
    <MiscalibrationCost, 2 thresholds, largest 0.13..., n=3_000>
    >>> bool(found.low[1] > 0)
    True
    """

    threshold: Floats
    before: Floats
    after: Floats
    cost: Floats
    low: Floats
    high: Floats
    decision_loss: Estimate
    level: float
    band: BandKind
    n: int

    def __repr__(self) -> str:
        return f"<MiscalibrationCost, {len(self.threshold)} thresholds, largest {self.cost.max():.4g}, n={self.n:_}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return plain_fields(self)

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the cost with its band (needs matplotlib)."""
        from calibrant.plot.validation import cost_diagram

        return cost_diagram(self, ax=ax, **style)


def miscalibration_cost(
    data: Data,
    y_prob: ArrayLike | None = None,
    /,
    *,
    thresholds: ArrayLike | None = None,
    recalibrator: Any = None,
    folds: int = 5,
    seed: int = 0,
    level: float = 0.95,
    band: BandKind = "pointwise",
) -> MiscalibrationCost:
    r"""What deciding by miscalibrated predictions costs, at each threshold, in units of net benefit.

    With c(p) the true probability of the event where p is predicted, treating by p instead of by c(p) costs

    .. math:: C(t) = E\Bigl[\frac{|c(p) - t|}{1 - t}\,\mathbf 1\{p \text{ and } c(p) \text{ on different sides of } t\}
              \Bigr] \ge 0.

    It is estimated by the net benefit (see `net_benefit`) of the predictions recalibrated by maps fitted without the
    row's fold, less that of the predictions, or 0 if recalibration does harm at that threshold. No map gains more
    than c, so that a low end for these maps on new rows is one for C too. They can gain less. If the true curve rises,
    treating by c(p) is treating from some score s on, and

    .. math:: C(t) = \sup_s D(s, t), \qquad D(s, t) = \frac{1}{1 - t}\,
              E\bigl[(Y - t)(\mathbf 1\{p \ge s\} - \mathbf 1\{p \ge t\})\bigr].

    The supremum is attained at one score, whatever it is, so that the largest upper limit of D(s, t) over all s is one
    of C without allowance for the search. Limits of D combine Wilson limits of the shares of events and of others that
    are treated otherwise (MOVER). With weights they use Kish's effective number of rows, with clusters its quotient by
    the design effect of the residuals.

    The **calibration decision loss** is the largest cost over all decisions whose payoffs lie between 0 and 1, which
    for two actions is

    .. math:: \mathrm{CDL} = \sup_t C(t) \min\Bigl(1, \frac{1 - t}{t}\Bigr).

    Its estimate takes the largest value over the thresholds; the low end of its interval is the largest low end of a
    simultaneous band, and the high end the largest upper limit of D(s, t) in these units over all s and t, each with
    half of the error probability.

    Parameters
    ----------
    data : Binary, fine BinTable, or y_true
        Rows with a group stay in one fold, and the spread is that between groups.
    thresholds : array-like in (0, 1), optional
        By default 0.01, 0.02, ..., 0.99.
    recalibrator : optional
        A map of `calibrant.recalibrate` or a classifier; by default averaged smoothers, as in `variational_error`.
    folds, seed : int
    level : float in (0, 1)
    band : {"pointwise", "simultaneous"}

    References
    ----------
    Van Calster, Vickers (2015), Calibration of risk prediction models: impact on decision-analytic performance; Hu, Wu
    (2024), Predict to Minimize Swap Regret for All Payoff-Bounded Tasks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> found = miscalibration_cost(rng.random(4000) < p**2, p, thresholds=[0.5])  # C = 0.0547
    >>> bool(found.low[0] < 0.0547 < found.high[0]), found.decision_loss.interval.side
    (True, 'two-sided')
    """
    level, at = validation.fraction("level", level), checked_thresholds(thresholds)
    validation.whole("folds", folds, minimum=2)
    check_band(band)
    task = data if isinstance(data, BinTable) else binary(data, y_prob)
    if isinstance(task, PositiveUnlabeled) or not isinstance(task, Binary | BinTable):
        fail(f"miscalibration_cost needs binary predictions with all outcomes, not {task!r}.")
    split = table_cells if isinstance(task, BinTable) else binary_rows
    rows = recalibrated(split(task, [1.0] * folds, seed), recalibrator)  # type: ignore[arg-type]
    gains, moves = _Gains.of(rows, at), _Moves.of(task)
    together = pointwise_level(gains.covariance(), level)
    cost = np.maximum(gains.value, 0.0)
    low = np.maximum(gains.limits(level if band == "pointwise" else together)[0], 0.0)
    bounds = gains.limits(together)[0] if band == "pointwise" else low
    number = 1 if band == "pointwise" else len(at)
    high = np.maximum([moves.limit(t, 1 - (1 - level) / number) for t in at], np.maximum(cost, low))
    words = f"{folds} folds, {recalibrator_name(recalibrator, 1)}"
    unit, target = np.minimum(1.0, (1 - at) / at), Target("calibration decision loss")
    value, lowest = (max(0.0, float((x * unit).max())) for x in (cost, bounds))
    highest = max(moves.largest(level), value, lowest)
    method = "simultaneous band of the gain; largest upper limit of a moved threshold"
    assumption = "independent rows (or clusters); low end: any curve; high end: a rising calibration curve; approximate"
    interval = Interval(lowest, highest, level, method, assumption=assumption, target=target)
    loss = Estimate(value, name="Calibration decision loss", method=words, n=rows.n, target=target, interval=interval)
    before = net_benefit(task, thresholds=at).value
    return MiscalibrationCost(at, before, before + gains.value, cost, low, high, loss, level=level, band=band, n=rows.n)


@dataclass(frozen=True, eq=False)
class _Gains:
    """What treating by recalibrated instead of predicted probabilities gains, entry by entry and threshold.

    From threshold `first` to `last` an entry is treated by one of both only: the recalibrated one where `sign` is 1.
    """

    rows: CrossFitted
    at: Floats
    first: NDArray[np.intp]
    last: NDArray[np.intp]
    sign: Floats

    @classmethod
    def of(cls, rows: CrossFitted, at: Floats) -> _Gains:
        """From the numbers of thresholds at which each entry is treated."""
        p, q = (np.searchsorted(np.sort(at), x[:, 0], side="right") for x in (rows.predicted, rows.fitted))
        return cls(rows, at, np.minimum(p, q), np.maximum(p, q), np.sign(q - p).astype(np.float64))

    @cached_property
    def share(self) -> Floats:
        """Shares of four kinds of rows: newly treated or no longer treated, with or without the event."""
        moved = [some & (self.sign == sign) for sign in (1.0, -1.0) for some in (self._event, ~self._event)]
        kinds = np.concatenate([self._between(self.rows.weight * kind) for kind in moved])
        return np.clip(kinds / self.rows.weight.sum(), 0.0, 1.0)

    @cached_property
    def factor(self) -> Floats:
        """What each kind of rows adds to the gain."""
        odds, one = self._odds, np.ones_like(self.at)
        return np.stack([one, -odds, -one, odds])

    @cached_property
    def value(self) -> Floats:
        """The gain at each threshold."""
        return np.asarray((self.share * self.factor).sum(axis=0))

    def limits(self, level: float) -> tuple[Floats, Floats]:
        """Intervals of the gains, each at this level."""
        return combined_share_limits(self.share, self.factor, self._size(), level)

    def covariance(self) -> Floats:
        """How the gains at different thresholds vary together, up to a factor."""
        if self.rows.cluster is not None:
            sums = self._cluster_sums()
            return np.asarray(sums.T @ sums)
        squares, size = self.rows.weight_squares, len(self.at) + 1
        place = np.searchsorted(np.sort(self.at), self.at)
        both = np.minimum.outer(place, place), np.maximum.outer(place, place) + 1
        found = np.zeros((len(self.at), len(self.at)))
        for some, product in ((self._event, 1.0), (~self._event, np.outer(self._odds, self._odds))):
            runs = np.bincount((self.first * size + self.last)[some], squares[some], size**2).reshape(size, size)
            covering = np.cumsum(np.cumsum(runs, axis=0)[:, ::-1], axis=1)[:, ::-1]  # first <= t and last >= s
            found += covering[both] * product
        mixed = np.outer(self._sums(squares)[0], self.value)
        return np.asarray(found - mixed - mixed.T + float(squares.sum()) * np.outer(self.value, self.value))

    @property
    def _event(self) -> NDArray[np.bool_]:
        return np.asarray(self.rows.outcome[:, 0] > 0)

    @property
    def _odds(self) -> Floats:
        return self.at / (1 - self.at)

    def _between(self, value: Floats, label: NDArray[np.intp] | None = None) -> Floats:
        """Sums over the entries (of each label) that are treated by one of both probabilities only, by threshold."""
        size, group = len(self.at) + 1, 0 if label is None else label
        labels = 1 if label is None else int(label.max()) + 1
        begun, ended = (np.bincount(group * size + end, value, labels * size) for end in (self.first, self.last))
        running = np.cumsum((begun - ended).reshape(labels, size), axis=1)
        return np.asarray(running[:, np.searchsorted(np.sort(self.at), self.at)])

    def _sums(self, weight: Floats, label: NDArray[np.intp] | None = None) -> Floats:
        """Weighted gains at each threshold (columns), added up over the entries of each label (rows)."""
        signed = weight * self.sign
        return self._between(signed * self._event, label) - self._odds * self._between(signed * ~self._event, label)

    def _size(self) -> Floats:
        """The number of independent rows that say as much about each gain."""
        rows = self.rows
        effective = float(rows.weight.sum()) ** 2 / float(rows.weight_squares.sum())
        if rows.cluster is None:
            return np.full(len(self.at), effective)
        sums, total = self._cluster_sums(), float(rows.weight.sum())
        variance = np.maximum((self.share * self.factor**2).sum(axis=0) - self.value**2, 0.0)
        clustered = (sums**2).sum(axis=0) / total**2
        known = clustered > 0
        size = np.divide(variance, clustered, out=np.full(len(self.at), float(len(sums))), where=known)
        return np.asarray(np.minimum(size, effective))

    def _cluster_sums(self) -> Floats:
        """Weighted gains less their mean, added up over each cluster."""
        label = np.unique(np.asarray(self.rows.cluster), return_inverse=True)[1]
        require_clusters(int(label.max()) + 1, needed_by="miscalibration_cost")
        weight = np.bincount(label, self.rows.weight)
        return np.asarray(self._sums(self.rows.weight, label) - weight[:, None] * self.value)


@dataclass(frozen=True, eq=False)
class _Moves:
    """What treating from another score on would gain: rising scores, events and others below, and effective rows."""

    score: Floats
    events: Floats
    others: Floats
    size: float

    @classmethod
    def of(cls, data: Binary | BinTable) -> _Moves:
        """From the fine table of the rows."""
        table = Sample.of(data, needed_by="miscalibration_cost").table
        events = table.observed / table.total
        size = table.population.effective_n
        if isinstance(data, Binary) and data.group is not None:
            rows = Sample.of_rows(data)
            size /= design_effect([rows.row_share * rows.residual], rows.cluster)
        below, others = (np.append(0.0, np.cumsum(part)) for part in (events, table.share - events))
        return cls(table.predicted_mean, below, others, size)

    def limit(self, t: float, level: float) -> float:
        """The upper end of a two-sided interval of the cost at a threshold, if the curve rises."""
        return self._limit(t, int(np.searchsorted(self.score, t, side="left")), level)

    def largest(self, level: float) -> float:
        """That of the largest cost at any threshold, in units of payoffs between 0 and 1."""
        some = self.score[np.unique(np.linspace(0, len(self.score) - 1, _THRESHOLDS).astype(np.intp))]
        found = 0.0
        for t in np.append(some[(some > 0) & (some < 1)], 0.5):
            at, above = np.searchsorted(self.score, t, side="left"), np.searchsorted(self.score, t, side="right")
            for place in (int(at), int(above)):
                found = max(found, self._limit(t, place, level) * min(1.0, (1 - t) / t))
        return min(found, 1.0)

    def _limit(self, t: float, place: int, level: float) -> float:
        """If scores from this place on are treated now, over all places from which they could be."""
        z, odds, more = float(ndtri((1 + level) / 2)), t / (1 - t), self._places < place
        hits, misses = (part[place] - part[self._places] for part in (self.events, self.others))
        with_event = _wilson_reach(np.abs(hits), self.size, np.where(more, z, -z))
        without = odds * _wilson_reach(np.abs(misses), self.size, np.where(more, -z, z))
        a, b = np.abs(hits), np.abs(misses)
        shared = np.sqrt(a * b / np.maximum((1 - a) * (1 - b), 1e-300))
        reach = np.sqrt(with_event**2 + without**2 + 2 * shared * with_event * without)
        gain = np.where(self._places == place, 0.0, hits - odds * misses + reach)
        return max(float(gain.max()), 0.0)

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        return np.unique(np.linspace(0, len(self.score), _PLACES + 1).astype(np.intp))


def _wilson_reach(share: Floats, size: float, z: Floats) -> Floats:
    """The distance of Wilson's limit from a share: above it where z is positive, else below it."""
    limit = (share * size + z**2 / 2 + z * np.sqrt(share * (1 - share) * size + z**2 / 4)) / (size + z**2)
    return np.abs(limit - share)
