"""Nadaraya-Watson regression of the outcome on the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.recalibrate.base import BinaryRecalibrator
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.recalibrate.sql_scores import SqlScores


@dataclass(kw_only=True, eq=False, repr=False)
class NadarayaWatson(BinaryRecalibrator):
    r"""Nadaraya-Watson: the mean outcome of the neighbours of p, weighted by a Gaussian kernel.

    .. math:: q = \frac{\sum_i w_i y_i K(p - p_i)}{\sum_i w_i K(p - p_i)}, \qquad K(u) = e^{-u^2 / 2h^2}

    Rows are shared between the two nearest points of a fine grid, sums are convolved with the kernel by FFT, and q is
    linear between grid points: any number of rows costs one pass. The relative error of the grid is about
    (step / h)^2 / 10, 4e-6 as set here. q stays 1 / (n + 2) away from 0 and 1.

    Parameters
    ----------
    bandwidth : float
        h, in units of probability.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    values_ : array
        q on an even grid over [0, 1]. Where no neighbour is within reach, that of the nearest point that has some.

    References
    ----------
    Nadaraya (1964), On Estimating Regression. Watson (1964), Smooth Regression Analysis.

    Examples
    --------
    >>> NadarayaWatson().fit([0.2, 0.3, 0.7, 0.8], [0, 1, 0, 1]).predict_proba([0.25, 0.75])[:, 1].round(3)
    array([0.5, 0.5])
    """

    bandwidth: float = 0.1

    def _fit_cells(self, cells: BinomialCells) -> None:
        if not 1e-5 <= self.bandwidth < np.inf:
            message = f"bandwidth must be at least 1e-5, got {self.bandwidth!r}."
            raise ValueError(message)
        steps = max(1024, int(np.ceil(160 / self.bandwidth)))
        place = cells.probability.astype(np.float64) * steps
        cell = np.minimum(place.astype(np.intp), steps - 1)
        part = place - cell
        sums = np.stack([_shared(cell, part, column, steps + 1) for column in (cells.weight, cells.positive)])
        weight, positive = _smoothed(sums, self.bandwidth * steps)
        bound = 1 / (cells.total + 2)  # Laplace's rule for rows of one outcome only
        self.values_ = np.clip(_filled(weight, positive, cells.total), min(bound, 0.5), max(1 - bound, 0.5))

    def _map(self, scores: Scores) -> Floats:
        return np.interp(scores.probability, self._grid, self.values_)

    def _map_sql(self, scores: SqlScores) -> str:
        return scores.interpolated(self._grid, self.values_)

    @property
    def _grid(self) -> Floats:
        return np.linspace(0, 1, len(self.values_))


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
