"""Files, folders, patterns and frames, all rows or some."""

import narwhals.stable.v2 as nw
import pytest

from calibrant.scale import bin_table
from tests.scale.logs import as_file, assert_same_table

pytestmark = pytest.mark.filterwarnings("ignore:fetch_(arrow_table|record_batch|arrow_reader):DeprecationWarning")


def test_json_lines_and_folders_and_patterns_are_read(log, tmp_path):
    expected = bin_table(log.round(6), y_true="y", y_prob="p")
    for day, rows in log.round(6).groupby("day"):
        as_file(rows, tmp_path, "jsonl")
        (tmp_path / "log.jsonl").rename(tmp_path / f"{day}.jsonl")
    for source in (tmp_path, str(tmp_path / "*.jsonl"), sorted(tmp_path.iterdir())):
        assert_same_table(bin_table(source, y_true="y", y_prob="p"), expected)


def test_files_can_be_filtered_by_sql_and_by_expression(log, tmp_path):
    path = as_file(log, tmp_path, "parquet")
    expected = bin_table(log[log.country == "at"], y_true="y", y_prob="p")
    assert_same_table(bin_table(path, y_true="y", y_prob="p", where="country = 'at'"), expected)
    assert_same_table(bin_table(path, y_true="y", y_prob="p", where=nw.col("country") == "at"), expected)
    with pytest.raises(TypeError, match="Narwhals expression"):
        bin_table(log, y_true="y", y_prob="p", where="country = 'at'")
