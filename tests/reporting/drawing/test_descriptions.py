"""Every figure has a title that claims only what is significant, and an equivalent in words and numbers."""

from dataclasses import replace

import pytest

from calibrant.reporting.contents import Bin, Change, Coverage, GroupRow
from calibrant.reporting.drawing import descriptions as d
from calibrant.reporting.drawing import descriptions as titles
from calibrant.reporting.drawing.descriptions import outside, relation, runs, score_range
from calibrant.results.estimate import Value
from tests.reporting import hand_made


def test_the_diagram_in_words():
    text = d.reliability_text(hand_made.reliability())
    assert text == (
        "The observed frequency agrees with the prediction within chance below 0.2 %, lies above the prediction "
        "from 0.2 to "
        "1 %, agrees with the prediction within chance from 1 to 5 % and lies below the prediction above 5 %. At "
        "scores "
        "above 20 %: 60 % predicted, 41 % observed."
    )
    calibrated = d.reliability_text(hand_made.reliability(of=lambda p: p))
    assert calibrated == "The observed frequency agrees with the prediction within chance in every range."
    no_ranges = replace(hand_made.reliability(), ranges=())
    assert "lies below" in d.reliability_text(no_ranges, confidence=True)


def test_tables_have_a_cell_for_every_header():
    spread, shares = hand_made.spread(), hand_made.shares()
    tables = [
        d.bin_table(hand_made.reliability().bins["linear"]),
        d.over_time_table(hand_made.over_time()),
        d.over_time_table(hand_made.over_time(), spread=True),
        d.bin_counts_table(hand_made.bin_counts()),
        d.spread_table(spread),
        d.coverage_table(spread),
        d.shares_table(shares),
        d.implied_table(shares),
    ]
    for table in tables:
        assert table.rows
        assert all(len(row) == len(table.head) for row in table.rows)


def test_the_course_of_time_in_words():
    text = d.over_time_text(hand_made.over_time())
    assert "It changes in Sep 2025: 0.97 (0.89 to 1.06) before, 0.56 (0.47 to 0.66) since." in text
    assert text.endswith("Flagged after adjustment: Sep 2025, Oct 2025, Nov 2025 and Dec 2025.")
    assert d.over_time_text(hand_made.over_time(change=False)).endswith("No period is flagged.")


def test_groups_in_words_name_a_few_and_count_the_rest():
    text = d.groups_text(hand_made.groups())
    assert "lowest for Poland (0.64) and highest for Brazil (1.84)" in text
    many = [(f"g{k}", 0.5, 300, "too high") for k in range(30)]
    assert d.groups_text(hand_made.groups(many)).endswith("g7 (too high) and 22 more.")
    quiet = [("a", 1.0, 300, "not flagged")]
    assert d.groups_text(hand_made.groups(quiet), spread=True).endswith("No group is flagged.")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (d.bin_counts_text(hand_made.bin_counts()), "1.14 to 2.09 at 1,000."),
        (d.classes_text(hand_made.classes()), "Predicted too low in total: Returns and Refunds."),
        (d.spread_text(hand_made.spread()), "1.50 times the predicted spread where it is smallest"),
        (d.coverage_text(hand_made.spread()), "lies below nominal coverage. The gap is largest at 95 %"),
        (d.pit_text(hand_made.spread()), "hold 1.6 and 1.8 times the expected number"),
        (d.shares_text(hand_made.shares()), "smallest, 3.2 points, at a share of 11 %"),
        (d.implied_text(hand_made.shares()), "above the prediction in 12 of 12 bins"),
    ],
)
def test_the_other_figures_in_words(text, words):
    assert words in text


def scored(low, high, predicted, observed, half=0.01):
    return Bin(low, high, 100, 10, predicted, Value(observed, observed - half, observed + half))


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0, 0.002, "below 0.2 %"),
        (0.2, 1, "above 20 %"),
        (0.05, 0.2, "5 to 20 %"),
        (0, 1, "0 to 100 %"),
        (0.5, 0.5, "50 %"),
    ],
)
def test_ranges_in_words(low, high, words):
    assert score_range(low, high) == words


def test_a_range_without_an_interval_is_never_called_off():
    assert not outside(Bin(0, 1, 5, 1, 0.9, Value(0.2)))


