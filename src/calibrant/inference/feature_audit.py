"""`audit`: is a model calibrated given the features of each row; if not, by how much, for whom, and the repair."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtr, ndtri

from calibrant.data import validation
from calibrant.data.forecasts import Distribution, Gaussian, Quantiles
from calibrant.data.predictions import Binary, Columns, Multiclass, Predictions, binary
from calibrant.data.validation import UnsupportedPredictions, fail
from calibrant.inference.calibration_tests import ClusteredScore
from calibrant.inference.sample import LEAST_CLUSTERS
from calibrant.inference.segments import Segment, segments
from calibrant.numerics.arrays import Floats, expit
from calibrant.numerics.boosting import Growth, table_p_value
from calibrant.numerics.confidence_limits import sum_of_units_tail, weighted_tail
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import importance_weights, weighted_rows
from calibrant.recalibrate.feature_map import CodedRows, FeatureMap, Path, corrections, fitted_stage, log_losses
from calibrant.recalibrate.model_averaging import held_out_estimate
from calibrant.results.estimate import Estimate, Interval, Significance, plain_fields, printable
from calibrant.results.target import Target, takes_columns

#: Shares of the significance: the score, tables, and maps learnt forward; with clusters there are no tables.
#: Test: tests/inference/test_feature_audit.py::test_three_looks_share_the_significance.
_SHARES, _SHARES_OF_CLUSTERS = (0.15, 0.5, 0.35), (0.2, 0.0, 0.8)
#: Up to these numbers of rows there are 5, 4, and beyond 3 blocks.
#: Speed: each block costs a fit to all rows before it; the test is valid for any number of blocks.
_BLOCKS = (50_000, 200_000)
#: Trees of a map that is learnt forward: how many, their ridge, and the rows below which they have two levels, else
#: three. Test: tests/inference/test_feature_audit.py::test_trees_of_the_forward_look.
_TREES, _RIDGE, _SMALL = 20, 20.0, 1500
#: A soft sign is the predicted gap over this many root mean squares of it, cut at 1.
#: Test: tests/inference/test_feature_audit.py::test_the_soft_sign.
_SOFT = 0.5
#: The variance of fewer events than this tells little, so a score test of them is also simulated.
#: Test: tests/inference/test_feature_audit.py::test_few_events_are_simulated.
_FEW_EVENTS = 40.0
#: Held-out rows in which features are shuffled.
#: Speed: a tenth of a second for twenty features; more rows only narrow the intervals.
_SHUFFLED_ROWS = 20_000
#: Nominal coverage of the interval of a forecast that is audited. Derived: that of `coverage`.
_NOMINAL = 0.9
#: The largest p-value that has a normal score. Derived: the largest double below 1.
_LARGEST_P = 1 - 1e-16


class _Fields:
    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return plain_fields(self)


@dataclass(frozen=True)
class LossSplit(_Fields):
    """A mean loss, and how much of it recalibration removes from rows that were held out.

    Attributes
    ----------
    before : Estimate
        The mean loss of the predictions as they are.
    total : Estimate
        What the map with features removes: `score` and `features` together.
    score : Estimate
        What recalibrating the score alone removes.
    features : Estimate
        What features remove beyond that. It does not bound what features could remove, because it includes what the map
        of the score loses by being fitted to finitely many rows.

    >>> import calibrant as cal
    >>> split = cal.audit([0, 1] * 500, [0.4] * 1000, {"place": ["a", "b"] * 500}).error.log_loss
    >>> abs(split.total - split.score - split.features) < 1e-12
    True
    """

    before: Estimate
    total: Estimate
    score: Estimate
    features: Estimate


@dataclass(frozen=True)
class Miscalibration(_Fields):
    """How large the error is, given the features; see `Audit.error`.

    Attributes
    ----------
    l1 : Estimate
        Cross-fitted E|E[Y | X, p] - p|, a lower bound of it in expectation. Its interval is one-sided: an error that no
        map has found leaves no trace, so there is no upper bound.
    l1_score : Estimate
        The same for maps of the score alone.
    log_loss, brier : LossSplit
        What recalibration removes.

    >>> import calibrant as cal
    >>> cal.audit([0, 1] * 500, [0.4] * 1000, {"place": ["a", "b"] * 500}).error.l1.interval.low > 0.3
    True
    """

    l1: Estimate
    l1_score: Estimate
    log_loss: LossSplit
    brier: LossSplit


@dataclass(frozen=True)
class FeatureLoss(_Fields):
    """By how much the log loss of held-out rows rises when one feature is shuffled among them.

    Correlated features share the credit arbitrarily.

    >>> import calibrant as cal
    >>> cal.audit([0, 1] * 500, [0.4] * 1000, {"place": ["a", "b"] * 500}).features[0].feature
    'place'
    """

    feature: str
    loss: Estimate


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Where a model is wrong, given features; see `audit`. Each part is computed when it is first asked for.

    Attributes
    ----------
    n : int
        Number of rows that have weight.
    alpha : float
        The significance of the segments; the bound of the error has the confidence 1 - alpha.
    parts : mapping of str to Audit
        Of multiclass predictions: the audits of the top label and of each class. Else empty.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, device = rng.uniform(0.1, 0.6, 4000), rng.choice(["app", "web"], 4000)
    >>> found = cal.audit(rng.random(4000) < p + 0.2 * (device == "app"), p, {"device": device})
    >>> found.test.p_value < 1e-9, found.error.l1.interval.low > 0.05
    (True, True)
    >>> found.repair().predict_proba([0.3], {"device": ["app"]})[0, 1].round(1)
    np.float64(0.5)
    """

    task: Predictions
    rows: CodedRows
    alpha: float
    most: int
    parts: Mapping[str, Audit]

    @property
    def n(self) -> int:
        """Number of rows that have weight."""
        return len(self.rows)

    @property
    def outcome(self) -> str:
        """What `error` and `features` are of: "top label" of multiclass data, "coverage" of forecasts, else ""."""
        if self.parts:
            return next(iter(self.parts))
        return "" if isinstance(self.task, Binary) else "coverage"

    @cached_property
    def test(self) -> Significance:
        """The test that E[Y | X, p] = p: one p-value of three looks, which are in `details`."""
        if self.parts:
            tests = [(part.test.p_value, name) for name, part in self.parts.items()]
            smallest, name = min(tests)
            details = {f"{name}": part.test.p_value for name, part in self.parts.items()}
            method, p_value = f"audit of {len(tests)} outcomes, least: {name}", min(1.0, len(tests) * smallest)
            return Significance(smallest, p_value, method=method, n=self.n, details=details)
        return _combined(self.task, self.rows, self._forward)

    @cached_property
    def error(self) -> Miscalibration:
        """How large the error is; of multiclass predictions, that of the top label."""
        if self.parts:
            return next(iter(self.parts.values())).error
        return _miscalibration(self)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """Where predictions are off on average, most evidence first; any is false with a probability of at most alpha.

        False means that the mean gap of the segment is zero or has the other sign. Only confirmed ones are listed.
        """
        if self.parts:
            every = [
                replace(one, outcome=name, adjusted=min(1.0, one.adjusted * len(self.parts)))
                for name, part in self.parts.items()
                for one in part.segments
            ]
            return tuple(sorted(every, key=lambda one: (one.adjusted, one.p_value)))
        found = segments(self.rows, alpha=self.alpha, most=self.most)
        return tuple(replace(one, outcome=self.outcome) for one in found)

    @cached_property
    def features(self) -> tuple[FeatureLoss, ...]:
        """The features that the map uses, most important first; empty if it uses none."""
        if self.parts:
            return next(iter(self.parts.values())).features
        return _feature_losses(self.rows, self._path)

    def repair(self) -> FeatureMap:
        """The map with features, fitted to all rows: equal to `FeatureMap(seed=seed).fit(data, features=X)`."""
        if not isinstance(self.task, Binary):
            forecasts = ", and no map repairs forecasts by features"
            instead = ": audit data.one_vs_rest()[label]" if self.parts else forecasts
            fail(f"repair() needs binary predictions{instead}.", TypeError)
        return FeatureMap.of_path(self.rows, self._path)

    @cached_property
    def _forward(self) -> _Forward:
        return _Forward.of(self.rows)

    @cached_property
    def _path(self) -> Path:
        return Path.of(self.rows)

    def __repr__(self) -> str:
        return f"<Audit of {len(self.rows.features) - 1} features, n={self.n:_}, p = {self.test.p_value:.4g}>"

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def _repr_html_(self) -> str:
        from calibrant.reporting.notebook import audit_html

        return audit_html(self, _lines(self)[:3])

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        found = {"n": self.n, "alpha": self.alpha, "test": self.test.to_dict(), "error": self.error.to_dict()}
        lists: dict[str, Any] = {"segments": self.segments, "features": self.features}
        return found | {name: [one.to_dict() for one in parts] for name, parts in lists.items()}


