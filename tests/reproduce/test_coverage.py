"""The report of measured coverage: a small run of its script, read back from its own CSV."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
coverage = pytest.importorskip("reproduce.coverage", reason="the scripts of the repository are not beside the tests")


def test_a_small_run_is_reported_and_goes_on_where_it_stopped(tmp_path, monkeypatch):
    from reproduce.coverage_report import report, short, tests

    from reproduce import coverage_designs

    for name, value in {
        "BLOCK": 3,
        "DRAWS": 19,
        "SIZE_SAMPLES": 3,
        "OTHER_SIZE_SAMPLES": 2,
        "FIGURE_SAMPLES": 3,
        "WORLD_SAMPLES": 3,
    }.items():
        monkeypatch.setattr(coverage, name, value)
    monkeypatch.setattr(coverage_designs, "SAMPLES", 2)
    monkeypatch.setattr(coverage_designs, "DRAWS", 19)
    names = list(coverage.the_worlds())[-2:]
    tasks = {
        "coverage": (coverage.cell, [(name, n, 0) for name in names for n in (200, 1000)]),
        "coverage_size": (coverage.size_task, [(names[1], 200)]),
        "coverage_power": (coverage.power_task, [("Spiegelhalter", *s) for s in list(coverage.power_worlds())[:3]]),
        "coverage_designs": (coverage_designs.design_task, coverage_designs.designs()[::6]),
        "coverage_compare": (coverage_designs.compare_task, coverage_designs.comparisons()[2:7:4]),
        "coverage_elsewhere": (coverage_designs.elsewhere_task, [("rare events, calibrated", 200)]),
    }
    tables = {}
    for name, (what, some) in tasks.items():
        with ThreadPoolExecutor(1) as pool:
            coverage.measure(pool, what, some[:1], tmp_path / f"{name}.csv")
            coverage.measure(pool, what, some, tmp_path / f"{name}.csv")
        tables[name] = coverage.read_csv(tmp_path / f"{name}.csv")
        assert [tuple(line.values())[: len(some[0])] for line in tables[name]] == some
    assert all(0 <= line["cover L1"] <= 1 for line in tables["coverage"])
    text = report(tables, "today.")
    assert "| densenet161_imgnet, calibrated | 1000 | 0.00 |" in text
    assert "| Spiegelhalter |" in text
    assert "| debiased L2 | different | 0.0" in text
    assert "| rare events, calibrated | 200 |" in text
    assert any("densenet161_imgnet" in line for line in short(tables))
    assert any("Spiegelhalter" in line for line in tests(tables))
