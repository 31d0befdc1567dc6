"""Every row of the truth table of predicted distributions."""

from dataclasses import replace
from itertools import product

import pytest

from calibrant.reporting.verdicts.evidence import Forecasts, VerdictTest, Words
from calibrant.reporting.verdicts.forecasts import FORECASTS
from calibrant.results.estimate import Component, Value
from tests.reporting.verdicts.evidence_samples import group, groups, maps, over_time

UNSURE = VerdictTest("test of forecasts", 0.4)
TABLE_TEST = VerdictTest("error-to-spread test", 1e-6)


def decided_by(name, direction=0, *others):
    """A test that rejects by one of its components; others are clear too."""
    first = Component(name, 1e-6, 0.25, direction)
    return VerdictTest("test of forecasts", 1e-6, components=(first, *others), decided=first)


TOO_NARROW, TOO_WIDE, TOO_LOW = decided_by("spread", -1), decided_by("spread", 1), decided_by("bias", -1)
SHAPE = decided_by("shape")
BASE = Forecasts(
    n=442, words=Words("forecast"), test=UNSURE, ratio=Value(1.03, 0.96, 1.10), bias=Value(0.02, -0.05, 0.09),
    ence=0.05, ence_null=(0.03, 0.08), coverage=Value(0.9, 0.87, 0.93), variation=0.4,
)  # fmt: skip
NARROW = replace(BASE, test=TOO_NARROW, ratio=Value(1.27, 1.24, 1.31))

