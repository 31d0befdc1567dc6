"""Norms of gaps over bins, written out, and the result of a binned estimator."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pmean

import calibrant as cal
from calibrant.estimators.binned import check_norm, gap_norm, mass_norm, result, signed_root, weighted_norm, with_norm

gaps = st.one_of(st.just(0.0), st.floats(1e-6, 1), st.floats(-1, -1e-6))  # powers of tiny ones would underflow
bins = st.lists(st.tuples(gaps, st.floats(0.01, 1)), min_size=1, max_size=8)
norms = st.sampled_from([1, 1.5, 2, 3, math.inf])


def norm_by_hand(gaps, shares, norm):
    if norm == math.inf:
        return max(abs(gap) for gap in gaps)
    return sum(share * abs(gap) ** norm for gap, share in zip(gaps, shares, strict=True)) ** (1 / norm)


@pytest.mark.no_cover
@given(bins, norms)
def test_a_norm_is_a_weighted_power_mean_of_the_sizes(rows, norm):
    gap, share = (np.array(column) for column in zip(*rows, strict=True))
    share /= share.sum()
    expected = norm_by_hand(gap, share, norm)
    assert weighted_norm(gap, share, norm) == pytest.approx(expected, rel=1e-12)
    assert mass_norm(gap * share, share, norm) == pytest.approx(expected, rel=1e-9)
    if np.isfinite(norm) and np.all(gap != 0):
        assert weighted_norm(gap, share, norm) == pytest.approx(pmean(np.abs(gap), norm, weights=share), rel=1e-9)
    assert weighted_norm(gap, share, 1) <= weighted_norm(gap, share, norm) + 1e-12
    assert weighted_norm(gap, share, norm) <= weighted_norm(gap, share, math.inf) + 1e-12


@pytest.mark.parametrize("norm", [1, 2, 2.5, math.inf])
def test_norms_run_along_the_last_axis(norm):
    rng = np.random.default_rng(0)
    gap, share = rng.normal(size=(3, 5)), rng.dirichlet(np.ones(5), 3)
    expected = [norm_by_hand(*each, norm) for each in zip(gap, share, strict=True)]
    np.testing.assert_allclose(weighted_norm(gap, share, norm), expected)
    np.testing.assert_allclose(mass_norm(gap * share, share, norm), expected)


def test_an_error_mass_without_a_share_counts_for_norm_1_alone():
    mass, share = np.array([0.06, -0.25]), np.array([1.0, 0.0])
    assert mass_norm(mass, share, 1) == pytest.approx(0.31)
    assert mass_norm(mass, share, 2) == pytest.approx(0.06)
    assert mass_norm(mass, share, math.inf) == pytest.approx(0.06)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_the_norm_of_a_table_is_that_of_its_bins(norm):
    rng = np.random.default_rng(1)
    p, w = rng.random(200), rng.exponential(size=200)
    y = rng.random(200) < p**2
    table = cal.BinTable.of(cal.Binary(y, p, weight=w), cal.EqualWidth(6))
    which = np.minimum((p * 6).astype(int), 5)
    gaps = [np.average((p - y)[which == b], weights=w[which == b]) for b in range(6)]
    shares = [w[which == b].sum() / w.sum() for b in range(6)]
    assert gap_norm(table, norm) == pytest.approx(norm_by_hand(gaps, shares, norm), rel=1e-12)


def test_empty_bins_have_no_gap():
    table = cal.BinTable.of(cal.Binary([0, 1], [0.1, 0.9]), cal.EqualWidth(5))
    for norm in (1, 2, math.inf):
        assert gap_norm(table, norm) == pytest.approx(0.1)


def test_labelled_positives_stand_for_the_prior():
    data = cal.PositiveUnlabeled([0.9, 0.8, 0.3], [0.1, 0.2, 0.6, 0.9], prior=0.6)
    table = cal.BinTable.of(data, cal.EqualWidth(2))
    gaps = [0.3 / 2 - 0.2 / 0.5, 1.5 / 2 - 0.4 / 0.5]  # a third and two thirds of the positives, of 0.6
    assert gap_norm(table, 1) == pytest.approx((abs(gaps[0]) + abs(gaps[1])) / 2)
    assert gap_norm(table, 2) == pytest.approx(math.hypot(*gaps) / math.sqrt(2))


@pytest.mark.parametrize("norm", [1, 2, 7.5, math.inf, True, np.float32(2)])
def test_a_norm_of_at_least_1_is_a_float(norm):
    assert check_norm(norm) == norm
    assert type(check_norm(norm)) is float


@pytest.mark.parametrize("norm", [0.999, 0, -1, -math.inf, math.nan])
def test_a_smaller_norm_is_refused_by_name(norm):
    with pytest.raises(ValueError, match=rf"norm must be a number of at least 1 \(or math.inf\), got {norm!r}"):
        check_norm(norm)


def test_the_root_keeps_the_sign():
    np.testing.assert_allclose(signed_root(np.array([-8.0, 0.0, 8.0]), 3), [-2, 0, 2])
    assert signed_root(-0.25, 2) == -0.5
    assert signed_root(0.25, 1) == 0.25


def test_a_result_keeps_its_table_and_details():
    table = cal.BinTable.of(cal.Binary([0, 1, 1], [0.1, 0.9, 0.8]), cal.EqualWidth(5))
    estimate = result(np.float64(0.5), "ECE (L1)", "EqualWidth(5)", table, power=0.25)
    assert (estimate.value, estimate.name, estimate.method, estimate.n) == (0.5, "ECE (L1)", "EqualWidth(5)", 3)
    assert estimate.bins is table
    assert estimate.details == {"power": 0.25}


def test_names_say_the_norm():
    assert [with_norm("ECE", norm) for norm in (1.0, 2, 1.5, math.inf)] == [
        "ECE (L1)",
        "ECE (L2)",
        "ECE (L1.5)",
        "ECE (Linf)",
    ]
