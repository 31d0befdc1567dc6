"""Intervals for norms of the gap: largest, running, smooth and kernel gap, and the squared binned error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaincinv

from calibrant.data import validation
from calibrant.data.predictions import Binary, Predictions
from calibrant.data.validation import fail
from calibrant.estimators.kernel import GaussianKernel, LaplaceKernel, kernel_error, similarity, squared_distances
from calibrant.estimators.smooth_errors import at_nodes, cosines, fixed_point, linearly_binned, smoothed_size
from calibrant.inference.reliability import BAND_CELLS, blocks, clopper_pearson, counted_table
from calibrant.inference.sample import Sample, pooled, require_clusters
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator, independent_counts
from calibrant.numerics.rows import accumulate_rows
from calibrant.results.estimate import Estimate, Interval
from calibrant.results.target import Target
from calibrant.table.binning import Cut, EqualMass
from calibrant.table.bintable import BinTable, binned

#: Blocks of fewer rows can hardly show a gap at the risk that is left for each of them.
#: Test: tests/inference/test_norm_bounds.py::test_a_block_of_eight_rows_shows_a_gap.
LEAST_ROWS = 8


@dataclass(frozen=True)
class LargestGapBound:
    r"""Lower confidence bound on the largest gap, :math:`\sup_s |s - P(Y = 1 \mid s)|`, valid for every n and curve.

    In any block of scores the mean gap is at most the largest one. Clopper-Pearson limits L, U bound the mean chance of
    a block (they hold for unequal chances too, Hoeffding 1956), so with p̄ the mean score of block b

    .. math:: \max_b \max\{L_b - \bar p_b,\; \bar p_b - U_b,\; 0\}

    is a lower bound, with the error probability shared by all blocks: those of 1, 2, 4, ... distinct scores,
    overlapping by half, with at least eight rows.

    There is no upper bound without an assumption: a gap may be arbitrarily large on arbitrarily few scores. If the
    curve rises, `IsotonicBand` gives one.

    References
    ----------
    Hoeffding (1956), On the distribution of the number of successes in independent trials.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.interval(cal.mce, [0, 1] * 100, [0.2, 0.9] * 100)
    >>> found.interval.side, str(found.interval)
    ('lower', '[0.1505, inf]')
    """

    serves: ClassVar[str] = "error"

    def interval(self, data: Predictions | BinTable, *, norm: float = float("inf"), level: float = 0.95) -> Interval:
        """The one-sided interval above the bound."""
        level = validation.fraction("level", level)
        if norm != float("inf"):
            fail(f"LargestGapBound is for the infinite norm, got norm={norm!r}; use Inversion().", ValueError)
        table = counted_table(data, needed_by="LargestGapBound", instead="ece (L1 or L2)")
        low, target = _largest_lower_limit(pooled(table, BAND_CELLS), 1 - level), Target("true error", norm)
        words = "independent rows, nothing else; an upper bound needs an increasing curve: IsotonicBand()"
        return Interval(low, norm, level=level, method=repr(self), side="lower", assumption=words, target=target)


def _largest_lower_limit(table: BinTable, risk: float) -> float:
    start, end = blocks(len(table))
    columns = table.count, table.observed, table.predicted
    rows, hits, predicted = (np.append(0.0, np.cumsum(column)) for column in columns)
    count = rows[end] - rows[start]
    enough = count >= min(LEAST_ROWS, table.n)
    start, end, count = start[enough], end[enough], count[enough]
    low, high = clopper_pearson(hits[end] - hits[start], count, risk / (2 * len(count)))
    score = (predicted[end] - predicted[start]) / count
    return max(0.0, float(np.maximum(low - score, score - high).max()))


#: Cells in which fewer events, or fewer non-events, are expected get binomial draws, the others normal ones.
#: Test: tests/inference/test_norm_bounds_noise.py::test_few_expected_events_are_drawn_as_whole_numbers.
FEW_EVENTS = 20

#: Wrong rows that a sample may hide: n rows without one exclude, at 95 %, only an expected number above three.
#: Reference: Hanley and Lippman-Hand (1983), If nothing goes wrong, is everything all right?, JAMA 249.
UNSEEN = 3.0

#: Cells drawn at a time. Speed: few enough for the cache, and for memory that is used again; no result depends on it.
_AT_ONCE = 64

Law = Callable[[], Iterator[Floats]]
"""Draws of noise, the same at every call: arrays of (cells, draws), cell after cell in the order of their scores."""


@dataclass(frozen=True, eq=False)
class ResidualNoise:
    """Draws of the noise of predictions less outcomes in cells of score `position`; a norm must respect all `laws`."""

    position: Floats
    laws: tuple[Law, ...]
    largest: float

    @classmethod
    def of(cls, data: Predictions | BinTable, *, draws: int, seed: int, size: int, needed_by: str) -> ResidualNoise:
        """The noise of binary rows or of their fine table, on at most `size` cells of neighbouring scores.

        Independent rows have two laws: outcomes drawn from the predictions, and the observed squares of residuals (and
        three wrong rows more) as variances. Residuals of clusters change sign together.
        """
        if isinstance(data, Binary) and data.group is not None:
            return cls._of_clusters(Sample.of_rows(data), draws, seed, size, needed_by)
        table = pooled(Sample.of(data, needed_by=needed_by).table, size)
        chance, share, count, n = table.predicted_mean, table.share, table.effective_count, table.population.effective_n
        observed_mean = table.observed_mean
        square = observed_mean * (1 - chance) ** 2 + (1 - observed_mean) * chance**2  # mean of (p - y)² in each cell
        spread = np.sqrt(square * (n / max(n - 1, 1.0)) + UNSEEN / n) * share / np.sqrt(count)

        blocks = [slice(start, start + _AT_ONCE) for start in range(0, len(table), _AT_ONCE)]

        def null() -> Iterator[Floats]:
            rng = generator(seed, "noise of a calibrated model")
            for some in blocks:
                yield _outcomes(chance[some], count[some], draws, rng) * share[some, None]

        def observed() -> Iterator[Floats]:
            rng = generator(seed, "noise of the observed gaps")
            for some in blocks:
                yield rng.standard_normal((len(spread[some]), draws)) * spread[some, None]

        return cls(chance, (null, observed), _largest(table))

    @classmethod
    def _of_clusters(cls, sample: Sample, draws: int, seed: int, size: int, needed_by: str) -> ResidualNoise:
        from scipy.sparse import coo_array

        table = pooled(sample.table, size)
        cluster = np.zeros(0, np.intp) if sample.cluster is None else sample.cluster
        require_clusters(sample.clusters, needed_by=needed_by)
        cell = np.minimum(np.searchsorted(table.high, sample.rows.key.astype(np.float64)), len(table) - 1)
        values = sample.row_share * sample.residual
        sums = coo_array((values, (cell, cluster)), shape=(len(table), sample.clusters)).tocsr()
        share = np.bincount(cluster, sample.row_share)
        groups = 1 / float(share @ share)
        unseen = table.share * np.sqrt(UNSEEN / table.population.effective_n / table.effective_count)

        def signed() -> Iterator[Floats]:
            rng = generator(seed, "signs of residuals")
            signs = rng.choice([-1.0, 1.0], (sample.clusters, draws)) * np.sqrt(groups / max(groups - 1, 1.0))
            yield sums @ signs + rng.standard_normal((len(table), draws)) * unseen[:, None]

        return cls(table.predicted_mean, (signed,), _largest(table))

    def drawn(self) -> Iterator[Floats]:
        """All draws of each law, of shape (cells, draws)."""
        for law in self.laws:
            yield np.concatenate([*law()])


def _running_extremes(blocks: Iterator[Floats]) -> tuple[Floats, Floats]:
    """The lowest and the highest running sum of every draw, from 0 at the lowest score on."""
    low, high, before = np.zeros(1), np.zeros(1), np.zeros(1)
    for block in blocks:
        block[0] += before
        accumulate_rows(block)
        low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
        before = block[-1].copy()
    return low, high


def largest_quantile(sizes: tuple[Floats, ...], probability: float) -> float:
    """The largest quantile among the laws."""
    return max(float(np.quantile(size, probability, method="weibull")) for size in sizes)


def _outcomes(chance: Floats, count: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Chance minus mean outcome of so many rows, a fraction rounded down and rescaled: binomial if few are expected."""
    chance = np.clip(chance, 0.0, 1.0)
    few = count * np.minimum(chance, 1 - chance) < FEW_EVENTS
    whole = np.maximum(np.floor(count[few] + 1e-9), 1.0)
    scale = np.sqrt(whole / count[few])
    hits = independent_counts(whole.astype(np.int64), chance[few], draws, rng)
    hits *= (-scale / whole)[:, None]
    hits += (scale * chance[few])[:, None]
    if few.all():
        return hits
    drawn, spread = np.empty((len(count), draws)), np.sqrt(chance * (1 - chance) / count)[~few]
    drawn[few] = hits
    drawn[~few] = rng.standard_normal((len(spread), draws)) * spread[:, None]
    return drawn


