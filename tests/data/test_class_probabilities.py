"""Matrices with one column per class."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.class_probabilities import class_probabilities, label_shares, of_logits


def test_rows_may_miss_a_sum_of_one_by_rounding():
    nearly = np.array([[0.5, 0.5009]])
    assert class_probabilities("p", nearly, clip=False) is nearly
    with pytest.raises(cal.InvalidPredictions, match=r"p must have rows that sum to 1, but 1 of 1 .*logits"):
        class_probabilities("p", [[0.5, 0.502]], clip=False)
    np.testing.assert_array_equal(class_probabilities("p", [[1 + 1e-9, 0.0]], clip=True), [[1.0, 0.0]])
    with pytest.raises(cal.InvalidPredictions, match=r"p must lie in \[0, 1\], but 1 of 1 .*clip=True"):
        class_probabilities("p", [[1 + 1e-9, 0.0]], clip=False)
    with pytest.raises(cal.InvalidPredictions, match=r"p must lie in \[0, 1\], but 1 of 1"):
        class_probabilities("p", [[1.5, -0.5]], clip=False)


def test_logits_are_normalised_without_overflow():
    np.testing.assert_allclose(of_logits("z", [[1000.0, 1000.0], [-1e5, 0.0]]), [[0.5, 0.5], [0.0, 1.0]])
    with pytest.raises(cal.InvalidPredictions, match="z needs one column per class"):
        of_logits("z", [[1.0], [2.0]])


def test_outcomes_are_one_class_or_probabilities_of_classes():
    np.testing.assert_array_equal(label_shares(np.array([[1, 0], [0, 1]])), np.eye(2))
    np.testing.assert_array_equal(label_shares(np.array([[0.25, 0.75]])), [[0.25, 0.75]])
    for wrong in ([[1, 1]], [[0, 0]], [[2, -1]]):
        with pytest.raises(cal.InvalidPredictions, match=r"single 1 per row, or probabilities .*, but 1 of 1"):
            label_shares(np.array(wrong))
