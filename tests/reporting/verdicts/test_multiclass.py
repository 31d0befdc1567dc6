"""Every row of the truth tables of the multiclass verdict and of its top label."""

from dataclasses import replace

import pytest

from calibrant.reporting.contents import Bin, Classes, GroupRow
from calibrant.reporting.verdicts.evidence import Decisions, ProbabilityVectors, Words
from calibrant.reporting.verdicts.multiclass import CONFIDENCE, MULTICLASS, TOP_LABEL, total_is_off, worst_class
from calibrant.results.estimate import Significance, Value
from tests.reporting.verdicts.evidence_samples import ACCEPTS, PLAIN, REJECTS, group, groups, maps, over_time

TOP = replace(
    PLAIN, n=9000, events=0.569 * 9000, predicted=0.715, confidence=True, words=Words("ticket"),
    ratio=Value(0.569 / 0.715, 0.569 / 0.715 - 0.014, 0.569 / 0.715 + 0.0126), error=Value(0.146, 0.136, 0.156),
)  # fmt: skip
RANGES = (
    Bin(0.2, 0.6, 500, 300, 0.5, Value(0.6), share=0.4),
    Bin(0.9, 1.0, 500, 400, 0.95, Value(0.8), share=0.5),
)

TOP_LABEL_TABLE = [
    (TOP, "L1", "over-confident",
     "Over-confident: the predicted class is right for 56.9 % of tickets, while the mean confidence is 71.5 %, a "
     "gap of "
     "14.6 percentage points (95 % interval 13.7 to 15.6)."),
    (replace(TOP, events=0.912 * 9000, predicted=0.84, ratio=Value(1.0857, 1.0786, 1.0929)), "L2", "under-confident",
     "Under-confident: the predicted class is right for 91.2 % of tickets, while the mean confidence is only 84 %, a "
     "gap of 7.2 percentage points (95 % interval 6.6 to 7.8)."),
    (replace(TOP, ratio=Value(1.0, 0.98, 1.02), error=Value(0.034, 0.028, 0.041), ranges=RANGES), "L3", "mixed",
     "Confidence is right on average but not at every level: off by 3.4 points (95 % interval 2.8 to 4.1), "
     "over-confident at 90 to 100 %, under-confident at 20 to 60 %."),
    (replace(TOP, ratio=Value(1.0, 0.98, 1.02), error=None), "L3", "mixed",
     "Confidence is right on average but not at every level (p ≤ 0.001)."),
    (replace(TOP, test=ACCEPTS, error=Value(0.002, 0.0, 0.009)), "B5", None,
     "No significant miscalibration of the confidence detected (n = 9,000); its error is at most 0.9 points."),
    (replace(TOP, n=40, events=20, test=ACCEPTS, error=Value(0.1, 0, 0.3)), "B2", None,
     "Too few tickets to judge: 40. An error of up to 30 points cannot be ruled out."),
    (replace(TOP, ratio=Value(1.0, 0.98, 1.02), error=Value(0.02, 0.0, 0.06)), "B9", "mixed",
     "The confidence is not calibrated (p ≤ 0.001), but the size of the error is uncertain: 2 points, anywhere "
     "from 0 to "
     "6."),
    (replace(TOP, events=9000, observed=Value(1, 0.9997, 1), test=REJECTS), "L0", "under-confident",
     "Every prediction for 9,000 tickets was right, where 6,435 were expected to be; the true accuracy is at least "
     "100 % (95 % bound)."),
    (replace(TOP, n=9, events=0, observed=Value(0, 0, 0.28), test=ACCEPTS), "L0", None,
     "No prediction for 9 tickets was right, where 6.4 were expected to be; the true accuracy is at most 28 % (95 % "
     "bound)."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "rule", "direction", "sentence"),
    TOP_LABEL_TABLE,
    ids=[f"{k}-{r[1]}" for k, r in enumerate(TOP_LABEL_TABLE)],
)
def test_top_label_each_row(evidence, rule, direction, sentence):
    found = TOP_LABEL.row(evidence)
    assert found.sentence == sentence
    assert (found.rule, found.direction) == (rule, direction)


ANSWERS = replace(TOP, words=replace(TOP.words, row="answer", event="right answer"))


@pytest.mark.parametrize(
    ("evidence", "rule", "direction", "sentence"),
    [
        (ANSWERS, "L1", "over-confident",
         "Over-confident: 56.9 % of answers are right, while the mean confidence is 71.5 %, a gap of 14.6 percentage "
         "points (95 % interval 13.7 to 15.6)."),
        (replace(ANSWERS, events=0.912 * 9000, predicted=0.84, ratio=Value(1.0857, 1.0786, 1.0929)), "L2",
         "under-confident", "Under-confident: 91.2 % of answers are right, while the mean confidence is only 84 %, a "
         "gap of 7.2 percentage points (95 % interval 6.6 to 7.8)."),
        (replace(ANSWERS, decisions=Decisions(60, Value(0.5, 0.37, 0.63), 40, Value(0.1, 0.03, 0.24))), "L4", None,
         "Confidences are only 0 and 1, so that none says how sure the model is: 50 % of 60 answers of confidence 1 "
         "are right (37 to 63 %); 10 % of 40 answers of confidence 0 are right (3 to 24 %)."),
    ],
)  # fmt: skip
def test_answers_are_over_or_under_confident(evidence, rule, direction, sentence):
    found = CONFIDENCE.row(evidence)
    assert found.sentence == sentence
    assert (found.rule, found.direction) == (rule, direction)


def a_class(name, ratio, *, flagged=True, direction="too low"):
    return GroupRow(name, 9000, ratio, Value(0.06), direction, 0.001, flagged, observed=800, expected=450)


