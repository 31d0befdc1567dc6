"""Blocks of rows."""

import numpy as np

from calibrant.numerics.arrays import row_blocks


def test_blocks_cover_all_rows_once():
    for rows, columns in ((10, 3), (5000, 1000), (3, 10**7)):
        parts = list(row_blocks(rows, columns))
        np.testing.assert_array_equal(np.concatenate([np.arange(rows)[part] for part in parts]), np.arange(rows))
        assert all((part.stop - part.start) * columns <= max(2_000_000, columns) for part in parts)
