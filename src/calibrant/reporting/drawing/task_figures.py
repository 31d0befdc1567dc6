"""Figures that only one task has: spread, coverage and PIT of forecasts; shares of positives."""

from __future__ import annotations

from functools import partial

from calibrant.plot.scales import Scale, covering
from calibrant.reporting.contents import Shares, Spread
from calibrant.reporting.drawing.canvas import (
    Canvas,
    Figure,
    Margins,
    both,
    dot,
    hint,
    percent_tick,
    plain_tick,
    stroke,
)
from calibrant.reporting.drawing.descriptions import (
    coverage_table,
    coverage_text,
    coverage_title,
    implied_table,
    implied_text,
    implied_title,
    pit_text,
    pit_title,
    shares_table,
    shares_text,
    shares_title,
    spread_table,
    spread_text,
    spread_title,
)
from calibrant.reporting.drawing.markup import Markup, tag
from calibrant.reporting.drawing.reliability import diagonal, diagram_scale, probability_axes, square
from calibrant.reporting.rounding import count, fixed, points, rate, rates, score

_SQUARE = 500


def spread_figure(section: Spread, *, significant: bool | None) -> Figure:
    """Root mean squared error against predicted standard deviation, on logarithmic axes."""
    draw = partial(_spread, section, "Root mean squared error against predicted standard deviation, log axes.")
    return Figure(
        *both(draw, _SQUARE),
        title=spread_title(section, significant=significant),
        text=spread_text(section),
        table=spread_table(section),
    )


def coverage_figure(section: Spread) -> Figure:
    """Observed against nominal coverage."""
    draw = partial(_coverage, section, "Observed against nominal coverage of central intervals.")
    return Figure(
        *both(draw, _SQUARE),
        title=coverage_title(section),
        text=coverage_text(section),
        table=coverage_table(section),
    )


def pit_figure(section: Spread, *, significant: bool | None) -> Figure:
    """The histogram of F(y), relative to what is expected of each class."""
    draw = partial(_pit, section, "Histogram of F(y): where outcomes fall in their predicted distributions.")
    return Figure(*both(draw, 1040), title=pit_title(section, significant=significant), text=pit_text(section))


def _spread(section: Spread, name: str, width: float, style: str) -> Markup:
    bins = section.bins
    values = [v for b in bins for v in (b.predicted, b.error.value, b.error.low, b.error.high, *b.null) if v]
    canvas = square(width, covering(values, "log", pad=0.05))
    unit = f", {section.unit}" if section.unit else ""
    canvas.x_ticks(plain_tick, f"Predicted standard deviation{unit}", most=6)
    canvas.y_ticks(plain_tick, most=6)
    canvas.frame()
    canvas.corners(("Too narrow", "errors larger than predicted"), ("Too wide", "errors smaller than predicted"))
    spreads = [b.predicted for b in bins]
    canvas.area(spreads, [b.null[0] for b in bins], [b.null[1] for b in bins], "nullband")
    diagonal(canvas)
    canvas.curve(spreads, [b.error.value for b in bins], "curve")
    for b in bins:
        x, y = canvas.x(b.predicted), canvas.y(b.error.value)
        digits = 2 if b.predicted < 100 else 0
        words = f"Predicted spread {fixed(b.predicted, digits)}\nRMSE {fixed(b.error.value, digits)}"
        parts = [dot(x, y, 5, "dot")]
        if b.error.low is not None and b.error.high is not None:
            words += f" ({fixed(b.error.low, digits)} to {fixed(b.error.high, digits)})"
            parts.insert(0, stroke(x, canvas.y(b.error.low), x, canvas.y(b.error.high), "wh"))
        canvas.clipped(hint(f"{words}\n{count(b.n)} forecasts", *parts))
    return canvas.svg(name, style)


def _coverage(section: Spread, name: str, width: float, style: str) -> Markup:
    canvas = square(width, Scale(0.0, 1.0))
    probability_axes(canvas, "Nominal coverage of the central interval")
    canvas.corners(("Too wide", "more inside than predicted"), ("Too narrow", "fewer inside than predicted"))
    known = [c for c in section.coverage if c.observed.low is not None and c.observed.high is not None]
    low, high = [c.observed.low or 0.0 for c in known], [c.observed.high or 0.0 for c in known]
    if known:
        canvas.area([0.0, *(c.nominal for c in known), 1.0], [0.0, *low, 1.0], [0.0, *high, 1.0], "confband")
    diagonal(canvas)
    levels, shares = [c.nominal for c in section.coverage], [c.observed.value for c in section.coverage]
    canvas.curve([0.0, *levels, 1.0], [0.0, *shares, 1.0], "curve")
    for c in section.coverage:
        found = rates(c.observed)
        ends = f" ({found.ends} %)" if found.ends else ""
        words = f"{score(c.nominal)} intervals\nhold {found.value} %{ends}"
        canvas.add(hint(words, dot(canvas.x(c.nominal), canvas.y(c.observed.value), 9, "touch")))
    chosen = min(section.coverage, key=lambda c: abs(c.nominal - 0.9))
    x, y = canvas.x(chosen.nominal), canvas.y(chosen.observed.value)
    canvas.line(x, canvas.y(chosen.nominal), x, y, "thr")
    canvas.add(dot(x, y, 5.5, "dotf"))
    return canvas.svg(name, style)


