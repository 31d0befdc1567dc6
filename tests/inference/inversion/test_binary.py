"""Inverted tests: coverage, width, tables, weights and clusters."""

import math
import re

import numpy as np
import pytest
from scipy.special import ndtr

import calibrant as cal
from calibrant.inference.sample import Sample
from calibrant.numerics.binary_inversion import MOST_DRAWS, Limits
from calibrant.simulate import PAPER_WORLDS, BetaScores, PowerCurve, UniformScores, World
from tests.inference.worlds import BENT


@pytest.mark.no_cover
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


def sampled(scores, curve, n, seed):
    rng = np.random.default_rng([seed, n])
    p = scores(rng, n)
    return cal.Binary(rng.random(n) < curve(p), p)


def spiked(rng, n):
    return np.where(rng.random(n) < 0.25, 0.5, rng.random(n))


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("scores", "curve", "truth"),
    [
        (lambda rng, n: rng.random(n), lambda p: p + 0.08 * np.sin(12 * np.pi * p), (0.16 / np.pi, 0.08 / np.sqrt(2))),
        (
            lambda rng, n: rng.random(n),
            lambda p: np.where(p > 0.98, 0.7, p),
            (0.0058, np.sqrt(0.02 * 0.29**2 + 0.0001 * 0.02 / 3)),
        ),
        (spiked, lambda p: np.where(p == 0.5, 0.7, p), (0.05, 0.1)),
    ],
    ids=["waves", "wrong in the top 2 %", "a quarter of the scores equal"],
)
def test_rough_gaps_are_covered_at_large_n(scores, curve, truth):
    """A fit of a dozen knots covered none, less than half and half of these."""
    held, claimed = [], []
    for seed in range(20):
        found = cal.inference.Inversion(99, seed).intervals(sampled(scores, curve, 20_000, seed), norms=(1.0, 2.0))
        held.append([true in interval for true, interval in zip(truth, found, strict=True)])
        claimed.append([interval.low > true for true, interval in zip(truth, found, strict=True)])
    assert np.all(np.mean(held, axis=0) >= 0.8)  # 0.95 less three standard errors
    assert np.all(np.mean(claimed, axis=0) <= 0.15)


def test_other_norms_follow_from_what_is_proven():
    data = sampled(lambda rng, n: rng.random(n), lambda p: p**1.5, 2000, 0)
    one, between, two, three = cal.inference.Inversion().intervals(data, norms=(1.0, 1.5, 2.0, 3.0))
    assert one.low == between.low < two.low == three.low  # norms increase
    assert one.high < between.high < two.high < three.high
    largest = max(float(data.y_prob.max()), 1 - float(data.y_prob.min()))
    assert three.high == pytest.approx((two.high**2 * largest) ** (1 / 3), rel=0.01)
    assert "L2" in three.assumption
    assert "L2" not in two.assumption


def test_the_interval_says_how_finely_it_has_looked():
    rng = np.random.default_rng(0)
    p, y = rng.random(10_000), rng.random(10_000) < 0.5
    whole, rounded = cal.Binary(y, p), cal.Binary(y, np.round(p, 1))
    assert re.search(r"cells of about 1\d\d rows", cal.inference.Inversion(19).interval(whole).assumption)
    assert "each distinct score" in cal.inference.Inversion(19).interval(rounded).assumption
    assert "upper end" not in cal.inference.Inversion(19, side="lower").interval(whole).assumption


@pytest.mark.no_cover
@pytest.mark.parametrize("n", [1, 2, 3, 20])
def test_a_few_rows_of_any_kind_have_an_interval(n):
    rng = np.random.default_rng(n)
    scores = {"any": rng.random(n), "equal": np.full(n, 0.4), "certain": np.zeros(n), "hard": np.arange(n) % 2.0}
    for p in scores.values():
        for y in (np.zeros(n, dtype=int), np.ones(n, dtype=int), np.arange(n) % 2):
            for norm, found in enumerate(cal.inference.Inversion(39).intervals(cal.Binary(y, p), norms=(1, 2, 3))):
                assert 0 <= found.low <= found.high <= 1, (p, y, norm)
                assert found.low < 1


