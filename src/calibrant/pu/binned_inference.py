"""Uncertainty of binned errors of positive-unlabeled data, bounds of their bias, and the class prior.

The intervals and the test are methods for `calibrant.interval` and `calibrant.calibration_test`. There is no percentile
bootstrap: it doubles the upward bias of PU-ECE, and at 100 positives and 1000 unlabeled rows its 95 % interval never
covers. The default interval, for the true error, is in `calibrant.pu.inversion`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtri

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.validation import fail
from calibrant.estimators.binned import debiased_gaps
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate, Interval, Significance
from calibrant.results.target import Target
from calibrant.table.binning import Binning, Edges, EqualMass, EqualWidth, as_binning, bias_bound_of_bins
from calibrant.table.binning import BoundBins as BoundBins
from calibrant.table.binning import PaperBins as PaperBins
from calibrant.table.bintable import BinTable, binned
from calibrant.table.task import Gaps as Gaps
from calibrant.table.task import largest_prior as largest_prior

Source = PositiveUnlabeled | BinTable

#: Fewest labelled positives that calibration must predict in a bin of the score test, as of other chi-square tests.
#: Reference: Cochran (1954), Some Methods for Strengthening the Common chi-square Tests, Biometrics 10.
FEWEST = 5.0

#: Rounding error of an error mass, which is at most 1. Derived: thousands of sums of doubles, each rounded by 1.1e-16.
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
    """Bins without predicted mass, or of fewer expected positives, merged into the preceding one (or the first)."""
    expected = gaps.n_positive * gaps.predicted / max(float(gaps.predicted.sum()), np.finfo(float).tiny)
    left = expected[::-1].cumsum()[::-1]
    into, held = np.zeros(len(expected), dtype=np.intp), 0.0
    for b in range(1, len(expected)):
        held += expected[b - 1]
        begins = min(held, expected[b]) > 0 and min(held, left[b]) >= fewest
        into[b], held = into[b - 1] + begins, 0.0 if begins else held
    return gaps.joined(into, int(into[-1]) + 1)


Bins = EqualWidth | EqualMass | PaperBins | BoundBins | int


def bias_bound(
    *,
    prior: float,
    n_positive: float,
    n_unlabeled: float,
    bins: Bins = PaperBins(),
    lipschitz: float = 1.0,
    delta: float | None = None,
) -> float:
    r"""Theorem 1: bound on \|PU-ECE - TCE\|, in expectation or with probability 1 - `delta`.

    With v = π²/n_P + 1/n_U, B bins, m = n_U - B, and c = B ln 2 (+ ln 1/δ),

    .. math:: \text{equal width: } \frac{1+L}{B} + \sqrt{2 v c}, \qquad
              \text{equal mass: } \frac{1+L}{B} + \frac{(3+2L)B}{m} +
              \sqrt{2c}\Bigl(\frac{1+L}{\sqrt m} + \sqrt{\frac{\pi^2}{n_P} + \frac1m}\Bigr).

    It assumes that the score has a density, that the true calibration curve is L-Lipschitz in the score, and that the
    model was not trained on these rows. Where a model's logits are too steep (over-confident), no finite L exists.
    `sharp_bias_bound` is about half as large and needs the data.

    Parameters
    ----------
    prior : float
        Share of positives π.
    n_positive, n_unlabeled : float
        Numbers of rows; `math.inf` is allowed.
    bins : EqualWidth, EqualMass, PaperBins or BoundBins
        The last two depend on the numbers of rows.
    lipschitz : float
        L; 1 for a calibrated model.
    delta : float, optional
        Probability that the bound fails; by default the bound is on the expectation.

    References
    ----------
    Estimating Expected Calibration Error for Positive-Unlabeled Learning (2025), theorem 1.

    Examples
    --------
    >>> from calibrant import EqualWidth
    >>> round(bias_bound(prior=0.5, n_positive=100, n_unlabeled=1000, bins=EqualWidth(7)), 4)
    0.47
    """
    noise, cut = resolved(prior, n_positive, n_unlabeled, bins, lipschitz)
    if delta is not None:
        validation.fraction("delta", delta)
    equal_mass = isinstance(cut, EqualMass)
    if equal_mass and n_unlabeled < 2 * cut.n_bins:
        message = (
            f"Theorem 1 needs at least two unlabeled rows per equal-mass bin, got {n_unlabeled:g} for {cut.n_bins}."
        )
        raise ValueError(message)
    options = {"lipschitz": lipschitz, "log_inverse_delta": 0.0 if delta is None else -math.log(delta)}
    return float(bias_bound_of_bins(cut.n_bins, noise, n_unlabeled, equal_mass=equal_mass, **options))


def sharp_bias_bound(
    data: PositiveUnlabeled | BinTable,
    *,
    bins: Binning = PaperBins(),
    lipschitz: float = 1.0,
    delta: float | None = None,
) -> float:
    r"""Data-dependent bound on \|PU-ECE - TCE\|, about half of Theorem 1.

    .. math:: \frac{1+L}{2}\max_b(\text{width}_b) + \sum_b \sqrt{V_b}\; \Bigl(+ \sqrt{2 v \ln(1/\delta)}\Bigr)

    where V_b is the estimated variance of the error mass of bin b (`Gaps`). A function that varies by at most
    (1 + L) times the width of its bin has a mean absolute deviation of at most half of that, which replaces the first
    term of Theorem 1; Jensen's inequality bin by bin replaces the union over all sign patterns; McDiarmid's
    inequality gives the last term. The V_b are estimates, so the bound is approximate. Bins must be fixed in
    advance; for equal-mass bins this is a further approximation.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.7, 0.8, 0.4, 0.9], [0.1, 0.2, 0.3, 0.5, 0.8, 0.9], prior=0.5)
    >>> round(sharp_bias_bound(data, bins=cal.EqualWidth(2)), 4)
    0.8669
    """
    table = binned(data, None, bins)[0]
    gaps = Gaps.of(table)
    widths = np.diff(table.edges)[table.key]
    within = (1 + lipschitz) / 2 * float(np.max(widths[(gaps.share > 0) | (gaps.positive > 0)]))
    noise = float(np.sqrt(np.maximum(gaps.variance, 0.0)).sum())
    if delta is None:
        return within + noise
    return within + noise + math.sqrt(-2 * table.mass_variance * math.log(validation.fraction("delta", delta)))


@dataclass(frozen=True)
class PriorBand:
    """Range of PU-ECE over an interval of priors; see `prior_band`.

    Attributes
    ----------
    estimate : float
        PU-ECE at the prior of the data.
    exact : Interval
        Smallest and largest PU-ECE over the priors.
    theorem : Interval
        Theorem 2: the estimate ± the largest error of the prior.
    minimising_prior, minimum : float
        The prior that minimises PU-ECE, and the minimum: a lower bound for every prior.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.7, 0.8, 0.4, 0.9], [0.1, 0.2, 0.3, 0.5, 0.8, 0.9], prior=0.5)
    >>> round(prior_band(data, 0.4, 0.6, bins=cal.EqualWidth(2)).minimum, 4)
    0.0889
    """

    estimate: float
    exact: Interval
    theorem: Interval
    minimising_prior: float
    minimum: float


def prior_band(
    data: PositiveUnlabeled | BinTable, low: float, high: float, *, bins: Binning = EqualMass(15)
) -> PriorBand:
    r"""Range of PU-ECE over all priors in [low, high], exact and by Theorem 2, and the prior that minimises PU-ECE.

    .. math:: g(\pi) = \sum_b \lvert\pi P_b - F_b\rvert, \qquad \lvert g(\pi) - g(\pi')\rvert \le \lvert\pi - \pi'\rvert

    g is convex and piecewise linear with kinks at F_b / P_b, so its maximum over an interval is at an end, and its
    minimum at an end or a kink. The bins are fixed: those of the data at their own prior.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.7, 0.8, 0.4, 0.9], [0.1, 0.2, 0.3, 0.5, 0.8, 0.9], prior=0.5)
    >>> band = prior_band(data, 0.4, 0.6, bins=cal.EqualWidth(2))
    >>> str(band.exact), str(band.theorem), round(band.minimising_prior, 3)
    ('[0.1, 0.2]', '[0.05, 0.25]', 0.378)
    """
    if not 0 <= low <= high <= 1:
        fail(f"The priors must satisfy 0 <= low <= high <= 1, got low={low!r}, high={high!r}.", ValueError)
    gaps = Gaps.of(binned(data, None, bins)[0])

    def errors(priors: Floats) -> Floats:
        return np.abs(priors[:, None] * gaps.positive - gaps.predicted).sum(axis=1)

    some = gaps.positive > 0
    kinks = np.minimum(gaps.predicted[some] / gaps.positive[some], 1.0)
    inside = kinks[(kinks > low) & (kinks < high)]
    values = errors(np.concatenate([[low, high], inside]))
    estimate = float(np.abs(gaps.gap).sum())
    reach = max(gaps.prior - low, high - gaps.prior)
    everywhere = errors(kinks)
    best = int(np.argmin(everywhere))
    priors = f"priors in [{low:g}, {high:g}]"
    return PriorBand(
        estimate,
        Interval(float(values.min()), float(values.max()), level=1.0, method=f"exact, {priors}"),
        Interval(max(0.0, estimate - reach), estimate + reach, level=1.0, method=f"Theorem 2, {priors}"),
        float(kinks[best]),
        float(everywhere[best]),
    )


def resolved(
    prior: float, n_positive: float, n_unlabeled: float, bins: Bins, lipschitz: float
) -> tuple[float, EqualWidth | EqualMass]:
    """The noise v, and bins whose number is known."""
    validation.fraction("prior", prior)
    for name, n in (("n_positive", n_positive), ("n_unlabeled", n_unlabeled)):
        if not n >= 1:
            fail(f"{name} must be at least 1 (math.inf is allowed), got {n!r}.", ValueError)
    if not lipschitz >= 0:
        fail(f"lipschitz must not be negative, got {lipschitz!r}.", ValueError)
    noise, rule = prior**2 / n_positive + 1 / n_unlabeled, as_binning(bins)
    if isinstance(rule, EqualWidth | EqualMass):
        return noise, rule
    if isinstance(rule, Edges) or not isinstance(rule, PaperBins | BoundBins):
        fail(f"bins must be EqualWidth, EqualMass, PaperBins or BoundBins, got {bins!r}.", TypeError)
    if noise == 0:
        message = "With infinitely many rows in both samples the number of bins must be given, e.g. EqualWidth(100)."
        raise ValueError(message)
    return noise, rule.resolve(noise, n_unlabeled)


@dataclass(frozen=True)
class BestBin:
    r"""Best bin estimation, BBE: the share of positives in the purest bin at the top of the ranking.

    .. math:: \hat\pi = \frac{q_U(c)}{q_P(c)} \text{ at the } c \text{ that minimises }
              \frac{q_U(c)}{q_P(c)} + \frac{1+\gamma}{q_P(c)}\Bigl(\sqrt{\tfrac{\ln(4/\delta)}{2 n_U}} +
              \sqrt{\tfrac{\ln(4/\delta)}{2 n_P}}\Bigr)

    where q(c) is the share of scores of at least c. Any score that ranks positives above the others can be used, if the
    model was not trained on these rows. The estimate is biased upward by the negatives that remain in the best bin.

    References
    ----------
    Garg, Wu, Smola, Balakrishnan, Lipton (2021), Mixture Proportion Estimation and PU Learning: A Modern Approach.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> unlabeled = np.concatenate([rng.normal(2, 1, 3000), rng.normal(-2, 1, 7000)])
    >>> round(float(estimate_prior(rng.normal(2, 1, 1000), unlabeled, method=BestBin(delta=0.05))), 3)
    0.303
    """

    delta: float = 0.1
    gamma: float = 0.01

    def prior(self, positive: Floats, unlabeled: Floats) -> tuple[float, Interval]:
        """The estimate and its interval, which is valid simultaneously for all thresholds."""
        cuts = np.unique(unlabeled)
        above_u = 1 - np.searchsorted(np.sort(unlabeled), cuts, side="left") / len(unlabeled)
        above_p = 1 - np.searchsorted(np.sort(positive), cuts, side="left") / len(positive)
        some = above_p > 0
        above_u, above_p = above_u[some], above_p[some]
        size = math.log(4 / validation.fraction("delta", self.delta)) / 2
        noise = (math.sqrt(size / len(unlabeled)) + math.sqrt(size / len(positive))) / above_p
        best = int(np.argmin(above_u / above_p + (1 + self.gamma) * noise))
        value, reach = float(above_u[best] / above_p[best]), float(noise[best])
        low, high = max(0.0, value - reach), min(1.0, value + reach)
        return min(value, 1.0), Interval(low, high, level=1 - self.delta, method=repr(self), assumption=_PURE)


@dataclass(frozen=True)
class ElkanNoto:
    r"""Elkan and Noto's estimate: the mean score of positives, by a classifier of labelled against other rows.

    The scores must be probabilities of being *labelled*, g(x), on rows that the classifier has not seen. With
    c = mean of g over the positives,

    .. math:: \hat\pi = \frac{n_P}{n c} \text{ (single sample of n rows)}, \qquad
              \hat\pi = \frac{n_P (1 - c)}{c\, n_U} \text{ (case-control)}.

    It assumes that positives and negatives do not overlap; where they do, it is too high, often by a lot.

    References
    ----------
    Elkan, Noto (2008), Learning Classifiers from Only Positive and Unlabeled Data, estimator e1.

    Examples
    --------
    >>> estimate_prior([0.2, 0.3, 0.25, 0.25], [0.25, 0.0] * 20, method=ElkanNoto()).value
    0.3
    """

    scenario: Literal["case-control", "single-sample"] = "case-control"
    level: float = 0.9

    def prior(self, positive: Floats, unlabeled: Floats) -> tuple[float, Interval]:
        """The estimate, and an interval from the standard error of the mean over positives."""
        for name, values in (("positive", positive), ("unlabeled", unlabeled)):
            validation.in_unit_interval(name, values, clip=False)
        mean = float(positive.mean())
        spread = float(positive.std(ddof=1)) / math.sqrt(len(positive)) if len(positive) > 1 else 0.0
        reach = float(ndtri((1 + validation.fraction("level", self.level)) / 2)) * spread

        def share(c: float) -> float:
            c = min(max(c, 1e-12), 1.0)
            if self.scenario == "single-sample":
                return min(1.0, len(positive) / ((len(positive) + len(unlabeled)) * c))
            return min(1.0, len(positive) * (1 - c) / (c * len(unlabeled)))

        low, high = share(mean + reach), share(mean - reach)
        return share(mean), Interval(low, high, level=self.level, method=repr(self), assumption=_PURE)


_PURE = "some scores occur among positives only"


def estimate_prior(positive: ArrayLike, unlabeled: ArrayLike, *, method: BestBin | ElkanNoto = BestBin()) -> Estimate:
    """The share of positives in the population, with an interval.

    Parameters
    ----------
    positive, unlabeled : array-like
        Scores of labelled positives and of unlabeled rows, by a model that was trained on neither. Any ranking score
        for `BestBin`; probabilities of being labelled for `ElkanNoto`.
    method : BestBin or ElkanNoto

    Notes
    -----
    The prior is identified only if some scores occur among positives only: otherwise every estimate is an upper bound.
    Pass the interval to `calibrant.pu.prior_band`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.normal(2, 1, 1000)
    >>> unlabeled = np.concatenate([rng.normal(2, 1, 3000), rng.normal(-2, 1, 7000)])
    >>> estimate_prior(positive, unlabeled)
    <Class prior 0.2997 [0.2401, 0.3592] at 90%, n=11_000, BestBin(delta=0.1, gamma=0.01)>
    """
    p = validation.column("positive", positive).astype(np.float64, copy=False)
    u = validation.column("unlabeled", unlabeled).astype(np.float64, copy=False)
    value, interval = method.prior(p, u)
    return Estimate(value, name="Class prior", method=repr(method), n=len(p) + len(u), interval=interval)
