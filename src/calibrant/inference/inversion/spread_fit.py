r"""What the inversion for predicted spreads fits: cells of spreads, the relative gap, its noise.

With :math:`r(\sigma)^2 = \mathrm E[e^2 \mid \sigma] / \sigma^2` the gap is :math:`\eta = \log r^2`, zero where the
spread is right. On the log scale the noise of the fit does not depend on the truth, so it is simulated once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from calibrant.data.forecasts import Forecast
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.estimators.regression_common import normal_scores, spread_rows
from calibrant.inference.sample import row_clusters
from calibrant.numerics import inversion as engine
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import all_alike
from calibrant.table.bintable import BinTable, fine

#: Below the first number of effective clusters nothing is claimed about forecasts; below the second the assumption of
#: an interval says that there are few.
#: Test: tests/inference/test_forecast_intervals.py::test_nothing_is_claimed_of_fewer_than_six_effective_clusters.
LEAST_EFFECTIVE, FEW_EFFECTIVE = 6, 20


@dataclass(frozen=True, eq=False)
class ForecastClusters:
    """Clusters of forecasts: the share of each row and cluster in the weight, and how alike standardised errors are.

    A few clusters that happen to agree seem to know more than they do: no result counts as more certain than for normal
    errors with the correlation ρ within clusters that was seen. Squares of such errors have the correlation ρ².
    """

    label: NDArray[np.intp]
    share: Floats
    size: Floats
    correlation: float

    @classmethod
    def of(cls, label: NDArray[np.intp], weight: Floats | None, z: Floats) -> ForecastClusters:
        """From cluster numbers, weights and standardised errors of rows."""
        weight = np.ones(len(label)) if weight is None else weight
        share = weight / weight.sum()
        size: Floats = np.bincount(label, share).astype(np.float64, copy=False)
        return cls(label, share, size, _likeness(label, share, z))

    @property
    def effective(self) -> float:
        """Kish's number of clusters."""
        return round(1 / float(self.size @ self.size), 9)  # that of equal clusters is a whole number

    def normal_rows(self, correlation: float) -> float:
        """The number of independent rows that tell as much as rows with this correlation within clusters."""
        rows, clusters = float(self.share @ self.share), float(self.size @ self.size)
        return 1 / (rows + correlation * (clusters - rows))

    def require_enough(self) -> None:
        """Refuse to claim anything about very few clusters."""
        if self.effective < LEAST_EFFECTIVE:
            fail(
                f"The rows are {len(self.size):,} clusters that count as {self.effective:.1f} equal ones, too few for "
                f"an interval: at least {LEAST_EFFECTIVE} are needed, since rows of a cluster depend on each other."
            )

    @property
    def words(self) -> str:
        """What an assumption says of them, with a semicolon after it; empty where they are many."""
        return f"few clusters ({self.effective:.0f}); " if self.effective < FEW_EFFECTIVE else ""

    def reach(self, level: float) -> float:
        """The two-sided quantile of Student's distribution, with one degree of freedom less than clusters."""
        return float(stdtrit(max(self.effective - 1, 1.0), (1 + level) / 2))


def forecast_clusters(data: Forecast, rows: int) -> ForecastClusters | None:
    """The clusters of `rows` forecasts and how alike their errors are; None if rows are independent."""
    labels = row_clusters(data, rows)
    return None if labels is None else ForecastClusters.of(labels, data.flat_weight, normal_scores(data))


def _likeness(label: NDArray[np.intp], share: Floats, z: Floats) -> float:
    """The correlation within clusters of z, or the root of that of z², the larger, between 0 and 1."""
    size = np.bincount(label, share)
    pairs = float(size @ size - share @ share)
    second = float(share @ z**2)
    if pairs <= 1e-12 * float(size @ size) or second == 0:
        return 0.0
    found = []
    for values in (z, z**2 / second - 1):
        sums = np.bincount(label, share * values)
        together = float(sums @ sums - (share**2) @ values**2) / pairs
        found.append(together / max(float(share @ values**2), 1e-300))
    alike, squared = np.clip(found, 0.0, 1.0)
    return float(max(alike, np.sqrt(squared)))