def test_two_rows_of_one_score_exclude_little():
    """One event in two rows is likely for any rate between 0.01 and 0.99."""
    assert cal.inference.Inversion(199).interval(cal.Binary([0, 1], [0.4, 0.4])).high > 0.55


@pytest.mark.parametrize("group", [np.zeros(200, int), np.arange(200) % 4, np.minimum(np.arange(200), 5)])
def test_few_clusters_say_nothing(group):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    found = cal.inference.Inversion(99).interval(cal.Binary(rng.random(200) < p**3, p, group=group))
    assert found.low == 0
    assert found.high == pytest.approx(np.maximum(p, 1 - p).mean(), rel=0.01)
    assert "clusters too few" in found.assumption


def test_uneven_clusters_are_covered():
    """Twenty clusters of 1 to 100 rows with correlated outcomes: calibrated, and zero is not excluded."""
    lows = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(20), np.exp(rng.uniform(0, np.log(100), 20)).astype(int))
        p = rng.random(len(group))
        common = 0.5 * rng.standard_normal(20)[group] + np.sqrt(0.75) * rng.standard_normal(len(group))
        lows.append(cal.inference.Inversion(99, seed).interval(cal.Binary(ndtr(common) < p, p, group=group)).low)
    assert np.mean(np.equal(lows, 0)) >= 0.85


def test_higher_levels_draw_more_samples_and_are_wider():
    data = BENT.sample(400)
    wide, wider = (cal.inference.Inversion(99).interval(data, level=level) for level in (0.99, 0.999))
    assert wider.low < wide.low
    assert wider.high > wide.high


def test_one_heavy_row_is_one_row():
    data, weight = BENT.sample(300), np.ones(300)
    weight[0] = 1e12
    found = cal.inference.Inversion(99).interval(cal.Binary(data.y_true, data.y_prob, weight=weight))
    assert found.high - found.low > 0.4


def test_without_events_the_upper_end_is_at_least_what_their_number_allows():
    """No event in n rows excludes rates above 1 - risk^(1/n) only, however small the scores are."""
    p = np.linspace(0.0005, 0.0015, 200)
    found = cal.inference.Inversion().intervals(cal.Binary(np.zeros(200), p), norms=(1.0, 2.0))
    limit = 1 - (0.7 * 0.025) ** (1 / 200) - p.mean()
    assert all(one.high >= limit - 1e-12 for one in found)
    turned = cal.inference.Inversion().intervals(cal.Binary(np.ones(200), 1 - p), norms=(1.0,))[0]
    assert turned.high >= limit - 1e-12


NEAR_ONE = (0.999, 0.9999, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12)


@pytest.mark.parametrize(
    "world",
    [BENT, BENT.calibrated(), World(BetaScores(1, 200), PowerCurve(1)), World(UniformScores(), PowerCurve(3))],
)
def test_levels_near_1_take_no_more_samples_and_are_wider(world):
    sample = Sample.with_clusters(world.sample(400, 1), needed_by="Inversion").fine()
    for norm in (1.0, 2.0):
        made = [Limits.of(sample, 299, 0, norms=(norm,), level=level) for level in NEAR_ONE]
        assert max(one.draws for one in made) == MOST_DRAWS
        lows, highs = zip(*((one.lower(norm), one.upper(norm)) for one in made), strict=True)
        assert list(lows) == sorted(lows, reverse=True)
        assert list(highs) == sorted(highs)
        assert highs[-1] <= 1


def test_ends_that_are_bounded_are_a_little_wider_than_drawn_ones(monkeypatch):
    data = World(UniformScores(), PowerCurve(2)).sample(2000, 0)
    drawn, bounded = [], []
    for most, found in ((MOST_DRAWS, drawn), (100, bounded)):
        monkeypatch.setattr("calibrant.numerics.binary_inversion.MOST_DRAWS", most)
        found += cal.inference.Inversion(draws=100).intervals(data, norms=(1, 2), level=0.997)
    for one, other in zip(drawn, bounded, strict=True):
        assert one.low - 0.04 < other.low < one.low
        assert one.high < other.high < one.high + 0.03


