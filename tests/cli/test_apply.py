"""`apply` appends columns and changes not a bit of the others.

CSV and JSON keep their text to the last byte, and get types only where nothing is lost.
"""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli.apply import apply_to_file, number, sql_of, suffix_of
from calibrant.cli.columns import Columns
from calibrant.cli.console import UsageError
from calibrant.cli.files import load
from tests.cli.loading import FROM_P
from tests.cli.odd_tables import MAP, odd_table, read, written


@pytest.mark.parametrize("source", [".parquet", ".arrow"])
@pytest.mark.parametrize("target", [".parquet", ".arrow"])
def test_schema_and_values_of_all_other_columns_stay_bit_for_bit(tmp_path, source, target):
    path = written(odd_table(), tmp_path / f"scores{source}")
    before = read(path)
    assert apply_to_file(MAP, path, tmp_path / f"fixed{target}", FROM_P, suffix="_new") == []
    after = read(tmp_path / f"fixed{target}")
    assert after.column_names == [*before.column_names, "p_new"]
    kept = after.drop_columns(["p_new"])
    assert kept.schema.equals(before.schema, check_metadata=source == target)
    assert kept.equals(before)
    np.testing.assert_array_equal(after["p_new"], MAP.predict_proba(before["p"].to_numpy())[:, 1])


def test_a_pandas_file_is_read_by_pandas_again(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"p": [0.2, 0.7], "c": pd.Categorical(["x", "y"])}, index=pd.Index([7, 9], name="key"))
    frame.to_parquet(tmp_path / "scores.parquet")
    apply_to_file(MAP, str(tmp_path / "scores.parquet"), tmp_path / "fixed.parquet", FROM_P, suffix="_new")
    back = pd.read_parquet(tmp_path / "fixed.parquet")
    pd.testing.assert_frame_equal(back.drop(columns="p_new"), frame)


def bad(tmp_path):
    pq.write_table(pa.table({"p": [0.5, None], "q": ["a", "b"], "p_new": [1, 2]}), tmp_path / "bad.parquet")
    pq.write_table(pa.table([[0.5], [0.5], [0.5]], names=["p", "p", "q"]), tmp_path / "twice.parquet")
    (tmp_path / "bad.csv").write_text("y,p\n1,0.5\n1,half\n")
    (tmp_path / "hole.csv").write_text("y,p\n1,0.5\n1,\n")
    (tmp_path / "short.csv").write_text("y,p\n1,0.5\n1\n")
    (tmp_path / "above.csv").write_text("y,p\n1,0.5\n1,1.5\n")
    (tmp_path / "bad.jsonl").write_text('{"p": 0.5}\n{"q": 1}\n')
    (tmp_path / "taken.jsonl").write_text('{"p": 0.5}\n{"p": 0.5, "p_new": 1}\n')
    (tmp_path / "cut.json").write_text('[{"p": 0.5}, {"p": 0.2}')
    (tmp_path / "cut.jsonl").write_text('{"p": 0.5}\n{"p": 0.')
    (tmp_path / "numbers.json").write_text("[1, 2]")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "bad.parquet").read_bytes()[:-9])
    (tmp_path / "empty.csv").touch()


