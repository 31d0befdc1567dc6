"""The findings on positive and unlabeled rows."""

from dataclasses import replace

import pytest

from calibrant.reporting.unlabeled_findings import of_unlabeled
from calibrant.reporting.verdicts.unlabeled import verdict
from tests.reporting.verdicts.test_unlabeled import BASE, UNSURE

TABLE = [
    (BASE, "CAL201", "problem", "The predictions are not calibrated if 19 % are positive (score test, p < 0.001)."),
    (replace(BASE, test=UNSURE), "CAL202", "caution",
     "No significant miscalibration detected if 19 % are positive (score test, p = 0.40); the error is at most 7 "
     "points."),
    (replace(BASE, impossible=2, ranges=12), "CAL701", "problem",
     "At 2 of 12 score ranges the labelled positives imply a share above 100 % (interval excludes it)."),
    (replace(BASE, prior=0.5), "CAL702", "problem",
     "The assumed share of positives, 50 %, is larger than these data allow (at most 36 %)."),
    (BASE, "CAL703", "caution", "The error ranges from 3.2 to 12.8 points for shares between 11 and 27 %."),
    (BASE, "CAL704", "note", "Labelled positives are assumed to be a random sample of all positives."),
]  # fmt: skip


@pytest.mark.parametrize(("evidence", "code", "severity", "text"), TABLE, ids=[row[1] for row in TABLE])
def test_each_finding(evidence, code, severity, text):
    found = [f for f in of_unlabeled(evidence, verdict(evidence)) if f.code == code]
    assert [(f.severity, f.text) for f in found] == [(severity, text)]


def test_an_impossible_share_is_not_also_called_miscalibrated():
    given = replace(BASE, prior=0.5)
    assert "CAL201" not in {f.code for f in of_unlabeled(given, verdict(given))}
    assert of_unlabeled(replace(BASE, positives=0), verdict(replace(BASE, positives=0))) == ()
