"""The figure of a decision curve."""

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
