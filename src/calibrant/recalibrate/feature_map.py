"""The map with features: the default map of the score, and beyond it tables and trees of features that help."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data import groups, validation
from calibrant.data.features import Feature, FeatureCodes, coded
from calibrant.data.predictions import Binary, Predictions
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Codes, Floats, clipped_log_odds, expit, softplus
from calibrant.numerics.boosting import NO_CUT, Growth, Layout, Table, Trees, boosted_tables, boosted_trees, leaves
from calibrant.numerics.logistic.binary import logistic_fit
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import mean_and_error
from calibrant.recalibrate import expressions
from calibrant.recalibrate.auto import Auto
from calibrant.recalibrate.base import BinaryMap, fitted, predicted
from calibrant.recalibrate.bayesian_average import LARGEST, BayesianAverage
from calibrant.recalibrate.export import FeatureInput, predicted_expressions
from calibrant.recalibrate.expressions import Expression, ScoreExpressions
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.model_averaging import certainty_floor
from calibrant.table.bintable import BinTable

#: What the score is called among the features.
SCORE = "predicted probability"
#: The most tables of a map; trees between two looks at the loss.
#: Test: tests/recalibrate/test_feature_map.py::test_what_the_constants_learn.
_TABLES, _TREES_A_STAGE = 10, 4
#: Below this many rows trees have two levels, else four; the ridge of their leaves (see `Growth`).
#: Test: tests/recalibrate/test_feature_map.py::test_what_the_constants_learn.
_SMALL, _RIDGE = 1500, 8.0
#: Up to this many rows a map has up to the first number of trees, beyond up to the second.
#: Test: tests/recalibrate/test_feature_map.py::test_how_many_trees_and_folds.
_MANY, _TREES = 200_000, (400, 60)
#: Up to this many rows there are so many folds; beyond, as the second number says.
#: Test: tests/recalibrate/test_feature_map.py::test_how_many_trees_and_folds.
_FOLDED, _FOLDS = 100_000, (5, 3)


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Binary outcomes with coded features, the score last, in an order that is random but not that of the input.

    Weights add up to the effective number of rows; ones, where there are none. `unit` is the number of each row's
    cluster, `place` rises in [0, 1): splits are made by it, so that clusters stay whole. `order` is the number of each
    row among those given.
    """

    y: Floats
    p: Floats
    weight: Floats
    features: tuple[Feature, ...]
    codes: list[FeatureCodes]
    layout: Layout
    unit: NDArray[np.intp] | None
    place: Floats
    order: NDArray[np.intp]
    weighted: bool
    seed: int

    @classmethod
    def of(
        cls,
        y: NDArray[Any],
        p: NDArray[Any],
        X: Any,
        weight: Floats | None = None,
        group: NDArray[Any] | None = None,
        *,
        kept: NDArray[np.intp] | None = None,
        n: int | None = None,
        seed: int = 0,
    ) -> CodedRows:
        """Validated outcomes and scores of rows that have weight, with features as a user gives them.

        Features and groups are of all `n` rows, of which `kept` are the numbers of those that have weight.
        """
        rows = np.arange(len(y)) if kept is None else kept
        features, codes = coded(X, len(y) if n is None else n, rows=kept)
        if any(one.name == SCORE for one in features):
            fail(f"X has a column called {SCORE!r}, as the score itself is called here: rename it.")
        y, p = y.astype(np.float64), p.astype(np.float64)
        score, score_codes = coded({SCORE: p}, len(p))
        features, codes = [*features, *score], [*codes, *score_codes]
        unit = None if group is None else np.unique(group[rows], return_inverse=True)[1].reshape(-1)
        w = np.ones(len(y)) if weight is None else weight
        place = _places([y, np.round(p, 12), np.round(w, 9), *codes], unit, seed)
        order = np.argsort(place, kind="stable")
        layout = Layout(tuple(one.kind == "category" for one in features), tuple(one.size for one in features))
        columns = y[order], p[order], w[order], tuple(features), [code[order] for code in codes], layout
        unit = None if unit is None else unit[order]
        return cls(*columns, unit, place[order], rows[order], weight is not None, seed)

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def log_odds(self) -> Floats:
        """Of the scores, within the bounds of the maps."""
        return np.clip(clipped_log_odds(self.p), -LARGEST, LARGEST)

    @property
    def depth(self) -> int:
        """Levels of trees."""
        return 2 if len(self) < _SMALL else 4

    def part(self, rows: Any) -> list[FeatureCodes]:
        """The codes of some rows."""
        return [code[rows] for code in self.codes]

    def edges(self, parts: int) -> Codes:
        """Where parts of about equal size begin and end; clusters are not divided."""
        return self.place.searchsorted(np.arange(parts + 1) / parts)

    def mean(self, values: Floats, rows: slice = slice(None)) -> tuple[float, float]:
        """The weighted mean of some rows and its standard error, with clusters as units."""
        return mean_and_error(values, self.weight[rows], None if self.unit is None else self.unit[rows])

    def tables(self, rows: Any, offset: Floats, most: int = _TABLES) -> list[Table]:
        """Tables fitted to some rows, from log odds of these rows."""
        return boosted_tables(self.part(rows), self.layout, self.y[rows], offset, self.weight[rows], most=most)

    def trees(self, rows: Any, offset: Floats, number: int, watch: Any = None, growth: Growth | None = None) -> Trees:
        """Trees fitted to some rows, from log odds of these rows."""
        rng = generator(self.seed, "rows that choose splits")
        growth = Growth(number, self.depth, _RIDGE) if growth is None else growth
        data = self.part(rows), self.layout, self.y[rows], offset, self.weight[rows]
        return boosted_trees(*data, growth, rng=rng, watch=watch)

    def plain(self, rows: Any) -> Floats:
        """Log odds of all rows by the default map of the score, fitted to some."""
        weight = self.weight[rows] if self.weighted else None
        inner = fitted(BayesianAverage(), Scores(self.p[rows], logits=False), self.y[rows], weight)
        q = predicted(inner, Scores(self.p, logits=False))[:, 1]
        return np.clip(clipped_log_odds(q), -LARGEST, LARGEST)


