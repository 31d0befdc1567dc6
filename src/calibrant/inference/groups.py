"""One result per group, and which groups are significantly miscalibrated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Multiclass, Predictions, binary
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.calibration_tests import TestMethod
from calibrant.inference.group_results import ByGroup, GroupResult
from calibrant.inference.group_tests import GroupTests, group_tests, one_by_one
from calibrant.inference.groupings import Grouping, groupings
from calibrant.inference.intervals import Method, as_estimate, interval
from calibrant.inference.multiscale import MultiScale
from calibrant.results.estimate import Estimate, Significance

#: Number of standard errors beyond which a mean gap has a direction.
_CLEAR = 2.0


def by_group(
    estimator: Callable[[Any], float],
    data: Predictions | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    *,
    by: Any = None,
    cross: bool = False,
    level: float = 0.95,
    method: Method | None = None,
    test: TestMethod | None = None,
    intervals: int = 50,
    shrink: bool = False,
) -> ByGroup:
    r"""One estimate and one test per group; p-values allow for the number of groups and can be small for any number.

    The default test of binary predictions (see Notes) rejects any group of a calibrated model with a probability of at
    most the significance, from two groups to thousands. With `shrink`, estimates are shrunk to their mean m by
    :math:`m + (e - m)\,\tau^2 / (\tau^2 + s^2)`, where s is the standard error implied by the interval and τ² the
    variance between groups beyond noise (DerSimonian and Laird): small groups look extreme mostly by chance. The value
    stays unshrunk; the shrunken one is in `details`.

    Parameters
    ----------
    estimator : callable
    data : Predictions, or y_true
        With plain arrays, `y_prob` comes next. Rows must be independent.
    by : array-like, or a mapping, list or frame of several, optional
        The group of each row; by default `data.group` (which then no longer marks clusters). Several columns are a
        grouping each, and p-values allow for all of them. Missing values are a group called "(missing)".
    cross : bool
        Group by all combinations of several columns instead.
    level, method
        As for `interval`.
    test : optional
        As for `calibration_test`, for each group, with Holm's adjustment; by default the test of the Notes.
    intervals : int
        How many groups get an interval: those with the most evidence. Each is at `level` for its group by itself; of
        groups that were chosen because they look worst, more than 1 - level may miss.
    shrink : bool
        Computes the intervals of all groups.

    Notes
    -----
    Two procedures share the significance, 9 to 1. The first draws outcomes from the predictions, computes the
    statistics of `MultiScale` for every group, and ranks the smallest combined tail probability among those of the
    draws (Westfall and Young, step-down). Its adjusted p-values are at least 1 / (draws + 1), with 199 to 999 draws.
    The second is Holm's adjustment of reciprocal likelihood ratios, conservative and without such a limit.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, land = rng.random(4000), np.repeat(["DK", "SE"], 2000)
    >>> y = rng.random(4000) < np.where(land == "DK", p, p**1.5)
    >>> found = by_group(cal.ece, y, p, by=land)
    >>> found.worst.p_value < 0.01, found.worst.method.split(",")[0]
    (True, 'worst of 2 groups: SE')
    >>> found.tests["DK"].p_value > 0.05
    True
    >>> print(found)
    2 groups, 1 of them significantly miscalibrated (5%, adjusted for the number of groups).
    <BLANKLINE>
    group      n  events  predicted  observed  direction  ECE (L1)      95% interval  adjusted p
    SE     2,000     789     0.4943    0.3945  too high     0.0998  0.0... to 0.1...    1.79e-22
    DK     2,000   1,023     0.4989    0.5115               0.0263  0.0000 to 0...
    <BLANKLINE>
    Intervals are for each group by itself.
    """
    level, task = validation.fraction("level", level), binary(data, y_prob)
    if isinstance(task, PositiveUnlabeled):
        message = "Groups of positive-unlabeled rows may differ in their prior: measure each with its own prior."
        raise InvalidPredictions(message)
    task, columns = _divided(task, by, cross=cross)
    validation.whole("intervals", intervals, minimum=0)
    tests = _tests(task, columns, test)
    words = _words(test, task, sum(len(column.names) for column in columns))
    chosen = _most_evident(tests, sum(len(found.adjusted) for found in tests) if shrink else intervals)
    results: list[GroupResult] = []
    for column, found, with_interval in zip(columns, tests, chosen, strict=True):
        for k, rows in enumerate(column.rows()):
            some = task.take(rows)
            some = some.sorted_once() if isinstance(some, Binary) else some
            if with_interval[k]:
                estimate = interval(estimator, some, level=level, method=method)
            else:
                estimate = as_estimate(estimator, some)
            significance = Significance(float(found.statistic[k]), float(found.adjusted[k]), method=words, n=len(rows))
            results.append(
                GroupResult(
                    column=column.column,
                    group=column.names[k],
                    estimate=estimate,
                    test=significance,
                    p_value=float(found.p_value[k]),
                    **_balance(some),
                )
            )
    return ByGroup(tuple(_shrunk(results, level) if shrink else results), n=len(task))


@dataclass(frozen=True)
class ForestRow:
    """One row of a forest plot; `low` and `high` are the estimate itself where it has no interval.

    Examples
    --------
    >>> ForestRow("DK", n=2000, value=0.01, low=0.0, high=0.02, significant=False).group
    'DK'
    """

    group: str
    n: int
    value: float
    low: float
    high: float
    significant: bool


def forest_rows(
    result: ByGroup | Mapping[Any, Estimate], *, alpha: float = 0.05, most: int | None = None
) -> list[ForestRow]:
    """The data of `calibrant.plot.forest`, largest estimate first.

    A group is significant where its adjusted p-value is below `alpha`. With `most`, only so many groups: those with the
    most evidence.

    Examples
    --------
    >>> made = {name: Estimate(e, name="ECE", method="", n=9) for name, e in (("a", 0.1), ("b", 0.3))}
    >>> [row.group for row in forest_rows(made)]
    ['b', 'a']
    """
    if isinstance(result, Mapping):
        named = [(str(name), estimate, False) for name, estimate in result.items()]
    else:
        named = [(one.label(result.columns), one.estimate, one.test.p_value < alpha) for one in result.ranked]
    rows = []
    for name, e, significant in named[:most]:
        low, high = (e.value, e.value) if e.interval is None else (e.interval.low, e.interval.high)
        rows.append(ForestRow(name, e.n, e.value, low, high, significant))
    return sorted(rows, key=lambda row: -row.value)


def _divided(task: Predictions, by: Any, *, cross: bool) -> tuple[Predictions, list[Grouping]]:
    """The predictions without clusters, and the groupings of their rows."""
    if by is None and task.group is None:
        message = "by_group needs by=... (the group of each row), or predictions with a group."
        raise InvalidPredictions(message)
    if by is None:
        columns = groupings(task.group, length=len(task))
        task = task.take(np.arange(len(task)))
        task.group = None
        return task, columns
    if task.group is not None:
        message = (
            "The test per group needs independent rows, but within the groups of `by` these have clusters (group)."
        )
        raise InvalidPredictions(message)
    return task, groupings(by, length=len(task), cross=cross, check=task.require_same_rows)


def _tests(task: Predictions, columns: list[Grouping], test: TestMethod | None) -> list[GroupTests]:
    if isinstance(task, Binary) and (test is None or isinstance(test, MultiScale)):
        options = {} if test is None else {"draws": test.draws, "seed": test.seed}
        return group_tests(task, columns, **options)
    return one_by_one(task, columns, test)


def _words(test: TestMethod | None, task: Predictions, size: int) -> str:
    default = "multi-scale and likelihood ratio tests" if isinstance(task, Binary) else "default test"
    return f"{default if test is None else repr(test)}, adjusted over {size} groups"


def _most_evident(tests: list[GroupTests], number: int) -> list[NDArray[np.bool_]]:
    """For each column, which groups are among those with the most evidence."""
    adjusted, alone = (np.concatenate([getattr(one, name) for one in tests]) for name in ("adjusted", "p_value"))
    chosen = np.zeros(len(alone), dtype=bool)
    chosen[np.lexsort((alone, adjusted))[:number]] = True
    return np.split(chosen, np.cumsum([len(one.adjusted) for one in tests])[:-1])


def _balance(data: Predictions) -> dict[str, Any]:
    """Events, mean prediction and mean outcome of a group; of the predicted class, for several classes."""
    if isinstance(data, Multiclass):
        data = data.top_label()
    if not isinstance(data, Binary):
        return {}
    share = np.full(len(data), 1 / len(data)) if data.weight is None else data.weight / data.weight.sum()
    p = data.y_prob.astype(np.float64)
    predicted, observed = float(share @ p), float(share @ data.y_true)
    clear = abs(predicted - observed) > _CLEAR * float(np.sqrt(share**2 @ (p * (1 - p))))
    return {
        "events": int(data.y_true.sum()),
        "predicted": predicted,
        "observed": observed,
        "direction": ("too high" if predicted > observed else "too low") if clear else "",
    }


def _shrunk(results: list[GroupResult], level: float) -> list[GroupResult]:
    from scipy.special import ndtri

    intervals = [result.estimate.interval for result in results]
    values = np.array([result.estimate.value for result in results])
    width = np.array([0.0 if one is None else one.high - one.low for one in intervals])
    error = width / (2 * float(ndtri((1 + level) / 2)))
    weight = 1 / np.maximum(error**2, 1e-18)
    mean = float(weight @ values / weight.sum())
    excess = float(weight @ (values - mean) ** 2) - (len(values) - 1)
    between = max(0.0, excess / float(weight.sum() - (weight**2).sum() / weight.sum())) if len(values) > 1 else 0.0
    kept = between / (between + error**2) if between > 0 else np.zeros(len(values))
    shrunk = mean + kept * (values - mean)
    return [
        replace(result, estimate=_with_detail(result.estimate, "shrunk", float(value)))
        for result, value in zip(results, shrunk, strict=True)
    ]


def _with_detail(e: Estimate, name: str, value: float) -> Estimate:
    return Estimate(e.value, **{**e._fields(), "details": {**e.details, name: value}})
