"""The table of choices: every world, every estimator, and a count that the table bears out."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
choose = pytest.importorskip("reproduce.choose", reason="the scripts of the repository are not beside the tests")


def test_it_writes_its_table_and_counts_what_it_says(tmp_path, monkeypatch):
    monkeypatch.setattr(choose, "SIZES", [60])
    monkeypatch.setattr(choose, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["choose", "--repeats", "3"])
    choose.main()
    lines = (tmp_path / "choose.md").read_text(encoding="utf8").splitlines()
    rows = [line for line in lines if line.count("|") == 8 and "/" in line and "world" not in line]
    assert len(rows) == len(choose.MISCALIBRATED) + len(choose.CALIBRATED)
    assert all(row.count("**") == 2 for row in rows)
    assert "of 6 miscalibrated and in" in lines[-1]
    assert lines[-1].endswith("of 3 calibrated cells.")
