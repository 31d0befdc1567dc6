"""What maps of distributions share: outputs, groups, and refusals."""

import numpy as np
import pytest
from sklearn.base import clone

import calibrant as cal
from calibrant import recalibrate
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
