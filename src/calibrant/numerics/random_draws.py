"""Random draws: normal, categorical and binomial, and the assignment of rows to folds.

Binomial counts are drawn by inversion. With random numbers common to all calls they are smooth in the probability, so
that tests can be inverted; independent counts are drawn many at a time. Folds are not stratified by outcome: stratified
folds give every training part the class shares of its held-out part, so a chance excess of positives is confirmed out
of fold.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Codes, Floats

#: Rows of uniform numbers drawn at a time, few enough for the cache. Speed: benchmarks/simulate.py; no result depends
#: on it.
_DRAWN_AT_ONCE = 128

#: Up to this many classes, comparing with every bound is faster than searching. Speed: benchmarks/simulate.py; no
#: result depends on it.
_FEW = 40


#: Seed of a random generator, or the generator itself.
Seed = int | Sequence[int] | np.random.SeedSequence | np.random.Generator


def generator(seed: Seed, use: str, *more: int) -> np.random.Generator:
    """The random generator for one use of a seed; every generator of the package is made here.

    The name of the use is part of the seed: two uses do not share numbers, and neither repeats those of
    ``np.random.default_rng(seed)``, with which users simulate or shuffle their rows. `more` tells apart the repetitions
    of one use. A generator is returned as it is.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    salt = (zlib.crc32(use.encode()), *more)
    if isinstance(seed, np.random.SeedSequence):
        return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *salt)))
    return np.random.default_rng([*((seed,) if isinstance(seed, int | np.integer) else seed), *salt])


def scikit_learn_seed(seed: int, use: str) -> int:
    """A `random_state` for one use of a seed."""
    return int(generator(seed, use).integers(2**31))


