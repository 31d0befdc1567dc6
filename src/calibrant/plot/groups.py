"""One interval per group: the forest plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.inference.groups import ByGroup
from calibrant.plot.canvas import BLUE, GREY, axes
from calibrant.results.estimate import Estimate, Significance


@dataclass(frozen=True)
class ForestRow:
    """One line of the plot; `low` and `high` are the estimate itself where it has no interval."""

    group: str
    n: int
    value: float
    low: float
    high: float
    stands_out: bool


def forest_rows(result: ByGroup | Mapping[Any, Estimate], *, level: float = 0.05) -> list[ForestRow]:
    """The data of `forest`, worst group first. A group stands out where its test falls below `level`.

    Examples
    --------
    >>> made = {name: Estimate(e, name="ECE", method="", n=9) for name, e in (("a", 0.1), ("b", 0.3))}
    >>> [row.group for row in forest_rows(made)]
    ['b', 'a']
    """
    estimates: Mapping[Any, Estimate] = result if isinstance(result, Mapping) else result.estimates
    tests: Mapping[Any, Significance] = {} if isinstance(result, Mapping) else result.tests
    rows = []
    for name, e in estimates.items():
        low, high = (e.value, e.value) if e.interval is None else (e.interval.low, e.interval.high)
        rows.append(ForestRow(str(name), e.n, e.value, low, high, name in tests and tests[name].p_value < level))
    return sorted(rows, key=lambda row: -row.value)


def forest(result: ByGroup | Mapping[Any, Estimate], *, ax: Any = None, level: float = 0.05) -> Any:
    """The estimate of each group with its interval, worst on top; squares are filled where the group stands out.

    The figure's data are `forest_rows`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> made = {name: Estimate(e, name="ECE", method="", n=9) for name, e in (("a", 0.1), ("b", 0.3))}
    >>> [label.get_text() for label in forest(made, ax=Figure().subplots()).get_yticklabels()]
    ['b (n = 9)', 'a (n = 9)']
    """
    ax = axes(ax)
    rows = forest_rows(result, level=level)
    for place, row in enumerate(rows):
        ax.plot([row.low, row.high], [place, place], color=BLUE, linewidth=1.5, zorder=1)
        face = BLUE if row.stands_out else "white"
        ax.plot([row.value], [place], marker="s", color=BLUE, markerfacecolor=face, linestyle="", zorder=2)
    ax.axvline(0.0, color=GREY, linestyle="--", linewidth=1)
    ax.set_yticks(range(len(rows)), [f"{row.group} (n = {row.n:,})" for row in rows])
    ax.invert_yaxis()
    estimates = result if isinstance(result, Mapping) else result.estimates
    ax.set_xlabel(next((estimate.name for estimate in estimates.values()), ""))
    return ax
