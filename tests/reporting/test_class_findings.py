"""The findings on several classes."""

from dataclasses import replace

import pytest

from calibrant.reporting.class_findings import of_classes
from calibrant.reporting.contents import Value
from calibrant.reporting.verdicts.several_classes import verdict
from tests.reporting.verdicts.evidence_samples import ACCEPTS
from tests.reporting.verdicts.test_several_classes import BASE, CLASSES, QUIET, REFUNDS

TABLE = [
    (BASE, "CAL211", "problem",
     "The probability vectors are not calibrated (whole-vector test, p ≤ 0.001, n = 9,000)."),
    (BASE, "CAL205", "problem", "Over-confident: confidence exceeds accuracy by 14.6 points (13.7 to 15.6)."),
    (BASE, "CAL212", "problem",
     "2 of 7 classes are miscalibrated after adjustment; totals are off most for Refunds (1.77) and Other (0.87)."),
    (replace(BASE, test=ACCEPTS, top=QUIET), "CAL202", "note",
     "No significant miscalibration detected (whole-vector test, p = 0.21, n = 9,000); the top-label error is at "
     "most 1.6 "
     "points."),
    (replace(BASE, impossible=3), "CAL101", "problem",
     "3 rows were of a class predicted with a probability of exactly 0. Log loss is infinite; the Brier score is used "
     "instead."),
    (replace(BASE, decisions=Value(0.8)), "CAL104", "caution",
     "The predictions are only 0 and 1: decisions, not probabilities."),
    (replace(BASE, classes=replace(CLASSES, rows=(replace(REFUNDS, observed=4),))), "CAL302", "caution",
     "1 of 7 classes have fewer than 10 rows: they are shown but cannot be judged."),
    (replace(BASE, n=120, top=replace(BASE.top, undetected=0.1)), "CAL402", "caution",
     "With 120 tickets and 7 classes, a top-label error below about 10 points would usually go undetected."),
]  # fmt: skip


@pytest.mark.parametrize(("evidence", "code", "severity", "text"), TABLE, ids=[row[1] for row in TABLE])
def test_each_finding(evidence, code, severity, text):
    found = [f for f in of_classes(evidence, verdict(evidence)) if f.code == code]
    assert [(f.severity, f.text) for f in found] == [(severity, text.replace("rows were", "tickets were"))]


def test_nothing_is_found_in_nothing_and_no_class_is_accused_without_the_vector():
    assert of_classes(replace(BASE, n=0), verdict(replace(BASE, n=0))) == ()
    calm = replace(BASE, test=ACCEPTS, top=QUIET)
    assert not {"CAL205", "CAL211", "CAL212"} & {f.code for f in of_classes(calm, verdict(calm))}
