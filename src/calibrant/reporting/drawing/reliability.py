"""Square diagrams of probabilities (reliability, before and after recalibration), and ECE by number of bins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from calibrant.plot.scales import Scale, evenly, probability_scale
from calibrant.reporting.contents import Axis, Band, Bin, BinCounts, Curve, Facts, Reliability
from calibrant.reporting.drawing import canvas as drawing
from calibrant.reporting.drawing.descriptions import observed_share, range_name, runs, score_range
from calibrant.reporting.drawing.markup import number, tag
from calibrant.reporting.names import listed, plural
from calibrant.reporting.rounding import count, points, score
from calibrant.reporting.text import Table
from calibrant.results.estimate import Value


def square(width: float, scale: Scale, *, above: float = 14.0) -> drawing.Canvas:
    """A canvas whose plotting area is a square, with the same axis in both directions."""
    left, right, bottom = (56.0 if width > drawing.ROOMY else 48.0), 8.0, 46.0
    side = width - left - right
    return drawing.Canvas(width, above + side + bottom, (left, above, right, bottom), scale, scale)


def probability_axes(canvas: drawing.Canvas, across: str) -> None:
    """Ticks in percent on both axes, and the frame."""
    most = 8 if canvas.roomy else 5
    canvas.x_ticks(drawing.percent_tick, across, most=most)
    canvas.y_ticks(drawing.percent_tick, most=most)
    canvas.frame()


def diagonal(canvas: drawing.Canvas) -> None:
    """The line of perfect calibration."""
    canvas.line(canvas.left, canvas.bottom, canvas.right, canvas.top, "ref")


def diagram_scale(bins: Sequence[Bin], axis: Axis) -> Scale:
    """An axis for predicted and observed probabilities alike, so that the diagram is square."""
    if axis == "linear":
        return probability_scale([max(b.predicted, b.observed.high or b.observed.value) for b in bins], log_odds=False)
    return probability_scale([p for b in bins for p in (b.predicted, b.observed.value)], log_odds=True)


def curve_points(curve: Curve) -> list[tuple[float, float]]:
    """The corners of the isotonic curve: each block is level, neighbours are joined by a straight line."""
    corners: list[tuple[float, float]] = []
    for low, high, rate_ in zip(curve.low, curve.high, curve.rate, strict=True):
        corners.append((low, rate_))
        if high > low:
            corners.append((high, rate_))
    return corners


def write_along_the_diagonal(canvas: drawing.Canvas, words: str, blocked: Sequence[drawing.Box]) -> list[drawing.Box]:
    """Write words along the diagonal where they cover least; what they cover."""
    reach = drawing.text_width(words) / 2 * math.sqrt(0.5)
    best: tuple[int, float, float, list[drawing.Box]] | None = None
    for share in (0.72, 0.8, 0.62, 0.5, 0.88, 0.38, 0.28, 0.2):
        for side in (-5, 11):  # above the line, or below it
            x, y = canvas.left + share * canvas.plot_width + side, canvas.bottom - share * canvas.plot_height + side
            steps = [reach * k / 5 for k in range(-5, 6)]
            own = [drawing.Box(x + step - 7, y - step - 9, x + step + 5, y - step + 4) for step in steps]
            cost = sum(one.meets(other) for one in own for other in blocked)
            if canvas.inside.holds(own[0]) and canvas.inside.holds(own[-1]) and (best is None or cost < best[0]):
                best = (cost, x, y, own)
    if best is None:
        return []
    shift = f"translate({number(best[1])},{number(best[2])}) rotate(-45)"
    canvas.add(tag("text", words, class_="halo", text_anchor="middle", transform=shift))
    return best[3]


def near(points: Iterable[tuple[float, float]], reach: float) -> list[drawing.Box]:
    """Boxes around places, which labels must not cover."""
    return [drawing.Box(x - reach, y - reach, x + reach, y + reach) for x, y in points]


def on_the_diagonal(canvas: drawing.Canvas) -> list[drawing.Box]:
    """Boxes along the diagonal, which labels must not cover."""
    return near(((canvas.x(p), canvas.y(p)) for p in evenly(canvas.across, 60)), 4)


#: Width of the diagram, space above it for the histogram, and its height.
#: Test: tests/reporting/layout/test_page.py::test_figures_are_drawn_as_before.
_WIDE, _ABOVE, _BARS = 548, 78.0, 46.0


@dataclass(frozen=True)
class Wording:
    """What the axes, the curve and the two free corners are called."""

    across: str
    curve: str
    above: tuple[str, str]
    below: tuple[str, str]


PROBABILITIES = Wording(
    "Predicted probability",
    "observed (CORP)",
    ("Too low", "more events than predicted"),
    ("Too high", "fewer events than predicted"),
)
CONFIDENCE = Wording(
    "Confidence in the predicted class",
    "observed accuracy",
    ("Under-confident", "right more often than predicted"),
    ("Over-confident", "right less often than predicted"),
)
ANSWERS = replace(CONFIDENCE, across="Confidence")


def reliability_figure(
    section: Reliability, facts: Facts, axis: Axis, *, significant: bool | None, wording: Wording = PROBABILITIES
) -> drawing.Figure:
    """The diagram of a section on one of its axes."""
    scale, confidence = diagram_scale(section.bins[axis], axis), wording is not PROBABILITIES
    draw = partial(_diagram, section, facts, axis, scale, wording)
    name = f"Reliability diagram: observed frequency against {wording.across.lower()}, {axis} axes."
    title = reliability_title(section, significant=significant, confidence=confidence)
    text = reliability_text(section, confidence=confidence)
    return drawing.Figure.of(draw, _WIDE, name, title, text, _bin_table(section.bins[axis]))


def reliability_title(section: Reliability, *, significant: bool | None, confidence: bool = False) -> str:
    """The range with most of the error; a direction only where the test rejects, none where it could not be judged."""
    if significant is None:
        return f"Predicted and observed {'accuracy' if confidence else 'frequencies'}"
    if not significant:
        agree = "accuracy agrees with the confidence" if confidence else "frequencies agree with the predictions"
        return f"The observed {agree} within chance"
    ranges = section.ranges or section.bins[section.axis]
    clear = [b for b in ranges if b.off]
    if not clear:
        return "The predictions are off, but at no range of scores by a clear amount"
    worst = max(clear, key=lambda b: b.n * abs(b.predicted - b.observed.value) if b.share is None else b.share)
    too_high = worst.predicted > worst.observed.value
    where = range_name(worst, ranges, of="of ")
    numbers = f"{score(worst.predicted)} predicted, {observed_share(worst)[0]}"
    if confidence:
        return f"Confidence {where} {'exceeds' if too_high else 'falls short of'} accuracy: {numbers} right"
    return f"Scores {where} {'overstate' if too_high else 'understate'} the risk: {numbers} observed"


def reliability_text(section: Reliability, *, confidence: bool = False) -> str:
    """How the curve lies to the diagonal, range by range, and the numbers where most of the error sits."""
    what = "accuracy" if confidence else "frequency"
    parts = section.ranges or section.bins[section.axis]
    words = {
        "above": "lies above the prediction",
        "below": "lies below the prediction",
        "within chance": "agrees with the prediction within chance",
    }
    found = runs(parts)
    said = [f"{words[kind]} {score_range(low, high, of='from ')}" for kind, low, high in found[:5]]
    if len(found) == 1:
        text = f"The observed {what} {words[found[0][0]]} in every range."
    else:
        text = f"The observed {what} {listed(said)}." if said else ""
    clear = [b for b in parts if b.off]
    if clear:
        worst = max(clear, key=lambda b: b.n * abs(b.predicted - b.observed.value))
        at = f"At scores {range_name(worst, parts, of='of ')}"
        text += f" {at}: {score(worst.predicted)} predicted, {observed_share(worst)[0]} observed."
    return text


def _bin_table(bins: Sequence[Bin]) -> Table:
    """The bins of a diagram."""
    head = ("Predicted", "Rows", "Events", "Mean predicted", "Observed", "95 % interval")
    rows = [
        (f"{score(b.low)} to {score(b.high)}", count(b.n), count(b.events), score(b.predicted), *observed_share(b))
        for b in bins
    ]
    return Table("Bins", head, rows)


def _diagram(
    section: Reliability, facts: Facts, axis: Axis, scale: Scale, wording: Wording, width: float
) -> drawing.Canvas:
    canvas = square(width, scale, above=_ABOVE)
    probability_axes(canvas, wording.across)
    _histogram(canvas, section.histogram[axis], facts)
    if section.curve.confidence is not None:
        canvas.band(section.curve.confidence, "confband")
    if section.consistency is not None:
        canvas.band(section.consistency, "nullband")
    diagonal(canvas)
    if section.threshold is not None:
        _threshold(canvas, section.threshold.at)
    canvas.corners(wording.above, wording.below)
    corners = curve_points(section.curve)
    canvas.path([(canvas.x(a), canvas.y(b)) for a, b in corners], "curve")
    boxes = _dots(canvas, section.bins[axis], facts)
    if section.threshold is not None and canvas.across.holds(section.threshold.at):
        x = canvas.x(section.threshold.at)
        boxes.append(drawing.Box(x - 2, canvas.top, x + 2, canvas.bottom))
    if canvas.roomy:
        _labels(canvas, corners, boxes, wording)
    return canvas


def _histogram(canvas: drawing.Canvas, bars: Sequence[tuple[float, float, float]], facts: Facts) -> None:
    shown = [bar for bar in bars if bar[2] > 0 and bar[1] > canvas.across.low and bar[0] < canvas.across.high]
    most = max((rows for _, _, rows in shown), default=1.0)
    base = canvas.top - 12
    for low, high, rows in shown:
        left, right = canvas.x(canvas.across.within(low)), canvas.x(canvas.across.within(high))
        height = max(1.0, _BARS * rows / most)
        bar = tag("rect", x=left + 0.5, y=base - height, width=max(right - left - 1, 0.6), height=height, class_="bar")
        canvas.add(drawing.hint(f"{score(low)} to {score(high)}\n{count(rows)} {plural(facts.row, rows)}", bar))
    canvas.line(canvas.left, base, canvas.right, base, "axis soft")
    words = "How often each probability was predicted" if canvas.roomy else "How often predicted"
    canvas.text(canvas.left, canvas.top - 64, words)


def _threshold(canvas: drawing.Canvas, at: float) -> None:
    if not canvas.across.holds(at):
        return
    x, words = canvas.x(at), f"threshold {score(at)}"
    canvas.line(x, canvas.top, x, canvas.bottom, "thr")
    share = (x - canvas.left) / canvas.plot_width
    if 0.35 < share < 0.6 or (share >= 0.6 and not canvas.roomy):
        canvas.text(x - 6, canvas.bottom - 9, words, "t halo", "end")
    elif share >= 0.6:  # the lower corner has its own words
        canvas.text(x - 6, canvas.top + 16, words, "t halo", "end")
    else:
        canvas.text(x + 6, canvas.top + 0.3 * canvas.plot_height, words, "t halo")


def _dots(canvas: drawing.Canvas, bins: Sequence[Bin], facts: Facts) -> list[drawing.Box]:
    shown = [b for b in bins if canvas.across.holds(b.predicted)]
    most = max((b.n for b in shown), default=1.0)
    largest = 9 if canvas.roomy else 6
    boxes: list[drawing.Box] = []
    for b in shown:
        radius = 2.5 + largest * math.sqrt(b.n / most)
        boxes += canvas.marker(b.predicted, b.observed, bin_hint(b, facts), radius=radius)
    return boxes


def bin_hint(b: Bin, facts: Facts) -> str:
    """Three lines: range and mean, observed with interval, rows and events."""
    value, ends = observed_share(b)
    return (
        f"Predicted {score(b.low)} to {score(b.high)}: mean {score(b.predicted)}\n"
        f"Observed {value}{f' ({ends})' if ends else ''}\n"
        f"{count(b.n)} {plural(facts.row, b.n)}, {count(b.events)} {plural(facts.event, b.events, kind='event')}"
    )


def _labels(
    canvas: drawing.Canvas, corners: Sequence[tuple[float, float]], boxes: list[drawing.Box], wording: Wording
) -> None:
    """The names of the diagonal and of the curve, where they cover least."""
    line = [(canvas.x(a), canvas.y(b)) for a, b in corners]
    blocked = [
        *boxes,
        *near(dense(line), 3),
        drawing.Box(canvas.left, canvas.top, canvas.left + 190, canvas.top + 46),
        drawing.Box(canvas.right - 190, canvas.bottom - 46, canvas.right, canvas.bottom),
    ]
    blocked += write_along_the_diagonal(canvas, "perfect calibration", blocked)
    blocked += on_the_diagonal(canvas)
    right_half = [p for p in line if p[0] > canvas.left + 0.35 * canvas.plot_width] or line
    canvas.name(wording.curve, right_half, blocked, "m halo")


def before_after_figure(before: Curve, after: Curve, bins: Sequence[Bin], axis: Axis, name: str) -> drawing.Figure:
    """The curves before and after recalibration, with the confidence band of the second."""
    scale = diagram_scale(bins, axis)
    corners = curve_points(after)
    largest = max([c for c in corners if scale.holds(c[0])] or corners, key=lambda corner: abs(corner[1] - corner[0]))
    text = (
        f"Two rising curves of observed against predicted frequency. After recalibration the curve is farthest from "
        f"the diagonal at {score(largest[0])} predicted, with {score(largest[1])} observed."
    )
    draw = partial(_before_after, before, after, scale)
    return drawing.Figure.of(draw, 384, f"Reliability before and after {name}.", f"Before and after {name}", text)


def _before_after(before: Curve, after: Curve, scale: Scale, width: float) -> drawing.Canvas:
    lines = [
        (curve_points(before), "curve", "dotf", "before", "m halo"),
        (curve_points(after), "curve2", "dota", "after", "a halo"),
    ]
    return named_curves(width, scale, lines, after.confidence)


def named_curves(
    width: float,
    scale: Scale,
    named: Sequence[tuple[Sequence[tuple[float, float]], str, str, str, str]],
    band: Band | None = None,
) -> drawing.Canvas:
    """Curves of observed frequencies by their points, style, style of a single point, name, and the name's style."""
    canvas = square(width, scale, above=24.0)
    canvas.text(0, 12, "Observed frequency", "t")
    probability_axes(canvas, "Predicted probability")
    if band is not None:
        canvas.band(band, "afterband")
    diagonal(canvas)
    blocked = on_the_diagonal(canvas)
    lines = [[(canvas.x(a), canvas.y(b)) for a, b in points] for points, *_ in named]
    for line, (_, kind, single, _, _) in zip(lines, named, strict=True):
        canvas.path(line, kind)
        if len(line) == 1 and single:
            canvas.add(drawing.dot(*line[0], 4.5, single))
        blocked += near(dense(line), 3)
    for line, (*_, words, style) in zip(lines, named, strict=True):
        canvas.name(words, line, blocked, style)
    return canvas


