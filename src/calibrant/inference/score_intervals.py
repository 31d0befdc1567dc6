"""Intervals of the AUC and of mean losses that hold with few events.

A resample of rare events often has none of them, and never more kinds of them than were seen: bootstrap intervals of
few events raise an error or end too low. These count events by their distribution instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri, stdtrit

from calibrant.data import validation
from calibrant.data.predictions import Binary, Predictions
from calibrant.data.validation import fail
from calibrant.inference.sample import Sample, require_two_rows, row_losses
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate, Interval
from calibrant.results.target import Target
from calibrant.table.bintable import BinTable
from calibrant.table.task import Unlabeled, task_of

#: From this number of the rarer outcome on the spread that the rows show is trusted to be small, and losses are taken
#: to be skewed, but no longer to consist of a few.
#: Test: tests/inference/test_score_intervals.py::test_the_formulas_change_with_the_number_of_events.
TRUSTED, MANY = 30, 100

#: How many of the rarer outcome count as much as Hanley and McNeil's variance, and the largest quantile of Student's
#: distribution relative to the normal one: few placements are nearly normal, as they are means over all other rows.
#: Test: tests/inference/test_score_intervals.py::test_the_interval_of_the_auc_is_the_set_written_out.
PRIOR, LARGEST = 5.0, 2.4 / 1.96

WORDS = "independent rows (or clusters)"


def knows(target: Target | None, data: Predictions | BinTable) -> bool:
    """Whether these methods are for this target and these data: a ranking, or a mean of losses of binary rows."""
    if target is None or isinstance(task_of(data), Unlabeled) or not isinstance(data, Binary | BinTable):
        return False
    if isinstance(data, Binary) and data.label_shares is not None:
        return False
    return target.quantity == "ranking" or (target.quantity == "mean score" and target.losses is not None)


@dataclass(frozen=True)
class PlacementScore:
    r"""Score interval of the AUC: all values that its own variance does not exclude.

    .. math:: \Bigl\{a : (\hat A - a)^2 \le t^2 k\, V(a)\Bigr\}, \qquad
              V(a) = \frac{a(1-a) + (m-1)\bigl(\frac{a}{2-a} - a^2\bigr) + (n-1)\bigl(\frac{2a^2}{1+a} - a^2\bigr)}{mn}

    with V the variance of Hanley and McNeil for m events and n others,
    :math:`k = (V_{\text{DeLong}} / V(\hat A))^{f/(f+5)}` for f = min(m, n), at least 1 if f is below 30, and t the
    quantile of Student's distribution with f + 1 degrees of freedom, at most 2.4 at 95 %. The ends lie in [0, 1], and
    a sample with one event has an interval. Weights enter by effective numbers of both outcomes; clusters by DeLong's
    variance over their sums, by those that hold the rarer outcome, and by Student's quantile for their number.

    References
    ----------
    Hanley, McNeil (1982), The meaning and use of the area under a receiver operating characteristic (ROC) curve;
    DeLong, DeLong, Clarke-Pearson (1988), Comparing the areas under two or more correlated ROC curves; Obuchowski
    (1997), Nonparametric analysis of clustered ROC curve data. Coverage: reproduce/results/bands_and_scores.md.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.interval(cal.auc, [0] * 99 + [1], [k / 100 for k in range(100)])
    <AUC 1 [0.38..., 1] at 95%, n=100, exact>
    """

    serves: ClassVar[str] = "an estimate"

    def interval(self, data: Predictions | BinTable, estimate: Estimate, *, level: float = 0.95) -> Interval:
        """The interval of the AUC of `data`."""
        level = validation.fraction("level", level)
        if estimate.target is None or estimate.target.quantity != "ranking" or not knows(estimate.target, data):
            fail(f"PlacementScore is for auc of binary predictions, not for {estimate.name} of {data!r}.", TypeError)
        placed = _Placements.of(data)
        low, high = placed.limits(float(estimate), level)
        return Interval(low, high, level=level, method=repr(self), assumption=WORDS, target=estimate.target)


@dataclass(frozen=True, eq=False)
class _Placements:
    """Effective numbers of both outcomes, DeLong's variance, and the number of clusters."""

    events: float
    others: float
    variance: float
    clusters: int | None

    @classmethod
    def of(cls, data: Predictions | BinTable) -> _Placements:
        if isinstance(data, Binary) and (data.group is not None or data.weight is not None):
            return cls._of_rows(Sample.of_rows(data))
        table = Sample.of(data, needed_by="PlacementScore").table
        count = table.count.sum() / table.total * (table.total**2 / table.weight_squares.sum() / table.count.sum())
        events, others = (part * count for part in (table.observed, table.weight - table.observed))
        spread = [
            _mean_variance(other, own) for own, other in zip((events, others), _ranked(events, others), strict=True)
        ]
        return cls(float(events.sum()), float(others.sum()), float(sum(spread)), None)

    @classmethod
    def _of_rows(cls, sample: Sample) -> _Placements:
        """Rows with weights or clusters."""
        event, share, cell = sample.rows.observed > 0, sample.row_share, sample.cell
        sums = [np.bincount(cell, share * some, len(sample.table)).astype(np.float64) for some in (event, ~event)]
        above, below = _ranked(sums[0], sums[1])
        placed = np.where(event, above[cell], below[cell])
        part = share / np.where(event, sums[0].sum(), sums[1].sum())
        centre = np.where(event, part @ (placed * event), part @ (placed * ~event))
        influence = sample.by_cluster((part * (placed - centre))[:, None])[:, 0]
        mass = [sample.by_cluster((part * some)[:, None])[:, 0] for some in (event, ~event)]
        numbers = [float(1 / (one @ one)) for one in mass]
        clusters = len(influence) if sample.clusters < len(event) else None
        few = min(numbers)
        variance = float(influence @ influence) * few / max(few - 1, 0.5)
        return cls(numbers[0], numbers[1], variance, clusters)

    def limits(self, value: float, level: float) -> tuple[float, float]:
        """Both ends: the values nearest to 0 and 1 that the variance does not exclude."""
        reach = self._quantile(level) ** 2 * self._factor(value)

        def excluded(a: float) -> bool:
            return (value - a) ** 2 > reach * self.hanley_mcneil(a)

        ends = []
        for outer in (0.0, 1.0):
            near, far = value + 1e-9 * (outer - value + 2 * (0.5 - outer) * (outer == value)), outer
            for _ in range(60):
                middle = (near + far) / 2
                near, far = (near, middle) if excluded(middle) else (middle, far)
            ends.append(outer if not excluded(outer) and value == outer else far)
        return min(ends[0], value), max(ends[1], value)

    def hanley_mcneil(self, a: float) -> float:
        """The variance at an AUC of a."""
        m, n = max(self.events, 1.0), max(self.others, 1.0)
        first, second = a / (2 - a) - a * a, 2 * a * a / (1 + a) - a * a
        return (a * (1 - a) + (m - 1) * first + (n - 1) * second) / (m * n)

    def _factor(self, value: float) -> float:
        few = min(self.events, self.others)
        inside = min(max(value, 0.5 / (few + 1)), 1 - 0.5 / (few + 1))
        ratio = max(self.variance / self.hanley_mcneil(inside), 1e-3) ** (few / (few + PRIOR))
        return float(max(ratio, 1.0) if few < TRUSTED else ratio)

    def _quantile(self, level: float) -> float:
        few, z = min(self.events, self.others), float(ndtri((1 + level) / 2))
        own = min(float(stdtrit(few + 1, (1 + level) / 2)), LARGEST * z)
        return own if self.clusters is None else max(own, float(stdtrit(max(self.clusters - 1, 1), (1 + level) / 2)))


