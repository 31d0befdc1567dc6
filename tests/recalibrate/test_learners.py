"""Boosted trees as maps: the recipe, folds, hard inputs, and the files they leave."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit, softmax
from sklearn.base import clone

import calibrant as cal
from calibrant.data.saved_files import InvalidFile
from calibrant.numerics.random_draws import fold_of_rows
from calibrant.recalibrate import CatBoost, LightGBM, Quadratic, StructuredMatrixScaling, load, persistence
from calibrant.recalibrate.learners import Boosted, TrainingRows, _train_and_held_out
from calibrant.recalibrate.persistence import encoded_bytes

MAPS = [CatBoost, LightGBM]
LIBRARY = {CatBoost: "catboost", LightGBM: "lightgbm"}


def small(scaling, **options):
    """A map that takes little time."""
    pytest.importorskip(LIBRARY[scaling])
    return scaling(**{"trees": 5, "folds": 3, **options})


def binary(n: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.01, 0.99, n)
    return p, (rng.uniform(size=n) < expit(0.4 * logit(p) + 0.3)).astype(int)


def three(n: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 3)) * 2
    return softmax(logits, axis=1), (0.5 * logits + rng.gumbel(size=(n, 3))).argmax(axis=1)


@pytest.mark.parametrize("scaling", MAPS)
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("world", [binary, three])
def test_map_is_the_mean_of_the_folds_then_the_last_step(scaling, warm, world):
    p, y = world()
    fitted = small(scaling, warm_started=warm).fit(p, y)
    assert len(fitted.models_) == 3
    wide = p.reshape(len(p), -1)
    start = (logit(p) if p.ndim == 1 else np.log(p)) if warm else 0
    parts = []
    for model in fitted.models_:
        raw = start + (
            model.predict(wide, prediction_type="RawFormulaVal")
            if scaling is CatBoost
            else model.predict(wide, raw_score=True)
        )
        parts.append(np.stack([expit(-raw), expit(raw)], axis=1) if p.ndim == 1 else softmax(raw, axis=1))
    mean = np.mean(parts, axis=0)
    np.testing.assert_allclose(fitted.predict_proba(p), fitted.step_.predict_proba(mean), atol=1e-9)
    assert type(fitted.step_) is (Quadratic if p.ndim == 1 else StructuredMatrixScaling)
    assert fitted.step_.laplace == 1


def test_last_step_is_fitted_to_rows_held_out():
    p, y = binary()
    fitted = small(CatBoost, warm_started=True).fit(p, y)
    out = np.empty(len(p))
    fold = fold_of_rows(len(p), [1, 1, 1], seed=0)
    for k, model in enumerate(fitted.models_):
        held = fold == k
        out[held] = expit(logit(p[held]) + model.predict(p[held, None], prediction_type="RawFormulaVal"))
    np.testing.assert_allclose(fitted.step_.coefficients_, Quadratic().fit(out, y).coefficients_, rtol=1e-6, atol=1e-8)


def test_settings_are_those_of_the_paper():
    pytest.importorskip("catboost")
    p, y = binary(60)
    plain, warm = (CatBoost(warm_started=warm, folds=2).fit(p, y).models_[0] for warm in (False, True))
    assert plain.get_param("iterations") == 300
    assert warm.get_param("iterations") == 10
    assert plain.get_all_params()["depth"] == 6
    assert plain.get_all_params()["loss_function"] == "Logloss"
    assert CatBoost().folds == LightGBM().folds == 8
    assert CatBoost().warm_started
    assert LightGBM().warm_started
    assert CatBoost(folds=2).fit(p, y).models_[0].get_param("iterations") == 10
    assert (LightGBM._trees, LightGBM._patience) == ((1000, 10), 100)
    pytest.importorskip("lightgbm")
    text = LightGBM(warm_started=True, folds=2).fit(p, y).models_[0].model_to_string()
    for setting in ("learning_rate: 0.04", "num_leaves: 50", "min_data_in_leaf: 40", "bagging_fraction: 0.75"):
        assert f"[{setting}]" in text
    assert "[num_iterations: 10]" in text


@pytest.mark.parametrize("scaling", MAPS)
def test_warm_start_repairs_overconfidence(scaling):
    p, y = binary(1500)
    fresh, truth = binary(1500, seed=1)
    q = small(scaling, warm_started=True, trees=None).fit(p, y).predict_proba(fresh)[:, 1]
    assert ((q - truth) ** 2).mean() < ((fresh - truth) ** 2).mean() - 0.005


@pytest.mark.parametrize("scaling", MAPS)
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(
    ("p", "y"),
    [
        (np.array([0.2, 0.7]), [0, 1]),
        (np.array([0.2, 0.7]), [1, 1]),
        (np.array([0.4]), [1]),
        (np.array([0.0, 1.0] * 15), [0, 1] * 15),
        (np.full(30, 0.5, dtype=np.float32), [0, 1, 1] * 10),
        (np.eye(3).repeat(8, axis=0), [0, 1] * 12),
        (np.eye(3).repeat(8, axis=0), [0] * 23 + [2]),
        (np.full((9, 3), 1 / 3), [0, 1, 2] * 3),
    ],
)
def test_hard_scores_give_finite_probabilities_that_sum_to_one(scaling, warm, p, y):
    q = small(scaling, warm_started=warm).fit(p, y).predict_proba(p)
    assert q.shape == (len(p), 2 if p.ndim == 1 else 3)
    assert np.isfinite(q).all()
    assert q.min() > 0
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scaling", MAPS)
def test_weights_and_logits_are_honoured(scaling):
    p, y = binary()
    weight = np.where(y == 1, 5.0, 1.0)
    plain, heavy = (small(scaling).fit(p, y, w).predict_proba(p)[:, 1].mean() for w in (None, weight))
    assert heavy > plain + 0.1
    logits = small(scaling, warm_started=True, input="logits").fit(logit(p), y).predict_proba(logit(p))
    np.testing.assert_allclose(logits, small(scaling, warm_started=True).fit(p, y).predict_proba(p), atol=1e-6)


@pytest.mark.parametrize("scaling", MAPS)
@pytest.mark.parametrize("world", [binary, three])
def test_the_trees_are_saved_within_the_one_file(scaling, world, tmp_path: Path):
    p, y = world(90)
    fitted = clone(small(scaling, warm_started=True, laplace=1)).fit(p, y)
    path = tmp_path / "map.json"
    fitted.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["map.json"]
    loaded = load(path)
    assert type(loaded) is scaling
    np.testing.assert_allclose(loaded.predict_proba(p), fitted.predict_proba(p), rtol=0, atol=1e-15)
    loaded.save(tmp_path / "again.json")
    np.testing.assert_array_equal(load(tmp_path / "again.json").predict_proba(p), loaded.predict_proba(p))


@pytest.mark.parametrize("scaling", MAPS)
def test_damaged_trees_are_a_clear_error(scaling, tmp_path: Path):
    p, y = binary(60)
    path = tmp_path / "map.json"
    small(scaling).fit(p, y).save(path)
    document = json.loads(path.read_text())
    document["map"]["state"]["models_"][1]["__bytes__"] = encoded_bytes(b"no trees")
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidFile, match="damaged"):
        load(path)
    document["checksum"] = persistence._checksum(document["map"])
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidFile, match="is not a valid map"):
        load(path)


def test_folds_without_two_classes_are_saved_as_such(tmp_path: Path):
    fitted = small(CatBoost).fit([0.2, 0.7], [0, 1])
    assert fitted.models_ == [None, None]
    fitted.save(tmp_path / "map.json")
    np.testing.assert_array_equal(load(tmp_path / "map.json").predict_proba([0.3]), fitted.predict_proba([0.3]))


def test_a_boosted_map_inside_another_is_saved_with_it(tmp_path: Path):
    from calibrant.recalibrate import OneVsRest

    p, y = binary(60)
    outer = OneVsRest(small(CatBoost)).fit(p, y)
    outer.save(tmp_path / "map.json")
    np.testing.assert_array_equal(load(tmp_path / "map.json").predict_proba(p), outer.predict_proba(p))


@pytest.mark.parametrize("scaling", MAPS)
def test_missing_library_names_the_remedy(scaling, monkeypatch):
    monkeypatch.setitem(sys.modules, LIBRARY[scaling], None)
    with pytest.raises(ImportError, match=r"pip install 'calibrant\[boost\]'"):
        scaling().fit([0.2, 0.7], [0, 1])


@pytest.mark.parametrize(("option", "value"), [("folds", 1), ("trees", 0)])
def test_bad_numbers_are_refused(option, value):
    with pytest.raises(ValueError, match=f"{option} must be at least"):
        CatBoost(**{option: value}).fit([0.2, 0.7], [0, 1])


#: Saves a map over and over until its standard input ends; says so after the first time.
WRITER = """
import sys, threading
from calibrant.recalibrate import load
fitted, path, ended = load(sys.argv[1]), sys.argv[2], threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
count = 0
while not ended.is_set() or count < 5:
    fitted.save(path)
    count += 1
    print("saved", flush=True) if count == 1 else None
