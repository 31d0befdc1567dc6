"""Options that name columns: guesses, patterns, lists, and what does not go together."""

import pytest

from calibrant.cli.columns import (
    Columns,
    expanded_levels,
    guessed_column,
    labels_of,
    matching,
    require_columns,
    separated,
)
from calibrant.cli.console import UsageError


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(mean="m"), "--mean needs --std"),
        (Columns(std="s"), "--std needs --mean"),
        (Columns(prob=("p",), members=("m_*",)), "Give one kind of predictions"),
        (Columns(single_sample=True), "--single-sample goes with --labelled"),
        (Columns(labelled="1", prior=0.5, members=("m_*",)), "--labelled is for binary predictions"),
        (Columns(labelled="1"), r"--labelled needs --prior.*calibrant\.pu\.estimate_prior"),
        (Columns(percent=True, logits=True), "Give one of them"),
        (Columns(logits=True, mean="m", std="s"), "--logits is for binary or multiclass scores"),
        (Columns(prior=0.5), "--prior goes with --labelled"),
        (Columns(positive="1", labelled="1", prior=0.5), "Give one of them"),
        (Columns(positive="1", prob=("a", "b")), "--positive is for binary predictions"),
        (Columns(positive="1", mean="m", std="s"), "--positive is for binary predictions"),
        (Columns(percent=True, mean="m", std="s"), "--percent is for probabilities"),
        (Columns(quantiles=("low=a",)), "--quantiles takes LEVEL=COLUMN"),
        (Columns(correct="c", prob=("p",)), "give them instead of --truth and --prob"),
        (Columns(confidence="c", truth="y"), "give them instead of --truth and --prob"),
        (Columns(labelled="1", prior=0.5, cluster="q"), "--cluster is not for positive-unlabeled data"),
    ],
)
def test_options_that_do_not_go_together_are_refused(columns, message):
    with pytest.raises(UsageError, match=message):
        columns.require_consistent() or columns.levels


def test_a_column_that_an_option_names_is_not_taken_for_another():
    header = ["human", "score", "confidence", "w", "p"]
    found = Columns(truth="human", judge=("score",), label_weight="w", cluster="p").guessed(header, [])
    assert found.prob == ("confidence",)
    with pytest.raises(UsageError, match="Which column is --prob"):
        Columns(truth="human", judge=("score",)).guessed(["human", "score"], [])


def test_guesses_are_noted_and_never_forced():
    notes = []
    found = Columns().guessed(["ID", "Label", "score"], notes)
    assert (found.truth, found.prob) == ("Label", ("score",))
    assert notes == ["Taking column 'Label' as --truth.", "Taking column 'score' as --prob."]
    with pytest.raises(UsageError, match="Which column is --prob"):
        guessed_column("prob", ["a"], notes)
    with pytest.raises(UsageError, match="There is no column 'b'"):
        require_columns(["b"], ["a"])


def test_of_several_columns_that_would_do_a_gate_takes_none():
    notes = []
    header = ["y", "label", "p", "score"]
    found = Columns().guessed(header, notes)
    assert (found.truth, found.prob) == ("y", ("p",))
    assert notes == [
        "Taking column 'y' as --truth; 'label' would fit too: say --truth NAME.",
        "Taking column 'p' as --prob; 'score' would fit too: say --prob NAME.",
    ]
    with pytest.raises(UsageError, match="Columns 'y', 'label' could each be --truth: a gate needs --truth NAME"):
        Columns(gate=True).guessed(header, [])
    with pytest.raises(UsageError, match="Columns 'p', 'score' could each be --prob"):
        Columns("y", gate=True).guessed(header, [])
    assert Columns("y", ("p",), gate=True).guessed(header, []).prob == ("p",)
    assert Columns(gate=True).guessed(["y", "p"], []).prob == ("p",)


