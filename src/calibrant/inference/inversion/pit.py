"""Intervals for interval, quantile and PIT errors of predicted distributions, by inverting a multinomial test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from calibrant.data import validation
from calibrant.data.forecasts import Forecast, Quantiles, Samples
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.sample import ForecastClusters, forecast_clusters, rows_that_count
from calibrant.numerics.arrays import Floats
from calibrant.numerics.inversion import Path, multiples_to, tail_risk
from calibrant.numerics.random_draws import generator
from calibrant.results.estimate import Estimate, Interval

#: Number of multiples of the fitted gap that are tested, and of cells that [0, 1] is cut into if every level counts.
#: Test: tests/inference/inversion/test_binary_constants.py.
STEPS, CELLS = 12, 100


@dataclass(frozen=True)
class PitInversion:
    r"""Interval for the distance between nominal and observed coverage of predicted distributions.

    The target of `interval_error`, `quantile_error` and `pit_error` is the norm of :math:`G(p) = F(p) - p`, with F the
    distribution function of the probability integral transform (of :math:`|2u-1|` for central intervals) in the
    population. Counts between levels are multinomial. The observed gaps, shrunk by their noise in the eigenvectors of
    its covariance, give a shape; for multiples t of it counts are drawn from p + t G, and the interval holds the norms
    under which the observed one is not extreme. At t = 0 this is the exact test of calibration. At levels so high that
    the draws do not tell the quantile, it is bounded instead (see `calibrant.numerics.inversion.Path`).

    Transforms that are known only up to an interval (draws, quantiles, counts) are spread over it at random, which
    keeps them uniform if the forecaster is calibrated; between the levels of `Quantiles`, and between the ranks of
    `Samples`, F is linear. Weights count by Kish's number of rows; clusters divide it by their design effect, or by
    that of normal errors with the correlation seen within clusters if larger, and few by the square of Student's
    over the normal quantile. Nothing is claimed of fewer than 6 effective clusters.

    Parameters
    ----------
    draws : int
        Number of simulated samples per multiple.
    seed : int

    Examples
    --------
    >>> import calibrant as cal
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> found = cal.interval(cal.interval_error, cal.Gaussian(y, np.zeros(1000), np.full(1000, 0.8)))
    >>> str(found.interval.target), found.interval.low > 0
    ('coverage error (L1)', True)
    """

    serves: ClassVar[str] = "forecasts"

    draws: int = 299
    seed: int = 0

    def __post_init__(self) -> None:
        validation.seed(self.seed)
        validation.whole("draws", self.draws, minimum=2)

    def interval(self, data: Any, estimate: Estimate, *, level: float = 0.95) -> Interval:
        """The interval for the target of an estimate that says of which curve and levels it is."""
        level = validation.fraction("level", level)
        if not isinstance(data, Forecast) or estimate.target is None or "central" not in estimate.details:
            message = f"PitInversion is for interval_error, quantile_error and pit_error of forecasts, not {data!r}."
            raise InvalidPredictions(message)
        rng = generator(self.seed, "inversion of PIT counts")
        clusters = forecast_clusters(data, data.y_true.size)
        if clusters is not None:
            clusters.require_enough()
        counts = _LevelCounts.of(data, estimate, rng, clusters, level)
        low, high = counts.ends(self.draws, tail_risk(level), rng)
        low, high = counts.beyond_cells(low, high, float(estimate))
        words = ("" if clusters is None else clusters.words) + "independent rows (or clusters)"
        return Interval(low, high, level=level, method=repr(self), assumption=words, target=estimate.target)


@dataclass(frozen=True, eq=False)
class _LevelCounts:
    """Observed shares of transforms between nodes, and the error as a function of the distribution at the nodes."""

    nodes: Floats
    running: Floats
    size: float
    error: Callable[[Floats], Floats]
    ties: bool

    @classmethod
    def of(
        cls,
        data: Forecast,
        estimate: Estimate,
        rng: np.random.Generator,
        clusters: ForecastClusters | None = None,
        level: float = 0.95,
    ) -> _LevelCounts:
        central, norm = bool(estimate.details["central"]), float(estimate.target.norm)  # type: ignore[union-attr]
        given = estimate.details.get("levels")
        low, high = data.pit()
        known = low is high
        transform = low if known else low + (high - low) * rng.random(len(low))
        if known and central:  # the folded transform is uniform too, and needs half the cells
            transform = np.abs(2 * transform - 1)
        wanted = np.arange(1, CELLS) / CELLS if given is None else np.asarray(given, dtype=np.float64)
        nodes = _nodes(data, wanted) if not known else np.unique(wanted[(wanted > 0) & (wanted < 1)])
        if not len(nodes):
            message = "levels must include one between 0 and 1: at 0 and 1 every coverage is right."
            raise InvalidPredictions(message)
        error = _error(nodes, wanted, norm, central=central and not known, everywhere=given is None)
        weight, cell = data.flat_weight, np.searchsorted(nodes, transform, side="left")
        total = np.bincount(cell, weight, len(nodes) + 1)
        running = np.cumsum(total)[:-1] / total.sum()
        residuals = ((cell <= node) - running[node] for node in range(len(nodes)))
        size = rows_that_count(weight, residuals, None if clusters is None else clusters.label, len(cell))
        if clusters is not None:  # squares of errors decide about central intervals, errors about quantiles
            size = min(size, clusters.normal_rows(clusters.correlation ** (2 if central else 1)))
            size /= (clusters.reach(level) / float(ndtri((1 + level) / 2))) ** 2
        return cls(nodes, running, size, error, known and len(np.unique(transform)) < len(transform))

    def ends(self, draws: int, risk: float, rng: np.random.Generator) -> tuple[float, float]:
        """Both ends of the interval."""
        gap, rows = self.running - self.nodes, max(round(self.size), 1)
        covariance = (np.minimum.outer(self.nodes, self.nodes) - np.outer(self.nodes, self.nodes)) / rows
        values, vectors = np.linalg.eigh(covariance)
        coordinates = vectors.T @ gap
        shape = vectors @ (np.sqrt(np.maximum(0.0, 1 - values / np.maximum(coordinates**2, 1e-300))) * coordinates)
        if np.abs(shape).max() < 1e-12:
            shape = gap if np.abs(gap).max() > 0 else np.full(len(gap), 1e-6)
        path = self._path(shape, draws, risk, rng)
        observed = float(self.error(self.running[None])[0])
        # Noise adds little to the L1 norm of a gap of one sign, such as the first eigenvector, so it may be larger.
        even = self._path(vectors[:, -1] * max(np.sqrt(values[-1]), abs(coordinates[-1])), draws, risk, rng)
        return path.lower_end(observed), max(one.upper_end(observed) for one in (path, even))

    def beyond_cells(self, low: float, high: float, estimate: float) -> tuple[float, float]:
        """Both ends, moved outwards by what cells hide of the estimate if many transforms are equal."""
        hidden = estimate - float(self.error(self.running[None])[0]) if self.ties else 0.0
        return max(low + min(hidden, 0.0), 0.0), high + max(hidden, 0.0)

    def _path(self, shape: Floats, draws: int, risk: float, rng: np.random.Generator) -> Path:
        """The distribution of the error for multiples of a shape."""
        gap, rows = self.running - self.nodes, max(round(self.size), 1)
        noise = np.sqrt(np.mean(self.nodes * (1 - self.nodes)) / rows)
        reach = max(5.0, -2.3 * float(ndtri(risk)))  # in standard errors: beyond every upper end
        length = np.sqrt(np.mean(gap**2)) + reach * noise
        multiples = multiples_to(length, np.sqrt(np.mean(shape**2)), STEPS)
        truth, drawn = self._drawn(shape, multiples, draws, rng)
        spread = drawn.std(axis=1)
        for certain in np.flatnonzero(spread[1:] < spread[:-1] / 2):
            # Towards certainty quantiles bend too much for straight lines between these multiples.
            between = np.linspace(multiples[certain], multiples[certain + 1], STEPS)[1:-1]
            more = self._drawn(shape, between, draws, rng)
            truth, drawn = np.concatenate([truth, more[0]]), np.concatenate([drawn, more[1]])
        steepest = 0.5 / np.sqrt(rows)  # the largest standard error of a share: norms of means change by no more
        return Path.of(truth, drawn, risk, steepness=steepest)

    def _drawn(self, shape: Floats, multiples: Floats, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The true error for each multiple of a shape, and the errors of simulated samples, (multiples, draws)."""
        rows, truth, drawn = max(round(self.size), 1), [], []
        for multiple in multiples:
            edges = np.clip(self.nodes + multiple * shape, 0.0, 1.0)
            rising = (np.maximum.accumulate(edges) + np.minimum.accumulate(edges[::-1])[::-1]) / 2
            chance = np.maximum(np.diff(rising, prepend=0.0, append=1.0), 0.0)
            counts = rng.multinomial(rows, chance, draws)
            true_error = float(self.error(np.cumsum(chance)[None, :-1])[0])
            truth.append(true_error if true_error > 1e-12 else 0.0)
            drawn.append(self.error(np.cumsum(counts, axis=1)[:, :-1] / rows))
        return np.array(truth), np.array(drawn)


