"""A notebook shows the figures of the page, without folds and scripts."""

import pytest

from calibrant.reporting.layout.main_figures import main_figures
from tests.reporting import hand_made


@pytest.mark.parametrize(
    ("contents", "number"),
    [
        (hand_made.binary(), 3),
        (hand_made.multiclass(), 2),
        (hand_made.regression(), 2),
        (hand_made.unlabeled(), 1),
        (hand_made.hostile(), 3),
    ],
)
def test_every_kind_of_report_has_its_figures(contents, number):
    found = list(main_figures(contents))
    assert len(found) == number
    for title, body in found:
        assert title
        assert "<svg" in body or "<table" in body
        assert "<details" not in body
        assert "<img" not in body


def test_of_many_groups_those_with_most_evidence_are_shown():
    rows = [(f"g{k:02}", 1.0, 300, "not flagged") for k in range(40)] + [("worst", 0.2, 900, "too high")]
    ((_, table),) = main_figures(hand_made.binary(sections=(hand_made.groups(rows),)))
    assert ">worst<" in table
    assert table.count("<tr") == 21