@takes_columns
def audit(
    data: Predictions | ArrayLike | None = None,
    y_prob: Any = None,
    X: Any = None,
    *,
    alpha: float = 0.05,
    seed: int = 0,
    most: int = 8,
    **columns: Unpack[Columns],
) -> Audit:
    r"""Audit calibration given features: a test, the size of the error, confirmed segments and a repair.

    The hypothesis is E[Y | X, p] = p. Then outcomes given (X, p) are Bernoulli with known probabilities, so that every
    statistic whose coefficients do not depend on the outcomes it is applied to has a known law:

    - **test**: three looks share the significance. The score alone (15 %); sums of squared residuals in tables of every
      feature and every pair of features, and the single cells of these tables (50 %); and maps that were learnt on
      earlier blocks of rows, whose correlation with the residuals of the next block has a known law whatever was learnt
      (35 %).
    - **error**: :math:`\mathbb E|\mathbb E[Y \mid X, p] - p| \ge \mathbb E[g(X, p)(Y - p)]` for every g in [-1, 1]
      that was learnt on other rows; and what recalibration removes of log loss and Brier score.
    - **segments**: found on one half of the rows and confirmed on the other, and the other way round.
    - **features**: by how much the log loss rises when one of them is shuffled. **repair()**: the `FeatureMap`.

    Parameters
    ----------
    data : Binary, Multiclass, Gaussian, Quantiles or Distribution, or y_true
        With plain arrays, `y_prob` comes next, then `X`. Rows must be new to the model. With a `group`, rows of a group
        may depend on each other. Multiclass predictions are audited by their top label and by each class, which share
        the error rates; forecasts are audited by whether the central 90 % interval (for quantiles, between the
        outermost levels) contains its share of the outcomes.
    X : data frame, mapping of columns, or array
        One row per prediction. Numbers, booleans and categories (text); a missing value is a category of its own. Any
        columns, whether or not the model uses them.
    alpha : float
        Significance level of the segments; the bound has the confidence 1 - alpha.
    seed : int
        Decides the splits of the rows. The order of rows and columns does not matter.
    most : int
        The largest number of segments to search for in each half.

    Notes
    -----
    The audit never shows that a model is calibrated, only that it found nothing. It may miss errors that no pair of
    features shows. With clusters it does not test tables; with fewer than 15 clusters it claims nothing.

    References
    ----------
    Hébert-Johnson, Kim, Reingold, Rothblum (2018), Multicalibration. Berta, Braun, Holzmüller, Bach, Jordan (2026), A
    Variational Estimator for Calibration Errors. Hoeffding (1956), On the distribution of the number of successes.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.uniform(0.1, 0.6, 5000), rng.integers(18, 80, 5000)
    >>> found = cal.audit(rng.random(5000) < p, p, {"age": age})  # calibrated
    >>> found.test.p_value > 0.05, len(found.segments)
    (True, 0)
    """
    if X is None and isinstance(data, Predictions):
        y_prob, X = None, y_prob
    if X is None:
        fail("audit needs features: audit(data, X) or audit(y_true, y_prob, X).", TypeError)
    task = binary(data, y_prob)
    task.require_same_rows(X=X)
    validation.whole("most", most, minimum=1)
    alpha, seed = validation.fraction("alpha", alpha), validation.seed(seed)
    if isinstance(task, Multiclass):  # the top label and each class, each with an equal share of the error rates
        tasks: dict[str, Binary] = {"top label": task.top_label()}
        tasks |= {f"class {printable(label)}": one for label, one in task.one_vs_rest().items()}
        parts = {name: _of_events(one, one, X, alpha / len(tasks), seed, most) for name, one in tasks.items()}
        return Audit(task, next(iter(parts.values())).rows, alpha, most, parts)
    return _of_events(task, _events(task), X, alpha, seed, most)


