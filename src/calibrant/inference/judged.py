"""Intervals, groups and comparisons of judged data: few gold labels, a judge's score of every row.

All of them use rectified outcomes m + w (gold - m), m being the recalibrated judge: their mean at every score is that
of gold whatever the judge. docs/evidence/labels.md has the measured coverage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from calibrant.data.judged import Judged
from calibrant.data.validation import fail
from calibrant.estimators.recommended import averaged_error
from calibrant.estimators.validation_study import calibration_slope
from calibrant.inference.groupings import GroupEvidence, Grouping
from calibrant.inference.inversion.binary import Inversion, assumption
from calibrant.inference.multiplicity import holm
from calibrant.inference.multiscale import MultiScale
from calibrant.inference.sample import row_clusters
from calibrant.inference.validation_intervals import ProfileLikelihood
from calibrant.numerics.arrays import Codes, Floats, expit, log_odds
from calibrant.numerics.binary_inversion import Limits
from calibrant.numerics.cells import FEW_EVENTS, MOST_CLUSTERS, FineSample, PooledCells
from calibrant.numerics.logistic.binary import affine, logistic_fit
from calibrant.numerics.random_draws import generator
from calibrant.results.estimate import Component, Estimate, Interval, Side, Significance
from calibrant.results.target import Target, declared_by, name_of

#: With fewer labelled clusters no calibration error is stated.
#: Test: tests/inference/test_judged.py::test_fewer_than_twenty_labelled_groups_state_no_error.
FEWEST_CLUSTERS = 20

#: Shares of the level that the parts of the test of judged data have. Derived: half for the shape, whose interval
#: leaves out less than that, and the rest for level and slope alike.
SHARES = {"level": 0.25, "slope": 0.25, "shape": 0.5}

#: Log odds by which the recalibrated judge is shifted at most; beyond, a mean is 0 or 1.
#: Derived: expit(-40) is 4e-18, which is nothing beside any mean of rows.
FARTHEST = 40.0


class Ends(NamedTuple):
    """An estimate and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class RectifiedMean:
    r"""Score interval of the mean of gold, or of its ratio to the mean of `unit`.

    A value v is kept if the mean of the rectified outcomes differs from it by at most

    .. math:: \max\bigl(z \sqrt{V_{model}(v)},\; t \sqrt{V_{squares}(v)}\bigr),

    where :math:`V_{model}` is what gold labels drawn from the recalibrated judge, its log odds shifted until its mean
    is v, would vary by (times the design effect of clusters), and :math:`V_{squares}` the sum over clusters of squared
    :math:`\sum (\tilde y - v)`. Fifty agreements of fifty leave no squares, but up to six percent of disagreement is
    possible: the first term knows that. Without a judge it is Wilson's interval.
    """

    m: Floats
    weight: Floats
    gold: Floats
    cluster: Codes | None
    unit: Floats

    @classmethod
    def of(cls, data: Judged, unit: Floats | None = None) -> RectifiedMean:
        """Of all rows of `data`, labelled rows standing for all of them."""
        require_gold(data)
        weight = data.label_weight * (len(data) / data.label_weight.sum())
        unit = np.ones(len(data)) if unit is None else unit
        return cls(data.forecast, weight, np.nan_to_num(data.gold), row_clusters(data, len(data)), unit)

    @cached_property
    def residual(self) -> Floats:
        """The weighted distance of gold from the recalibrated judge; 0 without gold."""
        return self.weight * (self.gold - self.m)

    @cached_property
    def mean(self) -> float:
        """The mean of the rectified outcomes."""
        return float((self.m + self.residual).mean())

    @property
    def value(self) -> float:
        """The estimate: a mean in [0, 1], or a ratio of means."""
        return min(max(self.mean, 0.0), 1.0) / self._scale

    @cached_property
    def influence(self) -> Floats:
        """What each cluster adds to the error of the estimate."""
        ratio = self.mean / self._scale
        return self._by_cluster(self.m + self.residual - ratio * self.unit) / (len(self.m) * self._scale)

    def ends(self, level: float) -> Ends:
        """The estimate with its interval."""
        start = self._shift_to(self.mean)
        low, high = (self._end(start, sign, level) / self._scale for sign in (-1, 1))
        return Ends(self.value, min(low, self.value), max(high, self.value))

    def p_value(self, value: float) -> float:
        """The smallest significance at which an interval leaves out a value of the ratio."""
        shift = self._shift_to(value * self._scale)
        by_model, by_squares, mean = self._variances(shift)
        distance = abs(self.mean - mean)
        if distance == 0:
            return 1.0
        likely = 2 * ndtr(-distance / np.sqrt(by_model)) if by_model > 0 else 0.0
        seen = 2 * stdtr(self._freedom, -distance / np.sqrt(by_squares)) if by_squares > 0 else 0.0
        return float(max(likely, seen))

    def _end(self, start: float, sign: int, level: float) -> float:
        """The mean at the shift beyond which values are rejected; 0 or 1 if none is."""
        z, t = float(ndtri((1 + level) / 2)), float(stdtrit(self._freedom, (1 + level) / 2))

        def excess(shift: float) -> float:
            by_model, by_squares, mean = self._variances(shift)
            return abs(self.mean - mean) - max(z * np.sqrt(by_model), t * np.sqrt(by_squares))

        inside, step = start, 0.25
        while abs(inside) <= FARTHEST or sign * inside < 0:
            outside = inside + sign * step
            if excess(outside) > 0:
                if excess(inside) > 0:  # only where the rectified mean lies beyond 0 or 1
                    inside, step = outside, 2 * step
                    continue
                return self._variances(float(brentq(excess, inside, outside, xtol=1e-6)))[2]
            inside, step = outside, 2 * step
        return 0.0 if sign < 0 else 1.0

    def _shift_to(self, mean: float) -> float:
        """The shift of the log odds at which the mean of the judge is this."""
        if not 0 < mean < 1:
            return -FARTHEST if mean <= 0 else FARTHEST
        found = brentq(lambda shift: float(expit(self._odds + shift).mean()) - mean, -FARTHEST, FARTHEST, xtol=1e-9)
        return float(found)

    def _variances(self, shift: float) -> tuple[float, float, float]:
        """The two variances of the mean if the judge is right after this shift, and its mean."""
        m, at = expit(self._odds + shift), self._labelled
        mean, n = float(m.mean()), len(self.m)
        ratio = mean / self._scale
        spread = self._by_cluster(m - ratio * self.unit)
        by_model = self._design_effect * float(self.weight[at] ** 2 @ (m[at] * (1 - m[at]))) + float(spread @ spread)
        outcome, cross, unit = self._squares
        return by_model / n**2, max(outcome - 2 * ratio * cross + ratio**2 * unit, 0.0) / n**2, mean

    @cached_property
    def _odds(self) -> Floats:
        return log_odds(self.m)

    @cached_property
    def _labelled(self) -> Codes:
        return np.flatnonzero(self.weight)

    @cached_property
    def _scale(self) -> float:
        return float(self.unit.mean())

    @cached_property
    def _freedom(self) -> float:
        at = self._labelled
        return max(float(len(at) if self.cluster is None else len(np.unique(self.cluster[at]))) - 1, 1.0)

    @cached_property
    def _design_effect(self) -> float:
        alone = float(self.residual @ self.residual)
        together = self._by_cluster(self.residual)
        return max(1.0, float(together @ together) / alone) if alone > 0 else 1.0

    @cached_property
    def _squares(self) -> tuple[float, float, float]:
        """Sums over clusters of squares and products of rectified outcomes and units."""
        outcome, unit = self._by_cluster(self.m + self.residual), self._by_cluster(self.unit)
        return float(outcome @ outcome), float(outcome @ unit), float(unit @ unit)

    def _by_cluster(self, values: Floats) -> Floats:
        return values if self.cluster is None else np.bincount(self.cluster, values).astype(np.float64)


