"""Worlds in which the lower bound of the variational error is measured beyond those of the paper."""

import numpy as np
import pytest
from reproduce.variational_worlds import OTHERS, draw_other, other_truth


@pytest.mark.parametrize("name", OTHERS)
def test_outcomes_occur_as_the_world_says(name):
    classes, draw = OTHERS[name]
    f, h, weight = draw(np.random.default_rng(1), 20_000)
    again, y, same = draw_other(np.random.default_rng(1), name, 20_000)
    np.testing.assert_array_equal(again, f)
    np.testing.assert_array_equal(np.zeros(0) if same is None else same, np.zeros(0) if weight is None else weight)
    true = np.stack([1 - h, h], axis=1) if classes == 2 else h
    assert true.sum(axis=1) == pytest.approx(1)
    gaps = np.eye(classes)[y] - true
    assert np.abs(gaps.mean(axis=0) / np.sqrt((true * (1 - true)).mean(axis=0) / 20_000)).max() < 4


def test_true_errors():
    assert other_truth("3 % events, calibrated", "L1") == other_truth("3 % events, calibrated", "KL") == 0
    assert other_truth("shares of ten votes, calibrated", "L2") == 0
    f, _, weight = OTHERS["7 % predicted, half occur, weights"][1](np.random.default_rng(0), 10**6)
    mean = weight @ f / weight.sum()
    assert other_truth("7 % predicted, half occur, weights", "L1") == pytest.approx(mean / 2)
    assert other_truth("7 % predicted, half occur, weights", "squared") >= mean**2 / 4
    for name in ("rare classes, .6x", "wrong in half of the simplex, weights"):
        assert other_truth(name, "L1") > other_truth(name, "L2") > 0.02
