"""What all figures share: the axes, and colours that differ in lightness too (Okabe and Ito's palette)."""

from __future__ import annotations

from typing import Any

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.6"


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
    return pyplot().subplots()[1]


def row_of_axes(panels: int, given: Any = None) -> list[Any]:
    """As many axes as there are panels: those given, else a new row of them."""
    if given is None:
        size = (3.2 * panels, 3.4)
        return list(pyplot().subplots(1, panels, squeeze=False, figsize=size, layout="constrained")[1][0])
    found = list(given.ravel()) if hasattr(given, "ravel") else list(given)
    if len(found) < panels:
        message = f"{panels} panels need as many axes, got {len(found)}."
        raise ValueError(message)
    return found[:panels]


def diagonal(ax: Any, *, end: float = 1.0) -> None:
    """Where a calibrated model lies."""
    ax.plot([0, end], [0, end], color=GREY, linestyle="--", linewidth=1, label="calibrated")


def pyplot() -> Any:
    """matplotlib.pyplot; without matplotlib, an error that says what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        message = "Drawing needs matplotlib: pip install 'calibrant[plot]'."
        raise ImportError(message) from error
    return plt
