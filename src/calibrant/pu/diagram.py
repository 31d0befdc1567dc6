"""The reliability diagram of positive-unlabeled data (needs matplotlib). It draws and computes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.pu.inference import Reliability


def reliability_diagram(result: Reliability, *, ax: Any = None, **style: Any) -> Any:
    """Implied share of positives against mean score, with intervals, and where the two samples lie below.

    The share may exceed 1; only the drawing is cut there. `style` goes to `Axes.errorbar`. The figure's data are the
    fields of `result`, which `calibrant.pu.reliability` computes.
    """
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1, label="calibrated")
    rate = np.minimum(result.rate, 1.0)
    error = np.abs(np.stack([np.minimum(result.low, 1.0), np.minimum(result.high, 1.0)]) - rate)
    drawn = {"fmt": "o-", "color": "#0072B2", "capsize": 2, "label": "implied by the positives", **style}
    ax.errorbar(result.predicted, rate, yerr=error, **drawn)
    over = result.rate > 1
    if over.any():
        ax.plot(result.predicted[over], rate[over], "^", color="#D55E00", label="above 1")
    low, high = result.edges.T
    tallest = 0.2 / max(result.share.max(), result.positive.max())
    bars = {"align": "edge", "zorder": 0}
    ax.bar(low, result.share * tallest, high - low, color="0.85", edgecolor="0.6", label="unlabeled", **bars)
    hatch = {"facecolor": "none", "edgecolor": "#0072B2", "hatch": "//", "linewidth": 0.5}
    ax.bar(low, result.positive * tallest, high - low, label="positives", **hatch, **bars)
    ax.set(xlabel="predicted", ylabel="share of positives", xlim=(0, 1), ylim=(0, 1.02))
    ax.legend()
    return ax


def _axes(ax: Any) -> Any:
    from calibrant.plot import _axes as axes

    return axes(ax)
