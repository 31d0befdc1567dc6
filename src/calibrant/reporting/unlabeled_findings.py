"""The findings on positive and unlabeled rows."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.reporting.contents import Severity, Verdict
from calibrant.reporting.findings import of_table, ordered
from calibrant.reporting.model import Finding
from calibrant.reporting.rounding import bound, count, fixed, score
from calibrant.reporting.verdicts.evidence import Unlabeled


def of_unlabeled(e: Unlabeled, verdict: Verdict) -> tuple[Finding, ...]:
    """All findings on positive and unlabeled rows, most serious first."""
    if not e.positives or not e.unlabeled:
        return ()
    return ordered([*_test(e, verdict), *_shares(e, verdict), *of_table(e)])


def _test(e: Unlabeled, verdict: Verdict) -> Iterator[Finding]:
    if e.test is None or verdict.rule == "P3":
        return
    p = f"{e.test.name}, {e.test.in_words}"
    if e.test.rejects:
        text = f"The predictions are not calibrated if {score(e.prior)} are positive ({p})."
        yield Finding("CAL201", verdict.severity, text)
        return
    most = "" if e.error is None or e.error.high is None else f"; the error is at most {bound(e.error.high)} points"
    severity: Severity = "caution" if verdict.severity == "caution" else "note"
    text = f"No significant miscalibration detected if {score(e.prior)} are positive ({p}){most}."
    yield Finding("CAL202", severity, text)


def _shares(e: Unlabeled, verdict: Verdict) -> Iterator[Finding]:
    if e.impossible:
        text = (
            f"At {count(e.impossible)} of {count(e.ranges)} score ranges the labelled positives imply a share above "
            "100 % (interval excludes it)."
        )
        yield Finding("CAL701", "problem", text)
    if verdict.rule == "P3" and e.largest_prior is not None:
        text = (
            f"The assumed share of positives, {score(e.prior)}, is larger than these data allow (at most "
            f"{score(e.largest_prior)})."
        )
        yield Finding("CAL702", "problem", text)
    if e.errors:
        values = [error.value for error in e.errors]
        low, high = (fixed(100 * value, 1) for value in (min(values), max(values)))
        shares = f"{score(min(e.priors)).removesuffix(' %')} and {score(max(e.priors))}"
        yield Finding("CAL703", "caution", f"The error ranges from {low} to {high} points for shares between {shares}.")
    yield Finding("CAL704", "note", "Labelled positives are assumed to be a random sample of all positives.")
