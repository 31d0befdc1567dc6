"""The verdict on predicted probabilities of an event: the first row of the truth table that fits."""

from __future__ import annotations

from collections.abc import Callable

from calibrant.reporting.contents import Bin, Direction, Verdict
from calibrant.reporting.names import listed, plural
from calibrant.reporting.rounding import bound, count, fixed, negated, points, ratio, score
from calibrant.reporting.verdicts import answers
from calibrant.reporting.verdicts.evidence import Probabilities
from calibrant.reporting.verdicts.severity import changed, flagged_groups, of_probabilities, small, unruled
from calibrant.reporting.verdicts.special_cases import (
    Row,
    backwards,
    change_in_words,
    decisions,
    flagged_in_words,
    level,
    nothing,
    one_outcome,
    one_score,
    rows_in_words,
    second_sentence,
    too_few,
    untested_probabilities,
)
from calibrant.results.estimate import Value


def binary_verdict(evidence: Probabilities) -> Verdict:
    """The verdict; rows of the table are tried from top to bottom."""
    row = next(found for rule in RULES if (found := rule(evidence)) is not None)
    severity = row.severity or of_probabilities(evidence)
    judged = row.state in ("not calibrated", "small", "not significant")
    return Verdict(
        rule=row.rule,
        state=row.state,
        severity=severity,
        direction=row.direction,
        sentence=row.sentence,
        second=second_sentence(evidence, row.direction) if judged and row.rule not in ("BG", "BC") else "",
        how_sure=answers.how_sure(evidence),
        what_it_means=answers.what_it_means(evidence),
        what_to_do=answers.what_to_do(evidence, row.state),
    )


def only_parts(e: Probabilities) -> Row | None:
    """Not significant over all rows, but in groups or over time."""
    if e.test is None or e.test.rejects:
        return None
    change, groups = changed(e.over_time), flagged_groups(e.groups)
    if change is not None:
        told = change_in_words(e.over_time, e.words)
        sentence = f"{_none_over_all(e)}, but {told[0].lower()}{told[1:]}"
        return Row("BC", "not calibrated", "mixed", sentence)
    if groups:
        sentence = f"{_none_over_all(e)}, but {flagged_in_words(e.groups)}."
        directions = {row.direction for row in groups}
        return Row("BG", "not calibrated", directions.pop() if len(directions) == 1 else "mixed", sentence)
    return None


def _none_over_all(e: Probabilities) -> str:
    return f"No significant miscalibration detected over all {rows_in_words(e)}"


def not_significant(e: Probabilities) -> Row | None:
    """The test does not reject: how large the error may still be (B5, B6)."""
    if e.test is None or e.test.rejects:
        return None
    about, its = (" of the confidence", "its error") if e.confidence else ("", "the calibration error")
    start = f"No significant miscalibration{about} detected"
    most = None if e.error is None else e.error.high
    if most is None:
        return Row("B5", "not significant", None, f"{start} (n = {count(e.n)}).")
    if not unruled(e):
        within = "" if e.tolerance is None else f", within your tolerance of {_points(e.tolerance)}"
        sentence = f"{start} (n = {count(e.n)}); {its} is at most {bound(most)} points{within}."
        return Row("B5", "not significant", None, sentence)
    above = "" if e.tolerance is None else f", above your tolerance of {_points(e.tolerance)}"
    sentence = f"{start}, but {rows_in_words(e)} cannot rule out an error of up to {bound(most)} points{above}."
    return Row("B6", "not significant", None, sentence)


def small_error(e: Probabilities) -> Row | None:
    """Significant, but surely below 2 % of the base rate or the tolerance (B7)."""
    if not small(e) or e.error is None:
        return None
    found = points(e.error)
    within = "" if e.tolerance is None else f", within your tolerance of {_points(e.tolerance)}"
    what = "the error of the confidence" if e.confidence else "the calibration error"
    if e.error.low is not None and e.error.low > 0:
        size = f"is {found.value} points (95 % interval {found.ends})"
    else:
        size = f"is at most {bound(e.error.high or 0.0)} points"
    return Row("B7", "small", _direction(e), f"Statistically significant but small: {what} {size}{within}.")


