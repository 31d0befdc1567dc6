"""Tests of many groups at once, adjusted for their number, and which of the groups to look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.forecasts import Forecast, Quantiles, Samples
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.inference.calibration_tests import ClusteredRows, ClusteredScore, TestMethod, calibration_test
from calibrant.inference.forecast_intervals import CoverageByGroup
from calibrant.inference.forecast_tests import ForecastTest
from calibrant.inference.forecasts import MeanSquaredZ
from calibrant.inference.groupings import GroupEvidence, Grouping
from calibrant.inference.multiplicity import cauchy_combined, gamma_tails, holm, rank_p, step_down_min
from calibrant.inference.multiscale import MultiScale, Places, statistics, weights, with_drawn
from calibrant.inference.sample import Sample, cluster_labels
from calibrant.numerics.arrays import Floats
from calibrant.numerics.cells import PooledCells
from calibrant.numerics.confidence_limits import two_sided_tail
from calibrant.numerics.random_draws import generator
from calibrant.table.bintable import BinTable

#: Cells of the scores, a power of two, at most; and cells of all groups of one column, at most.
#: Test: tests/inference/test_group_tests.py::test_very_many_groups_have_fewer_cells_of_scores.
_SLICE_CELLS, _MOST_SLICES = 128, 1 << 22

#: Cells in which the number of events of a group is judged: its variance hardly depends on how fine they are.
#: Test: tests/inference/test_group_tests.py::test_the_number_of_events_needs_few_cells.
_GAP_CELLS = 16


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """The rows, and the cell of each score: of about equal mass, never dividing equal scores, alike for all groups."""

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
        cell[order] = first * _SLICE_CELLS // len(order)
        return cls(data, cell)

    def sums(self, grouping: Grouping) -> GroupCells:
        """The sums of every group, in cells of neighbouring scores pooled where there are very many groups."""
        groups, cells = len(grouping.names), _SLICE_CELLS
        while groups * cells > _MOST_SLICES and cells > 1:
            cells //= 2
        place = grouping.index * cells + self.cell // (_SLICE_CELLS // cells)
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

    def gap_p_values(self) -> Floats:
        """Two-sided p-values of the number of events of each group."""
        first = np.arange(0, self.count.shape[1], max(1, self.count.shape[1] // _GAP_CELLS))
        coarse = GroupCells(*(np.add.reduceat(x, first, axis=1) for x in (self.count, self.predicted, self.observed)))
        return two_sided_tail(coarse.count, coarse.probability, coarse.observed.sum(axis=1))


#: Share of the significance that the simulated tests use; the likelihood ratios, which no number of draws limits, use
#: the rest. Test: tests/inference/test_group_tests.py::
#: test_tests_of_sums_agree_with_those_of_rows_and_are_adjusted_over_all_columns.
SIMULATED = 0.9

#: Number of simulated samples: as many as have this number of outcomes together, but at least the second number per
#: column of groups, and at most the third. Test: tests/inference/test_group_tests.py::test_draws_by_default.
_OUTCOMES, _FEWEST, _MOST = 200_000_000, 199, 999

#: Simulated samples behind the test of each group of forecasts on a page, whose sizes all differ.
#: Speed: a tenth of a second for a group; beyond these the p-value is Bonferroni's, so that none is a limit.
_FORECAST_DRAWS = 999

#: Cells per group, at most. Derived: two for each of the 128 bins of `MultiScale`, as that has.
_CELLS = 256


class GroupTests(NamedTuple):
    """Statistics and p-values of the groups of one grouping, NaN where untested; `adjusted` for all of all columns."""

    statistic: Floats
    p_value: Floats
    adjusted: Floats
    of_cells: CoverageByGroup | None = None


def group_tests(
    data: Binary, groupings: Sequence[Grouping], *, draws: int | None = None, seed: int = 0
) -> list[GroupTests]:
    """Tests of every group of every column; the probability of any false rejection is at most the significance.

    Of the two procedures of `by_group`, (i) ranks one smooth statistic per group, by gamma laws fitted to other
    samples, and is multiplied by the number of columns, which divide the same rows; (ii) is left out for weighted rows,
    which are not draws from their predictions. With a = 0.9 the result is min(p_i / a, p_ii / (1 - a)).
    """
    draws = default_draws(groupings) if draws is None else draws
    rng = generator(seed, "group search")
    by_score = np.argsort(data.y_prob)
    simulated, ratios = [], []
    for one in groupings:
        order = _in_groups(by_score, one)
        simulated.append(_combined_tails(cells_of_groups(data, one, order), draws, rng))
        ratios.append(_likelihood_ratios(data, one, order))
    adjusted_ratios = np.split(holm(np.concatenate(ratios).tolist()), np.cumsum([len(one.names) for one in groupings]))
    share = SIMULATED if data.weight is None else 1.0
    found = []
    for q, ratio, adjusted_ratio in zip(simulated, ratios, adjusted_ratios, strict=False):
        alone = _either(rank_p(q[0], q[1:]), ratio, share)
        adjusted = _either(step_down_min(q[0], q[1:]) * len(groupings), adjusted_ratio, share)
        found.append(GroupTests(q[0], alone, np.maximum(alone, adjusted)))
    return found


def default_draws(groupings: Sequence[Grouping]) -> int:
    """Number of simulated samples: fewer where there are many cells of groups."""
    cells = sum(int(np.minimum(np.bincount(one.index), _CELLS).sum()) for one in groupings)
    return int(np.clip(_OUTCOMES // max(cells, 1), min(_FEWEST * len(groupings), _MOST), _MOST))


def slice_tests(data: Binary, groupings: Sequence[Grouping]) -> list[GroupTests]:
    """Tests of every group of very many columns, or crosses of columns, that overlap.

    By the tail of the number of events and the likelihood ratio, each with Holm's adjustment; of weighted rows the
    first.
    """
    share = SIMULATED if data.weight is None else 1.0
    found, scores = [], ScoreCells.of(data)
    for one in groupings:
        cells = scores.sums(one)
        gap = cells.gap_p_values()
        ratio = np.ones_like(gap)
        if data.weight is None:
            ratio = likelihood_ratio_of_cells(cells.count, cells.probability, cells.observed)
        found.append((np.minimum(gap, ratio), _either(gap, ratio, share)))
    return _adjusted(found)


def clustered_tests(data: Binary, groupings: Sequence[Grouping]) -> list[GroupTests]:
    """`ClusteredScore` of every group, with Holm's adjustment over all columns; NaN where clusters are too few."""
    rows = ClusteredRows.of(data)
    return _adjusted([rows.sums(one).score_tests() for one in groupings])


