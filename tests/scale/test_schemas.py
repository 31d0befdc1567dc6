"""Files whose columns have different types are widened where they hold numbers, and refused where they do not."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.scale import bin_table, bin_tables
from calibrant.scale.schemas import Part, common_schema, widened
from tests.cli.loading import loaded

Y, P = [0, 1, 0, 1, 1, 0], [0, 1, 0.2, 0.8, 0.6, 0.3]


def write(folder, first, second):
    for name, columns in (("0", first), ("1", second)):
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def test_whole_and_floating_point_scores_give_the_numbers_of_memory(tmp_path):
    """Cast to the first file's type, every score would be 0 or 1."""
    write(tmp_path, {"y": Y[:2], "p": [0, 1]}, {"y": Y[2:], "p": P[2:]})
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
    write(tmp_path, {"y": column, "p": [0.2, 0.6]}, {"y": [1, 0], "p": [0.2, 0.6]})
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
    write(tmp_path, {"y": [0, 1], "p": [0.2, 0.6], "x": ["a", "b"]}, {"y": [1, 0], "p": [0.2, 0.6], "x": [1, 2]})
    assert bin_table(tmp_path, y_true="y", y_prob="p").n == 4


def test_columns_in_another_order_and_without_any_value_fit(tmp_path):
    empty = pa.array([None, None], pa.string())
    write(tmp_path, {"y": [0, 1], "p": [0.2, 0.6], "g": empty}, {"g": [1.5, 2.0], "p": [0.2, 0.6], "y": [1, 0]})
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
