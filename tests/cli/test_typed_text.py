"""Text becomes types only where nothing is lost."""

import json

import pyarrow.parquet as pq
import pytest

from calibrant.cli.apply import apply_to_file
from calibrant.cli.formats import UsageError
from calibrant.cli.new_columns import Inputs
from tests.cli.odd_tables import MAP


def test_a_csv_file_is_typed_only_where_nothing_is_lost(tmp_path):
    import gzip

    text = "id,n,x,mixed,b,empty,p\n007,1,0.5,1,True,,0.50\n008,,1e-05,1.0,False,,1\n"
    (tmp_path / "scores.csv.gz").write_bytes(gzip.compress(text.encode()))
    apply_to_file(MAP, str(tmp_path / "scores.csv.gz"), tmp_path / "fixed.parquet", Inputs(("p",)), suffix="_new")
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
    apply_to_file(MAP, str(tmp_path / "scores.json"), tmp_path / "fixed.jsonl", Inputs(("p",)), suffix="_new")
    lines = [json.loads(line) for line in (tmp_path / "fixed.jsonl").read_text().splitlines()]
    assert [{k: v for k, v in line.items() if k != "p_new"} for line in lines] == rows
    apply_to_file(MAP, str(tmp_path / "scores.json"), tmp_path / "fixed.parquet", Inputs(("p",)), suffix="_new")
    table = pq.read_table(tmp_path / "fixed.parquet")
    assert table["id"].to_pylist() == [9007199254740993, None]
    assert table["day"].to_pylist() == [None, "2026-01-01"]


def test_json_of_mixed_types_stays_json(tmp_path):
    (tmp_path / "scores.jsonl").write_text('{"p": 0.5, "x": 1}\n{"p": 0.5, "x": "one"}\n')
    with pytest.raises(UsageError, match=r"different types.*write \.jsonl"):
        apply_to_file(MAP, str(tmp_path / "scores.jsonl"), tmp_path / "f.parquet", Inputs(("p",)), suffix="_new")
    (tmp_path / "scores.jsonl").write_text('{"p": 0.5, "x": 123456789012345678901234567890}\n')
    with pytest.raises(UsageError, match=r"write \.jsonl"):
        apply_to_file(MAP, str(tmp_path / "scores.jsonl"), tmp_path / "f.parquet", Inputs(("p",)), suffix="_new")


def test_a_bad_number_of_a_csv_file_is_named_by_its_row(tmp_path):
    (tmp_path / "scores.csv").write_text("p\n0.5\nhalf\n")
    with pytest.raises(ValueError, match="Column 'p' is 'half', which is not a number in row 2"):
        apply_to_file(MAP, str(tmp_path / "scores.csv"), tmp_path / "f.parquet", Inputs(("p",)), suffix="_new")