def require_gold(data: Judged) -> None:
    """Refuse rows without any gold label."""
    if not data.known.any():
        fail("None of these rows has a gold label, so nothing is known about them: label some, see data.next_labels.")


def rarer_labels(data: Judged) -> float:
    """Kish's number of gold labels of the rarer outcome."""
    weight, gold = data.label_weight[data.known], data.gold[data.known]
    share = float(weight @ gold) / weight.sum()
    return min(share, 1 - share) * weight.sum() ** 2 / float(weight @ weight)


def _words(data: Judged, *more: str) -> str:
    """What must hold for an interval to cover."""
    drawn = "with the probabilities that weight says" if data.sampled else "at random, all with the same probability"
    rows = "independent rows" if data.group is None else "independent clusters of rows"
    return "; ".join([f"rows were chosen to be labelled {drawn}", rows, *more])


class _Found(NamedTuple):
    """What an estimator of judged data comes to."""

    name: str
    method: str
    ends: Ends
    assumption: str
    how: str
    side: Side = "two-sided"


def _mean(data: Judged, target: Target, level: float) -> _Found:
    """The accuracy, or its ratio to the mean confidence."""
    unit = data.y_prob.astype(np.float64) if target.quantity != "accuracy" else None
    if unit is not None and not unit.any():
        fail("observed_expected needs confidences above 0, but p is 0 in all rows: nothing is expected to be right.")
    name = "Accuracy" if unit is None else "O:E ratio"
    return _Found(name, "", RectifiedMean.of(data, unit).ends(level), _words(data), "RectifiedMean()")


