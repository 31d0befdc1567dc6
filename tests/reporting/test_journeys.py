"""What users stumbled over in the first edition, each as a report that must read right."""

import json
import re
import time

import numpy as np

import calibrant as cal
from calibrant.reporting.contents import Reliability
from tests.reporting.samples import OVER
from tests.reporting.worlds import drawn, expit, logit, softmax

rng = np.random.default_rng(11)


def rare(n, truth):
    z = rng.normal(logit(0.015), 1.0, n)
    return cal.Binary(rng.random(n) < expit(truth(z)), expit(z))


def test_with_sixty_groups_every_wrong_one_is_named_with_its_direction_and_none_vanishes():
    z, group = rng.normal(-0.8, 1, 18_000), np.arange(18_000) % 60
    moved = np.where(group == 7, 1.5, np.where(group == 30, -1.5, 0.0))
    names = np.array([f"shop {k}" for k in range(60)])[group]
    found = cal.report(cal.Binary(rng.random(18_000) < expit(z + moved), expit(z)), by={"shop": names})
    (section,) = found.groups
    assert len(section.rows) == 60
    assert {row.name: row.direction for row in section.rows if row.flagged} == {
        "shop 7": "too low",
        "shop 30": "too high",
    }
    text = next(finding.text for finding in found.findings if finding.code == "CAL301")
    assert text.startswith("2 of 60 shops are miscalibrated after adjustment: ")
    assert "shop 7 (too low)" in text
    assert "shop 30 (too high)" in text
    assert "CAL304" in {finding.code for finding in found.findings}


def test_a_softmax_that_temperature_would_cure_is_told_so_and_no_map_of_one_score_is_named():
    z = 1.5 * rng.standard_normal((6000, 6))
    found = cal.report(cal.Multiclass(drawn(rng, softmax(z)), softmax(1.7 * z)))
    assert found.verdict.direction == "over-confident"
    best = found.recalibration.maps[0]
    assert best.name == "Temperature scaling"
    assert best.remaining.value < 0.01
    assert best.remaining.high < 0.06
    names = {row.name for row in found.recalibration.maps}
    assert not names & {"Spline", "Platt scaling", "Beta calibration", "Isotonic regression"}


def test_risks_of_half_the_truth_are_a_problem_told_relative_to_the_base_rate():
    found = cal.report(rare(30_000, lambda z: z + 0.75))
    assert found.verdict.rule == "B8"
    assert found.verdict.severity == "problem"
    assert re.search(r"events occurred where .* were predicted, a ratio of (1\.[7-9]|2\.)", found.verdict.sentence)
    assert "of the base rate" in found.verdict.how_sure
    (diagram,) = found.sections_of(Reliability)
    assert diagram.axis == "log odds"
    assert found.contents.facts.base_rate is not None
    assert found.contents.facts.mean_prediction is not None


def test_rare_scores_that_are_too_extreme_are_not_called_under_confident():
    z = rng.normal(logit(0.02), 1.3, 60_000)
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(middle + 0.59 * z).sum() < expit(z).sum() else (low, middle)
    found = cal.report(cal.Binary(rng.random(60_000) < expit(low + 0.59 * z), expit(z)))
    assert found.verdict.direction == "too extreme"
    assert "nder-confident" not in str(found)  # parts of the error relative to 1/2 say the opposite of the truth here
    slope = found.contents.numbers[1].value
    assert slope.low < 0.59 < slope.high


def test_no_interval_prints_both_ends_alike():
    for data in (rare(30_000, lambda z: z + 0.75), OVER):
        text = str(cal.report(data))
        for low, high in re.findall(r"(\d[\d.,]*) to (\d[\d.,]*)", text):
            assert low != high, text


def test_nothing_is_promised_to_become_zero_and_doubtful_gains_are_told():
    p = rng.uniform(0.05, 0.5, 180)
    few = cal.report(cal.Binary(rng.random(180) < expit(logit(p) + 0.15), p))
    assert "bring it to" not in str(few)
    assert few.recalibration is not None
    gain = few.recalibration.maps[0].gain
    assert gain.low is not None
    if gain.low <= 0:
        assert "CAL501" not in {finding.code for finding in few.findings}
    over = cal.report(OVER)
    assert re.search(r"the remaining error is at most [\d.]+ points|an error of .* remains", over.verdict.what_to_do)
    assert all(row.remaining.high > 0 for row in over.recalibration.maps)


