"""Figures that only one task has: spread, coverage and PIT of forecasts; shares of positives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isnan

from calibrant.plot.scales import Scale, covering
from calibrant.reporting.contents import Change, Coverage, NetBenefit, OverTime, Period, Shares, Spread, SpreadBin
from calibrant.reporting.drawing.canvas import ROOMY, Box, Canvas, Figure, dot, hint, plain_tick, text_width
from calibrant.reporting.drawing.descriptions import observed_share, some_of
from calibrant.reporting.drawing.markup import tag
from calibrant.reporting.drawing.reliability import dense, diagonal, diagram_scale, near, probability_axes, square
from calibrant.reporting.names import plural, shortened
from calibrant.reporting.rounding import count, fixed, numbers_of, p_number, points, rates, ratio, score, span
from calibrant.reporting.rounding import significant as decimals_of
from calibrant.reporting.text import Table, coverage_table, net_benefit_table, shares_table, time_table, treat_all
from calibrant.results.estimate import Value

#: Widths of square figures and of those as wide as the page.
#: Test: tests/reporting/layout/test_page.py::test_figures_are_drawn_as_before.
_SQUARE, _WHOLE = 500, 1040


def spread_figure(section: Spread, *, significant: bool | None) -> Figure:
    """Root mean squared error against predicted standard deviation, on logarithmic axes."""
    name = "Root mean squared error against predicted standard deviation, log axes."
    title = _spread_title(section, significant=significant)
    least, most = (f"{fixed(b.error.value / b.predicted, 2)} times" for b in (section.bins[0], section.bins[-1]))
    beyond = sum(not b.null[0] <= b.error.value <= b.null[1] for b in section.bins)
    text = (
        f"Errors are {least} the predicted spread where it is smallest and {most} where it is largest. "
        f"{beyond} of {len(section.bins)} points lie outside the range of a calibrated forecaster."
    )
    return Figure.of(partial(_spread, section), _SQUARE, name, title, text, _spread_table(section))


def _spread_title(section: Spread, *, significant: bool | None) -> str:
    """How large errors are where the predicted spread is smallest, or where they differ most from it."""
    clear = [b for b in section.bins if not b.null[0] <= b.error.value <= b.null[1]]
    if significant is None:
        return "Predicted spread and observed errors"
    if not significant:
        return "Errors agree with the predicted spread within chance"
    if not clear:
        return "The predicted spread is off, but at no size of it by a clear amount"
    first = section.bins[0]
    worst = first if first in clear else max(clear, key=lambda b: abs(b.error.value - b.predicted) / b.predicted)
    where = "is smallest" if worst is first else "is largest"
    if worst is not first and worst is not section.bins[-1]:
        where = f"is about {fixed(worst.predicted, _digits(worst))}"
    times = worst.error.value / worst.predicted
    return f"Where the predicted spread {where}, errors are {fixed(times, 2)} times as large"


def _spread_table(section: Spread) -> Table:
    """The bins of the predicted spread."""
    unit = f", {section.unit}" if section.unit else ""
    head = (f"Predicted spread{unit}", "Rows", "Root mean squared error", "95 % interval", "Calibrated forecaster")
    rows = []
    for b in section.bins:
        digits = _digits(b)
        low, high = b.error.low, b.error.high
        ends = "" if low is None or high is None else f"{fixed(low, digits)} to {fixed(high, digits)}"
        null = f"{fixed(b.null[0], digits)} to {fixed(b.null[1], digits)}"
        rows.append((fixed(b.predicted, digits), count(b.n), fixed(b.error.value, digits), ends, null))
    return Table("Spread and error", head, tuple(rows))


def _digits(b: SpreadBin) -> int:
    """Decimals of a spread and of the errors beside it: three significant digits."""
    return decimals_of(b.predicted, 3)


def _spread(section: Spread, width: float) -> Canvas:
    bins = section.bins
    values = [v for b in bins for v in (b.predicted, *numbers_of([b.error]), *b.null) if v]
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
        digits = _digits(b)
        words = f"Predicted spread {fixed(b.predicted, digits)}\nRMSE {fixed(b.error.value, digits)}"
        if b.error.low is not None and b.error.high is not None:
            words += f" ({fixed(b.error.low, digits)} to {fixed(b.error.high, digits)})"
        canvas.marker(b.predicted, b.error, f"{words}\n{count(b.n)} forecasts")
    return canvas


def coverage_figure(section: Spread) -> Figure:
    """Observed against nominal coverage; the title says what the widest usual interval holds."""
    name, chosen = "Observed against nominal coverage of central intervals.", _usual(section)
    title = f"{score(chosen.nominal)} intervals hold {rates(chosen.observed, chosen.nominal).with_ends(' %')}"
    gaps = [c.observed.value - c.nominal for c in section.coverage]
    where = "below" if max(gaps) < 0 else "above" if min(gaps) > 0 else "on both sides of"
    worst = max(section.coverage, key=lambda c: abs(c.observed.value - c.nominal))
    text = (
        f"Observed coverage lies {where} nominal coverage. The gap is largest at {score(worst.nominal)}: "
        f"{rates(worst.observed, worst.nominal).value} % of the outcomes are inside."
    )
    return Figure.of(partial(_coverage, section), _SQUARE, name, title, text, coverage_table(section))


def _usual(section: Spread) -> Coverage:
    return min(section.coverage, key=lambda c: abs(c.nominal - 0.9))


def _coverage(section: Spread, width: float) -> Canvas:
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
        words = f"{score(c.nominal)} intervals\nhold {rates(c.observed, c.nominal).with_ends(' %')}"
        canvas.add(hint(words, dot(canvas.x(c.nominal), canvas.y(c.observed.value), 9, "touch")))
    chosen = _usual(section)
    x, y = canvas.x(chosen.nominal), canvas.y(chosen.observed.value)
    canvas.line(x, canvas.y(chosen.nominal), x, y, "thr")
    canvas.add(dot(x, y, 5.5, "dotf"))
    return canvas


def pit_figure(section: Spread, *, significant: bool | None) -> Figure:
    """The histogram of F(y), relative to what is expected of each class."""
    name = "Histogram of F(y): where outcomes fall in their predicted distributions."
    title = _pit_title(section, significant=significant)
    expected = sum(section.pit) / len(section.pit)
    first, *inner, last = (rows / expected for rows in section.pit)
    text = (
        f"The two outer classes hold {fixed(first, 1)} and {fixed(last, 1)} times the expected number of outcomes, the "
        f"others {fixed(min(inner or [first]), 1)} to {fixed(max(inner or [first]), 1)} times."
    )
    return Figure.of(partial(_pit, section), _WHOLE, name, title, text)


def _pit_title(section: Spread, *, significant: bool | None) -> str:
    """Whether outcomes fall into the tails of their predicted distributions too often, too rarely, or on one side."""
    if significant is None:
        return "Where outcomes fall in their predicted distributions"
    low, high = section.pit_null
    first, last = section.pit[0], section.pit[-1]
    if first > high and last > high:
        return "Outcomes fall into the tails too often"
    if first < low and last < low:
        return "Outcomes fall into the tails too rarely"
    if first > high and last < low:
        return "Outcomes are lower than predicted too often"
    if last > high and first < low:
        return "Outcomes are higher than predicted too often"
    beyond = sum(not low <= rows <= high for rows in section.pit)
    if beyond > max(1, len(section.pit) // 10):
        return "Outcomes fall unevenly into their predicted distributions"
    return "Outcomes fall evenly into their predicted distributions, within chance"


def _pit(section: Spread, width: float) -> Canvas:
    classes = len(section.pit)
    expected = sum(section.pit) / classes
    shares = [rows / expected for rows in section.pit]
    low, high = (end / expected for end in section.pit_null)
    top = 1.12 * max(*shares, high)
    canvas = Canvas(width, 190, (44, 12, 8, 40), Scale(0.0, 1.0), Scale(0.0, top))
    canvas.y_ticks(plain_tick, most=5)
    words = "Predicted probability of a lower outcome, F(y)" if width > ROOMY else "F(y)"
    canvas.x_ticks(plain_tick, words, most=5, grid=False)
    base, step = canvas.y(0), canvas.plot_width / classes
    for k, share in enumerate(shares):
        y = canvas.y(share)
        bar = tag("rect", x=canvas.x(k / classes) + 1, y=y, width=step - 2, height=base - y, class_="barm pale")
        about = f"F(y) {k / classes:.2f} to {(k + 1) / classes:.2f}\n{count(section.pit[k])} forecasts"
        canvas.add(hint(f"{about}, {count(expected)} expected", bar))
    canvas.area([0.0, 1.0], [low] * 2, [high] * 2, "nullband")
    canvas.line(canvas.left, canvas.y(1), canvas.right, canvas.y(1), "ref")
    return canvas


def net_benefit_figure(section: NetBenefit) -> Figure:
    """The decision curve around the user's threshold, beside treating everyone and no one."""
    name = "Net benefit of acting on the predictions, against the threshold."
    found, at = points(section.values[section.own]), score(section.at)
    title = f"At a threshold of {at}, acting on the predictions is worth {found.value} true positives per 100 rows"
    everyone = treat_all(section, section.own)
    text = f"At {at} the net benefit is {found.value} ({found.ends}); that of treating everyone is {everyone}."
    return Figure.of(partial(_net_benefit, section), _WHOLE, name, title, text, net_benefit_table(section))


