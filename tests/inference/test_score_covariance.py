"""The middle of the sandwich."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference.score_covariance import ScoreCovariance

RNG = np.random.default_rng(0)
P = RNG.random(60)
Y = (RNG.random(60) < P).astype(int)
DESIGN = np.stack([np.ones(60), P], axis=1)


def of(data):
    return ScoreCovariance.of(
        data, fitted=lambda p: 0.9 * p, columns=lambda p: np.stack([np.ones(len(p)), p], axis=1), needed_by="test"
    )


def test_it_is_the_sum_of_squares_over_rows():
    scores = (Y - 0.9 * P)[:, None] * DESIGN
    found = of(cal.Binary(Y, P))
    assert found.matrix == pytest.approx(scores.T @ scores * 60 / 59)
    assert found.cluster_sums is None
    assert found.inflation(0.95, np.ones(2)) == 1
    assert of(cal.Binary(Y, P, group=np.arange(60))).matrix == pytest.approx(found.matrix)


def test_weights_add_up_to_kishs_number_of_rows():
    w = RNG.gamma(1.0, size=60)
    scaled = w * w.sum() / (w @ w)
    scores = (scaled * (Y - 0.9 * P))[:, None] * DESIGN
    size = scaled.sum()
    assert of(cal.Binary(Y, P, weight=w)).matrix == pytest.approx(scores.T @ scores * size / (size - 1))
    clustered = of(cal.Binary(Y, P, weight=w, group=np.arange(60)))
    assert clustered.matrix == pytest.approx(scores.T @ scores * 60 / 59)


def test_clusters_are_summed_first():
    group = np.repeat(np.arange(12), 5)
    scores = (Y - 0.9 * P)[:, None] * DESIGN
    sums = np.add.reduceat(scores, np.arange(0, 60, 5))
    found = of(cal.Binary(Y, P, group=group))
    assert found.matrix == pytest.approx(sums.T @ sums * 12 / 11)
    squares = sums[:, 0] ** 2
    carrying = squares.sum() ** 2 / (squares**2).sum()
    expected = (stats.t.ppf(0.975, carrying) / stats.norm.ppf(0.975)) ** 2
    assert found.inflation(0.95, np.array([1.0, 0.0])) == pytest.approx(expected)
    with pytest.raises(cal.InvalidPredictions, match="at least 8 groups"):
        of(cal.Binary(Y, P, group=np.repeat(np.arange(6), 10)))
