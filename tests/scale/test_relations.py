"""Files that cannot be read are named, and so are their rows."""

import duckdb
import pandas as pd
import pytest

import calibrant as cal
from calibrant.scale import bin_table
from tests.scale.logs import make_log


@pytest.mark.parametrize("damage", ["head", "tail", "middle"])
def test_a_corrupted_parquet_file_among_many_is_named_and_nothing_is_written(tmp_path, damage):
    for name in "abc":
        make_log(3000).to_parquet(tmp_path / f"{name}.parquet")
    content = bytearray((tmp_path / "b.parquet").read_bytes())
    if damage == "middle":
        content[100:20_000] = bytes(len(content[100:20_000]))
    (tmp_path / "b.parquet").write_bytes({"head": content[:500], "tail": content[-500:], "middle": content}[damage])
    with pytest.raises(cal.InvalidPredictions, match=r"Cannot read '.*b\.parquet'"):
        bin_table(tmp_path, y_true="y", y_prob="p")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet", "c.parquet"]


def test_an_empty_file_is_named(tmp_path):
    make_log(10).to_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").touch()
    with pytest.raises(cal.InvalidPredictions, match=r"b\.parquet' is empty"):
        bin_table(tmp_path, y_true="y", y_prob="p")


def test_mixed_types_among_files_name_the_file(tmp_path):
    make_log(10).to_parquet(tmp_path / "a.parquet")
    make_log(10).assign(p="high").to_parquet(tmp_path / "b.parquet")
    with pytest.raises(cal.InvalidPredictions, match=r"b\.parquet"):
        bin_table(tmp_path, y_true="y", y_prob="p")


def test_no_file_an_unknown_ending_and_an_unknown_source_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="No file matches"):
        bin_table(tmp_path / "*.parquet", y_true="y", y_prob="p")
    (tmp_path / "log.txt").write_text("p,y")
    with pytest.raises(ValueError, match=r"known endings are \.parquet"):
        bin_table(tmp_path / "log.txt", y_true="y", y_prob="p")
    for nothing, error in (([], ValueError), (3, TypeError), ([{"p": 1}], TypeError)):
        with pytest.raises(error, match="source"):
            bin_table(nothing, y_true="y", y_prob="p")


@pytest.mark.no_cover
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_text_file_that_differs_from_the_first_is_named(ending, tmp_path):
    def write(name, frame):
        path = tmp_path / f"{name}.{ending}"
        if ending == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_json(path, orient="records", lines=True)

    good = pd.DataFrame({"p": [0.1, 0.7], "y": [0, 1]})
    for name in "ac":
        write(name, good)
    renamed, text = good.rename(columns={"p": "q"}), good.assign(p="high")
    missing = r"b\.csv': it has no column 'p'" if ending == "csv" else r"'p' missing: 2; first: row 1 of '.*b\.jsonl"
    mixed = rf"b\.{ending}': column 'p' is of type VARCHAR there and of type DOUBLE in '.*a\.{ending}'"
    for other, words in ((renamed, missing), (text, mixed)):
        write("b", other)
        with pytest.raises(cal.InvalidPredictions, match=words):
            bin_table(tmp_path, y_true="y", y_prob="p")
    write("b", good.assign(p=[0, 1]))
    assert bin_table(tmp_path, y_true="y", y_prob="p").n == 6


@pytest.mark.parametrize("path", ["s3://bucket/*.parquet", "https://127.0.0.1:9/log.csv", "gs://bucket/log.parquet"])
def test_an_object_store_without_its_extension_says_how_to_get_it(path, tmp_path, monkeypatch):
    plain = duckdb.connect

    def offline(*where):
        connection = plain(*where)
        connection.execute(f"SET extension_directory = '{tmp_path}'")
        connection.execute(f"SET custom_extension_repository = '{tmp_path / 'nowhere'}'")
        return connection

    monkeypatch.setattr(duckdb, "connect", offline)
    with pytest.raises(ImportError, match=r"needs DuckDB's extension 'httpfs'.*install_extension.*scan_parquet"):
        bin_table(path, y_true="y", y_prob="p")


def test_a_condition_that_is_none_is_refused_in_one_sentence(tmp_path):
    make_log(10).to_parquet(tmp_path / "a.parquet")
    for where in ("nowhere = 1", "p >", "no_function(p)"):
        with pytest.raises(cal.InvalidPredictions, match="where is no condition on the columns"):
            bin_table(tmp_path, y_true="y", y_prob="p", where=where)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_the_first_bad_row_is_that_of_the_file_also_under_a_condition(ending, tmp_path):
    good = pd.DataFrame({"p": [0.1, 0.7, 0.2], "y": [0, 1, 1], "day": [1, 2, 2]})
    for name, frame in (("a", good), ("b", good.assign(p=[0.5, 0.5, 1.5]))):
        path = tmp_path / f"{name}.{ending}"
        if ending == "csv":
            frame.to_csv(path, index=False)
        elif ending == "parquet":
            frame.to_parquet(path)
        else:
            frame.to_json(path, orient="records", lines=True)
    with pytest.raises(cal.InvalidPredictions, match=rf"1 of 4 rows is invalid .*first: row 3 of '.*b\.{ending}'"):
        bin_table(tmp_path, y_true="y", y_prob="p", where="day = 2")


def test_long_queries_print_no_progress_bar():
    """DuckDB would write one into the output of the program, and into JSON on standard output."""
    from calibrant.scale.relations import connection

    with connection() as opened:
        assert opened.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)
