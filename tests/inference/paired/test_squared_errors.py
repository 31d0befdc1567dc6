"""Differences of squared errors of two models, and of their roots."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.paired.squared_errors import Resolutions, SquaredErrors, of_errors
from calibrant.inference.sample import Sample


def resolutions(y, *scores):
    samples = [Sample.of_rows(cal.Binary(y, p)) for p in scores]
    return Resolutions.of(*samples, effective_n=len(y))


def test_roots_of_squares():
    a, b = np.array([0.09, 0.04, 0.0]), np.array([0.04, 0.09, 0.0])
    assert of_errors(a - b, a + b) == pytest.approx([0.1, -0.1, 0.0])
    assert of_errors(np.array(0.05), np.array(0.01)) == pytest.approx(np.sqrt(0.05))  # b estimated below zero


def test_a_model_does_not_differ_from_itself():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    found = resolutions(rng.random(300) < p, p, p)
    assert found.chosen.value[0] == 0
    assert found.chosen.error == pytest.approx(0, abs=1e-9)
    assert found.interval(2.0, squared=False) == pytest.approx((0, 0), abs=1e-9)


def test_models_that_rank_rows_alike_differ_by_their_brier_scores():
    """What outcomes share cancels: the standard error is that of the mean difference of the scores."""
    rng = np.random.default_rng(1)
    p = rng.random(4000)
    y = rng.random(4000) < p
    loss = (p**1.3 - y) ** 2 - (p - y) ** 2
    found = resolutions(y, p**1.3, p).chosen
    assert found.value[0] == pytest.approx(loss.mean(), abs=0.2 * found.error)
    assert found.error == pytest.approx(loss.std() / np.sqrt(4000), rel=0.1)


@pytest.mark.no_cover
def test_covariance_of_difference_and_sum_where_events_are_few():
    """Seven times what is seen, if each row is multiplied by a mean gap that contains its own residual."""
    values, covariances = [], []
    for k in range(300):
        rng = np.random.default_rng([5, k])
        p = np.minimum(rng.beta(0.5, 40, 200), 0.5)
        found = resolutions(rng.random(200) < 2 * p, p, 2 * p).found[0]
        values.append(found.value)
        covariances.append(found.covariance[0, 1])
    seen = np.cov(np.transpose(values))
    assert abs(np.mean(covariances)) <= 0.5 * np.sqrt(seen[0, 0] * seen[1, 1])


def test_finer_cells_are_chosen_where_they_cost_nothing():
    rng = np.random.default_rng(3)
    p, other = rng.random((2, 2000))
    y = rng.random(2000) < p
    alike = resolutions(y, p**1.2, p)
    assert alike.chosen is alike.found[-1]
    strangers = resolutions(other < 0.5, *(0.5 + 0.01 * rng.standard_normal((2, 2000))))
    assert strangers.chosen is strangers.found[0]


def test_an_interval_that_excludes_zero_is_not_extended_towards_it():
    wide, narrow = (SquaredErrors(np.array([0.02, 0.03]), np.diag([v, 1e-6])) for v in (1e-3, 1e-6))
    found = Resolutions([narrow, wide], 100.0)
    low, high = found.interval(2.0, squared=True)
    assert low == pytest.approx(0.018)
    assert high == pytest.approx(0.02 + 2 * np.sqrt(1e-3))
