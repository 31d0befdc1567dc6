"""Figures of predicted distributions."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import calibrant as cal


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(autouse=True)
def no_setting_of_matplotlib_changes():
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before


def line(ax, label):
    return next(drawn for drawn in ax.lines if drawn.get_label().startswith(label))


def test_bins_of_predicted_spreads_are_drawn_as_spread_against_error(ax):
    rng = np.random.default_rng(0)
    sigma = rng.uniform(0.5, 2, 300)
    estimate = cal.ence(sigma * rng.standard_normal(300), np.zeros(300), sigma)
    curve = cal.spread_curve(estimate.bins)
    assert estimate.plot(ax=ax) is ax
    np.testing.assert_allclose(line(ax, "observed").get_data(), [curve.x, curve.observed])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("root mean variance", "RMSE")
