"""Limits of shares, sums of shares, rare events and bounded means, and tails of event counts."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc

from calibrant.numerics.confidence_limits import (
    bernstein_lower_bound,
    betting_lower_bound,
    combined_share_limits,
    gamma_interval,
    mean_gap_size_limit,
    mid_p_interval,
    mid_p_value,
    two_sided_tail,
)


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


@pytest.mark.no_cover
@pytest.mark.parametrize(("mean", "n"), [(0.5, 200), (0.03, 500), (0.9, 100)])
def test_the_exact_bounds_fail_no_more_often_than_promised(mean, n):
    rng = np.random.default_rng(0)
    samples = (rng.random((300, n)) < mean).astype(float)
    missed = np.mean([betting_lower_bound(x, 0.1) > mean for x in samples])
    assert missed <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 300)
    bernstein = [bernstein_lower_bound(x, np.ones(n), 0.1) for x in samples]
    assert np.mean(np.array(bernstein) > mean) <= 0.1
    assert np.mean([betting_lower_bound(x, 0.1) for x in samples]) > np.mean(bernstein)


def test_the_bernstein_bound_is_its_formula_and_pools_equal_values():
    x = np.random.default_rng(1).random(50).round(1)
    term = math.log(2 / 0.05)
    expected = x.mean() - math.sqrt(2 * x.var(ddof=1) * term / 50) - 7 * term / (3 * 49)
    assert bernstein_lower_bound(x, np.ones(50), 0.05) == pytest.approx(max(expected, 0))
    values, count = np.unique(x, return_counts=True)
    assert bernstein_lower_bound(values, count.astype(float), 0.05) == pytest.approx(max(expected, 0))


def exact(p):
    """The probabilities of 0, 1, ..., n events, row by row."""
    law = np.ones(1)
    for one in p:
        law = np.convolve(law, [1 - one, one])
    return law


@pytest.mark.parametrize("size", [5, 30, 400])
@pytest.mark.parametrize("shape", [(0.5, 0.5), (0.5, 20.0), (3.0, 1.0)])
def test_both_tails_are_those_of_the_exact_law_far_out(size, shape):
    p = np.random.default_rng(size).beta(*shape, size)
    law = exact(p)
    upper, lower = np.cumsum(law[::-1])[::-1], np.cumsum(law)
    wanted = np.minimum(2 * np.minimum(upper, lower), 1.0)
    events = np.arange(size + 1.0)
    found = two_sided_tail(np.ones((size + 1, size)), np.tile(p, (size + 1, 1)), events)
    some = (wanted > 1e-250) & (wanted < 0.9)
    tolerance = 0.3 if size == 5 else 0.1
    assert np.abs(found[some] / wanted[some] - 1).max() < tolerance
    assert np.all(found[wanted >= 0.9] > 0.7)


def test_rows_of_certain_outcome_are_no_chance():
    count, p = np.array([[3.0, 2.0, 4.0]]), np.array([[0.0, 1.0, 0.5]])
    assert two_sided_tail(count, p, np.array([1.0])) == 0  # two are certain
    assert two_sided_tail(count, p, np.array([7.0])) == 0
    alone = two_sided_tail(np.array([[4.0]]), np.array([[0.5]]), np.array([4.0]))
    assert two_sided_tail(count, p, np.array([6.0])) == pytest.approx(alone)
    assert two_sided_tail(np.array([[3.0]]), np.array([[0.0]]), np.array([0.0])) == 1


def test_small_values_are_as_rare_as_they_claim_where_rows_are_pooled():
    rng = np.random.default_rng(0)
    p = rng.beta(0.3, 3, (20_000, 40))
    events = (rng.random(p.shape) < p).sum(axis=1).astype(float)
    found = two_sided_tail(np.full((20_000, 1), 40.0), p.mean(axis=1, keepdims=True), events)
    for size in (0.05, 0.01, 0.001):
        assert np.mean(found <= size) <= size + 2 * np.sqrt(size / 20_000)


def blocks_of(rng, world):
    """Twenty cells of ten rows: mean score, mean outcome, shares and counts; and the true mean size of the gap."""
    p = np.sort(rng.random((20, 10)), axis=None) * (0.06 if world == "rare" else 1.0)
    curve = {"calibrated": p, "shift": 0.8 * p, "rare": p / 6, "slope": 0.5 + 0.4 * (p - 0.5)}
    truth = {"calibrated": 0.0, "shift": 0.1, "rare": 0.025, "slope": 0.15}
    y = rng.random(200) < curve[world]
    return (*(np.reshape(v, (20, 10)).mean(axis=1) for v in (p, y)), np.full(20, 0.05), np.full(20, 10.0)), truth[world]


@pytest.mark.no_cover
@pytest.mark.parametrize("world", ["calibrated", "shift", "rare", "slope"])
def test_the_limit_of_the_size_of_gaps_is_rarely_above_it(world):
    rng, above = np.random.default_rng(3), 0
    for _ in range(2000):
        cells, truth = blocks_of(rng, world)
        above += mean_gap_size_limit(*cells, 0.01) > truth
    assert above <= 20


def test_the_limit_of_the_size_of_gaps_sees_those_that_cancel():
    p, y = np.repeat([0.3, 0.7], 500), np.repeat([0.5, 0.5], 500)
    share, count = np.full(1000, 1 / 1000), np.ones(1000)
    limits = [mean_gap_size_limit(p, y, share, count, risk) for risk in (1e-2, 1e-6, 1e-12)]
    assert 0.2 > limits[0] > limits[1] > limits[2] > 0
    assert mean_gap_size_limit(p, y, share, count, 1e-6, heaviest=0.2) == 0
    assert 0 < mean_gap_size_limit(p, y, share, count, 1e-6, heaviest=0.002) < limits[1]


def test_of_one_cell_the_limit_is_the_exact_one():
    one = np.ones(1)
    limit = mean_gap_size_limit(0.05 * one, 0 * one, one, 400 * one, 1e-4)
    assert limit == pytest.approx(0.05 - (1 - (1e-4 / 8) ** (1 / 400)))


def test_blocks_of_a_limit():
    """Gaps of one sign need one block; signs that change in every eighth of the rows need eight."""
    eight = np.ones(8)
    assert mean_gap_size_limit(0.6 * eight, 0.35 * eight, eight / 8, 25 * eight, 0.05) == pytest.approx(
        0.1606, abs=1e-3
    )
    signs = np.tile([0.3, -0.3], 4)
    assert mean_gap_size_limit(0.5 + signs, 0.5 * eight, eight / 8, 500 * eight, 0.01) == pytest.approx(
        0.2599, abs=1e-3
    )


@pytest.mark.parametrize(("count", "size", "chance"), [(0, 10, 0.3), (4, 20, 0.1), (19, 20, 0.5), (20, 20, 0.9)])
def test_the_mid_p_value_is_twice_the_smaller_tail(count, size, chance):
    at = stats.binom.pmf(count, size, chance) / 2
    tails = stats.binom.sf(count, size, chance) + at, stats.binom.cdf(count - 1, size, chance) + at
    assert mid_p_value(count, size, chance) == pytest.approx(min(1.0, 2 * min(tails)))


def test_the_mid_p_value_is_where_the_interval_ends():
    for count, size in ((3.3, 41.7), (0.0, 12.5), (7.0, 7.0)):
        low, high = mid_p_interval(count, size, 0.9)
        for end in (float(low), float(high)):
            if 0 < end < 1:
                assert mid_p_value(count, size, end) == pytest.approx(0.1, rel=1e-6)
    assert mid_p_value(0, 5, 0.0) == mid_p_value(5, 5, 1.0) == 1
    assert mid_p_value(1, 5, 0.0) == mid_p_value(4, 5, 1.0) == 0
