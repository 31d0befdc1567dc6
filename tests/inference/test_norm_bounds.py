"""Intervals of norms of the gap: they cover in rough worlds, and follow tables, weights and clusters."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.estimators import GaussianKernel, LaplaceKernel
from calibrant.inference import IsotonicBand, LargestGapBound, NormBand, norm_bounds
from calibrant.inference.norm_bounds import ResidualNoise
from calibrant.simulate import UniformScores, World
from calibrant.table.binning import Distinct
from calibrant.table.bintable import BinTable
from tests.inference.worlds import BENT


def test_one_score_gives_the_exact_binomial_limit():
    found = cal.interval(cal.mce, cal.Binary(np.arange(100) < 60, np.full(100, 0.3))).interval
    chance = 0.3 + found.low
    one_block = 0.05 / 2  # either direction; the whole sample is looked at once more as a block of its own
    assert binom.sf(59, 100, chance) == pytest.approx(one_block / 2, rel=1e-6)


def test_it_stays_below_the_largest_gap_of_rough_curves():
    """A wave whose gap is 0.08 at most, and a calibrated model: an isotonic band fails in the first."""
    rng = np.random.default_rng(0)
    bounds, calibrated = [], []
    for _ in range(40):
        p = rng.random(4000)
        bounds.append(LargestGapBound().interval(cal.Binary(rng.random(4000) < p + 0.08 * np.sin(12 * np.pi * p), p)))
        calibrated.append(LargestGapBound().interval(cal.Binary(rng.random(4000) < p, p)))
    assert sum(bound.low > 0.08 for bound in bounds) <= 6
    assert sum(bound.low > 0 for bound in calibrated) <= 6
    assert sum(bound.low > 0 for bound in bounds) >= 10


def test_it_is_one_sided_and_says_why():
    data = BENT.sample(500)
    for estimator in (cal.mce, partial(cal.ece, norm=math.inf)):
        found = cal.interval(estimator, data)
        assert found.interval.side == "lower"
        assert found.interval.high == math.inf
        assert "IsotonicBand" in found.interval.assumption
        assert found in found.interval
    two_sided = cal.interval(cal.mce, data, method=IsotonicBand()).interval
    assert two_sided.side == "two-sided"
    table = cal.BinTable.of(data, cal.table.Distinct())
    assert cal.interval(cal.mce, table).interval == cal.interval(cal.mce, data).interval


def test_tiny_samples_claim_nothing_much():
    for y in ([0], [1, 1], [0, 1, 1, 1, 0]):
        found = LargestGapBound().interval(cal.Binary(y, np.full(len(y), 0.5)))
        assert 0 <= found.low < 0.5


def test_what_it_cannot_do_is_refused():
    data = BENT.sample(100)
    with pytest.raises(ValueError, match="Inversion"):
        LargestGapBound().interval(data, norm=2)
    with pytest.raises(cal.InvalidPredictions, match=r"group.*use ece"):
        cal.interval(cal.mce, cal.Binary(data.y_true, data.y_prob, group=np.arange(100) // 2))
    with pytest.raises(cal.InvalidPredictions, match=r"weighted.*use ece"):
        cal.interval(cal.mce, cal.Binary(data.y_true, data.y_prob, weight=np.arange(1, 101)))


ESTIMATORS = {
    "ks": cal.ks_error,
    "smooth": cal.smooth_ece,
    "smooth of one width": partial(cal.smooth_ece, sigma=0.05),
    "Laplace kernel": partial(cal.kernel_error, kernel=LaplaceKernel(0.2)),
    "Gaussian kernel": partial(cal.kernel_error, kernel=GaussianKernel(0.1)),
}
CALIBRATED = World(UniformScores())


def limits(estimator, data, draws=199, **options):
    return cal.interval(estimator, data, method=NormBand(draws), **options).interval


def test_the_band_of_the_running_sums_is_the_quantile_of_the_largest_one():
    data = BENT.sample(300)
    noise = ResidualNoise.of(data, draws=199, seed=0, size=4096, needed_by="a test")
    largest = [np.abs(np.cumsum(law, axis=0)).max(axis=0) for law in noise.drawn()]
    above, below = (max(np.quantile(size, p, method="weibull") for size in largest) for p in (0.975, 0.95))
    found, value = limits(cal.ks_error, data), float(cal.ks_error(data))
    assert (found.low, found.high) == pytest.approx((value - above, value + below))


def test_the_noise_of_a_kernel_is_that_of_its_quadratic_form():
    data, kernel = BENT.sample(200), GaussianKernel(0.1)
    found = limits(partial(cal.kernel_error, kernel=kernel), data)
    noise = ResidualNoise.of(data, draws=199, seed=0, size=512, needed_by="a test")
    matrix = np.exp(-((noise.position[:, None] - noise.position) ** 2) / (2 * 0.1**2))
    sizes = [np.sqrt(np.einsum("id,ij,jd->d", law, matrix, law)) for law in noise.drawn()]
    below = max(np.quantile(size, 0.95, method="weibull") for size in sizes)
    observed = np.sqrt(float(cal.kernel_error(data, kernel=kernel, unbiased=False)))
    assert found.high == pytest.approx((observed + below) ** 2)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_default_covers_at_calibration_and_away_from_it(name):
    """Of 20 samples each at most 4 may miss: at a level of 95 % that happens by chance in one of 400 runs."""
    estimator = ESTIMATORS[name]
    score = (np.arange(2**11) + 0.5) / 2**11
    whole = cal.Binary(
        np.repeat([0, 1], len(score)), np.tile(score, 2), weight=np.concatenate([1 - score**1.5, score**1.5])
    )
    biased = {"unbiased": False} if "kernel" in name else {}
    for world, truth in ((CALIBRATED, 0.0), (BENT, float(estimator(whole, **biased)))):
        found = [limits(estimator, world.sample(100, seed), draws=99) for seed in range(20)]
        assert sum(truth in one for one in found) >= 16
        assert all(np.isfinite(one.high) and one.low <= one.high for one in found)


def test_the_interval_of_the_smooth_error_shrinks_around_its_fixed_point():
    widths = []
    for n in (200, 20_000):
        found = cal.interval(cal.smooth_ece, BENT.sample(n))
        assert found.interval.low < float(found) < found.interval.high
        assert found.interval.target == cal.results.Target("smooth error")
        widths.append(found.interval.high - found.interval.low)
    assert widths[1] < 0.2 * widths[0]


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_a_table_agrees_with_its_rows(estimator):
    data = BENT.sample(500)
    table = cal.BinTable.of(data, cal.table.Distinct())
    rows, cells = limits(estimator, data), limits(estimator, table)
    assert (cells.low, cells.high) == pytest.approx((rows.low, rows.high), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_copies_in_a_cluster_are_no_evidence(estimator):
    data = CALIBRATED.sample(60, seed=3)
    copies = np.repeat(np.arange(60), 20)
    grouped = limits(estimator, cal.Binary(data.y_true[copies], data.y_prob[copies], group=copies))
    single = limits(estimator, data)
    assert grouped.high - grouped.low == pytest.approx(single.high - single.low, rel=0.4)


def test_edge_cases_have_finite_limits():
    cases = [cal.Binary([1], [0.3]), cal.Binary([0, 1], [0.0, 1.0]), cal.Binary(np.zeros(30), np.full(30, 1e-6))]
    cases += [cal.Binary([0, 1] * 20, [1.0, 0.0] * 20)]
    for data in cases:
        for estimator in ESTIMATORS.values():
            if len(data) == 1 and "kernel" in str(estimator):
                continue  # a mean over pairs
            found = limits(estimator, data, draws=19)
            assert 0 <= found.low <= found.high < np.inf


def test_bad_use_is_refused():
    data = BENT.sample(50)
    with pytest.raises(TypeError, match="ks_error, kuiper_error, smooth_ece and kernel_error"):
        cal.interval(cal.brier, data, method=NormBand())
    with pytest.raises(ValueError, match="draws"):
        NormBand(0)
    with pytest.raises(ValueError, match="fine"):
        NormBand().interval(cal.ks_error(data), cal.BinTable.of(data, cal.EqualMass(5)))


@pytest.mark.no_cover
def test_chi_square_mixture_covers_the_error_of_its_bins():
    atoms = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    rng = np.random.default_rng(0)
    for chance in (atoms, atoms**1.5):
        truth, held = math.sqrt(np.mean((atoms - chance) ** 2)), []
        for _ in range(150):
            p = np.repeat(atoms, 80)
            found = cal.inference.ChiSquareMixture().interval(cal.Binary(rng.random(400) < np.repeat(chance, 80), p))
            held.append(truth in found)
        assert np.mean(held) >= 0.89


def test_a_block_of_eight_rows_shows_a_gap():
    y, p = np.r_[np.ones(8), np.arange(4000) % 2], np.r_[np.full(8, 0.01), np.full(4000, 0.5)]
    assert LargestGapBound().interval(cal.Binary(y, p)).low > 0.5


@pytest.mark.parametrize(
    ("estimator", "scores", "name"), [(cal.ks_error, 4096, "CELLS"), (cal.kernel_error, 512, "KERNEL_CELLS")]
)
def test_noise_is_drawn_for_each_score_up_to_a_number_of_scores(estimator, scores, name, monkeypatch):
    p = (np.arange(scores) + 0.5) / scores
    data = cal.Binary(np.random.default_rng(0).random(scores) < p, p)
    found = cal.interval(estimator, data).interval.high
    monkeypatch.setattr(norm_bounds, name, 1 << 20)
    assert cal.interval(estimator, data).interval.high == found


def test_four_nodes_per_width_integrate_smoothed_noise(monkeypatch):
    rng = np.random.default_rng(0)
    p, width = rng.random(4000), 1 / 512
    noise = ResidualNoise.of(cal.Binary(rng.random(4000) < p, p), draws=99, seed=0, size=4096, needed_by="")
    found = norm_bounds._NoiseWaves.of(noise, width).sizes(width)[0].mean()
    monkeypatch.setattr(norm_bounds, "NODES_PER_WIDTH", 32)
    assert found == pytest.approx(norm_bounds._NoiseWaves.of(noise, width).sizes(width)[0].mean(), rel=0.005)


def test_narrower_widths_do_not_move_the_lower_end(monkeypatch):
    rng = np.random.default_rng(10)
    p = rng.random(500)
    data = cal.Binary(rng.random(500) < p**1.3, p)
    found = cal.interval(cal.smooth_ece, data).interval.low
    monkeypatch.setattr(norm_bounds, "NARROWEST", 1 / 16)
    assert found == pytest.approx(cal.interval(cal.smooth_ece, data).interval.low, rel=0.01)


def test_no_upper_end_is_below_the_narrowest_width():
    p = np.repeat((np.arange(100) + 0.5) / 100, 200)
    table = BinTable.of(cal.Binary(np.tile(np.arange(200) / 200, 100) < p, p), Distinct())
    many = replace(table, sums=table.sums * 1e7)  # 2e11 rows without any gap
    assert cal.interval(cal.smooth_ece, many).interval.high == 2.0**-11
