"""The audit: error rates in calibrated worlds, what it finds in others, every kind of data, and what it refuses."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import calibrant as cal
from calibrant.data.validation import InvalidPredictions, UnsupportedPredictions
from calibrant.inference import feature_audit as module
from calibrant.inference.feature_audit import _combined, _Forward, _lower_bound, soft_sign
from calibrant.numerics.boosting import Growth
from calibrant.recalibrate.feature_map import CodedRows


def world(n, seed=0, gap=0.0):
    rng = np.random.default_rng(seed)
    X = {"age": rng.integers(18, 80, n), "place": rng.choice(["DK", "SE"], n), "x": rng.normal(size=n)}
    p = rng.uniform(0.1, 0.6, n)
    true = p + gap * ((X["age"] >= 50) & (X["place"] == "SE"))
    return X, p, (rng.random(n) < true).astype(int), float(np.abs(true - p).mean())


@pytest.fixture(scope="module")
def found():
    X, p, y, _ = world(6000, gap=0.2)
    return cal.audit(y, p, X)


def test_an_error_of_a_quarter_of_the_rows_is_found_and_measured(found):
    truth = world(6000, gap=0.2)[3]
    error = found.error
    assert found.test.p_value < 1e-12
    assert found.test.details["table"] in ("age and place", "place and age")
    assert 0.5 * truth < error.l1.interval.low < truth
    assert error.l1 == pytest.approx(truth, abs=0.012)
    assert error.l1.interval.side == "lower"
    assert str(error.l1.target) == "true error (L1)"
    assert error.l1_score < error.l1
    split = error.log_loss
    assert split.total == pytest.approx(split.score + split.features, abs=1e-12)
    assert split.features.interval.low > 0
    assert error.brier.total > 0
    assert [one.feature for one in found.features[:2]] in (["age", "place"], ["place", "age"])
    assert found.features[0].loss > 0


def test_it_prints_and_has_plain_types(found):
    text = str(found)
    assert text.startswith("Given the features, is miscalibration left? Yes (p = ")
    assert "place = SE" in text
    assert "Features: " in text
    assert repr(found).startswith("<Audit of 3 features, n=6_000, p = ")
    assert "place = SE" in found._repr_html_()
    assert repr(found.segments[0]).startswith("<Segment place = SE and age")
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["segments"][0]["direction"] == "too low"
    assert plain["error"]["log_loss"]["before"]["value"] > 0
    assert plain["test"]["details"]["score"] <= 1


def test_a_calibrated_model_prints_so():
    X, p, y, _ = world(500)
    audit = cal.audit(y, p, X)
    assert "Not detected" in str(audit)
    assert ("did not fall" in str(audit)) == (audit.error.log_loss.total <= 0)
    assert audit.error.l1.interval.low == 0
    assert "No segment was confirmed" in audit._repr_html_()


@pytest.mark.no_cover
def test_calibrated_models_are_rejected_at_most_at_the_level():
    samples, p_values = 60, []
    for seed in range(samples):
        X, p, y, _ = world(400, seed=seed)
        p_values.append(cal.audit(y, p, X, seed=seed).test.p_value)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / samples)


@pytest.mark.no_cover
def test_clusters_are_not_taken_for_independent_rows():
    rejected = {True: 0, False: 0}
    for seed in range(16):
        X, p, _, _ = world(600, seed=seed)
        unit = np.repeat(np.arange(60), 10)
        X["place"] = X["place"][::10][unit]
        p = p[::10][unit]
        y = (np.random.default_rng([seed, 1]).random(60)[unit] < p).astype(int)  # ten rows, one outcome
        for grouped in rejected:
            audit = cal.audit(cal.Binary(y, p, group=unit if grouped else None), X)
            rejected[grouped] += audit.test.p_value <= 0.05
    assert rejected[True] <= 3
    assert rejected[False] > 10


def test_clustered_errors_are_found():
    X, p, y, _ = world(6000, gap=0.25)
    audit = cal.audit(cal.Binary(y, p, group=np.arange(6000) // 4), X)
    assert audit.test.p_value < 1e-6
    assert audit.test.details["tables"] is None
    assert audit.segments
    few = cal.audit(cal.Binary(y, p, group=np.arange(6000) // 2000), X)
    assert few.test.p_value == 1.0
    assert few.segments == ()


def test_three_looks_share_the_significance():
    X, p, y, _ = world(1500, gap=0.1)
    rows = CodedRows.of(y, p, X)
    test = _combined(cal.Binary(y, p), rows, _Forward.of(rows))
    looks = [test.details[name] for name in ("score", "tables", "forward")]
    assert test.p_value == pytest.approx(min(1, looks[0] / 0.15, looks[1] / 0.5, looks[2] / 0.35))
    unit = np.arange(1500) // 3
    rows = CodedRows.of(y, p, X, None, unit)
    test = _combined(cal.Binary(y, p, group=unit), rows, _Forward.of(rows))
    assert test.p_value == pytest.approx(min(1, test.details["score"] / 0.2, test.details["forward"] / 0.8))


def test_the_look_at_the_score_is_the_score_test_of_intercept_and_slope():
    X, p, y, _ = world(1500, gap=0.1)
    x = np.log(p / (1 - p))
    A = np.stack([np.ones(1500), x])
    score, information = A @ (y - p), (A * (p * (1 - p))) @ A.T
    want = chi2.sf(score @ np.linalg.solve(information, score), 2)
    assert cal.audit(y, p, X).test.details["score"] == pytest.approx(want, rel=1e-6)


def test_the_look_at_one_score_is_that_of_the_mean_alone():
    y = (np.arange(1000) < 330).astype(int)
    rows = CodedRows.of(y, np.full(1000, 0.3), {"a": np.arange(1000) % 7})
    want = chi2.sf(30**2 / (1000 * 0.3 * 0.7), 1)
    assert module._score_look(cal.Binary(y, np.full(1000, 0.3)), rows) == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize(("tails", "found"), [((0.3, 0.4), 0.6), ((0.9, 0.7), 1.0), ((0.01, 0.9), None)])
def test_of_few_events_the_larger_of_two_p_values_counts(monkeypatch, tails, found):
    """That of the score test, and twice the smaller tail."""
    left = iter(tails)
    monkeypatch.setattr(module, "weighted_tail", lambda *_: next(left))
    y, p = (np.arange(100) < 13).astype(int), np.full(100, 0.1)
    rows = CodedRows.of(y, p, {"a": np.arange(100) % 7})
    want = chi2.sf(3**2 / (100 * 0.1 * 0.9), 1) if found is None else found
    assert module._score_look(cal.Binary(y, p), rows) == pytest.approx(want, rel=1e-6)


def test_few_events_are_simulated(monkeypatch):
    asked = []
    monkeypatch.setattr(module, "weighted_tail", lambda *_: asked.append(1) or 0.5)
    for variance, simulated in ((39.0, True), (41.0, False)):
        n = int(variance / 0.09)
        rows = CodedRows.of(np.zeros(n), np.full(n, 0.1), {"a": np.zeros(n)})
        asked.clear()
        module._score_look(cal.Binary(np.zeros(n, int), np.full(n, 0.1)), rows)
        assert bool(asked) is simulated


def test_trees_of_the_forward_look(monkeypatch):
    grown = []
    original = CodedRows.trees

    def trees(self, rows, offset, number, watch=None, growth=None):
        grown.append(growth)
        return original(self, rows, offset, number, watch, growth)

    monkeypatch.setattr(CodedRows, "trees", trees)
    for n, depth in ((1499, 2), (1500, 3)):
        X, p, y, _ = world(n)
        grown.clear()
        _Forward.of(CodedRows.of(y, p, X))
        assert grown == [Growth(20, depth, 20.0)] * 4


def test_blocks_are_predicted_by_the_past_alone():
    """Changing the outcomes of the last block changes no coefficient of any block."""
    X, p, y, _ = world(1000, gap=0.2)
    rows = CodedRows.of(y, p, X)
    start = int(rows.edges(5)[4])
    first = _Forward.of(rows)
    rows.y[start:] = 1 - rows.y[start:]
    second = _Forward.of(rows)
    for (_, one, _), (_, two, _) in zip(first.signs, second.signs, strict=True):
        assert np.array_equal(one, two)


def test_the_soft_sign():
    gap = np.array([0.01, -0.02, 0.2, -0.3])
    size = np.sqrt(np.mean(gap**2))
    assert soft_sign(gap, np.ones(4)) == pytest.approx(np.clip(2 * gap / size, -1, 1))
    assert not soft_sign(np.zeros(3), np.ones(3)).any()


@pytest.mark.no_cover
def test_the_bound_is_rarely_above_the_truth():
    above = 0
    for seed in range(30):
        X, p, y, truth = world(1000, seed=seed, gap=0.2)
        rows = CodedRows.of(y, p, X, seed=seed)
        above += _lower_bound(rows, _Forward.of(rows), 0.05) > truth
    assert above <= 0.05 * 30 + 3 * np.sqrt(0.05 * 0.95 * 30)


def test_what_was_impossible_and_happened_rejects():
    X, p, y, _ = world(300)
    p, y = p.copy(), y.copy()
    p[0], y[0] = 0.0, 1
    audit = cal.audit(y, p, X)
    assert audit.test.p_value == 0
    assert audit.error.log_loss.before == np.inf
    assert "infinite" in str(audit)


def test_order_of_rows_and_unit_of_weights_do_not_matter():
    X, p, y, _ = world(1500, gap=0.2)
    order = np.random.default_rng(1).permutation(1500)
    first = cal.audit(y, p, X)
    frame = pd.DataFrame(X).iloc[order].reset_index(drop=True)[["x", "place", "age"]]
    second = cal.audit(cal.Binary(y[order], p[order], weight=np.full(1500, 3.0)), frame)
    assert first.test.details == pytest.approx(second.test.details)
    assert [one.text for one in first.segments] == [one.text for one in second.segments]
    assert first.error.l1 == pytest.approx(second.error.l1)


def test_rows_without_weight_do_not_count():
    X, p, y, _ = world(1200, gap=0.2)
    weight = np.tile([1.0, 2.0, 0.0], 400)
    some = weight > 0
    first = cal.audit(cal.Binary(y, p, weight=weight), X)
    second = cal.audit(cal.Binary(y[some], p[some], weight=weight[some]), {k: v[some] for k, v in X.items()})
    assert first.n == 800
    assert first.test.p_value == pytest.approx(second.test.p_value)


def test_multiclass_audits_share_the_error_rates():
    rng = np.random.default_rng(0)
    n = 4000
    P = rng.dirichlet([2, 2, 2], n)
    place = rng.choice(["DK", "SE"], n)
    shifted = np.where((place == "SE")[:, None], P[:, [1, 0, 2]], P)
    y = (rng.random((n, 1)) > shifted.cumsum(axis=1)).sum(axis=1)
    audit = cal.audit(cal.Multiclass(np.array(["a", "b", "c"])[y], P, classes=["a", "b", "c"]), {"place": place})
    assert list(audit.parts) == ["top label", "class a", "class b", "class c"]
    assert audit.test.p_value == pytest.approx(4 * min(part.test.p_value for part in audit.parts.values()))
    assert {part.alpha for part in audit.parts.values()} == {0.0125}
    assert all(one.adjusted <= 0.05 for one in audit.segments)
    assert {one.outcome for one in audit.segments} >= {"class a", "class b"}
    assert "class a" in str(audit) or "class b" in str(audit)
    assert "| of the top label: at least " in str(audit)
    assert "(98.75 % confidence)" in str(audit)  # of the error of the top label
    with pytest.raises(TypeError, match="one_vs_rest"):
        audit.repair()


def test_forecasts_are_audited_by_their_coverage():
    rng = np.random.default_rng(0)
    n = 3000
    X = {"kind": rng.choice(["a", "b"], n), "x": rng.normal(size=n)}
    mean = rng.normal(size=n)
    spread = np.where(X["kind"] == "a", 2.0, 1.0)
    y = mean + spread * rng.normal(size=n)
    wrong = cal.audit(cal.Gaussian(y, mean, np.ones(n)), X)
    right = cal.audit(cal.Gaussian(y, mean, spread), X)
    assert wrong.test.p_value < 1e-9
    assert wrong.segments[0].text == "kind = a"
    assert wrong.outcome == wrong.segments[0].outcome == "coverage"
    assert "of the coverage: at least" in str(wrong)
    assert wrong.segments[0].predicted == pytest.approx(0.9)
    assert right.test.p_value > 0.001
    levels = [0.1, 0.5, 0.9]
    quantiles = mean[:, None] + np.array([-1.2816, 0.0, 1.2816])
    inner = cal.audit(cal.Quantiles(y, levels, quantiles), X)
    assert inner.segments[0].predicted == pytest.approx(0.8)
    with pytest.raises(TypeError, match="no map repairs forecasts"):
        wrong.repair()
    with pytest.raises(UnsupportedPredictions, match="audit takes"):
        cal.audit(cal.Samples(y, np.zeros((n, 5))), X)


def test_what_is_refused():
    X, p, y, _ = world(50)
    with pytest.raises(TypeError, match="needs features"):
        cal.audit(y, p)
    with pytest.raises(TypeError, match="not both"):
        cal.audit(cal.Binary(y, p), p, X)
    with pytest.raises(ValueError, match="alpha"):
        cal.audit(y, p, X, alpha=2)
    with pytest.raises(ValueError, match="most"):
        cal.audit(y, p, X, most=0)
    with pytest.raises(InvalidPredictions, match="one entry for each of the 50 rows"):
        cal.audit(y, p, {"a": [1]})
    series, frame = pd.Series(p), pd.DataFrame(X, index=range(1, 51))
    with pytest.raises(InvalidPredictions, match="different pandas indexes"):
        cal.audit(cal.Binary(pd.Series(y), series), frame)


@pytest.mark.parametrize("n", [2, 10, 60])
def test_few_rows_say_nothing(n):
    X, p, y, _ = world(n)
    audit = cal.audit(y, p, X)
    assert 0 < audit.test.p_value <= 1
    assert audit.segments == ()
    assert isinstance(str(audit), str)
    assert audit.repair().predict_proba(p, X).shape == (n, 2)


def test_outcomes_of_one_kind():
    X, p, _, _ = world(200)
    for y in (np.zeros(200, int), np.ones(200, int)):
        assert cal.audit(y, p, X).test.p_value < 1e-6
    y, p, X = np.tile([0, 1], 200), np.full(400, 0.5), {"c": np.ones(400)}
    assert cal.audit(y, p, X).test.p_value > 0.05
    assert cal.audit(cal.Binary(y, p, group=np.arange(400) // 4), X).test.p_value > 0.05
