"""Rows of a task: what each adds to the sums of its cell, by hand."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from calibrant.numerics.rows import SUMS, Rows

P = np.array([0.25, 0.5, 0.75])
Y = np.array([0, 1, 1], np.int8)
WEIGHT = np.array([1.0, 2.0, 4.0])


def of_role(role, p, y, w):
    """The sums of one row, in the order of SUMS."""
    return {
        "both": [1, w, w**2, w * p, w * y, w * p**2, w * p * y, w * y**2],
        "population": [1, w, w**2, w * p, 0, w * p**2, 0, 0],
        "positives": [1, 0, 0, 0, w * y, 0, w * p * y, (w * y) ** 2],
    }[role]


@pytest.mark.parametrize("role", ["both", "population", "positives"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_the_sums_of_each_row_by_hand(role, weight):
    # the key decides the cell only, so it enters no sum; outcomes other than 0 and 1 tell y from its square
    rows = Rows(np.array([7.0, 8.0, 9.0]), P, np.array([0.0, 3.0, 1.0]), weight, role)
    weights = np.ones(3) if weight is None else weight
    expected = [of_role(role, p, y, w) for p, y, w in zip(P, [0.0, 3.0, 1.0], weights, strict=True)]
    np.testing.assert_array_equal(rows.sums(), np.transpose(expected))
    assert rows.sums().shape == (len(SUMS), 3)


def test_sums_are_double_whatever_the_precision_of_the_rows():
    p = np.array([0.1, 0.7], np.float32)
    sums = Rows(p, p, np.array([1, 0], np.int8)).sums()
    assert sums.dtype == np.float64
    np.testing.assert_array_equal(sums[SUMS.index("predicted_squares")], [float(p[0]) ** 2, float(p[1]) ** 2])


def test_fast_loops_are_for_unweighted_probabilities_with_outcomes_of_0_and_1():
    assert Rows(P, P, Y).plain
    assert Rows(P, P, Y).plain_binary
    assert not Rows(P, P, Y, WEIGHT).plain
    assert not Rows(P, P, Y, WEIGHT).plain_binary
    assert not Rows(P, P.copy(), Y).plain  # predicted must be the key itself
    assert Rows(P, P, Y.astype(float)).plain
    assert not Rows(P, P, Y.astype(float)).plain_binary
    for role in ("population", "positives"):
        assert Rows(P, P, Y, role=role).plain
        assert not Rows(P, P, Y, role=role).plain_binary


@pytest.mark.parametrize("which", [slice(1, 3), np.array([2, 0]), np.array([True, False, True])])
def test_taken_rows_keep_their_role_and_stay_plain(which):
    rows = Rows(P, P, Y, role="population").take(which)
    np.testing.assert_array_equal(rows.key, P[which])
    np.testing.assert_array_equal(rows.observed, Y[which])
    assert rows.plain
    assert rows.role == "population"
    apart = Rows(P, P**2, Y, WEIGHT).take(which)
    np.testing.assert_array_equal(apart.predicted, P[which] ** 2)
    np.testing.assert_array_equal(apart.weight, WEIGHT[which])
    assert apart.role == "both"
    np.testing.assert_array_equal(apart.sums(), Rows(P, P**2, Y, WEIGHT).sums()[:, which])


def test_rows_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Rows(P, P, Y).role = "population"
