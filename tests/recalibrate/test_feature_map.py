"""The map with features: what it learns, when it stays the plain map, and that files, SQL and ONNX say the same."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.data.validation import InvalidPredictions
from calibrant.recalibrate import Auto, FeatureMap
from calibrant.recalibrate import feature_map as module
from calibrant.recalibrate.feature_map import CodedRows, Path


def world(n=4000, seed=0, size=0.2):
    """Numbers, text, truth values and missing ones; predictions are too low for some."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.6, n)
    X = {
        "age": rng.integers(18, 80, n).astype(float),
        "place": rng.choice(["DK", "it's", 'a"b', "c\\d", "(other)"], n),
        "member": rng.random(n) < 0.4,
        "noise": rng.normal(size=n),
    }
    X["age"][rng.random(n) < 0.1] = np.nan
    member = X["member"].astype(object)
    member[rng.random(n) < 0.05] = None
    X["member"] = member
    place = X["place"].astype(object)
    place[rng.random(n) < 0.1] = None
    X["place"] = place
    wrong = ((place == "it's") & ~(X["age"] > 40)) | (np.array([v is True for v in member]) & (place == "c\\d"))
    y = (rng.random(n) < p + size * wrong + 0.1 * np.array([v is None for v in place])).astype(int)
    return p, y, X


@pytest.fixture(scope="module")
def fitted():
    p, y, X = world(8000)
    return FeatureMap().fit(p, y, features=X), p, X


def new_rows(X, n=400):
    """Some of the rows, with values that the fit has not seen."""
    some = {name: np.array(column[:n]) for name, column in X.items()}
    some["place"][3], some["age"][4] = "never seen", 500.0
    return some


def test_features_that_explain_the_error_are_used_and_help(fitted):
    made, *_ = fitted
    p, y, X = world(20_000, seed=1)
    q, plain = made.predict_proba(p, X)[:, 1], Auto().fit(*world(8000)[:2]).predict_proba(p)[:, 1]
    loss = [-np.mean(np.log(np.where(y == 1, each, 1 - each))) for each in (q, plain)]
    assert made.uses_features_
    assert 0 < made.scale_ <= 1
    assert made.gain_ > 3 * made.gain_se_
    assert {one["name"] for one in made.features_} >= {"place"}
    assert loss[0] < loss[1] - 0.002


def test_without_use_of_features_the_map_is_auto_exactly():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.95, 600)
    y = (rng.random(600) < p).astype(int)
    made = FeatureMap().fit(p, y, features={"noise": rng.normal(size=600)})
    assert not made.uses_features_
    assert np.array_equal(made.predict_proba(p), Auto().fit(p, y).predict_proba(p))
    assert made.to_sql("p") == Auto().fit(p, y).to_sql("p")


def test_the_repair_of_an_audit_is_the_map(fitted):
    p, y, X = world(1500)
    repair = cal.audit(y, p, X).repair()
    same = FeatureMap().fit(p, y, features=X)
    assert np.array_equal(repair.predict_proba(p, X), same.predict_proba(p, X))


def test_order_of_rows_and_columns_and_unit_of_weights_do_not_matter():
    p, y, X = world(3000, size=0.35)
    order = np.random.default_rng(1).permutation(len(y))
    made = FeatureMap().fit(p, y, features=X)
    turned = {name: X[name][order] for name in reversed(X)}
    again = FeatureMap().fit(p[order], y[order], np.full(len(y), 7.0), features=turned)
    assert made.uses_features_
    assert np.allclose(made.predict_proba(p, X), again.predict_proba(p, X), atol=1e-12)


def test_rows_without_weight_do_not_count():
    p, y, X = world(2000)
    weight = np.tile([1.0, 2.0, 0.0], 667)[:2000]
    some = weight > 0
    first = FeatureMap().fit(p, y, weight, features=X)
    second = FeatureMap().fit(p[some], y[some], weight[some], features={k: v[some] for k, v in X.items()})
    assert np.allclose(first.predict_proba(p, X), second.predict_proba(p, X), atol=1e-12)


