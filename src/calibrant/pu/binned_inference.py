"""Uncertainty of PU-ECE: confidence intervals per bin and of the error, and a test of calibration.

These are methods for `calibrant.interval` and `calibrant.calibration_test`. There is no percentile bootstrap: it
doubles the upward bias of PU-ECE, and at 100 positives and 1000 unlabeled rows its 95 % interval never covers. The
default interval, for the true error, is in `calibrant.pu.inversion`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.debiased import debiased_gaps
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator, normal_draws
from calibrant.results.estimate import Interval, Significance
from calibrant.results.target import Target
from calibrant.table.binning import Binning, EqualMass, PaperBins
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import binned
from calibrant.table.task import Gaps as Gaps
from calibrant.table.task import largest_prior as largest_prior

Source = PositiveUnlabeled | BinTable

#: Fewest labelled positives that calibration must predict in a bin of the score test, as of other chi-square tests.
FEWEST = 5.0

#: Rounding error of an error mass, which is at most 1.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Reliability:
    """Data of the reliability diagram of positive-unlabeled data: one entry per bin with unlabeled rows.

    Attributes
    ----------
    predicted, rate : array
        Mean score, and the implied share of positives, which may exceed 1 by noise.
    low, high : array
        Confidence interval of each rate, at `level`.
    share, positive : array
        Shares of the unlabeled rows and of the labelled positives in the bin.
    edges : array of shape (bins, 2)
        Lower and upper edge of each bin.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.7, 0.8, 0.4, 0.9], [0.1, 0.2, 0.3, 0.5, 0.8, 0.9], prior=0.5)
    >>> found = reliability(data, bins=cal.EqualWidth(2))
    >>> found.edges.tolist(), found.share.round(2).tolist()
    ([[0.0, 0.5], [0.5, 1.0]], [0.67, 0.33])
    """

    predicted: Floats
    rate: Floats
    low: Floats
    high: Floats
    share: Floats
    positive: Floats
    edges: Floats
    level: float
    prior: float


def reliability(data: Source, *, bins: Binning = EqualMass(10), level: float = 0.95) -> Reliability:
    r"""Implied share of positives per bin, with intervals.

    .. math:: \hat y_b \exp\Bigl(\pm z\sqrt{\tfrac{1 - P_b}{n_P P_b} + \tfrac{1 - u_b}{n_U u_b}}\Bigr),
              \qquad \hat y_b = \pi P_b / u_b

    with half a row added to each count, so that a bin without a labelled positive has an interval too.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.7, 0.8, 0.4, 0.9], [0.1, 0.2, 0.3, 0.5, 0.8, 0.9], prior=0.5)
    >>> reliability(data, bins=cal.EqualWidth(2)).rate
    array([0.1875, 1.125 ])
    """
    from scipy.special import ndtri

    table = binned(data, None, bins)[0]
    gaps = Gaps.of(table)
    centre, error = gaps.log_rate_error()
    reach = float(ndtri((1 + validation.fraction("level", level)) / 2)) * error
    some = gaps.share > 0
    return Reliability(
        predicted=table.predicted_mean[some],
        rate=gaps.rate[some],
        low=np.exp(centre - reach)[some],
        high=np.exp(centre + reach)[some],
        share=gaps.share[some],
        positive=gaps.positive[some],
        edges=np.stack([table.low, table.high], axis=1)[some],
        level=level,
        prior=gaps.prior,
    )


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
        level, gaps = _checked(level, norm), Gaps.of(_table(data))
        errors = np.abs(_resampled_gaps(gaps, self.draws, generator(self.seed, "resampled positives"))).sum(axis=1)
        estimate = float(np.abs(gaps.gap).sum())
        low, high = np.quantile(errors, [(1 - level) / 2, (1 + level) / 2])
        return _interval(2 * estimate - float(high), 2 * estimate - float(low), level, self)


@dataclass(frozen=True)
class DebiasedDelta:
    r"""Debiased PU-ECE ± z standard errors, for the calibration error of the binned model.

    .. math:: \mathrm{SE}^2 = s^T \Sigma s + (\text{correction} / 2)^2

    where s are the signs of the error masses and Σ their covariance. Debiasing removes between half of the bias (of a
    calibrated model) and all of it (where every sign is certain), so half of the correction is added as its standard
    error; without that term, coverage is 2 to 5 percentage points below nominal.

    The interval need not contain the estimate, which is biased upward. With many more bins than `PaperBins` chooses,
    the bias exceeds what debiasing and the basic bootstrap remove; `Conservative` still covers. For the uncertainty of
    the prior see `calibrant.pu.prior_band`.

    Examples
    --------
    >>> from functools import partial
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> data = cal.PositiveUnlabeled(rng.beta(2, 1, 1000), rng.random(10_000), prior=0.4)  # the true error is 0.1
    >>> str(cal.interval(partial(cal.ece, bins=cal.pu.PaperBins()), data, method=DebiasedDelta()).interval)
    '[0.08548, 0.1036]'
    """

    serves: ClassVar[str] = "positives"

    def interval(self, data: Source, *, norm: float = 1, level: float = 0.95) -> Interval:
        """The interval for the L1 error in the bins of a table; `PaperBins` where there are none yet."""
        from scipy.special import ndtri

        level, table = _checked(level, norm), _table(data)
        gaps = Gaps.of(table)
        sign = np.sign(gaps.gap)
        centre = debiased_gaps(table, 1)
        correction = float(np.abs(gaps.gap).sum()) - centre
        error = float(np.sqrt(max(float(sign @ gaps.covariance() @ sign), 0.0) + correction**2 / 4))
        reach = float(ndtri((1 + level) / 2)) * error
        return _interval(centre - reach, centre + reach, level, self)


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

        level, whole = _checked(level, norm), Gaps.of(_table(data))
        gaps = _joined(whole)
        covariance = gaps.null_covariance()
        noise = normal_draws(covariance, self.draws, generator(self.seed, "conservative interval"))
        estimate, sign = float(np.abs(whole.gap).sum()), np.sign(gaps.gap)
        low = estimate - float(np.quantile(np.abs(noise).sum(axis=1), (1 + level) / 2))
        high = estimate + float(ndtri((1 + level) / 2)) * float(np.sqrt(max(float(sign @ covariance @ sign), 0.0)))
        return _interval(low, high, level, self)


@dataclass(frozen=True)
class PUScore:
    r"""Score test of calibration from positive-unlabeled data.

    .. math:: T = D^T \Sigma_0^{-1} D \sim \chi^2_B

    where D_b = π P_b - F_b is the error mass of bin b, and Σ₀ its covariance under calibration, with F_b / ΣF in place
    of P_b. With P_b itself (a Wald test) bins without a labelled positive would have zero variance, and a calibrated
    model would be rejected in most samples. Neighbouring bins are merged until each is expected to hold five labelled
    positives.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> data = cal.PositiveUnlabeled(rng.beta(2, 1, 1000), rng.random(10_000), prior=0.5)  # calibrated
    >>> cal.calibration_test(data, method=PUScore())
    <PU score test, EqualMass(n_bins=10): statistic 12.22, p = 0.2704, n=11_000>
    """

    bins: Binning = EqualMass(10)

    def test(self, data: Source) -> Significance:
        """Large values are evidence against calibration."""
        from scipy.special import chdtrc

        table, bins = binned(data, None, self.bins)
        gaps = _joined(Gaps.of(table), FEWEST)
        # Where the samples leave no doubt (all scores equal, a known prior), a gap is exact up to rounding.
        gap, covariance = gaps.gap, gaps.null_covariance() + ROUNDING**2 * np.eye(len(gaps.gap))
        size = np.sqrt(np.diag(covariance))
        values, vectors = np.linalg.eigh(covariance / np.outer(size, size))
        some = values > 1e-10
        statistic = float((((gap / size) @ vectors[:, some]) ** 2 / values[some]).sum())
        p_value = float(chdtrc(float(some.sum()), statistic))
        return Significance(statistic, p_value, method=f"PU score test, {bins}", n=table.n)


def _checked(level: float, norm: float) -> float:
    if norm != 1:
        message = f"Intervals on positive-unlabeled data are available for the L1 norm only, got norm={norm!r}."
        raise InvalidPredictions(message)
    return validation.fraction("level", level)


def _table(data: Source) -> BinTable:
    return data if isinstance(data, BinTable) and not data.fine else binned(data, None, PaperBins())[0]


def _interval(low: float, high: float, level: float, method: DebiasedDelta | BasicBootstrap | Conservative) -> Interval:
    return Interval(
        max(0.0, low),
        max(0.0, high),
        level=level,
        method=repr(method),
        assumption="the target is the error of the binned model; the bins are taken as fixed",
        target=Target("binned error", 1),
    )


def _joined(gaps: Gaps, fewest: float = 0.0) -> Gaps:
    """Bins without predicted mass merged into the preceding bin with some (or into the first such bin).

    The same is done until every bin is expected to hold `fewest` labelled positives, if the model is calibrated.
    """
    expected = gaps.n_positive * gaps.predicted / max(float(gaps.predicted.sum()), np.finfo(float).tiny)
    left = expected[::-1].cumsum()[::-1]
    into, held = np.zeros(len(expected), dtype=np.intp), 0.0
    for b in range(1, len(expected)):
        held += expected[b - 1]
        begins = min(held, expected[b]) > 0 and min(held, left[b]) >= fewest
        into[b], held = into[b - 1] + begins, 0.0 if begins else held
    return gaps.joined(into, int(into[-1]) + 1)


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