print(count)
"""


def test_two_writers_of_one_file_leave_one_of_their_maps_whole_at_every_moment(tmp_path):
    fitted = [small(LightGBM).fit(*binary(seed=seed)) for seed in (0, 1)]
    q, path = np.linspace(0.01, 0.99, 20), tmp_path / "map.json"
    expected = [one.predict_proba(q) for one in fitted]
    assert not np.allclose(*expected)
    for k, one in enumerate(fitted):
        one.save(tmp_path / f"{k}.json")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    commands = [[sys.executable, "-c", WRITER, str(tmp_path / f"{k}.json"), str(path)] for k in (0, 1)]
    writers = [subprocess.Popen(command, **pipes) for command in commands]
    try:
        assert [writer.stdout.readline() for writer in writers] == ["saved\n"] * 2
        read = [load(path).predict_proba(q) for _ in range(40)]
    finally:
        counts = [int(writer.communicate(timeout=60)[0]) for writer in writers]
    assert min(counts) >= 5
    seen = [[bool(np.allclose(found, one)) for one in expected] for found in read]
    assert all(map(any, seen))
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("0.json", "1.json")] == ["map.json"]


class Stump(Boosted):
    """Trees that need no library: the rate of the positives among the training rows, as log odds."""

    _trees, _patience, _library = (3, 1), 1, "numpy"

    def _train(self, train, held, classes):
        rate = np.average(train.codes, weights=train.weight)
        return np.log(rate / (1 - rate)), len(train.codes), len(held.codes)

    def _raw(self, model, features):
        return np.full(len(features), 0.0 if self.warm_started else model[0])


def world(n=200, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < p).astype(int)


def test_every_row_is_held_out_once():
    parts = list(_train_and_held_out(23, 5, 0))
    assert len(parts) == 5
    np.testing.assert_array_equal(np.sort(np.concatenate([held for _, held in parts])), np.arange(23))
    for train, held in parts:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, held])), np.arange(23))
    assert len(list(_train_and_held_out(3, 8, 0))) == 3
    ((train, held),) = _train_and_held_out(1, 8, 0)
    assert train.tolist() == held.tolist() == [0]


def test_folds_are_not_stratified():
    y = np.arange(80) < 40
    shares = [y[held].mean() for seed in range(20) for _, held in _train_and_held_out(80, 4, seed)]
    assert np.std(shares) > 0.05


def test_models_are_trained_on_the_rows_of_the_other_folds():
    p, y = world()
    fitted = Stump(folds=4, warm_started=False).fit(p, y)
    assert [model[1:] for model in fitted.models_] == [(150, 50)] * 4
    assert np.ptp(fitted.predict_proba(p)[:, 1]) < 1e-12  # rates do not depend on the score
    again = Stump(folds=4, warm_started=False, seed=0).fit(p, y)
    np.testing.assert_array_equal(again.predict_proba(p), fitted.predict_proba(p))


def test_warm_start_without_trees_is_the_last_step_on_the_scores():
    p, y = world(2000)
    fitted = Stump(folds=3, warm_started=True).fit(p, y)
    last = cal.recalibrate.Quadratic(laplace=1.0).fit(p, y)
    np.testing.assert_allclose(fitted.predict_proba(p), last.predict_proba(p), atol=1e-9)


def test_a_fold_with_nothing_to_learn_has_no_model():
    p, y = np.array([0.2, 0.4, 0.9]), [0, 0, 1]
    fitted = Stump(folds=3).fit(p, y)
    assert sum(model is None for model in fitted.models_) == 1
    assert np.isfinite(fitted.predict_proba(p)).all()
    np.testing.assert_allclose(fitted.rates_, [3 / 5, 2 / 5])


def test_missing_classes_get_a_row_of_next_to_no_weight():
    rows = TrainingRows(np.eye(3), None, np.array([0, 0, 2]), None)
    filled = rows.with_all_classes(4)
    np.testing.assert_array_equal(filled.codes, [0, 0, 2, 1, 3])
    np.testing.assert_allclose(filled.weight[:3], 1)
    assert (filled.weight[3:] < 1e-5).all()
    assert rows.with_all_classes(1) is rows
    part = TrainingRows(np.eye(3), np.eye(3), np.arange(3), np.arange(3.0)).take([2])
    assert (part.codes.tolist(), part.weight.tolist(), part.start.tolist()) == ([2], [2.0], [[0, 0, 1]])


@pytest.mark.parametrize(
    ("options", "message"), [({"folds": 1}, "folds must be at least 2"), ({"trees": 0}, "trees must")]
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Stump(**options).fit(*world())


def test_a_library_that_is_missing_is_named():
    class Elsewhere(Stump):
        _library = "no_such_library"

    with pytest.raises(ImportError, match=r"Elsewhere needs no_such_library: pip install 'calibrant\[boost\]'"):
        Elsewhere().fit(*world())
