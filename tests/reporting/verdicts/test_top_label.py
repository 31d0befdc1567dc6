"""Every row of the truth table of the top label."""

from dataclasses import replace

import pytest

from calibrant.reporting.contents import Bin, Value
from calibrant.reporting.verdicts.evidence import Words
from calibrant.reporting.verdicts.top_label import top_label_row
from tests.reporting.verdicts.evidence_samples import ACCEPTS, PLAIN, REJECTS

TOP = replace(
    PLAIN, n=9000, events=0.569 * 9000, predicted=0.715, confidence=True, words=Words("ticket"),
    ratio=Value(0.569 / 0.715, 0.569 / 0.715 - 0.014, 0.569 / 0.715 + 0.0126), error=Value(0.146, 0.136, 0.156),
)  # fmt: skip
RANGES = (
    Bin(0.2, 0.6, 500, 300, 0.5, Value(0.6), share=0.4),
    Bin(0.9, 1.0, 500, 400, 0.95, Value(0.8), share=0.5),
)

TABLE = [
    (TOP, "L1", "over-confident",
     "Over-confident: the predicted class is right for 56.9 % of tickets, while the mean confidence is 71.5 %, a "
     "gap of "
     "14.6 percentage points (95 % interval 13.7 to 15.6)."),
    (replace(TOP, events=0.912 * 9000, predicted=0.84, ratio=Value(1.0857, 1.0786, 1.0929)), "L2", "under-confident",
     "Under-confident: the predicted class is right for 91.2 % of tickets, while the mean confidence is only 84.0 %, a "
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
     "100.0 % (95 % bound)."),
    (replace(TOP, n=9, events=0, observed=Value(0, 0, 0.28), test=ACCEPTS), "L0", None,
     "No prediction for 9 tickets was right, where 6.4 were expected to be; the true accuracy is at most 28.0 % (95 % "
     "bound)."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "rule", "direction", "sentence"), TABLE, ids=[f"{k}-{r[1]}" for k, r in enumerate(TABLE)]
)
def test_each_row(evidence, rule, direction, sentence):
    found = top_label_row(evidence)
    assert found.sentence == sentence
    assert (found.rule, found.direction) == (rule, direction)
