"""Predictions that leave little to judge, and the second sentence of a verdict."""

from dataclasses import replace

from calibrant.reporting.contents import Bin
from calibrant.reporting.verdicts.binary import level, one_outcome, one_score, second_sentence, too_few
from calibrant.reporting.verdicts.truth_table import (
    Row,
    change_in_words,
    flagged_in_words,
    group_names,
    largest_gap_classes,
    nothing_to_judge,
    period_range,
)
from calibrant.results.estimate import Value
from tests.reporting.verdicts.evidence_samples import ACCEPTS, PLAIN, group, groups, over_time


def second(given, direction):
    """The second sentence beside a first one with this direction."""
    return second_sentence(given, Row("B11", "not calibrated", direction, ""))


def test_rows_that_do_not_apply_say_nothing():
    assert one_outcome(PLAIN) is None
    assert one_score(PLAIN) is None
    assert too_few(PLAIN) is None


def test_few_of_the_confidence():
    found = too_few(replace(PLAIN, n=200, events=195, confidence=True, test=ACCEPTS, error=None))
    assert found.sentence == "Too few wrong predictions to judge: 5 among 200 rows."


def test_words():
    assert nothing_to_judge("") == "Nothing to judge: no row has both a prediction and an outcome."
    assert level(replace(PLAIN, ratio=Value(1.2, 1.1, 1.3))) == "too low"
    assert level(PLAIN) is None


def test_a_change_over_time_comes_first():
    both = replace(PLAIN, over_time=over_time(), groups=(groups(group()),))
    assert second(both, "too high").startswith(
        "Calibration changed from September 2025 on: until August 2025, totals agree"
    )
    assert change_in_words(replace(PLAIN, over_time=over_time(significant=False))) == ""


def test_a_group_against_the_whole():
    given = replace(PLAIN, groups=(groups(group(), group("Peru", direction="too high")),))
    assert second(given, "too high") == (
        "Brazil differs from the rest: there, predictions are too low, with 1.40 times as many events as predicted "
        "(1.22 to 1.61)."
    )
    assert second(given, "too low").startswith("Peru differs from the rest")
    assert second(given, "too extreme") == ""


def test_slopes_and_spreads_of_a_group():
    steep = replace(group(direction="too moderate"), slope=Value(1.5, 1.2, 1.9))
    assert second(replace(PLAIN, groups=(groups(steep),)), "too extreme") == (
        "Brazil differs from the rest: there, predictions are too moderate (slope 1.50)."
    )
    wide = group("8 days", direction="too wide", ratio=Value(0.86, 0.81, 0.92))
    assert second(replace(PLAIN, groups=(groups(wide),)), "too narrow") == (
        "8 days differs from the rest: there, the spread is too wide, and errors are 0.86 times as large (0.81 to "
        "0.92)."
    )


def test_the_largest_gap_of_few_scores():
    given = replace(PLAIN, distinct=10, largest_gap=Bin(0.7, 0.7, 400, 208, 0.7, Value(0.52, 0.47, 0.57)))
    assert second(given, "too high") == (
        "Only 10 distinct scores: the largest gap is at 70 % (observed 52 %, 47 to 57 %)."
    )


def test_up_to_eight_groups_are_named_strongest_evidence_first():
    rows = tuple(group(f"g{k}", p=0.01 - 0.001 * k) for k in range(10))
    text = group_names(rows)
    assert text.startswith("g9 (too low), g8")
    assert text.endswith("and 2 more")
    assert flagged_in_words((groups(*rows),)).startswith(
        "all 10 countries are miscalibrated after adjustment, all too low: g9"
    )
    two = (groups(rows[0]), groups(rows[1], column="device"))
    assert flagged_in_words(two).startswith("both groups are")
    assert flagged_in_words((groups(group("a\x1b[31m")),)).endswith("a\\x1b[31m (too low)")


def test_lists_of_classes_and_periods():
    rows = (group("a", ratio=Value(1.2)), group("b", ratio=Value(0.5)), group("c", flagged=False))
    assert largest_gap_classes(rows) == "b (0.50) and a (1.20)"
    assert largest_gap_classes((replace(rows[0], ratio=Value(0.0)), rows[1])) == "a (0.00) and b (0.50)"
    assert period_range(over_time().periods[:1]) == "July 2025"
    assert period_range(over_time().periods[:2]) == "July 2025 to August 2025"
