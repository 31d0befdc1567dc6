"""The sample behind intervals and tests: its table, pooled cells, clusters, resamples and design effect."""

import numpy as np
import pytest
from scipy.special import expit, ndtr
from scipy.stats import norm
from scipy.stats import t as student

import calibrant as cal
from calibrant.inference.calibration_tests import ClusteredRows
from calibrant.inference.inversion.spread_fit import ForecastClusters
from calibrant.inference.sample import (
    SLOPE_SHARE,
    EventRate,
    Sample,
    _cross_sums,
    carrying,
    cluster_labels,
    coarse_cells,
    design_effect,
    require_two_rows,
    row_clusters,
    rows_that_count,
    student_inflation,
    sums_by,
)
from calibrant.numerics.arrays import EXACT_ROWS
from calibrant.numerics.confidence_limits import mid_p_interval
from tests.inference.worlds import BENT


def weighted(n, **more):
    data = BENT.sample(n)
    return cal.Binary(data.y_true, data.y_prob, weight=np.random.default_rng(0).integers(1, 4, n), **more)


def test_few_rows_have_a_cell_per_score_and_many_are_counted_on_a_grid():
    few, many = (Sample.of(BENT.sample(n), needed_by="") for n in (100, EXACT_ROWS + 1))
    assert isinstance(few.table.cut, cal.table.Distinct)
    assert isinstance(many.table.cut, cal.table.HybridGrid)
    assert many.table.n == EXACT_ROWS + 1
    assert np.all(np.diff(many.table.low) > 0)


