"""Multinomial log loss and its derivatives written out, a line per class, and exact temperature scaling."""

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax as log_softmax_of_special
from scipy.special import softmax

import calibrant as cal
from calibrant.numerics.arrays import log_softmax
from calibrant.numerics.logistic import multinomial as multinomial_loss
from calibrant.numerics.logistic.multinomial import MatrixLogLoss, MultinomialLines, Penalty, VectorLogLoss, minimise
from calibrant.recalibrate import Temperature

PENALTY = Penalty(intercept=0.3, diagonal=0.7, off_diagonal=1.1)


def problem(kind, *, weighted, n=40, k=3, seed=0):
    rng = np.random.default_rng(seed)
    z = log_softmax(rng.normal(size=(n, k)))
    codes = rng.integers(0, k, n)
    weight = rng.uniform(0.5, 3, n) if weighted else None
    return kind(np.ascontiguousarray(z.T), codes, weight, PENALTY), z, codes, weight


def objective(kind, theta, z, codes, weight):
    matrix, intercept = theta[:, :-1] if kind is MatrixLogLoss else np.diag(theta[:, 0]), theta[:, -1]
    logs = log_softmax(z + z @ matrix.T + intercept)[np.arange(len(z)), codes]
    diagonal = np.diag(matrix)
    off = (matrix**2).sum() - diagonal @ diagonal
    penalty = 0.3 * intercept @ intercept + 0.7 * diagonal @ diagonal + 1.1 * off
    return -np.average(logs, weights=weight) + penalty


def hessian(loss, theta, step=1e-5):
    """By differences of gradients."""
    units = np.eye(theta.size).reshape(-1, *theta.shape) * step
    ends = [(loss.evaluate(theta + unit)[1], loss.evaluate(theta - unit)[1]) for unit in units]
    loss.evaluate(theta)
    return np.stack([(up - down).ravel() / (2 * step) for up, down in ends])


def whole_root(loss):
    return block_diag(*loss.root(later=False))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_value_and_gradient(kind, weighted):
    loss, z, codes, weight = problem(kind, weighted=weighted)
    theta = np.random.default_rng(1).normal(size=loss.cost.shape) * 0.3
    value, gradient = loss.evaluate(theta)
    assert value == pytest.approx(objective(kind, theta, z, codes, weight), rel=1e-12)
    step = 1e-5
    for at, unit in zip(np.ndindex(theta.shape), np.eye(theta.size).reshape(-1, *theta.shape), strict=True):
        up, down = (objective(kind, theta + sign * step * unit, z, codes, weight) for sign in (1, -1))
        assert gradient[at] == pytest.approx((up - down) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_blocks_of_rows_add_up(kind, monkeypatch):
    whole, *_ = problem(kind, weighted=True, n=300)
    monkeypatch.setattr(multinomial_loss, "_BLOCK", 1)
    parts, *_ = problem(kind, weighted=True, n=300)
    assert len(parts._blocks) > 1
    theta = np.random.default_rng(2).normal(size=whole.cost.shape)
    for first, second in zip(whole.evaluate(theta), parts.evaluate(theta), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_the_root_of_all_parameters_is_that_of_the_inverse_hessian(kind):
    loss, *_ = problem(kind, weighted=True)
    theta = np.random.default_rng(3).normal(size=loss.cost.shape) * 0.3
    expected, root = hessian(loss, theta), whole_root(loss)
    np.testing.assert_allclose(root @ expected @ root.T, np.eye(theta.size), atol=1e-6)


@pytest.mark.parametrize("blocks", [200, 2])
@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_roots_of_blocks_are_near(kind, blocks, monkeypatch):
    monkeypatch.setattr(multinomial_loss, "_DENSE", 1)
    monkeypatch.setattr(multinomial_loss, "_BLOCKS", blocks)
    loss, *_ = problem(kind, weighted=False, n=400, k=4)
    expected, root = hessian(loss, np.zeros(loss.cost.shape)), whole_root(loss)
    values = np.linalg.eigvalsh(root @ expected @ root.T)
    assert values.min() > 0.1
    assert values.max() < 5


@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_centred_parameters_are_the_same_map_at_the_least_cost(kind):
    loss, *_ = problem(kind, weighted=False)
    theta = np.random.default_rng(5).normal(size=loss.cost.shape)
    centred = loss.centred(theta)
    loss.evaluate(theta)
    before = loss._p.copy()
    loss.evaluate(centred)
    np.testing.assert_allclose(loss._p, before, rtol=1e-12)
    shift = 1e-4 * np.eye(theta.shape[1])[-1]
    least = (loss.cost * centred**2).sum()
    assert all((loss.cost * (centred + sign * shift) ** 2).sum() > least for sign in (1, -1))


@pytest.mark.parametrize("dense", [700, 1])
@pytest.mark.parametrize("kind", [MatrixLogLoss, VectorLogLoss])
def test_the_minimum_is_that_of_a_general_optimiser(kind, dense, monkeypatch):
    monkeypatch.setattr(multinomial_loss, "_DENSE", dense)
    loss, z, codes, weight = problem(kind, weighted=True, n=300, k=4)
    found = minimise(loss, tolerance=1e-13)
    shape = loss.cost.shape
    other = minimize(lambda t: objective(kind, t.reshape(shape), z, codes, weight), np.zeros(loss.cost.size), tol=1e-9)
    assert found.left <= 1e-12
    assert found.value == pytest.approx(other.fun, abs=1e-10)
    assert found.gradient < 1e-6
    np.testing.assert_allclose(found.theta.ravel(), other.x, atol=1e-4)


def test_free_directions_do_not_slow_the_search_down():
    """A vector added to the parameters of all classes costs 1e-9: without centring, thousands of evaluations."""
    rng = np.random.default_rng(0)
    z = log_softmax(2 * rng.normal(size=(3000, 30)))
    codes = (0.6 * z + 0.3 * np.roll(z, 1, axis=1) + rng.gumbel(size=z.shape)).argmax(axis=1)
    found = minimise(MatrixLogLoss(np.ascontiguousarray(z.T), codes, None, Penalty(1e-9, 1e-9, 1e-9)), tolerance=1e-12)
    assert found.left <= 1e-12
    assert 1 < found.evaluations < 150


def test_huge_logits_do_not_overflow():
    z = np.array([[-1000.0, 0.0], [0.0, -1000.0], [-500.0, -500.0]])
    value, gradient = VectorLogLoss(z, np.array([0, 1]), None, PENALTY).evaluate(np.zeros((3, 2)))
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


def test_rare_classes_are_no_separation():
    """Curvatures of 6e-8 per unit of weight are those of a class of one row in seventeen million; 2e-8 is flat."""
    x = np.zeros((2, 1))
    free = np.array([True, False])
    for share, found in ((6e-8, True), (2e-8, False)):
        lines = MultinomialLines(x, np.array([0, 1]), np.array([1.0, share]))
        assert lines.fit(np.array([-15.0, 1.0]), free)[2] == found
