"""Bins of equal mass by a loop, sums of cells that an edge divides, and many sorted samples at once."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.data.predictions import Binary
from calibrant.numerics.equal_mass import (
    RunningWeight,
    SortedSamples,
    equal_count_edges,
    positions_of,
    require_inside,
    scores_at,
    sums_between,
)
from calibrant.numerics.rows import Rows
from calibrant.numerics.sorting import equal_mass_rows, sorted_rows

tied = st.lists(st.integers(0, 8).map(lambda k: k / 8), min_size=1, max_size=40).map(sorted)


def cuts_by_hand(weights, n):
    """Edge b goes behind the first cell with which the running weight, in exact fractions, reaches b / n of all."""
    running, cuts = Fraction(0), {0, len(weights)}
    reached = []
    for weight in weights:
        running += Fraction(weight)
        reached.append(running)
    for b in range(1, n):
        cuts.add(next(k for k, sofar in enumerate(reached, 1) if sofar >= running * b / n))
    return sorted(cuts)


@pytest.mark.no_cover
@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 12))
def test_weighted_cells_are_cut_where_the_running_weight_reaches_its_part(weights, n):
    weight = np.array(weights, float)
    squares = weight**2 + 0.5  # not those of rows of one weight, so that weights are not numbers of rows
    running = RunningWeight.of(weight, squares)
    assert not running.counts
    np.testing.assert_array_equal(running.cuts(n), cuts_by_hand(weights, n))


@pytest.mark.parametrize("unit", [0.1, 0.3, 1 / 3, 1e-9, 7e8])
@pytest.mark.parametrize("weights", [[1, 1, 1, 2, 2, 2, 3, 3, 3, 6, 6, 6], [2, 1] * 30, [3, 5, 2, 2, 4, 4] * 5])
def test_rounding_of_real_weights_moves_no_edge(unit, weights):
    # the running sums of 0.1 fall short of whole multiples, and exceed them, by a few roundings
    weight = unit * np.array(weights)
    for n in (2, 3, 4, 5, 6, 9, 10):
        running = RunningWeight.of(weight, weight**2)
        assert not running.counts
        np.testing.assert_array_equal(running.cuts(n), cuts_by_hand(weights, n))


@pytest.mark.no_cover
@given(tied, st.integers(1, 12), st.sampled_from([0.1, 1 / 3, 1.0, 2.5, 1e9]))
def test_rows_of_one_weight_are_cut_behind_the_row_of_rank_floor(key, n, unit):
    key = np.array(key)
    distinct, count = np.unique(key, return_counts=True)
    running = RunningWeight.of(unit * count, unit**2 * count)
    assert running.counts
    ends = np.cumsum(count)
    ranks = [len(key) * b // n for b in range(1, n)]
    expected = {0, len(distinct), *(int(np.sum(ends < rank)) + 1 for rank in ranks if rank > 0)}
    np.testing.assert_array_equal(running.cuts(n), sorted(expected))


def test_whole_weights_without_squares_are_numbers_of_rows():
    assert RunningWeight.of(np.array([1.0, 3.0])).counts
    assert not RunningWeight.of(np.array([1.0, 2.5])).counts
    # three rows in two bins: the first edge is behind the row of rank 1, where half the weight is not reached
    np.testing.assert_array_equal(RunningWeight.of(np.ones(3)).cuts(2), [0, 1, 3])
    np.testing.assert_array_equal(RunningWeight.of(np.ones(3), np.array([1.0, 1.0, 1.5])).cuts(2), [0, 2, 3])


def test_numbers_of_rows_too_large_for_products_of_integers_are_divided_too():
    assert RunningWeight.of(np.full(4, 2.0**56)).counts
    np.testing.assert_array_equal(RunningWeight.of(np.full(4, 2.0**56)).cuts(64), [0, 1, 2, 3, 4])


def test_a_cell_of_several_scores_is_divided_in_proportion_and_an_atom_never():
    weight = np.array([1.0, 4.0, 3.0])
    divided = RunningWeight.of(weight, atom=np.array([True, False, True]))
    np.testing.assert_allclose(divided.cuts(2), [0, 1.75, 3])  # 3 of the 4 make 1 into half of 8
    np.testing.assert_allclose(divided.cuts(4), [0, 1.25, 1.75, 3])
    np.testing.assert_array_equal(RunningWeight.of(weight).cuts(4), [0, 2, 3])
    first = RunningWeight.of(np.array([2.0, 4.0, 2.0]), atom=np.array([False, True, True]))
    np.testing.assert_allclose(first.cuts(8), [0, 0.5, 1, 2, 3])
    real = RunningWeight.of(np.array([0.5, 2.0, 1.5]), np.ones(3), atom=np.array([True, False, True]))
    np.testing.assert_allclose(real.cuts(2), [0, 1.75, 3])


@pytest.mark.no_cover
@given(tied, st.integers(1, 45))
def test_edges_of_equal_count_are_order_statistics(key, n):
    inner = {key[len(key) * b // n - 1] for b in range(1, n) if len(key) * b // n > 0}
    expected = [key[0], *sorted(inner - {key[-1]}), key[-1]]
    for dtype in (np.float64, np.float32):
        edges = equal_count_edges(np.array(key, dtype), n)
        assert edges.dtype == np.float64
        np.testing.assert_array_equal(edges, expected)


def test_edges_of_equal_count_begin_and_end_at_the_extreme_keys():
    np.testing.assert_array_equal(equal_count_edges(np.array([1.0, 2.0, 3.0, 4.0]), 2), [1, 2, 4])
    np.testing.assert_array_equal(equal_count_edges(np.array([1.0, 2.0, 2.0, 2.0]), 4), [1, 1, 2])
    np.testing.assert_array_equal(equal_count_edges(np.array([3.0]), 5), [3, 3])


@pytest.mark.no_cover
@given(tied, st.integers(1, 45))
def test_cuts_of_rows_never_part_ties_and_give_the_edges_of_equal_count(key, n):
    p = np.array(key)
    rows = sorted_rows(Rows(p, p, np.zeros(len(p), np.int8)))
    cuts = equal_mass_rows(rows, n)
    assert cuts[0] == 0
    assert cuts[-1] == len(p)
    assert all(p[cut - 1] < p[cut] for cut in cuts[1:-1])
    np.testing.assert_array_equal(np.append(p[0], p[cuts[1:] - 1]), equal_count_edges(p, n))
    assert set(cuts) == {0} | {int(np.sum(p <= p[len(p) * b // n - 1])) for b in range(1, n + 1) if len(p) * b // n}


def test_more_bins_than_rows_leave_a_bin_per_row():
    p = np.array([0.1, 0.2, 0.4])
    rows = sorted_rows(Rows(p, p, np.zeros(3, np.int8)))
    np.testing.assert_array_equal(equal_mass_rows(rows, 3), [0, 1, 2, 3])
    np.testing.assert_array_equal(equal_mass_rows(rows, 100), [0, 1, 2, 3])


LOW, HIGH = np.array([0.1, 0.2, 0.5, 0.8]), np.array([0.1, 0.4, 0.5, 0.9])


@pytest.mark.parametrize(
    ("edge", "position"),
    [(0.05, 0), (0.1, 1), (0.15, 1), (0.2, 1), (0.25, 1.25), (0.4, 2), (0.45, 2), (0.5, 3), (0.85, 3.5), (0.95, 4)],
)
def test_an_edge_as_a_position(edge, position):
    np.testing.assert_allclose(positions_of(np.array([0, edge, 1]), LOW, HIGH), [0, position, 4])


@pytest.mark.parametrize(
    ("position", "score"), [(1, 0.1), (1.25, 0.25), (1.5, 0.3), (2, 0.4), (3, 0.5), (3.5, 0.85), (4, 0.9)]
)
def test_the_highest_score_left_of_a_position(position, score):
    assert scores_at(np.array([float(position)]), LOW, HIGH) == pytest.approx(score)


@given(
    st.lists(st.floats(0, 5), min_size=1, max_size=8),
    st.lists(st.floats(0, 1), max_size=6),
)
def test_sums_between_positions_are_those_of_the_parts_of_each_cell(cells, parts):
    size = len(cells)
    positions = np.array([0.0, *sorted(part * size for part in parts), size])
    sums = np.array([cells, np.ones(size)])
    expected = [
        [
            sum(row[k] * max(0.0, min(right, k + 1) - max(left, k)) for k in range(size))
            for left, right in pairwise(positions)
        ]
        for row in sums
    ]
    np.testing.assert_allclose(sums_between(sums, positions), expected, atol=1e-12)
    np.testing.assert_allclose(sums_between(sums, positions).sum(axis=1), sums.sum(axis=1))


def test_keys_outside_the_edges_are_refused_and_those_on_them_are_not():
    edges = np.array([0.2, 0.5, 0.8])
    require_inside(np.array([0.2, 0.8]), edges)
    for key, shown in (([0.1, 0.8], r"\[0.1, 0.8\]"), ([0.2, 0.9], r"\[0.2, 0.9\]")):
        with pytest.raises(ValueError, match=rf"lie in {shown}, outside the edges \[0.2, 0.8\]"):
            require_inside(np.array(key), edges)


row = st.tuples(st.one_of(st.floats(0, 1), st.integers(0, 4).map(lambda k: k / 4)), st.booleans())
matrices = st.integers(1, 12).flatmap(lambda n: st.lists(st.lists(row, min_size=n, max_size=n), min_size=1, max_size=5))


def arrays(matrix):
    scores = np.array([[score for score, _ in sample] for sample in matrix], dtype=float)
    return scores, np.array([[outcome for _, outcome in sample] for sample in matrix], dtype=np.int8)


@pytest.mark.no_cover
@given(matrices)
def test_samples_are_sorted_by_score_and_keep_their_outcomes(matrix):
    scores, outcomes = arrays(matrix)
    samples = SortedSamples.of(scores, outcomes)
    for sample in range(len(scores)):
        order = np.lexsort((outcomes[sample], scores[sample]))
        assert np.array_equal(samples.key[sample], scores[sample][order])
        assert np.array_equal(samples.outcome[sample], outcomes[sample][order])


@pytest.mark.no_cover
@given(matrices, st.integers(1, 15))
def test_cuts_of_equal_mass_are_those_of_each_sample(matrix, n_bins):
    scores, outcomes = arrays(matrix)
    cuts = SortedSamples.of(scores, outcomes).equal_mass_cuts(n_bins)
    for sample, found in enumerate(np.broadcast_to(cuts, (len(scores), n_bins + 1))):
        rows = sorted_rows(Binary(outcomes[sample], scores[sample]).parts()[0])
        assert np.array_equal(np.unique(found), equal_mass_rows(rows, n_bins))
        alone = SortedSamples.of_rows(rows).equal_mass_cuts(n_bins)
        assert np.array_equal(np.unique(alone), np.unique(found))


@pytest.mark.no_cover
@given(matrices, st.lists(st.floats(0, 1), max_size=5).map(sorted))
def test_cuts_at_edges_count_the_scores_up_to_them(matrix, inner):
    scores, outcomes = arrays(matrix)
    samples, edges = SortedSamples.of(scores, outcomes), np.array([0.0, *inner, 1.0])
    cuts = np.broadcast_to(samples.cuts_at(edges), (len(scores), len(edges)))
    assert np.array_equal(cuts[:, 1:-1], [[np.sum(sample <= edge) for edge in inner] for sample in scores])
    assert np.all(cuts[:, 0] == 0)
    assert np.all(cuts[:, -1] == scores.shape[1])


@given(matrices, st.integers(1, 6), st.data())
def test_some_of_the_samples_have_the_sums_they_have_among_all(matrix, n_bins, data):
    scores, outcomes = arrays(matrix)
    samples = SortedSamples.of(scores, outcomes)
    which = np.array(data.draw(st.lists(st.sampled_from(range(len(scores))), min_size=1, unique=True)))
    every = np.broadcast_to(samples.equal_mass_cuts(n_bins), (len(scores), n_bins + 1))
    cuts = samples.equal_mass_cuts(n_bins, which)
    assert np.array_equal(samples.observed(cuts, which), samples.observed(every)[which])
    assert np.array_equal(samples.predicted(cuts, which), samples.predicted(every)[which])
    assert samples.observed(every).sum(axis=1).tolist() == outcomes.sum(axis=1).tolist()
    assert samples.predicted(every).sum(axis=1) == pytest.approx(scores.sum(axis=1))


@given(matrices)
def test_runs_of_equal_scores_end_where_the_score_changes(matrix):
    scores, outcomes = arrays(matrix)
    samples = SortedSamples.of(scores, outcomes)
    for sample in range(len(scores)):
        cuts = samples.run_ends(sample)
        distinct, counts = np.unique(scores[sample], return_counts=True)
        assert np.array_equal(samples.key[sample][cuts[:-1]], distinct)
        assert np.array_equal(np.diff(cuts), counts)
        alone = SortedSamples.of_rows(sorted_rows(Binary(outcomes[sample], scores[sample]).parts()[0]))
        assert np.array_equal(alone.run_ends(0), cuts)
