"""What maps of distributions share: outputs, groups, and refusals."""

import numpy as np
import pytest
from sklearn.base import clone

import calibrant as cal
from calibrant import recalibrate


def world(n=4000, seed=0, factor=2.0, power=1.0):
    """The true spread is factor * stated^power."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.lognormal(0, 0.5, n)
    return cal.Gaussian(mean + factor * std**power * rng.normal(size=n), mean, std)


def columns(data):
    return np.column_stack([data.mean, data.std])


def test_several_outputs_get_a_map_each():
    one, two = world(2000, 0, 2.0), world(2000, 1, 0.5)
    both = cal.Gaussian(*(np.column_stack([getattr(one, c), getattr(two, c)]) for c in ("y_true", "mean", "std")))
    assert recalibrate.StdScaling().fit(both).scale_ == pytest.approx([2, 0.5], rel=0.06)
    for map in (recalibrate.VarianceIsotonic(), recalibrate.CdfIsotonic()):
        fixed = clone(map).fit(both).transform(both)
        assert cal.mean_squared_z(fixed).details["outputs"] == pytest.approx([1, 1], abs=0.1)
        assert cal.coverage(fixed).details["outputs"] == pytest.approx([0.9, 0.9], abs=0.02)
    with pytest.raises(cal.InvalidPredictions, match="1 outputs, but StdScaling was fitted with 2"):
        recalibrate.StdScaling().fit(both).transform(one)


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