_ALONE = f"fewer than {FEW_EVENTS:g} gold labels of the rarer outcome, so the gold labels alone"


def _slope(data: Judged, target: Target, level: float) -> _Found:
    r"""Root of :math:`\sum (\tilde y - \operatorname{expit}(a + b z)) (1, z)`, z the log odds, with a sandwich (HC3).

    The variance is at least what the recalibrated judge expects. With few labels of the rarer outcome, and in clusters,
    where a judge gains nothing, the gold labels alone are used.
    """
    require_gold(data)
    data, name = _inside(data), "Calibration slope"
    line = _sandwich(data)
    if line is None:
        alone, how = data.labelled(), ProfileLikelihood()
        estimate = calibration_slope(alone)
        found = how.interval(alone, estimate, level=level)
        ends = Ends(float(estimate), found.low, found.high)
        why = _ALONE if data.group is None else "the gold labels alone, since rows are clustered"
        return _Found(name, why, ends, _words(data, found.assumption), repr(how), found.side)
    value, error, freedom = line
    half = float(stdtrit(freedom, (1 + level) / 2)) * error
    return _Found(name, "", Ends(value, value - half, value + half), _words(data), "RectifiedSlope()")


def _inside(data: Judged) -> Judged:
    """The rows whose p has log odds."""
    inside = (data.y_prob > 0) & (data.y_prob < 1)
    if not (inside & data.known).any():
        fail("calibration_slope needs gold labels of rows whose p lies strictly between 0 and 1, but there are none.")
    return data if inside.all() else data.take(inside)


def _sandwich(data: Judged) -> tuple[float, float, float] | None:
    """The slope of the rectified outcomes, its standard error and degrees of freedom; None for that of gold alone."""
    mean, p = RectifiedMean.of(data), data.y_prob.astype(np.float64)
    if data.group is not None or rarer_labels(data) < FEW_EVENTS or bool(np.ptp(p) == 0):
        return None
    outcome, x = mean.m + mean.residual, affine(log_odds(p))
    fit = logistic_fit(x, weight=np.ones(len(p)), positive=outcome, start=np.array([0.0, 1.0]))
    fitted = expit(x @ fit.coefficients)
    variance = fitted * (1 - fitted)
    inverse = np.linalg.inv((x * variance[:, None]).T @ x)
    direction = x @ inverse[1]
    leverage = mean.weight * variance * ((x @ inverse) * x).sum(axis=1)
    score = mean._by_cluster((outcome - fitted) * direction) / (1 - np.minimum(mean._by_cluster(leverage), 0.8))
    # what the recalibrated judge expects, where few labels happen to show less; and how many clusters it comes from
    expected = mean._by_cluster(mean.weight**2 * mean.m * (1 - mean.m) * direction**2)
    spread = mean._by_cluster((mean.m - fitted) * direction)
    by_model = mean._design_effect * float(expected.sum()) + float(spread @ spread)
    clusters = mean._freedom + 1
    squares = max(float(score @ score), by_model) * clusters / max(clusters - 2, 1.0)
    carrying = float(expected.sum()) ** 2 / float(expected @ expected)
    return float(fit.coefficients[1]), float(np.sqrt(squares)), max(min(clusters - 2, carrying), 1.0)


