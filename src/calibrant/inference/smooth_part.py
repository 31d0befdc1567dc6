"""The part of the error that the fitted gap shows: a test of the size of the gap, inverted along several shapes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant.inference.cell_noise import CellNoise
from calibrant.inference.hat_fit import SHAPE_KNOTS, HatFit
from calibrant.inference.pooled_cells import PooledCells
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Side

#: Number of multiples of the fitted gap that are tested, from zero to well beyond what the data allow; and a smaller
#: number if zero error is clearly rejected, so that only multiples near one matter; and sideways.
STEPS, NEAR_STEPS, SIDEWAYS_STEPS = 9, 5, 12

#: The smoother shape is used if it keeps this part of the squared norm that is not noise.
KEPT = 0.7


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
    """Per norm (row) and hypothesis (column): the true error, and low, middle and high quantiles of the statistic."""

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

    def path(self, gaps: Floats) -> Path:
        """The distribution of the statistic for each row of true gaps; probabilities are clipped to [0, 1]."""
        share, powers, truth = self.cells.share, [], []
        for line in gaps:
            probability = np.clip(self.cells.predicted - line, 0.0, 1.0)
            gap = self.cells.predicted - probability
            noise = self.noise.outcomes(self.noisy(probability) if line.any() else probability)
            drawn, size = np.abs(self.fit(gap[:, None] + noise)), np.abs(gap)
            powers.append([share @ _power(drawn, q) + size**q @ self.noise.shares for q in self.norms])
            truth.append([float(share @ size**q) for q in self.norms])
        levels = [self.risk, 0.5, 1 - self.risk]
        quantiles = np.quantile(np.maximum(powers, 0.0), levels, axis=2, method="weibull").transpose(0, 2, 1)
        roots = 1 / self.norms[:, None]
        return Path(np.array(truth).T ** roots, *quantiles**roots)

    def noisy(self, probability: Floats) -> Floats:
        """The hypothetical probability, or the fitted one where that has the larger variance."""
        fitted = np.clip(self.cells.predicted - self.shape.gap, 0.0, 1.0)
        return np.where(fitted * (1 - fitted) > probability * (1 - probability), fitted, probability)

    @cached_property
    def _near(self) -> tuple[Floats, Path] | None:
        """Multiples near one, if the gap is many times its noise and they enclose what was observed."""
        if self.size == 0 or self._reach >= 0.5:
            return None
        multiples = np.linspace(1 - self._reach, self._middle + self._reach, NEAR_STEPS)
        path = self.path(self.shape.gap * multiples[:, None])
        enclosed = np.all(path.high[:, 0] < self.observed) and np.all(path.low[:, -1] > self.observed)
        return (multiples, path) if enclosed else None

    @property
    def far_from_zero(self) -> bool:
        """Whether even half of the fitted gap is rejected as too small."""
        return self._near is not None

    @cached_property
    def multiples(self) -> Floats:
        """The multiples of the shape that are tested."""
        if self.size == 0:
            return np.zeros(2)
        return self._near[0] if self._near else np.linspace(0, max(self._middle + self._reach, 1.5), STEPS)

    @cached_property
    def along_shape(self) -> Path:
        """Multiples of the shape."""
        return self._near[1] if self._near else self.path(self.shape.gap * self.multiples[:, None])

    @cached_property
    def beside(self) -> list[Path]:
        """Other shapes that could hide a larger error, for the upper end."""
        cells, shape, found = self.cells, self.shape.gap, []
        if self.size > 0 and not self.far_from_zero:
            # Noise inflates the norm of a straight gap less than that of the fitted one, which oscillates by chance.
            straight = np.where(cells.atom, shape, HatFit.of(cells, 2)(cells.gap))
            scale = self.size / max(_length(cells, straight), 0.1 * self.size)
            found.append(self.path(straight * scale * self.multiples[:, None]))
        if self.size > 0 and self.fit.identity:  # an even gap shows less of its noise in its L1 norm
            found.append(self.path(np.sign(shape) * self.size * self.multiples[:, None]))
        if np.any(self.along_shape.low.max(axis=1) <= self.observed) or not self.along_shape.truth.any():
            found += [self._one_direction(sign) for sign in (-1, 1)]
        return found

    def lower(self, k: int) -> float:
        """The lower limit in norm k: the smallest multiple of the shape that is not rejected."""
        path = self.along_shape
        return _crossing(self.observed[k], path.high[k], path.truth[k], side="left")

    def middle(self, k: int) -> float:
        """The error in norm k of which the observed norm is the median."""
        path = self.along_shape
        return _crossing(self.observed[k], path.middle[k], path.truth[k], side="right")

    def upper(self, k: int) -> float:
        """The upper limit in norm k: the largest over all shapes. A norm smaller than typical proves nothing."""
        return max(
            _crossing(max(self.observed[k], path.typical[k]), path.low[k], path.truth[k], side="right")
            for path in [self.along_shape, *self.beside]
        )

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
        return self.path(sign * spread / _length(cells, spread) * steps[:, None])


def _length(cells: PooledCells, gap: Floats) -> float:
    return float(np.sqrt(cells.share @ gap**2))


def _power(values: Floats, norm: float) -> Floats:
    if norm == 1:
        return values
    return values * values if norm == 2 else values**norm


def _crossing(observed: float, quantile: Floats, truth: Floats, *, side: str) -> float:
    """The error at which a rising quantile reaches the observed value.

    Squares of norms add, so the quantile is interpolated on the scale of squares.
    """
    rising = np.maximum.accumulate(quantile)
    after = int(np.searchsorted(rising, observed, side=side))  # type: ignore[call-overload]
    if after in (0, len(rising)):
        return float(truth[min(after, len(truth) - 1)])
    step = slice(after - 1, after + 1)
    return float(np.sqrt(np.interp(observed**2, rising[step] ** 2, truth[step] ** 2)))
