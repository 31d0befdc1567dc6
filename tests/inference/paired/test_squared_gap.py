"""The squared error in cells: no bias by noise, its covariance, equal cells for equal ranks."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.paired.squared_gap import ScoredRows, SquaredGap
from calibrant.inference.sample import Sample


def squares(size, chance, *, samples, n=240):
    """Squared gaps of samples with the same scores, p = 0.05 to 0.95 in order."""
    p = np.linspace(0.05, 0.95, n)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(samples):
        sample = Sample.of_rows(cal.Binary(rng.random(n) < chance(p), p))
        found.append(ScoredRows.of(sample, p).squared_gap(size))
    return found


@pytest.mark.no_cover
def test_noise_does_not_bias_the_square():
    for gap in (0.0, 0.1):
        found = np.array([one.square for one in squares(20, lambda p, gap=gap: 0.8 * p + 0.1 + gap, samples=150)])
        p = np.linspace(0.05, 0.95, 240)
        truth = np.mean((0.2 * p - 0.1 - gap) ** 2)
        assert abs(found.mean() - truth) < 3 * found.std() / np.sqrt(150)


@pytest.mark.no_cover
def test_variance_of_zero_gaps_is_the_one_that_is_seen():
    found = squares(20, lambda p: p, samples=150)
    seen = np.var([one.square for one in found])
    assert np.mean([one.shared_noise(one) for one in found]) == pytest.approx(seen, rel=0.4)


def test_the_square_is_the_sum_over_pairs_of_different_rows():
    p, y = np.array([0.2, 0.2, 0.2, 0.7, 0.7]), np.array([0, 1, 0, 1, 0])
    sample = Sample.of_rows(cal.Binary(y, p))
    residual = p - y
    found = SquaredGap.of(sample, p * (1 - p), sample.cell)
    low = [residual[i] * residual[j] for i in range(3) for j in range(3) if i != j]
    assert found.square == pytest.approx(0.6 * np.mean(low) + 0.4 * residual[3] * residual[4])


def test_rows_of_one_cluster_are_no_pair():
    p, y = np.full(6, 0.3), np.array([0, 0, 1, 1, 0, 1])
    sample = Sample.of_rows(cal.Binary(y, p, group=np.repeat([0, 1, 2], 2)))
    sums = (p - y).reshape(3, 2).sum(axis=1)
    pairs = (sums.sum() ** 2 - (sums**2).sum()) / (36 - 12)
    assert SquaredGap.of(sample, p * (1 - p), sample.cell).square == pytest.approx(pairs)


def test_models_that_rank_rows_alike_have_the_same_cells():
    rng = np.random.default_rng(2)
    p = rng.beta(1, 8, 500)
    y = rng.random(500) < p
    samples = [Sample.of_rows(cal.Binary(y, q)) for q in (p, p**2)]
    mean = (p + p**2) / 2
    a, b = (ScoredRows.of(sample, mean).squared_gap(40) for sample in samples)
    assert np.array_equal(a.factor, b.factor)
    own, cross = a.shared_noise(a), a.shared_noise(b)
    assert cross == pytest.approx(own, rel=0.02)


def test_without_events_the_predictions_say_how_large_noise_is():
    p = np.full(50, 0.02)
    sample = Sample.of_rows(cal.Binary(np.zeros(50, int), p))
    found = SquaredGap.of(sample, p * (1 - p), sample.cell)
    assert found.shared_noise(found) == pytest.approx(2 * (0.02 * 0.98 / 50) ** 2, rel=0.1)
    linear = 4 * 0.02**2 * 0.02 * 0.98 / 50
    assert found.contributions @ found.contributions == pytest.approx(linear, rel=0.05)


def test_contributions_are_those_of_each_row_given_all_others():
    """The product with the mean residual of the other rows, not with a mean that contains the row itself."""
    p, y = np.full(6, 0.1), np.array([0, 0, 1, 0, 0, 0])
    sample = Sample.of_rows(cal.Binary(y, p))
    found = SquaredGap.of(sample, p * (1 - p), sample.cell).contributions[:6]
    residual = p - y
    others = (residual.sum() - residual) / 5
    apart = (residual - residual.mean()) * np.sqrt(6 / 5)
    assert found == pytest.approx(2 * apart * others / 6 * np.sqrt(6 / 5))
