"""A map as SQL gives in the engine what `predict_proba` gives here."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import calibrant as cal
from calibrant import recalibrate as maps
from calibrant.data.validation import InvalidPredictions
from calibrant.recalibrate.base import BinaryRecalibrator, Recalibrator
from calibrant.recalibrate.export import DIALECTS, WRITTEN, SqlMap
from calibrant.recalibrate.multiclass_scaling import _Structured
from tests.recalibrate.sql_maps import (
    ENGINES,
    ONE_EVENT,
    SEVERAL_CLASSES,
    fitted,
    frame_of,
    in_duckdb,
    in_sqlite,
    one_event,
    several_classes,
    sqlite_table,
)

X, P, Y = one_event(2_000)
NEW_X, NEW_P, _ = one_event(45_000, seed=1, spread=5.0)
#: Random scores, the training scores, where steps are, and the ends.
SCORES = np.concatenate([np.random.default_rng(2).random(53_000), NEW_P, P, [0.0, 1.0, 5e-324, 1 - 2**-53]])
LOGITS = np.concatenate([np.random.default_rng(2).normal(size=9_000), NEW_X[:9_000], X, [0.0, -800.0, 1e7, -1e7]])


@pytest.fixture(scope="module")
def tables():
    """The probabilities and the logits as tables of SQLite."""
    engines = [sqlite_table(frame_of(SCORES)), sqlite_table(frame_of(LOGITS))]
    yield engines
    for engine in engines:
        engine.close()


@pytest.mark.parametrize("logits", [False, True], ids=["probabilities", "logits"])
@pytest.mark.parametrize("template", ONE_EVENT, ids=repr)
def test_maps_of_one_event_are_the_same_in_duckdb_and_sqlite(template, logits, tables):
    made, scores = fitted(template, X, P, Y, logits=logits), LOGITS if logits else SCORES
    expected = made.predict_proba(scores)[:, 1]
    found = in_duckdb([made.to_sql("p")], frame_of(scores))[:, 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    rows = tables[logits].execute(f"SELECT {made.to_sql('p', dialect='sqlite')} FROM scores").fetchall()
    np.testing.assert_allclose(np.array(rows, dtype=float)[:, 0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("logits", [False, True], ids=["probabilities", "logits"])
@pytest.mark.parametrize("template", SEVERAL_CLASSES, ids=repr)
def test_maps_of_several_classes_have_one_expression_per_class(template, logits):
    z, p, y = several_classes(50)
    made = fitted(template, z, p, y, logits=logits)
    new_z, new_p, _ = several_classes(2_000, seed=1)
    new = np.concatenate([z, 5 * new_z, np.eye(3) * 1e7]) if logits else np.concatenate([p, new_p, np.eye(3)])
    frame = frame_of(new)
    deep = logits and isinstance(template, (maps.OneVsRest, _Structured))  # too deep for the parser of old SQLite
    for dialect in ("duckdb",) if deep else ENGINES:
        found = ENGINES[dialect](made.to_sql(list(frame), dialect=dialect), frame)
        np.testing.assert_allclose(found, made.predict_proba(new), rtol=0, atol=1e-12)


@pytest.mark.parametrize("logits", [False, True], ids=["probabilities", "logits"])
@pytest.mark.parametrize(
    "template", [maps.Temperature(), maps.Beta(), maps.Isotonic(), maps.VennAbers(), maps.Smoothed()], ids=repr
)
def test_two_columns_are_two_classes(template, logits):
    z, p, y = several_classes(400, classes=2)
    made = fitted(template, z, p, y, logits=logits)
    new = np.concatenate([z, several_classes(1_000, seed=1, classes=2)[0]]) if logits else p
    found = in_duckdb(made.to_sql(["p0", "p1"]), frame_of(new))
    np.testing.assert_allclose(found, made.predict_proba(new), rtol=0, atol=1e-12)


@pytest.mark.parametrize("template", [maps.Isotonic(), maps.VennAbers(), maps.Histogram()], ids=repr)
def test_a_jump_between_saturated_logits_is_where_it_was_fitted(template):
    rng = np.random.default_rng(0)
    x = np.repeat(np.linspace(25.0, 36.0, 40), 25)  # probabilities that differ by some bits
    made = template.set_params(input="logits").fit(x, rng.random(1_000) < (x > 31) * 0.8 + 0.1)
    for dialect, engine in ENGINES.items():
        found = engine([made.to_sql("p", dialect=dialect)], frame_of(x))[:, 0]
        np.testing.assert_allclose(found, made.predict_proba(x)[:, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", [in_duckdb, in_sqlite])
def test_scores_that_would_be_refused_become_null(engine):
    dialect = engine.__name__.removeprefix("in_")
    frame = frame_of(np.array([np.nan, -1e-9, 1 + 1e-9, np.inf, 0.5]))
    found = engine([maps.Platt().fit(P, Y).to_sql("p", dialect=dialect)], frame)[:, 0]
    assert np.isnan(found).tolist() == [True, True, True, True, False]
    clipped = maps.Isotonic(clip=True).fit(P, Y)
    found = engine([clipped.to_sql("p", dialect=dialect)], frame)[:, 0]
    np.testing.assert_allclose(found[1:3], clipped.predict_proba([0.0, 1.0])[:, 1], atol=1e-12)
    logits = maps.Platt(input="logits").fit(X, Y)
    assert np.isnan(engine([logits.to_sql("p", dialect=dialect)], frame)[:, 0]).tolist()[0]


def test_null_and_not_a_number_are_null_in_duckdb():
    import duckdb

    rows = "(VALUES (NULL), ('nan'::DOUBLE), ('inf'::DOUBLE), ('-inf'::DOUBLE)) AS scores(p)"
    for made in (maps.Histogram().fit(P, Y), maps.Beta(input="logits").fit(X, Y)):
        assert duckdb.sql(f"SELECT {made.to_sql('p')} FROM {rows}").fetchall() == [(None,)] * 4


def test_rows_of_classes_that_do_not_sum_to_one_become_null():
    _, p, y = several_classes(100)
    made = maps.Temperature().fit(p, y)
    found = in_duckdb(made.to_sql(["p0", "p1", "p2"]), frame_of([[0.5, 0.2, 0.3], [0.5, 0.2, 0.2], [0.5, np.nan, 0.5]]))
    assert np.isnan(found).tolist() == [[False] * 3, [True] * 3, [True] * 3]


@pytest.mark.parametrize("kind", ["FLOAT", "DECIMAL(18, 3)", "INTEGER"])
def test_columns_of_any_type_are_read_in_double_precision(kind):
    import duckdb

    p = np.linspace(0, 1, 101).astype(np.float32)
    y = np.arange(101) % 3 == 0
    rows = f"(SELECT unnest([0, 0.01, 0.3, 0.77, 1])::{kind} AS p)"
    read = np.array(duckdb.sql(f"SELECT p::DOUBLE FROM {rows}").fetchall())[:, 0]
    for made in (maps.Histogram(bins=cal.EqualMass(30)).fit(p, y), maps.Beta().fit(p, y), maps.Identity().fit(p, y)):
        relation = duckdb.sql(f"SELECT {made.to_sql('p')} AS q FROM {rows}")
        assert relation.types == ["DOUBLE"]
        np.testing.assert_allclose(np.array(relation.fetchall())[:, 0], made.predict_proba(read)[:, 1], atol=1e-12)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.parametrize("name", ['a "b" `c`', "select", "P; DROP TABLE scores --"])
def test_names_of_columns_are_quoted(dialect, name):
    made = maps.Platt().fit(P, Y)
    found = ENGINES[dialect]([made.to_sql(name, dialect=dialect)], frame_of(P[:5]).rename(columns={"p": name}))
    np.testing.assert_allclose(found[:, 0], made.predict_proba(P[:5])[:, 1], atol=1e-12)


def test_a_column_that_is_not_there_is_an_error_in_sqlite_too():
    with pytest.raises(Exception, match="no such column: q"):
        in_sqlite([maps.Platt().fit(P, Y).to_sql("q", dialect="sqlite")], frame_of(P[:5]))


def test_an_expression_is_written_as_it_is():
    made = maps.Spline().fit(P, Y)
    found = in_duckdb([made.to_sql(expression="scores.p / 100")], frame_of(100 * P))[:, 0]
    np.testing.assert_allclose(found, made.predict_proba(P)[:, 1], atol=1e-12)


def test_columns_named_after_the_classes_come_in_any_order():
    _, p, y = several_classes(200)
    made = maps.Temperature().fit(p, np.array(["cat", "cow", "dog"])[y])
    assert made.to_sql(["dog", "cat", "cow"]) == made.to_sql(["cat", "cow", "dog"])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_text_is_sql_of_its_dialect(dialect):
    import sqlglot

    read = None if dialect == "ansi" else dialect
    for template in (maps.Beta(), maps.Isotonic(), maps.Spline()):
        parsed = sqlglot.parse_one(f"SELECT {template.fit(P, Y).to_sql('p', dialect=dialect)}", read=read)
        functions = {type(node).__name__ for node in parsed.find_all(sqlglot.exp.Func)}
        assert functions <= {
            "Case",
            "If",
            "Cast",
            "TryCast",
            "Exp",
            "Ln",
            "Greatest",
            "Least",
            "Max",
            "Min",
            "Abs",
            "And",
        }
        assert {node.name for node in parsed.find_all(sqlglot.exp.Column)} == {"p"}


def test_maps_that_cannot_be_written_name_those_that_can():
    from sklearn.linear_model import LogisticRegression

    _, p, y = several_classes(100)
    for made, scores, observed, columns in (
        (maps.FromClassifier(LogisticRegression()), P, Y, "p"),
        (maps.ConditionalLogit(), p, y, ["a", "b", "c"]),
        (maps.Auto([maps.FromClassifier(LogisticRegression())], combine="choose", cautious=False), P**2, Y, "p"),
    ):
        with pytest.raises(TypeError, match="cannot be written as SQL; these maps can: Auto, BayesianAv"):
            made.fit(scores, observed).to_sql(columns)

    class Own(BinaryRecalibrator):
        def _fit_cells(self, cells): ...

        def _map(self, scores):
            return scores.probability

    with pytest.raises(TypeError, match="Own cannot be written as SQL"):
        Own().fit(P, Y).to_sql("p")


def test_every_public_map_is_tried_here_or_cannot_be_written():
    public = {name: getattr(maps, name) for name in dir(maps)}
    of_probabilities = {
        name for name, found in public.items() if isinstance(found, type) and issubclass(found, Recalibrator)
    }
    tried = {type(template).__name__ for template in (*ONE_EVENT, *SEVERAL_CLASSES)}
    without = {"CatBoost", "ConditionalLogit", "FromClassifier", "LightGBM", "TabICL", "TabPFN"}
    elsewhere = {"FeatureMap"}  # needs features: tests/recalibrate/test_feature_map.py
    assert of_probabilities - {"BinaryRecalibrator", "Recalibrator"} == tried | without | elsewhere
    assert tried | elsewhere == set(WRITTEN.split(", "))
    for name in without:
        assert public[name]._expressions is SqlMap._expressions


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        ("p", {"dialect": "oracle"}, ValueError, "dialect must be one of ansi, duckdb, postgres, spark, sqlite"),
        (None, {}, TypeError, "Give either the name of the column or an expression"),
        ("p", {"expression": "q"}, TypeError, "Give either"),
        ("", {}, TypeError, "column must be a text"),
        (["a", "b", "c"], {}, InvalidPredictions, "Platt of 2 classes needs one column, or two; got 3"),
    ],
)
def test_wrong_arguments_are_refused(given, options, error, message):
    with pytest.raises(error, match=message):
        maps.Platt().fit(P, Y).to_sql(given, **options)


def test_classes_need_their_columns_and_maps_their_fit():
    _, p, y = several_classes(100)
    with pytest.raises(InvalidPredictions, match="Temperature of 3 classes needs 3 columns, one per class; got 1"):
        maps.Temperature().fit(p, y).to_sql("p")
    with pytest.raises(NotFittedError):
        maps.Platt().to_sql("p")


@pytest.mark.no_cover
def test_what_would_be_too_long_is_refused():
    with pytest.raises(ValueError, match="too many parts for SQL"):
        maps.Histogram(bins=cal.EqualWidth(110_000)).fit(P, Y).to_sql("p")
