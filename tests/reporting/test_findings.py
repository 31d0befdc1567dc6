"""The numbered findings: each rule speaks when it should, and none contradicts the verdict."""

from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.contents import Bin, BinCounts, MapRow, Recalibration
from calibrant.reporting.findings import of_classes, of_forecasts, of_probabilities, of_unlabeled
from calibrant.reporting.verdicts.binary import BINARY
from calibrant.reporting.verdicts.evidence import Decisions, Probabilities
from calibrant.reporting.verdicts.forecasts import FORECASTS
from calibrant.reporting.verdicts.multiclass import MULTICLASS
from calibrant.reporting.verdicts.unlabeled import UNLABELED
from calibrant.results.estimate import Value
from tests.reporting.samples import CALIBRATED, P
from tests.reporting.verdicts.evidence_samples import ACCEPTS, PLAIN, group, groups, maps, over_time
from tests.reporting.verdicts.test_forecasts import BASE as SPREADS
from tests.reporting.verdicts.test_forecasts import NARROW, decided_by
from tests.reporting.verdicts.test_multiclass import BASE as VECTORS
from tests.reporting.verdicts.test_multiclass import CLASSES, QUIET, REFUNDS
from tests.reporting.verdicts.test_unlabeled import BASE as ASSUMED
from tests.reporting.verdicts.test_unlabeled import UNSURE

BINS = BinCounts((2, 10, 1000), (0.007, 0.01, 0.024), (0.007, 0.01, 0.02), (0, 0, 0), (1, 1, 1))
RANGES = (
    Bin(0.0, 0.0005, 900, 2, 0.0003, Value(0.0027, 0.001, 0.005)),
    Bin(0.2, 0.5, 400, 92, 0.36, Value(0.23, 0.19, 0.27)),
)

