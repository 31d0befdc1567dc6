"""Expressions are written so that engines read them as they were meant, with the scores that maps see as arrays."""

import duckdb
import numpy as np
import pytest
from scipy.special import expit

from calibrant.recalibrate import expressions
from calibrant.recalibrate.export import DIALECTS
from calibrant.recalibrate.expressions import (
    LONGEST,
    Expression,
    ScoreExpressions,
    last_at_most,
    number,
    pieces_by_cuts,
    total,
)
from calibrant.recalibrate.inputs import Scores
from tests.recalibrate.sql_maps import ENGINES, frame_of, in_duckdb, several_classes

ONE_ROW = frame_of([0.5])
P = Expression("column")


def written(expression, dialect="duckdb", columns=("p",)):
    return DIALECTS[dialect].written(expression, columns)


@pytest.mark.no_cover
@pytest.mark.parametrize("dialect", ENGINES)
def test_numbers_are_read_to_the_last_bit(dialect):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.random(2_000), 10.0 ** rng.uniform(-40, 6, 1_000), -rng.random(500)])
    listed = [DIALECTS[dialect].number(value) for value in values.tolist()]
    found = np.concatenate([ENGINES[dialect](listed[k : k + 500], ONE_ROW)[0] for k in range(0, len(listed), 500)])
    np.testing.assert_array_equal(found, values)


def test_numbers_are_double_precision_and_never_begin_a_comment():
    assert [written(number(value)) for value in (0.1, -0.0, 1e-300)] == ["0.1e0", "(-0.0e0)", "1e-300"]
    assert duckdb.sql(f"SELECT typeof({written(number(3))}), {written(-number(-2.5))}").fetchall() == [("DOUBLE", 2.5)]


def test_parentheses_keep_the_order_of_evaluation():
    a, b = P, Expression("column", value=1)
    for made, text in (
        (a + b * 2.0, "a + b * 2.0e0"),
        ((a + b) * 2.0, "(a + b) * 2.0e0"),
        (a - (b - 1.0), "a - (b - 1.0e0)"),
        (a - b - 1.0, "a - b - 1.0e0"),
        (total([a, b + 1.0, a]), "a + (b + 1.0e0) + a"),
        (a / (b / a), "a / (b / a)"),
        (-Expression("negative", (a,)), "-(-a)"),
        (-(a + b), "-(a + b)"),
        (-expressions.function("ABS", a), "-ABS(a)"),
        (2.0 - a * (-b), "2.0e0 - a * -b"),
    ):
        assert written(made, columns=("a", "b")) == text


@pytest.mark.no_cover
@pytest.mark.parametrize("size", [1, 2, 5, 300, 2_000])
def test_a_case_finds_the_piece_of_each_score(size):
    cuts = np.sort(np.random.default_rng(size).random(size - 1))
    scores = np.concatenate([np.linspace(0, 1, 101), cuts, np.nextafter(cuts, 1)])
    made = pieces_by_cuts(P, cuts, [number(k) for k in range(size)])
    for dialect, engine in ENGINES.items():
        found = engine([written(made, dialect)], frame_of(scores))[:, 0]
        np.testing.assert_array_equal(found, np.searchsorted(cuts, scores, side="left"))


def test_pieces_that_no_score_reaches_are_not_written():
    cuts = np.array([-np.inf, 0.2, 0.2, 0.5, np.inf])
    never, low, high = number(9), P + 1.0, P + 2.0
    made = pieces_by_cuts(P, cuts, [never, low, never, P + 1.0, high, never])
    assert written(made) == "CASE WHEN p <= 0.5e0 THEN p + 1.0e0 ELSE p + 2.0e0 END"


def test_functions_are_those_of_numpy():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 20, 500), [-1e6, 0.0, 1e6]])
    made = [
        expressions.expit(P),
        expressions.polynomial(P, [0.5, -1.0, 0.25]),
        expressions.beta_log_odds(P, 0.7, 1.2, -0.1),
        expressions.log_sum_exp([P, number(1.0)]),
    ]
    for dialect, engine in ENGINES.items():
        found = engine([written(each, dialect) for each in made], frame_of(x))
        with np.errstate(over="ignore"):
            expected = [1 / (1 + np.exp(-x)), 0.5 - x + x**2 / 4]
        expected += [-0.7 * np.logaddexp(0, -x) + 1.2 * np.logaddexp(0, x) - 0.1, np.logaddexp(x, 1)]
        np.testing.assert_allclose(found, np.stack(expected, axis=1), rtol=1e-14, atol=1e-14)


def test_long_expressions_are_refused():
    """Their length is known before they are written, however often they repeat their parts."""
    made = P + 0.1234567890123456
    while made.size < LONGEST / 2:
        made = made + made
    assert LONGEST / 10 < len(written(made)) < LONGEST
    with pytest.raises(ValueError, match="more than 8,000,000 characters long"):
        total([made, made, made])


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
    names = [DIALECTS["duckdb"].column(name) for name in frame]
    scores = ScoreExpressions(tuple(Expression("column", value=k) for k in range(columns)), logits=logits)
    assert scores.classes == arrays.classes

    def read(made):
        return in_duckdb([written(each, columns=names) for each in made], frame)

    for reading in ("probabilities", "log_probabilities"):
        np.testing.assert_allclose(read(getattr(scores, reading)), getattr(arrays, reading), atol=1e-13)
    for k in range(columns if columns > 2 else 0):
        found = read([scores.one_vs_rest(k).log_odds])[:, 0]
        np.testing.assert_allclose(found, arrays.one_vs_rest(k).log_odds, rtol=1e-12, atol=1e-12)
    for reading in ("probability", "log_odds") if columns < 3 else ():
        found = read([getattr(scores, reading)])[:, 0]
        np.testing.assert_allclose(found, getattr(arrays, reading), rtol=1e-13, atol=1e-13)


@pytest.mark.no_cover
@pytest.mark.parametrize("reading", ["probability", "log_odds"])
@pytest.mark.parametrize("logits", [False, True])
def test_steps_are_at_the_very_scores(reading, logits):
    z, p, _ = several_classes(500, classes=2)
    values = np.unique(z[:, 0] * 10 if logits else p[:, 1])
    edges = np.unique(getattr(Scores(values, logits), reading))[::7]
    scores = ScoreExpressions((P,), logits=logits)
    pieces = np.arange(2.0 * len(edges) + 1)
    made = [scores.steps(reading, edges, pieces[: len(edges) + 1]), scores.steps_at_knots(reading, edges, pieces)]
    texts = [written(each) for each in made]
    read = getattr(Scores(values, logits), reading)
    left, right = (np.searchsorted(edges, read, side=side) for side in ("left", "right"))
    np.testing.assert_array_equal(in_duckdb(texts, frame_of(values)), np.stack([left, left + right], axis=1))
