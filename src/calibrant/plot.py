"""Figures (needs matplotlib): each draws on the axes it is given and computes nothing."""

from __future__ import annotations

from typing import Any

from calibrant.bintable import BinTable
from calibrant.estimate import Estimate


def reliability_diagram(result: Estimate | BinTable, *, ax: Any = None, **style: Any) -> Any:
    """Mean outcome against mean prediction per bin, beside the diagonal of a calibrated model.

    `style` goes to `Axes.plot`. The figure's data are ``table.predicted_mean`` and ``table.observed_mean``.
    """
    table = result.bins if isinstance(result, Estimate) else result
    if table is None:
        message = f"{result!r} keeps no bins to draw."
        raise ValueError(message)
    ax = _axes(ax)
    some = table.filled()
    ax.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1, label="calibrated")
    drawn = {"marker": "o", "color": "#0072B2", "label": "observed", **style}
    ax.plot(some.predicted_mean, some.observed_mean, **drawn)
    ax.set(xlabel="predicted", ylabel="observed", xlim=(0, 1), ylim=(0, 1))
    if isinstance(result, Estimate):
        ax.set_title(f"{result.name} {result:.4f}")
    ax.legend()
    return ax


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        message = "Drawing needs matplotlib: pip install 'calibrant[plot]'."
        raise ImportError(message) from error
    return plt.subplots()[1]
