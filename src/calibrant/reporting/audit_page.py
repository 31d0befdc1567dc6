"""An audit as one page: the verdict, the numbers, for whom predictions are off, which features tell, and the repair."""

from __future__ import annotations

import json
import math
import os

from calibrant._atomic_write import replacing
from calibrant.inference.feature_audit import Audit
from calibrant.reporting.contents import Number, Severity
from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.layout.audit import audit_block
from calibrant.reporting.layout.elements import Block, code_box, fold, rich
from calibrant.reporting.layout.page import answer_block, numbers_block, whole_page
from calibrant.reporting.model import finite
from calibrant.reporting.rounding import count, fixed, p_words
from calibrant.reporting.sections.audit import audited, sentence, share_of
from calibrant.results.estimate import Value


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
    text = (
        f"Mean distance between prediction and truth given the features; at least {fixed(100 * (low or 0), 1)} points"
    )
    numbers = [Number("Error given features", Value(max(error.l1, 0.0)), 0.0, "points", "", "worse", f"{text}.")]
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
