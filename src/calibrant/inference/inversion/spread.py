"""Intervals of forecasts' errors by inversion: of predicted spreads, and of coverage, quantile and PIT errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import fdtri, ndtri

from calibrant.data import validation
from calibrant.data.forecasts import Forecast, Quantiles, Samples
from calibrant.data.validation import fail
from calibrant.inference.inversion.spread_fit import ForecastClusters, SpreadCells, SpreadFit, forecast_clusters
from calibrant.inference.sample import rows_that_count
from calibrant.numerics.arrays import Floats
from calibrant.numerics.inversion import LEAST_REACH, Path, enough_draws, multiples_to, tail_risk, widened
from calibrant.numerics.logistic.stacked import log_linear_fits
from calibrant.numerics.random_draws import generator
from calibrant.results.estimate import Estimate, Interval
from calibrant.results.target import SPREAD_ERRORS, Target

#: Number of multiples of the fitted gap that are tested, and of cells that [0, 1] is cut into if every level counts.
#: Test: tests/inference/inversion/test_binary_constants.py.
PIT_STEPS, CELLS = 12, 100


@dataclass(frozen=True)
class PitInversion(validation.Simulated):
    r"""Interval for the distance between nominal and observed coverage of predicted distributions.

    The target of `interval_error`, `quantile_error` and `pit_error` is the norm of :math:`G(p) = F(p) - p`, with F the
    distribution function of the probability integral transform (of :math:`|2u-1|` for central intervals) in the
    population. Counts between levels are multinomial. The observed gaps, shrunk by their noise in the eigenvectors of
    its covariance, give a shape; for multiples t of it counts are drawn from p + t G, and the interval holds the norms
    under which the observed one is not extreme. At t = 0 this is the exact test of calibration. At levels so high that
    the draws do not determine the quantile, it is bounded instead (see `calibrant.numerics.inversion.Path`).

    Transforms that are known only up to an interval (draws, quantiles, counts) are spread over it at random, which
    keeps them uniform if the forecaster is calibrated; between the levels of `Quantiles`, and between the ranks of
    `Samples`, F is linear. Weights count by Kish's number of rows; clusters divide it by their design effect, or by
    that of normal errors with the correlation seen within clusters if larger, and, if they are few, by the squared
    ratio of Student's to the normal quantile. With fewer than 6 effective clusters nothing is claimed.

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

    serves: ClassVar[str] = "an estimate"
    least_draws = 2

    draws: int = 299
    seed: int = 0

    def interval(self, data: Any, estimate: Estimate, *, level: float = 0.95) -> Interval:
        """The interval for the target of an estimate that says of which curve and levels it is."""
        level = validation.fraction("level", level)
        if not isinstance(data, Forecast) or estimate.target is None or "central" not in estimate.details:
            fail(f"PitInversion is for interval_error, quantile_error and pit_error of forecasts, not {data!r}.")
        rng = generator(self.seed, "inversion of PIT counts")
        clusters = forecast_clusters(data, data.y_true.size)
        if clusters is not None:
            clusters.require_enough()
        counts = _LevelCounts.of(data, estimate, rng, clusters, level)
        low, high = counts.ends(self.draws, tail_risk(level), rng)
        if counts.ties:  # many equal transforms: what cells hide of the estimate may be missing
            hidden = float(estimate) - float(counts.error(counts.running[None])[0])
            low, high = max(low + min(hidden, 0.0), 0.0), high + max(hidden, 0.0)
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
            fail("levels must include one between 0 and 1: at 0 and 1 every coverage is right.")
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

    def _path(self, shape: Floats, draws: int, risk: float, rng: np.random.Generator) -> Path:
        """The distribution of the error for multiples of a shape."""
        gap, rows = self.running - self.nodes, max(round(self.size), 1)
        noise = np.sqrt(np.mean(self.nodes * (1 - self.nodes)) / rows)
        reach = max(5.0, -2.3 * float(ndtri(risk)))  # in standard errors: beyond every upper end
        length = np.sqrt(np.mean(gap**2)) + reach * noise
        multiples = multiples_to(length, np.sqrt(np.mean(shape**2)), PIT_STEPS)
        truth, drawn = self._drawn(shape, multiples, draws, rng)
        spread = drawn.std(axis=1)
        for certain in np.flatnonzero(spread[1:] < spread[:-1] / 2):
            # Towards certainty quantiles bend too much for straight lines between these multiples.
            between = np.linspace(multiples[certain], multiples[certain + 1], PIT_STEPS)[1:-1]
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
    known = np.concatenate([[0.0], nodes, [1.0]])
    matrix = np.stack([np.interp(at, known, one) for one in np.eye(len(known))], axis=1)
    if central:
        matrix = matrix[: len(wanted)] - matrix[len(wanted) :]
    inner, last = matrix[:, 1:-1], matrix[:, -1]
    same = np.array_equal(nodes, wanted) and not central
    cells = len(wanted) + 1 if everywhere else len(wanted)  # gaps vanish at both ends, where an integral begins

    def error(running: Floats) -> Floats:
        gaps = np.abs((running if same else running @ inner.T + last) - wanted)
        if np.isinf(norm):
            return np.asarray(gaps.max(axis=1))
        return np.asarray(((gaps**norm).sum(axis=1) / cells) ** (1 / norm))

    return error


