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
    (both,) = groupings(BOTH, length=4, cross=True)
    assert both.column == "place x device"
    assert [both.names[k] for k in both.index] == [("DK", "web"), ("SE", "web"), ("(missing)", "app"), ("DK", "app")]


def test_columns_of_the_wrong_length_or_of_equal_names_are_refused():
    with pytest.raises(cal.InvalidPredictions, match=r"by\['device'\] has 3 rows, expected 4"):
        groupings({"place": PLACE, "device": DEVICE[:3]}, length=4)
    with pytest.raises(cal.InvalidPredictions, match="several columns named 'a'"):
        groupings(pd.DataFrame([[1, 2]] * 4, columns=["a", "a"]), length=4)
    with pytest.raises(cal.InvalidPredictions, match="no columns"):
        groupings({}, length=4)