def test_test_interval_and_findings_do_not_contradict_each_other():
    """Random samples of few rows, calibrated or not: whatever the test says, the words agree with it."""
    draw = np.random.default_rng(3)
    for k in range(12):
        p = draw.uniform(0.05, 0.95, 150)
        q = p if k % 2 else np.clip(p - 0.12, 0.01, 1)
        found = cal.report(cal.Binary(draw.random(150) < q, p))
        codes = {finding.code for finding in found.findings}
        rejected = found.tests[0].p_value < 0.05
        assert ("CAL201" in codes) == rejected
        assert ("CAL202" in codes) == (not rejected)
        assert (found.verdict.state == "not calibrated") == rejected
        reaches_zero = found.headline.interval.low <= 0
        assert ("CAL206" in codes) == (rejected and reaches_zero)


def test_one_interval_is_named_as_that_of_the_true_error(over):
    assert any("of the true L1 error" in note for note in over.contents.notes)


def test_no_repr_reaches_a_reader(over):
    for text in (str(over), over.to_markdown(), over.to_html()):
        for word in ("MultiScale(", "PaperBins", "logit_logit", "EqualWidth(", "EqualMass(", "<class", "Distinct()"):
            assert word not in text


def test_plain_arrays_are_taken_everywhere_and_a_number_of_bins_is_enough():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    data = cal.Binary(y, p)
    assert cal.ece(y, p, bins=10) == cal.ece(data, bins=cal.table.EqualMass(10))
    assert cal.calibration_test(y, p).p_value == cal.calibration_test(data).p_value
    assert cal.decompose(y, p) == cal.decompose(data)
    assert cal.interval(cal.ece, y, p).interval == cal.interval(cal.ece, data).interval
    np.testing.assert_array_equal(cal.reliability_curve(y, p).observed, cal.reliability_curve(data).observed)


def test_every_one_of_ten_scores_is_its_own_bin():
    p = np.round(rng.uniform(0.05, 0.95, 4000), 1)
    found = cal.report(cal.Binary(rng.random(4000) < p**1.5, p))
    (diagram,) = found.sections_of(Reliability)
    assert len(diagram.bins["linear"]) == len(np.unique(p)) == diagram.distinct
    assert "CAL403" in {finding.code for finding in found.findings}
    assert "distinct scores: the largest gap is at" in found.verdict.second


def test_losses_are_named(over):
    assert "log loss" in over.verdict.what_to_do
    certain = np.concatenate([OVER.y_prob, [0.0]])
    found = cal.report(cal.Binary(np.concatenate([OVER.y_true, [1]]), certain))
    assert found.recalibration.loss == "Brier score"
    assert " loss " not in found.verdict.what_to_do.replace("log loss", "")


def test_months_are_in_order_of_time_and_groups_have_directions():
    months = np.array([f"2025-{k:02d}" for k in (12, 1, 10, 2, 11, 3)] * 1000)
    z = rng.normal(-1, 1, 6000)
    data = cal.Binary(rng.random(6000) < expit(z - 0.9 * (months >= "2025-10")), expit(z))
    found = cal.report(data, time=months, by=months)
    names = [period.name for period in found.over_time.periods]
    assert len(names) == 6
    assert [("2025" in name) for name in names] == [True] * 6
    ratios = [period.ratio.value for period in found.over_time.periods]
    assert max(ratios[3:]) < min(ratios[:3])
    assert found.over_time.change.first == 3
    assert all(row.direction == "too high" for row in found.groups[0].rows if row.flagged)


def test_a_report_takes_little_time_beyond_its_parts():
    """Nothing is computed twice: a report of ten thousand rows costs a few times its interval, test and maps."""
    p = rng.random(10_000)
    data = cal.Binary(rng.random(10_000) < 0.5 + 0.6 * (p - 0.5), p)
    cal.report(data)

    def seconds(work):
        start = time.process_time()
        work()
        return time.process_time() - start

    parts = seconds(lambda: (cal.interval(cal.averaged_error, data), cal.calibration_test(data)))
    parts += sum(seconds(lambda m=m: [m.fit(p, data.y_true) for _ in range(5)]) for m in _maps())
    assert min(seconds(lambda: cal.report(data)) for _ in range(2)) < 4 * parts


def _maps():
    maps = cal.recalibrate
    return [maps.Temperature(), maps.Platt(), maps.Beta(), maps.Quadratic(), maps.Spline(), maps.Isotonic()]


def test_json_says_the_same_words(over):
    found = json.loads(over.to_json())
    assert found["verdict"]["state"] == "not calibrated"
    assert found["verdict"]["what_to_do"] == over.verdict.what_to_do
