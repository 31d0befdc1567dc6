"""The results of all groups: sorted by evidence, printed and shown as a table."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

from calibrant.inference.residual_noise import LEAST_CLUSTERS
from calibrant.results.estimate import Estimate, Significance, printable

#: Groups shown when the result is printed.
_SHOWN = 20

#: The significance at which a printed group counts as miscalibrated.
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
        Number of positive outcomes; for several classes, of right predictions. None for forecasts of a number.
    predicted, observed : float or None
        Mean prediction and mean outcome.
    direction : {"too high", "too low", ""}
        Of the mean prediction; empty where its gap is within two standard errors of zero. A group can be significantly
        miscalibrated without a direction.
    shrunk_gap : float or None
        Of a search: `gap` drawn towards the mean of the groups of its column or cross, by as much as groups of its size
        look extreme by chance.
    found : float or None
        Of a confirmed group: the adjusted p-value on the half of the rows on which it was found.

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
    direction: Literal["too high", "too low", ""] = ""
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
        interval, shrunk = self.estimate.interval, self.estimate.details.get("shrunk")
        return {
            "column": self.column,
            "group": _plain(self.group),
            "n": self.n,
            "events": self.events,
            "predicted": self.predicted,
            "observed": self.observed,
            "gap": self.gap,
            "direction": self.direction,
            "estimate": self.estimate.value,
            "low": None if interval is None else interval.low,
            "high": None if interval is None else interval.high,
            "p_value": self.p_value if self.tested else None,
            "adjusted": self.adjusted if self.tested else None,
            **({} if shrunk is None else {"shrunk": shrunk}),
            **({} if self.shrunk_gap is None else {"shrunk_gap": self.shrunk_gap}),
            **({} if self.found is None else {"found": None if math.isnan(self.found) else self.found}),
        }


@dataclass(frozen=True)
class Search:
    """What was tested, of which `ByGroup` shows the groups with the most evidence.

    Attributes
    ----------
    columns : tuple of str
        The columns and crosses of columns.
    groups, significant : int
        How many groups were tested, and how many of them are significantly miscalibrated at 5%.
    confirmed : bool
        Whether groups were found on one half of the rows and tested on the other.
    untested : int
        How many groups more there are that belong to too few clusters to be tested.

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

    @classmethod
    def of(cls, columns: Sequence[Any], tested: Sequence[Any], *, confirmed: bool) -> Search:
        """From groupings and tested groups."""
        flagged = sum(one.adjusted < _ALPHA for one in tested)
        untested = sum(math.isnan(one.adjusted) for one in tested)
        return cls(tuple(one.column for one in columns), len(tested) - untested, flagged, confirmed, untested)


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

    @cached_property
    def ranked(self) -> tuple[GroupResult, ...]:
        """The groups with the most evidence of miscalibration first; of equal evidence, the largest estimate.

        Groups that could not be tested are last.
        """
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
        """The smallest adjusted p-value: is any group miscalibrated? Its method names the group.

        NaN where no group has enough clusters to be tested.
        """
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
        return text(self)

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


def text(result: ByGroup) -> str:
    """The table of the groups with the most evidence."""
    header, rows = _table(result)
    wide = [max(len(line[k]) for line in [header, *rows]) for k in range(len(header))]
    left = {header.index(name) for name in ("group", "direction") if name in header}
    lines = [
        "  ".join(
            cell.ljust(w) if k in left else cell.rjust(w) for k, (cell, w) in enumerate(zip(line, wide, strict=True))
        )
        for line in [header, *rows]
    ]
    return "\n".join([summary(result), "", *(line.rstrip() for line in lines), "", notes(result)])


def _table(result: ByGroup) -> tuple[list[str], list[list[str]]]:
    """The header, and the cells of the groups that are shown."""
    shown = result.ranked[:_SHOWN]
    first, counted = shown[0].estimate, shown[0].predicted is not None
    level = next((row.estimate.interval.level for row in shown if row.estimate.interval is not None), 0.95)
    middle = ["events", "predicted", "observed", "direction"] if counted else []
    middle += ["shrunk gap"] if shown[0].shrunk_gap is not None else []
    header = ["group", "n", *middle, first.name, f"{level:.0%} interval", "adjusted p"]
    return header, [_cells(row, result.columns, counted=counted) for row in shown]


def _cells(row: GroupResult, columns: Sequence[str], *, counted: bool) -> list[str]:
    interval = row.estimate.interval
    between = "" if interval is None else f"{interval.low:.4f} to {interval.high:.4f}"
    middle = [f"{row.events:,}", f"{row.predicted:.4g}", f"{row.observed:.4g}", row.direction or ""] if counted else []
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
    return f"{result._tested:,} groups{of}{how} {some} significantly miscalibrated {rule}."


def notes(result: ByGroup) -> str:
    """What the intervals are for, and what is not shown."""
    search = result.search
    chosen = search is not None and not search.confirmed
    said = ["Intervals are for each group by itself" + (", not for groups chosen by these rows." if chosen else ".")]
    if len(result) > _SHOWN or (search is not None and search.groups > len(result)):
        said.append(f"Shown: the {min(_SHOWN, len(result))} groups with the most evidence.")
    if result._untested:
        few = f"{result._untested:,} group{'s' if result._untested > 1 else ''} of fewer than {LEAST_CLUSTERS} clusters"
        said.append(f"Not tested, and without an interval: {few}.")
    return " ".join(said)


def _plain(group: Hashable) -> Any:
    if isinstance(group, tuple):
        return [_plain(part) for part in group]
    return group if isinstance(group, str | int | float | bool) else str(group)
