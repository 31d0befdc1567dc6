"""The verdict on predicted probabilities of an event: the first row of the truth table that fits."""

from __future__ import annotations

from dataclasses import replace

from calibrant.reporting.contents import Bin, Direction, State
from calibrant.reporting.names import had_the_event, listed, plural
from calibrant.reporting.rounding import bound, count, mapped, negated, points, rates, ratio, score
from calibrant.reporting.verdicts import answers
from calibrant.reporting.verdicts.evidence import Probabilities
from calibrant.reporting.verdicts.severity import of_probabilities, small
from calibrant.reporting.verdicts.truth_table import Row, TruthTable, exception, interval_at, only_parts
from calibrant.results.estimate import Value

#: Fewer events, other outcomes or rows than these are too few to judge.
#: Test: tests/reporting/verdicts/test_binary.py::test_few_events_or_rows_are_not_judged.
FEW_EVENTS, FEW_ROWS = 10, 50


def one_outcome(e: Probabilities) -> Row | None:
    """Only one outcome was observed (B1)."""
    if 0 < e.events < e.n or e.test is None:
        return None
    expected, limits = count(e.expected), e.observed
    if e.events <= 0:
        most = "" if limits is None or limits.high is None else _bound_of_rate(limits.high, "most", e.levels[0])
        sentence = f"No {e.words.event} was observed among {e.counted}, where {expected} were predicted{most}."
    else:
        least = "" if limits is None or limits.low is None else _bound_of_rate(limits.low, "least", e.levels[0])
        every = f"Every one of {e.counted}" if e.n > 1 else f"The only {e.words.row}"
        sentence = (
            f"{every} {had_the_event(e.words.event)}, where {expected} "
            f"{plural(e.words.event, kind='event')} were predicted{least}."
        )
    if not e.rejects:
        return Row("B1", "too few", None, sentence, "caution")
    return Row("B1", "not calibrated", "too high" if e.events <= 0 else "too low", sentence, "problem")


def _bound_of_rate(end: float, which: str, level: float) -> str:
    return f"; the true frequency is at {which} {score(end)} ({100 * level:.6g} % bound)"


def too_few(e: Probabilities) -> Row | None:
    """Too few to judge (B2); where even so few suffice for the test to reject, the rows below say what was found."""
    fewest = min(e.events, e.n - e.events)
    if (fewest >= FEW_EVENTS and e.n >= FEW_ROWS) or e.rejects:
        return None
    if fewest >= FEW_EVENTS:
        start = f"Too few {plural(e.words.row)} to judge: {count(e.n)}."
    else:
        start = f"Too few {answers.rarer_outcome(e)} to judge: {count(fewest)} among {e.counted}."
    more = "" if e.most is None else f" An error of up to {bound(e.most)} points cannot be ruled out."
    return Row("B2", "too few", None, start + more, "caution")


def _decisions(e: Probabilities) -> Row | None:
    """Scores are only 0 and 1 (B4)."""
    made = e.decisions
    if made is None:
        return None
    parts: list[str] = []
    for number, predicted, observed in ((made.ones, 1, made.rate_of_ones), (made.zeros, 0, made.rate_of_zeros)):
        if observed is None or number == 0:
            continue
        found = rates(observed, predicted)
        what = had_the_event(e.words.event) if not parts else "had it"
        start = f"of {count(number)} {plural(e.words.row, number)} predicted {predicted}, "
        parts.append(f"{start}{found.value} % {what}{found.brackets(' %')}")
    sentence = f"The predictions are decisions, not probabilities: {'; '.join(parts)}."
    return Row("B4", "cannot be judged", None, sentence, "caution")


def one_score(e: Probabilities) -> Row | None:
    """All scores are equal (B3), and no group or time is wrong while the total is right."""
    if e.only_score is None or e.only_score in (0.0, 1.0) or (not e.rejects and only_groups_or_times(e) is not None):
        return None
    found = rates(e.observed or Value(e.base_rate), e.only_score)
    sentence = (
        f"Every {e.words.row} has the same predicted probability, {score(e.only_score)}; the observed frequency is "
        f"{found.value} %{found.at(e.levels[0], ' %')}. "
        f"{plural(e.words.row).capitalize()} cannot be distinguished, so only the total can be checked."
    )
    state: State = "not calibrated" if e.rejects else "not significant"
    return Row("B3", state, level(e) if e.rejects else None, sentence)


def only_groups_or_times(e: Probabilities) -> Row | None:
    """Not significant over all rows, but in groups or over time (BG, BC)."""
    return only_parts(e, f"No significant miscalibration detected over all {e.counted}", "B")