TABLE = [
    (NARROW, "R1", "not calibrated", "problem", "too narrow",
     "Predicted spread is too narrow: errors are 1.27 times the predicted standard deviation (95 % interval 1.24 to "
     "1.31)."),
    (replace(NARROW, test=TABLE_TEST), "R1", "not calibrated", "problem", "too narrow",
     "Predicted spread is too narrow: errors are 1.27 times the predicted standard deviation (95 % interval 1.24 to "
     "1.31)."),
    (replace(BASE, test=TOO_WIDE, ratio=Value(0.81, 0.78, 0.84)), "R2", "not calibrated", "problem", "too wide",
     "Predicted spread is too wide: errors are only 0.81 times the predicted standard deviation (95 % interval 0.78 to "
     "0.84)."),
    (replace(BASE, test=TOO_NARROW, ratio=Value(1.06, 1.03, 1.09)), "R1", "not calibrated", "caution", "too narrow",
     "Predicted spread is too narrow: errors are 1.06 times the predicted standard deviation (95 % interval 1.03 to "
     "1.09)."),
    (replace(BASE, test=TOO_NARROW, ratio=Value(1.008, 1.003, 1.013)), "R1", "small", "note", "too narrow",
     "Statistically significant but small: predicted spread is too narrow: errors are 1.008 times the predicted "
     "standard deviation (95 % interval 1.003 to 1.013)."),
    (replace(BASE, test=TOO_NARROW, ratio=None, level=0.8, coverage=Value(0.71, 0.69, 0.74)), "R1",
     "not calibrated", "problem", "too narrow",
     "Predicted intervals are too narrow: 71 % of outcomes lie inside the central 80 % intervals (95 % interval 69 to "
     "74 %)."),
    (replace(BASE, test=TOO_WIDE, ratio=Value(1.2, 1.1, 1.3)), "R2", "not calibrated", "caution", "too wide",
     "Predicted distributions are too wide (p < 0.001)."),
    (replace(NARROW, warning="neighbouring rows depend on each other"), "R1", "not calibrated", "caution", "too narrow",
     "Probably, predicted spread is too narrow: errors are 1.27 times the predicted standard deviation (95 % interval "
     "1.24 to 1.31). Neighbouring rows depend on each other."),
    (replace(BASE, test=decided_by("spread by width", -1), ence=0.18, ence_null=(0.04, 0.09)), "R3", "not calibrated",
     "caution", "mixed",
     "Wide forecasts are too narrow relative to narrow ones (p < 0.001): 18 % mean relative error of the spread, where "
     "a calibrated forecaster would show 4 to 9 %."),
    (replace(BASE, test=decided_by("bias by width", 1)), "R3", "not calibrated", "caution", "mixed",
     "Wide forecasts are too high relative to narrow ones (p < 0.001)."),
    (replace(BASE, test=TOO_LOW, bias=Value(0.31, 0.27, 0.35)), "R4", "not calibrated", "problem", "too low",
     "Forecasts are too low by 0.31 predicted standard deviations (95 % interval 0.27 to 0.35)."),
    (replace(BASE, test=TOO_LOW, bias=None), "R4", "not calibrated", "caution", "too low",
     "Forecasts are too low (p < 0.001)."),
    (replace(BASE, test=decided_by("bias", 1, Component("spread", 1e-4, 0.25, -1)), bias=Value(-0.15, -0.19, -0.11)),
     "R4", "not calibrated", "caution", "too high",
     "Forecasts are too high by 0.15 predicted standard deviations (95 % interval 0.11 to 0.19)."),
    (replace(BASE, test=decided_by("bias", 1, Component("spread", 1e-4, 0.25, -1)), bias=Value(-0.15, -0.19, -0.11),
             ratio=Value(1.2, 1.1, 1.3)),
     "R4", "not calibrated", "caution", "too high",
     "Forecasts are too high by 0.15 predicted standard deviations (95 % interval 0.11 to 0.19). Forecasts are also "
     "too narrow."),
    (replace(NARROW, test=decided_by("spread", -1, Component("bias", 1e-3, 0.25, 1)), bias=Value(-0.2, -0.3, -0.1)),
     "R1", "not calibrated", "problem", "too narrow",
     "Predicted spread is too narrow: errors are 1.27 times the predicted standard deviation (95 % interval 1.24 to "
     "1.31). Forecasts are also too high."),
    (replace(NARROW, test=decided_by("spread", -1, Component("bias", 1e-3, 0.25, 1)), bias=Value(-0.14, -0.32, 0.04)),
     "R1", "not calibrated", "problem", "too narrow",
     "Predicted spread is too narrow: errors are 1.27 times the predicted standard deviation (95 % interval 1.24 to "
     "1.31)."),
    (replace(BASE, test=SHAPE, coverage=Value(0.9, 0.86, 0.93)), "R5", "not calibrated", "caution", "mixed",
     "Outcomes do not fall evenly over their predicted distributions (p < 0.001), though 90 % lie inside the central "
     "90 % intervals (95 % interval 86 to 93 %)."),
    (replace(BASE, test=decided_by("tails", -1), coverage=Value(0.85, 0.83, 0.87)), "R5", "not calibrated", "problem",
     "mixed",
     "Tails are too light (p < 0.001): 85.0 % lie inside the central 90 % intervals (95 % interval 83.0 to 87.0 %)."),
    (replace(BASE, test=decided_by("skewness", -1), coverage=None), "R5", "not calibrated", "caution", "mixed",
     "Predicted distributions are too little skewed to the right (p < 0.001)."),
    (BASE, "R6", "not significant", "note", None,
     "No significant miscalibration detected (n = 442): errors are 1.03 times the predicted standard deviation (95 % "
     "interval 0.96 to 1.10)."),
    (replace(BASE, ratio=Value(1.03, 0.8, 1.3)), "R6", "not significant", "caution", None,
     "No significant miscalibration detected (n = 442): errors are 1.03 times the predicted standard deviation (95 % "
     "interval 0.80 to 1.30)."),
    (replace(BASE, ratio=None), "R6", "not significant", "note", None,
     "No significant miscalibration detected (n = 442): 90 % of outcomes lie inside the central 90 % intervals (95 % "
     "interval 87 to 93 %)."),
    (replace(BASE, n=18, ratio=Value(1.1, 0.81, 1.58)), "R7", "too few", "caution", None,
     "Too few forecasts to judge: 18. The ratio of errors to spread could be anywhere from 0.81 to 1.58."),
    (replace(BASE, variation=0.0), "R6", "not significant", "note", None,
     "No significant miscalibration detected (n = 442): errors are 1.03 times the predicted standard deviation (95 % "
     "interval 0.96 to 1.10). All forecasts have the same predicted spread, so it cannot tell certain ones "
     "from uncertain ones."),
    (replace(BASE, zero_spread=3), "R6", "not significant", "note", None,
     "No significant miscalibration detected (n = 442): errors are 1.03 times the predicted standard deviation (95 % "
     "interval 0.96 to 1.10). 3 forecasts have a predicted spread of 0 and an error above 0: their likelihood is "
     "0. They "
     "are left out of the ratio."),
    (replace(BASE, groups=(groups(group("1 day", direction="too narrow")),)), "RG", "not calibrated", "problem",
     "mixed",
     "No significant miscalibration detected over all 442 forecasts, but 1 of 1 countries is miscalibrated after "
     "adjustment: 1 day (too narrow)."),
    (replace(BASE, n=0), "B0", "cannot be judged", "caution", None,
     "Nothing to judge: no row has both a prediction and an outcome."),
    (replace(BASE, test=None, untested="errors are all 0"), "RU", "cannot be judged", "caution", None,
     "Calibration cannot be judged. The test could not be computed: errors are all 0."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "rule", "state", "severity", "direction", "text"),
    TABLE,
    ids=[f"{k}-{r[1]}" for k, r in enumerate(TABLE)],
)
def test_each_row(evidence, rule, state, severity, direction, text):
    found = FORECASTS.verdict(evidence)
    assert str(found) == text
    assert (found.rule, found.state, found.severity, found.direction) == (rule, state, severity, direction)


