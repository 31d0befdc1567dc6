"""Binned errors: ECE, its maximum, label-binned, debiased, and by the monotone sweep; norms of gaps."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, BinnedColumns, Column, Columns, binary
from calibrant.data.validation import as_number, fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.equal_mass import RunningWeight, SortedSamples, positions_of
from calibrant.numerics.sorting import Rank, SortedRows, sorted_rows
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import Binning, EqualMass, EqualWidth, bin_samples, check_rank
from calibrant.table.bintable import BinTable, Data, binned, equal_mass_table, fine
from calibrant.table.task import Spread


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
    data : Predictions, BinTable, or y_true (then `y_prob`)
    bins : Binning
        How to bin the predictions. Not used for a table that already has bins.
    norm : float
        The exponent q, at least 1; infinity gives the largest gap.

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
    Roelofs, Cain, Shlens, Mozer (2022), eq. 3, and eq. 5 for Jensen's inequality.

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
    value = float(norm) if type(norm) in (int, float) else as_number(norm)
    if not value >= 1:
        fail(f"norm must be a number of at least 1 (or math.inf), got {norm!r}.", ValueError)
    return value


def weighted_norm(values: Floats, share: Floats, norm: float) -> Any:
    """(sum share |values|^norm)^(1/norm) along the last axis; the maximum for infinity."""
    sizes = np.abs(values)
    return sizes.max(axis=-1) if np.isinf(norm) else np.vecdot(share, sizes**norm) ** (1 / norm)


def mass_norm(mass: Floats, share: Floats, norm: float) -> Any:
    """Norm of the gaps of bins (last axis), from error masses; positives without unlabeled rows count in L1 only."""
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


def _debiased_of_samples(samples: SortedSamples, *, bins: Binning = EqualMass(15), norm: float = 1) -> Floats:
    norm = _check_finite_norm(norm)
    found = bin_samples(samples, bins)
    return np.asarray(signed_root(debiased_sum(found.mass, found.mass_variance, found.share, norm), norm))


@estimates("true error", batched=_debiased_of_samples)
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

    which for q = 2 is the line above. For q > 2 a second term of this kind, with noise of twice the variance, is added,
    weighted so that the bias vanishes both at zero error and, to first order, far from it. On positive-unlabeled data
    s_k^2 is the variance that the two samples give to the gap (`calibrant.pu.Gaps`). A bin of one row adds nothing but
    keeps its weight. The result may be negative; `.clipped` is the customary max(0, value). ``details["power"]`` is S
    itself.

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
        fail("debiased_ece does not support the infinite norm; use mce for the largest gap.", ValueError)
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


Family = type[EqualMass] | type[EqualWidth]

#: Rows in perfect order, which would be swept to the end, are looked for at this number of bins.
#: Speed: most sweeps of other rows have ended by then; no result depends on it.
_ORDER_CHECK = 32


def _sweep_of_samples(
    samples: SortedSamples, *, bins: Family = EqualMass, norm: float = 1, rank: Rank = "floor"
) -> Floats:
    norm, bins = check_norm(norm), _check_family(bins, rank)
    chosen = largest_rising(samples, bins, rank)
    values = np.empty(len(samples))
    for n_bins in np.unique(chosen):
        which = np.flatnonzero(chosen == n_bins)
        found = bin_samples(samples, _of_family(bins, int(n_bins), rank), which)
        values[which] = mass_norm(found.mass, found.share, norm)
    return values


@estimates("true error", batched=_sweep_of_samples)
def sweep_ece(
    data: Data = None,
    y_prob: Column = None,
    *,
    bins: Family = EqualMass,
    norm: float = 1,
    rank: Rank = "floor",
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Monotonic sweep calibration error, ECE_sweep: binned, with as many bins as keep mean outcomes increasing.

    .. math:: b^\star = \max\{b : \bar y_1 \le \dots \le \bar y_{b'} \text{ for every } b' \le b\}

    and the result is `ece` with b* bins. If the true calibration curve is increasing, bins whose outcomes are out of
    order are too small to be reliable. Equal scores are never split, so the result does not depend on the order of the
    rows (published code splits them, and its result then varies by a tenth). Where every b is in order (separable
    outcomes) each distinct score is a bin.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
    bins : EqualMass or EqualWidth
        The family of binnings to sweep through.
    norm : float
        As for `ece`. The paper uses 2.
    rank : "floor" or "ceil"
        How `EqualMass` rounds the ranks of its edges. "ceil" is that of the code published with the paper, whose
        numbers then come out where no scores are tied.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), eq. 8 and Algorithm 1.

    Examples
    --------
    >>> sweep_ece([1, 0, 0, 1, 0, 1], [0.1, 0.2, 0.4, 0.6, 0.7, 0.9])
    <ECE_sweep (L1) 0.2167, n=6, EqualMass(n_bins=3)>
    """
    norm = check_norm(norm)
    return swept(_source(data, y_prob), _check_family(bins, rank), norm, rank)


def _check_family(bins: Family, rank: Rank) -> Family:
    if bins not in (EqualMass, EqualWidth):
        message = (
            "The sweep chooses the number of bins itself, so bins must be the class EqualMass or EqualWidth, got "
            f"{bins!r}; for a given number of bins use ece or ence."
        )
        raise ValueError(message)
    if check_rank(rank) != "floor" and bins is not EqualMass:
        fail(f"rank={rank!r} is for bins=EqualMass; EqualWidth has no ranks.", ValueError)
    return bins


def _of_family(bins: Family, n_bins: int, rank: Rank) -> EqualMass | EqualWidth:
    return EqualMass(n_bins, rank) if bins is EqualMass else EqualWidth(n_bins)


