"""Before and after recalibration."""

import re

from calibrant.reporting.contents import Curve
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


def test_a_single_score_is_a_point():
    one = Curve((0.3,), (0.3,), (0.5,))
    figure = before_after_figure(one, Curve((0.5,), (0.5,), (0.5,)), (), "linear", "Platt scaling")
    assert figure.svg_wide.count('class="dotf"') == 1
    assert figure.svg_wide.count('class="dota"') == 1
