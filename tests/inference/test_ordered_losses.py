"""Running risks and their variances, against sums written out."""

import numpy as np
import pytest

from calibrant.inference.ordered_losses import OrderedLosses

RNG = np.random.default_rng(2)
CONFIDENCE = np.round(RNG.random(80), 1)
LOSS, WEIGHT = RNG.gamma(1.0, size=80), RNG.gamma(2.0, size=80)
CLUSTER = RNG.integers(0, 12, 80)


def made(cluster=None):
    return OrderedLosses.of(CONFIDENCE, LOSS, WEIGHT, WEIGHT**2, cluster)


def test_risks_are_means_of_the_most_confident():
    found = made()
    values = found.confidence[found.ends]
    for value, risk, running in zip(values, found.risk, found.running, strict=True):
        some = value <= CONFIDENCE
        assert risk == pytest.approx(np.average(LOSS[some], weights=WEIGHT[some]))
        assert running == pytest.approx(WEIGHT[some].sum())


@pytest.mark.parametrize("cluster", [None, CLUSTER])
def test_variances_are_diagonals_of_the_covariance_up_to_the_correction_for_few_rows(cluster):
    found = made(cluster)
    runs = np.array([3, 6, 9])
    variance, carrying = found.variances(runs)
    diagonal = np.diag(found.covariance(runs))
    factor = 1.0 if cluster is not None else carrying / (carrying - 1)
    assert variance == pytest.approx(diagonal * factor)
    some = found.confidence[found.ends[6]] <= CONFIDENCE
    parts = WEIGHT * some * (LOSS - found.risk[6])
    sums = parts if cluster is None else np.bincount(CLUSTER, parts)
    assert diagonal[1] == pytest.approx((sums**2).sum() / WEIGHT[some].sum() ** 2)


def test_the_influence_is_the_derivative_of_the_area_by_weight():
    rows, step = np.arange(3000), 1e-4
    rng = np.random.default_rng(0)
    confidence, loss = rng.random(3000), rng.gamma(1.0, size=3000)
    found = OrderedLosses.of(confidence, loss, np.ones(3000), np.ones(3000))
    influence = np.empty(3000)
    influence[np.argsort(-confidence)] = found.area_influence()
    for k in (5, 700, 2999):
        weight = np.where(rows == k, 1 + step * 3000, 1.0)
        # The area of weighted rows: the mean over rows of the running mean.
        order = np.argsort(-confidence)
        running = np.cumsum((weight * loss)[order]) / np.cumsum(weight[order])
        changed = np.average(running, weights=weight[order])
        plain = np.mean(np.cumsum(loss[order]) / (rows + 1))
        assert (changed - plain) / step == pytest.approx(influence[k], rel=0.05, abs=0.05)


@pytest.mark.parametrize("ties", [False, True])
def test_the_influence_is_exact_in_runs_of_equal_confidence(ties):
    """Of the ideal order of errors, whose area is r + (1 - r) log(1 - r), it is -log(1 - r) times error less rate."""
    rng = np.random.default_rng(1)
    wrong = (rng.random(4000) < 0.3).astype(float)
    confidence = -wrong if ties else -wrong - 1e-9 * rng.random(4000)
    found = OrderedLosses.of(confidence, wrong, np.ones(4000), np.ones(4000))
    rate = wrong.mean()
    assert found.area() == pytest.approx(rate + (1 - rate) * np.log(1 - rate), abs=1e-3)
    if ties:
        expected = -np.log(1 - rate) * (found.loss - rate)
        assert found.area_influence() == pytest.approx(expected, abs=2e-3)
    assert found.spread(found.area_influence())[0] == pytest.approx(
        -np.log(1 - rate) * np.sqrt(rate * (1 - rate) / 4000), rel=0.02
    )


def test_the_largest_part_is_that_of_the_most_confident_error():
    found = OrderedLosses.of(np.array([0.9, 0.8, 0.7, 0.6]), np.array([0.0, 1, 0, 1]), np.ones(4), np.ones(4))
    assert found.largest_part() == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 4)
    cluster = np.array([0, 1, 1, 1])
    both = OrderedLosses.of(found.confidence, found.loss, np.ones(4), np.ones(4), cluster)
    assert both.largest_part() == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 1 / 4) / 4)
    assert both.clusters_up_to([0, 1, 3]).tolist() == [1, 2, 2]
