"""CSV and JSON keep their text to the last byte, and get types only where nothing is lost."""

import json

import pyarrow.parquet as pq
import pytest

from calibrant.cli.apply import apply_to_file
from calibrant.cli.columns import Columns
from calibrant.cli.console import UsageError
from calibrant.cli.files import load
from calibrant.cli.text_files import number, suffix_of
from tests.cli.loading import FROM_P
from tests.cli.odd_tables import MAP

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
