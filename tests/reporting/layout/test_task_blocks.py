"""Forecasts and positive-unlabeled rows."""

from dataclasses import replace

from calibrant.reporting.layout.task_blocks import shares_block, spread_block
from tests.reporting import hand_made


def test_forecasts_have_spread_coverage_and_the_histogram():
    contents = hand_made.regression()
    first, second = spread_block(hand_made.spread(), contents)
    assert first.body.count("<figure") == 2
    assert second.title == "Outcomes fall into the tails too often"


def test_parts_that_are_missing_are_left_out():
    bare = replace(hand_made.spread(), bins=(), pit=())
    (only,) = spread_block(bare, hand_made.regression())
    assert "<figcaption" not in only.body
    assert "Root" not in only.lead
    assert only.title == "90 % intervals hold 82.8 % (81.7 to 83.9 %)"
    assert list(spread_block(replace(bare, coverage=()), hand_made.regression())) == []


def test_shares_say_what_the_data_allow_and_what_they_cannot_show():
    first, second = shares_block(hand_made.shares(), hand_made.unlabeled())
    assert "at most 35.7 %" in first.lead
    assert "No row is known to be negative" in second.body
    bare = replace(hand_made.shares(), implied=(), largest=None)
    assert len(list(shares_block(bare, hand_made.unlabeled()))) == 1
