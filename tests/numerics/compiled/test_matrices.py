"""Matrices of class probabilities: sums per class and bin are those of the columns, and bad rows are noticed."""

import numpy as np
import pytest

from calibrant.numerics.binned_sums import checked_class_sums

pytest.importorskip("numba")


@pytest.fixture(autouse=True)
def _on(monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "on")


def matrix_of(classes, dtype, rows):
    """Flat and confident rows, some on the edges of bins."""
    rng = np.random.default_rng(classes)
    p = rng.dirichlet(np.full(classes, 0.1), rows)
    p[0], p[1], p[2] = 0.0, 0.0, 1 / classes
    p[0, -1], p[1, :2] = 1.0, (1 / 15, 14 / 15)
    return p.astype(dtype), rng.integers(0, classes, rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("classes", "rows", "bins"),
    [(2, 5000, 15), (10, 9000, 15), (63, 100, 1), (64, 9000, 15), (200, 300, 7), (300, 200, 15)],
)
def test_sums_per_class_and_bin_are_those_of_the_columns(classes, rows, bins, dtype):
    p, y = matrix_of(classes, dtype, rows)
    count, predicted, observed = checked_class_sums(p, y, bins, 1e-3)
    edges = np.linspace(0, 1, bins + 1)
    for k in range(classes):
        where = np.searchsorted(edges[1:-1], p[:, k], side="left")
        np.testing.assert_array_equal(count[k], np.bincount(where, minlength=bins))
        np.testing.assert_array_equal(observed[k], np.bincount(where, y == k, bins))
        np.testing.assert_allclose(predicted[k], np.bincount(where, p[:, k].astype(float), bins), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [3, 100])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1e-30, -0.0, 1.0001, 0.3])
def test_a_bad_score_gives_no_sums(classes, bad, dtype):
    p, y = matrix_of(classes, dtype, 100)
    p[70, 1] = bad
    assert checked_class_sums(p, y, 15, 1e-3) is None


@pytest.mark.parametrize("classes", [3, 100])
@pytest.mark.parametrize("bad", [-1, 100, 2**40])
def test_a_code_that_is_no_column_gives_no_sums(classes, bad):
    p, y = matrix_of(classes, np.float64, 100)
    y[99] = bad
    assert checked_class_sums(p, y, 15, 1e-3) is None
