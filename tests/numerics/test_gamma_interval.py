"""Gamma intervals of sums of few parts."""

import numpy as np
import pytest
from scipy import stats

from calibrant.numerics.gamma_interval import gamma_interval


@pytest.mark.parametrize("count", [1, 4, 30])
def test_of_parts_of_one_size_it_is_that_of_a_poisson_count(count):
    low, high = gamma_interval(0.5 * count, 0.25 * count, 0.5, 0.9)
    assert stats.poisson.sf(count - 1, low / 0.5) == pytest.approx(0.05)
    assert stats.poisson.cdf(count, high / 0.5) - stats.poisson.pmf(count, high / 0.5) / 2 == pytest.approx(0.05)


def test_without_parts_the_low_end_is_zero():
    low, high = gamma_interval(0.0, 0.0, 0.01, 0.95)
    assert low == 0
    assert high == pytest.approx(-0.01 * np.log(0.05))


def test_a_sum_that_does_not_vary_still_has_a_width():
    low, high = gamma_interval(1.0, 0.0, 0.05, 0.95)
    assert 0.85 < low < 0.95
    assert 1.1 < high < 1.25


def test_of_many_parts_it_is_the_normal_interval():
    low, high = gamma_interval(2.0, 1e-8, 1e-8, 0.95)
    assert [low, high] == pytest.approx([2 - 1.96e-4, 2 + 1.96e-4], abs=1e-7)


def test_sums_of_unlike_parts_are_covered():
    rng = np.random.default_rng(0)
    sizes = rng.exponential(size=60)
    truth = 0.1 * sizes.sum()
    covered = []
    for _ in range(400):
        seen = sizes[rng.random(60) < 0.1]
        low, high = gamma_interval(seen.sum(), (seen**2).sum(), max(seen.max(initial=0.0), 2.0), 0.95)
        covered.append(low <= truth <= high)
    assert np.mean(covered) > 0.93