def test_rows_know_their_cells_and_clusters():
    sample = Sample.of_rows(weighted(200, group=np.arange(200) // 4))
    table = sample.table
    np.testing.assert_array_equal(table.key[sample.cell], sample.rows.key)
    np.testing.assert_allclose(np.bincount(sample.cell, sample.row_share * table.total), table.weight)
    pooled = sample.pooled(32)
    np.testing.assert_allclose(np.bincount(pooled.number[sample.cell], sample.row_share), pooled.share)
    assert sample.clusters == 50
    np.testing.assert_allclose(sample.by_cluster(sample.residual[:, None])[:, 0], sample.residual.reshape(50, 4).sum(1))
    assert sample.effective_n == pytest.approx(sample.rows.weight.sum() ** 2 / (sample.rows.weight**2).sum())


def test_rows_without_weight_are_left_out():
    data = weighted(50)
    data = cal.Binary(data.y_true, data.y_prob, weight=np.where(np.arange(50) < 20, 0.0, data.weight))
    assert len(Sample.of_rows(data).rows.key) == 30


def test_a_coarse_table_keeps_the_sums():
    table = Sample.of(BENT.sample(3000), needed_by="").table
    coarse = coarse_cells(table)
    assert len(coarse) <= 512
    np.testing.assert_allclose(coarse.sums.sum(axis=1), table.sums.sum(axis=1))
    assert coarse_cells(coarse) is coarse


@pytest.mark.parametrize("clustered", [False, True])
def test_resamples_vary_about_the_sample_as_samples_do(clustered):
    data = BENT.sample(400)
    sample = Sample.of_clusters(data) if clustered else Sample.of(data, needed_by="")
    tables = list(sample.resample(500, np.random.default_rng(0)))
    assert {table.n for table in tables} == {400}
    rates = np.array([table.observed.sum() for table in tables]) / 400
    rate = data.y_true.mean()
    assert rates.mean() == pytest.approx(rate, abs=0.005)
    assert rates.std() == pytest.approx(np.sqrt(rate * (1 - rate) / 400), rel=0.12)


def test_each_cluster_once_is_the_sample():
    sample = Sample.of_clusters(weighted(300, group=np.arange(300) % 60))
    (again,) = sample.repeated(np.ones((1, 60)))
    np.testing.assert_allclose(again.sums, sample.coarse.sums)
    (tripled,) = sample.repeated(np.full((1, 60), 3.0))
    np.testing.assert_allclose(tripled.sums, 3 * sample.coarse.sums)


def test_independent_rows_are_divided_into_random_clusters():
    data = BENT.sample(5000)
    labels = cluster_labels(data, 5000)
    assert len(np.unique(labels)) == 1024
    assert np.array_equal(labels, cluster_labels(data, 5000))
    assert np.array_equal(cluster_labels(data, 10), np.arange(10))


def test_other_tasks_and_weighted_tables_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="Here needs binary"):
        Sample.of(cal.Gaussian([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]), needed_by="Here")
    table = cal.BinTable.of(cal.PositiveUnlabeled([0.5, 0.7], [0.1, 0.6], prior=0.5), cal.table.Distinct())
    with pytest.raises(cal.InvalidPredictions, match="does not support positive-unlabeled"):
        Sample.of(table, needed_by="Here")
    table = cal.BinTable.of(weighted(50), cal.table.Distinct())
    with pytest.raises(cal.InvalidPredictions, match="weighted rows"):
        list(Sample.of(table, needed_by="").resample(2, np.random.default_rng(0)))
    with pytest.raises(cal.InvalidPredictions, match="no rows"):
        _ = Sample.of(table, needed_by="").rows


def test_the_table_of_clusters_keeps_its_task():
    rng = np.random.default_rng(0)
    std = rng.lognormal(size=50)
    sample = Sample.of_clusters(cal.Gaussian(std * rng.normal(size=50), np.zeros(50), std))
    assert sample.table.task == cal.table.Spread()
    assert next(sample.resample(1, rng)).task == cal.table.Spread()  # so that ENCE takes resampled tables


def test_copies_say_nothing_new_and_independent_rows_count_in_full():
    rng = np.random.default_rng(0)
    once = rng.normal(size=(400, 2))
    labels = np.repeat(np.arange(400), 3)
    copies = list(np.repeat(once, 3, axis=0).T)
    assert design_effect(copies, labels) == pytest.approx(3)
    assert rows_that_count(None, copies, labels, 1200) == pytest.approx(400)
    assert design_effect(once.T, None) == 1
    assert design_effect([np.zeros(4)], np.zeros(4, dtype=int)) == 1
    assert rows_that_count(np.array([1.0, 1.0, 0.0]), once[:3].T, None, 3) == pytest.approx(2)


def test_clusters_are_groups_or_rows_of_several_outputs():
    zero, one = np.zeros((3, 2)), np.ones((3, 2))
    assert row_clusters(cal.Gaussian(zero, zero, one), 6).tolist() == [0, 0, 1, 1, 2, 2]
    assert row_clusters(cal.Gaussian(zero, zero, one, group=["b", "a", "b"]), 6).tolist() == [1, 1, 0, 0, 1, 1]
    assert row_clusters(cal.Gaussian(zero[:, 0], zero[:, 0], one[:, 0]), 3) is None


def rates(data, **options):
    return EventRate.of(Sample.with_clusters(data, needed_by="a test"), **options)


def test_the_rate_of_one_score_is_binomial():
    found = rates(cal.Binary([1] * 3 + [0] * 47, [0.2] * 50))
    assert found.rows(0.05) == pytest.approx(49)  # the variance is that of a sample
    low, high = map(float, mid_p_interval(3 / 50 * 49, 49, 0.99))
    assert found.limits(0.01) == pytest.approx((low, high))
    assert found.least_gap(0.01) == pytest.approx(0.2 - high)
    assert found.direction == 1
    assert rates(cal.Binary([0] * 9 + [1] * 41, [0.2] * 50)).direction == -1


@pytest.mark.parametrize("group", [None, np.arange(200) // 5])
def test_the_p_value_is_the_alpha_at_which_the_limits_reach_the_mean_prediction(group):
    rng = np.random.default_rng(2)
    p = rng.beta(1, 3, 200)
    found = rates(cal.Binary(rng.random(200) < 0.8 * p, p, group=group))
    assert 0.001 < found.p_value < 0.3
    assert found.least_gap(found.p_value * 1.001) > 0 == found.least_gap(found.p_value * 0.999)


def test_variances_are_those_of_shift_and_factor():
    rng = np.random.default_rng(0)
    p, w = rng.beta(1, 3, 80), rng.gamma(2.0, size=80)
    y = (rng.random(80) < p / 2).astype(int)
    share = w / w.sum()
    rate, mean = share @ y, share @ p
    squares = [share**2 @ (y - m) ** 2 for m in (p + rate - mean, p * rate / mean)]
    size = 1 / (share @ share)
    found = rates(cal.Binary(y, p, weight=w))
    assert found.variance == pytest.approx(max(squares) * size / (size - 1), rel=1e-6)
    group = np.repeat(np.arange(16), 5)
    part = share.reshape(16, 5).sum(axis=1)
    sums = [(share * (y - m)).reshape(16, 5).sum(axis=1) for m in (p + rate - mean, p * rate / mean)]
    expected = max(float((one**2 / (1 - part)).sum()) for one in sums)
    clustered = rates(cal.Binary(y, p, weight=w, group=group))
    assert clustered.variance == pytest.approx(expected)
    assert 1 <= clustered.freedom <= 16


def test_shares_of_the_error_budget():
    """The level has a quarter of alpha, half of it with clusters, and the slope a tenth."""
    data = cal.Binary([0, 1] * 40, np.linspace(0.1, 0.9, 80))
    grouped = cal.Binary(data.y_true, data.y_prob, group=np.arange(80) // 4)
    assert (rates(data).share, rates(grouped).share, SLOPE_SHARE) == (0.25, 0.5, 0.1)


def in_twelve(seed):
    """Twelve clusters of 30 whose rows share three tenths of their luck."""
    rng = np.random.default_rng([4, seed])
    group, z = np.repeat(np.arange(12), 30), rng.normal(size=360)
    luck = np.sqrt(0.3) * rng.normal(size=12)[group] + np.sqrt(0.7) * rng.normal(size=360)
    return cal.Binary(ndtr(luck) < expit(z - 1), expit(z), group=group)


def test_rows_of_clusters_count_by_how_alike_they_look_if_few_have_events():
    """14 and 9 rows with the rarer outcome count in these, if a gap that all rows share makes them no more alike."""
    many, few = (Sample.with_clusters(in_twelve(seed), needed_by="a test") for seed in (11, 3))
    assert np.isinf(many.few_counting)
    sums = ClusteredRows.of(few.source).sums()
    assert few.few_counting == pytest.approx(360 / float(sums.design_effect[0]))
    assert EventRate.of(few).rows(0.05) <= few.few_counting
    p = np.random.default_rng(0).random(320)
    gap = cal.Binary(np.random.default_rng(1).random(320) < p**2, p, group=np.arange(320) // 40)
    assert np.isinf(Sample.with_clusters(gap, needed_by="a test").few_counting)


def test_few_events_in_large_clusters_are_no_evidence_of_the_level():
    """The sums of three clusters without an event do not vary: 12 % of these rates excluded the prediction."""
    group, excluded = np.repeat(np.arange(203), [300] * 3 + [1] * 200), 0
    for k in range(60):
        rng = np.random.default_rng([7, k])
        z = rng.normal(-3.7, 1.0, len(group))
        luck = np.sqrt(0.7) * rng.normal(size=203)[group] + np.sqrt(0.3) * rng.normal(size=len(group))
        data = cal.Binary(ndtr(luck) < expit(z), expit(z), group=group)
        excluded += EventRate.of(Sample.with_clusters(data, needed_by="a test")).p_value <= 0.025
    assert excluded <= 2


def test_predictions_of_0_and_1_that_are_right_have_no_gap():
    found = rates(cal.Binary([0, 1, 1], [0.0, 1.0, 1.0]))
    assert found.p_value > 0.9999
    assert found.limits(0.05) == pytest.approx((2 / 3, 2 / 3), abs=1e-3)


def test_clusters_are_numbered_by_what_they_hold():
    rng = np.random.default_rng(0)
    p, group = rng.random(300), np.repeat(np.arange(60), 5)
    data = cal.Binary(rng.random(300) < p, p, group=group)
    other = cal.Binary(data.y_true, p, group=rng.permutation(60)[group])
    one, two = (Sample.with_clusters(d, needed_by="a test").fine(facing=True) for d in (data, other))
    assert np.array_equal(one.weight, two.weight)
    assert np.array_equal(one.events, two.events)


@pytest.mark.parametrize("scores", [np.linspace(0.55, 0.9, 7), np.linspace(0.2, 0.8, 7), np.array([0.2, 0.5, 0.8])])
def test_outcomes_are_exchanged_where_scores_are_high(scores):
    p = np.repeat(scores, 4)
    data = cal.Binary(np.arange(len(p)) % 4 > 1, p)
    turned = cal.Binary(1 - data.y_true, 1 - p)
    cells = [Sample.of(d, needed_by="a test").pooled(5, facing=True) for d in (data, turned)]
    assert cells[0].predicted == pytest.approx(cells[1].predicted)
    assert cells[0].observed == pytest.approx(cells[1].observed)
    assert cells[0].predicted @ cells[0].share <= 0.5 + 1e-9


def equal_clusters(clusters, rows=5, z=None):
    label = np.repeat(np.arange(clusters), rows)
    return ForecastClusters.of(label, None, np.random.default_rng(0).normal(size=len(label)) if z is None else z)


def test_correlated_rows_count_between_all_rows_and_one_of_each_cluster():
    found = equal_clusters(8)
    assert [found.normal_rows(rho) for rho in (0, 0.25, 1)] == pytest.approx([40, 40 / (1 + 4 * 0.25), 8])


def test_the_reach_of_clusters_is_students_with_one_degree_of_freedom_less():
    assert equal_clusters(8).reach(0.95) == pytest.approx(student.ppf(0.975, 7))
    assert equal_clusters(1).reach(0.95) == pytest.approx(student.ppf(0.975, 1))


def test_six_effective_clusters_are_enough_for_a_statement_and_twenty_are_many():
    equal_clusters(6).require_enough()
    with pytest.raises(cal.InvalidPredictions, match=r"5 clusters that count as 5\.0 equal ones"):
        equal_clusters(5).require_enough()
    assert [equal_clusters(k).words for k in (19, 20)] == ["few clusters (19); ", ""]


def test_errors_of_clusters_are_alike_by_their_products_or_by_the_root_of_those_of_their_squares():
    rng = np.random.default_rng(3)
    z = np.repeat(rng.normal(size=(40, 1)), 4, axis=1) + rng.normal(size=(40, 4))
    pairs = 40 * 4 * 3

    def of_pairs(values):
        return (values.sum(axis=1) ** 2 - (values**2).sum(axis=1)).sum() / pairs / (values**2).mean()

    assert equal_clusters(40, 4, z.ravel()).correlation == pytest.approx(of_pairs(z))
    signs = rng.choice([-1.0, 1.0], z.shape)
    of_squares = of_pairs(z**2 / (z**2).mean() - 1)
    assert equal_clusters(40, 4, (signs * z).ravel()).correlation == pytest.approx(np.sqrt(of_squares))


def test_single_rows_and_errors_of_0_are_not_alike():
    assert equal_clusters(9, 1).correlation == 0
    assert equal_clusters(9, 4, np.zeros(36)).correlation == 0


def test_two_rows_of_the_same_weight_are_enough_for_resamples():
    require_two_rows(cal.Binary([0, 1], [0.2, 0.7]))
    require_two_rows(cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.table.Distinct()))
    with pytest.raises(cal.InvalidPredictions, match=r"at least two rows that count; .* these are 1\.8"):
        require_two_rows(cal.Binary([0, 1], [0.2, 0.7], weight=[1, 2]))
    with pytest.raises(cal.InvalidPredictions, match=r"at least two groups that count; .* these are 1\."):
        require_two_rows(cal.Binary([0, 1], [0.2, 0.7], group=[3, 3]))


def test_events_that_were_predicted_to_be_impossible_leave_the_scores_as_they_are():
    found = rates(cal.Binary([0, 0, 0, 1], [0.0] * 4))
    assert (found.rate, found.mean) == (0.25, 0)
    assert found.variance == pytest.approx(0.25 / 4 * 4 / 3)  # of y - 0, which is more than that of y - 1/4


def test_of_one_outcome_alone_as_many_clusters_count_as_there_are():
    group = np.arange(60) // 5
    found = rates(cal.Binary([0] * 60, np.linspace(0.1, 0.2, 60), group=group))
    assert found.rows(0.05) == found.size == 12
    assert rates(cal.Binary([0] * 60, np.linspace(0.1, 0.2, 60))).rows(0.05) == pytest.approx(60)


def test_unknown_variances_cost_the_square_of_students_quantile_over_the_normal_one():
    assert student_inflation(5, 0.9) == pytest.approx((student.ppf(0.95, 5) / norm.ppf(0.95)) ** 2)
    assert student_inflation(None, 0.9) == student_inflation(5, 0.0) == 1


def test_clusters_carry_a_variance_by_the_squares_of_their_parts():
    assert carrying(np.array([2.0, 2.0, 2.0, 0.0])) == pytest.approx(3)
    assert carrying(np.array([3.0, 1.0])) == pytest.approx(16 / 10)
    assert carrying(np.zeros(4)) == 1


@pytest.mark.parametrize("cells", [2, 300])
def test_sums_by_cluster_and_cell_are_the_same_if_most_are_empty(cells):
    rng = np.random.default_rng(0)
    label, cell, values = rng.integers(0, 6, 50), rng.integers(0, cells, 50), rng.random((2, 50))
    expected = np.zeros((2, 6, cells))
    for k in range(50):
        expected[:, label[k], cell[k]] += values[:, k]
    for found, wanted in zip(_cross_sums(label, cell, values, (6, cells)), expected, strict=True):
        np.testing.assert_allclose(found.toarray() if cells == 300 else found, wanted)


def test_sums_by_label():
    np.testing.assert_array_equal(sums_by(np.array([0, 1, 0]), np.array([[1.0], [2.0], [3.0]]), 3), [[4], [2], [0]])
