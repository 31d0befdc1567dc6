"""The score test between clusters: its sums, its size where rows of a cluster repeat each other, and its power."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference.calibration_tests import ClusteredRows, ClusteredScore
from calibrant.inference.groupings import groupings


def rows(*, weight=None, n=900):
    """Clusters that cross three groups, of unlike sizes."""
    rng = np.random.default_rng(0)
    p, cluster = rng.beta(1, 2, n), rng.integers(0, 40, n)
    y = rng.random(n) < p
    return cal.Binary(y, p, weight=weight, group=cluster), groupings(rng.integers(0, 3, n) ** 2, length=n)[0]


@pytest.mark.parametrize("weight", [None, np.arange(900.0) % 4])
def test_every_group_is_tested_as_if_it_were_alone(weight):
    data, grouping = rows(weight=weight)
    found = ClusteredRows.of(data).sums(grouping)
    alone = [ClusteredScore().test(data.take(some)) for some in grouping.rows()]
    statistic, p = found.score_tests()
    assert statistic == pytest.approx([one.statistic for one in alone])
    assert p == pytest.approx([one.p_value for one in alone])
    assert found.clusters.tolist() == [one.details["clusters"] for one in alone]


def test_rows_without_weight_change_nothing():
    data, grouping = rows(weight=(np.arange(900) % 3 > 0).astype(float))
    kept = np.flatnonzero(data.weight)
    some = data.take(kept)
    some.weight = None
    for one, other in zip(
        ClusteredRows.of(data).sums(grouping).score_tests(),
        ClusteredRows.of(some).sums(grouping.take(kept)).score_tests(),
        strict=True,
    ):
        assert one == pytest.approx(other)


def test_the_gap_and_its_error_are_those_of_cluster_sums():
    data, grouping = rows()
    found = ClusteredRows.of(data).sums(grouping)
    for k, some in enumerate(grouping.rows()):
        residual = data.y_prob[some] - data.y_true[some]
        assert found.gap[k] == pytest.approx(residual.mean())
        sums = np.bincount(data.group[some], residual - residual.mean(), 40)
        p = data.y_prob[some]
        least = found.design_effect[k] * (p * (1 - p)).sum()
        variance = max((sums**2).sum() * 40 / 39, least)
        assert found.gap_error[k] == pytest.approx(np.sqrt(variance) / len(some))


def repeated(shared, *, clusters=400, size=10):
    rng = np.random.default_rng(1)
    p = np.repeat(rng.uniform(0.2, 0.8, clusters), size)
    luck = np.where(shared, np.repeat(rng.random(clusters), size), rng.random(clusters * size))
    return ClusteredRows.of(cal.Binary(luck < p, p, group=np.repeat(np.arange(clusters), size))).sums()


def test_rows_that_repeat_each_other_count_once_and_independent_ones_in_full():
    assert repeated(True).design_effect == pytest.approx([10.0])
    assert repeated(False).design_effect == pytest.approx([1.0], abs=0.25)


def test_clusters_of_one_row_are_independent_rows():
    rng = np.random.default_rng(2)
    p = rng.random(300)
    found = ClusteredRows.of(cal.Binary(rng.random(300) < p, p, group=np.arange(300))).sums()
    assert found.design_effect == [1.0]
    assert found.gap_error == pytest.approx([np.sqrt((p * (1 - p)).sum()) / 300], rel=0.1)


def test_clusters_without_events_count_as_one_row_each():
    """Ten patients of twenty rows and no event where two patients in ten have one: that is no surprise."""
    data = cal.Binary(np.zeros(200), np.full(200, 0.2), group=np.repeat(np.arange(10), 20))
    assert ClusteredRows.of(data).sums().design_effect == pytest.approx([20.0])
    assert ClusteredScore().test(data).p_value > 0.1
    assert cal.calibration_test(data).p_value > 0.1
    assert cal.calibration_test(cal.Binary(data.y_true, data.y_prob)).p_value < 0.01


def test_few_clusters_are_not_tested_and_their_gap_is_as_uncertain_as_can_be():
    data = cal.Binary([0, 1] * 50, [0.5] * 100, group=np.repeat(np.arange(5), 20))
    found = ClusteredRows.of(data).sums()
    assert np.isnan(found.score_tests()).all()
    assert found.gap_error == pytest.approx([0.5 / np.sqrt(5)])


def test_a_group_without_weight_is_named():
    data = cal.Binary([0, 1, 1, 0], [0.1, 0.7, 0.8, 0.3], weight=[1, 1, 0, 0], group=[0, 1, 2, 3])
    with pytest.raises(cal.InvalidPredictions, match="group 'b' have weight 0"):
        ClusteredRows.of(data).sums(groupings(["a", "a", "b", "b"], length=4)[0])


def test_predictions_next_to_certain_and_outcomes_that_contradict_them_give_no_warnings():
    p = np.tile([0.0, 1.0, 1e-200, 0.5], 20)
    data = cal.Binary(np.arange(80) % 2, p, group=np.repeat(np.arange(20), 4))
    assert 0 <= ClusteredRows.of(data).sums().score_tests()[1][0] <= 1


def clustered(seed, clusters, size, share, slope=1.0):
    """Rows of a cluster share their outcome's uniform number with probability `share`."""
    rng = np.random.default_rng(seed)
    z = np.repeat(rng.normal(-0.5, 1, clusters), size) + rng.normal(0, 0.5, clusters * size)
    own, common = rng.random(clusters * size), np.repeat(rng.random(clusters), size)
    u = np.where(rng.random(clusters * size) < share, common, own)
    p = 1 / (1 + np.exp(-z))
    return cal.Binary(u < 1 / (1 + np.exp(-slope * z)), p, group=np.repeat(np.arange(clusters), size))


