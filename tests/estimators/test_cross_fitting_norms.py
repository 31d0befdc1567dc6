"""Norms, losses and distances of the variational estimator: one contribution per row."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import calibrant as cal
from calibrant.estimators.cross_fitting import (
    checked_norm,
    contributions,
    function_gradient,
    norm_gradient,
    norm_label,
    size_bound,
)


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


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_the_norm_gradient_is_the_derivative_of_the_norm(p):
    d = np.array([0.3, -0.25, -0.05])
    slope = approx_fprime(d, lambda x: np.linalg.norm(x, p), 1e-8)
    np.testing.assert_allclose(norm_gradient(d[None], p)[0], slope, atol=1e-6)


@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf, "squared", "kl"])
@pytest.mark.parametrize("classes", [1, 4])
def test_the_mean_contribution_of_the_true_map_is_the_distance(norm, classes):
    rng = np.random.default_rng(0)
    f, g = rng.dirichlet(np.ones(max(classes, 2)), (2, 1))
    outcomes, chance = np.eye(max(classes, 2)), g[0]  # every outcome, weighted by its probability under g
    if classes == 1:
        f, g, outcomes = f[:, 1:], g[:, 1:], outcomes[:, 1:]
    rows = len(outcomes)
    found = chance @ contributions(norm, np.tile(f, (rows, 1)), np.tile(g, (rows, 1)), outcomes)
    if norm == "squared":
        truth = ((f - g) ** 2).sum()
    elif norm == "kl":
        both = np.hstack([1 - f, f]), np.hstack([1 - g, g])
        p, q = both if classes == 1 else (f, g)
        truth = (q * np.log(q / p)).sum()
    else:
        truth = np.linalg.norm((f - g)[0], norm)
    assert found == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0, np.inf, "squared"])
@pytest.mark.parametrize("classes", [1, 3])
def test_no_contribution_exceeds_its_bound(norm, classes):
    rng = np.random.default_rng(1)
    f, g = (rng.dirichlet(np.full(max(classes, 2), 0.1), 5000) for _ in range(2))
    y = np.eye(max(classes, 2))[rng.integers(0, max(classes, 2), 5000)]
    if classes == 1:
        f, g, y = f[:, 1:], g[:, 1:], y[:, 1:]
    values = np.abs(contributions(norm, f, g, y))
    assert values.max() <= size_bound(norm, classes) + 1e-12
    assert values.max() > 0.9 * size_bound(norm, classes)


def test_a_norm_is_checked_and_named():
    distance = cal.estimators.Distance(lambda f, q: q, lambda f, q: q, name="mine", bound=3.0)
    assert [norm_label(checked_norm(norm)) for norm in (1, 2.5, np.inf, "squared", "kl", distance)] == [
        "L1",
        "L2.5",
        "Linf",
        "squared",
        "KL",
        "mine",
    ]
    assert (size_bound("kl", 1), size_bound(distance, 1)) == (None, 3.0)
    for norm in (0.5, "brier", None, True, float("nan")):
        with pytest.raises(ValueError, match="norm must be a number of at least 1"):
            checked_norm(norm)


def test_a_distance_must_give_one_number_per_row():
    wrong = cal.estimators.Distance(lambda f, q: q - f, lambda f, q: q - f, name="wrong")
    with pytest.raises(ValueError, match="Distance 'wrong': phi must return one number per row"):
        contributions(wrong, np.full((3, 1), 0.2), np.full((3, 1), 0.3), np.ones((3, 1)))


@pytest.mark.parametrize(
    ("distance", "said"),
    [
        (
            cal.estimators.Distance(lambda f, q: 1 + ((f - q) ** 2).sum(axis=1), lambda f, q: 2 * (q - f)),
            "phi.f, f. must be 0",
        ),
        (
            cal.estimators.Distance(lambda f, q: np.abs(f - q).sum(axis=1), lambda f, q: np.ones_like(q)),
            "grad.f, f. must be 0",
        ),
        (
            cal.estimators.Distance(lambda f, q: ((f - q) ** 2).sum(axis=1), lambda f, q: (q - f)[:, 0]),
            "grad must return",
        ),
        (
            cal.estimators.Distance(lambda f, q: 1 - np.cos(6 * (q - f))[:, 0], lambda f, q: 6 * np.sin(6 * (q - f))),
            r"phi must be convex in q, and grad its derivative; at f = \[.*\], phi is .* at q = \[.*\], below .* q = ",
        ),
        (
            cal.estimators.Distance(lambda f, q: ((f - q) ** 2).sum(axis=1), lambda f, q: 5 * (q - f)),
            "phi must be convex in q, and grad its derivative",
        ),
    ],
    ids=[
        "a distance of one from itself",
        "a slope at no distance",
        "a slope of another shape",
        "waves",
        "a wrong slope",
    ],
)
def test_a_distance_that_breaks_the_conditions_of_the_proposition_is_refused(distance, said):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    with pytest.raises(ValueError, match=f"Distance 'distance': {said}"):
        cal.variational_error(cal.Binary(rng.random(200) < p, p), norm=distance)


def test_a_slope_may_be_a_multiple_of_ones_for_several_classes_and_scores_may_be_certain():
    rng = np.random.default_rng(0)
    vectors = np.vstack([rng.dirichlet(np.ones(3), 299), [1.0, 0.0, 0.0]])
    data = cal.Multiclass(rng.integers(3, size=300), vectors)
    kl = cal.estimators.Distance(lambda f, q: (q * np.log(q / f)).sum(axis=1), lambda f, q: np.log(q / f) + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        assert cal.variational_error(data, norm=kl).name


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_the_gradient_of_the_norm_of_a_function_written_out(p):
    rng = np.random.default_rng(5)
    d, weight, fold = rng.normal(size=40), rng.uniform(0.5, 2, 40), np.repeat([0, 1], 20)
    found = function_gradient(d, p, weight, fold)
    for k in (0, 1):
        own, share = d[fold == k], weight[fold == k] / weight[fold == k].sum()
        norm = (share @ np.abs(own) ** p) ** (1 / p)
        assert found[fold == k] == pytest.approx(np.sign(own) * np.abs(own) ** (p - 1) / norm ** (p - 1))
        assert share @ (found[fold == k] * own) == pytest.approx(norm)  # Hoelder's inequality is an equality
    assert (function_gradient(np.zeros(3), p, np.ones(3), np.zeros(3, int)) == 0).all()
