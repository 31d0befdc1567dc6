"""Rows of a task: sums of a cell by hand, and effective numbers of rows."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from calibrant.numerics.rows import (
    SUMS,
    Mass,
    Rows,
    design_effects,
    effective_n,
    importance_weights,
    mean_and_error,
    variance_of_mean,
    weighted_rows,
)

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


def test_equal_weights_are_as_many_rows_whatever_their_unit():
    assert effective_n(None, 7) == 7
    assert effective_n(np.full(7, 0.3), 7) == pytest.approx(7)


def test_kish_by_hand():
    assert effective_n(np.array([1.0, 1.0, 4.0]), 3) == pytest.approx(36 / 18)
    assert Mass.of(np.array([1.0, 2.0]), 2) == (3.0, 5.0)
    assert Mass(0.0, 0.0).effective_n == 0


def test_importance_weights_have_no_unit_and_add_up_to_the_effective_number_of_rows():
    weight = np.array([1.0, 1.0, 4.0])
    for unit in (1e-150, 0.1, 1, 7, 1e150):
        assert importance_weights(unit * weight) == pytest.approx(weight * (2 / 6))
    assert importance_weights(None) is None
    assert importance_weights(np.full(5, 0.1)) is None
    assert importance_weights(np.array([0.3, 0.1 + 0.2])) is None  # the same up to rounding


def test_importance_weights_of_entries_that_stand_for_more_rows_add_up_to_these():
    counts = np.array([3.0, 1.0, 2.0])
    assert importance_weights(counts, 6.0) is counts
    assert importance_weights(0.1 * counts, 6.0) == pytest.approx(counts)
    assert importance_weights(np.ones(2), 6.0) == pytest.approx([3, 3])


def test_rows_without_weight_next_to_the_largest_are_none():
    np.testing.assert_array_equal(weighted_rows(np.array([0.0, 1e-300, 1e70, 1.0])), [2, 3])


def test_the_variance_of_a_mean_is_unbiased_and_unknown_from_one_row():
    rng = np.random.default_rng(0)
    rows = rng.random((20_000, 5)) < 0.3
    mean = rows.mean(axis=1)
    found = variance_of_mean(mean, mean, np.full(len(mean), 5.0))
    assert found.mean() == pytest.approx(0.3 * 0.7 / 5, rel=0.02)
    assert found == pytest.approx(rows.var(axis=1, ddof=1) / 5)
    assert np.isnan(variance_of_mean(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.0, 1.0]))).all()


def test_the_error_of_a_mean_counts_clusters_once():
    values, weight = np.arange(10.0), np.ones(10)
    assert mean_and_error(values, weight) == pytest.approx((4.5, values.std() / np.sqrt(10)))
    doubled = mean_and_error(np.repeat(values, 2), np.ones(20), np.repeat(np.arange(10), 2))
    assert doubled == pytest.approx(mean_and_error(values, weight))


def test_rows_that_go_along_count_as_one_and_rows_that_cancel_as_each():
    reach = np.array([0.4, 0.3])
    alike, apart = reach, reach * [1, -1]
    products = np.array(
        [[(a * a).sum(), (a * reach).sum(), (reach**2).sum(), (reach**4).sum()] for a in (alike, apart)]
    )
    found = design_effects(products.T, np.array([0.7, 0.7]), np.array([0, 1]), 2)
    within = 0.25 - 0.07**2 / 0.25  # of the second: what does not go along, next to what two rows could hold back
    likeness = 1 - min(within / (0.25 * (1 - (0.4**4 + 0.3**4) / 0.25**2)), 1)
    assert found == pytest.approx([0.49 / 0.25, 1 + likeness * (0.49 / 0.25 - 1)])
    assert design_effects(np.zeros((4, 1)), np.zeros(1), np.zeros(1, np.intp), 1) == [1.0]


def test_a_cluster_of_certain_predictions_does_not_change_how_alike_rows_are():
    products, reach = np.array([[4.0, 3.0], [2.5, 1.0], [2.0, 3.0], [1.0, 4.0]]), np.array([2.0, 3.0])
    found = design_effects(products, reach, np.zeros(2, np.intp), 1)
    more = design_effects(np.c_[products, np.zeros(4)], np.r_[reach, 0.0], np.zeros(3, np.intp), 1)
    assert more == pytest.approx(found, rel=1e-12)
    assert 1 < found < 2.6
