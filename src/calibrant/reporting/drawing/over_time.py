"""Observed : expected (or errors to spread) period by period, with the range of a calibrated model."""

from __future__ import annotations

from functools import partial
from math import isnan

from calibrant.plot.scales import Scale, covering
from calibrant.reporting.contents import Change, OverTime, Period
from calibrant.reporting.drawing.canvas import ROOMY, Box, Canvas, Figure, plain_tick, text_width
from calibrant.reporting.drawing.descriptions import some_of
from calibrant.reporting.names import plural, shortened
from calibrant.reporting.rounding import count, numbers_of, p_number, ratio
from calibrant.reporting.text import time_table

#: Ratios beyond these are drawn at the edge.
#: Test: tests/reporting/drawing/test_over_time.py::test_ratios_far_from_one_are_drawn_at_the_edge.
_LEAST, _MOST = 0.1, 10.0


def over_time_figure(section: OverTime, event: str, *, spread: bool = False) -> Figure:
    """The periods in order of time; `spread` for ratios of errors to predicted spread."""
    what = "Error-to-spread ratio" if spread else "Observed to expected events"
    name, title = f"{what} by {section.column}, with 95 percent intervals.", _title(section, event, spread=spread)
    table = time_table(section, spread=spread)
    return Figure.of(partial(_chart, section, spread), 1040, name, title, _text(section), table)


def _title(section: OverTime, event: str, *, spread: bool = False) -> str:
    """From which period on the totals differ, or how many periods do."""
    change = section.change
    if change is not None and change.significant:
        start = f"From {section.periods[change.first].name} on, "
        if spread:
            return f"{start}errors are {ratio(change.after).value} times the predicted spread"
        return f"{start}{ratio(change.after).value} times as many {plural(event, kind='event')} occurred as predicted"
    flagged = sum(period.flagged for period in section.periods)
    if flagged:
        verb = "differs" if flagged == 1 else "differ"
        return f"{flagged} of {len(section.periods)} periods {verb} from the predictions beyond chance"
    if all(isnan(period.p_value) for period in section.periods):
        return "No period could be tested"
    return "No period differs from the predictions beyond chance"


def _text(section: OverTime) -> str:
    """The range of the ratios, the change, and the flagged periods."""
    least, most = (ratio(some((one.ratio for one in section.periods), key=lambda r: r.value)) for some in (min, max))
    first, last = section.periods[0].name, section.periods[-1].name
    text = f"From {first} to {last} the ratio lies between {least.value} and {most.value}."
    change = section.change
    if change is not None and change.significant:
        before, after = ratio(change.before).with_ends(), ratio(change.after).with_ends()
        text += f" It changes in {section.periods[change.first].name}: {before} before, {after} since."
    flagged = [period.name for period in section.periods if period.flagged]
    return f"{text} Flagged after adjustment: {some_of(flagged)}." if flagged else f"{text} No period is flagged."


def _chart(section: OverTime, spread: bool, width: float) -> Canvas:  # noqa: FBT001
    roomy = width > ROOMY
    periods = section.periods
    margins = (44, 22 if roomy else 14, 12 if roomy else 8, 34)
    canvas = Canvas(width, 310 if roomy else 270, margins, Scale(-0.5, len(periods) - 0.5), _ratios(section))
    canvas.y_ticks(plain_tick, most=7)
    edges = [k + side for k in range(len(periods)) for side in (-0.5, 0.5)]
    low, high = ([period.null[end] for period in periods for _ in range(2)] for end in (0, 1))
    canvas.area(edges, low, high, "nullband")
    canvas.line(canvas.left, canvas.y(1), canvas.right, canvas.y(1), "ref")
    if section.change is not None and section.change.significant:
        _regimes(canvas, section.change, periods)
    for k, period in enumerate(periods):
        _period(canvas, k, period, spread=spread, radius=5 if len(periods) <= 24 else 3.5)
    _names(canvas, [period.name for period in periods])
    if roomy:
        canvas.text(0, 10, "error-to-spread ratio" if spread else "observed : expected", "t")
        _name_the_band(canvas, periods)
    return canvas


def _name_the_band(canvas: Canvas, periods: tuple[Period, ...]) -> None:
    """Words on the grey band, from the right, where they cover no interval."""
    blocked = [Box(canvas.left, canvas.top, canvas.right, canvas.top + 16)]  # the words on a change
    for k, period in enumerate(periods):
        places = list(map(canvas.y, numbers_of([period.ratio])))
        blocked.append(Box(canvas.x(k) - 6, min(places) - 6, canvas.x(k) + 6, max(places) + 6))
    line = [(canvas.x(k), canvas.y(periods[k].null[1])) for k in reversed(range(len(periods)))]
    whole = Box(canvas.left, canvas.top, canvas.right, canvas.bottom)
    canvas.name("grey: range of a calibrated model", line, blocked, "halo", whole)


def _ratios(section: OverTime) -> Scale:
    ends = [v for period in section.periods for v in (*numbers_of([period.ratio]), *period.null)]
    held = [min(max(v, _LEAST), _MOST) for v in ends]
    # Room above for the two lines of text on the change.
    return covering([*held, 1.15 * max(held)], "log", pad=0.04, include=[1.0])


def _regimes(canvas: Canvas, change: Change, periods: tuple[Period, ...]) -> None:
    split = canvas.x(change.first - 0.5)
    before, after = ratio(change.before).with_ends(), ratio(change.after).with_ends()
    canvas.line(split, canvas.top, split, canvas.bottom, "thr")
    y_before, y_after = canvas.y(change.before.value), canvas.y(change.after.value)
    canvas.line(canvas.left, y_before, split, y_before, "curve half")
    canvas.line(split, y_after, canvas.right, y_after, "whb half")
    if not canvas.roomy:
        return
    first, last = periods[0].name, periods[change.first - 1].name
    span = first if first == last else f"{first} to {last}"
    left, right = f"{span}: {before}", f"since {periods[change.first].name}: {after}"
    if text_width(left) + 8 < split - canvas.left:
        canvas.text(split - 8, canvas.top + 12, left, "m halo", "end")
    if text_width(right) + 8 < canvas.right - split:
        canvas.text(split + 8, canvas.top + 12, right, "b halo")


def _period(canvas: Canvas, k: int, period: Period, *, spread: bool, radius: float) -> None:
    first = "" if spread else f": {count(period.observed)} observed, {count(period.expected)} expected"
    size = f"{'Ratio' if spread else 'O:E'} {ratio(period.ratio).with_ends()}"
    words = f"{period.name}{first}\n{size}\nadjusted p {p_number(period.p_value)}"
    canvas.marker(k, period.ratio, words, radius=radius, flagged=period.flagged)


def _names(canvas: Canvas, names: list[str]) -> None:
    """The names of as many periods as fit, at equal steps."""
    endings = {name.rpartition(" ")[2] for name in names}
    same = len(endings) == 1 and all(" " in name for name in names)  # the year, as a rule
    short = [name.rpartition(" ")[0] for name in names] if same else names
    widest = max(map(text_width, short)) + 10
    step = next(k for k in range(1, len(names) + 2) if k * canvas.plot_width / len(names) >= min(widest, 90))
    for k in range(0, len(names), step):
        canvas.text(canvas.x(k), canvas.bottom + 20, shortened(short[k], 16), "", "middle")
