"""How much less clustered rows say."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.design_effect import design_effect, row_clusters, rows_that_count


def test_copies_say_nothing_new_and_independent_rows_count_in_full():
    rng = np.random.default_rng(0)
    once = rng.normal(size=(400, 2))
    labels = np.repeat(np.arange(400), 3)
    copies = list(np.repeat(once, 3, axis=0).T)
    assert design_effect(copies, labels) == pytest.approx(3)
    assert rows_that_count(None, copies, labels, 1200) == pytest.approx(400)
    assert design_effect(once.T, None) == 1
    assert design_effect([np.zeros(4)], np.zeros(4, dtype=int)) == 1
    assert rows_that_count(np.array([1.0, 1.0, 0.0]), once[:3].T, None, 3) == pytest.approx(2)


def test_clusters_are_groups_or_rows_of_several_outputs():
    zero, one = np.zeros((3, 2)), np.ones((3, 2))
    assert row_clusters(cal.Gaussian(zero, zero, one), 6).tolist() == [0, 0, 1, 1, 2, 2]
    assert row_clusters(cal.Gaussian(zero, zero, one, group=["b", "a", "b"]), 6).tolist() == [1, 1, 0, 0, 1, 1]
    assert row_clusters(cal.Gaussian(zero[:, 0], zero[:, 0], one[:, 0]), 3) is None
