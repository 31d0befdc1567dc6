"""The variational estimator: its formulas, its bound, its parts, its inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

import calibrant as cal
from calibrant.estimators.cross_fitting import binary_rows
from calibrant.estimators.variational_norms import contributions, norm_gradient


class Fixed:
    """A map that is known beforehand."""

    def __init__(self, function):
        self.function = function

    def fit(self, scores, y):
        return self

    def predict_proba(self, scores):
        g = self.function(scores)
        return np.hstack([1 - g, g]) if scores.shape[1] == 1 else g


def tempered(power):
    def function(f):
        g = f**power
        return g / g.sum(axis=1, keepdims=True)

    return function


def draw_classes(rng, p):
    return (rng.random(len(p))[:, None] > np.cumsum(p, axis=1)).sum(axis=1).clip(0, p.shape[1] - 1)


def over_world(rng, n, *, slope=0.4, shift=0.3):
    f = rng.beta(0.5, 0.5, n)
    h = 1 / (1 + np.exp(-slope * np.log(f / (1 - f)) - shift))
    return cal.Binary(rng.random(n) < h, f)


def test_the_oracle_map_recovers_the_true_error_in_every_norm():
    rng = np.random.default_rng(1)
    f = rng.dirichlet(0.5 * np.ones(3), 200_000)
    y = draw_classes(rng, tempered(0.3)(f))
    data = cal.Multiclass(y, f)
    found = cal.estimators.calibration_errors(data, norms=[1, 2, np.inf, "squared"], recalibrator=Fixed(tempered(0.3)))
    for estimate, truth in zip(found, (0.4410, 0.27581, 0.2205, 0.0865), strict=True):
        assert abs(estimate - truth) < 3 * estimate.details["standard_error"]


@pytest.mark.parametrize(
    ("norm", "factor"), [(1, 2), (2, 2**0.5), (3, 2 ** (1 / 3)), (np.inf, 1), ("squared", 2), ("kl", 1)]
)
def test_two_columns_give_the_binary_value_times_a_known_factor(norm, factor):
    rng = np.random.default_rng(2)
    f, oracle = rng.random(500), Fixed(tempered(2))
    y = rng.random(500) < f
    both = cal.calibration_error(
        cal.Multiclass(y.astype(int), np.stack([1 - f, f], axis=1)), norm=norm, recalibrator=oracle
    )
    one = cal.calibration_error(y, f, norm=norm, recalibrator=Fixed(lambda p: p**2 / (p**2 + (1 - p) ** 2)))
    assert both == pytest.approx(factor * one, rel=1e-9)


def test_the_formula_written_out():
    f = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    g = np.array([[0.3, 0.3, 0.4], [0.1, 0.2, 0.7]])
    y = np.eye(3)[[0, 1]]
    d = g - f
    assert contributions(1.0, f, g, y) == pytest.approx([np.sign(d[i]) @ (y[i] - f[i]) for i in (0, 1)])
    expected = [d[i] / np.linalg.norm(d[i]) @ (y[i] - f[i]) for i in (0, 1)]
    assert contributions(2.0, f, g, y) == pytest.approx(expected)
    assert contributions("kl", f, g, y) == pytest.approx([np.log(0.3 / 0.2), np.log(0.2 / 0.1)])
    brier = ((f - y) ** 2).sum(axis=1) - ((g - y) ** 2).sum(axis=1)
    assert contributions("squared", f, g, y) == pytest.approx(brier)


def test_the_norm_gradient_stands_large_exponents_and_zero():
    d = np.array([[1e-200, -1e-200, 0.0], [0.0, 0.0, 0.0], [0.3, -0.2, -0.1]])
    for p in (1.0, 1.5, 2.0, 50.0, 1e4, np.inf):
        u = norm_gradient(d, p)
        assert np.isfinite(u).all()
        assert not u[1].any()
        norm = np.abs(d[2]).max() if np.isinf(p) else np.abs(d[2]).max() * ((np.abs(d[2]) / 0.3) ** p).sum() ** (1 / p)
        assert u[2] @ d[2] == pytest.approx(norm)


def test_squared_and_kl_are_instances_of_a_distance():
    rng = np.random.default_rng(3)
    f, g = rng.dirichlet(np.ones(4), 50), rng.dirichlet(np.ones(4), 50)
    y = np.eye(4)[rng.integers(0, 4, 50)]
    squared = cal.estimators.Distance(lambda f, q: ((f - q) ** 2).sum(axis=1), lambda f, q: 2 * (q - f))
    kl = cal.estimators.Distance(lambda f, q: (q * np.log(q / f)).sum(axis=1), lambda f, q: np.log(q / f) + 1)
    assert np.abs(contributions(squared, f, g, y) - contributions("squared", f, g, y)).max() < 1e-12
    assert np.abs(contributions(kl, f, g, y) - contributions("kl", f, g, y)).max() < 1e-12


def test_a_one_sided_distance_sees_one_side_only():
    data = over_world(np.random.default_rng(4), 4000, shift=0.0)
    above = cal.estimators.Distance(
        lambda f, q: np.maximum(f - q, 0)[:, 0], lambda f, q: -(q < f).astype(float), name="above"
    )
    below = cal.estimators.Distance(
        lambda f, q: np.maximum(q - f, 0)[:, 0], lambda f, q: (q > f).astype(float), name="below"
    )
    one, two, both = cal.estimators.calibration_errors(data, norms=[above, below, 1])
    assert one + two == pytest.approx(float(both), abs=1e-12)
    assert min(one, two) > 0.03
    assert one.name == "Calibration error (above)"


@pytest.mark.parametrize("norm", [1, 2, np.inf, "squared", "kl"])
def test_a_map_that_changes_nothing_gives_exactly_zero(norm):
    rng = np.random.default_rng(5)
    f = rng.random(300)
    assert cal.calibration_error(rng.random(300) < f, f, norm=norm, recalibrator=Fixed(lambda p: p)) == 0.0
    v = rng.dirichlet(np.ones(3), 300)
    data = cal.Multiclass(draw_classes(rng, v), v)
    assert cal.calibration_error(data, norm=norm, recalibrator=Fixed(lambda p: p)) == 0.0


@pytest.mark.parametrize("norm", [1, "squared", "kl"])
def test_overconfidence_and_underconfidence_are_the_whole(norm):
    rng = np.random.default_rng(6)
    f = np.append(rng.beta(0.5, 0.5, 800).clip(1e-3, 1 - 1e-3), np.full(50, 0.5))
    data = cal.Binary(rng.random(850) < f**1.5, f)
    over, under = cal.overconfidence(data, norm=norm), cal.underconfidence(data, norm=norm)
    total = cal.calibration_error(data, norm=norm)
    assert over + under == pytest.approx(float(total), abs=1e-14)
    assert total.details["overconfidence"] == float(over)
    assert total.details["underconfidence"] == float(under)


def test_top_labels_below_one_half_are_still_overconfident():
    rng = np.random.default_rng(7)
    f = rng.dirichlet(0.5 * np.ones(10), 20_000)
    data = cal.Multiclass(draw_classes(rng, tempered(0.3)(f)), f)
    oracle = Fixed(tempered(0.3))
    over = cal.overconfidence(data, top_label="full", recalibrator=oracle)
    error = over.details["standard_error"]
    truth = (f - tempered(0.3)(f)).max(axis=1).mean()  # 0.199 in the population
    assert abs(over - truth) < 3 * error
    assert abs(cal.underconfidence(data, top_label="full", recalibrator=oracle)) < error
    assert truth - 4 * error < cal.overconfidence(data) < truth + 3 * error


def test_given_the_vector_the_confidence_error_is_larger():
    rng = np.random.default_rng(8)
    f = np.repeat(rng.dirichlet(np.ones(3), 3000), 2, axis=0)
    best = f.argmax(axis=1)
    conf = f[np.arange(6000), best]
    chance = np.clip(conf + np.where(best == 0, 0.2, -0.2), 0.05, 0.95)  # wrong in ways that cancel given confidence
    hit = rng.random(6000) < chance
    labels = np.where(hit, best, (best + 1) % 3)
    reduced, full = (cal.calibration_error(cal.Multiclass(labels, f), top_label=how) for how in ("reduced", "full"))
    assert full > reduced + 0.05
    assert reduced.name == "Confidence calibration error (L1)"


@pytest.mark.parametrize("folds", ["plain", "stratified"])
def test_calibrated_predictions_have_no_error_on_average_unless_folds_are_stratified(folds):
    rng = np.random.default_rng(9)
    values = []
    for _ in range(1000):
        f = rng.beta(0.5, 0.5, 200)
        y = (rng.random(200) < f).astype(int)
        if folds == "plain":
            values.append(cal.calibration_error(y, f, recalibrator=Shift()))
            continue
        total = 0.0
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(f[:, None], y):
            total += (np.sign(y[train].mean() - f[train].mean()) * (y[test] - f[test])).sum()
        values.append(total / 200)
    error = np.std(values) / np.sqrt(len(values))
    biased = abs(np.mean(values)) > 3 * error
    assert biased == (folds == "stratified")


class Shift:
    """The simplest map: move all probabilities by the mean gap."""

    def fit(self, scores, y):
        self.gap = y.mean() - scores.mean()
        return self

    def predict_proba(self, scores):
        return np.hstack([1 - scores - self.gap, scores + self.gap])


def test_the_default_map_is_a_lower_bound_that_comes_close():
    rng = np.random.default_rng(10)
    found = [cal.calibration_error(over_world(rng, 1000)) for _ in range(40)]
    mean, error = np.mean(found), np.std(found) / np.sqrt(len(found))
    assert 0.137157 - 0.01 < mean < 0.137157 + 2 * error


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_binary_results_do_not_depend_on_the_order_of_rows(seed, weighted):
    rng = np.random.default_rng(seed)
    f, y = np.round(rng.random(60), 2), rng.integers(0, 2, 60)
    w = rng.integers(1, 4, 60) if weighted else None
    order = rng.permutation(60)
    first = cal.calibration_error(cal.Binary(y, f, weight=w), norm="squared")
    again = cal.calibration_error(
        cal.Binary(y[order], f[order], weight=None if w is None else w[order]), norm="squared"
    )
    assert first == pytest.approx(float(again), abs=1e-12)


def test_the_same_seed_gives_the_same_number_and_another_another():
    data = over_world(np.random.default_rng(11), 300, slope=0.9, shift=0.0)
    assert cal.calibration_error(data, seed=3) == cal.calibration_error(data, seed=3)
    assert cal.calibration_error(data, seed=3) != cal.calibration_error(data, seed=4)


def test_repeats_average_over_divisions_into_folds():
    data = over_world(np.random.default_rng(12), 300, slope=0.9, shift=0.0)
    spread = {r: np.std([cal.calibration_error(data, seed=s, repeats=r) for s in range(12)]) for r in (1, 6)}
    assert spread[6] < 0.7 * spread[1]
    assert cal.calibration_error(data, repeats=6).method.startswith("5 folds x 6")


def test_groups_stay_in_one_fold_and_count_as_units():
    rng = np.random.default_rng(13)
    group = np.repeat(np.arange(100), 10)
    f = np.repeat(rng.random(100), 10)
    y = np.repeat(rng.random(100) < f[::10], 10)  # ten copies of each row
    data = cal.Binary(y, f, group=group)
    held = binary_rows(data, [1.0] * 5, 0)
    assert all(len(set(held.fold[held.cluster == g])) == 1 for g in range(100))
    copies, blind = cal.calibration_error(data), cal.calibration_error(cal.Binary(y, f))
    assert copies.details["standard_error"] > 2.5 * blind.details["standard_error"]
    assert blind > copies + 0.02  # copies in other folds betray the outcome


def test_weights_count_and_rows_of_no_weight_do_not():
    rng = np.random.default_rng(14)
    f = rng.random(400)
    y = (rng.random(400) < f).astype(int)
    w = np.where(f > 0.5, 1.0, 0.0)
    some = cal.calibration_error(cal.Binary(y, f, weight=w), recalibrator=Fixed(lambda p: p**2))
    only = cal.calibration_error(y[f > 0.5], f[f > 0.5], recalibrator=Fixed(lambda p: p**2))
    assert some == pytest.approx(float(only), abs=1e-12)
    twice = cal.Binary(np.append(y, y), np.append(f, f))
    double = cal.calibration_error(cal.Binary(y, f, weight=2 * np.ones(400)), recalibrator=Fixed(lambda p: p**2))
    assert double == pytest.approx(float(cal.calibration_error(twice, recalibrator=Fixed(lambda p: p**2))), abs=1e-12)


def test_any_scikit_learn_classifier_and_any_map_can_recalibrate():
    data = over_world(np.random.default_rng(15), 2000)
    for recalibrator in (LogisticRegression(), cal.recalibrate.Isotonic(), cal.recalibrate.Platt()):
        assert 0.11 < cal.calibration_error(data, recalibrator=recalibrator) < 0.16
    with pytest.raises(TypeError, match="fit and predict_proba"):
        cal.calibration_error(data, recalibrator="isotonic")


def test_cross_fitted_isotonic_agrees_with_scikit_learns():
    rng = np.random.default_rng(16)
    data = over_world(rng, 400)
    held = binary_rows(data, [1.0] * 5, [0, 0])
    f, y, g = held.predicted[:, 0], held.outcome[:, 0], np.empty(400)
    for k in range(5):
        own = held.fold == k
        g[own] = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(f[~own], y[~own]).predict(f[own])
    ours = cal.calibration_error(data, norm="squared", recalibrator=cal.recalibrate.Isotonic())
    assert ours == pytest.approx(((f - y) ** 2 - (g - y) ** 2).mean(), abs=2e-3)


def test_a_class_missing_from_a_training_fold_is_no_obstacle():
    rng = np.random.default_rng(17)
    f = rng.dirichlet(np.ones(4), 60)
    labels = np.where(np.arange(60) == 0, 3, rng.integers(0, 3, 60))
    data = cal.Multiclass(labels, f)
    assert np.isfinite(cal.calibration_error(data))
    assert np.isfinite(cal.calibration_error(data, recalibrator=LogisticRegression()))


def test_extreme_scores_are_defined():
    y = np.array([0, 1] * 20, dtype=int)
    f = np.array([0.0, 1.0] * 20, dtype=np.float32)
    assert abs(cal.calibration_error(y, f)) < 0.05
    assert np.isfinite(cal.calibration_error(y, f, norm="kl"))
    wrong = cal.calibration_error(1 - y, f, norm="kl")  # certain and wrong: infinite, and said so
    assert wrong == np.inf
    assert wrong.details["standard_error"] == np.inf
    assert cal.calibration_error([0, 1, 1, 0, 1, 0], [0.3] * 6) < 0.5
    with pytest.raises(ValueError, match="5 folds need at least as many rows"):
        cal.calibration_error([0, 1], [0.2, 0.4])


def test_bad_options_say_what_is_right():
    data = over_world(np.random.default_rng(18), 50)
    for norm in (0.5, "brier", None, True):
        with pytest.raises(ValueError, match="norm must be a number of at least 1"):
            cal.calibration_error(data, norm=norm)
    with pytest.raises(ValueError, match="folds must be a whole number of at least 2"):
        cal.calibration_error(data, folds=1)
    with pytest.raises(ValueError, match="top_label must be"):
        cal.calibration_error(data, top_label=True)
    with pytest.raises(TypeError, match="needs Binary or Multiclass"):
        cal.calibration_error(cal.Gaussian([1.0], [1.0], [1.0]))
    with pytest.raises(ValueError, match="score must be"):
        cal.refinement(data, score="squared")


def test_negative_estimates_are_kept():
    rng = np.random.default_rng(19)
    found = []
    for _ in range(20):
        f = rng.random(100)
        found.append(cal.calibration_error(rng.random(100) < f, f, norm="squared"))
    assert min(found) < 0
    assert min(found).clipped == 0.0


def test_refinement_and_decomposition_add_up():
    data = over_world(np.random.default_rng(20), 3000)
    for score, norm, whole in (("brier", "squared", cal.brier(data)), ("log_loss", "kl", cal.log_loss(data))):
        parts = cal.decompose(data, score=score, method="variational")
        assert parts.score == pytest.approx(float(whole), rel=1e-9)
        assert parts.miscalibration == cal.calibration_error(data, norm=norm)
        assert parts.refinement == pytest.approx(float(cal.refinement(data, score=score)))
        assert parts.score == pytest.approx(parts.miscalibration - parts.discrimination + parts.uncertainty)
        corp = cal.decompose(data, score=score)
        assert parts.uncertainty == pytest.approx(float(corp.uncertainty))
    with pytest.raises(ValueError, match="method must be"):
        cal.decompose(data, method="isotonic")


def test_several_classes_decompose_too():
    rng = np.random.default_rng(21)
    f = rng.dirichlet(np.ones(3), 1000)
    data = cal.Multiclass(draw_classes(rng, tempered(2)(f)), f)
    parts = cal.decompose(data, score="log_loss", method="variational")
    assert parts.score == pytest.approx(float(cal.log_loss(data)), rel=1e-6)
    assert parts.miscalibration > 0.02
