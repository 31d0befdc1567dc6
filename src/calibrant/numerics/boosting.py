"""Tables of one or two coded features and shallow trees: boosting of the log loss from given log odds, and a test.

Features are columns of small codes. Everything learnt is arrays, so that it can be saved and written as SQL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from calibrant.numerics.arrays import Floats, expit
from calibrant.numerics.confidence_limits import event_tail

Columns = Sequence[NDArray[np.uint8]]
Places = NDArray[np.int64]

#: Share of its Newton step that a tree takes.
#: Test: tests/numerics/test_boosting.py::test_what_the_constants_learn.
_RATE = 0.15
#: Rows that choose the splits of one tree; the values of its leaves are means of all rows.
#: Test: tests/numerics/test_boosting.py::test_many_rows_are_sampled_for_splits.
_STRUCTURE = 40_000
#: Cells of a feature in a table of its own, and in tables of two; the most values of a category in either.
#: Test: tests/numerics/test_boosting.py::test_cells_of_tables.
_FINE, _COARSE, _VALUES = 12, 4, 8
#: Share of its shrunken residuals that a table takes.
#: Test: tests/numerics/test_boosting.py::test_what_the_constants_learn.
_TABLE_RATE = 0.5
#: The least variance of a cell that is tested by itself.
#: Test: tests/numerics/test_boosting.py::test_cells_of_little_variance_are_pooled.
_LEAST_VARIANCE = 5.0
#: Rows times tables that are looked at in the choice of a table.
#: Speed: 4e7 counts are half a second; rows are in random order, and cells get their values from all of them.
_TABLE_WORK = 4e7
#: Rows times tables that are counted in one call.
#: Speed: 60 features of 300 rows take a fifth of the time of one call a table; with 1e6, 1e5 rows take twice as long.
_TOGETHER = 100_000
#: No cut: all codes are at most this.
#: Derived: the largest code of eight bits.
NO_CUT = 255


@dataclass(frozen=True, eq=False)
class Layout:
    """Which columns are categories (the others are ordered), and how many codes each has."""

    category: tuple[bool, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Growth:
    """How many trees of how many levels; `ridge` is the information of no residual in a leaf, half of it the least."""

    trees: int
    depth: int
    ridge: float


@dataclass(frozen=True, eq=False)
class Trees:
    """A sum of trees of one depth; codes of categories are first replaced by `ranks`, those of each category.

    Rows whose rank in the feature exceeds the cut go right, (trees, 2^depth - 1); children of node k are 2k+1 and 2k+2.
    The values are those of the leaves, (trees, 2^depth).
    """

    ranks: dict[int, NDArray[np.uint8]]
    feature: Places
    cut: Places
    value: Floats

    def ranked(self, codes: Columns) -> list[NDArray[np.uint8]]:
        """The codes with ranks in place of categories."""
        return [self.ranks[j][code] if j in self.ranks else code for j, code in enumerate(codes)]

    def predict(self, codes: Columns) -> Floats:
        """The sum of the values of each row's leaves."""
        ranked, found = self.ranked(codes), np.zeros(len(codes[0]))
        for feature, cut, value in zip(self.feature, self.cut, self.value, strict=True):
            found += value[leaves(ranked, feature, cut)]
        return found


def leaves(ranked: Columns, feature: Places, cut: Places) -> NDArray[np.uint8]:
    """The leaf of each row in one tree."""
    node = (ranked[feature[0]] > cut[0]).astype(np.uint8)
    first, width = 1, 2
    while first < len(feature):
        right = ranked[feature[first]] > cut[first]
        for k in range(1, width):
            right = np.where(node == k, ranked[feature[first + k]] > cut[first + k], right)
        node = 2 * node + right
        first, width = first + width, 2 * width
    return node


