"""Positive-unlabeled rows: the error over assumed shares, and the implied shares."""

from dataclasses import replace
from xml.etree import ElementTree

from calibrant.reporting.drawing.shares import implied_figure, shares_figure
from tests.reporting import hand_made


def test_the_assumed_share_is_marked():
    figure = shares_figure(hand_made.shares())
    assert "assumed: 19" in figure.svg_wide
    assert figure.svg_wide.count('class="dotf"') == 1
    outside = shares_figure(replace(hand_made.shares(), prior=0.5))
    assert "assumed:" not in outside.svg_wide
    right = shares_figure(replace(hand_made.shares(), prior=0.265))
    assert "assumed:" in right.svg_wide


def test_implied_shares_are_square():
    figure = implied_figure(hand_made.shares(), significant=True)
    tree = ElementTree.fromstring(figure.svg_wide)
    frame = next(rect for rect in tree.iter("rect") if rect.get("class") == "frame")
    assert frame.get("width") == frame.get("height")
    assert len(list(tree.iter("circle"))) == 12
