"""Intervals of scale factor and coverage."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.estimators.regression_common import cell_scores
from calibrant.inference import LogScale, Wilson
from calibrant.inference.forecast_intervals import _COUNTS, _FEWEST, _MOST, CoverageByGroup, LogMeanSquare, _Cells
from calibrant.inference.inversion.spread_fit import ForecastClusters
from tests.inference.spreads import forecasts


def test_it_is_wilsons_interval():
    y = np.random.default_rng(0).normal(size=80)
    data = cal.Gaussian(y, np.zeros(80), np.ones(80))
    found = cal.interval(partial(cal.coverage, nominal=0.8), data, level=0.9)
    inside = round(float(found) * 80)
    theirs = stats.binomtest(inside, 80).proportion_ci(0.9, method="wilson")
    assert (found.interval.low, found.interval.high) == pytest.approx((theirs.low, theirs.high))
    assert cal.interval(lambda d: cal.coverage(d, nominal=0.8), data, level=0.9).interval == found.interval


def test_every_kind_of_forecast_clusters_and_full_coverage():
    rng = np.random.default_rng(1)
    y, zero, one = rng.normal(size=60), np.zeros(60), np.ones(60)
    for data in (cal.Distribution(y, stats.norm(zero, one)), cal.Samples(y, rng.normal(size=(60, 30)))):
        found = cal.interval(cal.coverage, data)
        assert found.interval.low < found < found.interval.high
    everything = cal.interval(cal.coverage, cal.Gaussian(zero, zero, one)).interval
    assert everything.high == 1
    assert everything.low < 0.97
    rows = np.repeat(np.arange(60), 5)
    group = cal.Gaussian(y[rows], zero[rows], one[rows], group=rows)
    alone = cal.interval(cal.coverage, cal.Gaussian(y, zero, one)).interval
    together = cal.interval(cal.coverage, group).interval
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high), abs=0.01)
    assert together.low < alone.low
    assert together.high > alone.high


def test_other_estimates_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="share of rows"):
        cal.interval(cal.ence, cal.Gaussian([1.0, 2.0], [0.0, 0.0], [1.0, 1.0]), method=Wilson())


@pytest.mark.no_cover
@pytest.mark.parametrize("noise", ["normal", "t5", "skewed"])
def test_the_interval_covers_the_factor(noise):
    rng = np.random.default_rng(0)
    hits = [
        1.2 in cal.interval(cal.scale_factor, forecasts(rng, 200, noise=noise, factor=1.2)).interval for _ in range(200)
    ]
    assert np.mean(hits) >= 0.91


def test_the_factor_and_its_square_have_one_interval():
    data = forecasts(np.random.default_rng(1), 300)
    root, square = (cal.interval(f, data).interval for f in (cal.scale_factor, cal.mean_squared_z))
    assert (root.low**2, root.high**2) == pytest.approx((square.low, square.high))
    assert float(cal.scale_factor(data)) in root
    assert str(square.target) == "scale factor (squared)"


def test_for_normal_errors_the_standard_error_is_the_known_one():
    found = LogMeanSquare.of(forecasts(np.random.default_rng(2), 20_000), needed_by="test")
    assert found.error == pytest.approx(np.sqrt(2 / 20_000), rel=0.05)
    assert found.missing < 0.01
    assert not found.heavy_tails
    assert LogMeanSquare.of(forecasts(np.random.default_rng(2), 100, noise="t3"), needed_by="test").heavy_tails


def test_clusters_and_weights_widen_it():
    rng = np.random.default_rng(3)
    data = forecasts(rng, 600)
    common = np.repeat(rng.normal(size=120), 5)
    columns = (data.std * common, data.mean, data.std)
    clustered, plain = (
        cal.interval(cal.scale_factor, cal.Gaussian(*columns, group=group)).interval
        for group in (np.repeat(np.arange(120), 5), None)
    )
    assert clustered.high - clustered.low > 1.7 * (plain.high - plain.low)
    weight = np.where(np.arange(600) < 60, 50.0, 1.0)
    uneven = cal.interval(cal.scale_factor, forecasts(rng, 600, weight=weight)).interval
    even = cal.interval(cal.scale_factor, forecasts(rng, 600)).interval
    assert uneven.high - uneven.low > 1.7 * (even.high - even.low)


def test_a_small_mean_square_is_raised_by_what_may_be_missing():
    low, high = LogMeanSquare(-0.3, 0.1, 0.2, heavy_tails=False), LogMeanSquare(0.3, 0.1, 0.2, heavy_tails=False)
    assert low.statistic() == pytest.approx(-1)
    assert high.statistic() == pytest.approx(3)
    assert LogMeanSquare(-0.1, 0.1, 0.2, heavy_tails=False).statistic() == 0
    assert low.statistic(null=-0.3) == 0
    assert low.ends(0.95) == pytest.approx((-0.3 - 0.196, -0.3 + 0.196 + 0.2), abs=1e-3)


def test_another_target_is_refused():
    with pytest.raises(TypeError, match="scale_factor and mean_squared_z"):
        cal.interval(cal.ence, forecasts(np.random.default_rng(4), 50), method=LogScale())


def clustered(rng, clusters, rows, alike=0.5, factor=1.0, **options):
    """Rows of a cluster share a spread and, partly, their error."""
    group = np.repeat(np.arange(clusters), rows)
    std = rng.lognormal(0, 0.5, clusters)[group]
    z = np.sqrt(alike) * rng.normal(size=clusters)[group] + np.sqrt(1 - alike) * rng.normal(size=len(group))
    return cal.Gaussian(factor * std * z, 0 * std, std, group=group, **options)


ESTIMATORS = (cal.coverage, cal.scale_factor, cal.ence, cal.interval_error, cal.pit_error)


def test_nothing_is_claimed_of_fewer_than_six_effective_clusters():
    rng = np.random.default_rng(0)
    for estimator in ESTIMATORS:
        with pytest.raises(cal.InvalidPredictions, match=r"count as 5\.0 equal ones, too few"):
            cal.interval(estimator, clustered(rng, 5, 20))
        assert "few clusters (6)" in cal.interval(estimator, clustered(rng, 6, 20)).interval.assumption
        assert "few clusters (19)" in cal.interval(estimator, clustered(rng, 19, 5)).interval.assumption
        assert "few clusters" not in cal.interval(estimator, clustered(rng, 20, 5)).interval.assumption
    uneven = cal.Gaussian(rng.normal(size=120), np.zeros(120), np.ones(120), group=np.maximum(np.arange(120) - 60, 0))
    with pytest.raises(cal.InvalidPredictions, match=r"60 clusters that count as 3\.8"):
        cal.interval(cal.coverage, uneven)


@pytest.mark.no_cover
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda f: f.__name__)
def test_ten_clusters_that_share_a_spread_are_covered(estimator):
    truth = {"coverage": 0.9, "scale_factor": 1.0}.get(estimator.__name__, 0.0)
    found = [cal.interval(estimator, clustered(np.random.default_rng(seed), 10, 40)).interval for seed in range(25)]
    assert np.mean([truth in one for one in found]) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 25)


def test_clusters_of_one_row_are_rows_and_whole_copies_count_once():
    rng = np.random.default_rng(1)
    y, zero, one = rng.normal(size=300), np.zeros(300), rng.lognormal(0, 0.3, 300)
    rows = np.tile(np.arange(300), 8)
    for estimator in (cal.coverage, cal.scale_factor):
        alone = cal.interval(estimator, cal.Gaussian(y, zero, one)).interval
        single = cal.interval(estimator, cal.Gaussian(y, zero, one, group=np.arange(300))).interval
        copies = cal.interval(estimator, cal.Gaussian(y[rows], zero[rows], one[rows], group=rows)).interval
        for found in (single, copies):
            assert (found.low, found.high) == pytest.approx(
                (alone.low, alone.high), abs=0.15 * (alone.high - alone.low)
            )


def test_no_sample_of_few_clusters_looks_more_certain_than_normal_errors_as_alike():
    rng = np.random.default_rng(2)
    data = clustered(rng, 8, 50)
    found = ForecastClusters.of(data.group, None, data.z())
    assert found.effective == pytest.approx(8)
    rho = found.correlation
    assert found.normal_rows(rho**2) == pytest.approx(400 / (1 + rho**2 * 49))
    assert LogMeanSquare.of(data, needed_by="test").error ** 2 >= 2 / found.normal_rows(rho**2) * (1 - 1e-12)
    big = clustered(rng, 3000, 4, alike=0.5)
    assert ForecastClusters.of(big.group, None, big.z()).correlation == pytest.approx(0.5, abs=0.1)
    none = cal.Gaussian(rng.normal(size=4000), np.zeros(4000), np.ones(4000), group=np.arange(4000) // 2)
    assert ForecastClusters.of(none.group, None, none.z()).correlation < 0.3


def test_the_interval_of_an_ensemble_is_that_of_its_stretch():
    rng = np.random.default_rng(3)
    width = rng.lognormal(0, 0.5, 2000)
    hits = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data = cal.Samples(1.3 * width * rng.normal(size=2000), width[:, None] * rng.normal(size=(2000, 5)))
        found = cal.interval(cal.scale_factor, data)
        hits.append(np.sqrt((1.69 + 0.2) / 1.2) in found.interval)
        assert float(found) in found.interval
    assert np.mean(hits) >= 0.8
    again = cal.Samples(
        np.tile(data.y_true[:300], 4), np.tile(data.draws[:300], (4, 1)), group=np.tile(np.arange(300), 4)
    )
    once, four = (cal.interval(cal.scale_factor, one).interval for one in (data.take(np.arange(300)), again))
    assert four.high - four.low == pytest.approx(once.high - once.low, rel=0.1)
    with pytest.raises(cal.InvalidPredictions, match="size of the errors is unknown"):
        cal.interval(cal.scale_factor, cal.Samples([1.0, 1.0], [[0.0, 2.0], [0.5, 1.5]]))


LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def by_group(rng, groups, rows, factor=None, levels=LEVELS):
    member = np.repeat(np.arange(groups), rows)
    y = (np.ones(groups) if factor is None else np.asarray(factor))[member] * rng.normal(size=len(member))
    return cal.Quantiles(y, levels, np.tile(stats.norm.ppf(levels), (len(y), 1))), member


@pytest.mark.no_cover
def test_calibrated_groups_are_rejected_at_the_level_and_never_against_their_limits():
    rejected, nominal = [], partial(cal.coverage, nominal=0.9)
    for seed in range(40):
        data, member = by_group(np.random.default_rng(seed), 14, 30)
        found = cal.by_group(nominal, data, by=member)
        rejected.append(min(found.worst.p_value, found.trend.p_value) < 0.05)
        for row in found.rows:
            if not row.estimate.interval.low <= 0.9 <= row.estimate.interval.high:
                assert row.adjusted < 0.05
    assert np.mean(rejected) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)


def test_a_bad_group_is_named_with_its_direction_and_a_trend_with_its_own():
    factor = np.ones(14)
    factor[3] = 1.6
    data, member = by_group(np.random.default_rng(0), 14, 150, factor)
    found = cal.by_group(cal.coverage, data, by=member + 1)
    flagged = [(row.group, row.direction) for row in found.rows if row.adjusted < 0.05]
    assert flagged == [(4, "too narrow")]
    assert "Intervals are for all groups together." in str(found)
    rising, member = by_group(np.random.default_rng(1), 14, 150, np.linspace(0.8, 1.2, 14))
    found = cal.by_group(cal.coverage, rising, by=(member + 1).astype(str))
    assert [row.group for row in found.rows] == [str(k) for k in range(1, 15)]
    assert found.trend.p_value < 1e-6
    assert found.trend.details["direction"] == "too narrow"
    assert "Later groups are too narrow relative to earlier ones" in str(found)
    assert found.to_dict()["trend"]["p_value"] == found.trend.p_value
    assert cal.by_group(cal.coverage, rising, by=np.char.add("h", member.astype(str))).trend is None


def test_sums_of_groups_are_the_formula_written_out():
    rng = np.random.default_rng(4)
    data, member = by_group(rng, 3, 50, [1.0, 1.2, 0.7])
    found = CoverageByGroup.of(data, member, nominal=0.9, ordered=True)
    scores = cell_scores(np.r_[0, LEVELS, 1])
    cell = (data.values < data.y_true[:, None]).sum(axis=1)
    for k in range(3):
        np.testing.assert_allclose(found.sums[k, :2], scores[cell[member == k]].sum(axis=0) / np.sqrt(50))
        inside = np.abs(data.y_true[member == k]) <= stats.norm.ppf(0.95)
        assert found.sums[k, 2] == pytest.approx((inside.mean() - 0.9) / np.sqrt(0.09 / 50))
    assert found.trend == pytest.approx((found.sums[2] - found.sums[0]) / np.sqrt(2))
    assert found.adjusted.min() >= found.p_values.min()


def test_ensembles_counts_and_weights_have_groups_too():
    rng = np.random.default_rng(5)
    member = np.repeat(np.arange(4), 200)
    narrow = np.where(member == 2, 0.5, 1.0)[:, None]
    data = cal.Samples(rng.normal(size=800), narrow * rng.normal(size=(800, 9)), weight=rng.uniform(1, 2, 800))
    found = cal.by_group(cal.coverage, data, by=member)
    assert [row.direction for row in found.rows] == ["", "", "too narrow", ""]
    lam = rng.lognormal(0.5, 0.3, 800)
    counts = cal.Quantiles(rng.poisson(lam), LEVELS, np.stack([stats.poisson.ppf(q, lam) for q in LEVELS], 1))
    assert cal.by_group(cal.coverage, counts, by=member).worst.p_value > 0.05
    draws = cal.Samples(rng.poisson(lam), rng.poisson(lam[:, None], (800, 9)))
    assert cal.by_group(cal.coverage, draws, by=member).worst.p_value > 0.01


def test_many_groups_take_fewer_simulated_samples():
    rng = np.random.default_rng(6)
    for groups, samples in ((2, 1999), (5000, 1666), (100_000, 199)):
        cells = _Cells.of(by_group(rng, groups, 1)[0], None)
        assert int(np.clip(_COUNTS // (groups * len(cells.share)), _FEWEST, _MOST)) == samples
    assert CoverageByGroup.of(*by_group(rng, 2, 20)).alone.shape == (1999, 2)
    assert CoverageByGroup.of(*by_group(rng, 2, 20)).reach(0.95) > 2.2


def test_columns_divide_the_level_and_clusters_are_tested_one_by_one():
    rng = np.random.default_rng(7)
    data, member = by_group(rng, 4, 100, [1, 1, 1, 1.5])
    one = cal.by_group(cal.coverage, data, by=member)
    two = cal.by_group(cal.coverage, data, by={"a": member, "b": member % 2})
    assert two.tests["a", 3].p_value == pytest.approx(min(2 * one.tests[3].p_value, 1))
    assert two.trend is None


def test_few_rows_look_no_more_certain_than_normal_errors_and_nothing_is_claimed_of_fewer_than_six():
    y = np.array([1.0, -1.0, 1.1, -0.9, 1.0, -1.0, 1.05, -0.95])  # errors that happen to be alike

    def given(n):
        return cal.Gaussian(y[:n], np.zeros(n), np.ones(n))

    assert LogMeanSquare.of(given(8), needed_by="this").error == pytest.approx((2 / 8) ** 0.5)
    assert LogMeanSquare.of(given(6), needed_by="this").error == pytest.approx((2 / 6) ** 0.5)
    for call in (
        lambda: cal.interval(cal.scale_factor, given(5)),
        lambda: LogMeanSquare.of(given(1), needed_by="this"),
    ):
        with pytest.raises(cal.InvalidPredictions, match="too few for an interval or test of the spread: give 6"):
            call()
