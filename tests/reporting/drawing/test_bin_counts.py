"""The ECE against the number of bins, with and without the calibration error."""

from dataclasses import replace

from calibrant.reporting.contents import Value
from calibrant.reporting.drawing.bin_counts import bin_counts_figure
from tests.reporting import hand_made


def test_both_binnings_the_null_and_the_error_are_drawn():
    figure = bin_counts_figure(hand_made.bin_counts(), Value(0.0083, 0.005, 0.0102))
    for svg in (figure.svg_wide, figure.svg_narrow):
        for style in ("nullband", "afterband", "curve2", "curve3", "curve"):
            assert svg.count(f'class="{style}"') == 1
        assert svg.count('class="dotf"') == 16
    assert "calibration error 0.8 (0.5 to 1.0)" in figure.svg_wide


def test_without_an_error_or_its_interval():
    section = hand_made.bin_counts()
    assert "curve2" not in bin_counts_figure(section, None).svg_wide
    assert "afterband" not in bin_counts_figure(section, Value(0.01)).svg_wide


def test_a_single_number_of_bins_is_a_figure_still():
    one = {
        name: getattr(hand_made.bin_counts(), name)[:1]
        for name in ("counts", "equal_mass", "equal_width", "null_low", "null_high")
    }
    assert bin_counts_figure(replace(hand_made.bin_counts(), **one), None).svg_wide
