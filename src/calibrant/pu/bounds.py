"""Bounds on the error of PU-ECE: its bias, and a wrong prior."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Interval
from calibrant.table.binning import Binning, Edges, EqualMass, EqualWidth, as_binning, bias_bound_of_bins
from calibrant.table.binning import BoundBins as BoundBins
from calibrant.table.binning import PaperBins as PaperBins
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import binned
from calibrant.table.task import Gaps

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
    bound = bias_bound_of_bins(
        cut.n_bins,
        noise,
        n_unlabeled,
        lipschitz=lipschitz,
        equal_mass=equal_mass,
        log_inverse_delta=0.0 if delta is None else -math.log(delta),
    )
    return float(bound)


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
