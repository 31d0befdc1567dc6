"""Tests of calibration: level, power, definitions written out, and foreign references."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference import MeanSquaredZ, PitUniformity, SpreadChiSquare
from calibrant.pu import PUScore
from calibrant.simulate import PAPER_WORLDS, PowerCurve, UniformScores, World

BENT = World(UniformScores(), PowerCurve(1.5))
ALL = [
    cal.inference.MultiScale(199),
    cal.inference.KolmogorovSmirnov(199),
    cal.inference.Spiegelhalter(),
    cal.inference.HosmerLemeshow(),
    cal.inference.KernelTest(draws=199),
    cal.inference.Cox(),
]


def rejections(world, method, n, repeats):
    return np.mean([cal.calibration_test(world.sample(n, k), method=method).p_value <= 0.05 for k in range(repeats)])


@pytest.mark.parametrize("method", ALL, ids=lambda m: type(m).__name__)
def test_a_calibrated_model_is_rejected_at_the_level(method):
    assert rejections(BENT.calibrated(), method, 300, 80) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 80)


def test_the_default_holds_its_level_where_scores_crowd_next_to_one():
    world = PAPER_WORLDS["resnet110_c10"].calibrated()
    assert rejections(world, cal.inference.MultiScale(199), 200, 80) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 80)


def test_the_default_sees_what_the_sweep_sees():
    world = World(UniformScores(), PowerCurve(1.2022))  # an L2 error of 5 %: the sweep misses it in 0.160 of samples
    assert 1 - rejections(world, cal.inference.MultiScale(199), 1000, 60) <= 0.16


def test_the_default_sees_waves_that_the_mean_does_not():
    world = World(UniformScores(), lambda p: np.clip(p + 0.3 * np.sin(4 * np.pi * p) * 4 * p * (1 - p), 0, 1))
    assert rejections(world, cal.inference.MultiScale(199), 400, 30) > 0.9


def test_p_values_are_exact_by_seed_and_do_not_depend_on_row_order():
    data = BENT.calibrated().sample(500)
    again = cal.Binary(data.y_true[::-1], data.y_prob[::-1])
    for method in ALL:
        one, other = cal.calibration_test(data, method=method), cal.calibration_test(again, method=method)
        assert other.p_value == pytest.approx(one.p_value)
    assert cal.calibration_test(data) == cal.calibration_test(data)


def test_a_table_gives_the_p_value_of_its_rows():
    data = BENT.calibrated().sample(500)
    table = cal.BinTable.of(data, cal.table.Distinct())
    for method in ALL:
        one, other = (cal.calibration_test(d, method=method) for d in (data, table))
        assert other.p_value == pytest.approx(one.p_value)
        assert other.n == 500


def test_spiegelhalter_is_its_formula():
    data = BENT.sample(200)
    y, p = data.y_true, data.y_prob
    z = np.sum((y - p) * (1 - 2 * p)) / np.sqrt(np.sum((1 - 2 * p) ** 2 * p * (1 - p)))
    found = cal.calibration_test(data, method=cal.inference.Spiegelhalter())
    assert found.statistic == pytest.approx(z)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(z)))


def test_hosmer_lemeshow_is_pearsons_chi_square():
    data = BENT.sample(500)
    order = np.argsort(data.y_prob)
    y, p = (np.array_split(column[order], 10) for column in (data.y_true, data.y_prob))
    terms = [(a.sum() - b.sum()) ** 2 / (len(a) * b.mean() * (1 - b.mean())) for a, b in zip(y, p, strict=True)]
    found = cal.calibration_test(data, method=cal.inference.HosmerLemeshow())
    assert found.statistic == pytest.approx(sum(terms))
    assert found.p_value == pytest.approx(stats.chi2.sf(sum(terms), 10))


def test_cox_is_the_maximum_of_the_likelihood():
    from scipy.optimize import minimize

    data = BENT.sample(800)
    odds = np.log(data.y_prob / (1 - data.y_prob))

    def loss(ab):
        eta = ab[0] + ab[1] * odds
        return np.sum(np.logaddexp(0, eta) - data.y_true * eta)

    theirs = minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    assert cal.inference.Cox().fit(data) == pytest.approx(tuple(theirs.x), abs=1e-5)
    found = cal.calibration_test(data, method=cal.inference.Cox())
    assert found.statistic == pytest.approx(2 * (loss([0.0, 1.0]) - theirs.fun), rel=1e-6)
    assert found.p_value == pytest.approx(stats.chi2.sf(found.statistic, 2))


def test_the_kernel_statistic_is_the_biased_kernel_error():
    data = cal.Binary([0, 1, 0, 1, 1], [0.2, 0.4, 0.6, 0.8, 0.9])
    expected = cal.kernel_error(data, kernel=cal.estimators.LaplaceKernel(0.5), unbiased=False)
    found = cal.calibration_test(data, method=cal.inference.KernelTest(bandwidth=0.5, draws=19))
    assert found.statistic == pytest.approx(float(expected))


def test_the_running_gap_is_the_ks_error():
    data = BENT.sample(100)
    found = cal.calibration_test(data, method=cal.inference.KolmogorovSmirnov(draws=19))
    assert found.statistic == pytest.approx(float(cal.ks_error(data)), rel=0.02)


def test_what_is_impossible_has_a_small_p_value():
    data = cal.Binary([1] * 99 + [0], [1.0] * 100)
    assert cal.calibration_test(data).p_value == 0.001
    assert cal.calibration_test(data, method=cal.inference.Cox()).p_value == 0


@pytest.mark.parametrize("method", [MeanSquaredZ(), PitUniformity(), SpreadChiSquare()], ids=lambda m: type(m).__name__)
def test_forecasts_are_judged_at_the_level_and_found_out(method):
    rng = np.random.default_rng(0)
    level, power = [], []
    for _ in range(120):
        mean, std = rng.normal(size=300), rng.uniform(0.5, 2, 300)
        noise = rng.normal(size=300) * std
        level.append(cal.calibration_test(cal.Gaussian(mean + noise, mean, std), method=method).p_value <= 0.05)
        power.append(cal.calibration_test(cal.Gaussian(mean + 1.5 * noise, mean, std), method=method).p_value <= 0.05)
    assert np.mean(level) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)
    assert np.mean(power) > 0.8


def test_pit_uniformity_is_the_kolmogorov_smirnov_test():
    y = np.random.default_rng(1).normal(size=1000)
    found = cal.calibration_test(cal.Gaussian(y, np.zeros(1000), np.full(1000, 1.1)))
    theirs = stats.kstest(stats.norm.cdf(y / 1.1), "uniform")
    assert found.statistic == pytest.approx(theirs.statistic)
    assert found.p_value == pytest.approx(theirs.pvalue, rel=0.05)


def test_positive_unlabeled_data_have_their_score_test():
    rng = np.random.default_rng(0)
    data = cal.PositiveUnlabeled(rng.beta(2, 1, 500), rng.random(5000), prior=0.5)
    assert cal.calibration_test(data) == cal.calibration_test(data, method=PUScore())
    assert cal.calibration_test(data).p_value > 0.01


def test_bad_tests_are_refused():
    data = BENT.sample(50)
    with pytest.raises(TypeError, match="MultiScale"):
        cal.calibration_test(data, method="hl")
    with pytest.raises(TypeError, match="distributions"):
        cal.calibration_test(data, method=PitUniformity())
    with pytest.raises(cal.InvalidPredictions, match="group"):
        cal.calibration_test(cal.Binary(data.y_true, data.y_prob, group=np.arange(50)))
    with pytest.raises(cal.InvalidPredictions, match="top_label"):
        cal.calibration_test(cal.Multiclass([0, 1], [[0.6, 0.4], [0.3, 0.7]]))