@pytest.mark.no_cover
@pytest.mark.parametrize(("clusters", "size", "share"), [(20, 30, 0.3), (200, 10, 1.0), (60, 10, 0.5)])
def test_calibrated_models_are_rarely_rejected(clusters, size, share):
    rejected = sum(ClusteredScore().test(clustered(k, clusters, size, share)).p_value < 0.05 for k in range(100))
    assert rejected <= 11  # 1 in 70 for a rate of 5 %


def test_few_events_in_few_clusters_are_no_evidence():
    """Their sums hardly vary: with the variance between clusters alone, 20 of these were rejected."""
    rejected = 0
    for k in range(100):
        rng = np.random.default_rng([7, k])
        p = 1 / (1 + np.exp(4 - rng.normal(0, 1, 120)))
        common, own = np.repeat(rng.normal(size=8), 15), rng.normal(size=120)
        luck = stats.norm.cdf(np.sqrt(0.5) * (common + own))
        rejected += ClusteredScore().test(cal.Binary(luck < p, p, group=np.repeat(np.arange(8), 15))).p_value < 0.05
    assert rejected <= 11


def test_a_wrong_slope_is_found():
    assert ClusteredScore().test(clustered(0, 200, 20, 0.3, slope=2.5)).p_value < 0.001


def test_the_statistic_is_hotellings():
    data = clustered(1, 40, 5, 0.5)
    z = np.log(data.y_prob / (1 - data.y_prob))
    rows = (data.y_true - data.y_prob)[:, None] * np.stack([np.ones(len(z)), z - z.mean()], axis=1)
    sums = rows.reshape(40, 5, 2).sum(axis=1)
    mean, cov = sums.mean(axis=0), np.cov(sums.T)
    hotelling = 40 * mean @ np.linalg.inv(cov) @ mean
    assert ClusteredScore().test(data).statistic == pytest.approx((40 - 2) / (2 * (40 - 1)) * hotelling)


def test_one_score_is_students_t():
    rng = np.random.default_rng(2)
    y, group = rng.random(200) < 0.4, np.repeat(np.arange(50), 4)
    found = ClusteredScore().test(cal.Binary(y, np.full(200, 0.3), group=group))
    sums = (y - 0.3).reshape(50, 4).sum(axis=1)
    assert found.statistic == pytest.approx(stats.ttest_1samp(sums, 0).statistic ** 2)


def test_rows_that_are_all_certain_and_right_deviate_by_nothing():
    y = np.arange(40) % 2
    assert ClusteredScore().test(cal.Binary(y, y.astype(float), group=np.repeat(np.arange(10), 4))).p_value == 1.0


def test_rows_that_are_certain_and_wrong_are_evidence():
    """Independent outcomes of probability 0 or 1 do not vary: there the clusters alone decide."""
    y = np.arange(120) % 2
    p = np.where(np.arange(120) % 5 == 0, 1 - y, y).astype(float)
    assert ClusteredScore().test(cal.Binary(y, p, group=np.repeat(np.arange(40), 3))).p_value < 1e-4


def test_clusters_are_needed_and_enough_of_them():
    with pytest.raises(cal.InvalidPredictions, match="rows with a group"):
        ClusteredScore().test(cal.Binary([0, 1], [0.2, 0.8]))
    with pytest.raises(cal.InvalidPredictions, match="at least 8 groups"):
        ClusteredScore().test(clustered(0, 3, 10, 0.2))
