"""The study of few labels, or none: its worlds, and that its cells and pages are made."""

import json

import numpy as np
import pytest

from reproduce import labels


@pytest.mark.parametrize("name", [*labels.MEANS, *labels.ERRORS, *labels.LEVELS])
def test_worlds_have_the_rate_that_their_truth_says(name):
    data, y = labels.sampled(name, 60, 1)
    assert 15 <= data.known.sum() <= 110
    rows = labels.drawn(name, 40_000, np.random.default_rng(0))
    assert rows["y"].mean() == pytest.approx(rows["h"].mean(), abs=0.03)
    assert np.array_equal(data.gold[data.known], y[data.known])


def test_cells_and_the_page_are_made(monkeypatch, tmp_path):
    monkeypatch.setattr(labels, "truth", lambda name: {"accuracy": 0.6, "L1": 0.05})
    (row,) = labels.cell("useless judge", 50, range(2), ("accuracy",))
    assert row["samples"] == 2
    assert 0.8 < row["ratio"] < 1.3
    none = labels.without("label shift, told", range(2), 0)
    assert none["world"] == "label shift, told"
    monkeypatch.setattr(labels, "KEPT", tmp_path / "labels.json")
    monkeypatch.setattr(labels, "OUTPUT", tmp_path / "labels.md")
    labels.KEPT.write_text(json.dumps({"means": [row], "none": [none]}), encoding="utf8")
    monkeypatch.setattr("sys.argv", ["labels", "2", "level"])
    labels.main()
    page = labels.OUTPUT.read_text(encoding="utf8")
    assert "| accuracy | useless judge | 50 |" in page
    assert all(f"| {name} | 200 | 2 |" in page for name in labels.LEVELS)
