"""The average of penalised splines, and loess."""

import numpy as np
import pytest

from calibrant.numerics import smoothers
from calibrant.numerics.smoothers import loess
from tests.numerics.worlds import binary_world, gain


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_bins_keep_few_scores_apart_and_bound_the_number_of_many():
    few = smoothers.LogitBins.of(smoothers.raw_logit(np.array([0.0, 0.2, 0.2, 1.0])), np.ones(4))
    assert len(few) == 3
    assert few.mass.tolist() == [1, 2, 1]
    assert np.abs(few.logit).max() == few.limit == pytest.approx(np.log(16))
    many = smoothers.LogitBins.of(smoothers.raw_logit(np.random.default_rng(2).random(10_000)), np.ones(10_000))
    assert 90 < len(many) <= 160
    assert many.mass.sum() == 10_000
    assert (np.diff(many.logit) > 0).all()


def test_the_mean_of_a_probability_is_that_of_fine_quadrature():
    mean, variance = (a.ravel() for a in np.meshgrid([-9.0, -6.0, -2.0, 0.0, 1.0, 5.0], [0.01, 0.5, 1.0, 4.0]))
    x = np.linspace(-10, 10, 4001)
    density = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    at = mean[:, None] + np.sqrt(variance)[:, None] * x
    exact = np.log(sigmoid(at) @ density) - np.log(sigmoid(-at) @ density)
    assert smoothers.log_odds_of_mean(mean, variance) == pytest.approx(exact, abs=0.001)
    assert smoothers.log_odds_of_mean(np.array([-9.0]), np.array([1.0])) == pytest.approx([-8.5], abs=2e-3)


def test_labels_of_a_fold_never_touch_its_map():
    rng = np.random.default_rng(3)
    f, y = binary_world(rng, 300, lambda f: f**2)
    fold = rng.permutation(np.arange(300) % 5)
    g = smoothers.cross_fitted(f, fold, y, 1 - y)
    turned = np.where(fold == 2, 1 - y, y)
    again = smoothers.cross_fitted(f, fold, turned, 1 - turned)
    assert again[fold == 2] == pytest.approx(g[fold == 2], abs=1e-12)
    assert np.abs(again[fold != 2] - g[fold != 2]).max() > 1e-3


def test_entries_of_many_rows_equal_the_rows():
    rng = np.random.default_rng(4)
    f = rng.choice(np.linspace(0.05, 0.95, 10), 500)
    y = (rng.random(500) < f**2).astype(float)
    fold = rng.permutation(np.arange(500) % 5)
    g = smoothers.cross_fitted(f, fold, y, 1 - y)
    scores, folds = (a.ravel() for a in np.meshgrid(np.linspace(0.05, 0.95, 10), np.arange(5)))
    ones = np.array([y[(f == s) & (fold == k)].sum() for s, k in zip(scores, folds, strict=True)])
    all_ = np.array([((f == s) & (fold == k)).sum() for s, k in zip(scores, folds, strict=True)])
    pooled = smoothers.cross_fitted(scores, folds, ones, all_ - ones)
    for s, k, value in zip(scores, folds, pooled, strict=True):
        assert g[(f == s) & (fold == k)] == pytest.approx(value, abs=1e-9)


def test_calibrated_scores_stay_nearly_as_they_are():
    rng = np.random.default_rng(5)
    f, y = binary_world(rng, 2000, lambda f: f)
    g = smoothers.cross_fitted(f, rng.permutation(np.arange(2000) % 5), y, 1 - y)
    assert np.abs(g - f).mean() < 0.015


@pytest.mark.parametrize(
    ("chance", "share"),
    [
        (lambda f: sigmoid(0.4 * np.log(f / (1 - f)) + 0.3), 0.95),
        (lambda f: 0.1 + 0.4 * (f > 0.3) + 0.4 * (f > 0.7), 0.65),
        (
            lambda f: np.clip(
                f + 0.2 / np.pi * np.sin(10 * np.pi * f) + 0.1 / np.pi * np.sin(40 / 3 * np.pi * f), 0, 1
            ),
            0.7,
        ),
    ],
)
def test_most_of_a_known_error_is_found(chance, share):
    rng = np.random.default_rng(6)
    f, y = binary_world(rng, 10_000, chance)
    truth = chance(f)
    g = smoothers.cross_fitted(f, rng.permutation(np.arange(10_000) % 5), y, 1 - y)
    assert gain(f, g, truth) > share * gain(f, truth, truth)