def not_significant(e: Probabilities) -> Row | None:
    """The test does not reject: how large the error may still be (B5, B6)."""
    if e.rejects:
        return None
    about, its = (" of the confidence", "its error") if e.confidence else ("", "the calibration error")
    start = f"No significant miscalibration{about} detected"
    most = e.most
    if most is None:
        return Row("B5", "not significant", None, f"{start} (n = {count(e.n)}).")
    if small(e):
        within = "" if e.tolerance is None else f", within your tolerance of {_points(e.tolerance)}"
        sentence = f"{start} (n = {count(e.n)}); {its} is at most {bound(most)} points{within}."
        return Row("B5", "not significant", None, sentence)
    above = "" if e.tolerance is None else f", above your tolerance of {_points(e.tolerance)}"
    sentence = f"{start}, but {e.counted} cannot rule out an error of up to {bound(most)} points{above}."
    return Row("B6", "not significant", None, sentence)


def backwards(e: Probabilities) -> Row | None:
    """Higher scores go with fewer events: most likely the wrong column or class (BB)."""
    return Row("BB", "not calibrated", "backwards", backwards_in_words(e), "problem") if e.backwards else None


def backwards_in_words(e: Probabilities) -> str:
    """That scores, or confidences, run backwards, with the slope and the likely cause."""
    found = ratio(e.slope or Value(0.0))
    interval = f", {interval_at(e.levels[1])}{found.ends}" if found.ends else ""
    if e.confidence:
        start = "confidence runs backwards: predictions of higher confidence are less often right"
        cause = "Are the columns in the order of the classes?"
    else:
        start = f"scores run backwards: higher scores go with fewer {plural(e.words.event, kind='event')}"
        cause = "Wrong column, or wrong positive class?"
    return f"The {start} (slope {found.value}{interval}). {cause}"


def uninformative(e: Probabilities) -> Row | None:
    """Higher scores do not go with more events (BI)."""
    if not e.uninformative or small(e):
        return None
    found, events = ratio(e.slope or Value(0.0)), plural(e.words.event, kind="event")
    start = f"The scores do not order the {plural(e.words.row)}: higher ones do not go with more {events}"
    interval = f", {interval_at(e.levels[1])}{found.ends}" if found.ends else ""
    return Row("BI", "not calibrated", "uninformative", f"{start} (slope {found.value}{interval}).")


def small_error(e: Probabilities) -> Row | None:
    """Significant, but surely below 5 % of the base rate or the tolerance (B7)."""
    if not small(e) or e.error is None:
        return None
    found = points(e.error)
    within = "" if e.tolerance is None else f", within your tolerance of {_points(e.tolerance)}"
    what = "the error of the confidence" if e.confidence else "the calibration error"
    if e.error.low is not None and e.error.low > 0:
        size = f"is {found.points} (95 % interval {found.ends})"
    else:
        size = f"is at most {bound(e.error.high or 0.0)} points"
    return Row("B7", "small", _direction(e), f"Statistically significant but small: {what} {size}{within}.")


def _rare(e: Probabilities) -> Row | None:
    if not e.rare or e.ratio is None or not e.ratio.excludes(1.0) or e.confidence:
        return None
    observed, expected, found, what = e.events, e.expected, e.ratio, plural(e.words.event, kind="event")
    if e.base_rate > 0.5:  # the other outcome is the rare one: its ratio, from the same interval
        observed, expected, what = e.n - e.events, e.n - e.expected, f"non-{plural(e.words.event, kind='event')}"
        found = replace(mapped(found, lambda end: (e.n - end * e.expected) / expected), value=observed / expected)
    named = "" if e.words.event == "event" else f"{e.words.event} "
    size = ratio(found)
    sentence = (
        f"Predicted {named}probabilities are {level(e)}: {count(observed)} {what} occurred where {count(expected)} "
        f"were predicted, a ratio of {size.value}{size.at(e.levels[0])}."
    )
    return Row("B8", "not calibrated", level(e), sentence)


def uncertain_size(e: Probabilities) -> Row | None:
    """Significant, but the interval of the error reaches 0 (B9)."""
    if e.error is None or e.test is None or (e.error.low is not None and e.error.low > 0):
        return None
    subject = "The confidence is not calibrated" if e.confidence else "Not calibrated"
    start = f"{subject} ({e.test.in_words}), but the size of the error is uncertain"
    if e.error.high is None:
        return Row("B9", "not calibrated", _direction(e), f"{start}.")
    sentence = f"{start}: {points(e.error).points}, anywhere from 0 to {bound(e.error.high)}."
    return Row("B9", "not calibrated", _direction(e), sentence)


