"""Sums per bin or cell, the sufficient statistic of every binned estimator, with a bound of what cells lose.

Sums add up: a table made by a warehouse from a billion rows, or merged from a thousand shards, is the same object as
one made by NumPy on a laptop, and every estimator that needs only sums works on either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data.groups import group_texts
from calibrant.data.predictions import Binary, Column, Predictions, binary
from calibrant.data.validation import fail
from calibrant.numerics import equal_mass, sorting
from calibrant.numerics.arrays import Floats
from calibrant.numerics.binned_sums import checked_equal_width_sums, equal_width_sums, sums_by_index
from calibrant.numerics.rows import SUMS, Mass, Rows
from calibrant.numerics.sorting import Rank, SortedRows
from calibrant.table.batch_sums import sums_on_grid
from calibrant.table.binning import (
    Binning,
    BoundBins,
    Cells,
    CellSums,
    Cut,
    Distinct,
    Edges,
    EqualMass,
    EqualWidth,
    Grid,
    HybridGrid,
    PaperBins,
    added,
    as_binning,
)
from calibrant.table.task import Labelled, Spread, Task, Unlabeled, task_of


@dataclass(frozen=True, eq=False, repr=False)
class BinTable:
    """A table of bins or cells: the range of scores in each, and the sums listed in `SUMS`.

    Tables of bins (`EqualWidth`, `EqualMass`, `Edges`) keep empty bins. Fine tables (`Distinct`, `HybridGrid`,
    `LogGrid`) hold only cells that have rows, and `coarsen` turns them into bins.

    Attributes
    ----------
    cut : Edges, Distinct, HybridGrid or LogGrid
        How the rows were divided. Only tables with equal cuts can be added.
    key : array
        Bin or cell number; the score itself for `Distinct`.
    low, high : array
        Bounds of the scores in the cell: the bin's edges, or the lowest and highest score seen.
    sums : array of shape (8, cells)
        The sums below, one row each.
    n, total : int, float
        Number of rows, and sum of all weights.
    count, weight, weight_squares : array
        Rows, sum of weights and of squared weights. Counts are whole numbers unless the edge of a bin had to split a
        cell.
    predicted, observed, predicted_squares, product, observed_squares : array
        Weighted sums of predictions, outcomes (of labelled positives on positive-unlabeled data), their squares and
        their product. Squared predictions are NaN in bins of fixed edges made from unweighted probabilities.
    task : Labelled, Spread or Unlabeled
        What the columns mean: probabilities and outcomes, squares of predicted spreads and of errors, or probabilities
        of unlabeled rows and labelled positives. Only tables of the same task can be added.
    invalid : mapping of text to int
        Rows that were left out when the table was made, by reason; empty where there were none.
    weight_unit : int
        The power of 2^512 that weights beyond about 1e77 were divided by, and those below 1e-77 multiplied by. Only
        tables with the same unit can be added.

    Examples
    --------
    >>> import calibrant as cal
    >>> table = BinTable.of(cal.Binary([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8]), cal.EqualWidth(2))
    >>> table
    <BinTable of 2 bins, n=4, Edges>
    >>> table.predicted_mean, table.observed_mean
    (array([0.2, 0.7]), array([0., 1.]))
    """

    cut: Edges | Distinct | Grid
    key: NDArray[Any]
    low: Floats
    high: Floats
    sums: Floats
    task: Task = Labelled()
    invalid: Mapping[str, int] = field(default_factory=dict)
    weight_unit: int = 0
    n: int = field(init=False)
    total: float = field(init=False)
    count: Floats = field(init=False)
    weight: Floats = field(init=False)
    weight_squares: Floats = field(init=False)
    predicted: Floats = field(init=False)
    observed: Floats = field(init=False)
    predicted_squares: Floats = field(init=False)
    product: Floats = field(init=False)
    observed_squares: Floats = field(init=False)

    def __post_init__(self) -> None:
        for name, column in zip(SUMS, self.sums, strict=True):
            object.__setattr__(self, name, column)
        object.__setattr__(self, "n", round(float(self.count.sum())))
        object.__setattr__(self, "total", float(self.weight.sum()))

    @classmethod
    def of(cls, data: Predictions | Rows, binning: Binning | Cells, *, squares: bool = True) -> BinTable:
        """The table of `data` cut by `binning`.

        Without `squares`, the squared predictions of bins may be left NaN, which is faster; those of labelled rows in
        bins of known edges always are, since nothing needs them.
        """
        binning = rule = as_binning(binning)
        parts, task = ((data,), Labelled()) if isinstance(data, Rows) else (data.parts(), task_of(data))
        if isinstance(binning, PaperBins | BoundBins):
            masses = [Mass.of(part.weight, len(part.key)) for part in parts]
            binning = binning.resolve(task.mass_variance(masses[0], masses[-1]), round(masses[0].effective_n))
        unit = 0 if isinstance(data, Rows) else data._weight_unit
        made = cut_rows(parts, binning, squares=squares)
        if isinstance(made.cut, Edges):
            made = made._replace(cut=made.cut.following(rule))
        return cls(*made, task, weight_unit=unit)

    def __len__(self) -> int:
        return len(self.key)

    def __repr__(self) -> str:
        kind = "cells" if self.fine else "bins"
        return f"<BinTable of {len(self):_} {kind}, n={self.n:_}, {type(self.cut).__name__}>"

    def __add__(self, other: BinTable) -> BinTable:
        if not isinstance(other, BinTable):
            return NotImplemented
        return merge([self, other])

    @cached_property
    def fine(self) -> bool:
        """Whether this is a table of cells, from which any bins can be made."""
        return not isinstance(self.cut, Edges)

    @property
    def edges(self) -> Floats:
        """The edges of a table of bins."""
        if not isinstance(self.cut, Edges):
            message = "A fine table has cells, not edges; coarsen it first, e.g. table.coarsen(EqualMass(15))."
            raise AttributeError(message)
        return self.cut.edges

    @cached_property
    def share(self) -> Floats:
        """The part of the total weight in each bin."""
        return self.weight / self.total

    @cached_property
    def observed_scale(self) -> float:
        """Factor of the observed column: 1 but for labelled positives, which stand for all positives."""
        return self.task.observed_scale(float(self.observed.sum()), self.total)

    @cached_property
    def predicted_mean(self) -> Floats:
        """Mean prediction per bin; NaN where the bin is empty."""
        return self._per_weight(self.predicted)

    @cached_property
    def observed_mean(self) -> Floats:
        """Mean outcome per bin; NaN where the bin is empty."""
        return self._per_weight(self.observed * self.observed_scale)

    @cached_property
    def effective_count(self) -> Floats:
        """Kish's effective number of rows per bin, (sum w)^2 / sum w^2: the count itself without weights."""
        squares = self.weight_squares
        return np.divide(self.weight**2, squares, out=np.zeros_like(squares), where=squares > 0)

    @cached_property
    def population(self) -> Mass:
        """Sums of the weights and squared weights of all bins."""
        return Mass(self.total, float(self.weight_squares.sum()))

    @cached_property
    def positives(self) -> Mass:
        """The same of labelled positives, where the rows are positive and unlabeled ones."""
        return Mass(float(self.observed.sum()), float(self.observed_squares.sum()))

    @property
    def outcome_weights(self) -> tuple[Floats, Floats]:
        """Weights of outcome 1 and of outcome 0 in each bin; a difference on positive-unlabeled data."""
        positives = self.observed * self.observed_scale
        return positives, self.weight - positives

    @property
    def mass_variance(self) -> float:
        """Variance of the error mass of a bin that holds everything; 1 / n for labelled rows."""
        return self.task.mass_variance(self.population, self.positives)

    def in_rows(self) -> BinTable:
        """The same table with a weight of one per row, where all rows have the same weight; else the table itself."""
        row = self.population.squares / self.total if self.total else 1.0
        if row == 1 or not np.allclose(row * self.count, self.weight, rtol=1e-9, atol=0):
            return self
        if not np.allclose(row * self.weight, self.weight_squares, rtol=1e-9, atol=0):
            return self
        sums = self.sums / row
        sums[:3] = self.count
        outcomes = np.rint(sums[4])
        if isinstance(self.task, Labelled) and np.allclose(outcomes, sums[4], rtol=0, atol=1e-6):  # without rounding
            sums[[4, 7]] = outcomes
        return replace(self, sums=sums)

    def filled(self, *, sums: Floats | None = None, in_rows: bool = False) -> BinTable:
        """The bins that have weight, perhaps with other sums or `in_rows`. The edges are kept whole."""
        table = self if sums is None else replace(self, sums=sums)
        some = table.weight > 0
        filled = table if some.all() else table.take(some)
        return filled.in_rows() if in_rows else filled

    def each_filled(self, sums: Iterable[Floats]) -> list[BinTable]:
        """The table with each of these sums, without bins that have no weight then."""
        return [self.filled(sums=some) for some in sums]

    def take(self, which: Any) -> BinTable:
        """Some of the bins, by mask or index. The prior, where there is one, becomes that of these bins."""
        some = replace(self, key=self.key[which], low=self.low[which], high=self.high[which], sums=self.sums[:, which])
        task = self.task.of_part(self, some)
        return some if task is self.task else replace(some, task=task)

    def coarsen(self, binning: Binning) -> BinTable:
        """A fine table regrouped into bins.

        A cell of several scores that an edge falls into is cut proportionally; a cell of one score never is.
        """
        if not self.fine:
            fail("Only a fine table can be coarsened; this one has bins already.", ValueError)
        cut = self.resolved(binning)
        at = self.places(cut)
        if isinstance(cut, EqualMass):
            edges = np.concatenate([self.low[:1], equal_mass.scores_at(at[1:-1], self.low, self.high), self.high[-1:]])
        else:
            edges = cut.edges
        sums = equal_mass.sums_between(self.sums, at)
        bins = Edges(edges).following(binning)
        return replace(self, cut=bins, key=np.arange(sums.shape[1]), low=edges[:-1], high=edges[1:], sums=sums)

    def resolved(self, binning: Binning) -> Cut:
        """`binning` with its number of bins, which for some depends on the sample sizes."""
        rule = as_binning(binning)
        if isinstance(rule, PaperBins | BoundBins):
            return rule.resolve(self.mass_variance, round(self.population.effective_n))
        return rule

    def places(self, binning: Cut) -> Floats:
        """The edges of `binning` as places in the list of cells: 3.25 is a quarter into the fourth."""
        if isinstance(binning, EqualMass):
            cells = self.weight, self.weight_squares, self.low, self.high
            return equal_mass.equal_mass_places(*cells, [binning.n_bins], binning.rank)[0]
        return equal_mass.positions_of(binning.edges, self.low, self.high)

    def error_bound(self, bins: Binning = EqualMass(15), *, distinct: bool = False) -> float:
        r"""The most by which the ECE of a fine table in `bins` can differ from the ECE of its rows.

        Only cells that an edge falls into can be divided wrongly; what is moved to the neighbouring bin counts twice.
        It holds whatever the rows in a cut cell are, tied or weighted. With `distinct`, which promises that no two rows
        of a cut cell share a score, it is smaller (unweighted rows, equal mass): if a of the n rows of a cell, n1 of
        them positive, lie to the left of the edge and the cell is w wide, the bound is the sum over edges of

        .. math:: \frac 2N \Bigl(\max\bigl(\min(a, n_1) - \tfrac{a n_1}n, \tfrac{a n_1}n - \max(0, a - n_0)\bigr)
                  + \min(a, n - a)\, w\Bigr).
        """
        return error_bound(self, bins, distinct=distinct)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table to a Parquet file (needs pyarrow), all of it or nothing."""
        from calibrant.table.parquet import save

        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> BinTable:
        """Read a table that `save` wrote."""
        from calibrant.table.parquet import load

        return load(path)

    def _per_weight(self, column: Floats) -> Floats:
        return np.divide(column, self.weight, out=np.full(len(self), np.nan), where=self.weight > 0)


def merge(tables: list[BinTable]) -> BinTable:
    """The table of all rows behind `tables`, which must be cut alike.

    Examples
    --------
    >>> import calibrant as cal
    >>> days = [cal.BinTable.of(cal.Binary([0, 1], [0.2, p]), cal.EqualWidth(2)) for p in (0.7, 0.9)]
    >>> merge(days).predicted_mean
    array([0.2, 0.8])
    """
    if not tables:
        fail("There is no table to merge.", ValueError)
    first = tables[0]
    if any(table.cut != first.cut or table.task != first.task for table in tables):
        fail("Only tables that were cut alike can be added (equal edges or grid, equal task and prior).", ValueError)
    units = {table.weight_unit for table in tables if table.n}
    if len(units) > 1:
        message = "Only tables with weights of like size can be added: divide the weights of all by the same number."
        raise ValueError(message)
    invalid = sum((Counter(table.invalid) for table in tables), Counter[str]())
    sums = added([CellSums(table.cut, table.key, table.low, table.high, table.sums) for table in tables])
    return replace(first, **sums._asdict(), invalid=dict(invalid), weight_unit=next(iter(units), 0))


def cut_cells(table: BinTable, bins: Binning) -> tuple[NDArray[np.intp], Floats]:
    """For each edge that falls into a cell: the number of the cell, and the part of it that goes to the left."""
    resolved = table.resolved(bins)
    at = table.places(resolved)[1:-1]
    whole = np.floor(at)
    cell = np.minimum(whole.astype(np.intp), len(table) - 1)
    if isinstance(resolved, EqualMass):
        cut = at != whole
    else:  # an edge on the lowest score of a cell parts that score from the others
        inner = resolved.edges[1:-1]
        cut = (table.low[cell] <= inner) & (inner < table.high[cell])
    return cell[cut], (at - whole)[cut]


def error_bound(table: BinTable, bins: Binning, *, distinct: bool) -> float:
    """See `BinTable.error_bound`."""
    if not table.fine or isinstance(table.task, Spread):
        message = "error_bound is for fine tables of probabilities: it bounds the ECE in bins made from their cells."
        raise ValueError(message)
    cell, part = cut_cells(table, bins)
    if not distinct:
        moved = _any_rows(table, cell, part)
    elif isinstance(as_binning(bins), EqualMass) and np.allclose(_row_weight(table) * table.count, table.weight):
        moved = _known_number(table, cell, part) * _row_weight(table)
    else:
        message = (
            "distinct=True is for unweighted labelled rows in EqualMass bins, whose edges part a known number of rows."
        )
        raise ValueError(message)
    return 2 * float(moved.sum()) / table.total


def _any_rows(table: BinTable, cell: NDArray[np.intp], part: Floats) -> Floats:
    """Whatever rows of the cell are to the left, their sum of p - y lies between its negative and its positive part."""
    scale = table.observed_scale
    both = table.task.shared_mass(table)[cell]
    positive, negative = table.predicted[cell] - both, scale * table.observed[cell] - both
    share = part * (positive - negative)
    return np.maximum(positive - share, share + negative)


def _known_number(table: BinTable, cell: NDArray[np.intp], part: Floats) -> Floats:
    """With a of the n rows to the left, at least max(0, a - n0) and at most min(a, n1) of them are positive."""
    positives = table.observed[cell] / _row_weight(table)
    n, width = table.count[cell], (table.high - table.low)[cell]
    left = part * n
    expected = part * positives
    outcomes = np.maximum(np.minimum(left, positives) - expected, expected - np.maximum(0.0, left - (n - positives)))
    return outcomes + np.minimum(left, n - left) * width


def _row_weight(table: BinTable) -> float:
    """The weight of one row, where all have the same."""
    return float(table.weight_squares.sum()) / table.total


def cut_rows(parts: tuple[Rows, ...], binning: Cut | Cells, *, squares: bool = True) -> CellSums:
    """The sums of rows that come in one part, or in two that are summed apart: unlabeled rows, then positives."""
    if isinstance(binning, Cells):
        tables = [_distinct(part) if isinstance(binning, Distinct) else sums_on_grid(part, binning) for part in parts]
        return tables[0] if len(tables) == 1 else added(tables)
    first = parts[0]
    if isinstance(binning, EqualMass) and not first.plain and first.weight is None:
        # far cheaper than ordering whole rows
        binning = Edges(equal_mass.equal_count_edges(np.sort(first.key), binning.n_bins, binning.rank))
    if isinstance(binning, EqualMass):
        if binning.rank == "floor" and sorting.selection_is_faster(first, binning.n_bins):
            return of_bins(*sorting.equal_mass_sums(first, binning.n_bins, squares=squares))
        table = equal_mass_table(sorting.sorted_rows(first), binning.n_bins, binning.rank)
        if len(parts) == 1:
            return table
        edges, parts, sums = np.append(table.low, table.high[-1]), parts[1:], table.sums
        edges[0] = min(edges[0], *(part.key.min() for part in parts))
        edges[-1] = max(edges[-1], *(part.key.max() for part in parts))
        binning = Edges(edges)
    else:
        edges = binning.edges
        sums = np.zeros((len(SUMS), len(edges) - 1))
    for part in parts:
        if part.predicted is not part.key or edges[0] > 0 or edges[-1] < 1:  # probabilities are known to fit
            equal_mass.require_inside(part.key, edges)
        wanted = squares and part.role != "both"
        if isinstance(binning, EqualWidth):
            sums = sums + equal_width_sums(part, edges, squares=wanted)
        else:
            sums = sums + sums_by_index(part, binning.index, len(edges) - 1, squares=wanted)
    return of_bins(edges, sums)


def _distinct(rows: Rows) -> CellSums:
    key, sums = sorting.distinct_sums(rows)
    return CellSums(Distinct(), key, key, key, sums)


def of_bins(edges: Floats, sums: Floats) -> CellSums:
    """The table of bins with these edges and sums."""
    return CellSums(Edges(edges), np.arange(sums.shape[1]), edges[:-1], edges[1:], sums)


def equal_mass_table(ordered: SortedRows, n: int, rank: Rank = "floor") -> CellSums:
    """The table of `n` bins of equal mass of rows that are sorted already."""
    rows = ordered.rows
    if rows.weight is None:
        cuts = sorting.equal_mass_rows(ordered, n, rank)
    else:
        ends = ordered.run_ends
        starts = np.concatenate([[0], ends[:-1]])
        weight, squares = (np.add.reduceat(values, starts) for values in (rows.weight, rows.weight**2))
        at = equal_mass.RunningWeight.of(weight, squares).cuts(n, rank)[1:-1].astype(np.intp)
        cuts = np.concatenate([[0], ends[at - 1], [len(ordered)]])
    edges = np.concatenate([rows.key[:1], rows.key[cuts[1:] - 1]]).astype(np.float64)
    return of_bins(edges, ordered.between(cuts))


def pooled_on(grid: HybridGrid, table: BinTable, *, beyond: int = 0) -> BinTable:
    """The table with the cells of one cell of the grid added up, if it has more than some number of cells."""
    if len(table) <= beyond:
        return table
    key = grid.index(table.predicted_mean)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key) > 0]))
    ends = np.append(starts[1:], len(key)) - 1
    sums = np.add.reduceat(table.sums, starts, axis=1)
    return replace(table, cut=grid, key=key[starts], low=table.low[starts], high=table.high[ends], sums=sums)


Data = Predictions | BinTable | Column
"""What an estimator takes first: predictions, a table, or y_true (with y_prob second); None where it comes by name."""


def binned(
    data: Data,
    y_prob: ArrayLike | None,
    bins: Binning,
    *,
    squares: bool = True,
    needed_by: str | None = None,
    linear: bool = False,
) -> tuple[BinTable, str]:
    """The table of `data` in `bins`, and the words for it. A table that has bins already is taken as it is.

    `needed_by` names an estimator of probabilities; without it tables of spreads will do as well. A `linear` one needs
    no more than sums of outcomes, so that these may be probabilities.
    """
    bins = as_binning(bins)
    if isinstance(data, BinTable):
        require_rows(data)
    if (made := _in_one_pass(data, y_prob, bins)) is not None:
        table, words = made, repr(bins)
    elif not isinstance(data, BinTable):
        task = binary(data, y_prob)
        rows = task.linear_rows() if linear and isinstance(task, Binary) and task.outcomes is None else task
        table, words = BinTable.of(rows, bins, squares=squares), repr(bins)
    elif data.fine:
        table, words = data.coarsen(bins), repr(bins)
    else:
        table, words = data, f"{len(data)} given bins"
    if needed_by is not None:
        require_kind(table, needed_by=needed_by)
    table.task.warn(table)
    return table, words


def _in_one_pass(data: Data, y_prob: ArrayLike | None, bins: Binning) -> BinTable | None:
    """The table of two plain arrays in bins of equal width, checked and summed in one pass; None if it takes more."""
    if type(data) is not np.ndarray or type(y_prob) is not np.ndarray or not isinstance(bins, EqualWidth):
        return None
    sums = checked_equal_width_sums(data, y_prob, bins.edges)
    return None if sums is None else BinTable(*of_bins(bins.edges, sums))


def fine(data: Data, y_prob: ArrayLike | None, *, needed_by: str, spread: bool = False) -> BinTable:
    """The exact table of `data`, without cells that hold nothing; a fine table is taken as it is."""
    if not isinstance(data, BinTable):
        data = BinTable.of(binary(data, y_prob), Distinct())
    require_fine(data, needed_by=needed_by, spread=spread)
    some = (data.weight > 0) | (data.observed > 0)  # cells of labelled positives alone weigh nothing, but count
    return data if some.all() else data.take(some)


def outcome_cells(data: Data, *, needed_by: str) -> BinTable:
    """The exact table of `data`, whose rows must have an outcome each."""
    cells = fine(data, None, needed_by=needed_by)
    if isinstance(cells.task, Unlabeled):
        fail(f"Positive-unlabeled tables have no outcomes per row, which {needed_by} needs.", ValueError)
    return cells


def require_rows(table: BinTable) -> None:
    """Refuse a table without rows that weigh anything, and one of positive-unlabeled data without positives."""
    if len(table) == 0 or not table.total > 0:
        left_out = f" ({sum(table.invalid.values()):_} invalid ones were left out)" if table.invalid else ""
        fail(f"The table holds no rows with a positive weight{left_out}, so there is nothing to measure.")
    if isinstance(table.task, Unlabeled) and not table.observed.sum() > 0:
        fail("The table holds no labelled positives, so nothing is known about the outcomes.")


def require_kind(table: BinTable, *, needed_by: str, spread: bool = False) -> None:
    """Refuse a table of spreads where probabilities are needed, the reverse, and tables of nothing."""
    require_rows(table)
    if isinstance(table.task, Spread) == spread:
        return
    if spread:
        message = (
            f"{needed_by} needs predicted spreads and errors, but this table holds probabilities and outcomes: use "
            "ece, debiased_ece or variational_error, or make the table of Gaussian(y_true, mean, std)."
        )
    else:
        message = (
            f"{needed_by} needs probabilities and outcomes, but this table holds predicted spreads and squared errors: "
            "use ence, debiased_ence or mean_squared_z, or make the table of Binary(y_true, y_prob)."
        )
    raise ValueError(message)


def require_fine(table: BinTable, *, needed_by: str, spread: bool = False) -> None:
    """Refuse a table of bins where cells are needed, and one of the wrong kind."""
    require_kind(table, needed_by=needed_by, spread=spread)
    if not table.fine:
        fail(f"{needed_by} needs a fine table (or the predictions); this one has only {len(table)} bins.", ValueError)


#: Groups beyond these, the largest first, are left out.
#: Test: tests/table/test_bintable_of_data.py::test_a_report_shows_the_largest_groups_and_a_gate_sees_all.
MOST_GROUPS = 50
#: What the figures call all rows.
ALL_ROWS = "all rows"


def group_tables(
    data: Any, by: ArrayLike | Mapping[Any, BinTable | ArrayLike] | None, *, most: int | None = MOST_GROUPS
) -> dict[str, Any]:
    """The rows, or the table, of each group; the largest come first and at most `most` of each grouping."""
    if by is None:
        return {}
    if isinstance(by, Mapping):
        tables = {name: table for name, table in by.items() if isinstance(table, BinTable)}
        parts: dict[str, Any] = dict(zip(group_texts(tables, taken=ALL_ROWS), tables.values(), strict=True))
        groupings = {
            name: group_tables(data, some, most=most) for name, some in by.items() if not isinstance(some, BinTable)
        }
        rows = {f"{name} = {group}": part for name, some in groupings.items() for group, part in some.items()}
        return dict(sorted(parts.items(), key=lambda pair: -number_of_rows(pair[1]))[:most]) | rows
    if isinstance(data, BinTable):
        fail("A table has no rows to group; give one table per group, e.g. from scale.bin_tables(..., by=...).")
    names, index = data.row_groups(by)
    sizes, order = np.bincount(index), np.argsort(index, kind="stable")
    ends, texts = np.cumsum(sizes), group_texts(names, taken=ALL_ROWS)
    chosen = np.argsort(-sizes, kind="stable")[:most]
    return {texts[k]: data.take(order[ends[k] - sizes[k] : ends[k]]) for k in chosen}


def number_of_rows(part: Predictions | BinTable) -> int:
    """The rows behind a table, or those of predictions."""
    return part.n if isinstance(part, BinTable) else len(part)
