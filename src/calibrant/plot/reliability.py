"""Reliability diagrams: what was observed against what was predicted."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.inference.reliability import ReliabilityCurve, reliability_curve
from calibrant.numerics.arrays import Floats
from calibrant.numerics.isotonic import pool_adjacent_violators
from calibrant.plot.canvas import BLUE, GREY, ORANGE, axes, diagonal
from calibrant.plot.regression import spread_diagram
from calibrant.pu.inference import Reliability
from calibrant.results.estimate import Estimate
from calibrant.table.binning import EqualWidth
from calibrant.table.bintable import BinTable
from calibrant.table.task import Spread

Drawable = Estimate | BinTable | ReliabilityCurve


def reliability_diagram(
    result: Drawable | Predictions | Reliability,
    *,
    ax: Any = None,
    histogram: BinTable | None = None,
    priors: tuple[float, float] | None = None,
    **style: Any,
) -> Any:
    """Observed against predicted, with the diagonal of a calibrated model.

    A table of bins (or an estimate that keeps one) is a point per bin; bins of predicted spreads are drawn by
    `forecast_diagram`. A fine table is the CORP curve: the best rising
    fit, without a choice of bins. A curve of `calibrant.inference.reliability_curve` also has its bands: the
    grey one about the diagonal is where a calibrated model would show, the blue one holds the true curve. Predictions
    are turned into that curve first.

    Parameters
    ----------
    result : Estimate, BinTable, ReliabilityCurve, Predictions or pu.Reliability
    ax : matplotlib axes, optional
    histogram : BinTable, optional
        Draws where the scores lie, along the bottom; see `score_histogram`.
    priors : pair of floats, optional
        Positive-unlabeled results only: shade what the priors between these two would imply.
    style
        Goes to `Axes.plot`, or to `Axes.errorbar` for positive-unlabeled results.

    Notes
    -----
    The figure's data are ``table.predicted_mean`` and ``table.observed_mean`` of bins, those of
    `calibrant.reliability_curve` of a fine table, or the curve's own columns.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> result = cal.ece([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], bins=cal.EqualWidth(2))
    >>> reliability_diagram(result, ax=Figure().subplots()).get_title()
    'ECE (L1) 0.2500'
    """
    if isinstance(result, Reliability):
        return _unlabeled_diagram(result, ax=ax, priors=priors, **style)
    ax = axes(ax)
    table = result.bins if isinstance(result, Estimate) else result
    if isinstance(table, BinTable) and isinstance(table.task, Spread) and not table.fine:
        return spread_diagram(table, ax=ax, **style)
    if isinstance(result, Predictions):
        result = reliability_curve(result)
    if isinstance(result, ReliabilityCurve):
        _bands(result, ax)
    else:
        diagonal(ax)
    x, y, marker = points(result)
    ax.plot(x, y, **{"marker": marker, "color": BLUE, "label": "observed", **style})
    ax.set(xlabel="predicted", ylabel="observed")
    if not (isinstance(result, ReliabilityCurve) and result.kind == "spread"):
        ax.set(xlim=(0, 1), ylim=(0, 1))
    if isinstance(result, Estimate):
        ax.set_title(f"{result.name} {result:.4f}")
    if histogram is not None:
        score_histogram(histogram, ax=ax)
    ax.legend()
    return ax


def points(result: Drawable) -> tuple[Floats, Floats, str]:
    """The points of a reliability diagram, and their marker (none for curves of many points)."""
    if isinstance(result, ReliabilityCurve):
        return result.predicted, result.observed, "" if result.kind == "isotonic" else "o"
    table = result.bins if isinstance(result, Estimate) else result
    if table is None:
        message = f"{result!r} keeps no bins to draw."
        raise ValueError(message)
    if table.fine:
        return *_isotonic(table), ""
    some = table.filled()
    return some.predicted_mean, some.observed_mean, "o"


def _isotonic(table: BinTable) -> tuple[Floats, Floats]:
    """The scores of a fine table, and the isotonic regression of the outcomes on them."""
    some = table.filled()
    starts, weight, observed = pool_adjacent_violators(some.weight, some.observed * some.observed_scale)
    size = np.diff(np.append(starts, len(some)))
    return some.predicted_mean, np.repeat(observed / weight, size)


def score_histogram(table: BinTable, *, ax: Any = None, height: float = 0.15, **style: Any) -> Any:
    """Where the scores lie, as bars along the bottom of a reliability diagram.

    A fine table is drawn in 20 bins of equal width. The figure's data are the bins' ``share`` of all rows; the tallest
    bar has the given height.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> table = cal.BinTable.of(cal.Binary([0, 0, 1, 1], [0.1, 0.3, 0.4, 0.8]), cal.EqualWidth(2))
    >>> ax = score_histogram(table, ax=Figure().subplots(), height=0.3)
    >>> [round(float(bar.get_height()), 2) for bar in ax.patches]
    [0.3, 0.1]
    """
    ax = axes(ax)
    bins = table.coarsen(EqualWidth(20)) if table.fine else table
    bars = {"color": "0.85", "edgecolor": GREY, "linewidth": 0.5, "zorder": 0, "label": "share of rows", **style}
    ax.bar(bins.low, bins.share * height / bins.share.max(), bins.high - bins.low, align="edge", **bars)
    return ax


def before_after(before: Drawable, after: Drawable, *, ax: Any = None) -> Any:
    """Two reliability diagrams on one pair of axes: before and after recalibration.

    They differ in colour, marker and line. The figure's data are those of the two results.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> y, p = [0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8]
    >>> ax = before_after(cal.ece(y, p), cal.ece(y, [0.0, 0.1, 0.9, 1.0]), ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['calibrated', 'before, ECE (L1) 0.2500', 'after, ECE (L1) 0.0500']
    """
    ax = axes(ax)
    diagonal(ax)
    styles = ("before", ORANGE, "s", ":"), ("after", BLUE, "o", "-")
    for result, (label, color, marker, line) in zip((before, after), styles, strict=True):
        x, y, marked = points(result)
        named = f"{label}, {result.name} {result:.4f}" if isinstance(result, Estimate) else label
        ax.plot(x, y, color=color, marker=marker if marked else "", linestyle=line, label=named)
    ax.set(xlabel="predicted", ylabel="observed", xlim=(0, 1), ylim=(0, 1))
    ax.legend()
    return ax


def _unlabeled_diagram(
    result: Reliability, *, ax: Any = None, priors: tuple[float, float] | None = None, **style: Any
) -> Any:
    """Implied share of positives against mean score, with intervals, and where the two samples lie below.

    With `priors`, a lowest and a highest prior, the band of shares that these imply is shaded: shares are proportional
    to the prior. The share may exceed 1; only the drawing is cut there. `style` goes to `Axes.errorbar`. The figure's
    data are the fields of `result`, which `calibrant.pu.reliability` computes.
    """
    ax = axes(ax)
    diagonal(ax)
    rate = np.minimum(result.rate, 1.0)
    error = np.abs(np.stack([np.minimum(result.low, 1.0), np.minimum(result.high, 1.0)]) - rate)
    drawn = {"fmt": "o-", "color": BLUE, "capsize": 2, "label": "implied by the positives", **style}
    ax.errorbar(result.predicted, rate, yerr=error, **drawn)
    if priors is not None:
        low, high = (np.minimum(result.rate * prior / result.prior, 1.0) for prior in priors)
        shade = {"color": BLUE, "alpha": 0.15, "linewidth": 0, "label": f"priors {priors[0]:g} to {priors[1]:g}"}
        ax.fill_between(result.predicted, low, high, **shade)
    over = result.rate > 1
    if over.any():
        ax.plot(result.predicted[over], rate[over], "^", color=ORANGE, label="above 1")
    left, right = result.edges.T
    tallest = 0.2 / max(result.share.max(), result.positive.max())
    bars = {"align": "edge", "zorder": 0}
    ax.bar(left, result.share * tallest, right - left, color="0.85", edgecolor=GREY, label="unlabeled", **bars)
    hatch = {"facecolor": "none", "edgecolor": BLUE, "hatch": "//", "linewidth": 0.5}
    ax.bar(left, result.positive * tallest, right - left, label="positives", **hatch, **bars)
    ax.set(xlabel="predicted", ylabel="share of positives", xlim=(0, 1), ylim=(0, 1.02))
    ax.legend()
    return ax


def _bands(curve: ReliabilityCurve, ax: Any) -> None:
    x, level = curve.predicted, f"{curve.level:.0%}"
    diagonal(ax, end=float(x.max()) if curve.kind == "spread" else 1.0)
    shade = {"linewidth": 0, "zorder": 1}
    grey = {"color": GREY, "alpha": 0.4, "label": f"calibrated, {level}"}
    ax.fill_between(x, curve.consistency_low, curve.consistency_high, **grey, **shade)
    blue = {
        "color": BLUE,
        "alpha": 0.15,
        "label": f"true curve, {level}" + (" simultaneous" if curve.simultaneous else ""),
    }
    ax.fill_between(x, curve.confidence_low, curve.confidence_high, **blue, **shade)
    for edge in (curve.confidence_low, curve.confidence_high):  # so that the bands differ without colour too
        ax.plot(x, edge, color=BLUE, linestyle=":", linewidth=0.8, zorder=1)
