"""Every format is read as it is meant, types are widened or refused, and files that cannot be read are named."""

import gzip

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.scale import bin_table, bin_tables
from calibrant.scale.duckdb_files import Part, common_schema, literal, quoted, widened
from tests.cli.loading import both, loaded
from tests.scale.logs import make_log

Y, P = [0, 1, 0, 1, 1, 0], [0, 1, 0.2, 0.8, 0.6, 0.3]


def schemas_write(folder, first, second):
    for name, columns in (("0", first), ("1", second)):
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def test_whole_and_floating_point_scores_give_the_numbers_of_memory(tmp_path):
    """Cast to the first file's type, every score would be 0 or 1."""
    schemas_write(tmp_path, {"y": Y[:2], "p": [0, 1]}, {"y": Y[2:], "p": P[2:]})
    expected = cal.ece(Y, P)
    assert cal.ece(bin_table(tmp_path, y_true="y", y_prob="p")) == pytest.approx(expected)
    for data in loaded(tmp_path):
        assert cal.ece(data) == pytest.approx(expected)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("BOOLEAN", pa.array([False, True])),
        ("VARCHAR", pa.array(["0", "1"])),
        (r"DECIMAL\(3,2\)", pa.array([0, 1], pa.decimal128(3, 2))),
    ],
)
def test_other_mixtures_name_both_files_and_types(tmp_path, kind, column):
    schemas_write(tmp_path, {"y": column, "p": [0.2, 0.6]}, {"y": [1, 0], "p": [0.2, 0.6]})
    words = rf"1\.parquet': column 'y' is of type BIGINT there and of type {kind} in '.*0\.parquet'"
    with pytest.raises(cal.InvalidPredictions, match=words):
        bin_table(tmp_path, y_true="y", y_prob="p")
    with pytest.raises(cal.InvalidPredictions, match=words):
        loaded(tmp_path)
    with pytest.raises(cal.InvalidPredictions, match=words):
        bin_table(tmp_path, y_true="p > 0.5", y_prob="p", where="y = 1")
    with pytest.raises(cal.InvalidPredictions, match=words):
        bin_table(tmp_path, y_true="y = 1", y_prob="p")


def test_a_mixture_in_a_column_that_nobody_needs_does_no_harm(tmp_path):
    schemas_write(
        tmp_path, {"y": [0, 1], "p": [0.2, 0.6], "x": ["a", "b"]}, {"y": [1, 0], "p": [0.2, 0.6], "x": [1, 2]}
    )
    assert bin_table(tmp_path, y_true="y", y_prob="p").n == 4


def test_columns_in_another_order_and_without_any_value_fit(tmp_path):
    empty = pa.array([None, None], pa.string())
    schemas_write(tmp_path, {"y": [0, 1], "p": [0.2, 0.6], "g": empty}, {"g": [1.5, 2.0], "p": [0.2, 0.6], "y": [1, 0]})
    sizes = {name: table.n for name, table in bin_tables(tmp_path, y_true="y", y_prob="p", by="g").items()}
    assert sizes == {1.5: 1, 2.0: 1, "(missing)": 2}


def test_numbers_are_widened_without_loss():
    assert widened(["TINYINT", "BIGINT", "SMALLINT"]) == "BIGINT"
    assert widened(["BIGINT", "UBIGINT"]) == "HUGEINT"
    assert widened(["INTEGER", "FLOAT"]) == "DOUBLE"
    assert widened(["FLOAT", "FLOAT"]) == "FLOAT"
    assert widened(["DATE", "TIMESTAMP"]) is None


def test_what_json_leaves_out_is_missing_and_what_a_table_lacks_is_refused():
    there, lacking = Part("a", {"p": "DOUBLE", "w": "DOUBLE"}, "a.json"), Part("b", {"p": "DOUBLE"}, "b.json")
    schema = common_schema([there, Part("b", {"p": "DOUBLE"}, "b.json", absent_is_missing=True)], lambda *_: False)
    assert schema.types == {"p": "DOUBLE", "w": "DOUBLE"}
    schema = common_schema([there, lacking], lambda *_: False)
    assert schema.types == {"p": "DOUBLE"}
    assert "'b.json': it has no column 'w', which 'a.json' has" in schema.refused["w"]


SAMPLE = 21_000  # beyond the rows from which DuckDB finds types


