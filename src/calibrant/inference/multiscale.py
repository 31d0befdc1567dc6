"""The default test: many statistics of the same residuals, from the mean gap to fine bins, combined into one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.inference.pooled_cells import PooledCells
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Significance
from calibrant.table.bintable import BinTable

#: Log-odds are clipped to this.
_LIMIT = 36.0

#: Smaller variances, below that of one row in 1e15, count as this one: the prediction is certain.
_MIN_VARIANCE = 1e-30


@dataclass(frozen=True)
class MultiScale:
    r"""Adaptive test of calibration: many p-values combined, and made exact by simulation under the null hypothesis.

    The statistics are the mean gap; the score statistics for the log-odds (slope) and for both together; the largest
    running gap; and for 2, 4, ..., 128 bins of equal mass two sums of squares, with v the variance of a bin's mean
    outcome:

    .. math:: S_B = \sum_b s_b \bigl[(\bar p_b - \bar y_b)^2 - v_b\bigr], \qquad
              C_B = \sum_b (\bar p_b - \bar y_b)^2 / v_b, \qquad v_b = \frac{\overline{p(1-p)}_b}{n_b}.

    The debiased S detects errors where most rows are, the standardised C those where the model is confident.

    Outcomes are simulated as Y ~ Bernoulli(p), cell by cell, and all statistics are computed for each sample. Their
    p-values are combined by :math:`\sum_j \omega_j \cot(\pi p_j)` (Cauchy combination), with weights ω of 1 for the
    running gap and for mean and slope together, 1/2 for each of these two alone, 0.1 for each S and 0.15 for each C;
    the p-value is the rank of that sum among those of the simulated samples. It is exact at every n (slightly too large
    where scores were pooled into cells), and at least 1 / (draws + 1).

    Parameters
    ----------
    draws : int
        Number of simulated samples.
    seed : int

    References
    ----------
    Liu, Xie (2020), Cauchy combination test, for the sum: the smallest p-value alone has less power. Its power and
    that of the classical tests are in docs/inference.md.
    """

    draws: int = 999
    seed: int = 0

    def __post_init__(self) -> None:
        validation.whole("draws", self.draws)

    def test(self, data: Predictions | BinTable) -> Significance:
        """The p-value; the statistic is the smallest single p-value."""
        cells = Sample.of(data, needed_by="MultiScale").pooled(256)
        rng = np.random.default_rng(self.seed)
        drawn = cells.outcomes(np.clip(cells.predicted, 0.0, 1.0), self.draws, rng)
        statistics = _statistics(cells, np.concatenate([cells.observed[None], drawn]))
        single = _p_values(statistics)
        weight = np.concatenate([[0.5, 0.5, 1.0, 1.0], np.tile([0.1, 0.15], (statistics.shape[1] - 4) // 2)])
        combined = (1 / np.tan(np.pi * np.clip(single, 1e-9, 1 - 1e-9))) @ weight
        p_value = float(np.mean(combined >= combined[0] - 1e-9 * abs(combined[0])))
        return Significance(float(single[0].min()), p_value, method=repr(self), n=cells.n)


def _statistics(cells: PooledCells, observed: Floats) -> Floats:
    """One column per statistic, large where the gap is large; one row per sample."""
    residual = (cells.predicted - observed) * cells.share
    variance = cells.share**2 * cells.predicted * (1 - cells.predicted) / cells.count
    with np.errstate(divide="ignore"):
        odds = np.log(cells.predicted) - np.log1p(-cells.predicted)
    odds = np.clip(odds, -_LIMIT, _LIMIT)
    odds = odds - float(variance @ odds) / max(float(variance.sum()), 1e-300)
    mean = residual.sum(axis=1) ** 2 / max(float(variance.sum()), 1e-300)
    slope = (residual @ odds) ** 2 / max(float(variance @ odds**2), 1e-300)
    running = np.abs(np.cumsum(residual, axis=1)).max(axis=1)
    columns = [mean, slope, mean + slope, running]
    bins = 2
    while bins <= min(128, cells.effective_n / 4):
        columns += _in_bins(cells, residual, variance, bins)
        bins *= 2
    return np.stack(columns, axis=1)


def _in_bins(cells: PooledCells, residual: Floats, variance: Floats, bins: int) -> list[Floats]:
    """The debiased and the standardised sum of squares in bins of about equal mass, made of whole cells."""
    middle = np.cumsum(cells.share) - cells.share / 2
    starts = np.flatnonzero(np.diff((middle * bins).astype(np.intp), prepend=-1))
    squares = np.add.reduceat(residual, starts, axis=1) ** 2
    noise = np.add.reduceat(variance, starts)
    debiased = (squares - noise) @ (1 / np.add.reduceat(cells.share, starts))
    return [debiased, squares @ (1 / np.maximum(noise, _MIN_VARIANCE))]


def _p_values(statistics: Floats) -> Floats:
    """Share of samples, each included, whose statistic is at least as large, column by column."""
    size = len(statistics)
    ordered = np.sort(statistics, axis=0)
    reference = statistics - 1e-12 * np.maximum(np.abs(statistics), 1e-300)
    below = [np.searchsorted(ordered[:, k], reference[:, k]) for k in range(statistics.shape[1])]
    return 1 - np.stack(below, axis=1) / size