def test_patterns_name_columns_and_what_they_stand_for():
    header = ["y", "p_cat", "p_dog", "q_0.1", "q_0.9", "m_1", "m_2"]
    classes = Columns(prob=("p_*",)).guessed(header, [])
    assert (classes.task, classes.prob, classes.classes) == ("multiclass", ("p_cat", "p_dog"), ("cat", "dog"))
    assert Columns(quantiles=("q_*",)).guessed(header, []).levels == [(0.1, "q_0.1"), (0.9, "q_0.9")]
    members = Columns(members=("m_*",)).guessed(header, [])
    assert (members.task, members.numbers) == ("members", ["m_1", "m_2"])
    assert members.roles == {"m_1": "--members", "m_2": "--members", "y": "--truth"}


def test_an_option_that_a_pattern_makes_impossible_is_refused():
    with pytest.raises(UsageError, match="--positive is for binary predictions"):
        Columns(prob=("p_*",), positive="cat").guessed(["y", "p_cat", "p_dog"], [])


def test_columns_of_all_models_are_read_once():
    both = Columns("y", ("a",), weight="w", others=(Columns(prob=("b",)), Columns(prob=("a",))))
    assert both.numbers == ["a", "w", "b"]
    assert both.roles == {"w": "--weight", "a": "--prob", "b": "--prob", "y": "--truth"}
    assert [one.prob for one in both.models] == [("a",), ("b",), ("a",)]


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
    assert separated(by, ["a", "b", "c,d"], "--by") == parts


def test_an_empty_name_is_refused():
    with pytest.raises(UsageError, match=r"--by .* empty name"):
        separated("a,,b", ["a", "b"], "--by")


HEADER = ["y", "p_cat", "p_dog", "score", "a", "b", "axb", "p_*"]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("p_*g", {"p_dog": "do"}),
        ("*_cat", {"p_cat": "p"}),
        ("a*b", None),
        ("score*100", None),
        ("score*-1", None),
        ("score*1e2", None),
        ("unknown*thing", None),
        ("score * 100", None),
        ("count(*)", None),
        ("p_*", None),
        ("score", None),
    ],
)
def test_a_star_is_a_pattern_unless_it_is_a_column_or_a_product(name, columns):
    assert matching(name, HEADER, "--prob") == columns


def test_a_pattern_that_fits_nothing_is_refused():
    with pytest.raises(UsageError, match=r"No column fits the pattern --prob 'z_\*'; the file has 'y', 'p_cat'"):
        matching("z_*", HEADER, "--prob")


def test_columns_named_twice_count_once():
    header = ["p_cat", "p_dog"]
    assert labels_of(["p_dog", "p_*"], header, "--prob") == {"p_dog": "p_dog", "p_cat": "cat"}


def test_examples_of_matching() -> None:
    assert matching("p_*", ["y", "p_cat", "p_dog"], "--prob") == {"p_cat": "cat", "p_dog": "dog"}
    assert matching("score*100", ["y", "score"], "--prob") is None


def test_examples_of_labels_of() -> None:
    assert labels_of(["mean", "m_*"], ["m_1", "m_2", "mean"], "--members") == {"mean": "mean", "m_1": "1", "m_2": "2"}


def test_examples_of_separated() -> None:
    assert separated("country, least(a, b)", ["country", "a", "b"], "--by") == ("country", "least(a, b)")


def test_examples_of_expanded_levels() -> None:
    assert expanded_levels(["q_*"], ["y", "q_0.1", "q_0.9"]) == ("0.1=q_0.1", "0.9=q_0.9")


def test_answers_are_outcomes_and_a_probability_and_a_model_that_is_no_column_is_a_name():
    notes = []
    found = Columns(correct="right", cluster="q", model="GPT").guessed(["right", "confidence", "q"], notes)
    assert (found.truth, found.prob, found.answers, found.model) == ("right", ("confidence",), True, None)
    assert notes == ["Taking column 'confidence' as --confidence."]
    assert found.roles == {"right": "--correct", "confidence": "--confidence"}
    assert Columns(by=("q", "a"), cluster="q", model="m").groupings == ("q", "a", "m")