def _events(task: Predictions) -> Binary:
    """The outcomes with known probabilities under the hypothesis."""
    if isinstance(task, Binary):
        return task
    if not isinstance(task, Gaussian | Quantiles | Distribution) or task.y_true.ndim > 1:
        known = "Binary, Multiclass, Gaussian, Quantiles and Distribution predictions of one output"
        fail(f"audit takes {known}, not {task!r}.", UnsupportedPredictions)
    if isinstance(task, Distribution) and task.discrete:
        fail("The coverage of discrete distributions is not known; audit continuous ones.", UnsupportedPredictions)
    low, high = (1 - _NOMINAL) / 2, (1 + _NOMINAL) / 2
    if isinstance(task, Quantiles):
        low, high = float(np.min(task.levels)), float(np.max(task.levels))
    inside = (task.quantile(low) <= task.y_true) & (task.y_true <= task.quantile(high))
    return Binary.borrowing(inside, np.full(len(inside), high - low), weight=task.weight, group=task.group)


def _of_events(task: Predictions, events: Binary, X: Any, alpha: float, seed: int, most: int) -> Audit:
    n, kept, weight = len(events), None, None
    y, p = events.y_true, events.y_prob
    if events.weight is not None:
        some = weighted_rows(events.weight)
        kept, weight = some if len(some) < n else None, importance_weights(events.weight[some])
        y, p = y[some], p[some]
    rows = CodedRows.of(y, p, X, weight, events.group, kept=kept, n=n, seed=seed)
    return Audit(events if isinstance(task, Binary) else task, rows, alpha, most, {})


