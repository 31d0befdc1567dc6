"""How sure, what it means, what to do."""

from dataclasses import replace

import pytest

from calibrant.reporting.contents import Bin, MapRow, Recalibration, Threshold
from calibrant.reporting.verdicts.answers import best_map, evidence_in_words, how_sure, what_it_means, what_to_do
from calibrant.reporting.verdicts.evidence import Decisions, Probabilities, VerdictTest, Words
from calibrant.reporting.verdicts.truth_table import Row
from calibrant.results.estimate import Value
from tests.reporting.verdicts.evidence_samples import ACCEPTS, PLAIN, RARE, group, groups, maps, over_time


def advised(given, state):
    """What to do beside a verdict of this state."""
    return what_to_do(given, Row("B11", state, None, ""))


def test_there_is_always_something_to_do():
    nothing = Probabilities(n=0)
    assert advised(nothing, "cannot be judged") == "Give rows that have both a prediction and an outcome."
    assert advised(PLAIN, "cannot be judged").startswith("Give more rows that do not depend on each other")
    assert advised(PLAIN, "not calibrated").startswith("Recalibrate on more rows")
    assert advised(replace(PLAIN, error=Value(0.0, 0.0, 0.0)), "not significant")


@pytest.mark.parametrize(
    ("p", "draws", "text"),
    [
        (0.001, 999, "Strong evidence: none of 999 simulated calibrated models deviated as much (p ≤ 0.001)."),
        (0.005, 199, "Clear evidence: none of 199 simulated calibrated models deviated as much (p ≤ 0.005)."),
        (0.013, 999, "Some evidence: 12 of 999 simulated calibrated models deviated as much or more (p = 0.013)."),
        (
            0.21,
            999,
            "No significant evidence: 209 of 999 simulated calibrated models deviated as much or more (p = 0.21).",
        ),
        (0.0012, 999, "Clear evidence: x test, p = 0.001."),  # not a rank, so that no number deviated as much
        (1e-9, 999, "Strong evidence: none of 999 simulated calibrated models deviated as much (p ≤ 0.001)."),
        (1e-9, None, "Strong evidence: x test, p < 0.001."),
    ],
)
def test_strength_of_evidence(p, draws, text):
    assert evidence_in_words(VerdictTest("x test", p, draws)) == text


def test_the_error_is_told_relative_to_the_base_rate():
    assert "0.8 percentage points (0.5 to 1.0), 26 % of the base rate" in how_sure(RARE)
    assert "at most 0.42 percentage points, 1.4 % of the base rate" in how_sure(
        replace(PLAIN, error=Value(0, 0, 0.0042))
    )
    assert "rarer outcome" in how_sure(replace(PLAIN, events=1900))


def test_evidence_of_a_change_or_in_groups_comes_first_where_it_decides():
    changed = replace(PLAIN, test=ACCEPTS, over_time=over_time())
    assert how_sure(changed).startswith(
        "Strong evidence of a change: p ≤ 0.001, adjusted for the search over all times"
    )
    assert "Over all 2,000 rows: no significant evidence:" in how_sure(changed)
    grouped = replace(PLAIN, test=ACCEPTS, groups=(groups(group(p=0.004)),))
    assert how_sure(grouped).startswith("Clear evidence in groups: p = 0.004, adjusted for their number.")
    assert how_sure(replace(changed, test=PLAIN.test)).startswith("Strong evidence: none of 999")


def test_weights_clusters_and_tables_are_told():
    text = how_sure(replace(PLAIN, effective_n=1134.0, clusters=204, cells=65536))
    assert "2,000 rows, effective sample size 1,134." in text
    assert "Intervals allow for 204 groups of dependent rows." in text
    assert "Computed from a table of 65,536 cells; rows are treated as independent." in text


