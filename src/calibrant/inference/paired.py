"""Which of two models has the larger calibration error? From the fitted gaps of both, drawn again together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from calibrant import validation
from calibrant.inference.gap_fit import GapFit
from calibrant.inference.row_cells import RowCells
from calibrant.kernels import Floats
from calibrant.predictions import Binary


@dataclass(frozen=True)
class PairedGaps:
    r"""The difference of two true calibration errors, with the noise that both models share.

    The gap of each model is fitted as by `Inversion`. Its coordinates c are shrunk by
    :math:`\kappa = \sqrt{\max(0, 1 - \operatorname{tr} C / |c|^2)}` to the size that noise of covariance C leaves, and
    the errors are norms of what remains. How far their difference may be off is seen in four worlds, in which the
    true gap of either model is the fitted or the shrunken one: coordinates are drawn about it from a normal law with
    the joint covariance of both models over rows (clusters, where there is a group), and shrunk as before. The
    interval reaches as far as in the worst of these worlds, bias and spread together, and so does the p-value.

    Parameters
    ----------
    n : int
        Number of draws.
    seed : int

    Notes
    -----
    A bootstrap of a debiased error varies about a value that noise made larger: equal models are told apart in 0.17 of
    samples at the 5 % level. Size and coverage of this method are in docs/inference.md.
    """

    n: int = 999
    seed: int = 0

    def __post_init__(self) -> None:
        validation.whole("n", self.n, least=2)

    def difference(self, a: Binary, b: Binary, *, norm: float, level: float, squared: bool = False) -> Difference:
        """The error of `a` less that of `b` in the norm, or of their powers."""
        pair = [_Gap.of(data) for data in (a, b)]
        rng = np.random.default_rng(self.seed)
        noise = _normal(np.concatenate([one.influence for one in pair], axis=1), self.n, rng)
        parts = np.split(noise, [pair[0].influence.shape[1]], axis=1)
        sampling = _normal(np.stack([one.spread(norm) for one in pair], axis=1), self.n, rng).T
        root = 1.0 if squared else 1 / norm
        value = [one.errors(one.coordinates[None], norm, root)[0] for one in pair]
        trials = [one.trials(own, drawn, norm, root) for one, own, drawn in zip(pair, parts, sampling, strict=True)]
        off = [of_a - of_b for of_a, of_b in product(*trials)]
        return _worst(float(value[0] - value[1]), off, level)


@dataclass(frozen=True)
class Difference:
    """A difference, the ends of its interval, and the p-value against none."""

    value: float
    low: float
    high: float
    p_value: float


def _worst(value: float, off: list[Floats], level: float) -> Difference:
    """From draws of how far the difference is off in each world. Bias counts only where it widens the interval."""
    from scipy.special import ndtr, ndtri

    bias = np.array([float(draws.mean()) for draws in off])
    spread = np.array([float(draws.std(ddof=1)) for draws in off])
    reach = float(ndtri((1 + level) / 2)) * spread
    low = float((value - np.maximum(bias, 0.0) - reach).min())
    high = float((value - np.minimum(bias, 0.0) + reach).max())
    beyond = abs(value) - np.maximum(np.sign(value) * bias, 0.0)
    z = float((beyond / np.maximum(spread, 1e-300)).min())
    return Difference(value, low, high, float(2 * ndtr(-max(z, 0.0))))


@dataclass(frozen=True, eq=False)
class _Gap:
    """A fitted gap in its orthonormal coordinates, and what each cluster adds to them by chance."""

    rows: RowCells
    fit: GapFit
    coordinates: Floats
    influence: Floats
    noise: float

    @classmethod
    def of(cls, data: Binary) -> _Gap:
        rows = RowCells.of(data)
        fit = GapFit.of(rows.cells)
        cells = rows.cells
        coordinates = (cells.share * (cells.predicted - cells.observed)) @ fit.half
        lost = rows.clusters / max(rows.clusters - len(coordinates), 1)
        influence = rows.influence(fit) * np.sqrt(lost)
        return cls(rows, fit, coordinates, influence, float((influence**2).sum()))

    def shrunken(self, coordinates: Floats) -> Floats:
        """Less what noise alone would make of their length, line by line."""
        square = (coordinates**2).sum(axis=1, keepdims=True)
        return coordinates * np.sqrt(np.maximum(0.0, 1 - self.noise / np.maximum(square, 1e-300)))

    def errors(self, coordinates: Floats, norm: float, root: float, sampling: Floats | float = 0.0) -> Floats:
        """The norm (or its power) of the shrunken gap, for each line of coordinates."""
        gap = np.abs(self.shrunken(coordinates) @ self.fit.half.T)
        powers = (gap**norm) @ self.rows.cells.share + sampling
        return np.asarray(np.maximum(powers, 0.0) ** root)

    def trials(self, noise: Floats, sampling: Floats, norm: float, root: float) -> list[Floats]:
        """How far drawn errors are off where the true gap is the shrunken one, and where it is the fitted one."""
        off = []
        for truth in (self.shrunken(self.coordinates[None]), self.coordinates[None]):
            error = float(self.rows.cells.share @ np.abs(truth[0] @ self.fit.half.T) ** norm) ** root
            off.append(self.errors(truth + noise, norm, root, sampling) - error)
        return off

    def spread(self, norm: float) -> Floats:
        """What each cluster adds to the mean power because of the scores it happens to have."""
        power = np.abs(self.shrunken(self.coordinates[None])[0] @ self.fit.half.T) ** norm
        apart = power - float(self.rows.cells.share @ power)
        return self.rows.by_cluster((self.rows.share * apart[self.rows.index])[:, None])[:, 0]


def _normal(influence: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Draws from the normal law with the covariance of a sum over clusters."""
    values, vectors = np.linalg.eigh(influence.T @ influence)
    return np.asarray((rng.standard_normal((size, len(values))) * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
