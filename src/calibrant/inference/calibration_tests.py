"""`calibration_test`, and the classical tests: Spiegelhalter, Hosmer-Lemeshow, Kolmogorov-Smirnov, Cox, kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

import numpy as np
from scipy.special import chdtrc, ndtr

from calibrant.data import validation
from calibrant.data.forecasts import Forecast
from calibrant.data.judged import Judged
from calibrant.data.predictions import Binary, Column, Columns, Multiclass, Predictions, binary
from calibrant.data.validation import fail
from calibrant.estimators.validation_study import joint_fit, recalibration_line
from calibrant.inference.clustered_scores import ClusteredScore
from calibrant.inference.forecast_tests import ForecastTest
from calibrant.inference.forecasts import MeanSquaredZ, Moments, PitUniformity, SpreadChiSquare
from calibrant.inference.learned_bounds import LearnedTest
from calibrant.inference.multiclass_tests import VectorTest
from calibrant.inference.multiplicity import first_rank
from calibrant.inference.multiscale import MultiScale
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.numerics.cells import PooledCells
from calibrant.numerics.random_draws import generator
from calibrant.pu.binned_inference import PUScore
from calibrant.results.estimate import Significance
from calibrant.results.target import takes_columns
from calibrant.table.binning import Cut, EqualMass
from calibrant.table.bintable import BinTable, Data, binned
from calibrant.table.task import Unlabeled, task_of


@dataclass(frozen=True)
class Spiegelhalter:
    r"""Test of the Brier score against its expectation under calibration; z is standard normal if calibrated.

    .. math:: z = \frac{\sum (y - p)(1 - 2p)}{\sqrt{\sum (1 - 2p)^2 p(1-p)}}

    It has no power against errors at p = 1/2. With weights, the sums are weighted by w and w².

    References
    ----------
    Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.calibration_test([0, 1] * 100, [0.2, 0.9] * 100, method=Spiegelhalter())
    <Spiegelhalter z: statistic -5.893, p = 3.803e-09, n=200>
    """

    def test(self, data: Predictions | BinTable) -> Significance:
        """Two-sided."""
        table = Sample.of(data, needed_by="Spiegelhalter").table
        p = table.predicted_mean
        total = float((1 - 2 * p) @ (table.observed - table.predicted))
        variance = float((1 - 2 * p) ** 2 * p * (1 - p) @ table.weight_squares)
        z = total / np.sqrt(variance) if variance > 0 else (0.0 if abs(total) < 1e-12 else np.inf)
        return Significance(float(z), float(2 * ndtr(-abs(z))), method="Spiegelhalter z", n=table.n)


@dataclass(frozen=True)
class HosmerLemeshow:
    r"""Chi-square test over bins: :math:`\sum_k n_k (\bar y_k - \bar p_k)^2 / \bar p_k(1-\bar p_k)`.

    For models that were not fitted on these rows, so with as many degrees of freedom as bins (two fewer for a model
    tested on its training rows: ``ddof=2``). Needs at least a few expected events per bin; `MultiScale` does not.

    References
    ----------
    Hosmer, Lemeshow (1980), Goodness of fit tests for the multiple logistic regression model.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> data = cal.Binary(rng.random(1000) < 0.5 + 0.6 * (p - 0.5), p)
    >>> cal.calibration_test(data, method=cal.inference.HosmerLemeshow()).p_value < 0.05
    True
    """

    bins: Cut | int = EqualMass(10)
    ddof: int = 0

    def test(self, data: Predictions | BinTable) -> Significance:
        """Large values are evidence against calibration."""
        table, words = binned(data, None, self.bins)
        some = table.filled()
        p = some.predicted_mean
        variance = p * (1 - p) / some.effective_count
        gap = some.observed_mean - p
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(gap == 0, 0.0, gap**2 / variance)
        freedom = max(len(some) - self.ddof, 1)
        statistic = float(terms.sum())
        p_value = float(chdtrc(freedom, statistic)) if np.isfinite(statistic) else 0.0
        return Significance(statistic, p_value, method=f"Hosmer-Lemeshow, {words}, {freedom} df", n=table.n)


@dataclass(frozen=True)
class KolmogorovSmirnov(validation.Simulated):
    r"""Largest running gap, :math:`\max_t |\sum_{p_i \le t} w_i (y_i - p_i)| / W`, with a simulated null distribution.

    References
    ----------
    Gupta et al. (2021), Calibration of Neural Networks using Splines; Tygert (2023) for the test.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> data = cal.Binary(rng.random(1000) < 0.5 + 0.6 * (p - 0.5), p)
    >>> cal.calibration_test(data, method=cal.inference.KolmogorovSmirnov()).p_value < 0.05
    True
    """

    draws: int = 999
    seed: int = 0

    def test(self, data: Predictions | BinTable) -> Significance:
        """The rank of the largest gap among those of the simulated samples."""
        cells = Sample.of(data, needed_by="KolmogorovSmirnov").pooled(512)
        drawn = _drawn(cells, self.draws, self.seed)
        running = np.abs(np.cumsum((drawn - cells.predicted) * cells.share, axis=1)).max(axis=1)
        return Significance(float(running[0]), first_rank(running), method=repr(self), n=cells.n, draws=self.draws)


@dataclass(frozen=True)
class KernelTest(validation.Simulated):
    r"""Squared kernel calibration error with the Laplace kernel, with a simulated null distribution.

    .. math:: \sum_{i, j} r_i r_j\, e^{-|p_i - p_j| / h}, \qquad r = w(y - p)

    The bandwidth h is by default the median distance between scores. Pairs of a row with itself are included: under the
    null hypothesis their expectation is a constant.

    References
    ----------
    Widmann, Lindsten, Zachariah (2019), Calibration tests in multi-class classification.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> data = cal.Binary(rng.random(1000) < 0.5 + 0.6 * (p - 0.5), p)
    >>> cal.calibration_test(data, method=cal.inference.KernelTest()).p_value < 0.05
    True
    """

    bandwidth: float | None = None
    draws: int = 999
    seed: int = 0

    def test(self, data: Predictions | BinTable) -> Significance:
        """The rank of the statistic among those of the simulated samples."""
        cells = Sample.of(data, needed_by="KernelTest").pooled(256)
        distance = np.abs(cells.predicted[:, None] - cells.predicted)
        width = _median_distance(distance, cells.share) if self.bandwidth is None else self.bandwidth
        kernel = np.exp(-distance / width) if width > 0 else np.ones_like(distance)
        residual = (_drawn(cells, self.draws, self.seed) - cells.predicted) * cells.share
        values = np.einsum("rc,rc->r", residual @ kernel, residual)
        return Significance(float(values[0]), first_rank(values), method=repr(self), n=cells.n, draws=self.draws)


@dataclass(frozen=True)
class Cox:
    r"""Joint test that the logistic regression of the outcomes on the log-odds has slope 1 and intercept 0.

    .. math:: \operatorname{logit} P(Y = 1) = a + b \operatorname{logit} p

    by the likelihood ratio, with two degrees of freedom. The result has a and b in ``details`` ("intercept", "slope");
    their intervals are those of `calibrant.calibration_intercept` and `calibrant.calibration_slope`. Scores of exactly
    0 and 1 carry no information about a and b and are left out; if one of them is wrong, which is impossible under
    calibration, the p-value is 0.

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression; Miller, Hui, Tierney (1991).

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=5000)
    >>> data = cal.Binary(rng.random(5000) < 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(-2 * x)))  # twice too confident
    >>> found = Cox().test(data)
    >>> round(found.details["slope"], 1), found.p_value < 0.001
    (0.5, True)
    """

    def test(self, data: Predictions | BinTable) -> Significance:
        """Likelihood ratio against chi square with two degrees of freedom."""
        table = Sample.of(data, needed_by="Cox").table
        p = table.predicted_mean
        inside = (p > 0) & (p < 1)
        if np.any((p <= 0) & (table.observed > 0)) or np.any((p >= 1) & (table.observed < table.weight)):
            return Significance(np.inf, 0.0, method="Cox slope and intercept", n=table.n)
        if not inside.any():
            return Significance(0.0, 1.0, method="Cox slope and intercept", n=table.n)
        line, _ = recalibration_line(table)
        a, b = joint_fit(line)
        gain = max(line.loss(0.0, 1.0) - line.smallest_loss(), 0.0)
        words = f"Cox intercept {a:.3g} and slope {b:.3g}"
        details = {"intercept": a, "slope": b}
        return Significance(2 * gain, float(chdtrc(2, 2 * gain)), method=words, n=table.n, details=details)


def _drawn(cells: PooledCells, size: int, seed: int) -> Floats:
    """The observed outcomes, then simulated ones of a calibrated model, one sample per row."""
    drawn = cells.outcomes(np.clip(cells.predicted, 0.0, 1.0), size, generator(seed, "classical tests"))
    return np.concatenate([cells.observed[None], drawn.T])


def _median_distance(distance: Floats, share: Floats) -> float:
    pairs = np.outer(share, share).ravel()
    order = np.argsort(distance, axis=None)
    at = int(np.searchsorted(np.cumsum(pairs[order]), pairs.sum() / 2))
    return float(distance.ravel()[order[min(at, len(order) - 1)]])


OfOutcomes = MultiScale | KolmogorovSmirnov | Spiegelhalter | HosmerLemeshow | KernelTest | Cox | ClusteredScore
OfForecasts = ForecastTest | Moments | MeanSquaredZ | PitUniformity | SpreadChiSquare
OfClasses = VectorTest | LearnedTest
TestMethod = OfOutcomes | OfForecasts | OfClasses | PUScore

#: What each method tests.
_METHODS: dict[str, Any] = {
    "outcomes": OfOutcomes,
    "multiclass data": OfClasses,
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
    data : Binary, Multiclass, Judged, Gaussian, Quantiles, Samples, PositiveUnlabeled, BinTable, or y_true
        Rows must be independent. For binary data and forecasts a `group` names the rows that depend on each other; the
        outputs of one row of a forecast may also be dependent. For multiclass data this tests the whole vector;
        ``data.top_label()`` tests the confidence alone, and `by_class` each class. Judged data have one test, of
        level, slope and shape. With plain arrays, `y_prob` comes next.
    method : "multiscale", "spiegelhalter", "cox", ..., or one of the classes below, optional
        - binary outcomes: `MultiScale` (default), `KolmogorovSmirnov`, `Spiegelhalter`, `HosmerLemeshow`, `KernelTest`,
          `Cox`; with a group, `MultiScale` (default) or `ClusteredScore`;
        - multiclass data: `VectorTest` (default), `LearnedTest`;
        - forecasts: `ForecastTest` (default), `Moments`, `MeanSquaredZ`, `PitUniformity`, `SpreadChiSquare`;
        - positive-unlabeled data: `calibrant.pu.PUScore`.

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
    if isinstance(data, Judged):
        from calibrant.inference.judged import judged_test

        if method is not None:
            fail(f"Judged data have one test; leave out method={method!r}.", TypeError)
        return judged_test(data)
    chosen: Any = _default(data) if method is None else method
    chosen = _NAMED[chosen]() if isinstance(chosen, str) and chosen in _NAMED else chosen
    if not isinstance(chosen, TestMethod):
        names = ", ".join(map(repr, _NAMED))
        fail(f"method must be {names}, or MultiScale(), Spiegelhalter(), ..., got {method!r}.", TypeError)
    wanted = next(kind for kind, methods in _METHODS.items() if isinstance(chosen, methods))
    if wanted != _kind(data) and not (isinstance(data, BinTable) and wanted != "multiclass data"):
        fail(f"{type(chosen).__name__} tests {wanted}, but {data!r} holds {_kind(data)}.", TypeError)
    _require_independent(data, chosen)
    given: Any = data
    return chosen.test(given)


def _require_independent(data: Predictions | BinTable, chosen: TestMethod) -> None:
    """Tests for groups allow for the dependence of rows with one; those of forecasts also for that of outputs."""
    if isinstance(chosen, ForecastTest | Moments):
        return
    needs = f"{type(chosen).__name__} needs independent rows"
    if getattr(data, "group", None) is not None and not isinstance(chosen, MultiScale | ClusteredScore):
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
        return "multiclass data"
    return "distributions" if isinstance(data, Forecast) else "outcomes"


def _default(data: Predictions | BinTable) -> TestMethod:
    classes = {"multiclass data": VectorTest, "distributions": ForecastTest, "positive-unlabeled data": PUScore}
    return classes.get(_kind(data), MultiScale)()
