import itertools

import numpy as np
import pytest

from calibrant.data.validation import InvalidPredictions
from calibrant.monitor.bets import (
    CELLS,
    LEAVES,
    SIZES,
    Bets,
    cell_edges,
    cells_of,
    closed_testing,
    improvement,
    log_evidence,
    mean_sequence,
    strongest,
    tree_sums,
)
from calibrant.numerics.arrays import expit


def sums_of(y, p, w, cells=CELLS):
    found = np.zeros((cells, 3))
    np.add.at(found, cells_of(p, cells), np.stack([w, w * p, w * y], axis=1))
    return found


def allowed(p, tolerance, points, side):
    odds = (1 + tolerance) ** side
    return np.clip(p * odds / (1 + p * (odds - 1)) + side * points, 0, 1)


def bets_on(p, tolerance=0.0, points=0.0):
    return Bets.on_scores(np.bincount(cells_of(p), minlength=CELLS).astype(float), tolerance, points)


@pytest.mark.parametrize(("tolerance", "points"), [(0, 0), (0.1, 0), (0, 0.02), (0.3, 0.05)])
@pytest.mark.parametrize("side", [-1, 0, 1])
def test_every_bet_has_a_mean_of_at_most_one_by_enumeration_of_all_outcomes(tolerance, points, side):
    rng = np.random.default_rng(0)
    p = np.r_[rng.random(7), 0.0, 1.0]
    bets = bets_on(p, tolerance, points)
    truth = allowed(p, tolerance, points, side)
    ranges, slopes, whole = 0.0, 0.0, 0.0
    for y in itertools.product((0.0, 1.0), repeat=len(p)):
        chance = np.prod(np.where(y, truth, 1 - truth))
        if chance > 0:
            gains = bets.gains(sums_of(np.array(y), p, np.ones(len(p))))
            ranges, slopes = ranges + chance * np.exp(gains.ranges), slopes + chance * np.exp(gains.slopes)
            whole += chance * np.exp(log_evidence(gains))
    assert np.max(ranges) <= 1 + 1e-9
    assert np.max(slopes) <= 1 + 1e-9
    assert whole <= 1 + 1e-9


def test_without_tolerance_the_mean_of_every_bet_is_one_where_no_cell_is_shared():
    p = np.array([0.1, 0.4, 0.8])
    mean = sum(
        np.prod(np.where(y, p, 1 - p)) * np.exp(bets_on(p).gains(sums_of(np.array(y), p, np.ones(3))).slopes)
        for y in itertools.product((0.0, 1.0), repeat=3)
    )
    np.testing.assert_allclose(mean, 1.0, rtol=1e-12)


def test_weighted_rows_keep_the_mean_at_most_one():
    rng = np.random.default_rng(1)
    p, w = rng.random(8), rng.random(8)
    bets = bets_on(p)
    mean = sum(
        np.prod(np.where(y, p, 1 - p)) * np.exp(bets.gains(sums_of(np.array(y), p, w)).ranges)
        for y in itertools.product((0.0, 1.0), repeat=8)
    )
    assert np.max(mean) <= 1 + 1e-9


def test_a_cluster_whose_rows_are_all_alike_keeps_the_mean_at_most_one_only_if_it_counts_once():
    p, bets = np.full(4, 0.3), bets_on(np.array([0.3]))

    def mean(w):
        gains = [bets.gains(sums_of(np.full(4, y), p, np.full(4, w))) for y in (0.0, 1.0)]
        return 0.7 * np.exp(log_evidence(gains[0])) + 0.3 * np.exp(log_evidence(gains[1]))

    assert mean(0.25) <= 1 + 1e-9
    assert mean(1.0) > 1


def test_an_interval_of_a_probability_integral_transform_keeps_the_mean_at_most_one():
    levels = np.array([0.0, 0.1, 0.35, 0.8, 1.0])
    bets = Bets.on_tree(0.0, 0.0)
    mean = 0.0
    for low, high in itertools.pairwise(levels):
        sums = tree_sums(np.array([low]), np.array([high]), np.ones(1), np.zeros(1, int), 1, LEAVES)[0]
        mean += (high - low) * np.exp(bets.gains(sums).ranges)
    assert np.max(mean) <= 1 + 1e-9


def test_cells_lose_little_of_the_evidence_of_the_rows():
    rng = np.random.default_rng(3)
    x = rng.normal(-1.5, 1.2, 20_000)
    p, y = expit(x), (rng.random(20_000) < expit(x + 0.3)).astype(float)
    size = SIZES[2]
    by_row = float((y * size - np.log1p(p * np.expm1(size))).sum())
    by_cell = float(bets_on(p).gains(sums_of(y, p, np.ones(len(p)))).ranges[:, 2].sum())
    assert 0.998 * by_row < by_cell <= by_row


def evidence_of(x, shifted, tolerance=0.0):
    """Of the outcomes that are expected if the true log odds are `shifted`."""
    p = expit(x)
    return float(log_evidence(bets_on(p, tolerance).gains(sums_of(expit(shifted), p, np.ones(len(p))))))


def best_possible(x, shifted):
    """Expected growth of the bet that knows the truth."""
    p, q = expit(x), expit(shifted)
    return float((q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))).sum())