#: Multiples of a shape that are tested; the finer grid on which the last plausible one is looked for.
#: Test: tests/inference/inversion/test_binary_constants.py.
STEPS, SEARCH = 10, 81

#: Hypotheses are tried as long as the fit as a whole does not speak against them at this level, or a higher one that
#: the level of the interval needs. Test: tests/inference/inversion/test_binary_constants.py.
JOINT = 0.995

#: Standard errors by which a part of the shape must stand out to be kept in a sparse one: the first for which the fit
#: as a whole allows that. Test: tests/inference/inversion/test_binary_constants.py.
SPARSE = (5.0, 4.0, 3.0, 2.0, 1.0)

#: Up to each of these levels intervals have the same simulated samples and the same hypotheses, and those of higher
#: levels contain them: otherwise ends of neighbouring levels would be out of order by chance.
#: Test: tests/inference/inversion/test_spread.py::test_ends_are_monotone_in_the_level.
TIERS = (0.95, 0.99, 0.999)

#: Below this many effective clusters the interval also holds the errors of all plausible lines.
#: Test: tests/inference/inversion/test_spread.py::test_few_clusters_also_have_the_errors_of_plausible_lines.
LINE_CLUSTERS = 50

#: Added to the assumption of an interval that rows not seen could change.
TAILS = "tails too heavy for this many rows: errors larger than any in the sample may decide, do not rely on it"