def _error(data: Judged, target: Target, level: float) -> _Found:
    """The true error by inversion, whose noise is that of the rectified outcomes."""
    require_gold(data)
    norm = 2.0 if target.norm == "squared" else target.norm
    if not isinstance(norm, float) or not np.isfinite(norm):
        fail(f"Of Judged data errors are known in finite norms, not in norm {target.norm!r}.", ValueError)
    cluster = row_clusters(data, len(data))
    labelled = int(data.known.sum()) if cluster is None else len(np.unique(cluster[data.known]))
    method, how = Inversion(), f"{Inversion()!r}"
    if labelled < FEWEST_CLUSTERS:
        p = data.y_prob.astype(np.float64)
        most = float((np.maximum(p, 1 - p) ** norm).mean() ** (1 / norm))
        said = f"nothing: of {labelled} labelled rows or clusters no error is stated, so all are possible"
        ends, words, about = Ends(np.nan, 0.0, most), said, f"fewer than {FEWEST_CLUSTERS} labels"
    elif rarer_labels(data) < FEW_EVENTS:
        alone = data.labelled()
        found = method.interval(alone, norm=norm, level=level)
        value = float(averaged_error(alone, norm=norm)) if norm <= 2 else np.nan
        ends, words, about = Ends(value, *found), _words(data, found.assumption), _ALONE
    else:
        limits = Limits.of(_fine_sample(data, cluster), method.draws, method.seed, norms=(norm,), level=level)
        ends = Ends(limits.middle(norm), limits.lower(norm), limits.upper(norm))
        words, about = _words(data, *assumption(limits, norm).split("; ")[1:]), ""
    if target.norm == "squared":
        ends = Ends(*(end**2 for end in ends))
    return _Found(f"Calibration error ({str(target).rpartition('(')[2]}", about, ends, words, how)


def _fine_sample(data: Judged, cluster: Codes | None) -> FineSample:
    """Cells of the scores with rectified outcomes; labelled clusters, with some of the others, are what varies."""
    mean, n = RectifiedMean.of(data), len(data)
    outcome, p = mean.m + mean.residual, data.y_prob.astype(np.float64)
    key, cell = np.unique(p, return_inverse=True)
    rows = np.bincount(cell).astype(np.float64)
    sums = np.stack([rows, rows, rows, rows * key, np.bincount(cell, outcome)])
    x = affine(log_odds(np.clip(p, 1e-6, 1 - 1e-6)))
    line = expit(x @ logistic_fit(x, weight=np.ones(n), positive=mean.m, start=np.array([0.0, 1.0])).coefficients)
    away = mean._by_cluster(outcome - line)
    effect = max(1.0, float(away @ away) / max(float(line @ (1 - line)), 1e-6))
    cells = PooledCells.fine(sums, design_effect=effect)
    unit, size = _units(data.known, cluster), len(cells.share)
    units, number = int(unit.max()) + 1, cells.number[cell]
    weight, events = (
        np.bincount(unit * size + number, values, units * size).reshape(units, size) / n
        for values in (np.ones(n), outcome)
    )
    more = _unseen_noise(mean, number, size)
    if more is not None:  # in pairs of units that cancel
        events = np.vstack([events, more, -more])
        weight = np.vstack([weight, np.zeros((2 * size, size))])
    return FineSample(cells, weight, events)


def _unseen_noise(mean: RectifiedMean, number: Codes, size: int) -> Floats | None:
    """By cell, the noise that the judge expects of gold labels and that few of them happen not to show; or None."""
    at = mean._labelled
    m, square = mean.m[at], mean.weight[at] ** 2
    expected, shown = square * m * (1 - m), square * (mean.gold[at] - m) ** 2
    if expected.sum() <= shown.sum():
        return None
    unseen = np.bincount(number[at], expected, size) * (1 - shown.sum() / expected.sum())
    return np.diag(np.sqrt(unseen / 2) / len(mean.m))


def _units(known: Any, cluster: Codes | None) -> Codes:
    """Independent units of rows: each labelled cluster (united at random beyond 512), with some of the others."""
    cluster = np.arange(len(known)) if cluster is None else cluster
    labelled = np.zeros(int(cluster.max()) + 1, bool)
    labelled[cluster[known]] = True
    most, rng = min(len(labelled), MOST_CLUSTERS), generator(0, "units of judged rows")
    unit = np.empty(len(labelled), np.intp)
    for part in (np.flatnonzero(labelled), np.flatnonzero(~labelled)):
        unit[rng.permutation(part)] = np.arange(len(part)) % most
    return unit[cluster]


