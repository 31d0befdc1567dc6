"""Affine maps and ensemble temperature scaling: objectives and derivatives written out, and hard inputs."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from calibrant import recalibrate as rc
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import LOG_FLOOR
from calibrant.numerics.logistic import multinomial
from calibrant.numerics.rows import effective_n, importance_weights
from calibrant.recalibrate import (
    Dirichlet,
    EnsembleTemperature,
    MatrixScaling,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    Temperature,
    VectorScaling,
    load,
)
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.multiclass_scaling import RIDGE, mixture_weights, normalised_logs


def matrix_base_world(n=300, k=3, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    return z, (0.5 * z + rng.gumbel(size=z.shape)).argmax(axis=1)


def test_logits_and_their_softmax_have_the_same_logarithms():
    z, _ = matrix_base_world()
    logs = normalised_logs(Scores.of(z + 7, input="logits"))
    np.testing.assert_allclose(logs, log_softmax(z, axis=1), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(logs, normalised_logs(Scores.of(softmax(z, axis=1), input="probabilities")), atol=1e-12)


def test_impossible_classes_are_floored():
    logs = normalised_logs(Scores.of([[1e5, 0.0, -1e5]], input="logits"))
    np.testing.assert_allclose(logs, [[0, LOG_FLOOR, LOG_FLOOR]])
    np.testing.assert_allclose(normalised_logs(Scores.of([[1.0, 0.0]], input="probabilities")), [[0, LOG_FLOOR]])


@pytest.mark.parametrize("kind", [rc.MatrixScaling, rc.VectorScaling])
def test_prediction_is_the_softmax_of_the_affine_map(kind):
    z, y = matrix_base_world()
    fitted = kind(input="logits").fit(z, y)
    matrix = fitted.matrix_ if kind is rc.MatrixScaling else np.diag(fitted.scale_)
    logs = log_softmax(z, axis=1)
    expected = softmax(logs @ matrix.T + fitted.intercept_, axis=1)
    np.testing.assert_allclose(fitted.predict_proba(z), expected, rtol=1e-9)
    away = ((matrix - np.eye(3)) ** 2).sum() + (fitted.intercept_**2).sum()
    loss = -np.log(expected[np.arange(len(y)), y]).mean() + RIDGE * away
    assert fitted.objective_ == pytest.approx(loss, rel=1e-10)


def test_the_columns_of_a_map_can_be_permuted():
    z, y = matrix_base_world()
    order = np.array([2, 0, 1])
    plain = rc.MatrixScaling(input="logits").fit(z, y).predict_proba(z)
    turned = rc.MatrixScaling(input="logits").fit(z[:, order], np.argsort(order)[y]).predict_proba(z[:, order])
    np.testing.assert_allclose(turned, plain[:, order], atol=1e-6)


def test_a_fit_that_stops_early_says_what_else_to_try(monkeypatch):
    monkeypatch.setattr(multinomial, "_STEPS", 1)
    monkeypatch.setattr(multinomial, "_ROUNDS", 1)
    z, y = matrix_base_world()
    with pytest.warns(ConvergenceWarning, match="12 parameters are many for 300 rows; consider Structured"):
        rc.MatrixScaling(input="logits").fit(z, y)


MAPS = [VectorScaling, MatrixScaling, Dirichlet, StructuredVectorScaling, StructuredMatrixScaling]
STRUCTURED = [StructuredVectorScaling, StructuredMatrixScaling]


def matrix_world(n: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident logits with two classes that are mistaken for one another."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, classes)) * 2
    truth = 0.5 * logits
    truth[:, 0] += 0.4 * logits[:, 1] + 0.3
    y = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    return logits, y


def structured_objective(theta, z, y, weight, *, diagonal=True, strengths=(1.0, 1.0, 1.0), rho=1.0, tau=1.0):
    """The objective of the specification, term by term."""
    n, k = weight.sum(), z.shape[1]
    if diagonal:
        w, b = np.diag(theta[:k]), theta[k:]
    else:
        w, b = theta[: k * k].reshape(k, k), theta[k * k :]
    logits = z + z @ w.T + b
    loss = -(weight * log_softmax(logits, axis=1)[np.arange(len(y)), y]).sum() / n
    off = w[~np.eye(k, dtype=bool)]
    small, large = k**rho / n**tau, (k * (k - 1)) ** rho / n**tau
    intercept, along, across = strengths
    return loss + intercept * small * b @ b + along * small * np.diag(w) @ np.diag(w) + across * large * off @ off


def first_step(logits, y, weight=None):
    """Log probabilities after temperature scaling and Laplace's rule."""
    temperature = Temperature(input="logits", laplace=1).fit(logits, y, weight).temperature_
    n = effective_n(weight, len(y))
    p = softmax(logits / temperature, axis=1)
    return np.log(p * (1 - 1 / (n + 1)) + 1 / (n + 1) / logits.shape[1])


