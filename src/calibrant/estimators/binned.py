"""Plain binned errors: ECE, its maximum, and the label-binned variant; norms of gaps, and results with their bins."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from calibrant.data.predictions import Binary, BinnedColumns, Column
from calibrant.data.validation import as_number
from calibrant.numerics.arrays import Floats
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import Binning, EqualMass
from calibrant.table.bintable import BinTable
from calibrant.table.from_rows import bin_samples
from calibrant.table.of_data import Data, binned, fine


def _ece_of_samples(samples: SortedSamples, *, bins: Binning = EqualMass(15), norm: float = 1) -> Floats:
    found = bin_samples(samples, bins)
    return np.asarray(mass_norm(found.mass, found.share, check_norm(norm)))


def _mce_of_samples(samples: SortedSamples, *, bins: Binning = EqualMass(15)) -> Floats:
    return _ece_of_samples(samples, bins=bins, norm=math.inf)


@estimates("true error", batched=_ece_of_samples)
def ece(
    data: Data = None,
    y_prob: Column = None,
    *,
    bins: Binning = EqualMass(15),
    norm: float = 1,
    **columns: Unpack[BinnedColumns],
) -> Estimate:
    r"""Binned expected calibration error, ECE.

    .. math:: \Bigl(\sum_k \frac{w_k}{W} \lvert\bar p_k - \bar y_k\rvert^q\Bigr)^{1/q}

    where bin k has weight w_k of W in all, mean prediction p̄_k and mean outcome ȳ_k, and q is `norm`. It is biased:
    upward by noise in small bins, downward where a bin averages errors of both signs. See `debiased_ece` and
    `sweep_ece`.

    Parameters
    ----------
    data : Predictions, BinTable, or y_true
        What to measure; with plain arrays, `y_prob` comes second.
    bins : Binning
        How to cut the predictions; a table that has bins already is taken as it is.
    norm : float
        The exponent q of at least 1, or infinity for the largest gap.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), Mitigating Bias in Calibration Error Estimation, eq. 4.

    Examples
    --------
    >>> from calibrant import EqualWidth
    >>> ece([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], bins=EqualWidth(2))
    <ECE (L1) 0.25, n=4, EqualWidth(n_bins=2, low=0.0, high=1.0)>
    """
    norm = check_norm(norm)
    table, method = binned(data, y_prob, bins, squares=False, needed_by="ece", linear=True)
    return _kept(data, gap_norm(table, norm), with_norm("ECE", norm), method, table)


@estimates("true error", norm=math.inf, batched=_mce_of_samples)
def mce(
    data: Data = None, y_prob: Column = None, *, bins: Binning = EqualMass(15), **columns: Unpack[BinnedColumns]
) -> Estimate:
    r"""Maximum calibration error over bins, MCE: :math:`\max_k \lvert\bar p_k - \bar y_k\rvert`.

    The largest of many noisy gaps: it grows with the number of bins even for a perfect model.

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015), Obtaining Well Calibrated Probabilities Using Bayesian Binning.

    Examples
    --------
    >>> from calibrant import EqualWidth
    >>> mce([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], bins=EqualWidth(2)).value
    0.30000000000000004
    """
    table, method = binned(data, y_prob, bins, squares=False, needed_by="mce", linear=True)
    return _kept(data, gap_norm(table, math.inf), with_norm("MCE", math.inf), method, table)


@estimates("true error")
def label_binned_ece(
    data: Data = None,
    y_prob: Column = None,
    *,
    bins: Binning = EqualMass(15),
    norm: float = 1,
    **columns: Unpack[BinnedColumns],
) -> Estimate:
    r"""Label-binned calibration error, ECE_lb: every prediction against the mean outcome of its bin.

    .. math:: \Bigl(\frac1W \sum_k \sum_{i \in B_k} w_i \lvert p_i - \bar y_k\rvert^q\Bigr)^{1/q}

    At least `ece` with the same bins and norm (Jensen). Needs the predictions or a fine table.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), section 4.

    Examples
    --------
    >>> from calibrant import EqualWidth
    >>> label_binned_ece([0, 1, 1, 1], [0.25, 0.25, 0.75, 1.0], bins=EqualWidth(2)).value
    0.1875
    """
    norm = check_norm(norm)
    cells = fine(data, y_prob, needed_by="label_binned_ece")
    table, cells = cells.coarsen(bins), cells.filled()
    middle = (cells.low + cells.high) / 2  # the score itself, where it is the only one; the mean may miss it by an ulp
    observed = table.observed_mean[np.searchsorted(table.edges[1:-1], middle, side="left")]
    value = weighted_norm(cells.predicted_mean - observed, cells.share, norm)
    return result(value, with_norm("ECE_lb", norm), repr(bins), table)


def _kept(data: Data, value: float, name: str, method: str, table: BinTable) -> Estimate:
    """The result with its table, unless labels are probabilities: the noise of such sums is not that of outcomes."""
    if isinstance(data, Binary) and data.outcomes is None:
        return Estimate(float(value), name=name, method=method, n=table.n)
    return result(value, name, method, table)


def check_norm(norm: float) -> float:
    """`norm` as a float of at least 1; infinity is allowed."""
    value = as_number(norm)
    if not value >= 1:
        message = f"norm must be a number of at least 1 (or math.inf), got {norm!r}."
        raise ValueError(message)
    return value


def weighted_norm(values: Floats, share: Floats, norm: float) -> Any:
    """(sum share |values|^norm)^(1/norm) along the last axis; the maximum for infinity."""
    sizes = np.abs(values)
    return sizes.max(axis=-1) if np.isinf(norm) else np.vecdot(share, sizes**norm) ** (1 / norm)


def mass_norm(mass: Floats, share: Floats, norm: float) -> Any:
    """Norm of the gaps of bins, given their error masses (share times gap), along the last axis.

    A bin of labelled positives without any unlabeled row has an error mass but no rate: it counts where norm is 1.
    """
    if norm == 1:
        return np.abs(mass).sum(axis=-1)
    gap = np.divide(mass, share, out=np.zeros_like(mass), where=share > 0)
    return weighted_norm(gap, share, norm)


def gap_norm(table: BinTable, norm: float) -> float:
    """Norm of the gaps between mean prediction and mean outcome over the bins that have weight."""
    mass = (table.predicted - table.observed * table.observed_scale) / table.total
    return float(mass_norm(mass, table.share, norm))


def signed_root(power: Any, norm: float) -> Any:
    """The root that keeps the sign, for debiased powers that may fall below zero."""
    return np.sign(power) * np.abs(power) ** (1 / norm)


def result(value: float, name: str, method: str, table: BinTable, **details: Any) -> Estimate:
    """An `Estimate` that keeps its table."""
    return Estimate(float(value), name=name, method=method, n=table.n, bins=table, details=details)


def with_norm(name: str, norm: float) -> str:
    """The name of an error with its norm: ECE (L1), ECE (L2), ECE (Linf)."""
    return f"{name} (L{norm:g})"
