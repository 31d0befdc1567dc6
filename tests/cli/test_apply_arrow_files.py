"""Parquet and Arrow files in pieces."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant.cli import apply
from calibrant.cli.apply import apply_to_file
from calibrant.cli.console import UsageError
from tests.cli.loading import FROM_P
from tests.cli.odd_tables import MAP, odd_table, written


def test_the_encoding_of_a_parquet_file_is_kept(tmp_path):
    path = written(odd_table(), tmp_path / "scores.parquet")
    apply_to_file(MAP, path, tmp_path / "fixed.parquet", FROM_P, suffix="_new")
    before, after = (pq.ParquetFile(file).metadata for file in (path, tmp_path / "fixed.parquet"))
    assert [after.row_group(k).num_rows for k in range(after.num_row_groups)] == [4, 2]
    for k in range(before.num_columns):
        old, new = before.row_group(0).column(k), after.row_group(0).column(k)
        assert (old.compression, old.has_dictionary_page) == (new.compression, new.has_dictionary_page)


def test_large_groups_of_rows_are_read_in_pieces(tmp_path, monkeypatch):
    table = odd_table(60)
    pq.write_table(table, tmp_path / "scores.parquet")
    monkeypatch.setattr(apply, "PIECE_BYTES", 600)
    seen = []
    original = MAP.predict_proba
    monkeypatch.setattr(MAP, "predict_proba", lambda scores: seen.append(len(scores)) or original(scores))
    apply_to_file(MAP, str(tmp_path / "scores.parquet"), tmp_path / "fixed.parquet", FROM_P, suffix="_new")
    assert len(seen) > 3
    assert sum(seen) == 60
    assert pq.read_table(tmp_path / "fixed.parquet").drop_columns(["p_new"]).equals(table)


def test_arrow_becomes_text_where_it_can(tmp_path):
    plain = odd_table().select(["id", "flag", "amount", "day", "P", "p", "country"])
    path = written(plain, tmp_path / "scores.parquet")
    apply_to_file(MAP, path, tmp_path / "fixed.jsonl", FROM_P, suffix="_new")
    row = json.loads((tmp_path / "fixed.jsonl").read_text().splitlines()[0])
    assert (row["id"], row["amount"], row["day"], row["country"]) == (2**53 + 1, "0.10", "1600-01-01", "at")
    apply_to_file(MAP, path, tmp_path / "fixed.csv", FROM_P, suffix="_new")
    assert (tmp_path / "fixed.csv").read_text().startswith('"id","flag","amount","day","P","p","country","p_new"')
    for target in ("fixed.csv", "fixed.jsonl"):
        with pytest.raises(UsageError, match=r"write \.parquet"):
            apply_to_file(
                MAP,
                written(odd_table(), tmp_path / "odd.parquet"),
                tmp_path / target,
                FROM_P,
                suffix="_new",
            )


def test_a_stream_of_arrow_is_read_too(tmp_path):
    table = pa.table({"p": np.linspace(0, 1, 9)})
    with pa.ipc.new_stream(str(tmp_path / "scores.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    apply_to_file(MAP, str(tmp_path / "scores.arrow"), tmp_path / "f.parquet", FROM_P, suffix="_new")
    assert pq.read_table(tmp_path / "f.parquet")["p"].to_pylist() == table["p"].to_pylist()


def test_nan_is_not_written_as_json(tmp_path):
    pq.write_table(pa.table({"p": [0.5], "x": [float("nan")]}), tmp_path / "scores.parquet")
    with pytest.raises(UsageError, match=r"JSON cannot hold .* write \.parquet"):
        apply_to_file(MAP, str(tmp_path / "scores.parquet"), tmp_path / "f.jsonl", FROM_P, suffix="_new")


def test_a_table_without_rows_stays_one(tmp_path):
    table = odd_table().slice(0, 0)
    pq.write_table(table, tmp_path / "scores.parquet")
    apply_to_file(MAP, str(tmp_path / "scores.parquet"), tmp_path / "f.parquet", FROM_P, suffix="_new")
    assert pq.read_table(tmp_path / "f.parquet").drop_columns(["p_new"]).equals(table)


def test_what_fails_in_the_background_fails_for_the_caller():
    def divided(item):
        return 1 / item

    for items in ([0], [0, 1], [1, 0]):
        with pytest.raises(ZeroDivisionError), apply.in_background(divided) as later:
            list(map(later, items))


def test_the_background_keeps_the_order_of_calls() -> None:
    seen: list[int] = []
    with apply.in_background(seen.append) as later:
        later(1)
        later(2)
    assert seen == [1, 2]
