r"""Confidence band for a rising calibration curve, valid for any n, and the bounds on the error that it implies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.data.validation import fail
from calibrant.estimators.binned import check_norm, weighted_norm
from calibrant.inference.residual_noise import pooled
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Interval
from calibrant.results.target import Target
from calibrant.table.bintable import BinTable

#: Beyond this many cells neighbouring scores are pooled; more blocks would only widen the band.
#: Test: tests/inference/test_isotonic_bands.py::test_more_scores_than_4096_are_pooled.
MOST_CELLS = 4096

#: Variance of the scores of a cell, relative to their squared mean, that counts as none. Derived: sums of squares are
#: rounded at 1e-16 times their number of rows.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Band:
    """Simultaneous bounds on the curve at `level`, per cell of scores with their lowest and highest score.

    `lower` bounds the mean of the curve over the cell, and so its value at the highest score, from below, and `upper`
    the mean and the value at the lowest score from above.

    Examples
    --------
    >>> import calibrant as cal
    >>> band = isotonic_band(cal.Binary([0, 1] * 100, [0.2, 0.9] * 100))
    >>> band.low_score.tolist(), band.upper[0].round(2).tolist(), band.lower[1].round(2).tolist()
    ([0.2, 0.9], 0.05, 0.95)
    """

    low_score: Floats
    high_score: Floats
    share: Floats
    lower: Floats
    upper: Floats
    single: NDArray[np.bool_]
    level: float

    def inside(self) -> tuple[Floats, Floats]:
        """Bounds on the curve at every score of a cell.

        An increasing curve can jump within a cell of several scores, so these are the lower bound of the cell before
        and the upper one of the cell after. A cell of one score has its own.
        """
        before, after = np.append(0.0, self.lower[:-1]), np.append(self.upper[1:], 1.0)
        return np.where(self.single, self.lower, before), np.where(self.single, self.upper, after)

    def error(self, norm: float) -> tuple[float, float]:
        """Smallest and largest error, over the scores of the sample, of any curve in the band."""
        nearest = np.maximum(0.0, np.maximum(self.lower - self.high_score, self.low_score - self.upper))
        lower, upper = self.inside()
        farthest = np.maximum(self.high_score - lower, upper - self.low_score)
        return weighted_norm(nearest, self.share, norm), weighted_norm(farthest, self.share, norm)


@dataclass(frozen=True)
class IsotonicBand:
    r"""Lower and upper bounds on the error in any norm, exact for every n, if the true curve rises with the score.

    If the curve c rises, the number of events in a block of scores is stochastically at most binomial with the
    probability at its right end, and at least with that at its left end. So Clopper-Pearson limits of blocks bound the
    curve,

    .. math:: \max_{[j,k]:\,s_k \le s} L(j,k) \;\le\; c(s) \;\le\; \min_{[j,k]:\,s_j \ge s} U(j,k),

    for all s simultaneously if each limit has an error probability of α/2 divided by the number of blocks. Blocks have
    1, 2, 4, ... cells and overlap by half. The bounds on the error take the nearest and the farthest value in the band
    at each score. The interval is for the error over the scores of the sample.

    References
    ----------
    Dimitriadis, Dümbgen, Henzi, Puke, Ziegel (2022), Honest calibration assessment for binary outcome predictions.

    Examples
    --------
    >>> import calibrant as cal
    >>> str(cal.interval(cal.mce, [0, 1] * 100, [0.2, 0.9] * 100, method=IsotonicBand()).interval)
    '[0.1505, 0.2]'
    """

    serves: ClassVar[str] = "error"

    def interval(self, data: Predictions | BinTable, *, norm: float = 1, level: float = 0.95) -> Interval:
        """The interval for the true L_norm calibration error (infinity is allowed)."""
        norm = check_norm(norm)
        low, high = isotonic_band(data, level=level).error(norm)
        words = "independent rows; a rising calibration curve; exact for any n, for the scores of the sample"
        target = Target("true error", norm)
        return Interval(low, high, level=level, method=repr(self), assumption=words, target=target)


def isotonic_band(data: Predictions | BinTable, *, level: float = 0.95) -> Band:
    """The band itself; see `IsotonicBand`.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> band = isotonic_band(cal.Binary(rng.random(1000) < p, p))
    >>> bool(np.all((band.lower <= band.low_score) & (band.high_score <= band.upper)))
    True
    """
    level = validation.fraction("level", level)
    return band_of(counted_table(data, needed_by="IsotonicBand", instead="Inversion()"), level)


def counted_table(data: Predictions | BinTable, *, needed_by: str, instead: str) -> BinTable:
    """The fine table of independent rows of weight 1; others raise an error that says what to use instead."""
    if getattr(data, "group", None) is not None:
        fail(f"{needed_by} needs independent rows, but these have a group; use {instead}.")
    table = Sample.of(data, needed_by=needed_by).table
    if not np.array_equal(table.weight, table.count):
        fail(f"{needed_by} counts outcomes, so it does not support weighted rows; use {instead}.")
    return table


def band_of(table: BinTable, level: float) -> Band:
    """The band of a fine table; with weights it uses effective counts and is approximate."""
    table = pooled(table, MOST_CELLS)
    count = table.effective_count
    lower, upper = _bounds(count, table.observed_mean * count, 1 - level)
    return Band(table.low, table.high, table.share, lower, upper, of_one_score(table), level)


def of_one_score(table: BinTable) -> NDArray[np.bool_]:
    """Whether all scores of a cell are the same, by the spread of its scores."""
    mean = table.predicted_mean
    spread = table.predicted_squares / table.weight - mean**2
    return np.where(np.isfinite(spread), spread <= _ROUNDING * mean**2, table.low == table.high)


def _bounds(count: Floats, hits: Floats, risk: float) -> tuple[Floats, Floats]:
    """Per cell the largest lower limit of blocks up to it and the smallest upper limit of blocks from it on."""
    cells = len(count)
    rows, positives = np.append(0.0, np.cumsum(count)), np.append(0.0, np.cumsum(hits))
    start, end = blocks(cells)
    low, high = clopper_pearson(positives[end] - positives[start], rows[end] - rows[start], risk / (2 * len(start)))
    lower, upper = np.zeros(cells), np.ones(cells)
    np.maximum.at(lower, end - 1, low)
    np.minimum.at(upper, start, high)
    return np.maximum.accumulate(lower), np.minimum.accumulate(upper[::-1])[::-1]


def blocks(cells: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Starts and ends of blocks of 1, 2, 4, ... cells that overlap by half."""
    starts, ends, size = [], [], 1
    while size <= cells:
        start = np.arange(0, cells - size + 1, max(size // 2, 1))
        starts.append(start)
        ends.append(start + size)
        size *= 2
    starts.append(np.array([0]))
    ends.append(np.array([cells]))
    return np.concatenate(starts), np.concatenate(ends)


def clopper_pearson(hits: Floats, count: Floats, risk: float) -> tuple[Floats, Floats]:
    """One-sided confidence limits of a binomial probability, each wrong with a probability of at most `risk`."""
    some, missed = hits > 1e-9 * count, count - hits > 1e-9 * count
    low = np.where(some, betaincinv(np.where(some, hits, 1.0), count - hits + 1, risk), 0.0)
    high = np.where(missed, betaincinv(hits + 1, np.where(missed, count - hits, 1.0), 1 - risk), 1.0)
    return low, high