#: What is known of judged data, by target.
_BY_TARGET: Mapping[str, Callable[[Judged, Target, float], _Found]] = {
    "accuracy": _mean,
    "observed to expected ratio": _mean,
    "calibration slope": _slope,
    "true error": _error,
}


def judged_target(estimator: Any, data: Judged) -> Target:
    """The target of an estimator, if it has an interval for judged data."""
    target = declared_by(estimator)
    if target is None:  # a function around an estimator, whose estimate says what it is for
        require_gold(data)
        target = getattr(estimator(data.labelled()), "target", None)
    if target is None or target.quantity not in _BY_TARGET:
        fail(
            f"{name_of(estimator)} has no interval for Judged data: few rows have an outcome, and rectified ones are "
            "no outcomes. These have one: accuracy, observed_expected, calibration_slope, and estimators of the "
            "calibration error such as averaged_error. data.labelled() are the rows with a gold label."
        )
    return target


def judged_estimate(estimator: Any, data: Judged) -> Estimate:
    """The estimate without its interval; NaN, and why, if no row has a gold label."""
    target = judged_target(estimator, data)
    if not data.known.any():
        return Estimate(np.nan, name=name_of(estimator), method="no gold label", n=len(data), target=target)
    found = judged_interval(estimator, data, level=0.95)
    return Estimate(float(found), **{**found._fields(), "interval": None})


def judged_interval(estimator: Any, data: Judged, *, level: float, method: Any = None) -> Estimate:
    """The estimate of judged data with its interval; see `calibrant.interval`."""
    if method is not None:
        fail(f"Judged data have one method for each estimator; leave out method={method!r}.", TypeError)
    target = judged_target(estimator, data)
    found = _BY_TARGET[target.quantity](data, target, level)
    gold = int(data.known.sum())
    words = f"{gold:_} gold labels{f'; {found.method}' if found.method else ''}"
    ends = found.ends
    interval = Interval(ends.low, ends.high, level, found.how, found.side, found.assumption, target)
    about: dict[str, Any] = {"target": target, "interval": interval, "details": {"gold": gold}}
    return Estimate(ends.value, name=found.name, method=words, n=len(data), **about)


def judged_test(data: Judged) -> Significance:
    """Is the confidence calibrated? Level, slope and shape, each within its share of the level (Bonferroni).

    The shape asks whether the L1 error is 0: with few gold labels of the rarer outcome by these alone. An interval at
    one minus its share of alpha excludes its ideal only where the test rejects.
    """
    require_gold(data)
    p, cluster = data.y_prob.astype(np.float64), row_clusters(data, len(data))
    labelled = int(data.known.sum()) if cluster is None else len(np.unique(cluster[data.known]))
    if labelled < FEWEST_CLUSTERS:
        few = f"with fewer than {FEWEST_CLUSTERS} nothing is claimed"
        fail(f"There are {labelled} labelled rows or clusters, and {few}.")
    mean = RectifiedMean.of(data, p)
    away = float(p.mean()) - RectifiedMean.of(data).value
    found = {"level": (mean.p_value(1.0) if p.any() else float(not np.nansum(data.gold)), away)}
    if np.ptp(p) > 0:
        if bool(((p > 0) & (p < 1) & data.known).any()):
            found["slope"] = _slope_p_value(data)
        if rarer_labels(data) < FEW_EVENTS:
            found["shape"] = (float(MultiScale().test(data.labelled()).p_value), 0.0)
        else:
            method = Inversion()
            limits = Limits.of(_fine_sample(data, cluster), method.draws, method.seed, norms=(1.0,), level=0.95)
            found["shape"] = (limits.dual.p_value_of_zero, 0.0)
    known = {name: one for name, one in found.items() if not np.isnan(one[0])}
    if not known:
        fail("These gold labels give it no p-value.")
    shares = {name: SHARES[name] for name in known} if len(found) > 1 else dict.fromkeys(known, 1.0)
    parts = tuple(
        Component(name, p_value, shares[name], 0 if p_value > 0.5 else 1 if way > 0 else -1 if way < 0 else 0)
        for name, (p_value, way) in known.items()
    )
    decided = min(parts, key=lambda part: part.p_value / part.share)
    p_value = min(decided.p_value / decided.share, 1.0)
    details = {"gold": int(data.known.sum())}
    about: dict[str, Any] = {"details": details, "components": parts, "decided": decided}
    return Significance(decided.p_value, p_value, "judged rows", len(data), **about)


