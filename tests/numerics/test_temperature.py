"""Temperature scaling is exact, however the scores come."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

import calibrant as cal
from calibrant.recalibrate import Temperature


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
        return -log_softmax(logits / t, axis=1)[np.arange(len(y)), y].mean()

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