@pytest.mark.parametrize("scaling", STRUCTURED)
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_is_the_one_of_the_specification(scaling, weighted):
    logits, y = matrix_world(300, 4)
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else None
    options = {"lambda_intercept": 0.5, "lambda_diagonal": 2.0, "rho": 1.2, "tau": 0.9}
    if scaling is StructuredMatrixScaling:
        options["lambda_off_diagonal"] = 0.7
    fitted = scaling(input="logits", **options).fit(logits, y, weight)
    diagonal = scaling is StructuredVectorScaling
    moved = fitted.scale_ - 1 if diagonal else (fitted.matrix_ - np.eye(4)).ravel()
    z = first_step(logits, y, weight)
    expected = structured_objective(
        np.concatenate([moved, fitted.intercept_]),
        z,
        y,
        np.ones(len(y)) if weight is None else importance_weights(weight),
        diagonal=diagonal,
        strengths=(0.5, 2.0, 0.7),
        rho=1.2,
        tau=0.9,
    )
    assert fitted.objective_ == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("scaling", STRUCTURED)
@pytest.mark.parametrize(("n", "classes"), [(150, 3), (600, 6)])
def test_objective_is_as_low_as_that_of_an_independent_optimiser(scaling, n, classes):
    logits, y = matrix_world(n, classes)
    diagonal = scaling is StructuredVectorScaling
    z, weight = first_step(logits, y), np.ones(n)
    rival = minimize(
        structured_objective if diagonal else structured_objective_with_gradient,
        np.zeros(2 * classes if diagonal else classes * (classes + 1)),
        args=(z, y, weight),
        jac=not diagonal,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-10},
    )
    ours = scaling(input="logits").fit(logits, y).objective_
    assert ours <= rival.fun + 1e-9
    assert ours == pytest.approx(rival.fun, abs=1e-6)


def structured_objective_with_gradient(theta, z, y, weight):
    n, k = z.shape
    w, b = theta[: k * k].reshape(k, k), theta[k * k :]
    residual = softmax(z + z @ w.T + b, axis=1)
    residual[np.arange(n), y] -= 1
    cost = np.where(np.eye(k, dtype=bool), k / n, k * (k - 1) / n)
    gradient = np.concatenate([(residual.T @ z / n + 2 * cost * w).ravel(), residual.mean(axis=0) + 2 * k / n * b])
    return structured_objective(theta, z, y, weight, diagonal=False), gradient


def test_matrix_scaling_equals_unpenalised_logistic_regression_on_log_probabilities():
    logits, y = matrix_world(800, 3)
    z = log_softmax(logits, axis=1)
    rival = LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000).fit(z, y)
    ours = MatrixScaling(input="logits").fit(logits, y)
    np.testing.assert_allclose(ours.predict_proba(logits), rival.predict_proba(z), atol=2e-5)