def _ranked(events: Floats, others: Floats) -> tuple[Floats, Floats]:
    """By cell, the share of others that an event there outranks, and of events that outrank one of the others there."""
    below = (np.cumsum(others) - others / 2) / others.sum()
    above = 1 - (np.cumsum(events) - events / 2) / events.sum()
    return below, above


def _mean_variance(value: Floats, count: Floats) -> float:
    """Variance of the mean of `count` values of each kind."""
    total = float(count.sum())
    mean = float(count @ value) / total
    return float(count @ (value - mean) ** 2) / total / (total - 1) if total > 1 else 0.0


@dataclass(frozen=True)
class EventLosses:
    r"""Interval of a mean loss of binary predictions that allows for the random number of the rarer outcome.

    With :math:`\ell_{0i}, \ell_{1i}` the losses of row i for both outcomes, y the rarer one and
    :math:`d_i = \max(\ell_{1i} - \ell_{0i}, 0)`, events add :math:`S = \sum_i w_i y_i d_i` with variance
    :math:`Q = \sum_i w_i^2 y_i d_i^2` to the mean. The lower limit of this part is a quantile of the gamma distribution
    with mean S and variance Q. The upper limit is a quantile of the one with mean S + u and variance Q + u₂, as for a
    Poisson count with one more event. Here u and u₂ are the weighted d and its square for a typical event: the larger
    of their mean over the events seen and their mean over rows weighted by the square root of the predicted
    probability, as if predictions were too extreme. The distances of both limits are multiplied by the square root of 1
    less the rate, and combined with z standard errors of the rest as the root of the sum of squares. From 100 events
    on, the limits are normal with Hall's correction for skewness. With clusters, their sums are the units, with
    Student's quantile. Neither end lies outside the losses that are possible with the scores of the sample.

    References
    ----------
    Fay, Feuer (1997), Confidence intervals for directly standardized rates: a method based on the gamma distribution;
    Hall (1992), On the removal of skewness by transformation. Coverage: reproduce/results/bands_and_scores.md.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.interval(cal.brier, [0] * 99 + [1], [0.01] * 100)
    <Brier score 0.0099 [0.0002..., 0.05...] at 95%, n=100, mean>
    """

    serves: ClassVar[str] = "an estimate"

    def interval(self, data: Predictions | BinTable, estimate: Estimate, *, level: float = 0.95) -> Interval:
        """The interval of the mean loss of `data`."""
        level = validation.fraction("level", level)
        wanted = estimate.target is not None and estimate.target.losses is not None and knows(estimate.target, data)
        if not wanted or not isinstance(data, Binary | BinTable):
            fail(f"EventLosses is for mean losses of binary predictions, not for {estimate.name}.", TypeError)
        require_two_rows(data)
        low, high = _Losses.of(data, estimate).limits(level)
        return Interval(low, high, level=level, method=repr(self), assumption=WORDS, target=estimate.target)


