"""Times as periods in order."""

import datetime

import numpy as np
import pytest

from calibrant.data.validation import InvalidPredictions
from calibrant.inference.groupings import MOST, periods_of

DAYS = np.datetime64("2024-12-30") + np.arange(800)


def put(values):
    return periods_of(values, name="when", length=len(values))


@pytest.mark.parametrize(
    ("count", "first", "last"),
    [
        (20, "2024-12-30", "2025-01-18"),
        (100, "week of 2024-12-30", "week of 2025-04-07"),
        (800, "Dec 2024", "Mar 2027"),
    ],
)
def test_the_shortest_periods_of_which_there_are_few(count, first, last):
    found = put(DAYS[:count])
    assert (found.names[0], found.names[-1]) == (first, last)
    assert len(found.names) <= MOST
    assert np.all(np.diff(found.index) >= 0)
    assert set(found.index) == set(range(len(found.names)))


def test_quarters_and_years():
    assert put(np.datetime64("2020-01-01") + np.arange(2000)).names[:2] == ["Q1 2020", "Q2 2020"]
    assert put(np.datetime64("1990-01-01") + 30 * np.arange(400)).names[0] == "1990"
    centuries = put(np.datetime64("1800-01-01") + 30 * np.arange(2800))
    assert len(centuries.names) <= MOST
    assert " to " in centuries.names[0]


@pytest.mark.parametrize(
    "values",
    [
        ["2025-03-01", "2025-01-31", "2025-01-31"],
        [datetime.date(2025, 3, 1), datetime.date(2025, 1, 31), datetime.date(2025, 1, 31)],
        [datetime.datetime(2025, 3, 1, 12), datetime.datetime(2025, 1, 31), datetime.datetime(2025, 1, 31, 23)],
        np.array(["2025-03-01T10", "2025-01-31T00", "2025-01-31T23"], dtype="datetime64[h]"),
    ],
)
def test_dates_of_every_kind(values):
    found = put(values)
    assert found.names == ["2025-01-31", "2025-03-01"]
    assert found.index.tolist() == [1, 0, 0]


def test_columns_of_pandas():
    pd = pytest.importorskip("pandas")
    assert put(pd.Series(DAYS[:3])).names == ["2024-12-30", "2024-12-31", "2025-01-01"]
    assert put(pd.period_range("2025-01", periods=3, freq="M")).names == ["Jan 2025", "Feb 2025", "Mar 2025"]


def test_numbers_by_value_or_in_steps():
    assert put([3, 1, 2]).names == ["1", "2", "3"]
    found = put(np.arange(1000))
    assert found.names[:2] == ["0 to 50", "50 to 100"]
    assert np.bincount(found.index).tolist() == [50] * 20


def test_texts_in_order_and_joined_where_too_many():
    assert put(["2025Q2", "2025Q1"]).names == ["2025Q1", "2025Q2"]
    found = put([f"sprint {k:03d}" for k in range(100)])
    assert found.names[0] == "sprint 000 to sprint 002"
    assert len(found.names) == 34


def test_missing_times_have_no_period():
    assert put(["2025-01-01", None, "2025-01-02"]).index.tolist() == [0, -1, 1]
    assert put([1.0, np.nan, 2.0]).index.tolist() == [0, -1, 1]
    assert put([None, None]).names == []


def test_a_wrong_length_names_the_column():
    with pytest.raises(InvalidPredictions, match="when"):
        periods_of([1, 2, 3], name="when", length=2)


@pytest.mark.parametrize(
    "times",
    [
        ["2026-05", "2026-06", "2026-06"],
        ["2026-05-01", "2026-06-01", "2026-06-01"],
        np.array(["2026-05", "2026-06", "2026-06"], dtype="datetime64[M]"),
    ],
)
def test_times_that_are_months_are_named_as_months(times):
    found = periods_of(times, name="time", length=3)
    assert found.names == ["May 2026", "Jun 2026"]
    assert found.index.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "times", [["2026-05-01", "2026-06-02"], ["2026-05-01", "2026-06-01T12:00"], ["2026-06-01"] * 2]
)
def test_days_that_are_not_all_first_of_months_stay_days(times):
    assert periods_of(times, name="time", length=2).names == sorted({text[:10] for text in times})