#: Evidence; code, severity, text.
TABLE = [
    (replace(PLAIN, impossible_events=12), "CAL101", "problem",
     "12 rows were predicted as exactly 0 and came out 1. Log loss is infinite; the Brier score is used instead."),
    (replace(PLAIN, impossible_others=1), "CAL101", "problem",
     "1 row was predicted as exactly 1 and came out 0. Log loss is infinite; the Brier score is used instead."),
    (replace(PLAIN, certain=0.15), "CAL102", "caution", "15 % of the rows are predicted as exactly 0 or 1."),
    (replace(PLAIN, only_score=0.3), "CAL103", "caution", "All rows have the same predicted probability."),
    (replace(PLAIN, decisions=Decisions(9, Value(0.5), 9, Value(0.5))), "CAL104", "caution",
     "The predictions are only 0 and 1: decisions, not probabilities."),
    (PLAIN, "CAL201", "problem", "The predictions are not calibrated (multiscale test, p ≤ 0.001, n = 2,000)."),
    (replace(PLAIN, test=ACCEPTS, error=Value(0.02, 0, 0.07)), "CAL202", "caution",
     "No significant miscalibration detected (multiscale test, p = 0.21, n = 2,000); the error is at most 7 points."),
    (replace(PLAIN, error=Value(0.003, 0.002, 0.0039), events=1000), "CAL203", "note",
     "The error is significant but small: at most 0.39 points, 0.8 % of the base rate."),
    (replace(PLAIN, slope=Value(0.8, 0.75, 0.85), ranges=RANGES, recalibration=maps(moved=0.02)), "CAL204", "problem",
     "Probabilities are too extreme (slope 0.80): scores from 20 % to 50 % are too high (36 % predicted, 23 % "
     "observed), scores from 0 % to 0.05 % are too low (0.03 % predicted, 0.27 % observed)."),
    (replace(PLAIN, slope=Value(0.8, 0.75, 0.85), ranges=(RANGES[0], replace(RANGES[1], predicted=0.1)),
             recalibration=maps(moved=0.02)), "CAL204", "problem",  # a high range that is too low shows nothing of it
     "Probabilities are too extreme (slope 0.80): scores from 0 % to 0.05 % are too low (0.03 % predicted, 0.27 % "
     "observed)."),
    (replace(PLAIN, slope=Value(1.3, 1.2, 1.4), ranges=RANGES, recalibration=maps(moved=0.02)), "CAL204", "problem",
     "Probabilities are too moderate (slope 1.30)."),
    (replace(PLAIN, confidence=True, ratio=Value(0.8, 0.78, 0.82), predicted=0.375), "CAL205", "problem",
     "Over-confident: confidence exceeds accuracy by 7.5 points (6.8 to 8.2)."),
    (replace(PLAIN, error=Value(0.03, 0.0, 0.06)), "CAL206", "caution",
     "The test rejects calibration, yet the interval of the error reaches 0: there is an error, but its size is "
     "uncertain."),
    (replace(PLAIN, groups=(groups(group(), group("Peru", flagged=False)),)), "CAL301", "problem",
     "1 of 2 countries is miscalibrated after adjustment: Brazil (too low)."),
    (replace(PLAIN, groups=(groups(replace(group(flagged=False), judged=False), group("Peru", flagged=False)),)),
     "CAL302", "caution", "1 of 2 groups have fewer than 10 events: they are shown but cannot be judged."),
    (replace(PLAIN, over_time=over_time()), "CAL303", "problem",
     "Calibration changed over time: observed : expected fell from 0.97 (July 2025 to August 2025) to 0.56 (September "
     "2025 to October 2025)."),
    (replace(PLAIN, groups=(groups(group(), *(group(f"g{k}", flagged=False) for k in range(59))),)), "CAL304", "note",
     "40 of 60 groups are folded below the figure; all were tested."),
    (replace(PLAIN, bin_counts=BINS), "CAL401", "caution",
     "The plain ECE ranges from 0.70 points (2 bins) to 2.4 points (1,000 bins) on the same rows."),
    (replace(PLAIN, n=180, events=41, undetected=0.088), "CAL402", "caution",
     "With 180 rows and 41 events, an error below about 9 points would usually go undetected."),
    (replace(PLAIN, distinct=10), "CAL403", "note", "Only 10 distinct scores: every score is its own bin."),
    (replace(PLAIN, cells=512), "CAL404", "note",
     "Computed from a table of 512 cells: rows are treated as independent and not checked one by one."),
    (replace(PLAIN, recalibration=maps()), "CAL501", "note",
     "Recalibration helps: Platt scaling lowers cross-validated log loss by 1.7 % (0.9 to 2.5 %)."),
    (replace(PLAIN, recalibration=maps(-0.03, -0.01, effect="makes it worse")), "CAL502", "note",
     "Recalibration does not help: every map tried raises cross-validated log loss."),
    (replace(PLAIN, recalibration=maps(-0.004, 0.019, effect="may not help")), "CAL503", "note",
     "Recalibration may not help: with the best map log loss is lower by 0.8 % (−0.4 to 1.9 %), and the interval "
     "includes 0."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "code", "severity", "text"), TABLE, ids=[f"{k}-{row[1]}" for k, row in enumerate(TABLE)]
)
def test_each_finding(evidence, code, severity, text):
    found = [f for f in of_probabilities(evidence, BINARY.verdict(evidence)) if f.code == code]
    assert [(f.severity, f.text) for f in found] == [(severity, text)]


LIMITS = [
    (replace(PLAIN, certain=0.051), replace(PLAIN, certain=0.049), "CAL102"),
    (replace(PLAIN, n=199, events=41, undetected=0.1), replace(PLAIN, n=200, events=41, undetected=0.1), "CAL402"),
    (*(replace(PLAIN, groups=(groups(*[group(flagged=False)] * many),)) for many in (21, 20)), "CAL304"),
]


@pytest.mark.parametrize(("inside", "outside", "code"), LIMITS)
def test_limits_of_findings(inside, outside, code):
    assert code in {f.code for f in of_probabilities(inside, BINARY.verdict(inside))}
    assert code not in {f.code for f in of_probabilities(outside, BINARY.verdict(outside))}
    for variation, found in ((0.049, True), (0.051, False)):
        evidence = replace(SPREADS, variation=variation)
        codes = {f.code for f in of_forecasts(evidence, FORECASTS.verdict(evidence))}
        assert ("CAL602" in codes) is found


