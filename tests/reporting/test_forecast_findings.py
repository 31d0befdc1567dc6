"""The findings on predicted distributions."""

from dataclasses import replace

import pytest

from calibrant.reporting.contents import MapRow, Recalibration, Value
from calibrant.reporting.forecast_findings import of_forecasts
from calibrant.reporting.verdicts.forecasts import verdict
from tests.reporting.verdicts.test_forecasts import BASE, NARROW, PIT

SPLINE = MapRow("Spline of the spread", 5, Value(0.01), Value(0.0068, 0.0044, 0.0092), "best")
FACTOR = MapRow("One factor (std scaling)", 1, Value(0.01), Value(-0.005, -0.008, -0.002), "makes it worse")
HIDDEN = replace(BASE, ence=0.18, ence_null=(0.04, 0.09), spread_p=1e-5)

TABLE = [
    (NARROW, "CAL601", "problem", "The predicted spread is too narrow: error-to-spread ratio 1.27 (1.24 to 1.31)."),
    (BASE, "CAL202", "note", "No significant miscalibration detected (error-to-spread test, p = 0.40, n = 442)."),
    (replace(BASE, test=PIT, by_spread=False), "CAL201", "caution",
     "The predicted distributions are not calibrated (uniformity of F(y), p < 0.001, n = 442)."),
    (HIDDEN, "CAL201", "caution", "The predicted distributions are not calibrated (n = 442)."),
    (replace(BASE, variation=0.03), "CAL602", "caution",
     "The predicted spread hardly varies (coefficient of variation 0.03): it cannot tell easy rows from hard ones."),
    (replace(BASE, largest_share=0.31, largest_row=217, largest_error=4.2, largest_spread=0.01), "CAL603", "caution",
     "One row makes up 31 % of the mean squared standardised error (row 217: error 4.2, predicted spread 0.010)."),
    (HIDDEN, "CAL604", "caution",
     "Intervals cover as they should on average, although the spread of single rows is wrong (ENCE 18 %, "
     "calibrated 4 to "
     "9 %)."),
    (replace(NARROW, recalibration=Recalibration("CRPS", 1.0, (SPLINE, FACTOR))), "CAL605", "caution",
     "One factor is not enough: scaling all spreads would worsen CRPS by 0.5 % (0.2 to 0.8 %)."),
    (replace(NARROW, recalibration=Recalibration("CRPS", 1.0, (SPLINE,))), "CAL501", "note",
     "Recalibration helps: a spline of the spread lowers cross-validated CRPS by 0.68 % (0.44 to 0.92 %)."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "code", "severity", "text"), TABLE, ids=[f"{k}-{r[1]}" for k, r in enumerate(TABLE)]
)
def test_each_finding(evidence, code, severity, text):
    found = [f for f in of_forecasts(evidence, verdict(evidence)) if f.code == code]
    assert [(f.severity, f.text) for f in found] == [(severity, text)]


def test_quiet_forecasts_have_no_cautions():
    assert {f.code for f in of_forecasts(BASE, verdict(BASE))} == {"CAL202"}
    assert of_forecasts(replace(BASE, n=0), verdict(replace(BASE, n=0))) == ()
    few = replace(BASE, n=5, largest_share=0.4)
    assert "CAL603" not in {f.code for f in of_forecasts(few, verdict(few))}
