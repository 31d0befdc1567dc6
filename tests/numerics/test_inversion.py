"""Inverting a test along a path of hypotheses."""

import numpy as np
import pytest

from calibrant.numerics.inversion import InvertedPath, enough_draws, tail_risk, widened


def test_a_shifted_normal_statistic_gives_the_textbook_interval():
    truth = np.linspace(0, 6, 25)
    drawn = truth[:, None] + np.random.default_rng(0).standard_normal((25, 20_000))
    path = InvertedPath.of(truth, drawn, 0.025)
    assert path.lower_end(3.0) == pytest.approx(3 - 1.96, abs=0.06)
    assert path.upper_end(3.0) == pytest.approx(3 + 1.96, abs=0.06)
    assert path.typical == pytest.approx(0, abs=0.03)


def test_hypotheses_need_no_order_and_ends_stay_among_them():
    truth = np.array([2.0, 0.0, 1.0])
    drawn = truth[:, None] + np.linspace(-0.5, 0.5, 101)
    path = InvertedPath.of(truth, drawn, 0.1)
    assert path.truth.tolist() == [0, 1, 2]
    assert (path.lower_end(-9.0), path.upper_end(-9.0)) == (0, 0)
    assert (path.lower_end(9.0), path.upper_end(9.0)) == (2, 2)
    assert path.lower_end(1.2) <= 1.2 <= path.upper_end(1.2)


def test_high_levels_get_more_draws_or_a_refusal():
    assert enough_draws(299, tail_risk(0.9)) == 299
    assert enough_draws(299, tail_risk(0.999)) * tail_risk(0.999) >= 5
    with pytest.raises(ValueError, match=r"level is too close to 1: .* need 142_858 simulated samples"):
        enough_draws(299, tail_risk(0.9999))
    assert enough_draws(200_000, tail_risk(0.9999)) == 200_000


def test_the_risk_is_shared_by_both_tails():
    assert tail_risk(0.9, one_sided=True) == pytest.approx(2 * tail_risk(0.9))
    assert tail_risk(0.9) < 0.05  # some is reserved for the shape


def test_an_independent_error_adds_in_squares_and_leaves_zero_alone():
    assert widened(1.0, 5.0, 3.0, 0.0) == (1, 5)
    low, high = widened(0.0, 5.0, 2.0, 4.0)
    assert low == 0
    assert high == pytest.approx(2 + 5)
    assert widened(3.0, 5.0, 9.0, 1.5)[0] == pytest.approx(5 - 2.5)


def test_quantiles_that_the_draws_do_not_tell_are_bounded():
    truth = np.linspace(0, 20, 41)
    drawn = truth[:, None] + np.random.default_rng(0).standard_normal((41, 299))
    bounded, alone = (InvertedPath.of(truth, drawn, 1e-6, steepness=steepness) for steepness in (1.0, None))
    assert bounded.lower_end(10.0) == pytest.approx(10 - 4.75, abs=0.4)  # 4.75 is the normal quantile
    assert bounded.upper_end(10.0) == pytest.approx(10 + 4.75, abs=0.4)
    assert alone.lower_end(10.0) > 6.5
    usual = InvertedPath.of(truth, drawn, 0.05, steepness=1.0)
    assert usual.lower_end(10.0) == InvertedPath.of(truth, drawn, 0.05).lower_end(10.0)
