"""Assignment of rows to folds: shuffled, never stratified by outcome, clusters kept together.

Stratified folds give every training part the class shares of its held-out part, so a chance excess of positives is
confirmed out of fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Codes, Floats

#: Seed of a random generator, or the generator itself.
Seed = int | Sequence[int] | np.random.Generator


def fold_of_rows(n: int, sizes: Sequence[float], *, seed: Seed, cluster: NDArray[Any] | None = None) -> Codes:
    """Fold of each of `n` rows, 0 .. len(sizes) - 1.

    Numbers of rows (or of clusters) are the relative `sizes` rounded to integers. With fewer rows than folds, each row
    has its own fold and the last folds are empty.
    """
    names, unit_of = (None, None) if cluster is None else np.unique(cluster, return_inverse=True)
    units = n if names is None else len(names)
    ends = np.maximum(np.round(units * np.cumsum(sizes) / np.sum(sizes)), np.arange(1, len(sizes) + 1))
    in_order = np.searchsorted(ends, np.arange(units), side="right")
    fold: Codes = np.random.default_rng(seed).permutation(in_order).astype(np.intp)
    return fold if unit_of is None else fold[unit_of.reshape(-1)]


def fold_counts(counts: Floats, sizes: Sequence[float], *, seed: Seed) -> Floats:
    """Integer numbers of rows per cell, divided into folds: shape (folds, *shape of counts).

    Every row is assigned independently, so the folds have their `sizes` only on average.
    """
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(counts.round().astype(np.int64), np.divide(sizes, np.sum(sizes)))
    return np.moveaxis(drawn, -1, 0).astype(np.float64)
