"""The report of measured coverage: a small run of its script, read back from its own CSV."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
coverage = pytest.importorskip("reproduce.coverage", reason="the scripts of the repository are not beside the tests")


def test_a_small_run_is_reported(tmp_path, monkeypatch):
    from reproduce.coverage_report import report, short

    monkeypatch.setattr(coverage, "BLOCK", 3)
    monkeypatch.setattr(coverage, "DRAWS", 19)
    names = list(coverage.the_worlds())[-2:]
    lines = [coverage.cell((name, n, 0)) for name in names for n in (200, 1000)]
    powers = [coverage.power_task(("Spiegelhalter", n, error, 3)) for n, error in ((1000, 0.05), (5000, 0.02))]
    coverage.write_csv(tmp_path / "cells.csv", lines)
    coverage.write_csv(tmp_path / "powers.csv", powers)
    cells = coverage.read_csv(tmp_path / "cells.csv")
    assert [line["world"] for line in cells] == [name for name in names for _ in range(2)]
    assert all(0 <= line["cover L1"] <= 1 for line in cells)
    text = report(cells, coverage.read_csv(tmp_path / "powers.csv"), "today.")
    assert "| densenet161_imgnet, calibrated | 1000 | 0.00 |" in text
    assert "| Spiegelhalter |" in text
    assert any("densenet161_imgnet" in line for line in short(cells))
