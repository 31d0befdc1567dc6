"""Multinomial log loss and its derivatives written out, a line per class, and exact temperature scaling."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax as log_softmax_of_special
from scipy.special import softmax

import calibrant as cal
from calibrant.numerics.logistic import multinomial as multinomial_loss
from calibrant.numerics.logistic.multinomial import MatrixLogLoss, MultinomialLines, Penalty, VectorLogLoss
from calibrant.numerics.special import log_softmax
from calibrant.recalibrate import Temperature

PENALTY = Penalty(intercept=0.3, diagonal=0.7, off_diagonal=1.1)


def problem(kind, *, weighted, n=40, k=3, seed=0):
    rng = np.random.default_rng(seed)
    z = log_softmax(rng.normal(size=(n, k)))
    codes = rng.integers(0, k, n)
    weight = rng.uniform(0.5, 3, n) if weighted else None
    return kind(np.ascontiguousarray(z.T), codes, weight, PENALTY), z, codes, weight


def objective(kind, theta, z, codes, weight):
    k = z.shape[1]
    if kind is MatrixLogLoss:
        theta = theta.reshape(k, k + 1)
        matrix, intercept = theta[:, :k], theta[:, k]
    else:
        matrix, intercept = np.diag(theta[:k]), theta[k:]
    logs = log_softmax(z + z @ matrix.T + intercept)[np.arange(len(z)), codes]
    diagonal = np.diag(matrix)
    off = (matrix**2).sum() - diagonal @ diagonal
    penalty = 0.3 * intercept @ intercept + 0.7 * diagonal @ diagonal + 1.1 * off
    return -np.average(logs, weights=weight) + penalty


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_value_gradient_and_hessian(kind, weighted):
    loss, z, codes, weight = problem(kind, weighted=weighted)
    rng = np.random.default_rng(1)
    theta = rng.normal(size=loss.cost.size) * 0.3
    value, gradient = loss.evaluate(theta)
    assert value == pytest.approx(objective(kind, theta, z, codes, weight), rel=1e-12)
    step = 1e-5
    for j, unit in enumerate(np.eye(len(theta))):
        up, down = (objective(kind, theta + sign * step * unit, z, codes, weight) for sign in (1, -1))
        assert gradient[j] == pytest.approx((up - down) / (2 * step), abs=1e-8)
    direction = rng.normal(size=len(theta))
    loss.evaluate(theta)
    product = loss.hessian_times(direction)
    up, down = (loss.evaluate(theta + sign * step * direction)[1] for sign in (1, -1))
    np.testing.assert_allclose(product, (up - down) / (2 * step), atol=1e-7)


@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_blocks_of_rows_add_up(kind, monkeypatch):
    whole, *_ = problem(kind, weighted=True, n=300)
    monkeypatch.setattr(multinomial_loss, "_BLOCK", 1)
    parts, *_ = problem(kind, weighted=True, n=300)
    assert len(parts._blocks) > 1
    theta = np.random.default_rng(2).normal(size=whole.cost.size)
    for first, second in zip(whole.evaluate(theta), parts.evaluate(theta), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-12)
    np.testing.assert_allclose(whole.hessian_times(theta), parts.hessian_times(theta), rtol=1e-10)


@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_the_dense_preconditioner_is_the_inverse_hessian(kind):
    loss, *_ = problem(kind, weighted=True)
    loss.evaluate(np.random.default_rng(3).normal(size=loss.cost.size) * 0.3)
    solve = loss.preconditioner()
    gradient = np.random.default_rng(4).normal(size=loss.cost.size)
    np.testing.assert_allclose(loss.hessian_times(solve(gradient)), gradient, atol=1e-6)


@pytest.mark.parametrize("blocks", [200, 2])
@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_structured_preconditioners_are_positive_and_near(kind, blocks, monkeypatch):
    monkeypatch.setattr(multinomial_loss, "_DENSE", 1)
    monkeypatch.setattr(multinomial_loss, "_BLOCKS", blocks)
    loss, *_ = problem(kind, weighted=False, n=400, k=4)
    loss.evaluate(loss.start)
    solve = loss.preconditioner()
    matrix = np.stack([solve(unit) for unit in np.eye(loss.cost.size)])
    hessian = np.stack([loss.hessian_times(unit) for unit in np.eye(loss.cost.size)])
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-10)
    values = np.linalg.eigvals(matrix @ hessian).real
    assert values.min() > 0.1
    assert values.max() < 5


def test_huge_logits_do_not_overflow():
    z = np.array([[-1000.0, 0.0], [0.0, -1000.0], [-500.0, -500.0]])
    value, gradient = VectorLogLoss(z, np.array([0, 1]), None, PENALTY).evaluate(np.zeros(6))
    assert value == pytest.approx(1000.0)
    assert np.isfinite(gradient).all()


def made(n=150, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    eta = np.column_stack([np.zeros(n), [0.3, -0.2] + [0.8, 1.4] * x])
    p = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    codes = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    return MultinomialLines(x, codes, rng.gamma(2.0, size=n))


def written_out(lines, parameters):
    eta = np.column_stack([np.zeros(len(lines.x)), parameters[:2] + parameters[2:] * lines.x])
    logs = eta - np.log(np.exp(eta).sum(axis=1, keepdims=True))
    return -lines.weight @ logs[np.arange(len(eta)), lines.codes]


def test_the_fit_is_the_minimum_of_the_loss_written_out():
    lines = made()
    at, loss, found = lines.fit(np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4, dtype=bool))
    other = minimize(lambda t: written_out(lines, t), np.zeros(4), tol=1e-12)
    assert found
    assert loss == pytest.approx(other.fun)
    assert at == pytest.approx(other.x, abs=1e-4)
    fixed, _, _ = lines.fit(np.array([0.0, 0.0, 1.0, 1.0]), np.array([True, True, False, False]))
    assert fixed[2:].tolist() == [1.0, 1.0]


def test_derivatives_are_those_of_the_loss():
    lines, at, step = made(), np.array([0.1, -0.3, 0.7, 1.2]), 1e-5
    unit = np.eye(4) * step
    gradient = [(written_out(lines, at + d) - written_out(lines, at - d)) / (2 * step) for d in unit]
    assert -(lines.weight @ lines.residuals(at)) == pytest.approx(np.array(gradient), rel=1e-5)
    hessian = [-(lines.weight @ (lines.residuals(at + d) - lines.residuals(at - d))) / (2 * step) for d in unit]
    assert lines.information(at) == pytest.approx(np.array(hessian), rel=1e-4, abs=1e-3)


def test_limits_are_where_the_profile_rises():
    lines, free = made(), np.ones(4, dtype=bool)
    best, loss, _ = lines.fit(np.array([0.0, 0.0, 1.0, 1.0]), free)
    low, high = lines.limits(best, free, 2, 1.92, 0.1)
    for end in (low, high):
        profile = minimize(
            lambda t, end=end: written_out(lines, np.insert(t, 2, end)), np.delete(best, 2), tol=1e-12
        ).fun
        assert profile - loss == pytest.approx(1.92, abs=1e-3)
    assert low < best[2] < high


def test_separated_outcomes_have_no_fit():
    x = np.linspace(-1, 1, 20)[:, None]
    assert not MultinomialLines(x, (x[:, 0] > 0).astype(int), np.ones(20)).fit(np.array([0.0, 1.0]), np.ones(2, bool))[
        2
    ]


def test_limits_are_found_where_one_row_keeps_a_class_from_being_separated():
    """One event of the first class, and one row beyond it: the best slope is far out, but slopes below 1 are likely."""
    rng = np.random.default_rng(4)
    p = rng.dirichlet([0.05, 1, 2], 60) * 0.999 + 0.0003
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((60, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    lines = MultinomialLines(np.log(p[:, :2] / p[:, 2:]), np.array([1, 2, 0])[y], np.ones(60))
    free = np.ones(4, dtype=bool)
    best, lowest, found = lines.fit(np.array([0.0, 0.0, 1.0, 1.0]), free)
    low, high = lines.limits(best, free, 2, 1.92, 30.0)
    assert found
    assert best[2] > 15

    def profile(slope, intercept):
        others = minimize(lambda t: written_out(lines, np.array([t[0], t[1], slope, t[2]])), [intercept, -0.5, 0.75])
        return others.fun

    assert profile(low, 0.0) - lowest == pytest.approx(1.92, abs=1e-3)
    assert low < 1
    assert high > 30


def world(n, k, temperature, seed=0, scale=3.0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, k)) * scale
    running = softmax(logits / temperature, axis=1).cumsum(axis=1)
    return logits, (running < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)


def slope(b, logits, y, weight=None):
    """First-order condition: the derivative of the mean log loss of softmax(b L) by b."""
    expected = (softmax(b * logits, axis=1) * logits).sum(axis=1)
    return np.average(expected - logits[np.arange(len(y)), y], weights=weight)


def curvature(b, logits):
    p = softmax(b * logits, axis=1)
    mean = (p * logits).sum(axis=1)
    return ((p * logits**2).sum(axis=1) - mean**2).mean()


@pytest.mark.parametrize("n", [5, 300, 30_000])
@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_the_first_order_condition_holds_to_1e_8_in_t(n, k, temperature):
    logits, y = world(n, k, temperature)
    y[0], y[1] = logits[0].argmin(), logits[1].argmax()  # no separation, some signal
    t = Temperature(input="logits").fit(logits, y).temperature_
    b = 1 / t
    if 1e-6 < b < 1e6:
        error_in_b = abs(slope(b, logits, y)) / curvature(b, logits)
        assert error_in_b / b < 1e-8
        assert error_in_b * t**2 < 1e-8 * max(1, t)


def test_no_other_temperature_has_a_lower_loss():
    logits, y = world(2000, 5, 1.7)

    def loss(t):
        return -log_softmax_of_special(logits / t, axis=1)[np.arange(len(y)), y].mean()

    found = Temperature(input="logits").fit(logits, y).temperature_
    peer = minimize_scalar(loss, bounds=(0.1, 10), method="bounded", options={"xatol": 1e-10}).x
    assert found == pytest.approx(peer, abs=1e-6)
    assert loss(found) <= loss(peer) + 1e-15


def test_scikit_learn_finds_the_same_temperature_no_better():
    calibration = pytest.importorskip("sklearn.calibration")
    if not hasattr(calibration, "_TemperatureScaling"):
        pytest.skip("this scikit-learn has no temperature scaling")
    logits, y = world(20_000, 10, 1.7)
    peer = 1 / calibration._TemperatureScaling().fit(logits, y).beta_
    ours = Temperature(input="logits").fit(logits, y).temperature_
    assert ours == pytest.approx(peer, rel=1e-4)
    assert abs(slope(1 / ours, logits, y)) <= abs(slope(1 / peer, logits, y)) + 1e-12


def test_probabilities_and_logits_agree():
    logits, y = world(500, 4, 2.0)
    by_logits = Temperature(input="logits").fit(logits, y)
    by_probabilities = Temperature().fit(softmax(logits, axis=1), y)
    assert by_probabilities.temperature_ == pytest.approx(by_logits.temperature_, rel=1e-10)
    np.testing.assert_allclose(
        by_logits.predict_proba(logits), softmax(logits / by_logits.temperature_, axis=1), atol=1e-14
    )


def test_logits_far_from_zero_and_far_apart_do_not_overflow():
    logits, y = world(500, 4, 2.0)
    expected = Temperature(input="logits").fit(logits, y).temperature_
    shifted = logits + np.random.default_rng(0).normal(size=(500, 1)) * 1000
    assert Temperature(input="logits").fit(shifted, y).temperature_ == pytest.approx(expected, rel=1e-7)
    assert Temperature(input="logits").fit(logits * 1e4, y).temperature_ == pytest.approx(1e4 * expected, rel=1e-9)


def test_weights_count_as_repetitions():
    logits, y = world(400, 3, 1.5)
    weight = np.random.default_rng(1).integers(0, 4, 400)
    repeated = Temperature(input="logits").fit(np.repeat(logits, weight, axis=0), np.repeat(y, weight))
    assert Temperature(input="logits").fit(logits, y, sample_weight=weight).temperature_ == pytest.approx(
        repeated.temperature_, rel=1e-10
    )


def test_a_sorted_sample_gives_no_bad_first_guess():
    logits, y = world(40_000, 3, 1.5)
    order = np.argsort(logits[:, 0])
    expected = Temperature(input="logits").fit(logits, y).temperature_
    assert Temperature(input="logits").fit(logits[order], y[order]).temperature_ == pytest.approx(expected, rel=1e-9)


def test_a_table_gives_the_temperature_of_its_rows():
    logits, y = world(5000, 2, 1.5)
    p = softmax(logits, axis=1)[:, 1]
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid())
    assert Temperature().fit(table).temperature_ == pytest.approx(Temperature().fit(p, y).temperature_, rel=1e-4)


def test_useless_scores_get_the_ends_of_the_range():
    wrong = Temperature().fit([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0])
    assert wrong.temperature_ == 1e7
    np.testing.assert_allclose(wrong.predict_proba([0.9]), 0.5, atol=1e-6)
    assert Temperature().fit([0.5, 0.5], [0, 1]).temperature_ == 1.0
    right = Temperature().fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert 1e-3 < right.temperature_ < 0.2
