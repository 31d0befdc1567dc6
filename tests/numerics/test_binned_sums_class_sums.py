"""Sums per class and bin: only with a compiled loop and a plain matrix."""

import numpy as np
import pytest

from calibrant.numerics.binned_sums import checked_class_sums

MATRIX, CODES = np.full((4, 2), 0.5), np.array([0, 1, 1, 1])


def test_without_compiled_loops_there_are_no_sums(monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "off")
    assert checked_class_sums(MATRIX, CODES, 2, 1e-3) is None


def test_counts_predictions_and_outcomes(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setenv("CALIBRANT_FAST", "on")
    found = checked_class_sums(MATRIX, CODES, 2, 1e-3)
    assert found.tolist() == [[[4, 0], [4, 0]], [[2, 0], [2, 0]], [[1, 0], [3, 0]]]


@pytest.mark.parametrize(
    ("matrix", "codes"),
    [
        (MATRIX.astype(np.float16), CODES),
        (MATRIX.astype(">f8"), CODES),
        (np.asfortranarray(MATRIX), CODES),
        (MATRIX, CODES.astype(float)),
        (MATRIX, np.array(["a", "b", "b", "b"])),
    ],
)
def test_what_is_not_plain_is_left_to_others(matrix, codes, monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setenv("CALIBRANT_FAST", "on")
    assert checked_class_sums(matrix, codes, 2, 1e-3) is None
