"""The part of the error that the fitted gap shows: a test of the size of the gap, inverted along several shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from calibrant.inference.binary_error.cell_noise import CellNoise
from calibrant.inference.binary_error.hat_fit import SHAPE_KNOTS, HatFit
from calibrant.inference.binary_error.pooled_cells import PooledCells, knots_for
from calibrant.numerics.arrays import Floats
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
        share, powers, truth = self.cells.share, [], []
        for multiple in multiples:
            probability = np.clip(self.cells.predicted - multiple * direction, 0.0, 1.0)
            gap = self.cells.predicted - probability
            noise = self.noise.outcomes(self.noisy(probability) if multiple else probability)
            drawn, size = np.abs(self.fit(gap[:, None] + noise)), np.abs(gap)
            powers.append([share @ _power(drawn, q) + size**q @ self.noise.shares for q in self.norms])
            truth.append([float(share @ size**q) for q in self.norms])
        levels = [self.risk, 0.5, 1 - self.risk]
        quantiles = np.quantile(np.maximum(powers, 0.0), levels, axis=2, method="weibull").transpose(0, 2, 1)
        roots = 1 / self.norms[:, None]
        return Path(direction, multiples, np.array(truth).T ** roots, *quantiles**roots)

    def noisy(self, probability: Floats) -> Floats:
        """The hypothetical probability, or the fitted one where that has the larger variance."""
        fitted = np.clip(self.cells.predicted - self.shape.gap, 0.0, 1.0)
        return np.where(fitted * (1 - fitted) > probability * (1 - probability), fitted, probability)

    @cached_property
    def _near(self) -> Path | None:
        """Multiples near one, if the gap is many times its noise and they enclose what was observed."""
        if self.size == 0 or self._reach >= 0.5:
            return None
        multiples = np.linspace(1 - self._reach, self._middle + self._reach, NEAR_STEPS)
        path = self.path(self.shape.gap, multiples)
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
        """Four standard deviations of noise and score sampling, in multiples of the shape."""
        share, size = self.cells.share, np.abs(self.fitted)
        sampling = np.sqrt(share @ (size - share @ size) ** 2 / self.cells.effective_n)
        return float(4 * (self.shape.noise + sampling) / self.size)

    def _one_direction(self, sign: int) -> Path:
        """Gaps of one sign, proportional to the noise: for probabilities near 0 and 1, which bound the fitted gap."""
        cells, least = self.cells, 1 / self.cells.effective_n
        spread = np.sqrt(np.maximum(cells.predicted * (1 - cells.predicted), least))
        top = _length(cells, self.fitted) + 10 * max(self.shape.noise, np.sqrt(least))
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
