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
