"""Options that name columns: split, guessed, and refused where they do not go together."""

import pytest

from calibrant.cli.columns import Columns, crossed, guessed_column, require_columns
from calibrant.cli.formats import UsageError


@pytest.mark.parametrize(
    ("by", "parts"),
    [
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        ("a, month(b), a", ("a", "month(b)")),
        ("date_trunc('month', day)", ("date_trunc('month', day)",)),
        ("coalesce(a, 'x,y'),\"b,c\"", ("coalesce(a, 'x,y')", '"b,c"')),
        ("c,d", ("c,d",)),
    ],
)
def test_commas_cross_columns_unless_a_column_is_called_so(by, parts):
    assert crossed(by, ["a", "b", "c,d"]) == parts


def test_an_empty_name_is_refused():
    with pytest.raises(UsageError, match="empty name"):
        crossed("a,,b", ["a", "b"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(mean="m"), "--mean needs --std"),
        (Columns(labelled="1"), "--labelled needs --prior"),
        (Columns(prior=0.5), "--prior goes with --labelled"),
        (Columns(positive="1", labelled="1", prior=0.5), "Give one of them"),
        (Columns(positive="1", prob=("a", "b")), "--positive is for the probability of one event"),
        (Columns(positive="1", mean="m", std="s"), "--positive is for the probability of one event"),
        (Columns(percent=True, mean="m", std="s"), "--percent is for probabilities"),
        (Columns(quantiles=("low=a",)), "--quantiles takes LEVEL=COLUMN"),
    ],
)
def test_options_that_do_not_go_together_are_refused(columns, message):
    with pytest.raises(UsageError, match=message):
        columns.require_consistent() or columns.levels


def test_guesses_are_noted_and_never_forced():
    notes = []
    found = Columns().guessed(["ID", "Label", "score"], notes)
    assert (found.truth, found.prob) == ("Label", ("score",))
    assert notes == ["Taking column 'Label' as --truth.", "Taking column 'score' as --prob."]
    with pytest.raises(UsageError, match="Which column is --prob"):
        guessed_column("prob", ["a"], notes)
    with pytest.raises(UsageError, match="There is no column 'b'"):
        require_columns(["b"], ["a"])
