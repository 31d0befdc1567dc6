"""Every row of the truth table of probabilities, from evidence without data."""

from dataclasses import replace
from itertools import product

import pytest

from calibrant.reporting.contents import Bin, Number
from calibrant.reporting.verdicts.binary import BINARY, where_the_error_sits
from calibrant.reporting.verdicts.evidence import Decisions, Probabilities, VerdictTest, Words
from calibrant.results.estimate import Component, Value
from tests.reporting.verdicts.evidence_samples import ACCEPTS, PLAIN, RARE, REJECTS, group, groups, maps, over_time

FRAUD = Words("payment", "fraud")
LOW, HIGH = Value(0.9, 0.86, 0.95), Value(1.1, 1.05, 1.16)

THREE = groups(group(), group("Chile", direction="too high"), group("Peru", flagged=False))

#: Evidence; rule, state, severity, direction, sentence.
TABLE = [
    (
        Probabilities(n=0, words=Words(source="0 of 4,310 rows match month = 13")),
        "B0", "cannot be judged", "caution", None,
        "Nothing to judge: no row has both a prediction and an outcome (0 of 4,310 rows match month = 13).",
    ),
    (
        Probabilities(n=1200, events=0, predicted=12.4 / 1200, observed=Value(0, 0, 0.0025), test=ACCEPTS, words=FRAUD),
        "B1", "too few", "caution", None,
        "No fraud was observed among 1,200 payments, where 12 were predicted; "
        "the true frequency is at most 0.25 % (95 % bound).",
    ),
    (
        Probabilities(n=1200, events=0, predicted=0.05, observed=Value(0, 0, 0.0025), test=REJECTS),
        "B1", "not calibrated", "problem", "too high",
        "No event was observed among 1,200 rows, where 60 were predicted; "
        "the true frequency is at most 0.25 % (95 % bound).",
    ),
    (
        Probabilities(n=40, events=40, predicted=0.9, observed=Value(1, 0.93, 1), test=ACCEPTS),
        "B1", "too few", "caution", None,
        "Every one of 40 rows had the event, where 36 events were predicted; "
        "the true frequency is at least 93 % (95 % bound).",
    ),
    (
        Probabilities(n=1, events=1, predicted=0.8, observed=Value(1, 0.0125, 1), test=ACCEPTS),
        "B1", "too few", "caution", None,
        "The only row had the event, where 0.8 events were predicted; "
        "the true frequency is at least 1.25 % (95 % bound).",
    ),
    (
        replace(PLAIN, n=180, events=6, test=ACCEPTS, error=Value(0.03, 0.0, 0.066), words=Words("patient", "death")),
        "B2", "too few", "caution", None,
        "Too few deaths to judge: 6 among 180 patients. An error of up to 7 points cannot be ruled out.",
    ),
    (
        replace(PLAIN, n=180, events=176, test=ACCEPTS, error=Value(0.03, 0.0, 0.066)),
        "B2", "too few", "caution", None,
        "Too few non-events to judge: 4 among 180 rows. An error of up to 7 points cannot be ruled out.",
    ),
    (
        replace(PLAIN, n=42, events=20, test=ACCEPTS, error=Value(0.05, 0.0, 0.2)),
        "B2", "too few", "caution", None,
        "Too few rows to judge: 42. An error of up to 20 points cannot be ruled out.",
    ),
    (
        replace(PLAIN, only_score=0.12, observed=Value(0.098, 0.086, 0.111), events=196, ratio=Value(0.82, 0.72, 0.93)),
        "B3", "not calibrated", "problem", "too high",
        "Every row has the same predicted probability, 12 %; the observed frequency is 9.8 % "
        "(95 % interval 8.6 to 11.1 %). Rows cannot be distinguished, so only the total can be checked.",
    ),
    (
        replace(PLAIN, decisions=Decisions(410, Value(0.83, 0.79, 0.87), 1590, Value(0.04, 0.031, 0.05))),
        "B4", "cannot be judged", "caution", None,
        "The predictions are decisions, not probabilities: of 410 rows predicted 1, 83 % had the event (79 to 87 %); "
        "of 1,590 rows predicted 0, 4.0 % had it (3.1 to 5.0 %).",
    ),
    (
        replace(PLAIN, test=None, untested="3 groups of dependent rows are too few"),
        "BU", "cannot be judged", "caution", None,
        "Calibration cannot be judged. The test could not be computed: 3 groups of dependent rows are too few. "
        "The estimated error is 3.1 points (95 % interval 2.2 to 4.0).",
    ),
    (
        replace(PLAIN, test=None, untested="it failed", only_score=0.3, error=Value(0.01, 0.0, 0.04)),
        "BU", "cannot be judged", "caution", None,
        "Calibration cannot be judged. The test could not be computed: it failed. "
        "An error of up to 4.0 points cannot be ruled out.",
    ),
    (
        replace(PLAIN, n=48000, events=24000, test=ACCEPTS, error=Value(0.001, 0, 0.0061)),
        "B5", "not significant", "note", None,
        "No significant miscalibration detected (n = 48,000); the calibration error is at most 0.7 points.",
    ),
    (
        replace(PLAIN, n=180, events=60, test=ACCEPTS, error=Value(0.03, 0, 0.0795)),
        "B6", "not significant", "caution", None,
        "No significant miscalibration detected, but 180 rows cannot rule out an error of up to 8 points.",
    ),
    (
        replace(PLAIN, error=Value(0.0031, 0.0022, 0.0039)),
        "B7", "small", "note", "mixed",
        "Statistically significant but small: the calibration error is 0.31 points (95 % interval 0.22 to 0.39).",
    ),
    (
        replace(RARE, words=FRAUD),
        "B8", "not calibrated", "problem", "too high",
        "Predicted fraud probabilities are too high: 610 frauds occurred where 732 were predicted, a ratio of 0.83 "
        "(95 % interval 0.77 to 0.90).",
    ),
    (
        replace(RARE, events=19390, predicted=0.9634, ratio=Value(19390 / 19268, 1.004, 1.009)),
        "B8", "not calibrated", "problem", "too low",
        "Predicted probabilities are too low: 610 non-events occurred where 732 were predicted, a ratio of 0.83 "
        "(95 % interval 0.76 to 0.89).",
    ),
    (
        replace(PLAIN, test=VerdictTest("multiscale test", 0.005, 999), error=Value(0.046, 0.0, 0.0999)),
        "B9", "not calibrated", "caution", "mixed",
        "Not calibrated (p = 0.005), but the size of the error is uncertain: 5 points, anywhere from 0 to 10.",
    ),
    (
        replace(PLAIN, events=540, ratio=LOW, slope=Value(0.72, 0.66, 0.78), recalibration=maps(moved=0.03)),
        "B10", "not calibrated", "problem", "too high",
        "Predicted probabilities are too high by 3.0 points on average (95 % interval 1.5 to 4.2), and too extreme "
        "(slope 0.72, 0.66 to 0.78).",
    ),
    (
        replace(PLAIN, ratio=HIGH, predicted=0.27, slope=None),
        "B11", "not calibrated", "problem", "too low",
        "Predicted probabilities are too low by 3.0 points on average (95 % interval 1.4 to 4.3).",
    ),
    (
        replace(PLAIN, slope=Value(0.8, 0.7, 0.9), error=Value(0.05, 0.031, 0.083), recalibration=maps(moved=0.025)),
        "B12", "not calibrated", "problem", "too extreme",
        "Predicted probabilities are too extreme: high ones too high, low ones too low, by 5 points on average "
        "(95 % interval 3 to 8).",
    ),
    (
        replace(PLAIN, slope=Value(1.3, 1.2, 1.4), error=Value(0.042, 0.035, 0.049), recalibration=maps(moved=0.04)),
        "B13", "not calibrated", "problem", "too moderate",
        "Predicted probabilities are too moderate: high ones too low, low ones too high, by 4.2 points on average "
        "(95 % interval 3.5 to 4.9).",
    ),
    (
        replace(
            PLAIN,
            error=Value(0.024, 0.019, 0.029),
            ranges=(
                Bin(0.1, 0.3, 500, 60, 0.2, Value(0.12), share=0.4),
                Bin(0.3, 0.6, 500, 225, 0.45, Value(0.44), share=0.05),
                Bin(0.6, 0.8, 500, 400, 0.7, Value(0.8), share=0.5),
            ),
        ),
        "B14", "not calibrated", "problem", "mixed",
        "Predicted probabilities are wrong by 2.4 points on average (95 % interval 1.9 to 2.9): too high at 10 to "
        "30 %, too low at 60 to 80 %.",
    ),
    (
        replace(PLAIN, test=ACCEPTS, groups=(THREE,)),
        "BG", "not calibrated", "problem", "mixed",
        "No significant miscalibration detected over all 2,000 rows, but 2 of 3 countries are miscalibrated after "
        "adjustment: Brazil (too low), Chile (too high).",
    ),
    (
        replace(PLAIN, test=ACCEPTS, over_time=over_time()),
        "BC", "not calibrated", "problem", "mixed",
        "No significant miscalibration detected over all 2,000 rows, but calibration changed "
        "from September 2025 on: until August 2025, totals agree (0.97, 0.89 to 1.06); since then, 67 events "
        "occurred where 120 were predicted (0.56, 0.47 to 0.66).",
    ),
]  # fmt: skip


