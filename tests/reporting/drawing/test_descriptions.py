"""Every figure has an equivalent in words and numbers."""

from dataclasses import replace

import pytest

from calibrant.reporting.drawing import descriptions as d
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
