"""Inverted tests: coverage, width, tables, weights and clusters."""

import math

import numpy as np
import pytest

import calibrant as cal
from calibrant.simulate import PAPER_WORLDS, PowerCurve, UniformScores, World
from tests.inference.worlds import BENT


@pytest.mark.parametrize("world", [BENT, BENT.calibrated(), PAPER_WORLDS["resnet110_c10"]], ids=lambda w: w.name[:25])
def test_inversion_covers_the_true_error(world):
    held = []
    for k in range(50):
        found = cal.inference.Inversion(99, k).intervals(world.sample(300, k), norms=(1, 2))
        held.append([world.true_error(norm) in interval for norm, interval in zip((1, 2), found, strict=True)])
    assert np.all(np.mean(held, axis=0) >= 0.86)  # 0.95 less three standard errors


def test_inversion_is_not_uselessly_wide():
    found = cal.inference.Inversion(199).interval(BENT.sample(5000, 1), norm=2)
    estimates = [cal.debiased_ece(BENT.sample(5000, k), norm=2) for k in range(40)]
    assert found.high - found.low < 1.6 * 3.92 * np.std(estimates)


def test_zero_is_in_the_interval_of_a_calibrated_model_and_not_in_that_of_a_bad_one():
    lows = [cal.inference.Inversion(99, k).interval(BENT.calibrated().sample(500, k)).low for k in range(30)]
    assert np.mean(np.equal(lows, 0)) > 0.85
    assert cal.inference.Inversion(199).interval(World(UniformScores(), PowerCurve(3)).sample(500)).low > 0.1


def test_the_same_seed_gives_the_same_interval_and_another_seed_nearly_the_same():
    data = BENT.sample(500)
    one, same, other = (cal.inference.Inversion(999, seed).interval(data) for seed in (1, 1, 2))
    assert one == same
    assert other.low == pytest.approx(one.low, abs=0.008)
    assert other.high == pytest.approx(one.high, abs=0.008)


def test_a_table_gives_the_interval_of_its_rows():
    data = BENT.sample(3000)
    table = cal.BinTable.of(data, cal.table.Distinct())
    assert cal.inference.Inversion(99).interval(table) == cal.inference.Inversion(99).interval(data)
    rows, grid = (
        cal.inference.Inversion(999).interval(d) for d in (data, cal.BinTable.of(data, cal.table.HybridGrid()))
    )
    assert grid.low == pytest.approx(rows.low, abs=0.005)
    assert grid.high == pytest.approx(rows.high, abs=0.005)


def test_many_rows_are_not_sorted_and_give_the_interval_of_their_exact_table():
    data = BENT.sample(60_000)
    rows, table = (
        cal.inference.Inversion(999).interval(d) for d in (data, cal.BinTable.of(data, cal.table.Distinct()))
    )
    assert (rows.low, rows.high) == pytest.approx((table.low, table.high), abs=0.001)


def test_row_order_does_not_matter():
    data = BENT.sample(400)
    again = cal.Binary(data.y_true[::-1], data.y_prob[::-1])
    assert cal.inference.Inversion(99).interval(again) == cal.inference.Inversion(99).interval(data)


def test_weights_that_are_all_equal_change_nothing():
    data = BENT.sample(400)
    weighted = cal.Binary(data.y_true, data.y_prob, weight=np.full(400, 2.5))
    one, other = (cal.inference.Inversion(199).interval(d) for d in (data, weighted))
    assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=1e-9)


def test_one_sided_bounds_spend_all_risk_on_their_side():
    data = BENT.sample(1000)
    both = cal.inference.Inversion(199).interval(data, level=0.9)
    lower = cal.inference.Inversion(199, side="lower").interval(data, level=0.95)
    upper = cal.inference.Inversion(199, side="upper").interval(data, level=0.95)
    assert (lower.low, lower.high, lower.side) == (pytest.approx(both.low), math.inf, "lower")
    assert (upper.low, upper.high, upper.side) == (0.0, pytest.approx(both.high), "upper")


def test_few_rows_and_certain_scores_leave_room_above():
    found = cal.inference.Inversion().interval(cal.Binary([1] * 50, [0.99] * 50))
    assert found.low == 0
    assert 0.03 < found.high < 0.15  # no failure in 50 rows does not rule out a rate of 0.07
    assert cal.inference.Inversion().interval(cal.Binary([1], [0.5])).high == 0.5
    assert cal.inference.Inversion().interval(cal.Binary([1, 0], [1.0, 0.0])).low == 0


def test_rows_copied_within_clusters_tell_nothing_new():
    """Ten copies of each row in one cluster give the interval of the rows; without the group a far smaller one."""
    data = BENT.sample(500, seed=3)
    y, p = np.repeat(data.y_true, 10), np.repeat(data.y_prob, 10)
    once = cal.inference.Inversion(999).interval(data, norm=1)
    copied = cal.inference.Inversion(999).interval(cal.Binary(y, p, group=np.repeat(np.arange(500), 10)), norm=1)
    careless = cal.inference.Inversion(999).interval(cal.Binary(y, p), norm=1)
    assert copied.low == pytest.approx(once.low, abs=0.012)
    assert copied.high == pytest.approx(once.high, abs=0.012)
    assert careless.high - careless.low < 0.6 * (copied.high - copied.low)


def test_clusters_of_one_row_change_nothing():
    data = BENT.sample(400, seed=5)
    alone = cal.Binary(data.y_true, data.y_prob, group=np.arange(400))
    assert cal.inference.Inversion(99).interval(alone, norm=2) == cal.inference.Inversion(99).interval(data, norm=2)
