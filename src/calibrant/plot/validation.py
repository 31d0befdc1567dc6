"""Figures of a validation study (decision curves, costs, risk-coverage curves, all in one) and of simulations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from calibrant.data.validation import fail
from calibrant.inference.decision_curves import DecisionCurve, MiscalibrationCost
from calibrant.inference.selective_prediction import RiskCoverage
from calibrant.plot.canvas import BLUE, GREY, ORANGE, axes, legend_below, pyplot, row_of_axes
from calibrant.plot.reliability_diagrams import Drawable, reliability_diagram
from calibrant.results.estimate import Estimate
from calibrant.table.bintable import BinTable

if TYPE_CHECKING:
    from calibrant.simulate.estimation_bias import BiasTable
    from calibrant.simulate.world_fit import Goodness


#: One for each line, before they repeat.
MARKERS = "os^vDPX*<>"


def bias_lines(table: BiasTable, *, ax: Any = None, **style: Any) -> Any:
    """Bias in percent against sample size, one line per estimator, averaged over the worlds of the table."""
    ax = axes(ax)
    sizes = sorted({row.n for row in table})
    ax.axhline(0.0, color="0.6", linestyle="--", linewidth=1)
    for drawn, name in enumerate(dict.fromkeys(row.estimator for row in table)):
        means = [100 * np.mean([row.bias for row in table.select(estimator=name, n=n)]) for n in sizes]
        marker = MARKERS[drawn % len(MARKERS)]  # so that lines can be told apart without colour
        ax.plot(sizes, means, **{"marker": marker, "markersize": 4, "label": name, **style})
    ax.set_xscale("log")
    ax.set(xlabel="sample size", ylabel="bias, percent")
    ax.legend(fontsize="small")
    return ax


def goodness_points(fits: Sequence[Goodness], *, ax: Any = None, **style: Any) -> Any:
    """Mean simulated against real estimate in percent, a point for each fit; good fits lie on the diagonal."""
    ax = axes(ax)
    real, simulated = (100 * np.array([getattr(fit, name) for fit in fits]) for name in ("real", "simulated"))
    spread = 100 * np.array([fit.simulated_sd for fit in fits])
    limit = 1.1 * max(real.max(), (simulated + spread).max())
    ax.plot([0, limit], [0, limit], color="0.6", linestyle="--", linewidth=1)
    ax.errorbar(real, simulated, yerr=spread, **{"fmt": "o", "capsize": 3, **style})
    ax.set(xlabel="real data, percent", ylabel="simulated data, percent", xlim=(0, limit), ylim=(0, limit))
    return ax


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


Width = Literal["single", "double"]

#: Width and height in inches: one column, with panels on top of each other, and two columns.
#: Test: tests/plot/test_validation.py::test_sizes_of_journals.
SIZES: dict[Width, tuple[float, float]] = {"single": (3.4, 8.0), "double": (7.0, 4.2)}

#: Sizes of texts in points (journals ask for at least 6 to 7), the space around the numbers above the first panel, and
#: the height of a line of them relative to its text.
#: Test: tests/plot/test_validation.py::test_sizes_of_journals.
TEXT, SMALL = 8, 7
GAP, LINE = 4, 1.3


def validation_figure(
    curve: Drawable,
    decisions: DecisionCurve,
    numbers: Sequence[Estimate] = (),
    *,
    histogram: BinTable | None = None,
    width: Width = "double",
    ax: Any = None,
) -> Any:
    """Calibration curve with its bands and the numbers of the validation, and the decision curve: panels A and B.

    A single column is 3.4 inches wide, two are 7.0; texts have 7 and 8 points. Save it with
    ``figure.savefig("validation.pdf")``, or ``dpi=600`` for a bitmap.

    Parameters
    ----------
    curve : ReliabilityCurve, BinTable or Estimate
        Of `calibrant.reliability_curve`.
    decisions : DecisionCurve
        Of `calibrant.net_benefit`.
    numbers : sequence of Estimate
        Written above the first panel, with their intervals.
    histogram : BinTable, optional
        Draws where the scores lie.
    width : {"single", "double"}
    ax : sequence of two axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(400)
    >>> data = cal.Binary(rng.random(400) < p, p)
    >>> numbers = [cal.interval(cal.calibration_slope, data)]
    >>> axes = Figure().subplots(1, 2)
    >>> figure = validation_figure(cal.reliability_curve(data), cal.net_benefit(data), numbers, ax=axes)
    >>> [text.get_text().split(" ")[1] for text in axes[0].texts][:1]
    ['slope']
    """
    if width not in get_args(Width):
        fail(f"width must be one of {get_args(Width)}, got {width!r}.", ValueError)
    first, second = _panels(width) if ax is None else row_of_axes(2, ax)
    reliability_diagram(curve, ax=first, histogram=histogram, linewidth=1.2)
    decision_diagram(decisions, ax=second, linewidth=1.2)
    first.set(xlabel="Predicted risk", ylabel="Observed proportion", title="")
    second.set(xlabel="Threshold of risk", ylabel=second.get_ylabel().capitalize())
    words = [_words(number) for number in numbers]
    if words:
        above = {"xycoords": "axes fraction", "xytext": (0, GAP), "textcoords": "offset points"}
        first.annotate("\n".join(words), (0.0, 1.0), va="bottom", fontsize=SMALL, linespacing=LINE, **above)
    for panel, letter in ((first, "A"), (second, "B")):
        # Letters stand above the numbers; side by side, both do.
        lines = len(words) if panel is first or width == "double" else 0
        pad = GAP + lines * LINE * SMALL + (GAP if lines else 0)
        panel.set_title(letter, loc="left", fontsize=TEXT + 1, fontweight="bold", pad=pad)
        panel.xaxis.label.set_fontsize(TEXT)
        panel.yaxis.label.set_fontsize(TEXT)
        panel.tick_params(labelsize=SMALL)
        legend_below(panel, fontsize=SMALL)
        panel.spines[["top", "right"]].set_visible(False)
    return first.figure


def _panels(width: Width) -> list[Any]:
    rows, columns = (2, 1) if width == "single" else (1, 2)
    figure, made = pyplot().subplots(rows, columns, figsize=SIZES[width], layout="constrained")
    figure.set_dpi(200)
    return list(made)


def _words(number: Estimate) -> str:
    if number.interval is None:
        return f"{number.name} {number.value:.2f}"
    low, high = number.interval.low, number.interval.high
    return f"{number.name} {number.value:.2f} ({number.interval.level:.0%} interval {low:.2f} to {high:.2f})"
