"""Figures of predicted distributions."""

import numpy as np
import pytest

import calibrant as cal
from tests.plot.figures import line

pytestmark = pytest.mark.usefixtures("unchanged_settings")


def test_bins_of_predicted_spreads_are_drawn_as_spread_against_error(ax):
    rng = np.random.default_rng(0)
    sigma = rng.uniform(0.5, 2, 300)
    estimate = cal.ence(sigma * rng.standard_normal(300), np.zeros(300), sigma)
    curve = cal.spread_curve(estimate.bins)
    assert estimate.plot(ax=ax) is ax
    np.testing.assert_allclose(line(ax, "observed").get_data(), [curve.x, curve.observed])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("root mean variance", "RMSE")


def test_a_forecast_is_drawn_as_its_spread_curve(ax):
    rng = np.random.default_rng(0)
    std = np.exp(0.4 * rng.normal(size=500))
    forecast = cal.Gaussian(std * rng.normal(size=500), np.zeros(500), std)
    cal.plot.forecast_diagram(forecast, ax=ax)
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), cal.spread_curve(forecast).observed)
