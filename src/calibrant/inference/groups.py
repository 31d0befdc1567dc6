"""One result per group: its estimate, shrunken towards the mean of all groups, its direction and its adjusted test.

Small groups look extreme mostly by chance; shrinkage allows for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Multiclass, Predictions, binary
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.calibration_tests import TestMethod
from calibrant.inference.clustered_scores import ClusteredRows
from calibrant.inference.group_results import ByGroup, GroupResult, Search
from calibrant.inference.group_tests import GroupEvidence, ScoreCells, confirmed, group_evidence, strongest, words
from calibrant.inference.groupings import Grouping, groupings
from calibrant.inference.intervals import Method, as_estimate, interval
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate, Significance

#: Number of standard errors beyond which a mean gap has a direction.
_CLEAR = 2.0


def balance(data: Predictions) -> dict[str, Any]:
    """Events, mean prediction and mean outcome of a group; of the predicted class, for several classes.

    >>> import calibrant as cal
    >>> balance(cal.Binary([0, 0, 1, 0] * 50, [0.9] * 200))["direction"]
    'too high'
    """
    if isinstance(data, Multiclass):
        data = data.top_label()
    if not isinstance(data, Binary):
        return {}
    share = np.full(len(data), 1 / len(data)) if data.weight is None else data.weight / data.weight.sum()
    p = data.y_prob.astype(np.float64)
    predicted, observed = float(share @ p), float(share @ data.y_true)
    clear = abs(predicted - observed) > _CLEAR * _gap_error(data, p, share)
    return {
        "events": int(data.y_true.sum()),
        "predicted": predicted,
        "observed": observed,
        "direction": ("too high" if predicted > observed else "too low") if clear else "",
    }


def _gap_error(data: Binary, p: Floats, share: Floats) -> float:
    """The standard error of the mean gap: if the group is calibrated, or from its clusters."""
    if data.group is not None:
        return float(ClusteredRows.of(data).sums().gap_error[0])
    return float(np.sqrt(share**2 @ (p * (1 - p))))


def shrunk(values: Floats, error: Floats) -> Floats:
    r"""Empirical Bayes estimates of groups with these standard errors.

    .. math:: m + (e_g - m) \frac{\tau^2}{\tau^2 + s_g^2}, \qquad
              \tau^2 = \max\Bigl(0,
              \frac{\sum_g w_g (e_g - m)^2 - (G - 1)}{\sum_g w_g - \sum_g w_g^2 / \sum_g w_g}\Bigr), \quad
              w_g = s_g^{-2}, \quad m = \frac{\sum_g w_g e_g}{\sum_g w_g}

    References
    ----------
    DerSimonian, Laird (1986), Meta-analysis in clinical trials; Efron, Morris (1975), Data Analysis Using Stein's
    Estimator and its Generalizations.

    Examples
    --------
    >>> shrunk(np.array([0.0, 0.1, 0.5]), np.array([0.01, 0.01, 0.5])).round(2)
    array([0.  , 0.1 , 0.06])
    """
    weight = 1 / np.maximum(error**2, 1e-18)
    mean = float(weight @ values / weight.sum())
    excess = float(weight @ (values - mean) ** 2) - (len(values) - 1)
    between = max(0.0, excess / float(weight.sum() - (weight**2).sum() / weight.sum())) if len(values) > 1 else 0.0
    kept = between / (between + error**2) if between > 0 else np.zeros(len(values))
    return np.asarray(mean + kept * (values - mean))


def by_group(
    estimator: Callable[[Any], float],
    data: Predictions | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    *,
    by: Any = None,
    depth: int = 1,
    quantiles: int | None = None,
    confirm: bool = False,
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
        With plain arrays, `y_prob` comes next. Rows must be independent, or have a `group` that says which depend on
        each other: outcomes only, see Notes.
    by : array-like, or a mapping, list or frame of several, optional
        The groups to compare; by default `data.group` (which then no longer marks clusters). Several columns are a
        grouping each, and p-values allow for all of them. Missing values are a group called "(missing)".
    depth : int
        Also test the crosses of up to so many columns: with 2, every combination of the groups of every two columns. An
        error that no column shows can be large in each of their combinations. Of all groups, the `intervals` with the
        most evidence are returned, with `shrunk_gap`; `ByGroup.search` says how many were tested.
    quantiles : int, optional
        Divide columns of numbers with more distinct values into so many ranges of about equally many rows. Numbers that
        are codes should be texts.
    confirm : bool
        Find groups on a random half of the rows, and test the `intervals` groups with the most evidence on the other;
        clusters stay whole.
        Everything returned is of that other half, which had no part in the choice: intervals, and p-values that allow
        for these groups only, are as good as those of groups named in advance.
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

    For more than four columns and crosses, and to confirm, the first is Holm's adjustment, over all groups of all
    columns, of the tail probability of the number of events in each group; errors that cancel in the mean of a group
    are left to the second. Of thousands of crosses those of few rows are tested too, and can hardly be significant.

    Where rows have clusters, each group is tested by `ClusteredScore` (of several classes, whether the predicted one is
    right), with Holm's adjustment over all groups. Groups and clusters may cross: a patient can have rows in several
    groups. Groups of fewer than 8 clusters are not tested and have no interval; their p-values are NaN.

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
    for name, number, least in (("intervals", intervals, 0), ("depth", depth, 1), ("quantiles", quantiles, 2)):
        if number is not None:
            validation.whole(name, number, minimum=least)
    task, columns = _divided(task, by, depth=depth, quantiles=quantiles)
    if confirm:
        task, tested = confirmed(task, columns, test, max(intervals, 1))
    else:
        tested = group_evidence(task, columns, test)
    search = None if depth == 1 and not confirm else Search.of(columns, tested, confirmed=confirm)
    adjusted_over = f"adjusted over {sum(not np.isnan(one.p_value) for one in tested)} groups"
    if search is not None and not confirm:
        tested = strongest(tested, max(intervals, 1))
    results = _results(
        estimator,
        task,
        tested,
        {id(one) for one in strongest(tested, len(tested) if shrink else intervals)},
        level=level,
        method=method,
        words=f"{words(task, columns, test, simulated=not confirm)}, {adjusted_over}",
        shrink_gaps=search is not None,
    )
    return ByGroup(tuple(_shrunk(list(results), level) if shrink else results), n=len(task), search=search)


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


def _divided(task: Predictions, by: Any, *, depth: int, quantiles: int | None) -> tuple[Predictions, list[Grouping]]:
    """The predictions, without clusters where these are the groups, and the groupings of their rows."""
    if by is None and task.group is None:
        message = "by_group needs by=... (the group of each row), or predictions with a group."
        raise InvalidPredictions(message)
    if by is None:
        columns = groupings(task.group, length=len(task))
        task = task.take(np.arange(len(task)))
        task.group = None
        return task, columns
    return task, groupings(by, length=len(task), depth=depth, quantiles=quantiles, check=task.require_same_rows)


def _results(
    estimator: Callable[[Any], float],
    data: Predictions,
    tested: Sequence[GroupEvidence],
    with_interval: set[int],
    *,
    level: float,
    method: Method | None,
    words: str,
    shrink_gaps: bool,
) -> Iterator[GroupResult]:
    """What was found in each group; rows of a grouping are looked up once."""
    scores = _sums(data) if shrink_gaps and isinstance(data, Binary) else None
    for grouping, some in groupby(tested, key=lambda one: one.grouping):
        rows = grouping.rows()
        cells = None if scores is None else scores.sums(grouping)
        gaps = None if cells is None else shrunk(cells.gap, cells.gap_error)
        for one in some:
            part = data.take(rows[one.number])
            part = part.sorted_once() if isinstance(part, Binary) else part
            if id(one) in with_interval and not np.isnan(one.p_value):
                estimate = interval(estimator, part, level=level, method=method)
            else:
                estimate = as_estimate(estimator, part)
            yield GroupResult(
                column=grouping.column,
                group=grouping.names[one.number],
                estimate=estimate,
                test=Significance(one.statistic, one.adjusted, method=words, n=len(part)),
                p_value=one.p_value,
                shrunk_gap=None if gaps is None else float(gaps[one.number]),
                found=one.found,
                **balance(part),
            )


def _sums(data: Binary) -> ScoreCells | ClusteredRows:
    return ScoreCells.of(data) if data.group is None else ClusteredRows.of(data)


def _shrunk(results: list[GroupResult], level: float) -> list[GroupResult]:
    """With shrunken estimates where there is an interval, which says how sure each is."""
    from scipy.special import ndtri

    known = {k: one for k, result in enumerate(results) if (one := result.estimate.interval) is not None}
    if not known:
        return results
    values = np.array([results[k].estimate.value for k in known])
    width = np.array([one.high - one.low for one in known.values()])
    drawn = shrunk(values, width / (2 * float(ndtri((1 + level) / 2))))
    for k, value in zip(known, drawn.tolist(), strict=True):
        results[k] = replace(results[k], estimate=_with_detail(results[k].estimate, "shrunk", value))
    return results


def _with_detail(e: Estimate, name: str, value: float) -> Estimate:
    return Estimate(e.value, **{**e._fields(), "details": {**e.details, name: value}})
