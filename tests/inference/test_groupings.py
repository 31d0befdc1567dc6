"""Columns to group by, in every form in which people have them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.inference.groupings import groupings

PLACE, DEVICE = ["DK", "SE", None, "DK"], ["web", "web", "app", "app"]
BOTH = {"place": PLACE, "device": DEVICE}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_several_columns_are_one_grouping_each(make):
    place, device = groupings(make(BOTH), length=4)
    assert (place.column, device.column) == ("place", "device")
    assert device.names == ["app", "web"]
    rows = {name: numbers.tolist() for name, numbers in zip(place.names, place.rows(), strict=True)}
    assert rows == {"DK": [0, 3], "SE": [1], "(missing)": [2]}


@pytest.mark.parametrize("by", [[PLACE, DEVICE], (PLACE, DEVICE), np.array([DEVICE, DEVICE]).T])
def test_columns_without_names_are_numbered(by):
    assert [one.column for one in groupings(by, length=4)] in (["by[0]", "by[1]"], ["by[:, 0]", "by[:, 1]"])


def test_one_column_is_one_grouping_named_as_it_is():
    assert groupings(PLACE, length=4)[0].column == ""
    assert groupings(tuple(DEVICE), length=4)[0].names == ["app", "web"]
    assert groupings(pd.Series(DEVICE, name="device"), length=4)[0].column == "device"


def test_crossed_columns_are_the_combinations_that_occur():
    (both,) = groupings(BOTH, length=4, depth=2)[2:]
    assert both.column == "place x device"
    assert [both.names[k] for k in both.index] == [("DK", "web"), ("SE", "web"), ("(missing)", "app"), ("DK", "app")]


def test_columns_of_the_wrong_length_or_of_equal_names_are_refused():
    with pytest.raises(cal.InvalidPredictions, match=r"by\['device'\] has 3 rows, expected 4"):
        groupings({"place": PLACE, "device": DEVICE[:3]}, length=4)
    with pytest.raises(cal.InvalidPredictions, match="several columns named 'a'"):
        groupings(pd.DataFrame([[1, 2]] * 4, columns=["a", "a"]), length=4)
    with pytest.raises(cal.InvalidPredictions, match="no columns"):
        groupings({}, length=4)


def test_crosses_of_every_size_up_to_the_depth_and_of_too_many_combinations_for_a_table():
    rng = np.random.default_rng(0)
    by = {"a": rng.integers(0, 2, 50), "b": rng.integers(0, 3, 50), "c": rng.integers(0, 2, 50)}
    found = groupings(by, length=50, depth=3)
    assert [one.column for one in found] == ["a", "b", "c", "a x b", "a x c", "b x c", "a x b x c"]
    assert [found[-1].names[k] for k in found[-1].index] == list(zip(*map(np.ndarray.tolist, by.values()), strict=True))
    many = {"i": np.arange(1500), "j": np.arange(1500) // 2, "k": np.arange(1500) % 7}
    ij = groupings(many, length=1500, depth=2)[3]
    assert [ij.names[k] for k in ij.index] == [(k, k // 2) for k in range(1500)]


def test_part_of_the_rows_has_only_its_own_groups():
    part = groupings(BOTH, length=4, depth=2)[2].take(np.array([1, 3]))
    assert [part.names[k] for k in part.index] == [("SE", "web"), ("DK", "app")]
    assert len(part.names) == 2


def test_numbers_are_divided_at_quantiles_and_texts_are_not():
    age, place = groupings({"age": [30.0, 41.5, 70.0, np.nan], "place": PLACE}, length=4, quantiles=2)
    assert [age.names[k] for k in age.index] == ["<= 41.5", "<= 41.5", "> 41.5", "(missing)"]
    assert place.names == ["DK", "SE", "(missing)"]
