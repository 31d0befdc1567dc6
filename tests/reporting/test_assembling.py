"""Sections that cannot be made say why, mistakes of the program are not hidden, and listeners are told of sections."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.assembling import Assembly, sentence, tell, told_to
from calibrant.reporting.contents import CannotBuild


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