def _combined(task: Predictions, rows: CodedRows, forward: _Forward) -> Significance:
    """The least of the looks, each with its share of the significance."""
    clusters = rows.unit is not None
    tables, carried = (1.0, ()) if clusters else table_p_value(rows.codes, rows.layout, rows.y, rows.p, rows.weight)
    where = " and ".join(printable(rows.features[j].name) for j in carried)
    looks = (_score_look(task, rows), tables, forward.p_value)
    shares = _SHARES_OF_CLUSTERS if clusters else _SHARES
    p_value = min(1.0, *(look / share for look, share in zip(looks, shares, strict=True) if share))
    if _contradicted(rows):
        p_value = 0.0  # what was called impossible has happened
    details = {"score": looks[0], "tables": None if clusters else tables, "forward": looks[2], "table": where}
    return Significance(forward.z, p_value, method="three looks with features", n=len(rows), details=details)


def _contradicted(rows: CodedRows) -> bool:
    return bool(np.any(rows.p == 1 - rows.y))


def _score_look(task: Predictions, rows: CodedRows) -> float:
    """Score test of intercept and slope: of the known law, or with the variance between clusters."""
    if rows.unit is not None:
        if not isinstance(task, Binary) or int(rows.unit.max()) + 1 < LEAST_CLUSTERS:
            return 1.0
        return ClusteredScore().test(task).p_value
    residual, noise = rows.weight * (rows.y - rows.p), rows.weight**2 * rows.p * (1 - rows.p)
    total = float(noise.sum())
    if not total > 0:
        return 1.0
    centred = rows.log_odds - float(noise @ rows.log_odds) / total
    along, freedom = float(noise @ centred**2), 1
    square = float(residual.sum()) ** 2 / total
    if along > 1e-12 * total:
        square, freedom = square + float(residual @ centred) ** 2 / along, 2
    p_value = float(chdtrc(freedom, square))
    if float((rows.p * (1 - rows.p)).sum()) < _FEW_EVENTS:
        rng = generator(rows.seed, "tail of the mean gap")
        both = [weighted_tail(sign * rows.weight, rows.y, rows.p, rng) for sign in (1.0, -1.0)]
        p_value = max(p_value, min(1.0, 2 * min(both)))
    return p_value


@dataclass(frozen=True, eq=False)
class _Forward:
    """Blocks of rows predicted by maps learnt on the blocks before: evidence, and soft signs for the bound."""

    z: float
    p_value: float
    #: Rows of each block, their soft signs, and the number of rows before.
    signs: list[tuple[slice, Floats, int]]

    @classmethod
    def of(cls, rows: CodedRows) -> _Forward:
        """In each block the p-value is uniform given the blocks before, so that they are independent."""
        number = 5 - sum(len(rows) > size for size in _BLOCKS)
        edges, signs, units = rows.edges(number).tolist(), [], []
        z, factor = [], []
        rng = generator(rows.seed, "tail of a block")
        for block in range(1, number):
            past, now = slice(0, edges[block]), slice(edges[block], edges[block + 1])
            learnt = _learnt(rows, past, now) if past.stop and now.stop > now.start else None
            if learnt is None:
                continue
            y, p, a = rows.y[now], rows.p[now], rows.weight[now] * learnt
            size, noise = (now.stop - now.start) * past.stop, float(a**2 @ (p * (1 - p)))
            if noise > 0 and rows.unit is None:
                z.append(_normal_score(weighted_tail(a, y, p, rng)))
                factor.append(math.sqrt(size))
            elif noise > 0 and rows.unit is not None:
                units.append((np.bincount(rows.unit[now], a * (y - p)), noise, size))
            signs.append((now, soft_sign(expit(rows.log_odds[now] + learnt) - p, rows.weight[now]), past.stop))
        if units:
            scaled = np.concatenate([sums * math.sqrt(size / noise) for sums, noise, size in units])
            p_value = sum_of_units_tail(scaled, float(sum(size for _, _, size in units)))
            return cls(_normal_score(p_value), p_value, signs)
        if not z:
            return cls(0.0, 1.0, signs)
        statistic = float(np.dot(z, factor) / math.sqrt(np.dot(factor, factor)))
        return cls(statistic, float(ndtr(-statistic)), signs)


