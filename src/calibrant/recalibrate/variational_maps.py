"""The default maps of the variational estimator, binary and multiclass, as scikit-learn estimators."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Codes, Floats, Reals
from calibrant.numerics.multiclass_features import SharedFeatures
from calibrant.numerics.multiclass_map import Correction, Frame, Locality, Stages, fit_stages, working_weights
from calibrant.numerics.multiclass_matrices import PairCells, PairTables
from calibrant.numerics.random_draws import fold_counts, fold_of_rows
from calibrant.numerics.simplex_kernels import SimplexKernels
from calibrant.numerics.smoothers import MIN_WEIGHT, LogitBins, SmootherAverage
from calibrant.recalibrate.base import BinaryRecalibrator, Recalibrator
from calibrant.recalibrate.expressions import Expression, ScoreExpressions, expit, mixture
from calibrant.recalibrate.inputs import BinomialCells, Scores

#: Parts of the rows over which the isotonic member is cross-fitted.
#: Test: tests/recalibrate/test_variational_maps.py::test_five_parts_hold_every_row_once.
PARTS = 5
#: Rows that `ConditionalLogit` predicts at once, always as many, the last one repeated: products of matrices round by
#: their shape, and what a row is predicted must not depend on the rows beside it.
#: Test: tests/recalibrate/test_variational_maps.py::test_a_row_alone_is_predicted_as_among_others.
ROWS = 128


class Smoothed(BinaryRecalibrator):
    """Average of penalised logistic smoothers of the log odds, from none through affine to splines, and isotonic steps.

    Members are weighted by their marginal and leave-one-out likelihoods, so there is nothing to tune. It is what
    `calibrant.variational_error` fits in every fold by default. See `calibrant.numerics.smoothers`.

    Parameters
    ----------
    input, laplace, clip
        As for `Recalibrator`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> Smoothed().fit(p, rng.random(5000) < p**2).predict_proba([0.5])[0, 1].round(2)
    np.float64(0.27)
    """

    def _fit_cells(self, cells: BinomialCells) -> None:
        bins = LogitBins.of(cells.log_odds, cells.weight)
        index, m = bins.index(cells.log_odds), len(bins)
        zeros, ones = _parts(np.stack([cells.weight - cells.positive, cells.positive]), cells.log_odds, index, m)
        average = SmootherAverage.fit(bins, ones, zeros, [PARTS])
        self.edges_, self.limit_ = bins.edges, bins.limit
        self.shift_, self.member_weight_, self.steps_ = average.shift[0], average.weight[0], average.steps[0]
        self.steps_weight_ = float(average.steps_weight[0])

    def _map(self, scores: Scores) -> Floats:
        nothing = np.zeros(len(self.edges_) + 1)
        bins = LogitBins(self.edges_, self.limit_, nothing, nothing, nothing.astype(bool))
        fitted = self.shift_[None], self.member_weight_[None], self.steps_[None], np.array([self.steps_weight_])
        return SmootherAverage(bins, *fitted).predict(0, scores.log_odds)

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        members = np.flatnonzero(self.member_weight_ >= MIN_WEIGHT)
        used = self.steps_weight_ >= MIN_WEIGHT
        share = (1 - self.steps_weight_ * used) / self.member_weight_[members].sum()
        z = scores.log_odds_within(-self.limit_, self.limit_)
        pieces = []
        for index in range(len(self.edges_) + 1):
            shift = self.shift_[members, index].tolist()
            parts = [expit(z + move, largest=self.limit_ + abs(move)) for move in shift]
            smooth = mixture(share * self.member_weight_[members], parts)
            pieces.append(float(self.steps_weight_ * self.steps_[index]) + smooth if used else smooth)
        return scores.steps("log_odds", self.edges_, pieces)


def _parts(values: Floats, log_odds: Floats, index: Codes, size: int) -> tuple[Floats, Floats]:
    """Sums of each row of `values` per part and bin, (PARTS + 1, size); the last part is empty.

    Whole numbers are counts of rows, each of which falls into a part by itself; other weights are not divided, and
    parts are drawn for the sorted cells, so that their order does not matter.
    """
    parts = np.zeros((2, PARTS + 1, size))
    if np.array_equal(values, np.round(values)):
        counts: Floats = np.stack([np.bincount(index, column, size) for column in values])
        parts[:, :PARTS] = np.moveaxis(fold_counts(counts, [1] * PARTS, seed=0), 0, 1)
    else:
        part_of = np.empty(len(index), np.intp)
        part_of[np.lexsort((*values, log_odds))] = fold_of_rows(len(index), [1] * PARTS, seed=0)
        place = part_of * size + index
        for part, column in zip(parts, values, strict=True):
            part[:PARTS] = np.bincount(place, column, PARTS * size).reshape(PARTS, size)
    return parts[0], parts[1]


class ConditionalLogit(Recalibrator):
    r"""Multiclass conditional logit, with a matrix, interactions and a correction by nearby training rows.

    .. math:: \log g_c = z_c + x_c(z)^\top b + (W u)_c + t_c(z) + \gamma^\top r_c(z) - \text{normaliser}

    - x: smooth features of the class's own log probability z and of the top confidence, shared by the classes, and an
      intercept and a slope per class;
    - W: a matrix, for confusions; with more than 40 classes from 48 principal scores to the 16 leading ones of a row;
    - t: tables of two log odds, for interactions of the leading pairs of at most 40 classes;
    - r: log ratios of observed to expected class counts among the 10 and 40 nearest training rows, left out where there
      are more than 40 classes and more than four million probabilities.

    With at most 40 classes the result is averaged with kernel estimates on the simplex, of widths .12, .06 and .03.

    Each part has a ridge set by its marginal likelihood, or must gain enough on the training rows, and may shrink to
    nothing. There is nothing to tune. The map is deterministic, and with 1,000 classes needs about three times the
    memory of the scores in single precision. It is what `calibrant.variational_error` fits in every fold by default for
    several classes; see `calibrant.numerics.multiclass_map`. Up to 3,750 training rows are kept for their
    neighbourhoods.

    Parameters
    ----------
    input, laplace, clip
        As for `Recalibrator`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2000)
    >>> y = (rng.random(2000)[:, None] > np.cumsum(p**2 / (p**2).sum(axis=1)[:, None], axis=1)).sum(axis=1)
    >>> ConditionalLogit().fit(p, y).predict_proba([[0.6, 0.3, 0.1]]).round(1)
    array([[0.8, 0.2, 0. ]])
    """

    _may_be_infinite = frozenset({"edges_"})

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        frame, rows = Frame.of(_matrix(scores), logits=scores.logits)
        single = working_weights(np.ones(len(codes)) if weight is None else weight)
        position, every = rows.entries.positions(codes), np.arange(len(codes))
        stages = fit_stages(frame, rows, position, single, every, seed=0, group=None)
        locality, train = Locality.of(rows), np.ones(len(codes), dtype=bool)
        local, kernels = locality.fitted(stages, codes, single, train, *locality.trials(codes, single, [train]))
        self.rows_, self.scale_ = frame.rows, frame.features.scale
        self.quantiles_, self.top_range_ = frame.features.quantiles, frame.features.top_range
        self.mean_, self.axes_ = frame.mean, frame.axes
        self.pairs_ = [np.stack([cells.first, cells.second]) for cells in frame.cells]
        self.edges_ = [cells.edges for cells in frame.cells]
        self.coefficients_, self.matrix_ = stages.coefficients, stages.matrix
        self.tables_ = [np.stack([tables.pair, tables.other]) for tables in stages.tables]
        self.table_values_ = [tables.values for tables in stages.tables]
        self.near_, self.surplus_, self.expected_ = local.at, local.surplus, local.expected
        self.local_ = local.coefficients
        self.kernels_at_, self.kernels_outcome_, self.kernels_share_ = kernels.at, kernels.outcome, kernels.share

    def _predict(self, scores: Scores) -> Floats:
        stages = self._stages()
        local = Correction(self.near_, self.surplus_, self.expected_, self.local_)
        kernels = SimplexKernels(self.kernels_at_, self.kernels_outcome_, self.kernels_share_)
        result = np.empty((len(scores), scores.classes))
        for start in range(0, len(scores), ROWS):
            places = np.minimum(np.arange(start, start + ROWS), len(scores) - 1)
            rows = stages.frame.prepare(_matrix(scores.take(places)), logits=scores.logits)
            q = np.exp(local.added_to(stages.logs(rows), rows.places).astype(np.float64))
            q = kernels.averaged(q / q.sum(axis=1, keepdims=True), rows.probabilities)
            block = result[start : start + ROWS]
            block[:] = (q / q.sum(axis=1, keepdims=True))[: len(block)]
        return result

    def _stages(self) -> Stages:
        """The fitted stages, from what was kept of them."""
        features = SharedFeatures(self.quantiles_, self.top_range_, self.scale_)
        cells = tuple(PairCells(of[0], of[1], edges) for of, edges in zip(self.pairs_, self.edges_, strict=True))
        tables = tuple(PairTables(of[0], of[1], own) for of, own in zip(self.tables_, self.table_values_, strict=True))
        frame = Frame(self.rows_, features, self.mean_, self.axes_, cells)
        return Stages(frame, self.coefficients_, self.matrix_, tables)


def _matrix(scores: Scores) -> Reals:
    """Scores with one column per class, as they were given; binary logits get a zero for the other class."""
    if scores.values.ndim == 2:
        return scores.values
    return scores.log_probabilities if scores.logits else scores.probabilities