@dataclass(frozen=True)
class SpreadInversion(validation.Simulated):
    r"""Interval for the true error of predicted spreads by test inversion.

    With :math:`r(\sigma) = \sqrt{\mathrm E[e^2 \mid \sigma]}/\sigma` the target of `ence` and `sweep_ence` is
    :math:`\mathrm E|r - 1|`, of `debiased_ence` :math:`\sqrt{\mathrm E(r-1)^2}` and of `uce`
    :math:`\mathrm E\,\sigma^2|r^2-1|`, in the population and not in bins. The interval is the same whichever estimator
    of its target is named, and it is never negative.

    :math:`\log r^2` is fitted by quasi-likelihood, piecewise linear in the mean of rank and log σ. The noise of that
    fit follows from the kurtosis of the errors, and does not depend on the truth. For multiples t of a smoother fit the
    norm of fit plus noise is simulated, and the interval holds the errors under which the observed norm is not extreme.
    Its lower end also allows for a gap that is zero wherever the fit does not stand out from noise, as far as the fit
    as a whole allows such a gap, its upper end for one that is linear and for jumps where the fit clearly changes sign,
    and both ends for large errors that are not in the sample and for the sampling of σ. For `uce`, which the largest
    spreads dominate, the upper end is also no lower than that of :math:`\mathrm E[\pm(e^2 - \sigma^2)]` with the signs
    of the fit, a mean that no fit has smoothed. The interval of a level contains those of lower levels.
    Weights count by Kish's number of rows; clusters divide it by their design effect, or by that of normal errors with
    the correlation seen within clusters if larger. With fewer than 50 effective clusters, which often share a spread,
    the interval is extended to the errors of all lines :math:`\log r^2 = a + b \log\sigma` in the confidence ellipse of
    a jackknife over clusters; with fewer than 6 nothing is claimed.

    Parameters
    ----------
    draws : int
        Number of simulated samples; more are drawn if `level` needs them.
    seed : int

    Notes
    -----
    Measured coverage is in docs/evidence/forecasts.md. A gap that oscillates within the spacing of the knots is
    smoothed. Where the effective number of rows is less than 20 (kurtosis - 1), or the largest errors follow a power
    law without a fourth moment, the `assumption` of the interval says that the tails are too heavy.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> std = rng.lognormal(0, 0.5, 1000)
    >>> found = cal.interval(cal.ence, cal.Gaussian(1.3 * std * rng.normal(size=1000), np.zeros(1000), std))
    >>> str(found.interval.target), 0.3 in found.interval
    ('relative spread error (L1)', True)
    """

    serves: ClassVar[str] = "forecasts"
    least_draws = 2

    draws: int = 299
    seed: int = 0

    def interval(self, data: Any, target: Target, *, level: float = 0.95) -> Interval:
        """The interval for a "relative spread error" in its norm, or for the "variance error"."""
        level = validation.fraction("level", level)
        if target.quantity not in SPREAD_ERRORS:
            names = "ence, sweep_ence, debiased_ence and uce"
            fail(f"SpreadInversion is for {names}, not for a target {str(target)!r}.", TypeError)
        cells = SpreadCells.of(data, needed_by="SpreadInversion")
        if cells.clusters is not None:
            cells.clusters.require_enough()
        ends, few = [], ""
        for one in (*(tier for tier in TIERS if tier < level), level):
            draws = enough_draws(self.draws, tail_risk(_tier(one)))
            fit = SpreadFit.of(cells, draws, generator(self.seed, "spread inversion"))
            error = SpreadError.of(target, fit.variance)
            ends.append(_Trials(fit, error, one).ends())
            if cells.clusters is not None and cells.clusters.effective < LINE_CLUSTERS:
                ends.append(_ClusterLine.of(cells, fit).ends(error, fit.share, cells.clusters.effective, one))
                few = cells.clusters.words
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        words = f"{few}independent rows (or clusters); a ratio that is smooth in sigma; "
        words += "without the noise of binned estimates"
        words = f"{TAILS}; {words}" if fit.heavy_tails else words
        return Interval(low, high, level=level, method=repr(self), assumption=words, target=target)


@dataclass(frozen=True, eq=False)
class SpreadError:
    """The norm of a gap of spreads, as a function of log r²; `shifted` if the largest spreads dominate it."""

    power: Callable[[Floats], Floats]
    norm: float
    shifted: bool = False

    @classmethod
    def of(cls, target: Target, variance: Floats) -> SpreadError:
        """The norm of a target, over cells of this mean variance."""
        if target.quantity == "variance error":
            return cls(lambda gap: variance * np.abs(_exp(gap) - 1), 1.0, shifted=True)
        norm = float(target.norm)
        return cls(lambda gap: np.abs(_exp(gap / 2) - 1) ** norm, norm)

    def __call__(self, gaps: Floats, share: Floats) -> Any:
        """The error of each row of gaps."""
        return (self.power(gaps) @ share) ** (1 / self.norm)


