"""The curves behind the regression diagrams, and that the figures draw them."""

import json

import numpy as np
import pytest
from scipy.stats import linregress

import calibrant as cal

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def world(n=3000, factor=1.0, seed=0):
    rng = np.random.default_rng(seed)
    std = rng.lognormal(0, 0.5, n)
    return cal.Gaussian(factor * std * rng.normal(size=n), np.zeros(n), std)


CURVES = [cal.spread_curve, cal.estimators.pit_histogram, cal.interval_curve, cal.estimators.ence_curve]


@pytest.mark.no_cover
@pytest.mark.parametrize("curve", CURVES)
def test_a_calibrated_forecaster_stays_in_the_band_as_often_as_it_says(curve):
    made = [curve(world(seed=seed)) for seed in range(40)]
    points = sum(len(one.x) for one in made)
    share = sum(one.outside for one in made) / points
    assert share < 0.12
    assert sum(one.outside for one in made) > 0


@pytest.mark.parametrize("curve", CURVES)
def test_a_wrong_spread_leaves_the_band(curve):
    made = curve(world(factor=1.5))
    assert made.outside > len(made.x) / 3


@pytest.mark.parametrize("curve", CURVES)
def test_the_figure_draws_the_numbers_of_the_curve(curve):
    made = curve(world(500))
    ax = made.plot(color="red")
    drawn = (
        [bar.get_height() for bar in ax.patches if bar.get_height() in made.observed]
        if made.diagram == "pit"
        else ax.lines[-1].get_ydata()
    )
    assert np.array(drawn)[: len(made.observed)] == pytest.approx(made.observed)
    assert json.loads(json.dumps(made.to_dict()))["diagram"] == made.diagram
    with pytest.raises(AttributeError):
        made.plot(no_such_style=1)
    matplotlib.pyplot.close("all")


def test_the_curve_of_ence_finds_that_noise_alone_grows_with_the_bins():
    calibrated, wrong = cal.estimators.ence_curve(world(20_000)), cal.estimators.ence_curve(world(20_000, 1.3))
    assert calibrated.observed[-1] > 2 * calibrated.observed[3]
    assert abs(calibrated.details["intercept"]) < 0.01
    assert wrong.details["intercept"] > 10 * wrong.details["standard_error"]
    assert calibrated.expected[4:] == pytest.approx(np.sqrt(calibrated.x[4:] / (np.pi * 20_000)), rel=0.1)


def test_the_intercept_of_ence_and_its_error_are_those_of_a_least_squares_line():
    made = cal.estimators.ence_curve(world(2000, 1.3), bins=[5, 16, 20, 30, 50, 90])
    line = linregress(np.sqrt(made.x[2:]), made.observed[2:])
    assert made.details["intercept"] == pytest.approx(line.intercept)
    assert made.details["standard_error"] == pytest.approx(line.intercept_stderr)
    assert "intercept" not in cal.estimators.ence_curve(world(2000), bins=[16, 20, 30]).details


def test_spread_points_are_root_mean_squares_per_bin():
    data = world(1000)
    made = cal.spread_curve(data, bins=cal.EqualMass(4))
    order = np.argsort(data.std).reshape(4, 250)
    assert made.x == pytest.approx(np.sqrt((data.std[order] ** 2).mean(axis=1)))
    assert made.observed == pytest.approx(np.sqrt((data.y_true[order] ** 2).mean(axis=1)))


def test_an_ence_draws_its_own_diagram():
    data = world(1000)
    ax = cal.ence(data).plot()
    assert ax.get_xlabel() == "root mean variance"
    assert ax.lines[-1].get_ydata() == pytest.approx(cal.spread_curve(data).observed)
    matplotlib.pyplot.close("all")


def test_one_number_of_bins_is_no_curve():
    for options in ({"bins": 10}, {"n_bins": 10}):
        with pytest.raises(TypeError, match=r"several numbers of bins, such as \[5, 10, 20\], got 10"):
            cal.estimators.ence_curve(world(200), **options)


def test_the_curve_of_ence_looks_at_bins_of_more_than_thirty_rows():
    many = [1, 2, 5, 10, 15, 20, 30, 40, 60, 80, 100, 120, 140, 160]
    assert cal.estimators.ence_curve(world(2000)).x.tolist() == many[:9]
    assert cal.estimators.ence_curve(world(4801)).x.tolist() == many
    assert cal.estimators.ence_curve(world(4800)).x.tolist() == many[:-1]
