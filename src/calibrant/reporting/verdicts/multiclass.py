"""The multiclass verdict: whole vectors, single classes, and whether the confidence in the predicted class is right."""

from __future__ import annotations

from collections.abc import Callable
from math import log

from calibrant.reporting.contents import Direction, GroupRow, Severity, State, Verdict
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import bound, count, negated, points, rate, rates, ratio
from calibrant.reporting.verdicts import answers
from calibrant.reporting.verdicts.binary import (
    not_significant,
    only_parts,
    small_error,
    uncertain_size,
    where_the_error_sits,
)
from calibrant.reporting.verdicts.evidence import Probabilities, SeveralClasses, VerdictTest
from calibrant.reporting.verdicts.severity import RATIOS, changed, flagged_groups, of_probabilities, outside, unruled
from calibrant.reporting.verdicts.special_cases import (
    FEW_ROWS,
    Row,
    backwards,
    change_in_words,
    flagged_in_words,
    nothing,
    nothing_to_judge,
    one_score,
    rows_in_words,
    too_few,
    untested,
    untested_probabilities,
)
from calibrant.results.estimate import printable


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
    untested_probabilities,
    only_parts,
    not_significant,
    small_error,
    _over_or_under,
    uncertain_size,
    _not_everywhere,
)


def multiclass_verdict(e: SeveralClasses) -> Verdict:
    """The verdict; the first row that fits."""
    row, second = _row(e)
    top = e.top
    judged = row.state not in ("too few", "cannot be judged")
    return Verdict(
        rule=row.rule,
        state=row.state,
        severity=row.severity or _severity(e),
        direction=row.direction,
        sentence=row.sentence,
        second=second,
        how_sure=_how_sure(e) if e.decisions is None else "",
        what_it_means=answers.what_it_means(top) if top is not None and judged else "",
        what_to_do=_what_to_do(e, row.state),
    )


def _row(e: SeveralClasses) -> tuple[Row, str]:
    if e.n == 0 or e.top is None:
        return Row("B0", "cannot be judged", None, nothing_to_judge(e.words.source), "caution"), ""
    if e.decisions is not None:
        found = rates(e.decisions)
        ends = f" (95 % interval {found.ends} %)" if found.ends else ""
        sentence = (
            f"The predictions are decisions, not probabilities: {found.value} % of {count(e.n)} were right{ends}."
        )
        return Row("M5", "cannot be judged", None, sentence, "caution"), ""
    if e.n < FEW_ROWS and (e.test is None or not e.test.rejects):
        most = None if e.top.error is None else e.top.error.high
        more = "" if most is None else f" A top-label error of up to {bound(most)} points cannot be ruled out."
        sentence = f"Too few {plural(e.words.row)} to judge: {count(e.n)} for {e.number} classes.{more}"
        return Row("M6", "too few", None, sentence, "caution"), ""
    if e.test is None:
        return untested(e, e.top.error), ""
    if not e.test.rejects:
        return _not_significant(e, e.test)
    if (row := backwards(e.top)) is not None:
        return row._replace(rule="MB"), _exception(e)
    if e.top.test is not None and e.top.test.rejects:
        row = top_label_row(e.top)
        if row.state == "small" and _severity(e) != "note":
            return _beyond_the_top_label(e, "The confidence in the predicted class has only a small error"), _exception(
                e
            )
        return row._replace(rule="M1" if row.state == "not calibrated" else row.rule), _exception(e) or _worst_class(e)
    return _beyond_the_top_label(e, "The confidence in the predicted class shows no significant error"), _exception(e)


def _not_significant(e: SeveralClasses, test: VerdictTest) -> tuple[Row, str]:
    start = f"No significant miscalibration detected in the probabilities of {e.number} classes"
    most = None if e.top is None or e.top.error is None else e.top.error.high
    size = "" if most is None else f"; the top-label error is at most {bound(most)} points"
    sentence = f"{start} ({test.name}, n = {count(e.n)}){size}."
    flagged = flagged_groups(e.groups)
    if flagged:
        return Row("MG", "not calibrated", "mixed", f"{start}, but {flagged_in_words(e.groups)}."), ""
    if changed(e.over_time) is not None:
        return Row("MC", "not calibrated", "mixed", f"{start}, but it changed over time."), change_in_words(
            e.over_time, e.words
        )
    return Row("M3", "not significant", None, sentence), ""


