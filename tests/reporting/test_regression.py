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


def test_several_groupings_are_reported_each():
    parity, half = np.arange(1500) % 2, np.repeat(["a", "b"], 750)
    found = cal.report(SPREAD, by={"parity": parity, "half": half})
    assert {group.name for group in found.groups} == {"parity = 0", "parity = 1", "half = a", "half = b"}
    first = next(group for group in found.groups if group.name == "half = a")
    assert first.n == 750
    assert float(first.estimate) == pytest.approx(float(cal.ence(SPREAD.take(half == "a"))))
    tables = {k: cal.BinTable.of(SPREAD.take(parity == k), cal.table.LogGrid()) for k in (0, 1)}
    found = cal.report(cal.BinTable.of(SPREAD, cal.table.LogGrid()), by=tables)
    assert {(group.name, group.n) for group in found.groups} == {("0", 750), ("1", 750)}


def test_groups_of_other_forecasts_are_refused():
    data = cal.Quantiles(SPREAD.y_true, [0.1, 0.5, 0.9], np.outer(SIGMA, [-1.28, 0, 1.28]))
    with pytest.raises(cal.InvalidPredictions, match=r"needs means with standard deviations .* got Quantiles"):
        cal.report(data, by=np.arange(1500) % 2)


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
