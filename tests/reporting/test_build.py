"""One function from predictions to a report, whatever the task."""

from html import unescape

import pytest

import calibrant as cal
from tests.reporting.samples import GROUPS, OVER


def test_a_table_gives_the_same_report_as_the_rows():
    table = cal.BinTable.of(OVER, cal.table.HybridGrid())
    found, rows = cal.report(table), cal.report(OVER)
    assert found.n == rows.n
    assert found.headline == pytest.approx(rows.headline, abs=2e-3)


def test_tables_without_rows_cannot_be_grouped_by_rows():
    with pytest.raises(ValueError, match="one table per group"):
        cal.report(cal.BinTable.of(OVER, cal.table.HybridGrid()), by=GROUPS)
    with pytest.raises(TypeError, match="table of all rows"):
        cal.report(OVER, by={})


def test_the_page_is_small_forbids_requests_and_names_no_outside_address(over):
    html = over.to_html()
    assert len(html.encode()) < 2_500_000
    assert "default-src 'none'" in unescape(html)
    assert 'src="http' not in html
    assert "@import" not in html