#: Below this many rows per unit of excess kurtosis, or with this share of the fourth moment in one row and a power law
#: of index below 4, errors that are not in the sample decide. That share falls with the number of rows beyond these as
#: a power of it: so it does if the fourth moment is finite, and hardly otherwise.
#: Test: tests/inference/inversion/test_binary_constants.py.
ENOUGH, DOMINATED, DOMINATED_ROWS, FALLING = 20.0, 0.2, 1000, 0.3


@dataclass(frozen=True, eq=False)
class SpreadCells:
    r"""Sums of :math:`z^2 = (y-\mu)^2/\sigma^2` over the rows of each distinct spread, in ascending order.

    Of the rows' shares of the weight and their squares, of share times z² (`second`) and z⁴ (`fourth`), and the largest
    single term of the last two, or a bound on it. `tail_index` is that of `_tail_index`. The arrays of rows (cell,
    share, z², cluster number) are only those of clustered or weighted rows, or if asked for.
    """

    n: int
    sigma: Floats
    share: Floats
    share_squares: Floats
    second: Floats
    fourth: Floats
    largest: Floats
    largest_fourth: Floats
    tail_index: float = np.inf
    cell: NDArray[np.intp] | None = None
    row_share: Floats | None = None
    row_second: Floats | None = None
    cluster: NDArray[np.intp] | None = None
    clusters: ForecastClusters | None = None

    @classmethod
    def of(cls, data: Forecast | BinTable, *, needed_by: str, keep_rows: bool = False) -> SpreadCells:
        """From forecasts that have a standard deviation, or a fine table of them."""
        if isinstance(data, BinTable):
            return cls._of_table(fine(data, None, needed_by=needed_by, spread=True))
        rows = spread_rows(data, needed_by=needed_by)
        weight = np.ones(len(rows.key)) if rows.weight is None else rows.weight
        some = np.flatnonzero(weight > 0)
        some = some[np.argsort(rows.key[some], kind="stable")]
        sigma, share = rows.key[some].astype(np.float64), weight[some] / weight[some].sum()
        second = rows.observed[some] / rows.predicted[some]
        starts = np.flatnonzero(np.diff(sigma, prepend=-1.0))
        first, fourth = share * second, share * second**2
        cluster, clusters = row_clusters(data, len(weight)), None
        if cluster is not None:
            sign = np.sign(data.y_true - data.mean).ravel()[some]  # type: ignore[attr-defined]  # they have a spread
            label = np.unique(cluster[some], return_inverse=True)[1]
            clusters = ForecastClusters.of(label, weight[some], sign * np.sqrt(second))
        if cluster is None and (keep_rows or not all_alike(rows.weight)):
            cluster = np.arange(len(weight))
        clustered = cluster is not None
        cell = engine.pool_numbers(starts, len(some)) if clustered else None
        return cls(
            n=len(weight),
            sigma=sigma[starts],
            share=np.add.reduceat(share, starts),
            share_squares=np.add.reduceat(share**2, starts),
            second=np.add.reduceat(first, starts),
            fourth=np.add.reduceat(fourth, starts),
            largest=np.maximum.reduceat(first, starts),
            largest_fourth=np.maximum.reduceat(fourth, starts),
            tail_index=_tail_index(second),
            cell=cell,
            row_share=share if clustered else None,
            row_second=second if clustered else None,
            cluster=None if cluster is None else np.unique(cluster[some], return_inverse=True)[1],
            clusters=clusters,
        )

    @classmethod
    def _of_table(cls, table: BinTable) -> SpreadCells:
        table, total = table.filled(), table.total
        variance = table.predicted_mean
        share, second = table.weight / total, table.observed / variance / total
        fourth = table.observed_squares / variance**2 / total
        # One term is at most the whole sum, and at most the root of the heaviest row's share times the sum of squares.
        alike = np.isclose(table.weight**2, table.count * table.weight_squares, rtol=1e-9, atol=0)
        heaviest = np.where(alike, table.weight / table.count, np.sqrt(table.weight_squares)) / total
        return cls(
            n=table.n,
            sigma=np.sqrt(variance),
            share=share,
            share_squares=table.weight_squares / total**2,
            second=second,
            fourth=fourth,
            largest=np.minimum(second, np.sqrt(fourth * heaviest)),
            largest_fourth=fourth,
        )

    @property
    def effective_n(self) -> float:
        """Kish's effective number of rows."""
        return 1 / float(self.share_squares.sum())

    @property
    def mean_square(self) -> float:
        """The mean of z²."""
        return float(self.second.sum())

    @property
    def largest_share(self) -> float:
        """The share of the largest term (of a row, or of a cluster) in the sum of z²."""
        if self.cluster is None or self.row_share is None or self.row_second is None:
            return float(self.largest.max()) / self.mean_square
        return float(np.bincount(self.cluster, self.row_share * self.row_second).max()) / self.mean_square

    def heavy_tails(self, size: float, kurtosis: float) -> bool:
        """Whether errors not in the sample may decide: too few rows for this kurtosis, or it seems to be infinite."""
        share = DOMINATED * min(1.0, (DOMINATED_ROWS / size) ** FALLING)
        infinite = self.tail_index < 4 and float(self.largest_fourth.max()) > share * float(self.fourth.sum())
        return infinite or size < ENOUGH * (kurtosis - 1)


