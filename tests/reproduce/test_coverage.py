"""The suite of worlds: a small run of its script, read back from its own CSV, and its report."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
coverage = pytest.importorskip("reproduce.coverage", reason="the scripts of the repository are not beside the tests")

from reproduce.coverage_cells import cells_of  # noqa: E402
from reproduce.coverage_files import read_csv  # noqa: E402
from reproduce.coverage_report import bad_cells, marked_parts, report  # noqa: E402

from reproduce import (  # noqa: E402
    coverage_designs,
    coverage_estimators,
    coverage_methods,
    coverage_methods_report,
    coverage_pairs,
    coverage_tests,
)


def test_true_errors_agree_with_large_samples():
    for world in coverage.the_worlds().values():
        data = world.sample(500 if "clusters" in world.name else 20_000, np.random.default_rng(0))
        weight = np.ones(len(data)) if data.weight is None else data.weight
        mean_gap = abs(np.average(data.y_prob - data.y_true, weights=weight))
        assert mean_gap <= world.true_error(1.0) + 0.03
        assert world.true_error(1.0) <= world.true_error(2.0) + 1e-12
        assert (world.true_error(2.0) == 0) is ("calibrated" in world.name and "among calibrated" not in world.name)


def test_worlds_are_many_and_their_names_tell_them_apart():
    worlds = coverage.the_worlds()
    groups = [coverage.rough(), coverage.unseen(), coverage.calibrated(), coverage.designs(), coverage.published()]
    assert len(worlds) == sum(map(len, groups))
    assert sum(not world.tuned for world in worlds.values()) >= 30
    assert len(coverage.unseen()) >= 6
    assert not any(world.tuned for world in coverage.unseen())


def test_pairs_of_models_are_what_they_say():
    found = coverage_pairs.pairs()
    equal = found["three steps: against equal error"]
    assert equal.difference(2.0) == pytest.approx(0, abs=1e-12)
    assert found["three steps: against the truth"].difference(1.0) > 0.05
    for a in found["11 atoms, calibrated: twins"].sample(40_000, 2.0, np.random.default_rng(0)):
        for score in (0.3, 0.8):
            assert a.y_true[a.y_prob == score].mean() == pytest.approx(score, abs=0.03)
    a, b = found["11 atoms, calibrated: twins, 90% equal"].sample(2000, 2.0, np.random.default_rng(0))
    assert 0.85 < np.mean(a.y_prob == b.y_prob) < 1


def test_a_small_run_is_reported_and_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "block_size", lambda n: 2)
    monkeypatch.setattr(coverage, "DRAWS", 39)
    monkeypatch.setattr(coverage_methods, "SAMPLES", 2)
    monkeypatch.setattr(coverage_estimators, "SAMPLES", 2)
    monkeypatch.setattr(coverage_designs, "SAMPLES", 2)
    monkeypatch.setattr(coverage_designs, "DRAWS", 19)
    monkeypatch.setattr(coverage_pairs, "SAMPLES", 2)
    monkeypatch.setattr(coverage_methods_report, "FEWEST", 1)
    for name in ("SIZE_SAMPLES", "OTHER_SIZE_SAMPLES", "FIGURE_SAMPLES", "WORLD_SAMPLES"):
        monkeypatch.setattr(coverage_tests, name, 2)
    monkeypatch.setattr(coverage_tests, "DRAWS", 19)
    names = ["three steps", "uniform, calibrated", "densenet161_imgnet", "densenet161_imgnet, calibrated"]
    tasks = coverage.jobs(";".join(names), [200], 1)
    tasks["coverage"][1][:] = [(name, 200, block) for name in names for block in (0, 1)]
    tasks["coverage_oracle"][1][:] = []
    for name, kept in {
        "coverage_estimators": slice(0, 30, 7),
        "coverage_methods": slice(0, 2),
        "coverage_power": slice(2, 20, 6),
        "coverage_size": slice(0, 1),
        "coverage_compare": slice(2, 7, 4),
        "coverage_pairs": slice(0, 20, 16),
    }.items():
        tasks[name][1][:] = tasks[name][1][kept]
    tables = {}
    for name, (what, some) in tasks.items():
        with ThreadPoolExecutor(1) as pool:
            coverage.measure(pool, what, some[:1], tmp_path / f"{name}.csv")
            coverage.measure(pool, what, some, tmp_path / f"{name}.csv")
        tables[name] = read_csv(tmp_path / f"{name}.csv")
        assert (
            list(dict.fromkeys(tuple(line.values())[: len(some[0])] for line in tables[name])) == some if some else True
        )
    assert all(0 <= line["covered"] <= 1 for line in tables["coverage"])
    assert all(cell.samples == 4 for cell in cells_of(tables["coverage"]))
    text = report(tables, "today.")
    for words in (
        "| three steps* | 200 | L1 | 9.25 |",
        "| Spiegelhalter |",
        "| debiased L2 | different | 0.0",
        "| L2 | 200 | yes | 2 |",
        "ks_error",
    ):
        assert words in text
    assert {"coverage", "estimators", "tasks", "comparisons", "tests"} == set(marked_parts(tables))
    page = coverage.PAGE.read_text(encoding="utf8")
    assert all(f"<!-- {part}: written by reproduce/coverage.py -->" in page for part in marked_parts(tables))


def line(**given):
    whole = {"target": "L1", "world": "a", "n": 1000, "block": 0, "truth": 0.05, "samples": 400, "tuned": 0}
    return {**whole, "covered": 0.95, "low_above": 0.01, "high_below": 0.04, "width": 0.1, **given}


def test_cells_that_fall_short_come_first_and_chance_is_told():
    lines = [line(), line(world="b", covered=0.92), line(world="c", covered=0.8), line(world="d", covered=0.928)]
    shown = bad_cells({"coverage": lines})
    assert shown[0].startswith("3 of 4 cells missed their target; 1 significantly")
    assert [row.split(" | ")[1] for row in shown if row.startswith("| L1")] == ["c"]  # b and d may well be chance
    few = bad_cells({"coverage": [line(samples=10, covered=0.8)]})
    assert "; 0 significantly" in few[0]
    assert few[-1].endswith("| 0.15 |")
    fast = bad_cells({"coverage": [line(covered=0.1, promised=0)]})
    assert fast[0].startswith("0 of 0 cells")
    elsewhere = bad_cells({"regression_coverage": [line(target="ENCE", low_above=0.2, covered=0.8)]})
    assert "low above 0.200" in elsewhere[-1]


def test_worlds_of_other_scripts_may_be_spread_over_columns():
    found = {"world": "calibrated", "design": "two samples", "n_positive": 100.0, "n_unlabeled": 1000.0, "samples": 9.0}
    (cell,) = cells_of([{**found, "truth": 0.0, "covered": 1.0, "low_above": 0.0, "high_below": 0.0, "width": 0.1}])
    assert (cell.world, cell.n, cell.samples) == ("calibrated, two samples", 1100, 9)


def test_blocks_are_pooled_by_their_samples():
    (cell,) = cells_of([line(covered=1.0, samples=100), line(covered=0.9, samples=300, block=1)])
    assert cell.means["covered"] == pytest.approx(0.925)
    assert cell.samples == 400
    (zero,) = cells_of([line(truth=0.0, zero_excluded=0.2)])
    assert zero.faults == {"zero_excluded": 0.2}
