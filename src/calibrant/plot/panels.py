"""Classes or groups side by side: reliability panels, confidence strip, forest plot."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.data.predictions import Confidence, Multiclass, Predictions
from calibrant.estimators.binned import ece
from calibrant.inference.groups import ByGroup, forest_rows
from calibrant.inference.reliability import ConfidenceGaps, class_tables, confidence_gaps
from calibrant.plot.canvas import BLUE, GREY, ORANGE, axes, legend_below, row_of_axes
from calibrant.plot.reliability_diagrams import Drawable, reliability_diagram
from calibrant.results.estimate import Estimate
from calibrant.table.bintable import BinTable


def class_panels(
    tables: Multiclass | Mapping[str, Drawable],
    *,
    classes: Sequence[Hashable] | None = None,
    most: int = 11,
    ax: Any = None,
    **style: Any,
) -> list[Any]:
    """One reliability diagram per entry, titled by its name: top label and classes.

    Parameters
    ----------
    tables : Multiclass, or mapping of names to what `reliability_diagram` takes
        Of predictions, the tables are those of `calibrant.inference.class_tables`.
    classes : sequence, optional
        The classes of predictions that are drawn; by default all of them, or the `most` frequent.
    ax : sequence or array of axes, optional
        At least one per entry.
    style
        Goes to `Axes.plot`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> data = cal.Multiclass([0, 1, 2], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    >>> panels = class_panels(data, classes=[0, 2], ax=Figure().subplots(1, 3))
    >>> [panel.get_title() for panel in panels]
    ['top label', '0', '2']
    """
    if isinstance(tables, Multiclass):
        tables = class_tables(tables, classes=_frequent(tables, most) if classes is None else classes)
    panels = row_of_axes(len(tables), ax)
    for panel, (name, table) in zip(panels, tables.items(), strict=True):
        reliability_diagram(table, ax=panel, **style)
        panel.set_title(name)
        if panel is not panels[0]:
            panel.get_legend().remove()
            panel.set_ylabel("")
    return panels


def _frequent(data: Multiclass, most: int) -> list[Hashable]:
    """The most frequent classes, in their order."""
    count = np.bincount(data.y_true, minlength=len(data.classes))
    chosen = np.sort(np.argsort(-count, kind="stable")[:most])
    return [data.classes[k] for k in chosen]


def confidence_strip(gaps: ConfidenceGaps | Estimate | BinTable | Predictions, *, ax: Any = None) -> Any:
    """Bars over each bin: upward and hatched where the model is over-confident, downward where under-confident.

    Predictions are binned as by `ece`; for multiclass data it is the confidence in the predicted class.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> estimate = cal.ece([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.9, 0.9, 0.9, 0.9], bins=cal.EqualWidth(2))
    >>> gaps = cal.inference.confidence_gaps(estimate)
    >>> ax = confidence_strip(gaps, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['over-confident, 0.1000', 'under-confident, 0.0667']
    """
    ax = axes(ax)
    gaps = gaps if isinstance(gaps, ConfidenceGaps) else _gaps(gaps)
    bars = {"align": "edge", "edgecolor": "black", "linewidth": 0.6}
    over, width = gaps.gap > 0, gaps.high - gaps.low
    sides = (
        (over, ORANGE, "//", f"over-confident, {gaps.over:.4f}"),
        (~over, BLUE, "", f"under-confident, {gaps.under:.4f}"),
    )
    for which, color, hatch, label in sides:
        ax.bar(gaps.low[which], gaps.gap[which], width[which], color=color, hatch=hatch, label=label, **bars)
    ax.axhline(0.0, color="black", linewidth=1)
    ax.set(xlabel="predicted", ylabel="over-confident by", xlim=(0, 1))
    legend_below(ax)
    return ax


def _gaps(result: Estimate | BinTable | Predictions) -> ConfidenceGaps:
    if not isinstance(result, Predictions):
        return confidence_gaps(result)
    one = result.top_label() if isinstance(result, Multiclass) else result
    return confidence_gaps(ece(one), top_label=isinstance(one, Confidence))


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
