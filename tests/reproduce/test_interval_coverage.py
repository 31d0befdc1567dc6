"""Simulations of regression and positive-unlabeled intervals: their truths, and that they go on where they stopped."""

import numpy as np
import pytest
from reproduce.resumable import markdown, measured

from reproduce import regression_coverage, unlabeled_coverage
from tests.pu.worlds import BETTER, LESS, TRUE_ERROR


def test_the_true_errors():
    assert regression_coverage.true_error("factor 1.3", "ence") == pytest.approx(0.3)
    assert regression_coverage.true_error("factor 1.3", "debiased_ence") == pytest.approx(0.3)
    assert regression_coverage.true_error("factor 1.3", "uce") == pytest.approx(0.69 * np.exp(0.5), rel=1e-3)
    assert unlabeled_coverage.true_error("too low and flat") == pytest.approx(TRUE_ERROR[LESS], abs=1e-5)
    assert unlabeled_coverage.true_error("nearly right") == pytest.approx(TRUE_ERROR[BETTER], abs=1e-5)
    assert unlabeled_coverage.true_error("calibrated, prior 0.2, unseen") == pytest.approx(0, abs=1e-9)


def test_cells_are_measured_once(tmp_path):
    calls = []

    def measure(name, n):
        calls.append(name)
        return {"value": n}

    for tasks in ([("a", 1)], [("a", 1), ("b", 2)]):
        rows = measured(tmp_path / "cells.csv", tasks, ("name", "n"), measure)
    assert calls == ["a", "b"]
    assert [row["name"] for row in rows] == ["a", "b"]
    assert markdown(rows, ("name", "value"), "value").splitlines()[2] == "| a | 1 |"


def test_cells_of_all_kinds_run():
    found = regression_coverage.spread_cell("ence", "calibrated", "normal", 100, 3)
    assert found["truth"] == 0
    assert 0 <= found["covered"] <= 1
    for design in regression_coverage.DESIGNS:
        assert regression_coverage.design_cell("ence", design, "factor 1.3", "t5", 100, 2)["truth"] == pytest.approx(
            0.3
        )
    assert regression_coverage.scale_cell("t5", 100, 5)["level"] <= 1
    assert regression_coverage.pit_cell(1.3, 100, 2)["truth"] > 0
    assert "called_different" in regression_coverage.compare_cell("calibrated", "normal", 200, 1)
    for design in unlabeled_coverage.DESIGNS:
        assert unlabeled_coverage.cell("calibrated", design, 100, 1000, 2)["truth"] == 0
    assert unlabeled_coverage.prior_cell("calibrated", 0.02, 1)["truth"] == 0
    assert "called_different" in unlabeled_coverage.compare_cell("calibrated", 100, 500, 1)