def _normal_score(p_value: float) -> float:
    return float(-ndtri(min(max(p_value, 1e-300), _LARGEST_P)))


def _learnt(rows: CodedRows, past: slice, now: slice) -> Floats:
    """Corrections of the log odds of a block by tables and trees of the rows before."""
    offset = rows.log_odds[past]
    tables = rows.tables(past, offset)
    here, before = rows.part(now), rows.part(past)
    for table in tables:
        offset = offset + table.predict(before)
    growth = Growth(_TREES, 2 if len(rows) < _SMALL else 3, _RIDGE)
    return corrections(tables, rows.trees(past, offset, _TREES, growth=growth), here)


def soft_sign(gap: Floats, weight: Floats) -> Floats:
    """The gap over half its root mean square, cut at -1 and 1: less noise than its sign, and a lower bound as well."""
    size = math.sqrt(float(weight @ gap**2) / float(weight.sum())) if len(gap) else 0.0
    return np.clip(gap / (_SOFT * size), -1.0, 1.0) if size > 0 else np.zeros_like(gap)


def _lower_bound(rows: CodedRows, forward: _Forward, alpha: float) -> float:
    """A lower confidence bound of E|E[Y | X, p] - p|, which no block's expected mean of g (Y - p) exceeds."""
    mean = mass = variance = 0.0
    for now, sign, before in forward.signs:
        weight, gap = rows.weight[now], sign * (rows.y[now] - rows.p[now])
        total = float(weight.sum())
        own = float(weight @ gap) / total
        parts = weight * (gap - own)
        if rows.unit is not None:
            parts = np.bincount(rows.unit[now] - rows.unit[now].min(), parts).astype(np.float64)
        units = max(int(np.count_nonzero(parts)), 2)
        known = float((weight * sign) ** 2 @ (rows.p[now] * (1 - rows.p[now])))
        mean, mass = mean + before * total * own, mass + before * total
        variance += before**2 * max(known, float(parts @ parts) * units / (units - 1))
    if not mass:
        return 0.0
    return mean / mass + _normal_score(1 - alpha) * math.sqrt(variance) / mass


def _miscalibration(found: Audit) -> Miscalibration:
    rows, path, level = found.rows, found._path, 1 - found.alpha
    low = _lower_bound(rows, found._forward, found.alpha) if found.test.p_value <= found.alpha else 0.0
    words = "blocks predicted by maps of earlier blocks"
    assumption = "independent rows (or clusters); many of them; a lower bound only"
    target = Target("true error", 1, "score and features")
    bound = Interval(max(low, 0.0), math.inf, level, words, side="lower", assumption=assumption, target=target)
    folds, full, plain = len(path.edges) - 1, expit(path.full), expit(path.plain)
    method = f"{folds}-fold cross-fitting of tables and trees"
    n, both, one = len(rows), "Error given features (L1)", "Error given the score (L1)"
    l1 = Estimate(_l1(rows, full), name=both, method=method, n=n, target=target, interval=bound)
    plainly, score_alone = f"{folds}-fold cross-fitting", Target("true error", 1)
    score = Estimate(_l1(rows, plain), name=one, method=plainly, n=n, target=score_alone)
    logs = [log_losses(rows.y, x) for x in (rows.log_odds, path.plain, path.full)]
    squares = [(rows.y - q) ** 2 for q in (rows.p, plain, full)]
    return Miscalibration(
        l1,
        score,
        _split(rows, "log loss", logs, folds, level, infinite=_contradicted(rows)),
        _split(rows, "Brier score", squares, folds, level),
    )


def _l1(rows: CodedRows, q: Floats) -> float:
    return rows.mean(soft_sign(q - rows.p, rows.weight) * (rows.y - rows.p))[0]


