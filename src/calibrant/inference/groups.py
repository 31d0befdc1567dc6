"""`by_group`: one result per group, with its direction, a test adjusted for all groups, and shrunken estimates."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from calibrant.data import validation
from calibrant.data.forecasts import Quantiles, Samples
from calibrant.data.judged import Judged
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Multiclass, Predictions, binary
from calibrant.data.validation import fail
from calibrant.inference.calibration_tests import ClusteredRows, TestMethod
from calibrant.inference.forecast_intervals import ALL_GROUPS, Direction
from calibrant.inference.group_tests import ScoreCells, confirmed, group_evidence, strongest
from calibrant.inference.groupings import GroupEvidence, Grouping, groupings
from calibrant.inference.intervals import Method, as_estimate, interval
from calibrant.inference.judged import GROUP_TEST, judged_balance, judged_groups
from calibrant.inference.multiplicity import shrunk
from calibrant.inference.sample import LEAST_CLUSTERS
from calibrant.numerics.rows import effective_n
from calibrant.results.estimate import Estimate, Significance, printable, text_table

#: Number of standard errors beyond which a mean gap has a direction: about 95 %.
#: Test: tests/inference/test_groups.py::test_a_direction_needs_two_standard_errors.
_CLEAR = 2.0

#: Groups shown when the result is printed.
#: Test: tests/inference/test_groups_results.py::test_many_groups_print_the_first_and_say_so.
_SHOWN = 20

#: The significance at which a printed group counts as miscalibrated.
#: Test: tests/inference/test_groups_results.py::test_groups_count_as_miscalibrated_at_five_percent.
_ALPHA = 0.05


@dataclass(frozen=True)
class GroupResult:
    """What was found in one group.

    Attributes
    ----------
    column, group
        The name of the column ("" if it has none), and of the group in it; a tuple where columns are crossed.
    estimate : Estimate
        With its interval, if it has one.
    test : Significance
        Its p-value allows for all groups. NaN where clustered rows belong to too few clusters to be tested.
    p_value : float
        For this group by itself.
    events : int or None
        Number of positive outcomes; for multiclass data, of right predictions. None for forecasts of a number.
    predicted, observed : float or None
        Mean prediction and mean outcome.
    direction : {"too high", "too low", "too narrow", "too wide", ""}
        Of the mean prediction; empty where its gap is within two standard errors of zero. A group can be significantly
        miscalibrated without a direction. For significant groups of quantiles or ensembles, the most evident error.
    shrunk_gap : float or None
        In a search: `gap` shrunk towards the mean of the groups of its column or cross, by as much as groups of its
        size look extreme by chance.
    found : float or None
        For a confirmed group: the adjusted p-value on the half of the rows on which it was found.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.by_group(cal.ece, [0, 0, 1, 0] * 50, [0.9] * 200, by=[1] * 200).rows[0]
    >>> found.group, found.n, found.events, found.direction, round(found.gap, 2)
    (1, 200, 50, 'too high', 0.65)
    """

    column: str
    group: Hashable
    estimate: Estimate
    test: Significance
    p_value: float
    events: int | None = None
    predicted: float | None = None
    observed: float | None = None
    direction: Direction = ""
    shrunk_gap: float | None = None
    found: float | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.test.n

    @property
    def adjusted(self) -> float:
        """The p-value that allows for all groups."""
        return self.test.p_value

    @property
    def tested(self) -> bool:
        """Whether there is a p-value; not where clustered rows belong to too few clusters."""
        return not math.isnan(self.test.p_value)

    @property
    def gap(self) -> float | None:
        """Mean prediction less mean outcome: positive where predictions are too high."""
        return None if self.predicted is None or self.observed is None else self.predicted - self.observed

    def label(self, columns: Sequence[str] = ()) -> str:
        """The name of the group, with its column where there are several; control characters are written out."""
        own = ", ".join(map(str, self.group)) if isinstance(self.group, tuple) else str(self.group)
        return printable(f"{self.column} = {own}" if len(columns) > 1 else own)

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON or as the row of a frame."""
        low, high = (None, None) if self.estimate.interval is None else self.estimate.interval
        shrunk, tested = self.estimate.details.get("shrunk"), ("p_value", "adjusted")
        return {
            "column": self.column,
            "group": _plain(self.group),
            **{name: getattr(self, name) for name in ("n", "events", "predicted", "observed", "gap", "direction")},
            "estimate": self.estimate.value,
            "low": low,
            "high": high,
            **{name: getattr(self, name) if self.tested else None for name in tested},
            **({} if shrunk is None else {"shrunk": shrunk}),
            **({} if self.shrunk_gap is None else {"shrunk_gap": self.shrunk_gap}),
            **({} if self.found is None else {"found": None if math.isnan(self.found) else self.found}),
        }