@dataclass(frozen=True, eq=False)
class _Trials:
    """Errors along several paths of hypotheses, and the observed error with and without missing mass."""

    fit: SpreadFit
    error: SpreadError
    level: float

    def ends(self) -> tuple[float, float]:
        """Both ends of the interval."""
        fit, error, share = self.fit, self.error, self.fit.share
        raised = fit.missing * np.array([0.0, 0.5, 1.0])
        seen = error(fit.gap + raised[:, None], share)
        paths = list(self._paths())
        observed = float(seen.min())
        low = min(path.lower_end(observed) for path in [paths[0], *self._sparse(observed)])
        highest = max(float(seen.max()), paths[0].typical)
        high = max([path.upper_end(highest) for path in paths] + [self._convex_bound(), self._finer_end(raised)])
        high += max(float(error(fit.stepped, share) - error(fit.gap, share)), 0.0)
        if error.shifted:
            high = max(high, self._signed_excess())
        return widened(low, high, error.power(fit.shape), share, error.norm, fit.effective_n, self.level)

    @cached_property
    def shape(self) -> Floats:
        """The smoother shape, or the fit itself if it does not allow the smoother one."""
        fit = self.fit
        return fit.gap if self._last_plausible(fit.shape[None]) is None else fit.shape

    def _paths(self) -> Iterator[Path]:
        """Along multiples of the shape and of the straight gap; for the variance error also by common factors."""
        fit, share = self.fit, self.fit.share
        length = float(np.sqrt(share @ fit.gap**2)) + 5 * fit.noise_size + fit.missing
        for which, shape in enumerate((self.shape, fit.straight)):
            size = float(np.sqrt(share @ shape**2))
            if size < 1e-9:
                shape, size = np.full(len(share), 1e-3), 1e-3
            multiples = np.linspace(0, max(length / size, LEAST_REACH), SEARCH)
            last = self._last_plausible(multiples[:, None] * shape)
            if last is None and which > 0:
                continue
            top = 1.0 if last is None else max(float(multiples[last]), 1.0)
            yield self._path(np.linspace(0, top, STEPS)[:, None] * shape)
        if self.error.shifted:
            yield from self._shifted()

    def _sparse(self, observed: float) -> Iterator[Path]:
        """Along the few parts of the shape that stand out: noise adds most to a norm where the ratio is right."""
        shape, error = self.shape, self.fit.noise.std(axis=0)
        for errors in SPARSE:
            standing = np.where(np.abs(shape) > errors * error, shape, 0.0)
            multiples = np.linspace(0, 2, SEARCH)
            last = self._last_plausible(multiples[:, None] * standing)
            if last is not None and standing.any():
                path = self._path(np.linspace(0, multiples[last], STEPS)[:, None] * standing)
                if path.high.max() >= observed:
                    yield path
                return

    def _shifted(self) -> Iterator[Path]:
        """The shape raised and lowered by a constant."""
        fit = self.fit
        shifts = np.linspace(0, 6 * fit.noise_size + fit.missing, SEARCH)
        for sign in (-1, 1):
            last = self._last_plausible(fit.shape + sign * shifts[:, None])
            if last is not None:
                yield self._path(fit.shape + sign * np.linspace(0, shifts[last], STEPS)[:, None])

    def _finer_end(self, raised: Floats) -> float:
        """The upper end by a fit of twice as many knots: jumps that the fit smooths make the error larger."""
        fit = self.fit
        if fit.finer is None:
            return 0.0
        gap, noise = fit.finer
        path = self._path(np.linspace(0, 2, STEPS + 1)[:, None] * fit.gap, noise)
        return path.upper_end(float(self.error(gap + raised[:, None], fit.share).max()))

    def _path(self, gaps: Floats, noise: Floats | None = None) -> Path:
        share, noise = self.fit.share, self.fit.noise if noise is None else noise
        return Path.along(
            gaps, lambda gap: (self.error(gap, share), self.error(gap + noise, share)), tail_risk(self.level)
        )

    def _last_plausible(self, gaps: Floats) -> int | None:
        """The last of these hypotheses that the fit as a whole allows: wild multiples would make upper ends absurd."""
        fit = self.fit
        far = float(np.quantile(fit.noise**2 @ fit.share, max(JOINT, 1 - tail_risk(_tier(self.level)) / 2)))
        distances = [(fit.gap + more - gaps) ** 2 @ fit.share for more in (0.0, fit.missing / 2, fit.missing)]
        near = np.flatnonzero(np.min(distances, axis=0) <= far)
        return int(near[-1]) if len(near) else None

    def _signed_excess(self) -> float:
        """The upper limit of the mean of e² - σ² with the signs of the fit: the variance error if they are right."""
        fit = self.fit
        return abs(float(np.sign(fit.gap) @ fit.excess)) + float(ndtri(1 - tail_risk(self.level))) * fit.excess_error

    def _convex_bound(self) -> float:
        """The error of the shape plus its standard errors: norms are convex, so noise makes them larger on average."""
        fit, error, step = self.fit, self.error, 1e-4
        slope = (error.power(fit.shape + step) - error.power(fit.shape - step)) / (2 * step)
        whole = max(float(error(fit.shape + more, fit.share)) for more in (0.0, fit.missing))
        inner = 1 / (error.norm * max(whole, 1e-9) ** (error.norm - 1))
        spread = float(np.std(fit.noise @ (fit.share * slope))) * inner
        return whole + float(ndtri(1 - tail_risk(self.level))) * spread