def boosted_trees(
    codes: Columns,
    layout: Layout,
    y: Floats,
    offset: Floats,
    weight: Floats,
    growth: Growth,
    *,
    rng: np.random.Generator,
    watch: Callable[[int, dict[int, NDArray[np.uint8]], Places, Places, Floats], bool] | None = None,
) -> Trees:
    """Newton boosting of the log loss from log odds `offset`; `watch` sees each tree and may stop.

    Rows must be in random order. Categories are ordered once, by their shrunken mean residual.
    """
    q = expit(offset)
    depth, ridge = growth.depth, growth.ridge
    ranks = _ranks(codes, layout, weight * (y - q), weight * q * (1 - q), 4 * ridge)
    ranked = [ranks[j][code] if j in ranks else code for j, code in enumerate(codes)]
    search = _SplitSearch(ranked, max(layout.sizes), growth, rng)
    log_odds = offset.astype(np.float64)
    made: list[tuple[Places, Places, Floats]] = []
    for number in range(growth.trees):
        q = expit(log_odds)
        gradient, hessian = weight * (y - q), weight * q * (1 - q)
        feature, cut = search.tree(gradient, hessian)
        leaf = leaves(ranked, feature, cut)
        first, second = (np.bincount(leaf, part, 2**depth) for part in (gradient, hessian))
        value = _RATE * np.clip(first / (second + ridge), -4.0, 4.0)
        log_odds += value[leaf]
        made.append((feature, cut, value))
        if watch is not None and watch(number, ranks, feature, cut, value):
            break
    inner = 2**depth - 1
    columns = list(zip(*made, strict=True)) if made else [(), (), ()]
    return Trees(
        ranks,
        np.array(columns[0], dtype=np.int64).reshape(-1, inner),
        np.array(columns[1], dtype=np.int64).reshape(-1, inner),
        np.array(columns[2], dtype=np.float64).reshape(-1, inner + 1),
    )


def _ranks(
    codes: Columns, layout: Layout, gradient: Floats, hessian: Floats, ridge: float
) -> dict[int, NDArray[np.uint8]]:
    """Ranks of the values of each category by their shrunken mean residual; rare ones stay near zero."""
    found = {}
    for j, category in enumerate(layout.category):
        if category:
            first, second = (np.bincount(codes[j], part, layout.sizes[j]) for part in (gradient, hessian))
            order = np.argsort(first / (second + ridge), kind="stable")
            found[j] = np.argsort(order).astype(np.uint8)
    return found