def _split(
    rows: CodedRows, name: str, losses: list[Floats], folds: int, level: float, *, infinite: bool = False
) -> LossSplit:
    """The mean loss before, and paired gains with the standard error of cross-validation (Nadeau and Bengio)."""
    before, plain, full = losses
    sharing = math.sqrt(1 + folds / (folds - 1))

    def estimate(words: str, values: Floats, factor: float, *, unbounded: bool) -> Estimate:
        mean, error = (math.inf, math.inf) if unbounded else rows.mean(values)
        return held_out_estimate(mean, factor * error, name=words, folds=folds, n=len(rows), level=level)

    gain = f"Gain in {name}"
    return LossSplit(
        estimate(name[0].upper() + name[1:], before, 1.0, unbounded=infinite),
        estimate(gain, before - full, sharing, unbounded=infinite),
        estimate(f"{gain} by the score", before - plain, sharing, unbounded=infinite),
        estimate(f"{gain} by features", plain - full, sharing, unbounded=False),
    )


def _feature_losses(rows: CodedRows, path: Path) -> tuple[FeatureLoss, ...]:
    """Log loss of the last fold with one feature shuffled, less that without."""
    folds = len(path.edges) - 1
    start, end = int(path.edges[folds - 1]), int(path.edges[folds])
    held = slice(start, min(end, start + _SHUFFLED_ROWS))
    if path.chosen[-1] == 0 or held.stop - held.start < 2:
        return ()
    past = slice(0, start)
    offset = rows.plain(past)
    tables, trees = fitted_stage(rows, past, offset[past], path.chosen[-1])
    codes, base, y = rows.part(held), offset[held], rows.y[held]
    whole = log_losses(y, base + corrections(tables, trees, codes))
    used = {j for table in tables for j in table.features}
    used |= set() if trees is None else set(np.unique(trees.feature).tolist())
    order = generator(rows.seed, "shuffled features").permutation(len(y))
    found, name = [], "Log loss without the feature"
    for j in sorted(used - {len(rows.features) - 1}):
        shuffled = [code[order] if k == j else code for k, code in enumerate(codes)]
        lost = log_losses(y, base + corrections(tables, trees, shuffled)) - whole
        loss = held_out_estimate(*rows.mean(lost, held), name=name, folds=folds, n=len(y), level=0.95)
        found.append(FeatureLoss(rows.features[j].name, loss))
    return tuple(sorted(found, key=lambda one: -one.loss))


def _percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f}"


def _lines(found: Audit) -> list[str]:
    """The audit in words, worst first."""
    error = found.error
    l1, split = error.l1, error.log_loss
    low, level = (0.0, 1 - found.alpha) if l1.interval is None else (l1.interval.low, l1.interval.level)
    answer = "Yes" if found.test.p_value <= found.alpha else "Not detected"
    error_of = "Mean |E[Y | X, p] - p|" + (f" of the {found.outcome}" if found.outcome else "")
    lines = [
        f"Given the features, is miscalibration left? {answer} (p = {found.test.p_value:.2g}, n = {found.n:,})",
        f"{error_of}: at least {_percent(low)} points ({100 * level:.4g} % confidence); estimate "
        f"{_percent(max(l1, 0.0))}, from the score alone {_percent(error.l1_score.clipped)}",
    ]
    if not math.isfinite(split.before):
        lines.append("Log loss is infinite: an outcome of predicted probability 0 was observed")
    elif split.total <= 0:
        lines.append("Log loss did not fall by recalibration, of the score or by features")
    else:
        shares = [f"{_percent(part / split.before)} %" for part in (split.total, split.score, split.features)]
        lines.append(
            f"Log loss could fall by {shares[0]}: {shares[1]} by recalibrating the score, {shares[2]} more by features"
        )
    for one in found.segments:
        name = f"{one.outcome}: " if one.outcome else ""
        lines.append(
            f"  {name}{one.text}: {_percent(one.share)} % of rows, predicted {_percent(one.predicted)} %, observed "
            f"{_percent(one.observed)} % [{_percent(one.interval.low)}, {_percent(one.interval.high)}], adjusted p "
            f"{one.adjusted:.2g}"
        )
    ranked = [one for one in found.features if one.loss.interval is not None and one.loss.interval.low > 0]
    if ranked and math.isfinite(split.before):
        names = (f"{printable(one.feature)} {_percent(one.loss / split.before, 2)} %" for one in ranked[:6])
        lines.append("Features: " + ", ".join(names))
    return lines
