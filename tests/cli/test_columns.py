"""Options that name columns: guessed, and refused where they do not go together."""

import pytest

from calibrant.cli.columns import Columns, guessed_column, require_columns
from calibrant.cli.formats import UsageError


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(mean="m"), "--mean needs --std"),
        (Columns(std="s"), "--std needs --mean"),
        (Columns(prob=("p",), members=("m_*",)), "Give one kind of predictions"),
        (Columns(single_sample=True), "--single-sample goes with --labelled"),
        (Columns(labelled="1", prior=0.5, members=("m_*",)), "--labelled is for the probability of one event"),
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


def test_patterns_name_columns_and_what_they_stand_for():
    header = ["y", "p_cat", "p_dog", "q_0.1", "q_0.9", "m_1", "m_2"]
    classes = Columns(prob=("p_*",)).guessed(header, [])
    assert (classes.task, classes.prob, classes.classes) == ("classes", ("p_cat", "p_dog"), ("cat", "dog"))
    assert Columns(quantiles=("q_*",)).guessed(header, []).levels == [(0.1, "q_0.1"), (0.9, "q_0.9")]
    members = Columns(members=("m_*",)).guessed(header, [])
    assert (members.task, members.numbers) == ("members", ["m_1", "m_2"])
    assert members.roles == {"m_1": "--members", "m_2": "--members", "y": "--truth"}


def test_an_option_that_a_pattern_makes_impossible_is_refused():
    with pytest.raises(UsageError, match="--positive is for the probability of one event"):
        Columns(prob=("p_*",), positive="cat").guessed(["y", "p_cat", "p_dog"], [])


def test_columns_of_all_models_are_read_once():
    both = Columns("y", ("a",), weight="w", others=(Columns(prob=("b",)), Columns(prob=("a",))))
    assert both.numbers == ["a", "w", "b"]
    assert both.roles == {"w": "--weight", "a": "--prob", "b": "--prob", "y": "--truth"}
    assert [one.prob for one in both.models] == [("a",), ("b",), ("a",)]