def bin_counts_figure(section: BinCounts, error: Value | None) -> drawing.Figure:
    """Both binnings, the range of a calibrated model, and the calibration error that needs no bins."""
    draw, name = partial(_bin_count_chart, section, error), "Plain ECE in percentage points against the number of bins."
    title = "The plain ECE depends on how many bins you choose"
    usual = min(range(len(section.counts)), key=lambda k: abs(section.counts[k] - 15))
    last = len(section.counts) - 1
    first, middle, end = (_ece(section.equal_mass[k]) for k in (0, usual, last))
    null = [f"{_ece(section.null_low[k])} to {_ece(section.null_high[k])}" for k in (usual, last)]
    bins = [f"{section.counts[k]:,}" for k in (0, usual, last)]
    text = (
        f"With equal-mass bins the ECE is {first} points at {bins[0]} bins, {middle} at {bins[1]} and {end} at "
        f"{bins[2]}. A calibrated model of this size would show {null[0]} points at {bins[1]} bins and {null[1]} at "
        f"{bins[2]}."
    )
    head = ("Bins", "ECE, equal mass", "ECE, equal width", "Calibrated model, 90 %")
    rows = [
        (f"{n:,}", _ece(mass), _ece(width), f"{_ece(low)} to {_ece(high)}")
        for n, mass, width, low, high in _bin_count_rows(section)
    ]
    return drawing.Figure.of(draw, 1040, name, title, text, Table("Plain ECE in points", head, rows))


