"""Reciprocal likelihood ratios: valid p-values without draws, small where a model is clearly wrong."""

import numpy as np
import pytest

from calibrant.inference.group_tests import likelihood_ratio_of_cells, likelihood_ratio_p


def grouped(rng, groups, rows, truth=lambda p: p, scores=lambda rng, size: rng.random(size)):
    p = np.sort(scores(rng, (groups, rows)), axis=1).ravel()
    return p, (rng.random(p.size) < truth(p)).astype(np.int8), np.arange(groups) * rows


@pytest.mark.parametrize(
    "scores", [lambda rng, size: rng.random(size), lambda rng, size: np.round(rng.beta(2, 0.1, size), 2)]
)
def test_small_values_are_as_rare_as_they_claim(scores):
    found = likelihood_ratio_p(*grouped(np.random.default_rng(0), 4000, 50, scores=scores))
    for size in (0.1, 0.01):
        assert np.mean(found <= size) <= size
    assert np.mean(1 / found) < 2.5  # E max(1, E) where the expectation of E is 1


def test_the_ratio_is_that_of_its_definition():
    p, y, shifts = np.array([0.2, 0.7]), np.array([1, 1], np.int8), [0, 0.25, 0.5, 1, 1.6, 2.5, 4]
    shifts = np.array([*shifts, *(-shift for shift in shifts[1:])])
    prior = np.where(shifts == 0, 0.4, 0.05)
    ratio = prior @ np.prod(np.exp(shifts[:, None]) / (1 - p + p * np.exp(shifts[:, None])), axis=1)
    assert likelihood_ratio_p(p, y, np.array([0])) == pytest.approx(1 / ratio)


@pytest.mark.parametrize(
    "truth", [lambda p: 1 - p, lambda p: p**3, lambda p: np.clip(p + 0.4 * np.sin(6 * np.pi * p), 0, 1)]
)
def test_reversed_shifted_and_wavy_outcomes_have_tiny_values(truth):
    rng = np.random.default_rng(1)
    assert likelihood_ratio_p(*grouped(rng, 20, 400, truth)).max() < 1e-6


def test_the_order_of_rows_with_equal_scores_does_not_matter():
    p = np.repeat([0.3, 0.6], 100)
    y = np.r_[np.zeros(70), np.ones(30), np.zeros(40), np.ones(60)].astype(np.int8)
    mixed = np.random.default_rng(0).permuted(y.reshape(2, 100), axis=1).ravel()
    starts = np.array([0])
    assert likelihood_ratio_p(p, y, starts) == pytest.approx(likelihood_ratio_p(p, mixed, starts))
    assert likelihood_ratio_p(p, y, starts) == 1


def test_certain_predictions_and_single_rows_have_values_too():
    p, y = np.array([0.0, 1.0, 0.5]), np.array([1, 0, 1], np.int8)
    found = likelihood_ratio_p(p, y, np.array([0, 1, 2]))
    assert np.all((found > 0) & (found <= 1))


def test_cells_of_one_score_give_the_ratio_of_their_rows():
    rng = np.random.default_rng(3)
    p = np.repeat((np.arange(64) + 0.5) / 64, 30)
    y = (rng.random(len(p)) < p**1.3).astype(np.int8)
    count, mean, events = np.full((1, 64), 30.0), p[::30][None], y.reshape(1, 64, 30).sum(axis=2).astype(float)
    rows = likelihood_ratio_p(p, y, np.array([0]))
    assert likelihood_ratio_of_cells(count, mean, events) == pytest.approx(rows)


def test_small_values_of_pooled_cells_are_as_rare_as_they_claim():
    rng = np.random.default_rng(4)
    p = rng.beta(0.4, 3, (4000, 8, 10))
    events = (rng.random(p.shape) < p).sum(axis=2).astype(float)
    found = likelihood_ratio_of_cells(np.full((4000, 8), 10.0), p.mean(axis=2), events)
    assert np.mean(found <= 0.1) <= 0.1
    assert np.mean(found <= 0.01) <= 0.01


@pytest.mark.parametrize(("n", "finest"), [(24, 4), (400, 64)])
def test_bins_are_at_most_64_and_hold_six_rows_on_average(n, finest):
    rng = np.random.default_rng(5)
    p = np.sort(rng.random(n))
    y = (rng.random(n) < 1 - p).astype(np.int8)
    shifts = np.array([0, *(sign * size for size in (0.25, 0.5, 1, 1.6, 2.5, 4) for sign in (-1, 1))])
    rows = np.exp(np.outer(shifts, y)) / (1 - p + np.outer(np.exp(shifts), p))
    ratios = []
    for bins in (1, 2, 4, 8, 16, 32, 64):
        number = np.arange(n) * finest // n // max(finest // bins, 1)
        parts = [np.where(shifts == 0, 0.4, 0.05) @ rows[:, number == b].prod(axis=1) for b in range(min(bins, finest))]
        ratios.append(np.prod(parts))
    assert np.log(likelihood_ratio_p(p, y, np.array([0]))) == pytest.approx(-np.log(np.mean(ratios)), abs=1e-9)
