"""One block of the page per section: its drawings, tables and words, and which of these a notebook shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from calibrant.plot.scales import Scale
from calibrant.reporting import contents as kinds
from calibrant.reporting.contents import Audited, Bin, Contents
from calibrant.reporting.drawing import descriptions, reliability, table_cells, task_figures
from calibrant.reporting.drawing.canvas import Canvas, Figure, text_width
from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.drawing.table_cells import FLAGGED, QUIET, Forest
from calibrant.reporting.drawing.task_figures import over_time_figure
from calibrant.reporting.layout import elements
from calibrant.reporting.layout.elements import Block, both_widths, pill, plain_table, quiet, text_fold, with_interval
from calibrant.reporting.names import listed, map_in_sentence, plural, shortened
from calibrant.reporting.rounding import bound, count, fixed, mapped, p_number, percent, points, score, value_column
from calibrant.reporting.text import Table, classes_shown, confidence_table, covered, judge_table, shown_groups
from calibrant.results.estimate import Value

#: Widths of the column of gaps at a desk and on a phone, and height of a bar with the gap below it.
#: Test: tests/reporting/layout/test_blocks_audit.py::test_the_blocks_are_drawn_as_before.
_WIDE, _NARROW, _BAR = 250, 128, 26


def audit_block(section: Audited, _: Contents | None = None) -> Iterator[Block]:
    """Where predictions are off, and which features tell."""
    if section.segments:
        yield _segments(section)
    else:
        lead = f"{section.sentence} No segment was confirmed on rows that were not used to find it."
        yield Block("where", "Where, for whom", "No segment is confirmed to be off", lead, joined([]))
    if section.features:
        yield _features(section)


def _segments(section: Audited) -> Block:
    rows = section.segments
    gaps = [mapped(one.observed, lambda end, one=one: 100 * (end - one.predicted)) for one in rows]  # type: ignore[misc]
    forest = Forest.of_differences(gaps)
    heads = (forest.head(_WIDE, "← predictions too high", "too low →"), forest.head(_NARROW, "← high", "low →"))
    name = tag("span", "Observed minus predicted, points", class_="vh")
    largest = max(one.share for one in rows)
    drawn = [
        both_widths(*(forest.cell(gap, FLAGGED, width=width, size=one.share / largest) for width in (_WIDE, _NARROW)))
        for one, gap in zip(rows, gaps, strict=True)
    ]
    observed = value_column([one.observed for one in rows], scale=100, least=1)
    cells = [
        (
            one.name,
            f"{fixed(100 * one.share, 1)} %",
            fixed(100 * one.predicted, 1),
            with_interval(seen, hide=True),
            picture,
            pill(one.direction, "bad"),
            p_number(one.adjusted),
        )
        for one, seen, picture in zip(rows, observed, drawn, strict=True)
    ]
    head: tuple[Child, ...] = (
        "Segment", "Share of rows", joined(["Predicted,", tag("br"), "%"]),
        joined(["Observed,", tag("br"), "%", quiet(" (95 % interval)", "hide")]), joined([name, both_widths(*heads)]),
        "Predictions are", "Adjusted p",
    )  # fmt: skip
    styles = ("name", "n hide", "n", "n nw", "g", "dir hide", "n hide")
    table = plain_table(head, cells, styles, "forest", row_styles=["hit"] * len(rows))
    title = f"{len(rows)} {'segment is' if len(rows) == 1 else 'segments are'} confirmed to be off"
    lead = (
        f"{section.sentence} Segments were found on one half of the rows; every number is from the other half. The gap "
        "is observed minus predicted, in points; marker area shows the share of rows. Segments may overlap."
    )
    said = (
        f"{one.name}: predicted {fixed(100 * one.predicted, 1)} %, observed {value} %, "
        f"{fixed(100 * one.share, 1)} % of rows"
        for one, (value, _) in zip(rows, observed, strict=True)
    )
    body = joined([tag("figure", table, text_fold("Figure as text", tag("p", "; ".join(said) + ".")))])
    return Block("where", "Where, for whom", title, lead, body, tag("div", table, class_="scroll"))


def _features(section: Audited) -> Block:
    rows = [(name, percent(value).with_ends(" %")) for name, value in section.features]
    table = Table("Features", ("Feature", "Rise of the log loss"), rows)
    text = (
        "By how much the log loss of held-out rows rises when one feature is shuffled, in percent. Correlated features "
        "share the credit arbitrarily."
    )
    title = f"Features that matter most: {listed([name for name, _ in rows[:3]])}"
    draw = partial(_bars, section.features)
    return Block.of("features", "Features", Figure.of(draw, 760, "Importance of features.", title, text, table), text)


def _bars(features: Sequence[tuple[str, Value]], width: float) -> Canvas:
    names = [shortened(name, 28) for name, _ in features]
    left = min(max(map(text_width, names)) + 12, width / 2)
    largest = max(value.value for _, value in features)
    canvas = Canvas(width, _BAR * len(features) + 8, (left, 4, 60, 4), Scale(0.0, largest), Scale(0.0, 1.0))
    for k, (name, (_, value)) in enumerate(zip(names, features, strict=True)):
        top = 4 + _BAR * k
        canvas.text(left - 8, top + 16, name, "", "end")
        end = max(canvas.x(value.value), canvas.left + 1)
        canvas.add(tag("rect", x=canvas.left, y=top + 5, width=end - canvas.left, height=14, class_="barm"))
        canvas.text(end + 6, top + 16, f"{percent(value).value} %")
    return canvas


def over_time_block(section: kinds.OverTime, contents: Contents) -> Iterator[Block]:
    """The periods in order, with the change."""
    spread, event = contents.kind == "regression", contents.facts.event
    what = "Root mean squared standardised error" if spread else _divided(event)
    lead = (
        f"{what} by {section.column.replace('_', ' ')}, with 95 % intervals. Filled red: significant, allowing for "
        f"{len(section.periods)} periods and the other tests. Grey: where a calibrated model would fall in 95 of 100 "
        "periods. To watch new outcomes as they arrive, use cal.Monitor."
    )
    left = elements.callout("Left out.", section.omitted) if section.omitted else None
    yield Block.of("time", "Over time", over_time_figure(section, event, spread=spread), lead, left)


def _divided(event: str) -> str:
    return f"Observed divided by expected {plural(event, kind='event')}"


def groups_block(section: kinds.Groups, contents: Contents) -> Iterator[Block]:
    """A table with a line per group; beyond a number of them, those not flagged are folded."""
    spread = contents.kind == "regression"
    noun = section.column.replace("_", " ")
    flagged = sum(row.flagged for row in section.rows)
    shown, others = shown_groups(section)
    table = elements.group_table(shown, section.column, spread=spread)
    parts: list[Child] = [table]
    if others:
        more = f"{count(len(others))} more {plural(noun, len(others), kind='group')}, not flagged"
        parts.append(elements.text_fold(more, elements.group_table(others, section.column, spread=spread)))
    parts.append(elements.text_fold("Figure as text", tag("p", descriptions.groups_text(section, spread=spread))))
    after: list[Child] = []
    if flagged and any(row.flagged_after is not None for row in section.rows):
        remaining = [row.name for row in section.rows if row.flagged_after]
        verb = "remains" if len(remaining) <= 1 else "remain"
        who = listed(remaining) if remaining else f"no {noun}"
        after.append(elements.callout("One map for all.", f"After the best map for all rows, {who} {verb} flagged."))
    if section.omitted:
        after.append(elements.callout("Left out.", section.omitted))
    tested = sum(row.judged for row in section.rows)
    held = covered(section.rows)
    of_spread = f"Coverage of {held} intervals" if held else "Error-to-spread ratio"
    lead = (
        f"{of_spread if spread else _divided(contents.facts.event)} by {noun}; marker area shows rows. "
        f"Red: miscalibrated, allowing for {tested} {plural(noun, tested, kind='group')} and the other tests "
        f"({flagged} of {len(section.rows)}). {section.search}"
    ).strip()
    name = plural(noun, kind="group").capitalize()
    title = descriptions.groups_title(section, contents.facts.event, spread=spread)
    body = joined([tag("figure", *parts), *after])
    yield Block("groups", name, title, lead, body, tag("div", table, class_="scroll"))


def classes_block(section: kinds.Classes, contents: Contents) -> Iterator[Block]:
    """Totals by class, then the strip of gaps by class and range of probability."""
    lead = "Observed divided by predicted frequency of each class; red: miscalibrated after adjustment for all classes."
    lead = f"{lead} {classes_shown(section)}".strip()
    table = elements.group_table(section.rows[: section.shown], "class", draws=section.draws)
    figure = tag("figure", table, elements.text_fold("Figure as text", tag("p", descriptions.classes_text(section))))
    verdict = contents.verdict
    off = verdict.state in ("not calibrated", "small") and verdict.rule not in ("MG", "MC")
    yield Block("classes", "Classes", descriptions.classes_title(section, rejected=off), lead, figure)
    if not table_cells.strip_columns(section):
        return
    cells = sum(cell[0] >= table_cells.FEWEST for row in section.cells for cell in row)
    about = (
        "Observed minus predicted, in percentage points, by class and predicted probability. Brown: too high. Blue: "
        f"too low. Bold: beyond chance, adjusted for {cells} cells. Dash: fewer than {table_cells.FEWEST} "
        f"{plural(contents.facts.row)}."
    )
    words = "Every number of the figure is printed in the table above; rows are classes, columns ranges of probability."
    table = table_cells.strip_table(section, contents.facts.row)
    strip = tag("figure", table, elements.text_fold("Figure as text", tag("p", words)))
    yield Block("strip", "By probability", table_cells.strip_title(section), about, strip, table)


def reliability_block(section: kinds.Reliability, contents: Contents) -> Iterator[Block]:
    """The diagram on both axes, its key, where the error sits, and the decision threshold."""
    confidence = contents.kind in ("top label", "classes")
    special = {"classes": reliability.CONFIDENCE, "top label": reliability.ANSWERS}
    wording = special.get(contents.kind, reliability.PROBABILITIES)
    significant = elements.rejected(contents)
    axes = list(dict.fromkeys(axis for axis in (section.axis, "log odds", "linear") if axis in section.bins))
    facts = contents.facts
    draw = partial(reliability.reliability_figure, section, facts, significant=significant, wording=wording)
    figures = {a: draw(a) for a in axes}
    shown = figures[axes[0]]
    pictures: list[Child] = [elements.drawn(shown)]
    if len(axes) > 1:
        styles = {"log odds": "on-logit", "linear": "on-linear"}
        pictures = [_axis_switch(axes), *(tag("div", elements.drawn(f), class_=styles[a]) for a, f in figures.items())]
    row, event = contents.facts.row, contents.facts.event
    side: list[Child] = [elements.confidence_key(row) if confidence else elements.probability_key(row, event)]
    if section.ranges:
        side += [tag("p", "Where the error sits", class_="label gap"), elements.range_table(section.ranges)]
    threshold = section.threshold
    if threshold is not None and (threshold.around is not None or threshold.above is not None):
        words = f"At the decision threshold of {score(threshold.at)}"
        side += [tag("p", words, class_="label gap"), elements.threshold_table(threshold)]
    figure = tag("figure", *pictures, elements.as_text(shown), class_="pick")
    rows = f"{count(contents.facts.rows)} {plural(contents.facts.row, contents.facts.rows)}"
    lead = f"Predicted against observed, all {rows}."
    if confidence:
        lead = f"{wording.across} against how often it was right, all {rows}."
    body = tag("div", figure, tag("div", *side), class_="cols")
    name = "Top label" if wording is reliability.CONFIDENCE else "Reliability"
    yield Block("diagram", name, shown.title, lead, body, tag("figure", elements.drawn(shown)))


def _axis_switch(axes: Sequence[str]) -> Markup:
    """Two radio buttons; the style sheet does the rest."""
    options = []
    for axis, value in (("log odds", "logit"), ("linear", "linear")):
        button = tag("input", type="radio", name="axis", value=value, checked=axis == axes[0])
        options.append(tag("label", button, tag("span", axis)))
    words, legend = tag("span", "Axis", aria_hidden="true"), tag("legend", "Axis", class_="vh")
    return tag("fieldset", legend, words, tag("div", *options, class_="seg"), class_="switch")


def recalibration_block(section: kinds.Recalibration, contents: Contents) -> Iterator[Block]:
    """The curve before and after, the maps compared, and how to apply the best."""
    body: list[Child] = []
    table: list[Child] = [tag("p", f"Maps compared on all {plural(contents.facts.row)}", class_="label")]
    table.append(elements.map_table(section) if section.maps else tag("p", "No map could be fitted.", class_="lead"))
    recent = section.recent
    if recent is not None:
        table.append(elements.callout("Fit on recent rows.", _recent_words(section, contents)))
    picture = _before_after(section, contents)
    body.append(tag("div", picture, tag("div", *table), class_="cols rec") if picture else tag("div", *table))
    codes = ("Command line", section.command), ("Python", section.code)
    boxes = [elements.code_box(name, text) for name, text in codes if text]
    if boxes:
        body.append(tag("div", *(tag("div", box) for box in boxes), class_="cols even gap"))
    lead = "Cross-validated: every number is from rows that the map was not fitted to. Intervals are 95 % intervals."
    title = descriptions.recalibration_title(section, contents.facts.row)
    yield Block("recalibration", "Recalibration", title, lead, joined(body))


def _before_after(section: kinds.Recalibration, contents: Contents) -> Markup | None:
    diagram = next((s for s in contents.sections if isinstance(s, kinds.Reliability)), None)
    best = section.maps[0] if section.maps else None
    if section.after is None or diagram is None or best is None or not section.after.rate:
        return None
    name = map_in_sentence(best.name)
    bins = diagram.bins[diagram.axis]
    figure = reliability.before_after_figure(diagram.curve, section.after, bins, diagram.axis, name)
    note = tag("span", "all rows, cross-validated; band: 95 % confidence after")
    return tag("figure", tag("figcaption", figure.title, note), elements.drawn(figure), elements.as_text(figure))


def _recent_words(section: kinds.Recalibration, contents: Contents) -> str:
    recent = section.recent
    assert recent is not None
    name, rows = map_in_sentence(recent.name, start=True), plural(contents.facts.row)
    gain = percent(recent.gain).with_ends(" %")
    words = f"{name} fitted and judged on {rows} since the change lowers {section.loss} there by {gain}"
    low, high = recent.remaining.low, recent.remaining.high
    if low is not None and high is not None and low <= 0:
        return f"{words}; the remaining error is at most {bound(high)} points."
    left = points(recent.remaining)
    return f"{words}; an error of {left.points} ({left.ends}) remains."


def bin_counts_block(section: kinds.BinCounts, contents: Contents) -> Iterator[Block]:
    """Why one plain ECE says little."""
    error = next((n.value for n in contents.numbers if n.unit == "points" and n.ideal == 0), None)
    figure = reliability.bin_counts_figure(section, error)
    lead = (
        "Same rows, same scores, in percentage points. Blue: plain ECE with equal-mass bins (dotted: equal width); it "
        "grows with the number of bins because noise adds up. Grey: what a perfectly calibrated model of this size "
        "would show."
    )
    if error is not None:
        lead += " Green: the calibration error and its interval, which need no bins."
    yield Block.of("one-number", "Why not just ECE", figure, lead, in_notebook=False)


def spread_block(section: kinds.Spread, contents: Contents) -> Iterator[Block]:
    """Errors against spread beside coverage, then the histogram of F(y)."""
    figures = [task_figures.spread_figure(section, significant=elements.rejected(contents))] if section.bins else []
    figures += [task_figures.coverage_figure(section)] if section.coverage else []
    names = ["Errors and predicted spread", figures[1].title] if len(figures) == 2 else [""]
    lead = "Observed against nominal coverage of central intervals, with 95 % intervals."
    if section.bins:
        lead = "Root mean squared error against predicted standard deviation, with 95 % intervals. "
        lead += "Grey: a calibrated forecaster."
    body = [
        tag("figure", tag("figcaption", name) if name else None, elements.drawn(figure), elements.as_text(figure))
        for name, figure in zip(names, figures, strict=False)
    ]
    if figures:
        pair = tag("div", *(tag("figure", elements.drawn(figure)) for figure in figures), class_="pair")
        both = tag("div", *body, class_="cols even")
        yield Block("spread", "Spread and error", figures[0].title, lead, both, pair)
    if section.pit:
        words = (
            "Where outcomes fall in their predicted distributions. Flat if calibrated; a U shape means that the spread "
            "is too narrow, a hump that it is too wide."
        )
        pit = task_figures.pit_figure(section, significant=elements.rejected(contents))
        yield Block.of("coverage", "Distribution", pit, words, in_notebook=False)


def net_benefit_block(section: kinds.NetBenefit, contents: Contents) -> Iterator[Block]:
    """The decision curve around the user's threshold."""
    lead = (
        "True positives minus false positives, weighted by the odds of the threshold, per 100 rows, with 95 % "
        "intervals. Dashed curve: treating everyone. Line at 0: treating no one. The predictions are useful where "
        "their curve lies above both."
    )
    yield Block.of("net-benefit", "Net benefit", task_figures.net_benefit_figure(section), lead, in_notebook=False)