@dataclass(frozen=True, eq=False)
class _Losses:
    """Losses of rows, or of equal rows of one cell, for both outcomes; `share` is that of one such row."""

    score: Floats
    event: NDArray[np.bool_]
    less: Floats
    more: Floats
    share: Floats
    number: Floats
    cluster: NDArray[np.intp] | None

    @classmethod
    def of(cls, data: Binary | BinTable, estimate: Estimate) -> _Losses:
        cluster, number = None, None
        if isinstance(data, BinTable):
            table = Sample.of(data, needed_by="EventLosses").table
            weight = np.concatenate([table.observed, table.weight - table.observed])
            some, score = weight > 0, np.tile(np.clip(table.predicted_mean, 0.0, 1.0), 2)
            one = float(table.weight_squares.sum()) / table.total  # the weight of one row that counts
            event, share = np.repeat([True, False], len(table))[some], np.full(int(some.sum()), one / table.total)
            score, number = score[some], weight[some] / one
        else:
            sample = Sample.of_rows(data)
            score, event, share = sample.rows.predicted.astype(np.float64), sample.rows.observed > 0, sample.row_share
            cluster = sample.cluster if sample.clusters < len(event) else None
        both = [row_losses(estimate, Binary(np.full(len(score), seen), score), finite=False) for seen in (0, 1)]
        less, more = (np.zeros(0) if one is None else one for one in both)
        seen = np.where(event, more, less)
        if not np.isfinite(seen).all():
            row_losses(estimate, Binary(event, score))  # says which rows are infinite
        if float((share * (np.ones(len(share)) if number is None else number)) @ event) > 0.5:
            score, event, less, more = 1 - score, ~event, more, less
        return cls(score, event, less, more, share, np.ones(len(score)) if number is None else number, cluster)

    @cached_property
    def value(self) -> float:
        """The mean loss."""
        return float((self.number * self.share) @ self._seen)

    @cached_property
    def _seen(self) -> Floats:
        return np.where(self.event, self.more, self.less)

    def _moments(self, values: Floats) -> tuple[float, float, int]:
        """Sums of squares and of cubes of values by row or, with clusters, of their sums; the number of these."""
        if self.cluster is None:
            size = float(self.number.sum())
            return float(self.number @ values**2), float(self.number @ values**3), max(round(size), 2)
        sums = np.bincount(self.cluster, values)
        return float((sums**2).sum()), float((sums**3).sum()), max(len(sums), 2)

    def limits(self, level: float) -> tuple[float, float]:
        """Both ends, within the losses that these scores can have."""
        square, cube, units = self._moments(self.share * (self._seen - self.value))
        z = float(ndtri((1 + level) / 2)) if self.cluster is None else float(stdtrit(units - 1, (1 + level) / 2))
        variance = square * units / (units - 1)
        if float(self.number @ self.event) >= MANY:
            skewness = cube / max(square, 1e-300) ** 1.5
            shift = skewness / 6 * (1 + 2 * z * z)
            down, up = (np.sqrt(variance) * (z - side * shift) for side in (1, -1))
        else:
            down, up = self._of_few(variance, z, level)
        least, most = (pick(self.less, self.more) for pick in (np.minimum, np.maximum))
        low, high = max(self.value - down, float(least.min())), min(self.value + up, float(most.max()))
        return min(low, self.value), max(high, self.value)

    def _of_few(self, variance: float, z: float, level: float) -> tuple[float, float]:
        """Distances of both limits, from the gamma distribution of what events add and the rest."""
        risk = (1 - level) / 2
        worth = self.share * np.where(np.isfinite(self.more), np.maximum(self.more - self.less, 0.0), 0.0)
        added = worth * self.event
        squares, _, _ = self._moments(added)
        total, chance = float(self.number @ added), self.number * np.sqrt(self.score)
        chance = chance / max(float(chance.sum()), 1e-300)
        seen = self._by_event(added)
        unseen, unseen_square = (
            max(float(chance @ worth**power), float(np.mean(seen**power)) if len(seen) else 0.0) for power in (1, 2)
        )
        rate = float((self.number * self.share) @ self.event)
        apart = self.less - float((self.number * self.share) @ self.less)  # losses of the more frequent outcome
        rest = z * np.sqrt(max(variance - squares * (1 - rate), self._moments(self.share * apart)[0], 0.0))
        low = _gamma(total, squares, risk)
        high = _gamma(total + unseen, squares + unseen_square, 1 - risk)
        shrunk = np.sqrt(1 - rate)
        return float(np.hypot((total - low) * shrunk, rest)), float(np.hypot((high - total) * shrunk, rest))

    def _by_event(self, added: Floats) -> Floats:
        """What each event seen, or each cluster with events, adds."""
        if self.cluster is None:
            return np.repeat(added[self.event], np.maximum(np.rint(self.number[self.event]), 1).astype(np.intp))
        sums, has = np.bincount(self.cluster, added), np.bincount(self.cluster, self.event)
        return np.asarray(sums[has > 0])


def _gamma(mean: float, variance: float, probability: float) -> float:
    """A quantile of the gamma distribution with this mean and variance; 0 if it is zero."""
    if not (mean > 0 and variance > 0):
        return 0.0
    return variance / mean * float(gammaincinv(mean**2 / variance, probability))
