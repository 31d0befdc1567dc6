"""Several classes side by side, and where a model claims too much or too little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.inference.reliability import ConfidenceGaps
from calibrant.plot.canvas import BLUE, ORANGE, axes, row_of_axes
from calibrant.plot.reliability import Drawable, reliability_diagram


def class_panels(tables: Mapping[str, Drawable], *, ax: Any = None, **style: Any) -> list[Any]:
    """One reliability diagram per entry, titled by its name: top label and classes.

    `ax` is a sequence or array of axes, at least one per entry; `style` goes to `Axes.plot`. The figure's data are
    those of the entries, e.g. from `calibrant.inference.class_tables`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> data = cal.Multiclass([0, 1, 2], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    >>> panels = class_panels(cal.inference.class_tables(data, classes=[0, 2]), ax=Figure().subplots(1, 3))
    >>> [panel.get_title() for panel in panels]
    ['top label', '0', '2']
    """
    panels = row_of_axes(len(tables), ax)
    for panel, (name, table) in zip(panels, tables.items(), strict=True):
        reliability_diagram(table, ax=panel, **style)
        panel.set_title(name)
        if panel is not panels[0]:
            panel.get_legend().remove()
            panel.set_ylabel("")
    return panels


def confidence_strip(gaps: ConfidenceGaps, *, ax: Any = None) -> Any:
    """Bars over each bin: upward and hatched where the model claims too much, downward where it claims too little.

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
    bars = {"align": "edge", "edgecolor": "black", "linewidth": 0.6}
    over, width = gaps.gap > 0, gaps.high - gaps.low
    sides = (
        (over, ORANGE, "//", f"over-confident, {gaps.over:.4f}"),
        (~over, BLUE, "", f"under-confident, {gaps.under:.4f}"),
    )
    for which, color, hatch, label in sides:
        ax.bar(gaps.low[which], gaps.gap[which], width[which], color=color, hatch=hatch, label=label, **bars)
    ax.axhline(0.0, color="black", linewidth=1)
    ax.set(xlabel="predicted", ylabel="claims too much", xlim=(0, 1))
    ax.legend()
    return ax
