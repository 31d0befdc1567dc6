"""An audit as one page: the verdict, the numbers, for whom predictions are off, which features tell, and the repair."""

from __future__ import annotations

import json
import math
import os
from typing import Any

from calibrant._atomic_write import replacing
from calibrant.data.validation import fail
from calibrant.inference.feature_audit import Audit, audit
from calibrant.reporting.contents import Audited, CannotBuild, Number, Options, SegmentRow, Severity
from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.layout.blocks import audit_block
from calibrant.reporting.layout.elements import Block, code_box, fold, rich
from calibrant.reporting.layout.page import answer_block, numbers_block, whole_page
from calibrant.reporting.model import finite
from calibrant.reporting.rounding import count, fixed, p_words
from calibrant.results.estimate import Value, printable
from calibrant.table.bintable import BinTable

#: Features that are shown.
#: Test: tests/reporting/test_audit_page_audit.py::test_the_twelve_most_important_features_are_shown.
_FEATURES = 12


def audit_section(data: Any, options: Options) -> Audited:
    """The audit of the rows by the features in the options."""
    if isinstance(data, BinTable):
        fail("A table has no rows to audit by features; `calibrant audit` takes a sample of large files.", CannotBuild)
    return audited(audit(data, options.audit, seed=options.seed))


def audited(found: Audit) -> Audited:
    """What a page shows of an audit."""
    rows = tuple(
        SegmentRow(
            f"{one.outcome}: {one.text}" if one.outcome else one.text,
            one.share,
            one.n,
            one.predicted,
            Value(one.observed, one.interval.low, one.interval.high),
            one.adjusted,
            one.direction,
        )
        for one in found.segments
    )
    before = float(found.error.log_loss.before)
    whole = before if math.isfinite(before) and before > 0 else 1.0
    certain = [one for one in found.features if one.loss.interval is not None and one.loss.interval.low > 0]
    features = tuple((printable(one.feature), share_of(one.loss, whole)) for one in certain[:_FEATURES])
    return Audited(sentence(found), found.test.p_value, found.test.p_value <= found.alpha, rows, features)


def sentence(found: Audit) -> str:
    """The answer in one sentence."""
    if found.test.p_value > found.alpha:
        if not found.segments:
            return "No miscalibration was detected, given these features."
        alone = "one segment is shown to be off" if len(found.segments) == 1 else "segments are shown to be off"
        start = f"The test of all features detects no miscalibration ({p_words(found.test.p_value)})"
        return f"{start}, but {alone}, {_worst(found)}."
    low = 0.0 if found.error.l1.interval is None else found.error.l1.interval.low
    least = f"by at least {fixed(100 * low, 1)} points on average" if low >= 0.0005 else "by an unknown amount"
    what = {"": "predictions are", "coverage": "the coverage of intervals is"}
    text = f"Given the features, {what.get(found.outcome, 'probabilities of the top label are')} off {least}"
    if not found.segments:
        return f"{text}; no single segment explains it."
    return f"{text}, most of all {_worst(found)}."


def _worst(found: Audit) -> str:
    """The segment with the largest part of the error."""
    worst = max(found.segments, key=lambda one: one.share * abs(one.gap))
    said, seen = (fixed(100 * one, 1) for one in (worst.predicted, worst.observed))
    if found.outcome == "coverage":
        return f"where {worst.text}: {seen} % of outcomes lie in intervals that should hold {said} %"
    of = f"for the {worst.outcome} " if worst.outcome else ""
    return f"{of}where {worst.text}: predicted {said} %, observed {seen} %"


def share_of(part: Any, whole: float) -> Value:
    """An estimate and its interval, if it has a width, as a share."""
    if part.interval is None or part.interval.low == part.interval.high:
        return Value(float(part) / whole)
    return Value(float(part) / whole, part.interval.low / whole, part.interval.high / whole)


def save_page(found: Audit, path: str | os.PathLike[str], *, source: str = "", call: str = "", note: str = "") -> None:
    """Write the page, all of it or nothing; `call` is the command that repeats it."""
    with replacing(path) as place:
        place.write_text(audit_page(found, source=source, call=call, note=note), encoding="utf8")


