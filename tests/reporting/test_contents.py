"""The parts of a report as plain values."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.contents import Assembly, CannotBuild, Verdict, sentence, tell, told_to
from calibrant.results.estimate import Value


def test_a_value_excludes_only_what_lies_outside_a_known_interval():
    assert Value(0.8, 0.7, 0.9).excludes(1.0)
    assert not Value(0.8, 0.7, 1.0).excludes(1.0)
    assert not Value(0.8).excludes(1.0)


def test_a_verdict_reads_as_its_sentences():
    verdict = Verdict("B12", "not calibrated", "problem", "too extreme", "Too extreme.")
    assert str(verdict) == "Too extreme."
    assert str(Verdict("B12", "not calibrated", "problem", "too extreme", "One.", "Two.")) == "One. Two."


def test_the_message_is_the_reason():
    assert str(CannotBuild("One score only.")) == "One score only."


def fails(error):
    def build():
        raise error

    return build


def test_reasons_are_kept():
    made = Assembly()
    assert made.attempt("Groups", fails(CannotBuild("All rows are in one group"))) is None
    assert made.attempt("", fails(ValueError("unnamed"))) is None
    assert [(left.section, left.reason) for left in made.omitted] == [("Groups", "All rows are in one group.")]
    assert made.attempt("Number", lambda: 3) == 3


def test_mistakes_are_not_hidden():
    with pytest.raises(AttributeError):
        Assembly().attempt("x", fails(AttributeError("typo")))
    with pytest.raises(TypeError, match="unexpected keyword"):
        Assembly().attempt("x", fails(TypeError("unexpected keyword argument")))


def test_kinds_of_predictions_that_an_estimator_does_not_take_are_left_out():
    quantiles = cal.Quantiles([0.0, 1.0], [0.1, 0.9], [[-1.0, 1.0], [-1.0, 1.0]])
    made = Assembly()
    assert made.attempt("Likelihood", lambda: cal.nll(quantiles)) is None
    assert made.attempt("Spread", lambda: cal.ence(quantiles)) is None
    assert [left.section for left in made.omitted] == ["Likelihood", "Spread"]


def test_a_reason_names_no_function():
    assert sentence("ProfileLikelihood needs at least 8 groups") == "It needs at least 8 groups."
    assert sentence("") == "These data do not allow it."
    assert sentence("all scores\nare one.") == "All scores are one."


def test_sections_are_told_while_somebody_listens():
    heard = []
    p = np.random.default_rng(0).random(300)
    with told_to(heard.append):
        cal.report(cal.Binary(np.arange(300) % 2, p))
    assert "Recalibration" in heard
    assert "" not in heard
    before = list(heard)
    tell("Nobody listens")
    assert heard == before
