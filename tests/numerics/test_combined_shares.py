"""Limits of weighted sums of shares."""

import numpy as np
import pytest

from calibrant.numerics.binomial_interval import mid_p_interval
from calibrant.numerics.combined_shares import combined_share_limits


def test_one_share_has_its_own_limits():
    share, size = np.array([[0.0, 0.3, 1.0]]), np.array([10.0, 50.0, 20.0])
    low, high = combined_share_limits(share, np.full((1, 3), 2.0), size, 0.9)
    wanted = mid_p_interval(share[0] * size, size, 0.9)
    assert low == pytest.approx(2 * wanted[0])
    assert high == pytest.approx(2 * wanted[1])
    flipped = combined_share_limits(share, np.full((1, 3), -2.0), size, 0.9)
    assert flipped[0] == pytest.approx(-high)
    assert flipped[1] == pytest.approx(-low)


def test_many_rows_have_the_normal_interval_of_the_multinomial():
    share, factor, n = np.array([0.2, 0.1, 0.05, 0.3]), np.array([1.0, -0.5, -1.0, 0.5]), 1e6
    low, high = combined_share_limits(share[:, None], factor[:, None], np.array([n]), 0.95)
    variance = (factor**2) @ share - (factor @ share) ** 2
    assert high - low == pytest.approx(2 * 1.959964 * np.sqrt(variance / n), rel=1e-3)


@pytest.mark.no_cover
def test_few_rows_are_covered():
    rng, covered = np.random.default_rng(0), []
    law, factor = np.array([0.02, 0.05, 0.01, 0.92]), np.array([1.0, -0.3, -1.0])
    for counts in rng.multinomial(60, law, 2000):
        low, high = combined_share_limits(counts[:3, None] / 60, factor[:, None], np.array([60.0]), 0.95)
        covered.append(low[0] <= factor @ law[:3] <= high[0])
    assert np.mean(covered) > 0.94
