"""Every figure is drawn at its true size for a desk and for a phone."""

from calibrant.reporting.drawing.figure import both
from calibrant.reporting.drawing.markup import Markup


def test_both_widths_are_drawn():
    assert both(lambda width, style: Markup(f"{width:g} {style}"), 548) == ("548 wide", "352 narrow")
