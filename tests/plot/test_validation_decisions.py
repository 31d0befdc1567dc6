"""Figures of decisions."""

import numpy as np
import pytest

import calibrant as cal

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure


@pytest.mark.parametrize("standardized", [False, True])
def test_the_lines_are_the_columns_of_the_curve(standardized):
    p = np.random.default_rng(0).random(200)
    curve = cal.net_benefit(np.random.default_rng(1).random(200) < p, p, standardized=standardized)
    ax = curve.plot(ax=Figure().subplots(), linewidth=3)
    model, everyone, no_one = ax.get_lines()
    assert model.get_ydata() == pytest.approx(curve.value)
    assert model.get_linewidth() == 3
    assert everyone.get_ydata() == pytest.approx(curve.treat_all)
    assert set(no_one.get_ydata()) == {0.0}
    assert ("standardized" in ax.get_ylabel()) == standardized


def test_costs_and_risks_are_drawn_as_they_are():
    p = np.random.default_rng(0).random(300)
    y = np.random.default_rng(1).random(300) < p**2
    cost = cal.inference.miscalibration_cost(y, p)
    assert cost.plot(ax=Figure().subplots()).get_lines()[0].get_ydata() == pytest.approx(cost.cost)
    for loss in ("error", "log_loss"):
        curve = cal.risk_coverage(y, p, loss=loss)
        ax = curve.plot(ax=Figure().subplots(), color="red")
        assert ax.get_lines()[0].get_xdata() == pytest.approx(curve.coverage)
        assert ax.get_ylim()[1] < 10