def test_the_isotonic_member_serves_steps_and_few_scores():
    rng = np.random.default_rng(7)
    share = []
    for _ in range(6):
        f = rng.choice(np.linspace(0.04, 0.96, 12), 2000)
        truth = np.round(f * 4) / 4 * 0.8 + 0.1
        y = (rng.random(2000) < truth).astype(float)
        g = smoothers.cross_fitted(f, rng.permutation(np.arange(2000) % 5), y, 1 - y)
        share.append(gain(f, g, truth) / gain(f, truth, truth))
    assert np.mean(share) > 0.58


def test_rare_positives_are_served():
    rng = np.random.default_rng(8)
    f = sigmoid(rng.normal(-5.2, 1.2, 10_000))
    truth = np.clip(1.8 * f, 0, 1)
    y = (rng.random(10_000) < truth).astype(float)
    g = smoothers.cross_fitted(f, rng.permutation(np.arange(10_000) % 5), y, 1 - y)
    assert (np.sign(g - f) * (truth - f)).mean() > 0.95 * (truth - f).mean()


def test_one_class_only_and_two_folds_are_no_obstacle():
    f = np.linspace(0.1, 0.9, 20)
    fold = np.arange(20) % 2
    g = smoothers.cross_fitted(f, fold, np.zeros(20), np.ones(20))
    assert np.isfinite(g).all()
    assert (g > 0).all()
    assert g.mean() < f.mean()


RNG = np.random.default_rng(2)
X = np.sort(RNG.random(60))
Y = np.sin(3 * X) + 0.1 * RNG.normal(size=60)


def written_out(at, span, degree):
    """The fit at one point, by weighted least squares."""
    distance = np.abs(X - at)
    width = np.sort(distance)[int(np.ceil(span * 60 - 1e-9)) - 1]
    root = np.sqrt(np.clip(1 - (distance / width) ** 3, 0, None) ** 3)
    design = np.vander(X - at, degree + 1, increasing=True)
    return np.linalg.lstsq(design * root[:, None], Y * root, rcond=None)[0][0]


@pytest.mark.parametrize(("span", "degree"), [(0.75, 2), (0.4, 1)])
def test_every_value_is_a_weighted_least_squares_fit(span, degree):
    found = loess(X, Y, np.ones(60), span=span, degree=degree)
    assert found == pytest.approx([written_out(at, span, degree) for at in X])


def test_weights_are_repeats_and_ties_are_averaged():
    weight = RNG.integers(1, 4, 60)
    rows = np.repeat(np.arange(60), weight)
    assert loess(X[rows], Y[rows], np.ones(len(rows))) == pytest.approx(loess(X, Y, weight.astype(float))[rows])
    assert loess(np.full(3, 0.2), np.array([0.0, 1.0, 1.0]), np.ones(3)) == pytest.approx(np.full(3, 2 / 3))


@pytest.mark.parametrize(
    ("rows", "seed", "expected"),
    [(400, 1, (0.0975234, 0.9969102, 0.3646482, 0.9231697)), (5000, 2, (0.4082433, 0.9857475, 0.3781616, 0.3892851))],
)
def test_curves_fitted_with_these_constants(rows, seed, expected):
    """Bins and prior scales were chosen, not derived: before changing one, run benchmarks/variational.py."""
    rng = np.random.default_rng(seed)
    f = rng.beta(0.5, 0.5, rows)
    y = (rng.random(rows) < np.clip(f + 0.1 * np.sin(9 * f), 0, 1)).astype(float)
    g = smoothers.cross_fitted(f, np.arange(rows) % 3, y, 1 - y)
    assert g[[0, 3, 6, 9]] == pytest.approx(expected, abs=1e-6)
