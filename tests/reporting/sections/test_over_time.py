"""Calibration over time: periods, changes that are found only where there is one, and the rows since then."""

import datetime

import duckdb
import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.inference.changes_over_time import periods
from calibrant.numerics.special import expit
from calibrant.reporting.contents import CannotBuild, Recalibration
from calibrant.reporting.sections.over_time import Since, over_time_section, since
from tests.reporting.sections.running import run_commands
from tests.reporting.sections.worlds import binary

DAYS = np.datetime64("2025-01-01") + np.arange(365)


def year(rng, n=3000, *, change=0.0, slope=1.0, shift=0.0, drift=0.0, clusters=None):
    """A year of rows: `change` of the log odds from September on, scores that `drift`, dependence within clusters."""
    day = np.sort(rng.integers(0, 365, n))
    z = rng.normal(-1.5, 1.2, n) + drift * (day / 365 - 0.5)
    own = 0.0
    group = None
    if clusters is not None:
        group = rng.integers(0, clusters, n)
        own = rng.normal(0, 1.0, clusters)[group]
    y = rng.random(n) < expit(shift + slope * z + own + np.where(day >= 243, change, 0.0))
    return cal.Binary(y, expit(z), group=group), DAYS[day]


def test_a_change_is_found_where_it_is():
    data, days = year(np.random.default_rng(0), 12_000, change=-0.9)
    found = over_time_section(data, days, column="day")
    assert [one.name for one in found.periods][:2] == ["Jan 2025", "Feb 2025"]
    assert found.change.significant
    assert found.change.first == 8
    assert found.change.p_value == 0.001
    assert found.change.after.high < 0.8 < found.change.before.low
    assert [one.flagged for one in found.periods[8:]] == [True] * 4
    assert sum(one.n for one in found.periods) == 12_000


WORLDS = {
    "calibrated": {},
    "always off": {"shift": -0.7},
    "too extreme, drifting scores": {"slope": 0.6, "shift": -0.3, "drift": 2.0},
    "clusters": {"clusters": 150},
}


@pytest.mark.parametrize("world", WORLDS)
def test_changes_are_not_found_where_there_are_none(world):
    """At a level of 5 %, at most 6 of 40 reject with a probability of 99.6 %; so for periods of a calibrated model."""
    rng = np.random.default_rng(1)
    found = [over_time_section(*year(rng, 1200, **WORLDS[world]), column="day") for _ in range(40)]
    assert sum(one.change.significant for one in found) <= 6
    if world in ("calibrated", "clusters"):
        assert sum(any(period.flagged for period in one.periods) for one in found) <= 6


def test_forecasts():
    rng = np.random.default_rng(0)
    day = np.sort(rng.integers(0, 365, 4000))
    std = np.exp(0.3 * rng.normal(size=4000))
    noise = std * rng.standard_t(6, 4000) / np.sqrt(1.5)
    for factor, changed in ((1.0, False), (1.4, True)):
        data = cal.Gaussian(np.where(day >= 243, factor, 1.0) * noise, np.zeros(4000), std)
        found = over_time_section(data, DAYS[day], column="day")
        assert found.change.significant == changed
    assert abs(found.change.first - 8) <= 1
    assert found.change.after.low > 1.2


def test_tables_per_period():
    data, days = year(np.random.default_rng(0), 12_000, change=-0.9)
    month = days.astype("datetime64[M]").astype(int) % 12
    tables = {f"month {k + 1}": cal.BinTable.of(data.take(month == k), cal.table.HybridGrid()) for k in range(12)}
    found = over_time_section(cal.table.merge(list(tables.values())), tables, column="month")
    rows = over_time_section(data, days, column="day")
    assert found.change.first == rows.change.first
    assert found.periods[0].name == "month 1"
    assert [one.observed for one in found.periods] == [one.observed for one in rows.periods]


def test_missing_times_are_told():
    data = binary(400)
    times = np.repeat(["2025-01-01", "2025-01-02"], 200).astype(object)
    times[:7] = None
    found = over_time_section(data, times, column="day")
    assert found.omitted == "7 rows have no day and are left out."
    assert found.periods[0].n == 193


def test_what_has_no_order():
    data = binary(40)
    with pytest.raises(CannotBuild, match="two periods"):
        over_time_section(data, ["2025-01-01"] * 40, column="day")
    with pytest.raises(CannotBuild, match="two periods"):
        over_time_section(data, [None] * 40, column="day")
    with pytest.raises(CannotBuild, match="table per period"):
        over_time_section(cal.BinTable.of(data, cal.table.Distinct()), [1] * 40, column="day")


def test_a_period_without_events_or_expectations():
    data = cal.Binary([0, 0, 1, 0] * 10, [0.0, 0.0, 0.5, 0.5] * 10)
    found = over_time_section(data, [1, 1, 2, 2] * 10, column="week")
    assert np.isnan(found.periods[0].ratio.value)
    assert found.periods[1].ratio.value == pytest.approx(1.0)


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
def test_condition_and_code_choose_the_rows_of_the_later_periods(kind, column):
    time = TIMES[kind]
    expected = periods(time, name="t", length=80).index >= 3
    found = since(column, time, 3)
    rows = duckdb.from_df(pd.DataFrame({column: time, "place": np.arange(80)}))
    chosen = rows.filter(found.condition).order("place").fetchnumpy()["place"]
    np.testing.assert_array_equal(chosen, np.flatnonzero(expected))
    if kind != "dates":
        np.testing.assert_array_equal(eval(found.code, {"time": time, "np": np}), expected)


def test_tables_by_period_are_named_by_their_periods():
    assert since("", {"9": 0, "10": 1}, 1) == Since("time", 10.0)
    assert since("month", {"2025-01": 0, "2025-02": 1}, 1).condition == "month >= '2025-02'"


def test_an_expression_is_taken_as_it_is():
    assert Since("month(day)", 3).condition == "month(day) >= 3"


def test_what_the_page_says_to_run_fits_the_recommended_map_to_the_rows_since_the_change(tmp_path):
    rng = np.random.default_rng(0)
    day = np.sort(rng.choice(np.datetime64("2025-01-01") + np.arange(365), 6000))
    p = rng.uniform(0.05, 0.6, 6000)
    y = rng.random(6000) < np.where(day < np.datetime64("2025-09-01"), p, 0.5 * p)
    found = cal.report(cal.Binary(y, p), time=pd.Series(day, name="paid"))
    section = next(one for one in found.contents.sections if isinstance(one, Recalibration))
    assert "--where \"paid >= '2025-09-01'\"" in section.command
    assert "since Sep 2025" in str(found)
    pd.DataFrame({"y": y.astype(int), "p": p, "paid": day}).to_csv(tmp_path / "labelled.csv", index=False)
    new = np.linspace(0.01, 0.99, 20)
    pd.DataFrame({"p": new}).to_csv(tmp_path / "new.csv", index=False)
    run_commands(section.command, tmp_path)
    fitted = cal.recalibrate.load(tmp_path / "map.json")
    later = day >= np.datetime64("2025-09-01")
    expected = type(fitted)().fit(p[later], y[later]).predict_proba(new)[:, 1]
    np.testing.assert_allclose(pd.read_csv(tmp_path / "recalibrated.csv")["p_recalibrated"], expected, rtol=1e-9)
    space = {"y": y, "p": p, "p_new": new, "time": day}
    exec(section.code, space)
    np.testing.assert_allclose(space["recalibrated"], expected, rtol=1e-9)
