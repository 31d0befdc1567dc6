"""O:E ratio, calibration intercept and slope, integrated calibration index."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize, root_scalar

import calibrant as cal
from calibrant.estimators.validation_study import probability_cells, recalibration_line
from calibrant.numerics.logistic.binary import logistic_fit
from calibrant.numerics.smoothers import loess
from tests.reference.r_random import RRandom

RECALIBRATION_FRAMEWORK_RNG = np.random.default_rng(1)
Z = RECALIBRATION_FRAMEWORK_RNG.normal(-0.5, 1.2, 300)
RECALIBRATION_FRAMEWORK_P = 1 / (1 + np.exp(-Z))
RECALIBRATION_FRAMEWORK_Y = (RECALIBRATION_FRAMEWORK_RNG.random(300) < 1 / (1 + np.exp(-0.3 - 0.6 * Z))).astype(int)
W = RECALIBRATION_FRAMEWORK_RNG.gamma(2.0, size=300)


def test_the_ratio_is_that_of_weighted_sums():
    found = cal.observed_expected(cal.Binary(RECALIBRATION_FRAMEWORK_Y, RECALIBRATION_FRAMEWORK_P, weight=W))
    assert found == pytest.approx((W @ RECALIBRATION_FRAMEWORK_Y) / (W @ RECALIBRATION_FRAMEWORK_P))
    assert found.details["observed"] == pytest.approx(300 * (W @ RECALIBRATION_FRAMEWORK_Y) / W.sum())
    assert str(found.target) == "observed to expected ratio"


def test_the_intercept_makes_predictions_right_on_average():
    found = cal.calibration_intercept(RECALIBRATION_FRAMEWORK_Y, RECALIBRATION_FRAMEWORK_P)
    theirs = root_scalar(lambda a: np.sum(RECALIBRATION_FRAMEWORK_Y - 1 / (1 + np.exp(-(a + Z)))), bracket=(-5, 5)).root
    assert found == pytest.approx(theirs)
    weighted = cal.calibration_intercept(cal.Binary(RECALIBRATION_FRAMEWORK_Y, RECALIBRATION_FRAMEWORK_P, weight=W))
    assert W @ (1 / (1 + np.exp(-(weighted + Z)))) == pytest.approx(W @ RECALIBRATION_FRAMEWORK_Y)


@pytest.mark.parametrize("weight", [None, W])
def test_slope_and_intercept_maximise_the_likelihood_together(weight):
    w = np.ones(300) if weight is None else weight

    def loss(ab):
        eta = ab[0] + ab[1] * Z
        return np.sum(w * (np.logaddexp(0, eta) - RECALIBRATION_FRAMEWORK_Y * eta))

    theirs = minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11})
    found = cal.calibration_slope(cal.Binary(RECALIBRATION_FRAMEWORK_Y, RECALIBRATION_FRAMEWORK_P, weight=weight))
    assert (found.details["intercept"], float(found)) == pytest.approx(tuple(theirs.x), abs=1e-5)


@pytest.mark.parametrize("name", ["observed_expected", "calibration_intercept", "calibration_slope"])
def test_rows_and_their_table_give_the_same(name):
    function, data = getattr(cal, name), cal.Binary(RECALIBRATION_FRAMEWORK_Y, RECALIBRATION_FRAMEWORK_P, weight=W)
    assert function(cal.BinTable.of(data, cal.table.Distinct())) == pytest.approx(float(function(data)), rel=1e-9)
    assert function(cal.BinTable.of(data, cal.table.HybridGrid())) == pytest.approx(float(function(data)), rel=1e-3)


def test_one_outcome_only():
    assert cal.observed_expected(np.zeros(5), RECALIBRATION_FRAMEWORK_P[:5]) == 0
    assert cal.calibration_intercept(np.zeros(5), RECALIBRATION_FRAMEWORK_P[:5]) == -np.inf
    assert cal.calibration_intercept(np.ones(5), RECALIBRATION_FRAMEWORK_P[:5]) == np.inf
    none, every = (
        cal.calibration_slope(np.zeros(5), RECALIBRATION_FRAMEWORK_P[:5]),
        cal.calibration_slope(np.ones(5), RECALIBRATION_FRAMEWORK_P[:5]),
    )
    assert np.isnan(none)
    assert "no events" in none.method
    assert np.isnan(every)
    assert "no non-events" in every.method


def test_constant_scores_and_separation():
    flat = cal.calibration_slope([0, 1, 1], [0.3, 0.3, 0.3])
    assert np.isnan(flat)
    assert "all scores the same" in flat.method
    assert cal.calibration_intercept([0, 1, 1], [0.3, 0.3, 0.3]) == pytest.approx(np.log(2) - np.log(3 / 7))
    assert cal.calibration_slope([0, 0, 1], [0.1, 0.2, 0.2]) == np.inf
    assert cal.calibration_slope([1, 1, 0], [0.1, 0.2, 0.4]) == -np.inf


def test_scores_of_0_and_1_are_left_out_of_fits_and_counted():
    y, p = np.append(RECALIBRATION_FRAMEWORK_Y, [0, 1, 1]), np.append(RECALIBRATION_FRAMEWORK_P, [0.0, 1.0, 0.0])
    for name in ("calibration_intercept", "calibration_slope"):
        found = getattr(cal, name)(y, p)
        assert found == pytest.approx(float(getattr(cal, name)(RECALIBRATION_FRAMEWORK_Y, RECALIBRATION_FRAMEWORK_P)))
        assert found.details["left_out"] == 3
        assert "3 rows predicted 0 or 1 left out" in found.method
    with pytest.raises(cal.InvalidPredictions, match="all 2 rows are exactly 0 or 1"):
        cal.calibration_slope([0, 1], [0.0, 1.0])
    with pytest.raises(cal.InvalidPredictions, match="no events are expected"):
        cal.observed_expected([0, 1], [0.0, 0.0])


def test_positive_unlabeled_data_are_refused():
    data = cal.PositiveUnlabeled([0.4, 0.8], [0.1, 0.4, 0.4, 0.8], prior=0.5)
    with pytest.raises(cal.InvalidPredictions, match="outcome of every row"):
        cal.calibration_slope(data)


def test_numbers_without_a_value_are_strict_json_with_a_note():
    for estimate in (
        cal.calibration_slope([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8]),
        cal.calibration_slope([0, 1, 1, 1], [0.5] * 4),
        cal.calibration_intercept([0, 0], [0.1, 0.2]),
    ):
        plain = json.loads(json.dumps(estimate.to_dict(), allow_nan=False))
        assert plain["value"] is None
        assert estimate.method in plain["note"]
    whole = cal.interval(cal.calibration_slope, [0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8])
    assert json.dumps(whole.to_dict(), allow_nan=False)


def test_printed_numbers_of_pmcalibration():
    """R's pmcalibration, vignette on external validation, set.seed(2345) and sim_dat(1000, a1 = -3, a3 = 0.3).

    It prints an intercept of -0.044 and a slope of 1.336 with a profile interval of 1.10 to 1.60.
    """
    random = RRandom(2345)
    x1, x2 = random.rnorm(1000), random.rnorm(1000)
    assert x1[:3] == pytest.approx([-1.19142464, 0.54930055, -0.06240514], abs=5e-9)  # as printed
    y = random.rbinom(1 / (1 + np.exp(-(-3 + x1 + x2 + 0.3 * x1 * x2))))
    data = cal.Binary(y, 1 / (1 + np.exp(-(-3 + x1 + x2))))
    assert round(cal.calibration_intercept(data).value, 3) == -0.044
    assert round(cal.calibration_slope(data).value, 3) == 1.336
    line, _ = recalibration_line(probability_cells(data, None, needed_by="this test"))
    low, high = line.slope_limits(1.959964**2 / 2)
    assert (round(low, 1), round(high, 1)) == (1.1, 1.6)
    whole = cal.interval(cal.calibration_slope, data).interval
    assert whole.low < low < high < whole.high  # the default allows for a curve that is no logistic line


def test_printed_numbers_of_calibration_curves():
    """R's CalibrationCurves: the example of its vignette, with data drawn as its help page of `traindata` says.

    The vignette (val.prob.ci.2, which has the definitions of rms::val.prob) prints C 0.81426731, Dxy 0.62853462, Brier
    0.17703339, intercept 0.22404680 (0.00339 to 0.4447) and slope 0.82278297 (0.666 to 0.980), and Eavg 0.04747448.
    Its intercept is the one with a slope of 1. Its interval takes that slope as true, where ours allows for another,
    and is wider; and its loess interpolates, where ours is fitted at every score.
    """
    random = RRandom(1782)
    train, test = (_linear_predictor_and_outcome(random, n) for n in (1000, 500))
    fit = logistic_fit(train[0], weight=np.ones(1000), positive=train[1].astype(float), start=np.zeros(5), ridge=0.0)
    data = cal.Binary(test[1], 1 / (1 + np.exp(-test[0] @ fit.coefficients)))
    intercept, slope = (cal.interval(number, data) for number in (cal.calibration_intercept, cal.calibration_slope))
    found = [cal.auc(data).value, 2 * cal.auc(data).value - 1, cal.brier(data).value, intercept.value, slope.value]
    assert found == pytest.approx([0.81426731, 0.62853462, 0.17703339, 0.22404680, 0.82278297], abs=5.1e-9)
    assert [slope.interval.low, slope.interval.high] == pytest.approx([0.666, 0.980], abs=0.01)
    assert intercept.interval.low < 0.00339 < 0.4447 < intercept.interval.high
    assert intercept.interval.high - intercept.interval.low < 1.1 * (0.4447 - 0.00339)
    assert cal.ici(data, curve="loess").value == pytest.approx(0.04747448, rel=0.01)


def _linear_predictor_and_outcome(random, n):
    x = np.column_stack([np.ones(n), *(random.rnorm(n) for _ in range(4))])
    return x, random.rbinom(1 / (1 + np.exp(-x @ [0.1, 0.5, 1.2, -0.75, 0.8])))


def test_the_example_of_val_prob_has_its_definitions_written_out():
    """The example of the help page of R's rms::val.prob: a model of 100 rows with set.seed(1), tried on 100 others."""
    random = RRandom(1)
    x = np.column_stack([np.ones(200), *(random.runif(200) for _ in range(3))])
    y = (random.runif(200) <= 1 / (1 + np.exp(-2 * (x[:, 1] - 0.5)))).astype(int)
    fit = logistic_fit(x[:100], weight=np.ones(100), positive=y[:100].astype(float), start=np.zeros(4), ridge=0.0)
    z, y = x[100:] @ fit.coefficients, y[100:]
    data = cal.Binary(y, 1 / (1 + np.exp(-z)))
    slope = cal.calibration_slope(data)
    eta = slope.details["intercept"] + slope.value * z
    residual = y - 1 / (1 + np.exp(-eta))  # the scores of maximum likelihood are 0
    assert [residual.sum(), residual @ z] == pytest.approx([0, 0], abs=1e-6)
    pairs = np.sign(z[y == 1][:, None] - z[y == 0])  # Somers' Dxy and the area C
    assert [2 * cal.auc(data) - 1, cal.auc(data)] == pytest.approx([pairs.mean(), (1 + pairs.mean()) / 2])
    assert cal.brier(data) == pytest.approx(np.mean((y - 1 / (1 + np.exp(-z))) ** 2))


