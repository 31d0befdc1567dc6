"""The test of whole vectors: level, power, what it says and what it refuses."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import VectorTest
from calibrant.inference.several_classes.vector_test import default_draws
from tests.inference.class_worlds import sample


@pytest.mark.no_cover
@pytest.mark.parametrize(("classes", "n"), [(3, 100), (10, 200), (50, 100)])
def test_the_level_is_exact(classes, n):
    p_values = [VectorTest(99).test(sample(n, classes, seed=k)[0]).p_value for k in range(80)]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 80)
    assert 0.35 < np.mean(p_values) < 0.65


def test_a_wrong_temperature_is_found_and_named():
    found = cal.calibration_test(sample(1000, 5, temperature=1.3)[0])
    assert found.p_value <= 0.01
    assert found.details["temperature of all classes"] <= 0.01
    assert list(found.details.values()) == sorted(found.details.values())
    assert found.to_dict()["details"] == found.details


def test_wrong_class_frequencies_are_found():
    data, _ = sample(1000, 5)
    p = data.y_prob * [2, 1, 1, 1, 1]
    found = VectorTest(199).test(cal.Multiclass(data.y_true, p / p.sum(axis=1, keepdims=True)))
    assert found.p_value == found.details["class frequencies, worst class"] == 0.005


def test_impossible_labels_are_found_and_possible_ones_are_not():
    p = np.tile([0.5, 0.5, 0.0], (40, 1))
    labels = np.tile([0, 1], 20)
    assert cal.calibration_test(cal.Multiclass(labels, p)).p_value > 0.05
    labels[3] = 2
    assert cal.calibration_test(cal.Multiclass(labels, p)).p_value == 0.001


def test_the_order_of_rows_does_not_matter_and_the_seed_decides():
    data, _ = sample(400, 4, temperature=1.1)
    rows = np.random.default_rng(0).permutation(400)
    assert VectorTest(99).test(data) == VectorTest(99).test(data.take(rows))
    assert VectorTest(99).test(data).details != VectorTest(99, seed=1).test(data).details


def test_few_rows_and_two_classes():
    assert 0 < cal.calibration_test(cal.Multiclass([0, 1], [[0.6, 0.4], [0.3, 0.7]])).p_value <= 1


def test_draws_by_default():
    assert (default_draws(20_000), default_draws(20_001)) == (999, 499)


def test_what_it_cannot_answer_is_refused():
    data, _ = sample(50)
    with pytest.raises(cal.InvalidPredictions, match="group"):
        VectorTest().test(cal.Multiclass(data.y_true, data.y_prob, group=np.arange(50)))
    with pytest.raises(cal.InvalidPredictions, match="weight"):
        cal.calibration_test(cal.Multiclass(data.y_true, data.y_prob, weight=np.arange(50) + 1.0))
    with pytest.raises(cal.InvalidPredictions, match="Multiclass"):
        VectorTest().test(data.top_label())
    with pytest.raises(TypeError, match="several classes"):
        cal.calibration_test(data.top_label(), method=VectorTest())
    with pytest.raises(TypeError, match="several classes"):
        cal.calibration_test(cal.BinTable.of(data.top_label(), cal.table.Distinct()), method=VectorTest())
    with pytest.raises(TypeError, match="outcomes"):
        cal.calibration_test(data, method=cal.inference.MultiScale())
    with pytest.raises(ValueError, match="whole number"):
        VectorTest(draws=0)
    weighted = cal.Multiclass(data.y_true, data.y_prob, weight=np.full(50, 2.0))
    assert VectorTest(9).test(weighted) == VectorTest(9).test(data)