def test_a_group_against_the_rest_and_the_answers():
    wide = group("8 days", direction="too wide", ratio=Value(0.86, 0.81, 0.92))
    found = FORECASTS.verdict(replace(NARROW, groups=(groups(wide),), recalibration=maps()))
    assert found.second.startswith("8 days differs from the rest: there, the spread is too wide")
    assert found.what_it_means == "Intervals meant to hold 90 % of outcomes hold 90 % (87 to 93 %)."
    assert found.how_sure == (
        "Strong evidence: test of forecasts, p < 0.001. Decided by the spread. The mean standardised error is 0.02 "
        "(−0.05 to 0.09)."
    )
    assert "lowers cross-validated" in found.what_to_do
    assert FORECASTS.verdict(BASE).what_to_do == "Nothing needs to be done for calibration."
    assert FORECASTS.verdict(replace(BASE, n=50)).what_to_do == "Too few forecasts to fit or judge a map."
    warned = FORECASTS.verdict(replace(NARROW, warning="neighbours depend on each other", recalibration=maps()))
    assert warned.what_to_do.startswith("First say which rows depend on each other (group=)")


def test_a_bias_is_not_left_to_maps_of_the_spread():
    low = replace(BASE, test=TOO_LOW, bias=Value(0.31, 0.27, 0.35))
    spread, all_of_it = replace(maps(), fitted="StdScaling"), replace(maps(), fitted="ExchangeableStretch")
    mean = "Correct the mean of the forecasts first, and repeat the report: maps of the spread leave a bias as it is."
    assert FORECASTS.verdict(replace(low, recalibration=spread)).what_to_do == mean
    assert "lowers cross-validated" in FORECASTS.verdict(replace(low, recalibration=all_of_it)).what_to_do
    off = [replace(group(way, direction=way), observed=None) for way in ("too low", "too high")]
    found = FORECASTS.verdict(replace(BASE, groups=(groups(*off),)))
    assert found.sentence.endswith("miscalibrated after adjustment: too low (too low), too high (too high).")
    assert "give the model the group, because maps of the spread leave a bias as it is" in found.what_to_do
    against = FORECASTS.verdict(replace(low, groups=(groups(off[1]),)))
    assert against.second == "too high differs from the rest: there, forecasts are too high."