def _largest(table: BinTable) -> float:
    return float(table.share @ np.maximum(table.predicted_mean, 1 - table.predicted_mean))


#: Most cells on which noise is drawn, and for the kernel error, whose pairs of cells are all compared.
#: Test: tests/inference/test_norm_bounds.py::test_noise_is_drawn_for_each_score_up_to_a_number_of_scores.
CELLS, KERNEL_CELLS = 4096, 512

#: Nodes per width of the kernel at which smoothed noise is integrated.
#: Test: tests/inference/test_norm_bounds.py::test_four_nodes_per_width_integrate_smoothed_noise.
NODES_PER_WIDTH = 4

#: The ratio of neighbouring widths.
#: Test: tests/inference/test_norm_bounds.py::test_the_default_covers_at_calibration_and_away_from_it.
WIDTH_RATIO = 2

#: The smallest width looked at, as a part of the estimate and at all: lower ends below it are zero, upper ends are not.
#: Test: tests/inference/test_norm_bounds.py::test_narrower_widths_do_not_move_the_lower_end.
#: Test: tests/inference/test_norm_bounds.py::test_no_upper_end_is_below_the_narrowest_width.
NARROWEST, NARROWEST_OF_ALL = 0.25, 2.0**-11


@dataclass(frozen=True)
class NormBand(validation.Simulated):
    r"""Interval for an error that is a norm of the gap, by the triangle inequality.

    The residuals of a sample are the true gap μ, a signed measure on the scores, plus noise ε. For every norm (or
    seminorm) T

    .. math:: \lvert T(\mu + \varepsilon) - T(\mu) \rvert \le T(\varepsilon),

    so the observed value plus and minus a quantile of T(ε) covers T(μ), whatever the shape of the gap. The noise is
    simulated: once with outcomes drawn from the predictions, which is exact for a calibrated model, and once with the
    observed squared residuals as variances, which contain the noise of outcomes and scores for any gap (and three more
    rows, which a sample may hide); the larger quantile counts. With `group`, residuals change sign cluster by cluster.
    The upper end uses the quantile of probability `level`, the lower end that of (1 + level) / 2, so that a calibrated
    model's interval excludes zero no more often than half of 1 - level.

    It is for `ks_error` (T is the largest running sum), `kuiper_error` (the range of the running sums), `kernel_error`
    (the norm of the kernel's space, at the bandwidth of the estimate; the interval is of its square) and `smooth_ece`
    (the integral of the smoothed residuals). With smooth_ece's own width, the value θ at which T_θ(μ) = θ, all widths
    are considered together: θ is at least min(x, T_x(μ)) for every x, and at most the x at which T_x(μ) is no more than
    x.

    Parameters
    ----------
    draws : int
        Number of simulated samples.
    seed : int

    References
    ----------
    Giné, Zinn (1984), Some limit theorems for empirical processes, for the signs and multipliers. Coverage measured in
    worlds of known error is in docs/evidence/coverage.md.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = cal.interval(cal.ks_error, cal.Binary(rng.random(2000) < p**2, p))  # the true value is 1/6
    >>> found.interval.method, bool(1 / 6 in found.interval), str(found.interval.target)
    ('NormBand(draws=399, seed=0)', True, 'cumulative error')
    """

    serves: ClassVar[str] = "norm of the gap"

    draws: int = 399
    seed: int = 0

    def interval(self, estimate: Estimate, data: Predictions | BinTable, *, level: float = 0.95) -> Interval:
        """The interval around an estimate of `data`."""
        level = validation.fraction("level", level)
        limits: dict[str, Callable[[Estimate, Predictions | BinTable, float], tuple[float, float]]] = {
            "cumulative error": self._cumulative,
            "cumulative range": self._cumulative,
            "kernel error": self._kernel,
            "smooth error": self._smooth,
        }
        quantity = None if estimate.target is None else estimate.target.quantity
        if quantity not in limits:
            message = f"NormBand is for ks_error, kuiper_error, smooth_ece and kernel_error, not for {estimate.name}."
            raise TypeError(message)
        low, high = limits[quantity](estimate, data, level)
        words = "independent rows (or clusters); any gap"
        if quantity == "kernel error":
            words += "; an unbiased estimate may be negative, its target is not"
        return Interval(low, high, level=level, method=repr(self), assumption=words, target=Target(quantity))

    def _noise(self, data: Predictions | BinTable, size: int) -> ResidualNoise:
        return ResidualNoise.of(data, draws=self.draws, seed=self.seed, size=size, needed_by="NormBand")

    def _cumulative(self, estimate: Estimate, data: Predictions | BinTable, level: float) -> tuple[float, float]:
        noise = self._noise(data, CELLS)
        is_range = estimate.target is not None and estimate.target.quantity == "cumulative range"
        ends = (_running_extremes(law()) for law in noise.laws)
        sizes = tuple(high - low if is_range else np.maximum(high, -low) for low, high in ends)
        return _around(float(estimate), sizes, level, noise.largest)

    def _kernel(self, estimate: Estimate, data: Predictions | BinTable, level: float) -> tuple[float, float]:
        kind, bandwidth = estimate.details["kernel"], float(estimate.details["bandwidth"])
        kernel = GaussianKernel(bandwidth) if kind == "GaussianKernel" else LaplaceKernel(bandwidth)
        noise = self._noise(data, KERNEL_CELLS)
        at = noise.position[:, None]
        matrix = similarity(squared_distances(at, at), kernel, estimate.details["bandwidth"])
        sizes = tuple(np.sqrt(np.maximum(np.vecdot((matrix @ law).T, law.T), 0.0)) for law in noise.drawn())
        observed = np.sqrt(kernel_error(data, kernel=kernel, unbiased=False).clipped)
        low, high = _around(float(observed), sizes, level, noise.largest)
        return low**2, high**2

    def _smooth(self, estimate: Estimate, data: Predictions | BinTable, level: float) -> tuple[float, float]:
        coefficients = cosines(linearly_binned(data, None, needed_by="NormBand").residual)
        noise, given = self._noise(data, CELLS), not estimate.details["fixed_point"]
        sigma = float(estimate.details["sigma"])
        if given:
            return _around(float(estimate), _NoiseWaves.of(noise, sigma).sizes(sigma), level, noise.largest)
        waves = _NoiseWaves.of(noise, max(NARROWEST * sigma, NARROWEST_OF_ALL))
        steps = max(2, 1 + int(np.ceil(np.log(1 / waves.narrowest) / np.log(WIDTH_RATIO))))
        widths = np.geomspace(waves.narrowest, 1.0, steps)
        sizes = [waves.sizes(float(width)) for width in widths]

        def bounded(probability: float) -> Callable[[float], float]:
            """Upper limit of the noise at every width, simultaneously with this probability."""
            single = np.array([largest_quantile(size, probability) for size in sizes])
            ratios = tuple(np.max([size[k] / s for size, s in zip(sizes, single, strict=True)], axis=0) for k in laws)
            limits = np.log(single * max(largest_quantile(ratios, probability), 1.0))
            return lambda x: float(np.exp(np.interp(np.log(max(x, 1e-300)), np.log(widths), limits)))

        laws = range(len(noise.laws))
        above, below = bounded((1 + level) / 2), bounded(level)
        candidates = np.geomspace(widths[0], 1.0, 4 * len(widths))
        low = max(min(x, smoothed_size(coefficients, x) - above(x)) for x in map(float, candidates))
        high = fixed_point(lambda x: smoothed_size(coefficients, x) + below(x))
        return max(low, 0.0), min(max(high, float(widths[0])), noise.largest)