BAD = {
    "missing": ("bad.parquet", "p", "_x", "Column 'p' must not be missing, but it is in row 2"),
    "text": ("bad.parquet", "q", "_x", "Column 'q' must hold numbers, but it holds string"),
    "clash": ("bad.parquet", "p", "_new", "has a column 'p_new' already: choose other names .* by --suffix"),
    "no suffix": ("bad.parquet", "p", "", "has a column 'p' already"),
    "two of a name": ("twice.parquet", "p", "_new", "There are 2 columns called 'p'"),
    "unknown": ("bad.parquet", "r", "_new", "There is no column 'r'"),
    "word": ("bad.csv", "p", "_new", "Column 'p' is 'half', which is not a number in row 2"),
    "hole": ("hole.csv", "p", "_new", "Column 'p' is missing in row 2"),
    "short row": ("short.csv", "p", "_new", "Line 3 has 1 field, but the header in line 1 names 2 columns"),
    "above 1": ("above.csv", "p", "_new", r"Column 'p' must lie in \[0, 1\], but 1 of 2 rows does not"),
    "no key": ("bad.jsonl", "p", "_new", "Column 'p' is missing in row 2"),
    "clash in JSON": ("taken.jsonl", "p", "_new", "Row 2 has a column 'p_new' already"),
    "cut list": ("cut.json", "p", "_new", "not JSON"),
    "cut lines": ("cut.jsonl", "p", "_new", "Line 2 is not a JSON object"),
    "no objects": ("numbers.json", "p", "_new", "not a JSON object"),
    "cut Parquet": ("cut.parquet", "p", "_new", "Cannot read"),
    "empty": ("empty.csv", "p", "_new", "is empty"),
    "nowhere": ("nowhere.csv", "p", "_new", "There is no file"),
    "folder": (".", "p", "_new", "is a folder"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path, case):
    name, prob, suffix, words = BAD[case]
    bad(tmp_path)
    target = tmp_path / f"fixed{'.csv' if name.endswith('.csv') else '.jsonl'}"
    target.write_text("old")
    with pytest.raises((UsageError, ValueError, FileNotFoundError), match=words):
        apply_to_file(MAP, str(tmp_path / name), target, Columns(prob=(prob,)), suffix=suffix)
    assert target.read_text() == "old"
    assert not list(tmp_path.glob("*.part")) + list(tmp_path.glob(".*.part"))
    with pytest.raises(UsageError, match="Tables are written as"):
        apply_to_file(MAP, str(tmp_path / name), tmp_path / "fixed.xlsx", Columns(prob=(prob,)), suffix=suffix)


def test_the_number_of_a_bad_row_counts_from_the_top_of_the_file(tmp_path):
    p = np.full(20, 0.5)
    p[17] = 1.5
    pq.write_table(pa.table({"p": p}), tmp_path / "scores.parquet", row_group_size=5)
    with pytest.raises(cal.InvalidPredictions, match=r"\[2\] = 1\.5.*counted from row 16 of the file"):
        apply_to_file(MAP, str(tmp_path / "scores.parquet"), tmp_path / "f.parquet", FROM_P, suffix="_new")


def test_standard_input_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"y,p\n1,0.5\n")))
    notes = apply_to_file(MAP, "-", tmp_path / "fixed.csv", Columns(), suffix="_new")
    assert notes == ["Taking column 'p' as --prob."]
    assert (tmp_path / "fixed.csv").read_text().startswith("y,p,p_new\n1,0.5,")


def test_the_map_is_printed_as_sql_that_gives_the_same_column(tmp_path):
    import duckdb

    path = written(pa.table({"p": np.linspace(0, 1, 101)}), tmp_path / "scores.parquet")
    (text,) = sql_of(MAP, FROM_P, "duckdb")
    found = duckdb.sql(f"SELECT {text} FROM '{path}'").fetchnumpy()
    np.testing.assert_allclose(*found.values(), MAP.predict_proba(read(path)["p"].to_numpy())[:, 1], atol=1e-12)
    three = cal.recalibrate.Temperature().fit(np.eye(3), ["a", "b", "c"])
    assert sql_of(three, Columns(prob=("c", "a", "b")), "spark") == three.to_sql(["a", "b", "c"], dialect="spark")


def test_what_cannot_be_printed_as_sql_is_a_wrong_option():
    std = cal.recalibrate.StdScaling().fit(cal.Gaussian([0.0, 1.0], [0.1, 0.5], [1.0, 1.0]))
    for made, columns, dialect, message in (
        (MAP, (), "duckdb", "--sql --prob p"),
        (MAP, ("p",), "oracle", "dialect must be one of"),
        (MAP, ("p", "q"), "duckdb", "fitted to 1 columns"),
        (std, ("p",), "duckdb", "only maps of probabilities"),
    ):
        with pytest.raises(UsageError, match=message):
            sql_of(made, Columns(prob=columns), dialect)


