"""Two intervals for the binned error of positive-unlabeled data that `pu.PUInversion` has replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator, normal_draws
from calibrant.pu.binned_inference import OF_BINS, Source, joined
from calibrant.results.estimate import Interval
from calibrant.results.target import Target
from calibrant.table.binning import PaperBins
from calibrant.table.bintable import BinTable, binned
from calibrant.table.task import Gaps


@dataclass(frozen=True)
class _Simulated:
    """Number of draws and seed of an interval that rests on simulation."""

    draws: int = 999
    seed: int = 0

    def __post_init__(self) -> None:
        validation.seed(self.seed)
        validation.whole("draws", self.draws, minimum=2)


@dataclass(frozen=True)
class BasicBootstrap(_Simulated):
    """Basic (reflected) bootstrap of PU-ECE: twice the estimate minus the quantiles of its resamples.

    The two samples are resampled separately (a single sample as one), bin by bin: counts are multinomial, and the mean
    score of the resampled rows of a bin is normal, so the cost of a resample does not depend on the number of rows.

    Parameters
    ----------
    draws : int
        Number of resamples.
    seed : int

    Examples
    --------
    >>> from functools import partial
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> data = cal.PositiveUnlabeled(rng.beta(2, 1, 1000), rng.random(10_000), prior=0.4)  # the true error is 0.1
    >>> str(cal.interval(partial(cal.ece, bins=cal.pu.PaperBins()), data, method=BasicBootstrap()).interval)
    '[0.07885, 0.1051]'
    """

    serves: ClassVar[str] = "positives"

    def interval(self, data: Source, *, norm: float = 1, level: float = 0.95) -> Interval:
        """The interval for the L1 error in the bins of a table; `PaperBins` where there are none yet."""
        level, gaps = _checked(level, norm), _gaps(data)
        errors = np.abs(_resampled_gaps(gaps, self.draws, generator(self.seed, "resampled positives"))).sum(axis=1)
        estimate = float(np.abs(gaps.gap).sum())
        low, high = np.quantile(errors, [(1 - level) / 2, (1 + level) / 2])
        return _interval(2 * estimate - float(high), 2 * estimate - float(low), level, self)


@dataclass(frozen=True)
class Conservative(_Simulated):
    r"""An interval with at least nominal coverage at every true error, about twice as wide as the others.

    With noise e of the error masses, :math:`\lVert D\rVert_1 - \lVert e\rVert_1 \le \lVert d\rVert_1` always, and
    :math:`\lVert D\rVert_1 \ge \lVert d\rVert_1 + s^T e` for the true signs s. So the lower end is PU-ECE minus a
    quantile of ‖e‖₁ under normal noise, and the upper end PU-ECE plus z standard errors.

    Parameters
    ----------
    draws : int
        Number of draws of the noise.
    seed : int

    Examples
    --------
    >>> from functools import partial
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> data = cal.PositiveUnlabeled(rng.beta(2, 1, 1000), rng.random(10_000), prior=0.4)  # the true error is 0.1
    >>> str(cal.interval(partial(cal.ece, bins=cal.pu.PaperBins()), data, method=Conservative()).interval)
    '[0.04498, 0.1075]'
    """

    serves: ClassVar[str] = "positives"

    def interval(self, data: Source, *, norm: float = 1, level: float = 0.95) -> Interval:
        """The interval for the L1 error in the bins of a table; `PaperBins` where there are none yet."""
        from scipy.special import ndtri

        level, whole = _checked(level, norm), _gaps(data)
        gaps = joined(whole)
        covariance = gaps.null_covariance()
        noise = normal_draws(covariance, self.draws, generator(self.seed, "conservative interval"))
        estimate, sign = float(np.abs(whole.gap).sum()), np.sign(gaps.gap)
        low = estimate - float(np.quantile(np.abs(noise).sum(axis=1), (1 + level) / 2))
        high = estimate + float(ndtri((1 + level) / 2)) * float(np.sqrt(max(float(sign @ covariance @ sign), 0.0)))
        return _interval(low, high, level, self)


def _checked(level: float, norm: float) -> float:
    """The level, if the norm is 1."""
    if norm != 1:
        validation.fail(f"These intervals are for the L1 norm only, got norm={norm!r}.")
    return validation.fraction("level", level)


def _gaps(data: Source) -> Gaps:
    """Those of a table of bins as it is, of other data in `PaperBins`."""
    return Gaps.of(data if isinstance(data, BinTable) and not data.fine else binned(data, None, PaperBins())[0])


def _interval(low: float, high: float, level: float, method: object) -> Interval:
    """The interval for the error of the binned model, cut at 0."""
    low, high, target = max(0.0, low), max(0.0, high), Target("binned error", 1)
    return Interval(low, high, level=level, method=repr(method), assumption=OF_BINS, target=target)


def _resampled_gaps(gaps: Gaps, draws: int, rng: np.random.Generator) -> Floats:
    """Error masses of `draws` resamples of the bins, one row each."""
    rows = max(round(gaps.n_unlabeled), 1)
    if gaps.frequency is None:
        positive = rng.multinomial(max(round(gaps.n_positive), 1), _normalised(gaps.positive), draws)
        drawn = rng.multinomial(rows, _normalised(gaps.share), draws)
        scores = _sums_of_scores(gaps.share, gaps.predicted, gaps.predicted_squares, drawn, rng)
        return gaps.prior * positive / positive.sum(axis=1, keepdims=True) - scores / rows
    labelled = gaps.prior * gaps.frequency * gaps.positive
    share = np.concatenate([labelled, gaps.share - labelled])
    first = gaps.product * gaps.frequency
    middle = np.divide(first, labelled, out=np.zeros_like(first), where=labelled > 0)
    predicted = np.concatenate([first, gaps.predicted - first])
    squares = np.concatenate([first * middle, gaps.predicted_squares - first * middle])
    drawn = rng.multinomial(rows, _normalised(np.maximum(share, 0.0)), draws)
    scores = _sums_of_scores(share, predicted, squares, drawn, rng)
    half = len(labelled)
    marked, scores = drawn[:, :half], scores[:, :half] + scores[:, half:]
    if gaps.known_frequency:
        return marked / (gaps.frequency * rows) - scores / rows
    return gaps.prior * marked / np.maximum(marked.sum(axis=1, keepdims=True), 1) - scores / rows


def _sums_of_scores(
    share: Floats, first: Floats, second: Floats, drawn: NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """Sum of the scores of the rows drawn from each bin: a normal draw with the exact mean and variance."""
    some = share > 0
    mean = np.divide(first, share, out=np.zeros_like(share), where=some)
    variance = np.maximum(np.divide(second, share, out=np.zeros_like(share), where=some) - mean**2, 0.0)
    return drawn * mean + np.sqrt(drawn * variance) * rng.standard_normal(drawn.shape)


def _normalised(share: Floats) -> Floats:
    return share / share.sum()
