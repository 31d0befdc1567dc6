"""Which of very many groups to look at: those with the most evidence, or those that other rows confirm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.calibration_tests import TestMethod
from calibrant.inference.clustered_score import ClusteredScore
from calibrant.inference.group_tests import GroupTests, clustered_tests, group_tests, one_by_one, slice_tests
from calibrant.inference.groupings import Grouping
from calibrant.inference.hypothesis_tests.multiscale import MultiScale
from calibrant.inference.multiplicity import holm
from calibrant.inference.sample import cluster_labels

#: Up to this many columns and crosses the tests of groups are simulated; of more, all are adjusted by Holm's method.
MOST_SIMULATED = 4

#: The seed of the halves in which groups are found and confirmed.
SEED = 0


@dataclass(frozen=True, eq=False)
class GroupEvidence:
    """One group of one grouping with its p-values: by itself, adjusted, and adjusted where it was found."""

    grouping: Grouping
    number: int
    statistic: float
    p_value: float
    adjusted: float
    found: float | None = None


def group_evidence(
    data: Predictions, groupings: Sequence[Grouping], test: TestMethod | None, *, simulated: bool = True
) -> list[GroupEvidence]:
    """The tests of all groups, in the order of the groupings and of the names in each."""
    tests = all_tests(data, groupings, test, simulated=simulated)
    return [
        GroupEvidence(one, k, *(float(column[k]) for column in (found.statistic, found.p_value, found.adjusted)))
        for one, found in zip(groupings, tests, strict=True)
        for k in range(len(one.names))
    ]


def strongest(groups: Sequence[GroupEvidence], number: int) -> list[GroupEvidence]:
    """Those with the most evidence, in the order in which they are given; those that were not tested come last."""
    adjusted, alone = (np.array([getattr(one, name) for one in groups]) for name in ("adjusted", "p_value"))
    return [groups[k] for k in sorted(np.lexsort((alone, adjusted))[:number].tolist())]


def confirmed(
    data: Predictions, groupings: Sequence[Grouping], test: TestMethod | None, number: int
) -> tuple[Predictions, list[GroupEvidence]]:
    """The groups with the most evidence on a random half of the rows, tested on the other half, which is returned.

    Their p-values there are adjusted by Holm's method over these groups only: which they are depends on nothing in the
    second half. Groups without rows in it are left out.
    """
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
        message = "confirm=True found no group that has rows in both halves; group by fewer columns, or quantiles=..."
        raise InvalidPredictions(message)
    adjusted = holm([one.p_value for one in again])
    return data.take(second), [replace(one, adjusted=p) for one, p in zip(again, adjusted, strict=True)]


def _halves(data: Predictions) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The numbers of the rows of a random half of the rows, or of the clusters, which stay whole, and of the others."""
    clusters = np.arange(len(data)) if data.group is None else cluster_labels(data, len(data))
    number = int(clusters.max()) + 1
    if number < 2:
        unit = "row" if data.group is None else "cluster"
        message = f"confirm=True divides the {unit}s into two halves; there is one {unit} only."
        raise InvalidPredictions(message)
    is_first = np.zeros(number, dtype=np.bool_)
    is_first[np.random.default_rng(SEED).permutation(number)[: number // 2]] = True
    return np.flatnonzero(is_first[clusters]), np.flatnonzero(~is_first[clusters])


def words(data: Predictions, groupings: Sequence[Grouping], test: TestMethod | None, *, simulated: bool = True) -> str:
    """The name of the test of each group."""
    if test is not None:
        return repr(test)
    if data.group is not None and isinstance(data, Binary | Multiclass):
        return "clustered score test" + ("" if isinstance(data, Binary) else " of the predicted class")
    if not isinstance(data, Binary):
        return "default test"
    return (
        "multi-scale and likelihood ratio tests" if simulated and _few(groupings) else "gap and likelihood ratio tests"
    )


def all_tests(
    data: Predictions, groupings: Sequence[Grouping], test: TestMethod | None = None, *, simulated: bool = True
) -> list[GroupTests]:
    """The tests of each grouping, by the method that is right for the data: one for reports and for `by_group`."""
    if data.group is not None and _takes_clusters(data, test):
        return clustered_tests(data, groupings)
    if data.group is not None or not isinstance(data, Binary) or not (test is None or isinstance(test, MultiScale)):
        return one_by_one(data, groupings, test)
    if test is None and not (simulated and _few(groupings)):
        return slice_tests(data, groupings)
    options = {} if test is None else {"draws": test.draws, "seed": test.seed}
    return group_tests(data, groupings, **options)


def _takes_clusters(data: Predictions, test: TestMethod | None) -> TypeGuard[Binary | Multiclass]:
    if isinstance(data, Binary):
        return test is None or isinstance(test, ClusteredScore)
    return test is None and isinstance(data, Multiclass)


def _few(groupings: Sequence[Grouping]) -> bool:
    return len(groupings) <= MOST_SIMULATED
