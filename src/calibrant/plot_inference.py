"""Figure of a reliability curve with its bands (needs matplotlib): it draws and computes nothing."""

from __future__ import annotations

from typing import Any

from calibrant.inference.bands import ReliabilityCurve
from calibrant.plot import _axes

_BLUE, _GREY = "#0072B2", "0.6"


def reliability_curve_diagram(curve: ReliabilityCurve, *, ax: Any = None, **style: Any) -> Any:
    """Draw a `ReliabilityCurve`: consistency band about the diagonal, confidence band about the curve.

    `style` goes to `Axes.plot` for the curve. The figure's data are the curve's own columns.
    """
    ax = _axes(ax)
    x = curve.predicted
    ends = [0.0, 1.0] if curve.kind != "spread" else [0.0, float(x.max())]
    ax.plot(ends, ends, color=_GREY, linestyle="--", linewidth=1)
    shade = {"alpha": 0.3, "linewidth": 0}
    calibrated = f"calibrated, {curve.level:.0%}"
    ax.fill_between(x, curve.consistency_low, curve.consistency_high, color=_GREY, label=calibrated, **shade)
    truth = f"true curve, {curve.level:.0%}" + (" simultaneous" if curve.simultaneous else "")
    ax.fill_between(
        x, curve.confidence_low, curve.confidence_high, color=_BLUE, label=truth, **{**shade, "alpha": 0.15}
    )
    ax.plot(x, curve.observed, **{"color": _BLUE, "label": "observed", **style})
    ax.set(xlabel="predicted", ylabel="observed")
    ax.legend()
    return ax
