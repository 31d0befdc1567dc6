"""Reliability curves with a consistency band (of a calibrated model) and a confidence band (of the true curve)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrik, betaincinv, gammaincinv, ndtri

from calibrant.data import validation
from calibrant.data.forecasts import Forecast
from calibrant.data.predictions import Multiclass, Predictions, binary
from calibrant.data.validation import fail
from calibrant.estimators.binned import check_norm, weighted_norm
from calibrant.estimators.regression_common import ratio_variance, spread_table, table_kurtosis
from calibrant.inference.sample import MOST_CELLS, Sample, coarse_cells, pooled
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator
from calibrant.pu.binned_inference import reliability
from calibrant.results.estimate import Estimate, Interval, plain_fields
from calibrant.results.target import Target
from calibrant.table.binning import Binning, EqualMass
from calibrant.table.bintable import BinTable, binned
from calibrant.table.task import Gaps, Unlabeled, task_of

Kind = Literal["isotonic", "binned", "spread", "positive-unlabeled"]


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Observed against predicted, with a consistency band and a confidence band.

    Attributes
    ----------
    kind : {"isotonic", "binned", "spread", "positive-unlabeled"}
    predicted, observed : arrays
        One point per cell or bin, in the order of `predicted`. For "spread": root mean variance and RMSE.
    consistency_low, consistency_high : arrays
        Where the curve of a calibrated model lies with probability `level`, pointwise.
    confidence_low, confidence_high : arrays
        Confidence band of the true curve at `level`: simultaneous if `simultaneous`, else pointwise.
    share : array
        Share of the rows at each point.

    Examples
    --------
    >>> import calibrant as cal
    >>> curve = reliability_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    >>> curve.observed.tolist()
    [0.0, 0.5, 0.5, 1.0]
    >>> reliability_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], bins=cal.EqualWidth(2)).predicted.tolist()
    [0.25, 0.75]
    """

    kind: Kind
    predicted: Floats
    observed: Floats
    consistency_low: Floats
    consistency_high: Floats
    confidence_low: Floats
    confidence_high: Floats
    share: Floats
    level: float
    simultaneous: bool
    n: int

    def __repr__(self) -> str:
        return f"<ReliabilityCurve {self.kind!r}, {len(self.predicted)} points, n={self.n:_}>"

    @property
    def outside(self) -> float:
        """Share of the rows at whose score the curve leaves the consistency band; about 1 - level if calibrated."""
        out = (self.observed < self.consistency_low) | (self.observed > self.consistency_high)
        return float(self.share[out].sum())

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return plain_fields(self)

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the curve and both bands (needs matplotlib)."""
        from calibrant.plot import reliability_diagram

        return reliability_diagram(self, ax=ax, **style)


def reliability_curve(
    data: Predictions | BinTable | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    *,
    kind: Kind | None = None,
    bins: Binning | None = None,
    level: float = 0.95,
    draws: int = 200,
    seed: int = 0,
) -> ReliabilityCurve:
    """The data of a reliability diagram: isotonic (CORP) by default, binned if `bins` are given.

    The isotonic curve needs no bins and is the best increasing fit. Its consistency band comes from outcomes simulated
    as Y ~ Bernoulli(p), with the curve refitted to each sample; its confidence band is that of `IsotonicBand`, which is
    valid simultaneously at all scores for every n if the true curve is increasing (approximately, with weights), even
    if it jumps. Beyond 512 distinct scores neighbours share a cell and its band. Binned curves have binomial bands, bin
    by bin.

    Predicted distributions give RMSE against the root mean variance in bins of the spread; positive-unlabeled data the
    implied share of positives; both are binned (10 of equal mass by default).

    Parameters
    ----------
    data : Binary (or `data.top_label()`), Gaussian, Samples, Distribution, PositiveUnlabeled, fine BinTable, or y_true
        With plain arrays, `y_prob` comes next.
    kind : {"isotonic", "binned", "spread", "positive-unlabeled"}, optional
        For probabilities "isotonic" unless `bins` are given; the other tasks have only one kind.
    bins : Binning, optional
        10 of equal mass by default.
    level : float in (0, 1)
    draws, seed : int
        Number of simulated samples for the consistency band of the isotonic curve, and their seed.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers (CORP).

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> curve = reliability_curve(rng.random(1000) < p**2, p)
    >>> curve
    <ReliabilityCurve 'isotonic', 512 points, n=1_000>
    >>> curve.outside > 0.5, bool(np.all(np.diff(curve.observed) >= 0))
    (True, True)
    """
    level = validation.fraction("level", level)
    validation.whole("draws", draws, minimum=2)
    validation.seed(seed)
    task = data if isinstance(data, BinTable) else binary(data, y_prob)
    wanted: Kind = "isotonic" if bins is None else "binned"
    if isinstance(task, Forecast):
        wanted = "spread"
    elif isinstance(task_of(task), Unlabeled):
        wanted = "positive-unlabeled"
    if wanted == "binned" and kind == "isotonic":
        fail("The isotonic curve has no bins; leave out bins=, or pass kind='binned'.", ValueError)
    wanted = "binned" if wanted == "isotonic" and kind == "binned" else wanted
    if kind not in (None, wanted):
        fail(f"kind must be {wanted!r} (or None) for {task!r}, got {kind!r}.", ValueError)
    if wanted == "isotonic":
        return _isotonic(task, level, draws, seed)
    made: dict[str, Callable[[Any, Binning, float], ReliabilityCurve]] = {
        "binned": _binned,
        "spread": _of_spread,
        "positive-unlabeled": _of_positives,
    }
    return made[wanted](task, EqualMass(10) if bins is None else bins, level)


def class_tables(
    data: Multiclass, *, bins: Binning = EqualMass(10), classes: Sequence[Any] | None = None
) -> dict[str, BinTable]:
    """The table of the top label, then one per class against the rest.

    The data of `calibrant.plot.class_panels`.

    Examples
    --------
    >>> data = Multiclass([0, 1, 2], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    >>> list(class_tables(data, classes=[0, 2]))
    ['top label', '0', '2']
    """
    tasks = data.one_vs_rest()
    wanted = tuple(tasks) if classes is None else tuple(classes)
    found = {"top label": BinTable.of(data.top_label(), bins)}
    return found | {str(name): BinTable.of(tasks[name], bins) for name in wanted}


@dataclass(frozen=True, eq=False)
class ConfidenceGaps:
    """Per bin: its bounds, its share of the rows, and its overconfidence (underconfidence where negative).

    A prediction above 1/2 is overconfident where fewer events are observed, one below 1/2 where more are.

    Examples
    --------
    >>> gaps = ConfidenceGaps(np.array([0.0, 0.5]), np.array([0.5, 1.0]), np.array([0.5, 0.5]), np.array([-0.2, 0.1]))
    >>> gaps.over, gaps.under
    (0.05, 0.1)
    """

    low: Floats
    high: Floats
    share: Floats
    gap: Floats

    @property
    def over(self) -> float:
        """Overconfidence: the share-weighted sum of the gaps above zero."""
        return float(self.share @ np.maximum(self.gap, 0.0))

    @property
    def under(self) -> float:
        """Underconfidence; with `over` it adds up to the binned ECE."""
        return float(self.share @ np.maximum(-self.gap, 0.0))


def confidence_gaps(result: Estimate | BinTable, *, top_label: bool = False) -> ConfidenceGaps:
    """Over- and underconfidence per bin, from a table of bins or an estimate that keeps one.

    With `top_label` the scores are confidences of the predicted class: overconfident where fewer predictions are
    correct. The data of `calibrant.plot.confidence_strip`.

    Examples
    --------
    >>> import calibrant as cal
    >>> confidence_gaps(cal.ece([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.9, 0.9, 0.9, 0.9], bins=cal.EqualWidth(2))).gap
    array([-0.2 ,  0.15])
    """
    table = result.bins if isinstance(result, Estimate) else result
    if table is None or table.fine:
        fail(f"{result!r} has no bins; pass an estimate such as ece(data), or table.coarsen(...).", ValueError)
    some = table.filled()
    gap = some.observed_mean - some.predicted_mean
    if top_label:
        return ConfidenceGaps(some.low, some.high, some.share, -gap)
    gap = np.where(some.predicted_mean > 0.5, -gap, gap)
    gap = np.where(some.predicted_mean == 0.5, -np.abs(gap), gap)  # 1/2 cannot be overconfident
    return ConfidenceGaps(some.low, some.high, some.share, gap)


def _isotonic(data: Predictions | BinTable, level: float, draws: int, seed: int) -> ReliabilityCurve:
    table = _points(Sample.of(data, needed_by="reliability_curve").table)
    predicted, weight = table.predicted_mean, table.weight
    rng = generator(seed, "consistency band")
    count = np.maximum(np.floor(table.effective_count + 1e-9), 1).astype(np.int64)
    drawn = rng.binomial(count, np.clip(predicted, 0, 1), (draws, len(predicted))) / count
    null = np.array([_rising(line, weight) for line in drawn])
    low, high = np.quantile(null, [(1 - level) / 2, (1 + level) / 2], axis=0)
    band, observed = band_of(table, level), _rising(table.observed_mean, weight)
    bands = low, high, *band.inside()
    return ReliabilityCurve("isotonic", predicted, observed, *bands, table.share, level, simultaneous=True, n=table.n)


def _points(table: BinTable) -> BinTable:
    """At most about 512 cells of neighbouring scores; a score that holds the share of a cell is one of its own."""
    coarse = coarse_cells(table)
    alone = of_one_score(table) & (table.count > 1) & (table.share >= 1 / MOST_CELLS)
    if len(table) <= MOST_CELLS or not alone.any():
        return coarse
    number = np.floor((np.cumsum(table.share) - table.share / 2) * MOST_CELLS)
    starts = np.append(True, (np.diff(number) > 0) | alone[1:] | alone[:-1]).nonzero()[0]
    sums = np.add.reduceat(table.sums, starts, axis=1)
    key = sums[3] / sums[1]
    return replace(coarse, key=key, low=key, high=key, sums=sums)


def _rising(values: Floats, weight: Floats) -> Floats:
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, weights=weight).x, dtype=np.float64)


def _binned(data: Predictions | BinTable, bins: Binning, level: float) -> ReliabilityCurve:
    some = binned(data, None, bins)[0].filled()
    predicted, observed, count = some.predicted_mean, some.observed_mean, some.effective_count
    risk = (1 - level) / 2
    probability = np.clip(predicted, 1e-15, 1 - 1e-15)
    band = [np.clip(np.ceil(bdtrik(at, count, probability) - 1e-9), 0, count) / count for at in (risk, 1 - risk)]
    bands = band[0], band[1], *clopper_pearson(observed * count, count, risk)
    return ReliabilityCurve("binned", predicted, observed, *bands, some.share, level, simultaneous=False, n=some.n)


def _of_spread(data: Forecast, bins: Binning, level: float) -> ReliabilityCurve:
    """The mean square of a bin has nearly a gamma distribution, with a variance given by the kurtosis."""
    table = spread_table(data, None, None, bins, needed_by="reliability_curve")[0]
    some = table.filled()
    shape = 1 / np.maximum(ratio_variance(some, max(table_kurtosis(table), 1 + 1e-9)), 1e-12)
    low, high = (np.sqrt(gammaincinv(shape, (1 + side * level) / 2) / shape) for side in (-1, 1))
    spread, error = np.sqrt(some.predicted_mean), np.sqrt(some.observed_mean)
    bands = spread * low, spread * high, error / high, error / low
    return ReliabilityCurve("spread", spread, error, *bands, some.share, level, simultaneous=False, n=table.n)


def _of_positives(data: Any, bins: Binning, level: float) -> ReliabilityCurve:
    table = binned(data, None, bins)[0]
    found = reliability(table, level=level)
    gaps = Gaps.of(table)
    some = gaps.share > 0
    error = np.sqrt(np.maximum(np.diag(gaps.null_covariance()), 0.0))[some] / gaps.share[some]
    reach = float(ndtri((1 + level) / 2)) * error
    predicted = found.predicted
    points = predicted, found.rate, np.maximum(predicted - reach, 0.0), predicted + reach, found.low, found.high
    return ReliabilityCurve("positive-unlabeled", *points, found.share, level, simultaneous=False, n=table.n)


#: Beyond this many cells neighbouring scores are pooled; more blocks would only widen the band.
#: Test: tests/inference/test_reliability_bands.py::test_more_scores_than_4096_are_pooled.
BAND_CELLS = 4096

#: Variance of the scores of a cell, relative to their squared mean, that counts as none. Derived: sums of squares are
#: rounded at 1e-16 times their number of rows.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Band:
    """Simultaneous bounds on the curve at `level`, per cell of scores with their lowest and highest score.

    `lower` bounds the mean of the curve over the cell, and so its value at the highest score, from below, and `upper`
    the mean and the value at the lowest score from above.

    Examples
    --------
    >>> import calibrant as cal
    >>> band = isotonic_band(cal.Binary([0, 1] * 100, [0.2, 0.9] * 100))
    >>> band.low_score.tolist(), band.upper[0].round(2).tolist(), band.lower[1].round(2).tolist()
    ([0.2, 0.9], 0.05, 0.95)
    """

    low_score: Floats
    high_score: Floats
    share: Floats
    lower: Floats
    upper: Floats
    single: NDArray[np.bool_]
    level: float

    def inside(self) -> tuple[Floats, Floats]:
        """Bounds on the curve at every score of a cell.

        An increasing curve can jump within a cell of several scores, so these are the lower bound of the cell before
        and the upper one of the cell after. A cell of one score has its own.
        """
        before, after = np.append(0.0, self.lower[:-1]), np.append(self.upper[1:], 1.0)
        return np.where(self.single, self.lower, before), np.where(self.single, self.upper, after)

    def error(self, norm: float) -> tuple[float, float]:
        """Smallest and largest error, over the scores of the sample, of any curve in the band."""
        nearest = np.maximum(0.0, np.maximum(self.lower - self.high_score, self.low_score - self.upper))
        lower, upper = self.inside()
        farthest = np.maximum(self.high_score - lower, upper - self.low_score)
        return weighted_norm(nearest, self.share, norm), weighted_norm(farthest, self.share, norm)


@dataclass(frozen=True)
class IsotonicBand:
    r"""Lower and upper bounds on the error in any norm, exact for every n, if the true curve rises with the score.

    If the curve c rises, the number of events in a block of scores is stochastically at most binomial with the
    probability at its right end, and at least with that at its left end. So Clopper-Pearson limits of blocks bound the
    curve,

    .. math:: \max_{[j,k]:\,s_k \le s} L(j,k) \;\le\; c(s) \;\le\; \min_{[j,k]:\,s_j \ge s} U(j,k),

    for all s simultaneously if each limit has an error probability of α/2 divided by the number of blocks. Blocks have
    1, 2, 4, ... cells and overlap by half. The bounds on the error take the nearest and the farthest value in the band
    at each score. The interval is for the error over the scores of the sample.

    References
    ----------
    Dimitriadis, Dümbgen, Henzi, Puke, Ziegel (2022), Honest calibration assessment for binary outcome predictions.

    Examples
    --------
    >>> import calibrant as cal
    >>> str(cal.interval(cal.mce, [0, 1] * 100, [0.2, 0.9] * 100, method=IsotonicBand()).interval)
    '[0.1505, 0.2]'
    """

    serves: ClassVar[str] = "error"

    def interval(self, data: Predictions | BinTable, *, norm: float = 1, level: float = 0.95) -> Interval:
        """The interval for the true L_norm calibration error (infinity is allowed)."""
        norm = check_norm(norm)
        low, high = isotonic_band(data, level=level).error(norm)
        words = "independent rows; a rising calibration curve; exact for any n, for the scores of the sample"
        target = Target("true error", norm)
        return Interval(low, high, level=level, method=repr(self), assumption=words, target=target)


def isotonic_band(data: Predictions | BinTable, *, level: float = 0.95) -> Band:
    """The band itself; see `IsotonicBand`.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> band = isotonic_band(cal.Binary(rng.random(1000) < p, p))
    >>> bool(np.all((band.lower <= band.low_score) & (band.high_score <= band.upper)))
    True
    """
    level = validation.fraction("level", level)
    return band_of(counted_table(data, needed_by="IsotonicBand", instead="Inversion()"), level)


def counted_table(data: Predictions | BinTable, *, needed_by: str, instead: str) -> BinTable:
    """The fine table of independent rows of weight 1; others raise an error that says what to use instead."""
    if getattr(data, "group", None) is not None:
        fail(f"{needed_by} needs independent rows, but these have a group; use {instead}.")
    table = Sample.of(data, needed_by=needed_by).table
    if not np.array_equal(table.weight, table.count):
        fail(f"{needed_by} counts outcomes, so it does not support weighted rows; use {instead}.")
    return table


def band_of(table: BinTable, level: float) -> Band:
    """The band of a fine table; with weights it uses effective counts and is approximate."""
    table = pooled(table, BAND_CELLS)
    count = table.effective_count
    lower, upper = _bounds(count, table.observed_mean * count, 1 - level)
    return Band(table.low, table.high, table.share, lower, upper, of_one_score(table), level)


def of_one_score(table: BinTable) -> NDArray[np.bool_]:
    """Whether all scores of a cell are the same, by the spread of its scores."""
    mean = table.predicted_mean
    spread = table.predicted_squares / table.weight - mean**2
    return np.where(np.isfinite(spread), spread <= _ROUNDING * mean**2, table.low == table.high)


def _bounds(count: Floats, hits: Floats, risk: float) -> tuple[Floats, Floats]:
    """Per cell the largest lower limit of blocks up to it and the smallest upper limit of blocks from it on."""
    cells = len(count)
    rows, positives = np.append(0.0, np.cumsum(count)), np.append(0.0, np.cumsum(hits))
    start, end = blocks(cells)
    low, high = clopper_pearson(positives[end] - positives[start], rows[end] - rows[start], risk / (2 * len(start)))
    lower, upper = np.zeros(cells), np.ones(cells)
    np.maximum.at(lower, end - 1, low)
    np.minimum.at(upper, start, high)
    return np.maximum.accumulate(lower), np.minimum.accumulate(upper[::-1])[::-1]


def blocks(cells: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Starts and ends of blocks of 1, 2, 4, ... cells that overlap by half."""
    starts, ends, size = [], [], 1
    while size <= cells:
        start = np.arange(0, cells - size + 1, max(size // 2, 1))
        starts.append(start)
        ends.append(start + size)
        size *= 2
    starts.append(np.array([0]))
    ends.append(np.array([cells]))
    return np.concatenate(starts), np.concatenate(ends)


def clopper_pearson(hits: Floats, count: Floats, risk: float) -> tuple[Floats, Floats]:
    """One-sided confidence limits of a binomial probability, each wrong with a probability of at most `risk`."""
    some, missed = hits > 1e-9 * count, count - hits > 1e-9 * count
    low = np.where(some, betaincinv(np.where(some, hits, 1.0), count - hits + 1, risk), 0.0)
    high = np.where(missed, betaincinv(hits + 1, np.where(missed, count - hits, 1.0), 1 - risk), 1.0)
    return low, high
