"""The reliability section: its bins, curve, bands, ranges and threshold, and the ECE by number of bins."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.contents import CannotBuild
from calibrant.reporting.evidence import Part
from calibrant.reporting.sections.reliability import (
    BAND_POINTS,
    STOPS,
    ScoreBins,
    average_design_effect,
    bin_counts,
    corp_curve,
    inner_log_odds,
    linear_edges,
    log_odds_edges,
    net_benefit_section,
    reliability_section,
    two_digits,
)
from tests.reporting.sections.worlds import binary, part


@pytest.fixture(scope="module")
def data():
    return binary(6000, slope=0.7, shift=-0.4)


@pytest.fixture(scope="module")
def section(data):
    return reliability_section(Part(data), threshold=0.2)


def test_bins_and_bars_hold_every_row_once(section):
    for axis in ("log odds", "linear"):
        assert sum(one.n for one in section.bins[axis]) == 6000
        assert sum(rows for _, _, rows in section.histogram[axis]) == 6000
        assert 8 <= len(section.bins[axis]) <= 14


def test_the_curve_is_the_isotonic_regression(data, section):
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression().fit(data.y_prob, data.y_true).predict(data.y_prob)
    curve = section.curve
    block = np.searchsorted(curve.high, data.y_prob, side="left")
    np.testing.assert_allclose(np.array(curve.rate)[block], fitted, atol=1e-9)


def test_bands_hold_what_they_promise(data, section):
    band = section.curve.confidence
    truth = 1 / (1 + np.exp(0.4 - 0.7 * np.log(np.array(band.score) / (1 - np.array(band.score)))))
    assert np.all((np.array(band.low) <= truth) & (truth <= np.array(band.high)))
    null = section.consistency
    assert np.mean((np.array(null.low) <= null.score) & (null.score <= np.array(null.high))) > 0.95
    assert max(len(band.score), len(null.score)) <= BAND_POINTS


def test_ranges_say_where_the_error_sits(section):
    assert 3 <= len(section.ranges) <= 5
    assert sum(one.n for one in section.ranges) == 6000
    assert sum(one.share for one in section.ranges) == pytest.approx(1)
    gaps = [abs(one.events - one.n * one.predicted) for one in section.bins["log odds"]]
    inside = [one for one in section.bins["log odds"] if one.high <= section.ranges[0].high]
    first = sum(abs(one.events - one.n * one.predicted) for one in inside)
    assert section.ranges[0].share == pytest.approx(first / sum(gaps))
    high = section.ranges[-1]
    assert high.observed.value < high.predicted


def test_rows_around_and_above_the_threshold(data, section):
    found = section.threshold
    above = data.y_prob >= 0.2
    assert found.above.n == above.sum()
    assert found.above.observed.value == pytest.approx(data.y_true[above].mean())
    around = (data.y_prob >= found.around.low) & (data.y_prob <= found.around.high)
    assert found.around.n == around.sum() >= 100
    assert found.around.low < 0.2 < found.around.high
    assert (found.around.low, found.around.high) == (0.16, 0.24)


def test_a_threshold_far_from_all_scores():
    found = reliability_section(part(300, mean=-4.0, spread=0.2), threshold=0.99).threshold
    assert found.around is None
    assert found.above is None


def test_the_highest_scores(data, section):
    assert section.top.n == 300
    top = data.y_prob >= section.top.low
    assert top.sum() == 300
    assert section.top.events == data.y_true[top].sum()


def test_rare_events_start_on_log_odds():
    assert reliability_section(part(4000, mean=-4.5)).axis == "log odds"
    assert reliability_section(part(4000)).axis == "linear"
    for events, axis in ((49, "log odds"), (51, "linear")):
        data = cal.Binary(np.arange(1000) < events, np.linspace(0.01, 0.2, 1000))
        assert reliability_section(Part(data)).axis == axis


@pytest.mark.parametrize("digits", [0, 1])
def test_few_scores_are_bins_of_their_own(digits):
    section = reliability_section(part(2000, digits=digits))
    assert section.distinct == (2 if digits == 0 else 11)
    assert all(one.low == one.high for one in section.bins["linear"])
    assert len(section.ranges) <= 5
    assert ("log odds" in section.bins) == (digits == 1)


def test_one_score_and_few_rows():
    one = reliability_section(Part(cal.Binary([0, 1, 0], [0.3, 0.3, 0.3])))
    assert one.distinct == 1
    assert one.top is None
    assert one.ranges[0].share == pytest.approx(1)
    three = reliability_section(Part(cal.Binary([0, 1, 0], [0.1, 0.5, 0.9])), threshold=0.5)
    assert three.threshold.above.n == 2


def test_no_rows():
    table = cal.BinTable.of(cal.Binary([0, 1], [0.3, 0.4]), cal.table.Distinct())
    with pytest.raises(CannotBuild, match="No row"):
        reliability_section(Part(table.take(np.array([False, False]))))


def test_clusters_widen_the_bands():
    group = np.arange(3000) // 30
    p = np.repeat(np.linspace(0.05, 0.95, 100), 30)
    y = np.repeat(np.random.default_rng(0).random(100) < p[::30], 30)  # one outcome per cluster
    wide = reliability_section(Part(cal.Binary(y, p, group=group)))
    narrow = reliability_section(Part(cal.Binary(y, p)))
    width = [np.mean(np.subtract(one.curve.confidence.high, one.curve.confidence.low)) for one in (wide, narrow)]
    assert width[0] > 2 * width[1]


def test_a_grid_of_many_rows_gives_nearly_the_same():
    data = binary(20_000, slope=0.8)
    exact = reliability_section(Part(data))
    grid = reliability_section(Part(cal.BinTable.of(data, cal.table.HybridGrid())))
    assert grid.distinct is None
    for one, other in zip(exact.bins["log odds"], grid.bins["log odds"], strict=True):
        assert one.n == pytest.approx(other.n, abs=5)
        assert one.observed.value == pytest.approx(other.observed.value, abs=0.002)
    assert corp_curve(Part(data).cells) == corp_curve(cal.BinTable.of(data, cal.table.Distinct()))


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


@pytest.mark.no_cover
def test_intervals_cover_with_a_dominating_cluster():
    covered, rng = [], np.random.default_rng(6)
    group = np.repeat(np.arange(26), [300] + [20] * 25)
    for _ in range(300):
        common = (rng.random(26) < 0.3)[group]
        y = np.where(rng.random(len(group)) < 0.5, common, rng.random(len(group)) < 0.3)
        found = ScoreBins(Part(cal.Binary(y, np.full(len(y), 0.3), group=group))).each_score()[0].observed
        covered.append(found.low <= 0.3 <= found.high)
    assert np.mean(covered) > 0.92


def test_one_effective_cluster_says_nothing():
    y, group = np.arange(510) % 10 == 0, np.repeat([0, 1], [500, 10])
    found = ScoreBins(Part(cal.Binary(y, np.full(510, 0.2), group=group))).each_score()[0].observed
    assert found.low < 0.001
    assert found.high > 0.8


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


@pytest.mark.parametrize("mean", [-6.0, -1.0, 0.0, 3.0])
@pytest.mark.parametrize("spread", [0.05, 1.0, 3.0])
def test_edges_rise_and_hold_all_scores(mean, spread):
    cells = part(3000, mean=mean, spread=spread).cells
    for edges in (log_odds_edges(cells), linear_edges(cells)):
        assert np.all(np.diff(edges) > 0)
        assert edges[0] <= cells.low[0]
        assert cells.high[-1] <= edges[-1]
        assert 4 <= len(edges) <= 15


def test_edges_on_log_odds_have_two_digits_and_are_evenly_spaced():
    edges = log_odds_edges(part(5000).cells)[1:-1]
    np.testing.assert_array_equal(edges, two_digits(edges))
    steps = np.diff(np.log(edges / (1 - edges)))
    assert steps.max() / steps.min() < 1.5


def test_linear_edges_are_multiples_of_a_round_step():
    np.testing.assert_allclose(linear_edges(part(5000, spread=2.5).cells), np.linspace(0, 1, 11))
    narrow = Part(cal.Binary([0, 1, 0], [0.001, 0.1, 0.27])).cells
    np.testing.assert_allclose(linear_edges(narrow), np.linspace(0, 0.275, 12))


def test_scores_of_0_and_1_have_no_log_odds():
    cells = part(500, digits=0).cells
    assert set(cells.key) == {0.0, 1.0}
    assert log_odds_edges(cells) is None
    assert inner_log_odds(cells) is None


def test_far_scores_do_not_stretch_the_axis():
    cells = part(10_000, spread=1.0, mean=0.0).cells
    low, high = inner_log_odds(cells)
    assert low > np.log(cells.low[0] / (1 - cells.low[0]))
    z = np.log(cells.predicted_mean / (1 - cells.predicted_mean))
    assert high == pytest.approx(np.quantile(z, 0.999), abs=0.03)


@pytest.mark.parametrize("columns", [{}, {"digits": 1}, {"weight": np.random.default_rng(0).random(3000)}])
def test_every_error_is_that_of_ece(columns):
    data = binary(3000, slope=0.7, **columns)
    found = bin_counts(Part(data))
    for k, bins in enumerate(found.counts):
        assert found.equal_mass[k] == pytest.approx(float(cal.ece(data, bins=bins)))
        assert found.equal_width[k] == pytest.approx(float(cal.ece(data, bins=cal.EqualWidth(bins))))


@pytest.mark.no_cover
def test_the_range_is_that_of_calibrated_samples():
    data = binary(1000, mean=-2.0)
    found = bin_counts(Part(data))
    rng = np.random.default_rng(1)
    for bins in (2, 15, 100):
        drawn = [float(cal.ece(rng.random(1000) < data.y_prob, data.y_prob, bins=bins)) for _ in range(300)]
        k = found.counts.index(bins)
        low, high = np.quantile(drawn, [0.05, 0.95])
        assert found.null_low[k] == pytest.approx(low, rel=0.15, abs=0.002)
        assert found.null_high[k] == pytest.approx(high, rel=0.1)


def test_clusters_widen_the_range():
    p = np.repeat(np.random.default_rng(0).random(200), 20)
    y = np.repeat(np.random.default_rng(1).random(200) < p[::20], 20)
    rows, clusters = (bin_counts(Part(cal.Binary(y, p, group=group))) for group in (None, np.arange(4000) // 20))
    assert clusters.null_high[3] > 2 * rows.null_high[3]


def test_a_bin_needs_rows():
    assert bin_counts(part(40)).counts == (2, 3, 5, 8, 10, 15, 20)
    assert bin_counts(part(2000)).counts == STOPS
    for few in (cal.Binary([0, 1, 1], [0.1, 0.2, 0.3]), cal.Binary([0, 1] * 50, [0.5] * 100)):
        with pytest.raises(CannotBuild):
            bin_counts(Part(few))


def test_sizes_of_the_section(section):
    assert len(section.ranges) == 4  # of five, two end at the same bin
    assert {axis: len(bars) for axis, bars in section.histogram.items()} == {"linear": 40, "log odds": 48}
    assert len(section.consistency.score) == 200


def test_rows_near_a_threshold():
    y = np.arange(250) % 2
    for near, found in ((150, 150), (75, 250)):
        p = np.where(np.arange(250) < near, 0.2, 0.14)
        around = reliability_section(Part(cal.Binary(y, p)), threshold=0.2).threshold.around
        assert around.n == found
        assert (around.low, around.high) == ((0.16, 0.24) if near == 150 else (0.13, 0.29))


def test_cells_of_clustered_bands_hold_twenty_rows():
    rng = np.random.default_rng(0)
    p = np.repeat(rng.random(1000), 10)
    one = Part(cal.Binary(np.repeat(rng.random(1000) < p[::10], 10), p, group=np.arange(10_000) // 10))
    rows = 10_000 / average_design_effect(one)
    assert 0.7 < len(reliability_section(one).consistency.score) * 20 / rows < 1.4


@pytest.mark.no_cover
def test_net_benefit_around_the_threshold():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 6, 4000)
    data = cal.Binary(rng.random(4000) < p, p)
    found = net_benefit_section(Part(data), 0.2)
    odds = np.array(found.thresholds) / (1 - np.array(found.thresholds))
    assert len(odds) == 41
    np.testing.assert_allclose([odds[0], odds[-1]], [0.0625, 1.0])
    assert found.thresholds[found.own] == pytest.approx(0.2)
    own = cal.net_benefit(data, thresholds=[0.2])
    value = found.values[found.own]
    np.testing.assert_allclose([value.value, value.low, value.high], [own.value[0], own.low[0], own.high[0]])
    shown = cal.report(data, threshold=0.2)
    assert "Net benefit, true positives per 100 rows" in str(shown)
    assert 'id="net-benefit"' in shown.to_html()
    assert 'id="net-benefit"' not in cal.report(data).to_html()
