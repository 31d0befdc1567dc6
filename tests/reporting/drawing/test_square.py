"""Square diagrams: axes that hold their bins, the corners of the curve, words along the diagonal."""

from itertools import pairwise
from xml.etree import ElementTree

from calibrant.reporting.contents import Bin, Curve, Value
from calibrant.reporting.drawing.labels import Box
from calibrant.reporting.drawing.scales import Scale
from calibrant.reporting.drawing.square import (
    along,
    curve_points,
    diagonal,
    inside,
    probability_scale,
    square,
    write_along_the_diagonal,
)


def test_the_area_is_a_square_at_every_width():
    for width in (352, 548, 1040):
        canvas = square(width, Scale(0.0, 1.0), above=78)
        assert canvas.plot_width == canvas.plot_height
        assert canvas.top == 78


def test_the_diagonal_joins_equal_values():
    canvas = square(500, Scale(0.01, 0.9, "log odds"))
    diagonal(canvas)
    line = next(ElementTree.fromstring(canvas.svg("t")).iter("line"))
    assert float(line.get("x1")) == canvas.x(0.01)
    assert float(line.get("y2")) == canvas.y(0.9)


def test_values_along_an_axis_are_evenly_placed():
    for scale in (Scale(0.0, 1.0), Scale(0.001, 0.9, "log odds")):
        places = [scale.at(value) for value in along(scale)]
        steps = [b - a for a, b in pairwise(places)]
        assert max(steps) - min(steps) < 1e-9


def test_words_along_the_diagonal_avoid_what_is_drawn():
    canvas = square(548, Scale(0.0, 1.0))
    upper = Box(canvas.left + canvas.plot_width / 2, canvas.top, canvas.right, canvas.top + canvas.plot_height / 2)
    covered = write_along_the_diagonal(canvas, "perfect calibration", [upper])
    assert covered
    assert not any(box.meets(upper) for box in covered)
    assert all(inside(canvas).holds(box) for box in covered)
    assert write_along_the_diagonal(canvas, "much too long " * 40, []) == []


def test_rare_events_get_a_linear_axis_that_ends_near_them():
    rare = [Bin(0, 0.02, 100, 1, 0.01, Value(0.012, 0.001, 0.04))]
    assert probability_scale(rare, "linear").high == 0.05
    assert probability_scale(rare, "log odds").holds(0.01)
    assert probability_scale([], "log odds").holds(0.5)


def test_certain_bins_do_not_break_the_axis_of_log_odds():
    bins = [Bin(0, 0.1, 9, 0, 0.0, Value(0.0, 0.0, 0.3)), Bin(0.9, 1.0, 9, 9, 1.0, Value(1.0, 0.7, 1.0))]
    scale = probability_scale(bins, "log odds")
    assert 0 < scale.low < scale.high < 1


def test_the_curve_is_level_within_a_block():
    assert curve_points(Curve((0.1, 0.3), (0.2, 0.3), (0.0, 0.5))) == [(0.1, 0.0), (0.2, 0.0), (0.3, 0.5)]
