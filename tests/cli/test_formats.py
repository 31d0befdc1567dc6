"""Files of every format are read alike and written whole."""

import io

import numpy as np
import pandas as pd
import pytest

from calibrant.cli.formats import UsageError, columns_of, header, reading, write_table
from calibrant.data.validation import InvalidPredictions

FRAME = pd.DataFrame({"y": [0, 1, 1], "p": [0.25, 0.5, 0.75]})


def read(*paths, where=None):
    with reading(list(map(str, paths))) as (opened, sources):
        names, rows = header(opened, sources)
        return rows, columns_of(opened, sources, names, where)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_what_is_written_comes_back(tmp_path, suffix):
    path = tmp_path / f"scores{suffix}"
    write_table(path, {name: FRAME[name].to_numpy() for name in FRAME})
    rows, columns = read(path)
    assert rows == 3
    for name in FRAME:
        np.testing.assert_allclose(np.sort(columns[name]), FRAME[name])


def test_arrow_files_are_read_in_place_and_filtered(tmp_path):
    FRAME.to_feather(tmp_path / "scores.arrow")
    rows, columns = read(tmp_path / "scores.arrow", tmp_path / "scores.arrow", where="p > 0.4")
    assert rows == 6
    assert sorted(columns["p"]) == [0.5, 0.5, 0.75, 0.75]
    (tmp_path / "broken.arrow").write_bytes(b"no Arrow at all")
    with pytest.raises(InvalidPredictions, match="as Arrow"):
        read(tmp_path / "broken.arrow")


@pytest.mark.parametrize("text", ["y,p\n0,0.25\n1,0.5\n", '{"y": 0, "p": 0.25}\n{"y": 1, "p": 0.5}\n', ""])
def test_standard_input_is_recognised_by_its_content(monkeypatch, text):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    if not text:
        with pytest.raises(InvalidPredictions, match="empty"):
            read("-")
        return
    assert sorted(read("-")[1]["p"]) == [0.25, 0.5]


def test_missing_values_become_nan(tmp_path):
    FRAME.assign(p=[0.5, None, 0.25]).to_parquet(tmp_path / "scores.parquet")
    assert np.isnan(read(tmp_path / "scores.parquet")[1]["p"]).sum() == 1


def test_an_unknown_ending_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(UsageError, match=r"\.parquet, \.csv or \.jsonl"):
        write_table(tmp_path / "scores.xlsx", {"p": np.array([0.5])})
    assert list(tmp_path.iterdir()) == []
