"""Binned errors with the bias of label noise taken out."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import BinnedColumns, Column
from calibrant.estimators.binned import check_norm, result, signed_root, with_norm
from calibrant.numerics.arrays import Floats
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import Binning, EqualMass
from calibrant.table.bintable import BinTable
from calibrant.table.from_rows import bin_samples
from calibrant.table.of_data import Data, binned


def _of_samples(samples: SortedSamples, *, bins: Binning = EqualMass(15), norm: float = 1) -> Floats:
    norm = _check_finite_norm(norm)
    found = bin_samples(samples, bins)
    return np.asarray(signed_root(debiased_sum(found.mass, found.mass_variance, found.share, norm), norm))


@estimates("true error", batched=_of_samples)
def debiased_ece(
    data: Data = None,
    y_prob: Column = None,
    *,
    bins: Binning = EqualMass(15),
    norm: float = 1,
    **columns: Unpack[BinnedColumns],
) -> Estimate:
    r"""Debiased binned calibration error, ECE_debias.

    For the L2 norm the plug-in square of each bin is lowered by the variance of its mean outcome,

    .. math:: S = \sum_k \frac{w_k}{W}\Bigl[(\bar p_k - \bar y_k)^2 - \frac{\bar y_k(1-\bar y_k)}{n_k - 1}\Bigr],
              \qquad \operatorname{sign}(S)\sqrt{\lvert S\rvert},

    with n_k the effective number of rows of the bin. For another norm q, the expectation of the q-th power under
    normal noise of that variance is known in closed form (folded normal), and

    .. math:: S = \sum_k \frac{w_k}{W}\bigl[2\lvert g_k\rvert^q - \mathrm E\lvert g_k + s_k Z\rvert^q\bigr],
              \qquad g_k = \bar p_k - \bar y_k,

    which for q = 2 is the line above. For q > 2 the same with noise of twice the variance is added, weighted so that
    the bias is gone both at zero error and, to first order, far from it. On positive-unlabeled data s_k^2 is the
    variance that the two samples give to the gap (`calibrant.pu.Gaps`). A bin of one row adds nothing but keeps its
    weight. The result may be negative; `.clipped` is the customary max(0, value). ``details["power"]`` is S itself.

    References
    ----------
    Bröcker (2012), Ferro and Fricker (2012), Kumar, Liang, Ma (2019) for L2; Kumar et al. resample where this
    function takes the expectation.

    Examples
    --------
    >>> from calibrant import EqualWidth
    >>> debiased_ece([0, 1, 1, 1], [0.1, 0.1, 0.9, 0.9], bins=EqualWidth(2), norm=2)
    <ECE_debias (L2) -0.2, n=4, EqualWidth(n_bins=2, low=0.0, high=1.0)>
    """
    norm = _check_finite_norm(norm)
    squares = isinstance(data, PositiveUnlabeled)  # the noise of outcomes needs no squared predictions
    table, method = binned(data, y_prob, bins, squares=squares, needed_by="debiased_ece")
    power = debiased_gaps(table, norm)
    return result(signed_root(power, norm), with_norm("ECE_debias", norm), method, table, power=power)


def _check_finite_norm(norm: float) -> float:
    norm = check_norm(norm)
    if np.isinf(norm):
        message = "debiased_ece does not support the infinite norm; use mce for the largest gap."
        raise ValueError(message)
    return norm


def debiased_gaps(table: BinTable, norm: float) -> float:
    """S: the q-th power of the gaps, summed over bins by weight, less what their noise adds to it."""
    mass = (table.predicted - table.observed * table.observed_scale) / table.total
    return float(debiased_sum(mass, table.task.gap_variance(table), table.share, norm))


def debiased_sum(mass: Floats, variance: Floats, share: Floats, norm: float) -> Any:
    """S along the last axis, from error masses and their variances; bins of unknown variance (NaN) add nothing."""
    known = ~np.isnan(variance)
    if norm == 1:  # error masses need no division by the share of the bin, so bins of positives alone count too
        return np.where(known, debiased_power(mass, variance, 1), 0.0).sum(axis=-1)
    known &= share > 0
    safe = np.where(known, share, 1.0)
    powers = debiased_power(mass / safe, variance / safe**2, norm)
    return np.vecdot(share, np.where(known, powers, 0.0))


def debiased_power(gap: Floats, variance: Floats, norm: float) -> Floats:
    """|g|^q less its excess under normal noise of this variance (see `debiased_ece`)."""
    if norm == 2:
        return gap**2 - variance
    size = np.abs(gap) ** norm
    excess = folded_normal_power(gap, variance, norm) - size
    if norm < 2:
        return size - excess
    # One more term, for noise of twice the variance: the two are weighted so that the bias vanishes both without
    # error and, to first order, for large errors. For q = 4 the result is exactly unbiased.
    twice = folded_normal_power(gap, 2 * variance, norm) - size
    one, two = 2 ** (norm / 2) - 1, 3 ** (norm / 2) - 1
    share = (one - 1) / (2 * one - two)
    return size - (1 - 2 * share) * excess - share * twice


def folded_normal_power(mean: Floats, variance: Floats, norm: float) -> Floats:
    r"""E|m + s Z|^q for standard normal Z.

    .. math:: s^q \frac{2^{q/2} \Gamma(\frac{1+q}2)}{\sqrt\pi} \;
              {}_1F_1\bigl(-\tfrac q2; \tfrac12; -\tfrac{m^2}{2s^2}\bigr)
    """
    from scipy.special import gamma, hyp1f1, ndtr

    scale = np.sqrt(variance)
    noisy = scale > 1e-12 * np.maximum(np.abs(mean), 1e-300)
    safe = np.where(noisy, scale, 1.0)
    ratio = np.where(noisy, mean / safe, 0.0)
    if norm == 1:
        power = safe * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + mean * (1 - 2 * ndtr(-ratio))
    else:
        constant = 2 ** (norm / 2) * gamma((1 + norm) / 2) / np.sqrt(np.pi)
        far = np.abs(ratio) > 25  # the series cancels out there; three terms of the expansion are exact to 1e-8
        near = safe**norm * constant * hyp1f1(-norm / 2, 0.5, -(np.where(far, 0.0, ratio) ** 2) / 2)
        size = np.abs(mean)
        small = np.where(far, variance / np.where(far, size, 1.0) ** 2, 0.0)
        third = norm * (norm - 1) * (norm - 2) * (norm - 3) / 8
        wide = size**norm * (1 + norm * (norm - 1) / 2 * small + third * small**2)
        power = np.where(far, wide, near)
    return np.where(noisy, power, np.abs(mean) ** norm)