def test_neighbours_with_the_same_relation_are_one_run():
    bins = [
        scored(0, 0.1, 0.05, 0.1),
        scored(0.1, 0.2, 0.15, 0.2),
        scored(0.2, 0.5, 0.3, 0.3),
        scored(0.5, 1, 0.8, 0.6),
    ]
    assert [relation(b) for b in bins] == ["above", "above", "within chance", "below"]
    assert runs(bins) == [("above", 0, 0.2), ("within chance", 0.2, 0.5), ("below", 0.5, 1)]


def test_reliability_names_the_range_with_most_of_the_error():
    section = hand_made.reliability()
    assert titles.reliability_title(section, significant=True) == (
        "Scores above 20 % overstate the risk: 60 % predicted, 41 % observed"
    )
    low = hand_made.reliability(of=lambda p: min(1.3 * p, 0.999))
    assert titles.reliability_title(low, significant=True) == (
        "Scores above 20 % understate the risk: 60 % predicted, 78 % observed"
    )
    assert titles.reliability_title(section, significant=True, confidence=True) == (
        "Confidence above 20 % exceeds accuracy: 60 % predicted, 41 % right"
    )


def test_without_ranges_the_bins_are_named():
    title = titles.reliability_title(replace(hand_made.reliability(), ranges=()), significant=True)
    assert title == "Scores of 20 to 35 % overstate the risk: 27 % predicted, 18 % observed"


def test_reliability_claims_no_direction_without_a_significant_test_or_a_clear_range():
    section = hand_made.reliability()
    words = "The observed frequencies agree with the predictions within chance"
    assert titles.reliability_title(section, significant=False) == words
    calibrated = hand_made.reliability(of=lambda p: p)
    found = titles.reliability_title(calibrated, significant=True)
    assert found == "The predictions are off, but at no range of scores by a clear amount"
    assert "accuracy agrees" in titles.reliability_title(section, significant=False, confidence=True)


def test_what_cannot_be_judged_has_titles_that_claim_nothing():
    assert titles.reliability_title(hand_made.reliability(), significant=None) == "Predicted and observed frequencies"
    assert titles.spread_title(hand_made.spread(), significant=None) == "Predicted spread and observed errors"
    found = titles.implied_title(hand_made.shares(), significant=None)
    assert found == "Predicted and implied shares, if 19 % are positive"


def test_over_time():
    section = hand_made.over_time()
    assert titles.over_time_title(section, "fraud") == "From Sep 2025 on, 56 % of the predicted frauds occurred"
    assert (
        titles.over_time_title(section, "x", spread=True)
        == "From Sep 2025 on, errors are 0.56 times the predicted spread"
    )
    no_change = replace(section, change=None)
    assert titles.over_time_title(no_change, "fraud") == "4 of 12 periods differ from the predictions beyond chance"
    weak = Change(8, Value(1.0, 0.9, 1.1), Value(0.9, 0.8, 1.1), 0.3, significant=False)
    quiet = replace(hand_made.over_time(change=False), change=weak)
    assert titles.over_time_title(quiet, "fraud") == "No period differs from the predictions beyond chance"


def test_groups_against_the_rest_in_one_direction_in_several_or_none():
    assert titles.groups_title(hand_made.groups(), "fraud") == (
        "Brazil runs against the rest: 1.84 times the predicted frauds occurred"
    )
    one_way = [row for row in hand_made.COUNTRIES if row[3] in ("too high", "not flagged")]
    assert titles.groups_title(hand_made.groups(one_way), "fraud") == "Predictions are too high in 4 of 6 countries"
    single = [row for row in hand_made.COUNTRIES if row[0] in ("Poland", "Sweden")]
    assert titles.groups_title(hand_made.groups(single), "fraud") == "Predictions are too high in 1 of 2 countries"
    both = [hand_made.COUNTRIES[0], hand_made.COUNTRIES[7], hand_made.COUNTRIES[5]]
    assert titles.groups_title(hand_made.groups(both), "fraud") == "2 of 3 countries are miscalibrated"
    quiet = [row for row in hand_made.COUNTRIES if row[3] == "not flagged"]
    assert (
        titles.groups_title(hand_made.groups(quiet, "sales_region"), "fraud") == "No sales region differs beyond chance"
    )


def test_recalibration_promises_only_what_its_interval_holds():
    helps = hand_made.recalibration()
    assert titles.recalibration_title(helps, "payment") == (
        "Platt scaling on recent payments lowers log loss by 7 % (4 to 10 %)"
    )
    assert (
        titles.recalibration_title(replace(helps, recent=None), "x")
        == "Platt scaling lowers log loss by 1.7 % (0.9 to 2.5 %)"
    )
    assert titles.recalibration_title(hand_made.recalibration(helps=False), "x") == "Recalibration may not help"
    worse = tuple(replace(m, effect="makes it worse") for m in helps.maps)
    assert (
        titles.recalibration_title(replace(helps, maps=worse, recent=None), "x")
        == "Every map tried makes log loss worse"
    )
    assert titles.recalibration_title(replace(helps, maps=(), recent=None), "x") == "Recalibration may not help"


