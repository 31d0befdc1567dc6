"""Batches of any shape become rows."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.integrations.training_batches import batch_rows


def test_events_classes_and_pixels():
    y, p = batch_rows([[0.2, 0.7]], [[0, 1]], None)
    assert (y.tolist(), p.tolist()) == ([0, 1], [0.2, 0.7])
    pixels = np.zeros((1, 3, 2, 2))
    pixels[:, 1] = 1.0
    y, p = batch_rows(pixels, [[[1, 0], [-1, 1]]], -1)
    assert (y.tolist(), p.tolist()) == ([1, 0, 1], [1.0, 1.0, 1.0])  # whether the top class was right


def test_a_batch_may_be_left_out_whole():
    y, p = batch_rows(np.full((2, 3), 1 / 3), [-1, -1], -1)
    assert len(y) == len(p) == 0


def test_wrong_shapes_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="shape of target"):
        batch_rows(np.zeros((2, 3)), np.zeros(3), None)