def _ece(share: float) -> str:
    return points(Value(share)).value


def _bin_count_rows(s: BinCounts) -> Iterable[tuple[float, float, float, float, float]]:
    return zip(s.counts, s.equal_mass, s.equal_width, s.null_low, s.null_high, strict=True)


def _bin_count_chart(section: BinCounts, error: Value | None, width: float) -> drawing.Canvas:
    roomy = width > drawing.ROOMY
    margins = (46, 24 if roomy else 12, 14, 44)
    first, last = section.counts[0], section.counts[-1]
    heights = [*section.equal_mass, *section.equal_width, *section.null_high]
    heights += [error.high or error.value] if error is not None else []
    top = 1.06 * max([h for h in heights if math.isfinite(h)] or [1.0])
    scale = Scale(float(first), float(max(last, first + 1)), "log")
    canvas = drawing.Canvas(width, 310 if roomy else 260, margins, scale, Scale(0.0, max(top, 1e-9)))
    canvas.y_ticks(lambda v: drawing.plain_tick(100 * v), most=6)
    canvas.x_ticks(drawing.plain_tick, "number of bins", most=9 if roomy else 5, grid=False)
    canvas.area(section.counts, section.null_low, section.null_high, "nullband")
    if error is not None:
        if error.low is not None and error.high is not None:
            ends = [canvas.across.low, canvas.across.high]
            canvas.area(ends, [error.low] * 2, [error.high] * 2, "afterband")
        y = canvas.y(error.value)
        canvas.line(canvas.left, y, canvas.right, y, "curve2")
    canvas.curve(section.counts, section.equal_width, "curve3")
    canvas.curve(section.counts, section.equal_mass, "curve")
    for bins, mass, equal_width, low, high in _bin_count_rows(section):
        x, y = canvas.x(bins), canvas.y(mass)
        words = f"{bins:,} bins\nECE, equal mass {_ece(mass)}\nECE, equal width {_ece(equal_width)}\n"
        words += f"calibrated model {_ece(low)} to {_ece(high)}"
        canvas.add(drawing.hint(words, drawing.dot(x, y, 3.4, "dotf"), drawing.dot(x, y, 10, "touch")))
    if roomy:
        canvas.text(0, 10, "percentage points", "t")
        _bin_count_labels(canvas, section, error)
    return canvas