def test_findings_come_most_serious_first_and_none_without_rows():
    order = {"problem": 0, "caution": 1, "note": 2}
    given = replace(PLAIN, bin_counts=BINS, recalibration=maps(), groups=(groups(group()),))
    ranks = [order[f.severity] for f in of_probabilities(given, BINARY.verdict(given))]
    assert ranks == sorted(ranks)
    assert of_probabilities(Probabilities(n=0), BINARY.verdict(Probabilities(n=0))) == ()


def test_decisions_are_not_called_miscalibrated_nor_recalibrated():
    given = replace(PLAIN, decisions=Decisions(9, Value(0.5), 9, Value(0.5)), recalibration=maps())
    assert {f.code for f in of_probabilities(given, BINARY.verdict(given))} == {"CAL104"}


def test_no_gain_is_announced_where_nothing_is_significant():
    given = replace(PLAIN, test=ACCEPTS, recalibration=maps())
    assert "CAL501" not in {f.code for f in of_probabilities(given, BINARY.verdict(given))}


def test_certain_forecasts_that_failed_are_a_problem():
    p = np.concatenate([np.full(50, 1.0), P])
    y = np.concatenate([np.zeros(50), CALIBRATED.y_true])
    found = {f.code: f for f in cal.report(cal.Binary(y, p)).findings}
    assert found["CAL101"].text.startswith("50 rows were predicted as exactly 1 and came out 0.")


CLASS_FINDINGS_TABLE = [
    (VECTORS, "CAL211", "problem",
     "The probability vectors are not calibrated (whole-vector test, p ≤ 0.001, n = 9,000)."),
    (VECTORS, "CAL205", "problem", "Over-confident: confidence exceeds accuracy by 14.6 points (13.7 to 15.6)."),
    (VECTORS, "CAL212", "problem",
     "2 of 7 classes are miscalibrated after adjustment; totals are off most for Refunds (1.77) and Other (0.87)."),
    (replace(VECTORS, test=ACCEPTS, top=QUIET), "CAL202", "note",
     "No significant miscalibration detected (multiscale test, p = 0.21, n = 9,000); the top-label error is at "
     "most 1.6 "
     "points."),
    (replace(VECTORS, impossible=3), "CAL101", "problem",
     "3 rows were of a class predicted with a probability of exactly 0. Log loss is infinite; the Brier score is used "
     "instead."),
    (replace(VECTORS, decisions=Value(0.8)), "CAL104", "caution",
     "The predictions are only 0 and 1: decisions, not probabilities."),
    (replace(VECTORS, classes=replace(CLASSES, rows=(replace(REFUNDS, observed=4),))), "CAL302", "caution",
     "1 of 7 classes have fewer than 10 rows: they are shown but cannot be judged."),
    (replace(VECTORS, n=120, top=replace(VECTORS.top, undetected=0.1)), "CAL402", "caution",
     "With 120 tickets and 7 classes, a top-label error below about 10 points would usually go undetected."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "code", "severity", "text"), CLASS_FINDINGS_TABLE, ids=[row[1] for row in CLASS_FINDINGS_TABLE]
)
def test_class_findings_each_finding(evidence, code, severity, text):
    found = [f for f in of_classes(evidence, MULTICLASS.verdict(evidence)) if f.code == code]
    assert [(f.severity, f.text) for f in found] == [(severity, text.replace("rows were", "tickets were"))]


def test_nothing_is_found_in_nothing_and_no_class_is_accused_without_the_vector():
    assert of_classes(replace(VECTORS, n=0), MULTICLASS.verdict(replace(VECTORS, n=0))) == ()
    calm = replace(VECTORS, test=ACCEPTS, top=QUIET)
    assert not {"CAL205", "CAL211", "CAL212"} & {f.code for f in of_classes(calm, MULTICLASS.verdict(calm))}


SPLINE = MapRow("Spline of the spread", 5, Value(0.01), Value(0.0068, 0.0044, 0.0092), "best")
FACTOR = MapRow("One factor (std scaling)", 1, Value(0.01), Value(-0.005, -0.008, -0.002), "makes it worse")
HIDDEN = replace(SPREADS, test=decided_by("spread by width", -1), ence=0.18, ence_null=(0.04, 0.09))

