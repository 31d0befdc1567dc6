"""Measures of many classes work on blocks of rows: what they allocate is small beside the predictions."""

import tracemalloc

import numpy as np
import pytest

import calibrant as cal

N, K = 12_000, 1000


@pytest.fixture(scope="module")
def given():
    rng = np.random.default_rng(0)
    p = rng.random((N, K), dtype=np.float32) ** 8
    p /= p.sum(axis=1, keepdims=True)
    p.flags.writeable = False
    return rng.integers(0, K, N), p


def allocated(action):
    """The most bytes that were allocated at once, and the result."""
    tracemalloc.start()
    result = action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, result


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "measure", "share"),
    [
        ("top label", lambda data: cal.ece(data.top_label()), 0.5),
        ("one class", lambda data: data.one_vs_rest()[3], 0.5),
        ("classwise", lambda data: cal.classwise(cal.ece, data), 0.5),
        ("brier", cal.brier, 0.8),
        ("log_loss", cal.log_loss, 1.3),
        ("floored log_loss", lambda data: cal.log_loss(data, floor=1e-9), 1.8),
    ],
)
def test_measures_need_little_memory(given, name, measure, share):
    y, p = given
    data = cal.Multiclass(y, p)
    cal.ece(cal.Binary([0, 1], [0.2, 0.7]))  # what is imported on first use
    peak, _ = allocated(lambda: measure(data))
    assert peak < share * p.nbytes, name


def test_read_only_predictions_are_neither_copied_nor_cast(given):
    y, p = given
    peak, data = allocated(lambda: cal.Multiclass(y, p))
    assert data.y_prob is p
    assert peak < 0.3 * p.nbytes
    writable = p.copy()
    peak, copied = allocated(lambda: cal.Multiclass(y, writable))
    assert copied.y_prob.dtype == np.float32
    assert peak < 1.3 * p.nbytes


@pytest.mark.no_cover
def test_logits_give_probabilities_of_their_own_precision(given):
    y, p = given
    logits = np.log(p + np.float32(1e-30))
    peak, data = allocated(lambda: cal.Multiclass(y, logits=logits))
    assert data.y_prob.dtype == np.float32
    assert peak < 2.8 * p.nbytes
    np.testing.assert_allclose(data.y_prob, p, atol=1e-6)


@pytest.mark.slow
def test_the_variational_estimate_needs_a_few_times_the_memory_of_its_input(given):
    y, p = given
    data = cal.Multiclass(y, p)
    peak, found = allocated(lambda: cal.variational_error(data, folds=2))
    assert np.isfinite(found)
    assert peak < 6 * data.y_prob.nbytes
