"""Binary estimators averaged over classes."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal


def test_classwise_averages_one_against_the_rest():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), 500)
    y = rng.integers(0, 3, 500)
    data = cal.Multiclass(y, probs)
    measured = cal.classwise(partial(cal.ece, bins=cal.EqualWidth(10)), data)
    parts = [cal.ece((y == k).astype(int), probs[:, k], bins=cal.EqualWidth(10)) for k in range(3)]
    assert measured == pytest.approx(np.mean(parts))
    assert list(measured.details["classes"].values()) == pytest.approx(parts)


def test_classwise_wants_several_classes():
    with pytest.raises(TypeError, match="Multiclass"):
        cal.classwise(cal.ece, cal.Binary([0, 1], [0.2, 0.7]))


def test_labels_and_a_matrix_are_as_good_as_multiclass_predictions():
    rng = np.random.default_rng(1)
    p, y = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200)
    found = cal.classwise(cal.brier, y, p)
    assert found == cal.classwise(cal.brier, cal.Multiclass(y, p))
    assert 3 * found == pytest.approx(float(cal.brier(cal.Multiclass(y, p))), rel=1e-12)
    assert found.name == "Classwise Brier score"
    with pytest.raises(TypeError, match="both y_true and y_prob"):
        cal.classwise(cal.ece, y)
    with pytest.raises(TypeError, match="not both"):
        cal.classwise(cal.ece, cal.Multiclass(y, p), p)


def test_order_of_rows_and_names_of_classes_do_not_matter():
    rng = np.random.default_rng(2)
    p, y = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200)
    order = rng.permutation(200)
    named = cal.Multiclass(np.array(["a", "b", "c"])[y], p, classes=["a", "b", "c"])
    assert cal.classwise(cal.ece, y[order], p[order]) == pytest.approx(float(cal.classwise(cal.ece, named)), rel=1e-12)
    assert list(cal.classwise(cal.ece, named).details["classes"]) == ["a", "b", "c"]


def test_predictions_that_are_certain_and_right_have_no_error():
    assert cal.classwise(cal.ece, [0, 1, 2, 1], np.eye(3)[[0, 1, 2, 1]]) == 0.0