def shares_block(section: kinds.Shares, contents: Contents) -> Iterator[Block]:
    """The error against the assumed share, then the implied shares."""
    lead = "Calibration error (PU-ECE, percentage points) against the assumed share of positives, with 95 % intervals."
    if section.largest is not None:
        lead += f" These data allow a share of at most {score(section.largest)}."
    yield Block.of("share", "Assumed share", task_figures.shares_figure(section), lead)
    if not section.implied:
        return
    implied = task_figures.implied_figure(section, significant=elements.rejected(contents))
    note = elements.callout(
        "What cannot be seen here.",
        "No row is known to be negative. Every frequency is the count of labelled positives, scaled so that they make "
        "up the assumed share. A random sample of 200 labelled rows would replace the assumption by a measurement.",
    )
    figure = tag("figure", elements.drawn(implied), elements.as_text(implied))
    body = tag("div", figure, tag("div", elements.implied_key(score(section.prior)), note), class_="cols")
    about = "Share of positives implied by the labelled ones, against predicted probability."
    yield Block("diagram", "Reliability", implied.title, about, body)


def labels_block(section: kinds.Labels, contents: Contents) -> Iterator[Block]:
    """Accuracy by confidence, is the judge calibrated, and what to label next."""
    if section.ranges:
        table = confidence_table(section)
        forest = Forest.of_differences([_gap(one) for one in section.ranges])
        cells = [
            (*row[:3], forest.cell(_gap(one), QUIET, width=160), elements.with_interval((row[3], row[4]), hide=True))
            for one, row in zip(section.ranges, table.rows, strict=True)
        ]
        drawn_head = forest.head(160, "← over-confident", "under →")
        head = ("Confidence", "Rows", "Mean", drawn_head, joined(["Right", elements.quiet(" (95 % interval)", "hide")]))
        words = (
            "Accuracy minus mean confidence, in points, and accuracy, of all answers in a range of confidence. Each "
            "interval is valid alone; the verdict allows for all tests."
        )
        body = elements.plain_table(head, cells, ("nw", "n hide", "n nw", "g", "n nw"), "forest")
        yield Block("confidence", "By confidence", "Accuracy by confidence", words, tag("figure", body))
    shown = judge_table(section).filled()
    lead = 'The judge\'s score as the probability that the gold label is "right", on the answers that have both.'
    gain = elements.callout("Gain by the judge.", shown.note) if shown.note else None
    body = joined([elements.data_table(shown, shown.heading), gain])
    yield Block("judge", "Judge", "Is the judge calibrated?", lead, body)
    about = (
        "Answers are drawn with known probabilities, more often where the recalibrated judge is unsure. Pass the "
        "weights along with the new labels, and every interval stays valid."
    )
    yield Block("next", "Next labels", "What to label next", about, elements.code_box("Python", section.code))


