"""Bad rows are counted, never binned; bad files are named; nothing is written."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.scale import GaussianColumns, TopLabelColumns, UnlabeledColumns, bin_table, bin_tables
from tests.scale.logs import make_log

P = [0.2, 0.7, float("nan"), None, float("inf"), -0.1, 1.0000001, -1e-300, 0.4, 0.6, 0.5]
Y = [0, 1, 1, 1, 1, 1, 1, 1, 2, None, 0]
REASONS = {"y_prob missing": 2, "y_prob outside [0, 1]": 4, "y_true not 0 or 1": 1, "y_true missing": 1}


@pytest.fixture(params=["pandas", "polars", "polars lazy", "pyarrow", "parquet", "parquet by pyarrow", "csv"])
def bad(request, tmp_path):
    frame = pl.DataFrame({"p": P, "y": Y, "g": ["a"] * 10 + ["b"]}, schema_overrides={"y": pl.Int64})
    if request.param == "parquet by pyarrow":  # its statistics leave NaN out, so DuckDB must not trust them
        pq.write_table(pa.table({"p": P, "y": Y, "g": ["a"] * 10 + ["b"]}), tmp_path / "bad.parquet")
        return str(tmp_path / "bad.parquet")
    if request.param == "parquet":
        frame.write_parquet(tmp_path / "bad.parquet")
        return str(tmp_path / "bad.parquet")
    if request.param == "csv":
        frame.write_csv(tmp_path / "bad.csv")
        return str(tmp_path / "bad.csv")
    arrow = frame.to_arrow()
    return {"pandas": arrow.to_pandas(), "polars": frame, "polars lazy": frame.lazy(), "pyarrow": arrow}[request.param]


@pytest.mark.no_cover
def test_invalid_rows_are_refused_with_their_reasons(bad):
    with pytest.raises(cal.InvalidPredictions, match="8 of 11 rows are invalid") as caught:
        bin_table(bad, y_true="y", y_prob="p")
    for words in ("y_prob 'p' missing: 2", "y_prob 'p' outside [0, 1]: 4", "y_true 'y' not 0 or 1: 1"):
        assert words in str(caught.value)
    assert ("first: row 3 of '" in str(caught.value)) == isinstance(bad, str)


def test_invalid_rows_within_the_tolerated_share_are_counted_by_reason(bad):
    table = bin_table(bad, y_true="y", y_prob="p", max_invalid=0.75)
    assert table.n == 3
    assert table.invalid == REASONS
    assert (table + table).invalid == {reason: 2 * count for reason, count in REASONS.items()}
    assert table.coarsen(cal.EqualWidth(2)).invalid == REASONS
    np.testing.assert_allclose(table.predicted, [0.2, 0.5, 0.7])


def test_invalid_rows_are_counted_in_their_own_group(bad):
    tables = bin_tables(bad, y_true="y", y_prob="p", by="g", max_invalid=0.75)
    assert tables["a"].invalid == REASONS
    assert tables["b"].invalid == {}


def test_a_group_of_invalid_rows_only_is_not_lost():
    frame = pl.DataFrame({"p": [0.5, 2.0], "y": [0, 1], "g": ["a", "b"]})
    tables = bin_tables(frame, y_true="y", y_prob="p", by="g", max_invalid=0.5)
    assert tables["b"].n == 0
    assert tables["b"].invalid == {"y_prob outside [0, 1]": 1}


def test_the_other_tasks_name_their_own_reasons():
    frame = pl.DataFrame({"a": [0.5, 0.9, 0.5], "b": [0.5, 0.9, 0.5], "y": [0, 1, 7], "w": [1.0, 1.0, -1.0]})
    table = bin_table(frame, y_true="y", y_prob=["a", "b"], task=TopLabelColumns(), max_invalid=1)
    assert table.invalid == {"y_prob does not sum to 1": 1, "y_true is not one of the classes": 1}
    table = bin_table(frame, y_true="y", y_prob="a", weight="w", max_invalid=1, task=UnlabeledColumns(0.2))
    assert table.invalid == {"y_true neither positive nor unlabeled": 1}
    weighted = pl.DataFrame({"p": [0.5] * 4, "y": [0] * 4, "w": [1.0, -1.0, float("inf"), None]})
    table = bin_table(weighted, y_true="y", y_prob="p", weight="w", max_invalid=1)
    assert table.invalid == {"weight negative or not finite": 2, "weight missing": 1}
    normal = pl.DataFrame({"y": [1.0, 2.0, 3.0], "m": [0.0, float("inf"), 0.0], "s": [1.0, 1.0, 0.0]})
    table = bin_table(normal, y_true="y", task=GaussianColumns("m", "s"), max_invalid=1)
    assert table.invalid == {"mean not finite": 1, "std not positive": 1}


@pytest.mark.parametrize("engine", ["pandas", "polars lazy", "parquet"])
def test_spreads_and_errors_whose_powers_are_no_numbers_are_invalid_as_in_memory(engine, tmp_path):
    columns = {"y": [1.0, 1.0, 1.0, 2e72, 2e72, 1e200], "m": [0.0, 0.0, 0.0, 0.0, 1.9e72, -1e200]}
    frame = pl.DataFrame(columns | {"s": [1.0, 1e-73, 1e73, 1.0, 1.0, 1.0]})
    frame.write_parquet(tmp_path / "log.parquet")
    source = {"pandas": frame.to_pandas(), "polars lazy": frame.lazy(), "parquet": tmp_path / "log.parquet"}[engine]
    task = GaussianColumns("m", "s")
    table = bin_table(source, y_true="y", task=task, max_invalid=1)
    assert table.invalid == {"std outside [1e-72, 1e72]": 2, "y_true - mean beyond 1e72": 2}
    with pytest.raises(
        cal.InvalidPredictions, match=r"std 's' outside \[1e-72, 1e72\]: 2, y_true - mean beyond 1e72: 2"
    ):
        bin_table(source, y_true="y", task=task)
    kept = frame[[0, 4]]
    assert table.n == cal.BinTable.of(cal.Gaussian(kept["y"], kept["m"], kept["s"]), cal.table.LogGrid()).n
    for row in (1, 2, 3, 5):
        y, m, s = frame.row(row)
        with pytest.raises(cal.InvalidPredictions):
            cal.BinTable.of(cal.Gaussian([y], [m], [s]), cal.table.LogGrid())


@pytest.mark.parametrize("engine", ["pandas", "polars lazy", "parquet"])
@pytest.mark.parametrize(
    ("unit", "size"), [(1e-200, "small"), (1e-152, "small"), (1e152, "large"), (1e154, "large"), (1e200, "large")]
)
def test_weights_whose_squares_are_no_numbers_are_refused_with_the_remedy(engine, unit, size, tmp_path):
    frame = pl.DataFrame({"p": [0.2, 0.7, 0.9], "y": [0, 1, 1], "mass": [unit, 2 * unit, unit]})
    frame.write_parquet(tmp_path / "log.parquet")
    source = {"pandas": frame.to_pandas(), "polars lazy": frame.lazy(), "parquet": tmp_path / "log.parquet"}[engine]
    with pytest.raises(cal.InvalidPredictions, match=f"'mass' are too {size}: .* divide them by their mean"):
        bin_table(source, y_true="y", y_prob="p", weight="mass")
    usual = frame.with_columns(pl.col("mass") / pl.col("mass").mean())
    assert bin_table(usual, y_true="y", y_prob="p", weight="mass").population.effective_n == pytest.approx(16 / 6)


def test_a_row_of_next_to_no_weight_is_no_reason_to_refuse_the_others():
    frame = pl.DataFrame({"p": [0.2, 0.7, 0.9], "y": [0, 1, 1], "w": [1e-200, 1.0, 1.0]})
    assert bin_table(frame, y_true="y", y_prob="p", weight="w").population.effective_n == pytest.approx(2)


def test_no_valid_rows_is_an_error():
    with pytest.raises(cal.InvalidPredictions, match="no valid rows"):
        bin_table(pl.DataFrame({"p": [2.0], "y": [0]}), y_true="y", y_prob="p", max_invalid=1)
    with pytest.raises(cal.InvalidPredictions, match="no valid rows"):
        bin_table(pl.DataFrame({"p": [2.0], "y": [0]}).clear(), y_true="y", y_prob="p")


def test_a_missing_column_is_named_with_those_there_are(tmp_path):
    make_log(10).to_parquet(tmp_path / "a.parquet")
    for source in (make_log(10), tmp_path / "a.parquet"):
        with pytest.raises(cal.InvalidPredictions, match=r"y_prob names the column 'score'.* It has 'p', 'y'"):
            bin_table(source, y_true="y", y_prob="score")
        with pytest.raises(cal.InvalidPredictions, match="by or fold names the column 'nowhere'"):
            bin_tables(source, y_true="y", y_prob="p", by="nowhere")


def test_a_column_missing_in_one_file_of_many_names_the_file(tmp_path):
    for name in "abc":
        make_log(10).drop(columns=["p"] if name == "b" else []).to_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(cal.InvalidPredictions, match=r"Cannot read '.*b\.parquet'"):
        bin_table(tmp_path, y_true="y", y_prob="p")


def test_text_where_numbers_should_be_is_refused(tmp_path):
    mixed = pd.DataFrame({"p": ["0.5", "high"], "y": [0, 1]})
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    for source, held in (
        (mixed, "String"),
        (tmp_path / "mixed.csv", r"'high' in row 2 of '.*mixed\.csv'\. Other text"),
    ):
        with pytest.raises(cal.InvalidPredictions, match=f"y_prob must hold numbers, but column 'p' holds {held}"):
            bin_table(source, y_true="y", y_prob="p")
    found = bin_table(tmp_path / "mixed.csv", y_true="y", y_prob="TRY_CAST(p AS DOUBLE)", max_invalid=0.5)
    assert found.invalid == {"y_prob missing": 1}


def test_a_file_without_rows_or_without_the_column_is_named(tmp_path):
    (tmp_path / "head.csv").write_text("p,y\n")
    make_log(10)[:0].to_parquet(tmp_path / "none.parquet")
    make_log(10).drop(columns="p").to_parquet(tmp_path / "other.parquet")
    for name in ("head.csv", "none.parquet", "other.parquet"):
        with pytest.raises(cal.InvalidPredictions, match=name):
            bin_table(tmp_path / name, y_true="y", y_prob="p")


def test_options_that_do_not_fit_the_task_are_refused():
    frame = make_log(10)
    with pytest.raises(TypeError, match="needs one column as y_prob"):
        bin_table(frame, y_true="y", y_prob=["p", "w"])
    with pytest.raises(TypeError, match="one column of y_prob per class"):
        bin_table(frame, y_true="y", y_prob=["p", "w"], task=TopLabelColumns(("a",)))
    with pytest.raises(TypeError, match="takes no y_prob"):
        bin_table(frame, y_true="y", y_prob="p", task=GaussianColumns("mu", "sigma"))
    with pytest.raises(TypeError, match="needs a LogGrid"):
        bin_table(frame, y_true="y", task=GaussianColumns("mu", "sigma"), grid=cal.table.HybridGrid())
    with pytest.raises(cal.InvalidPredictions, match="prior"):
        UnlabeledColumns(prior=1.5)
