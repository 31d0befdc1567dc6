"""Bias by construction: against the published simulations, by hand, and the same on any number of processes."""

import json
import zlib
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate as sim
from calibrant.numerics.random_draws import generator
from calibrant.simulate.estimation_bias import run_all
from tests.simulate.published import L2


@pytest.mark.no_cover
def test_figure_1_of_the_paper():
    found = sim.bias(L2["ew_bin"], sim.World(sim.BetaScores(2.8, 0.05)), 200, repeats=20_000)
    assert 100 * found.mean == pytest.approx(6.703, abs=3 * np.sqrt(2) * 100 * found.bias_se)
    assert 100 * found.sd == pytest.approx(1.871, abs=3 * np.sqrt(2) * 100 * found.sd_se)


def test_bias_is_mean_less_truth_and_errors_add_up():
    world = sim.World(sim.UniformScores(), sim.PowerCurve(2))
    found = sim.bias(cal.ece, world, 100, repeats=500, seed=3)
    values = sim.estimates({"": cal.ece}, world, 100, repeats=500, seed=3)[""]
    assert found.truth == pytest.approx(1 / 2 - 1 / 3)
    assert found.bias == pytest.approx(values.mean() - found.truth)
    assert found.sd == pytest.approx(values.std(ddof=1))
    assert found.bias_se == pytest.approx(found.sd / np.sqrt(500))
    assert found.rmse**2 == pytest.approx(found.bias**2 + values.var())


def test_standard_errors_are_the_spread_of_repeated_simulations():
    runs = [sim.bias(cal.ece, sim.World(sim.UniformScores()), 50, repeats=100, seed=seed) for seed in range(200)]
    for name in ("bias", "sd", "rmse"):
        spread = np.std([getattr(run, name) for run in runs])
        claimed = np.mean([getattr(run, f"{name}_se") for run in runs])
        assert claimed == pytest.approx(spread, rel=0.2), name


def test_any_callable_is_an_estimator_and_sees_the_same_samples():
    world = sim.PAPER_WORLDS["resnet152_imgnet"]
    both = sim.estimates({"at once": cal.ece, "one by one": lambda data: cal.ece(data)}, world, 150, repeats=30)
    assert both["one by one"] == pytest.approx(both["at once"], abs=1e-12)


def test_nonsense_is_refused():
    world = sim.World(sim.UniformScores())
    with pytest.raises(ValueError, match="n must be a whole number"):
        sim.bias(cal.ece, world, 0)
    with pytest.raises(ValueError, match="repeats must be a whole number"):
        sim.bias(cal.ece, world, 10, repeats=2.5)
    with pytest.raises(ValueError, match="different names"):
        sim.bias_table({"e": cal.ece}, [world, world], [10])


def test_the_number_of_scores_in_a_chunk_is_part_of_the_definition():
    """Samples of the second chunk have a seed of their own, so that the first ones are the same for any `repeats`."""
    n, world = 1 << 17, sim.World(sim.UniformScores(), sim.PowerCurve(2))
    few, many = (sim.estimates({"e": cal.brier}, world, n, repeats=repeats, seed=3)["e"] for repeats in (4, 5))
    np.testing.assert_array_equal(many[:4], few)
    second = np.random.SeedSequence(3, spawn_key=(zlib.crc32(world.name.encode()), n, 1))
    score, outcome = world.draw(generator(second, "samples of a world"), (1, n))
    assert many[4] == cal.brier(outcome[0], score[0])


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


def test_the_number_of_processes_changes_nothing():
    worlds = [sim.PAPER_WORLDS["resnet110_c10"], sim.World(sim.UniformScores(), sim.PowerCurve(2))]
    settings = {"repeats": 40, "seed": 7}
    alone = sim.bias_table(L2, worlds, [50, 100], **settings)
    assert sim.bias_table(L2, worlds, [50, 100], processes=2, **settings) == alone


def test_an_interrupted_table_continues(tmp_path):
    seen = []

    def counting(data):
        seen.append(len(data))
        if len(seen) == 31:
            raise KeyboardInterrupt
        return cal.ece(data)

    run = partial(
        sim.bias_table,
        {"e": counting},
        [sim.World(sim.UniformScores())],
        [20, 40],
        repeats=20,
        cache=tmp_path / "cells",
    )
    with pytest.raises(KeyboardInterrupt):
        run()
    (kept,) = (tmp_path / "cells").glob("*.json")
    assert json.loads(kept.read_text())["key"]["n"] == 20
    before = len(seen)
    table = run()
    assert seen[before:] == [20, 40, *[40] * 20]  # one look at each cell for its key, then only the second is run
    assert run() == table
    whole = sim.bias_table({"e": cal.ece}, [sim.World(sim.UniformScores())], [20, 40], repeats=20)
    assert [row.bias for row in table] == pytest.approx([row.bias for row in whole], abs=1e-12)
    assert not list((tmp_path / "cells").glob("*.tmp"))


def test_the_cache_tells_lambdas_apart(tmp_path):
    table = lambda estimator: sim.bias_table(  # noqa: E731
        {"e": estimator}, [sim.World(sim.UniformScores())], [30], repeats=5, cache=tmp_path
    )
    assert table(lambda data: 0.25).rows[0].mean == 0.25
    assert table(lambda data: 0.5).rows[0].mean == 0.5


def test_a_damaged_cell_is_run_again(tmp_path):
    run = partial(sim.bias_table, {"e": cal.ece}, [sim.World(sim.UniformScores())], [20], repeats=5, cache=tmp_path)
    first = run()
    (path,) = tmp_path.glob("*.json")
    path.write_text("{", encoding="utf8")
    assert run() == first


def test_progress_is_silent_away_from_a_terminal_and_can_be_asked_for(capsys):
    run = partial(sim.bias_table, {"e": cal.ece}, [sim.World(sim.UniformScores())], [20, 30], repeats=5)
    run()
    assert capsys.readouterr().err == ""
    run(progress=True)
    assert capsys.readouterr().err == "\r1/2 simulations\r2/2 simulations\n"


def test_a_lambda_cannot_go_to_another_process_and_the_message_says_so():
    with pytest.raises(ValueError, match="processes=1"):
        sim.bias_table({"e": lambda d: 0.0}, [sim.World(sim.UniformScores())], [20, 30], repeats=2, processes=2)


def test_results_come_in_the_order_of_the_tasks_and_known_ones_are_read(tmp_path):
    ran = []

    def run(task):
        ran.append(task)
        return [{"square": task**2}]

    keys = [{"task": task} for task in (3, 1, 2)]
    first = run_all(run, [3, 1, 2], keys, cache=tmp_path)
    assert [rows[0]["square"] for rows in first] == [9, 1, 4]
    assert run_all(run, [2, 5], [{"task": 2}, {"task": 5}], cache=tmp_path) == [first[2], [{"square": 25}]]
    assert ran == [3, 1, 2, 5]
