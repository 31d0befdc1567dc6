"""What boosted maps share: rows, folds, and what a fold without a model predicts."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibrate.boosting import Boosted, TrainingRows, _train_and_held_out


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
    fitted = Stump(folds=4).fit(p, y)
    assert [model[1:] for model in fitted.models_] == [(150, 50)] * 4
    assert np.ptp(fitted.predict_proba(p)[:, 1]) < 1e-12  # rates do not depend on the score
    again = Stump(folds=4, seed=0).fit(p, y)
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
