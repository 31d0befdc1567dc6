"""Tests of predicted distributions."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference import MeanSquaredZ, Moments, PitUniformity, SpreadChiSquare
from tests.inference.spreads import forecasts


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
    found = cal.calibration_test(cal.Gaussian(y, np.zeros(1000), np.full(1000, 1.1)), method=PitUniformity())
    theirs = stats.kstest(stats.norm.cdf(y / 1.1), "uniform")
    assert found.statistic == pytest.approx(theirs.statistic)
    assert found.p_value == pytest.approx(theirs.pvalue, rel=0.05)


@pytest.mark.no_cover
@pytest.mark.parametrize("noise", ["normal", "t5", "skewed"])
def test_moments_hold_their_level_for_errors_of_any_law(noise):
    rng = np.random.default_rng(5)
    p = [cal.calibration_test(forecasts(rng, 300, noise=noise), method=Moments()).p_value for _ in range(120)]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)


@pytest.mark.parametrize(
    ("fault", "name", "direction"),
    [
        (lambda s, z: 1.5 * z, "spread", -1),
        (lambda s, z: z - 0.4, "bias", 1),
        (lambda s, z: z * s / s.mean(), "spread by width", -1),
    ],
)
def test_moments_name_the_fault(fault, name, direction):
    rng = np.random.default_rng(6)
    std = rng.uniform(0.4, 2, 600)
    data = cal.Gaussian(std * fault(std, rng.normal(size=600)), np.zeros(600), std)
    for kind in (data, cal.Distribution(data.y_true, stats.norm(data.mean, std))):
        found = cal.calibration_test(kind, method=Moments())
        assert found.p_value < 0.01
        assert (found.decided.name, found.decided.direction) == (name, direction)


def test_moments_of_draws_and_clusters():
    rng = np.random.default_rng(7)
    drawn = cal.Samples(rng.exponential(size=2000), rng.exponential(size=(2000, 5)))
    assert cal.calibration_test(drawn, method=Moments()).p_value > 0.01
    y, group = np.repeat(rng.normal(size=40), 10), np.repeat(np.arange(40), 10)
    together = cal.Gaussian(y, np.zeros(400), np.ones(400), group=group)
    assert cal.calibration_test(together, method=Moments()).p_value > 0.05
    few = cal.Gaussian(y, np.zeros(400), np.ones(400), group=group // 4)
    assert np.isnan(cal.calibration_test(few, method=Moments()).p_value)
    with pytest.raises(TypeError, match="means and standard deviations"):
        cal.calibration_test(cal.Quantiles([1.0], [0.5], [[0.0]]), method=Moments())


def test_the_spread_chi_square_is_its_formula():
    """Five widths with 40 rows each: v is (kurtosis - 1) / 40 in each bin, and cube roots are nearly normal."""
    rng = np.random.default_rng(8)
    std = np.repeat([0.5, 1.0, 1.5, 2.0, 3.0], 40)
    z = rng.normal(size=200) * 1.1
    found = cal.calibration_test(cal.Gaussian(std * z, np.zeros(200), std), method=SpreadChiSquare(bins=5))
    v = ((z**4).mean() / (z**2).mean() ** 2 - 1) / 40
    ratio = (z**2).reshape(5, 40).mean(axis=1)
    statistic = ((np.cbrt(ratio) - (1 - v / 9)) ** 2 / (v / 9)).sum()
    assert found.statistic == pytest.approx(statistic)
    assert found.p_value == pytest.approx(stats.chi2.sf(statistic, 5))


@pytest.mark.parametrize("weighted", [False, True])
def test_bias_and_spread_by_width_are_students_tests(weighted):
    rng = np.random.default_rng(9)
    std, z = np.repeat([0.5, 1.0, 1.5, 2.0, 3.0], 40), rng.normal(0.1, 1.2, size=200)
    weight = rng.uniform(0.5, 2, 200) if weighted else np.ones(200)
    data = cal.Gaussian(std * z, np.zeros(200), std, weight=weight)
    found = {one.name: one for one in cal.calibration_test(data, method=Moments()).components}
    assert [found[name].share for name in ("bias", "spread", "spread by width")] == pytest.approx([0.4, 0.4, 0.2])
    share = weight / weight.sum()
    code = np.repeat(np.arange(5), 40)
    by_width = (code - share @ code) * (z**2 / (share @ z**2) - 1)
    for name, values in (("bias", z), ("spread by width", by_width)):
        mean = share @ values
        t = mean / np.sqrt(share**2 @ (values - mean) ** 2)
        assert found[name].p_value == pytest.approx(2 * stats.t.sf(abs(t), 1 / (share @ share) - 1))
        assert found[name].direction == (-1 if t > 0 else 1)


def test_forecasts_of_one_width_have_no_spread_by_width():
    y = np.random.default_rng(10).normal(size=100)
    found = cal.calibration_test(cal.Gaussian(y, np.zeros(100), np.ones(100)), method=Moments())
    assert [(one.name, one.share) for one in found.components] == [("bias", 0.5), ("spread", 0.5)]


def test_few_rows_have_stephens_correction_of_the_kolmogorov_law():
    y = np.random.default_rng(11).normal(0.3, 1, 12)
    found = cal.calibration_test(cal.Gaussian(y, np.zeros(12), np.ones(12)), method=PitUniformity())
    root = np.sqrt(12)
    assert found.p_value == pytest.approx(stats.kstwobign.sf(found.statistic * (root + 0.12 + 0.11 / root)))


@pytest.mark.parametrize(("error", "direction"), [(0.5, -1), (-0.5, 1)])
def test_one_error_in_all_rows_is_a_bias_beyond_doubt(error, direction):
    found = cal.calibration_test(cal.Gaussian(np.full(30, error), np.zeros(30), np.ones(30)), method=Moments())
    bias = found.components[0]
    assert (bias.name, bias.p_value, bias.direction) == ("bias", 0.0, direction)
