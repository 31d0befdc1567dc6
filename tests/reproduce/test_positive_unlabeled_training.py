"""Training risks written out, and logistic regression that minimises them."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from reproduce import positive_unlabeled_training as training


@pytest.mark.parametrize("loss", ["logistic", "sigmoid"])
def test_risks_are_their_formulas(loss):
    rng = np.random.default_rng(0)
    p, u = rng.normal(1, 1, 50), rng.normal(0, 2, 200)

    def of(z, label):
        return -log_expit(z if label else -z) if loss == "logistic" else expit(-z if label else z)

    gain, rest = 0.3 * of(p, 1).mean(), of(u, 0).mean() - 0.3 * of(p, 0).mean()
    assert training.upu_risk(p, u, prior=0.3, loss=loss) == pytest.approx(gain + rest)
    assert training.nnpu_risk(p, u, prior=0.3, loss=loss) == pytest.approx(gain + max(rest, 0))
    imbalanced = 0.5 * of(p, 1).mean() + 0.5 / 0.7 * max(rest, 0)
    assert training.imbalanced_nnpu_risk(p, u, prior=0.3, loss=loss) == pytest.approx(imbalanced)
    assert training.nnpu_risk([9.0, 9.0], [-9.0, 9.0], prior=0.9, loss=loss) >= 0
    with pytest.raises(ValueError, match="loss must be"):
        training.upu_risk(p, u, prior=0.3, loss="hinge")


def test_the_logistic_model_finds_the_true_coefficients():
    rng = np.random.default_rng(2)
    n = 20_000
    y = rng.random(n) < 0.5
    x = rng.normal(0, 1, n) + 2 * y - 1  # P(y = 1 | x) = sigmoid(2 x)
    positives = rng.normal(1, 1, 5000)
    features = np.concatenate([positives, x])[:, None]
    marks = np.concatenate([np.ones(5000), np.zeros(n)])
    model = training.PULogistic(prior=0.5, ridge=1e-6).fit(features, marks)
    assert model.coef_[0, 0] == pytest.approx(2, abs=0.15)
    assert model.intercept_[0] == pytest.approx(0, abs=0.1)
    assert model.predict_proba(x[:, None])[:, 1].mean() == pytest.approx(0.5, abs=1e-3)
    again = training.PULogistic(prior=0.5, ridge=1e-6).fit(features, 2 * marks - 1)
    np.testing.assert_allclose(again.coef_, model.coef_)
    labelled = y & (rng.random(n) < 0.4)
    single = training.PULogistic(prior=0.5, ridge=1e-6, scenario="single-sample").fit(x[:, None], labelled)
    assert single.coef_[0, 0] == pytest.approx(2, abs=0.2)
    assert single.score(x[:, None], y) > 0.83


def test_the_logistic_model_takes_sparse_rows_and_refuses_wrong_marks():
    rng = np.random.default_rng(3)
    features, marks = rng.random((100, 3)), np.arange(100) < 30
    dense = training.PULogistic(prior=0.5).fit(features, marks)
    thin = training.PULogistic(prior=0.5).fit(sparse.csr_matrix(features), marks)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="must be 1 for labelled positives"):
        training.PULogistic().fit(features, np.arange(100) % 3 + 1)


def drawn(seed=0, n=400):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    features = rng.normal(size=(n, 2)) * [1.0, 50.0] + np.outer(y, [1.5, 30.0]) + [3.0, 0.0]
    return features, y & (rng.random(n) < 0.5), y


@pytest.mark.parametrize("scenario", ["case-control", "single-sample"])
def test_the_fit_is_the_minimum_of_the_penalised_risk(scenario):
    features, labelled, _ = drawn()
    model = training.PULogistic(prior=0.4, ridge=0.05, scenario=scenario).fit(features, labelled)
    rows = features if scenario == "single-sample" else features[~labelled]

    def risk(parameters):
        w, b = parameters[:-1], parameters[-1]
        penalty = 0.05 / 2 * np.sum((w * features.std(axis=0)) ** 2)
        return np.logaddexp(0, rows @ w + b).mean() - 0.4 * (features[labelled] @ w + b).mean() + penalty

    found = np.append(model.coef_[0], model.intercept_)
    step = 1e-5 * np.array([1.0, 1 / 50, 1.0])
    np.testing.assert_allclose(approx_fprime(found, risk, step), 0, atol=1e-3)
    for change in 0.05 * np.vstack([np.eye(3), -np.eye(3)]) * [1.0, 1 / 50, 1.0]:
        assert risk(found) < risk(found + change)


def test_fully_labelled_rows_give_ordinary_logistic_regression():
    features, _, y = drawn(1)
    features = features / features.std(axis=0)
    both = np.concatenate([features[y], features])  # the positives, and everybody as the unlabeled rows
    marks = np.concatenate([np.ones(y.sum()), np.zeros(len(y))])
    spread = both.std(axis=0)
    model = training.PULogistic(prior=y.mean(), ridge=1e-9).fit(both, marks)
    plain = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(features, y)
    np.testing.assert_allclose(model.coef_ * spread, plain.coef_ * spread, rtol=2e-3)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=2e-3)


def test_the_unit_of_a_feature_does_not_matter_and_a_constant_one_gets_nothing():
    features, labelled, _ = drawn(2)
    plain, scaled = (
        training.PULogistic(prior=0.4, ridge=0.1).fit(features * unit, labelled) for unit in ([1, 1], [1e3, 1e-3])
    )
    np.testing.assert_allclose(scaled.coef_ * [1e3, 1e-3], plain.coef_, rtol=1e-3)
    extended = training.PULogistic(prior=0.4, ridge=0.1).fit(
        np.column_stack([features, np.zeros(len(features))]), labelled
    )
    assert extended.coef_[0, 2] == 0
    np.testing.assert_allclose(extended.coef_[:, :2], plain.coef_, rtol=1e-3)


def test_probabilities_are_the_sigmoid_of_the_logits():
    features, labelled, _ = drawn(3)
    model = training.PULogistic(prior=0.4).fit(features, labelled)
    logits = features @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(features), logits)
    np.testing.assert_allclose(
        model.predict_proba(features), np.column_stack([expit(-logits), expit(logits)]), atol=1e-15
    )
    np.testing.assert_array_equal(model.predict(features), logits > 0)
    np.testing.assert_array_equal(model.classes_, [0, 1])
    assert model.n_features_in_ == 2


def test_it_is_a_scikit_learn_estimator():
    model = training.PULogistic(prior=0.2, ridge=0.3, scenario="single-sample", max_iter=7)
    assert clone(model).get_params() == {"prior": 0.2, "ridge": 0.3, "scenario": "single-sample", "max_iter": 7}
    with pytest.raises(NotFittedError):
        model.predict([[1.0]])


@pytest.mark.parametrize("marks", [[0, 0, 0, 0], [1, 1, 1, 1], [0, -1, 0, -1], [1, 0, -1, 1], [1, 2, 1, 2]])
def test_marks_must_be_1_and_one_other(marks):
    with pytest.raises(cal.InvalidPredictions, match=r"must be 1 for labelled positives and 0 \(or -1\)"):
        training.PULogistic().fit(np.arange(8.0).reshape(4, 2), marks)


def test_a_prior_of_0_or_1_is_refused():
    for prior in (0.0, 1.0):
        with pytest.raises(cal.InvalidPredictions, match=r"prior must lie in \(0, 1\)"):
            training.PULogistic(prior=prior).fit(np.arange(4.0)[:, None], [0, 1, 0, 1])
