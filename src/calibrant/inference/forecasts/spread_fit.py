r"""The fitted relative gap of the predicted spread, and its noise.

With :math:`r(\sigma)^2 = \mathrm E[e^2 \mid \sigma] / \sigma^2` the gap is :math:`\eta = \log r^2`, zero where the
spread is right. On the log scale the noise of the fit does not depend on the truth, so it is simulated once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from calibrant.data.validation import InvalidPredictions
from calibrant.inference.forecasts.spread_cells import SpreadCells
from calibrant.numerics.arrays import Floats
from calibrant.numerics.hat_functions import hat_functions, mid_ranks, orthonormal_hats, pool_starts, unit_scaled

#: Most cells into which neighbouring spreads are pooled. At either end log sigma is cut off at this share of the rows,
#: or at this many rows per unit of excess kurtosis if they are fewer.
CELLS, TRIMMED, TRIMMED_ROWS = 96, 0.03, 10.0

#: Knots of the fit are 1 + 0.8 log(2N / (kurtosis - 1)), with at least 4 (kurtosis - 1) rows each; the shape along
#: which errors are tested has 0.6 times as many, unless it keeps less than 0.7 of the fitted gap.
KNOTS, ROWS_PER_KNOT, SHAPE, KEPT = (1.0, 0.8), 4.0, 0.6, 0.7

#: Standard errors by which the gap must differ from zero at two knots, of opposite signs and at most so many steps
#: apart, for a jump between them to be allowed for.
CLEAR, APART = 2.0, 2

#: Knots are doubled as long as a test for what the fit leaves over, at this significance, rejects.
ROUGH = 0.2


def missing_mass(kurtosis: float, largest_share: float) -> float:
    """How much too low the log mean square may be because rare large errors are not in the sample.

    A sample without them looks too small and too quiet at once. What the largest term contributes is what may be
    missing; the factor grows from 1.5 to 3 with the kurtosis.
    """
    return max(1.5, 3 * (kurtosis - 1) / (kurtosis + 3)) * largest_share


def require_errors(cells: SpreadCells) -> None:
    """Refuse outcomes that all equal their predicted means."""
    if cells.mean_square <= 0:
        message = (
            f"y_true equals the predicted mean in all {cells.n} rows, so the size of the errors is unknown: no "
            "interval or test can be given. Check that y_true and mean are different columns."
        )
        raise InvalidPredictions(message)


@dataclass(frozen=True, eq=False)
class SpreadFit:
    """Log ratio of squared error and variance, piecewise linear in the place of sigma.

    Attributes
    ----------
    share, variance : array
        Share of the weight and mean of sigma² per pooled cell.
    half : array
        Functions of the cells that are orthonormal under `share`; the fit is a combination of them.
    gap, shape, straight : array
        The fitted log ratio, a smoother one, and one that is linear in the place.
    noise : array of (draws, cells)
        Simulated errors of the fit.
    stepped : array
        The fitted log ratio with a jump instead of a slope wherever it clearly changes sign.
    finer : (gap, noise) or None
        Fitted gap and noise with twice as many knots, where there are rows enough for them.
    excess : array
        Mean of e² - σ² in each pooled cell, times its share.
    excess_error : float
        Standard error of a sum of `excess` with any signs.
    effective_n : float
        Kish's number of rows, divided by the design effect of clusters.
    kurtosis : float
        Of the errors in units of the fitted spread, allowing for large errors that are not in the sample.
    missing : float
        See `missing_mass`.
    heavy_tails : bool
        Whether errors that are not in the sample may decide.
    pool : array
        The pooled cell of each distinct spread.
    """

    share: Floats
    variance: Floats
    half: Floats
    gap: Floats
    shape: Floats
    straight: Floats
    noise: Floats
    stepped: Floats
    finer: tuple[Floats, Floats] | None
    excess: Floats
    excess_error: float
    effective_n: float
    kurtosis: float
    missing: float
    heavy_tails: bool
    pool: NDArray[np.intp]

    @classmethod
    def of(cls, cells: SpreadCells, draws: int, rng: np.random.Generator) -> SpreadFit:
        """The fit of these cells, with simulated noise."""
        require_errors(cells)
        place = _places(cells)
        starts = pool_starts(place, CELLS)
        share = np.add.reduceat(cells.share, starts)
        pools = _Pools(
            share,
            np.add.reduceat(cells.share * place, starts) / share,
            np.add.reduceat(cells.second, starts) / share,
        )
        pool = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(place))))
        half, knots = _basis(cells, pools)
        kurtosis, design_effect = _law(cells, pools.fit(half)[pool], half.shape[1])
        effective_n = cells.effective_n / design_effect
        count = share**2 / np.add.reduceat(cells.share_squares, starts) / design_effect
        gamma = np.maximum(count / (kurtosis - 1), 1e-3)
        drawn = rng.standard_gamma(gamma, (draws, len(gamma))) / gamma
        half, knots, gap, noise, finer = _resolved(pools, half, knots, drawn, effective_n / (kurtosis - 1))
        smooth, straight = (
            pools.fit(orthonormal_hats(pools.center, share, min(knots, some)))
            for some in (max(2, round(SHAPE * knots)), 2)
        )
        if share @ smooth**2 < KEPT * (share @ gap**2 - share @ noise.var(axis=0)):
            smooth = gap
        return cls(
            share=share,
            variance=np.add.reduceat(cells.share * cells.sigma**2, starts) / share,
            half=half,
            gap=gap,
            shape=smooth,
            straight=straight,
            noise=noise,
            stepped=_stepped(pools.center, gap, noise.std(axis=0), knots) if half.shape[1] == knots > 1 else gap,
            finer=finer,
            excess=np.add.reduceat((cells.second - cells.share) * cells.sigma**2, starts),
            excess_error=_excess_error(cells, gap[pool], (kurtosis - 1) * design_effect),
            effective_n=effective_n,
            kurtosis=kurtosis,
            missing=missing_mass(kurtosis, cells.largest_share),
            heavy_tails=cells.heavy_tails(effective_n, kurtosis),
            pool=pool,
        )

    @cached_property
    def noise_size(self) -> float:
        """Root mean square of the noise of the fit."""
        return float(np.sqrt(self.share @ self.noise.var(axis=0)))


def log_ratio_fit(half: Floats, share: Floats, ratio: Floats, steps: int = 25) -> Floats:
    """Log of the mean ratio by quasi-likelihood with log link, for each row of `ratio`.

    Solves half' share (ratio exp(-fit) - 1) = 0. The expected information is the identity, so a step needs no solve.
    """
    ratio = np.atleast_2d(ratio)
    one, weighted = half.T @ share, half * share[:, None]
    found = np.log(np.maximum(ratio @ share, 1e-300))[:, None] * one
    for _ in range(steps):
        step = (ratio * np.exp(-found @ half.T)) @ weighted - one
        found = found + step / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1.0)
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(found @ half.T)


def _places(cells: SpreadCells) -> Floats:
    """Mean of mid-rank and of log sigma without its outer ends, both in [0, 1]."""
    rank, logarithm = mid_ranks(cells.share), np.log(cells.sigma)
    trimmed = min(TRIMMED, TRIMMED_ROWS * (_kurtosis(cells) - 1) / cells.effective_n)
    low, high = np.interp([trimmed, 1 - trimmed], rank, logarithm)
    return (unit_scaled(rank) + unit_scaled(logarithm, float(low), float(high))) / 2


def _kurtosis(cells: SpreadCells) -> float:
    """Of the errors in units of the predicted spread, before any fit."""
    return max(float(cells.fourth.sum()) / cells.mean_square**2, 1.2)


@dataclass(frozen=True, eq=False)
class _Pools:
    """Share of the weight, mean place and mean ratio of z² of each pooled cell."""

    share: Floats
    center: Floats
    ratio: Floats

    def fit(self, half: Floats) -> Floats:
        return log_ratio_fit(half, self.share, self.ratio)[0]


def _basis(cells: SpreadCells, pools: _Pools) -> tuple[Floats, int]:
    """Orthonormal functions of the pooled cells, and the number of knots; one level per spread where there are few."""
    share, size, excess = pools.share, cells.effective_n, _kurtosis(cells) - 1
    if len(cells.sigma) == 1:
        return np.ones((1, 1)), 1
    base, slope = KNOTS
    knots = max(2, round(base + slope * np.log(max(2 * size / max(excess, 0.5), 3.0))))
    while knots > 2 and not _enough_rows(pools, knots, size / excess):
        knots -= 1
    few = len(cells.sigma) == len(share) <= 2 * knots
    if few and share.min() * size >= ROWS_PER_KNOT * excess:
        return np.diag(1 / np.sqrt(share)), knots
    return orthonormal_hats(pools.center, share, knots), knots


def _resolved(
    pools: _Pools, half: Floats, knots: int, drawn: Floats, rows: float
) -> tuple[Floats, int, Floats, Floats, tuple[Floats, Floats] | None]:
    """The fit and its noise with as many knots as the data ask for, and with twice as many where there are rows."""
    share = pools.share
    gap, noise, finer = pools.fit(half), log_ratio_fit(half, share, drawn), None
    while half.shape[1] == knots > 2 and 4 * knots <= len(share) and _enough_rows(pools, 2 * knots - 1, rows):
        double = orthonormal_hats(pools.center, share, 2 * knots - 1)
        finer = pools.fit(double), log_ratio_fit(double, share, drawn)
        if not _misfit(share * (pools.ratio * np.exp(-gap) - 1), share * (drawn * np.exp(-noise) - 1)):
            break
        half, knots, (gap, noise), finer = double, 2 * knots - 1, finer, None
    return half, knots, gap, noise, finer


def _excess_error(cells: SpreadCells, gap: Floats, relative_variance: float) -> float:
    """Standard error of the mean of ±(e² - σ²), given the variance of a squared error relative to its squared mean."""
    mean_square = cells.sigma**2 * np.exp(gap)
    return float(np.sqrt(relative_variance * (cells.share_squares @ mean_square**2)))


def _stepped(center: Floats, gap: Floats, error: Floats, knots: int) -> Floats:
    """The gap with a jump half-way between two knots at which it clearly has opposite signs.

    A fit turns a jump into a slope, which is nearer to zero.
    """
    at = np.linspace(0, 1, knots)
    value = np.interp(at, center, gap)
    clear = np.flatnonzero(np.abs(value) > CLEAR * np.interp(at, center, error))
    found = gap.copy()
    for first, last in pairwise(clear):
        if value[first] * value[last] < 0 and last - first <= APART:
            between = (center > at[first]) & (center < at[last])
            nearer = center[between] < (at[first] + at[last]) / 2
            found[between] = np.where(nearer, value[first], value[last])
    return found


def _enough_rows(pools: _Pools, knots: int, rows: float) -> bool:
    """Whether each of so many knots has rows enough, in units of the excess kurtosis."""
    return float((pools.share @ hat_functions(pools.center, knots)).min()) * rows >= ROWS_PER_KNOT


def _misfit(residual: Floats, drawn: Floats) -> bool:
    """Whether some run of 1, 2, 4, ... neighbouring cells lies off the fit by more than noise explains."""
    largest, by_chance, length = 0.0, np.zeros(len(drawn)), 1
    running = [np.cumsum(np.insert(values, 0, 0.0, axis=-1), axis=-1) for values in (residual, drawn)]
    while 2 * length <= len(residual):
        starts = np.arange(0, len(residual) - length + 1, max(length // 2, 1))
        seen, noise = (values[..., starts + length] - values[..., starts] for values in running)
        spread = np.sqrt((noise**2).mean(axis=0)) + 1e-300
        largest = max(largest, float((np.abs(seen) / spread).max()))
        by_chance = np.maximum(by_chance, (np.abs(noise) / spread).max(axis=1))
        length *= 2
    return largest > float(np.quantile(by_chance, 1 - ROUGH))


def _law(cells: SpreadCells, gap: Floats, freedom: int) -> tuple[float, float]:
    """Kurtosis of the errors about the fit, raised by what may be missing, and the design effect of clusters."""
    size, scale = cells.effective_n, np.exp(-gap)
    fourth = float(cells.fourth @ scale**2)
    kurtosis = max(fourth / float(cells.second @ scale) ** 2, 1.2)
    largest = float((cells.largest_fourth * scale**2).max()) / fourth
    raised = 1 + (kurtosis - 1) * size / max(size - freedom, 1.0) * (1 + largest)
    if cells.cluster is None or cells.cell is None or cells.row_share is None or cells.row_second is None:
        return raised, 1.0
    error = cells.row_share * (cells.row_second * scale[cells.cell] - 1)
    together = float((np.bincount(cells.cluster, error) ** 2).sum())
    return raised, max(together / float(error @ error), 1.0)