def _net_benefit(section: NetBenefit, width: float) -> Canvas:
    values, across = [one.value for one in section.values], section.thresholds
    ends = numbers_of(section.values)
    top, least = max(ends), min(*ends, 0.0)
    up = Scale(least - 0.1 * (top - least), 1.06 * top if top > 0 else 0.001)
    canvas = _with_band(width, 300 if width > ROOMY else 260, across, section.values, up, "Threshold", most=6)
    canvas.line(canvas.left, canvas.y(0), canvas.right, canvas.y(0), "ref")
    canvas.curve(across, section.treat_all, "thr")
    canvas.curve(across, values, "curve")
    x = canvas.x(section.at)
    canvas.line(x, canvas.top, x, canvas.bottom, "thr")
    canvas.add(dot(x, canvas.y(values[section.own]), 6, "dotf"))
    for k, (at, one) in enumerate(zip(across, section.values, strict=True)):
        words = f"threshold {score(at)}\nnet benefit {points(one).with_ends()} per 100 rows"
        words += f"\ntreating everyone {treat_all(section, k)}"
        canvas.add(hint(words, dot(canvas.x(at), canvas.y(one.value), 12, "touch")))
    if canvas.roomy:
        canvas.text(0, 10, "per 100 rows", "t")
    return canvas


