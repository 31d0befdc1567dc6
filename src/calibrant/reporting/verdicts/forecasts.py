"""The verdict on predicted distributions: the component of their test that decided, with the number that shows it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from calibrant.inference.forecast_tests import component_in_words
from calibrant.reporting.contents import Direction, Severity, State
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import count, negated, rates, ratio, rounded
from calibrant.reporting.verdicts import answers
from calibrant.reporting.verdicts.evidence import ALPHA, Forecasts
from calibrant.reporting.verdicts.severity import COVERAGE, RATIOS, changed, far, flagged_groups, outside
from calibrant.reporting.verdicts.truth_table import Row, TruthTable, exception, flagged_in_words, only_parts
from calibrant.results.estimate import Component, Value

#: Fewer forecasts are too few to judge.
#: Test: tests/reporting/verdicts/test_forecasts.py::test_limits_of_severity.
FEW = 30
#: A bias that is surely larger than this, in predicted standard deviations, is a problem.
#: Test: tests/reporting/verdicts/test_forecasts.py::test_limits_of_severity.
LARGE_BIAS = 0.2
#: A ratio whose whole interval lies within is small.
#: Test: tests/reporting/verdicts/test_forecasts.py::test_limits_of_severity.
NEAR_ONE = (0.98, 1.02)


def _too_few(e: Forecasts) -> Row | None:
    """Few forecasts, and no rejection (R7)."""
    if e.n >= FEW or e.rejects:
        return None
    sentence = f"Too few {plural(e.words.row)} to judge: {count(e.n)}."
    if e.ratio is not None and e.ratio.low is not None and e.ratio.high is not None:
        found = ratio(e.ratio)
        sentence += f" The ratio of errors to spread could be anywhere from {found.low} to {found.high}."
    return Row("R7", "too few", None, sentence, "caution")


def _dependent(e: Forecasts) -> Row | None:
    """Rows reject as if they were independent, but blocks of neighbours do not, nor do groups or times (R8)."""
    if not _by_neighbours_alone(e):
        return None
    start = f"Calibration cannot be judged: neighbouring {plural(e.words.row)} depend on each other"
    sentence = f"{start}, which alone may explain how far outcomes deviate."
    return Row("R8", "cannot be judged", None, sentence, "caution")


def _by_neighbours_alone(e: Forecasts) -> bool:
    """Whether the rejection may come from the dependence of neighbours alone."""
    alone = e.of_blocks is not None and not e.of_blocks < ALPHA
    return e.rejects and alone and not flagged_groups(e.groups) and changed(e.over_time) is None


def decided(e: Forecasts) -> Component | None:
    """What the test rests on; of a table of spreads, the ratio is all that is tested."""
    if e.test is None or not e.test.rejects:
        return None
    if e.test.decided is not None or e.test.components or e.ratio is None:
        return e.test.decided
    return Component("spread", e.test.p_value, 1.0, -1 if e.ratio.value > 1 else 1)


def _spread(e: Forecasts) -> Row | None:
    """The predicted spread is too narrow (R1) or too wide (R2), by the ratio or the coverage that shows it."""
    found = decided(e)
    if found is None or found.name != "spread":
        return None
    narrow = found.direction < 0
    word: Direction = "too narrow" if narrow else "too wide"
    rule = "R1" if narrow else "R2"
    size, held = e.ratio, e.coverage
    if size is not None and size.excludes(1.0) and (size.value > 1) == narrow:
        text = ratio(size)
        times = f"{'' if narrow else 'only '}{text.value} times the predicted standard deviation"
        sentence = f"Predicted spread is {word}: errors are {times}{text.at()}."
        small = size.low is not None and size.high is not None and size.low > NEAR_ONE[0] and size.high < NEAR_ONE[1]
        severity: Severity = "problem" if outside(size, RATIOS) else "note" if small else "caution"
        if any(far(row) for row in flagged_groups(e.groups)):
            severity = "problem"
        state: State = "small" if severity == "note" else "not calibrated"
        start = f"Statistically significant but small: {sentence[0].lower()}{sentence[1:]}"
        return Row(rule, state, word, start if state == "small" else sentence, severity)
    if held is not None and (held.value < e.level) == narrow and held.excludes(e.level):
        inside = rates(held, e.level)
        start = f"Predicted intervals are {word}: {inside.value} % of outcomes lie inside the central"
        sentence = f"{start} {100 * e.level:.4g} % intervals{inside.at(unit=' %')}."
        return Row(rule, "not calibrated", word, sentence, _far(e))
    return Row(rule, "not calibrated", word, f"Predicted distributions are {word} ({_p(e)}).", "caution")


def _shifted(e: Forecasts) -> Row | None:
    """Forecasts are too low or too high (R4)."""
    found = decided(e)
    if found is None or found.name != "bias":
        return None
    low, size = found.direction < 0, e.bias
    word: Direction = "too low" if low else "too high"
    start = f"Forecasts are {word}"
    if size is None or not size.excludes(0.0) or (size.value > 0) != low or e.dominated:
        return Row("R4", "not calibrated", word, f"{start} ({_p(e)}).", "caution")
    text = rounded(size if low else negated(size), least=2, apart=0.0)
    large = all(end is not None and abs(end) > LARGE_BIAS for end in (size.low, size.high))
    sentence = f"{start} by {text.value} predicted standard deviations{text.at()}."
    return Row("R4", "not calibrated", word, sentence, "problem" if large else "caution")


def _by_width(e: Forecasts) -> Row | None:
    """Right on average, but not for wide and narrow forecasts alike (R3)."""
    found = decided(e)
    if found is None or found.name not in ("spread by width", "bias by width"):
        return None
    words = _sentence(found)
    if e.ties:  # of which narrow forecasts have most, so that nothing is known of these
        words = words.removesuffix(" relative to narrow ones")
    start, error, null = f"{words} ({_p(e)})", e.ence, e.ence_null
    if found.name == "bias by width" or error is None or null is None or error <= null[1]:
        return Row("R3", "not calibrated", "mixed", f"{start}.", "caution")
    sentence = (
        f"{start}: {rates(Value(error)).value} % mean relative error of the spread, where a calibrated forecaster "
        f"would show {e.ence_when_calibrated} %."
    )
    return Row("R3", "not calibrated", "mixed", sentence, "problem" if error > 2 * null[1] else "caution")


def _shape(e: Forecasts) -> Row | None:
    """Skewness, tails or another shape (R5)."""
    if not e.rejects:
        return None
    found, held = decided(e), e.coverage
    start = f"Outcomes do not fall evenly over their predicted distributions ({_p(e)})"
    if found is not None and found.direction:
        start = f"{_sentence(found)} ({_p(e)})"
    if held is None:
        return Row("R5", "not calibrated", "mixed", f"{start}.", "caution")
    inside = rates(held, e.level)
    but = ":" if held.excludes(e.level) else ", though"
    sentence = f"{start}{but} {inside.value} % lie inside the central {100 * e.level:.4g} % intervals"
    return Row("R5", "not calibrated", "mixed", f"{sentence}{inside.at(unit=' %')}.", _far(e))


def _sentence(found: Component) -> str:
    """A component in words, with a subject and a verb."""
    words = component_in_words(found)
    for subject in ("wide forecasts", "tails"):
        if words.startswith(subject):
            return f"{subject.capitalize()} are{words.removeprefix(subject)}"
    return f"Predicted distributions are {words}"


def _probably(rule: Callable[[Forecasts], Row | None], e: Forecasts) -> Row | None:
    """The row, if it fits; less sure where neighbouring rows depend on each other, which the test does not know."""
    row = rule(e)
    if row is None or not e.warning:
        return row
    return row._replace(sentence=f"Probably, {row.sentence[0].lower()}{row.sentence[1:]}", severity="caution")


def _far(e: Forecasts) -> Severity:
    """A problem where coverage is surely off by more than two points."""
    return "problem" if outside(e.coverage, (e.level - COVERAGE, e.level + COVERAGE)) else "caution"


def _p(e: Forecasts) -> str:
    return "" if e.test is None else e.test.in_words


def _only_groups_or_times(e: Forecasts) -> Row | None:
    """Not significant over all forecasts, but in groups or over time (RG, RC)."""
    row = only_parts(e, f"No significant miscalibration detected over all {e.counted}", "R")
    return None if row is None else row._replace(direction="mixed", severity="problem")


def _not_significant(e: Forecasts) -> Row:
    """Nothing was found (R6)."""
    start, wide = f"No significant miscalibration detected (n = {count(e.n)})", bool(e.looks)
    if e.ratio is not None and e.ratio.low is not None and e.ratio.high is not None:
        found = ratio(e.ratio)
        within = e.ratio.low >= RATIOS[0] and e.ratio.high <= RATIOS[1]
        sentence = f"{start}: errors are {found.value} times the predicted standard deviation{found.at()}."
        return Row("R6", "not significant", None, sentence, "note" if within and not wide else "caution")
    if e.coverage is not None:
        inside = rates(e.coverage, e.level)
        lie = f"{inside.value} % of outcomes lie inside the central {100 * e.level:.4g} % intervals"
        wide = wide or (e.coverage.low is not None and e.coverage.low < e.level - 0.1)
        sentence = f"{start}: {lie}{inside.at(unit=' %')}."
        return Row("R6", "not significant", None, sentence, "caution" if wide else "note")
    return Row("R6", "not significant", None, f"{start}.", "caution")


def _second(e: Forecasts, row: Row) -> str:
    """What else is clear, a change over time or a group against the whole; and rows without a spread of their own."""
    said = [] if row.rule in ("RG", "RC") else [_also(e), exception(e, row.direction) or _where(e)]
    clauses = (e.ties if e.coverage is None else "", "" if row.rule == "R8" else e.warning)
    said += [f"{clause[0].upper()}{clause[1:]}." for clause in clauses if clause]
    if e.variation is not None and e.variation < 1e-9:
        said.append(
            f"All {plural(e.words.row)} have the same predicted spread, so it cannot tell certain ones from uncertain "
            "ones."
        )
    if e.zero_spread:
        rows = plural(e.words.row, e.zero_spread)
        have, their, they = ("has", "its", "It is") if e.zero_spread == 1 else ("have", "their", "They are")
        said.append(
            f"{count(e.zero_spread)} {rows} {have} a predicted spread of 0 and an error above 0: {their} likelihood is "
            f"0. {they} left out of the ratio."
        )
    return " ".join(part for part in said if part)


def _where(e: Forecasts) -> str:
    """The groups in which the error sits, or that err in opposite directions."""
    told = flagged_in_words(e.groups)
    return f"{told[0].upper()}{told[1:]}." if e.rejects and answers.groups_apart(e) else ""


def _also(e: Forecasts) -> str:
    """Another component that rejects by itself: bias beside spread, or spread beside bias."""
    first = decided(e)
    if first is None or e.test is None or first.name not in ("bias", "spread"):
        return ""
    other = e.test.clear("spread" if first.name == "bias" else "bias")
    if other is None or (other.name == "spread" and other.direction < 0 and not _narrow_beside_bias(e)):
        return ""
    if other.name == "bias" and e.bias is not None and not e.bias.excludes(0.0):  # its test takes the spread as right
        return ""
    return f"Forecasts are also {component_in_words(other)}."


def _narrow_beside_bias(e: Forecasts) -> bool:
    """Whether errors are larger than the spread even without the bias, which adds its square to theirs."""
    if e.ratio is None or e.bias is None or None in (e.ratio.low, e.bias.low, e.bias.high):
        return False
    bias = max(abs(e.bias.low or 0.0), abs(e.bias.high or 0.0))
    return (e.ratio.low or 0.0) ** 2 - bias**2 > 1


def _how_sure(e: Forecasts) -> str:
    """Strength of the evidence, and the bias of the means."""
    if _by_neighbours_alone(e):
        return "Significance is not known, because rows that depend on each other deviate together."
    said = [answers.strength(e)]
    if e.dominated:
        row = "" if e.largest_row is None else f", row {e.largest_row}"
        said.append(f"The mean standardised error is not shown, because one row decides it{row}.")
    elif e.bias is not None and not e.bias.excludes(0.0):
        found = rounded(e.bias, least=2, apart=0.0)
        said.append(f"The mean standardised error is {found.value} ({found.ends}).")
    return answers.sureness(e, *said)


def _what_it_means(e: Forecasts, row: Row) -> str:
    """What the central intervals hold."""
    if e.coverage is None or row.rule == "R8":
        return ""
    found = rates(e.coverage, e.level)
    held = f"{found.value} %{found.brackets(' %')}"
    return f"Intervals meant to hold {100 * e.level:.4g} % of outcomes hold {held}."


#: Maps that move more than the spread.
_MOVE_MEANS = ("Conformal", "ExchangeableStretch")


def _mean_first(e: Forecasts) -> str:
    """Advice where the mean is wrong and the maps tried move the spread alone."""
    found, made = decided(e), e.recalibration
    if found is None or not found.name.startswith("bias") or made is None or made.fitted in _MOVE_MEANS:
        return ""
    if found.name == "bias" and (told := answers.groups_apart(e)):
        return told
    return "Correct the mean of the forecasts first, and repeat the report: maps of the spread leave a bias as it is."


def _what_to_do(e: Forecasts, row: Row) -> str:
    settled = "Give draws or the distribution itself." if e.ties and e.coverage is None else answers.NOTHING
    too_few = answers.too_few_for_a_map(e, row)
    said = answers.advice(e, row, own=_mean_first(e), too_few=too_few, settled=settled)
    if not e.warning or (not row.judged and row.rule != "R8"):
        return said
    first = "First say which rows depend on each other (group=), and repeat the report."
    return f"{first} {said}" if row.state == "not calibrated" else first


FORECASTS = TruthTable[Forecasts](
    untested=(_too_few,),
    tested=(
        _dependent,
        *(partial(_probably, rule) for rule in (_spread, _shifted, _by_width, _shape)),
        _only_groups_or_times,
        _not_significant,
    ),
    severity=lambda e: "caution",
    how_sure=_how_sure,
    what_it_means=_what_it_means,
    what_to_do=_what_to_do,
    second=_second,
    missing="RU",
)
