import numpy as np
import pytest

from calibrant.monitor.bets import CELLS, Bets
from calibrant.monitor.blocks import Blocks, start_weight, tree_sums

BETS = Bets.on_scores(np.ones(CELLS), 0.0, 0.0)


def one_day(rng, rows=50, shift=0.0):
    cell = rng.integers(40, 90, rows)
    found = np.zeros((CELLS, 3))
    p = (cell - 39) / 60
    np.add.at(found, cell, np.stack([np.ones(rows), p, rng.random(rows) < np.clip(p + shift, 0, 1)], axis=1))
    return found


def test_weights_of_starts_sum_to_at_most_one():
    assert sum(start_weight(j) for j in range(200_000)) <= 1


@pytest.mark.parametrize("last", [0, 1, 5, 100, 1000])
def test_weights_for_a_mean_time_between_alarms_sum_to_at_most_the_number_of_periods(last):
    assert sum(start_weight(j, arl=True) for j in range(last + 1)) <= last + 1 + 1e-9


def test_recent_starts_are_kept_one_by_one_and_early_ones_sparsely():
    blocks, rng = Blocks(BETS), np.random.default_rng(0)
    for day in range(600):
        blocks.advance(day)
        blocks.add(day, one_day(rng, 5), 1.0)
    starts = sorted(blocks.sums)
    assert set(range(585, 600)) <= set(starts)
    assert 45 <= len(starts) <= 70
    assert sum(one[:, 0].sum() for one in blocks.sums.values()) == 3000


def test_blocks_do_not_depend_on_the_order_of_days():
    rng = np.random.default_rng(1)
    days = [one_day(rng) for _ in range(100)]
    forward, late = Blocks(BETS), Blocks(BETS)
    for day, sums in enumerate(days):
        forward.advance(day)
        forward.add(day, sums, 1.0)
    late.advance(99)
    for day in rng.permutation(100).tolist():
        late.add(day, days[day], 1.0)
    assert sorted(forward.sums) == sorted(late.sums)
    assert forward.evidence().total == pytest.approx(late.evidence().total, abs=1e-9)


def test_a_change_gives_most_evidence_to_its_start():
    blocks, rng = Blocks(BETS), np.random.default_rng(2)
    for day in range(60):
        blocks.advance(day)
        blocks.add(day, one_day(rng, 200, shift=0.1 * (day >= 52)), 1.0)
    found = blocks.evidence()
    assert found.starts[int(found.own.argmax())] in range(50, 55)
    assert found.total > 5


def test_the_evidence_is_that_of_the_sums_even_if_it_was_asked_for_before():
    blocks, rng = Blocks(BETS), np.random.default_rng(3)
    blocks.add(0, one_day(rng), 1.0)
    before = blocks.evidence().total
    blocks.add(0, one_day(rng, 500, shift=0.3), 1.0)
    assert blocks.evidence().total > before + 5


def test_pinned_starts_stay():
    blocks, rng = Blocks(BETS), np.random.default_rng(4)
    for day in range(100):
        blocks.advance(day, pinned=[41])
        blocks.add(day, one_day(rng, 5), 1.0)
    assert 41 in blocks.sums
    assert 43 not in blocks.sums


def test_faded_sums_halve_with_each_half_life():
    blocks = Blocks(BETS)
    blocks.advance(10)
    blocks.add(0, np.ones((CELLS, 3)), 1.0)
    blocks.add(10, np.ones((CELLS, 3)), 1.0)
    np.testing.assert_allclose(blocks.faded(5.0), 1 + 0.5 ** ((10 - 4.5) / 5))


def test_an_interval_is_spread_over_the_nodes_it_covers():
    found = tree_sums(np.array([0.125]), np.array([0.375]), np.array([2.0]), np.zeros(1, int), 1, 4)[0]
    np.testing.assert_allclose(found[:, 0], [2, 2, 0, 0])
    np.testing.assert_allclose(found[:, 2], [0, 1, 0, 0])


def test_points_and_narrow_intervals_agree():
    rng = np.random.default_rng(5)
    u, period = rng.random(500), rng.integers(0, 3, 500)
    points = tree_sums(u, u, np.ones(500), period, 3, 16)
    narrow = tree_sums(u, u + 1e-13, np.ones(500), period, 3, 16)
    np.testing.assert_allclose(points, narrow, atol=1e-9)
    assert points[:, 0, 0].sum() == 500