def _bin_count_labels(canvas: drawing.Canvas, section: BinCounts, error: Value | None) -> None:
    blocked: list[drawing.Box] = []
    lines = {}
    for name in ("equal_mass", "equal_width", "null_high", "null_low"):
        values = zip(section.counts, getattr(section, name), strict=True)
        lines[name] = dense([(canvas.x(n), canvas.y(v)) for n, v in values])
        blocked += near(lines[name], 4)
    if error is not None:
        y = canvas.y(error.value)
        found = points(error)
        words = f"calibration error {found.with_ends()}"
        canvas.text(canvas.left + 8, y - 7, words, "a halo")
        blocked += [
            drawing.Box.of_text(canvas.left + 8, y - 7, words),
            drawing.Box(canvas.left, y - 2, canvas.right, y + 2),
        ]
    right_half = [p for p in lines["equal_mass"] if p[0] > canvas.left + 0.3 * canvas.plot_width]
    inside = drawing.Box(canvas.left + 4, canvas.top, canvas.right, canvas.bottom - 4)
    canvas.name("plain ECE, equal mass", right_half, blocked, "m halo", inside)
    lower = lines["null_low"][len(lines["null_low"]) // 2 :]
    canvas.name("grey: what a perfectly calibrated model would show", lower, blocked, "halo", inside)


def dense(line: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The corners and places between them, near enough to test whether a label covers the line."""
    found = []
    for (x1, y1), (x2, y2) in pairwise(line):
        found += [(x1 + (x2 - x1) * k / 8, y1 + (y2 - y1) * k / 8) for k in range(8)]
    return [*found, line[-1]]