@dataclass(frozen=True)
class Search:
    """What was tested; `ByGroup` shows the groups with the most evidence.

    Attributes
    ----------
    columns : tuple of str
        The columns and crosses of columns.
    groups, significant : int
        How many groups were tested, and how many of them are significantly miscalibrated at 5%.
    confirmed : bool
        Whether groups were found on one half of the rows and tested on the other.
    untested : int
        How many further groups have too few clusters to be tested.

    Examples
    --------
    >>> import calibrant as cal
    >>> by = {"place": ["DK", "SE"] * 50, "device": ["web"] * 60 + ["app"] * 40}
    >>> cal.by_group(cal.ece, [0, 1] * 50, [0.3, 0.6] * 50, by=by, depth=2).search.groups  # 2 + 2 + 4
    8
    """

    columns: tuple[str, ...]
    groups: int
    significant: int
    confirmed: bool
    untested: int = 0


@dataclass(frozen=True, eq=False)
class ByGroup:
    """The results of all groups; see `by_group`. Prints as a table, most evidence first.

    Attributes
    ----------
    rows : tuple of GroupResult
        In the order of the columns and of the names of the groups.
    n : int
        Number of rows of the data, of the second half where groups were confirmed.
    search : Search or None
        How many groups were tested, where `rows` are those with the most evidence.
    trend : Significance or None
        For quantiles and ensembles: whether bias or spread rises or falls over numeric groups, such as horizons; its
        p-value allows for all groups too.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(600)
    >>> found = cal.by_group(cal.ece, rng.random(600) < p, p, by=np.repeat(["DK", "SE"], 300))
    >>> len(found), sorted(found.estimates), found["SE"].n
    (2, ['DK', 'SE'], 300)
    >>> sorted(found.to_dict()["groups"][0])[:4]
    ['adjusted', 'column', 'direction', 'estimate']
    """

    rows: tuple[GroupResult, ...]
    n: int
    search: Search | None = None
    trend: Significance | None = None

    @cached_property
    def ranked(self) -> tuple[GroupResult, ...]:
        """Most evidence of miscalibration first; of equal evidence, the largest estimate; not tested last."""
        tested = sorted(
            (row for row in self.rows if row.tested), key=lambda row: (row.adjusted, row.p_value, -row.estimate.value)
        )
        return (*tested, *(row for row in self.rows if not row.tested))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, and of their crosses."""
        return self.search.columns if self.search is not None else tuple(dict.fromkeys(row.column for row in self.rows))

    @cached_property
    def estimates(self) -> Mapping[Hashable, Estimate]:
        """The estimate of each group; with several columns, the keys are (column, group)."""
        return {self._key(row): row.estimate for row in self.rows}

    @cached_property
    def tests(self) -> Mapping[Hashable, Significance]:
        """The test of each group, with p-values adjusted for the number of groups; keys as in `estimates`."""
        return {self._key(row): row.test for row in self.rows}

    @property
    def worst(self) -> Significance:
        """The smallest adjusted p-value, whose method names the group; NaN where no group could be tested."""
        first = self.ranked[0]
        words = f"worst of {self._tested} groups: {first.label(self.columns)}, {first.test.method}"
        words = words if first.tested else "no group has enough clusters to be tested"
        return replace(first.test, method=words, n=self.n, null="every group calibrated")

    def __getitem__(self, group: Hashable) -> Estimate:
        return self.estimates[group]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<ByGroup of {len(self)} groups, worst {self.worst!r}>"

    def __str__(self) -> str:
        shown = self.ranked[:_SHOWN]
        first, counted = shown[0].estimate, shown[0].predicted is not None
        level = next((row.estimate.interval.level for row in shown if row.estimate.interval is not None), 0.95)
        middle = ["events", "predicted", "observed", "direction"] if counted else []
        middle += ["direction"] if not counted and any(row.direction for row in shown) else []
        middle += ["shrunk gap"] if shown[0].shrunk_gap is not None else []
        header = ["group", "n", *middle, first.name, f"{level:.0%} interval", "adjusted p"]
        lines = [header, *(_cells(row, self.columns, middle) for row in shown)]
        left = {k for k, name in enumerate(header) if name in ("group", "direction")}
        return "\n".join([summary(self), "", *text_table(lines, left=left), "", notes(self)])

    def _repr_html_(self) -> str:
        from calibrant.reporting.notebook import groups_html

        return groups_html(self, summary(self), notes(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON; the groups, most evidence first, are a list of flat rows."""
        return {
            "estimator": self.rows[0].estimate.name,
            "n": self.n,
            "search": None if self.search is None else asdict(self.search),
            "groups": [row.to_dict() for row in self.ranked],
            "worst": self.worst.to_dict(),
            **({} if self.trend is None else {"trend": self.trend.to_dict()}),
        }

    @property
    def _tested(self) -> int:
        """How many groups were tested, also those that are not shown."""
        return sum(row.tested for row in self.rows) if self.search is None else self.search.groups

    @property
    def _untested(self) -> int:
        return sum(not row.tested for row in self.rows) if self.search is None else self.search.untested

    def _key(self, row: GroupResult) -> Hashable:
        return row.group if len(self.columns) == 1 else (row.column, row.group)


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
    r"""An estimate, an interval and a test for each group, with p-values adjusted for the number of groups.

    For a calibrated model, the probability that the default test of binary predictions (see Notes) flags any group is
    at most the significance level, whether there are two groups or thousands. With `shrink`, estimates are shrunk to
    their mean m by :math:`m + (e - m)\,\tau^2 / (\tau^2 + s^2)`, where s is the standard error implied by the interval
    and τ² the variance between groups beyond noise (DerSimonian and Laird): small groups look extreme mostly by chance.
    The value stays unshrunk; the shrunken one is in `details`.

    Parameters
    ----------
    estimator : callable
    data : Predictions, or y_true
        With plain arrays, `y_prob` comes next. Rows must be independent, or have a `group` that says which depend on
        each other: outcomes only, see Notes.
    by : array-like, or a mapping, list or frame of several, optional
        The groups to compare; by default `data.group` (which then no longer marks clusters), or the columns `by` of
        `Judged` data. Each column is a separate grouping, and p-values are adjusted for all of them. Missing values
        form the group "(missing)".
    depth : int
        Also test the crosses of up to this many columns: with 2, every combination of the groups of every two columns.
        An error that no column shows can be large in each of their combinations. Of all groups, the `intervals` with
        the most evidence are returned, with `shrunk_gap`; `ByGroup.search` says how many were tested.
    quantiles : int, optional
        Divide columns of numbers with more distinct values than this into this many ranges with about the same number
        of rows. Pass numeric codes as text.
    confirm : bool
        Find groups on a random half of the rows, and test the `intervals` groups with the most evidence on the other
        half; clusters stay whole. All results are from the other half, so intervals and p-values are as valid as those
        of groups named in advance.
    level, method
        As for `interval`.
    test : optional
        As for `calibration_test`, for each group, with Holm's adjustment; by default the test of the Notes.
    intervals : int
        The number of groups that get an interval: those with the most evidence. Each holds at `level` for its group
        alone; for groups selected as the worst, more than 1 - level may miss.
    shrink : bool
        Shrink the estimates; computes the intervals of all groups.

    Notes
    -----
    Two procedures share the significance, 9 to 1. The first draws outcomes from the predictions, computes the
    statistics of `MultiScale` for every group, and ranks the smallest combined tail probability among those of the
    draws (Westfall and Young, step-down). Its adjusted p-values are at least 1 / (draws + 1), with 199 to 999 draws.
    The second is Holm's adjustment of reciprocal likelihood ratios, which is conservative but has no such limit.

    For more than four columns and crosses, and to confirm, the first is Holm's adjustment, over all groups of all
    columns, of the tail probability of the number of events in each group; errors that cancel in the mean of a group
    are left to the second. Among thousands of crosses, those with few rows are tested too, but can hardly become
    significant.

    Where rows have clusters, each group is tested by `ClusteredScore` (for multiclass data, whether the predicted class
    is right), with Holm's adjustment over all groups. Groups and clusters may cross: a patient can have rows in several
    groups. Groups of fewer than 8 clusters are not tested and have no interval; their p-values are NaN.

    Quantiles and ensembles of independent rows have one test for all groups, see `calibrant.inference.CoverageByGroup`:
    of bias and spread in each group and of their trend over groups that are numbers (`ByGroup.trend`). With `coverage`
    as the estimator, the limits hold for all groups simultaneously, and exclude the nominal coverage only where the
    adjusted p-value is below 1 - level.

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
        fail("Groups of positive-unlabeled rows may differ in their prior: measure each with its own prior.")
    for name, number, least in (("intervals", intervals, 0), ("depth", depth, 1), ("quantiles", quantiles, 2)):
        if number is not None:
            validation.whole(name, number, minimum=least)
    task, columns = _divided(task, by, depth=depth, quantiles=quantiles)
    if isinstance(task, Judged):
        if confirm or depth > 1 or test is not None:
            fail("Groups of Judged data are tested by their mean: leave out confirm, depth and test.", TypeError)
        tested = judged_groups(task, columns)
    elif confirm:
        task, tested = confirmed(task, columns, test, max(intervals, 1))
    else:
        tested = group_evidence(task, columns, test, nominal=_nominal(estimator, task))
    number, search = sum(not np.isnan(one.p_value) for one in tested), None
    words = f"{tested[0].method}, adjusted over {number} groups"
    if depth > 1 or confirm:
        flagged, names = sum(one.adjusted < _ALPHA for one in tested), tuple(one.column for one in columns)
        search = Search(names, number, flagged, confirm, len(tested) - number)
    if search is not None and not confirm:
        tested = strongest(tested, max(intervals, 1))
    chosen = {id(one) for one in strongest(tested, len(tested) if shrink else intervals)}
    results = _results(estimator, task, tested, chosen, level, method, words, shrink_gaps=search is not None)
    found = tuple(_shrunk(list(results), level) if shrink else results)
    cells = tested[0].of_cells if len(columns) == 1 else None
    trend = None if cells is None else cells.trend_test(len(task))
    return ByGroup(found, n=len(task), search=search, trend=trend)


def _nominal(estimator: Callable[[Any], float], data: Predictions) -> float | None:
    """The nominal coverage that an estimator measures, if it measures one of quantiles or of an ensemble."""
    if not isinstance(data, Quantiles | Samples):
        return None
    found = as_estimate(estimator, data)
    return found.details["nominal"] if found.target is not None and found.target.quantity == "coverage" else None


def _divided(task: Predictions, by: Any, *, depth: int, quantiles: int | None) -> tuple[Predictions, list[Grouping]]:
    """The predictions, without clusters where these are the groups, and the groupings of their rows."""
    if isinstance(task, Judged) and by is None and task.by_names:
        own = zip(task.by_names.items(), task.by_codes.T, strict=True)
        return task, [Grouping(name, names, (codes,)) for (name, names), codes in own]
    if by is not None:
        return task, groupings(by, length=len(task), depth=depth, quantiles=quantiles, check=task.require_same_rows)
    if task.group is None:
        fail("by_group needs by=... (the group of each row), or predictions with a group.")
    columns = groupings(task.group, length=len(task))
    task = task.take(np.arange(len(task)))
    task.group = None
    return task, columns


def _results(
    estimator: Callable[[Any], float],
    data: Predictions,
    tested: Sequence[GroupEvidence],
    with_interval: set[int],
    level: float,
    method: Method | None,
    words: str,
    *,
    shrink_gaps: bool,
) -> Iterator[GroupResult]:
    """What was found in each group; rows of a grouping are looked up once."""
    scores: ScoreCells | ClusteredRows | None = None
    if shrink_gaps and isinstance(data, Binary):
        scores = ScoreCells.of(data) if data.group is None else ClusteredRows.of(data)
    for grouping, some in groupby(tested, key=lambda one: one.grouping):
        rows = grouping.rows()
        cells = None if scores is None else scores.sums(grouping)
        gaps = None if cells is None else shrunk(cells.gap, cells.gap_error)
        for one in some:
            part = data.take(rows[one.number])
            part = part.sorted_once() if isinstance(part, Binary) else part
            if one.of_cells is not None and one.of_cells.with_coverage and method is None:
                size = effective_n(part.weight, len(part))
                estimate = one.of_cells.with_limits(as_estimate(estimator, part), size, level)
            elif id(one) in with_interval and not np.isnan(one.p_value):
                estimate = interval(estimator, part, level=level, method=method)
            else:
                estimate = as_estimate(estimator, part)
            test = Significance(one.statistic, one.adjusted, method=words, n=len(part))
            more: dict[str, Any] = {"shrunk_gap": None if gaps is None else float(gaps[one.number]), "found": one.found}
            name = grouping.names[one.number]
            told = balance(part)
            if one.of_cells is not None and one.adjusted < _ALPHA:
                told = {"direction": one.of_cells.direction(one.number)}
            yield GroupResult(grouping.column, name, estimate, test, one.p_value, **told, **more)


def _shrunk(results: list[GroupResult], level: float) -> list[GroupResult]:
    """With shrunken estimates where there is an interval, which says how sure each is."""
    known = {k: one for k, result in enumerate(results) if (one := result.estimate.interval) is not None}
    if not known:
        return results
    values = np.array([results[k].estimate.value for k in known])
    width = np.array([one.high - one.low for one in known.values()])
    drawn = shrunk(values, width / (2 * float(ndtri((1 + level) / 2))))
    for k, value in zip(known, drawn.tolist(), strict=True):
        e = results[k].estimate
        details = {**e._fields(), "details": {**e.details, "shrunk": value}}
        results[k] = replace(results[k], estimate=Estimate(e.value, **details))
    return results


def balance(data: Predictions) -> dict[str, Any]:
    """Events, mean prediction, mean outcome and direction of a group; of the predicted class, for multiclass data."""
    if isinstance(data, Judged):
        return judged_balance(data)
    if isinstance(data, Multiclass):
        data = data.top_label()
    if not isinstance(data, Binary):
        return {}
    share = np.full(len(data), 1 / len(data)) if data.weight is None else data.weight / data.weight.sum()
    p = data.y_prob.astype(np.float64)
    predicted, observed = float(share @ p), float(share @ data.y_true)
    error = float(np.sqrt(share**2 @ (p * (1 - p))))  # if the group is calibrated
    if data.group is not None:
        error = float(ClusteredRows.of(data).sums().gap_error[0])
    clear = abs(predicted - observed) > _CLEAR * error
    return {
        "events": int(data.y_true.sum()),
        "predicted": predicted,
        "observed": observed,
        "direction": ("too high" if predicted > observed else "too low") if clear else "",
    }


def _cells(row: GroupResult, columns: Sequence[str], shown: Sequence[str]) -> list[str]:
    interval = row.estimate.interval
    between = "" if interval is None else f"{interval.low:.4f} to {interval.high:.4f}"
    counted = "events" in shown
    middle = [f"{row.events:,}", f"{row.predicted:.4g}", f"{row.observed:.4g}"] if counted else []
    middle += [row.direction] if "direction" in shown else []
    middle += [] if row.shrunk_gap is None else [f"{row.shrunk_gap:+.4f}"]
    adjusted = f"{row.adjusted:.3g}" if row.tested else "not tested"
    return [row.label(columns), f"{row.n:,}", *middle, f"{row.estimate.value:.4f}", between, adjusted]


def summary(result: ByGroup) -> str:
    """How many groups were tested, and how many are flagged."""
    search = result.search
    flagged = sum(row.adjusted < _ALPHA for row in result.rows) if search is None else search.significant
    some = f"{flagged} of them" if flagged else "none of them"
    of = f" of {len(result.columns)} columns" if len(result.columns) > 1 else ""
    of = of.replace("columns", "columns and crosses") if search is not None else of
    rule = f"({_ALPHA:.0%}, adjusted for the number of groups)"
    how = ", found on half of the rows and tested on the others," if search is not None and search.confirmed else ","
    noun = "group" if result._tested == 1 else "groups"
    return f"{result._tested:,} {noun}{of}{how} {some} significantly miscalibrated {rule}."


def notes(result: ByGroup) -> str:
    """What the intervals are for, and what is not shown."""
    search = result.search
    chosen, first = search is not None and not search.confirmed, result.rows[0].estimate.interval
    said = ["Intervals are for each group by itself" + (", not for groups chosen by these rows." if chosen else ".")]
    if first is not None and first.assumption == ALL_GROUPS:
        said = ["Intervals are for all groups together."]
    if result.trend is not None and result.trend.p_value < _ALPHA:
        words = result.trend.details["direction"]
        said.append(f"Later groups are {words} relative to earlier ones (p = {result.trend.p_value:.2g}).")
    if len(result) > _SHOWN or (search is not None and search.groups > len(result)):
        said.append(f"Shown: the {min(_SHOWN, len(result))} groups with the most evidence.")
    if result._untested:
        why = f"of fewer than {LEAST_CLUSTERS} clusters"
        why = "without a gold label" if any(row.test.method.startswith(GROUP_TEST) for row in result.rows) else why
        few = f"{result._untested:,} group{'s' if result._untested > 1 else ''} {why}"
        said.append(f"Not tested, and without an interval: {few}.")
    return " ".join(said)


def _plain(group: Hashable) -> Any:
    if isinstance(group, tuple):
        return [_plain(part) for part in group]
    return group if isinstance(group, str | int | float | bool) else str(group)


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

    A group is significant where its adjusted p-value is below `alpha`. With `most`, at most this many groups: those
    with the most evidence.

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
        low, high = (e.value, e.value) if e.interval is None else e.interval
        rows.append(ForestRow(name, e.n, e.value, low, high, significant))
    return sorted(rows, key=lambda row: -row.value)
