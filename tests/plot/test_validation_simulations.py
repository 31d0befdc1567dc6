"""Figures of simulations."""

import pytest

import calibrant as cal
from calibrant import simulate as sim


def test_the_goodness_plot_has_a_point_for_the_fit():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = sim.fit_world(sim.World(sim.BetaScores(2, 1), sim.PowerCurve(2)).sample(500)).plot(color="black")
    assert ax.get_xlabel() == "real data, percent"
    assert len(ax.containers) == 1
    assert ax.get_xlim() == ax.get_ylim()
    matplotlib.pyplot.close(ax.figure)


def test_the_drawing_of_a_table_has_a_line_for_each_estimator():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    table = sim.bias_table({"a": cal.ece, "b": cal.mce}, [sim.World(sim.UniformScores())], [20, 40], repeats=10)
    ax = table.plot(linewidth=2)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["a", "b"]
    line = next(line for line in ax.get_lines() if line.get_label() == "b")
    assert line.get_ydata() == pytest.approx([100 * row.bias for row in table.select(estimator="b")])
    matplotlib.pyplot.close(ax.figure)
