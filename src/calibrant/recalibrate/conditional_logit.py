"""The default map of the variational estimator for several classes, as a scikit-learn estimator."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Codes, Floats, Reals, row_blocks
from calibrant.numerics.class_frame import Frame
from calibrant.numerics.class_map import Correction, Locality, Stages, fit_stages, working_weights
from calibrant.numerics.log_odds_tables import PairCells, PairTables
from calibrant.numerics.shared_features import SharedFeatures
from calibrant.recalibrate.base import Recalibrator
from calibrant.recalibrate.inputs import Scores


class ConditionalLogit(Recalibrator):
    r"""Conditional logit of several classes, with a matrix, interactions and a correction by near training rows.

    .. math:: \log g_c = z_c + x_c(z)^\top b + (W u)_c + t_c(z) + \gamma^\top r_c(z) - \text{normaliser}

    - x: smooth features of the class's own log probability z and of the top confidence, shared by the classes, and an
      intercept and a slope per class;
    - W: a matrix, for confusions; with more than 40 classes from 48 principal scores to the 16 leading ones of a row;
    - t: tables of two log odds, for interactions of the leading pairs of at most 40 classes;
    - r: log ratios of observed to expected class counts among 10 and 40 near training rows, left out where there are
      more than 40 classes and more than four million probabilities.

    Each part has a ridge set by its marginal likelihood, or must gain enough on the training rows, and may be nothing.
    Nothing is left to choose. The map is deterministic, and with 1,000 classes needs about three times the memory of
    the scores in single precision. It is what `calibrant.calibration_error` fits in every fold by default for several
    classes; see `calibrant.numerics.class_map`. Up to 3,750 training rows are kept for their neighbourhoods.

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
        local = Locality.of(rows).correction(stages, codes, single, np.ones(len(codes), dtype=bool))
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

    def _predict(self, scores: Scores) -> Floats:
        stages = self._stages()
        local = Correction(self.near_, self.surplus_, self.expected_, self.local_)
        result = np.empty((len(scores), scores.classes))
        for block in row_blocks(*result.shape):
            rows = stages.frame.prepare(_matrix(scores.take(block)), logits=scores.logits)
            logs = local.added_to(stages.logs(rows), rows.places).astype(np.float64)
            np.exp(logs, out=logs)
            result[block] = logs / logs.sum(axis=1, keepdims=True)
        return result

    def _stages(self) -> Stages:
        """The fitted stages, from what was kept of them."""
        features = SharedFeatures(self.quantiles_, self.top_range_, self.scale_)
        cells = tuple(
            PairCells(pairs[0], pairs[1], edges) for pairs, edges in zip(self.pairs_, self.edges_, strict=True)
        )
        frame = Frame(self.rows_, features, self.mean_, self.axes_, cells)
        tables = (
            PairTables(pairs[0], pairs[1], values)
            for pairs, values in zip(self.tables_, self.table_values_, strict=True)
        )
        return Stages(frame, self.coefficients_, self.matrix_, tuple(tables))


def _matrix(scores: Scores) -> Reals:
    """Scores with one column per class, as they were given; logits of one event get a zero for the other class."""
    if scores.values.ndim == 2:
        return scores.values
    return scores.log_probabilities if scores.logits else scores.probabilities
