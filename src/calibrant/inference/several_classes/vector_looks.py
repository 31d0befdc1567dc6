r"""Statistics of whole vectors of class probabilities, of the observed labels and of many drawn ones at once.

A label of row i adds to one cell of any table over (row, class), so a table costs one lookup per row and draw, whatever
the number of classes; expected counts and variances are the same for all draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.draws import categorical_draws

#: Names of the statistics, in words, with their weights in the combined test.
WEIGHTS = {
    "temperature of all classes": 0.5,
    "confidence per class, all classes": 1.0,
    "confidence per class, worst class": 1.0,
    "more surprises than predicted": 1.5,
    "probabilities of all classes pooled": 1.0,
    "class frequencies, all classes": 1.0,
    "class frequencies in 2 bins, all classes": 0.5,
    "class frequencies in 4 bins, all classes": 1.0,
    "class frequencies, worst class": 0.75,
    "class frequencies in 2 bins, worst class": 1.0,
    "class frequencies in 4 bins, worst class": 1.0,
    "rank of the true class in 8 bins of confidence": 1.0,
    "rank of the true class in 32 bins of confidence": 0.5,
    "confusion of classes, all pairs": 1.0,
    "confusion of classes, worst pair": 0.5,
}

#: Halvings of the distance to 0 and to 1 that pooled probabilities are divided into.
_HALVINGS = 25

#: Bins per class, and bins of the confidence with the number of rows they need.
_CLASS_BINS, _FEW_BINS, _MANY_BINS, _ROWS_FOR_MANY = 4, 8, 32, 256

#: Ranks of the true class: first, second, third, later.
_RANKS = 4

#: Beyond this many classes the table of confusions has the rank of the outcome, not its class.
_PAIRED_CLASSES = 128

#: Smallest variances that squared gaps are divided by.
_CLASS_FLOOR, _POOLED_FLOOR, _RANK_FLOOR, _PAIR_FLOOR = 0.05, 1.0, 1e-6, 0.5

#: Labels and probabilities that are held at a time.
_MOST_LABELS, _MOST_ENTRIES = 20_000_000, 4_000_000

Cells = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Table:
    """What a label of each class adds in each row: `value` (1 if None) to cell `cell` of `size`."""

    cell: Cells
    size: int
    value: Floats | None = None
    #: (probabilities, cells) of the events whose variance counts, where several classes of a row share a cell.
    events: tuple[Floats, Cells] | None = None

    def observed(self, at: NDArray[np.int32]) -> Floats:
        """Sums per cell, one line per line of labels; `at` holds row * classes + label."""
        cell = self.cell.ravel()
        value = None if self.value is None else self.value.ravel()
        sums = np.empty((len(at), self.size))
        for line, where in zip(sums, at, strict=True):
            line[:] = np.bincount(cell.take(where), None if value is None else value.take(where), self.size)
        return sums

    def moments(self, probability: Floats) -> tuple[Floats, Floats]:
        """Expected sums per cell, and their variances with classes of a row taken for independent."""
        cell, value = self.cell.ravel(), 1.0 if self.value is None else self.value
        mean: Floats = np.bincount(cell, (probability * value).ravel(), self.size).astype(np.float64)
        if self.events is None:
            variance = probability * (1 - probability) * value**2
        else:
            p, cell = self.events
            variance = p * (1 - p)
        return mean, np.bincount(cell.ravel(), variance.ravel(), self.size).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Layout:
    """How the rows are divided: 4 bins per class of equal variance, and bins of the top probability of equal size."""

    probability: Floats
    class_bin: NDArray[np.int8]
    confidence_bin: NDArray[np.int8]

    @classmethod
    def of(cls, probability: Floats) -> Layout:
        """The division of these rows; equal probabilities share a bin."""
        class_bin = np.empty(probability.shape, np.int8)
        for k, p in enumerate(probability.T):
            class_bin[:, k] = _equal_mass(p, p * (1 - p), _CLASS_BINS)
        bins = _MANY_BINS if len(probability) >= _ROWS_FOR_MANY else _FEW_BINS
        confidence = _equal_mass(probability.max(axis=1), np.ones(len(probability)), bins)
        return cls(probability, class_bin, confidence.astype(np.int8))

    @property
    def confidence_bins(self) -> int:
        """Number of bins of the top probability."""
        return _MANY_BINS if len(self.probability) >= _ROWS_FOR_MANY else _FEW_BINS

    def class_table(self, rows: slice) -> _Table:
        """Outcomes per class and bin of its probability."""
        _, k = self.probability.shape
        return _Table(self.class_bin[rows] + np.arange(k, dtype=np.int32) * _CLASS_BINS, k * _CLASS_BINS)

    def tables(self, rows: slice) -> dict[str, _Table]:
        """All tables of these rows."""
        p = self.probability[rows]
        k = p.shape[1]
        column = np.broadcast_to(np.arange(k, dtype=np.int32), p.shape)
        order = np.argsort(-p, axis=1, kind="stable")
        rank = np.empty(p.shape, np.int32)
        np.put_along_axis(rank, order, column, axis=1)
        ranks = min(k, _RANKS)
        np.minimum(rank, ranks - 1, out=rank)
        surprise = np.minimum(1 / np.maximum(p, 1e-300), 4.0 * len(self.probability))
        paired, size = (column, k) if k <= _PAIRED_CLASSES else (rank, ranks)
        return {
            "slope": _Table(column, k, _centred_logs(p, len(self.probability))),
            "surprise": _Table(np.zeros(p.shape, np.int32), 1, surprise),
            "pooled": _Table(_halvings(p), 2 * _HALVINGS),
            "class": self.class_table(rows),
            "rank": self._rank_table(rows, order, rank, ranks),
            "confusion": _Table(order[:, :1].astype(np.int32) * size + paired, k * size),
        }

    def _rank_table(self, rows: slice, order: NDArray[np.intp], rank: Cells, ranks: int) -> _Table:
        """Rank of the outcome by bin of confidence; later ranks of a row are one event."""
        bins = self.confidence_bins
        confidence = self.confidence_bin[rows, None].astype(np.int32)
        ordered = np.take_along_axis(self.probability[rows], order, axis=1)
        events = np.column_stack([ordered[:, : ranks - 1], ordered[:, ranks - 1 :].sum(axis=1)])
        cells = np.arange(ranks, dtype=np.int32) * bins + confidence
        return _Table(rank * bins + confidence, ranks * bins, events=(events, cells))


@dataclass(frozen=True, eq=False)
class Gaps:
    """Observed less expected sums per cell, one line per line of labels, and the variances under the null."""

    gap: Floats
    variance: Floats

    def squares(self, floor: float) -> Floats:
        """Squared gaps over their variances."""
        return self.gap**2 / np.maximum(self.variance, floor)


def gaps_of_labels(
    layout: Layout, labels: NDArray[np.intp], draws: int, rng: np.random.Generator, *, only: str | None = None
) -> dict[str, Gaps]:
    """Gaps of the observed labels (first line) and of drawn ones, for all tables or `only` one."""
    sums: dict[str, Floats] = {}
    variances: dict[str, Floats] = {}
    for rows in _chunks(layout.probability.shape, draws + 1):
        p = layout.probability[rows]
        at = np.empty((draws + 1, len(p)), np.int32)
        at[0] = labels[rows]
        at[1:] = categorical_draws(p, draws, rng).T
        at += np.arange(len(p), dtype=np.int32) * p.shape[1]
        tables = layout.tables(rows) if only is None else {only: layout.class_table(rows)}
        for name, table in tables.items():
            mean, variance = table.moments(p)
            sums[name] = sums.get(name, 0.0) + table.observed(at) - mean
            variances[name] = variances.get(name, 0.0) + variance
    return {name: Gaps(gap, variances[name]) for name, gap in sums.items()}


def statistics(layout: Layout, gaps: dict[str, Gaps]) -> dict[str, Floats]:
    """One number per line of labels for each look, large where predictions and labels disagree."""
    _, k = layout.probability.shape
    slope = gaps["slope"].squares(_CLASS_FLOOR)
    found = {
        "temperature of all classes": gaps["slope"].gap.sum(axis=1) ** 2,
        "confidence per class, all classes": slope.sum(axis=1),
        "confidence per class, worst class": slope.max(axis=1),
        "more surprises than predicted": gaps["surprise"].gap[:, 0],
        "probabilities of all classes pooled": gaps["pooled"].squares(_POOLED_FLOOR).sum(axis=1),
    }
    for bins, squares in class_squares(gaps["class"], k).items():
        words = f"class frequencies in {bins} bins" if bins > 1 else "class frequencies"
        found[f"{words}, all classes"] = squares.sum(axis=1)
        found[f"{words}, worst class"] = squares.max(axis=1)
    rank, bins = gaps["rank"], layout.confidence_bins
    rank = Gaps(rank.gap.reshape(len(rank.gap), -1, bins), rank.variance.reshape(-1, bins))
    while bins >= _FEW_BINS:
        if bins in (_FEW_BINS, _MANY_BINS):
            squares = rank.squares(_RANK_FLOOR).sum(axis=(1, 2))
            found[f"rank of the true class in {bins} bins of confidence"] = squares
        rank, bins = _halved(rank), bins // 2
    confusion = gaps["confusion"]
    found["confusion of classes, all pairs"] = (confusion.gap**2).sum(axis=1) - confusion.variance.sum()
    found["confusion of classes, worst pair"] = confusion.squares(_PAIR_FLOOR).max(axis=1)
    return found


def class_squares(gaps: Gaps, classes: int) -> dict[int, Floats]:
    """For 4, 2 and 1 bins per class the sum of squared gaps over their variances, of shape (lines, classes)."""
    one = Gaps(gaps.gap.reshape(len(gaps.gap), classes, -1), gaps.variance.reshape(classes, -1))
    found = {}
    while one.variance.shape[1] >= 1:
        found[one.variance.shape[1]] = one.squares(_CLASS_FLOOR).sum(axis=2)
        if one.variance.shape[1] == 1:
            break
        one = _halved(one)
    return found


def _halved(gaps: Gaps) -> Gaps:
    """Neighbouring cells of the last axis together."""
    return Gaps(gaps.gap[..., ::2] + gaps.gap[..., 1::2], gaps.variance[..., ::2] + gaps.variance[..., 1::2])


def _chunks(shape: tuple[int, ...], lines: int) -> Iterator[slice]:
    """Rows few enough that their labels and their tables fit into memory."""
    n, k = shape
    step = max(256, min(_MOST_LABELS // lines, _MOST_ENTRIES // k))
    return (slice(start, start + step) for start in range(0, n, step))


def _equal_mass(key: Floats, mass: Floats, bins: int) -> NDArray[np.intp]:
    """Bins of equal mass in the order of the key; equal keys share the bin of their middle."""
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-np.inf))
    total = np.add.reduceat(mass[order], starts)
    middle = np.cumsum(total) - total / 2
    of_key = np.minimum((middle / max(float(mass.sum()), 1e-300) * bins).astype(np.intp), bins - 1)
    found = np.empty(len(key), np.intp)
    found[order] = np.repeat(of_key, np.diff(starts, append=len(key)))
    return found


def _centred_logs(p: Floats, n: int) -> Floats:
    """Log probabilities less their mean in the row; below 1/(4n), which n rows cannot tell apart, compressed."""
    limit = np.log(4.0 * n)
    z = np.log(np.maximum(p, 1e-300))
    z = np.where(z < -limit, -limit - np.log1p(np.maximum(-z - limit, 0)), z)
    return np.asarray(z - np.einsum("nk,nk->n", p, z)[:, None])


def _halvings(p: Floats) -> Cells:
    """Cells of probabilities: (1/4, 1/2], (1/8, 1/4], ... and the same of 1 - p above 1/2."""

    def halvings(x: Floats) -> Floats:
        return np.clip(np.floor(-np.log2(np.maximum(x, 1e-300))), 1, _HALVINGS)

    return np.where(p <= 0.5, _HALVINGS - 1 + halvings(p), _HALVINGS - halvings(1 - p)).astype(np.int32)