def _pit(section: Spread, name: str, width: float, style: str) -> Markup:
    classes = len(section.pit)
    expected = sum(section.pit) / classes
    shares = [rows / expected for rows in section.pit]
    low, high = (end / expected for end in section.pit_null)
    top = 1.12 * max(*shares, high)
    canvas = Canvas(width, 190, Margins(44, 12, 8, 40), Scale(0.0, 1.0), Scale(0.0, top))
    canvas.y_ticks(plain_tick, most=5)
    words = "Predicted probability of a lower outcome, F(y)" if width > 400 else "F(y)"
    canvas.x_ticks(plain_tick, words, most=5, grid=False)
    base, step = canvas.y(0), canvas.plot_width / classes
    for k, share in enumerate(shares):
        y = canvas.y(share)
        bar = tag("rect", x=canvas.x(k / classes) + 1, y=y, width=step - 2, height=base - y, class_="barm pale")
        about = f"F(y) {k / classes:.2f} to {(k + 1) / classes:.2f}\n{count(section.pit[k])} forecasts"
        canvas.add(hint(f"{about}, {count(expected)} expected", bar))
    canvas.area([0.0, 1.0], [low] * 2, [high] * 2, "nullband")
    canvas.line(canvas.left, canvas.y(1), canvas.right, canvas.y(1), "ref")
    return canvas.svg(name, style)


def shares_figure(section: Shares) -> Figure:
    """The error at every assumed share, with its interval."""
    draw = partial(_errors, section, "Calibration error against the assumed share of positives.")
    return Figure(
        *both(draw, 1040),
        title=shares_title(section),
        text=shares_text(section),
        table=shares_table(section),
    )


def implied_figure(section: Shares, *, significant: bool | None) -> Figure:
    """The share of positives that the labelled ones imply, against the prediction; square, log-odds axes."""
    draw = partial(_implied, section, "Implied share of positives against predicted probability, log-odds axes.")
    return Figure(
        *both(draw, 520),
        title=implied_title(section, significant=significant),
        text=implied_text(section),
        table=implied_table(section),
    )


def _errors(section: Shares, name: str, width: float, style: str) -> Markup:
    roomy = width > 400
    highest = max(max(e.value, e.high or 0.0) for e in section.errors)
    across = covering(section.priors, "linear", pad=0.0)
    canvas = Canvas(
        width, 320 if roomy else 270, Margins(46, 22, 14, 46), across, Scale(0.0, 1.06 * max(highest, 1e-6))
    )
    canvas.y_ticks(lambda v: plain_tick(100 * v))
    title = "Assumed share of positives among the unlabeled"
    canvas.x_ticks(percent_tick, title, most=8 if roomy else 4, grid=False)
    values = [e.value for e in section.errors]
    low = [e.value if e.low is None else e.low for e in section.errors]
    high = [e.value if e.high is None else e.high for e in section.errors]
    canvas.area(section.priors, low, high, "confband")
    canvas.curve(section.priors, values, "curve")
    if canvas.across.holds(section.prior):
        _assumed(canvas, section)
    for prior, error in zip(section.priors, section.errors, strict=True):
        found = points(error)
        words = f"share {score(prior)}\nerror {found.value} points ({found.ends})"
        canvas.add(hint(words, dot(canvas.x(prior), canvas.y(error.value), 12, "touch")))
    if roomy:
        canvas.text(0, 10, "percentage points", "t")
    return canvas.svg(name, style)


def _assumed(canvas: Canvas, section: Shares) -> None:
    nearest = min(range(len(section.priors)), key=lambda k: abs(section.priors[k] - section.prior))
    error = section.errors[nearest]
    x, y = canvas.x(section.prior), canvas.y(error.value)
    canvas.line(x, canvas.top, x, canvas.bottom, "thr")
    canvas.add(dot(x, y, 6, "dotf"))
    if canvas.roomy:
        found = points(error)
        far = x > canvas.left + 0.75 * canvas.plot_width
        canvas.text(
            x + (-10 if far else 10),
            canvas.top + 14,
            f"assumed: {score(section.prior)}",
            "t halo",
            "end" if far else "start",
        )
        words = f"{found.value} points" + (f" ({found.ends})" if found.ends else "")
        canvas.text(x + (-12 if far else 12), y + 20, words, "m halo", "end" if far else "start")


def _implied(section: Shares, name: str, width: float, style: str) -> Markup:
    scale = diagram_scale(section.implied, "log odds")
    canvas = square(width, scale)
    probability_axes(canvas, "Predicted probability")
    canvas.corners(("Too low", "more positives than predicted"), ("Too high", "fewer positives than predicted"))
    diagonal(canvas)
    if len(section.implied) > 1:
        canvas.curve([b.predicted for b in section.implied], [b.observed.value for b in section.implied], "curve")
    for b in section.implied:
        x, found = canvas.x(b.predicted), rates(b.observed)
        words = f"Predicted {rate(b.predicted)}\nimplied share of positives {found.value} %"
        # Shares of 0, and those above 1, have no place on log odds: they stand on the edge.
        parts = [dot(x, min(max(canvas.y(b.observed.value), canvas.top), canvas.bottom), 5, "dot")]
        if b.observed.low is not None and b.observed.high is not None:
            words += f" ({found.ends} %)"
            parts.insert(0, stroke(x, canvas.y(b.observed.low), x, canvas.y(b.observed.high), "wh"))
        canvas.clipped(hint(words, *parts))
    return canvas.svg(name, style)
