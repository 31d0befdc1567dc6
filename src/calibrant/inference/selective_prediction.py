"""Selective prediction: how the loss falls if the least confident predictions are not made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, ndtri, stdtrit

from calibrant.data import validation
from calibrant.data.predictions import Binary, Confidence, Multiclass, Predictions, binary
from calibrant.data.validation import fail
from calibrant.estimators.proper_scores import brier_losses, log_loss_losses
from calibrant.estimators.validation_study import probability_cells
from calibrant.inference.multiplicity import BandKind, check_band, pointwise_level
from calibrant.inference.reliability import clopper_pearson
from calibrant.inference.sample import require_clusters, row_clusters
from calibrant.inference.validation_intervals import WORDS
from calibrant.numerics.arrays import GRID_ROWS, Floats
from calibrant.numerics.confidence_limits import gamma_interval, mid_p_interval
from calibrant.results.estimate import Estimate, Interval, plain_fields
from calibrant.results.target import Target
from calibrant.table.bintable import BinTable, Data

Numbers = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class OrderedLosses:
    """Entries by falling confidence; `ends` are the last of each run, `squares` sums of squared weights."""

    confidence: Floats
    loss: Floats
    weight: Floats
    squares: Floats
    cluster: Numbers | None
    ends: Numbers

    @classmethod
    def of(
        cls, confidence: Floats, loss: Floats, weight: Floats, squares: Floats, cluster: Numbers | None = None
    ) -> OrderedLosses:
        """From entries in any order; those without weight are left out."""
        order = np.argsort(-confidence, kind="stable")
        order = order[weight[order] > 0]
        c = confidence[order]
        ends = np.append(np.flatnonzero(c[1:] != c[:-1]), len(c) - 1)
        return cls(c, loss[order], weight[order], squares[order], None if cluster is None else cluster[order], ends)

    @cached_property
    def unit(self) -> float:
        """The factor that makes weights add up to Kish's number of rows."""
        return float(self.weight.sum() / self.squares.sum())

    @cached_property
    def running(self) -> Floats:
        """Weight of the entries up to the end of each run."""
        return np.cumsum(self.weight)[self.ends]

    @cached_property
    def risk(self) -> Floats:
        """Mean loss up to the end of each run."""
        return np.asarray(np.cumsum(self.weight * self.loss)[self.ends] / self.running)

    @cached_property
    def run(self) -> Numbers:
        """The run of each entry."""
        return np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=-1))

    def ideal(self) -> OrderedLosses:
        """The same losses in the ideal order: the smallest first."""
        return OrderedLosses.of(-self.loss, self.loss, self.weight, self.squares, self.cluster)

    def area(self) -> float:
        """Mean over rows of the risk up to each, with the rows of a run sharing their loss equally."""
        total = np.diff(self.running, prepend=0.0) * self.unit
        sums = np.diff(self.running * self.risk, prepend=0.0) * self.unit
        before, losses = np.cumsum(total) - total, np.cumsum(sums) - sums
        rate = sums / total
        steps = digamma(before + total + 1) - digamma(before + 1)  # the sum of 1 / k over the rows of the run
        return float((rate * total + (losses - rate * before) * steps).sum() / total.sum())

    def area_influence(self) -> Floats:
        r"""By how much the area changes with the weight of each entry, per weight: a derivative of its sums.

        With r the risk and G the coverage at a confidence c, and C the confidence of another row,

        .. math:: \psi_i = r(c_i) - \mathrm{AURC} + E_C\Bigl[\mathbf 1\{c_i \ge C\}\, \frac{\ell_i - r(C)}{G(C)}\Bigr].
        """
        mass = np.diff(self.running, prepend=0.0) * self.unit
        sums = np.diff(self.running * self.risk, prepend=0.0) * self.unit
        end = np.cumsum(mass)
        before, losses, rate = end - mass, np.cumsum(sums) - sums, sums / mass
        steps = np.log((end + 0.5) / (before + 0.5))
        ahead = losses - rate * before  # what the losses before a run exceed its own rate by
        # An entry moves the runs after its own: their beginning, and the losses before them.
        linear = _after(steps)
        constant = _after(rate * steps + ahead * (1 / (before + 0.5) - 1 / (end + 0.5)))
        own = ahead / (end + 0.5) + rate * before * steps / mass
        slope = 1 - before * steps / mass + linear
        mean = float((sums + ahead * steps).sum() / end[-1])
        return np.asarray(self.loss * slope[self.run] + (own - constant - mean)[self.run])

    def largest_part(self) -> float:
        """The largest part of the area that one entry (or cluster) has: its loss by the mean of 1 / k from it on."""
        each = np.diff(self.running, prepend=0.0) / self.running
        parts = self.loss * np.cumsum(each[::-1])[::-1][self.run] / float(self.weight.sum())
        if self.cluster is None:
            return float((parts * np.minimum(self.weight, self.squares / self.weight)).max())
        return float(np.bincount(self.cluster, parts * self.weight).max())

    def variances(self, runs: Any) -> tuple[Floats, Floats]:
        """Variances of the risks at the ends of some runs, and the number of rows or clusters that carry each."""
        if self.cluster is not None:
            sums = self.cluster_sums(runs) ** 2
            squares, fourth = sums.sum(axis=0), np.einsum("cr,cr->r", sums, sums)
            carrying = np.divide(squares**2, fourth, out=np.ones_like(squares), where=fourth > 0)
            return squares / self.running[runs] ** 2, carrying
        at, risk = self.ends[runs], self.risk[runs]
        quadratic, linear, plain = (np.cumsum(self.squares * self.loss**k)[at] for k in (2, 1, 0))
        spread = np.maximum(quadratic - 2 * risk * linear + risk**2 * plain, 0.0)
        size = self.running[runs] ** 2 / plain
        return spread / self.running[runs] ** 2 * size / np.maximum(size - 1, 1e-9), size

    def clusters_up_to(self, runs: Any) -> Numbers:
        """The number of clusters that have entries up to the end of some runs."""
        label = np.zeros(0, np.intp) if self.cluster is None else self.cluster
        first = np.sort(np.unique(label, return_index=True)[1])
        return np.searchsorted(first, self.ends[runs], side="right")

    def cluster_sums(self, runs: Any) -> Floats:
        """Sums over each cluster (line) of loss less risk, up to the end of some runs (columns)."""
        label = np.zeros(0, np.intp) if self.cluster is None else self.cluster
        number = int(label.max()) + 1
        losses, weights = np.zeros(number), np.zeros(number)
        found, start = np.empty((number, len(runs))), 0
        for k, run in enumerate(runs):
            some = slice(start, int(self.ends[run]) + 1)
            losses += np.bincount(label[some], (self.weight * self.loss)[some], number)
            weights += np.bincount(label[some], self.weight[some], number)
            found[:, k], start = losses - self.risk[run] * weights, some.stop
        return found

    def covariance(self, runs: Any) -> Floats:
        """How the risks at the ends of some runs vary together."""
        weight = self.running[runs]
        if self.cluster is not None:
            sums = self.cluster_sums(runs) / weight
            return np.asarray(sums.T @ sums)
        at, risk = self.ends[runs], self.risk[runs]
        first = np.minimum.outer(at, at)
        quadratic, linear, plain = (np.cumsum(self.squares * self.loss**k)[first] for k in (2, 1, 0))
        products = quadratic - np.add.outer(risk, risk) * linear + np.outer(risk, risk) * plain
        return np.asarray(products / np.outer(weight, weight))

    def smoothed_covariance(self, runs: Any) -> Floats:
        """The same with one more loss anywhere in the order: before the first loss, risks would not vary without it."""
        weight = self.running[runs]
        variance, carrying = self.variances([len(self.ends) - 1])
        parts = self.squares * (self.loss - self.risk[-1]) ** 2
        if self.cluster is None:
            carrying = parts.sum() ** 2 / max(float(parts @ parts), 1e-300)
        one = float(variance[0]) / max(float(np.squeeze(carrying)), 1.0) or 1.0
        alike = np.minimum.outer(weight, weight) / np.outer(weight, weight) * weight[-1]
        return self.covariance(runs) + one * alike

    def spread(self, influence: Floats) -> tuple[float, float]:
        """Standard error of a mean with this influence, and the number of rows or clusters that carry it."""
        total = float(self.weight.sum())
        if self.cluster is None:
            size = total * self.unit
            variance = float((self.squares * influence**2).sum()) * size / max(size - 1, 1e-9)
            return float(np.sqrt(variance)) / total, size
        parts = np.bincount(self.cluster, self.weight * influence)
        square, number = float(parts @ parts), len(parts)
        carrying = square**2 / float((parts**4).sum()) if square > 0 else 1.0
        return float(np.sqrt(square * number / max(number - 1, 1))) / total, max(carrying, 1.0)


