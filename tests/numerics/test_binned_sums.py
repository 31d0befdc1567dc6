"""Sums of rows per bin: the fast indices find the bins of a search, and the fast loops the sums of a plain one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.numerics import binned_sums
from calibrant.numerics.binned_sums import (
    equal_width_index,
    equal_width_indexer,
    exact_hybrid_index,
    hybrid_index,
    hybrid_scale,
    sums_by_index,
)
from calibrant.numerics.rows import SUMS, Rows
from calibrant.table.batch_sums import first_of_cells
from calibrant.table.binning import EqualWidth

scores = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0, 0.5, 0.1, 0.2, 0.3, 1 / 3, 2 / 3]),
    st.integers(0, 20).map(lambda k: k / 20),
)


@given(st.lists(scores, min_size=1, max_size=50), st.integers(1, 40))
def test_the_fast_index_agrees_with_a_search_in_the_edges(p, n):
    edges = EqualWidth(n).edges
    p = np.array(p + edges.tolist() + np.nextafter(edges, 2)[:-1].tolist() + np.nextafter(edges, -1)[1:].tolist())
    for key in (p, p.astype(np.float32)):
        np.testing.assert_array_equal(equal_width_index(key, edges), np.searchsorted(edges[1:-1], key, side="left"))


@pytest.mark.parametrize("n", [1, 7, 15, 1000, 400_000])
@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (0.0, 37.5), (-3.0, 0.0), (5.0, 6.0), (1e12, 1e12 + 1.0)]
)
def test_edges_on_any_scale_are_found_exactly(n, low, high):
    rng = np.random.default_rng(n)
    edges = np.linspace(low, high, n + 1)
    some = rng.choice(edges, 300)
    near = np.clip(np.concatenate([some, np.nextafter(some, high), np.nextafter(some, low)]), low, high)
    key = np.concatenate([rng.uniform(low, high, 500), near])
    np.testing.assert_array_equal(equal_width_index(key, edges), np.searchsorted(edges[1:-1], key, side="left"))


def test_chunks_of_any_length_share_memory_and_are_still_right():
    rng, edges = np.random.default_rng(0), np.linspace(0, 1, 16)
    index = equal_width_indexer(edges)
    for size in (40, 7, 40, binned_sums.CHUNK):
        key = rng.random(size)
        np.testing.assert_array_equal(index(key), np.searchsorted(edges[1:-1], key, side="left"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("cells", "limit"), [(2**16, 37.0), (2**12, 17.0), (10, 1.0), (2**17, 80.0), (2**20, 37.0)])
def test_single_precision_finds_the_very_cells_of_double_precision(dtype, cells, limit):
    rng = np.random.default_rng(3)
    small = 10 ** rng.uniform(-45, 0, 50_000)
    for p in (rng.random(50_000), rng.beta(2.77, 0.048, 50_000), small, 1 - small, np.array([0, 0.5, 1, 5e-324])):
        p = p.astype(dtype)
        np.testing.assert_array_equal(hybrid_index(p, cells, limit), exact_hybrid_index(p, cells, limit))


def test_no_score_of_single_precision_is_so_near_an_edge_that_engines_could_disagree():
    """One half lies on an edge, but its odds are exactly 1; all others are far off beside rounding (2e-11)."""
    cells, limit = 2**16, 37.0
    _, first = first_of_cells(cal.table.HybridGrid(cells, limit), np.dtype(np.float32))
    first = first[(first > 0) & (first.view(np.float32) != 0.5)]
    least, slope = hybrid_scale(cells, limit)
    for bits, towards in ((first, np.floor), (first - np.uint32(1), np.ceil)):
        p = bits.view(np.float32).astype(np.float64)
        place = p * (cells / 2) + (np.log((p + least) / ((1 - p) + least)) * slope + (cells / 4 - cells // 2))
        assert np.abs(place - towards(place)).min() > 5e-10


@pytest.mark.parametrize(("cells", "limit"), [(2**16, 37.0), (64, 17.0), (10, 1.0)])
def test_hybrid_cells_are_half_equally_wide_and_half_in_log_odds(cells, limit):
    p = np.random.default_rng(0).beta(0.3, 0.3, 2000)
    floor = np.exp(-limit)
    log_odds = np.log((p + floor) / (1 - p + floor))
    most = np.log((1 + floor) / floor)
    place = cells * (p / 2 + (log_odds / most + 1) / 4)
    clear = np.abs(place - np.rint(place)) > 1e-6  # away from edges, where the last rounding decides
    np.testing.assert_array_equal(hybrid_index(p, cells, limit)[clear], np.floor(place[clear]))
    ends = hybrid_index(np.array([0.0, 1.0]), cells, limit)
    assert ends.tolist() == [0, cells - 1]
    assert np.all(np.diff(hybrid_index(np.sort(p), cells, limit)) >= 0)


def by_a_loop(rows, index, size):
    """Each row added to its bin, one at a time."""
    totals = np.zeros((len(SUMS), size))
    for row, bin_ in zip(rows.sums().T, index(rows.key), strict=True):
        totals[:, bin_] += row
    return totals


def rows_of(kind, n, dtype=np.float64):
    rng = np.random.default_rng(n)
    p, y, w = rng.random(n).astype(dtype), rng.integers(0, 2, n).astype(np.int8), rng.exponential(size=n)
    return {
        "binary": Rows(p, p, y),
        "real outcomes": Rows(p, p, 3.0 * y),
        "apart": Rows(p, p**2, 3.0 * y),
        "weighted": Rows(p, p, y, w),
        "population": Rows(p, p, np.ones_like(y), role="population"),
        "positives": Rows(p, p, np.ones_like(y), role="positives"),
        "weighted population": Rows(p, p, np.ones_like(y), w, "population"),
        "weighted positives": Rows(p, p, np.ones_like(y), w, "positives"),
    }[kind]


KINDS = [
    *("binary", "real outcomes", "apart", "weighted", "population", "positives"),
    *("weighted population", "weighted positives"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "size"), [(1, 3), (2, 1), (99, 2), (100, 2), (101, 3), (64, 40), (300, 70)])
@pytest.mark.parametrize("chunk", [7, 64, binned_sums.CHUNK])
def test_sums_per_bin_are_those_of_a_loop_over_the_rows(kind, n, size, chunk, monkeypatch):
    monkeypatch.setattr(binned_sums, "CHUNK", chunk)
    edges = np.linspace(0, 1, size + 1)
    rows = rows_of(kind, n)

    def index(key):
        return np.searchsorted(edges[1:-1], key, side="left")

    found = sums_by_index(rows, index, size)
    np.testing.assert_allclose(found, by_a_loop(rows, index, size), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(sums_by_index(rows, equal_width_indexer(edges), size), found, rtol=1e-14)


@pytest.mark.parametrize("kind", ["binary", "population", "positives", "apart"])
def test_single_precision_is_summed_in_double(kind):
    rows = rows_of(kind, 100, np.float32)
    found = sums_by_index(rows, lambda key: np.zeros(len(key), np.intp), 1)
    np.testing.assert_allclose(found, rows.sums().sum(axis=1)[:, None], rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_without_squares_only_the_squared_predictions_may_be_missing(kind):
    rows = rows_of(kind, 50)

    def index(key):
        return (key * 4).astype(np.intp)

    found, whole = (sums_by_index(rows, index, 4, squares=squares) for squares in (False, True))
    squares = SUMS.index("predicted_squares")
    np.testing.assert_array_equal(np.delete(found, squares, axis=0), np.delete(whole, squares, axis=0))
    assert np.isnan(found[squares]).all() == (kind in {"binary", "population"})


def test_sums_of_parts_add_up_to_those_of_the_whole():
    rows = rows_of("binary", 500)

    def index(key):
        return (key * 8).astype(np.intp)

    parts = [sums_by_index(rows.take(part), index, 8) for part in (slice(0, 123), slice(123, None))]
    np.testing.assert_allclose(parts[0] + parts[1], sums_by_index(rows, index, 8), rtol=1e-13)
