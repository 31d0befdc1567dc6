"""One test of calibration per group, adjusted for the number of groups, of which there may be thousands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.inference.binary_error.pooled_cells import PooledCells
from calibrant.inference.calibration_tests import TestMethod, calibration_test
from calibrant.inference.cluster_sums import ClusteredRows
from calibrant.inference.groupings import Grouping
from calibrant.inference.hypothesis_tests.mixture_likelihood import likelihood_ratio_p
from calibrant.inference.hypothesis_tests.multiscale import Places, statistics, weights, with_drawn
from calibrant.inference.multiplicity import cauchy_combined, gamma_tails, holm, rank_p, step_down_min
from calibrant.inference.slice_sums import ScoreCells, gap_p, ratio_p
from calibrant.numerics.arrays import Floats

#: Share of the significance that the simulated tests use; the likelihood ratios, which no number of draws limits, use
#: the rest.
SIMULATED = 0.9

#: Number of simulated samples: as many as fit into this number of outcomes, but at least so many per column of groups,
#: and not more than that.
_OUTCOMES, _FEWEST, _MOST = 200_000_000, 199, 999

#: Cells per group, at most.
_CELLS = 256


@dataclass(frozen=True, eq=False)
class GroupTests:
    """The tests of one grouping, in the order of its groups.

    Attributes
    ----------
    statistic : array
        Of binary rows the combined tail probability of the statistics of `MultiScale`, before it is ranked; else that
        of the test.
    p_value, adjusted : array
        For each group by itself, and allowing for all groups of all columns; NaN where a group cannot be tested.
    draws : int
        Number of simulated samples that were ranked.
    """

    statistic: Floats
    p_value: Floats
    adjusted: Floats
    draws: int


def group_tests(
    data: Binary, groupings: Sequence[Grouping], *, draws: int | None = None, seed: int = 0
) -> list[GroupTests]:
    r"""Tests of every group of every column; the probability of any false rejection is at most the significance.

    Two valid procedures share it. (i) The statistics of `MultiScale` are computed for the data and for two sets of
    samples drawn from the predictions. Gamma laws fitted to the first set make them one smooth statistic q per group,
    and the ranks of the smallest q among those of the second set, step-down (`step_down_min`), are adjusted p-values:
    at least 1 / (draws + 1), however many groups there are. Columns divide the same rows, so that their groups depend
    on each other: those of each are multiplied by the number of columns. (ii) Reciprocal likelihood ratios
    (`likelihood_ratio_p`), adjusted by Holm's method over all groups, are conservative and have no lower limit. With
    a = 0.9 the result is min(p_i / a, p_ii / (1 - a)).

    Weighted rows are not draws from their predictions, so that (i), with Kish's effective counts, is approximate and
    (ii) is left out.
    """
    sizes = [sum(min(int(n), _CELLS) for n in np.bincount(one.index)) for one in groupings]
    if draws is None:
        draws = int(np.clip(_OUTCOMES // max(sum(sizes), 1), min(_FEWEST * len(groupings), _MOST), _MOST))
    rng = np.random.default_rng([seed, 2])  # unlike the numbers of data simulated with the same seed
    by_score = np.argsort(data.y_prob)
    simulated, ratios = [], []
    for one in groupings:
        order = _in_groups(by_score, one)
        simulated.append(_combined_tails(data, one, order, draws, rng))
        ratios.append(_likelihood_ratios(data, one, order))
    adjusted_ratios = np.split(holm(np.concatenate(ratios).tolist()), np.cumsum([len(one.names) for one in groupings]))
    share = SIMULATED if data.weight is None else 1.0
    found = []
    for q, ratio, adjusted_ratio in zip(simulated, ratios, adjusted_ratios, strict=False):
        alone = _either(rank_p(q[0], q[1:]), ratio, share)
        adjusted = _either(step_down_min(q[0], q[1:]) * len(groupings), adjusted_ratio, share)
        found.append(GroupTests(q[0], alone, np.maximum(alone, adjusted), draws))
    return found


def slice_tests(data: Binary, groupings: Sequence[Grouping]) -> list[GroupTests]:
    r"""Tests of every group of very many columns, or crosses of columns, that overlap.

    As in `group_tests` two valid procedures share the significance, 9 to 1, but both are adjusted by Holm's method over
    all groups of all columns: (i) the tail probability of the number of events, a sum of independent outcomes with
    unlike probabilities (`two_sided_tail`), which can be arbitrarily small where ranks among draws would have to be
    multiplied by the number of columns; (ii) the likelihood ratio, for errors that cancel in the mean. The statistic is
    the smaller of the two p-values. Rows are counted in 128 cells of the scores once; a column then costs a few sums.
    Rows with weights count by Kish's number of them, approximately, and have (i) only.
    """
    share = SIMULATED if data.weight is None else 1.0
    found = []
    scores = ScoreCells.of(data)
    for one in groupings:
        cells = scores.sums(one)
        gap = gap_p(cells)
        ratio = ratio_p(cells) if data.weight is None else np.ones_like(gap)
        found.append((np.minimum(gap, ratio), _either(gap, ratio, share)))
    return _adjusted(found)


def clustered_tests(data: Binary | Multiclass, groupings: Sequence[Grouping]) -> list[GroupTests]:
    """`ClusteredScore` of every group of rows with clusters; of several classes, of the predicted one.

    P-values are adjusted by Holm's method over all groups of all columns, whatever rows and clusters they share. Groups
    of too few clusters are not tested: theirs are NaN.
    """
    rows = ClusteredRows.of(data.top_label() if isinstance(data, Multiclass) else data)
    return _adjusted([rows.sums(one).score_tests() for one in groupings])


def one_by_one(data: Predictions, groupings: Sequence[Grouping], method: TestMethod | None) -> list[GroupTests]:
    """`calibration_test` of every group, adjusted by Holm's method over all groups of all columns.

    The default tests of several classes rank a number of draws, which Holm's method would multiply by the number of
    groups: they share the significance with the likelihood ratio of the confidence of the predicted class.
    """
    found = [_one_by_one(data, one, method) for one in groupings]
    if method is None and isinstance(data, Multiclass) and data.weight is None:
        top = data.top_label()
        by_score = np.argsort(top.y_prob)
        found = [
            (statistic, _either(p, _likelihood_ratios(top, one, _in_groups(by_score, one)), SIMULATED))
            for (statistic, p), one in zip(found, groupings, strict=True)
        ]
    return _adjusted(found)


def _one_by_one(data: Predictions, grouping: Grouping, method: TestMethod | None) -> tuple[Floats, Floats]:
    found = [calibration_test(data.take(rows), method=method) for rows in grouping.rows()]
    return np.array([one.statistic for one in found]), np.array([one.p_value for one in found])


def _adjusted(found: Sequence[tuple[Floats, Floats]]) -> list[GroupTests]:
    """Statistics and p-values of every column, with Holm's adjustment over the groups of all columns."""
    adjusted = np.split(holm(np.concatenate([p for _, p in found]).tolist()), np.cumsum([len(p) for _, p in found]))
    return [GroupTests(statistic, p, own, 0) for (statistic, p), own in zip(found, adjusted, strict=False)]