def audit_page(found: Audit, *, source: str = "", call: str = "", note: str = "") -> str:
    """The whole HTML text: it loads nothing, sends nothing, and works with scripts off."""
    title = "Where is the model wrong, and for whom?"
    facts = [("Rows", count(found.n)), ("Features", count(len(found.rows.features) - 1))]
    facts += [("Data", source)] if source else []
    sections = [*audit_block(audited(found)), _next(found, call, note)]
    main = (_answer(found), numbers_block(_numbers(found)), *(block.html() for block in sections))
    return whole_page(f"{title} Calibration audit", "Calibration audit by features", title, facts, *main)


def _answer(found: Audit) -> Markup:
    wrong = found.test.p_value <= found.alpha
    severity: Severity = "problem" if wrong else "note"
    state = "Miscalibrated for some rows" if wrong else "Nothing found"
    if found.segments and not wrong:
        severity, state = "caution", "Nothing found over all features, but segments that are off"
    return answer_block(severity, state, sentence(found), _three(found, wrong=wrong))


def _three(found: Audit, *, wrong: bool) -> list[tuple[str, str]]:
    gain = found.error.log_loss.features
    share = f"{100 * found.alpha:g} %"
    helps = found.error.log_loss.total.interval is not None and found.error.log_loss.total.interval.low > 0
    sure = f"One test of the score, single features, pairs and fitted corrections: {p_words(found.test.p_value)}."
    if not wrong:
        means = "The audit may have missed small errors, and errors that no pair of features shows."
        if found.segments:
            own = f"Segments have an error rate of their own: the probability that any is false is at most {share}."
            return [("How sure", sure), ("What it means", own), ("What to do", "Look at them again on new rows.")]
        return [("How sure", sure), ("What it means", means), ("What to do", "Nothing, by these features.")]
    sure += f" The probability that any segment below is false is at most {share}."
    only = gain.interval is not None and gain.interval.low > 0
    means = (
        f"{'One factor of all widths' if found.outcome == 'coverage' else 'Recalibrating the score alone'} does not "
        "remove the error: it depends on features."
        if only
        else "Recalibrating the score removes most of what can be removed; a further gain by features is not certain."
    )
    train = "train the model on these features"
    do = f"Apply the repair below, or {train}." if found.outcome != "coverage" else f"{train.capitalize()}."
    if not helps:
        do = "Collect more rows of the segments."
    return [("How sure", sure), ("What it means", means), ("What to do", do)]


def _numbers(found: Audit) -> list[Number]:
    error, split = found.error, found.error.log_loss
    low = None if error.l1.interval is None else error.l1.interval.low
    least = fixed(100 * (low or 0), 1)
    text = f"Mean distance between prediction and truth given the features; at least {least} points."
    numbers = [Number("Error given features", Value(max(error.l1, 0.0)), 0.0, "points", "", "worse", text)]
    if math.isfinite(split.before) and split.before > 0:
        for name, part in (
            ("Log loss removed by recalibrating the score", split.score),
            ("Further log loss removed by features", split.features),
        ):
            words = f"Percent of the log loss, {float(split.before):.4g}, on held-out rows."
            share = share_of(part, float(split.before))
            numbers.append(Number(name, share, 0.0, "percent", "harm", "gain", words))
    return numbers


def _next(found: Audit, call: str, note: str) -> Block:
    """How to repair, and what an audit cannot say."""
    data = 'data.one_vs_rest()["a class"]' if found.parts else "data"
    code = (
        f"import calibrant as cal\n\naudit = cal.audit({data}, X)\n"
        'audit.repair().save("map.json")  # predict_proba(p, X), to_sql, to_onnx'
    )
    limits = (
        "**It never shows that a model is calibrated**, only that it found nothing.",
        "**There is no upper bound** on the error given the features: an error that no map has found leaves no trace.",
        "**Features are not causes**, and different base rates alone do not mean unfair treatment. An audit says "
        "whether a probability means the same for everyone, nothing more.",
    )
    parts: list[Child] = [tag("p", rich(text)) for text in limits]
    if note:
        parts.insert(0, tag("p", note))
    boxes: list[Child] = []
    repairable = found.outcome != "coverage"
    if call:
        boxes.append(code_box("Repeat the audit" + ("" if found.outcome else " and write the repair"), call))
    if repairable:
        boxes.append(code_box("Repair in Python", code))
    title = "Repair" if repairable else "Limits"
    return Block("next", "What to do", title, "", joined([*boxes, fold("What an audit cannot say", *parts)]))


def to_json(found: Audit) -> str:
    """The audit for machines."""
    return json.dumps(finite({"sentence": sentence(found), **found.to_dict()}), indent=2, allow_nan=False)