def test_many_rows_are_counted_on_a_grid_that_changes_less_than_a_thousandth_of_the_standard_error():
    rng = np.random.default_rng(5)
    z = rng.normal(-1, 1.3, 70_000)
    data = cal.Binary(rng.random(70_000) < 1 / (1 + np.exp(-0.8 * z)), 1 / (1 + np.exp(-z)))
    exact = cal.BinTable.of(data, cal.table.Distinct())
    for number in (cal.observed_expected, cal.calibration_intercept, cal.calibration_slope):
        found = cal.interval(number, exact)
        standard_error = (found.interval.high - found.interval.low) / (2 * 1.96)
        assert number(data).value == pytest.approx(found.value, abs=standard_error / 1000)
    assert cal.ici(data).value == pytest.approx(cal.ici(exact).value, abs=1e-4)
    rows, cells = cal.net_benefit(data), cal.net_benefit(exact)
    assert rows.value == pytest.approx(cells.value, abs=1e-12)
    assert rows.high == pytest.approx(cells.high, abs=1e-12)
    curve, whole = cal.risk_coverage(data), cal.risk_coverage(exact)
    assert curve.aurc.value == pytest.approx(whole.aurc.value, abs=1e-4)
    assert curve.excess.interval.high == pytest.approx(whole.excess.interval.high, abs=1e-4)


