"""Which of two models has the larger calibration error? From the fitted gaps of both, simulated jointly."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Binary
from calibrant.inference.gap_fit import GapFit, influence
from calibrant.inference.inversion import ALPHA_SHARE
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.numerics.draws import normal_draws

#: Multiples of each fitted gap that are tried, and how many standard deviations of its noise they reach.
STEPS, REACH = 25, 3.0

#: Errors of a model alone are tried as long as no more than this part of their draws lies beyond what was seen.
PLAUSIBLE = 0.005


@dataclass(frozen=True)
class PairedGaps:
    r"""The difference of two true calibration errors, with the noise that both models share.

    The gap of each model is fitted as by `Inversion`. Its coordinates c are shrunk by
    :math:`\kappa = \sqrt{\max(0, 1 - \operatorname{tr} C / |c|^2)}` to the size that noise of covariance C leaves, and
    the errors are norms of what remains; the statistic is their difference v. Then multiples of smoothed and of
    straight gaps are taken for the truth of both models, coordinates are drawn about them from the normal distribution
    with the joint covariance of both models over rows (clusters, where there is a group), and shrunk as before. With
    mean m and standard deviation s of the drawn differences, the interval is

    .. math:: \{\,\theta_a - \theta_b : \; |v - m(\theta_a, \theta_b)| \le z\, s(\theta_a, \theta_b)\,\}

    over all pairs of errors that are plausible for each model alone, and the p-value is the largest at which the
    interval contains 0. Three tenths of the risk are reserved for the approximations.

    Parameters
    ----------
    draws : int
        Number of simulated samples.
    seed : int

    Notes
    -----
    A bootstrap of a debiased error varies about a value that noise made larger: it calls equal models different in 0.17
    of samples at the 5 % level. Size and coverage of this method are in docs/inference.md.
    """

    draws: int = 999
    seed: int = 0

    def __post_init__(self) -> None:
        validation.whole("draws", self.draws, minimum=2)

    def difference(self, a: Binary, b: Binary, *, norm: float, level: float, squared: bool = False) -> Difference:
        """The error of `a` less that of `b` in the norm, or of their powers."""
        from scipy.special import ndtr, ndtri

        pair = [_Gap.of(data) for data in (a, b)]
        rng = np.random.default_rng(self.seed)
        noise = _normal(np.concatenate([one.influence for one in pair], axis=1), self.draws, rng)
        parts = np.split(noise, [pair[0].influence.shape[1]], axis=1)
        sampling = _normal(np.stack([one.spread(norm) for one in pair], axis=1), self.draws, rng).T
        root = 1.0 if squared else 1 / norm
        seen = [float(one.errors(one.coordinates[None], norm, root)[0]) for one in pair]
        tried = [
            [one.trials(shape, own, scores, norm, root).plausible(error) for shape in one.shapes()]
            for one, own, scores, error in zip(pair, parts, sampling, seen, strict=True)
        ]
        worlds = [_Worlds.of(of_a, of_b) for of_a, of_b in product(*tried)]
        value, z = seen[0] - seen[1], float(ndtri(1 - ALPHA_SHARE * (1 - level) / 2))
        lows, highs = zip(*(some.interval(value, z) for some in worlds), strict=True)
        distance = min(some.z_of_no_difference(value) for some in worlds)
        return Difference(value, min(lows), max(highs), min(1.0, float(2 * ndtr(-distance)) / ALPHA_SHARE))


@dataclass(frozen=True)
class Difference:
    """A difference, the ends of its interval, and the p-value against no difference."""

    value: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, eq=False)
class _Trials:
    """Hypothetical true errors of one model, rising, and a row of simulated estimates for each."""

    truth: Floats
    drawn: Floats

    def plausible(self, seen: float) -> _Trials:
        """Those under which the observed error is not extreme; the nearest one where it always is."""
        beyond = np.minimum((self.drawn <= seen).mean(axis=1), (self.drawn >= seen).mean(axis=1))
        kept = beyond > min(PLAUSIBLE, float(beyond.max()) / 2)
        kept = kept if kept.any() else beyond == beyond.max()
        return _Trials(self.truth[kept], self.drawn[kept])


@dataclass(frozen=True, eq=False)
class _Worlds:
    """For each pair of true errors their difference, and mean and standard deviation of its estimate."""

    truth: Floats
    mean: Floats
    spread: Floats

    @classmethod
    def of(cls, a: _Trials, b: _Trials) -> _Worlds:
        first, second = (trials.drawn - trials.drawn.mean(axis=1, keepdims=True) for trials in (a, b))
        size = first.shape[1] - 1
        squares = ((first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * first @ second.T) / size
        mean = a.drawn.mean(axis=1)[:, None] - b.drawn.mean(axis=1)
        return cls(a.truth[:, None] - b.truth, mean, np.sqrt(np.maximum(squares, 1e-300)))

    def interval(self, value: float, z: float) -> tuple[float, float]:
        """The smallest and largest difference that is not rejected, for each error of model b."""
        lows, highs = [], []
        for truth, mean, spread in zip(self.truth.T, self.mean.T, self.spread.T, strict=True):
            top, bottom = (np.maximum.accumulate(mean + side * z * spread) for side in (1, -1))
            if top[-1] >= value:
                lows.append(np.interp(value, top, truth))
            if bottom[0] <= value:
                highs.append(np.interp(value, bottom, truth))
        return float(min(lows, default=value)), float(max(highs, default=value))

    def z_of_no_difference(self, value: float) -> float:
        """The smallest |z| of the observed difference under hypotheses without any."""
        z, sign = np.sign(value) * (value - self.mean) / self.spread, np.sign(value)
        lines = [
            np.interp(0.0, truth, line)
            for truth, line in zip(self.truth.T, z.T, strict=True)
            if truth[0] <= 0 <= truth[-1]
        ]
        beyond = z[sign * self.truth <= 0]
        if not lines and not beyond.size:  # no difference is implausible: allow for the bias of the nearest
            beyond = (z + sign * self.truth / self.spread).ravel()
        return max(0.0, float(min([*lines, *beyond])))


@dataclass(frozen=True, eq=False)
class _Gap:
    """A fitted gap in its orthonormal coordinates, and the noise that each cluster adds to them."""

    sample: Sample
    fit: GapFit
    coordinates: Floats
    influence: Floats
    noise: float

    @classmethod
    def of(cls, data: Binary) -> _Gap:
        sample = Sample.of_rows(data)
        cells = sample.pooled()
        fit = GapFit.of(cells)
        coordinates = (cells.share * (cells.predicted - cells.observed)) @ fit.half
        freedom = max(sample.clusters - len(coordinates), 1)
        noise = influence(fit, sample) * np.sqrt(sample.clusters / freedom)
        return cls(sample, fit, coordinates, noise, float((noise**2).sum()))

    def shrunken(self, coordinates: Floats) -> Floats:
        """Shrunk by what noise adds to their squared length, row by row."""
        square = (coordinates**2).sum(axis=1, keepdims=True)
        return coordinates * np.sqrt(np.maximum(0.0, 1 - self.noise / np.maximum(square, 1e-300)))

    def errors(self, coordinates: Floats, norm: float, root: float, sampling: Floats | float = 0.0) -> Floats:
        """The norm (or its power) of the shrunken gap, for each row of coordinates."""
        gap = np.abs(self.shrunken(coordinates) @ self.fit.half.T)
        powers = (gap**norm) @ self.fit.cells.share + sampling
        return np.asarray(np.maximum(powers, 0.0) ** root)

    def shapes(self) -> list[Floats]:
        """Coordinates of the smoothed and the straight gap, scaled to the size of the fitted one."""
        share, size = self.fit.cells.share, np.sqrt((self.coordinates**2).sum())
        found = [(share * gap) @ self.fit.half for gap in (self.fit.shape, self.fit.straight)]
        lengths = [max(float(np.sqrt((one**2).sum())), 1e-150) for one in found]
        return [one * (size / length) for one, length in zip(found, lengths, strict=True)]

    def trials(self, shape: Floats, noise: Floats, sampling: Floats, norm: float, root: float) -> _Trials:
        """Multiples of a gap, from zero or far below the fitted size to far above it."""
        reach = REACH * np.sqrt(self.noise / max(float((shape**2).sum()), 1e-300))
        multiples = np.linspace(max(0.0, 1 - reach), 1 + reach, STEPS)
        whole = float(self.fit.cells.share @ np.abs(self.fit.half @ shape) ** norm) ** (1 / norm)
        drawn = [self.errors(m * shape + noise, norm, root, m**norm * sampling) for m in multiples]
        return _Trials((multiples * whole) ** (root * norm), np.array(drawn))

    def spread(self, norm: float) -> Floats:
        """What each cluster adds to the mean power by the sampling of its scores."""
        power = np.abs(self.fit.half @ self.coordinates) ** norm
        apart = power - float(self.fit.cells.share @ power)
        return self.sample.by_cluster((self.sample.row_share * apart[self.sample.pooled_cell])[:, None])[:, 0]


def _normal(influence: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Draws from the normal distribution with the covariance of a sum over clusters."""
    return normal_draws(influence.T @ influence, size, rng)
