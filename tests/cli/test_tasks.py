"""Columns become predictions."""

import numpy as np
import pytest

from calibrant.cli.columns import Columns
from calibrant.cli.tasks import TRUTH, task_from
from calibrant.data.validation import InvalidPredictions

NUMBERS = {TRUTH: np.array([0.5, 1.5]), "a": np.array([0.0, 1.0]), "b": np.array([1.0, 2.0])}


def test_every_task_is_made_of_its_columns():
    made = task_from(NUMBERS, Columns("y", members=("a", "b")))
    np.testing.assert_array_equal(made.draws, [[0, 1], [1, 2]])
    made = task_from(NUMBERS, Columns("y", quantiles=("0.9=b", "0.1=a")))
    np.testing.assert_array_equal(made.levels, [0.1, 0.9])
    np.testing.assert_array_equal(made.values, [[0, 1], [1, 2]])


def test_classes_are_the_numbers_in_the_names_of_columns():
    found = {TRUTH: np.array([0, 1]), "p1": np.array([0.3, 0.6]), "p0": np.array([0.7, 0.4])}
    made = task_from(found, Columns("y", ("p1", "p0")))
    np.testing.assert_allclose(made.one_vs_rest()[1].y_prob, [0.3, 0.6])
    np.testing.assert_array_equal(made.one_vs_rest()[1].y_true, [0, 1])


def test_known_positives_come_first_with_their_weights():
    found = {TRUTH: np.array(["u", "k", "u"], dtype=object), "p": np.array([0.1, 0.8, 0.3]), "w": np.array([1, 2, 3])}
    columns = Columns("y", ("p",), labelled="k", prior=0.4, weight="w")
    made = task_from(found, columns)
    np.testing.assert_allclose(made.positive, [0.8])
    np.testing.assert_allclose(made.unlabeled, [0.1, 0.3])
    np.testing.assert_allclose(made.positive_weight, [2])
    with pytest.raises(InvalidPredictions, match="No row of column 'y' is 'k'"):
        task_from({**found, TRUTH: np.array(["u", "u", "u"])}, columns)
    with pytest.raises(InvalidPredictions, match="no unlabeled rows"):
        task_from({**found, TRUTH: np.array(["k", "k", "k"])}, columns)