def test_ranges_that_may_be_right_are_not_said_to_be_wrong():
    off = Bin(0.7, 0.9, 500, 350, 0.8, Value(0.7, 0.66, 0.74), share=0.6)
    open_ = Bin(0.1, 0.3, 500, 110, 0.2, Value(0.22, 0.18, 0.26), share=0.3)
    words = ("too high", "too low")
    assert where_the_error_sits((open_, off), words) == "too high at 70 to 90 %"
    assert where_the_error_sits((open_,), words) == ""


@pytest.mark.parametrize(
    ("evidence", "rule", "state", "severity", "direction", "sentence"),
    TABLE,
    ids=[f"{k}-{row[1]}" for k, row in enumerate(TABLE)],
)
def test_each_row_of_the_table(evidence, rule, state, severity, direction, sentence):
    found = BINARY.verdict(evidence)
    assert found.sentence == sentence
    assert (found.rule, found.state, found.severity, found.direction) == (rule, state, severity, direction)


@pytest.mark.parametrize(
    ("n", "events", "judged"), [(50, 20, True), (49, 20, False), (200, 10, True), (200, 9, False), (200, 191, False)]
)
def test_few_events_or_rows_are_not_judged(n, events, judged):
    found = BINARY.verdict(replace(PLAIN, n=n, events=events, test=ACCEPTS))
    assert (found.state != "too few") == judged