def one_by_one(data: Predictions, groupings: Sequence[Grouping], method: TestMethod | None) -> list[GroupTests]:
    """`calibration_test` of every group, with Holm's adjustment over the groups of all columns.

    The ranks of the default multiclass test share the significance with the likelihood ratio of the confidence.
    """
    top = data.top_label() if method is None and isinstance(data, Multiclass) and data.weight is None else None
    found = []
    for one in groupings:
        tests = [calibration_test(data.take(rows), method=method) for rows in one.rows()]
        statistic, p = np.array([(test.statistic, test.p_value) for test in tests]).T
        if top is not None:
            p = _either(p, _likelihood_ratios(top, one, _in_groups(np.argsort(top.y_prob), one)), SIMULATED)
        found.append((statistic, p))
    return _adjusted(found)


def _adjusted(found: Sequence[tuple[Floats, Floats]]) -> list[GroupTests]:
    """Statistics and p-values of every column, with Holm's adjustment over the groups of all columns."""
    adjusted = np.split(holm(np.concatenate([p for _, p in found]).tolist()), np.cumsum([len(p) for _, p in found]))
    return [GroupTests(statistic, p, own) for (statistic, p), own in zip(found, adjusted, strict=False)]


def _either(simulated: Floats, ratio: Floats, share: float) -> Floats:
    """The p-value of two tests that share the significance."""
    p = simulated / share
    return np.minimum(p if share == 1 else np.minimum(p, ratio / (1 - share)), 1.0)