def _after(values: Floats) -> Floats:
    """Sums of all later values."""
    return np.asarray(np.cumsum(values[::-1])[::-1] - values)


Loss = Literal["error", "brier", "log_loss"]

#: The most points of a curve that are returned, each with its interval; the areas are of all rows.
#: Test: tests/inference/test_selective_prediction.py::test_many_rows_have_a_curve_of_at_most_1000_points.
MOST_POINTS = 1000

#: The part of the area, times the number of rows, that an error at a random place in the order has: its mean by size.
#: Derived: at place u it is x = -log u, an exponential variable, with E x^2 / E x = 2.
_TYPICAL_PART = 2.0

#: Probabilities are at least this in a log loss. Derived: the smallest normal number.
_TINY = np.finfo(np.float64).tiny

#: Points from which it is seen how the risks vary together.
#: Test: tests/inference/test_selective_prediction.py::test_a_hundred_points_are_enough_for_a_simultaneous_band.
_BAND_POINTS = 100


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Mean loss of the predictions that are made, against the share that is made; from `risk_coverage`.

    Attributes
    ----------
    confidence : array, descending
        Predictions of at least this confidence are made. At most 1000 points of the curve are given; the areas are of
        all rows.
    coverage, risk, low, high : arrays
        The share that is made, their mean loss, and its interval, pointwise or simultaneous as `band` says.
    aurc, excess : Estimate
        Area under the curve, and by how much it exceeds the area for the ideal order of the same losses, with their
        intervals.
    ideal : float
        The area of the ideal order.

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
    aurc: Estimate
    excess: Estimate
    ideal: float
    level: float
    n: int
    loss: str = "error"
    band: BandKind = "pointwise"

    def __repr__(self) -> str:
        return f"<RiskCoverage, AURC {self.aurc.value:.4g}, excess {self.excess.value:.4g}, n={self.n:_}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON; an end that is not limited is None."""
        return plain_fields(self)

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the curve with its band (needs matplotlib)."""
        from calibrant.plot.validation import risk_coverage_diagram

        return risk_coverage_diagram(self, ax=ax, **style)


def risk_coverage(
    data: Data,
    y_prob: ArrayLike | None = None,
    /,
    *,
    loss: Loss | ArrayLike = "error",
    confidence: ArrayLike | None = None,
    level: float = 0.95,
    band: BandKind = "pointwise",
) -> RiskCoverage:
    r"""Risk-coverage curve: the mean loss of the most confident predictions, for each share of them.

    By default the loss is 1 if the more probable class (the event at 1/2) is wrong, and the confidence is its
    probability, max(p, 1 - p). For `Confidence` the loss is 1 for a wrong answer, and rows are ordered by the
    confidence itself. With rows in order of decreasing confidence,

    .. math:: \mathrm{AURC} = \frac1n \sum_{k=1}^n \frac1k \sum_{i \le k} \ell_i

    and `excess` is its distance from the ideal order, in which the largest losses come last. Rows of equal confidence
    are never split: each counts with their mean loss.

    Intervals of risks are for a confidence fixed in advance: for losses of 0 and 1 mid-P intervals of a share, else
    Student's, which needs several rows. With ``band="simultaneous"`` they are exact instead of mid-P, at the higher
    level at which all hold at once. The areas of losses that are not negative have intervals by gamma distributions,
    which allow for one more loss than was seen where losses are few, and so are valid with few errors or none (Fay,
    Feuer 1997); others have Student's with the delta method. Weights count by Kish's number of rows. With a group the
    spread is that between groups.

    Parameters
    ----------
    data : Binary, Confidence, Multiclass, fine BinTable, or y_true
        Any predictions, of a number too, where `loss` and `confidence` are arrays.
    loss : {"error", "brier", "log_loss"} or array-like
        Or your own loss of each row.
    confidence : array-like, optional
        The confidence of each row, if it is not the probability of the predicted class. Rows with larger values come
        first.
    level : float in (0, 1)
    band : {"pointwise", "simultaneous"}

    References
    ----------
    El-Yaniv, Wiener (2010), On the Foundations of Noise-free Selective Classification; Geifman, Uziel, El-Yaniv (2019),
    Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers; Fay, Feuer (1997), Confidence intervals for
    directly standardized rates: a method based on the gamma distribution.

    Examples
    --------
    >>> risk_coverage([1, 0, 1, 0], [0.9, 0.2, 0.3, 0.4])  # the third is wrong: (0 + 0 + 1/3 + 1/4) / 4
    <RiskCoverage, AURC 0.1458, excess 0.08333, n=4>
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> sigma = rng.uniform(0.5, 2, 400)
    >>> y = rng.normal(0, sigma)
    >>> curve = risk_coverage(cal.Gaussian(y, np.zeros(400), sigma), loss=np.abs(y), confidence=-sigma)
    >>> bool(curve.risk[99] < curve.risk[-1])
    True
    """
    level, band = validation.fraction("level", level), check_band(band)
    task = data if isinstance(data, BinTable) else binary(data, y_prob)
    name = loss if isinstance(loss, str) else "given"
    entries = _entries(task, loss, confidence)
    if entries.cluster is not None:
        require_clusters(int(entries.cluster.max()) + 1, needed_by="risk_coverage")
    shown = _shown(entries.running)
    each = level
    if band == "simultaneous":
        # Risks decorrelate with the ratio of their coverages, so that points are spaced by it.
        places = np.unique(np.geomspace(1, len(shown), _BAND_POINTS).round().astype(np.intp)) - 1
        each = pointwise_level(entries.smoothed_covariance(shown[places]), level)
    low, high = _limits(entries, shown, each, exact=band == "simultaneous")
    n = task.n if isinstance(task, BinTable) else len(task)
    ideal = entries.ideal()
    area, best = entries.area(), ideal.area()
    aurc = _area_estimate("AURC", area, entries, entries.area_influence(), level, n)
    excess_influence = entries.area_influence()
    excess_influence[np.argsort(entries.loss, kind="stable")] -= ideal.area_influence()
    excess = _area_estimate("Excess AURC", area - best, entries, excess_influence, level, n)
    coverage, risk = entries.running[shown] / entries.running[-1], entries.risk[shown]
    points = entries.confidence[entries.ends[shown]], coverage, risk, low, high
    return RiskCoverage(*points, aurc, excess, best, level, n, name, band)


def _shown(running: Floats) -> Numbers:
    """All points of the curve, or of many those next to equally spaced coverages."""
    if len(running) <= MOST_POINTS:
        return np.arange(len(running))
    wanted = running[-1] * np.arange(1, MOST_POINTS + 1) / MOST_POINTS
    return np.unique(np.minimum(np.searchsorted(running, wanted), len(running) - 1))


def _entries(task: Predictions | BinTable, loss: Loss | ArrayLike, confidence: ArrayLike | None) -> OrderedLosses:
    if isinstance(loss, str) and loss not in get_args(Loss):
        fail(f"loss must be 'error', 'brier', 'log_loss' or an array, got {loss!r}.", ValueError)
    if isinstance(task, BinTable):
        if not isinstance(loss, str) or confidence is not None:
            fail("A table has no rows for the loss or the confidence of each; pass the predictions.")
        return _table_entries(task, loss)
    n = len(task)
    task.require_same_rows(confidence=confidence, loss=loss)
    plain = isinstance(task, Binary) and task.weight is None and task.group is None
    if plain and n > GRID_ROWS and isinstance(loss, str) and confidence is None:
        return _table_entries(task, loss)  # counted on a grid far finer than the points that are shown
    given = None if confidence is None else _numbers("confidence", confidence, n)
    losses = None if isinstance(loss, str) else _numbers("loss", loss, n)
    if losses is None or given is None:
        own, of_class = _class_losses(task, loss if isinstance(loss, str) else "error")
        given, losses = own if given is None else given, of_class if losses is None else losses
    weight = np.ones(n) if task.weight is None else task.weight
    return OrderedLosses.of(given, losses, weight, weight**2, row_clusters(task, n))


def _numbers(name: str, values: ArrayLike, n: int) -> Floats:
    return np.asarray(validation.column(name, values, length=n), dtype=np.float64)


def _class_losses(task: Predictions, loss: str) -> tuple[Floats, Floats]:
    """Confidence and loss of each row of class probabilities."""
    if not isinstance(task, Binary | Multiclass):
        fail(f"risk_coverage needs loss and confidence of each row (arrays) for {task!r}.")
    top = task.top_label() if isinstance(task, Multiclass) else task
    if isinstance(top, Confidence):
        confidence, wrong = top.confidence.astype(np.float64), 1 - top.correct.astype(np.float64)
    else:
        p = task.y_prob.astype(np.float64)
        confidence, wrong = np.maximum(p, 1 - p), _loss("error", p, task.y_true)
    if loss == "error":
        return _rounded(confidence), wrong
    losses = brier_losses(task) if loss == "brier" else log_loss_losses(task, floor=_TINY)
    return _rounded(confidence), losses


def _table_entries(task: Predictions | BinTable, loss: str) -> OrderedLosses:
    """Two entries per cell: its events and its other rows."""
    cells = probability_cells(task, None, needed_by="risk_coverage")
    p = np.where(cells.low == cells.high, cells.low, cells.predicted_mean)
    sure = isinstance(task, Confidence)
    confidence = _rounded(p if sure else np.maximum(p, 1 - p))
    said = np.ones(len(p)) if sure and loss == "error" else p  # an answer is an error unless it is right
    losses = [_loss(loss, said, np.full(len(p), outcome)) for outcome in (1, 0)]
    weight = [cells.observed, np.maximum(cells.weight - cells.observed, 0.0)]
    squares = [cells.observed_squares, np.maximum(cells.weight_squares - cells.observed_squares, 0.0)]
    return OrderedLosses.of(*(np.concatenate(x) for x in ([confidence, confidence], losses, weight, squares)))


def _loss(loss: str, p: Floats, y: ArrayLike) -> Floats:
    """The loss of predictions of an event with these outcomes."""
    happened = np.asarray(y) > 0
    if loss == "error":
        return np.asarray((p >= 0.5) != happened, dtype=np.float64)
    if loss == "brier":
        return np.asarray((p - happened) ** 2)
    return -np.log(np.maximum(np.where(happened, p, 1 - p), _TINY))


def _rounded(confidence: Floats) -> Floats:
    return np.round(confidence, 12)  # 0.9 and 1 - 0.1 are one confidence


def _limits(entries: OrderedLosses, shown: Numbers, level: float, *, exact: bool) -> tuple[Floats, Floats]:
    risk = entries.risk[shown]
    variance, carrying = entries.variances(shown)
    if np.isin(entries.loss, (0.0, 1.0)).all():
        risk = np.clip(risk, 0.0, 1.0)
        size = entries.running[shown] ** 2 / np.cumsum(entries.squares)[entries.ends[shown]]
        if entries.cluster is not None:
            size = size / _design_effect(entries, shown, risk * (1 - risk), variance, size)
        events = risk * size
        return clopper_pearson(events, size, (1 - level) / 2) if exact else mid_p_interval(events, size, level)
    reach = stdtrit(np.maximum(carrying - 1, 1e-9), (1 + level) / 2) * np.sqrt(variance)
    reach = np.where(carrying >= 2 - 1e-9, reach, np.inf)
    least = 0.0 if entries.loss.min() >= 0 else -np.inf
    return np.maximum(risk - reach, least), risk + reach


def _design_effect(entries: OrderedLosses, shown: Numbers, own: Floats, variance: Floats, size: Floats) -> Floats:
    """By how much clusters raise the variance of each risk: no less than that of the last, which is of all rows.

    Where all losses are the same, clusters count as one row each.
    """
    known = (variance > 0) & (own > 0)
    effect = np.divide(variance * size, own, out=size / entries.clusters_up_to(shown), where=known)
    return np.maximum(effect, max(float(effect[-1]), 1.0) if known[-1] else 1.0)


def _area_estimate(
    name: str, value: float, entries: OrderedLosses, influence: Floats, level: float, n: int
) -> Estimate:
    target = Target("risk-coverage area")
    low, high, method = _area_limits(max(value, 0.0) if name != "AURC" else value, entries, influence, level)
    interval = Interval(low, high, level=level, method=method, assumption=WORDS, target=target)
    return Estimate(value, name=name, method="rows of equal confidence together", n=n, target=target, interval=interval)


def _area_limits(value: float, entries: OrderedLosses, influence: Floats, level: float) -> tuple[float, float, str]:
    """Both ends, and the name of the method."""
    error, carrying = entries.spread(influence)
    probability = (1 + level) / 2
    student = float(stdtrit(max(carrying - 1, 1e-9), probability)) if carrying >= 2 - 1e-9 else np.inf
    if entries.loss.min() < 0:
        return value - student * error, value + student * error, "delta method"
    units = float(entries.weight.sum()) * entries.unit  # rows, among which a loss would be one more
    if entries.cluster is not None and not entries.loss.any():  # nothing is known within clusters
        units = min(units, float(entries.clusters_up_to([-1])[0]))
    zero_one = np.isin(entries.loss, (0.0, 1.0)).all()
    step = max(entries.largest_part(), _TYPICAL_PART / units if zero_one else 0.0)
    if np.isinf(student):
        return 0.0, 1.0 if zero_one else np.inf, "gamma distribution"
    low, high = gamma_interval(value, (error * student / float(ndtri(probability))) ** 2, step, level)
    return low, min(high, 1.0) if zero_one else high, "gamma distribution"
