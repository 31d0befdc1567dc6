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
