"""Cells share one axis, markers stay inside their cell, and bold gaps are beyond chance."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from calibrant.reporting.drawing.table_cells import (
    FLAGGED,
    Forest,
    beyond_chance,
    bold_limit,
    gauge,
    share_bar,
    strip_columns,
    strip_table,
    strip_title,
)
from calibrant.results.estimate import Value
from tests.reporting import hand_made

RATIOS = [Value(0.64, 0.46, 0.89), Value(1.84, 1.35, 2.51), Value(1.0), Value(0.0, 0.0, 1e9)]


def circle(svg):
    return next(ElementTree.fromstring(svg).iter("circle"))


def test_rows_share_the_line_of_reference():
    forest = Forest.of_ratios(RATIOS)
    lines = {
        line.get("x1")
        for value in RATIOS
        for line in ElementTree.fromstring(forest.cell(value, FLAGGED, width=250)).iter("line")
        if line.get("class") == "ref"
    }
    assert len(lines) == 1


@pytest.mark.parametrize("value", RATIOS)
def test_markers_stay_inside_their_cell(value):
    dot = circle(Forest.of_ratios(RATIOS).cell(value, FLAGGED, width=128, size=1.0))
    assert float(dot.get("cx")) - float(dot.get("r")) >= 0
    assert float(dot.get("cx")) + float(dot.get("r")) <= 128


def test_larger_groups_have_larger_markers():
    forest = Forest.of_ratios(RATIOS)
    sizes = [float(circle(forest.cell(RATIOS[0], FLAGGED, width=128, size=s)).get("r")) for s in (0.0, 0.5, 1.0)]
    assert sizes == sorted(sizes)
    assert sizes[0] > 0


def test_the_ideal_is_always_named():
    crowded = Forest.of_ratios([Value(0.9, 0.1, 9.0)], most=9)
    assert ">1<" in crowded.head(90, "← high", "low →")


def test_differences_include_zero():
    forest = Forest.of_differences([Value(1.7, 0.9, 2.5)])
    assert forest.scale.holds(0.0)
    assert forest.ideal == 0


@pytest.mark.parametrize(
    ("value", "ideal", "log"),
    [
        (Value(0.8, 0.5, 1.0), 0.0, False),
        (Value(0.83, 0.77, 0.9), 1.0, True),
        (Value(82.5, 81.3, 83.6), 90.0, False),
        (Value(27.0), 0.0, False),
        (Value(0.0, 0.0, 0.0), 0.0, False),
        (Value(-0.3, -0.4, 0.1), 0.0, False),
        (Value(0.0), 1.0, True),
    ],
)
def test_gauges_hold_their_number(value, ideal, log):
    svg = gauge(value, ideal, below="less", above="more", log=log)
    assert 0 <= float(circle(svg).get("cx")) <= 300
    assert "more" in svg
    assert ("range" in svg) == (value.low is not None)


def test_bars_are_as_long_as_the_share():
    widths = [float(next(ElementTree.fromstring(share_bar(s)).iter("rect")).get("width")) for s in (0.0, 0.5, 1.0, 7.0)]
    assert widths == [0, 35, 70, 70]


def test_cells_show_the_gap_in_points():
    table = ElementTree.fromstring(strip_table(hand_made.classes(), "ticket"))
    cells = [cell for cell in table.iter("td") if "cell" in (cell.get("class") or "")]
    assert len(cells) == 56
    assert cells[-1].text == "–"
    gap = 100 * (0.6 * 0.0025 + 0.03 * 0.87 - 0.0025)
    assert cells[0].text == f"+{gap:.1f}"
    assert "400 tickets" in cells[0].get("data-tip")
    assert max(int(cell.get("class").split()[1][3:]) for cell in cells[:-1]) == 8


def test_cells_of_fewer_than_twenty_rows_show_a_dash():
    cells = (((19.0, 1.0, 5.0, 1.0), (20.0, 1.0, 5.0, 1.0)),)
    section = replace(hand_made.classes(), cells=cells, ranges=((0.0, 0.5), (0.5, 1.0)), shown=1)
    assert strip_columns(section) == [1]


def test_the_limit_is_adjusted_for_the_number_of_cells():
    section = hand_made.classes()
    assert 3.2 < bold_limit(section) < 3.4
    one = replace(section, cells=(section.cells[0][:1],))
    assert abs(bold_limit(one) - 1.96) < 0.001
    assert beyond_chance((100, 60, 50, 25), 1.96)
    assert not beyond_chance((100, 59, 50, 25), 1.96)
    assert not beyond_chance((10, 10, 1, 0.9), 1.96)


def test_titles():
    section = hand_made.classes()
    assert strip_title(section) == "High probabilities are too high, low ones too low"
    none = tuple(tuple((n, e, e, v) for n, o, e, v in line) for line in section.cells)
    assert strip_title(replace(section, cells=none)).startswith("No class differs")
    mirrored = tuple(tuple((n, 2 * e - o, e, v) for n, o, e, v in line) for line in section.cells)
    assert strip_title(replace(section, cells=mirrored)) == "High probabilities are too low, low ones too high"
    odd = (((100, 80, 50, 25), *none[0][1:]), *none[1:])
    assert strip_title(replace(section, cells=odd)) == "Other is off most below 0.5 %: 50 % predicted, 80 % observed"


def test_only_the_shown_classes_have_a_line():
    table = ElementTree.fromstring(strip_table(replace(hand_made.classes(), shown=3), "row"))
    assert len(list(table.iter("tr"))) == 4


def test_ranges_that_no_class_reaches_have_no_column():
    section = hand_made.classes()
    few = tuple((*line[:-1], (3, 1, 1.0, 0.5)) for line in section.cells)
    table = ElementTree.fromstring(strip_table(replace(section, cells=few), "row"))
    assert len([th for th in table.iter("th") if th.get("scope") == "col"]) == 7


def test_names_of_classes_are_escaped():
    section = hand_made.classes()
    rows = tuple(replace(row, name=hand_made.HOSTILE) for row in section.rows)
    assert "<img" not in strip_table(replace(section, rows=rows), hand_made.HOSTILE)


def test_columns_without_a_gap_that_shows_are_not_drawn():
    section = hand_made.classes()
    assert len(strip_columns(section)) > 2
    flat = tuple(tuple((1000.0, 3.0, 3.2, 3.0) for _ in section.ranges) for _ in section.cells)
    assert strip_columns(replace(section, cells=flat)) == []
    one = (((1000.0, 300.0, 3.0, 3.0), *flat[0][1:]), *flat[1:])
    assert strip_columns(replace(section, cells=one)) == [0]


def test_ratios_far_from_one_are_drawn_at_the_edge():
    scale = Forest.of_ratios([Value(0.0001), Value(10000.0)]).scale
    assert 0.03 < scale.low < 0.05
    assert 20 < scale.high < 35
