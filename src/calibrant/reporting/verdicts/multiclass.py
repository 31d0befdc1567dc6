"""The multiclass verdict: whole vectors, single classes, and whether the confidence in the predicted class is right."""

from __future__ import annotations

from dataclasses import replace
from math import log

from calibrant.reporting.contents import Direction, GroupRow, Severity
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import bound, count, negated, points, rates, ratio, score
from calibrant.reporting.verdicts import answers, binary
from calibrant.reporting.verdicts.binary import FEW_EVENTS, FEW_ROWS
from calibrant.reporting.verdicts.evidence import JudgedAnswers, Probabilities, ProbabilityVectors
from calibrant.reporting.verdicts.severity import RATIOS, changed, flagged_groups, of_probabilities, outside, small
from calibrant.reporting.verdicts.truth_table import Row, TruthTable, change_in_words, flagged_in_words, only_parts
from calibrant.results.estimate import printable


def _one_outcome(e: Probabilities) -> Row | None:
    """All predictions right, or all wrong."""
    if 0 < e.events < e.n:
        return None
    right, limits, limit = e.events > 0, e.observed, ""
    if limits is not None and limits.low is not None and limits.high is not None:
        end = f"least {score(limits.low)}" if right else f"most {score(limits.high)}"
        limit = f"; the true accuracy is at {end} ({100 * e.levels[0]:.6g} % bound)"
    start = f"{'Every' if right else 'No'} prediction for {e.counted} was right"
    sentence = f"{start}, where {count(e.expected)} were expected to be{limit}."
    if not e.rejects:
        return Row("L0", "too few", None, sentence, "caution")
    return Row("L0", "not calibrated", "under-confident" if right else "over-confident", sentence, "problem")


def _top_label_gap(e: Probabilities) -> Row | None:
    return _over_or_under(e, f"the predicted class is right for {score(e.base_rate)} of {plural(e.words.row)}")


def _answer_gap(e: Probabilities) -> Row | None:
    right = score(e.base_rate) if e.accuracy is None else f"{rates(e.accuracy).value} %"
    return _over_or_under(e, f"{right} of {plural(e.words.row)} are right")


def _over_or_under(e: Probabilities, right: str) -> Row | None:
    gap = e.gap
    if gap is None or not gap.excludes(0.0):
        return None
    over = gap.value > 0
    size = points(gap if over else negated(gap))
    sentence = (
        f"{'Over' if over else 'Under'}-confident: {right}, while the mean confidence is {'' if over else 'only '}"
        f"{score(e.predicted)}, a gap of {size.percentage_points}"
        f"{size.at(e.levels[0])}."
    )
    return Row("L1" if over else "L2", "not calibrated", "over-confident" if over else "under-confident", sentence)


def _not_everywhere(e: Probabilities) -> Row:
    start = "Confidence is right on average but not at every level"
    if e.error is None:
        p = "" if e.test is None else f" ({e.test.in_words})"
        return Row("L3", "not calibrated", "mixed", f"{start}{p}.")
    size, where = points(e.error), binary.where_the_error_sits(e.ranges, ("over-confident", "under-confident"))
    sentence = f"{start}: off by {size.points} (95 % interval {size.ends}){f', {where}' if where else ''}."
    return Row("L3", "not calibrated", "mixed", sentence)


#: The confidence in the predicted class, by itself.
TOP_LABEL = replace(
    binary.BINARY,
    untested=(_one_outcome, binary.too_few),
    tested=(
        binary.one_score,
        binary.only_groups_or_times,
        binary.not_significant,
        binary.small_error,
        _top_label_gap,
        binary.uncertain_size,
        _not_everywhere,
    ),
)


def _certain(e: Probabilities) -> Row | None:
    """Confidences are only 0 and 1 (L4)."""
    made = e.decisions
    if made is None:
        return None
    parts = [
        f"{found.value} % of {count(number)} {plural(e.words.row, number)} of confidence {value} are right"
        f"{found.brackets(' %')}"
        for number, value, observed in ((made.ones, 1, made.rate_of_ones), (made.zeros, 0, made.rate_of_zeros))
        if observed is not None and number
        for found in (rates(observed, value),)
    ]
    sentence = f"Confidences are only 0 and 1, so that none says how sure the model is: {'; '.join(parts)}."
    return Row("L4", "cannot be judged", None, sentence, "caution")


#: Answers of a model, each with how sure it was.
CONFIDENCE = replace(
    TOP_LABEL,
    untested=(*TOP_LABEL.untested, _certain),
    tested=(
        binary.one_score,
        binary.only_groups_or_times,
        binary.not_significant,
        binary.backwards,
        binary.small_error,
        _answer_gap,
        binary.uncertain_size,
        _not_everywhere,
    ),
)


