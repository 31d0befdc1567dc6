"""An audit as a section of the report or as a page: where the model is wrong, for whom, by how much, and the repair."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from calibrant._atomic_write import replacing
from calibrant.inference.feature_audit import Audit, FeatureLoss
from calibrant.inference.segments import Segment
from calibrant.plot.scales import Scale
from calibrant.reporting.contents import Number
from calibrant.reporting.drawing.canvas import Canvas, Figure, text_width
from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.drawing.table_cells import FLAGGED, Forest
from calibrant.reporting.layout.elements import (
    Block,
    both_widths,
    code_box,
    fold,
    icon,
    pill,
    plain_table,
    rich,
    text_fold,
    with_interval,
)
from calibrant.reporting.layout.page import footer, numbers_block, sheet
from calibrant.reporting.model import finite
from calibrant.reporting.names import listed
from calibrant.reporting.rounding import count, fixed, p_number, p_words, percent, value_column
from calibrant.reporting.text import Table
from calibrant.results.estimate import Value, printable

#: Features that are drawn.
#: Test: tests/reporting/test_audit_page.py::test_the_twelve_most_important_features_are_drawn.
_FEATURES = 12
#: Widths of the column of gaps at a desk and on a phone, and height of a bar with its gap.
#: Test: tests/reporting/test_audit_page.py::test_the_page_is_drawn_as_before.
_WIDE, _NARROW, _BAR = 250, 128, 26


def save_page(found: Audit, path: str | os.PathLike[str], *, source: str = "", call: str = "", note: str = "") -> None:
    """Write the page, all of it or nothing; `call` is the command that repeats it."""
    with replacing(path) as place:
        place.write_text(audit_page(found, source=source, call=call, note=note), encoding="utf8")


def audit_page(found: Audit, *, source: str = "", call: str = "", note: str = "") -> str:
    """The whole HTML text: it loads nothing, sends nothing, and works with scripts off."""
    title = "Where is the model wrong, and for whom?"
    words = tag("div", tag("p", "Calibration audit by features", class_="kicker"), tag("h1", title))
    top = tag("div", words, tag("button", "Dark", type="button", class_="theme"), class_="top")
    facts = [("Rows", count(found.n)), ("Features", count(len(found.rows.features) - 1))]
    facts += [("Data", source)] if source else []
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts]
    sections = [*audit_blocks(found), _next(found, call, note)]
    main = tag("main", _answer(found), numbers_block(_numbers(found)), *(block.html() for block in sections), id="main")
    return sheet(f"{title} Calibration audit", tag("header", top, tag("dl", *pairs, class_="facts")), main, footer())


def audit_blocks(found: Audit) -> Iterator[Block]:
    """Segments as a forest of gaps, and the features of the repair as bars."""
    if found.segments:
        yield _segments(found)
    else:
        words = "No segment was confirmed on rows that had no part in finding it."
        yield Block("where", "Where, for whom", "No segment is shown to be off", words, joined([]))
    shown = ranked(found)
    if shown:
        yield _features(found, shown)


def sentence(found: Audit) -> str:
    """The answer in one sentence."""
    if found.test.p_value > found.alpha:
        return "No miscalibration with respect to these features was detected."
    low = 0.0 if found.error.l1.interval is None else found.error.l1.interval.low
    least = f"by at least {fixed(100 * low, 1)} points on average" if low >= 0.0005 else "by an unknown amount"
    text = f"Given the features, predictions are off {least}"
    if not found.segments:
        return f"{text}; no single segment explains it."
    worst = max(found.segments, key=lambda one: one.share * abs(one.gap))
    where = f"{worst.outcome}, {worst.text}" if worst.outcome else worst.text
    seen, said = (fixed(100 * one, 1) for one in (worst.observed, worst.predicted))
    return f"{text}; most of all where {where}: predicted {said} %, observed {seen} %."


def ranked(found: Audit) -> list[FeatureLoss]:
    """The features whose loss is above zero beyond chance, the most important first."""
    certain = [one for one in found.features if one.loss.interval is not None and one.loss.interval.low > 0]
    return certain[:_FEATURES]


def audit_tables(found: Audit) -> list[Table]:
    """The same as text."""
    columns = ("Segment", "Share of rows", "Predicted, %", "Observed, %", "Interval", "Adjusted p", "Predictions are")
    rows = [
        (
            f"{one.outcome}: {one.text}" if one.outcome else one.text,
            f"{fixed(100 * one.share, 1)} %",
            fixed(100 * one.predicted, 1),
            fixed(100 * one.observed, 1),
            f"{fixed(100 * one.interval.low, 1)} to {fixed(100 * one.interval.high, 1)}",
            p_number(one.adjusted),
            one.direction,
        )
        for one in found.segments
    ]
    tables = [Table("Where, for whom", columns, rows, sentence(found))]
    if shown := ranked(found):
        lost = [(printable(one.feature), _share_text(found, one)) for one in shown]
        tables.append(Table("Features", ("Feature", "Log loss lost without it"), lost))
    return tables


def _answer(found: Audit) -> Markup:
    wrong = found.test.p_value <= found.alpha
    severity, state = ("problem", "Miscalibrated for some rows") if wrong else ("note", "Nothing found")
    three = [tag("div", tag("h3", name), tag("p", text)) for name, text in _three(found, wrong=wrong)]
    return tag(
        "div",
        tag("h2", "Verdict", class_="vh"),
        tag("p", icon(severity), state, class_="state"),  # type: ignore[arg-type]
        tag("p", sentence(found), class_="say"),
        tag("div", *three, class_="three"),
        class_=f"verdict {severity}",
    )


def _three(found: Audit, *, wrong: bool) -> list[tuple[str, str]]:
    gain = found.error.log_loss.features
    helps = found.error.log_loss.total.interval is not None and found.error.log_loss.total.interval.low > 0
    sure = (
        f"One test of the score, of tables of one and two features, and of learned maps: {p_words(found.test.p_value)}."
    )
    if not wrong:
        means = "Errors that show in no pair of features, or that are small, may have been missed."
        return [("How sure", sure), ("What it means", means), ("What to do", "Nothing, as far as these features tell.")]
    sure += f" Any segment below is false with a probability of at most {100 * found.alpha:g} %."
    only = gain.interval is not None and gain.interval.low > 0
    means = (
        "Recalibrating the score alone does not remove the error: it depends on features."
        if only
        else "Most of what can be removed, recalibrating the score removes; features add nothing that is certain."
    )
    do = (
        "Use the repair below, or train the model on these features." if helps else "Collect more rows of the segments."
    )
    return [("How sure", sure), ("What it means", means), ("What to do", do)]


def _numbers(found: Audit) -> list[Number]:
    error, split = found.error, found.error.log_loss
    low = None if error.l1.interval is None else error.l1.interval.low
    text = (
        f"Mean distance between prediction and truth given the features; at least {fixed(100 * (low or 0), 1)} points"
    )
    numbers = [Number("Error given features", Value(max(error.l1, 0.0)), 0.0, "points", "", "worse", f"{text}.")]
    if math.isfinite(split.before) and split.before > 0:
        for name, part in (
            ("Log loss removed by recalibrating the score", split.score),
            ("more by features", split.features),
        ):
            words = f"Percent of the log loss of {float(split.before):.4g}, on rows that were held out."
            share = _of(part, float(split.before))
            numbers.append(Number(name[0].upper() + name[1:], share, 0.0, "percent", "harm", "gain", words))
    return numbers


def _of(part: Any, whole: float) -> Value:
    ends = (None, None) if part.interval is None else (part.interval.low / whole, part.interval.high / whole)
    return Value(float(part) / whole, *ends)


def _segments(found: Audit) -> Block:
    rows = found.segments
    gaps = [
        Value(100 * (one.observed - one.predicted), *(100 * (end - one.predicted) for end in _ends(one)))
        for one in rows
    ]
    forest = Forest.of_differences(gaps)
    heads = (forest.head(_WIDE, "← predictions too high", "too low →"), forest.head(_NARROW, "← high", "low →"))
    name = tag("span", "Observed less predicted, points", class_="vh")
    largest = max(one.share for one in rows)
    drawn = [
        both_widths(*(forest.cell(gap, FLAGGED, width=w, size=one.share / largest) for w in (_WIDE, _NARROW)))
        for one, gap in zip(rows, gaps, strict=True)
    ]
    observed = value_column([Value(one.observed, *_ends(one)) for one in rows], scale=100, least=1)
    cells = [
        (
            f"{one.outcome}: {one.text}" if one.outcome else one.text,
            f"{fixed(100 * one.share, 1)} %",
            fixed(100 * one.predicted, 1),
            with_interval(seen),
            picture,
            pill(one.direction, "bad"),
            p_number(one.adjusted),
        )
        for one, seen, picture in zip(rows, observed, drawn, strict=True)
    ]
    head: tuple[Child, ...] = (
        "Segment", "Share of rows", "Predicted, %", "Observed, % (interval)", joined([name, both_widths(*heads)]),
        "Predictions are", "Adjusted p",
    )  # fmt: skip
    styles = ("name", "n hide", "n", "n nw", "g", "dir", "n hide")
    table = plain_table(head, cells, styles, "forest", row_styles=["hit"] * len(rows))
    title = f"{len(rows)} {'segment is' if len(rows) == 1 else 'segments are'} shown to be off"
    lead = (
        "Found on one half of the rows; every number is of the other half. The gap is observed less predicted, in "
        "points; marker area shows the share of rows. Segments may overlap."
    )
    body = joined([tag("figure", table, text_fold("Figure as text", tag("p", _segments_text(rows))))])
    return Block("where", "Where, for whom", title, lead, body, tag("div", table, class_="scroll"))


def _ends(one: Segment) -> tuple[float, float]:
    return one.interval.low, one.interval.high


def _segments_text(rows: Sequence[Segment]) -> str:
    said = (
        f"{one.text}: predicted {fixed(100 * one.predicted, 1)} %, observed {fixed(100 * one.observed, 1)} %, "
        f"{fixed(100 * one.share, 1)} % of rows"
        for one in rows
    )
    return "; ".join(said) + "."


def _share_text(found: Audit, one: FeatureLoss) -> str:
    before = float(found.error.log_loss.before)
    if not (math.isfinite(before) and before > 0):
        return f"{float(one.loss):.3g}"
    shown = percent(_of(one.loss, before))
    return f"{shown.value} % ({shown.ends})" if shown.ends else f"{shown.value} %"


def _features(found: Audit, shown: list[FeatureLoss]) -> Block:
    rows = [(printable(one.feature), _share_text(found, one)) for one in shown]
    table = Table("Features", ("Feature", "Log loss lost without it"), rows)
    first = listed([name for name, _ in rows[:3]])
    text = (
        "How much log loss held-out rows lose when one feature is shuffled among them, in percent of the loss. "
        "Correlated features share the credit arbitrarily."
    )
    title = f"What tells the errors apart: {first}"
    figure = Figure.of(partial(_bars, shown), 760, "Importance of features.", title, text, table)
    return Block.of("features", "Features", figure, text)


def _bars(shown: list[FeatureLoss], width: float) -> Canvas:
    names = [_cut(printable(one.feature)) for one in shown]
    left = min(max(map(text_width, names)) + 12, width / 2)
    largest = max(float(one.loss) for one in shown)
    canvas = Canvas(width, _BAR * len(shown) + 8, (left, 4, 60, 4), Scale(0.0, largest), Scale(0.0, 1.0))
    for k, (one, name) in enumerate(zip(shown, names, strict=True)):
        top = 4 + _BAR * k
        canvas.text(left - 8, top + 16, name, "", "end")
        size = canvas.x(float(one.loss)) - canvas.left
        canvas.add(tag("rect", x=canvas.left, y=top + 5, width=max(size, 1.0), height=14, class_="barm"))
    return canvas


def _cut(name: str, most: int = 28) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _next(found: Audit, call: str, note: str) -> Block:
    """How to repair, and what an audit cannot say."""
    code = (
        "import calibrant as cal\n\naudit = cal.audit(data, X)\n"
        'audit.repair().save("map.json")  # predict_proba(p, X), to_sql, to_onnx'
    )
    limits = (
        "**A model is never shown to be calibrated**: only nothing was found.",
        "**No upper bound exists** for the error given features: one that no map has found leaves no trace.",
        "**Features are not causes**, and groups that differ in their base rates need not be treated unfairly: an "
        "audit says whether a probability means the same for everyone, nothing more.",
    )
    parts: list[Child] = [tag("p", rich(text)) for text in limits]
    if note:
        parts.insert(0, tag("p", note))
    boxes: list[Child] = [code_box("Repair in Python", code)]
    if call:
        boxes.insert(0, code_box("The same again, with the repair", call))
    return Block(
        "next",
        "What to do",
        "Repair, and the limits of this",
        "",
        joined([*boxes, fold("What an audit cannot say", *parts)]),
    )


def to_json(found: Audit) -> str:
    """The audit for machines."""
    return json.dumps(finite({"sentence": sentence(found), **found.to_dict()}), indent=2, allow_nan=False)
