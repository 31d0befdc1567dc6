"""The findings on predicted distributions."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.reporting.contents import Severity, Value, Verdict
from calibrant.reporting.findings import of_groups, of_recalibration, of_table, of_time, ordered
from calibrant.reporting.model import Finding
from calibrant.reporting.rounding import count, fixed, percent, ratio, significant
from calibrant.reporting.verdicts.evidence import Forecasts

#: A coefficient of variation below this hardly varies.
CONSTANT = 0.05
#: One row with a larger share of the mean squared standardised error is named.
DOMINANT = 0.2


def of_forecasts(e: Forecasts, verdict: Verdict) -> tuple[Finding, ...]:
    """All findings on predicted distributions, most serious first."""
    if e.n == 0:
        return ()
    return ordered(
        [
            *_test(e, verdict),
            *of_groups(e),
            *of_time(e),
            *_constant(e),
            *_dominant(e),
            *_hidden(e, verdict),
            *_one_factor(e),
            *of_table(e),
            *of_recalibration(e),
        ]
    )


def _test(e: Forecasts, verdict: Verdict) -> Iterator[Finding]:
    if e.test is None:
        return
    if verdict.rule in ("R1", "R2") and e.ratio is not None:
        found, word = ratio(e.ratio), "narrow" if e.ratio.value > 1 else "wide"
        ends = f" ({found.ends})" if found.ends else ""
        text = f"The predicted spread is too {word}: error-to-spread ratio {found.value}{ends}."
        yield Finding("CAL601", verdict.severity, text)
        return
    p = f"{e.test.name}, {e.test.in_words}, n = {count(e.n)}"
    if verdict.state == "not calibrated" and verdict.rule not in ("RG", "RC"):
        how = p if e.test.rejects else f"n = {count(e.n)}"
        yield Finding("CAL201", verdict.severity, f"The predicted distributions are not calibrated ({how}).")
        return
    severity: Severity = "caution" if verdict.severity == "caution" else "note"
    yield Finding("CAL202", severity, f"No significant miscalibration detected ({p}).")


def _constant(e: Forecasts) -> Iterator[Finding]:
    if e.variation is not None and e.variation < CONSTANT:
        text = (
            f"The predicted spread hardly varies (coefficient of variation {fixed(e.variation, 2)}): it cannot tell "
            "easy rows from hard ones."
        )
        yield Finding("CAL602", "caution", text)


def _dominant(e: Forecasts) -> Iterator[Finding]:
    if e.largest_share is None or e.largest_share < DOMINANT or e.n < 2 / DOMINANT:
        return
    where = ""
    if e.largest_row is not None and e.largest_error is not None and e.largest_spread is not None:
        error, spread = (fixed(x, significant(x)) for x in (e.largest_error, e.largest_spread))
        where = f" (row {e.largest_row}: error {error}, predicted spread {spread})"
    share = fixed(100 * e.largest_share, 0)
    yield Finding("CAL603", "caution", f"One row makes up {share} % of the mean squared standardised error{where}.")


def _hidden(e: Forecasts, verdict: Verdict) -> Iterator[Finding]:
    if (
        verdict.rule != "R3"
        or e.coverage is None
        or e.coverage.excludes(e.level)
        or e.ence is None
        or e.ence_null is None
    ):
        return
    low, high = e.ence_null
    null = percent(Value((low + high) / 2, low, high)).ends
    text = (
        "Intervals cover as they should on average, although the spread of single rows is wrong "
        f"(ENCE {fixed(100 * e.ence, 0)} %, calibrated {null} %)."
    )
    yield Finding("CAL604", "caution", text)


def _one_factor(e: Forecasts) -> Iterator[Finding]:
    """Where another map helps and one factor does not."""
    made = e.recalibration
    if made is None or not made.maps or made.maps[0].effect != "best" or (made.maps[0].gain.low or 0.0) <= 0:
        return
    factor = next((one for one in made.maps[1:] if one.name.startswith(("One factor", "StdScaling"))), None)
    if factor is None or factor.gain.high is None or factor.gain.low is None or factor.gain.high >= 0:
        return
    loss = percent(Value(-factor.gain.value, -factor.gain.high, -factor.gain.low))
    text = f"One factor is not enough: scaling all spreads would worsen {made.loss} by {loss.value} % ({loss.ends} %)."
    yield Finding("CAL605", "caution", text)
