"""Inversion along shapes: exact binomial limits for one score, crossings interpolated in squares."""

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.inference.binary_error.fine_sample import FineSample
from calibrant.inference.binary_error.inversion import Inversion, Limits
from calibrant.inference.binary_error.smooth_part import Path, _lower_crossing, _upper_crossing


def limits_of(data, norms=(1.0, 2.0), draws=999, level=0.95):
    return Limits.of(FineSample.of(data, needed_by=""), Inversion(draws), norms=norms, level=level)


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


def path_of(quantile, truth):
    return Path(np.ones(1), truth, truth[None], quantile[None], quantile[None], quantile[None])


def test_crossings_are_interpolated_on_the_scale_of_squares():
    truth = np.array([0.0, 1.0, 2.0])
    path = path_of(np.sqrt(truth**2 + 1), truth)  # squares of norms add
    for crossing in (_lower_crossing, _upper_crossing):
        for error in (0.3, 1.7):
            assert crossing(np.sqrt(error**2 + 1), path, 0) == (pytest.approx(error), None)
        assert crossing(0.5, path, 0) == (0, None)
        assert crossing(9.0, path, 0) == (2, None)


def test_where_the_quantile_jumps_the_outer_error_is_taken():
    truth = np.array([0.0, 1.0, 2.0, 3.0])
    path = path_of(np.array([0.0, 0.4, 0.4, 0.8]), truth)
    assert _lower_crossing(0.4, path, 0) == (0, 1)
    assert _upper_crossing(0.4, path, 0) == (3, 3)


def test_no_event_in_fifty_rows_leaves_room_for_a_rate_of_eight_per_cent():
    data = cal.Binary(np.zeros(50, dtype=int), np.zeros(50))
    exact = 1 - (0.7 * 0.025) ** (1 / 50)
    assert exact - 0.005 <= limits_of(data).upper(1.0) <= exact + 0.025


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
    monkeypatch.setattr("calibrant.inference.binary_error.smooth_part.FINE", np.inf)
    along_its_shape = limits_of(data)
    assert along_its_shape.upper(1.0) < 0.06 < upper
    assert along_its_shape.lower(1.0) == lower


def test_an_uneven_gap_is_recognised_once_it_is_clear():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    sizes = np.where(np.sin(30 * np.pi * p) > 0.7, 0.3, 0.0) * np.minimum(p, 1 - p)
    part = limits_of(cal.Binary(rng.random(20_000) < p + sizes, p)).smooth
    assert part._fine
    assert not part._may_be_even
