"""The expression of a cell's number is the twin of the grid's own index."""

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest

from calibrant.scale.group_by import SCORE_RATIO, cell_number, cell_shift, equal_width, score_ratio
from calibrant.table import EqualWidth, HybridGrid, LogGrid

RANDOM = np.random.default_rng(0).random(2000)
SCORES = np.unique(np.concatenate([[1e-12, 0.5, 1 - 1e-12], np.linspace(0, 1, 61), RANDOM]))
GRIDS = [HybridGrid(), HybridGrid(2**12), HybridGrid(64, 20.0), HybridGrid(256, equal_width=15), LogGrid()]


def in_engine(engine, values, *expressions):
    """The value of the last expression, which may name the columns of those before."""
    frame = pl.DataFrame({"p": values, "row": np.arange(len(values))})
    with duckdb.connect() as connection:
        lazy = nw.from_native(frame.lazy() if engine == "polars" else connection.from_arrow(frame.to_arrow()))
        for name, expression in expressions:
            lazy = lazy.with_columns(expression.alias(name))
        found = lazy.collect("pyarrow").sort("row")
        return found[expressions[-1][0]].to_numpy()


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("grid", GRIDS, ids=repr)
def test_every_engine_finds_the_cell_of_the_grid(engine, grid):
    values = SCORES if isinstance(grid, HybridGrid) else np.exp(np.linspace(-5, 5, 999))
    score = nw.col("p")
    found = in_engine(engine, values, (SCORE_RATIO, score_ratio(score, grid)), ("cell", cell_number(score, grid)))
    np.testing.assert_array_equal(found.astype(np.int64) + cell_shift(grid), grid.index(values))


def test_small_numbers_fit_two_bytes():
    assert cell_shift(HybridGrid()) == 2**15
    assert cell_shift(HybridGrid(256, equal_width=15)) == cell_shift(LogGrid()) == 0


@pytest.mark.parametrize("n", [1, 7, 10, 15])
def test_equal_widths_are_exact_at_their_edges(n):
    values = np.concatenate([SCORES, np.linspace(0, 1, n + 1)])
    found = in_engine("polars", values, ("bin", equal_width(nw.col("p"), n)))
    np.testing.assert_array_equal(found, EqualWidth(n).index(values))