def _places(parts: Sequence[NDArray[Any]], unit: NDArray[np.intp] | None, seed: int) -> Floats:
    """A random place in [0, 1) for each row (or cluster), by what it holds, not by its number."""
    key = np.zeros(len(parts[0]), np.uint64)
    for part in parts:
        bits = np.ascontiguousarray(part, np.float64).view(np.uint64)
        key = (key ^ bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(32)
    if unit is not None:
        whole = np.zeros(int(unit.max()) + 1, np.uint64)
        np.add.at(whole, unit, key)
        key = whole
    place = np.empty(len(key))
    place[np.argsort(key, kind="stable")] = generator(seed, "order of rows").permutation(len(key)) / len(key)
    return place if unit is None else place[unit]


@dataclass(frozen=True, eq=False)
class Path:
    """Out-of-fold log odds along the path: the map of the score, then tables, then trees.

    By the score alone they are `plain`, with features `full`. How far to go was `chosen` for each fold by the others,
    so that a fold says nothing about its own predictions; by all folds it is `stage`. Folds begin and end at `edges`.
    """

    plain: Floats
    full: Floats
    stage: int
    chosen: list[int]
    edges: Codes

    @classmethod
    def of(cls, rows: CodedRows) -> Path:
        """Fit the path without each fold."""
        folds, trees = _FOLDS[len(rows) > _FOLDED], _TREES[len(rows) > _MANY]
        edges, n = rows.edges(folds), len(rows)
        plain, curves, stages = rows.log_odds.copy(), list[Floats](), list[list[NDArray[np.float32]]]()
        for k in range(folds):
            held = slice(int(edges[k]), int(edges[k + 1]))
            others = np.r_[0 : held.start, held.stop : n]
            if not len(others) or held.start == held.stop:
                continue
            every = rows.plain(others)
            plain[held] = every[held]
            walk = _Walk(rows, held, every[held])
            walk.along(rows, others, every[others], trees)
            curves.append(np.array(walk.losses))
            stages.append(walk.kept)
        if not curves:
            return cls(plain, plain.copy(), 0, [0] * folds, edges)
        length = min(map(len, curves))
        losses = np.stack([curve[:length] - curve[0] for curve in curves])
        full, chosen, number = plain.copy(), [0] * folds, 0
        for k in range(folds):
            held = slice(int(edges[k]), int(edges[k + 1]))
            if held.start == held.stop:
                continue
            chosen[k] = int((losses.sum(axis=0) - losses[number]).argmin())
            full[held] += stages[number][chosen[k]]
            number += 1
        return cls(plain, full, int(losses.sum(axis=0).argmin()), chosen, edges)


class _Walk:
    """Corrections of held-out rows at each stage of the path, and their losses."""

    def __init__(self, rows: CodedRows, held: slice, plain: Floats) -> None:
        self.codes, self.y, self.weight, self.plain = rows.part(held), rows.y[held], rows.weight[held], plain
        self.correction = np.zeros(len(plain))
        self.kept: list[NDArray[np.float32]] = []
        self.losses: list[float] = []
        self.ranked: list[FeatureCodes] | None = None
        self._look()

    def along(self, rows: CodedRows, others: Codes, offset: Floats, trees: int) -> None:
        tables = rows.tables(others, offset)
        codes = rows.part(others)
        for table in tables:
            self.correction += table.predict(self.codes)
            offset = offset + table.predict(codes)
            self._look()
        while len(self.kept) <= _TABLES:
            self.kept.append(self.kept[-1])
            self.losses.append(self.losses[-1])
        rows.trees(others, offset, trees, self._watch)

    def _look(self) -> None:
        log_odds = self.plain + self.correction
        self.losses.append(float(self.weight @ log_losses(self.y, log_odds)))
        self.kept.append(self.correction.astype(np.float32))

    def _watch(self, tree: int, ranks: dict[int, Any], feature: Any, cut: Any, value: Floats) -> bool:
        if self.ranked is None:
            self.ranked = [ranks[j][code] if j in ranks else code for j, code in enumerate(self.codes)]
        self.correction += value[leaves(self.ranked, feature, cut)]
        if tree % _TREES_A_STAGE == _TREES_A_STAGE - 1:
            self._look()
        recent = self.losses[-4:]
        return len(self.losses) > _TABLES + 6 and min(recent) > min(self.losses)


def log_losses(y: Floats, log_odds: Floats) -> Floats:
    """Minus the log likelihood of each row."""
    return softplus(log_odds) - y * log_odds


def fitted_stage(rows: CodedRows, some: Any, offset: Floats, stage: int) -> tuple[list[Table], Trees | None]:
    """Tables and trees of some rows up to a stage of the path, from log odds of these rows."""
    tables = rows.tables(some, offset, min(stage, _TABLES))
    if stage <= _TABLES:
        return tables, None
    codes = rows.part(some)
    for table in tables:
        offset = offset + table.predict(codes)
    return tables, rows.trees(some, offset, _TREES_A_STAGE * (stage - _TABLES))


def corrections(tables: Sequence[Table], trees: Trees | None, codes: Sequence[FeatureCodes]) -> Floats:
    """What tables and trees add to the log odds."""
    found = np.zeros(len(codes[0])) if trees is None else trees.predict(codes)
    for table in tables:
        found = found + table.predict(codes)
    return found


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureMap(BinaryMap):
    r"""Recalibration by score and features: the repair of a model that is wrong for some rows more than for others.

    .. math:: \operatorname{logit} q = \operatorname{logit} g(p)
              + s \Bigl(\sum_t T_t(x, p) + \sum_b B_b(x, p)\Bigr)

    g is `Auto`, so that a calibrated model stays as it is. Tables T of one or two features and shallow trees B are
    added along a path whose length has the least out-of-fold log loss; features are used only if they lower it by more
    than one standard error, and the factor s, at most 1, minimises the out-of-fold log loss. If they are not used, the
    map is `Auto` exactly. There is no guarantee that a map helps on new rows: look at the measured gain.

    Parameters
    ----------
    seed : int
        Of the folds and of the rows that choose splits. The order of rows and columns does not matter.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    plain_ : Auto
        The map of the score.
    uses_features_ : bool
        Whether features are used.
    feature_names_in_ : array of str
        Names of all features of the fit.
    features_ : list of dict
        Those that are used: name, kind, cuts and values.
    tables_, trees_ : list of dict, dict
        What is added; numbers of features are those of `features_`, and one more is the score.
    scale_ : float
        The factor s; 0 if features are not used.
    gain_, gain_se_ : float
        Out-of-fold gain in log loss of the features over `Auto`, and its standard error.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, device = rng.uniform(0.1, 0.6, 4000), rng.choice(["app", "web"], 4000)
    >>> y = rng.random(4000) < p + 0.2 * (device == "app")
    >>> fixed = cal.recalibrate.FeatureMap().fit(p, y, features={"device": device})
    >>> fixed.uses_features_
    True
    >>> fixed.predict_proba([0.3, 0.3], {"device": ["app", "web"]})[:, 1].round(1)
    array([0.5, 0.3])
    """

    _uses_features: ClassVar[bool] = True

    seed: int = 0

    def fit(
        self,
        scores: ArrayLike | Predictions | BinTable,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        features: Any = None,
        group: ArrayLike | None = None,
        classes: Sequence[Hashable] | NDArray[Any] | None = None,
        effective_n: float | None = None,
    ) -> Self:
        """Fit the map to scores, observed classes and features.

        Parameters
        ----------
        scores, y, sample_weight, classes, effective_n
            As for all maps; scores are those of an event: one column, or two.
        features : data frame, mapping of columns, or array
            One row per score. Numbers, booleans and categories (text); missing is a value.
        group : array-like, optional
            Ids of rows that belong together; they stay in one fold.
        """
        if features is None:
            fail("FeatureMap.fit needs features=...: a data frame, a mapping of columns or an array.", TypeError)
        if isinstance(scores, Binary):
            scores.require_same_rows(features=features)
            y, sample_weight, group = scores.y_true, scores.weight, scores.group if group is None else group
            scores, classes = scores.y_prob, [0, 1]
        elif isinstance(scores, Predictions | BinTable):
            fail(f"FeatureMap needs rows of an event and their features, not {scores!r}.", TypeError)
        else:
            validation.require_same_index([("scores", scores), ("features", features), ("group", group)])
        checked, codes, weight, some = self._rows_to_fit(scores, y, sample_weight, classes, effective_n)
        n = len(checked) if some is None else len(np.asarray(y))
        unit = None if group is None else groups.groups("group", group, length=n)
        p = checked.probability.astype(np.float64)
        rows = CodedRows.of(codes, p, features, weight, unit, kept=some, n=n, seed=validation.seed(self.seed))
        self._learn(rows, Path.of(rows), Auto().fit(p, codes, weight, classes=[0, 1]))
        return self

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        fail("FeatureMap needs features, so it cannot be part of another map.", TypeError)

    @classmethod
    def of_path(cls, rows: CodedRows, path: Path) -> FeatureMap:
        """The map of a path that was fitted before, for the classes 0 and 1."""
        made = cls(seed=rows.seed)
        plain = Auto().fit(rows.p, rows.y.astype(np.intp), rows.weight if rows.weighted else None, classes=[0, 1])
        made._set_one_event(plain.weight_)
        made._learn(rows, path, plain)
        return made

    def _learn(self, rows: CodedRows, path: Path, plain: Auto) -> None:
        self.plain_ = plain
        self.feature_names_in_ = np.array([feature.name for feature in rows.features[:-1]], dtype=object)
        difference = log_losses(rows.y, path.plain) - log_losses(rows.y, path.full)
        self.gain_, self.gain_se_ = rows.mean(difference)
        self.uses_features_ = bool(path.stage > 0 and self.gain_ > self.gain_se_)
        self.scale_ = _scale(rows, path) if self.uses_features_ else 0.0
        tables, trees = list[Table](), None
        if self.scale_ > 0:
            offset = np.clip(clipped_log_odds(plain.predict_proba(rows.p)[:, 1]), -LARGEST, LARGEST)
            tables, trees = fitted_stage(rows, slice(None), offset, path.stage)
        self._keep(rows, tables, trees)

    def _keep(self, rows: CodedRows, tables: list[Table], trees: Trees | None) -> None:
        """The fitted attributes, with the numbers of those features that are used."""
        score = len(rows.features) - 1
        used = {j for table in tables for j in table.features}
        used |= set() if trees is None else set(trees.feature[trees.cut < NO_CUT].tolist())
        order = sorted(used - {score})
        place = {j: k for k, j in enumerate([*order, score])}
        self.features_ = [rows.features[j].to_dict() for j in order]
        self.score_cuts_ = list(rows.features[score].cuts)
        self.tables_: list[dict[str, Any]] = [
            {"features": [place[j] for j in one.features], "cells": list(one.cells), "value": one.value}
            for one in tables
        ]
        self.trees_: dict[str, Any] = {}
        if trees is not None and used:
            nodes = np.vectorize(lambda j: place.get(j, 0), otypes=[np.int64])(trees.feature)
            ranks = {str(place[j]): rank for j, rank in trees.ranks.items() if j in place}
            self.trees_ = {"feature": nodes, "cut": trees.cut, "value": trees.value, "ranks": ranks}

    @property
    def _features(self) -> list[Feature]:
        return [Feature.from_dict(one) for one in self.features_]

    @property
    def _parts(self) -> tuple[list[Table], Trees | None]:
        tables = [Table(tuple(one["features"]), tuple(one["cells"]), one["value"]) for one in self.tables_]
        if not self.trees_:
            return tables, None
        known = self.trees_
        ranks = {int(j): rank for j, rank in known["ranks"].items()}
        return tables, Trees(ranks, known["feature"], known["cut"], known["value"])

    def predict_proba(self, scores: ArrayLike, features: Any = None) -> Floats:
        """Recalibrated probabilities, one column per class; rows sum to 1.

        `features` are those of the fit, at least the columns in `features_`.
        """
        checked = self._scores_to_predict(scores)
        validation.require_same_index([("scores", scores), ("features", features)])
        q = self._corrected(checked, features)
        return self._finite(self._mixed(np.stack([1 - q, q], axis=1)))

    def transform(self, scores: ArrayLike, features: Any = None) -> Floats:
        """Recalibrated probabilities in the shape of the scores: see `Recalibrator.transform`."""
        p, shape = self.predict_proba(scores, features), validation.as_array("scores", scores).shape
        return p if len(shape) == 2 and shape[1] > 1 else p[:, 1].reshape(shape)

    def predict(self, scores: ArrayLike, features: Any = None) -> NDArray[Any]:
        """The class of the highest recalibrated probability."""
        return self.classes_[self.predict_proba(scores, features).argmax(axis=1)]

    def _map(self, scores: Scores) -> Floats:
        return self._corrected(scores, None)

    def _corrected(self, scores: Scores, features: Any) -> Floats:
        """Recalibrated probability of the second class."""
        p = scores.probability.astype(np.float64)
        plain = predicted(self.plain_, Scores(p, logits=False))[:, 1]
        if self.scale_ == 0:
            return plain
        known = self._features
        if features is None and known:
            fail(f"FeatureMap needs features: the columns {[one.name for one in known]}.", TypeError)
        codes = coded(features, len(p), features=known)[1] if known else []
        codes += coded({SCORE: p}, len(p), features=[Feature(SCORE, "number", tuple(self.score_cuts_))])[1]
        log_odds = np.clip(clipped_log_odds(plain), -LARGEST, LARGEST)
        q = expit(log_odds + self.scale_ * corrections(*self._parts, codes))
        floor = certainty_floor(self.weight_)
        return np.clip(q, np.minimum(p, floor), np.maximum(p, 1 - floor))

    def _feature_inputs(self) -> list[FeatureInput]:
        return [FeatureInput(one["name"], text=one["kind"] == "category") for one in self.features_]

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        if self.scale_ == 0:
            return predicted_expressions(self.plain_, scores)[1]
        p, first = scores.probability, len(scores.columns)
        columns = [
            expressions.CodedColumn(one, Expression("column", value=first + k)) for k, one in enumerate(self._features)
        ]
        columns.append(expressions.CodedColumn(Feature(SCORE, "number", tuple(self.score_cuts_)), p))
        tables, trees = self._parts
        terms = [expressions.table_expression(table, columns, self.scale_) for table in tables]
        if trees is not None:
            parts = zip(trees.feature, trees.cut, self.scale_ * trees.value, strict=True)
            terms += [expressions.tree_expression(0, *part, trees.ranks, columns) for part in parts]
        q = expressions.expit(expressions.total([self._plain_log_odds(scores), *terms]))
        return expressions.kept_from_certainty(q, p, certainty_floor(self.weight_))

    def _plain_log_odds(self, scores: ScoreExpressions) -> Expression:
        """Log odds of the plain map, without a detour by its probability: parsers of SQL nest only so deep."""
        (inner,) = self.plain_.maps_
        corrected = scores.interpolated(inner.log_odds_, inner.corrected_, of="log_odds")
        own, floor = scores.log_odds_within(-LARGEST, LARGEST), certainty_floor(self.weight_)
        limit = float(np.log(floor / (1 - floor)))
        low, high = expressions.within(own, -np.inf, limit), expressions.function("GREATEST", own, -limit)
        return expressions.function("LEAST", expressions.function("GREATEST", corrected, low), high)

    def _check_restored(self) -> None:
        super()._check_restored()
        tables, trees = self._parts
        sizes = [*(one.size for one in self._features), len(self.score_cuts_) + 2]
        wrong = any(len(cells) != sizes[j] for one in tables for j, cells in zip(one.features, one.cells, strict=True))
        if wrong or (trees is not None and (trees.feature.max() >= len(sizes) or trees.feature.min() < 0)):
            fail("tables and trees do not fit the features", ValueError)

    def _tried(self, scores: Floats) -> Floats:
        columns: dict[str, Any] = {}
        for one in self._features:
            some: list[Any] = [None, *(one.values if one.kind == "category" else one.cuts)]
            values = [some[k % len(some)] for k in range(len(scores))]
            if one.kind == "flag":
                values = [None if value is None else value > 0.5 for value in values]
            columns[one.name] = [*values[:-1], "a value that is new"] if one.kind == "category" else values
        return self.predict_proba(scores, columns)


def _scale(rows: CodedRows, path: Path) -> float:
    """The factor of the corrections with the least out-of-fold log loss, at most 1."""
    design, events = (path.full - path.plain)[:, None], rows.weight * rows.y
    fit = logistic_fit(design, weight=rows.weight, positive=events, start=np.ones(1), offset=path.plain, ridge=0.0)
    return float(np.clip(fit.coefficients[0], 0.0, 1.0))
