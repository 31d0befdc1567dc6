"""Labels and columns of several classes: the same contract on every engine as in memory."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.scale import bin_table, bin_tables
from calibrant.scale.class_labels import labels_of_columns
from calibrant.scale.columns import OneVsRestColumns, TopLabelColumns

RNG = np.random.default_rng(0)
P = RNG.dirichlet([1, 1, 1], 60)
Y = np.array([RNG.choice(3, p=p) for p in P])
ANIMALS = np.array(["ant", "cat", "dog"])
ENGINES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "polars lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": pa.Table.from_pandas,
}


def frame(y, names=("p0", "p1", "p2"), order=(0, 1, 2)):
    return pd.DataFrame({"y": y, **{names[k]: P[:, k] for k in order}})


@pytest.fixture(params=ENGINES)
def engine(request):
    return ENGINES[request.param]


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (np.where(Y == 0, 7, Y), None, "y_true 'y' is no class: "),
        (np.where(Y == 0, "atn", ANIMALS[Y]), ("ant", "cat", "dog"), "y_true 'y' is no class: "),
        (ANIMALS[Y], None, r"y_true, column 'y', holds \w+ values, but the classes are 0, 1, 2: pass classes="),
        (Y, ("0", "1", "2"), r"holds \w+ values, but the classes are '0', '1', '2'"),
    ],
    ids=["unknown number", "misspelt", "text against numbers", "numbers against text"],
)
def test_labels_that_are_no_class_are_refused(engine, y, classes, message):
    source = engine(frame(y))
    with pytest.raises(cal.InvalidPredictions, match=message):
        bin_tables(source, y_true="y", y_prob=["p0", "p1", "p2"], task=OneVsRestColumns(classes))
    with pytest.raises(cal.InvalidPredictions, match=message):
        bin_table(source, y_true="y", y_prob=["p0", "p1", "p2"], task=TopLabelColumns(classes))


def test_numbers_in_the_names_of_columns_are_honoured(engine):
    columns = ["p2", "p0", "p1"]
    tables = bin_tables(engine(frame(Y)), y_true="y", y_prob=columns, task=OneVsRestColumns())
    data = cal.Multiclass(Y, frame(Y)[columns])
    for label, one in data.one_vs_rest().items():
        assert float(cal.brier(tables[label])) == pytest.approx(float(cal.brier(one)), abs=1e-12)
    top = bin_table(engine(frame(Y)), y_true="y", y_prob=columns, task=TopLabelColumns())
    assert float(cal.brier(top)) == pytest.approx(float(cal.brier(data.top_label())), abs=1e-12)


def test_truth_values_are_the_classes_zero_and_one(engine):
    source = engine(pd.DataFrame({"y": Y == 1, "p0": P[:, 0] + P[:, 2], "p1": P[:, 1]}))
    table = bin_tables(source, y_true="y", y_prob=["p0", "p1"], task=OneVsRestColumns())[1]
    assert table.observed.sum() == (Y == 1).sum()


def test_labels_of_columns():
    assert labels_of_columns(("a", "b"), ["x", "y"]) == ("a", "b")
    for classes, names in ((None, ["p"]), (("a",), ["x", "y"])):
        with pytest.raises(TypeError, match="Several classes need one column"):
            labels_of_columns(classes, names)
    with pytest.raises(cal.InvalidPredictions, match="classes names the columns"):
        labels_of_columns(("b", "a"), ["a", "b"])
