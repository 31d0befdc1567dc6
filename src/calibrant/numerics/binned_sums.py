"""Sums of rows per bin or per cell of a grid: the few loops that touch every row.

Bins that a row's score alone decides are summed in one pass without a sort, in chunks that fit the cache; rows that
come in batches are added to a fixed grid by compiled loops. Class probabilities are summed by class in the pass that
checks them, without a copy per class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.acceleration import CHUNK_ROWS, by_chunks, compiled
from calibrant.numerics.arrays import CHUNK, SMALL_CHUNK, Codes, Floats
from calibrant.numerics.rows import SUMS, Rows, half_columns

#: Finds the bin of each key; the result may be overwritten by the next call.
Indexer = Callable[[NDArray[Any]], NDArray[Any]]

#: Copies of the sums that rows are added to in turn where one bin holds most of them: an addition to a number in
#: memory waits for the one before it to the same number. Speed: benchmarks/fast.py; no result depends on it but for
#: the rounding of sums.
LANES = 8

#: At most this many bins, of which one holds more than a quarter of a sample of rows, make lanes pay. Speed:
#: benchmarks/fast.py; no result depends on it but for the rounding of sums.
SAMPLE = 1 << 10


def equal_width_index(key: NDArray[Any], edges: Floats) -> NDArray[np.intp]:
    """`searchsorted(edges[1:-1], key, side="left")` for keys between equally spaced edges, by a multiplication.

    Single precision finds the bin of all keys except the few close to an inner edge; only those are searched.
    """
    return equal_width_indexer(edges, len(key))(key).astype(np.intp)


def equal_width_indexer(edges: Floats, most: int = CHUNK) -> Indexer:
    """`equal_width_index` for chunks of at most this many rows: each call overwrites the result of the last."""
    scratch = np.empty(most, np.float32), np.empty(most, np.float32), np.empty(most, np.int32)
    return partial(_equal_width_index, edges=edges, scratch=scratch)


def _equal_width_index(key: NDArray[Any], edges: Floats, scratch: tuple[NDArray[Any], ...]) -> NDArray[Any]:
    n, low, width = len(edges) - 1, edges[0], edges[-1] - edges[0]
    tolerance = np.float32(n * 3e-7)  # more than the four roundings of key, factor, product and sum can add up to
    if tolerance > 0.1 or (low and abs(low) > width):
        return np.searchsorted(edges[1:-1], key, side="left")
    position, whole, index = (array[: len(key)] for array in scratch)
    if key.dtype == np.float32 and not low:
        np.multiply(key, np.float32(n / width), out=position)
    else:
        np.copyto(position, key - low if low else key, casting="same_kind")
        position *= np.float32(n / width)
    position += tolerance  # so that all that may be wrong lies just above an integer
    np.clip(position, np.float32(0.5), np.float32(n - 0.5), out=position)  # the outer edges part no rows
    np.floor(position, out=whole)
    np.copyto(index, whole, casting="unsafe")
    position -= whole
    if position.min() < 2 * tolerance:
        near = np.flatnonzero(position < 2 * tolerance)
        index[near] = np.searchsorted(edges[1:-1], key[near], side="left")
    return index


def hybrid_scale(cells: int, limit: float) -> tuple[float, float]:
    """The offset that keeps the odds of `HybridGrid` above zero, and the number of cells per unit of their logarithm.

    The scores 0 and 1 fall just inside the first and the last cell, so that rounding cannot move them out.
    """
    spread = limit + float(np.log1p(np.exp(-limit)))
    return float(np.exp(-limit)), cells / (4 * spread) * (1 - 1e-12)


def hybrid_index(key: NDArray[Any], cells: int, limit: float) -> NDArray[np.intp]:
    """Cells of `HybridGrid`. Single precision finds all but those near an edge, several times faster.

    Its positions are off by less than 2e-7 of the grid; only cells closer than twice that to an edge are computed again
    in double precision.
    """
    tolerance = np.float32(4e-7 * cells)
    if tolerance > 0.1 or limit > 80 or key.dtype not in (np.float32, np.float64):
        return exact_hybrid_index(key, cells, limit)
    index = np.empty(len(key), np.intp)
    for start in range(0, len(key), SMALL_CHUNK):
        p = key[start : start + SMALL_CHUNK]
        position = _hybrid_position(p, cells, limit)
        part, whole = index[start : start + SMALL_CHUNK], np.floor(position)
        part[:] = whole
        position -= whole
        position -= np.float32(0.5)
        near = np.flatnonzero(np.abs(position, out=position) > np.float32(0.5) - tolerance)
        part[near] = exact_hybrid_index(p[near], cells, limit)
    return index


def _hybrid_position(p: NDArray[Any], cells: int, limit: float) -> NDArray[np.float32]:
    single = np.float32
    offset, slope = (single(number) for number in hybrid_scale(cells, limit))
    rest = np.subtract(1, p).astype(single, copy=False)  # in the precision of p, which keeps it right near 1
    rest += offset
    p = p.astype(single, copy=False)
    position = np.add(p, offset)
    position /= rest
    np.log(position, out=position)
    position *= slope
    position += single(cells / 4)
    position += np.multiply(p, single(cells / 2), out=rest)
    return position


def exact_hybrid_index(key: NDArray[Any], cells: int, limit: float) -> NDArray[np.intp]:
    """The definition, counted from the middle of the grid as engines do, to the same rounding."""
    p, middle = key.astype(np.float64), cells // 2
    offset, slope = hybrid_scale(cells, limit)
    odds = (p + offset) / ((1 - p) + offset)
    return np.floor(p * (cells / 2) + (np.log(odds) * slope + (cells / 4 - middle))).astype(np.intp) + middle


def sums_by_index(rows: Rows, index: Indexer, size: int, *, squares: bool = True) -> Floats:
    """Sums per bin for a binning that knows the bin of each row without seeing the others: one pass, no sort.

    Without `squares`, which no estimator needs of bins, the sum of squared predictions may be left NaN.
    """
    if rows.plain_binary or (rows.plain and rows.role != "both"):
        return _plain_sums(rows, index, size, squares=squares)
    totals = np.zeros((len(SUMS), size))
    for part in _chunks(rows):
        chunk = rows.take(part)
        where = index(chunk.key)
        if rows.weight is not None or rows.role != "both":
            for total, values in zip(totals, chunk.sums(), strict=True):
                total += np.bincount(where, values, size)
            continue
        p, y = chunk.predicted.astype(np.float64, copy=False), chunk.observed.astype(np.float64, copy=False)
        totals[:3] += np.bincount(where, minlength=size)  # count, weight and squared weight are one
        for total, values in zip(totals[3:], (p, y, p * p, p * y, y * y), strict=True):
            total += np.bincount(where, values, size)
    return totals


def equal_width_sums(rows: Rows, edges: Floats, *, squares: bool = True) -> Floats:
    """`sums_by_index` for bins of equal width."""
    half = rows.plain and rows.role != "both"
    if (rows.plain_binary or half) and not squares:
        by_outcome = checked_counts(None if half else rows.observed, rows.key, edges)
        if by_outcome is not None:
            return half_columns(rows, *by_outcome.sum(axis=2)) if half else binary_columns(*by_outcome)
    return sums_by_index(rows, equal_width_indexer(edges), len(edges) - 1, squares=squares)


def checked_equal_width_sums(y: NDArray[Any], p: NDArray[Any], edges: Floats) -> Floats | None:
    """The sums of rows that nobody has checked yet, in one pass that also checks them.

    None where rows are few, or not plain numbers, or a score or a label is bad: the caller then has to check.
    """
    if y.dtype == np.bool_:
        y = y.view(np.int8)
    by_outcome = checked_counts(y, p, edges) if plain_arrays(y, p) else None
    return None if by_outcome is None else binary_columns(*by_outcome)


def plain_arrays(y: Any, p: Any) -> bool:
    """Whether these are arrays of whole labels and of scores, of one length, that a compiled loop can read."""
    if type(p) is not np.ndarray or type(y) is not np.ndarray or p.ndim != 1 or p.shape != y.shape or not len(p):
        return False
    return p.dtype.char in "fd" and y.dtype.kind in "iu" and _readable(p, y)


def _readable(*arrays: NDArray[Any] | None) -> bool:
    return all(one is None or (one.flags.c_contiguous and one.dtype.isnative) for one in arrays)


def checked_counts(y: NDArray[Any] | None, p: NDArray[Any], edges: Floats) -> Floats | None:
    """Rows and sums of p per bin and outcome, of shape (2, bins, 2); None without a compiled loop that fits."""
    bins = unit_bins(edges) if _readable(p, y) else None
    fast = compiled(len(p), saves=4.0) if bins is not None else None
    if fast is None:
        return None
    parts = by_chunks(len(p), lambda rows: fast.equal_width(p[rows], None if y is None else y[rows], bins))
    if any(part is None for part in parts):
        return None
    return np.stack(parts, axis=-1).sum(axis=-1)  # along the last axis NumPy adds in pairs


def unit_bins(edges: Floats) -> int | None:
    """The number of bins, if the edges are those of a moderate number of equal ones between 0 and 1 to the last bit."""
    bins = len(edges) - 1
    equal = 0 < bins < 1 << 10 and edges[-1] == 1 and np.array_equal(edges[:-1], np.arange(bins) * (1 / bins))
    return bins if equal else None


def _chunks(rows: Rows) -> Iterator[slice]:
    return (slice(start, start + CHUNK) for start in range(0, len(rows.key), CHUNK))


def _plain_sums(rows: Rows, index: Indexer, size: int, *, squares: bool) -> Floats:
    """Counts and sums of p, of rows with outcomes split by them: two passes give all sums but that of p squared."""
    sides = 2 if rows.plain_binary else 1
    lanes = _Lanes(sides * size, crowded=_crowded(rows, index, size))
    squared = np.full(size, 0.0 if squares else np.nan)
    for part in _chunks(rows):
        where, p = index(rows.key[part]), lanes.double(rows.key[part])
        if squares:
            squared += np.bincount(where, p * p, size)
        if sides == 2:
            where += where
            where += rows.observed[part]
        lanes.add(where, p)
    if sides == 1:
        return half_columns(rows, *lanes.totals(), squared)
    counts, sums = (total.reshape(size, 2) for total in lanes.totals())
    return binary_columns(counts, sums, squared)


def binary_columns(counts: Floats, sums: Floats, squared: Floats | None = None) -> Floats:
    """The columns of `SUMS` from rows and sums of p by bin and outcome."""
    count, positives = counts.sum(axis=1), counts[:, 1]
    squared = np.full(len(count), np.nan) if squared is None else squared
    return np.stack([count, count, count, sums.sum(axis=1), positives, squared, sums[:, 1], positives])


def _crowded(rows: Rows, index: Indexer, size: int) -> bool:
    """Whether a sample says that most rows are in few bins, so that lanes pay."""
    if len(rows.key) < CHUNK or size * LANES > 4 * SAMPLE:
        return False
    some = rows.key[:: max(len(rows.key) // SAMPLE, 1)][:CHUNK]
    return bool(np.bincount(index(some)).max() > len(some) / 4)


class _Lanes:
    """Counts and sums of p per bin, chunk after chunk; in several copies where most rows are in few bins."""

    def __init__(self, size: int, *, crowded: bool) -> None:
        self._size = size
        self._lane = np.arange(CHUNK, dtype=np.int32) % LANES * size if crowded else None
        total = LANES * size if crowded else size
        self._counter, self._sums = _Count(total), np.zeros(total)
        self._index, self._double = np.empty(CHUNK, np.intp), np.empty(CHUNK)

    def double(self, p: NDArray[Any]) -> Floats:
        """The scores in double precision; overwritten by the next call."""
        if p.dtype == np.float64:
            return p
        np.copyto(self._double[: len(p)], p)
        return self._double[: len(p)]

    def add(self, where: NDArray[Any], p: Floats) -> None:
        """Add the rows of a chunk; their bins are overwritten."""
        if self._lane is not None:
            where += self._lane[: len(where)]
        index = self._index[: len(where)]
        np.copyto(index, where)
        self._sums += np.bincount(index, p, len(self._sums))
        self._counter.add(index)

    def totals(self) -> tuple[Floats, Floats]:
        """Rows and sums of p per bin."""
        return self._counter.total.reshape(-1, self._size).sum(axis=0), self._sums.reshape(-1, self._size).sum(axis=0)


class _Count:
    """Rows per bin, chunk after chunk. Few bins are counted two rows at a time, for half of the steps."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._single = np.zeros(size, np.intp)
        self._double = np.zeros(size * size if size <= 64 else 0, np.intp)

    def add(self, index: NDArray[np.intp]) -> None:
        """Count the rows of a chunk; its index is overwritten."""
        half, size = len(index) // 2, self._size
        if size > 64 or half < len(self._double):
            self._single += np.bincount(index, minlength=size)
            return
        pair = index[:half]
        pair *= size
        pair += index[half : 2 * half]
        self._double += np.bincount(pair, minlength=len(self._double))
        if len(index) % 2:
            self._single[index[-1]] += 1

    @property
    def total(self) -> Floats:
        """The rows counted so far."""
        counts = self._single.astype(np.float64)
        if len(self._double):
            pairs = self._double.reshape(self._size, self._size)
            counts += pairs.sum(axis=0) + pairs.sum(axis=1)
        return counts