def _gap(one: Bin) -> Value:
    return mapped(one.observed, lambda end: 100 * (end - one.predicted))


_MAKERS: dict[type, Callable[[Any, Contents], Iterator[Block]]] = {
    kinds.Reliability: reliability_block,
    kinds.NetBenefit: net_benefit_block,
    kinds.OverTime: over_time_block,
    kinds.Groups: groups_block,
    kinds.Audited: audit_block,
    kinds.Recalibration: recalibration_block,
    kinds.BinCounts: bin_counts_block,
    kinds.Classes: classes_block,
    kinds.Spread: spread_block,
    kinds.Shares: shares_block,
    kinds.Labels: labels_block,
}


def blocks(contents: Contents) -> list[Block]:
    """The sections as blocks; anchors are unique."""
    seen: Counter[str] = Counter()
    found = []
    for section in contents.sections:
        for k, block in enumerate(_MAKERS[type(section)](section, contents)):
            seen[block.anchor] += 1
            again = seen[block.anchor]
            note = getattr(section, "note", "") if k == 0 else ""
            body = joined([block.body, elements.callout("Not flagged.", note)]) if note else block.body
            anchor = block.anchor if again == 1 else f"{block.anchor}-{again}"
            found.append(replace(block, anchor=anchor, body=body))
    return found


def omitted_block(contents: Contents) -> Block | None:
    """What could not be shown, and why."""
    if not contents.omitted:
        return None
    lines = [tag("li", tag("b", f"{left.section}: "), left.reason) for left in contents.omitted]
    return Block("omitted", "Left out", "What is left out", "", tag("ul", *lines, class_="omitted"))