def test_dependent_neighbours_are_not_judged_where_blocks_of_them_do_not_reject():
    given = {"warning": "neighbours depend on each other", "recalibration": maps()}
    found = FORECASTS.verdict(replace(NARROW, of_blocks=0.05, **given))
    assert (found.rule, found.state) == ("R8", "cannot be judged")
    assert str(found) == (
        "Calibration cannot be judged: neighbouring forecasts depend on each other, which alone may explain how far "
        "outcomes deviate."
    )
    assert found.how_sure.startswith("Significance is not known")
    first = "First say which rows depend on each other (group=), and repeat the report."
    assert (found.what_it_means, found.what_to_do) == ("", first)
    assert FORECASTS.verdict(replace(BASE, **given)).what_to_do == first
    off = {"groups": (groups(group("1 day", direction="too narrow")),)}
    assert FORECASTS.verdict(replace(NARROW, of_blocks=float("nan"), **given)).rule == "R8"
    others = ({"of_blocks": 0.049}, {"of_blocks": 0.5} | off, {"of_blocks": 0.5, "over_time": over_time()})
    assert [FORECASTS.verdict(replace(NARROW, **given, **one)).rule for one in others] == ["R1"] * 3


def test_quantiles_that_outcomes_equal_say_little():
    tied = replace(BASE, ratio=None, coverage=None, ties="outcomes equal quantiles")
    found = FORECASTS.verdict(tied)
    assert str(found) == "No significant miscalibration detected (n = 442). Outcomes equal quantiles."
    assert found.what_to_do == "Give draws or the distribution itself."
    assert FORECASTS.verdict(replace(tied, coverage=BASE.coverage)).what_to_do.startswith("Nothing needs to be done")
    wide = FORECASTS.verdict(replace(tied, test=decided_by("spread by width", -1)))
    assert wide.sentence == "Wide forecasts are too narrow (p < 0.001)."


COVERED = {"test": TOO_NARROW, "ratio": None}
LIMITS = [
    ({"n": 29}, "too few", "caution"),
    ({"n": 30}, "not significant", "note"),
    ({"test": TOO_LOW, "bias": Value(0.25, 0.19, 0.31)}, "not calibrated", "caution"),
    ({"test": TOO_LOW, "bias": Value(0.25, 0.21, 0.29)}, "not calibrated", "problem"),
    ({"test": TOO_NARROW, "ratio": Value(1.012, 1.005, 1.019)}, "small", "note"),
    ({"test": TOO_NARROW, "ratio": Value(1.013, 1.005, 1.021)}, "not calibrated", "caution"),
    (COVERED | {"coverage": Value(0.87, 0.86, 0.879)}, "not calibrated", "problem"),
    (COVERED | {"coverage": Value(0.87, 0.86, 0.881)}, "not calibrated", "caution"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "state", "severity"), LIMITS)
def test_limits_of_severity(changes, state, severity):
    found = FORECASTS.verdict(replace(BASE, **changes))
    assert (found.state, found.severity) == (state, severity)


def test_one_row_is_named_from_a_fifth_of_the_error_on():
    given = [replace(BASE, n=n, largest_share=share).dominated for n, share in ((10, 0.2), (10, 0.19), (9, 0.2))]
    assert given == [True, False, False]


RATIOS = (Value(1.0, 0.95, 1.05), Value(1.3, 1.2, 1.4), Value(0.8, 0.7, 0.9), None)
BIASES = (None, Value(0.3, 0.2, 0.4), Value(0.05, 0.03, 0.07))
TESTS = (TOO_NARROW, TOO_WIDE, TOO_LOW, SHAPE, TABLE_TEST, UNSURE, None)


@pytest.mark.parametrize(("test", "ratio", "bias"), list(product(TESTS, RATIOS, BIASES)))
def test_no_claim_without_evidence(test, ratio, bias):
    found = FORECASTS.verdict(replace(BASE, test=test, ratio=ratio, bias=bias))
    assert (found.state in ("not calibrated", "small")) == (test is not None and test.rejects)
    for word, side in (("too narrow", -1), ("too wide", 1)):
        if word in found.sentence and test.decided is not None:
            assert (test.decided.name, test.decided.direction) == ("spread", side)
    assert "None" not in str(found)
    assert "nan" not in str(found)