@pytest.mark.no_cover
@pytest.mark.parametrize("curve", [PowerCurve(1.5), PowerCurve(3)])
def test_bounded_upper_ends_cover(monkeypatch, curve):
    monkeypatch.setattr("calibrant.numerics.binary_inversion.MOST_DRAWS", 50)
    world = World(UniformScores(), curve)
    found = [cal.inference.Inversion(50, k).interval(world.sample(150, k), level=0.99) for k in range(150)]
    assert sum(one.high < world.true_error(1) for one in found) <= 3
    assert sum(one.low > world.true_error(1) for one in found) <= 3


def test_few_clusters_claim_nothing_at_a_level_that_their_signs_cannot_reach():
    p = np.tile(np.linspace(0.3, 0.7, 50), 15)
    data = cal.Binary(np.zeros(750), p, group=np.repeat(np.arange(15), 50))
    lows = [cal.inference.Inversion().interval(data, level=level).low for level in (0.95, 1 - 1e-6)]
    assert lows[0] > 0.3
    assert lows[1] == 0
    many = cal.Binary(np.zeros(7500), np.tile(p, 10), group=np.repeat(np.arange(150), 50))
    assert cal.inference.Inversion().interval(many, level=1 - 1e-6).low > 0


def of_seeds(data, seeds=range(6)):
    found = [cal.inference.Inversion(seed=k).intervals(data, norms=(1, 2)) for k in seeds]
    return np.array([[end for one in pair for end in one] for pair in found])


def test_ends_depend_little_on_the_seed_and_not_on_names_or_on_which_outcome_is_the_event():
    rng = np.random.default_rng(0)
    atoms = rng.choice([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0], 300, p=[0.03, 0.05, 0.12, 0.2, 0.3, 0.25, 0.05])
    few = cal.Binary(rng.random(300) < atoms - 0.08, atoms)
    group = np.arange(1000) // 25
    data = BENT.sample(1000, 2)
    clustered = cal.Binary(data.y_true, data.y_prob, group=group)
    for one in (few, data, clustered):
        ends = of_seeds(one)
        width = (ends[:, 1] - ends[:, 0]).mean()
        assert ends[:, 0].std() <= 0.03 * width
        assert ends[:, 2].std() <= 0.04 * width
        turned = cal.Binary(1 - one.y_true, 1 - one.y_prob, group=one.group)
        assert of_seeds(turned, [0])[0] == pytest.approx(ends[0], rel=1e-6)
    renamed = cal.Binary(data.y_true, data.y_prob, group=rng.permutation(40)[group])
    assert of_seeds(renamed, [0])[0] == pytest.approx(ends[0], rel=1e-9)


def test_the_lower_end_is_that_of_the_mean_gap_where_all_predictions_are_too_high():
    """A shift of 0.6 points among 30,000 rows: O:E excluded 1 in 65 % of such samples, and L1 zero in 12 %."""
    rng = np.random.default_rng(1)
    p = rng.beta(1, 2, 30_000)
    data = cal.Binary(rng.random(30_000) < p - 0.009, p)
    ratio = cal.interval(cal.observed_expected, data, level=0.9875).interval
    found = cal.inference.Inversion().interval(data)
    assert 0 < p.mean() * (1 - ratio.high) <= found.low + 1e-12
    one_sided = cal.inference.Inversion(side="lower").interval(data, level=0.975)
    assert one_sided.low == pytest.approx(found.low)


def test_the_lower_end_is_zero_unless_the_test_rejects():
    """Of these calibrated samples, some have a dual statistic beyond its quantile."""
    for k in range(60):
        data = BENT.calibrated().sample(200, 1000 + k)
        if any(one.low > 0 for one in cal.inference.Inversion().intervals(data, norms=(1, 2))):
            assert cal.calibration_test(data).p_value <= 0.05
