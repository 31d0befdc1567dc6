"""What all figures share: the axes, and colours that differ in lightness too (Okabe and Ito's palette)."""

from __future__ import annotations

from typing import Any

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.6"

#: Width of a column of a paper, in inches, and the height of a legend below a square diagram.
#: Test: tests/plot/test_reliability_diagrams.py::test_new_figures_are_square_and_fit_a_column_with_the_legend_below.
COLUMN, LEGEND = 3.4, 1.25
#: Panels in a row.
#: Test: tests/plot/test_reliability_diagrams_panels.py::test_many_classes_show_the_most_frequent_in_rows_of_four.
ACROSS = 4


def axes(ax: Any = None) -> Any:
    """The axes given, else new ones (needs matplotlib). No setting of matplotlib is changed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> given = Figure().subplots()
    >>> axes(given) is given
    True
    """
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=(COLUMN, COLUMN + LEGEND), layout="constrained")[1]


def row_of_axes(panels: int, given: Any = None) -> list[Any]:
    """As many axes as there are panels: those given, else new ones in rows of four."""
    if given is None:
        across = min(panels, ACROSS)
        down = -(-panels // across)
        size = (2.6 * across, 2.8 * down + LEGEND)
        made = pyplot().subplots(down, across, squeeze=False, figsize=size, layout="constrained")[1].ravel()
        for unused in made[panels:]:
            unused.remove()
        return list(made[:panels])
    found = list(given.ravel()) if hasattr(given, "ravel") else list(given)
    if len(found) < panels:
        message = f"{panels} panels need as many axes, got {len(found)}."
        raise ValueError(message)
    return found[:panels]


def squared(ax: Any) -> Any:
    """The axes as high as wide, whatever the limits are, with the legend below."""
    ax.set_box_aspect(1)
    ax.set_anchor("N")  # what is left of the height is for the legend
    legend_below(ax)
    return ax


def legend_below(ax: Any, *, fontsize: float | str = "small") -> None:
    """The legend under the axes, where it covers nothing."""
    below = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.2), "borderaxespad": 0.0}
    ax.legend(**below, frameon=False, fontsize=fontsize, handlelength=1.6)


def diagonal(ax: Any, *, start: float = 0.0, end: float = 1.0) -> None:
    """Where a calibrated model lies."""
    ax.plot([start, end], [start, end], color=GREY, linestyle="--", linewidth=1, label="calibrated")


def pyplot() -> Any:
    """matplotlib.pyplot; without matplotlib, an error that says what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        message = "Drawing needs matplotlib: pip install 'calibrant[plot]'."
        raise ImportError(message) from error
    return plt