def test_what_it_means_at_a_threshold():
    above = Bin(0.1, 1.0, 1904, 316, 0.233, Value(0.166, 0.15, 0.183))
    around = Bin(0.08, 0.12, 400, 36, 0.1, Value(0.09, 0.065, 0.12))
    given = replace(RARE, words=Words("payment", "fraud"), threshold=Threshold(0.1, around, above))
    assert what_it_means(given) == (
        'Of the 1,904 payments above your threshold of 10 %, 16.6 % had the event "fraud" (15.0 to 18.3 %); the '
        "predictions say "
        "23.3 %. At the threshold itself, the gap could be chance."
    )
    off = replace(around, observed=Value(0.05, 0.03, 0.08))
    assert "Around the threshold itself, 5 % had it (3 to 8 %), where 10 % were predicted" in what_it_means(
        replace(given, threshold=Threshold(0.1, off, above))
    )


def test_what_it_means_without_a_threshold_speaks_of_the_highest_scores():
    top = Bin(0.4, 0.9, 1000, 316, 0.55, Value(0.316, 0.288, 0.356))
    assert what_it_means(replace(PLAIN, top=top)) == (
        "Of the 1,000 rows with the highest scores (above 40 %), 32 % had the event (29 to 36 %); the "
        "predictions say 55 %."
    )
    assert "were right" in what_it_means(replace(PLAIN, top=top, confidence=True))
    assert what_it_means(PLAIN) == ""
    assert what_it_means(replace(PLAIN, top=replace(top, n=9))) == ""
    nearly = what_it_means(replace(PLAIN, top=replace(top, low=1 - 1e-7, high=1 - 1e-8)))
    assert "with the highest scores (nearly 100 %), 32 % had" in nearly  # no score is above 100 %
    assert "with the highest score, 90 %, 32 % had" in what_it_means(replace(PLAIN, top=replace(top, low=0.9)))


def test_no_test_is_mentioned_where_there_is_none():
    top = Bin(0.4, 0.9, 1000, 316, 0.55, Value(0.316, 0.288, 0.356))
    untested = what_it_means(replace(PLAIN, top=top, test=None))
    assert untested.endswith("would be significant alone, but no test says what all scores together show.")
    assert what_it_means(replace(PLAIN, top=top, test=ACCEPTS)).endswith("alone, but the test allows for all scores.")


def test_what_it_means_speaks_of_other_scores_where_only_these_are_wrong():
    top = Bin(0.4, 0.9, 1000, 540, 0.55, Value(0.54, 0.51, 0.57))
    ranges = (
        Bin(0.0, 0.1, 3000, 130, 0.05, Value(0.043, 0.035, 0.049), share=0.2),
        Bin(0.1, 0.2, 2000, 300, 0.1, Value(0.15, 0.134, 0.166), share=0.5),
        Bin(0.2, 1.0, 2000, 900, 0.46, Value(0.45, 0.43, 0.47), share=0.3),
    )
    given = replace(PLAIN, top=top, ranges=ranges)
    assert what_it_means(given) == (
        "Of the 2,000 rows with scores from 10 % to 20 %, 15.0 % had the event (13.4 to 16.6 %); the predictions say "
        "10 %. For those with the highest scores (above 40 %) the gap could be chance."
    )
    lowest = replace(given, ranges=ranges[:1], top=replace(top, low=0.9))
    assert "rows with scores up to 10 %, 4.3 % had" in what_it_means(lowest)
    assert "For those with the highest score, 90 %, the gap" in what_it_means(lowest)
    above = replace(given, ranges=(replace(ranges[1], high=0.5),))  # a range that holds some of the highest scores
    assert what_it_means(above).startswith("Of the 1,000 rows with the highest scores")
    wrong_top = replace(given, top=replace(top, observed=Value(0.5, 0.47, 0.53)))
    assert what_it_means(wrong_top).startswith("Of the 1,000 rows with the highest scores")
    calibrated = replace(given, test=replace(PLAIN.test, p_value=0.4))
    assert what_it_means(calibrated).startswith("Of the 1,000 rows with the highest scores")


