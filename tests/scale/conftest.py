"""The log that most tests of scale read, and the same log in every engine."""

import duckdb
import ibis
import polars as pl
import pyarrow as pa
import pytest

from tests.scale.logs import as_file, make_log


@pytest.fixture(scope="session")
def log():
    return make_log()


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
