"""A partition of the scores by k-means."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant.data import validation
from calibrant.numerics.arrays import CHUNK, Codes, Floats
from calibrant.recalibrate.base import Recalibrator
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.sql import not_sql
from calibrant.recalibrate.sql_scores import SqlScores, last_at_most
from calibrant.table.bintable import BinTable


@dataclass(kw_only=True, eq=False, repr=False)
class Partition(Recalibrator):
    r"""Partition-wise recalibration: k-means clusters of the probability vectors, each with its class shares.

    Works for any number of classes. A cluster without rows of some class gives it (0 + 1) / (w + K), Laplace's rule,
    and the others share the rest.

    Parameters
    ----------
    clusters : int, optional
        15 for one event, 30 for more classes, by default; never more than there are distinct scores.
    allow_certainty : bool
        Give classes that do not occur in a cluster the probability 0.
    seed : int
        Seed of the initial centres.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    centres_ : array of shape (clusters, K)
        Ordered by the probability of the last class.
    values_ : array of shape (clusters, K)

    Examples
    --------
    >>> Partition(clusters=2).fit([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 1, 0, 1, 1]).values_.round(3)
    array([[0.667, 0.333],
           [0.333, 0.667]])
    """

    clusters: int | None = None
    allow_certainty: bool = False
    seed: int = 0

    def fit_table(self, table: BinTable) -> Self:
        """Fit the map to a table of one event: its cells count as rows at their mean score. Classes are 0 and 1."""
        cells = self._cells_of(table)
        counts = np.stack([cells.weight - cells.positive, cells.positive], axis=1)
        self._fit_counts(cells.scores.probabilities, counts)
        return self

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        counts = np.zeros((len(scores), scores.classes))
        counts[np.arange(len(scores)), codes] = 1.0 if weight is None else weight
        self._fit_counts(scores.probabilities, counts)

    def _fit_counts(self, points: Floats, counts: Floats) -> None:
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning

        # Distinct points in a fixed order: neither the order of the rows nor ties decide where k-means begins.
        points, place = np.unique(points, axis=0, return_inverse=True)
        counts = np.stack([np.bincount(place.reshape(-1), column) for column in counts.T], axis=1)
        wanted = self.clusters or (15 if points.shape[1] == 2 else 30)
        means = KMeans(min(wanted, len(points)), n_init="auto", random_state=validation.seed(self.seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # nearly equal points: fewer clusters are fine
            means.fit(points, sample_weight=counts.sum(axis=1))
        centres = means.cluster_centers_.astype(np.float64)
        self.centres_: Floats = centres[np.lexsort(centres.T)]
        index = self._cluster(points)
        sums: Floats = np.stack([np.bincount(index, column, len(centres)) for column in counts.T], axis=1)
        self.values_ = _shares(sums, allow_certainty=self.allow_certainty)

    def _predict(self, scores: Scores) -> Floats:
        values: Floats = self.values_[self._cluster(scores.probabilities)]
        return values

    def _sql(self, scores: SqlScores) -> list[str]:
        if scores.classes > 2:
            raise not_sql(self)
        numbers = np.arange(len(self.centres_) - 1)
        edges = last_at_most(lambda p: self._cluster(np.stack([1 - p, p], axis=1)), numbers, 0.0, 1.0)
        return [
            scores.steps("probability", edges, [scores.dialect.number(one) for one in row]) for row in self.values_.T
        ]

    def _cluster(self, points: Floats) -> Codes:
        """Number of the nearest centre."""
        squares = np.einsum("ij,ij->i", self.centres_, self.centres_)
        index = np.empty(len(points), dtype=np.intp)
        rows = max(CHUNK // len(self.centres_), 16)
        for start in range(0, len(points), rows):
            part = points[start : start + rows]
            index[start : start + rows] = (squares - 2 * part @ self.centres_.T).argmin(axis=1)
        return index


def _shares(sums: Floats, *, allow_certainty: bool) -> Floats:
    """Class shares per cluster; uniform where a cluster is empty."""
    weight, size = sums.sum(axis=1, keepdims=True), sums.shape[1]
    share = np.where(weight > 0, sums / np.where(weight > 0, weight, 1), 1 / size)
    if allow_certainty:
        return share
    missing = (sums <= 0) & (weight > 0)
    given = np.where(missing, 1 / (weight + size), 0.0)
    mixed: Floats = share * (1 - given.sum(axis=1, keepdims=True)) + given
    return mixed