def _rare(e: Probabilities) -> Row | None:
    if not e.rare or e.ratio is None or not e.ratio.excludes(1.0) or e.confidence:
        return None
    observed, expected, found, what = e.events, e.expected, e.ratio, plural(e.words.event, kind="event")
    if e.base_rate > 0.5:  # the other outcome is the rare one: its ratio, from the same interval
        observed, expected, what = e.n - e.events, e.n - e.expected, f"non-{plural(e.words.event, kind='event')}"
        low, high = (
            None if end is None else (e.n - end * e.expected) / (e.n - e.expected) for end in (found.high, found.low)
        )
        found = Value(observed / expected, low, high)
    named = "" if e.words.event == "event" else f"{e.words.event} "
    size = ratio(found)
    sentence = (
        f"Predicted {named}probabilities are {level(e)}: {count(observed)} {what} occurred where {count(expected)} "
        f"were predicted, a ratio of {size.value} (95 % interval {size.ends})."
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
    digits = 0 if e.error.high > 0.05 else 1 if e.error.high > 0.005 else 2
    sentence = f"{start}: {fixed(100 * e.error.value, digits)} points, anywhere from 0 to {bound(e.error.high)}."
    return Row("B9", "not calibrated", _direction(e), sentence)


def _level_and_slope(e: Probabilities) -> Row | None:
    gap, side = e.gap, level(e)
    if gap is None or side is None or e.error is None or abs(gap.value) < e.error.value / 2:
        return None
    size = points(gap if side == "too high" else negated(gap))
    sentence = f"Predicted probabilities are {side} by {size.value} points on average (95 % interval {size.ends})"
    if e.slope is None or not e.slope.excludes(1.0):
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
        f"Predicted probabilities are {tilt}: high ones too {high}, low ones too {low}, by {size.value} points on "
        f"average (95 % interval {size.ends})."
    )
    return Row("B12" if tilt == "too extreme" else "B13", "not calibrated", tilt, sentence)


def _mixed(e: Probabilities) -> Row:
    if e.error is None:
        p = "" if e.test is None else f" ({e.test.in_words})"
        return Row("B14", "not calibrated", "mixed", f"Predicted probabilities are not calibrated{p}.")
    size, where = points(e.error), where_the_error_sits(e.ranges, ("too high", "too low"))
    sentence = f"Predicted probabilities are wrong by {size.value} points on average (95 % interval {size.ends})"
    return Row("B14", "not calibrated", "mixed", f"{sentence}{f': {where}' if where else ''}.")


def where_the_error_sits(ranges: tuple[Bin, ...], words: tuple[str, str]) -> str:
    """The two ranges of scores that carry most of the error, in words: "too high at 10 to 30 %, too low at ..."."""
    carrying = sorted((one for one in ranges if one.share), key=lambda one: -(one.share or 0.0))[:2]
    carrying = sorted(carrying, key=lambda one: one.low)
    above = [one for one in carrying if one.predicted > one.observed.value]
    below = [one for one in carrying if one.predicted <= one.observed.value]
    found = [
        f"{word} at {listed([_range(one) for one in some])}"
        for word, some in zip(words, (above, below), strict=True)
        if some
    ]
    return ", ".join(found)


def _range(one: Bin) -> str:
    low, high = score(one.low), score(one.high)
    return low if low == high else f"{low.removesuffix('%').strip()} to {high}"


def _tilt(e: Probabilities) -> Direction | None:
    """Too extreme or too moderate, where the interval of the slope excludes 1."""
    if e.slope is None or not e.slope.excludes(1.0):
        return None
    return "too extreme" if e.slope.value < 1 else "too moderate"


def _direction(e: Probabilities) -> Direction:
    """The first that applies: level, slope, or neither."""
    return level(e) or _tilt(e) or "mixed"


def _points(fraction: float) -> str:
    text = f"{100 * fraction:g}"
    return f"{text} {plural('point', 1 if text == '1' else 2)}"


#: Rows from top to bottom; the last fits always.
RULES: tuple[Callable[[Probabilities], Row | None], ...] = (
    nothing,
    one_outcome,
    too_few,
    one_score,
    decisions,
    untested_probabilities,
    only_parts,
    not_significant,
    backwards,
    small_error,
    _rare,
    uncertain_size,
    _level_and_slope,
    _slope,
    _mixed,
)
