"""Columns by the names that users give: any name, or an SQL expression where the engine understands SQL."""

import duckdb
import narwhals.stable.v2 as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.scale import bin_table, bin_tables
from calibrant.scale.checks import bound

pytestmark = pytest.mark.filterwarnings("ignore:fetch_(arrow_table|record_batch|arrow_reader):DeprecationWarning")
LOG = {"y": [0, 1, 1], "score": [20.0, 50.0, 90.0], "day": ["2026-01-05", "2026-02-06", "2026-02-07"]}


@pytest.fixture(params=["parquet", "csv", "duckdb"])
def source(request, tmp_path):
    frame = pd.DataFrame(LOG).assign(day=pd.to_datetime(LOG["day"]))
    if request.param == "parquet":
        frame.to_parquet(tmp_path / "log.parquet")
        yield tmp_path / "log.parquet"
    elif request.param == "csv":
        frame.to_csv(tmp_path / "log.csv", index=False)
        yield tmp_path / "log.csv"
    else:
        with duckdb.connect() as connection:
            yield connection.from_df(frame)


def test_every_column_may_be_an_expression(source):
    tables = bin_tables(source, y_true="y = 1", y_prob="score / 100", weight="2 * y + 1", by="month(day)")
    assert {month: table.n for month, table in tables.items()} == {1: 1, 2: 2}
    assert tables[2].population.total == pytest.approx(6)
    assert (tables[2].predicted / tables[2].sums[1]).tolist() == pytest.approx([0.5, 0.9])


def test_a_column_that_reads_like_an_expression_wins(tmp_path):
    pq.write_table(pa.table({**LOG, "score / 100": [0.25, 0.25, 0.25]}), tmp_path / "log.parquet")
    assert bin_table(tmp_path, y_true="y", y_prob="score / 100").predicted.tolist() == [0.75]


def test_what_is_neither_column_nor_expression_is_refused_with_the_columns_there_are(source):
    for name, words in (
        ("nothing", r"does not have\. It has 'y', 'score', 'day'"),
        ("Score", r"Did you mean 'score'\?"),
        ("score /", "no SQL expression of its columns either"),
        ("avg(score)", "no SQL expression of its columns either"),
        ("nothing / 2", "no SQL expression of its columns either"),
    ):
        with pytest.raises(cal.InvalidPredictions, match=words):
            bin_table(source, y_true="y", y_prob=name)
    with pytest.raises(cal.InvalidPredictions, match="by or fold names the column 'month'"):
        bin_tables(source, y_true="y", y_prob="score", by="month")


def test_frames_of_other_engines_take_columns_only():
    with pytest.raises(cal.InvalidPredictions, match="y_prob names the column 'score / 100'"):
        bin_table(pd.DataFrame(LOG), y_true="y", y_prob="score / 100")


def test_names_that_differ_only_in_case_are_not_confused(tmp_path):
    pq.write_table(pa.table({"P": [0.1, 0.1], "p": [0.9, 0.9], "y": [0, 1]}), tmp_path / "log.parquet")
    with pytest.raises(cal.InvalidPredictions, match="told apart by a number: 'P' and 'p_1'"):
        bin_table(tmp_path, y_true="y", y_prob="p")
    assert bin_table(tmp_path, y_true="y", y_prob="p_1").low.tolist() == [0.9]


@pytest.mark.parametrize("name", ["*", "^p.*$", "^.*$", "p.1", "`p`", "p 1", ""])
def test_names_that_an_engine_could_take_for_a_pattern(name):
    frame = pl.DataFrame({"y": [0, 1], name: [0.25, 0.5], "p1": [0.75, 1.0]})
    for source in (frame, frame.lazy(), frame.to_pandas(), frame.to_arrow()):
        assert bin_table(source, y_true="y", y_prob=name).predicted.tolist() == [0.25, 0.5]


@pytest.mark.parametrize("values", [[True, False, None], [1, 0, None], ["yes", "no", None]])
def test_python_objects_in_pandas_have_the_type_of_their_values(values):
    frame = pd.DataFrame({"y": pd.Series(values, dtype=object), "p": [0.75, 0.25, 0.5]})
    table = bin_table(frame, y_true="y", y_prob="p", max_invalid=0.5)
    assert table.observed.tolist() == [0.0, 1.0]
    assert table.invalid == {"y_true missing": 1}


def test_a_name_that_is_refused_says_why():
    frame = nw.from_native(pl.LazyFrame({"p": [0.5]}))
    with pytest.raises(cal.InvalidPredictions, match="mixed"):
        bound(frame, {"p": "y_prob"}, {"p": "mixed"})