@pytest.mark.parametrize(
    ("made", "rule"),
    [(maps(moved=0.0251), "B12"), (maps(moved=0.0249), "B14"), (maps(-0.001, moved=0.05), "B14"), (None, "B14")],
)
def test_an_error_is_that_of_the_slope_only_if_a_map_of_two_parameters_removes_half_of_it(made, rule):
    wave = replace(PLAIN, slope=Value(0.8, 0.7, 0.9), error=Value(0.05, 0.03, 0.08), recalibration=made)
    found = BINARY.verdict(wave)
    assert found.rule == rule
    assert ("too extreme" in found.sentence) == (rule == "B12")


def test_scores_without_information_have_a_sentence_of_their_own():
    found = BINARY.verdict(replace(PLAIN, slope=Value(0.02, -0.05, 0.09), recalibration=maps(moved=0.1)))
    assert found.sentence == (
        "The scores do not order the rows: higher ones do not go with more events (slope "
        "0.02, 95 % interval −0.05 to 0.09)."
    )
    assert (found.rule, found.direction) == ("BI", "uninformative")
    assert found.what_to_do.startswith("Check how outcomes were joined")
    assert BINARY.verdict(replace(PLAIN, slope=Value(0.3, -0.1, 0.6))).rule != "BI"  # too few rows to say so


def test_intervals_of_another_confidence_say_so():
    found = BINARY.verdict(replace(RARE, levels=(0.9875, 0.95)))
    assert "a ratio of 0.83 (98.75 % interval 0.77 to 0.90)" in found.sentence


def test_a_number_that_excludes_its_ideal_is_one_of_several_looks():
    number = Number("Observed : expected", Value(0.9, 0.82, 0.99), 1.0, "ratio", "", "", "")
    quiet = replace(PLAIN, test=ACCEPTS, error=Value(0.001, 0.0, 0.002))
    assert BINARY.verdict(quiet).what_to_do == "Nothing needs to be done for calibration."
    found = BINARY.verdict(replace(quiet, numbers=(number,)))
    assert found.how_sure.endswith(
        "Observed : expected would be significant alone, but is among several numbers that were looked at, which "
        "together are not significant (p = 0.21). "
        "The mean calibration error is at most 0.20 percentage points, 0.7 % of the base rate."
    )
    assert (found.state, found.severity, found.what_to_do) == (
        "not significant",
        "caution",
        "More rows would settle this.",
    )
    assert "looked at" not in BINARY.verdict(replace(PLAIN, numbers=(number,))).how_sure


