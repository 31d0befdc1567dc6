"""The reliability diagram of positive-unlabeled data (needs matplotlib). It draws and computes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.plot.canvas import axes
from calibrant.pu.inference import Reliability


def unlabeled_diagram(
    result: Reliability, *, ax: Any = None, priors: tuple[float, float] | None = None, **style: Any
) -> Any:
    """Implied share of positives against mean score, with intervals, and where the two samples lie below.

    With `priors`, a lowest and a highest prior, the band of shares that these imply is shaded: shares are proportional
    to the prior. The share may exceed 1; only the drawing is cut there. `style` goes to `Axes.errorbar`. The figure's
    data are the fields of `result`, which `calibrant.pu.reliability` computes.
    """
    ax = axes(ax)
    ax.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1, label="calibrated")
    rate = np.minimum(result.rate, 1.0)
    error = np.abs(np.stack([np.minimum(result.low, 1.0), np.minimum(result.high, 1.0)]) - rate)
    drawn = {"fmt": "o-", "color": "#0072B2", "capsize": 2, "label": "implied by the positives", **style}
    ax.errorbar(result.predicted, rate, yerr=error, **drawn)
    if priors is not None:
        low, high = (np.minimum(result.rate * prior / result.prior, 1.0) for prior in priors)
        shade = {"color": "#0072B2", "alpha": 0.15, "linewidth": 0, "label": f"priors {priors[0]:g} to {priors[1]:g}"}
        ax.fill_between(result.predicted, low, high, **shade)
    over = result.rate > 1
    if over.any():
        ax.plot(result.predicted[over], rate[over], "^", color="#D55E00", label="above 1")
    left, right = result.edges.T
    tallest = 0.2 / max(result.share.max(), result.positive.max())
    bars = {"align": "edge", "zorder": 0}
    ax.bar(left, result.share * tallest, right - left, color="0.85", edgecolor="0.6", label="unlabeled", **bars)
    hatch = {"facecolor": "none", "edgecolor": "#0072B2", "hatch": "//", "linewidth": 0.5}
    ax.bar(left, result.positive * tallest, right - left, label="positives", **hatch, **bars)
    ax.set(xlabel="predicted", ylabel="share of positives", xlim=(0, 1), ylim=(0, 1.02))
    ax.legend()
    return ax
