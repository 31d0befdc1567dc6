"""Mixture likelihood ratios against calibration: p-values of any depth that need no simulated samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats

#: Shifts of the log-odds, and their prior weights: a bin is calibrated with probability 0.4.
_SHIFTS = np.array([0.0, -0.25, 0.25, -0.5, 0.5, -1.0, 1.0, -1.6, 1.6, -2.5, 2.5, -4.0, 4.0])
_PRIOR = np.r_[0.4, np.full(12, 0.05)]

#: The largest number of bins, and the least mean number of rows per bin.
_MOST_BINS, _LEAST_ROWS = 64, 6

#: Rows per block: the table of a block, rows by shifts, stays in the cache.
_BLOCK = 1 << 15

#: Cells per block, for the same reason.
_CELLS_AT_ONCE = 1 << 14


def likelihood_ratio_p(y_prob: Floats, y_true: NDArray[np.int8], starts: NDArray[np.intp]) -> Floats:
    r"""For each group of independent rows the reciprocal of a likelihood ratio: a p-value at any n, however small.

    The alternatives shift the log-odds of the predictions by δ, independently in each of B bins of the scores,
    B = 1, 2, 4, ..., 64, with a fixed prior for δ:

    .. math:: E = \operatorname{mean}_B \prod_b \sum_\delta \pi_\delta
              \prod_{i \in b} \frac{e^{\delta y_i}}{1 - p_i + p_i e^\delta}, \qquad p = \min(1, 1 / E).

    If the model is calibrated, E has expectation 1, so that P(1/E ≤ x) ≤ x by Markov's inequality. It has less power
    than a simulated test where p is moderate, and no lower limit: with it, thousands of groups can be told apart.

    Parameters
    ----------
    y_prob, y_true : array
        Rows in the order of their group, and of y_prob within each group.
    starts : array
        The first row of each group; no group is empty.

    References
    ----------
    Vovk, Wang (2021), E-values: calibration, combination and applications. Annals of Statistics 49.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = np.concatenate([np.sort(rng.random(300)) for _ in range(2)])
    >>> truth = np.r_[p[:300], 1 - p[300:]]
    >>> good, reversed_ = likelihood_ratio_p(p, (rng.random(600) < truth).astype(np.int8), np.array([0, 300]))
    >>> bool(good > 0.1), bool(reversed_ < 1e-60)
    (True, True)
    """
    size = np.diff(np.append(starts, len(y_prob)))
    group = np.repeat(np.arange(len(starts)), size)
    finest = _power_of_two(size // _LEAST_ROWS)
    inside = (_first_of_equal(y_prob, group) - starts[group]) * finest[group] // size[group]
    first = _changes(group, inside)
    sums = _shifted_sums(y_prob, y_true, first)
    group, inside = group[first], inside[first]
    logs = []
    for bins in (1 << power for power in reversed(range(_MOST_BINS.bit_length()))):
        inside = inside // np.maximum(finest // bins, 1)[group]  # small groups repeat their finest bins
        finest = np.minimum(finest, bins)
        first = _changes(group, inside)
        sums, group, inside = np.add.reduceat(sums, first, axis=1), group[first], inside[first]
        logs.append(np.bincount(group, _log_means(sums, _PRIOR), len(starts)))
    log_mean = _log_means(np.array(logs), np.full(len(logs), 1 / len(logs)))
    return np.asarray(np.exp(-np.maximum(log_mean, 0.0)))


def likelihood_ratio_of_cells(count: Floats, probability: Floats, events: Floats) -> Floats:
    """`likelihood_ratio_p` of groups (lines) whose rows are counted in the same cells of neighbouring scores (columns).

    The number of cells is a power of two. Each cell counts as rows of its mean probability, by which the ratio becomes
    smaller, if anything: the logarithm of 1 - p + p exp(δ) is concave in p.

    Examples
    --------
    >>> p = likelihood_ratio_of_cells(np.array([[300.0, 300.0]]), np.array([[0.2, 0.7]]), np.array([[61.0, 310.0]]))
    >>> bool(p[0] < 1e-50)
    True
    """
    step = max(1, _CELLS_AT_ONCE // count.shape[1])
    blocks = [slice(start, start + step) for start in range(0, len(count), step)]
    return np.concatenate([_ratio_of_cells(count[some], probability[some], events[some]) for some in blocks])


def _ratio_of_cells(count: Floats, probability: Floats, events: Floats) -> Floats:
    sums = _SHIFTS[:, None, None] * events - count * np.log1p(np.expm1(_SHIFTS)[:, None, None] * probability)
    logs = []
    while True:
        if sums.shape[2] <= _MOST_BINS:
            flat = _log_means(sums.reshape(len(_SHIFTS), -1), _PRIOR)
            logs.append(flat.reshape(sums.shape[1:]).sum(axis=1))
        if sums.shape[2] == 1:
            break
        sums = sums[:, :, ::2] + sums[:, :, 1::2]
    log_mean = _log_means(np.array(logs), np.full(len(logs), 1 / len(logs)))
    return np.asarray(np.exp(-np.maximum(log_mean, 0.0)))


def _power_of_two(values: NDArray[np.intp]) -> NDArray[np.intp]:
    """The largest power of two that is at most each value, between 1 and the largest number of bins."""
    return np.left_shift(1, np.log2(np.clip(values, 1, _MOST_BINS)).astype(np.intp))


def _changes(group: NDArray[np.intp], inside: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where a bin begins."""
    return np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(inside, prepend=-1) != 0))


def _first_of_equal(y_prob: Floats, group: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first row of each run of equal scores: bins that split ties by the order of rows could know the outcomes."""
    new = (np.diff(y_prob, prepend=np.nan) != 0) | (np.diff(group, prepend=-1) != 0)
    return np.maximum.accumulate(np.where(new, np.arange(len(y_prob)), 0))


def _shifted_sums(y_prob: Floats, y_true: NDArray[np.int8], first: NDArray[np.intp]) -> Floats:
    """The log likelihood ratio of each shift (row) in each bin (column)."""
    ends = np.append(first[1:], len(y_prob))
    found = np.empty((len(_SHIFTS), len(first)))
    begin = 0
    while begin < len(first):
        stop = max(int(np.searchsorted(first, first[begin] + _BLOCK)), begin + 1)
        rows = slice(int(first[begin]), int(ends[stop - 1]))
        logs = np.outer(_SHIFTS, y_true[rows]) - np.log1p(np.outer(np.expm1(_SHIFTS), y_prob[rows]))
        found[:, begin:stop] = np.add.reduceat(logs, first[begin:stop] - first[begin], axis=1)
        begin = stop
    return found


def _log_means(logs: Floats, share: Floats) -> Floats:
    """The logarithm of a weighted mean over rows of numbers given by their logarithms."""
    largest = logs.max(axis=0)
    return np.asarray(largest + np.log(share @ np.exp(logs - largest)))
