"""What maps of distributions share: outputs, groups, refusals, and transformed distributions against SciPy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

import calibrant as cal
from calibrant import recalibrate
from calibrant.recalibrate.regression_base import Normal, Remapped, Stretched, as_distribution, center_of, stretched
from tests.recalibrate.worlds import spread_world


def test_several_outputs_get_a_map_each():
    one, two = spread_world(2000, 0, 2.0), spread_world(2000, 1, 0.5)
    both = cal.Gaussian(*(np.column_stack([getattr(one, c), getattr(two, c)]) for c in ("y_true", "mean", "std")))
    assert recalibrate.StdScaling().fit(both).scale_ == pytest.approx([2, 0.5], rel=0.06)
    for map in (recalibrate.VarianceIsotonic(), recalibrate.CdfIsotonic()):
        fixed = clone(map).fit(both).transform(both)
        assert cal.mean_squared_z(fixed).details["outputs"] == pytest.approx([1, 1], abs=0.1)
        assert cal.coverage(fixed).details["outputs"] == pytest.approx([0.9, 0.9], abs=0.02)
    with pytest.raises(cal.InvalidPredictions, match="1 outputs, but StdScaling was fitted with 2"):
        recalibrate.StdScaling().fit(both).transform(one)


@pytest.mark.parametrize(
    "map",
    [
        recalibrate.StdScaling(),
        recalibrate.StdScaling(criterion="crps"),
        recalibrate.StdScaling(criterion="mad"),
        recalibrate.VarianceIsotonic(),
        recalibrate.VarianceHistogram(),
        recalibrate.VarianceHistogram(scaling=True),
        recalibrate.SpreadSpline(),
        recalibrate.CdfIsotonic(),
        recalibrate.Conformal(),
        recalibrate.Conformal(normalised=False, symmetric=True),
        recalibrate.PerGroup(recalibrate.StdScaling(criterion="mad")),
    ],
    ids=lambda map: repr(map).replace("\n", ""),
)
def test_the_unit_of_the_weights_does_not_matter(map):
    """Importance weights: a constant factor changes nothing, equal weights are no weights, and 0 is no row."""
    data, rng = spread_world(300, seed=2, power=0.7), np.random.default_rng(1)
    group = rng.integers(0, 3, 300)

    def fixed(weight, rows=slice(None)):
        train = cal.Gaussian(data.y_true[rows], data.mean[rows], data.std[rows], weight=weight, group=group[rows])
        changed = clone(map).fit(train).transform(cal.Gaussian(data.y_true, data.mean, data.std, group=group))
        levels = changed.levels if isinstance(changed, cal.Quantiles) else (0.1, 0.9)
        return np.stack([changed.quantile(level) for level in levels])

    brent = isinstance(map, recalibrate.StdScaling) and map.criterion == "crps"  # half of the digits
    for weight in (rng.exponential(size=300), rng.integers(0, 4, 300)):
        expected = fixed(weight)
        for factor in (1e-3, 7, 1e6):
            np.testing.assert_allclose(fixed(factor * weight), expected, rtol=0, atol=1e-6 if brent else 1e-9)
        rows = np.flatnonzero(weight)
        np.testing.assert_array_equal(fixed(weight[rows], rows), expected)
    for constant in (1e-200, 0.3, 7, 1e200):
        np.testing.assert_array_equal(fixed(np.full(300, constant)), fixed(None))


@pytest.mark.parametrize("criterion", ["nll", "crps", "mad"])
def test_a_row_of_nearly_all_weight_sets_the_factor(criterion):
    weight = np.array([1e200, 1.0, 1e-200])
    map = recalibrate.StdScaling(criterion=criterion)
    alone = clone(map).fit([[0.0, 1.0]], [3.0])
    fitted = clone(map).fit([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]], [3.0, 0.1, 9.0], weight)
    assert fitted.scale_ == pytest.approx(alone.scale_, rel=1e-6)


def test_each_group_gets_a_map_and_small_or_new_groups_the_common_one(tmp_path):
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c"], [1000, 1000, 5])
    y = rng.normal(size=2005) * np.where(group == "a", 1.0, 3.0)
    data = cal.Gaussian(y, 0 * y, 0 * y + 1, group=group)
    fitted = recalibrate.PerGroup(recalibrate.StdScaling()).fit(data)
    assert fitted.groups_.tolist() == ["a", "b"]
    std = fitted.transform(data).std
    assert (std[0], std[1000]) == pytest.approx((1, 3), rel=0.06)
    assert std[-1] == pytest.approx(np.sqrt(np.mean(y**2)))
    fitted.save(tmp_path / "map.json")
    assert np.array_equal(recalibrate.load(tmp_path / "map.json").transform(data).std, std)


def test_a_group_of_just_enough_rows_gets_a_map_of_its_own():
    data = cal.Gaussian([1.0, -1.0, 3.0, -3.0, 3.0], [0.0] * 5, [1.0] * 5, group=list("aabbb"))
    for min_rows, expected in ((2, ["a", "b"]), (3, ["b"]), (4, [])):
        fitted = recalibrate.PerGroup(recalibrate.StdScaling(), min_rows=min_rows).fit(data)
        assert fitted.groups_.tolist() == expected


def test_the_remapped_distribution_is_one():
    data = spread_world(3000)
    fixed = recalibrate.CdfIsotonic(nodes=32).fit(data).transform(data)
    level = np.linspace(0.02, 0.98, 7)
    for p in level:
        assert fixed.dist.cdf(fixed.quantile(p)) == pytest.approx(np.full(3000, p), abs=1e-9)
    x = np.linspace(-40, 40, 20_001)
    one = recalibrate.regression_base.Remapped(
        recalibrate.regression_base.Normal(np.zeros(1), np.ones(1)), [(fixed.dist._maps[0])]
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
    fixed = recalibrate.StdScaling().fit(data).transform(data)
    assert fixed.mean == pytest.approx(data.mean)
    assert cal.coverage(fixed, nominal=0.8) == pytest.approx(0.8, abs=0.04)
    for criterion in ("crps", "mad"):
        with pytest.raises(ValueError, match="not for ensembles"):
            recalibrate.StdScaling(criterion=criterion).fit(data)


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


def test_forecasts_and_outcomes_of_other_rows_are_refused():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"mean": rng.normal(size=30), "std": 1.0})
    y = pd.Series(rng.normal(size=30), index=frame.index[::-1])
    with pytest.raises(cal.InvalidPredictions, match="different pandas indexes"):
        recalibrate.StdScaling().fit(frame, y)
