"""The report on predicted distributions."""

import numpy as np
import pytest

import calibrant as cal
from tests.reporting.samples import SIGMA, SPREAD

rng = np.random.default_rng(1)


def test_regression_says_by_which_factor_errors_exceed_the_spread():
    found = cal.report(SPREAD)
    assert found.verdict.rule == "R1"
    assert found.verdict.direction == "too narrow"
    assert "CAL601" in {finding.code for finding in found.findings}
    assert found.headline == cal.scale_factor(SPREAD)
    assert [number.name for number in found.contents.numbers] == [
        "Error-to-spread ratio", "Coverage of 90 % intervals", "ENCE, 10 bins",
    ]  # fmt: skip
    assert found.contents.numbers[0].value.low == cal.interval(cal.scale_factor, SPREAD).interval.low


def test_groups_of_forecasts_are_tested():
    half = np.repeat(["a", "b"], 750)
    found = cal.report(SPREAD, by={"half": half})
    (section,) = found.groups
    assert {row.name: row.n for row in section.rows} == {"a": 750, "b": 750}
    assert all(row.direction == "too narrow" for row in section.rows)


@pytest.mark.parametrize(
    "data",
    [
        cal.Quantiles(SPREAD.y_true, [0.1, 0.5, 0.9], np.outer(SIGMA, [-1.28, 0, 1.28])),
        cal.Samples(SPREAD.y_true[:300], SIGMA[:300, None] * rng.standard_normal((300, 20))),
    ],
    ids=["quantiles", "samples"],
)
def test_other_forecasts_are_judged_by_where_outcomes_fall(data):
    found = cal.report(data)
    assert found.tests[0].method.startswith("PIT uniformity")
    assert found.verdict.rule == "R5"
    assert found.verdict.direction == "too narrow"


def test_the_range_of_a_calibrated_forecaster_is_not_called_an_interval():
    text = str(cal.report(SPREAD))
    assert "(range of a calibrated forecaster)" in text
