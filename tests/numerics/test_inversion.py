"""Hat functions, and inverting a test along a path of hypotheses."""

import numpy as np
import pytest

from calibrant.numerics.inversion import (
    Path,
    enough_draws,
    hat_functions,
    mid_ranks,
    orthonormal_hats,
    pool_starts,
    tail_risk,
    unit_scaled,
    widened,
)


def test_a_shifted_normal_statistic_gives_the_textbook_interval():
    truth = np.linspace(0, 6, 25)
    drawn = truth[:, None] + np.random.default_rng(0).standard_normal((25, 20_000))
    path = Path.of(truth, drawn, 0.025)
    assert path.lower_end(3.0) == pytest.approx(3 - 1.96, abs=0.06)
    assert path.upper_end(3.0) == pytest.approx(3 + 1.96, abs=0.06)
    assert path.typical == pytest.approx(0, abs=0.03)


def test_hypotheses_need_no_order_and_ends_stay_among_them():
    truth = np.array([2.0, 0.0, 1.0])
    drawn = truth[:, None] + np.linspace(-0.5, 0.5, 101)
    path = Path.of(truth, drawn, 0.1)
    assert path.truth.tolist() == [0, 1, 2]
    assert (path.lower_end(-9.0), path.upper_end(-9.0)) == (0, pytest.approx(0.4))  # as if it were typical
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


def test_the_sampling_of_scores_adds_in_squares_and_leaves_zero_alone():
    share, power = np.array([0.5, 0.5]), np.array([1.0, 3.0])  # a mean of 2 with standard error 1 / sqrt(rows)
    reach = 1.959964 / 10
    assert widened(1.0, 5.0, np.array([2.0, 2.0]), share, 1.0, 100.0, 0.95) == (1, 5)
    low, high = widened(1.0, 5.0, power, share, 1.0, 100.0, 0.95)
    assert (low, high) == (pytest.approx(2 - np.hypot(1, reach)), pytest.approx(2 + np.hypot(3, reach)))
    assert widened(0.0, 5.0, power, share, 1.0, 100.0, 0.95)[0] == 0
    low, _ = widened(1.0, 5.0, power**2, share, 2.0, 100.0, 0.95)  # of the root of a mean square, by the chain rule
    error = np.std([1.0, 9.0]) / 10 / (2 * np.sqrt(5))
    assert low == pytest.approx(np.sqrt(5) - np.hypot(np.sqrt(5) - 1, 1.959964 * error))


def test_quantiles_that_the_draws_do_not_tell_are_bounded():
    truth = np.linspace(0, 20, 41)
    drawn = truth[:, None] + np.random.default_rng(0).standard_normal((41, 299))
    bounded, alone = (Path.of(truth, drawn, 1e-6, steepness=steepness) for steepness in (1.0, None))
    assert bounded.lower_end(10.0) == pytest.approx(10 - 4.75, abs=0.4)  # 4.75 is the normal quantile
    assert bounded.upper_end(10.0) == pytest.approx(10 + 4.75, abs=0.4)
    assert alone.lower_end(10.0) > 6.5
    usual = Path.of(truth, drawn, 0.05, steepness=1.0)
    assert usual.lower_end(10.0) == Path.of(truth, drawn, 0.05).lower_end(10.0)


def path_of(quantile, truth):
    return Path(truth, quantile, quantile, quantile, squares=True)


def test_crossings_can_be_interpolated_on_the_scale_of_squares():
    truth = np.array([1.0, 2.0, 3.0])
    path = path_of(np.sqrt(truth**2 + 1), truth)  # noise adds 1 to the square
    for end in (path.lower_end, path.upper_end, path.middle_end):
        assert end(np.sqrt(1.7**2 + 1)) == pytest.approx(1.7)
        assert end(0.1) == 1
        assert end(9.0) == 3


def test_where_the_quantile_jumps_finer_steps_are_taken_and_then_the_outer_error():
    truth = np.array([0.0, 1.0, 2.0, 3.0])
    path, asked = path_of(np.array([0.0, 0.4, 0.4, 0.8]), truth), []

    def finer(after):
        asked.append(after)
        return path_of(np.array([0.0, 0.0, 0.4, 0.4]), np.linspace(after - 1, after, 4))

    assert path.lower_end(0.4, finer) == pytest.approx(1 / 3)
    assert path.upper_end(0.4, finer) == 3
    assert asked == [1, 3]
    steep = path_of(np.array([0.0, 5.0]), np.array([0.0, 1.0]))
    assert steep.lower_end(2.5, lambda _: steep) == 0
    assert steep.upper_end(2.5, lambda _: steep) == 1
    assert 0 < steep.lower_end(2.5) < 1


def test_ends_are_the_outermost_crossings_of_quantiles_that_do_not_rise():
    path = Path(np.arange(4.0), *np.array([[0.0, 2.0, 1.0, 3.0]] * 3))
    assert path.lower_end(1.5) == pytest.approx(0.75)
    assert path.upper_end(1.5) == pytest.approx(2.25)


def test_a_statistic_smaller_than_typical_proves_nothing():
    drawn = np.abs(np.linspace(0, 4, 9)[:, None] + np.random.default_rng(0).standard_normal((9, 999)))
    path = Path.of(np.linspace(0, 4, 9), drawn, (0.1, 0.05))
    assert path.typical == pytest.approx(0.67, abs=0.05)
    assert path.upper_end(0.01) == path.upper_end(path.typical)


def test_hats_add_up_to_one_and_are_one_at_their_knot():
    position = np.linspace(0, 1, 41)
    hats = hat_functions(position, 5)
    np.testing.assert_allclose(hats.sum(axis=1), 1)
    np.testing.assert_allclose(hats[::10], np.eye(5))
    assert hat_functions(position, 1).tolist() == [[1.0]] * 41


def test_orthonormal_functions_span_the_hats_that_have_weight():
    rng = np.random.default_rng(0)
    position, share = np.sort(rng.random(30)) / 2, rng.dirichlet(np.ones(30))  # the upper half is empty
    half = orthonormal_hats(position, share, 9)
    assert half.shape[1] < 9
    np.testing.assert_allclose(half.T @ (half * share[:, None]), np.eye(half.shape[1]), atol=1e-9)
    line = 2 - 3 * position
    np.testing.assert_allclose(half @ (half.T @ (share * line)), line, atol=1e-9)


def test_ranks_scales_and_pools():
    assert mid_ranks(np.array([0.2, 0.6, 0.2])) == pytest.approx([0.1, 0.5, 0.9])
    assert unit_scaled(np.array([1.0, 2.0, 5.0])).tolist() == [0, 0.25, 1]
    assert unit_scaled(np.array([1.0, 2.0, 5.0]), 2.0, 4.0).tolist() == [0, 0, 1]
    assert unit_scaled(np.full(3, 7.0)).tolist() == [0, 0, 0]
    assert pool_starts(np.array([0.0, 0.1, 0.6, 0.9, 1.0]), 2).tolist() == [0, 2]


def test_functions_are_zero_where_there_is_no_weight():
    position, share = np.linspace(0, 1, 6), np.array([0.3, 0.0, 0.2, 0.3, 0.0, 0.2])
    half = orthonormal_hats(position, share, 3)
    assert not half[share == 0].any()
    np.testing.assert_allclose(half.T @ (share[:, None] * half), np.eye(3), atol=1e-12)