@dataclass(frozen=True, eq=False)
class _NoiseWaves:
    """Draws of noise in the cosines of [0, 1], enough of them for a smallest width."""

    narrowest: float
    coefficients: tuple[Floats, ...]

    @classmethod
    def of(cls, noise: ResidualNoise, narrowest: float) -> _NoiseWaves:
        """Each cell is shared by the two nodes next to it."""
        from scipy.sparse import coo_array

        nodes = _nodes(narrowest)
        place = np.clip(noise.position, 0.0, 1.0) * nodes
        left = np.minimum(place.astype(np.intp), nodes - 1)
        cells, right = np.arange(len(place)), place - left
        values = np.concatenate([1 - right, right])
        shared = coo_array((values, (np.tile(cells, 2), np.concatenate([left, left + 1]))), (len(place), nodes + 1))
        to_nodes = shared.tocsr().T
        return cls(narrowest, tuple(cosines(np.ascontiguousarray((to_nodes @ law).T)) for law in noise.drawn()))

    def sizes(self, width: float) -> tuple[Floats, ...]:
        """Integral of the size of each smoothed draw."""
        count = min(_nodes(width) + 1, self.coefficients[0].shape[1])
        kept = np.exp(-((width * np.pi * np.arange(count)) ** 2) / 2)
        found = []
        for coefficients in self.coefficients:
            values = np.abs(at_nodes(coefficients[:, :count] * kept))
            found.append(values.sum(axis=1) - (values[:, 0] + values[:, -1]) / 2)
        return tuple(found)


