"""Scores as expressions are those that maps see as arrays."""

import numpy as np
import pytest
from scipy.special import expit

from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.sql_dialects import DIALECTS
from calibrant.recalibrate.sql_scores import SqlScores, last_at_most
from tests.recalibrate.sql_maps import frame_of, in_duckdb, several_classes


@pytest.mark.parametrize("function", [expit, np.cbrt, np.floor, lambda x: x], ids=["expit", "root", "floor", "x"])
def test_the_last_number_below_a_limit_is_found(function):
    limits = function(np.array([-30.0, -2.5, -1e-300, 0.0, 1e-9, 0.7, 5.0]))
    found = last_at_most(function, limits, -1e6, 1e6)
    assert (function(found) <= limits).all()
    assert (function(np.nextafter(found, np.inf)) > limits).all()


def test_limits_that_none_or_all_keep_are_infinite():
    found = last_at_most(np.square, np.array([-1.0, 0.25, 2.0]), 0.0, 1.0)
    assert found.tolist() == [-np.inf, 0.5, np.inf]


@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_readings_are_those_of_arrays(columns, logits):
    z, p, _ = several_classes(300, classes=max(columns, 2))
    values = z if logits else p
    values = values[:, 1] if columns == 1 else values
    arrays, frame = Scores(values, logits), frame_of(values)
    names = tuple(DIALECTS["duckdb"].column(name) for name in frame)
    texts = SqlScores(names, logits=logits, dialect=DIALECTS["duckdb"])
    assert texts.classes == arrays.classes
    for reading in ("probabilities", "log_probabilities"):
        np.testing.assert_allclose(in_duckdb(getattr(texts, reading), frame), getattr(arrays, reading), atol=1e-13)
    for k in range(columns if columns > 2 else 0):
        found = in_duckdb([texts.one_vs_rest(k).log_odds], frame)[:, 0]
        np.testing.assert_allclose(found, arrays.one_vs_rest(k).log_odds, rtol=1e-12, atol=1e-12)
    for reading in ("probability", "log_odds") if columns < 3 else ():
        found = in_duckdb([getattr(texts, reading)], frame)[:, 0]
        np.testing.assert_allclose(found, getattr(arrays, reading), rtol=1e-13, atol=1e-13)


@pytest.mark.no_cover
@pytest.mark.parametrize("reading", ["probability", "log_odds"])
@pytest.mark.parametrize("logits", [False, True])
def test_steps_are_at_the_very_scores(reading, logits):
    z, p, _ = several_classes(500, classes=2)
    values = np.unique(z[:, 0] * 10 if logits else p[:, 1])
    edges = np.unique(getattr(Scores(values, logits), reading))[::7]
    dialect = DIALECTS["duckdb"]
    scores = SqlScores((dialect.column("p"),), logits=logits, dialect=dialect)
    pieces = [dialect.number(k) for k in range(2 * len(edges) + 1)]
    texts = [scores.steps(reading, edges, pieces[: len(edges) + 1]), scores.steps_at_knots(reading, edges, pieces)]
    read = getattr(Scores(values, logits), reading)
    left, right = (np.searchsorted(edges, read, side=side) for side in ("left", "right"))
    np.testing.assert_array_equal(in_duckdb(texts, frame_of(values)), np.stack([left, left + right], axis=1))
