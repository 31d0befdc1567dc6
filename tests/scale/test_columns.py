"""What the columns of a source mean."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.scale import TopLabelColumns, UnlabeledColumns, bin_table
from tests.scale.logs import as_file, assert_same_table, make_log

pytestmark = pytest.mark.filterwarnings("ignore:fetch_(arrow_table|record_batch|arrow_reader):DeprecationWarning")
GRID = cal.table.HybridGrid()
ANIMALS = ("cat", "cow", "dog")


def test_the_scenario_of_positive_unlabeled_data_must_make_sense(log):
    for wrong in (
        {},
        {"prior": 0.5, "label_frequency": 0.5},
        {"label_frequency": 0.5},
        {"prior": 0.5, "scenario": "x"},
    ):
        with pytest.raises(cal.InvalidPredictions, match="scenario"):
            UnlabeledColumns(**wrong)
    task = UnlabeledColumns(positive="cat", unlabeled="cow", scenario="single-sample", label_frequency=0.1)
    with pytest.raises(cal.InvalidPredictions, match="more than all rows would be positive"):
        bin_table(log[log.animal != "dog"], y_true="animal", y_prob="p", task=task)


def test_labels_may_be_column_numbers(log):
    numbered = log.assign(code=log.animal.map({name: k for k, name in enumerate(ANIMALS)}))
    by_number = bin_table(numbered, y_true="code", y_prob=ANIMALS, task=TopLabelColumns())
    assert_same_table(by_number, bin_table(log, y_true="animal", y_prob=ANIMALS, task=TopLabelColumns(ANIMALS)))


def test_float32_and_boolean_and_integer_columns_are_taken_as_they_are(tmp_path):
    p, y = np.array([0, 1, 0.25, 0.75], np.float32), np.array([False, True, False, True])
    expected = cal.BinTable.of(cal.Binary(y, p), GRID)
    path = as_file(make_log(4)[[]].assign(p=p, y=y), tmp_path, "parquet")
    for source in (path, pl.DataFrame({"p": p, "y": y}), pa.table({"p": p, "y": y})):
        assert_same_table(bin_table(source, y_true="y", y_prob="p"), expected)
    whole = pl.DataFrame({"p": [0, 1], "y": [0.0, 1.0]})
    assert bin_table(whole, y_true="y", y_prob="p").n == 2