def _decisions(e: ProbabilityVectors) -> Row | None:
    """Vectors of only 0 and 1 (M5)."""
    if e.decisions is None:
        return None
    found = rates(e.decisions)
    right = f"{found.value} % of {count(e.n)} were right{found.at(unit=' %')}"
    sentence = f"The predictions are decisions, not probabilities: {right}."
    return Row("M5", "cannot be judged", None, sentence, "caution")


def _too_few(e: ProbabilityVectors) -> Row | None:
    """Few rows, and no rejection (M6)."""
    if e.n >= binary.FEW_ROWS or e.rejects:
        return None
    more = "" if e.most is None else f" A top-label error of up to {bound(e.most)} points cannot be ruled out."
    sentence = f"Too few {plural(e.words.row)} to judge: {count(e.n)} for {e.number} classes.{more}"
    return Row("M6", "too few", None, sentence, "caution")


def _not_significant(e: ProbabilityVectors) -> Row | None:
    """The vectors pass (M3), but groups (MG) or a change over time (MC) may not."""
    if e.test is None or e.test.rejects:
        return None
    start = f"No significant miscalibration detected in the probabilities of {e.number} classes"
    if flagged_groups(e.groups):
        return Row("MG", "not calibrated", "mixed", f"{start}, but {flagged_in_words(e.groups)}.")
    if changed(e.over_time) is not None:
        return Row("MC", "not calibrated", "mixed", f"{start}, but it changed over time.")
    size = "" if e.most is None else f"; the top-label error is at most {bound(e.most)} points"
    return Row("M3", "not significant", None, f"{start} ({e.test.name}, n = {count(e.n)}){size}.")


def _backwards(e: ProbabilityVectors) -> Row | None:
    row = binary.backwards(e.top)
    return None if row is None else row._replace(rule="MB")


def _top_label(e: ProbabilityVectors) -> Row | None:
    """The confidence is wrong: what is said of it alone (M1), unless its error is small and that of classes is not."""
    if not e.top.rejects:
        return None
    row = TOP_LABEL.row(e.top)
    if row.state == "small" and _severity(e) != "note":
        return _other_classes(e, "The confidence in the predicted class has only a small error")
    return row._replace(rule="M1") if row.state == "not calibrated" else row


def _other_classes(
    e: ProbabilityVectors, start: str = "The confidence in the predicted class shows no significant error"
) -> Row:
    worst = worst_class(e)
    told = "" if worst is None else f": {_class_in_words(worst)}"
    direction: Direction = "mixed" if worst is None else worst.direction
    sentence = f"{start}, but the probabilities of the other classes are wrong{told}."
    return Row("M2", "not calibrated", direction, sentence)


def worst_class(e: ProbabilityVectors) -> GroupRow | None:
    """The flagged class whose total is farthest from what was predicted, beyond chance."""
    off = [row for row in e.class_rows if row.flagged and total_is_off(row, e.number)]
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
    name = f"class {row.name}" if row.name.isdigit() else row.name
    return f"{printable(name)} is {found.value} times as frequent as predicted{found.brackets()}"


def _second(e: ProbabilityVectors, row: Row) -> str:
    """Classes that were impossible; a change over time or, after the top label, the class that is farthest off."""
    if row.state not in ("not calibrated", "small") or row.rule == "MG":
        return ""
    told = change_in_words(e)
    if e.impossible:
        some = f"{count(e.impossible)} {plural(e.words.row, e.impossible)} {'is' if e.impossible == 1 else 'are'}"
        return f"{some} of a class that was predicted with a probability of exactly 0. {told}".strip()
    worst = None if row.rule in ("M2", "MB", "MC") else worst_class(e)
    return told if told or worst is None else f"The other probabilities are wrong too: {_class_in_words(worst)}."


def _severity(e: ProbabilityVectors) -> Severity:
    """That of the top label; a class whose total is off by more than a tenth is a problem too."""
    parts = bool(flagged_groups(e.groups)) or changed(e.over_time) is not None
    if e.test is not None and not e.test.rejects and not parts:
        return "note" if small(e.top) and not e.looks else "caution"
    if any(row.flagged and outside(row.ratio, RATIOS) for row in e.class_rows):
        return "problem"
    if e.rejects and not e.top.rejects:
        return "caution"
    return of_probabilities(e.top)


def _how_sure(e: ProbabilityVectors) -> str:
    if e.decisions is not None:
        return ""
    said = answers.strength(e)
    if e.test is not None and e.test.draws is not None:
        said = said.replace("evidence: ", "evidence: the whole vector is tested at once, and ", 1)
    return answers.sureness(e, said, answers.size_of_error(e.top, "top-label error"))


def _what_to_do(e: ProbabilityVectors, row: Row) -> str:
    few, own = answers.too_few_for_a_map(e, row), ""
    if e.decisions is not None and row.state == "cannot be judged":
        own = "Pass predicted probabilities, for example predict_proba(...), not decisions."
    elif e.top.backwards and row.state != "cannot be judged" and not few:
        own = "Check that the columns are in the order of the classes, and repeat the report."
    settled = answers.NOTHING if small(e.top) else "Collect more rows."
    return answers.advice(e, row, own=own, too_few=few, settled=settled)


