"""Bands of norms of the gap: they are the triangle inequality, cover, and follow tables, weights and clusters."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.estimators import GaussianKernel, LaplaceKernel
from calibrant.inference import NormBand
from calibrant.inference.binary_bounds.residual_noise import ResidualNoise
from calibrant.simulate import UniformScores, World
from tests.inference.worlds import BENT

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
