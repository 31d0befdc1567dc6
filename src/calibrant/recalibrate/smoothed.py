"""The default map of the variational estimator for one event, as a scikit-learn estimator."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.folds import fold_counts, fold_of_rows
from calibrant.numerics.smoothers import MIN_WEIGHT, LogitBins, SmootherAverage
from calibrant.recalibrate.base import BinaryRecalibrator
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.recalibrate.sql_scores import SqlScores

#: Parts of the rows over which the isotonic member is cross-fitted.
PARTS = 5


class Smoothed(BinaryRecalibrator):
    """Average of penalised logistic smoothers of the log odds, from none over affine to splines, and isotonic steps.

    Members count by their marginal and their leave-one-out likelihood, so there is nothing to choose. It is what
    `calibrant.calibration_error` fits in every fold by default. See `calibrant.numerics.smoothers`.

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
        self.shift_, self.shrink_ = average.shift[0], average.shrink[0]
        self.member_weight_, self.steps_ = average.weight[0], average.steps[0]
        self.steps_weight_ = float(average.steps_weight[0])

    def _map(self, scores: Scores) -> Floats:
        nothing = np.zeros(len(self.edges_) + 1)
        bins = LogitBins(self.edges_, self.limit_, nothing, nothing, nothing.astype(bool))
        average = SmootherAverage(
            bins,
            self.shift_[None],
            self.shrink_[None],
            self.member_weight_[None],
            self.steps_[None],
            np.array([self.steps_weight_]),
        )
        return average.predict(0, scores.log_odds)

    def _map_sql(self, scores: SqlScores) -> str:
        members = np.flatnonzero(self.member_weight_ >= MIN_WEIGHT)
        used = self.steps_weight_ >= MIN_WEIGHT
        share = (1 - self.steps_weight_ * used) / self.member_weight_[members].sum()
        z = scores.log_odds_within(-self.limit_, self.limit_)
        pieces = []
        for index in range(len(self.edges_) + 1):
            shift, shrink = self.shift_[members, index], self.shrink_[members, index]
            parts = self._members_sql(scores, z, shift, shrink)
            steps = [f"{scores.dialect.number(self.steps_weight_ * self.steps_[index])} + "] if used else []
            pieces.append(f"({''.join(steps)}{scores.dialect.mixture(share * self.member_weight_[members], parts)})")
        return scores.steps("log_odds", self.edges_, pieces)

    def _members_sql(self, scores: SqlScores, z: str, shift: Floats, shrink: Floats) -> list[str]:
        """The probabilities of the members within one bin."""
        number, largest = scores.dialect.number, (self.limit_ + np.abs(shift)) * shrink
        return [
            scores.dialect.expit(f"(({z} + {number(move)}) * {number(factor)})", largest=float(size))
            for move, factor, size in zip(shift, shrink, largest, strict=True)
        ]


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
