"""Every row of the truth table of several classes."""

from dataclasses import replace

import pytest

from calibrant.reporting.contents import Classes, GroupRow, Value
from calibrant.reporting.verdicts.evidence import SeveralClasses
from calibrant.reporting.verdicts.several_classes import total_is_off, verdict, worst_class
from calibrant.results.estimate import Significance
from tests.reporting.verdicts.evidence_samples import ACCEPTS, REJECTS, group, groups, maps, over_time
from tests.reporting.verdicts.test_top_label import TOP


def a_class(name, ratio, *, flagged=True, direction="too low"):
    return GroupRow(name, 9000, ratio, Value(0.06), direction, 0.001, flagged, observed=800, expected=450)


REFUNDS, OTHER = (
    a_class("Refunds", Value(1.77, 1.65, 1.90)),
    a_class("Other", Value(0.87, 0.81, 0.94), direction="too high"),
)
TEST = Significance(0.001, 0.001, "VectorTest(draws=999, seed=0)", 9000)
CLASSES = Classes(TEST, (REFUNDS, OTHER), (), (), 2)
QUIET = replace(TOP, test=ACCEPTS, error=Value(0.004, 0.0, 0.0158), ratio=Value(1.0, 0.98, 1.02))
BASE = SeveralClasses(n=9000, number=7, test=REJECTS, words=TOP.words, top=TOP, classes=CLASSES, recalibration=maps())

TABLE = [
    (BASE, "M1", "not calibrated", "problem", "over-confident",
     "Over-confident: the predicted class is right for 56.9 % of tickets, while the mean confidence is 71.5 %, a "
     "gap of "
     "14.6 percentage points (95 % interval 13.7 to 15.6). The other probabilities are wrong too: Refunds is "
     "1.77 times "
     "as frequent as predicted (1.65 to 1.90)."),
    (replace(BASE, top=QUIET), "M2", "not calibrated", "problem", "too low",
     "The confidence in the predicted class shows no significant error, but the probabilities of the other classes do: "
     "Refunds is 1.77 times as frequent as predicted (1.65 to 1.90)."),
    (replace(BASE, top=QUIET, classes=None), "M2", "not calibrated", "caution", "mixed",
     "The confidence in the predicted class shows no significant error, but the probabilities of the other "
     "classes do."),
    (replace(BASE, n=5000, number=10, test=ACCEPTS, top=QUIET), "M3", "not significant", "note", None,
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
    (replace(BASE, test=None), "L1", "not calibrated", "problem", "over-confident",
     "Over-confident: the predicted class is right for 56.9 % of tickets, while the mean confidence is 71.5 %, a "
     "gap of "
     "14.6 percentage points (95 % interval 13.7 to 15.6). The whole vector cannot be tested with weights or dependent "
     "rows."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "rule", "state", "severity", "direction", "text"),
    TABLE,
    ids=[f"{k}-{r[1]}" for k, r in enumerate(TABLE)],
)
def test_each_row(evidence, rule, state, severity, direction, text):
    found = verdict(evidence)
    assert str(found) == text
    assert (found.rule, found.state, found.severity, found.direction) == (rule, state, severity, direction)


def test_the_evidence_is_that_of_the_whole_vector():
    assert verdict(BASE).how_sure.startswith(
        "Strong evidence: the whole vector is tested at once, and none of 999 simulated calibrated models "
        "deviated as much "
        "(p ≤ 0.001). The mean top-label error is 14.6 percentage points (13.6 to 15.6)."
    )
    assert verdict(BASE).what_to_do.startswith("Platt scaling lowers cross-validated log loss")
    assert verdict(replace(BASE, over_time=over_time())).second.startswith("Calibration changed from September 2025 on")


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
    assert "class 2 is 1.77 times as frequent" in verdict(numbered).second
