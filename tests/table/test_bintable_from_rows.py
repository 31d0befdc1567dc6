"""From rows to sums: where rows fall, by loops and searches, and that sums of parts are sums of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.numerics.rows import SUMS, Rows
from calibrant.numerics.sorting import sorted_rows
from calibrant.table import batch_sums, bintable
from calibrant.table.binning import (
    CellSums,
    Distinct,
    Edges,
    EqualMass,
    EqualWidth,
    HybridGrid,
    LogGrid,
    added,
    bin_samples,
)
from calibrant.table.bintable import cut_rows, equal_mass_table, of_bins
from tests.estimators.batches import WORLDS
from tests.table.rows import binnings, rows, unpack


@pytest.mark.parametrize("rows", [1, 2, 71_001, 200_000])
@pytest.mark.parametrize("bins", [1, 3, 15, 100])
def test_bins_of_equal_width_hold_the_rows_a_search_finds(rows, bins):
    rng = np.random.default_rng(rows)
    p, y = rng.random(rows), rng.integers(0, 2, rows)
    found = np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], p, side="left")
    table = cal.BinTable.of(cal.Binary(y, p), cal.EqualWidth(bins), squares=False)
    np.testing.assert_array_equal(table.count, np.bincount(found, minlength=bins))
    np.testing.assert_array_equal(table.observed, np.bincount(found, y, bins))
    np.testing.assert_allclose(table.product, np.bincount(found, p * y, bins), atol=1e-9)
    unlabeled = cal.BinTable.of(cal.PositiveUnlabeled(p, p, prior=0.5), cal.EqualWidth(bins))
    np.testing.assert_array_equal(unlabeled.weight, table.count)
    np.testing.assert_array_equal(unlabeled.observed, table.count)


def test_a_score_on_an_edge_belongs_to_the_bin_below_and_zero_to_the_first():
    table = cal.BinTable.of(cal.Binary([0, 0, 0, 0, 0], [0.0, 0.1, 0.2, 0.9, 1.0]), cal.EqualWidth(10))
    np.testing.assert_array_equal(table.count, [2, 1, 0, 0, 0, 0, 0, 0, 1, 1])


@settings(max_examples=25)
@given(rows, binnings, st.booleans())
def test_sums_equal_the_definition_row_by_row(rows, binning, weighted):
    y, p, w = unpack(rows, weighted)
    table = cal.BinTable.of(cal.Binary(y, p, weight=w), binning)
    weight = np.ones(len(p)) if w is None else w
    values = [np.ones(len(p)), weight, weight**2, weight * p, weight * y, weight * p**2, weight * p * y, weight * y]
    index = np.searchsorted(table.edges[1:-1], p, side="left")
    for name, column in zip(SUMS, values, strict=True):
        if name == "predicted_squares" and not weighted and not isinstance(binning, cal.EqualMass):
            continue  # left out by the fast pass
        expected = [column[index == k].sum() for k in range(len(table))]
        np.testing.assert_allclose(getattr(table, name), expected, rtol=1e-12, atol=1e-12, err_msg=name)


@settings(max_examples=25)
@given(rows, st.integers(1, 20))
def test_equal_mass_edges_are_order_statistics_and_never_part_equal_scores(rows, n):
    y, p, _ = unpack(rows, False)
    table = cal.BinTable.of(cal.Binary(y, p), cal.EqualMass(n))
    ordered = np.sort(p)
    ranks = [len(p) * b // n for b in range(1, n)]
    inner = {ordered[rank - 1] for rank in ranks if rank > 0} - {ordered[-1]}
    np.testing.assert_array_equal(table.edges[1:-1], sorted(inner))
    assert table.edges[0] == ordered[0]
    assert table.edges[-1] == ordered[-1]


@settings(max_examples=25)
@given(rows, binnings, st.booleans(), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(rows, binning, weighted, random):
    shuffled = random.sample(rows, len(rows))
    tables = [
        cal.BinTable.of(cal.Binary(y, p, weight=w), binning)
        for y, p, w in (unpack(r, weighted) for r in (rows, shuffled))
        if w is None or w.any()
    ]
    if weighted and not any(row[2] for row in rows):
        return  # the weight that stands in for all zeros goes to another row
    np.testing.assert_array_equal(tables[0].edges, tables[1].edges)
    np.testing.assert_allclose(tables[0].sums, tables[1].sums, rtol=1e-12, atol=1e-12)


def test_scores_outside_the_edges_are_refused():
    with pytest.raises(ValueError, match=r"outside the edges \[0, 0.5\]"):
        cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.Edges([0, 0.5]))
    with pytest.raises(ValueError, match="outside the edges"):
        cal.BinTable.of(cal.Gaussian([0, 1], [0, 1], [1, 2]), cal.EqualWidth(3))


def test_float32_scores_are_summed_in_double_precision():
    p = np.full(3_000_001, 0.3, np.float32)
    assert cal.ece(np.zeros(len(p), np.int8), p, bins=cal.EqualWidth(15)) == pytest.approx(
        float(np.float32(0.3)), abs=1e-12
    )
    assert cal.ece(np.zeros(len(p), np.int8), p) == pytest.approx(float(np.float32(0.3)), abs=1e-12)


@settings(max_examples=25)
@given(rows, st.integers(1, 12))
def test_weighted_bins_end_where_the_running_weight_reaches_its_part(rows, n):
    y, p, _ = unpack(rows, False)
    weight = np.arange(1.0, len(p) + 1)  # whole, so that running sums are exact, and different
    edges = equal_mass_table(sorted_rows(Rows(p, p, y.astype(np.int8), weight)), n).cut.edges
    if len(p) == 1:
        np.testing.assert_array_equal(edges, [p[0], p[0]])
        return
    distinct = np.unique(p)
    running = np.array([weight[p <= score].sum() for score in distinct])
    ends = {distinct[np.flatnonzero(running * n >= weight.sum() * b)[0]] for b in range(1, n + 1)}
    np.testing.assert_array_equal(edges, [distinct[0], *sorted(ends)])


@settings(max_examples=25)
@given(rows, st.integers(1, 12))
def test_spreads_are_cut_by_rank_and_summed_by_bin(rows, n):
    y, key, _ = unpack(rows, False)
    predicted, observed = key**2, 2.5 * y
    table = cut_rows((Rows(key, predicted, observed),), EqualMass(n))
    ordered = np.sort(key)
    inner = {ordered[len(key) * b // n - 1] for b in range(1, n) if len(key) * b // n} - {ordered[-1]}
    np.testing.assert_array_equal(table.cut.edges, [ordered[0], *sorted(inner), ordered[-1]])
    which = np.searchsorted(table.cut.edges[1:-1], key, side="left")
    for row, values in ((3, predicted), (4, observed), (6, predicted * observed), (7, observed**2)):
        np.testing.assert_allclose(table.sums[row], np.bincount(which, values, len(table.key)), atol=1e-12)


@settings(max_examples=25)
@given(rows, st.sampled_from([Distinct(), HybridGrid(16), HybridGrid(), LogGrid(8)]), st.booleans())
def test_cells_hold_the_rows_of_their_number_and_only_cells_with_rows_are_kept(rows, grid, weighted):
    y, p, w = unpack(rows, weighted)
    p = p + 0.25 if isinstance(grid, LogGrid) else p
    some = Rows(p, p, y.astype(np.int8), w)
    table = cut_rows((some,), grid)
    index = p + 0.0 if isinstance(grid, Distinct) else grid.index(p)
    np.testing.assert_array_equal(table.key, np.unique(index))
    for cell, low, high, sums in zip(table.key, table.low, table.high, table.sums.T, strict=True):
        inside = index == cell
        assert (low, high) == (p[inside].min(), p[inside].max())
        np.testing.assert_allclose(sums, some.sums()[:, inside].sum(axis=1), rtol=1e-12, atol=1e-12)


@settings(max_examples=25)
@given(rows, rows, st.sampled_from([Distinct(), HybridGrid(64), EqualWidth(7)]))
def test_parts_that_are_cut_alike_add_up_to_the_whole(first, second, cut):
    def cells(some):
        y, p, _ = unpack(some, False)
        return cut_rows((Rows(p, p, y.astype(np.int8)),), cut)

    total, whole = added([cells(first), cells(second)]), cells(first + second)
    assert total.cut == whole.cut
    for name in ("key", "low", "high"):
        np.testing.assert_array_equal(getattr(total, name), getattr(whole, name))
    np.testing.assert_allclose(total.sums, whole.sums, rtol=1e-12, atol=1e-12)


def test_parts_are_added_by_their_number_by_hand():
    one = CellSums(Distinct(), np.array([2, 5]), np.array([0.2, 0.5]), np.array([0.3, 0.6]), np.full((8, 2), 1.0))
    two = CellSums(Distinct(), np.array([5, 1]), np.array([0.4, 0.1]), np.array([0.5, 0.1]), np.full((8, 2), 10.0))
    total = added([one, two])
    assert total.key.tolist() == [1, 2, 5]
    assert total.low.tolist() == [0.1, 0.2, 0.4]
    assert total.high.tolist() == [0.1, 0.3, 0.6]
    assert total.sums.tolist() == [[10.0, 1.0, 11.0]] * 8


UNLABELED, POSITIVE = np.array([0.3, 0.4, 0.5, 0.6]), np.array([0.05, 0.55, 0.95])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("binning", [EqualMass(2), EqualWidth(3), Distinct(), HybridGrid(8)], ids=repr)
def test_unlabeled_rows_and_positives_are_summed_apart(binning, weighted):
    weight = np.array([1.0, 2.0, 1.0, 4.0, 1.0, 3.0, 1.0]) if weighted else None
    data = cal.PositiveUnlabeled(POSITIVE, UNLABELED, prior=0.5, weight=weight)
    table = cut_rows(data.parts(), binning)
    for name, expected in {
        "count": 7,
        "weight": 9 if weighted else 4,
        "predicted": UNLABELED @ (weight[3:] if weighted else np.ones(4)),
        "observed": 4 if weighted else 3,
        "product": POSITIVE @ (weight[:3] if weighted else np.ones(3)),
        "observed_squares": 6 if weighted else 3,
    }.items():
        assert table.sums[SUMS.index(name)].sum() == pytest.approx(expected)


def test_bins_of_equal_mass_reach_as_far_as_the_positives():
    data = cal.PositiveUnlabeled(POSITIVE, UNLABELED, prior=0.5)
    table = cut_rows(data.parts(), EqualMass(2))
    np.testing.assert_array_equal(table.cut.edges, [0.05, 0.4, 0.95])
    np.testing.assert_array_equal(table.sums[SUMS.index("weight")], [2, 2])
    np.testing.assert_array_equal(table.sums[SUMS.index("observed")], [1, 2])
    inside = cut_rows(cal.PositiveUnlabeled([0.35], UNLABELED, prior=0.5).parts(), EqualMass(2))
    np.testing.assert_array_equal(inside.cut.edges, [0.3, 0.4, 0.6])


def test_squared_predictions_are_summed_on_request():
    parts = cal.PositiveUnlabeled(POSITIVE, UNLABELED, prior=0.5).parts()
    with_squares, without = (cut_rows(parts, EqualWidth(2), squares=squares).sums[5] for squares in (True, False))
    np.testing.assert_allclose(with_squares, [0.3**2 + 0.4**2 + 0.5**2, 0.6**2])
    assert np.isnan(without).all()


def test_selection_without_a_sort_gives_the_table_of_a_sort(monkeypatch):
    rng = np.random.default_rng(0)
    p, y = rng.random(500).round(2), rng.integers(0, 2, 500).astype(np.int8)
    by_sort = cut_rows((Rows(p, p, y),), EqualMass(7))
    monkeypatch.setattr(bintable.sorting, "selection_is_faster", lambda rows, n: True)
    selected = cut_rows((Rows(p, p, y),), EqualMass(7))
    np.testing.assert_array_equal(selected.cut.edges, by_sort.cut.edges)
    np.testing.assert_allclose(selected.sums, by_sort.sums, rtol=1e-12)


def test_a_table_of_bins_says_its_edges():
    table = of_bins(np.array([0.0, 0.5, 1.0]), np.ones((8, 2)))
    assert table.cut == Edges([0, 0.5, 1])
    assert (table.key.tolist(), table.low.tolist(), table.high.tolist()) == ([0, 1], [0, 0.5], [0.5, 1])


@pytest.mark.parametrize("edges", [[0.2, 1.0], [0.0, 0.9]])
def test_probabilities_are_checked_where_the_edges_leave_out_a_part_of_the_unit_interval(edges):
    p = np.array([0.1, 0.95])
    with pytest.raises(ValueError, match="outside the edges"):
        cut_rows((Rows(p, p, np.array([0, 1], np.int8)),), Edges(edges))


@pytest.mark.parametrize("role", ["both", "population", "positives"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("grid", [HybridGrid(64), HybridGrid(2**10, equal_width=15)], ids=repr)
def test_rows_sorted_along_with_the_edges_make_the_cells_of_the_formula(grid, dtype, role, monkeypatch):
    rng = np.random.default_rng(4)
    p = np.concatenate([rng.beta(1.1, 0.1, 5000), rng.random(5000).round(2), [0.0, -0.0, 1.0]]).astype(dtype)
    y = (rng.random(len(p)) < p).astype(np.int8)
    parts = (Rows(p, p, y if role == "both" else np.ones_like(y), role=role, counted=False),)
    monkeypatch.setattr(batch_sums, "SORTED_ROWS_PER_CELL", np.inf)
    expected = cut_rows(parts, grid)
    monkeypatch.setattr(batch_sums, "SORTED_ROWS_PER_CELL", 0)
    found = cut_rows(parts, grid)
    for name in ("key", "low", "high"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.sums, expected.sums, rtol=1e-12)
    np.testing.assert_array_equal(found.sums[[0, 4]], expected.sums[[0, 4]])


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("binning", [cal.EqualWidth(4), cal.EqualMass(3), cal.Edges([0, 0.2, 1]), cal.pu.PaperBins()])
def test_sums_are_those_of_the_table_of_each_sample(world, binning):
    scores, outcomes = WORLDS[world].draw(np.random.default_rng(0), (5, 40))
    bins = bin_samples(SortedSamples.of(scores, outcomes), binning)
    share = np.broadcast_to(bins.share, bins.mass.shape)
    for sample, (y, p) in enumerate(zip(outcomes, scores, strict=True)):
        table = cal.BinTable.of(cal.Binary(y, p), binning).filled()
        filled = share[sample] > 0
        assert share[sample][filled] == pytest.approx(table.share)
        gap = table.predicted_mean - table.observed_mean
        assert bins.mass[sample][filled] == pytest.approx(table.share * gap, abs=1e-14)
        several = table.count > 1
        rate = table.observed_mean[several]
        variance = rate * (1 - rate) / (table.count[several] - 1) * table.share[several] ** 2
        assert bins.mass_variance[sample][filled][several] == pytest.approx(variance, abs=1e-15)
        assert np.isnan(bins.mass_variance[sample][filled][~several]).all()


def test_from_samples_scores_outside_the_edges_are_refused():
    samples = SortedSamples.of(np.array([[0.1, 0.7]]), np.array([[0, 1]], dtype=np.int8))
    with pytest.raises(ValueError, match="outside the edges"):
        bin_samples(samples, cal.EqualWidth(5, low=0.2, high=0.8))
