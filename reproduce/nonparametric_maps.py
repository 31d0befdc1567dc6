"""Two maps that the paper on the variational estimator compares: k-means partitions and Nadaraya-Watson regression.

Both take a score or the whole vector of class probabilities. Neither beats the maps of `calibrant.recalibrate`, so that
they are here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant.data import validation
from calibrant.numerics.arrays import CHUNK, Codes, Floats, Reals
from calibrant.numerics.random_draws import scikit_learn_seed
from calibrant.recalibrate.base import BinaryRecalibrator, Recalibrator
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.recalibrate.persistence import register
from calibrant.table.bintable import BinTable


@register
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
        means = KMeans(
            min(wanted, len(points)),
            n_init="auto",
            random_state=scikit_learn_seed(validation.seed(self.seed), "k-means"),
        )
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


@register
@dataclass(kw_only=True, eq=False, repr=False)
class NadarayaWatson(BinaryRecalibrator):
    r"""Nadaraya-Watson: the mean outcome of the neighbours of p, weighted by a Gaussian kernel.

    .. math:: q = \frac{\sum_i w_i y_i K(p - p_i)}{\sum_i w_i K(p - p_i)}, \qquad
              K(u) = e^{-\lVert u\rVert^2 / 2h^2}

    with p the probability of the event, or of more than two classes the whole vector and y one-hot.

    One event: rows are shared between the two nearest points of a fine grid, sums are convolved with the kernel by FFT,
    and q is linear between grid points: any number of rows costs one pass. The relative error of the grid is about
    (step / h)^2 / 10, 4e-6 as set here.

    Multiclass data: all training rows are kept, and each new row is compared with each of them, in blocks: the time
    grows with the product of their numbers. Far from all rows, q is the outcome of the nearest.

    q stays 1 / (n + K) away from 0, where n is the effective number of rows and K the number of classes (Laplace's rule
    for rows of one outcome only).

    Parameters
    ----------
    bandwidth : float
        h, in units of probability; the paper takes 0.1 for every task.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    values_ : array
        One event: q on an even grid over [0, 1]. Where no neighbour is within reach, that of the nearest point that has
        some.
    at_, codes_, row_weight_ : arrays of shape (n, K), (n,), (n,)
        Multiclass data: training vectors, ordered by class, their classes and weights.

    References
    ----------
    Nadaraya (1964), On Estimating Regression. Watson (1964), Smooth Regression Analysis. Berta, Braun, Holzmüller,
    Bach, Jordan (2026), A Variational Estimator for Calibration Errors.

    Examples
    --------
    >>> NadarayaWatson().fit([0.2, 0.3, 0.7, 0.8], [0, 1, 0, 1]).predict_proba([0.25, 0.75])[:, 1].round(3)
    array([0.5, 0.5])
    >>> p = [[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]] * 100
    >>> NadarayaWatson().fit(p, [0, 1, 1, 2] * 100).predict_proba([[0.75, 0.15, 0.1]]).round(2)
    array([[0.5, 0.5, 0. ]])
    """

    _multiclass = True

    bandwidth: float = 0.1

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        if scores.classes == 2:
            super()._fit(scores, codes, weight)
            return
        self._check()
        kernel = SimplexKernel.of(scores.probabilities, codes, weight)
        self.at_, self.codes_, self.row_weight_ = kernel.at, kernel.codes, kernel.weight

    def _predict(self, scores: Scores) -> Floats:
        if scores.classes == 2:
            return super()._predict(scores)
        kernel = SimplexKernel(self.at_, self.codes_, self.row_weight_)
        q = np.maximum(kernel.shares(scores.probabilities, self.bandwidth), 1 / (self.weight_ + scores.classes))
        q /= q.sum(axis=1, keepdims=True)
        return q

    def _check(self) -> None:
        if not 1e-5 <= self.bandwidth < np.inf:
            message = f"bandwidth must be a number of at least 1e-5, got {self.bandwidth!r}."
            raise ValueError(message)

    def _fit_cells(self, cells: BinomialCells) -> None:
        self._check()
        weight, positive = _kernel_sums(cells, self.bandwidth)
        bound = 1 / (cells.total + 2)  # Laplace's rule for rows of one outcome only
        self.values_ = np.clip(_filled(weight, positive, cells.total), min(bound, 0.5), max(1 - bound, 0.5))

    def _map(self, scores: Scores) -> Floats:
        return np.interp(scores.probability, np.linspace(0, 1, len(self.values_)), self.values_)


def _kernel_sums(cells: BinomialCells, bandwidth: float) -> Floats:
    """Kernel sums of the weights and of those of the positives, on an even grid over [0, 1]."""
    steps = max(1024, int(np.ceil(160 / bandwidth)))
    place = cells.probability.astype(np.float64) * steps
    cell = np.minimum(place.astype(np.intp), steps - 1)
    part = place - cell
    sums = np.stack([_shared(cell, part, column, steps + 1) for column in (cells.weight, cells.positive)])
    return _smoothed(sums, bandwidth * steps)


def _shared(cell: np.ndarray[tuple[int], np.dtype[np.intp]], part: Floats, column: Floats, size: int) -> Floats:
    """Sums on the grid, each row split between its two neighbours."""
    shares: Floats = np.zeros(size)
    shares += np.bincount(cell, column * (1 - part), size)
    shares += np.bincount(cell + 1, column * part, size)
    return shares


def _smoothed(sums: Floats, width: float) -> Floats:
    """Sums convolved with a Gaussian of standard deviation `width` grid steps."""
    from scipy.fft import irfft, next_fast_len, rfft

    size = sums.shape[1]
    length = next_fast_len(2 * size, real=True)
    reach = np.arange(size)
    kernel = np.zeros(length)
    kernel[:size] = np.exp(-0.5 * (reach / width) ** 2)
    kernel[-size + 1 :] = kernel[1:size][::-1]
    smooth: Floats = irfft(rfft(sums, length, axis=1) * rfft(kernel), length, axis=1)[:, :size]
    return smooth


def _filled(weight: Floats, positive: Floats, total: float) -> Floats:
    """Rates where the kernel reaches some weight; elsewhere that of the nearest such point."""
    known = np.flatnonzero(weight > 1e-9 * total)  # below that there is only the rounding of the FFT
    grid = np.arange(len(weight))
    right = np.clip(np.searchsorted(known, grid), 0, len(known) - 1)
    left = np.clip(right - 1, 0, None)
    nearest = np.where(np.abs(known[left] - grid) <= np.abs(known[right] - grid), known[left], known[right])
    rates: Floats = positive[nearest] / weight[nearest]
    return rates


#: Kernel weights held at once.
_BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class SimplexKernel:
    r"""Rows that vote for their class with a Gaussian weight in their distance,

    .. math:: q_c(p) = \frac{\sum_i w_i\, 1\{y_i = c\}\, e^{-\lVert p - p_i\rVert^2 / 2h^2}}
              {\sum_i w_i\, e^{-\lVert p - p_i\rVert^2 / 2h^2}}.

    Attributes
    ----------
    at : array (n, K)
        The vectors, ordered by class.
    codes : array (n,)
        Their classes, rising.
    weight : array (n,)
    """

    at: Reals
    codes: Codes
    weight: Floats

    @classmethod
    def of(cls, at: Reals, codes: Codes, weight: Floats | None) -> SimplexKernel:
        """Order the rows by class."""
        order = np.argsort(codes, kind="stable")
        return cls(at[order], codes[order], np.ones(len(codes)) if weight is None else weight[order])

    def shares(self, points: Reals, bandwidth: float) -> Floats:
        """The shares of the classes at other points, (m, K)."""
        result = np.zeros((len(points), self.at.shape[1]))
        for rows, squares in self._squared_distances(points):
            result[rows] = self._votes(squares, bandwidth)
        return result

    def _squared_distances(self, points: Reals) -> Iterator[tuple[slice, Floats]]:
        """Blocks of points with their squared distances from all rows, (m, n)."""
        norms = np.einsum("nk,nk->n", self.at, self.at, dtype=np.float64)
        step = max(1, _BLOCK // max(len(self.at), 1))
        for start in range(0, len(points), step):
            rows = slice(start, min(start + step, len(points)))
            part = points[rows].astype(np.float64)
            squares = part @ self.at.T.astype(np.float64)
            squares *= -2
            squares += norms
            squares += np.einsum("nk,nk->n", part, part)[:, None]
            yield rows, np.maximum(squares, 0, out=squares)

    def _votes(self, squares: Floats, bandwidth: float) -> Floats:
        """Shares of the classes; distances count from the nearest row, so that no sum is lost to underflow."""
        nearest = squares.min(axis=1, keepdims=True)
        kernel = np.exp((np.where(np.isfinite(nearest), nearest, 0.0) - squares) / (2 * bandwidth**2))
        kernel *= self.weight
        present, starts = np.unique(self.codes, return_index=True)
        sums = np.zeros((len(squares), self.at.shape[1]))
        sums[:, present] = np.add.reduceat(kernel, starts, axis=1)
        total = sums.sum(axis=1, keepdims=True)
        shares: Floats = np.where(total > 0, sums / np.where(total > 0, total, 1.0), 1 / self.at.shape[1])
        return shares
