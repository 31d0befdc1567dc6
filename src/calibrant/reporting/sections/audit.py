"""Calibration with respect to features, as a section of the report."""

from __future__ import annotations

import math
from typing import Any

from calibrant.inference.feature_audit import Audit, audit
from calibrant.reporting.contents import Audited, CannotBuild, Options, SegmentRow
from calibrant.reporting.rounding import fixed, p_words
from calibrant.results.estimate import Value, printable
from calibrant.table.bintable import BinTable

#: Features that are shown.
#: Test: tests/reporting/sections/test_audit.py::test_the_twelve_most_important_features_are_shown.
_FEATURES = 12


def audit_section(data: Any, options: Options) -> Audited:
    """The audit of the rows by the features in the options."""
    if isinstance(data, BinTable):
        message = "A table has no rows to audit by features; `calibrant audit` takes a sample of large files."
        raise CannotBuild(message)
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
