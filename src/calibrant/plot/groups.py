"""One interval per group: the forest plot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.inference.group_results import ByGroup
from calibrant.inference.groups import forest_rows
from calibrant.plot.canvas import BLUE, GREY, axes
from calibrant.results.estimate import Estimate


def forest(result: ByGroup | Mapping[Any, Estimate], *, ax: Any = None, alpha: float = 0.05, most: int = 40) -> Any:
    """The estimate of each group with its interval, worst on top; squares are filled where the group stands out.

    Of more than `most` groups those with the most evidence are drawn, and the title says so. The figure's data are
    `calibrant.inference.forest_rows`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> made = {name: Estimate(e, name="ECE", method="", n=9) for name, e in (("a", 0.1), ("b", 0.3))}
    >>> [label.get_text() for label in forest(made, ax=Figure().subplots()).get_yticklabels()]
    ['b (n = 9)', 'a (n = 9)']
    """
    ax = axes(ax)
    rows = forest_rows(result, alpha=alpha, most=most)
    for place, row in enumerate(rows):
        ax.plot([row.low, row.high], [place, place], color=BLUE, linewidth=1.5, zorder=1)
        face = BLUE if row.significant else "white"
        ax.plot([row.value], [place], marker="s", color=BLUE, markerfacecolor=face, linestyle="", zorder=2)
    ax.axvline(0.0, color=GREY, linestyle="--", linewidth=1)
    ax.set_yticks(range(len(rows)), [f"{row.group} (n = {row.n:,})" for row in rows])
    ax.invert_yaxis()
    if len(result) > len(rows):
        ax.set_title(f"{len(rows)} of {len(result):,} groups, those with the most evidence")
    estimates = result if isinstance(result, Mapping) else result.estimates
    ax.set_xlabel(next((estimate.name for estimate in estimates.values()), ""))
    return ax