def _with_band(
    width: float, height: float, across: Sequence[float], values: Sequence[Value], up: Scale, title: str, *, most: int
) -> Canvas:
    """Axes in points and percent, and the intervals as a band; a value itself where its interval is not known."""
    canvas = Canvas(width, height, (46, 22, 14, 46), covering(across, "linear", pad=0.0), up)
    canvas.y_ticks(lambda v: plain_tick(100 * v), most=most)
    canvas.x_ticks(title=title, most=8 if canvas.roomy else 4, grid=False)
    low = [one.value if one.low is None else one.low for one in values]
    high = [one.value if one.high is None else one.high for one in values]
    canvas.area(across, low, high, "confband")
    return canvas


def shares_figure(section: Shares) -> Figure:
    """The error at every assumed share; the title says whether one of them would make predictions calibrated."""
    name, priors = "Calibration error against the assumed share of positives.", section.priors
    both = list(zip(priors, section.errors, strict=True))
    zero = [prior for prior, error in both if error.low is not None and error.low <= 0]
    between = span(priors[0], priors[-1], word="and")
    title = f"No share between {between} makes these probabilities calibrated, if labels are at random"
    if zero:
        title = f"For shares from {span(zero[0], zero[-1])} the interval includes 0"
    (least, smallest), (most, largest) = (some(both, key=lambda pair: pair[1].value) for some in (min, max))
    text = (
        f"The error is smallest, {points(smallest).points}, at a share of {score(least)}, and largest, "
        f"{points(largest).points}, at {score(most)}."
    )
    return Figure.of(partial(_errors, section), _WHOLE, name, title, text, shares_table(section))


