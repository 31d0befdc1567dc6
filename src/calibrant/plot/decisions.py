"""Figures of decisions (needs matplotlib): they draw a result and compute nothing."""

from __future__ import annotations

from typing import Any

from calibrant.inference.decision_costs import MiscalibrationCost
from calibrant.inference.decision_curves import DecisionCurve
from calibrant.inference.selective_prediction import RiskCoverage
from calibrant.plot.canvas import BLUE, GREY, ORANGE, axes


def decision_diagram(curve: DecisionCurve, *, ax: Any = None, **style: Any) -> Any:
    """Draw a decision curve with its band, and those of treating everyone and treating no one.

    `style` goes to the line of the model (`Axes.plot`). The figure's data are the curve's own columns.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> curve = cal.net_benefit([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> ax = decision_diagram(curve, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['model', '95% interval', 'treat all', 'treat none']
    """
    ax = axes(ax)
    ax.plot(curve.threshold, curve.value, **{"color": BLUE, "label": "model", **style})
    band = {"color": BLUE, "alpha": 0.2, "linewidth": 0, "label": f"{curve.level:.0%} interval"}
    ax.fill_between(curve.threshold, curve.low, curve.high, **band)
    ax.plot(curve.threshold, curve.treat_all, color=ORANGE, linestyle="--", label="treat all")
    ax.axhline(0.0, color=GREY, linestyle=":", label="treat none")
    best = 1.0 if curve.standardized else curve.prevalence
    top = max(best, float(curve.value.max()), 0.01)
    ax.set(xlabel="threshold", ylabel="standardized net benefit" if curve.standardized else "net benefit")
    ax.set_ylim(-0.2 * top, 1.1 * top)
    ax.legend()
    return ax


def cost_diagram(found: MiscalibrationCost, *, ax: Any = None, **style: Any) -> Any:
    """Draw what miscalibration costs at each threshold, with its band; `style` goes to `Axes.plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> found = cal.inference.miscalibration_cost(rng.random(500) < p**2, p)
    >>> cost_diagram(found, ax=Figure().subplots()).get_ylabel()
    'net benefit gained by recalibration'
    """
    ax = axes(ax)
    ax.plot(found.threshold, found.cost, **{"color": BLUE, "label": "after less before", **style})
    band = {"color": BLUE, "alpha": 0.2, "linewidth": 0, "label": f"{found.level:.0%} interval, {found.band}"}
    ax.fill_between(found.threshold, found.low, found.high, **band)
    ax.axhline(0.0, color=GREY, linestyle=":", linewidth=1)
    ax.set(xlabel="threshold", ylabel="net benefit gained by recalibration")
    ax.legend()
    return ax


def risk_coverage_diagram(curve: RiskCoverage, *, ax: Any = None, **style: Any) -> Any:
    """Draw the mean loss of the predictions that are made against their share, with its band.

    `style` goes to the line (`Axes.plot`).

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> curve = cal.risk_coverage([1, 0, 1, 0], [0.9, 0.2, 0.3, 0.4])
    >>> risk_coverage_diagram(curve, ax=Figure().subplots()).get_ylabel()
    'error rate of predictions made'
    """
    ax = axes(ax)
    ax.plot(curve.coverage, curve.risk, **{"color": BLUE, "label": f"AURC {curve.aurc.value:.4f}", **style})
    top = max(1.1 * float(curve.risk.max()), 2 * float(curve.risk[-1]), 1e-3)
    band = {"color": BLUE, "alpha": 0.2, "linewidth": 0, "label": f"{curve.level:.0%} interval, {curve.band}"}
    ax.fill_between(curve.coverage, curve.low.clip(-top), curve.high.clip(max=2 * top), **band)
    ax.axhline(float(curve.risk[-1]), color=GREY, linestyle=":", label="all predictions made")
    words = {"error": "error rate", "brier": "Brier score", "log_loss": "log loss"}.get(curve.loss, "mean loss")
    ax.set(xlabel="share of predictions made", ylabel=f"{words} of predictions made", xlim=(0, 1))
    ax.set_ylim(min(0.0, float(curve.risk.min())), top)
    ax.legend()
    return ax
