"""Both limits of the true error of binary predictions, from cells: fitted part, dual bound and largest misfit.

The gap is fitted as finely as it shows structure. The fitted part inverts a test of the size of the fitted gap along
several shapes. Without smoothness, the lower limit in L1 is a held-out mean of gaps times signs fitted on the other
rows, and the upper limit adds the largest misfit of the fit. docs/methods/intervals.md derives each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from calibrant.numerics.arrays import Floats
from calibrant.numerics.cells import (
    FEW_EVENTS,
    CellNoise,
    ClusterNoise,
    FineSample,
    PooledCells,
    Resolution,
    effective_clusters,
    simulated_gaps,
)
from calibrant.numerics.confidence_limits import mean_gap_size_limit
from calibrant.numerics.inversion import (
    EQUAL,
    LEAST_REACH,
    SHAPE_KNOTS,
    HatFit,
    Numbers,
    Path,
    knots_for,
    tail_risk,
)
from calibrant.numerics.random_draws import BinomialDraws, generator

#: Number of multiples of the fitted gap that are tested, from zero to well beyond what the data allow; and a smaller
#: number if zero error is clearly rejected, so that only multiples near one matter; and sideways.
#: Test: tests/inference/inversion/test_binary_constants.py.
STEPS, NEAR_STEPS, SIDEWAYS_STEPS = 7, 5, 12

#: Number of multiples between two of these where the quantile jumps.
#: Test: tests/inference/inversion/test_binary_constants.py.
FINER_STEPS = 6

#: The smoother shape is used if it keeps this part of the squared norm that is not noise.
#: Test: tests/inference/inversion/test_binary_constants.py.
KEPT = 0.7

#: Knots for each cell from which on a fit is a fine one.
#: Test: tests/inference/inversion/test_binary_constants.py.
FINE = 1 / 3


class Steps(NamedTuple):
    """Multiples of a gap that are taken for the truth, and the path of errors in each norm."""

    direction: Floats
    multiples: Floats
    paths: list[Path]


@dataclass(frozen=True, eq=False)
class SmoothPart:
    """Confidence limits of the norm of the fitted gap, along a smoother shape.

    `noise_size` is the root of the squared norm that noise adds to the fitted gap.
    """

    cells: PooledCells
    noise: CellNoise
    fit: HatFit
    smoother: HatFit
    noise_size: float
    norms: Floats
    risk: float
    farther: float = 0.0

    @cached_property
    def fitted(self) -> Floats:
        """The gap by the chosen fit."""
        return self.fit(self.cells.gap)

    @cached_property
    def observed(self) -> Floats:
        """The norms of the fitted gap, which noise biases upward."""
        powers = [float(self.cells.share @ np.abs(self.fitted) ** norm) for norm in self.norms]
        return np.array(powers) ** (1 / self.norms)

    @cached_property
    def shape(self) -> Floats:
        """The gap whose multiples are taken for the truth."""
        return self.smoother(self.cells.gap)

    @cached_property
    def size(self) -> float:
        """The L2 norm of the shape."""
        return _length(self.cells, self.shape)

    def steps(self, direction: Floats, multiples: Floats) -> Steps:
        """The distribution of the statistic for multiples of a true gap; probabilities are clipped to [0, 1]."""
        share = self.cells.share
        probability = np.clip(self.cells.predicted - multiples[:, None] * direction, 0.0, 1.0)
        gaps, noisy = self.cells.predicted - probability, self.noisy(probability)
        noisy[multiples == 0] = probability[multiples == 0]
        some = (np.abs(self.fit(drawn)) for drawn in simulated_gaps(self.noise, gaps, noisy))
        powers = np.concatenate([[share @ _power(drawn, q) for q in self.norms] for drawn in some], axis=1)
        sizes = [np.abs(gaps) ** q for q in self.norms]
        truth = np.stack([size @ share for size in sizes])
        simulated = powers.reshape(len(self.norms), len(gaps), -1) + np.matmul(sizes, self.noise.shares)
        levels = [self.risk, 0.5, 1 - self.risk]
        quantiles = np.quantile(np.maximum(simulated, 0.0), levels, axis=2, method="weibull")
        roots = 1 / self.norms[:, None]
        low, middle, high = quantiles**roots
        if self.farther > 0:
            more = np.array([self._beyond_draws(multiple * direction) for multiple in multiples])
            low, high = np.maximum(low - more, 0.0), high + more
        paths = [Path(*of_norm, squares=True) for of_norm in zip(truth**roots, low, middle, high, strict=True)]
        return Steps(direction, multiples, paths)

    def _beyond_draws(self, gap: Floats) -> float:
        """What lies at most between the last quantile that the draws tell and the one that is asked for.

        Norms up to L2 change by at most that of the noise, so the Gaussian isoperimetric inequality bounds the distance
        of quantiles (see `numerics.inversion.Path`); skewness adds to those of counts (Cornish and Fisher).
        """
        probability = self.noisy(np.clip(self.cells.predicted - gap, 0.0, 1.0))
        unit = self.cells.share / self.cells.count
        size = np.abs(gap) - self.cells.share @ np.abs(gap)
        variance = float((unit * probability * (1 - probability)).max())
        variance += float(self.cells.share @ size**2) / self.cells.effective_n
        skewness = self.farther * (self.farther - 2 * float(ndtri(self.risk))) / 6 * float(unit.max())
        return self.farther * float(np.sqrt(variance)) + skewness

    def noisy(self, probability: Floats) -> Floats:
        """The hypothetical probability, or the fitted one where that has the larger variance."""
        fitted = np.clip(self.cells.predicted - self.shape, 0.0, 1.0)
        return np.where(fitted * (1 - fitted) > probability * (1 - probability), fitted, probability)

    @cached_property
    def _near(self) -> Steps | None:
        """Multiples near one, if the gap is many times its noise and they enclose what was observed."""
        if self.size == 0 or self._reach >= 0.5:
            return None
        near = self.steps(self.shape, np.linspace(1 - self._reach, self._middle + self._reach, NEAR_STEPS))
        enclosed = all(path.high[0] < seen < path.low[-1] for path, seen in zip(near.paths, self.observed, strict=True))
        return near if enclosed else None

    @property
    def far_from_zero(self) -> bool:
        """Whether even half of the fitted gap is rejected as too small."""
        return self._near is not None

    @cached_property
    def along_shape(self) -> Steps:
        """Multiples of the shape: near one, or from zero to well beyond what the data allow."""
        if self._near is not None:
            return self._near
        if self.size == 0:
            return self.steps(self.shape, np.zeros(2))
        return self.steps(self.shape, np.linspace(0, max(self._middle + self._reach, LEAST_REACH), STEPS))

    @cached_property
    def beside(self) -> list[Steps]:
        """Other shapes that could hide a larger error, for the upper end."""
        cells, shape, along, found = self.cells, self.shape, self.along_shape, []
        if self.size > 0 and not self.far_from_zero:
            # Noise inflates the norm of a straight gap less than that of the fitted one, which oscillates by chance.
            straight = np.where(cells.atom, shape, cells.hat_fit(2)(cells.gap))
            scale = self.size / max(_length(cells, straight), 0.1 * self.size)
            found.append(self.steps(straight * scale, along.multiples[::2]))
        if self.size > 0 and (self.fit.identity or (self._fine and self._may_be_even)):
            # Noise adds less to the L1 norm of a gap of the same size everywhere. With a coarse fit, the misfit allows
            # for that.
            found.append(self.steps(np.sign(shape) * self.size, along.multiples[::2]))
        pairs = zip(along.paths, self.observed * (1 + EQUAL), strict=True)
        if any(path.low.max() <= seen or not path.truth.any() for path, seen in pairs):
            found += [self._one_direction(sign) for sign in (-1, 1)]
        return found

    @property
    def _fine(self) -> bool:
        """Whether more than the usual number of knots were needed, and so many that little misfit is left."""
        return self.fit.knots >= FINE * len(self.cells.share) and self.fit.knots > knots_for(self.cells.effective_n)

    @property
    def _may_be_even(self) -> bool:
        """Whether the data allow a gap of the same size everywhere, by the ratio of its L1 and its L2 norm."""
        if self.farther > 0:
            return True
        share = self.cells.share
        even = np.sign(self.shape) * np.sqrt(max(float(share @ self.fitted**2) - self.noise_size**2, 0.0))
        probability = np.clip(self.cells.predicted - even, 0.0, 1.0)
        noise = self.noise.outcomes(self.noisy(probability))
        drawn = self.fit((self.cells.predicted - probability)[:, None] + noise)
        simulated = (share @ np.abs(drawn)) / np.sqrt(share @ drawn**2)
        return bool(share @ np.abs(self.fitted) >= np.quantile(simulated, self.risk) * _length(self.cells, self.fitted))

    def lower(self, k: int) -> float:
        """The lower limit in norm k: the smallest multiple of the shape that is not rejected."""
        steps, seen = self.along_shape, float(self.observed[k])
        if not self.far_from_zero:  # near zero the noise grows with the gap: smaller steps
            after = int(np.searchsorted(np.maximum.accumulate(steps.paths[k].high), seen * (1 - EQUAL)))
            steps = self._between(steps, min(max(after, 1), len(steps.multiples) - 1))
        return steps.paths[k].lower_end(seen, partial(self._finer, steps, k))

    def middle(self, k: int) -> float:
        """The error in norm k of which the observed norm is the median."""
        return self.along_shape.paths[k].middle_end(float(self.observed[k]))

    def upper(self, k: int) -> float:
        """The upper limit in norm k: the largest over all shapes."""
        seen = float(self.observed[k])
        tried = [self.along_shape, *self.beside]
        return max(steps.paths[k].upper_end(seen, partial(self._finer, steps, k)) for steps in tried)

    def _between(self, steps: Steps, after: int) -> Steps:
        """Smaller steps between one multiple and the one before."""
        ends = steps.multiples[after - 1 : after + 1]
        return self.steps(steps.direction, np.linspace(ends[0], ends[1], FINER_STEPS))

    def _finer(self, steps: Steps, k: int, after: int) -> Path:
        return self._between(steps, after).paths[k]

    @property
    def _middle(self) -> float:
        return _length(self.cells, self.fitted) / self.size

    @property
    def _reach(self) -> float:
        """Four standard deviations of noise and score sampling, or more at high levels, in multiples of the shape."""
        share, size = self.cells.share, np.abs(self.fitted)
        sampling = np.sqrt(share @ (size - share @ size) ** 2 / self.cells.effective_n)
        return float((4 + 2 * self.farther) * (self.noise_size + sampling) / self.size)

    def _one_direction(self, sign: int) -> Steps:
        """Gaps of one sign, proportional to the noise: for probabilities near 0 and 1, which bound the fitted gap."""
        cells, least = self.cells, 1 / self.cells.effective_n
        spread = np.sqrt(np.maximum(cells.predicted * (1 - cells.predicted), least))
        top = _length(cells, self.fitted) + (10 + 5 * self.farther) * max(self.noise_size, np.sqrt(least))
        steps = top * np.linspace(0, 1, SIDEWAYS_STEPS) ** 2
        return self.steps(sign * spread / _length(cells, spread), steps)


def _length(cells: PooledCells, gap: Floats) -> float:
    return float(np.sqrt(cells.share @ gap**2))


def _power(values: Floats, norm: float) -> Floats:
    if norm == 1:
        return values
    return values * values if norm == 2 else values**norm


#: Folds that the rows of each cell (or whole clusters) are divided into.
#: Test: tests/inference/inversion/test_binary_constants.py.
FOLDS = 5

#: If the noise changes by more than this factor from one multiple to the next, the step between them is halved, so
#: many times at most. Test: tests/inference/inversion/test_binary_constants.py.
STEADY, HALVINGS = 1.5, 3

#: A lower limit below this is rounding: the observed value and a quantile of the simulated ones can be the same number.
#: Derived: above the rounding of sums of a thousand terms of at most 1, far below any error that matters.
ROUNDING = 1e-12


class Trial(NamedTuple):
    """A multiple of the shape, with mean and high quantile of the dual statistic."""

    multiple: float
    mean: float
    top: float


@dataclass(frozen=True, eq=False)
class DualBound:
    r"""Lower limit by duality: :math:`E[f(S)(S - Y)] \le E|S - h(S)|` for every function with :math:`|f| \le 1`.

    f is the fitted gap of the other folds divided by its standard error, cut to [-1, 1], and ψ the sum over folds of
    its mean product with the gaps held out. The distribution of ψ is simulated, cross-fitting included, at three
    multiples of the shape: f taken as fixed would understate it. The limit is the mean of ψ at the multiple at which
    the observed ψ is a high quantile.
    """

    part: SmoothPart
    seed: int

    def limit(self) -> float:
        """The lower limit, 0 where it is positive by rounding alone."""
        part, observed, multiples = self.part, self.observed(), self.part.along_shape.multiples
        if part.size == 0:
            return 0.0
        first = self._trial(multiples[0])
        if multiples[0] == 0 and observed <= first.top:
            return 0.0
        tried = [first, *(self._trial(multiple) for multiple in multiples[[len(multiples) // 2, -1]])]
        for _ in range(HALVINGS + 1):
            rising = np.maximum.accumulate([one.top for one in tried])
            after = int(np.clip(np.searchsorted(rising, observed - ROUNDING), 1, len(tried) - 1))
            before, behind = tried[after - 1 : after + 1]
            if _steady(before, behind):
                break
            # The noise depends on the multiple: halve the step.
            tried.insert(after, self._trial((before.multiple + behind.multiple) / 2))
        found, rise = before.mean, behind.top - before.top
        if _steady(before, behind) and rise > 0:  # not a jump to the observed value
            found += (observed - before.top) / rise * (behind.mean - before.mean)
        return found if found > ROUNDING else 0.0

    def _trial(self, multiple: float) -> Trial:
        """Mean and high quantile of ψ for a multiple of the shape."""
        part = self.part
        probability = np.clip(part.cells.predicted - multiple * part.shape, 0.0, 1.0)
        gap = part.cells.predicted - probability
        drawn = self.statistic(self.simulated(gap, part.noisy(probability) if multiple > 0 else probability))
        mean = float(drawn.mean()) if multiple > 0 else 0.0
        spread = drawn - mean + np.abs(gap) @ part.noise.shares
        return Trial(multiple, mean, mean + float(np.quantile(spread, 1 - part.risk, method="weibull")))

    def statistic(self, sums: Floats) -> Floats:
        """ψ from the sums of gaps per fold, cell and sample; what is held out counts as no gap in the fit."""
        total, rows, psi = sums.sum(axis=0), self._rows, np.zeros(sums.shape[2])
        for own in sums:  # fold by fold, in little memory, takes half the time
            direction = self.part.smoother((total - own) * (1 / rows)[:, None])
            direction *= (1 / self._error)[:, None]
            np.clip(direction, -1.0, 1.0, out=direction)
            direction *= own
            psi += (self.part.cells.share / rows) @ direction
        return psi

    def observed(self) -> float:
        """ψ of the sample, its rows dealt to the folds at random."""
        cells, rows = self.part.cells, self._rows
        if isinstance(self._noise, ClusterNoise):
            residual = (self._noise.weight * cells.predicted - self._noise.events) / cells.share * rows
            sums = np.stack([residual[self._fold == fold].sum(axis=0) for fold in range(FOLDS)])
            return float(self.statistic(sums[:, :, None])[0])
        rng, left = generator(self.seed, "events of folds"), rows.copy()
        events = np.clip(np.round(cells.observed * rows), 0, rows).astype(np.int64)
        expected, remaining, dealt = events / rows, events.copy(), []
        for size in self._sizes:
            taken = rng.hypergeometric(remaining, left - remaining, size)
            left, remaining = left - size, remaining - taken
            dealt.append(size * cells.gap - (taken - size * expected))
        return float(self.statistic(np.stack(dealt)[:, :, None])[0])

    def simulated(self, gap: Floats, probability: Floats) -> Floats:
        """Sums of gaps per fold, cell and sample, for this true gap and the noise of this probability."""
        noise, rows = self._noise, self._rows
        if isinstance(noise, ClusterNoise):
            share = self.part.cells.share
            residual = (noise.weight * probability - noise.events) / share * rows
            mean = noise.weight / share * rows * gap
            folds = [self._fold == fold for fold in range(FOLDS)]
            return np.stack([residual[own].T @ noise.signs[own] + mean[own].sum(axis=0)[:, None] for own in folds])
        scale, mean = np.sqrt(rows / self.part.cells.count), self._sizes * gap
        drawn = self._normal * (scale * np.sqrt(self._sizes * (probability * (1 - probability))))[:, :, None]
        drawn += mean[:, :, None]
        few = rows * np.minimum(probability, 1 - probability) < FEW_EVENTS
        if few.any():
            size, chance, own = self._sizes[:, few], probability[few], scale[few]
            events = self._binomial.counts(size.ravel(), np.tile(chance, FOLDS), np.tile(few, FOLDS))
            events = events.reshape(*size.shape, noise.draws)
            events *= -own[:, None]
            events += (own * size * chance + mean[:, few])[:, :, None]
            drawn[:, few] = events
        return drawn

    @property
    def _noise(self) -> CellNoise:
        return self.part.noise

    @cached_property
    def _rows(self) -> Numbers:
        """Whole numbers of rows per cell."""
        return np.maximum(np.round(self.part.cells.count), 1).astype(np.int64)

    @cached_property
    def _sizes(self) -> Numbers:
        """Rows per fold and cell, as even as possible."""
        rank = np.argsort(generator(self.seed, "sizes of folds").random((len(self._rows), FOLDS)), axis=1).T
        return np.asarray(self._rows // FOLDS + (rank < self._rows % FOLDS))

    @cached_property
    def _fold(self) -> Numbers:
        """The fold of each cluster."""
        clusters = len(self._noise.weight) if isinstance(self._noise, ClusterNoise) else 0
        return generator(self.seed, "folds of clusters").permutation(clusters) % FOLDS

    @cached_property
    def _normal(self) -> Floats:
        size = (FOLDS, len(self._rows), self._noise.draws)
        return generator(self.seed, "normal noise of folds").standard_normal(size)

    @cached_property
    def _binomial(self) -> BinomialDraws:
        return BinomialDraws.of(
            FOLDS * len(self._rows), self._noise.draws, generator(self.seed, "drawn events of folds")
        )

    @cached_property
    def _error(self) -> Floats:
        """Standard error of the fitted gap, per cell."""
        cells = self.part.cells
        probability = np.clip(cells.predicted - self.part.fitted, 0.0, 1.0)
        variance = np.maximum(probability * (1 - probability), 0.1 * cells.predicted * (1 - cells.predicted))
        return np.sqrt(np.maximum(self.part.smoother.variance(variance / cells.count), 1e-300))


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
    r"""The largest norm of fitted gap and misfit together.

    The squared misfit beyond the fit, :math:`\sum_j w_j u_j s_j^2`, is estimated by that of the residuals less their
    noise; its upper limit adds the noise that a low quantile of the simulated sum leaves room for. The misfit is put
    where it raises the norm most. The uncertainty of the fitted part and of the misfit are combined along a quarter of
    an ellipse, as for independent estimates.
    """

    resolution: Resolution
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
    cells: PooledCells, shape: Floats, size: Floats, misfit: Floats, level: Floats, norm: float
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


def _differences(cells: PooledCells, weight: Floats, sigma: Floats) -> float:
    """Squared differences between the neighbours of cells of several scores, less their noise."""
    if len(weight) <= 4:
        return 0.0
    between = ~(cells.atom[2:] | cells.single[1:-1] | cells.atom[:-2])
    variance = sigma**2 / cells.count
    squares = (cells.gap[2:] - cells.gap[:-2]) ** 2 - variance[2:] - variance[:-2]
    return max(0.0, float((weight[1:-1] * between) @ squares))


#: With fewer clusters of rows, or fewer effective ones, nothing is claimed: their signs have too few patterns for a
#: test at the usual levels. Test: tests/inference/inversion/test_binary_constants.py.
FEWEST_CLUSTERS, FEWEST_EFFECTIVE = 5, 2.0

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

    sample: FineSample
    norms: tuple[float, ...]
    risk: float
    told: float
    draws: int
    seed: int
    side: str

    @classmethod
    def of(
        cls,
        sample: FineSample,
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

    @property
    def silent(self) -> bool:
        """Whether there are too few clusters to say anything."""
        weight = self.sample.weight
        if weight is None:
            return False
        return len(weight) < FEWEST_CLUSTERS or effective_clusters(weight.sum(axis=1)) < FEWEST_EFFECTIVE

    def lower(self, norm: float) -> float:
        """The lower limit."""
        if self.silent or self._bound == 0:
            return 0.0
        return min(self._bound, self._l1_lower if norm < 2 else self._l2_lower)

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
            if effective_clusters(by_cluster) < 1 - np.log2(self.risk):
                return 0.0
            heaviest = float(by_cluster.max())
        return mean_gap_size_limit(
            cells.predicted, cells.observed, cells.share, cells.count, self.risk, heaviest=heaviest
        )

    @cached_property
    def _mean_gap_upper(self) -> float:
        """The largest mean gap that the number of events does not exclude, if there are few events or non-events.

        No norm is smaller than the mean gap. Without any event, no simulated gap looks too small, however large it is;
        the binomial limits of the event rate (Clopper and Pearson) say what is excluded.
        """
        from scipy.special import betaincinv

        cells = self.sample.cells
        rate, mean = float(cells.share @ cells.observed), float(cells.share @ cells.predicted)
        events, others = cells.effective_n * rate, cells.effective_n * (1 - rate)
        if min(events, others) >= FEW_EVENTS:
            return 0.0
        highest = float(betaincinv(events + 1, others, 1 - self.risk)) if others > 0 else 1.0
        lowest = float(betaincinv(events, others + 1, self.risk)) if events > 0 else 0.0
        return max(highest - mean, mean - lowest)

    @cached_property
    def smooth(self) -> SmoothPart:
        """The fitted part, simulated on cells no finer than its knots need."""
        fit, shape, sample, noise = self.resolution.fit, self._shape, self.sample, self._noise
        if not fit.identity:
            sample = sample.merged(max(SMOOTH_CELLS, CELLS_PER_KNOT * round(fit.knots)))
        if sample is not self.sample:
            fit, shape = (sample.cells.hat_fit(one.knots) for one in (fit, shape))
            noise = sample.noise(self.draws, self.seed)
        size = float(np.sqrt(self._noise_power))
        return SmoothPart(sample.cells, noise, fit, shape, size, np.array(self.norms), self.told, self.farther)

    @cached_property
    def _fitted_uppers(self) -> list[float]:
        return [self.smooth.upper(k) for k in range(len(self.norms))]

    @cached_property
    def _noise(self) -> CellNoise:
        return self.sample.noise(self.draws, self.seed)

    @cached_property
    def resolution(self) -> Resolution:
        """The fits of the gap, and the one that was chosen."""
        return Resolution.of(self.sample.cells, self._noise)

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
    def _l1_lower(self) -> float:
        return DualBound(self.smooth, self.seed).limit()

    @cached_property
    def _l2_lower(self) -> float:
        part = self.smooth
        if not part.far_from_zero and self.resolution.p_value_of_zero(self._noise) > self.told:
            return 0.0
        return part.lower(self.norms.index(2.0))
