"""The basic bootstrap and the conservative interval of PU-ECE: coverage in known worlds, and the drawing of samples."""

from functools import partial

import numpy as np
import pytest
from reproduce.positive_unlabeled_intervals import BasicBootstrap, Conservative, _resampled_gaps

import calibrant as cal
from calibrant import pu
from tests.pu.test_binned_inference import coverage, single_sample
from tests.pu.worlds import BETTER, LESS, TRUE_ERROR, drawn


@pytest.mark.no_cover
def test_the_basic_bootstrap_covers_nearly():
    assert coverage(BasicBootstrap(199), 100, LESS, 300, seed=0) >= 0.88  # 0.93 in 3000 draws
    assert coverage(BasicBootstrap(199), 1000, LESS, 300, seed=1) >= 0.88  # 0.92 in 1500 draws


def test_the_conservative_interval_covers_where_bias_outgrows_the_others():
    rng = np.random.default_rng(2)
    tables = [cal.BinTable.of(drawn(rng, 100, 1000, BETTER), cal.EqualMass(15)) for _ in range(100)]
    assert np.mean([TRUE_ERROR[BETTER] in Conservative(199).interval(table, level=0.95) for table in tables]) >= 0.95


def test_the_bootstrap_draws_the_two_samples_apart():
    gaps = pu.Gaps.of(cal.BinTable.of(drawn(np.random.default_rng(7), 200, 2000, LESS), cal.EqualWidth(5)))
    draws = _resampled_gaps(gaps, 4000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), gaps.gap, atol=4 * np.sqrt(gaps.variance.max() / 4000))
    np.testing.assert_allclose(draws.var(axis=0), gaps.variance, rtol=0.12)


@pytest.mark.parametrize("known", ["label_frequency", "prior"])
def test_the_bootstrap_of_a_single_sample_has_its_variances(known):
    rng = np.random.default_rng(6)
    gaps = pu.Gaps.of(cal.BinTable.of(single_sample(rng, 2000, LESS, known), cal.EqualWidth(5)))
    np.testing.assert_allclose(np.var(_resampled_gaps(gaps, 2000, rng), axis=0), gaps.variance, rtol=0.25)


@pytest.mark.parametrize("method", [BasicBootstrap(99, seed=1), Conservative(99, seed=1)], ids=repr)
def test_the_interval_is_attached_and_reproducible(method):
    data = drawn(np.random.default_rng(9), 200, 2000, LESS)
    estimator = partial(cal.ece, bins=pu.PaperBins())
    first, second = (cal.interval(estimator, data, method=method) for _ in range(2))
    assert first.interval == second.interval
    assert first == estimator(data)
