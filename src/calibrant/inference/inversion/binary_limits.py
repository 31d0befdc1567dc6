"""The ends of the inversion for binary predictions: a smooth part, a dual bound, and the largest misfit.

The smooth part inverts a test of the size of the fitted gap along several shapes. Without smoothness, the lower end is
a held-out mean of gaps times signs fitted on the other rows, and the upper end adds the largest misfit of the fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.special import ndtri

from calibrant.inference.inversion.binary_fit import (
    FEW_EVENTS,
    SHAPE_KNOTS,
    CellNoise,
    ClusterNoise,
    HatFit,
    Resolution,
    simulated_gaps,
)
from calibrant.inference.sample import Numbers, PooledCells, knots_for
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import BinomialDraws, generator
from calibrant.results.estimate import Side

#: Number of multiples of the fitted gap that are tested, from zero to well beyond what the data allow; and a smaller
#: number if zero error is clearly rejected, so that only multiples near one matter; and sideways.
STEPS, NEAR_STEPS, SIDEWAYS_STEPS = 7, 5, 12

#: Number of multiples between two of these where the quantile jumps, which is where it rises by this many times more
#: than the error, and the relative difference of equal norms.
FINER_STEPS, JUMP, EQUAL = 6, 1.5, 1e-9

#: The smoother shape is used if it keeps this part of the squared norm that is not noise.
KEPT = 0.7

#: Knots for each cell from which on a fit is a fine one.
FINE = 1 / 3


@dataclass(frozen=True, eq=False)
class Shape:
    """The shape along which errors are tested: a smoother fit, unless it loses too much of the gap.

    Attributes
    ----------
    fit : HatFit
    gap : array
    noise : float
        Root of the squared norm that noise adds to the gap of the chosen fit.
    """

    fit: HatFit
    gap: Floats
    noise: float

    @classmethod
    def of(cls, cells: PooledCells, fit: HatFit, fitted: Floats, simulated: Floats) -> Shape:
        """From the chosen fit, its gap, and the fit of simulated noise."""
        noise = float((cells.share @ simulated**2).mean())
        smoother = HatFit.of(cells, SHAPE_KNOTS * fit.knots)
        gap = smoother(cells.gap)
        if cells.share @ gap**2 < KEPT * (cells.share @ fitted**2 - noise):
            smoother, gap = fit, fitted
        return cls(smoother, gap, float(np.sqrt(noise)))


@dataclass(frozen=True, eq=False)
class Path:
    """Multiples of a gap; per norm (row) and multiple (column) the true error and quantiles of the statistic."""

    direction: Floats
    multiples: Floats
    truth: Floats
    low: Floats
    middle: Floats
    high: Floats

    @property
    def typical(self) -> Floats:
        """The median of the statistic under calibration; 0 if the path does not start there."""
        return np.where(self.truth[:, 0] == 0, self.middle[:, 0], 0.0)


@dataclass(frozen=True, eq=False)
class SmoothPart:
    """Confidence limits of the norm of the fitted gap."""

    cells: PooledCells
    noise: CellNoise
    fit: HatFit
    shape: Shape
    norms: Floats
    risk: float
    side: Side
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
    def size(self) -> float:
        """The L2 norm of the shape."""
        return _length(self.cells, self.shape.gap)

    @property
    def shape_is_chosen(self) -> bool:
        """Whether the shape has more knots than usual, because with these it shows a larger gap."""
        return self.shape.fit.knots > SHAPE_KNOTS * knots_for(self.cells.effective_n) * (1 + EQUAL)

    def path(self, direction: Floats, multiples: Floats) -> Path:
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
        return Path(direction, multiples, truth**roots, low, middle, high)

    def _beyond_draws(self, gap: Floats) -> float:
        """What lies at most between the last quantile that the draws tell and the one that is asked for.

        Norms up to L2 change by at most that of the noise, so the Gaussian isoperimetric inequality bounds the distance
        of quantiles (see `numerics.inversion.InvertedPath`); skewness adds to those of counts (Cornish and Fisher).
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
        fitted = np.clip(self.cells.predicted - self.shape.gap, 0.0, 1.0)
        return np.where(fitted * (1 - fitted) > probability * (1 - probability), fitted, probability)

    @cached_property
    def _near(self) -> Path | None:
        """Multiples near one, if the gap is many times its noise and they enclose what was observed."""
        if self.size == 0 or self._reach >= 0.5:
            return None
        path = self.path(self.shape.gap, np.linspace(1 - self._reach, self._middle + self._reach, NEAR_STEPS))
        enclosed = np.all(path.high[:, 0] < self.observed) and np.all(path.low[:, -1] > self.observed)
        return path if enclosed else None

    @property
    def far_from_zero(self) -> bool:
        """Whether even half of the fitted gap is rejected as too small."""
        return self._near is not None

    @cached_property
    def along_shape(self) -> Path:
        """Multiples of the shape: near one, or from zero to well beyond what the data allow."""
        if self._near is not None:
            return self._near
        last = max(self._middle + self._reach, 1.5) if self.size > 0 else 0.0
        return self.path(self.shape.gap, np.linspace(0, last, STEPS if self.size > 0 else 2))

    @cached_property
    def beside(self) -> list[Path]:
        """Other shapes that could hide a larger error, for the upper end."""
        cells, shape, multiples, found = self.cells, self.shape.gap, self.along_shape.multiples, []
        if self.size > 0 and not self.far_from_zero:
            # Noise inflates the norm of a straight gap less than that of the fitted one, which oscillates by chance.
            straight = np.where(cells.atom, shape, HatFit.of(cells, 2)(cells.gap))
            scale = self.size / max(_length(cells, straight), 0.1 * self.size)
            found.append(self.path(straight * scale, multiples[::2]))
        if self.size > 0 and (self.fit.identity or (self._fine and self._may_be_even)):
            # Noise adds less to the L1 norm of a gap of the same size everywhere. With a coarse fit, the misfit allows
            # for that.
            found.append(self.path(np.sign(shape) * self.size, multiples[::2]))
        if np.any(self.along_shape.low.max(axis=1) <= self.observed * (1 + EQUAL)) or not self.along_shape.truth.any():
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
        even = np.sign(self.shape.gap) * np.sqrt(max(float(share @ self.fitted**2) - self.shape.noise**2, 0.0))
        probability = np.clip(self.cells.predicted - even, 0.0, 1.0)
        noise = self.noise.outcomes(self.noisy(probability))
        drawn = self.fit((self.cells.predicted - probability)[:, None] + noise)
        simulated = (share @ np.abs(drawn)) / np.sqrt(share @ drawn**2)
        return bool(share @ np.abs(self.fitted) >= np.quantile(simulated, self.risk) * _length(self.cells, self.fitted))

    def lower(self, k: int) -> float:
        """The lower limit in norm k: the smallest multiple of the shape that is not rejected."""
        path, crossing = self.along_shape, partial(_lower_crossing, self.observed[k])
        if not self.far_from_zero:  # near zero the noise grows with the gap: smaller steps
            after = int(np.searchsorted(np.maximum.accumulate(path.high[k]), self.observed[k] * (1 - EQUAL)))
            path = self._between(path, min(max(after, 1), len(path.multiples) - 1))
        return self._refined(path, k, crossing)

    def middle(self, k: int) -> float:
        """The error in norm k of which the observed norm is the median."""
        path = self.along_shape
        rising = np.maximum.accumulate(path.middle[k])
        return float(np.sqrt(np.interp(self.observed[k] ** 2, rising**2, path.truth[k] ** 2)))

    def upper(self, k: int) -> float:
        """The upper limit in norm k: the largest over all shapes. A norm smaller than typical proves nothing."""
        return max(
            self._refined(path, k, partial(_upper_crossing, max(self.observed[k], path.typical[k])))
            for path in [self.along_shape, *self.beside]
        )

    def _refined(self, path: Path, k: int, crossing: Callable[[Path, int], tuple[float, int | None]]) -> float:
        """The crossing; where outcomes are so few that the quantile jumps there, with finer steps."""
        limit, jump = crossing(path, k)
        if jump is None:
            return limit
        return crossing(self._between(path, jump), k)[0]

    def _between(self, path: Path, after: int) -> Path:
        """Smaller steps between one multiple of a path and the one before."""
        return self.path(path.direction, np.linspace(path.multiples[after - 1], path.multiples[after], FINER_STEPS))

    @property
    def _middle(self) -> float:
        return _length(self.cells, self.fitted) / self.size

    @property
    def _reach(self) -> float:
        """Four standard deviations of noise and score sampling, or more at high levels, in multiples of the shape."""
        share, size = self.cells.share, np.abs(self.fitted)
        sampling = np.sqrt(share @ (size - share @ size) ** 2 / self.cells.effective_n)
        return float((4 + 2 * self.farther) * (self.shape.noise + sampling) / self.size)

    def _one_direction(self, sign: int) -> Path:
        """Gaps of one sign, proportional to the noise: for probabilities near 0 and 1, which bound the fitted gap."""
        cells, least = self.cells, 1 / self.cells.effective_n
        spread = np.sqrt(np.maximum(cells.predicted * (1 - cells.predicted), least))
        top = _length(cells, self.fitted) + (10 + 5 * self.farther) * max(self.shape.noise, np.sqrt(least))
        steps = top * np.linspace(0, 1, SIDEWAYS_STEPS) ** 2
        return self.path(sign * spread / _length(cells, spread), steps)


