"""The study of repairs of forecasts and of few clusters."""

import numpy as np
import pytest
from reproduce.forecast_repairs import cluster_truth, clustered, covered, rejected, shifted


def test_cells_are_measured():
    few = covered(10, 5, 0.5, 1.0, 0.0, "quantiles", 2)
    assert set(few) == {"coverage", "scale factor", "ENCE", "interval error", "PIT error", "least"}
    assert few["ENCE"] == ""
    assert rejected("normal", 0.7, 5, 100, 1)["untouched"] == 1
    assert shifted("trend", 60, 1)["gap after"] < shifted("trend", 60, 1)["gap before"]


def test_truths_are_those_of_constant_ratios():
    truth = cluster_truth(1.3, 0.0)
    assert truth["scale factor"] == pytest.approx(1.3)
    assert truth["ENCE"] == pytest.approx(0.3)
    assert cluster_truth(1.0, 0.0)["interval error"] == pytest.approx(0, abs=1e-9)
    data = clustered(np.random.default_rng(0), (12, 10, 0.5, 1.0, 0.0, "uneven"))
    size = np.bincount(data.group)
    assert size.sum() ** 2 / (size @ size) >= 6