def test_saved_and_loaded_it_predicts_the_same(fitted, tmp_path):
    made, p, X = fitted
    made.save(tmp_path / "map.json")
    loaded = cal.recalibrate.load(tmp_path / "map.json")
    some = new_rows(X)
    assert np.array_equal(made.predict_proba(p[:400], some), loaded.predict_proba(p[:400], some))
    json.loads((tmp_path / "map.json").read_text())


def test_a_file_whose_tables_do_not_fit_is_refused(fitted, tmp_path):
    made, *_ = fitted
    broken = FeatureMap()
    vars(broken).update(vars(made))
    broken.score_cuts_ = made.score_cuts_[:-1]
    broken.features_ = [one | {"cuts": one["cuts"][:-1], "values": one["values"][:-1]} for one in made.features_]
    broken.save(tmp_path / "map.json")
    with pytest.raises(cal.data.InvalidFile):
        cal.recalibrate.load(tmp_path / "map.json")


def test_duckdb_gives_the_same(fitted):
    duckdb = pytest.importorskip("duckdb")
    made, p, X = fitted
    some = new_rows(X)
    frame = pd.DataFrame(some).assign(p=p[:400], i=range(400))
    frame["place"] = frame["place"].astype(object)
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        rows = connection.sql(f"SELECT {made.to_sql('p')} AS q FROM frame ORDER BY i").fetchall()
        nan = connection.sql(
            f"SELECT {made.to_sql('p')} FROM (SELECT * REPLACE ('nan'::DOUBLE AS age) FROM frame) ORDER BY i"
        )
        missing = np.array(nan.fetchall())[:, 0].astype(float)
    want = made.predict_proba(p[:400], some)[:, 1]
    assert np.abs(np.array(rows)[:, 0] - want).max() < 1e-9
    some["age"] = np.full(400, np.nan)
    assert np.abs(missing - made.predict_proba(p[:400], some)[:, 1]).max() < 1e-9


def test_sqlite_gives_the_same(fitted):
    made, p, X = fitted
    some = new_rows(X)
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE t (i INTEGER, p REAL, age REAL, place TEXT, member INTEGER, noise REAL)")
        rows = zip(range(400), p, some["age"], some["place"], some["member"], some["noise"], strict=False)
        plain = [(i, q, None if np.isnan(a) else a, b, None if m is None else int(m), z) for i, q, a, b, m, z in rows]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", plain)
        found = connection.execute(f"SELECT {made.to_sql('p', dialect='sqlite')} FROM t ORDER BY i").fetchall()
    assert np.abs(np.array(found)[:, 0] - made.predict_proba(p[:400], some)[:, 1]).max() < 1e-9


def test_texts_are_quoted_as_each_dialect_needs(fitted):
    made, *_ = fitted
    assert "'it''s'" in made.to_sql("p")
    assert r"'it\'s'" in made.to_sql("p", dialect="spark")
    assert r"'c\\d'" in made.to_sql("p", dialect="spark")


def test_onnx_gives_the_same(fitted):
    runtime = pytest.importorskip("onnxruntime")
    made, p, X = fitted
    some = new_rows(X)
    session = runtime.InferenceSession(made.to_onnx().SerializeToString())
    every = {"scores": p[:400], **some}
    every["place"] = np.array(["" if value is None else value for value in some["place"]], dtype=object)
    every["member"] = np.array([np.nan if value is None else float(value) for value in some["member"]])
    given = {one.name: every[one.name] for one in session.get_inputs()}
    found = session.run(None, given)[0]
    assert np.abs(found - made.predict_proba(p[:400], some)).max() < 1e-9


def test_logits_and_two_columns_are_the_same_as_probabilities(fitted):
    made, p, X = fitted
    y = world(8000)[1]
    odds = np.log(p / (1 - p))
    logits = FeatureMap(input="logits").fit(odds, y, features=X)
    both = FeatureMap().fit(np.stack([1 - p, p], axis=1), y, features=X)
    want = made.predict_proba(p, X)
    assert np.abs(logits.predict_proba(odds, X) - want).max() < 1e-6
    assert np.abs(both.predict_proba(np.stack([1 - p, p], axis=1), X) - want).max() < 1e-6
    assert made.transform(p[:, None], X).shape == (8000, 1)
    assert set(made.predict(p, X)) == {0, 1}


