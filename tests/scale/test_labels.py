"""Labels of an event: 0 and 1, truth values and their words, or two values one of which is named."""

import pandas as pd
import polars as pl
import pytest

import calibrant as cal
from calibrant.scale import EventColumns, bin_table
from tests.cli.loading import loaded

P = [0.75, 0.25, 0.5, 0.125]
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
    frame = pd.DataFrame({"y": [yes, no, yes, no], "p": P})
    expected = cal.ece([1, 0, 1, 0], P)
    for source in every_source(frame, tmp_path):
        if isinstance(source, pd.DataFrame) and source["y"].dtype == "category" and not isinstance(yes, str):
            continue
        assert cal.ece(bin_table(source, y_true="y", y_prob="p")) == pytest.approx(expected)
    for data in loaded(tmp_path / "log.csv"):
        assert cal.ece(data) == pytest.approx(expected)


@pytest.mark.no_cover
def test_the_positive_of_two_labels_is_named(tmp_path):
    frame = pd.DataFrame({"y": ["fraud", "legit", "fraud", "legit"], "p": P})
    for source in every_source(frame, tmp_path):
        assert bin_table(source, y_true="y", y_prob="p", task=FRAUD).observed.tolist() == [0, 0, 1, 1]
    numbers = bin_table(frame.assign(y=[2, 1, 2, 1]), y_true="y", y_prob="p", task=EventColumns(positive=2))
    assert numbers.observed.tolist() == [0, 0, 1, 1]


def test_a_third_label_a_misspelt_one_and_one_of_another_type_are_refused():
    frame = pl.DataFrame({"y": ["fraud", "legit", "fruad", None], "p": P})
    two = frame.filter(pl.col("y") != "fruad")
    for source, task, words in (
        (frame, FRAUD, "beside the positive 'fraud' there are 'fruad', 'legit'"),
        (two, EventColumns(positive="Fraud"), "No row of column 'y' is 'Fraud'.* it holds 'fraud', 'legit'"),
        (two, EventColumns(positive=1), "positive is 1, but column 'y' holds text"),
        (pl.DataFrame({"y": [0, 1], "p": P[:2]}), FRAUD, "positive is 'fraud', but column 'y' holds numbers"),
        ([two, frame], FRAUD, "'fruad'"),
    ):
        with pytest.raises(cal.InvalidPredictions, match=words):
            bin_table(source, y_true="y", y_prob="p", task=task)
    with pytest.raises(cal.InvalidPredictions, match="y_true 'y' missing: 1"):
        bin_table(
            frame.with_columns(y=pl.Series(["fraud", "legit", "legit", None])), y_true="y", y_prob="p", task=FRAUD
        )


def test_words_that_nobody_explained_are_listed_with_the_remedy():
    frame = pl.DataFrame({"y": ["fraud", "legit", "yes", "no"], "p": P})
    with pytest.raises(cal.InvalidPredictions, match=r"holds 'fraud', 'legit': .*EventColumns\(positive="):
        bin_table(frame, y_true="y", y_prob="p")
