"""The report on probabilities: verdict, numbers, measures, sections."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.contents import BinCounts, Recalibration, Reliability
from tests.reporting.samples import CALIBRATED, OVER, P

rng = np.random.default_rng(1)


def test_the_verdict_names_direction_size_interval_and_remedy(over):
    assert over.verdict.rule == "B12"
    assert over.verdict.sentence.startswith("Predicted probabilities are too extreme: high ones too high")
    assert "95 % interval" in over.verdict.sentence
    assert "lowers cross-validated log loss by" in over.verdict.what_to_do
    assert "remain" in over.verdict.what_to_do


def test_probabilities_that_are_all_too_high_are_called_so():
    found = cal.report(cal.Binary(rng.random(3000) < P**1.5, P)).verdict
    assert found.direction == "too high"
    assert found.sentence.startswith("Predicted probabilities are too high by")


def test_a_calibrated_model_is_not_accused():
    found = cal.report(CALIBRATED)
    assert found.verdict.rule == "B5"
    assert found.verdict.severity == "note"
    assert "CAL202" in {finding.code for finding in found.findings}
    assert found.verdict.what_to_do == "Nothing needs to be done for calibration."


def test_the_table_holds_the_library_s_own_numbers(over):
    measured = {(m.estimate.name, m.estimate.method): m.estimate for m in over.measures}
    assert measured["ECE (L1)", repr(cal.EqualWidth(15))] == pytest.approx(
        cal.ece(OVER, bins=cal.EqualWidth(15)), abs=1e-12
    )
    assert measured["ECE (L1)", repr(cal.EqualMass(15))] == pytest.approx(cal.ece(OVER), abs=1e-12)
    assert over.headline == pytest.approx(cal.averaged_error(OVER, norm=1), abs=1e-9)
    assert over.headline in over.headline.interval


def test_the_three_numbers_are_error_slope_and_ratio(over):
    error, slope, ratio = over.contents.numbers
    assert (error.unit, slope.unit, ratio.unit) == ("points", "ratio", "ratio")
    assert slope.value.value == cal.calibration_slope(OVER)
    assert ratio.value.value == cal.observed_expected(OVER)
    assert error.value.high == over.headline.interval.high
    assert "% of it" in error.text


def test_sections_come_in_reading_order(over):
    kinds = [type(section) for section in over.contents.sections]
    assert kinds[0] is Reliability
    assert kinds.index(Recalibration) < kinds.index(BinCounts)


def test_a_threshold_is_judged():
    q = 1 / (1 + np.exp(-rng.normal(-3, 1, 20000)))
    y = rng.random(20000) < np.minimum(2 * q, 1)
    found = cal.report(cal.Binary(y, q), threshold=0.1, event="fraud", row="payment").verdict
    assert "above your threshold of 10 %" in found.what_it_means
    assert "were frauds" in found.what_it_means


@pytest.mark.no_cover
def test_a_tolerance_decides_severity():
    y = rng.random(20000) < np.clip(np.tile(P, 7)[:20000] + 0.05, 0, 1)
    data = cal.Binary(y, np.tile(P, 7)[:20000])
    assert cal.report(data).verdict.severity == "problem"
    lenient = cal.report(data, tolerance=0.08).verdict
    assert lenient.severity == "note"
    assert "within your tolerance of 8 points" in lenient.sentence
