"""A figure names itself, keeps inside its area, and its names do not clash with those of others."""

import re
from itertools import pairwise
from xml.etree import ElementTree

from calibrant.reporting.drawing.canvas import Canvas, Margins, hint, stroke, text_width
from calibrant.reporting.drawing.scales import Scale, percent_tick


def canvas(width=500):
    return Canvas(width, 300, Margins(50, 10, 10, 40), Scale(0.0, 1.0), Scale(0.0, 1.0))


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
    c = Canvas(200, 200, Margins(50, 10, 10, 40), Scale(0.001, 0.999, "log odds"), Scale(0.0, 1.0))
    c.x_ticks(percent_tick, most=9)
    labels = re.findall(r'<text x="([\d.]+)" y="177" text-anchor="middle">([^<]+)<', c.svg("t"))
    ends = [(float(x) - text_width(words) / 2, float(x) + text_width(words) / 2) for x, words in labels]
    assert len(ends) > 2
    assert all(a[1] < b[0] for a, b in pairwise(ends))


def test_a_decoration_is_hidden_from_readers_of_the_page():
    tree = ElementTree.fromstring(canvas().decoration("gauge"))
    assert tree.get("aria-hidden") == "true"
    assert tree.find("title") is None
