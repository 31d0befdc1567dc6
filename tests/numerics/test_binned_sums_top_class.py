"""The top class of a checked matrix: the first largest of each row, and no answer where a row is bad."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.binned_sums import checked_top_class

numba = pytest.importorskip("numba")


@pytest.fixture(autouse=True)
def _on(monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "on")


def matrix_of(classes, dtype, rows=400):
    rng = np.random.default_rng(classes)
    p = rng.dirichlet(np.full(classes, 0.3), rows).astype(dtype)
    p[0] = 1 / classes  # all equal: the first counts
    p[1] = 0
    p[1, -1] = 1
    return p


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 3, 10, 63, 64, 65, 200])
def test_the_first_of_equal_maxima_is_found(classes, dtype):
    p = matrix_of(classes, dtype)
    best, top = checked_top_class(p, 1e-3)
    np.testing.assert_array_equal(best, p.argmax(axis=1))
    np.testing.assert_array_equal(top, p.max(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [3, 100])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -0.01, 1.01])
def test_a_bad_row_is_left_to_those_who_word_the_message(classes, bad, dtype, monkeypatch):
    p = matrix_of(classes, dtype)
    p[7, 1] = bad
    assert checked_top_class(p, 1e-3) is None
    words = []
    for fast in ("on", "off"):
        monkeypatch.setenv("CALIBRANT_FAST", fast)
        with pytest.raises(InvalidPredictions) as refused:
            cal.Multiclass(np.zeros(len(p), int), p)
        words.append(str(refused.value))
    assert words[0] == words[1]


@pytest.mark.parametrize("classes", [3, 100])
def test_rows_that_do_not_sum_to_one_and_strided_matrices_are_left_too(classes):
    p = matrix_of(classes, np.float64)
    assert checked_top_class(p[:, ::-1], 1e-3) is None
    p[5] *= 0.99
    assert checked_top_class(p, 1e-3) is None
    assert checked_top_class(p, 0.02) is not None


@pytest.mark.parametrize("classes", [3, 100])
def test_negative_zero_is_a_probability(classes):
    p = matrix_of(classes, np.float64)
    p[1, 0] = -0.0
    data = cal.Multiclass(np.zeros(len(p), int), p)
    np.testing.assert_array_equal(data.top_label().y_prob, p.max(axis=1))


def test_rows_taken_from_checked_predictions_have_their_own_top_labels():
    p = matrix_of(5, np.float64)
    data = cal.Multiclass(np.arange(len(p)) % 5, p)
    some = data.take(np.array([9, 3, 3]))
    np.testing.assert_array_equal(some.top_label().y_prob, p[[9, 3, 3]].max(axis=1))
    np.testing.assert_array_equal(some.top_label().y_true, p[[9, 3, 3]].argmax(axis=1) == np.array([9, 3, 3]) % 5)