class _SplitSearch:
    """The best splits of trees whose gradients change and whose codes do not."""

    def __init__(self, ranked: Columns, size: int, growth: Growth, rng: np.random.Generator) -> None:
        self.ranked, self.size, self.depth, self.ridge, self.rng = ranked, size, growth.depth, growth.ridge, rng
        self.n, self.columns = len(ranked[0]), len(ranked)
        self.codes = [code.astype(np.intp) for code in ranked] if self.n <= _STRUCTURE else None

    def tree(self, gradient: Floats, hessian: Floats) -> tuple[Places, Places]:
        """Feature and cut of each node."""
        ranked, codes, share = self.ranked, self.codes, 1.0
        if codes is None:  # rows are in random order: a block is a random sample
            start = int(self.rng.integers(0, self.n))
            rows = np.arange(start, start + _STRUCTURE) % self.n
            ranked = [code[rows] for code in ranked]
            codes = [code.astype(np.intp) for code in ranked]
            gradient, hessian, share = gradient[rows], hessian[rows], _STRUCTURE / self.n
        feature = np.zeros(2**self.depth - 1, np.int64)
        cut = np.full(2**self.depth - 1, NO_CUT, np.int64)
        node: NDArray[Any] = np.zeros(len(gradient), np.intp)
        for level in range(self.depth):
            nodes = 2**level
            here = slice(nodes - 1, 2 * nodes - 1)
            g, h = self._sums(codes, node * self.size, (gradient, hessian), nodes)
            feature[here], cut[here] = self._best(g, h, self.ridge * share)
            if level < self.depth - 1:
                node = leaves(ranked, feature[: here.stop], cut[: here.stop]).astype(np.intp)
        return feature, cut

    def _sums(
        self, codes: Sequence[NDArray[np.intp]], first: NDArray[Any], parts: tuple[Floats, Floats], nodes: int
    ) -> Floats:
        """Sums of both parts over the rows of each node with a code of at most each: (2, nodes, columns, codes)."""
        found = np.empty((2, nodes, self.columns, self.size))
        for j, code in enumerate(codes):  # one column at a time stays in the cache
            place = code + first if nodes > 1 else code
            for k, part in enumerate(parts):
                found[k, :, j] = np.bincount(place, part, nodes * self.size).reshape(nodes, self.size)
        return np.cumsum(found, axis=3, out=found)

    def _best(self, g: Floats, h: Floats, ridge: float) -> tuple[Places, Places]:
        """The split of each node that gains most; none where nothing is gained."""
        all_g, all_h = g[:, :1, -1:], h[:, :1, -1:]
        gain = g**2 / (h + ridge) + (all_g - g) ** 2 / (all_h - h + ridge) - all_g**2 / (all_h + ridge)
        gain[np.minimum(h, all_h - h) < ridge / 2] = 0.0
        flat = gain.reshape(len(g), -1)
        best = flat.argmax(axis=1)
        found = flat[np.arange(len(g)), best] > 1e-12
        return np.where(found, best // self.size, 0), np.where(found, best % self.size, NO_CUT)


@dataclass(frozen=True, eq=False)
class Table:
    """A value for each cell of one or two features: `cells` say the cell of each code."""

    features: tuple[int, ...]
    cells: tuple[Places, ...]
    value: Floats

    def predict(self, codes: Columns) -> Floats:
        """The value of each row."""
        found: Floats = self.value[tuple(cells[codes[j]] for j, cells in zip(self.features, self.cells, strict=True))]
        return found


@dataclass(frozen=True, eq=False)
class Cells:
    """A way to divide rows by one or two features, with the number of each row's cell, and of cells of each feature."""

    features: tuple[int, ...]
    cells: tuple[Places, ...]
    number: NDArray[np.int32]
    shape: tuple[int, ...]


def merged_codes(code: NDArray[np.uint8], size: int, information: Floats, bins: int, *, category: bool) -> Places:
    """Cells of the codes: about `bins` of equal information (missing apart), or the values of most information."""
    known = np.bincount(code, information, size)
    cells = np.zeros(size, np.int64)
    if category:
        cells[np.argsort(-known, kind="stable")] = np.minimum(np.arange(size), max(bins, _VALUES) - 1)
        return cells
    running = np.cumsum(known[:-1])
    if running[-1] > 0:
        middle = (running - known[:-1] / 2) / running[-1]
        cells[:-1] = np.minimum((bins * middle).astype(np.int64), bins - 1)
    cells[-1] = bins if known[-1] > 0 else 0
    return cells


def all_cells(codes: Columns, layout: Layout, information: Floats) -> Iterator[Cells]:
    """Every feature by itself, in fine cells, and every two, in coarse ones; features that do not vary are left out."""
    shapes = list(zip(codes, layout.sizes, layout.category, strict=True))
    fine = [merged_codes(code, size, information, _FINE, category=category) for code, size, category in shapes]
    coarse = [merged_codes(code, size, information, _COARSE, category=category) for code, size, category in shapes]
    rows = [cells[code].astype(np.int32) for cells, code in zip(coarse, codes, strict=True)]
    for j, (cells, code) in enumerate(zip(fine, codes, strict=True)):
        number = cells[code].astype(np.int32)
        if len(number) and number.min() < number.max():
            yield Cells((j,), (cells,), number, (int(cells.max()) + 1,))
    varies = [bool(len(number) and number.min() < number.max()) for number in rows]
    widths = [int(cells.max()) + 1 for cells in coarse]
    for j, width in enumerate(widths):
        for k in range(j):
            if varies[j] and varies[k]:
                yield Cells((k, j), (coarse[k], coarse[j]), rows[k] * np.int32(width) + rows[j], (widths[k], width))


def boosted_tables(
    codes: Columns, layout: Layout, y: Floats, offset: Floats, weight: Floats, *, most: int
) -> list[Table]:
    r"""Tables chosen one after the other from log odds `offset`, each for having the most evidence beyond chance.

    The evidence is :math:`(\sum_c R_c^2 / V_c - m) / s` over the m cells, R and V sums of residuals and of their
    variances. It must exceed :math:`\sqrt{2 \log T}`, what chance shows in one of T tables. The values of the cells
    are shrunk by empirical Bayes. Rows must be in random order.
    """
    columns = len(codes)
    few = int(max(4000, min(len(y), _TABLE_WORK / max(columns * (columns + 1) / 2, 1))))
    log_odds, found = offset.astype(np.float64), list[Table]()
    q = expit(log_odds[:few])
    ways = list(all_cells([code[:few] for code in codes], layout, weight[:few] * q * (1 - q)))
    together = max(1, _TOGETHER // few)
    blocks = [ways[k : k + together] for k in range(0, len(ways), together)]
    least = math.sqrt(2 * math.log(max(len(ways), 2)))
    for _ in range(most):
        q = expit(log_odds)
        gradient, hessian = weight * (y - q), weight * q * (1 - q)
        evidence = [one for block in blocks for one in _evidence(block, gradient[:few], hessian[:few])]
        best = int(np.argmax(evidence)) if evidence else -1
        if best < 0 or not evidence[best] > least:
            break
        table = _shrunken(ways[best], codes, gradient, hessian)
        log_odds += table.predict(codes)
        found.append(table)
    return found


def _evidence(ways: Sequence[Cells], gradient: Floats, hessian: Floats) -> list[float]:
    """Of each way to divide rows, counted in one call: thousands of calls for few rows would take longer."""
    first = np.cumsum([0, *(math.prod(way.shape) for way in ways)])
    number = np.concatenate([way.number + start for way, start in zip(ways, first[:-1], strict=True)])
    variance, residual = (np.bincount(number, np.tile(part, len(ways)), first[-1]) for part in (hessian, gradient))
    some = variance > 0.5
    inverse = np.divide(1.0, variance, out=np.zeros_like(variance), where=some)
    parts = np.stack([some, residual**2 * inverse, inverse])
    m, square, inverse = np.add.reduceat(parts, first[:-1], axis=1)
    return ((square - m) / np.sqrt(np.maximum(2 * m + inverse, 1.0))).tolist()


def _shrunken(way: Cells, codes: Columns, gradient: Floats, hessian: Floats) -> Table:
    rows = [cells[codes[j]] for j, cells in zip(way.features, way.cells, strict=True)]
    number = np.ravel_multi_index(tuple(rows), way.shape)
    variance, residual = (np.bincount(number, part, math.prod(way.shape)) for part in (hessian, gradient))
    some = variance > 0
    spread = max(float((residual[some] ** 2 / variance[some] - 1).sum()) / float(variance.sum()), 1e-9)
    value = _TABLE_RATE * np.clip(residual / (variance + 1 / spread), -3.0, 3.0)
    return Table(way.features, way.cells, value.reshape(way.shape))


def table_p_value(
    codes: Columns, layout: Layout, y: Floats, p: Floats, weight: Floats
) -> tuple[float, tuple[int, ...]]:
    r"""The test that Y ~ Bernoulli(p) given the codes, by tables and their cells; and the features that carry it.

    Of a table, :math:`Q = \sum_c R_c^2 / V_c` has exactly the mean m and the variance
    :math:`\sum_c (2 + K_c / V_c^2)` under the hypothesis, with R sums of w (Y - p), V their variances and K their
    fourth cumulants; its tail is that of a gamma law with these moments. Of a cell, the tail is the binomial one
    (Hoeffding 1956), or Bernstein's bound with weights. Bonferroni over tables and over cells, half of the level each.
    """
    noise = p * (1 - p)
    columns = [weight**2 * noise, weight * (y - p), weight**4 * noise * (1 - 6 * noise), np.ones(len(y)), y, p]
    heaviest, weighted = float(weight.max()), bool(np.ptp(weight) > 0)
    squares, cells, tested = list[tuple[float, tuple[int, ...]]](), list[tuple[float, tuple[int, ...]]](), 0
    for way in all_cells(codes, layout, columns[0]):
        sums = _pooled(np.stack([np.bincount(way.number, column) for column in columns]))
        m = sums.shape[1]
        if not m:
            continue
        variance, residual, fourth, *counts = sums
        spread, q = float((2 + fourth / variance**2).sum()), float((residual**2 / variance).sum())
        squares.append((float(gammaincc(m * m / spread, q * m / spread)), way.features))
        if weighted:
            tail = np.exp(-(residual**2) / (variance + heaviest * np.abs(residual) / 3) / 2)
        else:
            count, events, expected = counts
            above = event_tail(events, count, expected)
            tail = np.minimum(above, event_tail(count - events, count, count - expected))
        cells.append((min(1.0, 2 * float(tail.min())), way.features))
        tested += m
    if not squares:
        return 1.0, ()
    (square, of), (cell, there) = min(squares), min(cells)
    by_table, by_cell = 2 * len(squares) * square, 2 * tested * cell
    return min(1.0, by_table, by_cell), of if by_table <= by_cell else there


def _pooled(sums: Floats) -> Floats:
    """Sums of cells with enough variance; the others are one cell, or none if they have too little together."""
    large = sums[0] >= _LEAST_VARIANCE
    rest = sums[:, ~large].sum(axis=1, keepdims=True)
    return np.concatenate([sums[:, large], rest[:, rest[0] >= _LEAST_VARIANCE]], axis=1)
