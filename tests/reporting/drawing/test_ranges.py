"""Ranges of scores in words, and runs of ranges with the same relation."""

import pytest

from calibrant.reporting.contents import Bin, Value
from calibrant.reporting.drawing.ranges import outside, relation, runs, score_range


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