def test_a_map_is_recommended_only_with_the_interval_of_its_gain():
    assert best_map(maps()) == (
        "Platt scaling lowers cross-validated log loss by 1.7 % (0.9 to 2.5 %); the remaining error is at "
        "most 0.30 points."
    )
    remains = maps(remaining=Value(0.011, 0.006, 0.016))
    assert best_map(remains).endswith("; an error of 1.1 points (0.6 to 1.6) remains.")
    assert best_map(maps(-0.004, 0.019, effect="may not help")) == (
        "Recalibration may not help: the change in log loss lies between 0.4 % worse and 1.9 % better. "
        "More rows would settle this."
    )
    assert best_map(maps(-3.4, 0.99, effect="may not help")) == (
        "Recalibration may not help: log loss may more than double as well as fall. More rows would settle this."
    )
    assert best_map(maps(-0.02, -0.01, effect="makes it worse")).startswith("Do not recalibrate: every map tried")
    best = maps().maps[0]
    other = replace(best, name="Beta calibration", effect="helps")
    assert best_map(Recalibration("log loss", 0.4, (best, other))).endswith("Other maps perform equally well.")
    unknown = MapRow("Platt scaling", 2, Value(0.0), Value(0.01), "best")
    assert best_map(Recalibration("log loss", 0.4, (unknown,))) == ""


def test_nothing_promises_that_an_error_vanishes():
    assert "0.0 points" not in best_map(maps(remaining=Value(0.0, 0.0, 0.0004)))


def test_what_to_do():
    assert advised(replace(PLAIN, test=ACCEPTS, error=Value(0, 0, 0.01)), "not significant") == (
        "Nothing needs to be done for calibration."
    )
    more = advised(replace(PLAIN, n=180, events=60, test=ACCEPTS, error=Value(0.03, 0, 0.08)), "not significant")
    assert more == "Collect more rows."
    few = advised(replace(PLAIN, n=90, events=30, test=ACCEPTS, error=Value(0.03, 0, 0.08)), "too few")
    assert few.startswith("Too few rows to fit or judge a map.")
    wrong = advised(replace(PLAIN, n=9000, events=8), "not calibrated")
    assert wrong == "Too few events to fit or judge a map."
    wrong = advised(replace(PLAIN, n=9000, events=8990, confidence=True), "not calibrated")
    assert wrong == "Too few wrong predictions to fit or judge a map."
    made = Decisions(3, Value(0.5), 4, Value(0.5))
    assert "predict_proba" in advised(Probabilities(n=7, events=3, decisions=made), "cannot be judged")
    assert advised(replace(PLAIN, recalibration=maps()), "small").startswith("Usually nothing needs to be done. Platt")


@pytest.mark.parametrize(
    ("n", "events", "fits"), [(100, 20, True), (99, 20, False), (100, 19, False), (100, 81, False)]
)
def test_a_map_takes_a_hundred_rows_with_twenty_of_each_outcome(n, events, fits):
    advice = advised(replace(PLAIN, n=n, events=events, recalibration=maps()), "not calibrated")
    assert advice.startswith("Platt" if fits else "Too few")


def test_rows_that_nobody_collects_are_not_asked_for():
    quiet = replace(PLAIN, n=180, events=60, test=ACCEPTS, error=Value(0.03, 0, 0.08))
    assert advised(replace(quiet, needed=170), "not significant") == "Collect more rows."
    assert advised(replace(quiet, needed=1234), "not significant") == (
        "Collect about 1,200 rows in all: if the model is calibrated, they rule out an error of 1.7 points with a "
        "chance of 80 %."
    )
    assert "Collect about 1,000,000" in advised(replace(quiet, needed=1_000_000), "not significant")
    assert advised(replace(quiet, needed=1_000_001), "not significant") == (
        "More than 1,000,000 rows would be needed to rule out an error of 1.7 points. Give a tolerance, if a larger "
        "error does no harm."
    )


@pytest.mark.parametrize(
    ("high", "text"), [(0.99, "is at most 99 points"), (1.0, "is not known"), (None, "is not known")]
)
def test_a_remaining_error_of_all_is_not_known(high, text):
    made = maps(remaining=Value(0.5, 0.0, high))
    assert f"the remaining error {text}." in advised(replace(PLAIN, recalibration=made), "not calibrated")


@pytest.mark.parametrize(("high", "little"), [(0.0049, True), (0.0051, False)])
def test_little_to_gain(high, little):
    text = advised(replace(PLAIN, recalibration=maps(-0.003, high)), "not calibrated")
    assert (text == "There is little to gain: no map lowers log loss by more than 0.49 %.") == little
    assert ("may not help" in text) != little


