"""Every figure has a title that claims only what is significant, and an equivalent in words and numbers."""

from dataclasses import replace

import pytest

from calibrant.reporting.contents import Bin, GroupRow
from calibrant.reporting.drawing import descriptions as titles
from calibrant.reporting.drawing.descriptions import relation, runs, score_range
from calibrant.results.estimate import Value
from tests.reporting import hand_made


def test_groups_in_words_name_a_few_and_count_the_rest():
    text = titles.groups_text(hand_made.groups())
    assert "lowest for Poland (0.64) and highest for Brazil (1.84)" in text
    many = [(f"g{k}", 0.5, 300, "too high") for k in range(30)]
    assert titles.groups_text(hand_made.groups(many)).endswith("g7 (too high) and 22 more.")
    quiet = [("a", 1.0, 300, "not flagged")]
    assert titles.groups_text(hand_made.groups(quiet), spread=True).endswith("No group is flagged.")


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
    assert not Bin(0, 1, 5, 1, 0.9, Value(0.2)).off


def test_neighbours_with_the_same_relation_are_one_run():
    bins = [
        scored(0, 0.1, 0.05, 0.1),
        scored(0.1, 0.2, 0.15, 0.2),
        scored(0.2, 0.5, 0.3, 0.3),
        scored(0.5, 1, 0.8, 0.6),
    ]
    assert [relation(b) for b in bins] == ["above", "above", "within chance", "below"]
    assert runs(bins) == [("above", 0, 0.2), ("within chance", 0.2, 0.5), ("below", 0.5, 1)]


def test_groups_against_the_rest_in_one_direction_in_several_or_none():
    assert titles.groups_title(hand_made.groups(), "fraud") == (
        "Brazil differs from the rest: 1.84 times as many frauds as predicted"
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
        titles.classes_title(section) == "All 7 classes are miscalibrated; Refunds: 1.77 times as frequent as predicted"
    )
    quiet = replace(section, rows=tuple(replace(row, flagged=False) for row in section.rows))
    assert titles.classes_title(quiet) == "No class differs beyond chance"
    spread = "No class by itself differs beyond chance: the error is spread over all of them"
    assert titles.classes_title(quiet, rejected=True) == spread
    untested = replace(quiet, rows=tuple(replace(row, p_value=float("nan")) for row in quiet.rows))
    assert titles.classes_title(untested) == "No class could be tested"
    shape = GroupRow("A", 10, Value(1.0, 0.9, 1.1), Value(0.1), "too extreme", 0.01, flagged=True)
    assert titles.classes_title(replace(section, rows=(shape,))) == "1 of 1 classes is miscalibrated"


def test_classes_in_words():
    assert "Predicted too low in total: Returns and Refunds." in titles.classes_text(hand_made.classes())


def test_examples_of_score_range() -> None:
    assert (
        score_range(0.0, 0.002),
        score_range(0.01, 0.05, of="of "),
        score_range(0.2, 1.0),
        score_range(0.3, 0.3),
    ) == ("below 0.2 %", "of 1 to 5 %", "above 20 %", "30 %")
