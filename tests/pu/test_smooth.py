"""Errors without bins on positive-unlabeled data: kernel, variational, smooth."""

import numpy as np
import pytest

import calibrant as cal
from tests.pu.worlds import BETTER, CALIBRATED, LESS, drawn, everybody

LAPLACE = cal.estimators.LaplaceKernel(0.2)


def similarity(a, b, width=0.2):
    return np.exp(-np.abs(a[:, None] - b[None, :]) / width)


def test_the_kernel_error_is_the_three_means_over_pairs():
    data = drawn(np.random.default_rng(0), 40, 90, LESS)
    p, u = data.positive, data.unlabeled
    k_p, k_u = similarity(p, p), similarity(u, u) * np.outer(u, u)
    np.fill_diagonal(k_p, 0)
    np.fill_diagonal(k_u, 0)
    cross = similarity(p, u) * u
    expected = 0.25 * k_p.sum() / (40 * 39) - cross.mean() + k_u.sum() / (90 * 89)
    assert cal.kernel_error(data, kernel=LAPLACE) == pytest.approx(expected, abs=1e-12)
    table = cal.BinTable.of(data, cal.table.Distinct())
    assert cal.kernel_error(table, kernel=LAPLACE) == pytest.approx(expected, abs=1e-12)
    gauss = np.exp(-((p[:, None] - p) ** 2) / (2 * 0.2**2)).mean() * 0.25
    gauss -= (np.exp(-((p[:, None] - u) ** 2) / (2 * 0.2**2)) * u).mean()
    gauss += (np.exp(-((u[:, None] - u) ** 2) / (2 * 0.2**2)) * np.outer(u, u)).mean()
    assert cal.kernel_error(data, kernel=cal.estimators.GaussianKernel(0.2), unbiased=False) == pytest.approx(
        gauss, abs=1e-12
    )


@pytest.mark.no_cover
@pytest.mark.parametrize(("world", "truth"), [(CALIBRATED, 0.0), (BETTER, 0.000197), (LESS, 0.002093)])
def test_the_kernel_error_is_unbiased(world, truth):
    rng = np.random.default_rng(1)
    values = np.array([cal.kernel_error(drawn(rng, 200, 800, world), kernel=LAPLACE) for _ in range(400)])
    assert abs(values.mean() - truth) < 3 * values.std() / np.sqrt(400)


def test_the_kernel_error_of_a_single_sample_is_that_of_inverse_probability_labels():
    p, y = everybody(np.random.default_rng(2), 300, LESS)
    s = y & (np.random.default_rng(3).random(300) < 0.4)
    data = cal.PositiveUnlabeled.from_labels(s, p, label_frequency=0.4, scenario="single-sample")
    residual = s / 0.4 - p
    pairs = similarity(p, p)
    np.fill_diagonal(pairs, 0)
    expected = residual @ pairs @ residual / (300 * 299)
    assert cal.kernel_error(data, kernel=LAPLACE) == pytest.approx(expected, abs=1e-12)


def test_the_variational_error_is_a_lower_bound_near_the_truth():
    rng = np.random.default_rng(4)
    draws = [drawn(rng, 1000, 10_000, LESS) for _ in range(6)]
    l1 = np.mean([cal.variational_error(data) for data in draws])
    assert 0.060 < l1 < 0.080  # 0.0704 in 20 draws; the truth is 0.0744
    squared = np.mean([cal.variational_error(data, norm="squared") for data in draws])
    assert 0.005 < squared < 0.011  # the truth is 0.0093
    calibrated = [cal.variational_error(drawn(rng, 1000, 10_000, CALIBRATED)) for _ in range(6)]
    assert np.mean(calibrated) < 0.01


def test_the_variational_error_takes_other_maps_norms_and_scenarios():
    data = drawn(np.random.default_rng(5), 300, 2000, LESS)
    isotonic = cal.variational_error(data, recalibrator=cal.pu.PUIsotonic())
    assert isotonic.method == "5 folds, PUIsotonic"
    large = drawn(np.random.default_rng(5), 1000, 10_000, LESS)
    assert 0 < cal.variational_error(large, norm="kl", repeats=5) < 0.1  # 0.023 on average
    assert cal.variational_error(data, seed=1) == cal.variational_error(data, seed=1)
    p, y = everybody(np.random.default_rng(6), 2000, LESS)
    s = y & (np.random.default_rng(7).random(2000) < 0.5)
    single = cal.PositiveUnlabeled.from_labels(s, p, prior=0.5, scenario="single-sample", weight=np.ones(2000))
    plain = cal.PositiveUnlabeled.from_labels(s, p, prior=0.5, scenario="single-sample")
    assert cal.variational_error(single) == pytest.approx(cal.variational_error(plain), abs=1e-9)
    assert cal.variational_error(plain) == pytest.approx(0.07, abs=0.06)
    groups = cal.PositiveUnlabeled(data.positive, data.unlabeled, prior=0.5, group=np.arange(2300) % 50)
    assert cal.variational_error(groups) == pytest.approx(cal.variational_error(data), abs=0.05)
    with pytest.raises(ValueError, match="two folds"):
        cal.variational_error(cal.PositiveUnlabeled([0.5], [0.5, 0.4], prior=0.5))


def test_smooth_errors_agree_with_labelled_data_when_the_positives_are_its_own():
    p, y = everybody(np.random.default_rng(8), 800, LESS)
    data = cal.PositiveUnlabeled(p[y], p, prior=y.mean())
    for estimator in (cal.smooth_ece, cal.kde_ece):
        assert estimator(data) == pytest.approx(estimator(cal.Binary(y, p)), abs=1e-6)
        assert estimator(cal.BinTable.of(data, cal.table.Distinct())) == pytest.approx(estimator(data), abs=1e-6)