def _tail_index(squares: Floats) -> float:
    """An upper bound (90 %) on the index of the power law of the largest errors, by Hill; infinite if unknown."""
    count = max(10, round(np.sqrt(len(squares))))
    if len(squares) < 3 * count:
        return float(np.inf)
    top = np.partition(squares, len(squares) - count - 1)[-count - 1 :]
    excess = float(np.log(top / max(float(top.min()), 1e-300)).sum()) / 2
    return count / excess * (1 + 1.28 / np.sqrt(count)) if excess > 0 else float(np.inf)


#: Most cells into which neighbouring spreads are pooled. At either end log sigma is cut off at this share of the rows,
#: or at this many rows per unit of excess kurtosis if they are fewer.
#: Test: tests/inference/inversion/test_binary_constants.py.
CELLS, TRIMMED, TRIMMED_ROWS = 96, 0.03, 10.0

#: Knots of the fit are 1 + 0.8 log(2N / (kurtosis - 1)), with at least 4 (kurtosis - 1) rows each.
#: Test: tests/inference/inversion/test_binary_constants.py.
KNOTS, ROWS_PER_KNOT = (1.0, 0.8), 4.0

#: Standard errors by which the gap must differ from zero at two knots, of opposite signs and at most so many steps
#: apart, for a jump between them to be allowed for. Test: tests/inference/inversion/test_binary_constants.py.
CLEAR, APART = 2.0, 2

#: Knots are doubled as long as a test for what the fit leaves over, at this significance, rejects.
#: Test: tests/inference/inversion/test_binary_constants.py.
ROUGH = 0.2


def missing_mass(kurtosis: float, largest_share: float) -> float:
    """How much too low the log mean square may be: the largest term may be missing 1.5 to 3 times, by the kurtosis."""
    return max(1.5, 3 * (kurtosis - 1) / (kurtosis + 3)) * largest_share


#: What is said of outcomes that all equal their predicted means.
NO_ERRORS = (
    "y_true equals the predicted mean in all {n} rows, so the size of the errors is unknown: no interval or test can "
    "be given. Check that y_true and mean are different columns."
)


def require_errors(cells: SpreadCells) -> None:
    """Refuse outcomes that all equal their predicted means."""
    if cells.mean_square <= 0:
        raise InvalidPredictions(NO_ERRORS.format(n=cells.n))