def test_arrays_of_numpy_and_log_odds_are_recalibrated(tmp_path):
    z = np.array([-2.0, 0.5, 3.0])
    np.savez(tmp_path / "scores.npz", z=z)
    apply_to_file(
        MAP, str(tmp_path / "scores.npz"), tmp_path / "f.parquet", Columns(prob=("z",), logits=True), suffix="_new"
    )
    expected = MAP.predict_proba(1 / (1 + np.exp(-z)))[:, 1]
    np.testing.assert_allclose(read(tmp_path / "f.parquet")["z_new"], expected, rtol=1e-12)


CSV = (
    "\ufeffid,p,note,when\r\n"
    '0017,0.50,"a ""quoted"", note\nover lines",2026-01-01\r\n'
    "00018,.25,,\r\n"
    '9007199254740993,1e-3,"",1.10\r\n'
)


def test_a_csv_file_keeps_its_text(tmp_path):
    (tmp_path / "scores.csv").write_bytes(CSV.encode() + b"1,0.5,\xff latin,x")
    apply_to_file(MAP, str(tmp_path / "scores.csv"), tmp_path / "fixed.csv", FROM_P, suffix=", new")
    lines = (tmp_path / "fixed.csv").read_bytes()
    values = [repr(v) for v in MAP.predict_proba([0.5, 0.25, 1e-3, 0.5])[:, 1].tolist()]
    expected = CSV.encode() + b"1,0.5,\xff latin,x"
    for old, new in (
        (b"when\r\n", b'when,"p, new"\r\n'),
        (b"2026-01-01\r\n", f"2026-01-01,{values[0]}\r\n".encode()),
        (b".25,,\r\n", f".25,,,{values[1]}\r\n".encode()),
        (b"1.10\r\n", f"1.10,{values[2]}\r\n".encode()),
        (b"latin,x", f"latin,x,{values[3]}".encode()),
    ):
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert lines == expected


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_are_seen(tmp_path, delimiter):
    (tmp_path / "scores.csv").write_text(delimiter.join("yp") + "\n" + delimiter.join(["1,5", "0.5"]) + "\n")
    apply_to_file(MAP, str(tmp_path / "scores.csv"), tmp_path / "fixed.csv", FROM_P, suffix="_new")
    assert (tmp_path / "fixed.csv").read_text().splitlines()[0] == delimiter.join(["y", "p", "p_new"])


LINES = '{"id": 9007199254740993, "p": 0.50, "x": 1.10, "t": "2026-01-01"}\n\n{ "p":1e-3 , "x": [1, {"y": "}"}] }\n'


def test_json_keeps_its_text(tmp_path):
    (tmp_path / "scores.jsonl").write_text(LINES)
    apply_to_file(MAP, str(tmp_path / "scores.jsonl"), tmp_path / "fixed.jsonl", FROM_P, suffix="_new")
    first, second = MAP.predict_proba([0.5, 1e-3])[:, 1].tolist()
    assert (tmp_path / "fixed.jsonl").read_text() == (
        f'{{"id": 9007199254740993, "p": 0.50, "x": 1.10, "t": "2026-01-01", "p_new": {first!r}}}\n'
        f'{{ "p":1e-3 , "x": [1, {{"y": "}}"}}], "p_new": {second!r}}}\n'
    )


@pytest.mark.parametrize(
    ("path", "suffix"), [("a/B.CSV", ".csv"), ("x.jsonl.gz", ".jsonl"), ("x.parquet", ".parquet"), ("x.gz", "")]
)
def test_the_format_is_told_from_the_name(path, suffix):
    assert suffix_of(path) == suffix


@pytest.mark.parametrize("value", ["", "x", "1_0", None, True, []])
def test_what_is_no_number_is_no_number(value):
    with pytest.raises((TypeError, ValueError)):
        number(value)
    assert number(" 0.5") == number(0.5) == 0.5


def test_a_csv_file_is_typed_only_where_nothing_is_lost(tmp_path):
    import gzip

    text = "id,n,x,mixed,b,empty,p\n007,1,0.5,1,True,,0.50\n008,,1e-05,1.0,False,,1\n"
    (tmp_path / "scores.csv.gz").write_bytes(gzip.compress(text.encode()))
    apply_to_file(MAP, str(tmp_path / "scores.csv.gz"), tmp_path / "fixed.parquet", FROM_P, suffix="_new")
    table = pq.read_table(tmp_path / "fixed.parquet")
    assert [str(kind) for kind in table.schema.types] == [
        "string", "int64", "double", "string", "bool", "string", "double", "double"
    ]  # fmt: skip
    assert table.to_pylist()[1] | {"p_new": 0} == {
        "id": "008", "n": None, "x": 1e-05, "mixed": "1.0", "b": False, "empty": "", "p": 1.0, "p_new": 0
    }  # fmt: skip


