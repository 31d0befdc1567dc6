"""The measurements of several classes: true errors of the worlds, and a small run that goes on where it stopped."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
coverage = pytest.importorskip("reproduce.multiclass_coverage", reason="the scripts are not beside the tests")
worlds = pytest.importorskip("reproduce.multiclass_worlds")


def test_true_errors_of_a_temperature_and_of_calibrated_worlds():
    world = worlds.ClassWorld("gauss", 3, "temperature", 0.167)
    assert world.vector_error(1) == pytest.approx(0.0759, rel=0.02)
    assert 0 < world.classwise_error(1) < world.classwise_error(2) < world.vector_error(1)
    assert world.tuned
    for error in worlds.ERRORS:
        p, truth = worlds.ClassWorld("peaked", 5, error, 0.2).draw(np.random.default_rng(0), 50)
        assert np.allclose(truth.sum(axis=1), 1)
        assert (truth >= 0).all()
        assert np.allclose(p, truth) == (error == "calibrated")


def test_a_scaled_world_has_the_signal_asked_for():
    world = worlds.scaled("gauss", 4, "prior", 1000, 30)
    p, truth = world.draw(np.random.default_rng(1), 50_000)
    assert 1000 * ((truth - p) ** 2 / p).sum(axis=1).mean() == pytest.approx(30, rel=0.1)


def test_a_small_run_is_reported_and_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "RESULTS", tmp_path)
    monkeypatch.setattr(coverage, "INTERVALS", tmp_path / "intervals.csv")
    monkeypatch.setattr(coverage, "TESTS", tmp_path / "tests.csv")
    monkeypatch.setattr(coverage, "CLASSWISE", [("peaked", 3, 60, "temperature", 0.3)])
    monkeypatch.setattr(sys, "argv", ["multiclass_coverage", "--samples", "0.002", "--only", "classwise"])
    coverage.main()
    rows = coverage.read(tmp_path / "intervals.csv")
    assert [row["target"] for row in rows] == ["classwise L1", "classwise L2"]
    coverage.main()
    assert coverage.read(tmp_path / "intervals.csv") == rows
    coverage.append(tmp_path / "tests.csv", "level", [coverage.vector_test(worlds.ClassWorld("peaked", 3), 50, 2)])
    assert "| classwise L1 | peaked K=3 temperature 0.3 | 60 |" in coverage.report()
    assert "| VectorTest | peaked K=3 calibrated | 50 | 2 |" in coverage.report()
