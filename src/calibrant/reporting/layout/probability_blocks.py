"""Blocks on predicted probabilities: the diagram, recalibration, and the plain ECE against the number of bins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from calibrant.reporting.contents import BinCounts, Contents, Recalibration, Reliability
from calibrant.reporting.drawing.before_after import before_after_figure
from calibrant.reporting.drawing.bin_counts import bin_counts_figure
from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.drawing.reliability import CONFIDENCE, PROBABILITIES, reliability_figure
from calibrant.reporting.drawing.titles import recalibration_title
from calibrant.reporting.layout.elements import Block, as_text, callout, code_box, drawn, rejected
from calibrant.reporting.layout.keys import confidence_key, probability_key
from calibrant.reporting.layout.tables import map_table, range_table, threshold_table
from calibrant.reporting.names import map_in_sentence, plural
from calibrant.reporting.rounding import bound, count, percent, points, score


def reliability_block(section: Reliability, contents: Contents) -> Iterator[Block]:
    """The diagram on both axes, its key, where the error sits, and the decision threshold."""
    confidence = contents.kind in ("top label", "classes")
    wording, significant = CONFIDENCE if confidence else PROBABILITIES, rejected(contents)
    axes = [axis for axis in (section.axis, "log odds", "linear") if axis in section.bins]
    axes = list(dict.fromkeys(axes))
    figures = {
        a: reliability_figure(section, contents.facts, a, significant=significant, wording=wording) for a in axes
    }
    shown = figures[axes[0]]
    pictures: list[Child] = [drawn(shown)]
    if len(axes) > 1:
        styles = {"log odds": "on-logit", "linear": "on-linear"}
        pictures = [_axis_switch(axes), *(tag("div", drawn(f), class_=styles[a]) for a, f in figures.items())]
    row, event = contents.facts.row, contents.facts.event
    side: list[Child] = [confidence_key(row) if confidence else probability_key(row, event)]
    if section.ranges:
        side += [tag("p", "Where the error sits", class_="label gap"), range_table(section.ranges)]
    threshold = section.threshold
    if threshold is not None and (threshold.around is not None or threshold.above is not None):
        words = f"At the decision threshold of {score(threshold.at)}"
        side += [tag("p", words, class_="label gap"), threshold_table(threshold)]
    figure = tag("figure", *pictures, as_text(shown), class_="pick")
    rows = f"{count(contents.facts.rows)} {plural(contents.facts.row, contents.facts.rows)}"
    lead = f"Predicted against observed, all {rows}."
    if confidence:
        lead = f"Confidence in the predicted class against how often it was right, all {rows}."
    body = tag("div", figure, tag("div", *side), class_="cols")
    yield Block("diagram", "Top label" if confidence else "Reliability", shown.title, lead, body)


def _axis_switch(axes: Sequence[str]) -> Markup:
    """Two radio buttons; the style sheet does the rest."""
    options = []
    for axis in ("log odds", "linear"):
        value = "logit" if axis == "log odds" else "linear"
        chosen = axis == axes[0]
        options.append(
            tag("label", tag("input", type="radio", name="axis", value=value, checked=chosen), tag("span", axis))
        )
    words = tag("span", "Axis", aria_hidden="true")
    return tag(
        "fieldset", tag("legend", "Axis", class_="vh"), words, tag("div", *options, class_="seg"), class_="switch"
    )


def recalibration_block(section: Recalibration, contents: Contents) -> Iterator[Block]:
    """The curve before and after, the maps compared, and how to apply the best."""
    body: list[Child] = []
    table: list[Child] = [tag("p", f"Maps compared on all {plural(contents.facts.row)}", class_="label")]
    table.append(map_table(section) if section.maps else tag("p", "No map could be fitted.", class_="lead"))
    recent = section.recent
    if recent is not None:
        table.append(callout("Fit on recent rows.", _recent_words(section, contents)))
    picture = _before_after(section, contents)
    body.append(tag("div", picture, tag("div", *table), class_="cols rec") if picture else tag("div", *table))
    boxes = [
        code_box(name, text) for name, text in (("Command line", section.command), ("Python", section.code)) if text
    ]
    if boxes:
        body.append(tag("div", *(tag("div", box) for box in boxes), class_="cols even gap"))
    lead = "Cross-validated: every number is from rows the map was not fitted on. Intervals are 95 % intervals."
    title = recalibration_title(section, contents.facts.row)
    yield Block("recalibration", "Recalibration", title, lead, joined(body))


def _before_after(section: Recalibration, contents: Contents) -> Markup | None:
    diagram = next((s for s in contents.sections if isinstance(s, Reliability)), None)
    best = section.maps[0] if section.maps else None
    if section.after is None or diagram is None or best is None or not section.after.rate:
        return None
    name = map_in_sentence(best.name)
    figure = before_after_figure(diagram.curve, section.after, diagram.bins[diagram.axis], diagram.axis, name)
    note = "all rows, cross-validated; band: 95 % confidence after"
    return tag("figure", tag("figcaption", figure.title, tag("span", note)), drawn(figure), as_text(figure))


def _recent_words(section: Recalibration, contents: Contents) -> str:
    recent = section.recent
    assert recent is not None
    gain = percent(recent.gain)
    name = map_in_sentence(recent.name, start=True)
    words = f"{name} fitted and judged on {plural(contents.facts.row)} since the change "
    words += f"lowers {section.loss} there by {gain.value} % ({gain.ends} %)"
    low, high = recent.remaining.low, recent.remaining.high
    if low is not None and high is not None and low <= 0:
        return f"{words}; the remaining error is at most {bound(high)} points."
    left = points(recent.remaining)
    return f"{words}; an error of {left.value} points ({left.ends}) remains."


def bin_counts_block(section: BinCounts, contents: Contents) -> Iterator[Block]:
    """Why one plain ECE says little."""
    error = next((n.value for n in contents.numbers if n.unit == "points" and n.ideal == 0), None)
    figure = bin_counts_figure(section, error)
    lead = (
        "Same rows, same scores, in percentage points. Blue: plain ECE with equal-mass bins (dotted: equal width); it "
        "grows with the number of bins because noise adds up. Grey: what a perfectly calibrated model of this size "
        "would show."
    )
    if error is not None:
        lead += " Green: the calibration error and its interval, which need no bins."
    yield Block("one-number", "Why not just ECE", figure.title, lead, tag("figure", drawn(figure), as_text(figure)))
