"""The resolution: coarse for smooth gaps, finer for waves; the test of zero keeps its level."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.binary_error.fine_sample import FineSample
from calibrant.inference.binary_error.resolution import Resolution


def found(curve, n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    sample = FineSample.of(cal.Binary(rng.random(n) < curve(p), p), needed_by="")
    noise = sample.noise(199, seed)
    return Resolution.of(sample.cells, noise), noise


@pytest.mark.parametrize(
    ("curve", "rungs"), [(lambda p: p**1.3, {0}), (lambda p: p + 0.08 * np.sin(12 * np.pi * p), {1, 2})]
)
def test_waves_need_more_knots_than_smooth_gaps(curve, rungs):
    assert {found(curve, 20_000, seed)[0].chosen for seed in range(3)} <= rungs


def test_zero_is_rejected_at_its_level_and_where_the_gap_is_large():
    p_values = [Resolution.p_value_of_zero(*found(lambda p: p, 400, seed)) for seed in range(60)]
    assert np.mean(np.array(p_values) <= 0.1) <= 0.1 + 3 * np.sqrt(0.09 / 60)
    assert Resolution.p_value_of_zero(*found(lambda p: p**2, 2000)) == pytest.approx(1 / 200)


def test_variances_have_a_floor():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(2000) < 0.5, 1e-9, rng.random(2000))
    sample = FineSample.of(cal.Binary(rng.random(2000) < p, p), needed_by="")
    assert Resolution.of(sample.cells, sample.noise(49, 0)).sigma.min() > 0.02
