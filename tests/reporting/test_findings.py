"""The numbered findings: each rule speaks when it should."""

import numpy as np

import calibrant as cal
from tests.reporting.samples import CALIBRATED, P


def test_certain_forecasts_that_failed_are_a_problem():
    p = np.concatenate([np.full(50, 1.0), P])
    y = np.concatenate([np.zeros(50), CALIBRATED.y_true])
    assert "CAL101" in {finding.code for finding in cal.report(cal.Binary(y, p)).findings}


def test_a_binned_ece_that_is_mostly_bias_is_a_caution():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    found = cal.report(cal.Binary(rng.random(400) < p, p))
    assert "CAL401" in {finding.code for finding in found.findings}