@dataclass(frozen=True, eq=False)
class _ClusterLine:
    """A line of log r² in log σ; the covariance over clusters is at least that of normal errors as alike as these."""

    columns: Floats
    coefficients: Floats
    covariance: Floats

    @classmethod
    def of(cls, cells: SpreadCells, fit: SpreadFit) -> _ClusterLine:
        """From rows with clusters, in the pooled cells of a fit."""
        clusters, pools = cells.clusters, len(fit.share)
        if clusters is None or cells.cell is None or cells.row_second is None:  # pragma: no cover - clusters have rows
            raise RuntimeError(repr(cells))
        number, place = len(clusters.size), clusters.label * pools + fit.pool[cells.cell]
        mass, seen, squares = (
            np.bincount(place, column, number * pools).reshape(number, pools)
            for column in (clusters.share, clusters.share * cells.row_second, clusters.share**2)
        )
        x = np.log(fit.variance) / 2
        x = x - fit.share @ x
        size = float(np.sqrt(fit.share @ x**2))
        columns = np.column_stack([np.ones(pools), x / size]) if size > 1e-9 else np.ones((pools, 1))
        whole = _log_lines(columns, mass.sum(axis=0)[None], seen.sum(axis=0)[None])
        rest = _log_lines(columns, mass.sum(axis=0) - mass, seen.sum(axis=0) - seen, whole[0]) - whole
        bread = np.linalg.inv((columns * fit.share[:, None]).T @ columns)
        sums, alike = mass @ columns, clusters.correlation**2
        inner = (1 - alike) * (columns * squares.sum(axis=0)[:, None]).T @ columns + alike * sums.T @ sums
        jackknife = (number - 1) / number * rest.T @ rest
        return cls(columns, whole[0], _at_least(jackknife, 2 * bread @ inner @ bread))

    def ends(self, error: SpreadError, share: Floats, clusters: float, level: float) -> tuple[float, float]:
        """The smallest and the largest error of lines in the confidence ellipse."""
        number = self.columns.shape[1]
        radius = float(np.sqrt(number * fdtri(number, max(clusters - number, 1.0), level)))
        angle = np.linspace(0, 2 * np.pi, 73)[:-1]
        unit = np.stack([np.cos(angle), np.sin(angle)], axis=1) if number == 2 else np.array([[1.0], [-1.0]])
        root = np.linalg.cholesky(self.covariance)
        steps = np.concatenate([part * radius * unit @ root.T for part in (0.0, 0.25, 0.5, 0.75, 1.0)])
        errors = error((self.coefficients + steps) @ self.columns.T, share)
        away = np.linalg.solve(root, self.coefficients)
        return 0.0 if away @ away <= radius**2 else float(errors.min()), float(errors.max())


def _log_lines(columns: Floats, mass: Floats, seen: Floats, start: Floats | None = None) -> Floats:
    """Coefficients of log(seen / mass) by gamma quasi-likelihood, for each row of cells."""
    if start is None:
        start = np.zeros(columns.shape[1])
        start[0] = np.log(max(float(seen.sum()), 1e-300) / float(mass.sum()))
    ridge, first = 1e-12 * np.eye(columns.shape[1]), np.tile(start, (len(seen), 1))
    return log_linear_fits(columns, mass, seen, first, ridge)


def _at_least(covariance: Floats, floor: Floats) -> Floats:
    """The covariance, raised to no less than `floor` in every direction of it."""
    root = np.linalg.cholesky(floor + 1e-12 * np.eye(len(floor)))
    inner = np.linalg.solve(root, np.linalg.solve(root, covariance).T)
    values, vectors = np.linalg.eigh((inner + inner.T) / 2)
    return root @ (vectors * np.maximum(values, 1.0)) @ vectors.T @ root.T


def _tier(level: float) -> float:
    """The lowest of the tiers that a level does not exceed, or the level itself."""
    return next((tier for tier in TIERS if level <= tier), level)


def _exp(values: Floats) -> Floats:
    return np.exp(np.clip(values, -50, 50))