def _combined_tails(groups: Iterable[PooledCells], draws: int, rng: np.random.Generator) -> Floats:
    """The statistic q of the data (first row) and of each of the draws, for every group (column)."""
    found = []
    for cells in groups:
        values = statistics(cells, with_drawn(cells, 2 * draws, rng))
        tails = gamma_tails(values[draws + 1 :], values[: draws + 1])
        found.append(cauchy_combined(tails, weights(tails.shape[1])))
    return np.stack(found, axis=1)


def _in_groups(by_score: Places, grouping: Grouping) -> Places:
    """Rows in the order of their groups, and of their scores in each, given all in the order of their scores."""
    index = grouping.index[by_score]
    if len(grouping.names) <= np.iinfo(np.int16).max:
        index = index.astype(np.int16)  # sorted by its digits
    return np.asarray(by_score[np.argsort(index, kind="stable")])


def cells_of_groups(data: Binary, grouping: Grouping, order: Places | None = None) -> Iterator[PooledCells]:
    """The cells of each group, all summed at once; `order` is that of groups and scores, where it is known."""
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


#: Up to this many columns and crosses the tests of groups are simulated; of more, all are adjusted by Holm's method.
#: Test: tests/inference/test_group_tests.py::test_the_result_names_the_test.
MOST_SIMULATED = 4


def group_evidence(
    data: Predictions,
    groupings: Sequence[Grouping],
    test: TestMethod | None,
    *,
    simulated: bool = True,
    nominal: float | None = None,
) -> list[GroupEvidence]:
    """The tests of all groups, in order; with `nominal`, its coverage is a statistic of quantiles and ensembles too."""
    words, tests = all_tests(data, groupings, test, simulated=simulated, nominal=nominal)
    return [
        GroupEvidence(one, k, words, statistic, p, adjusted, of_cells=found.of_cells)
        for one, found in zip(groupings, tests, strict=True)
        for k, (statistic, p, adjusted) in enumerate(np.stack(found[:3], axis=1).tolist())
    ]


def strongest(groups: Sequence[GroupEvidence], number: int) -> list[GroupEvidence]:
    """Those with the most evidence, in the order in which they are given; those that were not tested come last."""
    adjusted, alone = (np.array([getattr(one, name) for one in groups]) for name in ("adjusted", "p_value"))
    return [groups[k] for k in sorted(np.lexsort((alone, adjusted))[:number].tolist())]


def confirmed(
    data: Predictions, groupings: Sequence[Grouping], test: TestMethod | None, number: int
) -> tuple[Predictions, list[GroupEvidence]]:
    """The groups with the most evidence on a random half of the rows, tested on the other half, which is returned."""
    first, second = _halves(data)
    candidates = strongest(group_evidence(data.take(first), [one.take(first) for one in groupings], test), number)
    found = {(one.grouping.column, one.grouping.names[one.number]): one.adjusted for one in candidates}
    columns = {column for column, _ in found}
    other = [one.take(second) for one in groupings if one.column in columns]
    again = [
        replace(one, found=found[key])
        for one in group_evidence(data.take(second), other, test, simulated=False)
        if (key := (one.grouping.column, one.grouping.names[one.number])) in found
    ]
    if not again:
        fail("confirm=True found no group that has rows in both halves; group by fewer columns, or quantiles=...")
    adjusted = holm([one.p_value for one in again])
    return data.take(second), [replace(one, adjusted=p) for one, p in zip(again, adjusted, strict=True)]


