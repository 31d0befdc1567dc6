"""Uncertainty of PU-ECE: confidence intervals per bin and of the error, and a test of calibration.

These are methods for `calibrant.interval` and `calibrant.calibration_test`. There is no percentile bootstrap: it
doubles the upward bias of PU-ECE, and at 100 positives and 1000 unlabeled rows its 95 % interval never covers. The
default interval, for the true error, is in `calibrant.pu.inversion`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import chdtrc, ndtri

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.validation import fail
from calibrant.estimators.binned import debiased_gaps
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Interval, Significance
from calibrant.results.target import Target
from calibrant.table.binning import Binning, EqualMass, PaperBins
from calibrant.table.bintable import BinTable, binned
from calibrant.table.task import Gaps as Gaps
from calibrant.table.task import largest_prior as largest_prior

Source = PositiveUnlabeled | BinTable

#: Fewest labelled positives that calibration must predict in a bin of the score test, as of other chi-square tests.
#: Reference: Cochran (1954), Some Methods for Strengthening the Common chi-square Tests, Biometrics 10.
FEWEST = 5.0

#: Rounding error of an error mass, which is at most 1.
#: Derived: thousands of sums of doubles, each rounded by 1.1e-16.
ROUNDING = 1e-12

#: What an interval for the error in bins assumes.
OF_BINS = "the target is the error of the binned model; the bins are taken as fixed"


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
class DebiasedDelta:
    r"""Debiased PU-ECE ± z standard errors, for the calibration error of the binned model.

    .. math:: \mathrm{SE}^2 = s^T \Sigma s + (\text{correction} / 2)^2

    where s are the signs of the error masses and Σ their covariance. Debiasing removes between half of the bias (of a
    calibrated model) and all of it (where every sign is certain), so half of the correction is added as its standard
    error; without that term, coverage is 2 to 5 percentage points below nominal.

    The interval need not contain the estimate, which is biased upward. With many more bins than `PaperBins` chooses,
    the bias exceeds what debiasing removes. For the uncertainty of the prior see `calibrant.pu.prior_band`.

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
        if norm != 1:
            fail(f"Intervals on positive-unlabeled data are available for the L1 norm only, got norm={norm!r}.")
        level = validation.fraction("level", level)
        table = data if isinstance(data, BinTable) and not data.fine else binned(data, None, PaperBins())[0]
        gaps = Gaps.of(table)
        sign = np.sign(gaps.gap)
        centre = debiased_gaps(table, 1)
        correction = float(np.abs(gaps.gap).sum()) - centre
        error = float(np.sqrt(max(float(sign @ gaps.covariance() @ sign), 0.0) + correction**2 / 4))
        reach = float(ndtri((1 + level) / 2)) * error
        low, high, target = max(0.0, centre - reach), max(0.0, centre + reach), Target("binned error", 1)
        return Interval(low, high, level=level, method=repr(self), assumption=OF_BINS, target=target)


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
        table, bins = binned(data, None, self.bins)
        gaps = joined(Gaps.of(table), FEWEST)
        # Where the samples leave no doubt (all scores equal, a known prior), a gap is exact up to rounding.
        gap, covariance = gaps.gap, gaps.null_covariance() + ROUNDING**2 * np.eye(len(gaps.gap))
        size = np.sqrt(np.diag(covariance))
        values, vectors = np.linalg.eigh(covariance / np.outer(size, size))
        some = values > 1e-10
        statistic = float((((gap / size) @ vectors[:, some]) ** 2 / values[some]).sum())
        p_value = float(chdtrc(float(some.sum()), statistic))
        return Significance(statistic, p_value, method=f"PU score test, {bins}", n=table.n)


def joined(gaps: Gaps, fewest: float = 0.0) -> Gaps:
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