def _errors(section: Shares, width: float) -> Canvas:
    roomy = width > ROOMY
    up = Scale(0.0, 1.06 * max(*numbers_of(section.errors), 1e-6))
    title = "Assumed share of positives among the unlabeled"
    canvas = _with_band(width, 320 if roomy else 270, section.priors, section.errors, up, title, most=7)
    values = [e.value for e in section.errors]
    canvas.curve(section.priors, values, "curve")
    if canvas.across.holds(section.prior):
        _assumed(canvas, section)
    for prior, error in zip(section.priors, section.errors, strict=True):
        found = points(error)
        words = f"share {score(prior)}\nerror {found.points} ({found.ends})"
        canvas.add(hint(words, dot(canvas.x(prior), canvas.y(error.value), 12, "touch")))
    if roomy:
        canvas.text(0, 10, "percentage points", "t")
    return canvas


def _assumed(canvas: Canvas, section: Shares) -> None:
    nearest = min(range(len(section.priors)), key=lambda k: abs(section.priors[k] - section.prior))
    error = section.errors[nearest]
    x, y = canvas.x(section.prior), canvas.y(error.value)
    canvas.line(x, canvas.top, x, canvas.bottom, "thr")
    canvas.add(dot(x, y, 6, "dotf"))
    if canvas.roomy:
        found = points(error)
        far = x > canvas.left + 0.75 * canvas.plot_width
        assumed, place = f"assumed: {score(section.prior)}", x - 10 if far else x + 10
        canvas.text(place, canvas.top + 14, assumed, "t halo", "end" if far else "start")
        words = f"{found.points}{found.brackets()}"
        curve = [(canvas.x(p), canvas.y(e.value)) for p, e in zip(section.priors, section.errors, strict=True)]
        blocked = [*near(dense(curve), 3), Box(x - 3, canvas.top, x + 3, canvas.bottom)]
        canvas.name(words, [(x, y)], blocked, "m halo")


def implied_figure(section: Shares, *, significant: bool | None) -> Figure:
    """The share of positives that the labelled ones imply, against the prediction; square, log-odds axes."""
    name = "Implied share of positives against predicted probability, log-odds axes."
    title = _implied_title(section, significant=significant)
    above = sum(b.observed.value > b.predicted for b in section.implied)
    worst = max(section.implied, key=lambda b: abs(b.observed.value - b.predicted))
    text = (
        f"The implied share lies above the prediction in {above} of {len(section.implied)} bins. The gap is largest at "
        f"{score(worst.predicted)} predicted: {observed_share(worst)[0]} implied."
    )
    rows = [(score(b.predicted), *observed_share(b)) for b in section.implied]
    table = Table("Implied shares", ("Predicted", "Implied", "95 % interval"), tuple(rows))
    return Figure.of(partial(_implied, section), 520, name, title, text, table)


def _implied_title(section: Shares, *, significant: bool | None) -> str:
    """In which direction the implied shares differ from the predictions, given the assumed share."""
    given = f"if {score(section.prior)} are positive"
    if significant is None:
        return f"Predicted and implied shares, {given}"
    clear = [b for b in section.implied if b.off]
    if not significant or not clear:
        return f"The implied shares agree with the predictions within chance, {given}"
    low = [b for b in clear if b.observed.value > b.predicted]
    if len(low) in (0, len(clear)):
        everywhere = "over the whole range" if len(clear) == len(section.implied) else "over part of the range"
        return f"Predictions are too {'low' if low else 'high'} {everywhere}, {given}"
    return f"Predictions are too low for some scores and too high for others, {given}"


def _implied(section: Shares, width: float) -> Canvas:
    scale = diagram_scale(section.implied, "log odds")
    canvas = square(width, scale)
    probability_axes(canvas, "Predicted probability")
    canvas.corners(("Too low", "more positives than predicted"), ("Too high", "fewer positives than predicted"))
    diagonal(canvas)
    if len(section.implied) > 1:
        canvas.curve([b.predicted for b in section.implied], [b.observed.value for b in section.implied], "curve")
    for b in section.implied:
        value, ends = observed_share(b)
        words = f"Predicted {score(b.predicted)}\nimplied share of positives {value}"
        canvas.marker(b.predicted, b.observed, words + (f" ({ends})" if ends else ""))
    return canvas


#: Ratios beyond these are drawn at the edge.
#: Test: tests/reporting/drawing/test_task_figures_over_time.py::test_ratios_far_from_one_are_drawn_at_the_edge.
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
