"""Nadaraya-Watson regression of the outcome on the score, or on the whole vector of class probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.simplex_kernel import SimplexKernel
from calibrant.recalibrate.base import BinaryRecalibrator
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.recalibrate.sql import not_sql
from calibrant.recalibrate.sql_scores import SqlScores

#: Bandwidths among which leave-one-out chooses.
BANDWIDTHS = 0.01 * 2.0 ** (np.arange(13) / 2)
#: The most rows that are left out one by one.
_LEFT_OUT = 2000


@dataclass(kw_only=True, eq=False, repr=False)
class NadarayaWatson(BinaryRecalibrator):
    r"""Nadaraya-Watson: the mean outcome of the neighbours of p, weighted by a Gaussian kernel.

    .. math:: q = \frac{\sum_i w_i y_i K(p - p_i)}{\sum_i w_i K(p - p_i)}, \qquad
              K(u) = e^{-\lVert u\rVert^2 / 2h^2}

    with p the probability of the event, or of more than two classes the whole vector and y one-hot.

    One event: rows are shared between the two nearest points of a fine grid, sums are convolved with the kernel by FFT,
    and q is linear between grid points: any number of rows costs one pass. The relative error of the grid is about
    (step / h)^2 / 10, 4e-6 as set here.

    Several classes: all training rows are kept, and each new row is compared with each of them, in blocks: the time
    grows with the product of their numbers. Far from all rows, q is the outcome of the nearest.

    q stays 1 / (n + K) away from 0, where n is the effective number of rows and K the number of classes (Laplace's rule
    for rows of one outcome only).

    Parameters
    ----------
    bandwidth : float or "auto"
        h, in units of probability. The paper on the variational estimator takes 0.1 for every task. "auto" takes the h
        with the lowest log loss, among 13 from 0.01 to 0.64, of up to 2,000 rows (the same ones every time) each
        predicted by all others.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    bandwidth_ : float
        h.
    values_ : array
        One event: q on an even grid over [0, 1]. Where no neighbour is within reach, that of the nearest point that has
        some.
    at_, codes_, row_weight_ : arrays of shape (n, K), (n,), (n,)
        Several classes: training vectors, ordered by class, their classes and weights.

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

    bandwidth: float | Literal["auto"] = 0.1

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        if scores.classes == 2:
            super()._fit(scores, codes, weight)
            return
        self._check()
        kernel = SimplexKernel.of(scores.probabilities, codes, weight)
        self.bandwidth_ = self._chosen(kernel) if self.bandwidth == "auto" else float(self.bandwidth)
        self.at_, self.codes_, self.row_weight_ = kernel.at, kernel.codes, kernel.weight

    def _chosen(self, kernel: SimplexKernel) -> float:
        """The bandwidth with the lowest log loss of rows left out."""
        rows = np.sort(np.random.default_rng(0).permutation(len(kernel.codes))[:_LEFT_OUT])
        losses = kernel.held_out_log_loss(rows, BANDWIDTHS, 1 / (self.weight_ + kernel.at.shape[1]))
        return float(BANDWIDTHS[np.argmin(losses)])

    def _predict(self, scores: Scores) -> Floats:
        if scores.classes == 2:
            return super()._predict(scores)
        kernel = SimplexKernel(self.at_, self.codes_, self.row_weight_)
        q = np.maximum(kernel.shares(scores.probabilities, self.bandwidth_), 1 / (self.weight_ + scores.classes))
        q /= q.sum(axis=1, keepdims=True)
        return q

    def _sql(self, scores: SqlScores) -> list[str]:
        if len(self.classes_) > 2:
            raise not_sql(self)
        return super()._sql(scores)

    def _check(self) -> None:
        if self.bandwidth != "auto" and not (not isinstance(self.bandwidth, str) and 1e-5 <= self.bandwidth < np.inf):
            message = f"bandwidth must be a number of at least 1e-5 or 'auto', got {self.bandwidth!r}."
            raise ValueError(message)

    def _fit_cells(self, cells: BinomialCells) -> None:
        self._check()
        if self.bandwidth == "auto":
            losses = [_left_out_loss(cells, bandwidth) for bandwidth in BANDWIDTHS]
            self.bandwidth_ = float(BANDWIDTHS[np.argmin(losses)])
        else:
            self.bandwidth_ = float(self.bandwidth)
        weight, positive = _kernel_sums(cells, self.bandwidth_)
        bound = 1 / (cells.total + 2)  # Laplace's rule for rows of one outcome only
        self.values_ = np.clip(_filled(weight, positive, cells.total), min(bound, 0.5), max(1 - bound, 0.5))

    def _map(self, scores: Scores) -> Floats:
        return np.interp(scores.probability, self._grid, self.values_)

    def _map_sql(self, scores: SqlScores) -> str:
        return scores.interpolated(self._grid, self.values_)

    @property
    def _grid(self) -> Floats:
        return np.linspace(0, 1, len(self.values_))


def _kernel_sums(cells: BinomialCells, bandwidth: float) -> Floats:
    """Kernel sums of the weights and of those of the positives, on an even grid over [0, 1]."""
    steps = max(1024, int(np.ceil(160 / bandwidth)))
    place = cells.probability.astype(np.float64) * steps
    cell = np.minimum(place.astype(np.intp), steps - 1)
    part = place - cell
    sums = np.stack([_shared(cell, part, column, steps + 1) for column in (cells.weight, cells.positive)])
    return _smoothed(sums, bandwidth * steps)


def _left_out_loss(cells: BinomialCells, bandwidth: float) -> float:
    """Log loss of rows of weight 1, each predicted by all others; at the score of a row the kernel is 1."""
    sums = _kernel_sums(cells, bandwidth)
    grid, score = np.linspace(0, 1, sums.shape[1]), cells.probability.astype(np.float64)
    weight, positive = (np.interp(score, grid, line) for line in sums)
    negative, floor = weight - positive, 1 / (cells.total + 2)
    others = np.maximum(weight - 1, 1e-9)
    hits = np.clip((positive - 1) / others, floor, 1 - floor)
    misses = np.clip((negative - 1) / others, floor, 1 - floor)
    return float(-(cells.positive @ np.log(hits)) - (cells.weight - cells.positive) @ np.log(misses))


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
