"""Observed : expected (or errors to spread) period by period, with the range of a calibrated model."""

from __future__ import annotations

from functools import partial

from calibrant.plot.scales import Scale, covering
from calibrant.reporting.contents import Change, Facts, OverTime, Period
from calibrant.reporting.drawing.canvas import (
    Box,
    Canvas,
    Figure,
    Margins,
    both,
    dot,
    hint,
    least_covered,
    plain_tick,
    stroke,
    text_width,
)
from calibrant.reporting.drawing.descriptions import over_time_table, over_time_text, over_time_title
from calibrant.reporting.drawing.markup import Markup
from calibrant.reporting.rounding import count, p_number, ratio

#: Ratios beyond these are drawn at the edge.
_LEAST, _MOST = 0.1, 10.0


def over_time_figure(section: OverTime, facts: Facts, *, spread: bool = False) -> Figure:
    """The periods in order of time; `spread` for ratios of errors to predicted spread."""
    what = "Error-to-spread ratio" if spread else "Observed to expected events"
    draw = partial(_chart, section, spread, f"{what} by {section.column}, with 95 percent intervals.")
    return Figure(
        *both(draw, 1040),
        title=over_time_title(section, facts.event, spread=spread),
        text=over_time_text(section),
        table=over_time_table(section, spread=spread),
    )


def _chart(section: OverTime, spread: bool, name: str, width: float, style: str) -> Markup:  # noqa: FBT001
    roomy = width > 400
    periods = section.periods
    margins = Margins(44, 22 if roomy else 14, 12 if roomy else 8, 34)
    canvas = Canvas(width, 310 if roomy else 270, margins, Scale(-0.5, len(periods) - 0.5), _ratios(section))
    canvas.y_ticks(plain_tick, most=7)
    edges = [k + side for k in range(len(periods)) for side in (-0.5, 0.5)]
    low = [period.null[0] for period in periods for _ in range(2)]
    high = [period.null[1] for period in periods for _ in range(2)]
    canvas.area(edges, low, high, "nullband")
    canvas.line(canvas.left, canvas.y(1), canvas.right, canvas.y(1), "ref")
    if section.change is not None and section.change.significant:
        _regimes(canvas, section.change, periods)
    for k, period in enumerate(periods):
        _period(canvas, k, period, spread=spread)
    _names(canvas, [period.name for period in periods])
    if roomy:
        canvas.text(0, 10, "error-to-spread ratio" if spread else "observed : expected", "t")
        _name_the_band(canvas, periods)
    return canvas.svg(name, style)


def _name_the_band(canvas: Canvas, periods: tuple[Period, ...]) -> None:
    """Words on the grey band, from the right, where they cover no interval."""
    words = "grey: range of a calibrated model"
    blocked = [Box(canvas.left, canvas.top, canvas.right, canvas.top + 16)]  # the words on a change
    for k, period in enumerate(periods):
        ends = [v for v in (period.ratio.value, period.ratio.low, period.ratio.high) if v is not None]
        places = [canvas.y(v) for v in ends]
        blocked.append(Box(canvas.x(k) - 6, min(places) - 6, canvas.x(k) + 6, max(places) + 6))
    line = [(canvas.x(k), canvas.y(periods[k].null[1])) for k in reversed(range(len(periods)))]
    place = least_covered(words, line, blocked, Box(canvas.left, canvas.top, canvas.right, canvas.bottom))
    if place is not None:
        canvas.text(*place, words, "halo")


def _ratios(section: OverTime) -> Scale:
    ends = [v for p in section.periods for v in (p.ratio.value, p.ratio.low, p.ratio.high, *p.null) if v is not None]
    held = [min(max(v, _LEAST), _MOST) for v in ends]
    # Room above for the two lines of text on the change.
    return covering([*held, 1.15 * max(held)], "log", pad=0.04, include=[1.0])


def _regimes(canvas: Canvas, change: Change, periods: tuple[Period, ...]) -> None:
    split = canvas.x(change.first - 0.5)
    before, after = ratio(change.before), ratio(change.after)
    canvas.line(split, canvas.top, split, canvas.bottom, "thr")
    y_before, y_after = canvas.y(change.before.value), canvas.y(change.after.value)
    canvas.line(canvas.left, y_before, split, y_before, "curve half")
    canvas.line(split, y_after, canvas.right, y_after, "whb half")
    if not canvas.roomy:
        return
    first, last = periods[0].name, periods[change.first - 1].name
    span = first if first == last else f"{first} to {last}"
    left = f"{span}: {before.value} ({before.ends})"
    right = f"since {periods[change.first].name}: {after.value} ({after.ends})"
    high, low = canvas.top + 12, canvas.top + 12
    if text_width(left) + 8 < split - canvas.left:
        canvas.text(split - 8, high, left, "m halo", "end")
    if text_width(right) + 8 < canvas.right - split:
        canvas.text(split + 8, low, right, "b halo")


def _period(canvas: Canvas, k: int, period: Period, *, spread: bool) -> None:
    x = canvas.x(k)
    found = ratio(period.ratio)
    first = "" if spread else f": {count(period.observed)} observed, {count(period.expected)} expected"
    words = (
        f"{period.name}{first}\n{'Ratio' if spread else 'O:E'} {found.value} ({found.ends})\n"
        f"adjusted p {p_number(period.p_value)}"
    )
    radius = 5 if len(canvas_periods(canvas)) <= 24 else 3.5
    parts = [dot(x, canvas.y(period.ratio.value), radius, "dotb" if period.flagged else "dot")]
    if period.ratio.low is not None and period.ratio.high is not None:
        ends = canvas.y(period.ratio.low), canvas.y(period.ratio.high)
        parts.insert(0, stroke(x, ends[0], x, ends[1], "whb" if period.flagged else "wh"))
    canvas.clipped(hint(words, *parts))


def canvas_periods(canvas: Canvas) -> range:
    """The periods that the horizontal axis of a canvas holds."""
    return range(round(canvas.across.high + 0.5))


def _names(canvas: Canvas, names: list[str]) -> None:
    """The names of as many periods as fit, at equal steps."""
    short = _shortened(names)
    widest = max(map(text_width, short)) + 10
    step = next(k for k in range(1, len(names) + 2) if k * canvas.plot_width / len(names) >= min(widest, 90))
    for k in range(0, len(names), step):
        canvas.text(canvas.x(k), canvas.bottom + 20, _cut(short[k]), "", "middle")


def _shortened(names: list[str]) -> list[str]:
    """Without the last word where all share it: "Jan 2025" to "Jan"."""
    endings = {name.rpartition(" ")[2] for name in names}
    if len(endings) == 1 and all(" " in name for name in names):
        return [name.rpartition(" ")[0] for name in names]
    return names


def _cut(name: str, most: int = 16) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
