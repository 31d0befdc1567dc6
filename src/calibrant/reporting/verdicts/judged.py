"""The verdict on judged answers: few gold labels, and a judge's score of every answer."""

from __future__ import annotations

from calibrant.reporting.names import plural
from calibrant.reporting.rounding import bound, count, rates
from calibrant.reporting.verdicts import answers
from calibrant.reporting.verdicts.binary import FEW_EVENTS, FEW_ROWS
from calibrant.reporting.verdicts.evidence import FEWEST_EVENTS, FEWEST_ROWS, JudgedAnswers
from calibrant.reporting.verdicts.multiclass import CONFIDENCE
from calibrant.reporting.verdicts.severity import flagged_groups, small
from calibrant.reporting.verdicts.truth_table import Row, TruthTable, ends, only_parts, rows_in_words


def labels_in_words(e: JudgedAnswers) -> str:
    """How much is known: gold labels and judged answers."""
    return f"{count(e.gold)} gold {plural('label', e.gold)} of {rows_in_words(e)}"


def _too_few(e: JudgedAnswers) -> Row | None:
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


def _not_significant(e: JudgedAnswers) -> Row | None:
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


def _how_sure(e: JudgedAnswers) -> str:
    """The evidence, the accuracy, and the size of the error."""
    right = ""
    if e.accuracy is not None:
        found = rates(e.accuracy)
        right = f"From {labels_in_words(e)}, {found.value} % are right{ends(found, unit=' %')}."
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


def _what_to_do(e: JudgedAnswers, row: Row) -> str:
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
    if e.gold >= FEWEST_ROWS and e.rarer_gold >= FEWEST_EVENTS:
        return "Recalibrate with a map fitted to the gold labels: cal.recalibrate.Auto().fit(data.labelled())."
    return f"Too few gold labels to fit or judge a map. {more}"


JUDGED = TruthTable[JudgedAnswers](
    untested=(_too_few,),
    tested=(_only_groups, _not_significant, *CONFIDENCE.tested[3:]),
    severity=CONFIDENCE.severity,
    how_sure=_how_sure,
    what_it_means=_what_it_rests_on,
    what_to_do=_what_to_do,
    second=CONFIDENCE.second,
    missing="JU",
)