def _nodes(data: Forecast, wanted: Floats) -> Floats:
    """The levels at which the counts of transforms known only up to an interval lose nothing, or at most a hundred."""
    if isinstance(data, Quantiles):
        return data.levels
    if isinstance(data, Samples):
        ranks = data.draws.shape[1] + 1
        return np.unique(np.rint(np.linspace(0, ranks, min(ranks, CELLS) + 1)[1:-1])) / ranks
    return np.unique(np.concatenate([wanted, (1 + wanted) / 2, (1 - wanted) / 2]))[1:-1]


def _error(
    nodes: Floats, wanted: Floats, norm: float, *, central: bool, everywhere: bool
) -> Callable[[Floats], Floats]:
    """The norm of the gaps at the wanted levels, from distribution functions that are linear between the nodes."""
    at = np.concatenate([(1 + wanted) / 2, (1 - wanted) / 2]) if central else wanted
    matrix = _interpolation(np.concatenate([[0.0], nodes, [1.0]]), at)
    if central:
        matrix = matrix[: len(wanted)] - matrix[len(wanted) :]
    inner, last = matrix[:, 1:-1], matrix[:, -1]
    cells = len(wanted) + 1 if everywhere else len(wanted)  # gaps vanish at both ends, where an integral begins

    def error(running: Floats) -> Floats:
        gaps = np.abs(running @ inner.T + last - wanted)
        if np.isinf(norm):
            return np.asarray(gaps.max(axis=1))
        return np.asarray(((gaps**norm).sum(axis=1) / cells) ** (1 / norm))

    return error


def _interpolation(nodes: Floats, at: Floats) -> Floats:
    """The matrix that interpolates linearly from values at `nodes` to values at `at`."""
    right = np.clip(np.searchsorted(nodes, at, side="left"), 1, len(nodes) - 1)
    part = (at - nodes[right - 1]) / (nodes[right] - nodes[right - 1])
    matrix = np.zeros((len(at), len(nodes)))
    rows = np.arange(len(at))
    matrix[rows, right - 1], matrix[rows, right] = 1 - part, part
    return matrix