@dataclass(frozen=True, eq=False)
class SpreadFit:
    """Log ratio of squared error and variance, piecewise linear in the place of sigma.

    Of the pooled cells: share of the weight, mean σ², and functions `half` that are orthonormal under the share. `gap`
    is the fit, a combination of these; `shape` a smoother one, `straight` a line, `stepped` one that jumps wherever the
    fit clearly changes sign, `finer` gap and noise with twice as many knots, `noise` simulated errors (draws, cells).
    `excess` is the mean of e² - σ² times the share, `excess_error` the standard error of its sum with any signs;
    `effective_n` Kish's number of rows over the design effect of clusters; `kurtosis` that of errors in units of the
    fitted spread, allowing for what is `missing`; `pool` the pooled cell of each distinct spread.
    """

    share: Floats
    variance: Floats
    half: Floats
    gap: Floats
    shape: Floats
    straight: Floats
    noise: Floats
    stepped: Floats
    finer: tuple[Floats, Floats] | None
    excess: Floats
    excess_error: float
    effective_n: float
    kurtosis: float
    missing: float
    heavy_tails: bool
    pool: NDArray[np.intp]

    @classmethod
    def of(cls, cells: SpreadCells, draws: int, rng: np.random.Generator) -> SpreadFit:
        """The fit of these cells, with simulated noise."""
        require_errors(cells)
        place = _places(cells)
        starts = engine.pool_starts(place, CELLS)
        share = np.add.reduceat(cells.share, starts)
        pools = _Pools(
            share,
            np.add.reduceat(cells.share * place, starts) / share,
            np.add.reduceat(cells.second, starts) / share,
        )
        pool = engine.pool_numbers(starts, len(place))
        half, knots = _basis(cells, pools)
        kurtosis, design_effect = _law(cells, pools.fit(half)[pool], half.shape[1])
        effective_n = cells.effective_n / design_effect
        count = share**2 / np.add.reduceat(cells.share_squares, starts) / design_effect
        gamma = np.maximum(count / (kurtosis - 1), 1e-3)
        drawn = rng.standard_gamma(gamma, (draws, len(gamma))) / gamma
        half, knots, gap, noise, finer = _resolved(pools, half, knots, drawn, effective_n / (kurtosis - 1))
        smooth, straight = (
            pools.fit(engine.orthonormal_hats(pools.center, share, min(knots, some)))
            for some in (engine.whole_knots(engine.SHAPE_KNOTS * knots), 2)
        )
        squares = cells.sigma**2 * np.exp(gap[pool])
        return cls(
            share=share,
            variance=np.add.reduceat(cells.share * cells.sigma**2, starts) / share,
            half=half,
            gap=gap,
            shape=smooth,
            straight=straight,
            noise=noise,
            stepped=_stepped(pools.center, gap, noise.std(axis=0), knots) if half.shape[1] == knots > 1 else gap,
            finer=finer,
            excess=np.add.reduceat((cells.second - cells.share) * cells.sigma**2, starts),
            excess_error=float(np.sqrt((kurtosis - 1) * design_effect * (cells.share_squares @ squares**2))),
            effective_n=effective_n,
            kurtosis=kurtosis,
            missing=missing_mass(kurtosis, cells.largest_share),
            heavy_tails=cells.heavy_tails(effective_n, kurtosis),
            pool=pool,
        )

    @cached_property
    def noise_size(self) -> float:
        """Root mean square of the noise of the fit."""
        return float(np.sqrt(self.share @ self.noise.var(axis=0)))


def log_ratio_fit(half: Floats, share: Floats, ratio: Floats, steps: int = 25) -> Floats:
    """Log of the mean ratio, per row: the root of half' share (ratio exp(-fit) - 1) = 0, with unit information."""
    ratio = np.atleast_2d(ratio)
    one, weighted = half.T @ share, half * share[:, None]
    found = np.log(np.maximum(ratio @ share, 1e-300))[:, None] * one
    for _ in range(steps):
        step = (ratio * np.exp(-found @ half.T)) @ weighted - one
        found = found + step / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1.0)
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(found @ half.T)


def _places(cells: SpreadCells) -> Floats:
    """Mean of mid-rank and of log sigma without its outer ends, both in [0, 1]."""
    rank, logarithm = engine.mid_ranks(cells.share), np.log(cells.sigma)
    trimmed = min(TRIMMED, TRIMMED_ROWS * (_kurtosis(cells) - 1) / cells.effective_n)
    low, high = np.interp([trimmed, 1 - trimmed], rank, logarithm)
    return (engine.unit_scaled(rank) + engine.unit_scaled(logarithm, float(low), float(high))) / 2


def _kurtosis(cells: SpreadCells) -> float:
    """Of the errors in units of the predicted spread, before any fit."""
    return max(float(cells.fourth.sum()) / cells.mean_square**2, 1.2)


@dataclass(frozen=True, eq=False)
class _Pools:
    """Share of the weight, mean place and mean ratio of z² of each pooled cell."""

    share: Floats
    center: Floats
    ratio: Floats

    def fit(self, half: Floats) -> Floats:
        return log_ratio_fit(half, self.share, self.ratio)[0]


