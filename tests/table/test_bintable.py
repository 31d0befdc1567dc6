"""The table: where rows fall, sums of parts are sums of the whole, and results from cells stay within their bound."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.numerics.rows import SUMS, Rows
from calibrant.table.bintable import cut_cells, merge
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


def test_sample_rows_use_mean_and_variance_of_outcome_and_draws_together():
    pairs = cal.Samples([2.0], [[0.0, 2.0]]).rows()
    together = np.array([2.0, 0.0, 2.0])
    assert pairs.predicted[0] == pytest.approx(((together - together.mean()) ** 2).mean())
    assert pairs.observed[0] == pytest.approx((2.0 - together.mean()) ** 2)


def test_pairs_without_a_task_make_a_table_too():
    key = np.array([0.1, 0.9])
    assert cal.BinTable.of(Rows(key, key, np.array([0, 1], np.int8)), cal.EqualMass(2)).n == 2


BINS = [cal.EqualMass(2), cal.EqualMass(15), cal.EqualWidth(3), cal.EqualWidth(15), cal.Edges([0, 0.5, 1])]
SCORES = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 1 / 3, 2 / 3, 0.2]), st.integers(0, 40).map(lambda k: k / 40)
)
ROWS = st.lists(st.tuples(st.booleans(), SCORES, st.integers(1, 4)), min_size=2, max_size=60)


@pytest.mark.no_cover
@given(ROWS, st.sampled_from(BINS), st.sampled_from([1, 3, 8, 64]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_error_bound_holds_whatever_the_rows(rows, bins, cells, weighted):
    y, p, weight = (np.array(column) for column in zip(*rows, strict=True))
    data = cal.Binary(y, p, weight=weight if weighted else None)
    table = cal.BinTable.of(data, cal.table.HybridGrid(cells))
    gap = abs(cal.ece(table, bins=bins) - cal.ece(data, bins=bins))
    assert gap <= table.error_bound(bins) + 1e-12


@pytest.mark.no_cover
@given(st.integers(0, 10**6), st.integers(2, 300), st.sampled_from([1, 3, 8, 64]), st.integers(1, 20))
@settings(max_examples=80, deadline=None)
def test_the_tighter_bound_holds_for_distinct_scores(seed, n, cells, bins):
    rng = np.random.default_rng(seed)
    data = cal.Binary(rng.random(n) < 0.4, rng.permutation(n) / n)
    table = cal.BinTable.of(data, cal.table.HybridGrid(cells))
    bound = table.error_bound(cal.EqualMass(bins), distinct=True)
    assert abs(cal.ece(table, bins=cal.EqualMass(bins)) - cal.ece(data, bins=cal.EqualMass(bins))) <= bound + 1e-12


def test_the_bound_is_zero_where_no_cell_is_cut_and_can_be_reached():
    atoms = cal.BinTable.of(cal.Binary([0, 1, 1], [0.1, 0.5, 0.9]), cal.table.HybridGrid())
    assert atoms.error_bound(cal.EqualMass(2)) == 0
    one_cell = cal.BinTable.of(cal.Binary([0, 1], [0.4, 0.6]), cal.table.HybridGrid(1))
    exact = cal.ece([0, 1], [0.4, 0.6], bins=cal.EqualMass(2))
    assert abs(cal.ece(one_cell, bins=cal.EqualMass(2)) - exact) == pytest.approx(0.4)
    assert 0.4 <= one_cell.error_bound(cal.EqualMass(2)) < 1.3


def subsets(rows):
    return (np.array(chosen, dtype=int) for size in range(len(rows) + 1) for chosen in combinations(rows, size))


def cut_by_hand(table, index, n_bins):
    """For each edge of equal mass that falls into a cell: the rows of the cell, and how many go to the left."""
    n, before = len(index), np.concatenate([[0], np.cumsum(table.count)])
    for b in range(1, n_bins):
        rank = n * b // n_bins
        cell = int(np.sum(before < rank)) - 1
        left = rank - int(before[cell])
        rows = np.flatnonzero(index == table.key[cell])
        if 0 < left < len(rows):
            yield rows, left


@pytest.mark.parametrize("n_bins", [2, 3, 5])
@pytest.mark.parametrize("cells", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_the_bounds_are_the_worst_over_all_rows_that_an_edge_may_part_from_its_cell(seed, cells, n_bins):
    rng = np.random.default_rng(seed)
    p, y = rng.permutation(60)[:9] / 60, rng.integers(0, 2, 9)
    y[:2] = 0, 1
    grid = cal.table.HybridGrid(cells)
    table = cal.BinTable.of(cal.Binary(y, p), grid)
    any_rows, known_number = 0.0, 0.0
    for inside, left in cut_by_hand(table, grid.index(p), n_bins):
        part = left / len(inside)
        whole, positives = (p - y)[inside].sum(), y[inside].sum()
        any_rows += max(abs((p - y)[some].sum() - part * whole) for some in subsets(inside))
        outcomes = max(abs(y[some].sum() - part * positives) for some in subsets(inside) if len(some) == left)
        known_number += outcomes + min(left, len(inside) - left) * np.ptp(p[inside])
    bins = cal.EqualMass(n_bins)
    assert table.error_bound(bins) == pytest.approx(2 * any_rows / 9, abs=1e-12)
    assert table.error_bound(bins, distinct=True) == pytest.approx(2 * known_number / 9, abs=1e-12)
    doubled = cal.BinTable.of(cal.Binary(y, p, weight=np.full(9, 2.5)), grid)
    assert doubled.error_bound(bins) == pytest.approx(table.error_bound(bins), abs=1e-12)
    assert doubled.error_bound(bins, distinct=True) == pytest.approx(2 * known_number / 9, abs=1e-12)


@pytest.mark.parametrize("edge", [0.3, 0.5, 0.62])
def test_the_bound_of_fixed_edges_is_the_worst_over_all_weighted_rows(edge):
    p, y = np.array([0.1, 0.25, 0.4, 0.7, 0.9]), np.array([0, 1, 0, 1, 1])
    weight = np.array([1.0, 3.0, 2.0, 0.5, 1.0])
    table = cal.BinTable.of(cal.Binary(y, p, weight=weight), cal.table.HybridGrid(1))
    error, part = weight * (p - y), (edge - 0.1) / 0.8
    worst = max(abs(error[some].sum() - part * error.sum()) for some in subsets(range(5)))
    assert table.error_bound(cal.Edges([0, edge, 1])) == pytest.approx(2 * worst / weight.sum(), abs=1e-12)


def test_the_bound_of_positive_unlabeled_cells_moves_positives_and_unlabeled_rows_apart():
    positive, unlabeled = np.array([0.3, 0.8, 0.9]), np.array([0.1, 0.2, 0.6, 0.9])
    data = cal.PositiveUnlabeled(positive, unlabeled, prior=0.45)
    table = cal.BinTable.of(data, cal.table.HybridGrid(1))
    mass = np.concatenate([np.full(3, -0.45 * 4 / 3), unlabeled])  # positives stand for 0.45 of four rows
    part = (0.5 - 0.1) / 0.8
    worst = max(abs(mass[some].sum() - part * mass.sum()) for some in subsets(range(7)))
    assert table.error_bound(cal.Edges([0, 0.5, 1])) == pytest.approx(2 * worst / 4, abs=1e-12)


@pytest.mark.parametrize(
    ("edge", "cut"), [(0.1, True), (0.15, True), (0.3, False), (0.35, False), (0.8, False), (0.05, False)]
)
def test_only_an_edge_inside_a_cell_or_on_its_lowest_score_cuts_it(edge, cut):
    # one cell from 0.1 to 0.3, one of the single score 0.8
    table = cal.BinTable.of(cal.Binary([1, 0, 1], [0.1, 0.3, 0.8]), cal.table.HybridGrid(2))
    assert table.low.tolist() == [0.1, 0.8]
    cells, part = cut_cells(table, cal.Edges([0, edge, 1]))
    assert cells.tolist() == [0] * cut
    assert part == pytest.approx([(edge - 0.1) / 0.2] * cut)


def test_the_bound_is_refused_where_it_says_nothing():
    data = cal.Binary([0, 1], [0.4, 0.6], weight=[1, 2])
    with pytest.raises(ValueError, match="fine tables of probabilities"):
        cal.BinTable.of(data, cal.EqualWidth(2)).error_bound()
    with pytest.raises(ValueError, match="distinct=True is for"):
        cal.BinTable.of(data, cal.table.HybridGrid()).error_bound(distinct=True)


def skewed(rng, n):
    """Beta(2.77, 0.048) scores whose true probability is sigmoid(1 + 0.4 logit p)."""
    p = rng.beta(2.77, 0.048, n)
    with np.errstate(divide="ignore"):
        logit = np.clip(np.log(p / (1 - p)), -37, 37)
    return p, 1 / (1 + np.exp(-(1 + 0.4 * logit)))


def uniform(rng, n):
    p = rng.random(n)
    return p, p


def calibrated(rng, n):
    p = rng.beta(2.77, 0.048, n)
    return p, p


DRAWS = 6
#: World, precision; the mean differences that the specification states for 2^16 cells (for single precision: for 2^14
#: logit cells), then the standard deviation of one difference, from 40 draws of ours.
SPECIFIED = [
    (uniform, np.float64, (2.9e-6, 4.3e-6, 8.5e-6), (2.5e-6, 9.0e-6, 6.0e-6)),
    (skewed, np.float64, (3.2e-7, 8.3e-7, 7.0e-7), (6.2e-7, 1.4e-6, 5.6e-7)),
    (calibrated, np.float64, (4.9e-7, 4.9e-7, 6.9e-7), (4.5e-7, 7.0e-7, 9.0e-7)),
    (skewed, np.float32, (4.3e-6, 1.0e-5, 8.8e-5), (0.0, 0.0, 0.0)),
]


@pytest.mark.no_cover
@pytest.mark.parametrize(("world", "dtype", "mean", "sd"), SPECIFIED)
def test_a_million_rows_of_the_spec_give_results_within_its_table(world, dtype, mean, sd):
    """Means of six draws, within three standard errors of the specification's means of five.

    Debiased errors are cut off at zero, as there: the root has no bounded slope at zero. A sweep that stops at another
    number of bins is no rounding error and is left out; it is rare.
    """
    gaps, stopped_elsewhere = [], 0
    for seed in range(DRAWS):
        rng = np.random.default_rng([12, seed])
        p, truth = world(rng, 1_000_000)
        data = cal.Binary(rng.random(len(p)) < truth, p.astype(dtype))
        assert dtype == np.float64 or np.mean(data.y_prob == 1) > 0.4
        table = cal.BinTable.of(data, cal.table.HybridGrid())
        both = [
            [cal.ece(source), max(cal.debiased_ece(source, norm=2).value, 0.0), cal.sweep_ece(source)]
            for source in (table, data)
        ]
        gap = np.abs([float(cells) - float(rows) for cells, rows in zip(*both, strict=True)])
        assert gap[0] <= table.error_bound(cal.EqualMass(15))
        if both[0][2].details["bins"] != both[1][2].details["bins"]:
            stopped_elsewhere += 1
            gap[2] = np.nan
        gaps.append(gap)
    limit = np.array(mean) + 3 * np.array(sd) / np.sqrt(DRAWS)
    assert (np.nanmean(gaps, axis=0) <= limit).all(), (np.nanmean(gaps, axis=0), limit)
    assert stopped_elsewhere <= 3


def test_dividing_cells_at_equal_width_edges_makes_those_bins_exact_and_survives_addition():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(3000), np.linspace(0, 1, 16), np.nextafter(np.linspace(0, 1, 16)[1:-1], 2)])
    data = cal.Binary(rng.random(len(p)) < p, p)
    grid = cal.table.HybridGrid(64, equal_width=15)
    halves = [cal.BinTable.of(cal.Binary(data.y_true[rows], p[rows]), grid) for rows in (slice(0, 99), slice(99, None))]
    whole = (halves[0] + halves[1]).coarsen(cal.EqualWidth(15))
    np.testing.assert_array_equal(whole.count, cal.BinTable.of(data, cal.EqualWidth(15)).count)
    with pytest.raises(ValueError, match="whole number"):
        cal.table.HybridGrid(equal_width=0)
    with pytest.raises(ValueError, match="limit"):
        cal.table.HybridGrid(limit=0)


def test_tables_with_weights_in_other_units_are_not_added(tmp_path):
    def table(weight):
        return cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7], weight=[weight, weight]), cal.EqualWidth(2))

    with pytest.raises(ValueError, match="weights of like size"):
        table(1e76) + table(1e78)
    table(1e78).save(tmp_path / "large.parquet")
    with pytest.raises(ValueError, match="weights of like size"):
        table(1e76) + cal.BinTable.load(tmp_path / "large.parquet")
    several = cal.Multiclass([0, 1], [[0.2, 0.8], [0.3, 0.7]], weight=[1e78, 1e78])
    with pytest.raises(ValueError, match="weights of like size"):
        table(1e76) + cal.BinTable.of(several.top_label(), cal.EqualWidth(2))
    assert (table(1e78) + table(3e78)).weight_unit == table(1e78).weight_unit == 1
    assert cal.ece(table(1e78) + table(3e78)) == pytest.approx(float(cal.ece(table(1.0) + table(3.0))))