def test_a_json_list_becomes_lines_or_a_table(tmp_path):
    rows = [{"id": 9007199254740993, "p": 0.5, "s": "x"}, {"id": None, "p": 0.25, "day": "2026-01-01"}]
    (tmp_path / "scores.json").write_text(json.dumps(rows, indent=2))
    apply_to_file(MAP, str(tmp_path / "scores.json"), tmp_path / "fixed.jsonl", FROM_P, suffix="_new")
    lines = [json.loads(line) for line in (tmp_path / "fixed.jsonl").read_text().splitlines()]
    assert [{k: v for k, v in line.items() if k != "p_new"} for line in lines] == rows
    apply_to_file(MAP, str(tmp_path / "scores.json"), tmp_path / "fixed.parquet", FROM_P, suffix="_new")
    table = pq.read_table(tmp_path / "fixed.parquet")
    assert table["id"].to_pylist() == [9007199254740993, None]
    assert table["day"].to_pylist() == [None, "2026-01-01"]


def test_json_of_mixed_types_stays_json(tmp_path):
    (tmp_path / "scores.jsonl").write_text('{"p": 0.5, "x": 1}\n{"p": 0.5, "x": "one"}\n')
    with pytest.raises(UsageError, match=r"different types.*write \.jsonl"):
        apply_to_file(MAP, str(tmp_path / "scores.jsonl"), tmp_path / "f.parquet", FROM_P, suffix="_new")
    (tmp_path / "scores.jsonl").write_text('{"p": 0.5, "x": 123456789012345678901234567890}\n')
    with pytest.raises(UsageError, match=r"write \.jsonl"):
        apply_to_file(MAP, str(tmp_path / "scores.jsonl"), tmp_path / "f.parquet", FROM_P, suffix="_new")


def test_a_bad_number_of_a_csv_file_is_named_by_its_row(tmp_path):
    (tmp_path / "scores.csv").write_text("p\n0.5\nhalf\n")
    with pytest.raises(ValueError, match="Column 'p' is 'half', which is not a number in row 2"):
        apply_to_file(MAP, str(tmp_path / "scores.csv"), tmp_path / "f.parquet", FROM_P, suffix="_new")


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("scores.jsonl", '{"p": 0.5}\n{"p": 0.5, "p": 0.7}\n', "Line 2"),
        ("scores.json", '[{"p": 0.5},\n{"p": 0.5, "p": 0.7}]', "Object 2"),
    ],
)
def test_two_values_of_one_name_in_json_are_refused_by_every_command(tmp_path, name, text, place):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=f"{place}.* has several values of 'p'"):
        apply_to_file(MAP, str(tmp_path / name), tmp_path / "f.jsonl", FROM_P, suffix="_new")
    with pytest.raises(ValueError, match='duplicate key "p"'):
        load([str(tmp_path / name)], Columns("p > 0.5", ("p",)))


def test_marks_of_missing_values_are_missing(tmp_path):
    (tmp_path / "scores.csv").write_text("p\n0.5\nN/A\n")
    with pytest.raises(ValueError, match="Column 'p' is missing in row 2"):
        apply_to_file(MAP, str(tmp_path / "scores.csv"), tmp_path / "f.csv", FROM_P, suffix="_new")


@pytest.mark.parametrize("text", ['[{"p": 0.5}, [{"p": 0.5}]]', '[[], {"p": 0.5}]', '{"p": 0.5}\n[{"p": 0.5}]'])
def test_a_list_within_json_is_no_row_and_is_not_opened(tmp_path, text):
    (tmp_path / "scores.json").write_text(text)
    with pytest.raises(ValueError, match=r"is not a JSON object"):
        apply_to_file(MAP, str(tmp_path / "scores.json"), tmp_path / "f.jsonl", FROM_P, suffix="_new")