def _nodes(width: float) -> int:
    """Nodes enough for this width; more than 2^14 are not needed, as no more cells have noise."""
    return int(np.clip(2 ** np.ceil(np.log2(NODES_PER_WIDTH / width)), 256, 2**14))


def _around(observed: float, sizes: tuple[Floats, ...], level: float, largest: float) -> tuple[float, float]:
    low = max(observed - largest_quantile(sizes, (1 + level) / 2), 0.0)
    return low, max(low, min(observed + largest_quantile(sizes, level), largest))


@dataclass(frozen=True)
class ChiSquareMixture:
    r"""Interval of the L2 error of the bins without resampling: what a test of the sum of squared gaps does not reject.

    With share :math:`s_k` and variance :math:`v_k` of the gap of bin k, the statistic :math:`\sum_k s_k g_k^2` is a
    mixture of non-central chi squares with weights :math:`s_k v_k`. Its mean, variance and skewness along multiples of
    the fitted gaps are known, and a gamma distribution with these moments gives its quantiles, both at zero error and
    far from it (there it is the normal interval of the debiased U-statistic). The sampling variance of the scores is
    added.

    The target is the error of the *binned* model, which is below the true error if the gap varies within bins.

    Parameters
    ----------
    bins : EqualWidth, EqualMass or Edges

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> data = cal.Binary(rng.random(1000) < 0.5 + 0.6 * (p - 0.5), p)
    >>> found = cal.interval(partial(cal.ece, norm=2), data, method=cal.inference.ChiSquareMixture(cal.EqualMass(10)))
    >>> found.interval.low > 0
    True
    """

    serves: ClassVar[str] = "error"

    bins: Cut | int = EqualMass(15)

    def interval(self, data: Predictions | BinTable, *, norm: float = 2, level: float = 0.95) -> Interval:
        """The interval for the L2 error."""
        if norm != 2:
            message = f"ChiSquareMixture is for the L2 norm, got norm={norm!r}; use Inversion() or IsotonicBand()."
            raise ValueError(message)
        if getattr(data, "group", None) is not None:
            fail("ChiSquareMixture needs independent rows, but these have a group; use Inversion().")
        risk = (1 - validation.fraction("level", level)) / 2
        some = binned(data, None, self.bins)[0].filled()
        gap, share = some.predicted_mean - some.observed_mean, some.share
        rows = some.population.effective_n
        floor = 0.25 / some.effective_count**2  # a bin with only one outcome is not free of noise
        variance = np.fmax(some.task.gap_variance(some) / share**2, floor)
        null_variance = np.clip(some.predicted_mean * (1 - some.predicted_mean), 0, None) / some.effective_count
        size = float(share @ gap**2)
        reach = float(np.sqrt(share @ (variance + null_variance)) / max(np.sqrt(size), 1e-300))
        multiples = np.linspace(0, 1 + 4 * min(reach, 1e6), 257)
        mix = np.minimum(multiples, 1.0)[:, None] ** 2  # at zero error the variance is that of a calibrated model
        spread = np.maximum((1 - mix) * null_variance + mix * variance, 1e-18)
        low, high = _quantiles(multiples[:, None] * gap, share, spread, rows, risk)
        kept = np.flatnonzero((low <= size) & (size <= high))
        truth = multiples * np.sqrt(size)
        ends = (float(truth[kept[0]]), float(truth[kept[-1]])) if len(kept) else (0.0, 0.0)
        words = "independent rows; the target is the error of the binned model; approximate in small bins"
        target = Target("binned error", 2)
        return Interval(*ends, level=level, method=repr(self), assumption=words, target=target)


def _quantiles(gaps: Floats, share: Floats, variance: Floats, rows: float, risk: float) -> tuple[Floats, Floats]:
    """Two quantiles of the sum of squares per row of true gaps, by a gamma distribution with the same three moments."""
    weights, centre = share * variance, gaps**2 / variance
    mean = (weights * (1 + centre)).sum(axis=1)
    second = 2 * (weights**2 * (1 + 2 * centre)).sum(axis=1)
    third = 8 * (weights**3 * (1 + 3 * centre)).sum(axis=1)
    squares = gaps**2
    sampled = ((squares - (squares @ share)[:, None]) ** 2 @ share) / rows
    total = second + sampled
    shape = 4 * total**3 / np.maximum(third**2, 1e-300)
    low, high = (mean + np.sqrt(total) * (gammaincinv(shape, at) - shape) / np.sqrt(shape) for at in (risk, 1 - risk))
    return low, high
