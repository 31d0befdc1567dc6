"""The table: where rows fall, what sums are kept, and that sums of parts are sums of the whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.numerics.rows import SUMS, Rows
from calibrant.table.bintable import merge
from tests.table.rows import binnings, rows, unpack


@pytest.mark.no_cover
@given(rows, st.integers(1, 20))
def test_a_whole_weight_is_a_repeated_row(rows, n):
    y, p, w = unpack(rows, True)
    repeats = w.astype(int)
    weighted = cal.BinTable.of(cal.Binary(y, p, weight=w), cal.EqualWidth(n)).filled()
    repeated = cal.BinTable.of(cal.Binary(np.repeat(y, repeats), np.repeat(p, repeats)), cal.EqualWidth(n)).filled()
    for name in ("weight", "predicted", "observed", "product", "observed_squares"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weight", [0.1, 1 / 3, 2.0, 1e9])
@pytest.mark.parametrize("n", [1, 2, 7, 15, 40])
def test_rows_of_one_weight_are_cut_as_rows_without(weight, n):
    p = np.round(np.random.default_rng(n).random(101), 2)
    plain, alike = cal.Binary(p > 0.4, p), cal.Binary(p > 0.4, p, weight=np.full(101, weight))
    expected = cal.BinTable.of(plain, cal.EqualMass(n))
    for table in (cal.BinTable.of(alike, n), cal.BinTable.of(alike, cal.table.Distinct()).coarsen(n)):
        np.testing.assert_array_equal(table.edges, expected.edges)
        np.testing.assert_allclose(table.in_rows().sums[:5], expected.sums[:5], rtol=1e-12)
    first, second = (cal.BinTable.of(data, cal.table.HybridGrid(16)).coarsen(n) for data in (plain, alike))
    np.testing.assert_allclose(first.edges, second.edges)


@pytest.mark.no_cover
@given(
    rows,
    rows,
    st.sampled_from([cal.EqualWidth(7), cal.table.Distinct(), cal.table.HybridGrid(64), cal.table.HybridGrid()]),
)
def test_merged_shards_are_the_whole(first, second, binning):
    y, p, _ = unpack(first + second, False)
    whole = cal.BinTable.of(cal.Binary(y, p), binning)
    parts = [cal.BinTable.of(cal.Binary(*unpack(part, False)[:2]), binning) for part in (first, second)]
    merged = parts[0] + parts[1]
    np.testing.assert_array_equal(merged.key, whole.key)
    np.testing.assert_array_equal(merged.low, whole.low)
    np.testing.assert_array_equal(merged.high, whole.high)
    np.testing.assert_allclose(merged.sums, whole.sums, rtol=1e-12, atol=1e-12)
    assert merge([whole]).n == whole.n == len(p)


@pytest.mark.no_cover
@given(rows, binnings, st.booleans())
def test_coarsening_the_exact_table_is_cutting_the_rows(rows, binning, weighted):
    y, p, w = unpack(rows, weighted)
    data = cal.Binary(y, p, weight=w)
    direct, coarse = cal.BinTable.of(data, binning), cal.BinTable.of(data, cal.table.Distinct()).coarsen(binning)
    np.testing.assert_array_equal(direct.edges, coarse.edges)
    keep = [k for k, name in enumerate(SUMS) if name != "predicted_squares"]
    np.testing.assert_allclose(direct.sums[keep], coarse.sums[keep], rtol=1e-12, atol=1e-12)


@pytest.mark.no_cover
@given(rows, binnings)
def test_a_cut_grid_cell_loses_nothing(rows, binning):
    y, p, _ = unpack(rows, False)
    grid = cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid(16))
    coarse = grid.coarsen(binning)
    np.testing.assert_allclose(coarse.sums.sum(axis=1), grid.sums.sum(axis=1), rtol=1e-12)
    assert (coarse.sums >= -1e-12).all()


def test_grid_cells_of_one_score_are_atoms_and_are_never_cut():
    p = np.repeat([0.2, 0.8], [70, 30])
    grid = cal.BinTable.of(cal.Binary(np.zeros(100), p), cal.table.HybridGrid())
    np.testing.assert_array_equal(grid.coarsen(cal.EqualMass(2)).count, [70, 30])


def test_the_grid_gives_equal_mass_bins_close_to_the_exact_ones():
    rng = np.random.default_rng(0)
    p = rng.beta(2.77, 0.048, 20_000)
    data = cal.Binary(rng.random(20_000) < p, p)
    exact, grid = (cal.ece(cal.BinTable.of(data, cells)) for cells in (cal.table.Distinct(), cal.table.HybridGrid()))
    assert exact == pytest.approx(cal.ece(data), abs=1e-14)
    assert grid == pytest.approx(exact, abs=2e-5)


def test_tables_cut_differently_cannot_be_added():
    data = cal.Binary([0, 1], [0.2, 0.7])
    with pytest.raises(ValueError, match="cut alike"):
        cal.BinTable.of(data, cal.EqualWidth(2)) + cal.BinTable.of(data, cal.EqualWidth(3))


def test_only_fine_tables_can_be_coarsened_and_only_bins_have_edges():
    data = cal.Binary([0, 1], [0.2, 0.7])
    with pytest.raises(ValueError, match="has bins already"):
        cal.BinTable.of(data, cal.EqualWidth(2)).coarsen(cal.EqualMass(1))
    with pytest.raises(AttributeError, match="coarsen it first"):
        _ = cal.BinTable.of(data, cal.table.Distinct()).edges


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "15"])
def test_a_binning_needs_a_whole_number_of_bins(bad):
    for binning in (cal.EqualWidth, cal.EqualMass):
        with pytest.raises(ValueError, match="whole number"):
            binning(bad)
    with pytest.raises(ValueError, match="rising"):
        cal.Edges([0.5, 0.2])


def test_empty_bins_are_kept_and_have_no_mean():
    table = cal.BinTable.of(cal.Binary([0, 1], [0.05, 0.95]), cal.EqualWidth(3))
    assert len(table) == 3
    assert np.isnan(table.predicted_mean[1])
    assert len(table.filled()) == 2


def test_gaussian_rows_put_squared_sigma_beside_squared_errors():
    table = cal.BinTable.of(cal.Gaussian([1.0, 5.0], [0.0, 2.0], [0.5, 2.0]), cal.table.Distinct())
    np.testing.assert_array_equal(table.key, [0.5, 2.0])
    np.testing.assert_array_equal(table.predicted, [0.25, 4.0])
    np.testing.assert_array_equal(table.observed, [1.0, 9.0])


def test_several_outputs_are_pooled_with_their_rows_weight():
    pairs = cal.Gaussian([[1.0, 2.0], [3.0, 4.0]], np.zeros((2, 2)), np.ones((2, 2)), weight=[1, 3]).rows()
    np.testing.assert_array_equal(pairs.observed, [1, 4, 9, 16])
    np.testing.assert_array_equal(pairs.weight, [1, 1, 3, 3])


def test_quantile_rows_ask_whether_outcomes_lie_below_each_quantile():
    table = cal.BinTable.of(cal.Quantiles([1.0, 3.0], [0.25, 0.75], [[1, 2], [1, 2]]), cal.table.Distinct())
    np.testing.assert_array_equal(table.key, [0.25, 0.75])
    np.testing.assert_array_equal(table.observed, [1, 1])


def test_sample_rows_use_the_unbiased_variance_of_a_new_draw():
    pairs = cal.Samples([2.0], [[0.0, 2.0]]).rows()
    assert pairs.predicted[0] == pytest.approx(2.0 * 1.5)
    assert pairs.observed[0] == 1.0


def test_pairs_without_a_task_make_a_table_too():
    key = np.array([0.1, 0.9])
    assert cal.BinTable.of(Rows(key, key, np.array([0, 1], np.int8)), cal.EqualMass(2)).n == 2