@pytest.mark.parametrize("shift", [0.04, 0.1, 0.3, 0.8, 1.8, 3.2, -0.04, -0.2, -1.0, -3.2])
def test_shifts_of_every_size_are_found_almost_as_fast_as_by_the_best_bet(shift):
    x = np.random.default_rng(4).normal(-0.5, 1.0, 3000)
    x = np.repeat(x, max(1, round(40 / max(best_possible(x, x + shift), 1))))
    assert evidence_of(x, x + shift) > 0.84 * best_possible(x, x + shift) - 5


@pytest.mark.parametrize("slope", [0.5, 0.75, 1.3, 1.8])
def test_slopes_are_found_almost_as_fast_as_by_the_best_bet(slope):
    x = np.random.default_rng(5).normal(0, 1.2, 3000)
    assert evidence_of(x, slope * x) > 0.8 * best_possible(x, slope * x) - 5


def test_a_range_of_one_sixteenth_is_bet_on():
    x = np.sort(np.random.default_rng(6).normal(0, 1.2, 16_000))
    shifted = x + 1.0 * (np.arange(16_000) >= 15_000)
    assert evidence_of(x, shifted) > 0.9 * best_possible(x, shifted) - 9


def test_a_tolerated_shift_gives_no_evidence():
    x = np.random.default_rng(7).normal(-1, 1.2, 50_000)
    assert evidence_of(x, x + np.log(1.1), tolerance=0.1) < 0
    assert evidence_of(x, x + np.log(1.1)) > 20


def test_certain_predictions_need_no_clipping():
    bets = bets_on(np.array([0.0, 0.5, 1.0]))
    quiet = bets.gains(sums_of(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.ones(2)))
    np.testing.assert_allclose(quiet.ranges, 0.0, atol=1e-12)
    impossible = bets.gains(sums_of(np.ones(6), np.zeros(6), np.ones(6)))
    assert log_evidence(impossible) > np.log(20)


def test_the_strongest_range_is_the_one_that_is_off():
    x = np.sort(np.random.default_rng(8).normal(0, 1.2, 8000))
    p = expit(x)
    y = expit(x - 0.8 * (np.arange(8000) >= 6000))
    found = strongest(bets_on(p).gains(sums_of(y, p, np.ones(8000))))
    assert found.leaves == slice(12, 16)
    assert found.shift == pytest.approx(-0.8, abs=0.25)


def test_cells_cover_all_scores():
    edges = cell_edges()
    assert edges[0] == 0
    assert edges[-1] == 1
    assert (np.diff(edges) > 0).all()
    p = np.random.default_rng(9).random(1000)
    cell = cells_of(p)
    assert ((edges[cell] <= p) & (p <= edges[cell + 1])).all()


def test_the_sequence_covers_the_mean_of_changing_gaps_at_all_times_together():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(200):
        p = 1 / (1 + np.exp(-rng.normal(-3, 1, 3000)))
        truth = np.clip(p * (1 + 0.5 * np.sin(np.arange(3000) / 200)), 0, 1)
        r = (rng.random(3000) < truth) - p
        looks = (20, 100, 300, 1000, 3000)
        ends = [mean_sequence(n, r[:n].sum(), (r[:n] ** 2).sum(), 0.05) for n in looks]
        gaps = [(truth - p)[:n].mean() for n in looks]
        missed += not all(low <= gap <= high for (low, high), gap in zip(ends, gaps, strict=True))
    assert missed <= 10


def test_the_sequence_is_symmetric_and_within_its_range():
    low, high = mean_sequence(100, 20.0, 30.0, 0.05)
    assert mean_sequence(100, -20.0, 30.0, 0.05) == pytest.approx((-high, -low))
    assert mean_sequence(2, 2.0, 2.0, 0.05)[1] == 1.0


@pytest.mark.parametrize("squares", [5.0, 100.0, 1e4, 1e6])
def test_the_bets_are_near_the_best_one_for_any_sum_of_squares(squares):
    width = mean_sequence(1e7, 0.0, squares, 0.05)[1] * 1e7
    bet = np.linspace(0.0005, 0.99, 4000)
    best = np.min((np.log(40) + (-np.log1p(-bet) - bet) * squares) / bet)
    assert best < width < 1.6 * best


def test_closed_testing_is_the_least_mean_over_all_sets_that_contain_each():
    from itertools import combinations

    e = np.array([30.0, 0.4, 8.0, 1.1, 55.0])
    sets = [some for size in range(1, 6) for some in combinations(range(5), size)]
    brute = [min(e[list(some)].mean() for some in sets if k in some) for k in range(5)]
    np.testing.assert_allclose(closed_testing(e), brute)


def test_an_improvement_is_recognised_and_so_is_a_harm():
    rng = np.random.default_rng(1)
    truth = rng.random(4000)
    y = rng.random(4000) < truth
    assert improvement(y, truth**2, truth).interval.low > 0
    assert improvement(y, truth, truth**2).interval.high < 0
    assert 0 in improvement(y, truth, np.clip(truth + 0.001, 0, 1)).interval


def test_improvement_needs_the_same_rows():
    with pytest.raises(InvalidPredictions, match="rows"):
        improvement([0, 1], [0.1, 0.2], [0.1])
