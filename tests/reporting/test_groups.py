"""The groups of a report."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.groups import group_tables, number_of_rows
from tests.reporting.samples import SPREAD

PARITY, HALF = np.arange(1500) % 2, np.repeat(["all rows", None], 750)


def test_a_report_shows_the_largest_groups_and_a_gate_sees_all():
    p = np.linspace(0, 1, 140)
    data, by = cal.Binary(p > 0.5, p), np.arange(140) % 70
    assert len(group_tables(data, by)) == 50
    assert len(group_tables(data, by, most=None)) == 70


def test_every_grouping_of_forecasts_names_its_groups():
    parts = group_tables(SPREAD, {"parity": PARITY, "half": HALF})
    assert list(parts) == ["parity = 0", "parity = 1", "half = 'all rows'", "half = (missing)"]
    assert {number_of_rows(part) for part in parts.values()} == {750}


def test_a_table_has_no_rows_to_group():
    with pytest.raises(cal.InvalidPredictions, match="one table per group"):
        group_tables(cal.BinTable.of(SPREAD, cal.table.LogGrid()), PARITY)