def test_vector_scaling_satisfies_its_score_equations():
    logits, y = matrix_world(500, 4)
    p = VectorScaling(input="logits").fit(logits, y).predict_proba(logits)
    residual = p - np.eye(4)[y]
    np.testing.assert_allclose(residual.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose((residual * log_softmax(logits, axis=1)).mean(axis=0), 0, atol=1e-6)


@pytest.mark.parametrize("scaling", [VectorScaling(), MatrixScaling()])
def test_separable_rows_pay_the_ridge(scaling):
    p, y = np.full((30, 3), 0.2) + 0.4 * np.eye(3)[np.arange(30) % 3], np.arange(30) % 3
    fitted = clone(scaling).fit(p, y)
    loss = -np.log(fitted.predict_proba(p)[np.arange(30), y]).mean()
    moved = fitted.scale_ - 1 if isinstance(fitted, VectorScaling) else fitted.matrix_ - np.eye(3)
    ridge = 1e-9 * (np.sum(moved**2) + np.sum(fitted.intercept_**2))
    assert fitted.objective_ - loss == pytest.approx(ridge, rel=0.01)
    assert ridge > 1e-8


def test_dirichlet_pays_the_odir_penalty():
    logits, y = matrix_world(400, 3)
    fitted = Dirichlet(input="logits", lambda_off_diagonal=0.3, lambda_intercept=0.2).fit(logits, y)
    p = fitted.predict_proba(logits)
    off = fitted.matrix_[~np.eye(3, dtype=bool)]
    penalty = 0.3 * np.mean(off**2) + 0.2 * np.mean(fitted.intercept_**2)
    loss = -np.log(p[np.arange(len(y)), y]).mean()
    assert fitted.objective_ == pytest.approx(loss + penalty, abs=1e-7)
    freer = Dirichlet(input="logits", lambda_off_diagonal=1e-6, lambda_intercept=1e-6).fit(logits, y)
    assert np.abs(freer.matrix_[~np.eye(3, dtype=bool)]).sum() > np.abs(off).sum()


def test_structured_matrix_learns_a_confusion_that_temperature_cannot():
    logits, y = matrix_world(4000, 5, seed=1)
    fresh, truth = matrix_world(4000, 5, seed=2)
    losses = {}
    for scaling in (Temperature, StructuredVectorScaling, StructuredMatrixScaling):
        p = scaling(input="logits").fit(logits, y).predict_proba(fresh)
        losses[scaling.__name__] = -np.log(p[np.arange(len(truth)), truth]).mean()
    assert losses["StructuredMatrixScaling"] < losses["StructuredVectorScaling"] < losses["Temperature"]
    assert losses["StructuredMatrixScaling"] < losses["Temperature"] - 0.02


@pytest.mark.parametrize("scaling", STRUCTURED)
def test_strong_penalties_leave_temperature_scaling_with_laplaces_rule(scaling):
    logits, y = matrix_world(50, 4)
    strong = {"lambda_intercept": 1e7, "lambda_diagonal": 1e7}
    if scaling is StructuredMatrixScaling:
        strong["lambda_off_diagonal"] = 1e7
    plain = Temperature(input="logits", laplace=1).fit(logits, y).predict_proba(logits)
    np.testing.assert_allclose(scaling(input="logits", **strong).fit(logits, y).predict_proba(logits), plain, atol=1e-6)


@pytest.mark.parametrize("scaling", MAPS)
def test_probabilities_and_their_logits_give_one_map(scaling):
    logits, y = matrix_world(200, 4)
    from_logits = scaling(input="logits").fit(logits + 7, y).predict_proba(logits - 3)
    p = softmax(logits, axis=1)
    np.testing.assert_allclose(scaling().fit(p, y).predict_proba(p), from_logits, atol=1e-7)


@pytest.mark.parametrize("scaling", MAPS)
def test_counts_of_rows_are_the_rows_repeated_and_row_order_does_not_matter(scaling):
    logits, y = matrix_world(120, 3)
    weight = np.random.default_rng(5).integers(0, 4, len(y))
    order = np.random.default_rng(6).permutation(weight.sum())
    repeated = np.repeat(np.arange(len(y)), weight)[order]
    once = scaling(input="logits").fit(logits, y, sample_weight=weight, effective_n=weight.sum())
    twice = scaling(input="logits").fit(logits[repeated], y[repeated])
    np.testing.assert_allclose(once.predict_proba(logits), twice.predict_proba(logits), atol=1e-6)


def hard_scores(case: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 40)
    return {
        "separable": (np.eye(3)[y] * 0.7 + 0.1, y),
        "exact zeros and ones": (np.eye(3)[rng.integers(0, 3, 40)], y),
        "right zeros and ones": (np.eye(3)[y], y),
        "constant": (np.full((40, 3), 1 / 3), y),
        "two rows": (np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]), np.array([0, 1])),
        "two rows of one class": (np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]), np.array([1, 1])),
        "missing class": (softmax(rng.normal(size=(40, 3)), axis=1), np.minimum(y, 1)),
        "float32": (softmax(rng.normal(size=(40, 3)), axis=1).astype(np.float32), y),
    }[case]


