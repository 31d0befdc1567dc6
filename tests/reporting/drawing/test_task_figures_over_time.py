"""Periods in order, the change between them, names that fit."""

from dataclasses import replace
from xml.etree import ElementTree

from calibrant.reporting.contents import Change
from calibrant.reporting.drawing.canvas import Box
from calibrant.reporting.drawing.task_figures import over_time_figure
from calibrant.results.estimate import Value
from tests.reporting import hand_made


def circles(svg, style):
    return [float(c.get("cx")) for c in ElementTree.fromstring(svg).iter("circle") if c.get("class") == style]


def test_periods_stand_in_order_and_flagged_ones_are_filled():
    figure = over_time_figure(hand_made.over_time(), "fraud")
    for svg in (figure.svg_wide, figure.svg_narrow):
        calm, alarm = circles(svg, "dot"), circles(svg, "dotb")
        assert len(calm) == 8
        assert len(alarm) == 4
        assert sorted([*calm, *alarm]) == [*calm, *alarm]
    assert "since Sep 2025: 0.56 (0.47 to 0.66)" in figure.svg_wide
    assert ">Jan<" in figure.svg_wide


def test_the_band_is_named_where_the_words_cover_no_period():
    svg = over_time_figure(hand_made.over_time(), "fraud").svg_wide
    words = "grey: range of a calibrated model"
    label = next(t for t in ElementTree.fromstring(svg).iter("text") if t.text == words)
    box = Box.of_text(float(label.get("x")), float(label.get("y")), words)
    for line in ElementTree.fromstring(svg).iter("line"):
        if line.get("class") in ("wh", "whb"):
            ends = sorted((float(line.get("y1")), float(line.get("y2"))))
            assert not box.meets(Box(float(line.get("x1")) - 1, ends[0], float(line.get("x1")) + 1, ends[1]))


def test_without_a_change_there_is_no_split():
    assert 'class="thr"' not in over_time_figure(hand_made.over_time(change=False), "fraud").svg_wide


def test_many_periods_and_extreme_ratios_are_drawn():
    section = hand_made.over_time(change=False)
    odd = replace(section.periods[0], name="a period with a very long name", ratio=Value(0.0, 0.0, 1e9))
    figure = over_time_figure(replace(section, periods=(odd, *section.periods * 3)), "fraud", spread=True)
    names = [t.text for t in ElementTree.fromstring(figure.svg_narrow).iter("text") if t.get("text-anchor") == "middle"]
    assert 1 <= len(names) <= 6
    assert names[0] == "a period with a…"
    assert "nan" not in figure.svg_wide
    assert "inf" not in figure.svg_wide


def test_one_period_is_enough():
    section = hand_made.over_time(change=False)
    assert over_time_figure(replace(section, periods=section.periods[:1]), "fraud").svg_wide


def test_the_course_of_time_in_words():
    text = over_time_figure(hand_made.over_time(), "fraud").text
    assert "It changes in Sep 2025: 0.97 (0.89 to 1.06) before, 0.56 (0.47 to 0.66) since." in text
    assert text.endswith("Flagged after adjustment: Sep 2025, Oct 2025, Nov 2025 and Dec 2025.")
    assert over_time_figure(hand_made.over_time(change=False), "fraud").text.endswith("No period is flagged.")


def test_the_title_tells_the_change_or_counts_the_periods():
    section = hand_made.over_time()
    assert (
        over_time_figure(section, "fraud").title == "From Sep 2025 on, 0.56 times as many frauds occurred as predicted"
    )
    assert (
        over_time_figure(section, "x", spread=True).title
        == "From Sep 2025 on, errors are 0.56 times the predicted spread"
    )
    no_change = replace(section, change=None)
    assert over_time_figure(no_change, "fraud").title == "4 of 12 periods differ from the predictions beyond chance"
    weak = Change(8, Value(1.0, 0.9, 1.1), Value(0.9, 0.8, 1.1), 0.3, significant=False)
    quiet = replace(hand_made.over_time(change=False), change=weak)
    assert over_time_figure(quiet, "fraud").title == "No period differs from the predictions beyond chance"


def test_ratios_far_from_one_are_drawn_at_the_edge():
    section = hand_made.over_time(change=False)
    odd = [replace(section.periods[0], ratio=Value(value)) for value in (0.001, 1000.0)]
    svg = over_time_figure(replace(section, periods=(*odd, *section.periods)), "fraud").svg_wide
    ticks = [t.text for t in ElementTree.fromstring(svg).iter("text") if t.get("text-anchor") == "end"]
    assert [float(tick) for tick in ticks if tick] == [0.1, 0.2, 0.5, 1, 2, 5, 10]
