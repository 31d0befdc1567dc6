"""Rows of the truth table for predictions that leave little to judge: none, few, one outcome, one score."""

from __future__ import annotations

from typing import NamedTuple

from calibrant.reporting.contents import Direction, Severity, State, Value
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import bound, count, rate, rates, score
from calibrant.reporting.verdicts.evidence import Probabilities

#: Fewer events, other outcomes or rows than these are too few to judge.
FEW_EVENTS, FEW_ROWS = 10, 50


class Row(NamedTuple):
    """One row of a truth table that fits."""

    rule: str
    state: State
    direction: Direction | None
    sentence: str
    severity: Severity | None = None


def nothing(e: Probabilities) -> Row | None:
    """No row with an outcome (B0)."""
    if e.n > 0:
        return None
    return Row("B0", "cannot be judged", None, nothing_to_judge(e.words.source), "caution")


def nothing_to_judge(source: str) -> str:
    """The sentence for no rows; `source` says which filter or column left none."""
    because = f" ({source})" if source else ""
    return f"Nothing to judge: no row has both a prediction and an outcome{because}."


def one_outcome(e: Probabilities) -> Row | None:
    """Only one outcome was observed (B1)."""
    if 0 < e.events < e.n or e.n == 0:
        return None
    expected, limits = count(e.expected), e.observed
    if e.events <= 0:
        most = "" if limits is None or limits.high is None else _bound_of_rate(limits.high, "most")
        sentence = f"No {e.words.event} was observed among {rows_in_words(e)}, where {expected} were predicted{most}."
    else:
        least = "" if limits is None or limits.low is None else _bound_of_rate(limits.low, "least")
        sentence = (
            f"Every one of {rows_in_words(e)} had the {e.words.event}, where {expected} {plural(e.words.event)} "
            f"were predicted{least}."
        )
    rejects = e.test is not None and e.test.rejects
    state: State = "not calibrated" if rejects else "too few"
    direction: Direction | None = None if not rejects else ("too high" if e.events <= 0 else "too low")
    return Row("B1", state, direction, sentence, "problem" if rejects else "caution")


def _bound_of_rate(end: float, which: str) -> str:
    return f"; the true frequency is at {which} {rate(end)} (95 % bound)"


def one_score(e: Probabilities) -> Row | None:
    """All scores are equal (B3)."""
    if e.only_score is None or e.only_score in (0.0, 1.0):
        return None
    found = rates(e.observed or Value(e.base_rate))
    interval = f" (95 % interval {found.ends} %)" if found.ends else ""
    sentence = (
        f"Every {e.words.row} has the same predicted probability, {score(e.only_score)}; the observed frequency is "
        f"{found.value} %{interval}. {plural(e.words.row).capitalize()} cannot be told apart, so only the total can be "
        "checked."
    )
    rejects = e.test is not None and e.test.rejects
    return Row("B3", "not calibrated" if rejects else "not significant", level(e) if rejects else None, sentence)


def decisions(e: Probabilities) -> Row | None:
    """Scores are only 0 and 1 (B4)."""
    made = e.decisions
    if made is None:
        return None
    parts: list[str] = []
    for number, predicted, observed in ((made.ones, 1, made.rate_of_ones), (made.zeros, 0, made.rate_of_zeros)):
        if observed is None or number == 0:
            continue
        found = rates(observed)
        brackets = f" ({found.ends} %)" if found.ends else ""
        what = f"were {plural(e.words.event)}" if not parts else "were"
        rows = plural(e.words.row, number)
        parts.append(f"of {count(number)} {rows} predicted {predicted}, {found.value} % {what}{brackets}")
    sentence = f"The predictions are decisions, not probabilities: {'; '.join(parts)}."
    return Row("B4", "cannot be judged", None, sentence, "caution")


def too_few(e: Probabilities) -> Row | None:
    """Too few to judge; where even so few suffice for the test to reject, the rows below say what was found."""
    fewest = min(e.events, e.n - e.events)
    if (fewest >= FEW_EVENTS and e.n >= FEW_ROWS) or (e.test is not None and e.test.rejects):
        return None
    others = e.n - e.events < e.events
    if fewest >= FEW_EVENTS:
        start = f"Too few {plural(e.words.row)} to judge: {count(e.n)}."
    elif e.confidence:
        start = (
            f"Too few {'wrong' if others else 'right'} predictions to judge: {count(fewest)} among {rows_in_words(e)}."
        )
    else:
        what = f"non-{plural(e.words.event)}" if others else plural(e.words.event)
        start = f"Too few {what} to judge: {count(fewest)} among {rows_in_words(e)}."
    most = None if e.error is None else e.error.high
    more = "" if most is None else f" An error of up to {bound(most)} points cannot be ruled out."
    return Row("B2", "too few", None, start + more, "caution")


def untested(e: Probabilities) -> Row | None:
    """No test allows for the way these rows depend on each other."""
    if e.test is not None:
        return None
    most = None if e.error is None else e.error.high
    size = "" if most is None else f" An error of up to {bound(most)} points cannot be ruled out."
    reason = f": {e.untested}" if e.untested else ""
    return Row("BU", "cannot be judged", None, f"Calibration cannot be tested{reason}.{size}", "caution")


def level(e: Probabilities) -> Direction | None:
    """Too high or too low on the whole, where the interval of observed : expected excludes 1."""
    if e.ratio is None or not e.ratio.excludes(1.0):
        return None
    return "too high" if e.ratio.value < 1 else "too low"


def rows_in_words(e: Probabilities) -> str:
    """Their number, as the user calls them."""
    return f"{count(e.n)} {plural(e.words.row, e.n)}"
