"""Tables that run in several processes, continue after an interruption, and show progress."""

import json
from functools import partial

import pytest

import calibrant as cal
from calibrant import simulate as sim
from calibrant.simulate.parallel import run_all
from tests.simulate.published import L2


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
    assert "100%" in capsys.readouterr().err


def test_progress_without_rich_is_a_plain_line(capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    sim.bias_table({"e": cal.ece}, [sim.World(sim.UniformScores())], [20, 30], repeats=5, progress=True)
    assert "2/2 simulations" in capsys.readouterr().err


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
