"""One table, or one per group, class and fold, and what is said of invalid rows."""

import polars as pl
import pytest

import calibrant as cal
from calibrant.scale import OneVsRestColumns, TopLabelColumns, bin_table, bin_tables
from tests.scale.logs import assert_same_table, make_log

LOG = make_log(300)
ANIMALS = ("cat", "cow", "dog")


def test_a_key_is_the_value_of_a_single_column_and_a_tuple_for_several():
    plain = bin_tables(LOG, y_true="y", y_prob="p", by="country")
    listed = bin_tables(LOG, y_true="y", y_prob="p", by=["country"])
    folds = bin_tables(LOG, y_true="y", y_prob="p", fold="day")
    both = bin_tables(LOG, y_true="y", y_prob="p", by="country", fold="day")
    assert (list(plain), list(listed), list(folds)) == (["at", "de"], [("at",), ("de",)], [0, 1, 2])
    assert list(both) == [(country, day) for country in plain for day in folds]
    assert_same_table(both["at", 0] + both["at", 1] + both["at", 2], plain["at"])


def test_classes_stand_between_groups_and_folds():
    task = OneVsRestColumns(ANIMALS)
    classes = bin_tables(LOG, y_true="animal", y_prob=ANIMALS, task=task)
    every = bin_tables(LOG, y_true="animal", y_prob=ANIMALS, task=task, by="country", fold="day")
    assert set(classes) == set(ANIMALS)
    assert set(every) == {(c, a, day) for c in ("at", "de") for a in ANIMALS for day in range(3)}


def test_names_of_columns_without_an_order_are_refused():
    for names in ({"p0", "p1"}, {"p0": 1, "p1": 2}.keys()):
        with pytest.raises(cal.InvalidPredictions, match="a list of names in their order"):
            bin_table(make_log(20), y_true="y", y_prob=names, task=TopLabelColumns())


def test_one_table_and_several_are_not_confused():
    with pytest.raises(TypeError, match="use bin_tables"):
        bin_table(LOG, y_true="animal", y_prob=ANIMALS, task=OneVsRestColumns(ANIMALS))
    with pytest.raises(TypeError, match="for one table of all rows use bin_table"):
        bin_tables(LOG, y_true="y", y_prob="p")


@pytest.mark.parametrize("share", [float("nan"), -0.1, 1.5, float("inf")])
def test_a_share_of_invalid_rows_that_is_none_is_refused(share):
    with pytest.raises(cal.InvalidPredictions, match="max_invalid must be a share"):
        bin_table(LOG.assign(p=LOG.p + 2), y_true="y", y_prob="p", max_invalid=share)


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="w must not be all zero, but all 300 values are"):
        bin_table(LOG.assign(w=0.0), y_true="y", y_prob="p", weight="w")


@pytest.mark.no_cover
@pytest.mark.parametrize(("bad", "words"), [(1, "1 of 5,000 rows is invalid"), (650, "650 of 5,000 rows are invalid")])
def test_the_grammar_of_rows_and_the_name_of_the_column(tmp_path, bad, words):
    frame = pl.DataFrame({"clicked": [0] * 5000, "score": [0.5] * (5000 - bad) + [1.5] * bad})
    frame.write_csv(tmp_path / "log.csv")
    place = rf"; first: row {5001 - bad:,} of '.*log\.csv'"
    for source, first in ((frame, ""), (tmp_path / "log.csv", place)):
        with pytest.raises(cal.InvalidPredictions, match=rf"{words} \(y_prob 'score' outside \[0, 1\]: {bad}{first}\)"):
            bin_table(source, y_true="clicked", y_prob="score")
