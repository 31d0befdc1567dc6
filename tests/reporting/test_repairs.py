"""Recalibration maps are measured on rows they were not fitted on."""

import pytest

import calibrant as cal
from calibrant.reporting.part import Part
from calibrant.reporting.repairs import repairs
from tests.reporting.samples import OVER


def test_a_repair_is_measured_on_rows_it_did_not_see():
    tried, after = repairs(Part(OVER))
    assert tried[0].gain > 0
    assert tried[0].error < 0.03
    assert after.n == 3000
    assert cal.log_loss(after) == pytest.approx(tried[0].loss)
