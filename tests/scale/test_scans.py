"""Every format is read as it is meant, whatever its first rows hold."""

import gzip

import pandas as pd
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.scale import bin_table, bin_tables
from calibrant.scale.scans import literal, quoted
from tests.cli.loading import both, loaded

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