def _basis(cells: SpreadCells, pools: _Pools) -> tuple[Floats, int]:
    """Orthonormal functions of the pooled cells, and the number of knots; one level per spread where there are few."""
    share, size, excess = pools.share, cells.effective_n, _kurtosis(cells) - 1
    if len(cells.sigma) == 1:
        return np.ones((1, 1)), 1
    base, slope = KNOTS
    knots = engine.whole_knots(base + slope * np.log(max(2 * size / max(excess, 0.5), 3.0)))
    while knots > 2 and not _enough_rows(pools, knots, size / excess):
        knots -= 1
    few = len(cells.sigma) == len(share) <= 2 * knots
    if few and share.min() * size >= ROWS_PER_KNOT * excess:
        return np.diag(1 / np.sqrt(share)), knots
    return engine.orthonormal_hats(pools.center, share, knots), knots


def _resolved(
    pools: _Pools, half: Floats, knots: int, drawn: Floats, rows: float
) -> tuple[Floats, int, Floats, Floats, tuple[Floats, Floats] | None]:
    """The fit and its noise with as many knots as the data ask for, and with twice as many where there are rows."""
    share = pools.share
    gap, noise, finer = pools.fit(half), log_ratio_fit(half, share, drawn), None
    while half.shape[1] == knots > 2 and 4 * knots <= len(share) and _enough_rows(pools, 2 * knots - 1, rows):
        double = engine.orthonormal_hats(pools.center, share, 2 * knots - 1)
        finer = pools.fit(double), log_ratio_fit(double, share, drawn)
        if not _misfit(share * (pools.ratio * np.exp(-gap) - 1), share * (drawn * np.exp(-noise) - 1)):
            break
        half, knots, (gap, noise), finer = double, 2 * knots - 1, finer, None
    return half, knots, gap, noise, finer


def _stepped(center: Floats, gap: Floats, error: Floats, knots: int) -> Floats:
    """The gap with a jump, which a fit makes a slope, half-way between knots at which it clearly has opposite signs."""
    at = np.linspace(0, 1, knots)
    value = np.interp(at, center, gap)
    clear = np.flatnonzero(np.abs(value) > CLEAR * np.interp(at, center, error))
    found = gap.copy()
    for first, last in pairwise(clear):
        if value[first] * value[last] < 0 and last - first <= APART:
            between = (center > at[first]) & (center < at[last])
            nearer = center[between] < (at[first] + at[last]) / 2
            found[between] = np.where(nearer, value[first], value[last])
    return found


def _enough_rows(pools: _Pools, knots: int, rows: float) -> bool:
    """Whether each of so many knots has rows enough, in units of the excess kurtosis."""
    return float((pools.share @ engine.hat_functions(pools.center, knots)).min()) * rows >= ROWS_PER_KNOT


def _misfit(residual: Floats, drawn: Floats) -> bool:
    """Whether some run of 1, 2, 4, ... neighbouring cells lies off the fit by more than noise explains."""
    largest, by_chance, length = 0.0, np.zeros(len(drawn)), 1
    running = [np.cumsum(np.insert(values, 0, 0.0, axis=-1), axis=-1) for values in (residual, drawn)]
    while 2 * length <= len(residual):
        starts = np.arange(0, len(residual) - length + 1, max(length // 2, 1))
        seen, noise = (values[..., starts + length] - values[..., starts] for values in running)
        spread = np.sqrt((noise**2).mean(axis=0)) + 1e-300
        largest = max(largest, float((np.abs(seen) / spread).max()))
        by_chance = np.maximum(by_chance, (np.abs(noise) / spread).max(axis=1))
        length *= 2
    return largest > float(np.quantile(by_chance, 1 - ROUGH))


def _law(cells: SpreadCells, gap: Floats, freedom: int) -> tuple[float, float]:
    """Kurtosis of the errors about the fit, raised by what may be missing, and the design effect of clusters."""
    size, scale = cells.effective_n, np.exp(-gap)
    fourth = float(cells.fourth @ scale**2)
    kurtosis = max(fourth / float(cells.second @ scale) ** 2, 1.2)
    largest = float((cells.largest_fourth * scale**2).max()) / fourth
    raised = 1 + (kurtosis - 1) * size / max(size - freedom, 1.0) * (1 + largest)
    if cells.cluster is None or cells.cell is None or cells.row_share is None or cells.row_second is None:
        return raised, 1.0
    error = cells.row_share * (cells.row_second * scale[cells.cell] - 1)
    together = float((np.bincount(cells.cluster, error) ** 2).sum()) / float(error @ error)
    if cells.clusters is not None:
        together = max(together, size / cells.clusters.normal_rows(cells.clusters.correlation**2))
    return raised, max(together, 1.0)
