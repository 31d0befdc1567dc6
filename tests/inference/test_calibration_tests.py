"""Tests of calibration: level, power, tables, and what is refused.

Classical tests are their formulas, and agree with foreign references.
"""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference import PitUniformity
from calibrant.pu import PUScore
from calibrant.simulate import PAPER_WORLDS, PowerCurve, UniformScores, World
from tests.inference.worlds import BENT

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


@pytest.mark.no_cover
@pytest.mark.parametrize("method", ALL, ids=lambda m: type(m).__name__)
def test_a_calibrated_model_is_rejected_at_the_level(method):
    assert rejections(BENT.calibrated(), method, 300, 80) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 80)


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


def test_what_is_impossible_has_a_small_p_value():
    data = cal.Binary([1] * 99 + [0], [1.0] * 100)
    assert cal.calibration_test(data).p_value == 0
    assert cal.calibration_test(data, method=cal.inference.Cox()).p_value == 0
    none = cal.Binary([0] * 99 + [1], [0.0] * 100)
    assert cal.calibration_test(none).p_value == 0


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
    clustered = cal.Binary(data.y_true, data.y_prob, group=np.arange(50))
    with pytest.raises(cal.InvalidPredictions, match=r"Cox needs independent rows.*use MultiScale\(\)"):
        cal.calibration_test(clustered, method="cox")
    with pytest.raises(cal.InvalidPredictions, match="MultiScale needs at least 8 groups"):
        cal.calibration_test(cal.Binary(data.y_true, data.y_prob, group=np.arange(50) // 10))
    assert cal.calibration_test(clustered) == cal.calibration_test(data)  # clusters of one row


def multiscale_rejections(world, method, n, repeats):
    return np.mean([cal.calibration_test(world.sample(n, k), method=method).p_value <= 0.05 for k in range(repeats)])


def test_the_default_holds_its_level_where_scores_crowd_next_to_one():
    world = PAPER_WORLDS["resnet110_c10"].calibrated()
    assert multiscale_rejections(world, cal.inference.MultiScale(199), 200, 80) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 80)


def test_the_default_sees_what_the_sweep_sees():
    world = World(UniformScores(), PowerCurve(1.2022))  # an L2 error of 5 %: the sweep misses it in 0.160 of samples
    assert 1 - multiscale_rejections(world, cal.inference.MultiScale(199), 1000, 60) <= 0.16


def test_the_default_sees_waves_that_the_mean_does_not():
    world = World(UniformScores(), lambda p: np.clip(p + 0.3 * np.sin(4 * np.pi * p) * 4 * p * (1 - p), 0, 1))
    assert multiscale_rejections(world, cal.inference.MultiScale(199), 400, 30) > 0.9


def test_dependent_forecasts_have_the_default_test():
    rng = np.random.default_rng(0)
    data = cal.Gaussian(rng.normal(size=(50, 3)), np.zeros((50, 3)), np.ones((50, 3)))
    for method in (cal.inference.MeanSquaredZ(), cal.inference.SpreadChiSquare()):
        with pytest.raises(cal.InvalidPredictions, match=r"each row has 3 outputs, .* use ForecastTest\(\)"):
            cal.calibration_test(data, method=method)
    grouped = cal.Gaussian(data.y_true[:, 0], np.zeros(50), np.ones(50), group=np.arange(50) // 2)
    with pytest.raises(cal.InvalidPredictions, match=r"have a group; use ForecastTest\(\)"):
        cal.calibration_test(grouped, method=PitUniformity())
    assert all(0 < cal.calibration_test(one).p_value <= 1 for one in (data, grouped, *data.outputs))


def test_tests_have_names_and_take_columns():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p**1.5
    assert cal.calibration_test(y, p, method="cox") == cal.calibration_test(
        cal.Binary(y, p), method=cal.inference.Cox()
    )
    assert cal.calibration_test(y_true=y, y_prob=p) == cal.calibration_test(y, p)
    clustered = cal.calibration_test(y, p, group=np.arange(200) // 4)
    assert [part.share for part in clustered.components] == [0.5, 0.1, 0.5]
    with pytest.raises(TypeError, match="'multiscale', 'kolmogorov-smirnov'"):
        cal.calibration_test(y, p, method="wald")


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
    found = cal.calibration_test(data, method=cal.inference.Cox())
    assert found.statistic == pytest.approx(2 * (loss([0.0, 1.0]) - theirs.fun), rel=1e-6)
    assert found.p_value == pytest.approx(stats.chi2.sf(found.statistic, 2))
    assert (found.details["intercept"], found.details["slope"]) == pytest.approx(tuple(theirs.x), abs=1e-5)


def test_cox_of_separated_outcomes_and_of_certain_scores():
    found = cal.inference.Cox().test(cal.Binary([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8]))
    assert found.statistic == pytest.approx(-2 * np.log([0.9, 0.7, 0.6, 0.8]).sum())
    assert found.details["slope"] == np.inf
    assert cal.inference.Cox().test(cal.Binary([0, 1], [0.0, 1.0])).p_value == 1


def test_the_kernel_of_one_score_is_one():
    data = cal.Binary(np.arange(100) % 2, np.full(100, 0.3))
    found = cal.calibration_test(data, method=cal.inference.KernelTest(draws=99))
    assert found.statistic == pytest.approx(0.2**2)
    assert found.p_value == 0.01


def test_the_kernel_statistic_is_the_biased_kernel_error():
    data = cal.Binary([0, 1, 0, 1, 1], [0.2, 0.4, 0.6, 0.8, 0.9])
    expected = cal.kernel_error(data, kernel=cal.estimators.LaplaceKernel(0.5), unbiased=False)
    found = cal.calibration_test(data, method=cal.inference.KernelTest(bandwidth=0.5, draws=19))
    assert found.statistic == pytest.approx(float(expected))


def test_the_running_gap_is_the_ks_error():
    data = BENT.sample(100)
    found = cal.calibration_test(data, method=cal.inference.KolmogorovSmirnov(draws=19))
    assert found.statistic == pytest.approx(float(cal.ks_error(data)), rel=0.02)
