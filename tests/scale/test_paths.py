"""Names of files: what exists is meant, patterns are for the rest."""

import pytest

import calibrant as cal
from calibrant.scale import bin_table
from calibrant.scale.paths import ReadOptions, as_pattern, files, format_of
from tests.cli.loading import loaded


@pytest.fixture
def folder(tmp_path):
    for name, y in (("x[1].csv", 0), ("x1.csv", 1), ("a*b.csv", 0), ("aab.csv", 1), ("it's.csv", 0)):
        (tmp_path / name).write_text(f"y,p\n{y},0.25\n{y},0.5\n")
    return tmp_path


@pytest.mark.no_cover
@pytest.mark.parametrize(("name", "y"), [("x[1].csv", 0), ("x1.csv", 1), ("a*b.csv", 0), ("it's.csv", 0)])
def test_a_path_that_exists_is_that_file(folder, name, y):
    table = bin_table(folder / name, y_true="y", y_prob="p")
    assert (table.n, table.observed.sum()) == (2, 2 * y)
    for data in loaded(folder / name):
        assert cal.ece(data) == pytest.approx(abs(y - 0.375))


def test_any_other_name_is_a_pattern(folder):
    (folder / "x[1].csv").unlink()
    assert bin_table(str(folder / "x[1].csv"), y_true="y", y_prob="p").observed.sum() == 2
    assert files([str(folder / "x?.csv")]).names["csv"] == (str(folder / "x1.csv"),)


def test_a_folder_stands_for_its_files_of_known_endings(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("a.csv", "deep/b.jsonl.gz", "_hidden.csv", ".part.csv", "notes.txt", "c.parquet"):
        (tmp_path / name).write_text("x")
    found = files([tmp_path])
    assert {kind: [name.split("/")[-1] for name in names] for kind, names in found.names.items()} == {
        "csv": ["a.csv"],
        "parquet": ["c.parquet"],
        "json": ["b.jsonl.gz"],
    }
    assert str(found).endswith("and 2 more")
    assert found.text
    assert not found.counted


def test_the_format_follows_from_the_ending_under_any_compression():
    assert [format_of(name) for name in ("a.CSV", "a.tsv.gz", "a.json.zst", "a.feather")] == [
        "csv",
        "csv",
        "json",
        "arrow",
    ]
    with pytest.raises(ValueError, match="Cannot tell the format"):
        format_of("a.csv.rar")


def test_remote_names_stay_patterns():
    assert as_pattern("s3://bucket/[ab].csv") == "s3://bucket/[ab].csv"
    assert as_pattern("[ab].csv") == "[[]ab].csv"


def test_a_decimal_mark_is_a_point_or_a_comma():
    with pytest.raises(ValueError, match="decimal must be"):
        ReadOptions(decimal=";")
