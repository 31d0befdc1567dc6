"""A lower limit of the calibration error from the mean score and the prior alone, without a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.table.unlabeled import Gaps

#: Share of the risk at which zero is excluded.
ZERO_SHARE = 1 / 3


def mean_gap_limit(
    gaps: Gaps,
    *,
    risk: float,
    design_effect: float = 1.0,
    prior_error: float = 0.0,
    prior_interval: tuple[float, float] | None = None,
) -> float:
    r"""Lower confidence limit of \|π - E f\|, which no calibration error in a norm of at least 1 is below.

    By Jensen's inequality :math:`(\mathrm E|g|^q)^{1/q} \ge |\mathrm E g|` for every gap g, smooth or not. The mean gap
    D, the sum of the error masses, has variance Var f / n where the prior is known, and Var(s/c - f) / n where the
    label frequency c is; the square of `prior_error` is added. With t = \|D\| / SE the limit is

    .. math:: \mathrm{SE} \cdot (t + T^{-1}(\text{risk} - T(-t)))

    where T is Student's distribution function with n - 1 degrees of freedom. It exceeds \|E g\| with probability of
    about `risk` at most. It is 0 unless D differs from 0 in a two-sided test at a third of `risk`: another test of the
    same data excludes an error of zero too, and the risks of both add up there.

    Parameters
    ----------
    gaps : Gaps
    risk : float
        The probability that the limit may exceed the error.
    design_effect : float
        How much larger clusters make the variance of the mean gap.
    prior_error : float
        Standard error of the prior.
    prior_interval : (low, high), optional
        The interval in which the prior lies: of its priors, the one nearest to the mean score is taken.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> data = cal.PositiveUnlabeled(rng.beta(2, 1, 1000), rng.random(10_000), prior=0.4)  # the true error is 0.1
    >>> gaps = Gaps.of(cal.BinTable.of(data, cal.EqualMass(10)))
    >>> round(mean_gap_limit(gaps, risk=0.025), 3), round(mean_gap_limit(gaps, risk=0.025, prior_error=0.02), 3)
    (0.096, 0.062)
    """
    from scipy.special import stdtr, stdtrit

    whole = gaps.joined(np.zeros(len(gaps.share), dtype=np.intp), 1)
    score, rows = float(whole.predicted[0]), whole.n_unlabeled / design_effect
    prior = gaps.prior if prior_interval is None else float(np.clip(score, *prior_interval))
    error = float(np.hypot(np.sqrt(design_effect * _variance(whole)), prior_error))
    distance, freedom = abs(prior - score), max(rows - 1, 1.0)
    if error == 0:
        return distance
    tail = float(stdtr(freedom, -distance / error))
    if tail > ZERO_SHARE * risk / 2:
        return 0.0
    return distance + error * float(stdtrit(freedom, risk - tail))


def _variance(whole: Gaps) -> float:
    """Variance of the mean gap as estimated, or if its expectation were zero: the larger of the two.

    With a known label frequency a sample with few labelled rows by chance would otherwise seem to be precise.
    """
    calibrated = replace(whole, prior=float(whole.predicted[0]), product=whole.predicted_squares)
    return max(float(whole.variance[0]), float(calibrated.variance[0]), 0.0)