def _slope_p_value(data: Judged) -> tuple[float, float]:
    """The smallest significance at which an interval of the slope leaves out 1, and how far it lies below."""
    data = _inside(data)
    if (line := _sandwich(data)) is not None:
        value, error, freedom = line
        return float(2 * stdtr(freedom, -abs(value - 1) / error)), 1 - value
    alone = data.labelled()
    value = float(calibration_slope(alone))
    return (np.nan, 0.0) if np.isnan(value) else (ProfileLikelihood().statement(alone).p_value, 1 - value)


#: The test of a group of judged rows.
GROUP_TEST = "mean confidence against the mean of gold"


def judged_groups(data: Judged, groupings: Sequence[Grouping]) -> list[GroupEvidence]:
    """Of each group, a test of the mean confidence, with Holm's adjustment; NaN for groups without a gold label."""
    found = []
    for grouping in groupings:
        for number, rows in enumerate(grouping.rows()):
            part = data.take(rows)
            p = part.y_prob.astype(np.float64)
            tested = part.known.any() and bool(p.any())
            p_value = RectifiedMean.of(part, p).p_value(1.0) if tested else np.nan
            statistic = RectifiedMean.of(part).value - float(p.mean()) if tested else np.nan
            found.append(GroupEvidence(grouping, number, GROUP_TEST, statistic, p_value, np.nan))
    adjusted = holm([one.p_value for one in found])
    return [replace(one, adjusted=p) for one, p in zip(found, adjusted, strict=True)]


def judged_balance(data: Judged) -> dict[str, Any]:
    """Gold labels that are right, mean confidence, mean of gold and direction of a group."""
    p = data.y_prob.astype(np.float64)
    about: dict[str, Any] = {"events": int(np.nansum(data.gold)), "predicted": float(p.mean()), "observed": np.nan}
    if data.known.any():
        observed = RectifiedMean.of(data).value
        clear = bool(p.any()) and RectifiedMean.of(data, p).p_value(1.0) < 0.05
        about["direction"] = ("too high" if about["predicted"] > observed else "too low") if clear else ""
        about["observed"] = observed
    return about


def judged_difference(a: Judged, b: Judged, first: Estimate, second: Estimate) -> tuple[float, Interval, float]:
    """The difference of two models on the same rows, whose estimates have intervals, with interval and p-value.

    The squares of the distances of both ends from their estimates are added (Newcombe 1998, Improved confidence
    intervals for the difference between binomial proportions based on paired data; Zou, Donner 2008, Construction of
    confidence limits about effect measures), less twice their product times the correlation of the two estimates, that
    of the sums of rectified outcomes over clusters; 0 where the labels do not show it.
    """
    if first.interval is None or second.interval is None or first.target is None:
        fail("A comparison needs an interval of both models.")
    value, shared = float(first) - float(second), _correlation(first.target, a, b)

    def reach(up: Estimate, down: Estimate) -> float:
        """How far the difference up - down may lie below its estimate."""
        below, above = (up.interval.low, down.interval.high) if up.interval and down.interval else (np.nan, np.nan)
        one, other = float(up) - below, above - float(down)
        return float(np.sqrt(max(one**2 + other**2 - 2 * shared * one * other, 0.0)))

    low, high, level = value - reach(first, second), value + reach(second, first), first.interval.level
    towards = value - low if value > 0 else high - value
    z = float(ndtri((1 + level) / 2))
    p_value = float(2 * ndtr(-abs(value) / towards * z)) if towards > 0 else float(value == 0)
    words = f"{first.interval.assumption}; row i of both models is the same case; approximate"
    how = "square and add (Zou and Donner)"
    return value, Interval(low, high, level=level, method=how, assumption=words, target=first.target), p_value


def _correlation(target: Target, a: Judged, b: Judged) -> float:
    """The correlation of two estimates, where the labels show it."""
    if target.quantity not in ("accuracy", "observed to expected ratio"):
        return 0.0
    if min(rarer_labels(a), rarer_labels(b)) < FEW_EVENTS:
        return 0.0
    ratio = target.quantity != "accuracy"
    one, other = (RectifiedMean.of(x, x.y_prob.astype(np.float64) if ratio else None).influence for x in (a, b))
    size = float(np.sqrt(float(one @ one) * float(other @ other)))
    return float(one @ other) / size if size > 0 else 0.0
