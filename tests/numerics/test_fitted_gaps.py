"""Limits along shapes of the fitted gap."""

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from tests.numerics.test_binary_inversion import limits_of


def test_one_score_gives_binomial_limits():
    """400 rows of score 0.6 of which 190 are events: the gap is 0.125, and its limits those of a proportion."""
    part = limits_of(cal.Binary([1] * 190 + [0] * 210, [0.6] * 400)).smooth
    risk = 0.7 * 0.025
    chances = np.linspace(0.3, 0.6, 3001)
    kept = chances[(binom.cdf(190, 400, chances) > risk) & (binom.sf(189, 400, chances) > risk)]
    assert part.upper(0) == pytest.approx(0.6 - kept.min(), abs=0.006)
    assert part.lower(0) == pytest.approx(0.6 - kept.max(), abs=0.006)
    assert part.middle(0) == pytest.approx(0.125, abs=0.004)
    assert part.upper(1) == pytest.approx(part.upper(0), abs=1e-4)  # one score: all norms agree


def test_a_gap_smaller_than_typical_proves_nothing():
    """An even split at 0.5 has no gap at all, yet the limit is that of a typical calibrated sample."""
    lucky = limits_of(cal.Binary([0, 1] * 200, [0.5] * 400)).smooth
    assert lucky.observed[0] == 0
    assert lucky.upper(0) > 2 * np.sqrt(0.25 / 400)


def square_wave(size, periods, n, seed):
    """A gap of the same size everywhere, with alternating sign."""
    rng = np.random.default_rng(seed)
    p = 0.1 + 0.8 * rng.random(n)
    return cal.Binary(rng.random(n) < p + size * np.sign(np.sin(2 * np.pi * periods * p)), p)


def test_the_upper_end_of_a_fine_fit_allows_for_a_gap_of_the_same_size_everywhere(monkeypatch):
    """Half of the fitted gap is noise: along its own uneven shape, noise would explain too much of the norm."""
    data = square_wave(0.06, 14, 20_000, seed=4)
    found = limits_of(data)
    assert found.smooth._fine
    assert not found.smooth.fit.identity
    lower, upper = found.lower(1.0), found.upper(1.0)
    monkeypatch.setattr("calibrant.numerics.fitted_gaps.FINE", np.inf)
    along_its_shape = limits_of(data)
    assert along_its_shape.upper(1.0) < 0.06 < upper
    assert along_its_shape.lower(1.0) == lower


def test_an_uneven_gap_is_recognised_once_it_is_clear():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    sizes = np.where(np.sin(30 * np.pi * p) > 0.7, 0.3, 0.0) * np.minimum(p, 1 - p)
    part = limits_of(cal.Binary(rng.random(20_000) < p + sizes, p)).smooth
    assert part._fine
    assert part._rank_of_evenness < part.risk
    assert not part._tries_even(1.0)


def two_scores(n, seed):
    """Half of the scores are right, the others 17 points too high: a gap of two sizes."""
    rng = np.random.default_rng(seed)
    p = np.where(rng.random(n) < 0.5, 0.01, 0.9)
    return cal.Binary(rng.random(n) < np.where(p > 0.5, p - 0.17, p), p)


def test_where_nothing_is_smoothed_a_gap_of_two_sizes_is_not_taken_for_one_of_the_same_size_everywhere():
    """Norms below 2 tell the two apart: no even gap has so low a ratio of L1 to L2."""
    part = limits_of(two_scores(30_000, 0), draws=299).smooth
    assert part.fit.identity
    assert part._rank_of_evenness == 0
    assert not part._tries_even(1.0)
    assert part._tries_even(2.0)
    assert part.upper(0) < 0.1


def test_one_score_has_one_size():
    part = limits_of(cal.Binary([1] * 190 + [0] * 210, [0.6] * 400)).smooth
    assert part._tries_even(1.0)
