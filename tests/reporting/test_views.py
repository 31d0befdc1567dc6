"""The data of the figures are the numbers of the library."""

import pytest

import calibrant as cal
from tests.reporting.samples import OVER


def test_every_stop_of_the_slider_shows_the_library_s_ece(over):
    view = over.charts["stages"]["as stated"]["all rows"]
    for stop in over.charts["stops"]:
        for name, method in (("mass", cal.EqualMass), ("width", cal.EqualWidth)):
            shown = view["bins"][name][str(stop)]
            assert shown["ece"] == pytest.approx(cal.ece(OVER, bins=method(stop)), rel=1e-5)
            assert sum(point[2] for point in shown["points"]) == pytest.approx(3000, rel=1e-5)
