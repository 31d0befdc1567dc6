"""The class strip: every cell with enough rows has its number; bold ones are beyond chance."""

from dataclasses import replace
from xml.etree import ElementTree

from calibrant.reporting.drawing.strip import beyond_chance, bold_limit, strip_table, strip_title
from tests.reporting import hand_made


def test_cells_show_the_gap_in_points():
    table = ElementTree.fromstring(strip_table(hand_made.classes(), "ticket"))
    cells = [cell for cell in table.iter("td") if "cell" in (cell.get("class") or "")]
    assert len(cells) == 56
    assert cells[-1].text == "–"
    gap = 100 * (0.6 * 0.0025 + 0.03 * 0.87 - 0.0025)
    assert cells[0].text == f"+{gap:.1f}"
    assert "400 tickets" in cells[0].get("data-tip")


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
    assert (
        strip_title(replace(section, cells=odd)) == "Other is off most below 0.5 %: 50.0 % predicted, 80.0 % observed"
    )


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