def _either(simulated: Floats, ratio: Floats, share: float) -> Floats:
    """The p-value of two tests that share the significance."""
    p = simulated / share
    return np.minimum(p if share == 1 else np.minimum(p, ratio / (1 - share)), 1.0)


def _combined_tails(data: Binary, grouping: Grouping, order: Places, draws: int, rng: np.random.Generator) -> Floats:
    """The statistic q of the data (first row) and of each of the draws, for every group (column)."""
    found = np.empty((draws + 1, len(grouping.names)))
    for k, cells in enumerate(cells_of_groups(data, grouping, order)):
        values = statistics(cells, with_drawn(cells, 2 * draws, rng))
        tails = gamma_tails(values[draws + 1 :], values[: draws + 1])
        found[:, k] = cauchy_combined(tails, weights(tails.shape[1]))
    return found


def _in_groups(by_score: Places, grouping: Grouping) -> Places:
    """Rows in the order of their groups, and of their scores in each, given all in the order of their scores."""
    index = grouping.index[by_score]
    if len(grouping.names) <= np.iinfo(np.int16).max:
        index = index.astype(np.int16)  # sorted by its digits
    return np.asarray(by_score[np.argsort(index, kind="stable")])


def cells_of_groups(data: Binary, grouping: Grouping, order: Places | None = None) -> Iterator[PooledCells]:
    """The cells of each group; the sums of all distinct scores of all groups are taken at once, which is fast.

    `order` is that of groups and scores, where it is known.
    """
    order = _in_groups(np.argsort(data.y_prob), grouping) if order is None else order
    if data.weight is not None:
        order = order[data.weight[order] > 0]
    group, score = grouping.index[order], data.y_prob[order].astype(np.float64)
    weight = np.ones(len(order)) if data.weight is None else data.weight[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (group[1:] != group[:-1]) | (score[1:] != score[:-1])
    starts = np.flatnonzero(first)
    columns = [np.ones(len(order)), weight, weight**2, weight * score, weight * data.y_true[order]]
    sums = np.stack([np.add.reduceat(column, starts) for column in columns])
    bounds = np.searchsorted(group[starts], np.arange(len(grouping.names) + 1))
    grouping.require_all(bounds[:-1] < bounds[1:])
    for start, end in pairwise(bounds):
        yield PooledCells.of(sums[:, start:end], _CELLS)


def _likelihood_ratios(data: Binary, grouping: Grouping, order: Places) -> Floats:
    starts = np.flatnonzero(np.diff(grouping.index[order], prepend=-1))
    return likelihood_ratio_p(data.y_prob[order].astype(np.float64), data.y_true[order], starts)