def write(path, rows):
    """Rows as CSV or as JSON lines, values as they would be written in either."""
    if path.suffix == ".csv":
        path.write_text("y,p\n" + "".join(f"{y},{p}\n" for y, p in rows))
    else:
        path.write_text("".join(f'{{"y": {y}, "p": {p}}}\n' for y, p in rows))
    return path


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_a_score_after_many_whole_numbers_is_not_rounded(tmp_path, name):
    path = write(tmp_path / name, [(0, 0)] * SAMPLE + [(1, 0.6)])
    assert bin_table(path, y_true="y", y_prob="p").predicted.tolist() == [0.0, 0.6]
    for data in loaded(path):
        assert cal.brier(data) == pytest.approx(0.4**2 / (SAMPLE + 1))


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_a_label_after_many_truth_values_is_not_taken_for_one(tmp_path, name):
    path = write(tmp_path / name, [("true", 1), ("false", 0)] * (SAMPLE // 2) + [(2, 0.5)])
    with pytest.raises(cal.InvalidPredictions, match=f"'y' not 0 or 1: 1; first: row {SAMPLE + 1:,} of"):
        bin_table(path, y_true="y", y_prob="p")


def test_a_word_after_many_numbers_makes_the_column_one_of_words(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("y,p,g\n" + "1,0.5,7\n" * SAMPLE + "0,0.5,north\n")
    tables = bin_tables(path, y_true="y", y_prob="p", by="g")
    assert {name: table.n for name, table in tables.items()} == {"7": SAMPLE, "north": 1}
    rows, large = both(path, by=("g",))
    assert set(rows.by) == set(large.by) == {"7", "north"}


def test_words_that_could_be_truth_values_stay_words(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("y,p,country\n1,0.5,no\n0,0.5,no\n")
    assert list(bin_tables(path, y_true="y", y_prob="p", by="country")) == ["no"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_folders_are_columns_only_when_asked_for(tmp_path, ending):
    """A folder `y=1` must not override the column y of its files."""
    for y in (0, 1):
        folder = tmp_path / "own" / f"y={1 - y}"
        folder.mkdir(parents=True)
        frame = pd.DataFrame({"y": [y, y], "p": [0.25, 0.5]})
        bare = tmp_path / "bare" / f"y={y}"
        bare.mkdir(parents=True)
        for place, columns in ((folder, frame), (bare, frame[["p"]])):
            if ending == "csv":
                columns.to_csv(place / "a.csv", index=False)
            elif ending == "parquet":
                columns.to_parquet(place / "a.parquet", index=False)
            else:
                columns.to_json(place / "a.jsonl", orient="records", lines=True)
    expected = cal.ece([0, 0, 1, 1], [0.25, 0.5, 0.25, 0.5])
    assert cal.ece(bin_table(tmp_path / "own", y_true="y", y_prob="p")) == pytest.approx(expected)
    assert cal.ece(bin_table(tmp_path / "bare", y_true="y", y_prob="p", hive=True)) == pytest.approx(expected)
    with pytest.raises(cal.InvalidPredictions, match="y_true names the column 'y'"):
        bin_table(tmp_path / "bare", y_true="y", y_prob="p")
    with pytest.raises(cal.InvalidPredictions, match="'y' is both a column of the file and a key of its folder"):
        bin_table(tmp_path / "own", y_true="y", y_prob="p", hive=True)


@pytest.mark.no_cover
@pytest.mark.parametrize("packing", ["gz", "zst"])
@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.json"])
def test_compressed_text_and_json_arrays_are_read(tmp_path, name, packing):
    content = {
        "csv": b"y,p\n0,0.25\n1,0.5\n",
        "jsonl": b'{"y": 0, "p": 0.25}\n{"y": 1, "p": 0.5}\n',
        "json": b'[{"y": 0, "p": 0.25}, {"y": 1, "p": 0.5}]',
    }[name.split(".")[1]]
    path = tmp_path / f"{name}.{packing}"
    if packing == "gz":
        path.write_bytes(gzip.compress(content))
    else:
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(content)
    assert bin_table(path, y_true="y", y_prob="p").predicted.tolist() == [0.25, 0.5]


def test_decimal_commas_are_read_when_said_so(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("y;p\n0;0,25\n1;0,5\n")
    with pytest.raises(cal.InvalidPredictions, match="decimal=','"):
        bin_table(path, y_true="y", y_prob="p")
    assert bin_table(path, y_true="y", y_prob="p", decimal=",").predicted.tolist() == [0.25, 0.5]


def test_all_formats_are_read_as_one_table(tmp_path):
    frame = pd.DataFrame({"y": [0, 1], "p": [0.25, 0.5]})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "b.csv", index=False, sep="|")
    frame.to_feather(tmp_path / "c.arrow")
    frame.to_json(tmp_path / "d.json", orient="records")
    assert bin_table(tmp_path, y_true="y", y_prob="p").count.tolist() == [4, 4]
    (tmp_path / "e.arrow").write_bytes(b"no Arrow at all")
    with pytest.raises(cal.InvalidPredictions, match=r"e\.arrow' as Arrow"):
        bin_table(tmp_path, y_true="y", y_prob="p")


def test_names_and_texts_cannot_leave_their_quotes():
    assert quoted('a"b') == '"a""b"'
    assert literal("a'b") == "'a''b'"


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
        with pytest.raises(cal.InvalidPredictions, match="where is not a condition on the columns"):
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
    from calibrant.scale.duckdb_files import connection

    with connection() as opened:
        assert opened.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)


def test_rows_before_a_wider_header_are_not_left_out(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("y,p\n" + "1,0.1\n" * 4 + "y,p,ms\n" + "0,0.2,7\n1,0.8,7\n" * 20)
    for read in (lambda: bin_table(path, y_true="y", y_prob="p"), lambda: loaded(path, truth="y", prob=("p",))):
        with pytest.raises(cal.InvalidPredictions, match=r"log\.csv': Line 6 has 3 fields, but the header in line 1"):
            read()


def test_a_number_sign_begins_a_row_like_any_other(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("id,y,p\n" + "1,0,0.5\n#2,1,0.25\n" * 30)
    assert bin_table(path, y_true="y", y_prob="p").count.tolist() == [30, 30]
    assert [cal.brier(data) for data in loaded(path)] == pytest.approx([(0.5**2 + 0.75**2) / 2] * 2)


def test_groups_of_csv_files_are_told_apart_by_their_text(tmp_path):
    for name, text in (("a", "y,p,g\n0,0.5,1.1\n1,0.5,1.10\n"), ("b", "g,y,p\n01,0,0.5\n1,1,0.5\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    tables = bin_tables(tmp_path, y_true="y", y_prob="p", by="g")
    assert {name: table.n for name, table in tables.items()} == {"01": 1, "1": 1, "1.1": 1, "1.10": 1}
    tables = bin_tables(tmp_path, y_true="y", y_prob="p", by="g", where="g > 1")
    assert set(tables) == {"1.1", "1.10"}


@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "log.arrow"])
def test_of_two_columns_of_one_name_none_is_chosen(tmp_path, name):
    columns = pa.table([[0, 1], [0.5, 0.5], [0.5, 0.6], [1, 2]], names=["y", "p", "p", "q_1"])
    if name == "log.csv":
        (tmp_path / name).write_text("y,p,p,q_1\n0,0.5,0.5,1\n1,0.5,0.6,2\n")
    elif name == "log.parquet":
        pq.write_table(columns, tmp_path / name)
    else:
        with pa.ipc.new_file(tmp_path / name, columns.schema) as writer:
            writer.write_table(columns)
    for prob in ("p", "p + 0"):
        with pytest.raises(cal.InvalidPredictions, match=r"There are 2 columns called 'p' in '.*': rename all but one"):
            bin_table(tmp_path / name, y_true="y", y_prob=prob)
    assert bin_table(tmp_path / name, y_true="y", y_prob="q_1 / 2").predicted.tolist() == [0.5, 1]


def test_names_without_letters_and_of_another_case_have_numbers(tmp_path):
    (tmp_path / "log.csv").write_text(",y,P,p\n0,0,0.5,0.25\n1,1,0.5,0.25\n")
    assert bin_table(tmp_path, y_true="column0", y_prob="p_1").predicted.tolist() == [0.5]


def test_nothing_is_downloaded_for_a_word_of_an_expression(tmp_path):
    from calibrant.scale.duckdb_files import connection

    with connection() as opened:
        settings = ("autoinstall_known_extensions", "autoload_known_extensions")
        for name in settings:
            assert opened.execute(f"SELECT current_setting('{name}')").fetchone() == (False,)
    make_log(10).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(cal.InvalidPredictions, match=r"no SQL expression of its columns either .*inet"):
        bin_table(tmp_path, y_true="y", y_prob="inet '1.1.1.1'")


@pytest.mark.no_cover
def test_the_day_of_a_time_does_not_depend_on_the_machine(tmp_path, monkeypatch):
    import time

    days = pd.to_datetime(["2026-01-05T23:30:00-05:00", "2026-01-05T12:00:00-05:00"], utc=True)
    frame = pd.DataFrame({"y": [0, 1], "p": [0.5, 0.5], "seen": days})
    frame.to_parquet(tmp_path / "log.parquet")
    (tmp_path / "log.csv").write_text("y,p,seen\n0,0.5,2026-01-05T23:30:00-05:00\n1,0.5,2026-01-05 17:00\n")
    for zone in ("America/New_York", "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        for name in ("log.parquet", "log.csv"):
            tables = bin_tables(tmp_path / name, y_true="y", y_prob="p", by="CAST(CAST(seen AS DATE) AS VARCHAR)")
            assert list(tables) == ["2026-01-05", "2026-01-06"]
            for found in both(tmp_path / name, by=("day(seen)",)):
                assert set(found.by) == {"5", "6"}
    monkeypatch.undo()
    time.tzset()


def test_a_saved_stream_of_arrow_is_read_as_a_file(tmp_path):
    columns = pa.table({"y": [0, 1], "p": [0.25, 0.5]})
    with pa.ipc.new_stream(tmp_path / "log.arrow", columns.schema) as writer:
        writer.write_table(columns)
    assert bin_table(tmp_path / "log.arrow", y_true="y", y_prob="p").predicted.tolist() == [0.25, 0.5]
    assert len(loaded(tmp_path / "log.arrow")[0]) == 2


def test_the_header_of_a_remote_file_is_that_of_a_local_one(tmp_path, monkeypatch):
    from calibrant.scale import duckdb_files

    path = tmp_path / "log.csv"
    path.write_text('y;"p\nq";"a;b"\r\n1;2;3\r\n'.replace("\r\n", "\n"))
    monkeypatch.setattr(duckdb_files, "is_remote", lambda name: True)
    with duckdb_files.connection() as opened:
        assert duckdb_files._header(opened, str(path)) == duckdb_files.read_header(str(path))
