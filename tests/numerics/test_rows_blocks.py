"""Blocks of rows, and extremes in one read."""

import numpy as np
import pytest

from calibrant.numerics.arrays import CHUNK
from calibrant.numerics.rows import extremes, row_blocks


def test_blocks_cover_all_rows_once():
    for rows, columns in ((10, 3), (5000, 1000), (3, 10**7)):
        parts = list(row_blocks(rows, columns))
        np.testing.assert_array_equal(np.concatenate([np.arange(rows)[part] for part in parts]), np.arange(rows))
        assert all((part.stop - part.start) * columns <= max(2_000_000, columns) for part in parts)


@pytest.mark.parametrize("n", [1, CHUNK - 1, CHUNK, CHUNK + 1])
def test_extremes_are_those_of_the_whole_array(n):
    values = np.random.default_rng(n).normal(size=n)
    assert extremes(values) == (values.min(), values.max())
