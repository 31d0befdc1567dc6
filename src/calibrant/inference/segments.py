"""Segments: few conditions on features under which predictions are off, found and confirmed on different rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtr

from calibrant.data.features import Feature, FeatureCodes, coded
from calibrant.data.validation import fail
from calibrant.inference.forecast_intervals import wilson_limits
from calibrant.inference.multiplicity import holm
from calibrant.numerics.arrays import Floats, expit
from calibrant.numerics.confidence_limits import event_tail, sum_of_units_tail, weighted_tail
from calibrant.numerics.random_draws import generator
from calibrant.recalibrate.feature_map import SCORE, CodedRows
from calibrant.results.estimate import Interval, printable

#: Share of the rows, and rows, that a segment has at least.
#: Test: tests/inference/test_segments.py::test_small_segments_are_not_looked_for.
_LEAST_SHARE, _LEAST_ROWS = 0.005, 20
#: Cuts of a number that begin or end an interval, and values of a category that are looked at, at most.
#: Test: tests/inference/test_segments.py::test_conditions_of_one_feature.
_MARKS, _VALUES = 13, 40
#: Pairs of features that are extended by a third condition.
#: Test: tests/inference/test_segments.py::test_three_conditions.
_EXTENDED = 4
#: What a condition costs per logarithm of the number of its rivals, on the scale of z squared.
#: Derived: twice the logarithm for independent rivals; intervals of one feature overlap, so three quarters of it.
_RIVALS, _OVERLAPPING = 2.0, 1.5
#: Candidates must have at least this much evidence, on that scale, to be tested; the first always is.
#: Test: tests/inference/test_segments.py::test_weak_candidates_are_not_tested.
_KEPT = -2.0
#: Rows times pairs of features that are looked at. Speed: 3e7 counts are half a second; rows are in random order.
_WORK, _FEWEST = 3e7, 20_000
#: Rows below which a candidate is not tested.
#: Derived: the empirical variance of fewer has fewer than nine degrees of freedom.
_TESTED_ROWS = 10


@dataclass(frozen=True)
class Condition:
    """A range of codes of one feature.

    >>> str(Condition(Feature("age", "number", cuts=(18.0, 65.0)), 1, 1))
    '18 <= age < 65'
    """

    feature: Feature
    low: int
    high: int

    def __str__(self) -> str:
        return printable(self.feature.words(self.low, self.high))


@dataclass(frozen=True, repr=False)
class Segment:
    """Rows that are described by up to three conditions and whose predictions are off on average.

    It was found on one half of the rows; everything else here is of the other half, which had no part in the choice.

    Attributes
    ----------
    conditions : tuple of Condition
        All of which hold.
    share : float
        Of all rows, by weight.
    n : int
        Rows of the half that confirmed it.
    predicted, observed : float
        Mean prediction and mean outcome there.
    interval : Interval
        Of the observed mean, at a level that allows for the choice of the segments shown (false coverage rate).
    p_value, adjusted : float
        For the hypothesis that the mean gap is zero or has the other sign; adjusted for all candidates of both halves.
    outcome : str
        What the probabilities are of: "top label" or a class of multiclass predictions, "coverage" of forecasts.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.uniform(0.2, 0.4, 4000), rng.integers(18, 80, 4000)
    >>> found = cal.audit(rng.random(4000) < p + 0.3 * (age < 30), p, {"age": age}).segments[0]
    >>> print(found.text, "|", found.direction)
    age < 29 | too low
    >>> found.mask({"age": [20, 50]})
    array([ True, False])
    """

    conditions: tuple[Condition, ...]
    share: float
    n: int
    predicted: float
    observed: float
    interval: Interval
    p_value: float
    adjusted: float
    outcome: str = ""

    @property
    def text(self) -> str:
        """The conditions in words; control characters are written out."""
        return " and ".join(map(str, self.conditions))

    @property
    def gap(self) -> float:
        """Mean prediction less mean outcome: positive where predictions are too high."""
        return self.predicted - self.observed

    @property
    def direction(self) -> Literal["too high", "too low"]:
        """Of the predictions."""
        return "too high" if self.gap > 0 else "too low"

    def __repr__(self) -> str:
        of = f"{self.outcome}: " if self.outcome else ""
        means = f"predicted {self.predicted:.3g}, observed {self.observed:.3g}"
        return f"<Segment {of}{self.text}: {means} [{self.interval.low:.3g}, {self.interval.high:.3g}]>"

    def mask(self, X: Any, y_prob: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Which rows of other data belong to it; `y_prob` is needed where the prediction is one of the conditions."""
        features = [one.feature for one in self.conditions if one.feature.name != SCORE]
        own = [one.feature for one in self.conditions if one.feature.name == SCORE]
        if own and y_prob is None:
            fail(f"The segment {self.text!r} has a condition on the prediction: pass y_prob.", TypeError)
        if y_prob is not None:
            length = len(np.asarray(y_prob))
        else:
            length = len(next(iter(X.values())) if isinstance(X, dict) else X)
        codes = dict(zip([f.name for f in features], coded(X, length, features=features)[1], strict=True))
        if own:
            codes[SCORE] = coded({SCORE: y_prob}, length, features=own)[1][0]
        held = [(codes[c.feature.name] >= c.low) & (codes[c.feature.name] <= c.high) for c in self.conditions]
        return np.asarray(np.logical_and.reduce(held))

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON or as the row of a frame."""
        return {
            "segment": self.text,
            **{name: getattr(self, name) for name in ("outcome", "share", "n", "predicted", "observed")},
            **dict(zip(("low", "high"), self.interval, strict=True)),
            **{name: getattr(self, name) for name in ("gap", "direction", "p_value", "adjusted")},
        }


@dataclass(frozen=True, eq=False)
class _Candidate:
    """Ranges of codes (feature number, low, high) with a direction: 1 where outcomes are more frequent."""

    ranges: tuple[tuple[int, int, int], ...]
    direction: int

    def rows(self, codes: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
        held = [(codes[j] >= low) & (codes[j] <= high) for j, low, high in self.ranges]
        return np.asarray(np.logical_and.reduce(held))


#: Evidence, z, and ranges of codes.
_Found = tuple[float, float, tuple[tuple[int, int, int], ...]]


class _Atoms:
    """The conditions on one feature: intervals of codes, or single values, each with enough rows."""

    def __init__(self, feature: Feature, code: FeatureCodes, least: float) -> None:
        rows = np.bincount(code, minlength=feature.size)
        top, ranges = feature.size - 2, list[tuple[int, int]]()
        if feature.kind == "category":
            ranges = [(int(k), int(k)) for k in np.argsort(-rows, kind="stable")[:_VALUES]]
        else:
            step = max(1, -(-(top + 1) // _MARKS))
            marks = [*range(0, top + 1, step), top + 1]
            ranges = [(a, b - 1) for i, a in enumerate(marks) for b in marks[i + 1 :] if b - a <= top]
            if rows[top + 1] >= least:
                ranges += [(top + 1, top + 1), (0, top)]
        members = np.zeros((len(ranges), feature.size))
        for k, (low, high) in enumerate(ranges):
            members[k, low : high + 1] = 1.0
        some = np.flatnonzero((members @ rows >= least) & (members @ rows < len(code)))
        self.members, self.ranges = members[some], [ranges[k] for k in some]
        self.price = _OVERLAPPING * math.log(max(len(some), 1))


class _Search:
    """The best conjunctions of up to three conditions, one after the other, on some rows."""

    def __init__(self, rows: CodedRows, part: slice) -> None:
        self.sizes, d = rows.layout.sizes, len(rows.features)
        self.pairs = [(j, k) for j in range(d) for k in range(j)]
        most = int(max(_FEWEST, _WORK / max(len(self.pairs), 1)))
        some = slice(part.start, min(part.stop, part.start + most))
        self.y, self.weight, self.log_odds = rows.y[some], rows.weight[some], rows.log_odds[some].copy()
        self.unit = None if rows.unit is None else rows.unit[some]
        self.codes = [code[some].astype(np.int64) for code in rows.codes]
        self.least = max(_LEAST_ROWS, _LEAST_SHARE * len(self.y))
        self.atoms = [
            _Atoms(feature, code[some], self.least) for feature, code in zip(rows.features, rows.codes, strict=True)
        ]
        self.one, self.two = _RIVALS * math.log(max(d, 2)), _RIVALS * math.log(max(len(self.pairs), 2))

    def found(self, most: int) -> list[_Candidate]:
        """Candidates, each after the rows of those before were shifted by their gap."""
        candidates: list[_Candidate] = []
        while len(candidates) < most:
            q = expit(self.log_odds)
            self.residual, self.variance = self.weight * (self.y - q), self.weight**2 * q * (1 - q)
            if self.unit is not None:
                sums = np.bincount(self.unit - self.unit.min(), self.residual)
                self.variance *= max(1.0, float(sums @ sums) / max(float(self.variance.sum()), 1e-300))
            best = self._best()
            if best is None or (best[0] < _KEPT and candidates):
                break
            score, z, ranges = best
            candidates.append(_Candidate(ranges, 1 if z > 0 else -1))
            self._shift(candidates[-1].rows(self.codes))
            if score < _KEPT:
                break
        return candidates

    def _best(self) -> _Found | None:
        """Evidence, z and conditions of the best conjunction."""
        singles = [found for j in range(len(self.codes)) if (found := self._single(j)) is not None]
        pairs = self._best_pairs()
        triples = []
        for _, _, ranges in pairs:
            inside = _Candidate(ranges, 1).rows(self.codes)
            used = {j for j, _, _ in ranges}
            prices = self.two + sum(self.atoms[j].price for j in used)
            others = (self._single(j, inside, ranges, prices) for j in range(len(self.codes)) if j not in used)
            triples += [found for found in others if found is not None]
        every = [*singles, *pairs[:1], *triples]
        return max(every, key=lambda found: found[0]) if every else None

    def _best_pairs(self) -> list[_Found]:
        """The best of each two features, most evidence first, of those that may be extended.

        Rows are counted only for features that evidence without a count, which is at least as much, leaves in doubt.
        """
        most = [found for j, k in self.pairs if (found := self._pair(j, k, count=False)) is not None]
        most.sort(key=lambda found: -found[0])
        kept: list[_Found] = []
        for score, _, ranges in most:
            if len(kept) >= _EXTENDED and score < kept[_EXTENDED - 1][0]:
                break
            kept += [found for found in [self._pair(ranges[0][0], ranges[1][0], count=True)] if found is not None]
            kept.sort(key=lambda found: -found[0])
        return kept[:_EXTENDED]

    def _single(
        self, j: int, inside: Any = slice(None), before: tuple[tuple[int, int, int], ...] = (), price: float = 0.0
    ) -> _Found | None:
        atoms, code = self.atoms[j], self.codes[j][inside]
        if not len(atoms.ranges) or not len(code):
            return None
        size = self.sizes[j]
        sums, noise = (np.bincount(code, part[inside], size) for part in (self.residual, self.variance))
        z = (atoms.members @ sums) / np.sqrt(atoms.members @ noise + 1.0)
        z[atoms.members @ np.bincount(code, minlength=size) < self.least] = 0.0
        best = int(np.abs(z).argmax())
        return float(z[best] ** 2) - self.one - price - atoms.price, float(z[best]), (*before, (j, *atoms.ranges[best]))

    def _pair(self, j: int, k: int, *, count: bool) -> _Found | None:
        first, second, shape = self.atoms[j], self.atoms[k], (self.sizes[j], self.sizes[k])
        if not (len(first.ranges) and len(second.ranges)):
            return None
        key = self.codes[j] * shape[1] + self.codes[k]
        sums, noise, *rows = (
            first.members @ np.bincount(key, part, shape[0] * shape[1]).reshape(shape) @ second.members.T
            for part in (self.residual, self.variance, None)[: 3 if count else 2]
        )
        z = sums / np.sqrt(noise + 1.0)
        for number in rows:
            z[number < self.least] = 0.0
        best = int(np.abs(z).argmax())
        a, b = divmod(best, z.shape[1])
        price = self.two + first.price + second.price
        return float(z.flat[best] ** 2) - price, float(z.flat[best]), ((j, *first.ranges[a]), (k, *second.ranges[b]))

    def _shift(self, inside: NDArray[np.bool_]) -> None:
        """Move the log odds of a segment to its mean outcome, with one pseudo-observation at no change."""
        y, weight = self.y[inside], self.weight[inside]
        for _ in range(4):
            q = expit(self.log_odds[inside])
            step = float(weight @ (y - q)) / (float(weight @ (q * (1 - q))) + 1.0)
            self.log_odds[inside] += min(max(step, -2.0), 2.0)


class _Tested(NamedTuple):
    """A candidate on the rows that confirm it."""

    candidate: _Candidate
    n: int
    predicted: float
    observed: float
    effective_n: float
    p_value: float


def _tested(rows: CodedRows, part: slice, candidate: _Candidate) -> _Tested:
    """One-sided in the direction found, for the mean gap, whatever the errors within the segment."""
    inside = np.flatnonzero(candidate.rows([code[part] for code in rows.codes])) + part.start
    y, p, w = rows.y[inside], rows.p[inside], rows.weight[inside]
    n = len(inside)
    if n < _TESTED_ROWS:
        return _Tested(candidate, n, 0.0, 0.0, 0.0, 1.0)
    predicted, observed = float(w @ p / w.sum()), float(w @ y / w.sum())
    gap, total = candidate.direction * (y - p), float(w.sum())
    kish = total**2 / float(w @ w)
    if rows.unit is None:
        return _Tested(candidate, n, predicted, observed, kish, _independent(y, p, w, candidate.direction, rows.seed))
    unit = rows.unit[inside] - rows.unit[inside].min()
    p_value = sum_of_units_tail(np.bincount(unit, w * gap).astype(np.float64), float(w**2 @ (p * (1 - p))))
    error = w * (y - observed)
    sums = np.bincount(unit, error)
    design = max(1.0, float(sums @ sums) / max(float(error @ error), 1e-300))
    return _Tested(candidate, n, predicted, observed, kish / design, p_value)


def _independent(y: Floats, p: Floats, w: Floats, direction: int, seed: int) -> float:
    """The larger of two p-values: of the known law of the outcomes, and of their empirical variance."""
    n, z = len(y), y - p
    if np.ptp(w) == 0:
        events = float(y.sum()) if direction > 0 else n - float(y.sum())
        expected = float(p.sum()) if direction > 0 else n - float(p.sum())
        known = float(event_tail(np.array(events), np.array(float(n)), np.array(expected)))
    else:
        known = weighted_tail(direction * w, y, p, generator(seed, "tail of a segment"))
    mean = float(w @ z / w.sum())
    spread = math.sqrt(float((w * (z - mean)) @ (w * (z - mean))) * n / (n - 1))
    x = direction * float(w @ z) / spread if spread > 0 else 0.0
    return max(known, float(stdtr(n - 1, -x)))


def _confirmed(rows: CodedRows, candidates: list[_Candidate], part: slice, alpha: float) -> list[Segment]:
    """The candidates whose mean gap has the sign found, by Holm's method at `alpha`."""
    tested = [_tested(rows, part, candidate) for candidate in candidates]
    adjusted = holm([one.p_value for one in tested])
    kept = [(one, p) for one, p in zip(tested, adjusted, strict=True) if p <= alpha]
    level = 1 - alpha * len(kept) / max(len(tested), 1)
    reach = float(ndtri((1 + level) / 2))
    found = []
    for one, p in kept:
        low, high = (min(max(end, 0.0), 1.0) for end in wilson_limits(one.observed, one.effective_n, reach))
        if low <= one.predicted <= high:
            continue  # the test and the interval must agree
        interval = Interval(low, high, level, "Wilson's, on rows that did not choose the segment")
        conditions = tuple(Condition(rows.features[j], low, high) for j, low, high in one.candidate.ranges)
        whole = one.candidate.rows(rows.codes)
        share = float(rows.weight[whole].sum() / rows.weight.sum())
        both = min(1.0, 2 * p)
        found.append(Segment(conditions, share, one.n, one.predicted, one.observed, interval, one.p_value, both))
    return found