REFUNDS, OTHER = (
    a_class("Refunds", Value(1.77, 1.65, 1.90)),
    a_class("Other", Value(0.87, 0.81, 0.94), direction="too high"),
)
TEST = Significance(0.001, 0.001, "VectorTest(draws=999, seed=0)", 9000)
CLASSES = Classes(TEST, (REFUNDS, OTHER), (), (), 2)
QUIET = replace(TOP, test=ACCEPTS, error=Value(0.004, 0.0, 0.0158), ratio=Value(1.0, 0.98, 1.02))
VECTORS_REJECT, VECTORS_ACCEPT = (replace(one, name="whole-vector test") for one in (REJECTS, ACCEPTS))
BASE = ProbabilityVectors(
    n=9000, number=7, test=VECTORS_REJECT, words=TOP.words, top=TOP, classes=CLASSES, recalibration=maps()
)

TABLE = [
    (BASE, "M1", "not calibrated", "problem", "over-confident",
     "Over-confident: the predicted class is right for 56.9 % of tickets, while the mean confidence is 71.5 %, a "
     "gap of "
     "14.6 percentage points (95 % interval 13.7 to 15.6). The other probabilities are wrong too: Refunds is "
     "1.77 times "
     "as frequent as predicted (1.65 to 1.90)."),
    (replace(BASE, top=QUIET), "M2", "not calibrated", "problem", "too low",
     "The confidence in the predicted class shows no significant error, but the probabilities of the other classes are "
     "wrong: Refunds is 1.77 times as frequent as predicted (1.65 to 1.90)."),
    (replace(BASE, top=QUIET, classes=None), "M2", "not calibrated", "caution", "mixed",
     "The confidence in the predicted class shows no significant error, but the probabilities of the other "
     "classes are wrong."),
    (replace(BASE, n=5000, number=10, test=VECTORS_ACCEPT, top=QUIET), "M3", "not significant", "note", None,
     "No significant miscalibration detected in the probabilities of 10 classes (whole-vector test, n = 5,000); the "
     "top-label error is at most 1.6 points."),
    (replace(BASE, n=2000, decisions=Value(0.867, 0.851, 0.881)), "M5", "cannot be judged", "caution", None,
     "The predictions are decisions, not probabilities: 86.7 % of 2,000 were right (95 % interval 85.1 to 88.1 %)."),
    (replace(BASE, n=42, number=10, test=ACCEPTS, top=replace(QUIET, n=42)), "M6", "too few", "caution", None,
     "Too few tickets to judge: 42 for 10 classes. A top-label error of up to 1.6 points cannot be ruled out."),
    (replace(BASE, test=ACCEPTS, top=QUIET, groups=(groups(group()),)), "MG", "not calibrated", "problem", "mixed",
     "No significant miscalibration detected in the probabilities of 7 classes, but 1 of 1 countries is miscalibrated "
     "after adjustment: Brazil (too low)."),
    (replace(BASE, n=0), "B0", "cannot be judged", "caution", None,
     "Nothing to judge: no row has both a prediction and an outcome."),
    (replace(BASE, test=None, untested="it failed"), "BU", "cannot be judged", "caution", None,
     "Calibration cannot be judged. The test could not be computed: it failed. The estimated error is 14.6 points "
     "(95 % interval 13.6 to 15.6)."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "rule", "state", "severity", "direction", "text"),
    TABLE,
    ids=[f"{k}-{r[1]}" for k, r in enumerate(TABLE)],
)
def test_each_row(evidence, rule, state, severity, direction, text):
    found = MULTICLASS.verdict(evidence)
    assert str(found) == text
    assert (found.rule, found.state, found.severity, found.direction) == (rule, state, severity, direction)


@pytest.mark.parametrize(("number", "start"), [(1, "1 ticket is of"), (17, "17 tickets are of")])
def test_impossible_classes_come_first(number, start):
    found = MULTICLASS.verdict(replace(BASE, impossible=number))
    assert found.second == f"{start} a class that was predicted with a probability of exactly 0."
    assert "exactly 0" not in str(MULTICLASS.verdict(replace(BASE, impossible=number, test=VECTORS_ACCEPT)))


def test_the_evidence_is_that_of_the_whole_vector():
    assert MULTICLASS.verdict(BASE).how_sure.startswith(
        "Strong evidence: the whole vector is tested at once, and none of 999 simulated calibrated models "
        "deviated as much "
        "(p ≤ 0.001). The mean top-label error is 14.6 percentage points (13.6 to 15.6)."
    )
    assert MULTICLASS.verdict(BASE).what_to_do.startswith("Platt scaling lowers cross-validated log loss")
    assert MULTICLASS.verdict(replace(BASE, over_time=over_time())).second.startswith(
        "Calibration changed from September 2025 on"
    )


def test_the_worst_class_is_beyond_chance():
    assert worst_class(BASE) is REFUNDS
    calm = replace(
        CLASSES, rows=(a_class("a", Value(1.3, 0.9, 1.7)), a_class("b", Value(1.3, 1.2, 1.4), flagged=False))
    )
    assert worst_class(replace(BASE, classes=calm)) is None
    slight = a_class("2", Value(1.056, 1.004, 1.108))
    assert (
        worst_class(replace(BASE, classes=replace(CLASSES, rows=(slight,)))) is None
    )  # one of seven looks so by chance
    assert total_is_off(slight, 1)
    assert total_is_off(a_class("none", Value(0.0, 0.0, 0.4)), 7)
    numbered = replace(BASE, classes=replace(CLASSES, rows=(replace(REFUNDS, name="2"),)))
    assert "class 2 is 1.77 times as frequent" in MULTICLASS.verdict(numbered).second
