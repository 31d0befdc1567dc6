"""Figures of predicted distributions (needs matplotlib): they draw a `ForecastCurve` and compute nothing."""

from __future__ import annotations

from typing import Any

from calibrant.data.forecasts import Forecast
from calibrant.estimators.regression_curves import ForecastCurve, spread_curve
from calibrant.plot.canvas import BLUE, GREY, axes, legend_below, square
from calibrant.table.bintable import BinTable

_LABELS = {
    "spread": ("root mean variance", "RMSE"),
    "pit": ("F(y)", "density"),
    "interval": ("nominal coverage", "observed coverage"),
    "ence": ("number of bins", "ENCE"),
}


def forecast_diagram(curve: ForecastCurve | Forecast, *, ax: Any = None, **style: Any) -> Any:
    """Draw a curve of `spread_curve`, `pit_histogram`, `interval_curve` or `ence_curve` with its null band.

    Of a forecast the spread curve is drawn. `style` goes to the artist of the observed values (`Axes.plot`, or
    `Axes.bar` for the histogram). The figure's data are the curve's own columns.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> curve = cal.interval_curve([0.0, 1.0, -1.0, 2.0], [0.0] * 4, [1.0] * 4)
    >>> forecast_diagram(curve, ax=Figure().subplots()).get_xlabel()
    'nominal coverage'
    """
    ax = axes(ax)
    curve = spread_curve(curve) if isinstance(curve, Forecast) else curve
    across, up = _LABELS[curve.diagram]
    if curve.diagram == "pit":
        return _histogram(curve, ax, across, up, style)
    band = {"color": GREY, "alpha": 0.3, "linewidth": 0, "label": f"calibrated, {curve.level:.0%}"}
    ax.fill_between(curve.x, curve.low, curve.high, **band)
    ax.plot(curve.x, curve.expected, color=GREY, linestyle="--", linewidth=1)
    marked = curve.diagram != "interval"
    ax.plot(curve.x, curve.observed, **{"color": BLUE, "marker": "o" if marked else "", "label": "observed", **style})
    ax.set(xlabel=across, ylabel=up)
    if curve.diagram == "interval":
        ax.set(xlim=(0, 1), ylim=(0, 1))
    square(ax)
    legend_below(ax)
    return ax


def spread_diagram(table: BinTable, *, ax: Any = None, **style: Any) -> Any:
    """Root mean squared error against predicted spread in the bins of a table; its data are `spread_curve`."""
    return forecast_diagram(spread_curve(table), ax=ax, **style)


def _histogram(curve: ForecastCurve, ax: Any, across: str, up: str, style: dict[str, Any]) -> Any:
    width = 1 / len(curve.x)
    ax.bar(curve.x, curve.observed, **{"width": width, "color": BLUE, "edgecolor": "white", **style})
    ax.axhspan(curve.low[0], curve.high[0], color=GREY, alpha=0.3, linewidth=0, label=f"calibrated, {curve.level:.0%}")
    ax.axhline(1.0, color=GREY, linestyle="--", linewidth=1)
    ax.set(xlabel=across, ylabel=up, xlim=(0, 1))
    square(ax)
    legend_below(ax)
    return ax
