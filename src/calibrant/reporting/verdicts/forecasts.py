"""The verdict on predicted distributions: is the predicted spread the size of the errors?"""

from __future__ import annotations

from typing import NamedTuple

from calibrant.reporting.contents import Direction, Severity, State, Verdict
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import count, fixed, negated, p_words, percent, rates, ratio, rounded
from calibrant.reporting.verdicts import answers
from calibrant.reporting.verdicts.evidence import Forecasts
from calibrant.reporting.verdicts.severity import RATIOS, changed, flagged_groups, outside
from calibrant.reporting.verdicts.special_cases import (
    against_the_whole,
    exception_in_words,
    flagged_in_words,
    nothing_to_judge,
    spread_change_in_words,
    untested,
)
from calibrant.results.estimate import Value

#: Fewer forecasts are too few to judge.
FEW = 30
#: A bias below so many predicted standard deviations is not spoken of; above the second number it is a problem.
BIAS, LARGE_BIAS = 0.1, 0.2
#: A ratio whose whole interval lies within is small.
NEAR_ONE = (0.98, 1.02)
#: Coverage that is surely off by more than this is a problem.
COVERAGE = 0.02


class Row(NamedTuple):
    """One row of the truth table that fits."""

    rule: str
    state: State
    severity: Severity
    direction: Direction | None
    sentence: str


def forecast_verdict(e: Forecasts) -> Verdict:
    """The verdict; rows of the table are tried from top to bottom."""
    row = _row(e)
    if row.state != "cannot be judged" and row.state != "too few":
        row = _with_bias(row, e)
    groups = [] if row.rule in ("RG", "RC") else [_second(e, row)]
    return Verdict(
        rule=row.rule,
        state=row.state,
        severity=row.severity,
        direction=row.direction,
        sentence=row.sentence,
        second=" ".join(part for part in (*groups, *_additions(e)) if part),
        how_sure=how_sure(e),
        what_it_means=what_it_means(e),
        what_to_do=_what_to_do(e, row.state),
    )


def _row(e: Forecasts) -> Row:
    if e.n == 0:
        return Row("B0", "cannot be judged", "caution", None, nothing_to_judge(e.words.source))
    rejects = e.test is not None and e.test.rejects
    if e.n < FEW and not rejects:
        return Row("R7", "too few", "caution", None, _too_few(e))
    if e.test is None:
        return Row("RU", "cannot be judged", "caution", None, untested(e).sentence)
    if rejects and e.by_spread and e.ratio is not None:
        return _spread(e, e.ratio)
    if rejects:
        return _coverage(e)
    if _single_rows_wrong(e):
        return _single_rows(e)
    if e.also_rejected("shape"):
        return _coverage(e)
    if changed(e.over_time) is not None:
        start = f"No significant miscalibration detected over all {count(e.n)} {plural(e.words.row, e.n)}"
        told = spread_change_in_words(e.over_time)
        sentence = f"{start}, but {told[0].lower()}{told[1:]}"
        return Row("RC", "not calibrated", "problem", "mixed", sentence)
    if flagged_groups(e.groups):
        start = f"No significant miscalibration detected over all {count(e.n)} {plural(e.words.row, e.n)}"
        return Row("RG", "not calibrated", "problem", "mixed", f"{start}, but {flagged_in_words(e.groups)}.")
    return _not_significant(e)


def _too_few(e: Forecasts) -> str:
    start = f"Too few {plural(e.words.row)} to judge: {count(e.n)}."
    if e.ratio is None or e.ratio.low is None or e.ratio.high is None:
        return start
    found = ratio(e.ratio)
    return f"{start} The ratio of errors to spread could be anywhere from {found.low} to {found.high}."


def _spread(e: Forecasts, size: Value) -> Row:
    found, narrow = ratio(size), size.value > 1
    interval = f" (95 % interval {found.ends})" if found.ends else ""
    word, only = ("narrow", "") if narrow else ("wide", "only ")
    times = f"{only}{found.value} times the predicted standard deviation"
    sentence = f"Predicted spread is too {word}: errors are {times}{interval}."
    small = size.low is not None and size.high is not None and size.low > NEAR_ONE[0] and size.high < NEAR_ONE[1]
    severity: Severity = "problem" if outside(size, RATIOS) else "note" if small else "caution"
    if any(row.flagged and outside(row.ratio, RATIOS) for grouping in e.groups for row in grouping.rows):
        severity = "problem"
    state: State = "small" if severity == "note" else "not calibrated"
    if state == "small":
        sentence = f"Statistically significant but small: {sentence[0].lower()}{sentence[1:]}"
    return Row("R1" if narrow else "R2", state, severity, "too narrow" if narrow else "too wide", sentence)


def _single_rows_wrong(e: Forecasts) -> bool:
    beyond = e.ence is not None and e.ence_null is not None and e.ence > e.ence_null[1]
    return beyond and e.also_rejected("single rows")


def _single_rows(e: Forecasts) -> Row:
    error, (low, high) = e.ence or 0.0, e.ence_null or (0.0, 0.0)
    calibrated = percent(Value((low + high) / 2, low, high))
    sentence = (
        f"The spread is right on average but not for single {plural(e.words.row)}: {fixed(100 * error, 0)} % mean "
        f"relative error, where a calibrated forecaster would show {calibrated.ends} %."
    )
    return Row("R3", "not calibrated", "problem" if error > 2 * high else "caution", "mixed", sentence)