def _length(cells: PooledCells, gap: Floats) -> float:
    return float(np.sqrt(cells.share @ gap**2))


def _power(values: Floats, norm: float) -> Floats:
    if norm == 1:
        return values
    return values * values if norm == 2 else values**norm


def _lower_crossing(observed: float, path: Path, k: int) -> tuple[float, int | None]:
    """The smallest error at which the high quantile reaches the observed norm; and the step in which it jumps there.

    Where it jumps, the error before the jump is returned.
    """
    rising, truth = np.maximum.accumulate(path.high[k]), path.truth[k]
    after = int(np.searchsorted(rising, observed * (1 - EQUAL)))
    if after in (0, len(rising)):
        return float(truth[min(after, len(truth) - 1)]), None
    if rising[after] <= observed * (1 + EQUAL) or _jumps(rising, truth, after):
        return float(truth[after - 1]), after
    return _interpolated(observed, rising, truth, after), None


def _upper_crossing(observed: float, path: Path, k: int) -> tuple[float, int | None]:
    """The largest error at which the low quantile is at most the observed norm; and the step in which it jumps on.

    Where it jumps, the error after the jump is returned.
    """
    rising, truth = np.minimum.accumulate(path.low[k][::-1])[::-1], path.truth[k]
    after = int(np.searchsorted(rising, observed * (1 + EQUAL), side="right"))
    if after in (0, len(rising)):
        return float(truth[min(after, len(truth) - 1)]), None
    if rising[after - 1] >= observed * (1 - EQUAL) or _jumps(rising, truth, after):
        return float(truth[after]), after
    return _interpolated(observed, rising, truth, after), None