def _level_and_slope(e: Probabilities) -> Row | None:
    gap, side = e.gap, level(e)
    if gap is None or side is None or e.error is None or abs(gap.value) < e.error.value / 2:
        return None
    size = points(gap if side == "too high" else negated(gap))
    interval = size.at(e.levels[0])
    sentence = f"Predicted probabilities are {side} by {size.points} on average{interval}"
    if e.slope is None or not e.tilted:
        return Row("B11", "not calibrated", side, f"{sentence}.")
    found = ratio(e.slope)
    return Row("B10", "not calibrated", side, f"{sentence}, and {_tilt(e)} (slope {found.value}, {found.ends}).")


def _slope(e: Probabilities) -> Row | None:
    tilt = _tilt(e)
    if tilt is None or e.error is None:
        return None
    high, low = ("high", "low") if tilt == "too extreme" else ("low", "high")
    size = points(e.error)
    sentence = (
        f"Predicted probabilities are {tilt}: high ones too {high}, low ones too {low}, by {size.points} on "
        f"average (95 % interval {size.ends})."
    )
    return Row("B12" if tilt == "too extreme" else "B13", "not calibrated", tilt, sentence)


def _mixed(e: Probabilities) -> Row:
    if e.error is None:
        p = "" if e.test is None else f" ({e.test.in_words})"
        return Row("B14", "not calibrated", "mixed", f"Predicted probabilities are not calibrated{p}.")
    size, where = points(e.error), where_the_error_sits(e.ranges, ("too high", "too low"))
    sentence = f"Predicted probabilities are wrong by {size.points} on average (95 % interval {size.ends})"
    return Row("B14", "not calibrated", "mixed", f"{sentence}{f': {where}' if where else ''}.")


def where_the_error_sits(ranges: tuple[Bin, ...], words: tuple[str, str]) -> str:
    """The two ranges of scores that carry most of the error, in words: "too high at 10 to 30 %, too low at ...".

    A range whose own interval holds the mean prediction may be right.
    """
    carrying = sorted((one for one in ranges if one.share), key=lambda one: -(one.share or 0.0))[:2]
    carrying = [one for one in carrying if one.off or one.observed.low is None]
    carrying = sorted(carrying, key=lambda one: one.low)
    above = [one for one in carrying if one.predicted > one.observed.value]
    below = [one for one in carrying if one.predicted <= one.observed.value]
    both = zip(words, (above, below), strict=True)
    return ", ".join(f"{word} at {listed([_range(one) for one in some])}" for word, some in both if some)


def _range(one: Bin) -> str:
    low, high = score(one.low), score(one.high)
    return low if low == high else f"{low.removesuffix('%').strip()} to {high}"


def _tilt(e: Probabilities) -> Direction | None:
    """Too extreme or too moderate, where the interval of the slope excludes 1 and the error is that of the slope."""
    if e.slope is None or not e.tilted:
        return None
    return "too extreme" if e.slope.value < 1 else "too moderate"


def _direction(e: Probabilities) -> Direction:
    """The first that applies: level, slope, or neither."""
    return level(e) or _tilt(e) or "mixed"


def level(e: Probabilities) -> Direction | None:
    """Too high or too low on the whole, where the interval of observed : expected excludes 1."""
    if e.ratio is None or not e.ratio.excludes(1.0):
        return None
    if e.confidence:
        return "over-confident" if e.ratio.value < 1 else "under-confident"
    return "too high" if e.ratio.value < 1 else "too low"


def _points(fraction: float) -> str:
    text = f"{100 * fraction:g}"
    return f"{text} {plural('point', 1 if text == '1' else 2)}"


def second_sentence(e: Probabilities, row: Row) -> str:
    """A change over time, else a group against the direction of the whole, else the worst of few scores, else ""."""
    if not row.judged or row.rule in ("BG", "BC"):
        return ""
    told, worst = exception(e, row.direction), e.largest_gap
    if told or worst is None or e.distinct is None or not e.rejects:
        return told
    found = rates(worst.observed, worst.predicted)
    interval = f", {found.ends} %" if found.ends else ""
    return (
        f"Only {e.distinct} distinct scores: the largest gap is at {score(worst.predicted)} "
        f"(observed {found.value} %{interval})."
    )


BINARY = TruthTable[Probabilities](
    untested=(one_outcome, too_few, _decisions),
    tested=(
        one_score,
        only_groups_or_times,
        not_significant,
        backwards,
        uninformative,
        small_error,
        _rare,
        uncertain_size,
        _level_and_slope,
        _slope,
        _mixed,
    ),
    severity=of_probabilities,
    how_sure=answers.how_sure,
    what_it_means=lambda e, row: answers.what_it_means(e),
    what_to_do=answers.what_to_do,
    second=second_sentence,
)