def normal_draws(covariance: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Draws from the normal distribution of mean zero, one per row; the covariance may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((rng.standard_normal((size, len(values))) * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def categorical_draws(probability: Floats, size: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Class numbers drawn from each row of probabilities (which need not sum to 1 exactly), of shape (rows, size).

    By inversion, so that a class of probability 0 is never drawn.
    """
    running = np.cumsum(probability, axis=1)
    drawn = np.empty((len(running), size), np.int32)
    for start in range(0, len(running), _DRAWN_AT_ONCE):
        rows = slice(start, start + _DRAWN_AT_ONCE)
        uniform = rng.random((len(running[rows]), size))
        uniform *= running[rows, -1:]
        drawn[rows] = bounds_reached(running[rows, :-1], uniform)
    return drawn


def bounds_reached(bounds: Floats, values: Floats) -> NDArray[np.integer[Any]]:
    """How many of the rising bounds of its row each value reaches; few rows at a time stay in the cache."""
    if bounds.shape[1] > _FEW:
        return np.stack([own.searchsorted(row, side="right") for own, row in zip(bounds, values, strict=True)])
    count = np.zeros(values.shape, np.uint8)
    for column in np.ascontiguousarray(bounds.T):
        count += (values >= column[:, None]).view(np.uint8)
    return count


#: Standard deviations above the mean, and counts beyond them, up to which probabilities are tabulated. Derived: by
#: Chernoff's bound less than 1e-9 of a binomial count is beyond.
_BEYOND, _MORE = 8.0, 10

#: Up to this many ends are compared one after the other. Speed: benchmarks/latency.py; no result depends on it.
_FEW_ENDS = 28

#: Up to this number of expected events (or others) a table of their probabilities takes less time than rejection.
#: Speed: benchmarks/inference.py; both draw from the same distribution.
_TABULATED = 200.0

#: Lines at a time, few enough for the cache. Speed: benchmarks/inference.py; no result depends on it but for the order
#: of draws.
_BLOCK = 64

#: Parts of [0, 1] in which it is looked up how many bounds a number reaches.
#: Speed: benchmarks/inference.py; no result depends on it.
_PARTS = 128


@dataclass(frozen=True, eq=False)
class BinomialDraws:
    r"""A fixed number of draws of each of several binomial counts, by inversion of their distribution functions.

    Draw d of line i is :math:`F_i^{-1}((\pi_i(d) + u_i) / D)`, with a random permutation π and a uniform number u for
    each line. Each draw has exactly the binomial distribution and the lines are independent; the D draws of one line
    are spread evenly over its distribution, so that their quantiles vary less than those of independent draws. The
    same permutations serve all probabilities: a small change of a probability changes few counts. `rank` is π, (lines,
    draws), and `offset` u.
    """

    rank: NDArray[np.int32]
    offset: Floats

    @classmethod
    def of(cls, lines: int, draws: int, rng: np.random.Generator) -> BinomialDraws:
        """The random numbers of this many lines."""
        rank = np.empty((lines, draws), np.int32)
        for start in range(0, lines, _BLOCK):
            rank[start : start + _BLOCK] = _permutations(len(rank[start : start + _BLOCK]), draws, rng)
        return cls(rank, rng.random(lines))

    def counts(
        self, size: NDArray[np.int64], probability: Floats, lines: NDArray[np.bool_ | np.intp] | None = None
    ) -> Floats:
        """Counts of `size` trials, for all lines or those chosen; few events or few others should be expected.

        The cost is that of a table with a column for each count up to the largest that occurs. Counts are floats, as
        they are going to be multiplied by some.
        """
        own = np.arange(len(self.rank)) if lines is None else np.arange(len(self.rank))[lines]
        draws = self.rank.shape[1]
        ends = _distribution(size, np.minimum(probability, 1 - probability))
        ends *= draws
        ends += self.offset[own][:, None]
        ends[:, -1] = draws
        times = np.minimum(ends, draws, out=ends).astype(np.intp)
        times[:, 1:] -= times[:, :-1]
        common, number = (probability > 0.5)[:, None], np.arange(ends.shape[1])
        value = np.where(common, size[:, None] - number, number).astype(np.float64)
        found = np.empty((len(own), draws))
        for start in range(0, len(own), _BLOCK):
            some = slice(start, start + _BLOCK)
            ordered, rank = np.repeat(value[some].ravel(), times[some].ravel()), self.rank[own[some]]
            ordered.take(rank + draws * np.arange(len(rank))[:, None], out=found[some], mode="clip")
        return found


def independent_counts(size: NDArray[np.int64], probability: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Independent draws of each of several binomial counts, of shape (lines, draws).

    By inversion, in a third to a sixth of the time of `Generator.binomial`, which draws where very many events are
    expected.
    """
    few = size * np.minimum(probability, 1 - probability) <= _TABULATED
    if few.all():
        return _tabulated_counts(size, probability, draws, rng)
    found, rows = np.empty((len(size), draws)), size[~few, None]
    found[few] = _tabulated_counts(size[few], probability[few], draws, rng)
    found[~few] = rng.binomial(rows, probability[~few, None], (len(rows), draws))
    return found


def _tabulated_counts(size: NDArray[np.int64], probability: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Independent counts of which few events or few others are expected."""
    common, found = probability > 0.5, np.empty((len(size), draws))
    first, step = np.where(common, size, 0)[:, None], np.where(common, -1.0, 1.0)[:, None]
    rare = np.minimum(probability, 1 - probability)
    for start in range(0, len(size), _BLOCK):
        some = slice(start, start + _BLOCK)
        own = found[some]
        ends = _distribution(size[some], rare[some])[:, :-1]
        reached = bounds_reached if ends.shape[1] <= _FEW_ENDS else _ends_reached
        np.multiply(reached(ends, rng.random(out=own)), step[some], out=own)
        own += first[some]
    return found


def _ends_reached(ends: Floats, uniform: Floats) -> NDArray[np.intp]:
    """How many of the rising ends of its line each number in [0, 1) reaches: up to its part of [0, 1], then one by one.

    Takes less time than `bounds_reached` where there are many ends.
    """
    lines, width = ends.shape
    line = np.arange(lines)[:, None]
    part = np.minimum(np.ceil(ends * _PARTS), _PARTS).astype(np.intp) + (_PARTS + 1) * line
    sure = np.bincount(part.ravel(), minlength=(_PARTS + 1) * lines).reshape(lines, -1).cumsum(axis=1)
    following = np.concatenate([ends, np.full((lines, 1), np.inf)], axis=1)
    place = (uniform * _PARTS).astype(np.intp)
    place += (_PARTS + 1) * line
    count = sure.ravel().take(place)
    more = np.flatnonzero(uniform >= np.take_along_axis(following, sure, axis=1).ravel().take(place))
    at, number = more // uniform.shape[1] * (width + 1), uniform.ravel()[more]
    at += count.ravel()[more]
    while len(more):
        count.ravel()[more] += 1
        at += 1
        kept = number >= following.ravel()[at]
        more, at, number = more[kept], at[kept], number[kept]
    return count


def _permutations(lines: int, draws: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Random orders of the numbers below `draws`, by sorting random words whose last bits are those numbers."""
    last = np.uint64((1 << max(draws - 1, 1).bit_length()) - 1)
    word = rng.integers(0, 2**64, (lines, draws), dtype=np.uint64)
    word &= ~last
    word |= np.arange(draws, dtype=np.uint64)
    word.sort(axis=1)
    word &= last
    return word


def _distribution(size: NDArray[np.int64], probability: Floats) -> Floats:
    """Binomial distribution functions at 0, 1, ..., one per line; the probabilities are at most 1/2."""
    mean = float((size * probability).max(initial=0.0))
    most = min(int(size.max(initial=0)), int(mean + _BEYOND * np.sqrt(mean)) + _MORE)
    count = np.arange(1, most + 1)
    terms = np.empty((len(size), most + 1))
    terms[:, 0] = np.exp(size * np.log1p(-probability))
    ratios = np.subtract(size[:, None] + 1.0, count, out=terms[:, 1:])
    np.maximum(ratios, 0.0, out=ratios)
    ratios /= count
    ratios *= (probability / (1 - probability))[:, None]
    np.cumprod(terms, axis=1, out=terms)
    return np.cumsum(terms, axis=1, out=terms)


def fold_of_rows(n: int, sizes: Sequence[float], *, seed: Seed, cluster: NDArray[Any] | None = None) -> Codes:
    """Fold of each of `n` rows (or clusters), 0 .. len(sizes) - 1, in numbers of the relative `sizes`, rounded.

    With fewer rows than folds, each row has its own fold and the last folds are empty.
    """
    names, unit_of = (None, None) if cluster is None else np.unique(cluster, return_inverse=True)
    units = n if names is None else len(names)
    ends = np.maximum(np.round(units * np.cumsum(sizes) / np.sum(sizes)), np.arange(1, len(sizes) + 1))
    in_order = np.searchsorted(ends, np.arange(units), side="right")
    fold: Codes = generator(seed, "folds").permutation(in_order).astype(np.intp)
    return fold if unit_of is None else fold[unit_of]


def fold_counts(counts: Floats, sizes: Sequence[float], *, seed: Seed) -> Floats:
    """Integer numbers of rows per cell, each assigned to a fold independently: shape (folds, *shape of counts)."""
    rng = generator(seed, "folds of cells")
    drawn = rng.multinomial(counts.round().astype(np.int64), np.divide(sizes, np.sum(sizes)))
    return np.moveaxis(drawn, -1, 0).astype(np.float64)
