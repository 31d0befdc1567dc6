"""Tables of biases: the published figures, and the same numbers as `bias`."""

from itertools import pairwise

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate as sim
from tests.simulate.published import L2

#: Figures 4 and 6 at n = 200: bias in percent, mean over the networks of a data set (1000 repeats each).
FIGURE_4 = {
    "c10": {
        "ew_bin": 0.58,
        "em_bin": 0.96,
        "ew_debias": -4.23,
        "em_debias": -1.11,
        "ew_sweep": -3.77,
        "em_sweep": -0.15,
    },
    "c100": {
        "ew_bin": -0.32,
        "em_bin": 1.40,
        "ew_debias": -3.73,
        "em_debias": -0.62,
        "ew_sweep": -5.28,
        "em_sweep": -0.33,
    },
    "imgnet": {
        "ew_bin": 5.97,
        "em_bin": 3.95,
        "ew_debias": -1.27,
        "em_debias": -1.17,
        "ew_sweep": 0.56,
        "em_sweep": 0.81,
    },
}


FIGURE_6 = {
    "c10": {"ew_bin": 6.92, "em_bin": 2.54, "em_debias": 0.90, "em_sweep": 3.63},
    "c100": {"ew_bin": 10.14, "em_bin": 4.98, "em_debias": 1.49, "em_sweep": 4.24},
    "imgnet": {"ew_bin": 10.82, "em_bin": 7.27, "em_debias": 2.02, "em_sweep": 4.70},
}


def of_data_set(suffix):
    return [world for name, world in sim.PAPER_WORLDS.items() if name.endswith(f"_{suffix}")]


@pytest.mark.parametrize("suffix", FIGURE_4)
def test_figures_4_and_6_of_the_paper_at_the_smallest_size(suffix):
    for worlds, expected in (
        (of_data_set(suffix), FIGURE_4),
        ([w.calibrated() for w in of_data_set(suffix)], FIGURE_6),
    ):
        table = sim.bias_table(L2, worlds, [200])
        for name, percent in expected[suffix].items():
            rows = list(table.select(estimator=name))
            error = np.sqrt(sum(row.bias_se**2 for row in rows)) / len(rows)
            # both simulations have this error, and the printed anchor is rounded
            allowed = 3 * np.sqrt(2) * error + 0.00005
            assert np.mean([row.bias for row in rows]) == pytest.approx(percent / 100, abs=allowed), name


def test_bias_falls_with_the_sample_size():
    table = sim.bias_table({"ECE": cal.ece}, [sim.World(sim.UniformScores())], [50, 200, 800, 3200], repeats=100)
    assert all(before.bias > after.bias > 0 for before, after in pairwise(table))


def test_a_table_is_made_of_biases():
    world = sim.World(sim.BetaScores(2, 1), sim.PowerCurve(1.5))
    table = sim.bias_table({"a": cal.ece, "b": cal.sweep_ece}, {"w": world}, [40, 80], repeats=50, seed=2)
    alone = sim.bias(cal.sweep_ece, world, 80, repeats=50, seed=2)
    (row,) = table.select(estimator="b", n=80)
    assert {**row.to_dict(), "estimator": ""} == {**alone.to_dict(), "estimator": ""}
    assert len(table) == 4
    assert table.mean_absolute_bias()["b"] == pytest.approx(np.mean([abs(r.bias) for r in table.select(estimator="b")]))
    assert "n =" in str(table)


def test_tables_are_written_as_csv(tmp_path):
    table = sim.bias_table({"e": cal.ece}, [sim.World(sim.UniformScores())], [20], repeats=5)
    table.to_csv(tmp_path / "t.csv")
    header, line = (tmp_path / "t.csv").read_text().splitlines()
    assert header.startswith("estimator,world,n,repeats,truth,mean,bias,bias_se")
    assert '"UniformScores(), IdentityCurve()"' in line
