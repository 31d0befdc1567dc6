"""The figure of a validation study, at the widths at which journals print figures (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from calibrant.inference.decision_curves import DecisionCurve
from calibrant.plot.canvas import legend_below, row_of_axes
from calibrant.plot.decisions import decision_diagram
from calibrant.plot.reliability_diagrams import Drawable, reliability_diagram
from calibrant.results.estimate import Estimate
from calibrant.table.bintable import BinTable

Width = Literal["single", "double"]

#: Width and height in inches: one column, with panels on top of each other, and two columns.
SIZES: dict[Width, tuple[float, float]] = {"single": (3.4, 8.0), "double": (7.0, 4.2)}

#: Sizes of texts in points; journals ask for at least 6 to 7.
TEXT, SMALL = 8, 7
#: Space around the numbers above the first panel in points, and the height of a line of them by its text.
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
        message = f"width must be one of {get_args(Width)}, got {width!r}."
        raise ValueError(message)
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
    from calibrant.plot.canvas import pyplot

    rows, columns = (2, 1) if width == "single" else (1, 2)
    figure, made = pyplot().subplots(rows, columns, figsize=SIZES[width], layout="constrained")
    figure.set_dpi(200)
    return list(made)


def _words(number: Estimate) -> str:
    if number.interval is None:
        return f"{number.name} {number.value:.2f}"
    low, high = number.interval.low, number.interval.high
    return f"{number.name} {number.value:.2f} ({number.interval.level:.0%} interval {low:.2f} to {high:.2f})"
