"""The study of the default test of forecasts."""

import numpy as np
import pytest

import calibrant as cal
from reproduce import forecast_tests


def test_every_world_has_forecasts_of_its_kind():
    kinds = {task[0] for task in forecast_tests.tasks(4)["level"]}
    assert {kind.split()[0] for kind in kinds} >= {"quantiles", "draws", "gaussian", "law", "counted", "tied-draws"}
    for kind in kinds:
        data = forecast_tests.calibrated(kind, np.random.default_rng(0), 30)
        assert len(data) == 30
    tied = forecast_tests.calibrated("tied-quantiles poisson 2 5", np.random.default_rng(0), 200)
    assert np.mean(tied.y_true[:, None] == tied.values) > 0.1


def test_other_tests_are_the_classical_ones():
    rng = np.random.default_rng(1)
    found = [
        forecast_tests.others_reject(cal.Gaussian(k * rng.normal(size=400), np.zeros(400), np.ones(400)))
        for k in (1.5, 1.5)
    ]
    assert np.all(found)
    narrow = forecast_tests.faulty("quantiles 3", rng, 400, "factor", 1.6)
    assert forecast_tests.others_reject(narrow) == (True,)


@pytest.mark.parametrize("kind", ["gaussian", "3", "draws", "poisson", "outputs"])
def test_clusters_are_calibrated_one_by_one(kind):
    rng = np.random.default_rng(2)
    data = forecast_tests.clustered(kind, rng, "300 4", 0.9, "factor", 1.0)
    low, high = data.pit()
    assert np.mean((low + high) / 2) == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / 300))
    assert len(data) == (300 if kind == "outputs" else 1200)
