"""The verdict on the confidence in the predicted class: is it right as often as it says?"""

from __future__ import annotations

from collections.abc import Callable

from calibrant.reporting.contents import State
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import count, negated, points, rate
from calibrant.reporting.verdicts.evidence import Probabilities
from calibrant.reporting.verdicts.probabilities import (
    not_significant,
    only_parts,
    small_error,
    uncertain_size,
    where_the_error_sits,
)
from calibrant.reporting.verdicts.special_cases import Row, nothing, one_score, rows_in_words, too_few, untested


def top_label_row(evidence: Probabilities) -> Row:
    """The first row of the table that fits."""
    return next(found for rule in RULES if (found := rule(evidence)) is not None)


def _one_outcome(e: Probabilities) -> Row | None:
    """All predictions right, or all wrong."""
    if 0 < e.events < e.n or e.n == 0:
        return None
    right, limits, bound = e.events > 0, e.observed, ""
    if limits is not None and limits.low is not None and limits.high is not None:
        end = f"least {rate(limits.low)}" if right else f"most {rate(limits.high)}"
        bound = f"; the true accuracy is at {end} (95 % bound)"
    rejects = e.test is not None and e.test.rejects
    state: State = "not calibrated" if rejects else "too few"
    direction = None if not rejects else ("under-confident" if right else "over-confident")
    start = f"{'Every' if right else 'No'} prediction for {rows_in_words(e)} was right"
    sentence = f"{start}, where {count(e.expected)} were expected to be{bound}."
    return Row("L0", state, direction, sentence, "problem" if rejects else "caution")  # type: ignore[arg-type]


def _over_or_under(e: Probabilities) -> Row | None:
    gap = e.gap
    if gap is None or not gap.excludes(0.0):
        return None
    over = gap.value > 0
    size = points(gap if over else negated(gap))
    sentence = (
        f"{'Over' if over else 'Under'}-confident: the predicted class is right for {rate(e.base_rate)} of "
        f"{plural(e.words.row)}, while the mean confidence is {'' if over else 'only '}{rate(e.predicted)}, a gap of "
        f"{size.value} percentage points (95 % interval {size.ends})."
    )
    return Row("L1" if over else "L2", "not calibrated", "over-confident" if over else "under-confident", sentence)


def _not_everywhere(e: Probabilities) -> Row:
    start = "Confidence is right on average but not at every level"
    if e.error is None:
        p = "" if e.test is None else f" ({e.test.in_words})"
        return Row("L3", "not calibrated", "mixed", f"{start}{p}.")
    size, where = points(e.error), where_the_error_sits(e.ranges, ("over-confident", "under-confident"))
    sentence = f"{start}: off by {size.value} points (95 % interval {size.ends}){f', {where}' if where else ''}."
    return Row("L3", "not calibrated", "mixed", sentence)


#: Rows from top to bottom; the last fits always.
RULES: tuple[Callable[[Probabilities], Row | None], ...] = (
    nothing,
    _one_outcome,
    too_few,
    one_score,
    untested,
    only_parts,
    not_significant,
    small_error,
    _over_or_under,
    uncertain_size,
    _not_everywhere,
)
