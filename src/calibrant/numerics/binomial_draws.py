"""Binomial counts with random numbers common to all calls: few operations per count, and smooth in the probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats

#: Standard deviations above the mean, and counts beyond them, up to which probabilities are tabulated.
_BEYOND, _MORE = 8.0, 10

#: Lines at a time, few enough for the cache.
_BLOCK = 32


@dataclass(frozen=True, eq=False)
class BinomialDraws:
    r"""A fixed number of draws of each of several binomial counts, by inversion of their distribution functions.

    Draw d of line i is :math:`F_i^{-1}((\pi_i(d) + u_i) / D)`, with a random permutation π and a uniform number u for
    each line. Each draw has exactly the binomial distribution and the lines are independent; the D draws of one line
    are spread evenly over its distribution, so that their quantiles vary less than those of independent draws. The
    same permutations serve all probabilities: a small change of a probability changes few counts.

    Attributes
    ----------
    rank : array (lines, draws) of int
    offset : array (lines,)

    Examples
    --------
    >>> draws = BinomialDraws.of(1, 1000, np.random.default_rng(0))
    >>> events = draws.counts(np.array([50]), np.array([0.02]))
    >>> events.shape, round(float(events.mean()), 2)
    ((1, 1000), 1.0)
    >>> bool(np.abs(np.bincount(events[0])[:3] - [364.2, 371.6, 185.8]).max() <= 1.5)  # 1000 times the probabilities
    True
    """

    rank: NDArray[np.int32]
    offset: Floats

    @classmethod
    def of(cls, lines: int, draws: int, rng: np.random.Generator) -> BinomialDraws:
        """The random numbers of so many lines."""
        rank = np.tile(np.arange(draws, dtype=np.int32), (lines, 1))
        return cls(rng.permuted(rank, axis=1, out=rank), rng.random(lines))

    def counts(
        self, size: NDArray[np.int64], probability: Floats, lines: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Counts of `size` trials, for all lines or those chosen; few events or few others should be expected.

        The cost is that of a table with a column for each count up to the largest that occurs.
        """
        own = np.arange(len(self.rank)) if lines is None else np.flatnonzero(lines)
        draws = self.rank.shape[1]
        ends = draws * _distribution(size, np.minimum(probability, 1 - probability)) + self.offset[own][:, None]
        ends[:, -1] = draws
        ends = np.minimum(ends.astype(np.int64), draws)
        found = np.empty((len(own), draws), np.int64)
        for start in range(0, len(own), _BLOCK):
            some = slice(start, start + _BLOCK)
            found[some] = _permuted(ends[some], self.rank[own[some]])
        common = probability > 0.5
        found[common] = size[common, None] - found[common]
        return found


def _permuted(ends: NDArray[np.int64], rank: NDArray[np.int32]) -> NDArray[np.int64]:
    """The value k at the places from ends[k - 1] to ends[k] of each line, brought into the order of the ranks."""
    first = rank.shape[1] * np.arange(len(rank))[:, None]
    value = np.tile(np.arange(ends.shape[1]), len(ends))
    ordered = np.repeat(value, np.diff((ends + first).ravel(), prepend=0))
    return ordered.take(rank + first)


def _distribution(size: NDArray[np.int64], probability: Floats) -> Floats:
    """Binomial distribution functions at 0, 1, ..., one per line; the probabilities are at most 1/2."""
    mean = float((size * probability).max(initial=0.0))
    most = min(int(size.max(initial=0)), int(mean + _BEYOND * np.sqrt(mean)) + _MORE)
    count = np.arange(1, most + 1)
    odds = (probability / (1 - probability))[:, None]
    terms = np.empty((len(size), most + 1))
    terms[:, 0] = np.exp(size * np.log1p(-probability))
    terms[:, 1:] = np.maximum(size[:, None] - count + 1, 0) / count * odds
    return np.asarray(np.cumsum(np.cumprod(terms, axis=1), axis=1))
