"""Bins: sums of rows, intervals that cover, and clusters that widen them."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.part import Part
from calibrant.reporting.sections.bins import ScoreBins, average_design_effect
from tests.reporting.sections.worlds import binary, part

EDGES = np.array([0.0, 0.1, 0.3, 0.7, 1.0])


def test_bins_are_sums_of_their_rows():
    data = binary(2000)
    for one in ScoreBins(Part(data)).between(EDGES):
        rows = (data.y_prob > one.low) & (data.y_prob <= one.high)
        assert one.n == rows.sum()
        assert one.events == data.y_true[rows].sum()
        assert one.predicted == pytest.approx(data.y_prob[rows].mean())
        assert one.observed.value == pytest.approx(data.y_true[rows].mean())
        assert one.observed.low < one.observed.value < one.observed.high


def test_weights_count():
    data = binary(2000, weight=np.random.default_rng(1).random(2000))
    plain = ScoreBins(part(2000)).between(EDGES)
    for one, other in zip(ScoreBins(Part(data)).between(EDGES), plain, strict=True):
        rows = (data.y_prob > one.low) & (data.y_prob <= one.high)
        assert one.observed.value == pytest.approx(np.average(data.y_true[rows], weights=data.weight[rows]))
        assert one.observed.high - one.observed.low > other.observed.high - other.observed.low


def test_a_score_on_an_edge_belongs_to_the_bin_below_it():
    bins = ScoreBins(Part(cal.Binary([0, 1, 1, 0], [0.1, 0.3, 0.3, 0.5]))).between(np.array([0.0, 0.3, 1.0]))
    assert [one.n for one in bins] == [3, 1]


def test_rows_inside_include_both_ends():
    bins = ScoreBins(Part(cal.Binary([0, 1, 1, 0, 1], [0.1, 0.3, 0.4, 0.5, 1.0])))
    assert bins.inside(0.3, 0.5).n == 3
    assert bins.inside(0.3, 1.0).n == 4
    assert bins.inside(0.0, 0.1).n == 1
    assert bins.inside(0.5, 0.5).n == 1
    assert bins.inside(0.6, 0.9) is None
    assert bins.inside(0.3, 0.5).low == 0.3


def test_each_score_is_a_bin():
    bins = ScoreBins(part(2000, digits=1)).each_score()
    assert [one.low for one in bins] == [one.high for one in bins] == [k / 10 for k in range(11)]


def test_a_table_gives_the_bins_of_its_rows():
    data = binary(3000)
    table = cal.BinTable.of(data, cal.table.Distinct())
    assert ScoreBins(Part(table)).between(EDGES) == ScoreBins(Part(data)).between(EDGES)


def clustered(rng, clusters=60, size=20, share=0.5):
    """In each cluster a share of the rows copies one outcome."""
    p = np.repeat(0.3, clusters * size)
    own = rng.random(clusters * size) < p
    common = np.repeat(rng.random(clusters) < 0.3, size)
    y = np.where(rng.random(len(p)) < share, common, own)
    return cal.Binary(y, p, group=np.repeat(np.arange(clusters), size))


@pytest.mark.no_cover
def test_intervals_cover_with_clusters():
    rng = np.random.default_rng(5)
    covered, naive = [], []
    for _ in range(300):
        data = clustered(rng)
        bins = ScoreBins(Part(data)).each_score()[0].observed
        plain = ScoreBins(Part(cal.Binary(data.y_true, data.y_prob))).each_score()[0].observed
        covered.append(bins.low <= 0.3 <= bins.high)
        naive.append(plain.low <= 0.3 <= plain.high)
    assert np.mean(covered) > 0.92
    assert np.mean(naive) < 0.8  # the clusters matter


def test_a_bin_of_one_outcome_counts_its_clusters():
    group = np.repeat([0, 1, 2], 10)
    found = ScoreBins(Part(cal.Binary(np.zeros(30), np.full(30, 0.2), group=group))).each_score()[0]
    three = ScoreBins(Part(cal.Binary(np.zeros(3), np.full(3, 0.2)))).each_score()[0]
    assert found.observed == three.observed


def test_the_design_effect_is_one_for_independent_rows():
    assert average_design_effect(part(2000)) == 1.0
    independent = average_design_effect(Part(binary(4000, group=np.arange(4000) // 4)))
    assert independent < 1.3
    assert average_design_effect(Part(clustered(np.random.default_rng(0)))) > 2.5  # 1 + 19 * 0.25 without bins