def test_classes():
    section = hand_made.classes()
    assert (
        titles.classes_title(section)
        == "7 of 7 classes are miscalibrated; Refunds: 1.77 times as frequent as predicted"
    )
    quiet = replace(section, rows=tuple(replace(row, flagged=False) for row in section.rows))
    assert titles.classes_title(quiet) == "No class differs beyond chance"
    spread = "No class by itself differs beyond chance: the error is spread over all of them"
    assert titles.classes_title(quiet, rejected=True) == spread
    untested = replace(quiet, rows=tuple(replace(row, p_value=float("nan")) for row in quiet.rows))
    assert titles.classes_title(untested) == "No class could be tested"
    shape = GroupRow("A", 10, Value(1.0, 0.9, 1.1), Value(0.1), "too extreme", 0.01, flagged=True)
    assert titles.classes_title(replace(section, rows=(shape,))) == "1 of 1 classes is miscalibrated"


def test_spread():
    section = hand_made.spread()
    found = "Where the predicted spread is smallest, errors are 1.5 times as large"
    assert titles.spread_title(section, significant=True) == found
    assert titles.spread_title(section, significant=False) == "Errors agree with the predicted spread within chance"
    wide = tuple(replace(b, null=(0.0, 99.0)) for b in section.bins)
    assert "by a clear amount" in titles.spread_title(replace(section, bins=wide), significant=True)
    last = (*wide[:-1], replace(wide[-1], null=(0.0, 1.0)))
    assert "is largest" in titles.spread_title(replace(section, bins=last), significant=True)
    inner = (*wide[:3], replace(wide[3], null=(0.0, 1.0)), *wide[4:])
    assert "is about 3.4" in titles.spread_title(replace(section, bins=inner), significant=True)


def test_coverage_with_and_without_an_interval():
    section = hand_made.spread()
    assert titles.coverage_title(section) == "90 % intervals hold 82.8 % (81.7 to 83.9 %)"
    bare = replace(section, coverage=(Coverage(0.8, Value(0.712)),))
    assert titles.coverage_title(bare) == "80 % intervals hold 71.2 %"


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (300, 300, "into the tails too often"),
        (50, 50, "into the tails too rarely"),
        (300, 50, "lower than predicted too often"),
        (50, 300, "higher than predicted too often"),
        (200, 200, "evenly into their predicted distributions, within chance"),
    ],
)
def test_the_histogram_of_f(first, last, words):
    section = replace(hand_made.spread(), pit=(first, *[200.0] * 18, last))
    assert words in titles.pit_title(section, significant=True)
    uneven = replace(section, pit=(200.0, *[100.0, 300.0] * 9, 200.0))
    assert "unevenly" in titles.pit_title(uneven, significant=True)
    assert titles.pit_title(uneven, significant=None) == "Where outcomes fall in their predicted distributions"


def test_shares():
    none = "No share between 11 and 27 % makes these probabilities calibrated, if labels are at random"
    assert titles.shares_title(hand_made.shares()) == none
    assert titles.shares_title(hand_made.shares(zero=True)) == "For shares from 11 to 14 % the interval includes 0"
    section = hand_made.shares()
    assert (
        titles.implied_title(section, significant=True)
        == "Predictions are too low over part of the range, if 19 % are positive"
    )
    assert "within chance" in titles.implied_title(section, significant=False)
    first, *others = section.implied
    other_way = replace(first, observed=Value(first.predicted / 4, first.predicted / 5, first.predicted / 3))
    assert "too high for others" in titles.implied_title(
        replace(section, implied=(other_way, *others)), significant=True
    )
    assert "too high over" in titles.implied_title(replace(section, implied=(other_way,)), significant=True)


def test_the_title_of_the_ece_is_true_of_all_data():
    assert titles.bin_counts_title() == "The plain ECE depends on how many bins you choose"


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.358, "36 %"),
        (0.0023, "0.23 %"),
        (0.02, "2.0 %"),
        (0.997, "99.7 %"),
        (0.5, "50 %"),
        (0.0, "0 %"),
        (1.0, "100 %"),
    ],
)
def test_shares_in_titles(share, words):
    assert titles.short_rate(share) == words
