"""Periods in order, the change between them, names that fit."""

from dataclasses import replace
from xml.etree import ElementTree

from calibrant.reporting.drawing.canvas import Box
from calibrant.reporting.drawing.over_time import over_time_figure
from calibrant.results.estimate import Value
from tests.reporting import hand_made


def circles(svg, style):
    return [float(c.get("cx")) for c in ElementTree.fromstring(svg).iter("circle") if c.get("class") == style]


def test_periods_stand_in_order_and_flagged_ones_are_filled():
    figure = over_time_figure(hand_made.over_time(), hand_made.FACTS)
    for svg in (figure.svg_wide, figure.svg_narrow):
        calm, alarm = circles(svg, "dot"), circles(svg, "dotb")
        assert len(calm) == 8
        assert len(alarm) == 4
        assert sorted([*calm, *alarm]) == [*calm, *alarm]
    assert "since Sep 2025: 0.56 (0.47 to 0.66)" in figure.svg_wide
    assert ">Jan<" in figure.svg_wide


def test_the_band_is_named_where_the_words_cover_no_period():
    svg = over_time_figure(hand_made.over_time(), hand_made.FACTS).svg_wide
    words = "grey: range of a calibrated model"
    label = next(t for t in ElementTree.fromstring(svg).iter("text") if t.text == words)
    box = Box.of_text(float(label.get("x")), float(label.get("y")), words)
    for line in ElementTree.fromstring(svg).iter("line"):
        if line.get("class") in ("wh", "whb"):
            ends = sorted((float(line.get("y1")), float(line.get("y2"))))
            assert not box.meets(Box(float(line.get("x1")) - 1, ends[0], float(line.get("x1")) + 1, ends[1]))


def test_without_a_change_there_is_no_split():
    assert 'class="thr"' not in over_time_figure(hand_made.over_time(change=False), hand_made.FACTS).svg_wide


def test_many_periods_and_extreme_ratios_are_drawn():
    section = hand_made.over_time(change=False)
    odd = replace(section.periods[0], name="a period with a very long name", ratio=Value(0.0, 0.0, 1e9))
    figure = over_time_figure(replace(section, periods=(odd, *section.periods * 3)), hand_made.FACTS, spread=True)
    names = [t.text for t in ElementTree.fromstring(figure.svg_narrow).iter("text") if t.get("text-anchor") == "middle"]
    assert 1 <= len(names) <= 6
    assert names[0] == "a period with a…"
    assert "nan" not in figure.svg_wide
    assert "inf" not in figure.svg_wide


def test_one_period_is_enough():
    section = hand_made.over_time(change=False)
    assert over_time_figure(replace(section, periods=section.periods[:1]), hand_made.FACTS).svg_wide
