"""The GROUP BY keeps groups and names apart."""

import duckdb
import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.scale import bin_table, bin_tables
from tests.scale.logs import as_file, assert_same_table

pytestmark = pytest.mark.filterwarnings("ignore:fetch_(arrow_table|record_batch|arrow_reader):DeprecationWarning")


@pytest.mark.no_cover
def test_a_thousand_groups_at_once_are_each_right():
    rng = np.random.default_rng(5)
    p = rng.random(60_000).astype(np.float32)
    frame = pl.DataFrame({"p": p, "y": (rng.random(len(p)) < p**2).astype(np.int8), "g": np.arange(len(p)) % 1000})
    found = bin_tables(frame.lazy(), y_true="y", y_prob="p", by="g", grid=cal.table.HybridGrid(2**12))
    assert list(found) == list(range(1000))
    for group in (0, 1, 500, 999):
        rows = frame.filter(pl.col("g") == group)
        data = cal.Binary(rows["y"], rows["p"])
        assert_same_table(found[group], cal.BinTable.of(data, cal.table.HybridGrid(2**12)))


def test_a_column_may_be_called_anything(log, tmp_path):
    name = 'p"; drop table x --'
    odd = log.rename(columns={"p": name, "y": "y'`"})
    expected = bin_table(log, y_true="y", y_prob="p")
    with duckdb.connect() as connection:
        for source in (odd, pl.from_pandas(odd), as_file(odd, tmp_path, "parquet"), connection.from_df(odd)):
            assert_same_table(bin_table(source, y_true="y'`", y_prob=name), expected)