def segments(rows: CodedRows, *, alpha: float, most: int) -> tuple[Segment, ...]:
    """Found on one half and confirmed on the other, and the other way round, each at alpha / 2; most evidence first.

    Of segments about the same rows, or within each other and of one direction, the first is kept.
    """
    middle = int(rows.place.searchsorted(0.5))
    halves = slice(0, middle), slice(middle, len(rows))
    pool: list[Segment] = []
    for here, there in (halves, halves[::-1]):
        if min(here.stop - here.start, there.stop - there.start) >= _LEAST_ROWS:
            pool += _confirmed(rows, _Search(rows, here).found(most), there, alpha / 2)
    kept: list[tuple[Segment, NDArray[np.bool_]]] = []
    number = {feature.name: j for j, feature in enumerate(rows.features)}
    for one in sorted(pool, key=lambda segment: (segment.adjusted, segment.p_value)):
        ranges = tuple((number[c.feature.name], c.low, c.high) for c in one.conditions)
        inside = _Candidate(ranges, 1).rows(rows.codes)
        if not any(_alike(one, inside, *other) for other in kept):
            kept.append((one, inside))
    return tuple(one for one, _ in kept)


def _alike(one: Segment, inside: NDArray[np.bool_], other: Segment, there: NDArray[np.bool_]) -> bool:
    both = int((inside & there).sum())
    within = both > 0.8 * min(int(inside.sum()), int(there.sum())) and one.direction == other.direction
    return both > 0.5 * int((inside | there).sum()) or within
