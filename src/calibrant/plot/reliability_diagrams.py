"""Reliability diagrams: one, or classes and groups side by side, with confidence strip and forest plot."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from calibrant.data.forecasts import Forecast
from calibrant.data.predictions import Binary, Confidence, Multiclass, Predictions
from calibrant.data.validation import fail
from calibrant.estimators.binned import ece
from calibrant.estimators.regression_curves import ForecastCurve, spread_curve
from calibrant.inference.groups import ByGroup, forest_rows
from calibrant.inference.reliability import (
    ConfidenceGaps,
    ReliabilityCurve,
    class_tables,
    confidence_gaps,
    reliability_curve,
)
from calibrant.numerics.arrays import Floats
from calibrant.numerics.smoothers import pool_adjacent_violators
from calibrant.plot.canvas import BLUE, GREY, ORANGE, axes, diagonal, legend_below, row_of_axes, squared
from calibrant.plot.scales import Scale, evenly, probability_scale
from calibrant.pu.binned_inference import Reliability
from calibrant.results.estimate import Estimate
from calibrant.table.binning import Cut, Edges, EqualWidth
from calibrant.table.bintable import BinTable
from calibrant.table.task import Spread

_LABELS = {
    "spread": ("root mean variance", "RMSE"),
    "pit": ("F(y)", "density"),
    "interval": ("nominal coverage", "observed coverage"),
    "ence": ("number of bins", "ENCE"),
}

Drawable = Estimate | BinTable | ReliabilityCurve | Predictions
Axis = Literal["linear", "log odds"]

#: Bins drawn as dots over the curve of predictions, and as bars along the bottom.
_DOTS, _BARS = EqualWidth(10), EqualWidth(20)
#: Where frequencies of 0 and 1 are drawn on log odds.
#: Derived: far beyond the edges of any axis, whose odds are at least 1e-6.
_BEYOND = 1e-12
#: Area of the dot that holds all rows, and of the smallest, in points squared.
#: Test: tests/plot/test_reliability_diagrams.py::test_predictions_have_dots_by_rows_and_a_histogram.
_LARGEST, _SMALLEST = 160.0, 8.0


def reliability_diagram(
    result: Drawable | Reliability,
    *,
    ax: Any = None,
    histogram: BinTable | None = None,
    priors: tuple[float, float] | None = None,
    axis: Axis = "linear",
    **style: Any,
) -> Any:
    """Observed against predicted, with the diagonal of a calibrated model.

    A table of bins (or an estimate that keeps one) is a point per bin; bins of predicted spreads are drawn by
    `forecast_diagram`. A fine table is the CORP curve: the best rising
    fit, without a choice of bins. A curve of `calibrant.inference.reliability_curve` also has its bands: the
    grey one about the diagonal is where a calibrated model would show, the blue one holds the true curve. Predictions
    are drawn as in a report: that curve, dots with 95 % intervals for ten bins, their area by the number of rows, and
    where the scores lie. For multiclass data it is the confidence in the predicted class.

    Parameters
    ----------
    result : Estimate, BinTable, ReliabilityCurve, Predictions or pu.Reliability
    ax : matplotlib axes, optional
    histogram : BinTable, optional
        Draws where the scores lie, along the bottom; see `score_histogram`.
    priors : pair of floats, optional
        Positive-unlabeled results only: shade what the priors between these two would imply.
    axis : {"linear", "log odds"}
        Log odds show rare events.
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
        return forecast_diagram(spread_curve(table), ax=ax, **style)
    if isinstance(result, Multiclass):
        result = result.top_label()
    data, result = result, reliability_curve(result) if isinstance(result, Predictions) else result
    beyond = _BEYOND if axis == "log odds" else 0.0
    if isinstance(result, ReliabilityCurve):
        _bands(_kept_inside(result, beyond), ax, beyond)
    else:
        diagonal(ax, start=beyond, end=1 - beyond)
    x, y, marker = points(result)
    scale = _limits(axis, x, y)
    spread = isinstance(result, ReliabilityCurve) and result.kind == "spread"
    shown = np.clip(y, beyond, 1 - beyond) if beyond else y
    ax.plot(x, shown, **{"marker": marker, "color": BLUE, "label": "observed", **style})
    if isinstance(data, Binary):
        _dots(data, ax, beyond)
        histogram = BinTable.of(data, _bars(scale)) if histogram is None else histogram
    ax.set(xlabel="predicted", ylabel="observed")
    if not spread:
        _set_scale(ax, scale)
    if isinstance(result, Estimate):
        ax.set_title(f"{result.name} {result:.4f}")
    if histogram is not None:
        score_histogram(histogram, ax=ax, transform=ax.get_xaxis_transform())
    return squared(ax)


def _limits(axis: Axis, x: Floats, y: Floats) -> Scale:
    """The axis of both directions: all of it, or on log odds the part around what is drawn, as in a report."""
    if axis not in get_args(Axis):
        fail(f"axis must be 'linear' or 'log odds', got {axis!r}.", ValueError)
    return Scale(0.0, 1.0) if axis == "linear" else probability_scale([*x.tolist(), *y.tolist()], log_odds=True)


