"""Before and after recalibration."""

import re

from calibrant.reporting.drawing.before_after import before_after_figure
from tests.reporting import hand_made


def test_before_and_after_have_a_curve_each():
    section = hand_made.reliability()
    after = hand_made.recalibration().after
    figure = before_after_figure(section.curve, after, section.bins["log odds"], "log odds", "Platt scaling")
    assert figure.title == "Before and after Platt scaling"
    for svg in (figure.svg_wide, figure.svg_narrow):
        assert re.findall(r'class="(curve2?)"', svg) == ["curve", "curve2"]
        assert svg.count("afterband") == 1