def swept(source: SortedRows | BinTable, bins: Family = EqualMass, norm: float = 1, rank: Rank = "floor") -> Estimate:
    """The sweep of sorted rows or of a fine table, of probabilities or of spreads."""
    if isinstance(source, SortedRows):
        n_bins = int(largest_rising(SortedSamples.of_rows(source), bins, rank)[0])
        if bins is EqualMass:
            table = BinTable(*equal_mass_table(source, n_bins, rank))
        else:
            table = BinTable.of(source.rows, bins(n_bins))
    else:
        n_bins = _largest_rising_of_cells(source, bins, rank)
        table = source.coarsen(_of_family(bins, n_bins, rank))
    table.task.warn(table)
    found = repr(_of_family(bins, n_bins, rank))
    return result(gap_norm(table, norm), with_norm("ECE_sweep", norm), found, table, bins=n_bins)


def _source(data: Data, y_prob: Column) -> SortedRows | BinTable:
    """Sorted rows where whole counts will do, else the fine table."""
    if isinstance(data, BinTable):
        return fine(data, None, needed_by="sweep_ece")
    predictions = binary(data, y_prob)
    first, *_ = predictions.parts()
    if first.plain_binary:
        return sorted_rows(first)
    return fine(predictions, None, needed_by="sweep_ece")


def largest_rising(samples: SortedSamples, bins: Family = EqualMass, rank: Rank = "floor") -> NDArray[np.intp]:
    """b* of each sample: the last number of bins before the first whose mean outcomes fall, in whole numbers."""
    by_loop = bins is EqualMass and rank == "floor" and len(samples) == 1
    if by_loop and (found := samples.largest_rising()) is not None:
        return np.array([found])
    chosen = np.full(len(samples), samples.n, dtype=np.intp)
    active = np.arange(len(samples))
    for n_bins in range(2, samples.n + 1):
        if n_bins == _ORDER_CHECK:
            active = active[[not _rises_everywhere(samples, sample) for sample in active.tolist()]]
        which = None if len(active) == len(samples) else active
        if bins is EqualMass:
            cuts = samples.equal_mass_cuts(n_bins, which, rank)
        else:
            cuts = samples.cuts_at(EqualWidth(n_bins).edges, which)
        falls = _falls(cuts[..., 1:] - cuts[..., :-1], samples.observed(cuts, which))
        if falls.any():
            chosen[active[falls]] = n_bins - 1
            active = active[~falls]
        if not len(active):
            break
    return chosen


def _rises_everywhere(samples: SortedSamples, sample: int) -> bool:
    """Whether the mean outcomes of the distinct scores never fall: then those of no bins do."""
    if not samples.tied:  # each row is a bin, and its outcome the mean
        outcome = samples.outcome[sample]
        return not bool((outcome[1:] < outcome[:-1]).any())
    cuts, which = samples.run_ends(sample), np.array([sample])
    return not bool(_falls(np.diff(cuts), samples.observed(cuts, which)[0]))


def _largest_rising_of_cells(cells: BinTable, bins: Family, rank: Rank = "floor") -> int:
    """b* on cells that may carry weights and may be cut: running sums at places between and within cells."""
    weight = np.concatenate([[0.0], np.cumsum(cells.weight)])
    observed = np.concatenate([[0.0], np.cumsum(cells.observed)])
    equal_mass = RunningWeight.of(cells.weight, cells.weight_squares, atom=cells.low == cells.high)
    unit = cells.observed.sum() / cells.total if isinstance(cells.task, Spread) else 1.0
    tolerance = 1e-12 * unit  # sums of weights and parts of cells carry rounding
    ends = _ends_of_weight(weight)
    most = cells.task.most_bins(cells)
    if not _falls(np.diff(weight[ends]), np.diff(observed[ends]), tolerance):
        return most
    for n_bins in range(2, most + 1):
        if bins is EqualMass:
            at = equal_mass.cuts(n_bins, rank)
        else:
            at = positions_of(EqualWidth(n_bins).edges, cells.low, cells.high)
        if _falls(np.diff(_at(weight, at)), np.diff(_at(observed, at)), tolerance):
            return n_bins - 1
    return most


def _ends_of_weight(weight: Floats) -> NDArray[np.intp]:
    """The places that end a cell of some weight, with the cells before it that have none: bins are (low, high]."""
    ends = np.flatnonzero(np.diff(weight, prepend=-1.0) > 0)
    ends[-1] = len(weight) - 1
    return ends


def _at(running: Floats, at: Floats) -> Floats:
    """Running sums at places between cells; 3.25 is a quarter into the fourth cell."""
    whole = at.astype(np.intp)
    after = running[np.minimum(whole + 1, len(running) - 1)]
    return running[whole] + (at - whole) * (after - running[whole])


def _falls(weight: NDArray[Any], observed: NDArray[Any], tolerance: float = 0.0) -> NDArray[np.bool_]:
    """Whether a mean outcome along the last axis is below that of an earlier bin; bins without weight have none."""
    filled = weight > 0
    if filled.all():
        rate = observed / weight
        before = rate[..., :-1] - tolerance if tolerance else rate[..., :-1]
        return np.asarray((rate[..., 1:] < before).any(axis=-1))
    rate = np.divide(observed, weight, out=np.full(observed.shape, -np.inf), where=filled)
    highest = np.maximum.accumulate(rate, axis=-1)  # before the first fall, the last filled is the highest
    return np.asarray((filled[..., 1:] & (rate[..., 1:] < highest[..., :-1] - tolerance)).any(axis=-1))
