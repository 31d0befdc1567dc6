"""Tests of very many overlapping groups: all columns and their crosses, from a few sums of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary
from calibrant.inference.groupings import Grouping
from calibrant.inference.hypothesis_tests.mixture_likelihood import likelihood_ratio_of_cells
from calibrant.numerics.arrays import Floats
from calibrant.numerics.poisson_binomial import two_sided_tail

#: Cells of the scores, a power of two, at most; and cells of all groups of one column, at most.
_CELLS, _MOST = 128, 1 << 22

#: Cells in which the number of events of a group is judged: its variance hardly depends on how fine they are.
_GAP_CELLS = 16


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """The rows and the cell of each row's score: cells of about equal mass that never divide equal scores.

    Cells depend on the scores alone, so that outcomes within them are draws from the predictions whichever rows a group
    takes.
    """

    data: Binary
    cell: NDArray[np.intp]

    @classmethod
    def of(cls, data: Binary) -> ScoreCells:
        """From rows; one sort."""
        order = np.argsort(data.y_prob)
        ordered = data.y_prob[order]
        new = np.append(True, ordered[1:] != ordered[:-1])
        first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
        cell = np.empty(len(order), dtype=np.intp)
        cell[order] = first * _CELLS // len(order)
        return cls(data, cell)

    def sums(self, grouping: Grouping) -> GroupCells:
        """The sums of every group, in cells of neighbouring scores pooled where there are very many groups."""
        groups, cells = len(grouping.names), _CELLS
        while groups * cells > _MOST and cells > 1:
            cells //= 2
        place = grouping.index * cells + (self.cell // (_CELLS // cells) if cells < _CELLS else self.cell)
        shape, size = (groups, cells), groups * cells
        p, weight = self.data.y_prob.astype(np.float64, copy=False), self.data.weight
        if weight is None:
            both = np.bincount(2 * place + self.data.y_true, minlength=2 * size).reshape(*shape, 2).astype(np.float64)
            expected: Floats = np.bincount(place, p, size).astype(np.float64).reshape(shape)
            return GroupCells(both.sum(axis=2), expected, both[:, :, 1])
        total, squares, predicted, observed = (
            np.bincount(place, column, size).reshape(shape)
            for column in (weight, weight**2, weight * p, weight * self.data.y_true)
        )
        unit = np.divide(total.sum(axis=1), squares.sum(axis=1), out=np.zeros(groups), where=total.sum(axis=1) > 0)
        return GroupCells(total * unit[:, None], predicted * unit[:, None], observed * unit[:, None])


@dataclass(frozen=True, eq=False)
class GroupCells:
    """Rows (Kish's number of them, with weights), expected and observed events of each group (line) in each cell."""

    count: Floats
    predicted: Floats
    observed: Floats

    @property
    def probability(self) -> Floats:
        """The mean prediction of each cell."""
        mean = np.divide(self.predicted, self.count, out=np.zeros_like(self.count), where=self.count > 0)
        return np.clip(mean, 0.0, 1.0)

    @property
    def gap(self) -> Floats:
        """Mean prediction less mean outcome of each group."""
        return (self.predicted - self.observed).sum(axis=1) / np.maximum(self.count.sum(axis=1), 1e-300)

    @property
    def gap_error(self) -> Floats:
        """The standard error of the gap of each group, if it is calibrated."""
        p = self.probability
        return np.sqrt((self.count * p * (1 - p)).sum(axis=1)) / np.maximum(self.count.sum(axis=1), 1e-300)


def gap_p(cells: GroupCells) -> Floats:
    """Two-sided p-values of the number of events of each group."""
    step = max(1, cells.count.shape[1] // _GAP_CELLS)
    count, predicted = (
        np.add.reduceat(x, np.arange(0, x.shape[1], step), axis=1) for x in (cells.count, cells.predicted)
    )
    coarse = GroupCells(count, predicted, cells.observed)
    return two_sided_tail(coarse.count, coarse.probability, coarse.observed.sum(axis=1))


def ratio_p(cells: GroupCells) -> Floats:
    """Reciprocal likelihood ratios of each group, which notice errors of any shape."""
    return likelihood_ratio_of_cells(cells.count, cells.probability, cells.observed)