def _coverage(e: Forecasts) -> Row:
    """F(y) is not uniform: coverage says how, where it is off beyond chance."""
    found = e.coverage
    nominal = f"{100 * e.level:.4g}"
    if found is None or not found.excludes(e.level):
        p = e.shape_p if e.by_spread else (None if e.test is None else e.test.p_value)
        told = "" if p is None else f" ({p_words(p)})"
        sentence = f"Outcomes do not fall evenly over their predicted distributions{told}"
        more = "" if found is None else f", though {rates(found).value} % lie inside the central {nominal} % intervals"
        return Row("R5", "not calibrated", "caution", "mixed", f"{sentence}{more}.")
    often = found.value < e.level
    inside = rates(found)
    start = f"Outcomes fall outside the central {nominal} % interval {'too often' if often else 'too rarely'}"
    sentence = f"{start}: {inside.value} % are inside (95 % interval {inside.ends} %)."
    far = outside(found, (e.level - COVERAGE, e.level + COVERAGE))
    direction: Direction = "too narrow" if often else "too wide"
    return Row("R5", "not calibrated", "problem" if far else "caution", direction, sentence)


def _not_significant(e: Forecasts) -> Row:
    start = f"No significant miscalibration detected (n = {count(e.n)})"
    if e.ratio is not None and e.by_spread:
        found = ratio(e.ratio)
        interval = f" (95 % interval {found.ends})" if found.ends else ""
        within = e.ratio.low is not None and e.ratio.high is not None
        within = within and e.ratio.low >= RATIOS[0] and e.ratio.high <= RATIOS[1]  # type: ignore[operator]
        sentence = f"{start}: errors are {found.value} times the predicted standard deviation{interval}."
        return Row("R6", "not significant", "note" if within else "caution", None, sentence)
    if e.coverage is not None:
        inside = rates(e.coverage)
        ends = f" (95 % interval {inside.ends} %)" if inside.ends else ""
        sentence = (
            f"{start}: {inside.value} % of outcomes lie inside the central {100 * e.level:.4g} % intervals{ends}."
        )
        wide = e.coverage.low is not None and e.coverage.low < e.level - 0.1
        return Row("R6", "not significant", "caution" if wide else "note", None, sentence)
    return Row("R6", "not significant", "caution", None, f"{start}.")


def biased(e: Forecasts) -> bool:
    """Whether forecasts are shifted, beyond chance and by enough to speak of."""
    return e.bias is not None and e.also_rejected("bias") and abs(e.bias.value) > BIAS


def _with_bias(row: Row, e: Forecasts) -> Row:
    """The row with what is said of a shift of the forecasts (R4)."""
    if not biased(e) or e.bias is None:
        return row
    low = e.bias.value > 0
    found = rounded(e.bias if low else negated(e.bias), least=2, apart=0.0)
    told = f"Forecasts are {'low' if low else 'high'} by {found.value} predicted standard deviations ({found.ends})."
    ends = (e.bias.low, e.bias.high)
    large = all(end is not None and abs(end) > LARGE_BIAS for end in ends)
    if row.state == "not significant":
        return Row("R4", "not calibrated", "problem" if large else "caution", "shifted", told)
    severity: Severity = "problem" if large else "caution" if row.severity == "note" else row.severity
    return Row(row.rule, "not calibrated", severity, row.direction, f"{told} {row.sentence}")


def _second(e: Forecasts, row: Row) -> str:
    if changed(e.over_time) is not None:
        return spread_change_in_words(e.over_time)
    exception = against_the_whole(e, row.direction)
    return "" if exception is None else exception_in_words(exception, e.words)


def _additions(e: Forecasts) -> list[str]:
    said = []
    if e.variation is not None and e.variation < 1e-9:
        said.append(f"All {plural(e.words.row)} have the same predicted spread, so single ones cannot be told apart.")
    if e.zero_spread:
        row = plural(e.words.row, e.zero_spread)
        have, their, they = ("has", "its", "It is") if e.zero_spread == 1 else ("have", "their", "They are")
        said.append(
            f"{count(e.zero_spread)} {row} {have} a predicted spread of 0 and an error above 0: {their} likelihood is "
            f"0. {they} left out of the ratio."
        )
    return said


def how_sure(e: Forecasts) -> str:
    """Strength of the evidence, and the bias of the means."""
    said = [told] if (told := answers.strength(e)) else []
    if e.dominated and not biased(e):
        row = "" if e.largest_row is None else f", row {e.largest_row}"
        said.append(f"The mean standardised error is not shown, because one row decides it{row}.")
    elif e.bias is not None and (e.test is None or not biased(e)):
        found = rounded(e.bias, least=2, apart=0.0)
        said.append(f"The mean standardised error is {found.value} ({found.ends}).")
    return " ".join([*said, *answers.about_rows(e)])


def what_it_means(e: Forecasts) -> str:
    """What the central intervals hold."""
    if e.coverage is None:
        return ""
    found = rates(e.coverage)
    ends = f" ({found.ends} %)" if found.ends else ""
    return f"Intervals meant to hold {100 * e.level:.4g} % of outcomes hold {found.value} %{ends}."


def _what_to_do(e: Forecasts, state: State) -> str:
    if state == "cannot be judged" and e.outputs > 1 and e.clusters is None:
        return f"Report on each of the {e.outputs} outputs by itself (data.outputs)."
    if state == "cannot be judged":
        return answers.to_be_judged(e)
    if state == "too few" or e.n < answers.FEW_ROWS:
        return f"Too few {plural(e.words.row)} to fit or judge a map."
    if state == "not significant":
        return "Nothing needs to be done for calibration."
    return answers.recommendation(e, state)
