"""Paired errors of two predicted spreads or of two positive-unlabeled models, from their fitted gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant.data import validation
from calibrant.data.forecasts import Forecast
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Predictions
from calibrant.data.validation import fail
from calibrant.inference.comparison_binary import Difference
from calibrant.inference.inversion.spread import SpreadError
from calibrant.inference.inversion.spread_fit import SpreadCells, SpreadFit
from calibrant.inference.sample import sums_by
from calibrant.numerics.arrays import Floats
from calibrant.numerics.inversion import ALPHA_SHARE, orthonormal_hats
from calibrant.numerics.random_draws import generator, normal_draws
from calibrant.pu.inversion import PooledScores, fine_cells, knots_of, row_influence, shapes
from calibrant.results.target import Target

#: Draws that decide on the resolution of the fit of spreads. Test: tests/inference/inversion/test_binary_constants.py.
SPREAD_DRAWS = 99


@dataclass(frozen=True, eq=False)
class FittedGap:
    """The gap of one model: share @ power(half @ coordinates) is the power of its error.

    `half` (cells, coordinates) are orthonormal under `share`; `influence` (clusters, coordinates) is what each cluster
    adds to the coordinates beyond its expectation, `sampling` to the mean power because scores are sampled; all gaps
    may be too low by `missing`, as rare large errors are not in the sample (0 for outcomes).
    """

    half: Floats
    share: Floats
    coordinates: Floats
    influence: Floats
    sampling: Floats
    smooth: Floats
    straight: Floats
    power: Callable[[Floats], Floats]
    missing: float = 0.0

    @classmethod
    def of(cls, data: Predictions, target: Target) -> FittedGap:
        """That of positive-unlabeled predictions, or of predicted spreads."""
        if isinstance(data, PositiveUnlabeled):
            return _of_unlabeled(data, float(target.norm))
        if not isinstance(data, Forecast):
            fail(f"PairedFits compares positive-unlabeled predictions and predicted spreads, not {data!r}.", TypeError)
        return _of_spread(data, target)

    @property
    def noise(self) -> float:
        """What noise adds to the squared length of the coordinates."""
        return float((self.influence**2).sum())

    def raised(self, part: float) -> Floats:
        """The coordinates if this part of what may be missing is."""
        return self.coordinates + part * self.missing * (self.share @ self.half)

    def shapes(self) -> list[Floats]:
        """Coordinates of the smoothed and the straight gap, scaled to the size of the fitted one."""
        size = np.sqrt((self.coordinates**2).sum())
        found = [(self.share * gap) @ self.half for gap in (self.smooth, self.straight)]
        lengths = [max(float(np.sqrt((one**2).sum())), 1e-150) for one in found]
        return [one * (size / length) for one, length in zip(found, lengths, strict=True)]

    def shrunken(self, coordinates: Floats) -> Floats:
        """Shrunk by what noise adds to their squared length, row by row."""
        square = (coordinates**2).sum(axis=1, keepdims=True)
        return coordinates * np.sqrt(np.maximum(0.0, 1 - self.noise / np.maximum(square, 1e-300)))

    def errors(self, coordinates: Floats, root: float, sampling: Floats | float = 0.0) -> Floats:
        """The norm (or its power) of the shrunken gap, for each row of coordinates."""
        powers = self.power(self.shrunken(coordinates) @ self.half.T) @ self.share + sampling
        return np.asarray(np.maximum(powers, 0.0) ** root)

    def trials(self, shape: Floats, noise: Floats, sampling: Floats, root: float) -> _Trials:
        """Multiples of a gap, from zero or far below the fitted size to far above it."""
        reach = REACH * np.sqrt(self.noise / max(float((shape**2).sum()), 1e-300))
        multiples = np.linspace(max(0.0, 1 - reach), 1 + reach, STEPS)
        powers = self.power((multiples[:, None] * shape) @ self.half.T) @ self.share
        whole = max(float(self.power(self.half @ shape) @ self.share), 1e-300)
        drawn = [
            self.errors(m * shape + noise, root, sampling * (power / whole))
            for m, power in zip(multiples, powers, strict=True)
        ]
        return _Trials(powers**root, np.array(drawn))


def _of_spread(data: Forecast, target: Target) -> FittedGap:
    cells = SpreadCells.of(data, needed_by="PairedFits", keep_rows=True)
    fit = SpreadFit.of(cells, SPREAD_DRAWS, generator(0, "fit of spreads"))
    share, second, cluster, cell = cells.row_share, cells.row_second, cells.cluster, cells.cell
    if share is None or second is None or cluster is None or cell is None:  # pragma: no cover - rows were kept
        raise RuntimeError(repr(cells))
    pool = fit.pool[cell]
    residual = share * (second * np.exp(-fit.gap[pool]) - 1)
    power, coordinates = SpreadError.of(target, fit.variance).power, (fit.share * fit.gap) @ fit.half
    influence = _freed(sums_by(cluster, residual[:, None] * fit.half[pool]))
    sampling = np.bincount(cluster, share * _apart(power(fit.gap), fit.share)[pool]).astype(np.float64)
    found = fit.half, fit.share, coordinates, influence, sampling
    return FittedGap(*found, fit.shape, fit.straight, power, fit.missing)


def _of_unlabeled(data: PositiveUnlabeled, norm: float) -> FittedGap:
    table = fine_cells(data, needed_by="PairedFits")
    scores = PooledScores.of(table)
    gaps = scores.gaps
    half = orthonormal_hats(scores.position, gaps.share, knots_of(scores))
    rows, pool = row_influence(data, scores, table, half)
    smooth, straight = (one @ (one.T @ gaps.gap) for one in shapes(scores))
    coordinates = half.T @ gaps.gap

    def power(gap: Floats) -> Floats:
        return np.abs(gap) ** norm

    weight = np.ones(len(data)) if data.weight is None else data.weight
    weight = np.where(np.arange(len(data)) < len(data) - len(data.unlabeled), 0.0, weight)
    sampling = weight / weight.sum() * _apart(power(half @ coordinates), gaps.share)[pool]
    cluster = np.arange(len(data)) if data.group is None else np.unique(data.group, return_inverse=True)[1]
    influence, sampled = _freed(sums_by(cluster, rows)), np.bincount(cluster, sampling).astype(np.float64)
    return FittedGap(half, gaps.share, coordinates, influence, sampled, smooth, straight, power)


def _apart(power: Floats, share: Floats) -> Floats:
    return power - float(share @ power)


def _freed(influence: Floats) -> Floats:
    """Raised for the coordinates that were fitted."""
    clusters, fitted = influence.shape
    return influence * np.sqrt(clusters / max(clusters - fitted, 1))


#: Multiples of each fitted gap that are tried, and how many standard deviations of its noise they reach.
#: Test: tests/inference/inversion/test_binary_constants.py.
STEPS, REACH = 25, 3.0

#: Parts of the mass that may be missing from the mean squares of predicted spreads that are tried.
#: Test: tests/inference/inversion/test_binary_constants.py.
MISSING = (0.0, 0.5, 1.0)

#: Errors of a model alone are tried as long as no more than this part of their draws lies beyond what was seen.
#: Test: tests/inference/inversion/test_binary_constants.py.
PLAUSIBLE = 0.005


@dataclass(frozen=True)
class PairedFits(validation.Simulated):
    r"""The difference of two true errors of predicted spreads, or of two models on positive-unlabeled data.

    The gap of each model is fitted as by `SpreadInversion` or by `calibrant.pu.PUInversion`. Its coordinates c are
    shrunk by :math:`\kappa = \sqrt{\max(0, 1 - \operatorname{tr} C / |c|^2)}` to the size that noise of covariance C
    leaves, and the errors are norms of what remains; the statistic is their difference v. Then multiples of smoothed
    and of straight gaps are used as the truth of both models, coordinates are drawn about them from the normal
    distribution with the joint covariance of both models over rows (clusters, where there is a group), and shrunk as
    before. With mean m and standard deviation s of the drawn differences, the interval is

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
    A bootstrap does not hold its level, see `PairedGaps`. Size and coverage are in docs/evidence/coverage.md.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> mean, std = rng.normal(size=1000), rng.uniform(0.5, 1.5, 1000)
    >>> y = mean + std * rng.normal(size=1000)
    >>> narrow, right = cal.Gaussian(y, mean, 0.6 * std), cal.Gaussian(y, mean, std)
    >>> cal.compare(cal.ence, narrow, right, method=cal.inference.PairedFits()).p_value < 0.05
    True
    """

    least_draws = 2

    draws: int = 999
    seed: int = 0

    def difference(self, a: Predictions, b: Predictions, target: Target, *, level: float) -> Difference:
        """The error of `a` less that of `b`, or of their squares, as the target says."""
        squared = target.norm == "squared"
        target = replace(target, norm=2.0) if squared else target
        norm = 1.0 if target.norm is None else float(target.norm)
        pair = [FittedGap.of(data, target) for data in (a, b)]
        rng = generator(self.seed, "paired fits")
        influence = np.concatenate([one.influence for one in pair], axis=1)
        noise = normal_draws(influence.T @ influence, self.draws, rng)
        parts = np.split(noise, [pair[0].influence.shape[1]], axis=1)
        scores = np.stack([one.sampling for one in pair])
        sampling = normal_draws(scores @ scores.T, self.draws, rng).T
        root = 1.0 if squared else 1 / norm
        trials = [
            [one.trials(shape, own, sampled, root) for shape in one.shapes()]
            for one, own, sampled in zip(pair, parts, sampling, strict=True)
        ]
        z = float(ndtri(1 - ALPHA_SHARE * (1 - level) / 2))
        values, lows, highs, distances = [], [], [], []
        for part in MISSING if any(one.missing for one in pair) else (0.0,):
            seen = [float(one.errors(one.raised(part)[None], root)[0]) for one in pair]
            tried = [[some.plausible(error) for some in own] for own, error in zip(trials, seen, strict=True)]
            values.append(seen[0] - seen[1])
            for of_a, of_b in product(*tried):
                worlds = _Worlds.of(of_a, of_b)
                low, high = worlds.interval(values[-1], z)
                lows.append(low)
                highs.append(high)
                distances.append(worlds.z_of_no_difference(values[-1]))
        if min(values) < 0 < max(values):
            distances.append(0.0)
        p_value = min(1.0, float(2 * ndtr(-min(distances))) / ALPHA_SHARE)
        return Difference(values[0], min(lows), max(highs), p_value)


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
