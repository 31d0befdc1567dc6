"""Reliability curves with two bands: where a calibrated model would show, and where the true curve may lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.data import validation
from calibrant.data.distributions import Forecast
from calibrant.data.predictions import Predictions
from calibrant.estimators.common import binned
from calibrant.estimators.regression_common import ratio_variance, spread_table, table_kurtosis
from calibrant.inference.isotonic_bands import band_of, clopper_pearson
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.pu.inference import reliability
from calibrant.table.binning import Binning, EqualMass
from calibrant.table.bintable import BinTable
from calibrant.table.task import task_of
from calibrant.table.unlabeled import Gaps, Unlabeled

Kind = Literal["isotonic", "binned", "spread", "positive-unlabeled"]


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """What was observed against what was predicted, with both bands.

    Attributes
    ----------
    kind : {"isotonic", "binned", "spread", "positive-unlabeled"}
    predicted, observed : arrays
        One point per cell or bin, in the order of `predicted`. For "spread": root mean variance and RMSE.
    consistency_low, consistency_high : arrays
        Where the curve of a calibrated model lies with probability `level`, point by point.
    confidence_low, confidence_high : arrays
        Where the true curve lies; at all points at once with probability `level` if `simultaneous`, else at each.
    share : array
        Share of the rows at each point.
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
        """Share of the rows at whose score the curve leaves the consistency band; 1 - level is to be expected."""
        out = (self.observed < self.consistency_low) | (self.observed > self.consistency_high)
        return float(self.share[out].sum())

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the curve and both bands (needs matplotlib)."""
        from calibrant.plot import reliability_diagram

        return reliability_diagram(self, ax=ax, **style)


def reliability_curve(
    data: Predictions | BinTable,
    *,
    bins: Binning | None = None,
    level: float = 0.95,
    draws: int = 200,
    seed: int = 0,
) -> ReliabilityCurve:
    """The reliability diagram as numbers: CORP (isotonic) by default, binned where `bins` are given.

    The isotonic curve needs no choice of bins and is the best rising fit. Its consistency band comes from outcomes
    drawn as Y ~ Bernoulli(p), each fitted anew; its confidence band is the honest isotonic band, which holds the whole
    curve at once for every n, if it rises (approximately, with weights). Binned curves have binomial bands, bin by bin.

    Predicted distributions give RMSE against the root mean variance in bins of the spread; positive-unlabeled data the
    implied share of positives; both are binned (10 of equal mass by default).

    Parameters
    ----------
    data : Binary (or `data.top_label()`), Gaussian, Samples, Distribution, PositiveUnlabeled, or fine BinTable
    bins : Binning, optional
    level : float in (0, 1)
    draws, seed : int
        Simulated samples for the consistency band of the isotonic curve.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers (CORP).

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> curve = reliability_curve(cal.Binary(rng.random(1000) < p**2, p))
    >>> curve
    <ReliabilityCurve 'isotonic', 512 points, n=1_000>
    >>> curve.outside > 0.5, bool(np.all(np.diff(curve.observed) >= 0))
    (True, True)
    """
    level = validation.fraction("level", level)
    validation.whole("draws", draws, minimum=2)
    if isinstance(data, Forecast):
        return _of_spread(data, EqualMass(10) if bins is None else bins, level)
    if isinstance(task_of(data), Unlabeled):
        return _of_positives(data, EqualMass(10) if bins is None else bins, level)
    if bins is None:
        return _isotonic(data, level, draws, seed)
    return _binned(data, bins, level)


def _isotonic(data: Predictions | BinTable, level: float, draws: int, seed: int) -> ReliabilityCurve:
    table = Sample.of(data, needed_by="reliability_curve").coarse
    predicted, weight = table.predicted_mean, table.weight
    rng = np.random.default_rng(seed)
    count = np.maximum(np.floor(table.effective_count + 1e-9), 1).astype(np.int64)
    drawn = rng.binomial(count, np.clip(predicted, 0, 1), (draws, len(predicted))) / count
    null = np.array([_rising(line, weight) for line in drawn])
    low, high = np.quantile(null, [(1 - level) / 2, (1 + level) / 2], axis=0)
    band = band_of(table, level)
    return ReliabilityCurve(
        kind="isotonic",
        predicted=predicted,
        observed=_rising(table.observed_mean, weight),
        consistency_low=low,
        consistency_high=high,
        confidence_low=band.lower,
        confidence_high=band.upper,
        share=table.share,
        level=level,
        simultaneous=True,
        n=table.n,
    )


def _rising(values: Floats, weight: Floats) -> Floats:
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, weights=weight).x, dtype=np.float64)


def _binned(data: Predictions | BinTable, bins: Binning, level: float) -> ReliabilityCurve:
    from scipy.special import bdtrik

    some = binned(data, None, bins)[0].filled()
    predicted, observed, count = some.predicted_mean, some.observed_mean, some.effective_count
    risk = (1 - level) / 2
    chance = np.clip(predicted, 1e-15, 1 - 1e-15)
    band = [np.clip(np.ceil(bdtrik(at, count, chance) - 1e-9), 0, count) / count for at in (risk, 1 - risk)]
    low, high = clopper_pearson(observed * count, count, risk)
    return ReliabilityCurve(
        "binned", predicted, observed, band[0], band[1], low, high, some.share, level, simultaneous=False, n=some.n
    )


def _of_spread(data: Forecast, bins: Binning, level: float) -> ReliabilityCurve:
    """The mean square of a bin is nearly gamma about its expectation, with the variance that the kurtosis gives."""
    from scipy.special import gammaincinv

    table = spread_table(data, None, None, bins, needed_by="reliability_curve")[0]
    some = table.filled()
    shape = 1 / np.maximum(ratio_variance(some, max(table_kurtosis(table), 1 + 1e-9)), 1e-12)
    low, high = (np.sqrt(gammaincinv(shape, (1 + side * level) / 2) / shape) for side in (-1, 1))
    spread, error = np.sqrt(some.predicted_mean), np.sqrt(some.observed_mean)
    return ReliabilityCurve(
        kind="spread",
        predicted=spread,
        observed=error,
        consistency_low=spread * low,
        consistency_high=spread * high,
        confidence_low=error / high,
        confidence_high=error / low,
        share=some.share,
        level=level,
        simultaneous=False,
        n=table.n,
    )


def _of_positives(data: Any, bins: Binning, level: float) -> ReliabilityCurve:
    from scipy.special import ndtri

    table = binned(data, None, bins)[0]
    found = reliability(table, level=level)
    gaps = Gaps.of(table)
    some = gaps.share > 0
    error = np.sqrt(np.maximum(np.diag(gaps.null_covariance()), 0.0))[some] / gaps.share[some]
    reach = float(ndtri((1 + level) / 2)) * error
    return ReliabilityCurve(
        kind="positive-unlabeled",
        predicted=found.predicted,
        observed=found.rate,
        consistency_low=np.maximum(found.predicted - reach, 0.0),
        consistency_high=found.predicted + reach,
        confidence_low=found.low,
        confidence_high=found.high,
        share=found.share,
        level=level,
        simultaneous=False,
        n=table.n,
    )
