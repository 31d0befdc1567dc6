import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant as cal
from calibrant.data.validation import InvalidPredictions
from calibrant.monitor.deliveries import Delivery, period_name, period_numbers


@pytest.mark.parametrize(
    "dates",
    [
        ["2026-11-18", "2026-11-19"],
        np.array(["2026-11-18T10:00", "2026-11-19"], dtype="datetime64[s]"),
        pd.Series(pd.to_datetime(["2026-11-18 23:59", "2026-11-19 00:01"])),
        pl.Series([datetime.date(2026, 11, 18), datetime.date(2026, 11, 19)]),
        [datetime.date(2026, 11, 18), datetime.date(2026, 11, 19)],
    ],
    ids=["text", "numpy", "pandas", "polars", "python"],
)
def test_dates_of_any_kind_are_days(dates):
    found = period_numbers(dates, 2)
    assert found.dates
    assert [period_name(one, dates=True) for one in found.number] == ["2026-11-18", "2026-11-19"]


@pytest.mark.parametrize("value", [7, 7.0, np.int32(7), [7, 7], pd.Series([7, 7])])
def test_whole_numbers_are_periods(value):
    found = period_numbers(value, 2)
    assert not found.dates
    assert found.number.tolist() == [7, 7]


@pytest.mark.parametrize("value", [datetime.date(2026, 11, 18), "2026-11-18", np.datetime64("2026-11-18")])
def test_one_date_stands_for_all_rows(value):
    assert period_numbers(value, 3).number.tolist() == [20775] * 3


@pytest.mark.parametrize(
    ("value", "match"),
    [(["monday", "tuesday"], "dates"), ([1.5, 2.0], "whole"), ([1.0, np.nan], "known"), ([1], "1|length|rows")],
)
def test_other_times_are_refused(value, match):
    with pytest.raises(InvalidPredictions, match=match):
        period_numbers(value, 2)


def total(delivery, periods=1):
    return {one.series: one for one in delivery.sums(np.zeros(delivery.rows, int), periods)}


def test_sums_of_groups_add_up_to_those_of_all_rows():
    rng = np.random.default_rng(0)
    p, group = rng.random(200), rng.choice(["x", "y"], 200)
    found = total(Delivery.of(rng.random(200) < p, p, group=group))
    parts = sum(found[name].cells.sum(axis=(0, 1)) for name in ("x", "y"))
    np.testing.assert_allclose(parts, found[""].cells.sum(axis=(0, 1)))
    assert sum(found[name].squares.sum() for name in ("x", "y")) == pytest.approx(found[""].squares.sum())


def test_missing_groups_are_a_group():
    assert Delivery.of([0, 1], [0.3, 0.4], group=["a", None]).groups == ["a", "(missing)"]


def test_a_table_gives_the_sums_of_its_rows():
    rng = np.random.default_rng(1)
    p = rng.random(500)
    y = rng.random(500) < p
    rows = total(Delivery.of(y, p))[""]
    table = total(Delivery.of(cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct()), None))[""]
    np.testing.assert_allclose(table.cells, rows.cells, atol=1e-9)
    np.testing.assert_allclose(table.squares, rows.squares)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Delivery.of([0, 1], None), "y_true, y_prob"),
        (lambda: Delivery.of(cal.Binary([0, 1], [0.1, 0.2]), None, cluster=[1, 2]), "own columns"),
        (lambda: Delivery.of(cal.PositiveUnlabeled([0.5], [0.2, 0.3], prior=0.3), None), "PositiveUnlabeled"),
        (lambda: Delivery.of(cal.BinTable.of(cal.Binary([0, 1], [0.1, 0.2]), 2), None), "fine tables"),
        (
            lambda: Delivery.of(
                cal.BinTable.of(cal.Binary([0, 1], [0.1, 0.2], weight=[0.5, 1]), cal.table.Distinct()), None
            ),
            "without weights",
        ),
        (
            lambda: Delivery.of(
                cal.BinTable.of(cal.Binary([0, 1], [0.1, 0.2]), cal.table.Distinct()), None, group=["a", "b"]
            ),
            "one group",
        ),
        (
            lambda: Delivery.of([0, 1], [[0.2, 0.8], [0.6, 0.4]], group=["class 1", "b"]),
            "name of a class|classes|labels",
        ),
    ],
)
def test_what_cannot_be_watched_is_refused(make, match):
    with pytest.raises(InvalidPredictions, match=match):
        make()
