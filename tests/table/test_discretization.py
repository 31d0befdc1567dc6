"""How far results from cells are from results from rows: within the bound, always; within the spec, on its worlds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal

BINS = [cal.EqualMass(2), cal.EqualMass(15), cal.EqualWidth(3), cal.EqualWidth(15), cal.Edges([0, 0.5, 1])]
SCORES = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 1 / 3, 2 / 3, 0.2]), st.integers(0, 40).map(lambda k: k / 40)
)
ROWS = st.lists(st.tuples(st.booleans(), SCORES, st.integers(1, 4)), min_size=2, max_size=60)


@given(ROWS, st.sampled_from(BINS), st.sampled_from([1, 3, 8, 64]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_error_bound_holds_whatever_the_rows(rows, bins, cells, weighted):
    y, p, weight = (np.array(column) for column in zip(*rows, strict=True))
    data = cal.Binary(y, p, weight=weight if weighted else None)
    table = cal.BinTable.of(data, cal.table.HybridGrid(cells))
    gap = abs(cal.ece(table, bins=bins) - cal.ece(data, bins=bins))
    assert gap <= table.error_bound(bins) + 1e-12


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
