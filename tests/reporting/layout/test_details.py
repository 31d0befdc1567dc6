"""Everything that was measured can be read, folded away."""

import calibrant as cal
from calibrant.reporting.layout.details import details_block
from calibrant.reporting.model import Measure, Report
from calibrant.results.estimate import Significance
from tests.reporting import hand_made
from tests.reporting.samples import OVER


def test_estimates_tests_and_notes_have_a_fold_each():
    measures = (Measure(cal.ece(OVER), headline=True), Measure(cal.brier(OVER)))
    tests = (Significance(1.0, 0.001, "MultiScale(draws=999, seed=0)", 3000),)
    body = details_block(Report("Title", hand_made.binary(), measures, tests)).body
    assert body.count('<details class="fold">') == 4
    assert "ECE, 15 equal-mass bins" in body
    assert "Multiscale test (999 simulations)" in body
    assert "≤ 0.001" in body
    assert "<b>Bands.</b>" in body
    assert "<code>group=</code>" in body


def test_what_is_missing_has_no_fold():
    body = details_block(Report("Title", hand_made.binary(notes=()))).body
    assert body.count('<details class="fold">') == 1


def test_notes_are_escaped():
    assert "<img" not in details_block(Report("Title", hand_made.hostile())).body