#: Columns of a cell: three sums, the lowest key, three sums, the highest key. Derived: eight float64 are a line of the
#: cache.
COLUMNS, LOW, HIGH = 8, 3, 7
_SUMS = (0, 1, 2, 4, 5, 6)

#: A table of logarithms with more cells would take more memory than the rows. Derived: 2^24 cells of 64 bytes are 1
#: GB.
MOST_CELLS = 1 << 24


def _lines(cells: int) -> Floats:
    """A table of zeros, each of whose cells is one line of the cache and not parts of two."""
    room = np.zeros((cells + 1) * COLUMNS)
    first = -room.ctypes.data % (8 * COLUMNS) // 8
    return room[first : first + cells * COLUMNS].reshape(cells, COLUMNS)


class _GridSums(ABC):
    """The table of a grid: running sums, totals, and a cell to spare; `slope` is cells per unit of the logarithm."""

    def __init__(self, fast: ModuleType, cells: int, slope: float) -> None:
        self._fast = fast
        self._far = 0.5 - fast.NEAR_EDGE - fast.LOG_ERROR * slope  # from the middle of a cell; beyond, rows are unsure
        self._make(cells)
        self._unsure = np.empty(0, np.int64)

    def _make(self, cells: int) -> None:
        """Make a table without rows."""
        self._cells, self._table, self._totals = cells, _lines(cells + 1), _lines(cells + 1)
        self._table[:, LOW], self._table[:, HIGH] = np.inf, -np.inf

    def _chunks(self, *rows: NDArray[Any]) -> Iterator[list[NDArray[Any]]]:
        """The rows that a compiled loop takes at once, all of which it may list."""
        size = len(rows[0])
        if len(self._unsure) < min(size, CHUNK_ROWS):
            self._unsure = np.empty(min(size, CHUNK_ROWS), np.int64)
        for start in range(0, size, CHUNK_ROWS):
            yield [np.ascontiguousarray(part[start : start + CHUNK_ROWS]) for part in rows]

    def _sums(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """What a compiled loop fills."""
        return self._table.reshape(-1), self._totals.reshape(-1), self._unsure

    def _place_listed(self, rows: list[NDArray[Any]], listed: int) -> None:
        """Add the rows that a compiled loop listed."""
        if listed:
            self._place(*(part[self._unsure[:listed]].astype(np.float64) for part in rows))

    @abstractmethod
    def _place(self, *rows: Floats) -> None:
        """Add rows to the cells of the formula."""

    def _add_placed(self, cell: NDArray[np.intp], key: Floats, columns: dict[int, Floats]) -> None:
        for j, values in columns.items():
            np.add.at(self._totals[:, j], cell, values)
        np.minimum.at(self._table[:, LOW], cell, key)
        np.maximum.at(self._table[:, HIGH], cell, key)

    def _columns(self) -> tuple[NDArray[np.intp], list[Floats], Floats, Floats]:
        """The cells that hold rows, their six sums, lowest and highest key."""
        both = self._table[:-1] + self._totals[:-1]
        some = np.flatnonzero((both[:, 0] > 0) | (both[:, 4] > 0))
        both = both[some]
        return some, [both[:, j] for j in _SUMS], both[:, LOW], both[:, HIGH]


class HybridSums(_GridSums):
    """Sums of binary rows per cell of a hybrid grid without other edges."""

    def __init__(self, fast: ModuleType, cells: int, limit: float) -> None:
        self._limit, self._scale = limit, hybrid_scale(cells, limit)
        super().__init__(fast, cells, self._scale[1])

    def take(self, y: NDArray[Any], p: NDArray[Any]) -> None:
        """Add valid rows."""
        for rows in self._chunks(p, y):
            listed = self._fast.hybrid(*rows, self._cells, *self._scale, self._far, *self._sums())
            self._place_listed(rows, listed)

    def _place(self, *rows: Floats) -> None:
        p, y = rows
        columns = {j: values * y for j, values in enumerate((np.ones(len(p)), p, p * p), start=4)}
        columns |= {j: values * (1 - y) for j, values in enumerate((np.ones(len(p)), p, p * p))}
        self._add_placed(exact_hybrid_index(p, self._cells, self._limit), p, columns)

    def cells(self) -> tuple[NDArray[np.intp], Floats, Floats, Floats]:
        """The cells that hold rows, their lowest and highest score, and the columns of `SUMS`."""
        some, (zeros, p0, q0, ones, p1, q1), low, high = self._columns()
        count = zeros + ones
        return some, low, high, np.stack([count, count, count, p0 + p1, ones, q0 + q1, p1, ones])


class LogSums(_GridSums):
    """Sums of rows with predicted u and observed v per cell of the logarithm of a key, floor(per_fold ln key).

    The table grows with the keys. Its outermost cells hold no rows that a compiled loop placed, so none that the
    formula places is outside.
    """

    def __init__(self, fast: ModuleType, per_fold: int) -> None:
        self._per_fold, self._first = per_fold, 0
        self._least = self._cell(np.finfo(np.float64).tiny)  # the fast logarithm is of normal numbers
        super().__init__(fast, 2, per_fold)

    def take(self, key: NDArray[Any], predicted: NDArray[Any], observed: NDArray[Any]) -> bool:
        """Add rows; False, and sums are of no use, if keys are no positive normal numbers or need over `MOST_CELLS`."""
        for rows in self._chunks(key, predicted, observed):
            while len(rows[0]):
                scale = self._cells, float(self._per_fold), float(self._first), self._far
                listed, done = self._fast.log_grid(*rows, *scale, *self._sums())
                self._place_listed(rows, listed)
                rows = [part[done:] for part in rows]
                if len(rows[0]) and not self._grow(rows[0][:CHUNK]):
                    return False
        return True

    def _cell(self, key: Any) -> Any:
        return np.floor(np.log(key) * self._per_fold)

    def _grow(self, key: NDArray[Any]) -> bool:
        """Make room for keys, and for others beyond them; False if there cannot be enough."""
        lowest, highest = key.min(), key.max()
        if not (np.finfo(np.float64).tiny <= lowest and highest < np.inf):
            return False
        first, last = self._cell(lowest) - 2, self._cell(highest) + 2
        if self._cells > 2:
            first, last = min(first, self._first), max(last, self._first + self._cells - 1)
        if first < self._least or last - first >= MOST_CELLS:
            return False
        more = (last - first) // 8
        first, last = int(max(first - more, self._least)), int(last + more)
        old, shift = (self._table[:-1], self._totals[:-1]), self._first - first
        self._make(last - first + 1)
        if len(old[0]) > 2:
            self._table[shift : shift + len(old[0])], self._totals[shift : shift + len(old[1])] = old
        self._first = first
        return True

    def _place(self, *rows: Floats) -> None:
        key, u, v = rows
        cell = self._cell(key).astype(np.intp) - self._first
        self._add_placed(cell, key, dict(zip(_SUMS, (np.ones(len(key)), u, v, u * u, u * v, v * v), strict=True)))

    def cells(self) -> tuple[NDArray[np.intp], Floats, Floats, Floats]:
        """The cells that hold rows, their lowest and highest key, and the columns of `SUMS`."""
        some, (count, u, v, uu, uv, vv), low, high = self._columns()
        return some + self._first, low, high, np.stack([count, count, count, u, v, uu, uv, vv])


#: From this many classes on, vector instructions over a row pay. Speed: benchmarks/fast.py; no result depends on it.
MANY = 64


def checked_top_class(matrix: NDArray[Any], tolerance: float) -> tuple[Codes, NDArray[Any]] | None:
    """The first largest class of each row and its probability, if all rows lie in [0, 1] and sum to 1 but `tolerance`.

    None where a row does not, or there is no compiled loop: the caller then has to check.
    """
    rows, columns = matrix.shape
    fast = compiled(matrix.size, saves=2.0) if matrix.dtype.char in "fd" and _readable(matrix) else None
    if fast is None:
        return None
    best, top = np.empty(rows, np.intp), np.empty(rows, matrix.dtype)
    bits = matrix.view(f"i{matrix.itemsize}")
    one = np.ones(1, matrix.dtype).view(bits.dtype)[0]

    def checked(part: slice) -> int:
        if columns < MANY:
            return int(fast.few_classes(matrix[part].reshape(-1), columns, tolerance, best[part], top[part]))
        return int(fast.many_classes(matrix[part], bits[part], one, tolerance, best[part], top[part]))

    return (best, top) if not any(by_chunks(rows, checked)) else None


def checked_class_sums(matrix: NDArray[Any], codes: Codes, bins: int, tolerance: float) -> Floats | None:
    """Rows, sums of p and positives per class and bin of equal width, of shape (3, classes, bins).

    None where rows miss [0, 1] or a sum of 1 by more than `tolerance`, where codes are no columns, or there is no
    compiled loop: the caller then has to check.
    """
    plain = matrix.dtype.char in "fd" and codes.dtype.kind in "iu" and codes.dtype.isnative and _readable(matrix)
    fast = compiled(matrix.size, saves=4.0) if plain else None
    if fast is None:
        return None
    way = _few if matrix.shape[1] < MANY else _many
    parts = by_chunks(len(matrix), lambda rows: way(fast, matrix[rows], codes[rows].astype(np.int64), bins, tolerance))
    if any(part is None for part in parts):
        return None
    return np.stack([part for part in parts if part is not None], axis=-1).sum(axis=-1)


def _few(fast: ModuleType, matrix: NDArray[Any], codes: Codes, bins: int, tolerance: float) -> Floats | None:
    classes = matrix.shape[1]
    size = classes * bins
    score = np.arange(fast.SCORES // classes * classes)
    offset = score // classes % fast.LANES * (2 * size) + score % classes * (2 * bins)
    lanes, totals, hits = np.zeros(fast.LANES * 2 * size), np.zeros(fast.LANES * 2 * size), np.zeros(size)
    flat = matrix.reshape(-1)
    if fast.few_class_sums(flat, codes, classes, bins, tolerance, offset.astype(np.int32), lanes, totals, hits):
        return None
    predicted, count = totals.reshape(fast.LANES, size, 2).sum(axis=0).T
    return np.stack([count, predicted, hits]).reshape(3, classes, bins)


def _many(fast: ModuleType, matrix: NDArray[Any], codes: Codes, bins: int, tolerance: float) -> Floats | None:
    """Rows beyond the first bin are counted; the others are in the first."""
    classes = matrix.shape[1]
    size = classes * bins
    edge = np.array([1 / bins], matrix.dtype)
    if float(edge[0]) > 1 / bins:
        edge = np.nextafter(edge, matrix.dtype.type(0))
    limits = np.append(edge, matrix.dtype.type(1)).view(f"i{matrix.itemsize}")
    table, totals, hits = np.zeros(2 * size + classes), np.zeros(2 * size + classes), np.zeros(size)
    bits = matrix.view(limits.dtype)
    if fast.many_class_sums(matrix, bits, codes, bins, tolerance, limits, table, totals, hits):
        return None
    predicted, count = totals[: 2 * size].reshape(classes, bins, 2).transpose(2, 0, 1)
    predicted[:, 0], count[:, 0] = totals[2 * size :], len(matrix) - count.sum(axis=1)
    return np.stack([count, predicted, hits.reshape(classes, bins)])
