"""Figures of predicted distributions (needs matplotlib): they draw a `ForecastCurve` and compute nothing."""

from __future__ import annotations

from typing import Any

from calibrant.estimators.forecast_curves import ForecastCurve
from calibrant.plot.canvas import axes

_BLUE, _GREY = "#0072B2", "0.6"
_LABELS = {
    "spread": ("root mean variance", "RMSE"),
    "pit": ("F(y)", "density"),
    "interval": ("stated level", "observed share"),
    "ence": ("number of bins", "ENCE"),
}


def forecast_diagram(curve: ForecastCurve, *, ax: Any = None, **style: Any) -> Any:
    """Draw a curve of `spread_curve`, `pit_histogram`, `interval_curve` or `ence_curve` with its null band.

    `style` goes to the artist of the observed values (`Axes.plot`, or `Axes.bar` for the histogram). The figure's
    data are the curve's own columns.
    """
    ax = axes(ax)
    across, up = _LABELS[curve.diagram]
    if curve.diagram == "pit":
        return _histogram(curve, ax, across, up, style)
    band = {"color": _GREY, "alpha": 0.3, "linewidth": 0, "label": f"calibrated, {curve.level:.0%}"}
    ax.fill_between(curve.x, curve.low, curve.high, **band)
    ax.plot(curve.x, curve.expected, color=_GREY, linestyle="--", linewidth=1)
    marked = curve.diagram != "interval"
    ax.plot(curve.x, curve.observed, **{"color": _BLUE, "marker": "o" if marked else "", "label": "observed", **style})
    ax.set(xlabel=across, ylabel=up)
    if curve.diagram == "interval":
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend()
    return ax


def _histogram(curve: ForecastCurve, ax: Any, across: str, up: str, style: dict[str, Any]) -> Any:
    width = 1 / len(curve.x)
    ax.bar(curve.x, curve.observed, **{"width": width, "color": _BLUE, "edgecolor": "white", **style})
    ax.axhspan(curve.low[0], curve.high[0], color=_GREY, alpha=0.3, linewidth=0, label=f"calibrated, {curve.level:.0%}")
    ax.axhline(1.0, color=_GREY, linestyle="--", linewidth=1)
    ax.set(xlabel=across, ylabel=up, xlim=(0, 1))
    ax.legend()
    return ax
