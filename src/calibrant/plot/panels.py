"""Several classes side by side, and where a model claims too much or too little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.predictions import Multiclass
from calibrant.numerics.arrays import Floats
from calibrant.plot.canvas import BLUE, ORANGE, axes, row_of_axes
from calibrant.plot.reliability import Drawable, reliability_diagram
from calibrant.results.estimate import Estimate
from calibrant.table.binning import Binning, EqualMass
from calibrant.table.bintable import BinTable


def class_tables(
    data: Multiclass, *, bins: Binning = EqualMass(10), classes: Sequence[Any] | None = None
) -> dict[str, BinTable]:
    """The table of the top label, then one per class against the rest: the data of `class_panels`.

    Examples
    --------
    >>> data = Multiclass([0, 1, 2], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    >>> list(class_tables(data, classes=[0, 2]))
    ['top label', '0', '2']
    """
    tasks = data.one_vs_rest()
    wanted = tuple(tasks) if classes is None else tuple(classes)
    found = {"top label": BinTable.of(data.top_label(), bins)}
    return found | {str(name): BinTable.of(tasks[name], bins) for name in wanted}


def class_panels(tables: Mapping[str, Drawable], *, ax: Any = None, **style: Any) -> list[Any]:
    """One reliability diagram per entry, titled by its name: top label and classes.

    `ax` is a sequence or array of axes, at least one per entry; `style` goes to `Axes.plot`. The figure's data are
    those of the entries, e.g. from `class_tables`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> data = Multiclass([0, 1, 2], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    >>> panels = class_panels(class_tables(data, classes=[0, 2]), ax=Figure().subplots(1, 3))
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


@dataclass(frozen=True, eq=False)
class ConfidenceGaps:
    """Per bin: its bounds, its share of the rows, and by how much it claims too much (too little where negative).

    A statement above 1/2 claims too much where less happens, one below 1/2 where more does.
    """

    low: Floats
    high: Floats
    share: Floats
    gap: Floats

    @property
    def over(self) -> float:
        """Overconfidence: the share-weighted sum of the gaps above zero."""
        return float(self.share @ np.maximum(self.gap, 0.0))

    @property
    def under(self) -> float:
        """Underconfidence; with `over` it adds up to the binned ECE."""
        return float(self.share @ np.maximum(-self.gap, 0.0))


def confidence_gaps(result: Estimate | BinTable, *, top_label: bool = False) -> ConfidenceGaps:
    """The data of `confidence_strip`, from a table of bins or an estimate that keeps one.

    With `top_label` the scores are confidences of the predicted class, which claim too much wherever less happens.

    Examples
    --------
    >>> import calibrant as cal
    >>> confidence_gaps(cal.ece([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.9, 0.9, 0.9, 0.9], bins=cal.EqualWidth(2))).gap
    array([-0.2 ,  0.15])
    """
    table = result.bins if isinstance(result, Estimate) else result
    if table is None or table.fine:
        message = f"{result!r} has no bins to draw; take an estimate such as ece(data), or table.coarsen(...)."
        raise ValueError(message)
    some = table.filled()
    gap = some.observed_mean - some.predicted_mean
    if top_label:
        return ConfidenceGaps(some.low, some.high, some.share, -gap)
    gap = np.where(some.predicted_mean > 0.5, -gap, gap)
    gap = np.where(some.predicted_mean == 0.5, -np.abs(gap), gap)  # a half cannot claim too much
    return ConfidenceGaps(some.low, some.high, some.share, gap)


def confidence_strip(gaps: ConfidenceGaps, *, ax: Any = None) -> Any:
    """Bars over each bin: upward and hatched where the model claims too much, downward where it claims too little.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> gaps = confidence_gaps(cal.ece([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.9, 0.9, 0.9, 0.9], bins=cal.EqualWidth(2)))
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
