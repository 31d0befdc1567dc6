"""The test by learned maps: level, power, refusals."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import LearnedTest
from tests.inference.class_worlds import sample


@pytest.mark.no_cover
def test_the_level_is_exact():
    p_values = np.array([LearnedTest(99, parts=3, seed=k).test(sample(90, 3, seed=k)[0]).p_value for k in range(40)])
    assert np.mean(p_values <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)
    assert 0.3 < p_values.mean() < 0.7


def test_a_wrong_temperature_is_found():
    found = cal.calibration_test(sample(800, 4, temperature=1.5)[0], method=LearnedTest(199))
    assert found.p_value <= 0.01
    assert found.statistic > 2
    assert found == LearnedTest(199).test(sample(800, 4, temperature=1.5)[0])


def test_impossible_labels_are_found():
    p = np.tile([0.5, 0.5, 0.0], (60, 1))
    assert LearnedTest(199).test(cal.Multiclass(np.tile([0, 1, 2], 20), p)).p_value == 0.005


def test_clusters_and_weights_are_refused():
    data, _ = sample(50)
    for extra in ({"group": np.arange(50)}, {"weight": np.arange(50) + 1.0}):
        with pytest.raises(cal.InvalidPredictions, match="independent"):
            cal.inference.LearnedTest().test(cal.Multiclass(data.y_true, data.y_prob, **extra))
