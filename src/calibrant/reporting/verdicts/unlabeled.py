"""The verdict on positive and unlabeled rows: everything holds at an assumed share of positives."""

from __future__ import annotations

from calibrant.reporting.contents import Direction, Severity
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import above, bound, count, points, score, span
from calibrant.reporting.verdicts import answers
from calibrant.reporting.verdicts.evidence import Unlabeled
from calibrant.reporting.verdicts.severity import limit
from calibrant.reporting.verdicts.truth_table import Row, TruthTable
from calibrant.results.estimate import Value

#: Fewer labelled positives are too few to judge.
#: Test: tests/reporting/verdicts/test_unlabeled.py::test_thirty_labelled_positives_are_judged.
FEW_POSITIVES = 30


def _share_too_large(e: Unlabeled) -> Row | None:
    """The assumed share is larger than the data allow (P3)."""
    if e.largest_prior is None or e.prior <= e.largest_prior:
        return None
    sentence = f"The assumed share of {score(e.prior)} is too large: these data allow at most {score(e.largest_prior)}."
    return Row("P3", "cannot be judged", None, sentence, "problem")


def _too_few(e: Unlabeled) -> Row | None:
    """Few labelled positives, and no rejection (P4)."""
    if e.positives >= FEW_POSITIVES or e.rejects:
        return None
    more = "" if e.most is None else f" An error of up to {bound(e.most)} points cannot be ruled out."
    return Row("P4", "too few", None, f"Too few labelled positives to judge: {count(e.positives)}.{more}", "caution")


def _not_significant(e: Unlabeled) -> Row | None:
    """Nothing was found (P2)."""
    if e.rejects:
        return None
    size = "" if e.most is None else f"; the error is at most {bound(e.most)} points"
    sentence = f"No significant miscalibration detected if {score(e.prior)} are positive{size}."
    return Row("P2", "not significant", None, sentence)


def _wrong(e: Unlabeled) -> Row:
    """The test rejects (P1)."""
    side = direction(e)
    word = side if side in ("too high", "too low") else "wrong"
    start = f"If {score(e.prior)} of the unlabeled {plural(e.words.row)} are positive"
    error, size = e.error, ""
    if error is not None and above(error):
        found = points(error)
        size = f" by {found.percentage_points} (95 % interval {found.ends})"
    elif error is not None and error.high is not None:
        size = f", but the size of the error is uncertain: anywhere from 0 to {bound(error.high)} percentage points"
    return Row("P1", "not calibrated", side, f"{start}, predicted probabilities are {word}{size}.")


def direction(e: Unlabeled) -> Direction:
    """Too high or too low on the whole, where the mean prediction makes up at least half of the error."""
    gap = e.predicted - e.prior
    clear = e.ratio is not None and e.ratio.excludes(1.0)
    if not clear or e.error is None or abs(gap) < e.error.value / 2:
        return "mixed"
    return "too high" if gap > 0 else "too low"


def severity(e: Unlabeled) -> Severity:
    """As for labelled rows, with the assumed share as base rate."""
    error, most = e.error or Value(1.0, 0.0, 1.0), limit(min(e.prior, 1 - e.prior), e.tolerance)
    low, high = error.low or 0.0, 1.0 if error.high is None else error.high
    if high < most and not e.looks:
        return "note"
    return "problem" if e.rejects and low > 0 and low >= most else "caution"


def _second(e: Unlabeled, row: Row) -> str:
    if row.rule == "P1":
        return _depends(e)
    return _range_of_estimates(e) if row.rule in ("P2", "PU") else ""


def _depends(e: Unlabeled) -> str:
    """Whether another share would change the conclusion."""
    including = [prior for prior, error in zip(e.priors, e.errors, strict=True) if not (error.low or 0.0) > 0]
    if not e.priors:
        return ""
    if including:
        some = f"from {span(min(including), max(including))}"
        some = some if len(including) > 1 else f"near {score(including[0])}"
        return f"The conclusion depends on that share: for shares {some} the interval includes 0."
    least, error = min(zip(e.priors, e.errors, strict=True), key=lambda pair: pair[1].value)
    found = points(error)
    between = f"from {span(min(e.priors), max(e.priors))}"
    return (
        f"No share {between} would make them calibrated, if labelled positives are a random sample of all positives: "
        f"the error is smallest at {score(least)} ({found.points}{f', {found.ends}' if found.ends else ''})."
    )


def _range_of_estimates(e: Unlabeled) -> str:
    if not e.errors:
        return ""
    low, high = least_and_largest(e)
    shares = f"from {span(min(e.priors), max(e.priors))}"
    return f"For shares {shares} the estimate lies between {low} and {high} points."


def least_and_largest(e: Unlabeled) -> tuple[str, str]:
    """The least and the largest error of the assumed shares, in points, as the table of shares has them."""
    low, high = (points(some(e.errors, key=lambda error: error.value)).value for some in (min, max))
    return low, high


def _how_sure(e: Unlabeled) -> str:
    if e.test is None:
        return answers.strength(e)
    given = given_in_words(e)
    told = answers.evidence_in_words(e.test).replace(" evidence:", f" evidence, given the assumed {given}:", 1)
    source = "The share itself is an input; these data cannot confirm it, only bound it."
    if e.frequency is not None:
        source = (
            f"The share of positives is estimated, from the given label frequency of {score(e.frequency)}; these data "
            "cannot confirm that frequency, only bound it."
        )
    return answers.sureness(e, f"{told} {answers.looks_in_words(e)}".strip(), source)


def given_in_words(e: Unlabeled) -> str:
    """What the user gave, on which everything rests."""
    return "share" if e.frequency is None else "label frequency"


def _what_it_rests_on(e: Unlabeled, row: Row) -> str:
    if e.positives == 0:
        return ""
    return (
        "This assumes that labelled positives are a random sample of all positives. If easy ones were labelled first, "
        "high scores look better calibrated than they are."
    )


def _what_to_do(e: Unlabeled, row: Row) -> str:
    if row.rule == "P3":
        return "Lower the assumed share, or check how positives were chosen for labelling."
    if row.state in ("too few", "cannot be judged"):
        return "Label more positives."
    if row.state == "not significant":
        return f"Nothing needs to be done for calibration, if the {given_in_words(e)} is right."
    given = given_in_words(e)
    return f"Check the {given} first. Then recalibrate with a map for positive-unlabeled data, such as PUIsotonic."


UNLABELED = TruthTable[Unlabeled](
    untested=(_share_too_large, _too_few),
    tested=(_not_significant, _wrong),
    severity=severity,
    how_sure=_how_sure,
    what_it_means=_what_it_rests_on,
    what_to_do=_what_to_do,
    second=_second,
    missing="PU",
)
