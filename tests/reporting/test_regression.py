"""The report on predicted distributions."""

import json

import numpy as np
import pytest

import calibrant as cal
from tests.reporting.samples import SIGMA, SPREAD

rng = np.random.default_rng(1)


def test_regression_says_by_which_factor_errors_exceed_the_spread():
    found = cal.report(SPREAD, by=np.arange(1500) % 2)
    assert "errors are 1.4" in found.verdict or "errors are 1.3" in found.verdict
    assert "CAL601" in {finding.code for finding in found.findings}
    assert found.repairs[0].error < 0.1
    assert {curve["across"] for curve in found.charts["curves"]} >= {"predicted spread", "F(y)", "nominal coverage"}
    assert len(found.groups) == 2


@pytest.mark.parametrize(
    "data",
    [
        cal.Quantiles(SPREAD.y_true, [0.1, 0.5, 0.9], np.outer(SIGMA, [-1.28, 0, 1.28])),
        cal.Samples(SPREAD.y_true[:300], SIGMA[:300, None] * rng.standard_normal((300, 20))),
    ],
    ids=["quantiles", "samples"],
)
def test_other_forecasts_are_reported_with_what_they_allow(data):
    found = cal.report(data)
    assert found.measures
    assert found.verdict
    json.loads(found.to_json())