HARD = [
    "separable",
    "exact zeros and ones",
    "right zeros and ones",
    "constant",
    "two rows",
    "two rows of one class",
    "missing class",
    "float32",
]


@pytest.mark.parametrize("scaling", MAPS)
@pytest.mark.parametrize("case", HARD)
def test_matrix_hard_scores_give_finite_probabilities_that_sum_to_one(scaling, case):
    p, y = hard_scores(case)
    fitted = scaling(clip=True).fit(p, y)
    for scores in (p, np.eye(3), softmax(np.random.default_rng(1).normal(size=(20, 3)) * 30, axis=1)):
        q = fitted.predict_proba(scores)
        assert q.shape == (len(scores), 3)
        assert q.dtype == np.float64
        assert np.isfinite(q).all()
        assert q.min() >= 0
        np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scaling", MAPS)
@pytest.mark.parametrize("size", [1e3, 1e8, 1e300])
def test_huge_logits_are_finite(scaling, size):
    logits, y = matrix_world(60, 3)
    q = scaling(input="logits").fit(logits * size, y).predict_proba(logits * size)
    assert np.isfinite(q).all()
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scaling", STRUCTURED)
def test_a_class_missing_in_the_fit_keeps_its_column_with_a_small_probability(scaling):
    p, y = hard_scores("missing class")
    q = scaling().fit(p, y).predict_proba(p)
    assert q.shape[1] == 3
    assert (q[:, 2] > 0).all()
    assert q[:, 2].mean() < p[:, 2].mean() / 3


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(STRUCTURED), st.integers(2, 60), st.integers(2, 5))
def test_structured_maps_never_fit_worse_than_their_first_step(seed, scaling, n, classes):
    logits, y = matrix_world(n, classes, seed)
    z = first_step(logits, y)
    start = (logsumexp(z, axis=1) - z[np.arange(n), y]).mean()
    assert scaling(input="logits").fit(logits, y).objective_ <= start + 1e-12


@pytest.mark.parametrize("scaling", MAPS)
def test_maps_survive_clone_pipeline_and_a_round_trip_through_json(scaling, tmp_path: Path):
    logits, y = matrix_world(80, 3)
    names = np.array(["cat", "dog", "owl"])[y]
    fitted = clone(scaling(input="logits", laplace=0.5)).fit(logits, names)
    fitted.save(tmp_path / "map.json")
    loaded = load(tmp_path / "map.json")
    assert type(loaded) is scaling
    assert loaded.get_params() == fitted.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(logits), fitted.predict_proba(logits))
    assert set(loaded.predict(logits)) <= {"cat", "dog", "owl"}
    chained = make_pipeline(FunctionTransformer(), scaling(input="logits")).fit(logits, names)
    assert chained.predict_proba(logits).shape == (80, 3)


@pytest.mark.parametrize("scaling", MAPS)
def test_one_column_of_scores_is_two_classes(scaling):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=200)
    y = (rng.uniform(size=200) < p**2).astype(int)
    one = scaling().fit(p, y).predict_proba(p)
    two = scaling().fit(np.stack([1 - p, p], axis=1), y).predict_proba(np.stack([1 - p, p], axis=1))
    np.testing.assert_allclose(one, two, atol=1e-9)


def test_bad_strengths_and_shapes_are_refused():
    logits, y = matrix_world(30, 3)
    with pytest.raises(ValueError, match="lambda_diagonal must be a number of at least 0, got -1"):
        StructuredMatrixScaling(input="logits", lambda_diagonal=-1).fit(logits, y)
    with pytest.raises(ValueError, match="lambda_off_diagonal must be a number of at least 0, got nan"):
        Dirichlet(input="logits", lambda_off_diagonal=float("nan")).fit(logits, y)
    fitted = StructuredMatrixScaling(input="logits").fit(logits, y)
    with pytest.raises(InvalidPredictions, match="4 columns"):
        fitted.predict_proba(np.zeros((2, 4)))


