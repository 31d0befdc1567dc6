"""Rows in the order of their score, and what radix buckets give without a full sort."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.numerics import sorting
from calibrant.numerics.arrays import SELECTION_ROWS
from calibrant.numerics.rows import SUMS, Rows
from calibrant.numerics.sorting import (
    BUCKETS,
    SortedRows,
    distinct_sums,
    equal_mass_sums,
    radix_bucket_sums,
    rows_in,
    selection_is_faster,
    sort_with_outcomes,
    sorted_rows,
)
from calibrant.simulate import PAPER_WORLDS
from calibrant.table.bintable import equal_mass_table

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
    key, sums = distinct_sums(rows)
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


RADIX_BUCKETS_ODD = [
    0.0,
    -0.0,
    5e-324,
    1e-300,
    2.0**-66,
    2.0**-65,
    1e-12,
    0.25,
    np.nextafter(0.5, 0),
    0.5,
    np.nextafter(0.5, 1),
]
RADIX_BUCKETS_ODD += [0.75, 1 - 2.0**-24, 1 - 2.0**-53, 1.0]
WHOLE = [SUMS.index(name) for name in ("count", "weight", "weight_squares", "observed", "observed_squares")]


@st.composite
def rows(draw):
    """Outcomes and scores of either precision: anything in [0, 1], mixed with ties, ends, the middle and tiny ones."""
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    size = draw(st.integers(1, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = [
        rng.random(size),
        rng.choice(RADIX_BUCKETS_ODD, size),
        10.0 ** rng.uniform(-40, 0, size),
        1 - 10.0 ** rng.uniform(-16, 0, size),
        rng.choice(rng.random(3), size),
        np.full(size, draw(st.floats(0, 1))),
    ]
    shares = draw(st.lists(st.sampled_from([0, 0, 1, 5]), min_size=len(kinds), max_size=len(kinds)).filter(any))
    mixed = np.choose(rng.choice(len(kinds), size, p=np.divide(shares, sum(shares))), kinds)
    return rng.integers(0, 2, size).astype(np.int8), mixed.astype(dtype)


def pairs_of(y, p):
    return cal.Binary(y, p).rows()


def assert_same_as_sorted(y, p, n):
    pairs = pairs_of(y, p)
    edges, sums = equal_mass_sums(pairs, n, squares=True)
    wanted = cal.BinTable(*equal_mass_table(sorted_rows(pairs), n))
    np.testing.assert_array_equal(edges, wanted.edges)
    assert not np.signbit(edges).any()
    np.testing.assert_array_equal(sums[WHOLE], wanted.sums[WHOLE])
    np.testing.assert_allclose(sums, wanted.sums, rtol=1e-12, atol=0)


@pytest.mark.no_cover
@given(rows(), st.integers(1, 200))
def test_selection_finds_the_bins_of_a_sort(data, n):
    assert_same_as_sorted(*data, n)


@pytest.mark.no_cover
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 15, 64, 200])
def test_selection_finds_the_bins_of_a_sort_of_many_rows(n, dtype):
    data = PAPER_WORLDS["resnet110_c10"].sample(150_000)  # more than two chunks
    assert_same_as_sorted(data.y_true, data.y_prob.astype(dtype), n)


@pytest.mark.parametrize("value", RADIX_BUCKETS_ODD)
def test_one_score_makes_one_bin(value):
    assert_same_as_sorted(np.array([0, 1, 1], dtype=np.int8), np.full(3, value), 5)


@pytest.mark.no_cover
@given(rows(), st.integers(1, 40), st.integers(0, 2**32))
def test_row_order_does_not_matter(data, n, seed):
    y, p = data
    shuffled = np.random.default_rng(seed).permutation(len(p))
    (edges, sums), (again, others) = (
        equal_mass_sums(pairs_of(*d), n, squares=True) for d in (data, (y[shuffled], p[shuffled]))
    )
    np.testing.assert_array_equal(edges, again)
    np.testing.assert_array_equal(sums[WHOLE], others[WHOLE])
    np.testing.assert_allclose(sums, others, rtol=1e-12, atol=0)


@pytest.mark.no_cover
@given(rows())
def test_buckets_are_in_the_order_of_the_scores_and_never_split_ties(data):
    y, p = data
    codes = np.empty(len(p), np.int16)
    sums = radix_bucket_sums(pairs_of(y, p), codes=codes)
    bucket = np.empty(len(p), np.intp)
    for number in np.flatnonzero(sums[0]):
        inside = rows_in(np.arange(BUCKETS) == number, codes)
        assert len(inside) == sums[0, number]
        assert y[inside].sum() == sums[4, number]
        bucket[inside] = number
    order = np.argsort(p, kind="stable")
    assert np.all(np.diff(bucket[order]) >= 0)
    assert np.all(np.diff(bucket[order])[np.diff(p[order]) == 0] == 0)
    middle = (bucket > 64) & (bucket < BUCKETS - 64)  # the outermost buckets also hold all scores nearer to 0 or 1
    near = np.minimum(p, 1 - p.astype(np.float64))
    for number in np.unique(bucket[middle]):
        assert near[bucket == number].max() <= near[bucket == number].min() * (1 + 2.0**-5)


def test_buckets_hold_all_sums():
    data = PAPER_WORLDS["resnet110_c10"].sample(100_000)
    y, p = data.y_true, data.y_prob
    sums = radix_bucket_sums(data.rows(), squares=True)
    assert (sums[0].sum(), sums[4].sum()) == (100_000, y.sum())
    np.testing.assert_allclose(sums[[3, 5, 6]].sum(axis=1), [p.sum(), p @ p, p @ y], rtol=1e-12)
    assert np.isnan(radix_bucket_sums(data.rows())[SUMS.index("predicted_squares")]).all()


def test_squares_are_left_out_unless_asked_for():
    pairs = PAPER_WORLDS["resnet110_c10"].sample(1000).rows()
    with_squares, without = (equal_mass_sums(pairs, 10, squares=squares)[1] for squares in (True, False))
    assert np.isnan(without[5]).all()
    np.testing.assert_array_equal(np.delete(without, 5, axis=0), np.delete(with_squares, 5, axis=0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tables_of_many_rows_are_selected_and_equal_those_of_a_sort(monkeypatch, dtype):
    sample = PAPER_WORLDS["resnet110_c10"].sample(50_000)
    data = cal.Binary(sample.y_true, sample.y_prob.astype(dtype))
    by_sorting, value = cal.BinTable.of(data, cal.EqualMass(15)), cal.ece(data)
    monkeypatch.setitem(SELECTION_ROWS, np.dtype(dtype), 50_000)
    assert selection_is_faster(data.rows(), 15)
    selected = cal.BinTable.of(data, cal.EqualMass(15))
    assert selected.cut == by_sorting.cut
    np.testing.assert_allclose(selected.sums, by_sorting.sums, rtol=1e-12)
    np.testing.assert_array_equal(selected.sums, equal_mass_sums(data.rows(), 15, squares=True)[1])
    assert float(cal.ece(data)) == pytest.approx(float(value), rel=1e-11)


def test_selection_is_for_many_plain_rows_of_which_few_lie_around_an_edge(fast):
    size = SELECTION_ROWS[np.dtype(np.float64)]
    y, p = np.zeros(size, np.int8), np.linspace(0, 1, size)
    assert selection_is_faster(pairs_of(y, p), 15)
    assert selection_is_faster(pairs_of(y, np.ones(size)), 15)
    assert not selection_is_faster(pairs_of(y, p), 200)
    assert not selection_is_faster(pairs_of(y, 0.3 + p / 1000), 15)
    assert not selection_is_faster(pairs_of(y[1:], p[1:]), 15)
    assert selection_is_faster(pairs_of(y, p.astype(np.float32)), 15) == (fast == "on")  # sorting is faster in NumPy
    assert not selection_is_faster(cal.Binary(y, p, weight=np.ones(size)).rows(), 15)
