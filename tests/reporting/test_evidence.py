"""Evidence collected from data: every number is the library's."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.estimators.variational_engine import Variational
from calibrant.inference import Inversion, MultiScale
from calibrant.pu import PUInversion
from calibrant.recalibrate.base import BinaryRecalibrator
from calibrant.reporting.contents import Assembly
from calibrant.reporting.evidence import (
    DETECTED,
    ForecastPart,
    Part,
    collected,
    forecast_evidence,
    of_error,
    of_estimate,
    of_test,
    rate_interval,
    with_diagram,
)
from calibrant.reporting.sections.reliability import reliability_section
from calibrant.reporting.verdicts.evidence import Words
from calibrant.results import Estimate, Interval
from calibrant.results.estimate import Value
from tests.reporting.samples import OVER, SPREAD, P


def evidence(data, **options):
    return collected(Part(data), Assembly(), words=Words(), **options)


def test_numbers_are_those_of_the_library():
    found = evidence(OVER)
    assert found.n == 3000
    assert found.events == pytest.approx(OVER.y_true.sum())
    assert found.predicted == pytest.approx(OVER.y_prob.mean())
    assert found.slope.value == cal.calibration_slope(OVER)
    assert found.levels == (0.9875, 0.95)  # the share of the level that the test leaves it
    assert found.ratio.low == cal.interval(cal.observed_expected, OVER, level=0.9875).interval.low
    assert found.test.p_value == cal.calibration_test(OVER).p_value
    assert (found.test.name, found.test.draws) == ("multiscale test", 999)
    assert found.observed.value == pytest.approx(OVER.y_true.mean())
    assert found.cells is found.clusters is found.effective_n is found.only_score is found.decisions is None


def test_scores_of_0_and_1_are_recognised():
    y, p = np.array([0, 1, 1, 0, 1, 0]), np.array([0, 0, 1, 1, 1, 0.0])
    found = evidence(cal.Binary(y, p))
    assert (found.decisions.ones, found.decisions.zeros) == (3, 3)
    assert found.decisions.rate_of_ones.value == pytest.approx(2 / 3)
    assert (found.certain, found.impossible_events, found.impossible_others) == (1.0, 1, 1)
    mixed = evidence(cal.Binary([0, 1, 1], [0.0, 0.5, 1.0]))
    assert mixed.decisions is None
    assert mixed.certain == pytest.approx(2 / 3)
    assert evidence(cal.Binary([0, 1], [0.3, 0.3])).only_score == 0.3


def test_weights_and_clusters_are_told():
    rng = np.random.default_rng(0)
    p, weight = rng.random(400), rng.random(400)
    found = evidence(cal.Binary(rng.random(400) < p, p, weight=weight, group=np.arange(400) % 40))
    assert found.clusters == 40
    assert found.effective_n == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert evidence(cal.Binary(rng.random(400) < p, p, weight=np.full(400, 3.0))).effective_n is None


def test_why_there_is_no_test_is_told():
    rng = np.random.default_rng(0)
    p = rng.random(90)
    found = evidence(cal.Binary(rng.random(90) < p, p, group=np.arange(90) % 3))
    assert found.test is None
    assert found.untested.startswith("it needs at least 8 groups")


def test_estimates_move_into_their_interval_and_unknown_ones_vanish():
    inside = Estimate(0.1, name="e", method="", n=3, interval=Interval(-0.1, 0.05, 0.95, ""))
    assert of_error(inside) == Value(0.05, 0.0, 0.05)
    assert of_error(Estimate(-0.1, name="e", method="", n=3)) == Value(0.0)
    assert of_error(None) is of_estimate(None) is of_estimate(Estimate(float("nan"), name="e", method="", n=3)) is None


def test_a_frequency_has_its_mid_p_interval():
    found = rate_interval(0, 1200)
    assert found.high == pytest.approx(1 - 0.05 ** (1 / 1200), rel=2e-3)


def test_names_of_tests_fit_into_a_sentence():
    assert of_test(cal.calibration_test(OVER)).name == "multiscale test"
    assert of_test(cal.calibration_test(OVER, method=MultiScale(draws=199))).draws == 199


def test_four_of_five_samples_show_the_error_that_is_named():
    """Shifts of all log odds, at the size that is named as usually detected: power of about 80 %."""
    found = 0
    rng = np.random.default_rng(5)
    for _ in range(60):
        z = rng.normal(-1, 1, 500)
        p = 1 / (1 + np.exp(-z))
        gap = DETECTED * np.sqrt((p * (1 - p)).sum()) / 500
        shift = gap / (p * (1 - p)).mean()
        y = rng.random(500) < 1 / (1 + np.exp(-z - shift))
        found += cal.calibration_test(cal.Binary(y, p), method=MultiScale(draws=199)).p_value < 0.05
    assert 0.65 <= found / 60 <= 0.95


rng = np.random.default_rng(3)


def forecast_evidence_evidence(data):
    return forecast_evidence(ForecastPart(data), Assembly(), words=Words("forecast"), tolerance=None)


def test_the_bias_is_students_t():
    found = ForecastPart(SPREAD).bias
    z = SPREAD.error() / SPREAD.std
    assert float(found) == pytest.approx(z.mean())
    assert tuple(found.interval) == pytest.approx(tuple(stats.ttest_1samp(z, 0).confidence_interval(0.95)))


def test_the_bias_of_draws_takes_the_outcome_as_one_of_them():
    draws = rng.exponential(size=(4000, 10))
    found = ForecastPart(cal.Samples(rng.exponential(size=4000), draws)).bias
    assert 0 in found.interval  # (y - mean) / std of the draws alone has a mean of 0.14


def test_the_bias_allows_for_clusters():
    z = np.repeat(rng.normal(size=50), 20)
    data = cal.Gaussian(z, np.zeros(1000), np.ones(1000), group=np.repeat(np.arange(50), 20))
    low, high = ForecastPart(data).bias.interval
    assert high - low == pytest.approx(2 * stats.t.ppf(0.975, 49) * z[::20].std(ddof=1) / np.sqrt(50), rel=0.01)


def autoregression(rng, n, by=0.9):
    z = rng.normal(size=n)
    for i in range(1, n):
        z[i] = by * z[i - 1] + np.sqrt(1 - by**2) * z[i]
    return z


@pytest.mark.no_cover
def test_dependent_neighbours_are_judged_by_blocks():
    """Calibrated: rows as if independent reject 2 in 3 samples. Too narrow: blocks find it too."""
    rng = np.random.default_rng(6)
    found = {
        factor: [
            forecast_evidence_evidence(cal.Gaussian(factor * autoregression(rng, 600, by), np.zeros(600), np.ones(600)))
            for _ in range(20)
        ]
        for factor, by in ((1.0, 0.9), (1.5, 0.5))
    }
    assert all(one.warning for some in found.values() for one in some)
    assert sum(one.rejects for one in found[1.0]) > 10
    assert sum(one.rejects and one.of_blocks < 0.05 for one in found[1.0]) <= 3
    assert sum(one.rejects and one.of_blocks < 0.05 for one in found[1.5]) > 17
    short = [autoregression(rng, 110) + 0.7 for _ in range(5)]  # fewer than twelve blocks
    assert all(np.isnan(ForecastPart(cal.Gaussian(z, np.zeros(110), np.ones(110))).of_blocks or np.nan) for z in short)
    right = forecast_evidence_evidence(cal.Gaussian(rng.normal(size=600) * 1.5, np.zeros(600), np.ones(600)))
    assert (right.of_blocks, right.rejects) == (None, True)


def test_the_coverage_of_quantiles_that_outcomes_equal_is_known_only_where_it_is_off():
    values = np.tile([0.0, 2.0, 4.0], (100, 1))
    for y, known in ((np.arange(100) % 6, False), (np.arange(100) % 6 + 0.5, True), (np.arange(100) % 9, True)):
        found = forecast_evidence_evidence(cal.Quantiles(y.astype(float), [0.1, 0.5, 0.9], values))
        assert (found.coverage is not None) == known
        assert bool(found.ties) == (y.dtype.kind == "i")


def test_the_row_that_dominates_is_named():
    y = np.concatenate([rng.normal(size=300), [50.0]])
    found = forecast_evidence_evidence(cal.Gaussian(y, np.zeros(301), np.ones(301)))
    assert found.largest_row == 300
    assert found.largest_share > 0.8
    assert (found.largest_error, found.largest_spread) == (50.0, 1.0)


def test_coverage_is_of_the_widest_interval_up_to_90_percent():
    y = rng.normal(size=300)
    levels = [0.025, 0.1, 0.5, 0.9, 0.975]
    found = forecast_evidence_evidence(cal.Quantiles(y, levels, np.tile(stats.norm.ppf(levels), (300, 1))))
    assert found.level == pytest.approx(0.8)
    assert found.ratio is found.bias is None


def test_draws_that_are_all_alike_are_counted_and_left_out():
    draws = rng.normal(size=(200, 10))
    draws[:4] = 0.5
    found = forecast_evidence_evidence(cal.Samples(rng.normal(size=200), draws))
    assert found.zero_spread == 4
    assert found.ratio is not None


@pytest.fixture
def calls(monkeypatch):
    """How often each expensive step was taken."""
    counted = Counter()

    def count(owner, name, label):
        found = vars(owner)[name]
        bare = found.__func__ if isinstance(found, classmethod) else found

        def counting(*arguments, **options):
            counted[label] += 1
            return bare(*arguments, **options)

        monkeypatch.setattr(owner, name, classmethod(counting) if isinstance(found, classmethod) else counting)

    count(cal.BinTable, "of", "tables of rows")
    count(Inversion, "interval", "intervals")
    count(PUInversion, "interval", "positive-unlabeled intervals")
    count(MultiScale, "test", "tests")
    count(Variational, "of", "sets of cross-fitted maps")
    count(BinaryRecalibrator, "fit_table", "recalibrations")
    return counted


def test_a_report_builds_one_table_and_one_of_each_result(calls):
    cal.report(OVER)
    assert calls["tables of rows"] == calls["tests"] == 1
    assert calls["intervals"] == 2  # of the error, and of the error after recalibration
    assert calls["sets of cross-fitted maps"] == 1
    assert calls["recalibrations"] <= 6 * 5  # six maps, five folds


def test_a_given_table_is_taken_as_it_is(calls):
    table = cal.BinTable.of(OVER, cal.table.HybridGrid())
    calls.clear()
    cal.report(table)
    assert calls["tables of rows"] == 0
    assert calls["tests"] == calls["sets of cross-fitted maps"] == 1


def test_every_estimate_of_the_true_error_has_the_same_interval():
    found = cal.report(OVER)
    of_errors = [m.estimate for m in found.measures if m.estimate.target and m.estimate.target.quantity == "true error"]
    assert {estimate.interval for estimate in of_errors if estimate.interval} == {cal.interval(cal.ece, OVER).interval}


def test_results_are_those_of_the_library():
    part = Part(OVER, seed=3)
    assert part.variational.error(1) == cal.variational_error(part.cells, norm=1, seed=3)
    assert part.variational.part(1, "over") == cal.overconfidence(part.cells, seed=3)
    assert part.test == cal.calibration_test(OVER)
    assert part.headline == pytest.approx(cal.averaged_error(OVER), abs=1e-12)
    assert part.slope.interval == cal.interval(cal.calibration_slope, OVER).interval
    assert part.observed_expected.interval == cal.interval(cal.observed_expected, OVER, level=0.9875).interval
    assert part.intercept == cal.calibration_intercept(OVER)


def test_clusters_are_tested_as_such():
    group = np.repeat(np.arange(300), 10)
    part = Part(cal.Binary(OVER.y_true, P, group=group))
    assert part.clustered
    assert part.test.method.startswith("MultiScale")
    assert part.test.p_value < 0.001


def test_weighted_rows_are_reported_and_a_common_factor_changes_nothing():
    weight = np.random.default_rng(4).random(3000)
    one, ten = (cal.report(cal.Binary(OVER.y_true, P, weight=factor * weight)) for factor in (1.0, 10.0))
    assert one.headline == pytest.approx(ten.headline, abs=1e-9)
    assert [row.name for row in one.recalibration.maps] == [row.name for row in ten.recalibration.maps]
    assert str(one.verdict) == str(ten.verdict)
    assert one.contents.facts.effective_rows == pytest.approx(weight.sum() ** 2 / (weight**2).sum())


@pytest.mark.parametrize(("scores", "few"), [(20, True), (21, False)])
def test_up_to_twenty_scores_are_few(scores, few):
    p = np.tile(np.linspace(0.05, 0.95, scores), 50)
    data = cal.Binary(p < 0.5, p)
    diagram = reliability_section(Part(data))
    assert (with_diagram(evidence(data), diagram).largest_gap is not None) is few
    assert (len(diagram.bins["linear"]) == scores) is few
