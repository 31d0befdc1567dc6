"""Classical tests are their formulas, and agree with foreign references."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from tests.inference.worlds import BENT


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


def test_the_kernel_statistic_is_the_biased_kernel_error():
    data = cal.Binary([0, 1, 0, 1, 1], [0.2, 0.4, 0.6, 0.8, 0.9])
    expected = cal.kernel_error(data, kernel=cal.estimators.LaplaceKernel(0.5), unbiased=False)
    found = cal.calibration_test(data, method=cal.inference.KernelTest(bandwidth=0.5, draws=19))
    assert found.statistic == pytest.approx(float(expected))


def test_the_running_gap_is_the_ks_error():
    data = BENT.sample(100)
    found = cal.calibration_test(data, method=cal.inference.KolmogorovSmirnov(draws=19))
    assert found.statistic == pytest.approx(float(cal.ks_error(data)), rel=0.02)