@pytest.mark.parametrize("name", ["cy_cifar10_resnet20", "tidymodels_hpc_cv"])
def test_structured_matrix_scaling_improves_real_predictions(shared_data: Path, name):
    with np.load(shared_data / "classification" / f"{name}.npz") as data:
        logs = data["logits"] if "logits" in data else np.log(np.maximum(data["probs"], 1e-30))
        y = data["labels"].astype(int)
    order = np.random.default_rng(0).permutation(len(y))[:3000]
    train, test = np.array_split(order, 2)
    p = StructuredMatrixScaling(input="logits").fit(logs[train], y[train]).predict_proba(logs[test])
    after = -np.log(p[np.arange(len(test)), y[test]]).mean()
    before = -log_softmax(logs[test].astype(float), axis=1)[np.arange(len(test)), y[test]].mean()
    assert after < before


def world(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores that are right but for one row in five, whose outcome is pure chance."""
    rng = np.random.default_rng(seed)
    p = softmax(rng.normal(size=(n, 4)) * 2, axis=1)
    truth = np.where(rng.uniform(size=(n, 1)) < 0.2, 0.25, p)
    y = (truth.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)
    return p, np.minimum(y, 3)


def test_the_map_is_the_mixture_written_out():
    p, y = world(300)
    fitted = EnsembleTemperature().fit(p, y)
    first, second, third = fitted.weights_
    tempered = softmax(np.log(p) / Temperature().fit(p, y).temperature_, axis=1)
    np.testing.assert_allclose(fitted.predict_proba(p), first * tempered + second * p + third / 4, atol=1e-12)


def test_known_mixture_is_found():
    p, y = world(40_000)
    fitted = EnsembleTemperature().fit(p, y)
    assert fitted.weights_[2] == pytest.approx(0.2, abs=0.03)
    assert fitted.weights_.sum() == pytest.approx(1, abs=1e-14)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 80), st.integers(2, 4))
def test_weights_meet_the_conditions_of_optimality(seed, n, parts):
    rng = np.random.default_rng(seed)
    given_, share = rng.uniform(1e-3, 1, size=(n, parts)), rng.dirichlet(np.ones(n))
    w = mixture_weights(given_, share)
    slope = 1 - share @ (given_ / (given_ @ w)[:, None])
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert slope.min() > -1e-6
    assert abs(w @ slope) < 1e-6


def test_weights_agree_with_a_general_optimiser():
    rng = np.random.default_rng(3)
    given_, share = rng.uniform(0.01, 1, size=(200, 3)), np.full(200, 1 / 200)
    rival = minimize(
        lambda w: -share @ np.log(given_ @ w),
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(mixture_weights(given_, share), rival.x, atol=1e-5)


def test_never_worse_than_temperature_on_the_rows_fitted_and_accuracy_is_kept():
    p, y = world(500)
    mixed, plain = (scaling().fit(p, y).predict_proba(p) for scaling in (EnsembleTemperature, Temperature))
    rows = np.arange(len(y))
    assert -np.log(mixed[rows, y]).mean() <= -np.log(plain[rows, y]).mean() + 1e-12
    np.testing.assert_array_equal(mixed.argmax(axis=1), p.argmax(axis=1))


def test_weight_two_is_the_row_twice():
    p, y = world(150)
    weight = np.random.default_rng(5).integers(0, 4, len(y))
    twice = np.repeat(np.arange(len(y)), weight)
    once = EnsembleTemperature().fit(p, y, sample_weight=weight)
    np.testing.assert_allclose(once.weights_, EnsembleTemperature().fit(p[twice], y[twice]).weights_, atol=1e-6)


@pytest.mark.parametrize(
    ("p", "y"),
    [
        (np.eye(3), [0, 1, 2]),
        (np.eye(3), [1, 2, 0]),
        (np.eye(3)[:2], [0, 0]),
        (np.full((5, 3), 1 / 3), [0, 1, 2, 0, 0]),
        (np.full((5, 3), 1 / 3).astype(np.float32), [0, 0, 0, 0, 0]),
        (np.array([0.0, 1.0, 0.5]), [1, 0, 1]),
    ],
)
def test_hard_scores_give_finite_probabilities_that_sum_to_one(p, y):
    q = EnsembleTemperature().fit(p, y).predict_proba(p)
    assert np.isfinite(q).all()
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)


def test_survives_clone_and_a_round_trip_through_json(tmp_path):
    p, y = world(80)
    fitted = clone(EnsembleTemperature(laplace=1)).fit(p, y)
    fitted.save(tmp_path / "map.json")
    np.testing.assert_array_equal(load(tmp_path / "map.json").predict_proba(p), fitted.predict_proba(p))