RNG = np.random.default_rng(5)
P = RNG.random(400)
Y = (RNG.random(400) < P**2).astype(int)


def test_with_loess_it_is_the_mean_distance_to_that_curve():
    distance = np.abs(P - loess(P, Y.astype(float), np.ones(400)))
    found = cal.ici(Y, P, curve="loess")
    assert found == pytest.approx(distance.mean())
    quantiles = np.quantile(distance, [0.5, 0.9], method="inverted_cdf")
    assert [found.details["E50"], found.details["E90"]] == pytest.approx(quantiles)
    assert found.details["Emax"] == pytest.approx(distance.max())


def test_both_curves_find_a_known_gap():
    p = np.random.default_rng(1).random(20_000)
    y = np.random.default_rng(2).random(20_000) < p**2
    for curve in ("smooth", "loess"):
        found = cal.ici(y, p, curve=curve)
        assert found == pytest.approx(1 / 6, abs=0.01)
        assert found.details["Emax"] == pytest.approx(0.25, abs=0.02)
        assert found.details["E50"] < found.details["E90"] < found.details["Emax"]


def test_the_smooth_curve_shrinks_what_is_noise():
    y = RNG.random(400) < P
    assert cal.ici(y, P) < cal.ici(y, P, curve="loess") < 0.1


def test_its_interval_is_that_of_the_true_error():
    data = cal.Binary(Y, P)
    assert cal.interval(cal.ici, data).interval == cal.interval(cal.ece, data).interval
    assert str(cal.ici(data).target) == "true error (L1)"


@pytest.mark.parametrize("curve", ["smooth", "loess"])
def test_one_outcome_one_score_and_certain_scores(curve):
    assert cal.ici(np.zeros(50), np.full(50, 0.3), curve=curve) == pytest.approx(0.3, abs=0.03)
    assert 0 <= cal.ici([0, 1], [0.0, 1.0], curve=curve) < 0.5
    assert cal.ici(np.ones(50), P[:50], curve=curve) > 0.3


def test_unknown_curves_are_refused():
    with pytest.raises(ValueError, match="curve must be"):
        cal.ici(Y, P, curve="spline")