def _jumps(rising: Floats, truth: Floats, after: int) -> bool:
    """Whether the quantile rises faster than it could if outcomes were many: then it rises by at most the error."""
    return bool(rising[after] - rising[after - 1] > JUMP * (truth[after] - truth[after - 1]))


def _interpolated(observed: float, rising: Floats, truth: Floats, after: int) -> float:
    """Squares of norms add, so the quantile is interpolated on the scale of squares."""
    step = slice(after - 1, after + 1)
    return float(np.sqrt(np.interp(observed**2, rising[step] ** 2, truth[step] ** 2)))


#: Folds that the rows of each cell (or whole clusters) are divided into.
FOLDS = 5

#: If the noise changes by more than this factor from one multiple to the next, the step between them is halved, so
#: many times at most.
STEADY, HALVINGS = 1.5, 3

#: Part of the risk at which zero is rejected along a shape that was chosen because it shows more than the usual one.
CHOSEN_SHAPE = 1 / 3

#: A lower limit below this is rounding: the observed value and a quantile of the simulated ones can be the same number.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class DualBound:
    r"""Lower limit by duality: :math:`E[f(S)(S - Y)] \le E|S - h(S)|` for every function with :math:`|f| \le 1`.

    f is the fitted gap of the other folds divided by its standard error, cut to [-1, 1], and ψ the sum over folds of
    its mean product with the gaps held out. The distribution of ψ is simulated, cross-fitting included, at three
    multiples of the shape: f taken as fixed would understate it. The limit is the mean of ψ at the multiple at which
    the observed ψ is a high quantile.

    A shape that was chosen because it shows a larger gap than the usual one has been selected by what it is then used
    to test: it must reject zero at a third of the risk, or zero would be excluded too often.
    """

    part: SmoothPart
    seed: int

    def limit(self) -> float:
        """The lower limit, 0 where it is positive by rounding alone."""
        found = self._limit()
        return found if found > ROUNDING else 0.0

    def _limit(self) -> float:
        """The limit from simulations at the first, the middle and the last multiple of the shape."""
        part, observed, multiples = self.part, self.observed(), self.part.along_shape.multiples
        if part.size == 0:
            return 0.0
        tried = multiples[[0, len(multiples) // 2, -1]]
        if tried[0] == 0 and observed <= self._highest_of_zero():
            return 0.0
        means, tops = self._trials(tried)
        after = _step(tops, observed)
        for _ in range(HALVINGS):
            if _steady(means, tops, after):
                break
            between = (tried[after - 1 : after] + tried[after]) / 2  # the noise depends on the multiple: halve the step
            new = (between, *self._trials(between))
            tried, means, tops = (np.insert(*pair) for pair in zip((tried, means, tops), [after] * 3, new, strict=True))
            after = _step(tops, observed)
        if not _steady(means, tops, after):  # a jump to the observed value
            return float(means[after - 1])
        rise = tops[after] - tops[after - 1]
        along = (observed - tops[after - 1]) / rise if rise > 0 else 0.0
        return float(means[after - 1] + along * (means[after] - means[after - 1]))

    def _highest_of_zero(self) -> float:
        """What ψ must exceed for zero error to be rejected."""
        risk = self.part.risk * (CHOSEN_SHAPE if self.part.shape_is_chosen else 1.0)
        return float(np.quantile(self._of_zero, 1 - risk, method="weibull"))

    @cached_property
    def _of_zero(self) -> Floats:
        """ψ of calibrated samples."""
        predicted = self.part.cells.predicted
        return self.statistic(self.simulated(np.zeros_like(predicted), predicted))

    def _trials(self, multiples: Floats) -> tuple[Floats, Floats]:
        """Mean and high quantile of ψ for multiples of the shape."""
        part, means, spreads = self.part, [], []
        for multiple in multiples:
            probability = np.clip(part.cells.predicted - multiple * part.shape.gap, 0.0, 1.0)
            gap = part.cells.predicted - probability
            drawn = self.statistic(self.simulated(gap, part.noisy(probability))) if multiple > 0 else self._of_zero
            means.append(float(drawn.mean()) if multiple > 0 else 0.0)
            spreads.append(drawn - means[-1] + np.abs(gap) @ part.noise.shares)
        tops = np.quantile(spreads, 1 - part.risk, axis=1, method="weibull")
        return np.array(means), np.asarray(means + tops)

    def statistic(self, sums: Floats) -> Floats:
        """ψ from the sums of gaps per fold, cell and sample; what is held out counts as no gap in the fit."""
        total, rows, psi = sums.sum(axis=0), self._rows, np.zeros(sums.shape[2])
        for own in sums:  # fold by fold, in little memory, takes half the time
            direction = self.part.shape.fit((total - own) * (1 / rows)[:, None])
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
        return np.sqrt(np.maximum(self.part.shape.fit.variance(variance / cells.count), 1e-300))


def _step(tops: Floats, observed: float) -> int:
    """The end of the step in which rising quantiles reach the observed value; the last one if none does."""
    return int(np.clip(np.searchsorted(np.maximum.accumulate(tops), observed - 1e-12), 1, len(tops) - 1))


def _steady(means: Floats, tops: Floats, after: int) -> bool:
    """Whether the noise hardly changes in a step, so that quantiles lie on a straight line."""
    before, behind = tops[after - 1] - means[after - 1], tops[after] - means[after]
    return bool(max(before, behind) <= STEADY * min(before, behind))


#: Misfit is measured in units of sigma to this power in L1, which minimises the limit of a calibrated model, and not at
#: all weighted in L2.
POWER = 4 / 3

#: What jumps and slopes lose inside cells in L2, as a part of the squared differences between their neighbours; less in
#: smaller norms, and nothing in L1. A jump at a random place of a cell needs 0.10.
WITHIN = 0.15

#: Standard deviations of the product of misfit and noise.
CROSS = 2.4

#: Directions in which the uncertainties of the fitted part and of the misfit are combined, and steps of bisection.
DIRECTIONS, BISECTIONS = 13, 45


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
        level = sigma ** (POWER * (2 / norm - 1))
        likely, largest = self.squared_misfit(cells.share / level, within=WITHIN * (norm - 1))
        angle = np.linspace(0, np.pi / 2, DIRECTIONS)
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
    for _ in range(BISECTIONS):
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
