"""Figures in two widths: few round ticks, labels where they cover least, and names that do not clash."""

import re
from itertools import pairwise
from xml.etree import ElementTree

from calibrant.plot.scales import Scale
from calibrant.reporting.drawing.canvas import (
    Box,
    Canvas,
    Figure,
    hint,
    least_covered,
    percent_tick,
    plain_tick,
    stroke,
    text_width,
)


def canvas(width=500):
    return Canvas(width, 300, (50, 10, 10, 40), Scale(0.0, 1.0), Scale(0.0, 1.0))


def test_values_are_placed_and_far_ones_stay_near():
    c = canvas()
    assert (c.x(0), c.x(1)) == (50, 490)
    assert (c.y(0), c.y(1)) == (260, 10)
    assert c.x(1e9) < 2 * c.width


def test_a_figure_is_well_formed_and_has_a_name():
    c = canvas()
    c.x_ticks(percent_tick, "Across <&>")
    c.y_ticks(percent_tick)
    c.frame()
    c.corners(("Too low", "more"), ("Too high", "fewer"))
    c.area([0, 1], [0, 0], [1, 1], "nullband")
    c.curve([0, 1], [0, 1], "curve")
    c.clipped(hint("two\nlines <", stroke(0, 0, 1, 1, "wh")))
    text = c.svg("What it <shows>.", "wide")
    tree = ElementTree.fromstring(text)
    assert tree.find("title").text == "What it <shows>."
    assert tree.get("aria-labelledby") == tree.find("title").get("id")
    clip = tree.find("clipPath").get("id")
    assert set(re.findall(r"url\(#(\w+)\)", text)) == {clip}
    assert "CLIP" not in text


def test_figures_that_differ_have_different_names_and_equal_ones_equal():
    first, second = canvas(), canvas()
    first.curve([0, 1], [0, 1], "curve")
    second.curve([0, 1], [1, 0], "curve")
    names = [re.search(r'id="(f\w+)t"', c.svg("x", style))[1] for c in (first, second) for style in ("wide", "narrow")]
    assert len(set(names)) == 4
    assert first.svg("x") == first.svg("x")


def test_labels_of_ticks_do_not_touch():
    c = Canvas(200, 200, (50, 10, 10, 40), Scale(0.001, 0.999, "log odds"), Scale(0.0, 1.0))
    c.x_ticks(percent_tick, most=9)
    labels = re.findall(r'<text x="([\d.]+)" y="177" text-anchor="middle">([^<]+)<', c.svg("t"))
    ends = [(float(x) - text_width(words) / 2, float(x) + text_width(words) / 2) for x, words in labels]
    assert len(ends) > 2
    assert all(a[1] < b[0] for a, b in pairwise(ends))


def test_a_decoration_is_hidden_from_readers_of_the_page():
    tree = ElementTree.fromstring(canvas().decoration("gauge"))
    assert tree.get("aria-hidden") == "true"
    assert tree.find("title") is None


def test_ticks_in_words():
    assert percent_tick(0.1 + 0.2) == "30 %"
    assert percent_tick(1e-5) == "0.001 %"
    assert plain_tick(-1500.0) == "−1,500"


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


def test_both_widths_are_drawn():
    figure = Figure.of(canvas, 548, "A name.", "Title", "Words")
    for svg, width, style in ((figure.svg_wide, "548", "fig wide"), (figure.svg_narrow, "352", "fig narrow")):
        tree = ElementTree.fromstring(svg)
        assert (tree.get("width"), tree.get("class")) == (width, style)


def test_examples_of_percent_tick() -> None:
    assert percent_tick(0.003) == "0.3 %"


def test_examples_of_plain_tick() -> None:
    assert (plain_tick(1000.0), plain_tick(1.25), plain_tick(-0.5)) == ("1,000", "1.25", "−0.5")


def test_examples_of_least_covered() -> None:
    assert least_covered("curve", [(50, 50)], [Box(40, 45, 60, 55)], Box(0, 0, 100, 100)) is not None
