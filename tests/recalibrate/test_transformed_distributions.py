"""Stretched and remapped distributions against SciPy."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant import recalibrate
from calibrant.recalibrate.transformed_distributions import (
    Normal,
    Remapped,
    Stretched,
    as_distribution,
    center_of,
    stretched,
)
from tests.recalibrate.worlds import spread_world


def test_the_remapped_distribution_is_one():
    data = spread_world(3000)
    fixed = recalibrate.CdfIsotonic(nodes=32).fit(data).transform(data)
    level = np.linspace(0.02, 0.98, 7)
    for p in level:
        assert fixed.dist.cdf(fixed.quantile(p)) == pytest.approx(np.full(3000, p), abs=1e-9)
    x = np.linspace(-40, 40, 20_001)
    one = recalibrate.transformed_distributions.Remapped(
        recalibrate.transformed_distributions.Normal(np.zeros(1), np.ones(1)), [(fixed.dist._maps[0])]
    )
    mass = np.exp(one.logpdf(x)).sum() * (x[1] - x[0])
    assert mass == pytest.approx(1, abs=0.01)
    step = (one.mean()[0], one.std()[0])
    running = one.cdf(x)
    middle, share = (x[1:] + x[:-1]) / 2, np.diff(running)
    assert step == pytest.approx((share @ middle, np.sqrt(share @ middle**2 - (share @ middle) ** 2)), abs=2e-3)


def test_draws_are_stretched_about_their_mean():
    rng = np.random.default_rng(0)
    data = cal.Samples(2 * rng.normal(size=3000), rng.normal(size=(3000, 30)))
    assert cal.coverage(data, nominal=0.8) < 0.5
    for criterion in ("nll", "crps"):
        fixed = recalibrate.StdScaling(criterion=criterion).fit(data).transform(data)
        assert fixed.mean == pytest.approx(data.mean)
        assert cal.coverage(fixed, nominal=0.8) == pytest.approx(0.8, abs=0.04)


def test_stretched_distributions_are_scipys_with_another_scale():
    inner, outer = stats.t(5, loc=1.0), stats.t(5, loc=1.0, scale=2.0)
    found = Stretched(inner, 1.0, 2.0)
    y, level = np.linspace(-4, 6, 11), np.linspace(0.1, 0.9, 9)
    np.testing.assert_allclose(found.cdf(y), outer.cdf(y))
    np.testing.assert_allclose(found.ppf(level), outer.ppf(level))
    np.testing.assert_allclose(found.logpdf(y), outer.logpdf(y))
    np.testing.assert_allclose([found.mean(), found.std()], [outer.mean(), outer.std()])


def test_normal_is_scipys():
    found, expected = Normal(np.array([1.0]), np.array([2.0])), stats.norm(1.0, 2.0)
    np.testing.assert_allclose(found.cdf([0.3]), expected.cdf(0.3))
    np.testing.assert_allclose(found.ppf(0.2), expected.ppf(0.2))
    np.testing.assert_allclose(found.logpdf([0.3]), expected.logpdf(0.3))
    assert (found.mean(), found.std()) == (1.0, 2.0)


def test_probabilities_mapped_by_the_identity_change_nothing():
    u = np.linspace(0, 1, 5)
    for inner in (Normal(np.array([0.5]), np.array([2.0])), stats.norm(np.array([0.5]), np.array([2.0]))):
        same = Remapped(inner, [(u, u)])
        np.testing.assert_allclose(same.cdf([0.7]), inner.cdf([0.7]))
        np.testing.assert_allclose(same.ppf(0.3), inner.ppf(0.3))
        np.testing.assert_allclose(same.logpdf([0.7]), inner.logpdf([0.7]))
        np.testing.assert_allclose([same.mean(), same.std()], [[0.5], [2.0]], rtol=0.02)


def test_a_distribution_without_a_mean_is_stretched_about_its_median():
    data = cal.Distribution(np.array([0.0, 1.0]), stats.cauchy(loc=np.array([2.0, 3.0])))
    np.testing.assert_allclose(center_of(data), [2.0, 3.0])
    np.testing.assert_allclose(stretched(data, np.array([2.0, 3.0])).quantile(0.75).ravel(), [4.0, 6.0])


def test_forecasts_without_a_spread_are_refused():
    quantiles = cal.Quantiles(np.array([0.0]), [0.1, 0.9], np.array([[-1.0, 1.0]]))
    with pytest.raises(TypeError, match="Quantiles have no spread to multiply"):
        stretched(quantiles, np.ones(1))
    with pytest.raises(TypeError, match="needs predicted distributions"):
        as_distribution(quantiles)
