"""Buckets read off the bits of the score, and bins of equal mass that need no full sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.numerics.radix_buckets import BUCKETS, equal_mass_sums, radix_bucket_sums, rows_in, selection_is_faster
from calibrant.numerics.rows import SUMS
from calibrant.numerics.sizes import SELECTION_ROWS
from calibrant.numerics.sorting import sorted_rows
from calibrant.simulate import PAPER_WORLDS
from calibrant.table.from_rows import equal_mass_table

ODD = [0.0, -0.0, 5e-324, 1e-300, 2.0**-66, 2.0**-65, 1e-12, 0.25, np.nextafter(0.5, 0), 0.5, np.nextafter(0.5, 1)]
ODD += [0.75, 1 - 2.0**-24, 1 - 2.0**-53, 1.0]
WHOLE = [SUMS.index(name) for name in ("count", "weight", "weight_squares", "observed", "observed_squares")]


@st.composite
def rows(draw):
    """Outcomes and scores of either precision: anything in [0, 1], mixed with ties, ends, the middle and tiny ones."""
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    size = draw(st.integers(1, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = [
        rng.random(size),
        rng.choice(ODD, size),
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


@pytest.mark.parametrize("value", ODD)
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
