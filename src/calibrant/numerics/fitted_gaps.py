"""Confidence limits of the norm of a fitted gap: hypothetical gaps along several shapes, and their simulated norms.

Multiples of a smoother gap are taken for the truth, and for the upper end also shapes that could hide a larger error.
docs/methods/intervals.md derives each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from calibrant.numerics.arrays import Floats
from calibrant.numerics.cells import CellNoise, PooledCells, simulated_gaps
from calibrant.numerics.inversion import EQUAL, LEAST_REACH, HatFit, Path, knots_for

#: Number of multiples of the fitted gap that are tested, from zero to well beyond what the data allow; and a smaller
#: number if zero error is clearly rejected, so that only multiples near one matter; and sideways.
#: Test: tests/inference/inversion/test_binary_constants.py.
STEPS, NEAR_STEPS, SIDEWAYS_STEPS = 7, 5, 12

#: Number of multiples between two of these where the quantile jumps.
#: Test: tests/inference/inversion/test_binary_constants.py.
FINER_STEPS = 6

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

    `noise_size` is the root of the squared norm that noise adds to the fitted gap. Whether the error is far from zero,
    and whether it may be of the same size everywhere, is decided by `fixed`, noise that is the same for every seed:
    else an end would jump with the seed. The lower limit is refined by `ample` noise, of more samples.
    """

    cells: PooledCells
    noise: CellNoise
    fixed: CellNoise
    ample: CellNoise
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

    def steps(self, direction: Floats, multiples: Floats, noise: CellNoise | None = None) -> Steps:
        """The distribution of the statistic for multiples of a true gap; probabilities are clipped to [0, 1]."""
        share, noise = self.cells.share, self.noise if noise is None else noise
        probability = np.clip(self.cells.predicted - multiples[:, None] * direction, 0.0, 1.0)
        gaps, noisy = self.cells.predicted - probability, self.noisy(probability)
        noisy[multiples == 0] = probability[multiples == 0]
        some = (np.abs(self.fit(drawn)) for drawn in simulated_gaps(noise, gaps, noisy))
        powers = np.concatenate([[share @ _power(drawn, q) for q in self.norms] for drawn in some], axis=1)
        sizes = [np.abs(gaps) ** q for q in self.norms]
        truth = np.stack([size @ share for size in sizes])
        simulated = powers.reshape(len(self.norms), len(gaps), -1) + np.matmul(sizes, noise.shares)
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
        """What lies at most between the last quantile that draws tell and the one asked for (see `inversion.Path`)."""
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
        multiples = np.linspace(1 - self._reach, self._middle + self._reach, NEAR_STEPS)
        near = self.steps(self.shape, multiples, self.fixed)
        enclosed = all(path.high[0] < seen < path.low[-1] for path, seen in zip(near.paths, self.observed, strict=True))
        if not enclosed or self.fixed is self.noise:
            return near if enclosed else None
        return self.steps(self.shape, multiples)

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
        pairs = zip(along.paths, self.observed * (1 + EQUAL), strict=True)
        if any(path.low.max() <= seen or not path.truth.any() for path, seen in pairs):
            found += [self._one_direction(sign) for sign in (-1, 1)]
        return found

    @property
    def _fine(self) -> bool:
        """Whether more than the usual number of knots were needed, and so many that little misfit is left."""
        return self.fit.knots >= FINE * len(self.cells.share) and self.fit.knots > knots_for(self.cells.effective_n)

    @cached_property
    def _even(self) -> Steps:
        """A gap of the same size everywhere: noise adds less to its L1 norm."""
        return self.steps(np.sign(self.shape) * self.size, self.along_shape.multiples[::2])

    def _tries_even(self, norm: float) -> bool:
        """Whether such a gap is tried: where the fit is fine and the data allow it. Of a coarse fit, the misfit allows.

        Where nothing is smoothed, unless norms below 2 show that it is not: no simulated sample has so low a ratio.
        """
        if self.size == 0:
            return False
        if self.fit.identity and (norm >= 2 or self.farther > 0):
            return True
        rank = self._rank_of_evenness if self._fine or self.fit.identity else 0.0
        return rank > 0 if self.fit.identity else self._fine and (self.farther > 0 or rank >= self.risk)

    @cached_property
    def _rank_of_evenness(self) -> float:
        """The share of simulated samples of a gap of the same size everywhere with a lower ratio of L1 to L2 norm."""
        share = self.cells.share
        even = np.sign(self.shape) * np.sqrt(max(float(share @ self.fitted**2) - self.noise_size**2, 0.0))
        probability = np.clip(self.cells.predicted - even, 0.0, 1.0)
        noise = self.fixed.outcomes(self.noisy(probability))
        drawn = self.fit((self.cells.predicted - probability)[:, None] + noise)
        seen = float(share @ np.abs(self.fitted)) / max(_length(self.cells, self.fitted), 1e-300)
        return float(np.mean(share @ np.abs(drawn) <= seen * (1 + EQUAL) * np.sqrt(share @ drawn**2)))

    def lower(self, k: int) -> float:
        """The lower limit in norm k: the smallest multiple of the shape that is not rejected."""
        seen, steps = float(self.observed[k]), self.along_shape
        after = _first_reaching(steps.paths[k], seen)
        if not self.far_from_zero:  # near zero the noise grows with the gap: smaller steps
            steps = self._between(steps, after)
            after = _first_reaching(steps.paths[k], seen)
        while True:  # ample noise may put it into another step
            some = self.steps(self.shape, steps.multiples[after - 1 : after + 1], self.ample)
            before, behind = some.paths[k].high >= seen * (1 - EQUAL)
            if not behind and after + 1 < len(steps.multiples):
                after += 1
            elif before and after > 1:
                after -= 1
            else:
                return some.paths[k].lower_end(seen, partial(self._finer, some, k))

    def middle(self, k: int) -> float:
        """The error in norm k of which the observed norm is the median."""
        return self.along_shape.paths[k].middle_end(float(self.observed[k]))

    def upper(self, k: int) -> float:
        """The upper limit in norm k: the largest over all shapes."""
        seen = float(self.observed[k])
        tried = [self.along_shape, *self.beside, *([self._even] if self._tries_even(float(self.norms[k])) else [])]
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


def _first_reaching(path: Path, seen: float) -> int:
    """The first hypothesis under which the statistic may be as large as seen; the second to the last of them."""
    after = int(np.searchsorted(np.maximum.accumulate(path.high), seen * (1 - EQUAL)))
    return min(max(after, 1), len(path.high) - 1)


def _length(cells: PooledCells, gap: Floats) -> float:
    return float(np.sqrt(cells.share @ gap**2))


def _power(values: Floats, norm: float) -> Floats:
    if norm == 1:
        return values
    return values * values if norm == 2 else values**norm
