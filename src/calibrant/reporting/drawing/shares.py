"""Positive-unlabeled rows: the error against the assumed share of positives, and the shares implied by score."""

from __future__ import annotations

from functools import partial

from calibrant.reporting.contents import Shares
from calibrant.reporting.drawing.canvas import Canvas, Margins, dot, hint, stroke
from calibrant.reporting.drawing.descriptions import implied_table, implied_text, shares_table, shares_text
from calibrant.reporting.drawing.figure import Figure, both
from calibrant.reporting.drawing.markup import Markup
from calibrant.reporting.drawing.scales import Scale, covering, percent_tick, plain_tick
from calibrant.reporting.drawing.square import diagonal, probability_axes, probability_scale, square
from calibrant.reporting.drawing.titles import implied_title, shares_title
from calibrant.reporting.rounding import points, rate, rates, score


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
    scale = probability_scale(section.implied, "log odds")
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
