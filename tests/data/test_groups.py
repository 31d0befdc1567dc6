"""Any values name groups, and rows whose group is missing are one group."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.data.groups import (
    MISSING,
    MissingGroup,
    are_numbers,
    group_names,
    group_texts,
    groups,
    in_order,
    missing_name,
    quantile_groups,
)

NAMED = {
    "text": (["b", None, "a", "b"], ["a", "b", MISSING], [1, 2, 0, 1]),
    "whole numbers": ([2, None, 1, 2], [1, 2, MISSING], [1, 2, 0, 1]),
    "numbers": ([2.5, float("nan"), 1.0, 2.5], [1.0, 2.5, MISSING], [1, 2, 0, 1]),
    "nullable": (pd.Series([2, None, 1], dtype="Int64"), [1, 2, MISSING], [1, 2, 0]),
    "category": (pd.Series(["x", None, "y"], dtype="category"), ["x", "y", MISSING], [0, 2, 1]),
    "dates": (pd.to_datetime(["2024-02-01", None, "2024-01-01"]), ["2024-01-01", "2024-02-01", MISSING], [1, 2, 0]),
    "Polars": (pl.Series(["b", None]), ["b", MISSING], [0, 1]),
    "Arrow": (pa.array([True, None]), [True, MISSING], [0, 1]),
    "mask": (np.ma.array([5, 6, 7], mask=[0, 1, 0]), [5, 7, MISSING], [0, 2, 1]),
    "nothing but missing": ([None, np.nan, pd.NA, pd.NaT], [MISSING], [0, 0, 0, 0]),
    "its own name": (["(missing)", None, "a"], ["(missing)", "a", "((missing))"], [0, 2, 1]),
    "several types": ([1, "1", None, 1], [1, "1", MISSING], [0, 1, 2, 0]),
    "whole numbers beyond 64 bits": ([10**30, 1], [1, 10**30], [1, 0]),
    "tuples": (pd.Series([(1, 2), (1, 3)]), [(1, 2), (1, 3)], [0, 1]),
    "bytes": (np.array([b"x", b"a"]), [b"a", b"x"], [1, 0]),
    "dates of Python": ([date(2024, 2, 1), date(2023, 12, 1)], [date(2023, 12, 1), date(2024, 2, 1)], [1, 0]),
    "lists": (pd.Series([[1], [2], [1]]), ["[1]", "[2]"], [0, 1, 0]),
    "truth values": ([True, False], [False, True], [1, 0]),
}


@pytest.mark.parametrize(("values", "names", "index"), NAMED.values(), ids=NAMED)
def test_names_of_groups(values, names, index):
    found = group_names(values)
    assert found[0] == names
    assert found[1].tolist() == index
    named = groups("by", values)
    partition = np.unique(named, return_inverse=True)[1].reshape(-1)
    assert len(set(zip(partition.tolist(), index, strict=True))) == len(set(index))
    assert group_names(named)[1].tolist() == partition.tolist()


def test_large_numbers_beside_missing_ones_are_told_apart():
    assert len(group_names(pd.Series([2**53, 2**53 + 1, None], dtype="Int64"))[0]) == 3


def test_groups_must_be_one_value_per_row():
    with pytest.raises(cal.InvalidPredictions, match=r"by must have one value per row, got shape \(2, 2\)"):
        group_names(np.zeros((2, 2)))
    with pytest.raises(cal.InvalidPredictions, match="by has 2 rows, expected 3"):
        group_names(["a", "b"], length=3)
    with pytest.raises(cal.InvalidPredictions, match="group must be an array or a list"):
        cal.Binary([0, 1], [0.1, 0.2], group="land")


def test_the_missing_group_sorts_last():
    assert sorted([MissingGroup("m"), 3, 2]) == [2, 3, "m"]
    assert MissingGroup("m") >= 1
    assert MissingGroup("m") <= MissingGroup("m")
    assert not MissingGroup("m") <= 1


def some_rows(n=200):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("labels", [["DK", None], [1, None], [1.5, float("nan")], ["all rows", "(missing)"], [1, "1"]])
def test_every_function_of_groups_takes_them(labels):
    y, p = some_rows()
    by = pd.Series(labels * 100, dtype=object)
    names = group_names(by)[0]
    found = cal.by_group(cal.brier, y, p, by=by)
    assert list(found.estimates) == names
    assert {found[name].n for name in names} == {100}
    data = cal.Gaussian(y, p, p + 1, group=by)
    assert len(cal.estimators.group_coverage(data).details["groups"]) == 2
    assert len(cal.estimators.group_coverage(y, p, p + 1, by=by).details["groups"]) == 2
    clustered = cal.interval(cal.ece, cal.Binary(y, p, group=by)).interval
    assert clustered == cal.interval(cal.ece, cal.Binary(y, p, group=group_names(by)[1])).interval


def test_ranges_of_numbers_keep_equal_numbers_together_and_have_names_that_differ():
    names, index = quantile_groups([0] * 60 + list(range(40)), 4)
    assert names == ["<= 0", "(0, 14]", "> 14"]
    assert np.bincount(index).tolist() == [61, 14, 25]
    close = 1e6 + np.arange(8) / 100
    names, index = quantile_groups(close, 4)
    assert len(set(names)) == 4
    assert np.bincount(index).tolist() == [2, 2, 2, 2]
    assert quantile_groups(np.array([np.inf, -np.inf, 1.0, 2.0]), 2)[0] == ["<= 1", "> 1"]


@pytest.mark.parametrize("make", [list, lambda v: np.array(v, dtype=object)])
def test_whole_numbers_that_double_precision_rounds_are_groups_of_their_own(make):
    names, index = group_names(make([2**53, 2**53 + 1, 0.5]))
    assert (names, index.tolist()) == ([0.5, 2**53, 2**53 + 1], [1, 2, 0])
    names, index = group_names(make([2**53, 2**53 + 1, float("nan")]))
    assert (names, index.tolist()) == ([2**53, 2**53 + 1, "(missing)"], [0, 1, 2])
    assert len(set(groups("group", make([2**53, 2**53 + 1, 0.5])).tolist())) == 3


def test_examples_of_group_texts() -> None:
    assert group_texts([1, "1", "all rows"], taken="all rows") == ["1", "'1'", "'all rows'"]


def test_examples_of_missing_name() -> None:
    assert missing_name(["a", "(missing)"]) == "((missing))"


def test_examples_of_groups():
    names, index = group_names(["b", None, "a", "b"])
    assert (names, index.tolist()) == (["a", "b", "(missing)"], [1, 2, 0, 1])
    names, index = group_names([2.0, float("nan"), 1.0])
    assert (names, index.tolist()) == ([1.0, 2.0, "(missing)"], [1, 2, 0])
    names, index, numbers = in_order(np.array(["10", "2", "10"]))
    assert (names.tolist(), index.tolist(), numbers) == (["2", "10"], [1, 0, 1], True)
    assert (are_numbers(["1", "2.5"]), are_numbers([True, False]), are_numbers(["1", "all"])) == (True, False, False)
    names, index = quantile_groups([1.0, 2.0, 3.0, 40.0, 50.0, float("nan")], 2)
    assert (names, index.tolist()) == (["<= 3", "> 3", "(missing)"], [0, 0, 0, 1, 1, 2])
    assert quantile_groups(["a", "b", "c"], 2) is quantile_groups([1, 0, 1], 2) is None