def _halves(data: Predictions) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The numbers of the rows of a random half of the rows, or of the clusters, which stay whole, and of the others."""
    clusters = np.arange(len(data)) if data.group is None else cluster_labels(data, len(data))
    number = int(clusters.max()) + 1
    if number < 2:
        unit = "row" if data.group is None else "cluster"
        fail(f"confirm=True divides the {unit}s into two halves; there is one {unit} only.")
    is_first = np.zeros(number, dtype=np.bool_)
    is_first[generator(0, "halves that confirm groups").permutation(number)[: number // 2]] = True
    return np.flatnonzero(is_first[clusters]), np.flatnonzero(~is_first[clusters])


def all_tests(
    data: Predictions,
    groupings: Sequence[Grouping],
    test: TestMethod | None = None,
    *,
    simulated: bool = True,
    nominal: float | None = None,
) -> tuple[str, list[GroupTests]]:
    """The name and the results of the tests of each grouping, by the method that is right for the data."""
    if data.group is None and test is None and isinstance(data, Quantiles | Samples):
        found = [CoverageByGroup.of(data, one.index, nominal=nominal, ordered=one.ordered) for one in groupings]
        return "scores of bias and spread", [  # columns divide the same rows
            GroupTests(np.abs(x.sums).max(axis=1), x.p_values, np.minimum(len(found) * x.adjusted, 1.0), x)
            for x in found
        ]
    if data.group is not None and test is None and isinstance(data, Multiclass):
        return "clustered score test of the predicted class", clustered_tests(data.top_label(), groupings)
    if data.group is not None and isinstance(data, Binary) and (test is None or isinstance(test, ClusteredScore)):
        return "clustered score test" if test is None else repr(test), clustered_tests(data, groupings)
    if data.group is not None or not isinstance(data, Binary) or not (test is None or isinstance(test, MultiScale)):
        return "default test" if test is None else repr(test), one_by_one(data, groupings, test)
    if test is not None:
        return repr(test), group_tests(data, groupings, draws=test.draws, seed=test.seed)
    if simulated and len(groupings) <= MOST_SIMULATED:
        return "multi-scale and likelihood ratio tests", group_tests(data, groupings)
    return "gap and likelihood ratio tests", slice_tests(data, groupings)


def adjusted_p_values(data: Predictions, grouping: Grouping) -> Floats:
    """For each group of rows the p-value of `by_group`, adjusted for all groups; NaN where it cannot be tested."""
    few = isinstance(data, Forecast) and not isinstance(data, Quantiles | Samples)
    return all_tests(data, [grouping], ForecastTest(draws=_FORECAST_DRAWS) if few else None)[1][0].adjusted


def adjusted_of_tables(tables: Sequence[BinTable]) -> Floats:
    """The same for tables of binary predictions: the statistics of `MultiScale`, ranked step-down over all groups."""
    cells = (Sample.of(table, needed_by="report").pooled(_CELLS) for table in tables)
    found = _combined_tails(cells, _MOST, generator(0, "tests of groups"))
    return step_down_min(found[0], found[1:])


def spread_p_value(table: BinTable) -> float:
    """Of a table of spreads: is the mean square of z 1? NaN for too few rows, or none with an error."""
    try:
        return calibration_test(table, method=MeanSquaredZ()).p_value
    except (InvalidPredictions, ValueError):
        return float("nan")


#: Shifts of the log-odds, and their prior weights: a bin is calibrated with probability 0.4. Any prior gives a valid
#: test. Test: tests/inference/test_group_tests_likelihood_ratios.py::test_the_ratio_is_that_of_its_definition.
_SHIFTS = np.array([0.0, -0.25, 0.25, -0.5, 0.5, -1.0, 1.0, -1.6, 1.6, -2.5, 2.5, -4.0, 4.0])
_PRIOR = np.r_[0.4, np.full(12, 0.05)]

#: The largest number of bins, and the least mean number of rows per bin.
#: Test: tests/inference/test_group_tests_likelihood_ratios.py::test_bins_are_at_most_64_and_hold_six_rows_on_average.
_MOST_BINS, _LEAST_ROWS = 64, 6

#: Rows, or cells, per block. Speed: the table of a block, rows by 13 shifts, stays in the cache (3 MB); no result
#: depends on it.
_BLOCK = 1 << 15


def likelihood_ratio_p(y_prob: Floats, y_true: NDArray[np.int8], starts: NDArray[np.intp]) -> Floats:
    r"""For each group of independent rows the reciprocal of a likelihood ratio: a p-value at any n, however small.

    The alternatives shift the log-odds by δ, independently in each of B = 1, 2, 4, ..., 64 bins, with a fixed prior:

    .. math:: E = \operatorname{mean}_B \prod_b \sum_\delta \pi_\delta
              \prod_{i \in b} \frac{e^{\delta y_i}}{1 - p_i + p_i e^\delta}, \qquad p = \min(1, 1 / E),

    valid by Markov's inequality (Vovk, Wang 2021, E-values). Rows are in the order of their group, and of y_prob in
    each; `starts` are the first rows of the groups.
    """
    size = np.diff(np.append(starts, len(y_prob)))
    group = np.repeat(np.arange(len(starts)), size)
    finest = np.left_shift(1, np.log2(np.clip(size // _LEAST_ROWS, 1, _MOST_BINS)).astype(np.intp))  # a power of two
    equal = _changes(group, y_prob)  # bins that split ties by the order of rows could know the outcomes
    first = np.repeat(equal, np.diff(equal, append=len(y_prob)))
    inside = (first - starts[group]) * finest[group] // size[group]
    first = _changes(group, inside)
    sums = _shifted_sums(y_prob, y_true, first)
    group, inside = group[first], inside[first]
    logs = []
    for bins in (1 << power for power in reversed(range(_MOST_BINS.bit_length()))):
        inside = inside // np.maximum(finest // bins, 1)[group]  # small groups repeat their finest bins
        finest = np.minimum(finest, bins)
        first = _changes(group, inside)
        sums, group, inside = np.add.reduceat(sums, first, axis=1), group[first], inside[first]
        logs.append(np.bincount(group, _log_means(sums, _PRIOR), len(starts)))
    log_mean = _log_means(np.array(logs), np.full(len(logs), 1 / len(logs)))
    return np.asarray(np.exp(-np.maximum(log_mean, 0.0)))


def likelihood_ratio_of_cells(count: Floats, probability: Floats, events: Floats) -> Floats:
    """`likelihood_ratio_p` of groups (lines) whose rows are counted in the same 2^k cells of scores (columns).

    A cell counts as rows of its mean probability, which can only make the ratio smaller.
    """
    step = max(1, _BLOCK // count.shape[1])
    blocks = [slice(start, start + step) for start in range(0, len(count), step)]
    return np.concatenate([_ratio_of_cells(count[some], probability[some], events[some]) for some in blocks])


def _ratio_of_cells(count: Floats, probability: Floats, events: Floats) -> Floats:
    sums = _SHIFTS[:, None, None] * events - count * np.log1p(np.expm1(_SHIFTS)[:, None, None] * probability)
    logs = []
    while True:
        if sums.shape[2] <= _MOST_BINS:
            flat = _log_means(sums.reshape(len(_SHIFTS), -1), _PRIOR)
            logs.append(flat.reshape(sums.shape[1:]).sum(axis=1))
        if sums.shape[2] == 1:
            break
        sums = sums[:, :, ::2] + sums[:, :, 1::2]
    log_mean = _log_means(np.array(logs), np.full(len(logs), 1 / len(logs)))
    return np.asarray(np.exp(-np.maximum(log_mean, 0.0)))


def _changes(group: NDArray[np.intp], inside: NDArray[Any]) -> NDArray[np.intp]:
    """Where a bin, or a run of equal scores, begins."""
    return np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(inside, prepend=-1) != 0))


def _shifted_sums(y_prob: Floats, y_true: NDArray[np.int8], first: NDArray[np.intp]) -> Floats:
    """The log likelihood ratio of each shift (row) in each bin (column)."""
    ends = np.append(first[1:], len(y_prob))
    found = np.empty((len(_SHIFTS), len(first)))
    begin = 0
    while begin < len(first):
        stop = max(int(np.searchsorted(first, first[begin] + _BLOCK)), begin + 1)
        rows = slice(int(first[begin]), int(ends[stop - 1]))
        logs = np.outer(_SHIFTS, y_true[rows]) - np.log1p(np.outer(np.expm1(_SHIFTS), y_prob[rows]))
        found[:, begin:stop] = np.add.reduceat(logs, first[begin:stop] - first[begin], axis=1)
        begin = stop
    return found


def _log_means(logs: Floats, share: Floats) -> Floats:
    """The logarithm of a weighted mean over rows of numbers given by their logarithms."""
    largest = logs.max(axis=0)
    return np.asarray(largest + np.log(share @ np.exp(logs - largest)))