FORECAST_FINDINGS_TABLE = [
    (NARROW, "CAL601", "problem", "The predicted spread is too narrow: error-to-spread ratio 1.27 (1.24 to 1.31)."),
    (SPREADS, "CAL202", "note", "No significant miscalibration detected (test of forecasts, p = 0.40, n = 442)."),
    (HIDDEN, "CAL201", "caution",
     "The predicted distributions are not calibrated (test of forecasts, p < 0.001, n = 442)."),
    (replace(SPREADS, variation=0.03), "CAL602", "caution",
     "The predicted spread hardly varies (coefficient of variation 0.03): it cannot tell easy rows from hard ones."),
    (replace(SPREADS, largest_share=0.31, largest_row=217, largest_error=4.2, largest_spread=0.01), "CAL603", "caution",
     "One row makes up 31 % of the mean squared standardised error (row 217: error 4.2, predicted spread 0.010)."),
    (HIDDEN, "CAL604", "caution",
     "Intervals cover as they should on average, although the spread of single rows is wrong (ENCE 18 %, "
     "calibrated 4 to "
     "9 %)."),
    (replace(NARROW, recalibration=Recalibration("CRPS", 1.0, (SPLINE, FACTOR))), "CAL605", "caution",
     "One factor is not enough: scaling all spreads would worsen CRPS by 0.5 % (0.2 to 0.8 %)."),
    (replace(NARROW, recalibration=Recalibration("CRPS", 1.0, (SPLINE,))), "CAL501", "note",
     "Recalibration helps: a spline of the spread lowers cross-validated CRPS by 0.68 % (0.44 to 0.92 %)."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "code", "severity", "text"),
    FORECAST_FINDINGS_TABLE,
    ids=[f"{k}-{r[1]}" for k, r in enumerate(FORECAST_FINDINGS_TABLE)],
)
def test_forecast_findings_each_finding(evidence, code, severity, text):
    found = [f for f in of_forecasts(evidence, FORECASTS.verdict(evidence)) if f.code == code]
    assert [(f.severity, f.text) for f in found] == [(severity, text)]


def test_quiet_forecasts_have_no_cautions():
    assert {f.code for f in of_forecasts(SPREADS, FORECASTS.verdict(SPREADS))} == {"CAL202"}
    assert of_forecasts(replace(SPREADS, n=0), FORECASTS.verdict(replace(SPREADS, n=0))) == ()
    few = replace(SPREADS, n=5, largest_share=0.4)
    assert "CAL603" not in {f.code for f in of_forecasts(few, FORECASTS.verdict(few))}


UNLABELED_FINDINGS_TABLE = [
    (ASSUMED, "CAL201", "problem", "The predictions are not calibrated if 19 % are positive (score test, p < 0.001)."),
    (replace(ASSUMED, test=UNSURE), "CAL202", "caution",
     "No significant miscalibration detected if 19 % are positive (score test, p = 0.40); the error is at most 7 "
     "points."),
    (replace(ASSUMED, impossible=2, ranges=12), "CAL701", "problem",
     "At 2 of 12 score ranges the labelled positives imply a share above 100 % (interval excludes it)."),
    (replace(ASSUMED, prior=0.5), "CAL702", "problem",
     "The assumed share of positives, 50 %, is larger than these data allow (at most 36 %)."),
    (ASSUMED, "CAL703", "caution", "The error ranges from 3.2 to 12.8 points for shares between 11 and 27 %."),
    (ASSUMED, "CAL704", "note", "Labelled positives are assumed to be a random sample of all positives."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "code", "severity", "text"), UNLABELED_FINDINGS_TABLE, ids=[row[1] for row in UNLABELED_FINDINGS_TABLE]
)
def test_unlabeled_findings_each_finding(evidence, code, severity, text):
    found = [f for f in of_unlabeled(evidence, UNLABELED.verdict(evidence)) if f.code == code]
    assert [(f.severity, f.text) for f in found] == [(severity, text)]


def test_an_impossible_share_is_not_also_called_miscalibrated():
    given = replace(ASSUMED, prior=0.5)
    assert "CAL201" not in {f.code for f in of_unlabeled(given, UNLABELED.verdict(given))}
    assert of_unlabeled(replace(ASSUMED, positives=0), UNLABELED.verdict(replace(ASSUMED, positives=0))) == ()
