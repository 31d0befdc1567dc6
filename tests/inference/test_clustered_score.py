"""The score test between clusters: its size where rows of a cluster repeat each other, its power, and odd inputs."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference.clustered_score import ClusteredScore


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