def test_groups_that_are_wrong_are_named_where_the_whole_is_not():
    rows = groups(group(after=True), group("Peru", direction="too high", p=0.0001, after=False))
    text = advised(replace(PLAIN, test=ACCEPTS, groups=(rows,), recalibration=maps()), "not calibrated")
    assert text == (
        "Look at Peru and Brazil: fit a map for each of them separately, or give the model the group. One map for all "
        "cannot help."
    )
    few = advised(replace(PLAIN, n=90, events=30, test=ACCEPTS, groups=(rows,)), "not calibrated")
    assert few.startswith("Too few rows to fit or judge a map. Look at Peru and Brazil")
    many = groups(*(group(f"g{k}", p=0.001 * k) for k in range(10)))
    text = advised(replace(PLAIN, test=ACCEPTS, groups=(many,)), "not calibrated")
    assert text.startswith("Look at g0, g1, g2, g3, g4, g5, g6, g7 and 2 more: fit")


@pytest.mark.parametrize(("n", "whole"), [(99.0, 0.2), (101.0, 0.19), (101.0, 0.2)])
def test_a_map_of_its_own_is_not_advised_for_a_group_of_few_rows(n, whole):
    small = replace(group(n=n), observed=whole * n)
    text = advised(replace(PLAIN, test=ACCEPTS, groups=(groups(small),)), "not calibrated")
    enough = (n, whole) == (101.0, 0.2)
    assert ("fit a map for it separately" in text) == enough
    because = "give the model the group, because it has too few rows for a map of its own"
    assert (because in text) != enough
    text = advised(replace(PLAIN, test=ACCEPTS, groups=(groups(small, group("Peru")),)), "not calibrated")
    assert ("because 1 of them has too few rows for a map of their own" in text) != enough


def test_few_groups_that_are_wrong_are_named_where_the_whole_is_too():
    rows = groups(group(), *(group(f"g{k}", flagged=False) for k in range(3)))
    text = advised(replace(PLAIN, groups=(rows,), recalibration=maps()), "not calibrated")
    assert text.endswith(
        "The error sits in Brazil (1 of 4 groups): fit a map for it separately, or give the model the group."
    )
    half = groups(group(), group("Peru"), group("Chile", flagged=False), group("Cuba", flagged=False))
    assert "sits in" not in advised(replace(PLAIN, groups=(half,), recalibration=maps()), "not calibrated")


def test_after_a_change_the_map_is_refitted_on_recent_rows():
    recent = MapRow("Platt scaling", 2, Value(0.001, 0, 0.003), Value(0.07, 0.04, 0.1), "best")
    text = advised(replace(RARE, over_time=over_time(), recalibration=maps(recent=recent)), "not calibrated")
    assert text.startswith("Refit Platt scaling on rows since September 2025: log loss there falls by 7 % (4 to 10 %).")
    assert "when there are enough" in advised(replace(RARE, over_time=over_time()), "not calibrated")


def test_groups_in_opposite_directions_need_their_own_map():
    rows = groups(group(after=True), group("Peru", direction="too high", after=False))
    text = advised(replace(PLAIN, groups=(rows,), recalibration=maps()), "not calibrated")
    assert text.endswith("One map cannot repair Brazil: fit a map for it separately, or give the model the group.")
    same = groups(group(after=True), group("Peru", after=False))
    assert "One map" not in advised(replace(PLAIN, groups=(same,), recalibration=maps()), "not calibrated")


def test_rows_that_are_off_by_themselves_say_so_where_nothing_is_significant():
    off, told = Bin(0.4, 0.9, 1000, 316, 0.55, Value(0.316, 0.288, 0.356)), "This gap would be significant alone"
    quiet = replace(PLAIN, test=ACCEPTS)
    for top, expected in ((off, True), (replace(off, predicted=0.3), False)):
        assert (told in what_it_means(replace(quiet, top=top))) is expected
        for around in (None, off, replace(off, predicted=0.3)):
            given = replace(quiet, threshold=Threshold(0.4, around, top))
            assert (told in what_it_means(given)) is (expected or around is off)
    assert told not in what_it_means(replace(PLAIN, top=off))
    assert told not in what_it_means(replace(quiet, top=off, groups=(groups(group()),)))
