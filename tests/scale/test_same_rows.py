"""The same rows give the same numbers: in memory, on every engine, from every file, as rows and as tables."""

import dask.dataframe as dd
import duckdb
import ibis
import numpy as np
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.scale import bin_tables
from calibrant.table.bintable import merge
from tests.cli.loading import both
from tests.scale.designs import GROUPS, LABELS, SCORES, Design, as_files
from tests.scale.logs import assert_same_table

pytestmark = pytest.mark.filterwarnings("ignore:fetch_(arrow_table|record_batch|arrow_reader):DeprecationWarning")
DESIGNS = st.builds(
    Design,
    labels=st.sampled_from(list(LABELS)),
    scores=st.sampled_from(SCORES),
    groups=st.sampled_from(list(GROUPS)),
    categorical=st.booleans(),
    missing_rows=st.booleans(),
    missing_groups=st.booleans(),
    weighted=st.booleans(),
    seed=st.integers(0, 2**20),
)
# The failing design is printed; finding a smaller one would take minutes.
QUICK = settings(max_examples=5, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])


def assert_same_tables(found, design, frame):
    expected, missing = design.expected(frame)
    assert set(found) >= set(expected)
    for group, table in expected.items():
        assert_same_table(found[group], table)
    assert sum(table.n for table in found.values()) == sum(table.n for table in expected.values())
    assert sum(count for table in found.values() for count in table.invalid.values()) == missing


def tables_of(source, design):
    weight = "w" if design.weighted else None
    return bin_tables(source, y_true="y", y_prob="p", weight=weight, by="g", task=design.task, max_invalid=1.0)


@QUICK
@given(design=DESIGNS)
def test_every_engine_gives_the_tables_of_memory(design, tmp_path_factory):
    frame = design.frame()
    arrow, pandas = frame.to_arrow(), frame.to_pandas()
    with duckdb.connect() as connection:
        sources = {
            "pandas": pandas,
            "polars": frame,
            "polars lazy": frame.lazy(),
            "pyarrow": arrow,
            "duckdb": connection.from_arrow(arrow),
            "dask": dd.from_pandas(pandas, npartitions=3),
            "several": [frame[:20], pandas[20:50], arrow[50:]],
        }
        for source in sources.values():
            assert_same_tables(tables_of(source, design), design, frame)
    warehouse = ibis.duckdb.connect()
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    frame.write_parquet(path)
    assert_same_tables(tables_of(warehouse.read_parquet(path), design), design, frame)
    warehouse.disconnect()


@QUICK
@given(design=DESIGNS)
def test_every_file_gives_the_tables_of_memory_and_so_does_the_command_line(design, tmp_path_factory):
    frame = design.frame()
    for name, path in as_files(frame, tmp_path_factory.mktemp("log")).items():
        if name == "three formats" and design.labels == "bool":
            continue  # of JSON lines' true and false only the words are known, which do not mix with numbers
        written = frame.cast({"g": pl.String}) if name == "log.csv" else frame  # whose groups are texts
        assert_same_tables(tables_of(path, design), design, written)
        assert_same_answers(path, design, written)


def assert_same_answers(path, design, frame):
    """The command line, from rows and from tables; names of groups are texts there."""
    expected, missing = design.expected(frame)
    whole = merge(list(expected.values()))
    sizes = {f"{group:g}" if isinstance(group, float) else str(group): table.n for group, table in expected.items()}
    positive = design.task.positive
    rows, tables = both(path, by=("g",), weight="w" if design.weighted else None, positive=positive, drop_missing=True)
    assert_same_table(cal.BinTable.of(rows.data, cal.table.HybridGrid()), whole)
    assert_same_table(tables.data, whole)
    names, counts = np.unique(rows.by, return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == sizes
    assert {name: table.n for name, table in tables.by.items()} == sizes
    assert any("Left out" in note for note in rows.notes) == bool(missing)