def test_what_is_missing_or_of_another_kind_is_refused(fitted):
    made, p, X = fitted
    with pytest.raises(TypeError, match="needs features: the columns"):
        made.predict_proba(p)
    with pytest.raises(InvalidPredictions, match="lacks the column"):
        made.predict_proba(p, {"noise": X["noise"]})
    with pytest.raises(InvalidPredictions, match="must hold text"):
        made.predict_proba(p, {**X, "place": X["noise"]})
    with pytest.raises(TypeError, match="needs features="):
        FeatureMap().fit(p, world(8000)[1])
    with pytest.raises(InvalidPredictions, match="one entry for each"):
        FeatureMap().fit(p, world(8000)[1], features={"age": [1.0]})
    with pytest.raises(InvalidPredictions, match="binary map"):
        FeatureMap().fit(np.full((3, 3), 1 / 3), [0, 1, 2], features={"a": [1, 2, 3]})
    with pytest.raises(InvalidPredictions, match="rename"):
        FeatureMap().fit([0.1, 0.2], [0, 1], features={module.SCORE: [1, 2]})


def test_it_is_never_certain_without_evidence():
    p = np.linspace(0.05, 0.95, 400)
    y = (np.arange(400) % 2).astype(int)
    made = FeatureMap().fit(p, y, features={"answer": y})
    q = made.predict_proba(p, {"answer": y})[:, 1]
    assert q.min() >= 0.5 / 401
    assert q.max() <= 1 - 0.5 / 401
    assert made.uses_features_


@pytest.mark.parametrize("ensemble", [True, False])
def test_a_recalibrated_classifier_gives_its_features_to_the_map(ensemble):
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from calibrant.integrations.sklearn import RecalibratedClassifier

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=3000), "place": rng.choice(["DK", "SE"], 3000)})
    y = (rng.random(3000) < 1 / (1 + np.exp(-X["x"] - 1.5 * (X["place"] == "SE")))).astype(int)
    blind = make_pipeline(make_column_transformer(("passthrough", ["x"])), LogisticRegression())
    made = RecalibratedClassifier(blind, FeatureMap(), cv=3, ensemble=ensemble).fit(X, y)
    q = made.predict_proba(pd.DataFrame({"x": [0.0, 0.0], "place": ["DK", "SE"]}))[:, 1]
    assert q[1] - q[0] > 0.2
    with pytest.raises(TypeError, match="needs features"):
        RecalibratedClassifier(blind, FeatureMap(), cv=3).fit(X, np.arange(3000) % 3)


def test_clusters_stay_in_one_fold():
    p, y, X = world(1000)
    unit = np.repeat(np.arange(100), 10)
    rows = CodedRows.of(y, p, X, None, unit)
    edges = rows.edges(5)
    assert rows.unit is not None
    for k in range(4):
        assert not set(rows.unit[: edges[k + 1]]) & set(rows.unit[edges[k + 1] :])


def test_how_many_trees_and_folds(monkeypatch):
    asked = []
    monkeypatch.setattr(CodedRows, "trees", lambda self, rows, offset, number, *_: asked.append((len(self), number)))
    monkeypatch.setattr(CodedRows, "tables", lambda self, rows, offset, most=0: [])
    for n in (100_000, 100_001, 200_000, 200_001):
        rng = np.random.default_rng(0)
        p = rng.random(n)
        rows = CodedRows.of((rng.random(n) < p).astype(int), p, {"a": np.zeros(n)})
        asked.clear()
        Path.of(rows)
        folds, trees = {100_000: (5, 400), 100_001: (3, 400), 200_000: (3, 400), 200_001: (3, 60)}[n]
        assert asked == [(n, trees)] * folds


def test_what_the_constants_learn():
    p, y, X = world(2000, seed=5)
    made = FeatureMap().fit(p, y, features=X)
    small = FeatureMap().fit(p[:1499], y[:1499], features={k: v[:1499] for k, v in X.items()})
    assert made.trees_["feature"].shape[1] == 15
    assert small.trees_ == {} or small.trees_["feature"].shape[1] == 3
    assert [len(made.tables_), len(made.trees_["value"]), round(made.gain_, 6)] == FROZEN


FROZEN = [2, 4, 0.006724]
