"""Rows in the order of their score: runs of ties, sums between cuts, and the order of scores and outcomes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.numerics import sorting
from calibrant.numerics.rows import Rows
from calibrant.numerics.sorting import SortedRows, sort_with_outcomes, sorted_rows

ODD = [0.0, -0.0, 5e-324, 0.5, np.nextafter(0.5, 0), np.nextafter(0.5, 1), 1 - 2.0**-24, 1.0]
scores = st.one_of(st.floats(0, 1), st.sampled_from(ODD), st.integers(0, 5).map(lambda k: k / 5))
lists = st.lists(st.tuples(scores, st.integers(0, 1), st.integers(0, 4)), min_size=1, max_size=40)
kinds = st.sampled_from(["binary", "single", "population", "positives", "weighted", "weighted positives", "spread"])


def rows_of(rows, kind):
    p, y, w = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    y = y.astype(np.int8)
    if kind == "binary":
        return Rows(p, p, y)
    if kind == "single":
        p = p.astype(np.float32)
        return Rows(p, p, y)
    if kind in {"population", "positives"}:
        return Rows(p, p, np.ones_like(y), role=kind)
    if kind == "weighted positives":
        return Rows(p, p, np.ones_like(y), w, "positives")
    return Rows(p, p, y, w) if kind == "weighted" else Rows(p, p**2, 3.0 * y)


@settings(max_examples=50)
@given(lists, kinds)
def test_distinct_keys_have_the_sums_of_their_rows(rows, kind):
    rows = rows_of(rows, kind)
    key, sums = sorted_rows(rows).distinct()
    np.testing.assert_array_equal(key, np.unique(rows.key.astype(float) + 0.0))
    expected = [rows.sums()[:, rows.key == each].sum(axis=1) for each in key]
    np.testing.assert_allclose(sums.T, expected, rtol=1e-12, atol=1e-300)


@settings(max_examples=50)
@given(lists, kinds, st.data())
def test_sums_between_cuts_are_those_of_the_rows_between(rows, kind, data):
    ordered = sorted_rows(rows_of(rows, kind))
    n = len(ordered)
    inner = data.draw(st.sets(st.integers(1, n - 1))) if n > 1 else set()
    cuts = np.array([0, *sorted(inner), n])
    each = ordered.rows.sums()
    expected = [each[:, start:end].sum(axis=1) for start, end in itertools.pairwise(cuts)]
    np.testing.assert_allclose(ordered.between(cuts).T, expected, rtol=1e-12, atol=1e-300)


def test_sums_between_cuts_of_more_rows_than_a_chunk(monkeypatch):
    monkeypatch.setattr(sorting, "CHUNK", 7)
    rng = np.random.default_rng(0)
    p, y = np.sort(rng.random(50)), rng.integers(0, 2, 50).astype(np.int8)
    cuts = np.array([0, 3, 10, 38, 50])
    for rows in (Rows(p, p, y), Rows(p, p, np.ones(50, np.int8), role="population")):
        expected = np.add.reduceat(rows.sums(), cuts[:-1], axis=1)
        np.testing.assert_allclose(SortedRows(rows, 50).between(cuts), expected, rtol=1e-13)


@settings(max_examples=50)
@given(lists, kinds)
def test_runs_of_equal_keys_end_where_the_key_changes(rows, kind):
    rows = rows_of(rows, kind)
    ordered = sorted_rows(rows)
    np.testing.assert_array_equal(ordered.rows.key, np.sort(rows.key))
    distinct, counts = np.unique(rows.key, return_counts=True)
    np.testing.assert_array_equal(ordered.run_ends, np.cumsum(counts))
    assert ordered.runs == len(distinct)
    assert (ordered.ends is None) == (not ordered.tied) == (len(distinct) == len(rows.key))
    for leading in range(1, len(rows.key) + 1):
        expected = np.sum(rows.key <= ordered.rows.key[leading - 1])
        assert ordered.after_ties(np.array([leading])).tolist() == [expected]


@settings(max_examples=50)
@given(lists, kinds)
def test_each_row_keeps_what_belongs_to_it(rows, kind):
    rows = rows_of(rows, kind)
    ordered = sorted_rows(rows).rows
    assert ordered.role == rows.role
    assert ordered.plain == rows.plain

    def in_order(some):
        columns = [some.key + 0.0, some.predicted, some.observed, some.key if some.weight is None else some.weight]
        return sorted(zip(*(column.tolist() for column in columns), strict=True))

    assert in_order(ordered) == in_order(rows)


@settings(max_examples=50)
@given(lists, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(rows, random):
    first, second = (sorted_rows(rows_of(some, "binary")).rows for some in (rows, random.sample(rows, len(rows))))
    np.testing.assert_array_equal(first.key, second.key)
    np.testing.assert_array_equal(first.observed, second.observed)


def test_rows_are_sorted_once(monkeypatch):
    rows = rows_of([(0.5, 1, 1), (0.2, 0, 1)], "binary")
    found = sorted_rows(rows)
    monkeypatch.setattr(sorting, "_sorted", lambda rows: pytest.fail("sorted twice"))
    assert sorted_rows(rows) is found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(200,), (4, 50)])
def test_scores_and_outcomes_are_sorted_as_numpy_sorts_both(dtype, shape):
    rng = np.random.default_rng(0)
    score = np.where(rng.random(shape) < 0.5, rng.random(shape), rng.choice(ODD, shape)).astype(dtype)
    outcome = rng.integers(0, 2, shape).astype(np.int8)
    before = score.copy()
    found, sorted_outcome = sort_with_outcomes(score, outcome)
    order = np.lexsort((outcome, score), axis=-1)
    np.testing.assert_array_equal(found, np.take_along_axis(score, order, -1))
    np.testing.assert_array_equal(sorted_outcome, np.take_along_axis(outcome, order, -1))
    np.testing.assert_array_equal(score, before)
    assert found.dtype == dtype
    assert sorted_outcome.dtype == np.int8
    assert not np.signbit(found).any()


@pytest.mark.parametrize("view", [lambda x: x[::2, ::-1], lambda x: x.T], ids=["strided", "transposed"])
def test_scores_in_any_layout_are_sorted_along_the_last_axis(view):
    score = view(np.random.default_rng(0).random((6, 4)))
    found, _ = sort_with_outcomes(score, np.zeros(score.shape, np.int8))
    np.testing.assert_array_equal(found, np.sort(score, axis=-1))
