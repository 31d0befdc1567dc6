"""The findings on several classes: the vector, its classes, the top label."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.reporting.contents import Severity, Verdict
from calibrant.reporting.findings import confidence, of_groups, of_recalibration, of_time, ordered
from calibrant.reporting.model import Finding
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import bound, count
from calibrant.reporting.verdicts.evidence import SeveralClasses
from calibrant.reporting.verdicts.second import largest_gap_classes
from calibrant.reporting.verdicts.several_classes import total_is_off
from calibrant.reporting.verdicts.severity import RATIOS, outside

#: Classes with fewer rows cannot be judged.
FEW = 10


def of_classes(e: SeveralClasses, verdict: Verdict) -> tuple[Finding, ...]:
    """All findings on probability vectors, most serious first."""
    if e.n == 0 or e.top is None:
        return ()
    if e.decisions is not None:
        text = "The predictions are only 0 and 1: decisions, not probabilities."
        return (Finding("CAL104", "caution", text),)
    rejected = e.test is not None and e.test.rejects
    return ordered(
        [
            *_impossible(e),
            *_vector(e, verdict),
            *(confidence(e.top, verdict) if rejected or e.test is None else ()),
            *_classes(e),
            *of_groups(e),
            *of_time(e),
            *_few_of_a_class(e),
            *_few_rows(e),
            *of_recalibration(e),
        ]
    )


def _impossible(e: SeveralClasses) -> Iterator[Finding]:
    if e.impossible > 0:
        rows = f"{count(e.impossible)} {plural(e.words.row, e.impossible)}"
        was = "was" if e.impossible == 1 else "were"
        text = (
            f"{rows} {was} of a class predicted with a probability of exactly 0. Log loss is infinite; the Brier score "
            "is used instead."
        )
        yield Finding("CAL101", "problem", text)


def _vector(e: SeveralClasses, verdict: Verdict) -> Iterator[Finding]:
    if e.test is None:
        return
    p = f"whole-vector test, {e.test.in_words}, n = {count(e.n)}"
    if e.test.rejects:
        yield Finding("CAL211", verdict.severity, f"The probability vectors are not calibrated ({p}).")
        return
    error = None if e.top is None else e.top.error
    most = "" if error is None or error.high is None else f"; the top-label error is at most {bound(error.high)} points"
    severity: Severity = "caution" if verdict.severity == "caution" else "note"
    yield Finding("CAL202", severity, f"No significant miscalibration detected ({p}){most}.")


def _classes(e: SeveralClasses) -> Iterator[Finding]:
    rows = () if e.classes is None else e.classes.rows
    flagged = tuple(row for row in rows if row.flagged)
    if not flagged or e.test is None or not e.test.rejects:
        return
    off = tuple(row for row in flagged if total_is_off(row, e.number))
    totals = f"; totals are off most for {largest_gap_classes(off)}" if off else ""
    severity: Severity = "problem" if any(outside(row.ratio, RATIOS) for row in flagged) else "caution"
    verb = "is" if len(flagged) == 1 else "are"
    text = f"{len(flagged)} of {e.number} classes {verb} miscalibrated after adjustment{totals}."
    yield Finding("CAL212", severity, text)


def _few_of_a_class(e: SeveralClasses) -> Iterator[Finding]:
    few = [
        row for row in (() if e.classes is None else e.classes.rows) if row.observed is not None and row.observed < FEW
    ]
    if few:
        text = f"{len(few)} of {e.number} classes have fewer than {FEW} rows: they are shown but cannot be judged."
        yield Finding("CAL302", "caution", text)


def _few_rows(e: SeveralClasses) -> Iterator[Finding]:
    top = e.top
    if top is None or top.undetected is None or e.n >= 200:
        return
    text = (
        f"With {count(e.n)} {plural(e.words.row, e.n)} and {e.number} classes, a top-label error below about "
        f"{bound(top.undetected)} points would usually go undetected."
    )
    yield Finding("CAL402", "caution", text)
