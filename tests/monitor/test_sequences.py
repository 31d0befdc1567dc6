import numpy as np
import pytest

from calibrant.data.validation import InvalidPredictions
from calibrant.monitor.sequences import closed_testing, improvement, mean_sequence


def test_the_sequence_covers_the_mean_of_changing_gaps_at_all_times_together():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(200):
        p = 1 / (1 + np.exp(-rng.normal(-3, 1, 3000)))
        truth = np.clip(p * (1 + 0.5 * np.sin(np.arange(3000) / 200)), 0, 1)
        r = (rng.random(3000) < truth) - p
        looks = (20, 100, 300, 1000, 3000)
        ends = [mean_sequence(n, r[:n].sum(), (r[:n] ** 2).sum(), 0.05) for n in looks]
        gaps = [(truth - p)[:n].mean() for n in looks]
        missed += not all(low <= gap <= high for (low, high), gap in zip(ends, gaps, strict=True))
    assert missed <= 10


def test_the_sequence_is_symmetric_and_within_its_range():
    low, high = mean_sequence(100, 20.0, 30.0, 0.05)
    assert mean_sequence(100, -20.0, 30.0, 0.05) == pytest.approx((-high, -low))
    assert mean_sequence(2, 2.0, 2.0, 0.05)[1] == 1.0


@pytest.mark.parametrize("squares", [5.0, 100.0, 1e4, 1e6])
def test_the_bets_are_near_the_best_one_for_any_sum_of_squares(squares):
    width = mean_sequence(1e7, 0.0, squares, 0.05)[1] * 1e7
    bet = np.linspace(0.0005, 0.99, 4000)
    best = np.min((np.log(40) + (-np.log1p(-bet) - bet) * squares) / bet)
    assert best < width < 1.6 * best


def test_closed_testing_is_the_least_mean_over_all_sets_that_contain_each():
    from itertools import combinations

    e = np.array([30.0, 0.4, 8.0, 1.1, 55.0])
    sets = [some for size in range(1, 6) for some in combinations(range(5), size)]
    brute = [min(e[list(some)].mean() for some in sets if k in some) for k in range(5)]
    np.testing.assert_allclose(closed_testing(e), brute)


def test_an_improvement_is_recognised_and_so_is_a_harm():
    rng = np.random.default_rng(1)
    truth = rng.random(4000)
    y = rng.random(4000) < truth
    assert improvement(y, truth**2, truth).interval.low > 0
    assert improvement(y, truth, truth**2).interval.high < 0
    assert 0 in improvement(y, truth, np.clip(truth + 0.001, 0, 1)).interval


def test_improvement_needs_the_same_rows():
    with pytest.raises(InvalidPredictions, match="rows"):
        improvement([0, 1], [0.1, 0.2], [0.1])
