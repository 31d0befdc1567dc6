"""A map as an ONNX model gives in the runtime what `predict_proba` gives here."""

import builtins

import numpy as np
import pytest

from calibrant import recalibrate as maps
from tests.recalibrate.sql_maps import ONE_EVENT, SEVERAL_CLASSES, fitted, one_event, several_classes

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'calibrant[onnx]'")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime, which applies the models, is not installed")

X, P, Y = one_event(400)
SCORES = np.concatenate([np.random.default_rng(2).random(5_000), P, [0.0, 1.0, 5e-324, 1 - 2**-53]])
LOGITS = np.concatenate([one_event(5_000, seed=1, spread=5.0)[0], X, [0.0, -800.0, 1e7, -1e7]])


def applied(model, scores):
    onnx.checker.check_model(model)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(["probabilities"], {"scores": np.asarray(scores, dtype=np.float64)})[0]


@pytest.mark.parametrize("logits", [False, True], ids=["probabilities", "logits"])
@pytest.mark.parametrize("template", [each for each in ONE_EVENT if not isinstance(each, maps.Smoothed)], ids=repr)
def test_maps_of_one_event(template, logits):
    made, scores = fitted(template, X, P, Y, logits=logits), LOGITS if logits else SCORES
    np.testing.assert_allclose(applied(made.to_onnx(), scores), made.predict_proba(scores), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("template", "logits"),
    [(maps.Smoothed(), False), (maps.Smoothed(), True)],
    ids=repr,
)
def test_maps_with_a_term_for_each_fitted_row(template, logits):
    """Fitted to few rows: the runtime takes long to read thousands of terms, so they are fitted to few rows."""
    x, p, y = one_event(12)
    made, scores = fitted(template, x, p, y, logits=logits), LOGITS if logits else SCORES
    np.testing.assert_allclose(applied(made.to_onnx(), scores), made.predict_proba(scores), rtol=0, atol=1e-12)


@pytest.mark.parametrize("logits", [False, True], ids=["probabilities", "logits"])
@pytest.mark.parametrize("template", SEVERAL_CLASSES, ids=repr)
def test_maps_of_several_classes(template, logits):
    z, p, y = several_classes(50)
    made = fitted(template, z, p, y, logits=logits)
    new_z, new_p, _ = several_classes(500, seed=1)
    new = np.concatenate([z, 5 * new_z, np.eye(3) * 1e7]) if logits else np.concatenate([p, new_p, np.eye(3)])
    np.testing.assert_allclose(applied(made.to_onnx(), new), made.predict_proba(new), rtol=0, atol=1e-12)


def test_two_columns_are_two_classes():
    _, p, y = several_classes(200, classes=2)
    made = maps.Isotonic().fit(p, y)
    np.testing.assert_allclose(applied(made.to_onnx(), p), made.predict_proba(p), rtol=0, atol=1e-12)


def test_what_predict_proba_refuses_is_not_a_number():
    made = maps.Platt().fit(P, Y)
    found = applied(made.to_onnx(), [np.nan, -0.1, 1.1, np.inf, 0.5])
    assert np.isnan(found[:4]).all()
    np.testing.assert_allclose(found[4:], made.predict_proba([0.5]), rtol=0, atol=1e-12)


def test_equal_parts_are_one_node():
    """Lines of a broken line all contain the log odds, which are computed once."""
    model = maps.BayesianAverage().fit(P, Y).to_onnx()
    assert [node.op_type for node in model.graph.node].count("Log") == 2


def test_a_saved_model_is_the_same(tmp_path):
    made = maps.Beta().fit(P, Y)
    onnx.save(made.to_onnx(), tmp_path / "map.onnx")
    found = applied(onnx.load(tmp_path / "map.onnx"), SCORES)
    np.testing.assert_allclose(found, made.predict_proba(SCORES), rtol=0, atol=1e-12)


def test_a_map_that_cannot_be_written_says_so():
    class Constant(maps.BinaryRecalibrator):
        def _fit_cells(self, cells):
            self.rate_ = cells.rate

        def _map(self, scores):
            return np.full(len(scores), self.rate_)

    with pytest.raises(TypeError, match="these maps can"):
        Constant().fit(P, Y).to_onnx()


def test_without_onnx_the_remedy_is_named(monkeypatch):
    original = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "onnx":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'calibrant\[onnx\]'"):
        maps.Platt().fit(P, Y).to_onnx()