def _set_scale(ax: Any, scale: Scale) -> None:
    ends = (scale.low, scale.high)
    ax.set(xlim=ends, ylim=ends)
    if scale.kind == "log odds":
        ax.set(xscale="logit", yscale="logit", xlim=ends, ylim=ends)
        ticks = scale.ticks(5)
        for side in (ax.xaxis, ax.yaxis):
            side.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
            side.set_ticks([], minor=True)


def _bars(scale: Scale) -> Cut:
    """Bins of the scores, equally wide on the axis; the outermost ones hold all that lies beyond it."""
    return _BARS if scale.kind == "linear" else Edges([0.0, *evenly(scale, _BARS.n_bins)[1:-1], 1.0])


def _kept_inside(curve: ReliabilityCurve, beyond: float) -> ReliabilityCurve:
    """The curve with frequencies of 0 and 1, which have no log odds, moved to beyond the edges of the figure."""
    if not beyond:
        return curve
    names = ("observed", "consistency_low", "consistency_high", "confidence_low", "confidence_high", "predicted")
    return replace(curve, **{name: np.clip(getattr(curve, name), beyond, 1 - beyond) for name in names})


def _dots(data: Binary, ax: Any, beyond: float) -> None:
    """Binned frequencies with intervals; the area of a dot shows the number of rows."""
    curve = _kept_inside(reliability_curve(data, bins=_DOTS), beyond)
    area = np.maximum(_LARGEST * curve.share, _SMALLEST)
    ends = np.stack([curve.observed - curve.confidence_low, curve.confidence_high - curve.observed])
    ax.errorbar(curve.predicted, curve.observed, yerr=np.maximum(ends, 0.0), fmt="none", ecolor=BLUE, elinewidth=0.8)
    named = {"label": "bins, 95% interval; area shows rows", "zorder": 3}
    ax.scatter(curve.predicted, curve.observed, area, facecolor="white", edgecolor=BLUE, linewidth=0.9, **named)


def points(result: Drawable) -> tuple[Floats, Floats, str]:
    """The points of a reliability diagram, and their marker (none for curves of many points)."""
    if isinstance(result, Multiclass):
        result = result.top_label()
    if isinstance(result, Predictions):
        result = reliability_curve(result, draws=2)
    if isinstance(result, ReliabilityCurve):
        return result.predicted, result.observed, "" if result.kind == "isotonic" else "o"
    table = result.bins if isinstance(result, Estimate) else result
    if table is None:
        fail(f"{result!r} keeps no bins to draw.", ValueError)
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
    bins = table.coarsen(_BARS) if table.fine else table
    bars = {"color": "0.85", "edgecolor": GREY, "linewidth": 0.5, "zorder": 0, "label": "share of rows", **style}
    ax.bar(bins.low, bins.share * height / bins.share.max(), bins.high - bins.low, align="edge", **bars)
    return ax


def before_after(before: Drawable, after: Drawable, *, ax: Any = None) -> Any:
    """Two reliability diagrams on one pair of axes: before and after recalibration.

    They differ in colour, marker and line. Both may be estimates, tables, curves or predictions, which are drawn as
    their rising (CORP) curves. The figure's data are those of the two results.

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
    return squared(ax)


def _unlabeled_diagram(
    result: Reliability, *, ax: Any = None, priors: tuple[float, float] | None = None, **style: Any
) -> Any:
    """Implied share of positives against mean score, with the two samples below.

    Shares are proportional to the prior: two `priors` give a band. They may exceed 1; only the drawing is cut there.
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
    return squared(ax)


def _bands(curve: ReliabilityCurve, ax: Any, beyond: float) -> None:
    x, level = curve.predicted, f"{curve.level:.0%}"
    diagonal(ax, start=beyond, end=float(x.max()) if curve.kind == "spread" else 1 - beyond)
    shade = {"linewidth": 0, "zorder": 1}
    grey = {"color": GREY, "alpha": 0.4, "label": f"calibrated, {level}"}
    ax.fill_between(x, curve.consistency_low, curve.consistency_high, **grey, **shade)
    kind = " simultaneous" if curve.simultaneous else ""
    blue = {"color": BLUE, "alpha": 0.15, "label": f"true curve, {level}{kind}"}
    ax.fill_between(x, curve.confidence_low, curve.confidence_high, **blue, **shade)
    for edge in (curve.confidence_low, curve.confidence_high):  # so that the bands differ without colour too
        ax.plot(x, edge, color=BLUE, linestyle=":", linewidth=0.8, zorder=1)


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
    return squared(ax)


def _histogram(curve: ForecastCurve, ax: Any, across: str, up: str, style: dict[str, Any]) -> Any:
    width = 1 / len(curve.x)
    ax.bar(curve.x, curve.observed, **{"width": width, "color": BLUE, "edgecolor": "white", **style})
    ax.axhspan(curve.low[0], curve.high[0], color=GREY, alpha=0.3, linewidth=0, label=f"calibrated, {curve.level:.0%}")
    ax.axhline(1.0, color=GREY, linestyle="--", linewidth=1)
    ax.set(xlabel=across, ylabel=up, xlim=(0, 1))
    return squared(ax)


