"""The GROUP BY keeps groups and names apart."""

import duckdb
import ibis
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.scale import bin_table, bin_tables
from tests.scale.logs import as_file, assert_same_table

pytestmark = pytest.mark.filterwarnings("ignore:fetch_(arrow_table|record_batch|arrow_reader):DeprecationWarning")


@pytest.fixture(
    scope="module", params=["pandas", "polars", "polars lazy", "pyarrow", "duckdb", "ibis", "parquet", "csv", "list"]
)
def source(request, log, tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    if request.param in ("parquet", "csv"):
        yield as_file(log, folder, request.param)
    elif request.param == "duckdb":
        with duckdb.connect() as connection:
            yield connection.from_df(log)
    elif request.param == "ibis":
        connection = ibis.duckdb.connect()
        yield connection.read_parquet(as_file(log, folder, "parquet"))
        connection.disconnect()
    else:
        polars = pl.from_pandas(log)
        yield {
            "pandas": log,
            "polars": polars,
            "polars lazy": polars.lazy(),
            "pyarrow": pa.Table.from_pandas(log),
            "list": [polars[:1000], log[1000:1001], as_file(log[1001:], folder, "parquet")],
        }[request.param]


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
