"""Both limits of the true error of binary predictions, from cells: fitted part, dual bound and largest misfit.

The gap is fitted as finely as it shows structure. The fitted part inverts a test of the size of the fitted gap along
several shapes. Without smoothness, the lower limit in L1 is a held-out mean of gaps times signs fitted on the other
rows, and the upper limit adds the largest misfit of the fit. docs/methods/intervals.md derives each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from calibrant.numerics import cells as pooled
from calibrant.numerics.arrays import Floats
from calibrant.numerics.confidence_limits import mean_gap_size_limit
from calibrant.numerics.fitted_gaps import SmoothPart
from calibrant.numerics.inversion import SHAPE_KNOTS, HatFit, Numbers, tail_risk

#: Folds that the rows of each cell (or whole clusters) are divided into.
#: Test: tests/inference/inversion/test_binary_constants.py.
FOLDS = 5

#: If the noise changes by more than this factor from one multiple to the next, the step between them is halved, so
#: many times at most. Test: tests/inference/inversion/test_binary_constants.py.
STEADY, HALVINGS = 1.5, 3

#: A lower limit below this is rounding: the observed value and a quantile of the simulated ones can be the same number.
#: Derived: above the rounding of sums of a thousand terms of at most 1, far below any error that matters.
ROUNDING = 1e-12

#: Simulated samples of lower ends, at least, and twice as many in L2. Derived: the standard error of a quantile at
#: 0.0175 is then a tenth of a standard deviation of the statistic, 3 % of the width of an interval of four.
AMPLE = 799

#: The means over folds are tabulated up to this many standard errors, in so many steps for each. Derived: beyond, the
#: statistic is cut at 1 but for a part of 1e-13; between, the error of a straight line is below 1e-6.
TABLED, PER_UNIT = 4.0, 256


class Trial(NamedTuple):
    """A multiple of the shape, with mean and high quantile of the dual statistic."""

    multiple: float
    mean: float
    top: float


@dataclass(frozen=True, eq=False)
class DualBound(ABC):
    r"""Lower limit by duality: :math:`E[f(S)(S - Y)] \le E|S - h(S)|` for every function with :math:`|f| \le 1`.

    f is the fitted gap of the other folds over its standard error, cut to [-1, 1], and ψ the sum over folds of its mean
    product with the gaps held out. The limit is the mean of ψ, simulated with cross-fitting at multiples of the shape,
    where the observed ψ is a high quantile; that mean is never taken to be more than the error it bounds.
    """

    part: SmoothPart
    noise: pooled.CellNoise

    @property
    @abstractmethod
    def observed(self) -> float:
        """ψ of the sample."""

    @abstractmethod
    def simulated(self, gap: Floats, probability: Floats) -> Floats:
        """ψ of simulated samples with this true gap and the noise of this probability."""

    def limit(self) -> float:
        """The lower limit, 0 where it is positive by rounding alone."""
        if not self.rejects_zero:
            return 0.0
        multiples = self.part.along_shape.multiples
        first, middle, last = multiples[[0, len(multiples) // 2, -1]]
        tried, after = [first, (first + middle) / 2, middle, last], 1 if first == 0 else 2
        while after < 3 and not self._reached(self._trial(tried[after])):
            after += 1
        while after > 1 and self._reached(self._trial(tried[after - 1])):
            after -= 1
        before, behind = map(self._trial, tried[after - 1 : after + 1])
        for _ in range(HALVINGS):
            if _steady(before, behind):
                break
            # The noise depends on the multiple: halve the step.
            between = self._trial((before.multiple + behind.multiple) / 2)
            before, behind = (before, between) if self._reached(between) else (between, behind)
        found, rise = before.mean, behind.top - before.top
        if _steady(before, behind) and rise > 0:  # not a jump to the observed value
            found += (self.observed - before.top) / rise * (behind.mean - before.mean)
        return found if found > ROUNDING else 0.0

    def _reached(self, trial: Trial) -> bool:
        """Whether ψ may be as large as observed at this multiple."""
        return trial.top >= self.observed - ROUNDING

    @property
    def rejects_zero(self) -> bool:
        """Whether the limit may be above 0."""
        part = self.part
        return part.size > 0 and (part.along_shape.multiples[0] > 0 or self.observed > self._trial(0.0).top)

    @property
    def overwhelming(self) -> bool:
        """Whether zero is rejected by twice what is needed, or by far more."""
        return self.part.far_from_zero or self.observed > 2 * self._trial(0.0).top

    @property
    def p_value_of_zero(self) -> float:
        """The rank of ψ among simulated samples without any error."""
        if self.part.size == 0:
            return 1.0
        predicted = np.clip(self.part.cells.predicted, 0.0, 1.0)
        drawn = self.simulated(np.zeros_like(predicted), predicted)
        return float((1 + (drawn >= self.observed - ROUNDING).sum()) / (1 + len(drawn)))

    @cached_property
    def _trials(self) -> dict[float, Trial]:
        return {}

    def _trial(self, multiple: float) -> Trial:
        """Mean and high quantile of ψ for a multiple of the shape, simulated once."""
        if multiple in self._trials:
            return self._trials[multiple]
        part = self.part
        probability = np.clip(part.cells.predicted - multiple * part.shape, 0.0, 1.0)
        gap = part.cells.predicted - probability
        drawn = self.simulated(gap, part.noisy(probability) if multiple > 0 else probability)
        mean = min(float(drawn.mean()), float(part.cells.share @ np.abs(gap))) if multiple > 0 else 0.0
        top = self.top(drawn - mean + np.abs(gap) @ self.noise.shares)
        if multiple == 0:  # whether zero is excluded rests on ranks alone
            top = max(top, float(np.quantile(drawn, 1 - part.risk, method="weibull")))
        self._trials[multiple] = Trial(multiple, mean, mean + top)
        return self._trials[multiple]

    def top(self, spread: Floats) -> float:
        """The high quantile."""
        return float(np.quantile(spread, 1 - self.part.risk, method="weibull"))

    @cached_property
    def variance(self) -> Floats:
        """Variance of the mean outcome of each cell."""
        cells = self.part.cells
        probability = np.clip(cells.predicted - self.part.fitted, 0.0, 1.0)
        return np.maximum(probability * (1 - probability), 0.1 * cells.predicted * (1 - cells.predicted)) / cells.count

    @cached_property
    def error(self) -> Floats:
        """Standard error of the fitted gap, per cell."""
        return np.sqrt(np.maximum(self.part.smoother.variance(self.variance), 1e-300))


class RowDual(DualBound):
    r"""ψ of independent rows, averaged over all ways to deal them to the folds.

    .. math:: \psi = \sum_j s_j \bigl[g_j\, C(\mu_j) - a_j\, P(\mu_j)\bigr], \qquad a_j = (1 - 1/K) H_{jj} v_j / e_j

    in the notation of docs/methods/intervals.md. The limit depends on the seed only by the simulation.
    """

    @cached_property
    def observed(self) -> float:
        """ψ of the sample."""
        return float(self._psi(self.part.cells.gap[:, None])[0])

    def simulated(self, gap: Floats, probability: Floats) -> Floats:
        """ψ of simulated samples with this true gap and the noise of this probability."""
        drawn = self.noise.outcomes(probability)
        drawn += gap[:, None]
        return self._psi(drawn)

    def top(self, spread: Floats) -> float:
        """The mean of the quantile by rank and that by Cornish and Fisher's formula varies less with the seed."""
        z, size = -float(ndtri(self.part.risk)), max(float(spread.std()), 1e-300)
        unit = (spread - spread.mean()) / size
        skewness = float(np.clip((unit**3).mean(), -2.0, 2.0))
        excess = float(np.clip((unit**4).mean() - 3, -1.0, 3.0))
        bent = (z * z - 1) / 6 * skewness + (z**3 - 3 * z) / 24 * excess - (2 * z**3 - 5 * z) / 36 * skewness**2
        return (super().top(spread) + float(spread.mean()) + size * (z + bent)) / 2

    def _psi(self, gaps: Floats) -> Floats:
        """ψ of columns of gaps, some of them at a time, which take a quarter of the time of all."""
        share, others, columns = self.part.cells.share, 1 - 1 / FOLDS, max(1, pooled.AT_ONCE // len(gaps))
        scale, own = (others / self.error)[:, None], others * share * self._own * self.variance / self.error
        found = np.empty(gaps.shape[1])
        for start in range(0, len(found), columns):
            some = gaps[:, start : start + columns]
            cut, kept = _means_of_cut(self.part.smoother(some) * scale)
            cut *= some
            found[start : start + columns] = share @ cut - own @ kept
        return found

    @cached_property
    def _own(self) -> Floats:
        """How much of its own gap each cell keeps in the fit."""
        size = len(self.part.cells.share)
        return np.ones(size) if self.part.smoother.identity else np.diag(self.part.smoother(np.eye(size)))


class ClusterDual(DualBound):
    """ψ of whole clusters, dealt to the folds in turn by their size: neither names nor the seed divide them."""

    noise: pooled.ClusterNoise

    @cached_property
    def observed(self) -> float:
        """ψ of the sample."""
        cells, noise = self.part.cells, self.noise
        residual = (noise.weight * cells.predicted - noise.events) / cells.share
        return float(self._psi([residual[own].sum(axis=0)[:, None] for own in self._folds])[0])

    def simulated(self, gap: Floats, probability: Floats) -> Floats:
        """ψ of simulated samples with this true gap and the noise of this probability."""
        noise, share = self.noise, self.part.cells.share
        residual, mean = (noise.weight * probability - noise.events) / share, noise.weight / share * gap
        return self._psi([residual[own].T @ noise.signs[own] + mean[own].sum(axis=0)[:, None] for own in self._folds])

    def _psi(self, sums: list[Floats]) -> Floats:
        """ψ from what each fold adds to the gaps; what is held out counts as no gap in the fit."""
        total, psi = np.sum(sums, axis=0), np.zeros(sums[0].shape[1])
        for own in sums:  # fold by fold, in little memory, takes half the time
            direction = self.part.smoother(total - own)
            direction *= (1 / self.error)[:, None]
            np.clip(direction, -1.0, 1.0, out=direction)
            direction *= own
            psi += self.part.cells.share @ direction
        return psi

    @cached_property
    def _folds(self) -> list[Numbers]:
        """The clusters of each fold."""
        size = np.round(self.noise.weight.sum(axis=1), 12)
        order = np.argsort(-size, kind="stable")
        return [order[fold::FOLDS] for fold in range(FOLDS)]


@cache
def _cut_table() -> tuple[Floats, Floats]:
    """Means of normal variables that are cut to [-1, 1], and probabilities that they are not, by their mean."""
    spread = np.sqrt((1 - 1 / FOLDS) / FOLDS)
    mean = np.arange(-TABLED, TABLED + 0.5 / PER_UNIT, 1 / PER_UNIT)
    above, below = (1 - mean) / spread, (-1 - mean) / spread
    kept = ndtr(above) - ndtr(below)
    between = (np.exp(-(above**2) / 2) - np.exp(-(below**2) / 2)) / np.sqrt(2 * np.pi)
    return mean * kept + ndtr(-above) - ndtr(below) - spread * between, kept


def _means_of_cut(mean: Floats) -> tuple[Floats, Floats]:
    """`_cut_table` at these means, overwritten: the nearest entry and its slope, which is the second column."""
    cut, kept = _cut_table()
    place = np.multiply(mean, PER_UNIT, out=mean)
    place += TABLED * PER_UNIT
    np.clip(place, 0, len(cut) - 1, out=place)
    near = np.rint(place).astype(np.intp)
    place -= near
    slope = kept.take(near)
    place *= slope
    place /= PER_UNIT
    place += cut.take(near)
    return place, slope


def _steady(before: Trial, behind: Trial) -> bool:
    """Whether the noise hardly changes in a step, so that quantiles lie on a straight line."""
    noise = [one.top - one.mean for one in (before, behind)]
    return max(noise) <= STEADY * min(noise)


#: What jumps and slopes lose inside cells in L2, as a part of the squared differences between their neighbours; less in
#: smaller norms, and nothing in L1. A jump at a random place of a cell needs 0.10.
#: Test: tests/inference/inversion/test_binary_constants.py.
WITHIN = 0.15

#: Standard deviations of the product of misfit and noise.
#: Test: tests/inference/inversion/test_binary_constants.py.
CROSS = 2.4


@dataclass(frozen=True, eq=False)
class MisfitBound:
    r"""The largest norm of fitted gap and misfit together, combined along a quarter of an ellipse.

    The squared misfit beyond the fit, :math:`\sum_j w_j u_j s_j^2`, is estimated by that of the residuals less their
    noise; its upper limit adds the noise that a low quantile of the simulated sum leaves room for.
    """

    resolution: pooled.Resolution
    noise: Floats
    shape: Floats
    risk: float
    farther: float = 0.0

    def upper(self, norm: float, middle: float, high: float) -> float:
        """The upper limit in a norm of 1 to 2, given the middle and the upper limit of the fitted part."""
        cells, sigma = self.resolution.cells, self.resolution.sigma
        # For a calibrated model the limit in L1 is the root of Σ w l times the noise of Σ w s² / l, and that of equal
        # cells is √Σ (σ² / l)²: the product is least where l³ is proportional to σ⁴. In L2 any weight loses.
        level = sigma ** (4 / 3 * (2 / norm - 1))
        likely, largest = self.squared_misfit(cells.share / level, within=WITHIN * (norm - 1))
        angle = np.linspace(0, np.pi / 2, 13)  # misses at most 1 - cos(π / 48) = 0.2 % of the reach
        fitted = np.sqrt(middle**2 + np.cos(angle) * (high**2 - middle**2))
        misfit = likely + np.sin(angle) * (largest - likely)
        room = float(cells.share @ np.maximum(cells.predicted, 1 - cells.predicted) ** norm) ** (1 / norm)
        found = max(high, float(largest_norms(cells, self.shape, fitted, misfit, level, norm).max()))
        return min(found, max(room, high))

    def squared_misfit(self, weight: Floats, *, within: float) -> tuple[float, float]:
        """The likely squared misfit, at least zero, and its upper limit; both 0 if nothing is smoothed."""
        cells, sigma = self.resolution.cells, self.resolution.sigma
        inside = within * _differences(cells, weight, sigma)
        if self.resolution.fit.identity:
            return inside, inside
        simulated = weight @ self.noise**2
        mean = float(simulated.mean())
        excess = float(weight @ (cells.gap - self.resolution.gap) ** 2) - mean
        least, cross = float(np.quantile(simulated, self.risk)), CROSS + self.farther
        if self.farther > 0:  # the root of the sum is a norm of the noise
            least = max(np.sqrt(least) - self.farther * np.sqrt((weight * sigma**2 / cells.count).max()), 0.0) ** 2
        room = mean - least
        likely = max(excess, 0.0) + inside
        largest = likely + room
        if excess > 0:
            per_misfit = float(np.sum(weight**2 * sigma**2 / cells.count)) / float(weight.sum())
            for _ in range(3):
                largest = likely + float(np.sqrt(room**2 + cross**2 * 4 * per_misfit * largest))
        return likely, largest


def largest_norms(
    cells: pooled.PooledCells, shape: Floats, size: Floats, misfit: Floats, level: Floats, norm: float
) -> Floats:
    r"""Largest norm of a gap whose fitted part has the shape and these sizes, and whose misfit has these squares.

    A cell with mean gap g and variance s² of the gap inside has a mean absolute gap of at most √(g² + s²). Subject to
    Σ w s² / level = misfit, the norm is largest where √(g² + s²) is the larger of g and a multiple of
    level^(1 / (2 - norm)).
    """
    if norm >= 2:
        return np.sqrt(size**2 + misfit)
    length = float(cells.share @ np.abs(shape) ** norm) ** (1 / norm)
    gap = (np.abs(shape) / length if length > 0 else np.ones_like(shape))[:, None] * size
    unit, weight = level[:, None] ** (1 / (2 - norm)), cells.share / level
    most = float(misfit.max()) / float(weight @ unit[:, 0] ** 2)
    top = float((gap / unit).max()) + float(np.sqrt(most)) + 1e-12
    low, high = np.zeros_like(size), np.full_like(size, top)
    for _ in range(45):  # halvings, to a part of 3e-14
        middle = (low + high) / 2
        over = weight @ (np.maximum(gap, middle * unit) ** 2 - gap**2) > misfit
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.asarray((cells.share @ np.maximum(gap, low * unit) ** norm) ** (1 / norm))


def _differences(cells: pooled.PooledCells, weight: Floats, sigma: Floats) -> float:
    """Squared differences between the neighbours of cells of several scores, less their noise."""
    if len(weight) <= 4:
        return 0.0
    between = ~(cells.atom[2:] | cells.single[1:-1] | cells.atom[:-2])
    variance = sigma**2 / cells.count
    squares = (cells.gap[2:] - cells.gap[:-2]) ** 2 - variance[2:] - variance[:-2]
    return max(0.0, float((weight[1:-1] * between) @ squares))


#: The smoother shape is used if it keeps this part of the squared norm that is not noise.
#: Test: tests/inference/inversion/test_binary_constants.py.
KEPT = 0.7

#: The fitted gap varies slowly: its norm is simulated on so many cells, or this many for each knot.
#: Test: tests/inference/inversion/test_binary_constants.py.
SMOOTH_CELLS, CELLS_PER_KNOT = 96, 4

#: Simulated samples beyond each quantile, at least; more are drawn at high levels, up to this many. Beyond the levels
#: that they serve (0.997), ends are bounded from the last quantile that the samples tell.
#: Test: tests/inference/inversion/test_binary_constants.py.
BEYOND, MOST_DRAWS = 2, 2000


@dataclass(frozen=True, eq=False)
class Limits:
    """Lower and upper limits of the true error of one sample, in several norms."""

    sample: pooled.FineSample
    norms: tuple[float, ...]
    risk: float
    told: float
    draws: int
    seed: int
    side: str

    @classmethod
    def of(
        cls,
        sample: pooled.FineSample,
        draws: int,
        seed: int,
        *,
        norms: tuple[float, ...],
        level: float,
        side: str = "two-sided",
    ) -> Limits:
        """With simulated samples; limits in a norm above 2 are derived from those in norm 2."""
        risk = tail_risk(level, one_sided=side != "two-sided")
        needed = np.ceil(BEYOND / risk) if risk < BEYOND / 299 else 0
        draws = max(draws, int(min(needed, MOST_DRAWS)))
        told = risk if draws >= needed else BEYOND / draws
        simulated = tuple(sorted({*map(float, norms), *(min(float(norm), 2.0) for norm in norms)}))
        return cls(sample, simulated, risk, told, draws, seed, side)

    @cached_property
    def silent(self) -> bool:
        """Whether there are too few clusters to say anything."""
        weight = self.sample.weight
        return weight is not None and pooled.too_few_clusters(weight.sum(axis=1))

    def excludes_zero(self, norm: float) -> bool:
        """Whether the lower limit may be above 0, which takes less time than the limit itself."""
        if self.silent or self._bound == 0:
            return False
        return self.dual.rejects_zero if norm < 2 else self._l2_rejects_zero

    def lower(self, norm: float) -> float:
        """The lower limit."""
        if not self.excludes_zero(norm):
            return 0.0
        return min(self._bound, self.dual.limit() if norm < 2 else self._l2_lower)

    def upper(self, norm: float) -> float:
        """The upper limit, not below the lower one."""
        cells = self.sample.cells
        if norm > 2:
            widest = float(np.maximum(cells.predicted, 1 - cells.predicted).max())
            return max(self.lower(norm), float((self.upper(2.0) ** 2 * widest ** (norm - 2)) ** (1 / norm)))
        if self.silent:
            return float(cells.share @ np.maximum(cells.predicted, 1 - cells.predicted) ** norm) ** (1 / norm)
        fitted = self._misfit.upper(norm, self.middle(norm), self.fitted_upper(norm))
        return max(self._least(norm), fitted, self._mean_gap_upper)

    def middle(self, norm: float) -> float:
        """An estimate whose median is about the error of the fitted gap, within the limits of that part."""
        middle = self.smooth.middle(self.norms.index(norm))
        return min(max(middle, self._least(norm)), self.fitted_upper(norm))

    def fitted_upper(self, norm: float) -> float:
        """The upper limit of the error of the fitted gap, without the misfit that it may hide."""
        return self._fitted_uppers[self.norms.index(norm)]

    def _least(self, norm: float) -> float:
        """The lower limit where it is asked for."""
        return 0.0 if self.side == "upper" else self.lower(norm)

    @cached_property
    def farther(self) -> float:
        """Between the quantile that is asked for and the last that the draws tell, in standard normal deviations."""
        return float(ndtri(self.told) - ndtri(self.risk))

    @cached_property
    def _bound(self) -> float:
        """A lower limit without draws, where these do not tell the quantile; no norm is below that in L1.

        Of few clusters the signs have too few patterns for any test at this risk.
        """
        if self.told == self.risk:
            return np.inf
        cells, weight = self.sample.cells, self.sample.weight
        heaviest = None
        if weight is not None:
            by_cluster = weight.sum(axis=1)
            if pooled.effective_clusters(by_cluster) < 1 - np.log2(self.risk):
                return 0.0
            heaviest = float(by_cluster.max())
        return mean_gap_size_limit(
            cells.predicted, cells.observed, cells.share, cells.count, self.risk, heaviest=heaviest
        )

    @cached_property
    def _mean_gap_upper(self) -> float:
        """The largest mean gap that the number of events allows (Clopper and Pearson), if few occurred or did not."""
        cells = self.sample.cells
        rate, mean = float(cells.share @ cells.observed), float(cells.share @ cells.predicted)
        events, others = cells.effective_n * rate, cells.effective_n * (1 - rate)
        if min(events, others) >= pooled.FEW_EVENTS:
            return 0.0
        highest = float(betaincinv(events + 1, others, 1 - self.risk)) if others > 0 else 1.0
        lowest = float(betaincinv(events, others + 1, self.risk)) if events > 0 else 0.0
        return max(highest - mean, mean - lowest)

    @cached_property
    def smooth(self) -> SmoothPart:
        """The fitted part, simulated on cells no finer than its knots need."""
        fit, shape, sample = self.resolution.fit, self._shape, self._slow
        noise, fixed = self._noise, self._fixed
        if sample is not self.sample:
            fit, shape = (sample.cells.hat_fit(one.knots) for one in (fit, shape))
            noise = sample.noise(self.draws, self.seed)
            fixed = noise if self.seed == 0 else sample.noise(self.draws, 0)
        size, norms = float(np.sqrt(self._noise_power)), np.array(self.norms)
        ample = sample.noise(max(2 * AMPLE, self.draws), self.seed)
        return SmoothPart(sample.cells, noise, fixed, ample, fit, shape, size, norms, self.told, farther=self.farther)

    @cached_property
    def _slow(self) -> pooled.FineSample:
        """The sample in cells that are fine enough for what varies as slowly as the fit."""
        fit = self.resolution.fit
        return self.sample if fit.identity else self.sample.merged(max(SMOOTH_CELLS, CELLS_PER_KNOT * round(fit.knots)))

    @cached_property
    def dual(self) -> DualBound:
        """The lower bound of the L1 error without smoothness, with draws of its own."""
        bound = RowDual if self.sample.weight is None else ClusterDual
        return bound(self.smooth, self._slow.noise(max(AMPLE, self.draws), self.seed))

    @cached_property
    def _fitted_uppers(self) -> list[float]:
        return [self.smooth.upper(k) for k in range(len(self.norms))]

    @cached_property
    def _noise(self) -> pooled.CellNoise:
        return self.sample.noise(self.draws, self.seed)

    @cached_property
    def _fixed(self) -> pooled.CellNoise:
        """Noise that is the same for every seed, by which is decided what an end would otherwise jump with."""
        return self._noise if self.seed == 0 else self.sample.noise(self.draws, 0)

    @cached_property
    def resolution(self) -> pooled.Resolution:
        """The fits of the gap, and the one that was chosen."""
        return pooled.Resolution.of(self.sample.cells, self._fixed)

    @cached_property
    def _drawn(self) -> Floats:
        """Noise of the cells at the fitted probabilities."""
        return self._noise.outcomes(np.clip(self.sample.cells.predicted - self.resolution.gap, 0.0, 1.0))

    @cached_property
    def _fitted_noise(self) -> Floats:
        return self.resolution.fit(self._drawn)

    @cached_property
    def _noise_power(self) -> float:
        """What noise adds to the squared norm of the fitted gap."""
        return float((self.sample.cells.share @ self._fitted_noise**2).mean())

    @cached_property
    def _shape(self) -> HatFit:
        """The fit of the shape: smoother than that of the gap, unless it loses too much of it."""
        cells, found = self.sample.cells, self.resolution
        smoother = cells.hat_fit(SHAPE_KNOTS * found.fit.knots)
        left, kept = (float(cells.share @ gap**2) for gap in (found.gap, smoother(cells.gap)))
        return smoother if kept >= KEPT * (left - self._noise_power) else found.fit

    @cached_property
    def _misfit(self) -> MisfitBound:
        shape, noise = self._shape(self.sample.cells.gap), self._drawn - self._fitted_noise
        return MisfitBound(self.resolution, noise, shape, self.told, self.farther)

    @cached_property
    def _l2_rejects_zero(self) -> bool:
        return self.smooth.far_from_zero or self.resolution.p_value_of_zero(self._fixed) <= self.told

    @cached_property
    def _l2_lower(self) -> float:
        return self.smooth.lower(self.norms.index(2.0))
