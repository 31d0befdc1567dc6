"""Maps of whole distributions: isotonic maps of probabilities, conformal quantiles."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant import recalibrate


def test_kuleshovs_map_makes_random_spread_look_calibrated_and_ence_sees_through_it():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.1, 1, 26_000)
    data = cal.Gaussian(x + x * rng.normal(size=26_000), x, rng.uniform(1, 10, 26_000))
    train = cal.Gaussian(data.y_true[:6000], data.mean[:6000], data.std[:6000])
    test = cal.Gaussian(data.y_true[6000:], data.mean[6000:], data.std[6000:])
    kuleshov = recalibrate.CdfIsotonic().fit(train).transform(test)
    scaled = recalibrate.StdScaling().fit(train).transform(test)
    assert cal.quantile_error(test) > 0.1
    assert cal.quantile_error(kuleshov) < 0.01
    assert cal.ence(test) == pytest.approx(0.8444, abs=0.01)
    assert cal.ence(scaled, bins=cal.EqualMass(100)) == pytest.approx(0.5195, abs=0.02)
    assert cal.ence(kuleshov, bins=cal.EqualMass(100)) == pytest.approx(0.5195, abs=0.02)


@pytest.mark.no_cover
@pytest.mark.parametrize("symmetric", [False, True])
def test_conformal_intervals_cover_in_finite_samples(symmetric):
    """Averaged over many small recalibration sets, coverage is at least as stated, though the forecast is wrong."""
    covered = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        train, test = (cal.Gaussian(rng.exponential(size=n) - 1, np.zeros(n), np.ones(n)) for n in (30, 50))
        fixed = recalibrate.Conformal(levels=[0.1, 0.9], symmetric=symmetric).fit(train).transform(test)
        covered.append(cal.coverage(fixed, nominal=0.8))
    assert 0.795 < np.mean(covered) < 0.9


def test_quantiles_are_shifted_level_by_level():
    rng = np.random.default_rng(0)
    data = cal.Quantiles(rng.normal(size=2000), [0.1, 0.9], np.tile([-3.0, 0.5], (2000, 1)))
    fixed = recalibrate.Conformal().fit(data).transform(data)
    assert fixed.values[0] == pytest.approx(stats.norm.ppf([0.1, 0.9]), abs=0.1)
    with pytest.raises(cal.InvalidPredictions, match="levels must be those of the fit"):
        recalibrate.Conformal().fit(data).transform(cal.Quantiles([0.0], [0.2, 0.9], [[-1.0, 1.0]]))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_map_of_probabilities_goes_through_the_middle_of_every_step(weighted):
    u = np.array([0.1, 0.4, 0.4, 0.9])
    weight = np.array([1.0, 2.0, 1.0, 4.0]) if weighted else None
    data = cal.Gaussian(stats.norm.ppf(u), np.zeros(4), np.ones(4), weight=weight)
    learnt = recalibrate.CdfIsotonic().fit(data).outputs_[0]
    np.testing.assert_allclose(learnt["u"], [0, 0.1, 0.4, 0.9, 1])
    middle = [0.5 / 8, (2 / 8 + 3.5 / 8) / 2, 6 / 8] if weighted else [0.125, 0.5, 0.875]
    np.testing.assert_allclose(learnt["p"], [0, *middle, 1])
