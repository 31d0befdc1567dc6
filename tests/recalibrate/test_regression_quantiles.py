"""Maps of quantiles by group; conformal prediction is tested with the other maps."""

import numpy as np
import pytest
from scipy.stats import norm

import calibrant as cal
from calibrant import recalibrate

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def by_horizon(factor, rows=120, seed=0, groups=14, name=lambda h: h, **options):
    """Quantiles of a standard normal forecast whose errors have the given factor at each horizon."""
    rng = np.random.default_rng(seed)
    horizon = np.tile(np.arange(1, groups + 1), rows)
    spread = rng.lognormal(0, 0.5, len(horizon))
    y = spread * np.asarray(factor)[horizon - 1] * rng.normal(size=len(horizon))
    return cal.Quantiles(y, LEVELS, spread[:, None] * norm.ppf(LEVELS), group=name(horizon), **options)


def gaps(data):
    """Coverage of 90 % intervals less 0.9, at each horizon."""
    return np.array([cal.coverage(data.take(data.group == h)) - 0.9 for h in np.unique(data.group)])


RISING = np.linspace(0.8, 1.4, 14)


def test_a_trend_over_horizons_is_repaired_on_fresh_rows():
    fitted = recalibrate.GroupShift().fit(by_horizon(RISING))
    fresh = by_horizon(RISING, rows=3000, seed=1)
    before, after = gaps(fresh), gaps(fitted.transform(fresh))
    assert np.abs(before).max() > 0.13
    assert np.abs(after).max() < 0.05
    assert cal.pinball(fitted.transform(fresh)) < 0.995 * cal.pinball(fresh)


def test_a_calibrated_forecast_hardly_changes():
    fresh = by_horizon(np.ones(14), rows=2000, seed=99)
    worse = [
        cal.pinball(recalibrate.GroupShift().fit(by_horizon(np.ones(14), seed=k)).transform(fresh)) / cal.pinball(fresh)
        for k in range(8)
    ]
    assert np.mean(worse) < 1.001
    assert max(worse) < 1.005


def test_one_bad_group_is_shifted_and_the_others_stay():
    factor = np.ones(14)
    factor[4] = 1.6
    fitted = recalibrate.GroupShift(ordered=False).fit(by_horizon(factor, rows=500))
    moved = np.abs(fitted.shift_).max(axis=1)
    assert moved.argmax() == 4
    assert moved[4] > 4 * np.median(moved)


def test_the_formula_written_out_for_groups_without_an_order():
    data = by_horizon([1.0, 1.5], rows=200, groups=2)
    fitted = recalibrate.GroupShift(ordered=False).fit(data)
    width = (data.values[:, -1] - data.values[:, 0])[:, None]
    away = (data.y_true[:, None] - data.values) / width
    quantiles = [np.quantile(away[:, k], L, method="hazen") for k, L in enumerate(LEVELS)]
    step = np.minimum(np.minimum(LEVELS, 1 - np.array(LEVELS)) / 2, 0.1)
    ends = [
        [np.quantile(away[:, k], L + sign * step[k], method="hazen") for k, L in enumerate(LEVELS)] for sign in (1, -1)
    ]
    noise = np.array(LEVELS) * (1 - np.array(LEVELS)) * ((np.array(ends[0]) - ends[1]) / (2 * step)) ** 2
    common = np.array(quantiles) * np.maximum(0, 1 - noise / 400 / np.square(quantiles))
    np.testing.assert_allclose(fitted.common_, common)
    own = np.array(
        [[np.quantile(away[data.group == g, k], L, method="hazen") for k, L in enumerate(LEVELS)] for g in (1, 2)]
    )
    between = max(np.mean((own - common) ** 2 / (noise / 200)) - 1, 0)
    np.testing.assert_allclose(fitted.shift_, common + between / (between + 1) * (own - common))


def test_weights_repeat_rows_and_new_groups_get_the_common_shift(tmp_path):
    data = by_horizon(RISING, rows=40)
    fitted = recalibrate.GroupShift().fit(data)
    fitted.save(tmp_path / "map.json")
    loaded = recalibrate.load(tmp_path / "map.json")
    assert np.array_equal(loaded.transform(data).values, fitted.transform(data).values)
    new = cal.Quantiles([0.0], LEVELS, [[-2.0, -1.0, 0.0, 1.0, 2.0]], group=[77])
    assert fitted.transform(new).values[0] == pytest.approx(new.values[0] + 4 * fitted.common_)
    heavier = by_horizon(RISING, rows=40, weight=np.full(len(data), 3.0))
    assert recalibrate.GroupShift().fit(heavier).shift_ == pytest.approx(fitted.shift_)


def test_numbers_written_as_texts_have_their_order():
    numbers, texts = (
        recalibrate.GroupShift().fit(by_horizon(RISING, name=f)) for f in (lambda h: h, lambda h: h.astype(str))
    )
    assert texts.groups_.tolist() == [str(h) for h in range(1, 15)]
    assert texts.shift_ == pytest.approx(numbers.shift_)
    words = recalibrate.GroupShift().fit(by_horizon(RISING, name=lambda h: np.char.add("h", h.astype(str))))
    assert words.shift_[0] != pytest.approx(numbers.shift_[0])
    with pytest.raises(cal.InvalidPredictions, match="of the kind of the fit"):
        texts.transform(by_horizon(RISING))


def test_what_it_is_not_for():
    with pytest.raises(TypeError, match="PerGroup"):
        recalibrate.GroupShift().fit(cal.Gaussian([1.0], [0.0], [1.0], group=[1]))
    with pytest.raises(TypeError, match="group="):
        recalibrate.GroupShift().fit(cal.Quantiles([1.0], [0.1, 0.9], [[0.0, 2.0]]))
    fitted = recalibrate.GroupShift().fit(by_horizon(RISING, rows=20))
    with pytest.raises(cal.InvalidPredictions, match="levels must be those of the fit"):
        fitted.transform(cal.Quantiles([1.0], [0.1, 0.9], [[0.0, 2.0]], group=[1]))


def test_rows_without_width_and_quantiles_of_one_level():
    data = cal.Quantiles(np.arange(40.0), [0.5], np.zeros((40, 1)), group=np.arange(40) % 2)
    assert (recalibrate.GroupShift().fit(data).transform(data).values > 10).all()
    flat = cal.Quantiles([0.0, 1.0, 2.0, 3.0], [0.1, 0.9], [[0.0, 0.0], [0, 1], [0, 2], [0, 4]], group=[1, 1, 2, 2])
    assert np.isfinite(recalibrate.GroupShift().fit(flat).transform(flat).values).all()


def test_the_average_of_maps_takes_groups(tmp_path):
    data = by_horizon(RISING)
    auto = recalibrate.AutoForecast([recalibrate.Conformal(), recalibrate.GroupShift()]).fit(data)
    weight = {row["name"]: row["weight"] for row in auto.results_}
    assert weight["GroupShift()"] > 0.9
    auto.save(tmp_path / "map.json")
    fresh = by_horizon(RISING, rows=2000, seed=1)
    after = recalibrate.load(tmp_path / "map.json").transform(fresh)
    assert np.abs(gaps(after)).max() < 0.06
