"""Labels stand where they cover least."""

from calibrant.reporting.drawing.labels import Box, least_covered

INSIDE = Box(0, 0, 300, 300)
LINE = [(float(x), float(x)) for x in range(20, 280, 10)]
DRAWN = [Box(x - 3, y - 3, x + 3, y + 3) for x, y in LINE]


def test_a_label_beside_a_line_covers_none_of_it():
    place = least_covered("curve", LINE, DRAWN, INSIDE)
    box = Box.of_text(*place, "curve")
    assert INSIDE.holds(box)
    assert not any(box.meets(other) for other in DRAWN)


def test_where_all_is_covered_the_label_stands_where_least_is():
    half = [Box(0, 0, 300, 150)] * 3 + [Box(0, 150, 300, 300)]
    _, y = least_covered("curve", LINE, half, INSIDE)
    assert y > 150


def test_a_label_too_long_for_the_figure_is_left_out():
    assert least_covered("curve" * 100, LINE, [], INSIDE) is None
