"""`calibration_test`: is the model calibrated? With the default test of binary predictions, `MultiScale`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.forecasts import Forecast
from calibrant.data.predictions import Binary, Column, Columns, Multiclass, Predictions, binary
from calibrant.data.validation import fail
from calibrant.inference.classical_tests import Cox, HosmerLemeshow, KernelTest, KolmogorovSmirnov, Spiegelhalter
from calibrant.inference.clustered_scores import ClusteredScore
from calibrant.inference.forecast_tests import ForecastTest
from calibrant.inference.forecasts import MeanSquaredZ, Moments, PitUniformity, SpreadChiSquare
from calibrant.inference.learned_bounds import LearnedTest
from calibrant.inference.multiclass_tests import VectorTest
from calibrant.inference.multiplicity import cauchy_combined, rank_p, rank_p_values
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats, accumulate_rows
from calibrant.numerics.cells import PooledCells
from calibrant.numerics.random_draws import generator
from calibrant.pu.binned_inference import PUScore
from calibrant.results.estimate import Significance
from calibrant.results.target import takes_columns
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import Data
from calibrant.table.task import Unlabeled, task_of

Places = NDArray[np.intp]

#: Log-odds are clipped to this.
#: Derived: the probability of larger ones is 1 in double precision, 1 / (1 + exp(-36)) = 1 - 2e-16.
_LIMIT = 36.0

#: Smaller variances, below that of one row in 1e15, count as this one: the prediction is certain.
#: Derived: the square of 1e-15, about the rounding of a share.
_MIN_VARIANCE = 1e-30

#: Simulated outcomes of cells that are worked on at once.
#: Speed: they take 1 MB and stay in the cache; no result depends on it.
_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class MultiScale:
    r"""Adaptive test of calibration: many p-values combined, and made exact by simulation under the null hypothesis.

    The statistics are the mean gap; the score statistics for the log-odds (slope) and for both together; the largest
    running gap; and for 2, 4, ..., 128 bins of equal mass two sums of squares, with v the variance of a bin's mean
    outcome:

    .. math:: S_B = \sum_b s_b (\bar p_b - \bar y_b)^2, \qquad
              C_B = \sum_b (\bar p_b - \bar y_b)^2 / v_b, \qquad v_b = \frac{\overline{p(1-p)}_b}{n_b}.

    S detects errors where most rows are, the standardised C those where the model is confident.

    Outcomes are simulated as Y ~ Bernoulli(p), cell by cell, and all statistics are computed for each sample. Their
    p-values, at most 0.9, are combined by :math:`\sum_j \omega_j \cot(\pi p_j)` (Cauchy combination), with weights ω
    of 1 for the running gap and for mean and slope together, 1/2 for each of these two alone, 0.1 for each S and 0.15
    for each C; the p-value is the rank of that sum among those of the simulated samples. It is exact at every n
    (slightly too large where scores were pooled into cells), and at least 1 / (draws + 1).

    Parameters
    ----------
    draws : int
        Number of simulated samples.
    seed : int

    References
    ----------
    Liu, Xie (2020), Cauchy combination test, for the sum: the smallest p-value alone has less power. Its power and
    that of the classical tests are in docs/inference.md.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> data = cal.Binary(rng.random(1000) < 0.5 + 0.6 * (p - 0.5), p)
    >>> cal.calibration_test(data, method=cal.inference.MultiScale()).p_value < 0.05
    True
    """

    draws: int = 999
    seed: int = 0

    def __post_init__(self) -> None:
        validation.seed(self.seed)
        validation.whole("draws", self.draws)

    def test(self, data: Predictions | BinTable) -> Significance:
        """The p-value; the statistic is the smallest single p-value."""
        cells = Sample.of(data, needed_by="MultiScale").pooled(256)
        rng = generator(self.seed, "multiscale test")
        found = statistics(cells, with_drawn(cells, self.draws, rng))
        single = rank_p_values(found)
        combined = cauchy_combined(single, weights(found.shape[1]))
        p_value = float(rank_p(combined[0], combined[1:]))
        return Significance(float(single[0].min()), p_value, method=repr(self), n=cells.n, draws=self.draws)


def with_drawn(cells: PooledCells, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
    """The observed mean outcomes (first column) and those of samples drawn from the predictions, some at a time.

    The rows are cells. In smaller arrays, whose memory is used again, everything takes less time.
    """
    chance, step = np.clip(cells.predicted, 0.0, 1.0), max(1, _AT_ONCE // len(cells.share))
    for start in range(0, draws + 1, step):
        outcomes = cells.outcomes(chance, min(step, draws + 1 - start), rng)
        if start == 0:
            outcomes[:, 0] = cells.observed
        yield outcomes


def statistics(cells: PooledCells, samples: Iterable[Floats]) -> Floats:
    """One column per statistic, positive and large where the gap is large; one row per sample of outcomes.

    The arrays of `samples`, mean outcomes per cell (row) and sample (column), are overwritten.
    """
    variance = cells.share**2 * cells.predicted * (1 - cells.predicted) / cells.count
    with np.errstate(divide="ignore"):
        odds = np.log(cells.predicted) - np.log1p(-cells.predicted)
    odds = np.clip(odds, -_LIMIT, _LIMIT)
    total = max(float(variance.sum()), 1e-300)
    odds = odds - float(variance @ odds) / total
    along = max(float(variance @ odds**2), 1e-300)
    ends, first, factors = _bins_of_cells(cells, variance)
    found = []
    for observed in samples:
        residual = np.subtract(cells.predicted[:, None], observed, out=observed)
        residual *= cells.share[:, None]
        slope = (odds @ residual) ** 2 / along
        running = accumulate_rows(residual)
        mean = running[-1] ** 2 / total
        largest = np.maximum(running.max(axis=0), -running.min(axis=0)) ** 2
        gaps = running.take(ends, axis=0)
        later = gaps[first]
        np.subtract(gaps[1:], gaps[:-1], out=gaps[1:])
        gaps[first] = later
        gaps *= gaps
        found.append(np.vstack([mean, slope, mean + slope, largest, factors.T @ gaps]))
    return np.ascontiguousarray(np.concatenate(found, axis=1).T)


def weights(columns: int) -> Floats:
    """The weight of each of the statistics in their combination."""
    return np.concatenate([[0.5, 0.5, 1.0, 1.0], np.tile([0.1, 0.15], (columns - 4) // 2)])


def _bins_of_cells(cells: PooledCells, variance: Floats) -> tuple[Places, Places, Floats]:
    """The last cell of every bin, for 2, 4, ..., 128 bins of about equal mass, made of whole cells.

    Also the first bin of each number of bins, and the factors 1 / share and 1 / variance of their squared gaps.
    """
    middle = np.cumsum(cells.share) - cells.share / 2
    levels, bins = [], 2
    while bins <= min(128, cells.effective_n / 4):
        number = (middle * bins).astype(np.intp)
        levels.append(np.append(0, 1 + np.flatnonzero(number[1:] != number[:-1])))
        bins *= 2
    sizes = [len(starts) for starts in levels]
    first = np.cumsum([0, *sizes])
    factors = np.zeros((int(first[-1]), 2 * len(levels)))
    for k, starts in enumerate(levels):
        rows = slice(first[k], first[k + 1])
        factors[rows, 2 * k] = 1 / np.add.reduceat(cells.share, starts)
        factors[rows, 2 * k + 1] = 1 / np.maximum(np.add.reduceat(variance, starts), _MIN_VARIANCE)
    ends = [np.append(starts[1:], len(middle)) - 1 for starts in levels]
    return np.concatenate([np.zeros(0, np.intp), *ends]), first[:-1], factors


OfOutcomes = MultiScale | KolmogorovSmirnov | Spiegelhalter | HosmerLemeshow | KernelTest | Cox | ClusteredScore
OfForecasts = ForecastTest | Moments | MeanSquaredZ | PitUniformity | SpreadChiSquare
OfClasses = VectorTest | LearnedTest
TestMethod = OfOutcomes | OfForecasts | OfClasses | PUScore

#: What each method tests.
_METHODS: dict[str, Any] = {
    "outcomes": OfOutcomes,
    "several classes": OfClasses,
    "distributions": OfForecasts,
    "positive-unlabeled data": PUScore,
}


#: Tests that are asked for by name.
TestName = Literal["multiscale", "kolmogorov-smirnov", "spiegelhalter", "hosmer-lemeshow", "kernel", "cox"]
_TESTS = (MultiScale, KolmogorovSmirnov, Spiegelhalter, HosmerLemeshow, KernelTest, Cox)
_NAMED: dict[str, type[OfOutcomes]] = dict(zip(get_args(TestName), _TESTS, strict=True))


@takes_columns
def calibration_test(
    data: Data = None, y_prob: Column = None, *, method: TestMethod | TestName | None = None, **columns: Unpack[Columns]
) -> Significance:
    """Test of the hypothesis that the model is calibrated; a small p-value is evidence against it.

    Parameters
    ----------
    data : Binary, Multiclass, Gaussian, Distribution, Quantiles, Samples, PositiveUnlabeled, fine BinTable, or y_true
        Rows must be independent, or binary or forecasts with a `group` that says which depend on each other; the
        outputs of one row of a forecast may depend on each other. For several classes
        the whole vector is tested; `data.top_label()` is the confidence alone, and `by_class` tests class by class.
        With plain arrays, `y_prob` comes next.
    method : "multiscale", "spiegelhalter", "cox", ..., or one of the classes below, optional
        For outcomes: `MultiScale` (default: exact, and no other test has more power in all settings),
        `KolmogorovSmirnov`, `Spiegelhalter`, `HosmerLemeshow`, `KernelTest`, `Cox`; for rows with a
        group `ClusteredScore`, the default there. For several classes: `VectorTest`
        (default), `LearnedTest`. For distributions: `ForecastTest`
        (default), `Moments`, `MeanSquaredZ`, `PitUniformity`, `SpreadChiSquare`. For positive-unlabeled data:
        `calibrant.pu.PUScore`.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> calibration_test(rng.random(2000) < p, p).p_value > 0.05
    True
    >>> calibration_test(cal.Binary(rng.random(2000) < p**1.2, p)).p_value < 0.01
    True
    """
    data = data if isinstance(data, BinTable) else binary(data, y_prob)
    chosen: Any = _default(data) if method is None else method
    chosen = _NAMED[chosen]() if isinstance(chosen, str) and chosen in _NAMED else chosen
    if not isinstance(chosen, TestMethod):
        names = ", ".join(map(repr, _NAMED))
        fail(f"method must be {names}, or MultiScale(), Spiegelhalter(), ..., got {method!r}.", TypeError)
    wanted = next(kind for kind, methods in _METHODS.items() if isinstance(chosen, methods))
    if wanted != _kind(data) and not (isinstance(data, BinTable) and wanted != "several classes"):
        fail(f"{type(chosen).__name__} tests {wanted}, but {data!r} holds {_kind(data)}.", TypeError)
    _require_independent(data, chosen)
    given: Any = data
    return chosen.test(given)


def _require_independent(data: Predictions | BinTable, chosen: TestMethod) -> None:
    """`ClusteredScore`, `ForecastTest` and `Moments` allow for the dependence of rows with a group, and of outputs."""
    if isinstance(chosen, ForecastTest | Moments):
        return
    needs = f"{type(chosen).__name__} needs independent rows"
    if getattr(data, "group", None) is not None and not isinstance(chosen, ClusteredScore):
        fail(f"{needs}, but these have a group; {_instead(data)}.")
    outputs = len(data.outputs) if isinstance(data, Forecast) else 1
    if outputs > 1:
        fail(f"{needs}, but each row has {outputs} outputs, which may depend on each other; {_instead(data)}.")


def _instead(data: Predictions | BinTable) -> str:
    """What dependent rows can be tested with."""
    if isinstance(data, Binary | Forecast):
        return f"use {type(_default(data)).__name__}()"
    return "take one row per group"


def _kind(data: Predictions | BinTable) -> str:
    if isinstance(task_of(data), Unlabeled):
        return "positive-unlabeled data"
    if isinstance(data, Multiclass):
        return "several classes"
    return "distributions" if isinstance(data, Forecast) else "outcomes"


def _default(data: Predictions | BinTable) -> TestMethod:
    if isinstance(data, Binary) and data.group is not None:
        return ClusteredScore()
    classes = {"several classes": VectorTest, "distributions": ForecastTest, "positive-unlabeled data": PUScore}
    return classes.get(_kind(data), MultiScale)()
