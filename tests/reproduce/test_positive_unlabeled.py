"""The reproduction script runs."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))


def test_the_quick_reproduction_writes_its_tables(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from reproduce import positive_unlabeled as script

    monkeypatch.setattr(script.data, "folder", lambda kind: None)  # the trained models take a minute
    monkeypatch.setattr(script, "SIZES", (10, 100))
    monkeypatch.setattr(script, "ANCHORS", {})
    script.main(["--quick", "--folder", str(tmp_path)])
    text = (tmp_path / "positive_unlabeled.md").read_text(encoding="utf8")
    assert "| less | 0.0744433 |" in text
    assert "left out" in text
    assert (tmp_path / "positive_unlabeled.csv").stat().st_size > 1000
    assert (tmp_path / "positive_unlabeled_figure1.png").stat().st_size > 1000
