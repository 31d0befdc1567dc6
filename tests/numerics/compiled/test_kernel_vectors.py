"""Vectors in a table: as many additions as values, and nothing else is touched."""

import numpy as np
import pytest

pytest.importorskip("numba")

from calibrant.numerics.compiled.kernel import add_at, fetch, inner


@inner
def add_four(table, at):
    return add_at(table, at, (1.0, 0.5, np.nan, -2.0))


@inner
def add_two(table, at):
    fetch(table, at)
    return add_at(table, at, (np.inf, 0.25))


@pytest.mark.parametrize(("action", "values"), [(add_four, [1.0, 0.5, np.nan, -2.0]), (add_two, [np.inf, 0.25])])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_values_are_added_to_neighbours(action, values, at):
    table = np.arange(8.0)
    expected = table.copy()
    expected[at : at + len(values)] += values
    assert action(table, np.uint64(at)) == expected[at]
    np.testing.assert_array_equal(table, expected)
