"""Mid-P intervals of shares."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc

from calibrant.numerics.binomial_interval import mid_p_interval


@pytest.mark.parametrize(("x", "n"), [(1, 10), (5, 10), (9, 10), (3, 1000)])
def test_the_ends_have_their_tail_probabilities(x, n):
    low, high = mid_p_interval(x, n, 0.9)
    assert stats.binom.sf(x, n, low) + stats.binom.pmf(x, n, low) / 2 == pytest.approx(0.05)
    assert stats.binom.cdf(x - 1, n, high) + stats.binom.pmf(x, n, high) / 2 == pytest.approx(0.05)


@pytest.mark.parametrize("n", [1.0, 3.5, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("level", [0.2, 0.95, 1 - 1e-8])
def test_the_ends_solve_their_equation_at_every_size(n, level):
    x = np.concatenate([[0.01, 0.5], n * np.linspace(0.01, 1, 40)])
    low, high = mid_p_interval(x, n, level)
    seen = low > 1e-15
    at_least, more = betainc(x, n - x + 1, low), np.where(x < n, betainc(x + 1, np.maximum(n - x, 1e-9), low), 0.0)
    np.testing.assert_allclose((at_least + more)[seen] / (1 - level), 1.0, rtol=1e-7)
    assert (low[seen] > 0).all()
    assert (low <= x / n).all()
    assert (x / n <= high).all()


def test_nothing_and_everything():
    low, high = mid_p_interval([0, 20], [20, 20], 0.95)
    assert low[0] == 0
    assert high[1] == 1
    assert high[0] == pytest.approx(1 - 0.05 ** (1 / 20))
    assert low[1] == pytest.approx(0.05 ** (1 / 20))


def test_fractional_counts_lie_between_whole_ones():
    low, high = mid_p_interval([3, 3.5, 4], 20, 0.95)
    assert (np.diff(low) > 0).all()
    assert (np.diff(high) > 0).all()


def test_small_counts_are_covered():
    share = np.linspace(0.005, 0.5, 200)
    x = np.arange(51)
    low, high = mid_p_interval(x, 50, 0.95)
    inside = (low[:, None] <= share) & (share <= high[:, None])
    covered = (inside * stats.binom.pmf(x[:, None], 50, share)).sum(axis=0)
    assert covered.min() > 0.925
    assert covered.mean() == pytest.approx(0.95, abs=0.012)
