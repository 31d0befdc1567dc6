"""The sweep: the largest number of bins in order, found as the definition says, and stable under ties."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.estimators.sweep import largest_rising
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.results.target import batched, name_of
from tests.estimators.batches import WORLDS, assert_as_one_by_one

scores = st.one_of(st.floats(0, 1), st.integers(0, 10).map(lambda k: k / 10))
rows = st.lists(st.tuples(scores, st.booleans()), min_size=2, max_size=40)


def by_definition(y, p, family):
    """Algorithm 1: raise b until the mean outcomes of some bins fall."""
    last = cal.ece(y, p, bins=family(1))
    for b in range(2, len(p) + 1):
        estimate = cal.ece(y, p, bins=family(b))
        heights = estimate.bins.filled().observed_mean
        if np.any(np.diff(heights) < 0):
            return last, b - 1
        last = estimate
    return last, len(p)


@given(rows, st.sampled_from([cal.EqualMass, cal.EqualWidth]))
def test_the_sweep_is_its_algorithm(rows, family):
    p, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    expected, bins = by_definition(y, p, family)
    swept = cal.sweep_ece(y, p, bins=family)
    exact = cal.sweep_ece(cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct()), bins=family)
    for estimate in (swept, exact):
        assert estimate == pytest.approx(expected, abs=1e-12)
        assert estimate.details["bins"] == bins
        assert np.all(np.diff(estimate.bins.filled().observed_mean) >= 0)


def test_row_order_does_not_matter_with_many_ties():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(2000) < 0.5, 1.0, np.round(rng.random(2000), 2))
    y = (rng.random(2000) < p**2).astype(int)
    values = {float(cal.sweep_ece(y[order], p[order])) for order in (rng.permutation(2000) for _ in range(10))}
    assert max(values) - min(values) < 1e-12


def test_separable_outcomes_make_every_score_a_bin():
    p = np.linspace(0.01, 0.99, 50)
    y = p > 0.5
    swept = cal.sweep_ece(y, p)
    assert swept == pytest.approx(np.mean(np.abs(p - y)), abs=1e-12)
    assert len(swept.bins) == 50


@pytest.mark.no_cover
def test_the_paper_s_number_of_bins_at_two_hundred_rows():
    rng = np.random.default_rng(7)
    counts = []
    for _ in range(400):
        p = rng.random(200)
        counts.append(cal.sweep_ece(rng.random(200) < p, p).details["bins"])
    assert np.mean(counts) == pytest.approx(6.4, abs=3 * np.std(counts) / 20 + 0.05)


def test_the_grid_sweeps_as_the_rows_do():
    rng = np.random.default_rng(2)
    p = rng.beta(2.77, 0.048, 30_000)
    data = cal.Binary(rng.random(30_000) < 1 / (1 + np.exp(-1)) * p, p)
    grid = cal.sweep_ece(cal.BinTable.of(data, cal.table.HybridGrid()))
    assert grid == pytest.approx(cal.sweep_ece(data), abs=2e-4)


def test_only_a_family_of_binnings_can_be_swept():
    with pytest.raises(ValueError, match="EqualMass or EqualWidth"):
        cal.sweep_ece([0, 1], [0.1, 0.2], bins=cal.EqualMass(15))


def test_cut_cells_whose_rows_are_all_alike_do_not_end_the_sweep():
    """Parts of cells carry rounding: bins of ones only must not seem to fall by a part in 10^16."""
    rng = np.random.default_rng(5)
    p = np.sort(1 - 10 ** rng.uniform(-14, 0, 200_000))
    y = rng.random(len(p)) < p
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid(2**10))
    assert cal.sweep_ece(table).details["bins"] == pytest.approx(cal.sweep_ece(y, p).details["bins"], abs=2)
    ones = cal.BinTable.of(cal.Binary(np.ones(1000), rng.random(1000)), cal.table.HybridGrid(64))
    assert cal.sweep_ece(ones).details["bins"] == 1000


@pytest.mark.parametrize("estimator", [cal.sweep_ece, partial(cal.sweep_ece, bins=cal.EqualWidth, norm=2)], ids=name_of)
def test_many_samples_at_once_give_what_each_gives(estimator):
    assert_as_one_by_one(estimator)


@given(st.lists(st.lists(st.tuples(scores, st.booleans()), min_size=9, max_size=9), min_size=1, max_size=4))
def test_many_samples_are_swept_as_the_algorithm_says(samples):
    p, y = (np.array([[row[column] for row in rows] for rows in samples]) for column in (0, 1))
    both = SortedSamples.of(p.astype(float), y.astype(np.int8))
    for family in (cal.EqualMass, cal.EqualWidth):
        expected = [by_definition(outcome, score, family)[1] for outcome, score in zip(y.astype(float), p, strict=True)]
        assert largest_rising(both, family).tolist() == expected


@pytest.mark.parametrize("bins", [cal.EqualMass, cal.EqualWidth])
def test_the_number_of_bins_of_many_samples_is_that_of_each(bins):
    scores, outcomes = WORLDS["wide"].draw(np.random.default_rng(0), (20, 500))
    expected = [
        cal.sweep_ece(cal.Binary(y, p), bins=bins).details["bins"] for y, p in zip(outcomes, scores, strict=True)
    ]
    assert largest_rising(SortedSamples.of(scores, outcomes), bins).tolist() == expected


def test_many_samples_need_a_family_of_binnings_too():
    samples = SortedSamples.of(np.array([[0.2, 0.7]]), np.array([[0, 1]], dtype=np.int8))
    with pytest.raises(ValueError, match="must be the class"):
        batched(partial(cal.sweep_ece, bins=cal.EqualMass(5)))(samples)


def published_sweep(p, y, norm=2):
    """As the published code: the row of rank r is in bin floor(r b / n); the last b before the first fall."""
    order = np.argsort(p)
    p, y = p[order], y[order]
    for b in range(1, len(p) + 1):
        index = np.arange(len(p)) * b // len(p)
        heights = np.bincount(index, y) / np.bincount(index)
        if np.any(np.diff(heights) < 0):
            break
        gaps = np.bincount(index, p - y) / np.bincount(index)
        last = float(np.sum(np.bincount(index) * np.abs(gaps) ** norm) / len(p)) ** (1 / norm), b
    return last


@pytest.mark.parametrize("seed", range(8))
def test_ranks_rounded_up_give_the_published_sweep(seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(2.8, 0.3, 150 + 7 * seed)
    y = (rng.random(len(p)) < p**1.5).astype(int)
    value, bins = published_sweep(p, y)
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct())
    for found in (cal.sweep_ece(y, p, norm=2, rank="ceil"), cal.sweep_ece(table, norm=2, rank="ceil")):
        assert found == pytest.approx(value, rel=1e-12)
        assert found.details["bins"] == bins
    samples = SortedSamples.of(p[None], y[None].astype(np.int8))
    many = batched(partial(cal.sweep_ece, norm=2, rank="ceil"))(samples)
    np.testing.assert_allclose(many, [value], rtol=1e-12)


def test_ranks_belong_to_equal_mass():
    with pytest.raises(ValueError, match="EqualWidth has no ranks"):
        cal.sweep_ece([0, 1], [0.1, 0.2], bins=cal.EqualWidth, rank="ceil")
