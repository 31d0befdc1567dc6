"""Sections of several kinds of reports."""

from dataclasses import replace

import numpy as np

import calibrant as cal
from calibrant.reporting.assembling import Assembly, Options
from calibrant.reporting.contents import BinCounts, MapRow, Recalibration, Shares, Value
from calibrant.reporting.shared_sections import (
    group_sections,
    in_reading_order,
    judged,
    method_notes,
    time_section,
    with_readers_names,
    with_recent_map,
)
from tests.reporting.samples import CALIBRATED
from tests.reporting.verdicts.evidence_samples import ACCEPTS, PLAIN, group, groups, over_time


def test_order_is_that_of_reading():
    bins, shares = BinCounts((), (), (), (), ()), Shares(0.2, (), (), None, ())
    assert in_reading_order(Assembly([bins, shares])) == (shares, bins)


def test_sections_and_evidence_are_judged_alike():
    """A group that its own column flags, and all tests together do not, is flagged nowhere."""
    rows = (group("a", p=0.03), group("b", p=0.5, flagged=False, direction="not flagged"))
    given = replace(PLAIN, test=ACCEPTS, groups=(groups(*rows),), over_time=over_time(significant=False))
    made = Assembly([*given.groups, given.over_time])
    found = judged(given, made)
    assert made.sections == [*found.groups, found.over_time]
    assert not any(row.flagged for row in made.sections[0].rows)
    assert "The 3 tests of this report are adjusted for each other" in method_notes(found, "Own.")[1]
    assert method_notes(given, "Own.") == ("Own.",)


def test_columns_that_cannot_be_grouped_say_why():
    made = Assembly()
    options = Options(by=(("a", np.arange(3000) % 2), ("b", np.zeros(3000))))
    found = group_sections(made, CALIBRATED, options)
    assert [section.column for section in found] == ["a"]
    assert [left.section for left in made.omitted] == ["Groups by b"]


def test_time_only_where_it_was_given():
    assert time_section(Assembly(), CALIBRATED, Options()) is None
    found = time_section(Assembly(), CALIBRATED, Options(time=("month", np.arange(3000) % 12)))
    assert found.column == "month"
    assert len(found.periods) == 12


def test_after_a_change_a_map_is_fitted_to_recent_rows():
    rng = np.random.default_rng(0)
    month, p = np.arange(6000) * 12 // 6000, rng.uniform(0.05, 0.6, 6000)
    data = cal.Binary(rng.random(6000) < np.where(month < 8, p, 0.5 * p), p)
    options = Options(time=("month", month))
    plain = Recalibration("log loss", 0.5, (MapRow("Beta", 3, Value(0.0), Value(0.1), "best"),), command="all rows")
    section = with_recent_map(plain, data, options, time_section(Assembly(), data, options))
    found = section.recent
    assert found.gain.low > 0
    assert '--where "month >= 8"' in section.command
    assert "recent = time >= 8" in section.code
    calm = cal.Binary(rng.random(6000) < p, p)
    assert with_recent_map(plain, calm, options, time_section(Assembly(), calm, options)) is plain
    assert with_recent_map(plain, calm, Options(), None) is plain
    tables = {str(k): cal.BinTable.of(data.take(month == k), cal.table.HybridGrid()) for k in range(12)}
    whole, given = cal.BinTable.of(data, cal.table.HybridGrid()), Options(time=("month", tables))
    again = with_recent_map(plain, whole, given, time_section(Assembly(), whole, given))
    assert abs(again.recent.gain.value - found.gain.value) < 0.01
    assert '--where "month >= 8"' in again.command


def test_maps_have_the_names_of_readers():
    one = MapRow("Beta", 3, Value(0.0), Value(0.1), "best")
    made = with_readers_names(Recalibration("log loss", 0.5, (one,)))
    assert made.maps[0].name == "Beta calibration"
    assert with_readers_names(None) is None