def test_how_sure_names_what_decided():
    level = Component("level", 0.004, 0.25, 1)
    found = BINARY.verdict(replace(RARE, test=replace(REJECTS, components=(level,), decided=level)))
    assert "(p ≤ 0.001). Decided by the level (observed : expected). The mean" in found.how_sure


@pytest.mark.parametrize("name", ["slope", "shape"])
def test_how_sure_quotes_the_level_where_something_else_decided(name):
    level, other = Component("level", 0.004, 0.25, 1), Component(name, 1e-9, 0.1, 1)
    found = BINARY.verdict(replace(RARE, test=replace(REJECTS, components=(level, other), decided=other)))
    assert found.rule == "B8"  # the headline speaks of the level
    assert "; the level is significant too (p = 0.016). The mean" in found.how_sure
    unclear = replace(level, p_value=0.02)  # above its share of 0.05
    found = BINARY.verdict(replace(RARE, test=replace(REJECTS, components=(unclear, other), decided=other)))
    assert "the level" not in found.how_sure


def test_few_events_that_suffice_to_reject_are_judged():
    found = BINARY.verdict(replace(RARE, n=10000, events=8, predicted=0.005, ratio=Value(0.16, 0.07, 0.3)))
    assert found.rule == "B8"
    assert found.direction == "too high"


#: Values on either side of every boundary of the tables.
TESTS = (ACCEPTS, REJECTS, None)
ERRORS = (Value(0.001, 0.0, 0.002), Value(0.03, 0.0, 0.06), Value(0.03, 0.02, 0.04), Value(0.003, 0.002, 0.004), None)
RATIOS = (Value(1.0, 0.95, 1.05), Value(0.8, 0.7, 0.9), Value(1.3, 1.15, 1.5), None)
SLOPES = (
    Value(1.0, 0.9, 1.1),
    Value(0.7, 0.6, 0.8),
    Value(1.4, 1.2, 1.7),
    Value(float("inf"), 1.1, float("inf")),
    None,
)
EVENTS = (0, 5, 60, 1000, 1970, 2000)
PARTS = ({}, {"groups": (groups(group(), group("Chile", direction="too high")),)}, {"over_time": over_time()})
DOINGS = (None, maps(), maps(-0.01, 0.02, effect="may not help"), maps(-0.03, -0.01, effect="makes it worse"))


@pytest.mark.no_cover
@pytest.mark.parametrize(("test", "error", "ratio", "slope"), list(product(TESTS, ERRORS, RATIOS, SLOPES)))
def test_no_combination_of_evidence_makes_a_claim_that_the_rules_forbid(test, error, ratio, slope):
    for events, part, made in product(EVENTS, PARTS, DOINGS):
        given = Probabilities(
            n=2000, events=events, predicted=0.3, test=test, error=error, ratio=ratio, slope=slope,
            recalibration=made, **part,
        )  # fmt: skip
        found = BINARY.verdict(given)
        rejects = test is not None and test.rejects
        _claims_follow_from(found, given, rejects=rejects)


def _claims_follow_from(found, given, *, rejects):
    parts = bool(given.groups or given.over_time)
    if found.state in ("not calibrated", "small"):
        assert rejects or parts, found
    if found.rule not in ("BG", "BC") and 0 < given.events < given.n:
        if found.direction in ("too high", "too low"):
            assert given.ratio is not None
            assert given.ratio.excludes(1.0)
        if found.direction in ("too extreme", "too moderate"):
            assert given.slope is not None
            assert given.slope.excludes(1.0)
    if "lowers cross-validated" in found.what_to_do:
        assert given.recalibration is not None
        assert given.recalibration.maps[0].gain.low > 0
    if "Strong evidence:" in found.how_sure:
        assert rejects
    if "Strong evidence" in found.how_sure:
        assert rejects or parts
    assert (found.severity == "note") <= (found.state in ("small", "not significant"))
    for text in (found.sentence, found.second, found.how_sure, found.what_it_means, found.what_to_do):
        assert "None" not in text
        assert "nan" not in text
        assert "  " not in text
        assert not text or text.endswith((".", ")"))
