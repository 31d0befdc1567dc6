"""The debiased error: closed form, folded normal, and less bias in known worlds."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.estimators.debiased import debiased_power, folded_normal_power
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.results.target import Clipped, batched, name_of
from tests.estimators.batches import assert_as_one_by_one


@pytest.mark.no_cover
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=80), st.integers(1, 12))
def test_the_square_is_lowered_by_the_variance_of_the_mean_outcome(rows, n):
    p, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    estimate = cal.debiased_ece(y, p, bins=cal.EqualMass(n), norm=2)
    edges, total = estimate.bins.edges, 0.0
    index = np.searchsorted(edges[1:-1], p, side="left")
    for k in range(len(edges) - 1):
        size = (index == k).sum()
        if size > 1:
            gap, rate = (p - y)[index == k].mean(), y[index == k].mean()
            total += size / len(p) * (gap**2 - rate * (1 - rate) / (size - 1))
    power = estimate.details["power"]
    assert power == pytest.approx(total, abs=1e-12)
    assert estimate == pytest.approx(np.sign(power) * np.sqrt(abs(power)))


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3, 4])
@pytest.mark.parametrize("gap", [-0.3, 0.0, 0.002, 0.05])
def test_the_expected_power_is_that_of_normal_draws(norm, gap):
    rng = np.random.default_rng(1)
    draws = np.abs(gap + 0.04 * rng.standard_normal(400_000)) ** norm
    exact = folded_normal_power(np.array([gap]), np.array([0.04**2]), norm)[0]
    assert exact == pytest.approx(draws.mean(), abs=5 * draws.std() / np.sqrt(len(draws)))


@pytest.mark.parametrize("norm", [1, 1.5, 3])
def test_without_noise_the_power_is_the_plain_one(norm):
    gap = np.array([-0.2, 0.0, 0.7])
    np.testing.assert_allclose(folded_normal_power(gap, np.zeros(3), norm), np.abs(gap) ** norm, atol=1e-15)


@pytest.mark.parametrize("norm", [1.5, 3, 4])
def test_the_expansion_for_small_noise_meets_the_series(norm):
    gap = np.array([0.2499, 0.2501])
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    exact = (np.abs(gap[:, None] + 0.01 * nodes) ** norm @ weights) / weights.sum()
    np.testing.assert_allclose(folded_normal_power(gap, np.full(2, 1e-4), norm), exact, rtol=1e-7)


def test_the_fourth_power_is_exactly_unbiased():
    gap, variance = np.array([-0.1, 0.03, 0.4]), np.array([1e-3, 1e-4, 2e-2])
    hermite = gap**4 - 6 * gap**2 * variance + 3 * variance**2
    np.testing.assert_allclose(debiased_power(gap, variance, 4), hermite, rtol=1e-9, atol=1e-12)


def test_the_general_formula_meets_the_closed_form_at_two():
    gap, variance = np.array([-0.1, 0.03, 0.4]), np.array([1e-3, 1e-4, 2e-2])
    np.testing.assert_allclose(debiased_power(gap, variance, 2), debiased_power(gap, variance, 2 + 1e-9), rtol=1e-6)


@pytest.mark.no_cover
@pytest.mark.parametrize("norm", [1, 2, 3])
def test_most_of_the_bias_is_gone_for_a_calibrated_model(norm):
    rng = np.random.default_rng(0)
    plain, debiased = [], []
    for _ in range(300):
        p = rng.random(400)
        y = rng.random(400) < p
        plain.append(cal.ece(y, p, norm=norm) ** norm)
        debiased.append(cal.debiased_ece(y, p, norm=norm).details["power"])
    assert abs(np.mean(debiased)) < (0.65 if norm == 1 else 0.1) * np.mean(plain)
    if norm == 2:  # exactly unbiased but for the spread of p within bins
        assert abs(np.mean(debiased)) < 3 * np.std(debiased) / np.sqrt(300) + 1e-4


def test_a_miscalibrated_model_keeps_its_error():
    rng = np.random.default_rng(5)
    p = rng.random(200_000)
    y = rng.random(200_000) < p**2
    assert cal.debiased_ece(y, p, bins=cal.EqualMass(100), norm=2) == pytest.approx(
        0.18257, abs=0.003
    )  # E(p - p^2)^2 = 1/30


def test_weights_count_through_their_effective_number():
    y, p = np.array([0, 1, 1, 0]), np.full(4, 0.5)
    estimate = cal.debiased_ece(cal.Binary(y, p, weight=[1, 1, 1, 3]), bins=cal.EqualMass(1), norm=2)
    effective = 36 / 12
    rate = 2 / 6
    assert estimate.details["power"] == pytest.approx((0.5 - rate) ** 2 - rate * (1 - rate) / (effective - 1))


def test_bins_of_one_row_add_nothing():
    assert cal.debiased_ece([0, 1, 1], [0.1, 0.5, 0.9], bins=cal.EqualMass(3)) == 0.0


def test_negative_values_are_kept_and_clip_on_request():
    estimate = cal.debiased_ece([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5], norm=2)
    assert estimate < 0
    assert estimate.clipped == 0


def test_there_is_no_infinite_norm():
    with pytest.raises(ValueError, match="use mce"):
        cal.debiased_ece([0, 1], [0.2, 0.3], norm=np.inf)


@pytest.mark.parametrize(
    "estimator",
    [
        cal.debiased_ece,
        partial(cal.debiased_ece, norm=2),
        partial(cal.debiased_ece, norm=3),
        Clipped(partial(cal.debiased_ece, bins=cal.EqualWidth(10), norm=2)),
    ],
    ids=name_of,
)
def test_many_samples_at_once_give_what_each_gives(estimator):
    assert_as_one_by_one(estimator)


def test_many_samples_have_no_infinite_norm_either():
    samples = SortedSamples.of(np.array([[0.2, 0.7]]), np.array([[0, 1]], dtype=np.int8))
    with pytest.raises(ValueError, match="use mce"):
        batched(partial(cal.debiased_ece, norm=np.inf))(samples)
