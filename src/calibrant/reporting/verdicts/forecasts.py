"""The verdict on predicted distributions: is the predicted spread the size of the errors?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from calibrant.reporting.contents import Direction, Severity, State
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import count, fixed, negated, p_words, percent, rates, ratio, rounded
from calibrant.reporting.verdicts import answers
from calibrant.reporting.verdicts.evidence import Forecasts
from calibrant.reporting.verdicts.severity import RATIOS, flagged_groups, outside
from calibrant.reporting.verdicts.truth_table import Row, TruthTable, ends, exception, only_parts, rows_in_words
from calibrant.results.estimate import Value

#: Fewer forecasts are too few to judge.
#: Test: tests/reporting/verdicts/test_forecasts.py::test_limits_of_severity.
FEW = 30
#: A bias of fewer predicted standard deviations is not reported; one that is surely larger than this is a problem.
#: Test: tests/reporting/verdicts/test_forecasts.py::test_limits_of_severity.
BIAS, LARGE_BIAS = 0.1, 0.2
#: A ratio whose whole interval lies within is small.
#: Test: tests/reporting/verdicts/test_forecasts.py::test_limits_of_severity.
NEAR_ONE = (0.98, 1.02)
#: Coverage that is surely off by more than this is a problem.
#: Test: tests/reporting/verdicts/test_forecasts.py::test_limits_of_severity.
COVERAGE = 0.02


def _too_few(e: Forecasts) -> Row | None:
    """Few forecasts, and no rejection (R7)."""
    if e.n >= FEW or e.rejects:
        return None
    sentence = f"Too few {plural(e.words.row)} to judge: {count(e.n)}."
    if e.ratio is not None and e.ratio.low is not None and e.ratio.high is not None:
        found = ratio(e.ratio)
        sentence += f" The ratio of errors to spread could be anywhere from {found.low} to {found.high}."
    return Row("R7", "too few", None, sentence, "caution")


def _spread(e: Forecasts) -> Row | None:
    """The predicted spread is too narrow (R1) or too wide (R2)."""
    size = e.ratio
    if not e.rejects or not e.by_spread or size is None:
        return None
    found, narrow = ratio(size), size.value > 1
    word, only = ("narrow", "") if narrow else ("wide", "only ")
    times = f"{only}{found.value} times the predicted standard deviation"
    sentence = f"Predicted spread is too {word}: errors are {times}{ends(found)}."
    small = size.low is not None and size.high is not None and size.low > NEAR_ONE[0] and size.high < NEAR_ONE[1]
    severity: Severity = "problem" if outside(size, RATIOS) else "note" if small else "caution"
    if any(outside(row.ratio, RATIOS) for row in flagged_groups(e.groups)):
        severity = "problem"
    state: State = "small" if severity == "note" else "not calibrated"
    if state == "small":
        sentence = f"Statistically significant but small: {sentence[0].lower()}{sentence[1:]}"
    return Row("R1" if narrow else "R2", state, "too narrow" if narrow else "too wide", sentence, severity)


def _single_rows(e: Forecasts) -> Row | None:
    """Right on average, but not for single rows (R3)."""
    beyond = e.ence is not None and e.ence_null is not None and e.ence > e.ence_null[1]
    if e.rejects or not beyond or not e.also_rejected("single rows"):
        return None
    error, (low, high) = e.ence or 0.0, e.ence_null or (0.0, 0.0)
    calibrated = percent(Value((low + high) / 2, low, high))
    sentence = (
        f"The spread is right on average but not for single {plural(e.words.row)}: {fixed(100 * error, 0)} % mean "
        f"relative error, where a calibrated forecaster would show {calibrated.ends} %."
    )
    return Row("R3", "not calibrated", "mixed", sentence, "problem" if error > 2 * high else "caution")


def _coverage(e: Forecasts) -> Row | None:
    """F(y) is not uniform: coverage says how, where it is off beyond chance (R5)."""
    if not e.rejects and not e.also_rejected("shape"):
        return None
    found = e.coverage
    nominal = f"{100 * e.level:.4g}"
    if found is None or not found.excludes(e.level):
        p = e.shape_p if e.by_spread else (None if e.test is None else e.test.p_value)
        told = "" if p is None else f" ({p_words(p)})"
        sentence = f"Outcomes do not fall evenly over their predicted distributions{told}"
        more = "" if found is None else f", though {rates(found).value} % lie inside the central {nominal} % intervals"
        return Row("R5", "not calibrated", "mixed", f"{sentence}{more}.", "caution")
    often = found.value < e.level
    inside = rates(found)
    start = f"Outcomes fall outside the central {nominal} % interval {'too often' if often else 'too rarely'}"
    sentence = f"{start}: {inside.value} % are inside (95 % interval {inside.ends} %)."
    far = outside(found, (e.level - COVERAGE, e.level + COVERAGE))
    direction: Direction = "too narrow" if often else "too wide"
    return Row("R5", "not calibrated", direction, sentence, "problem" if far else "caution")


def _only_groups_or_times(e: Forecasts) -> Row | None:
    """Not significant over all forecasts, but in groups or over time (RG, RC)."""
    row = only_parts(e, f"No significant miscalibration detected over all {rows_in_words(e)}", "R")
    return None if row is None else row._replace(direction="mixed", severity="problem")


def _not_significant(e: Forecasts) -> Row:
    """Nothing was found (R6)."""
    start = f"No significant miscalibration detected (n = {count(e.n)})"
    if e.ratio is not None and e.by_spread:
        found = ratio(e.ratio)
        within = (
            e.ratio.low is not None
            and e.ratio.high is not None
            and e.ratio.low >= RATIOS[0]
            and e.ratio.high <= RATIOS[1]
        )
        sentence = f"{start}: errors are {found.value} times the predicted standard deviation{ends(found)}."
        return Row("R6", "not significant", None, sentence, "note" if within else "caution")
    if e.coverage is not None:
        inside = rates(e.coverage)
        lie = f"{inside.value} % of outcomes lie inside the central {100 * e.level:.4g} % intervals"
        wide = e.coverage.low is not None and e.coverage.low < e.level - 0.1
        sentence = f"{start}: {lie}{ends(inside, unit=' %')}."
        return Row("R6", "not significant", None, sentence, "caution" if wide else "note")
    return Row("R6", "not significant", None, f"{start}.", "caution")


def biased(e: Forecasts) -> bool:
    """Whether forecasts are shifted, beyond chance and by enough to speak of."""
    return e.bias is not None and e.also_rejected("bias") and abs(e.bias.value) > BIAS


def _with_bias(rule: Callable[[Forecasts], Row | None], e: Forecasts) -> Row | None:
    """The row, if it fits, with what is said of a shift of the forecasts (R4)."""
    row = rule(e)
    if row is None or not biased(e) or e.bias is None:
        return row
    low = e.bias.value > 0
    found = rounded(e.bias if low else negated(e.bias), least=2, apart=0.0)
    told = f"Forecasts are {'low' if low else 'high'} by {found.value} predicted standard deviations ({found.ends})."
    large = all(end is not None and abs(end) > LARGE_BIAS for end in (e.bias.low, e.bias.high))
    if row.state == "not significant":
        return Row("R4", "not calibrated", "shifted", told, "problem" if large else "caution")
    severity: Severity | None = "problem" if large else "caution" if row.severity == "note" else row.severity
    return Row(row.rule, "not calibrated", row.direction, f"{told} {row.sentence}", severity)


def _second(e: Forecasts, row: Row) -> str:
    """A change over time or a group against the whole; and rows without a spread of their own."""
    said = [] if row.rule in ("RG", "RC") else [exception(e, row.direction)]
    if e.variation is not None and e.variation < 1e-9:
        said.append(f"All {plural(e.words.row)} have the same predicted spread, so single ones cannot be told apart.")
    if e.zero_spread:
        rows = plural(e.words.row, e.zero_spread)
        have, their, they = ("has", "its", "It is") if e.zero_spread == 1 else ("have", "their", "They are")
        said.append(
            f"{count(e.zero_spread)} {rows} {have} a predicted spread of 0 and an error above 0: {their} likelihood is "
            f"0. {they} left out of the ratio."
        )
    return " ".join(part for part in said if part)


def _how_sure(e: Forecasts) -> str:
    """Strength of the evidence, and the bias of the means."""
    said = [answers.strength(e)]
    if e.dominated and not biased(e):
        row = "" if e.largest_row is None else f", row {e.largest_row}"
        said.append(f"The mean standardised error is not shown, because one row decides it{row}.")
    elif e.bias is not None and (e.test is None or not biased(e)):
        found = rounded(e.bias, least=2, apart=0.0)
        said.append(f"The mean standardised error is {found.value} ({found.ends}).")
    return answers.sureness(e, *said)


def _what_it_means(e: Forecasts, row: Row) -> str:
    """What the central intervals hold."""
    if e.coverage is None:
        return ""
    found = rates(e.coverage)
    held = f"{found.value} %{ends(found, before='', unit=' %')}"
    return f"Intervals meant to hold {100 * e.level:.4g} % of outcomes hold {held}."


def _what_to_do(e: Forecasts, row: Row) -> str:
    own = ""
    if row.state == "cannot be judged" and e.outputs > 1 and e.clusters is None:
        own = f"Report on each of the {e.outputs} outputs by itself (data.outputs)."
    return answers.advice(e, row, own=own, too_few=answers.too_few_for_a_map(e, row))


FORECASTS = TruthTable[Forecasts](
    untested=(_too_few,),
    tested=tuple(
        partial(_with_bias, rule)
        for rule in (_spread, _single_rows, _coverage, _only_groups_or_times, _not_significant)
    ),
    severity=lambda e: "caution",
    how_sure=_how_sure,
    what_it_means=_what_it_means,
    what_to_do=_what_to_do,
    second=_second,
    missing="RU",
)
