"""Calibration over time: periods, changes that are found only where there is one, and the rows since then."""

import datetime

import duckdb
import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.inference.groupings import periods_of
from calibrant.reporting.contents import Recalibration
from calibrant.reporting.sections.groups import Since, over_time_section, since
from tests.reporting.sections.worlds import binary

DAYS = np.datetime64("2025-01-01") + np.arange(365)


def test_the_section_is_what_over_time_found():
    rng = np.random.default_rng(0)
    day, p = np.sort(rng.integers(0, 365, 6000)), rng.uniform(0.05, 0.6, 6000)
    data = cal.Binary(rng.random(6000) < np.where(day < 243, p, 0.5 * p), p)
    section, found = over_time_section(data, DAYS[day], column="day"), cal.over_time(data, DAYS[day])
    assert [one.ratio for one in section.periods] == [one.ratio for one in found]
    assert [one.name for one in section.periods if one.flagged] == found.found()
    assert (section.change.first, section.change.significant) == (found.change.first, True)


def test_missing_times_are_told():
    data = binary(400)
    times = np.repeat(["2025-01-01", "2025-01-02"], 200).astype(object)
    times[:7] = None
    found = over_time_section(data, times, column="day")
    assert found.omitted == "7 rows have no day and are left out."
    assert found.periods[0].n == 193


SINCE_CHANGE_DAYS = np.datetime64("2025-01-01") + np.arange(0, 400, 5)
TIMES = {
    "days": SINCE_CHANGE_DAYS,
    "times": SINCE_CHANGE_DAYS.astype("datetime64[s]") + np.timedelta64(3661, "s"),
    "texts of dates": np.array([str(day) for day in SINCE_CHANGE_DAYS], dtype=object),
    "dates": np.array([datetime.date.fromisoformat(str(day)) for day in SINCE_CHANGE_DAYS], dtype=object),
    "whole numbers": np.arange(80) // 4,
    "numbers": np.linspace(0, 1, 80),
    "names": np.array([f"it's {letter}" for letter in "abcdefgh" for _ in range(10)]),
}


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("column", ["t", "t of row"])
def test_condition_and_code_choose_the_rows_of_the_later_periods_of(kind, column):
    time = TIMES[kind]
    expected = periods_of(time, name="t", length=80).index >= 3
    found = since(column, time, 3)
    rows = duckdb.from_df(pd.DataFrame({column: time, "place": np.arange(80)}))
    chosen = rows.filter(found.condition).order("place").fetchnumpy()["place"]
    np.testing.assert_array_equal(chosen, np.flatnonzero(expected))
    if kind != "dates":
        np.testing.assert_array_equal(eval(found.code, {"time": time, "np": np}), expected)


def test_tables_by_period_are_named_by_their_periods_of():
    assert since("", {"9": 0, "10": 1}, 1) == Since("time", 10.0)
    assert since("month", {"2025-01": 0, "2025-02": 1}, 1).condition == "month >= '2025-02'"


def test_an_expression_is_taken_as_it_is():
    assert Since("month(day)", 3).condition == "month(day) >= 3"


def test_what_the_page_says_to_run_fits_the_recommended_map_to_the_rows_since_the_change():
    rng = np.random.default_rng(0)
    day = np.sort(rng.choice(np.datetime64("2025-01-01") + np.arange(365), 6000))
    p = rng.uniform(0.05, 0.6, 6000)
    y = rng.random(6000) < np.where(day < np.datetime64("2025-09-01"), p, 0.5 * p)
    found = cal.report(cal.Binary(y, p), time=pd.Series(day, name="paid"))
    section = next(one for one in found.contents.sections if isinstance(one, Recalibration))
    assert section.since == "paid >= '2025-09-01'"
    assert "since Sep 2025" in str(found)
    new = np.linspace(0.01, 0.99, 20)
    fitted = getattr(cal.recalibrate, section.fitted)()
    later = day >= np.datetime64("2025-09-01")
    expected = fitted.fit(p[later], y[later]).predict_proba(new)[:, 1]
    space = {"data": cal.Binary(y, p), "p_new": new, "time": day}
    exec(section.code, space)
    np.testing.assert_allclose(space["recalibrated"], expected, rtol=1e-9)