def _what_it_means(e: ProbabilityVectors, row: Row) -> str:
    """Of the top label; its own test claims nothing where that of whole vectors does not reject."""
    if not row.judged:
        return ""
    return answers.what_it_means(e.top if e.rejects else replace(e.top, test=e.test))


MULTICLASS = TruthTable[ProbabilityVectors](
    untested=(_decisions, _too_few),
    tested=(_not_significant, _backwards, _top_label, _other_classes),
    severity=_severity,
    how_sure=_how_sure,
    what_it_means=_what_it_means,
    what_to_do=_what_to_do,
    second=_second,
)


def labels_in_words(e: JudgedAnswers) -> str:
    """How much is known: gold labels and judged answers."""
    return f"{count(e.gold)} gold {plural('label', e.gold)} of {e.counted}"


def _too_few_labels(e: JudgedAnswers) -> Row | None:
    """Few gold labels, or few of one kind, and no rejection (J1)."""
    if e.test is None or e.rejects or (e.rarer_gold >= FEW_EVENTS and e.gold >= FEW_ROWS):
        return None
    some = ""
    if e.gold >= FEW_ROWS:
        kind = "wrong" if e.base_rate > 0.5 else "right"
        some = f", about {count(e.rarer_gold)} of them {kind}"
    most = "" if e.most is None else f" An error of up to {bound(e.most)} points cannot be ruled out."
    sentence = f"Too few gold labels to judge the confidence: {labels_in_words(e)}{some}.{most}"
    return Row("J1", "too few", None, sentence, "caution")


def _only_groups(e: JudgedAnswers) -> Row | None:
    """Not significant over all answers, but in groups (JG)."""
    return only_parts(e, f"No significant miscalibration detected with {labels_in_words(e)}", "J")


def _answers_not_significant(e: JudgedAnswers) -> Row | None:
    """The test does not reject: how large the error may still be (J2, J3)."""
    if e.rejects:
        return None
    start = "No significant miscalibration of the confidence detected"
    if e.most is None:
        return Row("J2", "not significant", None, f"{start} with {labels_in_words(e)}.")
    within = "" if e.tolerance is None else f", {'within' if small(e) else 'above'} your tolerance"
    if small(e):
        sentence = f"{start} with {labels_in_words(e)}; its error is at most {bound(e.most)} points{within}."
        return Row("J2", "not significant", None, sentence)
    sentence = f"{start}, but {labels_in_words(e)} cannot rule out an error of up to {bound(e.most)} points{within}."
    return Row("J3", "not significant", None, sentence)


def _judged_how_sure(e: JudgedAnswers) -> str:
    """The evidence, the accuracy, and the size of the error."""
    right = ""
    if e.accuracy is not None:
        found = rates(e.accuracy)
        right = f"From {labels_in_words(e)}, {found.value} % are right{found.at(unit=' %')}."
    return answers.sureness(e, answers.strength(e), right, answers.size_of_error(e))


def _what_it_rests_on(e: JudgedAnswers, row: Row) -> str:
    """The assumption."""
    if not e.gold:
        return ""
    if e.sampled:
        return (
            "This assumes that answers were chosen for labelling with the probabilities that their weights imply. The "
            "judge may be wrong; the weights and the gold labels must be right."
        )
    return (
        "This assumes that the gold labels are a simple random sample of the answers. The judge may be wrong; but if "
        "interesting or easy answers were labelled first, no number here is valid."
    )


def _judged_what_to_do(e: JudgedAnswers, row: Row) -> str:
    more = "Label more answers: next_labels says which, and with which weights."
    if row.state in ("too few", "cannot be judged"):
        return more
    if row.state == "not significant":
        return answers.NOTHING if small(e) and not e.looks else more
    if e.backwards:
        return "Check the column of confidences, and repeat the report."
    if row.rule == "JG":
        names = ", ".join(one.name for one in flagged_groups(e.groups))
        return f"Look at {names}: fit a map to the gold labels of each, when there are enough of them. {more}"
    if e.enough_gold:
        return "Recalibrate with a map fitted to the gold labels: cal.recalibrate.Auto().fit(data.labelled())."
    return f"Too few gold labels to fit or judge a map. {more}"


JUDGED = TruthTable[JudgedAnswers](
    untested=(_too_few_labels,),
    tested=(_only_groups, _answers_not_significant, *CONFIDENCE.tested[3:]),
    severity=CONFIDENCE.severity,
    how_sure=_judged_how_sure,
    what_it_means=_what_it_rests_on,
    what_to_do=_judged_what_to_do,
    second=CONFIDENCE.second,
    missing="JU",
)
