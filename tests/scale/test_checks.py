"""Rules for rows and labels: the first that a row breaks is the reason under which it is counted."""

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.scale import EventColumns, bin_table, bin_tables
from calibrant.scale.checks import (
    NamedFrame,
    all_hold,
    counted,
    first_broken,
    labels_of_columns,
    named_reasons,
    probability,
    weight_checks,
)
from calibrant.scale.columns import OneVsRestColumns, TopLabelColumns
from tests.cli.loading import loaded

NAN = float("nan")
COLUMNS = NamedFrame(nw.from_native(pl.LazyFrame({"p": [0.5, None, NAN, 2.0, 0.5], "w": [1.0, 1.0, 1.0, None, -1.0]})))
CHECKS = (*probability(COLUMNS, "p")[1], *weight_checks(COLUMNS, "w"))


def test_null_and_nan_are_missing_and_the_first_rule_counts():
    found = COLUMNS.frame.select(first_broken(CHECKS).alias("rule"), all_hold(CHECKS).alias("holds")).collect()
    reasons = [CHECKS[rule].reason if rule >= 0 else "" for rule in found["rule"].to_list()]
    missing = "y_prob missing"
    assert reasons == ["", missing, missing, "y_prob outside [0, 1]", "weight negative or not finite"]
    assert [bool(holds) for holds in found["holds"].to_list()] == [True, False, False, False, False]


def test_reasons_are_said_with_the_names_of_the_columns():
    named = named_reasons(CHECKS)
    assert named["y_prob missing"] == "y_prob 'p' missing"
    assert counted({"y_prob missing": 1200, "another": 1}, named) == "y_prob 'p' missing: 1,200, another: 1"


LABELS_P = [0.75, 0.25, 0.5, 0.125]
FRAUD = EventColumns(positive="fraud")


def every_source(frame, folder):
    frame.to_parquet(folder / "log.parquet")
    frame.to_csv(folder / "log.csv", index=False)
    frame.to_json(folder / "log.jsonl", orient="records", lines=True)
    files = [folder / name for name in ("log.parquet", "log.csv", "log.jsonl")]
    return [frame, pl.from_pandas(frame), frame.astype({"y": "category"}), *files]


@pytest.mark.no_cover
@pytest.mark.parametrize("words", [("True", "False"), ("YES", "No"), (True, False), (1.0, 0.0)])
def test_truth_values_are_understood_alike_everywhere(tmp_path, words):
    """Also those that pandas writes to CSV files, whatever the number of rows."""
    yes, no = words
    frame = pd.DataFrame({"y": [yes, no, yes, no], "p": LABELS_P})
    expected = cal.ece([1, 0, 1, 0], LABELS_P)
    for source in every_source(frame, tmp_path):
        if isinstance(source, pd.DataFrame) and source["y"].dtype == "category" and not isinstance(yes, str):
            continue
        assert cal.ece(bin_table(source, y_true="y", y_prob="p")) == pytest.approx(expected)
    for data in loaded(tmp_path / "log.csv"):
        assert cal.ece(data) == pytest.approx(expected)


@pytest.mark.no_cover
def test_the_positive_of_two_labels_is_named(tmp_path):
    frame = pd.DataFrame({"y": ["fraud", "legit", "fraud", "legit"], "p": LABELS_P})
    for source in every_source(frame, tmp_path):
        assert bin_table(source, y_true="y", y_prob="p", task=FRAUD).observed.tolist() == [0, 0, 1, 1]
    numbers = bin_table(frame.assign(y=[2, 1, 2, 1]), y_true="y", y_prob="p", task=EventColumns(positive=2))
    assert numbers.observed.tolist() == [0, 0, 1, 1]


def test_a_third_label_a_misspelt_one_and_one_of_another_type_are_refused():
    frame = pl.DataFrame({"y": ["fraud", "legit", "fruad", None], "p": LABELS_P})
    two = frame.filter(pl.col("y") != "fruad")
    for source, task, words in (
        (frame, FRAUD, "beside the positive 'fraud' there are 'fruad', 'legit'"),
        (two, EventColumns(positive="Fraud"), "No row of column 'y' is 'Fraud'.* it holds 'fraud', 'legit'"),
        (two, EventColumns(positive=1), "positive is 1, but column 'y' holds text"),
        (pl.DataFrame({"y": [0, 1], "p": LABELS_P[:2]}), FRAUD, "positive is 'fraud', but column 'y' holds numbers"),
        ([two, frame], FRAUD, "'fruad'"),
    ):
        with pytest.raises(cal.InvalidPredictions, match=words):
            bin_table(source, y_true="y", y_prob="p", task=task)
    with pytest.raises(cal.InvalidPredictions, match="y_true 'y' missing: 1"):
        bin_table(
            frame.with_columns(y=pl.Series(["fraud", "legit", "legit", None])), y_true="y", y_prob="p", task=FRAUD
        )


def test_words_that_nobody_explained_are_listed_with_the_remedy():
    frame = pl.DataFrame({"y": ["fraud", "legit", "yes", "no"], "p": LABELS_P})
    with pytest.raises(cal.InvalidPredictions, match=r"holds 'fraud', 'legit': .*EventColumns\(positive="):
        bin_table(frame, y_true="y", y_prob="p")


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
        (np.where(Y == 0, 7, Y), None, "y_true 'y' is not one of the classes: "),
        (np.where(Y == 0, "atn", ANIMALS[Y]), ("ant", "cat", "dog"), "y_true 'y' is not one of the classes: "),
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
        with pytest.raises(TypeError, match="Multiclass data need one column"):
            labels_of_columns(classes, names)
    with pytest.raises(cal.InvalidPredictions, match="classes names the columns"):
        labels_of_columns(("b", "a"), ["a", "b"])


def test_examples_of_labels_of_columns() -> None:
    assert (labels_of_columns(None, ["p2", "p0", "p1"]), labels_of_columns(None, ["cat", "dog"])) == ((2, 0, 1), (0, 1))