def class_panels(
    tables: Multiclass | Mapping[str, Drawable],
    *,
    classes: Sequence[Hashable] | None = None,
    most: int = 11,
    ax: Any = None,
    **style: Any,
) -> list[Any]:
    """One reliability diagram per entry, titled by its name: top label and classes.

    Parameters
    ----------
    tables : Multiclass, or mapping of names to what `reliability_diagram` takes
        Of predictions, the tables are those of `calibrant.inference.class_tables`.
    classes : sequence, optional
        The classes of predictions that are drawn; by default all of them, or the `most` frequent.
    ax : sequence or array of axes, optional
        At least one per entry.
    style
        Goes to `Axes.plot`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> data = cal.Multiclass([0, 1, 2], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    >>> panels = class_panels(data, classes=[0, 2], ax=Figure().subplots(1, 3))
    >>> [panel.get_title() for panel in panels]
    ['top label', '0', '2']
    """
    if isinstance(tables, Multiclass):
        tables = class_tables(tables, classes=_frequent(tables, most) if classes is None else classes)
    panels = row_of_axes(len(tables), ax)
    for panel, (name, table) in zip(panels, tables.items(), strict=True):
        reliability_diagram(table, ax=panel, **style)
        panel.set_title(name)
        if panel is not panels[0]:
            panel.get_legend().remove()
            panel.set_ylabel("")
    return panels


def _frequent(data: Multiclass, most: int) -> list[Hashable]:
    """The most frequent classes, in their order."""
    count = np.bincount(data.y_true, minlength=len(data.classes))
    chosen = np.sort(np.argsort(-count, kind="stable")[:most])
    return [data.classes[k] for k in chosen]


def confidence_strip(gaps: ConfidenceGaps | Estimate | BinTable | Predictions, *, ax: Any = None) -> Any:
    """Bars over each bin: upward and hatched where the model is over-confident, downward where under-confident.

    Predictions are binned as by `ece`; for multiclass data it is the confidence in the predicted class.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> estimate = cal.ece([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.9, 0.9, 0.9, 0.9], bins=cal.EqualWidth(2))
    >>> gaps = cal.inference.confidence_gaps(estimate)
    >>> ax = confidence_strip(gaps, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['over-confident, 0.1000', 'under-confident, 0.0667']
    """
    ax = axes(ax)
    gaps = gaps if isinstance(gaps, ConfidenceGaps) else _gaps(gaps)
    bars = {"align": "edge", "edgecolor": "black", "linewidth": 0.6}
    over, width = gaps.gap > 0, gaps.high - gaps.low
    sides = (
        (over, ORANGE, "//", f"over-confident, {gaps.over:.4f}"),
        (~over, BLUE, "", f"under-confident, {gaps.under:.4f}"),
    )
    for which, color, hatch, label in sides:
        ax.bar(gaps.low[which], gaps.gap[which], width[which], color=color, hatch=hatch, label=label, **bars)
    ax.axhline(0.0, color="black", linewidth=1)
    ax.set(xlabel="predicted", ylabel="over-confident by", xlim=(0, 1))
    legend_below(ax)
    return ax


def _gaps(result: Estimate | BinTable | Predictions) -> ConfidenceGaps:
    if not isinstance(result, Predictions):
        return confidence_gaps(result)
    one = result.top_label() if isinstance(result, Multiclass) else result
    return confidence_gaps(ece(one), top_label=isinstance(one, Confidence))


def forest(result: ByGroup | Mapping[Any, Estimate], *, ax: Any = None, alpha: float = 0.05, most: int = 40) -> Any:
    """The estimate of each group with its interval, worst on top; squares are filled where the group stands out.

    Of more than `most` groups those with the most evidence are drawn, and the title says so. The figure's data are
    `calibrant.inference.forest_rows`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> made = {name: Estimate(e, name="ECE", method="", n=9) for name, e in (("a", 0.1), ("b", 0.3))}
    >>> [label.get_text() for label in forest(made, ax=Figure().subplots()).get_yticklabels()]
    ['b (n = 9)', 'a (n = 9)']
    """
    ax = axes(ax)
    rows = forest_rows(result, alpha=alpha, most=most)
    for place, row in enumerate(rows):
        ax.plot([row.low, row.high], [place, place], color=BLUE, linewidth=1.5, zorder=1)
        face = BLUE if row.significant else "white"
        ax.plot([row.value], [place], marker="s", color=BLUE, markerfacecolor=face, linestyle="", zorder=2)
    ax.axvline(0.0, color=GREY, linestyle="--", linewidth=1)
    ax.set_yticks(range(len(rows)), [f"{row.group} (n = {row.n:,})" for row in rows])
    ax.invert_yaxis()
    if len(result) > len(rows):
        ax.set_title(f"{len(rows)} of {len(result):,} groups, those with the most evidence")
    estimates = result if isinstance(result, Mapping) else result.estimates
    ax.set_xlabel(next((estimate.name for estimate in estimates.values()), ""))
    return ax
