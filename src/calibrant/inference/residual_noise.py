"""Simulated noise of the residual sums of a sample, cell by cell: what norms of the gap are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from calibrant.data.predictions import Binary, Predictions
from calibrant.data.validation import fail
from calibrant.inference.sample import Sample, pooled
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator, independent_counts
from calibrant.numerics.rows import accumulate_rows
from calibrant.table.bintable import BinTable

#: Cells in which fewer events, or fewer non-events, are expected get binomial draws, the others normal ones.
#: Test: tests/inference/test_residual_noise.py::test_few_expected_events_are_drawn_as_whole_numbers.
FEW_EVENTS = 20

#: Fewer clusters tell nothing about the spread between them.
#: Test: tests/inference/test_residual_noise.py::test_few_clusters_are_refused.
LEAST_CLUSTERS = 8

#: Wrong rows that a sample may hide: n rows without one exclude, at 95 %, only an expected number above three.
#: Reference: Hanley and Lippman-Hand (1983), If nothing goes wrong, is everything all right?, JAMA 249.
UNSEEN = 3.0

#: Cells drawn at a time.
#: Speed: few enough for the cache, and for memory that is used again; no result depends on it.
_CELLS = 64

Law = Callable[[], Iterator[Floats]]
"""Draws of noise, the same at every call: arrays of (cells, draws), cell after cell in the order of their scores."""


@dataclass(frozen=True, eq=False)
class ResidualNoise:
    """Draws of the noise of the residual sums, by one or two laws that a norm of the noise must respect both.

    Of prediction minus outcome, less its expectation, as a share of the weight, in cells of mean score `position`;
    `largest` is the mean of max(p, 1 - p).
    """

    position: Floats
    laws: tuple[Law, ...]
    largest: float

    @classmethod
    def of(cls, data: Predictions | BinTable, *, draws: int, seed: int, size: int, needed_by: str) -> ResidualNoise:
        """The noise of binary rows or of their fine table, on at most `size` cells of neighbouring scores.

        Independent rows have two laws: outcomes drawn from the predictions, and the observed squares of residuals as
        variances, with three rows more that were not seen to be wrong. Residuals of clusters change sign together.
        """
        if isinstance(data, Binary) and data.group is not None:
            return cls._of_clusters(Sample.of_rows(data), draws, seed, size, needed_by)
        table = pooled(Sample.of(data, needed_by=needed_by).table, size)
        chance, share, count, n = table.predicted_mean, table.share, table.effective_count, _effective_n(table)
        observed_mean = table.observed_mean
        square = observed_mean * (1 - chance) ** 2 + (1 - observed_mean) * chance**2  # mean of (p - y)² in each cell
        spread = np.sqrt(square * (n / max(n - 1, 1.0)) + UNSEEN / n) * share / np.sqrt(count)

        blocks = [slice(start, start + _CELLS) for start in range(0, len(table), _CELLS)]

        def null() -> Iterator[Floats]:
            rng = generator(seed, "noise of a calibrated model")
            for some in blocks:
                yield _outcomes(chance[some], count[some], draws, rng) * share[some, None]

        def observed() -> Iterator[Floats]:
            rng = generator(seed, "noise of the observed gaps")
            for some in blocks:
                yield rng.standard_normal((len(spread[some]), draws)) * spread[some, None]

        return cls(chance, (null, observed), _largest(table))

    @classmethod
    def _of_clusters(cls, sample: Sample, draws: int, seed: int, size: int, needed_by: str) -> ResidualNoise:
        from scipy.sparse import coo_array

        table = pooled(sample.table, size)
        cluster = np.zeros(0, np.intp) if sample.cluster is None else sample.cluster
        require_clusters(sample.clusters, needed_by=needed_by)
        cell = np.minimum(np.searchsorted(table.high, sample.rows.key.astype(np.float64)), len(table) - 1)
        values = sample.row_share * sample.residual
        sums = coo_array((values, (cell, cluster)), shape=(len(table), sample.clusters)).tocsr()
        share = np.bincount(cluster, sample.row_share)
        groups = 1 / float(share @ share)
        unseen = table.share * np.sqrt(UNSEEN / _effective_n(table) / table.effective_count)

        def signed() -> Iterator[Floats]:
            rng = generator(seed, "signs of residuals")
            signs = rng.choice([-1.0, 1.0], (sample.clusters, draws)) * np.sqrt(groups / max(groups - 1, 1.0))
            yield sums @ signs + rng.standard_normal((len(table), draws)) * unseen[:, None]

        return cls(table.predicted_mean, (signed,), _largest(table))

    def drawn(self) -> Iterator[Floats]:
        """All draws of each law, of shape (cells, draws)."""
        for law in self.laws:
            yield np.concatenate([*law()])

    def running_extremes(self) -> list[tuple[Floats, Floats]]:
        """The lowest and the highest running sum of every draw, from 0 at the lowest score on, law by law."""
        return [_running_extremes(law()) for law in self.laws]


def _running_extremes(blocks: Iterator[Floats]) -> tuple[Floats, Floats]:
    low, high, before = np.zeros(1), np.zeros(1), np.zeros(1)
    for block in blocks:
        block[0] += before
        accumulate_rows(block)
        low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
        before = block[-1].copy()
    return low, high


def largest_quantile(sizes: tuple[Floats, ...], probability: float) -> float:
    """The largest quantile among the laws."""
    return max(float(np.quantile(size, probability, method="weibull")) for size in sizes)


def require_clusters(number: int, *, needed_by: str) -> None:
    """Refuse so few clusters that the spread between them is not known."""
    if number < LEAST_CLUSTERS:
        fail(
            f"{needed_by} needs at least {LEAST_CLUSTERS} groups of rows to know the spread between them, got {number}."
        )


def _outcomes(chance: Floats, count: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Chance minus mean outcome of so many rows, a fraction rounded down and rescaled: binomial if few are expected."""
    chance = np.clip(chance, 0.0, 1.0)
    few = count * np.minimum(chance, 1 - chance) < FEW_EVENTS
    whole = np.maximum(np.floor(count[few] + 1e-9), 1.0)
    scale = np.sqrt(whole / count[few])
    hits = independent_counts(whole.astype(np.int64), chance[few], draws, rng)
    hits *= (-scale / whole)[:, None]
    hits += (scale * chance[few])[:, None]
    if few.all():
        return hits
    drawn, spread = np.empty((len(count), draws)), np.sqrt(chance * (1 - chance) / count)[~few]
    drawn[few] = hits
    drawn[~few] = rng.standard_normal((len(spread), draws)) * spread[:, None]
    return drawn


def _effective_n(table: BinTable) -> float:
    return float(table.total**2 / table.weight_squares.sum())


def _largest(table: BinTable) -> float:
    return float(table.share @ np.maximum(table.predicted_mean, 1 - table.predicted_mean))
