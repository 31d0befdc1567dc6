"""The reports of the four tasks: verdict, numbers, measures, sections."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtri

import calibrant as cal
from calibrant.reporting.contents import Assembly, BinCounts, MapRow, Options, Recalibration, Reliability, Shares
from calibrant.reporting.evidence import Part, collected
from calibrant.reporting.sections.recalibration import with_readers_names, with_recent_map
from calibrant.reporting.task_reports import (
    BinaryReport,
    method_notes,
)
from calibrant.reporting.verdicts.binary import BINARY
from calibrant.reporting.verdicts.evidence import Words
from calibrant.reporting.verdicts.severity import judged_together
from calibrant.results.estimate import Value
from calibrant.table.binning import PaperBins
from tests.reporting.samples import CALIBRATED, OVER, SIGMA, SPREAD, P
from tests.reporting.verdicts.evidence_samples import ACCEPTS, PLAIN, group, groups, over_time


def time_section(data, options):
    """The section on time of a report with these options."""
    return BinaryReport(data, options).time_section(data)


def test_sections_and_evidence_are_judged_alike():
    """A group that its own column flags, and all tests together do not, is flagged nowhere."""
    rows = (group("a", p=0.03), group("b", p=0.5, flagged=False, direction="not flagged"))
    given = replace(PLAIN, test=ACCEPTS, groups=(groups(*rows),), over_time=over_time(significant=False))
    found = judged_together(given)
    assert not any(row.flagged for row in found.groups[0].rows)
    assert "The 3 tests of this report are adjusted for each other" in method_notes(found, "Own.")[1]
    assert method_notes(given, "Own.") == ("Own.",)


def test_columns_that_cannot_be_grouped_say_why():
    found = cal.report(CALIBRATED, by={"a": np.arange(3000) % 2, "b": np.zeros(3000)})
    assert "a" in [section.column for section in found.groups]
    assert "Groups by b" in [left.section for left in found.contents.omitted]


def test_time_only_where_it_was_given():
    assert time_section(CALIBRATED, Options()) is None
    found = time_section(CALIBRATED, Options(time=("month", np.arange(3000) % 12)))
    assert found.column == "month"
    assert len(found.periods) == 12


def test_after_a_change_a_map_is_fitted_to_recent_rows():
    rng = np.random.default_rng(0)
    month, p = np.arange(6000) * 12 // 6000, rng.uniform(0.05, 0.6, 6000)
    data = cal.Binary(rng.random(6000) < np.where(month < 8, p, 0.5 * p), p)
    options = Options(time=("month", month))
    plain = Recalibration("log loss", 0.5, (MapRow("Beta", 3, Value(0.0), Value(0.1), "best"),))
    section = with_recent_map(plain, data, options, time_section(data, options))
    found = section.recent
    assert found.gain.low > 0
    assert section.since == "month >= 8"
    assert "recent = time >= 8" in section.code
    calm = cal.Binary(rng.random(6000) < p, p)
    assert with_recent_map(plain, calm, options, time_section(calm, options)) is plain
    assert with_recent_map(plain, calm, Options(), None) is plain
    tables = {str(k): cal.BinTable.of(data.take(month == k), cal.table.HybridGrid()) for k in range(12)}
    whole, given = cal.BinTable.of(data, cal.table.HybridGrid()), Options(time=("month", tables))
    again = with_recent_map(plain, whole, given, time_section(whole, given))
    assert abs(again.recent.gain.value - found.gain.value) < 0.01
    space = {"time": tables, "p_new": p[:5]}
    exec(again.code, space)
    assert (space["recalibrated"] < p[:5]).all()


def test_maps_have_the_names_of_readers():
    one = MapRow("Beta", 3, Value(0.0), Value(0.1), "best")
    made = with_readers_names(Recalibration("log loss", 0.5, (one,)))
    assert made.maps[0].name == "Beta calibration"


probabilities_rng = np.random.default_rng(1)


def test_the_verdict_names_direction_size_interval_and_remedy(over):
    assert over.verdict.rule == "B12"
    assert over.verdict.sentence.startswith("Predicted probabilities are too extreme: high ones too high")
    assert "95 % interval" in over.verdict.sentence
    assert "lowers cross-validated log loss by" in over.verdict.what_to_do
    assert "remain" in over.verdict.what_to_do


def test_probabilities_that_are_all_too_high_are_called_so():
    found = cal.report(cal.Binary(probabilities_rng.random(3000) < P**1.5, P)).verdict
    assert found.direction == "too high"
    assert found.sentence.startswith("Predicted probabilities are too high by")


def test_a_calibrated_model_is_not_accused():
    few = cal.report(CALIBRATED).verdict
    assert (few.rule, few.severity) == ("B6", "caution")
    assert few.what_to_do.startswith("Collect about")
    p = np.random.default_rng(5).random(20_000)
    found = cal.report(cal.Binary(np.random.default_rng(6).random(20_000) < p, p))
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
    q = 1 / (1 + np.exp(-probabilities_rng.normal(-3, 1, 20000)))
    y = probabilities_rng.random(20000) < np.minimum(2 * q, 1)
    found = cal.report(cal.Binary(y, q), threshold=0.1, event="fraud", row="payment").verdict
    assert "above your threshold of 10 %" in found.what_it_means
    assert 'had the event "fraud"' in found.what_it_means


@pytest.mark.no_cover
def test_a_tolerance_decides_severity():
    y = probabilities_rng.random(20000) < np.clip(np.tile(P, 7)[:20000] + 0.05, 0, 1)
    data = cal.Binary(y, np.tile(P, 7)[:20000])
    assert cal.report(data).verdict.severity == "problem"
    lenient = cal.report(data, tolerance=0.08).verdict
    assert lenient.severity == "note"
    assert "within your tolerance of 8 points" in lenient.sentence


classes_rng = np.random.default_rng(2)
LOGITS = 1.5 * classes_rng.standard_normal((3000, 4))


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def drawn(p):
    return (classes_rng.random((len(p), 1)) > p.cumsum(axis=1)).sum(axis=1)


Y = drawn(softmax(LOGITS))


@pytest.mark.no_cover
def test_a_sharp_softmax_is_over_confident():
    found = cal.report(cal.Multiclass(Y, softmax(1.7 * LOGITS)), row="ticket")
    assert found.contents.kind == "classes"
    assert found.verdict.rule == "M1"
    assert found.verdict.direction == "over-confident"
    assert "right for" in found.verdict.sentence
    assert {"CAL211", "CAL205"} <= {finding.code for finding in found.findings}
    assert [test.method.split("(")[0] for test in found.tests] == ["VectorTest", "MultiScale"]
    assert "Classwise ECE (L1)" in {m.estimate.name for m in found.measures}
    assert [number.name for number in found.contents.numbers] == [
        "Top-label calibration error, L1", "Confidence − accuracy", "Class-wise calibration error",
    ]  # fmt: skip


@pytest.mark.no_cover
def test_the_scores_are_those_of_the_whole_vector():
    data = cal.Multiclass(Y, softmax(LOGITS))
    measured = {m.estimate.name: m.estimate for m in cal.report(data).measures}
    assert measured["Log loss"] == cal.log_loss(data)
    assert measured["Brier score"] == cal.brier(data)


@pytest.mark.no_cover
def test_rows_of_an_impossible_class_are_found():
    p = softmax(LOGITS)
    p[np.arange(5), Y[:5]] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    found = {f.code: f.text for f in cal.report(cal.Multiclass(Y, p)).findings}
    assert found["CAL101"].startswith("5 rows were of a class predicted with a probability of exactly 0.")


@pytest.mark.no_cover
def test_weighted_classes_are_tested_one_by_one():
    weight = classes_rng.random(3000)
    found = cal.report(cal.Multiclass(Y, softmax(1.7 * LOGITS), weight=weight))
    assert (found.verdict.rule, found.verdict.direction) == ("M1", "over-confident")
    assert "Strong evidence: test of each class and of the confidence, p < 0.001." in found.verdict.how_sure
    right = cal.report(cal.Multiclass(Y, softmax(LOGITS), weight=weight))
    assert right.verdict.state == "not significant"
    assert "4 classes (test of each class and of the confidence, n = 3,000)" in right.verdict.sentence


#: One report per task, and another of what has the same scores everywhere.
UNTESTED = {
    "binary": lambda: cal.Binary(np.arange(400) % 3 == 0, np.linspace(0.1, 0.5, 400)),
    "one score": lambda: cal.Binary(np.arange(400) % 3 == 0, np.full(400, 0.3)),
    "one outcome": lambda: cal.Binary(np.zeros(400), np.linspace(0.1, 0.5, 400)),
    "classes": lambda: cal.Multiclass(Y[:300], softmax(LOGITS[:300])),
    "forecasts": lambda: cal.Gaussian(np.sin(np.arange(200)), np.zeros(200), np.ones(200)),
    "quantiles": lambda: cal.Quantiles(np.sin(np.arange(200)), [0.05, 0.5, 0.95], np.tile([-1.0, 0.0, 1.0], (200, 1))),
    "unlabeled": lambda: cal.PositiveUnlabeled(np.linspace(0.1, 0.9, 100), np.linspace(0.0, 0.8, 300), prior=0.3),
}


def no_p_value(*args, **options):
    return cal.Significance(0.0, float("nan"), "none", 10)


def raising(error):
    def test(*args, **options):
        raise error

    return test


WITHOUT_P_VALUE = {
    "singular matrix": raising(np.linalg.LinAlgError("Singular matrix")),
    "overflow": raising(FloatingPointError("overflow")),
    "it needs other rows": raising(cal.InvalidPredictions("NewTest needs other rows.")),
    "these rows give it no p-value": no_p_value,
}


# Every task asks `verdict_test`, which alone knows the reasons: all are tried with one task, and two with every task.
@pytest.mark.parametrize(
    ("task", "reason"),
    [
        *product(UNTESTED, ("overflow", "these rows give it no p-value")),
        *product(["binary"], ("singular matrix", "it needs other rows")),
    ],
)
def test_a_test_that_did_not_run_is_not_one_that_passed(monkeypatch, task, reason):
    for module in ("evidence", "task_reports"):
        monkeypatch.setattr(f"calibrant.reporting.{module}.calibration_test", WITHOUT_P_VALUE[reason])
    found = cal.report(UNTESTED[task]())
    text = str(found)
    if task == "one outcome":
        assert found.verdict.state == "too few"
    else:
        assert found.verdict.state == "cannot be judged"
        assert f"The test could not be computed: {reason}." in found.verdict.sentence
    assert found.verdict.severity == "caution"
    assert found.verdict.how_sure.startswith("Significance is not known, because the test could not be computed.")
    assert "CAL207" in {finding.code for finding in found.findings}
    assert not {"CAL201", "CAL202", "CAL402"} & {finding.code for finding in found.findings}
    for words in ("No significant", "Nothing needs to be done", "within chance", "No total"):
        assert words not in text
    for words in ("No significant", "Nothing needs to be done", "agree with the predict", "Outcomes fall evenly"):
        assert words not in found.to_html()


def clustered_forecasts(rng):
    """Calibrated normal forecasts of a thousand rows whose errors share a part within fifty clusters."""
    group = np.arange(1000) // 20
    std = np.exp(0.5 * rng.normal(size=50))[group]
    error = std * (rng.normal(size=50)[group] + rng.normal(size=1000)) / np.sqrt(2)
    return group, std, error


def gaussian_of(rng):
    group, std, error = clustered_forecasts(rng)
    return cal.Gaussian(error, np.zeros(1000), std, group=group)


def quantiles_of(rng):
    group, std, error = clustered_forecasts(rng)
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    return cal.Quantiles(error, levels, np.outer(std, ndtri(levels)), group=group)


def samples_of(rng):
    group, std, error = clustered_forecasts(rng)
    return cal.Samples(error, std[:, None] * rng.normal(size=(1000, 20)), group=group)


def outputs_of(rng):
    error = np.sqrt(0.9) * rng.normal(size=(200, 1)) + np.sqrt(0.1) * rng.normal(size=(200, 5))
    return cal.Gaussian(error, np.zeros((200, 5)), np.ones((200, 5)))


@pytest.mark.no_cover
@pytest.mark.parametrize("draw", [gaussian_of, quantiles_of, samples_of, outputs_of])
def test_calibrated_forecasts_that_depend_on_each_other_are_not_accused(draw):
    rng = np.random.default_rng(6)
    for _ in range(3):
        data = draw(rng)
        by, time = np.arange(len(data)) // 7 % 3, np.arange(len(data)) // (len(data) // 4)
        found = cal.report(data, by=by, time=time)
        assert found.verdict.state == "not significant"
        assert not any(finding.severity == "problem" for finding in found.findings)
        assert not any(row.flagged for grouping in found.groups for row in grouping.rows)
        assert found.over_time is None or all(np.isnan(period.p_value) for period in found.over_time.periods)
        for words in ("range of a calibrated", "calibrated forecaster"):
            assert words not in str(found)
        assert "Where outcomes fall in their predicted distributions" in found.to_html()


def test_what_can_be_done_with_forecasts_that_depend_on_each_other():
    rng = np.random.default_rng(0)
    data = gaussian_of(rng)
    clustered = cal.report(data).verdict
    assert "Intervals allow for 50 groups of dependent rows." in clustered.how_sure
    assert clustered.what_it_means.startswith("Intervals meant to hold 90 % of outcomes hold 89 % (")
    few = cal.report(data.take(np.arange(200))).verdict
    assert few.state == "cannot be judged"
    assert "clusters" in few.sentence
    assert "for example one per group" in few.what_to_do
    wrong = cal.Gaussian(2 * data.y_true, data.mean, data.std, group=data.group)
    assert cal.report(wrong).verdict.direction == "too narrow"


regression_rng = np.random.default_rng(1)


def test_regression_says_by_which_factor_errors_exceed_the_spread():
    found = cal.report(SPREAD)
    assert found.verdict.rule == "R1"
    assert found.verdict.direction == "too narrow"
    assert "CAL601" in {finding.code for finding in found.findings}
    assert found.headline == cal.scale_factor(SPREAD)
    assert [number.name for number in found.contents.numbers] == [
        "Error-to-spread ratio", "Coverage of 90 % intervals", "ENCE, 10 bins",
    ]  # fmt: skip
    assert found.contents.numbers[0].value.low == cal.interval(cal.scale_factor, SPREAD).interval.low


def test_groups_of_forecasts_are_tested():
    half = np.repeat(["a", "b"], 750)
    found = cal.report(SPREAD, by={"half": half})
    (section,) = found.groups
    assert {row.name: row.n for row in section.rows} == {"a": 750, "b": 750}
    assert all(row.direction == "too narrow" for row in section.rows)


@pytest.mark.parametrize(
    "data",
    [
        cal.Quantiles(SPREAD.y_true, [0.1, 0.5, 0.9], np.outer(SIGMA, [-1.28, 0, 1.28])),
        cal.Samples(SPREAD.y_true[:300], SIGMA[:300, None] * regression_rng.standard_normal((300, 20))),
    ],
    ids=["quantiles", "samples"],
)
def test_other_forecasts_are_judged_by_where_outcomes_fall(data):
    found = cal.report(data)
    assert found.tests[0].method.startswith("ForecastTest")
    assert found.verdict.rule == "R1"
    assert found.verdict.direction == "too narrow"
    assert "Decided by the spread." in found.verdict.how_sure


def test_the_range_of_a_calibrated_forecaster_is_not_called_an_interval():
    text = str(cal.report(SPREAD))
    assert "(range of a calibrated forecaster)" in text


rng = np.random.default_rng(1)
U = rng.beta(1, 4, 6000)
POSITIVE = U[rng.random(6000) < U]


@pytest.mark.no_cover
def test_calibrated_predictions_at_the_right_share():
    data = cal.PositiveUnlabeled(POSITIVE[:800], rng.beta(1, 4, 6000), prior=0.2)
    found = cal.report(data)
    assert found.verdict.rule == "P2"
    assert found.verdict.sentence.startswith("No significant miscalibration detected if 20 % are positive")
    assert found.headline == pytest.approx(cal.ece(data, bins=PaperBins()))
    assert "CAL704" in {finding.code for finding in found.findings}


@pytest.mark.no_cover
def test_predictions_that_are_too_high():
    found = cal.report(cal.PositiveUnlabeled(POSITIVE[:800] ** 0.5, rng.beta(1, 4, 6000) ** 0.5, prior=0.2))
    assert found.verdict.rule == "P1"
    assert found.verdict.direction == "too high"
    assert found.verdict.severity == "problem"


@pytest.mark.no_cover
def test_a_share_that_cannot_be():
    found = cal.report(cal.PositiveUnlabeled(rng.beta(8, 1, 800), rng.random(6000), prior=0.6))
    assert found.verdict.rule == "P3"
    assert "CAL702" in {finding.code for finding in found.findings}
    assert "CAL201" not in {finding.code for finding in found.findings}


def test_groups_are_left_out_with_the_reason():
    data = cal.PositiveUnlabeled(POSITIVE[:100], U[:400], prior=0.2)
    found = cal.report(data, by=np.arange(len(data)) % 2)
    assert "share of positives" in next(left.reason for left in found.contents.omitted if left.section == "Groups")


@pytest.mark.no_cover
@pytest.mark.parametrize("positives", [5, 29])
def test_few_labelled_positives(positives):
    assert cal.report(cal.PositiveUnlabeled(POSITIVE[:positives], U[:400], prior=0.2)).verdict.rule == "P4"


def reversed_scores(rng):
    p = rng.beta(1, 3, 2000)
    return cal.Binary(rng.random(2000) < p, 1 - p)


def reversed_rare(rng):
    p = rng.beta(1, 60, 40_000)
    return cal.Binary(rng.random(40_000) < p, p.max() + p.min() - p)


def reversed_and_separated(rng):
    p = rng.beta(1, 3, 500)
    return cal.Binary(p > 0.3, 1 - p)


@pytest.mark.parametrize("draw", [reversed_scores, reversed_rare, reversed_and_separated])
def test_scores_that_run_backwards_are_the_headline(draw):
    found = cal.report(draw(np.random.default_rng(0)), event="death")
    verdict = found.verdict
    assert (verdict.rule, verdict.severity, verdict.direction) == ("BB", "problem", "backwards")
    assert verdict.sentence.startswith("The scores run backwards: higher scores go with fewer deaths (slope −")
    assert verdict.sentence.endswith("Wrong column, or wrong positive class?")
    assert verdict.what_to_do.startswith("Check which column holds the scores")
    codes = {finding.code for finding in found.findings}
    assert "CAL208" in codes
    assert not {"CAL204", "CAL501"} & codes
    assert found.recalibration is None
    assert "too extreme" not in str(found)
    assert "Platt" not in str(found) + found.to_html()


def without_information(rng):
    return cal.Binary(rng.random(3000) < 0.3, rng.beta(3, 7, 3000))


def rare_and_calibrated(rng):
    p = rng.beta(1, 60, 20_000)
    return cal.Binary(rng.random(20_000) < p, p)


@pytest.mark.parametrize("draw", [without_information, rare_and_calibrated])
def test_scores_that_do_not_run_backwards_are_not_said_to(draw):
    for seed in range(4):
        part = Part(draw(np.random.default_rng(seed)))
        known = collected(part, Assembly(), words=Words())
        assert not known.backwards
        assert "backwards" not in BINARY.verdict(known).sentence


def test_scores_by_chance_just_below_a_slope_of_0_are_not_called_backwards():
    below = 0
    for seed in range(24):
        rng = np.random.default_rng([34, seed])
        known = collected(Part(cal.Binary(rng.random(800) < 0.5, rng.uniform(size=800))), Assembly(), words=Words())
        below += known.slope.high < 0
        assert not known.backwards
        assert known.uninformative == (known.slope.low <= 0)
    assert below


def test_columns_in_another_order_than_the_classes():
    found = cal.report(cal.Multiclass(Y, softmax(1.5 * LOGITS)[:, [1, 2, 3, 0]]))
    assert (found.verdict.rule, found.verdict.direction) == ("MB", "backwards")
    assert "Are the columns in the order of the classes?" in found.verdict.sentence
    assert "order of the classes" in found.verdict.what_to_do
    assert found.recalibration is None
    assert "CAL208" in {finding.code for finding in found.findings}
    assert "backwards" not in str(cal.report(cal.Multiclass(Y, softmax(LOGITS))))


def every_format(found):
    return [str(found), found.to_markdown(), found.to_html(), found._repr_html_(), found.to_json()]


def test_draws_that_are_all_alike_have_a_report():
    found = cal.report(cal.Samples(np.zeros(40), np.zeros((40, 5))))
    assert all(every_format(found))
    assert not any(number.name == "Error-to-spread ratio" for number in found.contents.numbers)


@pytest.mark.no_cover
@pytest.mark.parametrize("prior", [1e-300, 1e-12])
def test_a_tiny_share_of_positives_has_a_report(prior):
    rng = np.random.default_rng(0)
    found = cal.report(cal.PositiveUnlabeled(rng.beta(2, 2, 50), rng.beta(1, 3, 200), prior=prior))
    assert all(every_format(found))
    (shares,) = found.sections_of(Shares)
    assert shares.priors[0] == pytest.approx(0.6 * prior)
    assert shares.priors[-1] == pytest.approx(1.4 * prior)


def test_one_row_of_tiny_spread_prints_no_huge_mean():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(200, 10))
    draws[7] *= 1.5e-30
    found = cal.report(cal.Samples(rng.normal(size=200), draws))
    assert not any(len(word) > 30 for word in str(found).split("Not in this report")[0].split() if word[0].isdigit())


def test_debiased_ence_is_on_the_scale_of_ence():
    shown = str(cal.report(SPREAD))
    assert "Debiased ENCE (L2)" in shown
    assert "not comparable" not in shown


def test_a_share_that_follows_from_the_label_frequency_is_no_input():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 6, 4000)
    labelled = (rng.random(4000) < p) & (rng.random(4000) < 0.3)
    given = {"scenario": "single-sample"}
    found = cal.report(cal.PositiveUnlabeled.from_labels(labelled, p, label_frequency=0.3, **given))
    assert "estimated, from the given label frequency of 30 %" in found.verdict.how_sure
    assert "input" not in found.verdict.how_sure
    share = cal.report(cal.PositiveUnlabeled.from_labels(labelled, p, prior=0.25, **given))
    assert "The share itself is an input" in share.verdict.how_sure


@pytest.mark.no_cover
def test_the_conclusion_for_other_shares_rests_on_labels_at_random():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 6, 6000)
    truth = rng.random(6000) < p**2
    found = cal.report(cal.PositiveUnlabeled(p[truth], p, prior=float(truth.mean())))
    assert "if labelled positives are a random sample of all positives" in found.verdict.second
    assert "the conclusion does not" not in str(found)
    assert "if labels are at random" in found.to_html()


def test_a_report_of_confidence_speaks_of_answers():
    rng = np.random.default_rng(2)
    sure = rng.uniform(0.3, 1.0, 2000)
    found = cal.report(cal.Confidence(rng.random(2000) < sure - 0.15, sure))
    text = str(found)
    assert found.contents.verdict.direction == "over-confident"
    assert "2,000 answers · accuracy" in text
    assert [one.name for one in found.contents.numbers][1] == "Confidence − accuracy"
    assert "had the event" not in text
    page = found.to_html()
    assert "confidence in answers" in page
    assert "predicted class" not in page
    assert cal.report(cal.Confidence([1, 0] * 40, [1.0] * 80)).contents.verdict.state == "cannot be judged"