def _beyond_the_top_label(e: SeveralClasses, start: str) -> Row:
    worst = worst_class(e)
    told = "" if worst is None else f": {_class_in_words(worst)}"
    direction: Direction = "mixed" if worst is None else worst.direction
    return Row("M2", "not calibrated", direction, f"{start}, but the probabilities of the other classes do{told}.")


def _worst_class(e: SeveralClasses) -> str:
    worst = worst_class(e)
    return "" if worst is None else f"The other probabilities are wrong too: {_class_in_words(worst)}."


def worst_class(e: SeveralClasses) -> GroupRow | None:
    """The flagged class whose total is farthest from what was predicted, beyond chance."""
    rows = () if e.classes is None else e.classes.rows
    off = [row for row in rows if row.flagged and total_is_off(row, e.number)]
    if not off:
        return None
    return max(off, key=lambda row: max(row.ratio.value, 1 / max(row.ratio.value, 1e-9)))


def total_is_off(row: GroupRow, number: int) -> bool:
    """Whether observed : expected of a class differs from 1, allowing for the number of classes (Bonferroni)."""
    from scipy.special import ndtri

    low, high, value = row.ratio.low, row.ratio.high, row.ratio.value
    if low is None or high is None or not row.ratio.excludes(1.0):
        return False
    if not (low > 0 and value > 0):
        return high < 1
    error = (log(high) - log(low)) / (2 * 1.96)
    return abs(log(value)) > float(ndtri(1 - 0.025 / number)) * error


def _class_in_words(row: GroupRow) -> str:
    found = ratio(row.ratio)
    ends = f" ({found.ends})" if found.ends else ""
    name = f"class {row.name}" if row.name.isdigit() else row.name
    return f"{printable(name)} is {found.value} times as frequent as predicted{ends}"


def _exception(e: SeveralClasses) -> str:
    if changed(e.over_time) is not None:
        return change_in_words(e.over_time, e.words)
    return ""


def _severity(e: SeveralClasses) -> Severity:
    """That of the top label; a class whose total is off by more than a tenth is a problem too."""
    if e.top is None:
        return "caution"
    parts = bool(flagged_groups(e.groups)) or changed(e.over_time) is not None
    if e.test is not None and not e.test.rejects and not parts:
        return "caution" if unruled(e.top) else "note"
    rows = () if e.classes is None else e.classes.rows
    if any(row.flagged and outside(row.ratio, RATIOS) for row in rows):
        return "problem"
    if e.test is not None and e.test.rejects and (e.top.test is None or not e.top.test.rejects):
        return "caution"
    return of_probabilities(e.top)


def _how_sure(e: SeveralClasses) -> str:
    said = answers.strength(e)
    if e.test is not None and e.test.draws is not None:
        said = said.replace("evidence: ", "evidence: the whole vector is tested at once, and ", 1)
    error = None if e.top is None else answers.size_of_error(e.top)
    return " ".join(part for part in (said, error, *answers.about_rows(e)) if part)


def _what_to_do(e: SeveralClasses, state: State) -> str:
    if state == "cannot be judged":
        return (
            answers.to_be_judged(e)
            if e.decisions is None
            else "Pass predicted probabilities, for example predict_proba(...), not decisions."
        )
    if state == "too few" or e.n < answers.FEW_ROWS:
        return f"Too few {plural(e.words.row)} to fit or judge a map."
    if e.top is not None and e.top.backwards:
        return "Check that the columns are in the order of the classes, and make the report again."
    if state == "not significant":
        return (
            "Nothing needs to be done for calibration." if e.top is None or not unruled(e.top) else "Collect more rows."
        )
    return answers.recommendation(e, state)
