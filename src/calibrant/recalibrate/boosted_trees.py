"""Boosted trees as maps: eight cross-fitted models, averaged, and a smooth map on top of them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.recalibrate.boosting import Boosted, TrainingRows


class CatBoost(Boosted):
    r"""CatBoost as a map: eight cross-fitted models, averaged, then quadratic or structured matrix scaling.

    The rows are shuffled into eight folds. Each fold stops the model fitted to the others where the loss on
    the fold is lowest; the held-out probabilities fit the last step, a quadratic map (two classes) or structured matrix
    scaling (more) with Laplace's rule. New scores get the mean of the eight probabilities, and the last step.

    Warm-started, trees are added to the log odds (or log probabilities) of the scores, and ten are enough: the map
    starts from the identity. Otherwise they start from a constant, with the probabilities as features.

    Parameters
    ----------
    warm_started : bool
        Whether trees are added to the scores.
    trees : int, optional
        Largest number of trees; if None, 300, or 10 warm-started. All else is CatBoost's default: depth 6, learning
        rate by the number of rows and trees; 200 rounds without gain stop it.
    folds : int
        Number of models.
    seed, threads : int
        Seed of folds and trees; threads of the library.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    models_ : list
        The models; None for a fold whose training rows hold one class or one score only.
    step_ : Recalibrator
        The fitted last step.

    References
    ----------
    Berta, Holzmüller, Jordan, Bach (2025), Rethinking Early Stopping: Refine, Then Calibrate.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> CatBoost(warm_started=True, folds=2).fit(p, y).predict_proba([0.5])[:, 1].round(1)
    array([0.3])
    """

    _trees = (300, 10)
    _patience = 200
    _library = "catboost"

    def _train(self, train: TrainingRows, held: TrainingRows, classes: int) -> Any:
        library = self._import()
        options: dict[str, Any] = {"loss_function": "Logloss"}
        if classes > 2:
            options = {"loss_function": "MultiClass", "classes_count": classes}
        model = library.CatBoost(
            {
                **options,
                "iterations": self._size,
                "early_stopping_rounds": self._patience,
                "use_best_model": True,
                "random_seed": self.seed,
                "thread_count": self.threads,
                "allow_writing_files": False,
                "logging_level": "Silent",
            }
        )
        pools = (
            library.Pool(part.features, label=part.codes, weight=part.weight, baseline=part.start)
            for part in (train.with_all_classes(classes), held)
        )
        model.fit(next(pools), eval_set=next(pools))
        return model

    def _raw(self, model: Any, features: Floats) -> Floats:
        raw: Floats = np.asarray(model.predict(features, prediction_type="RawFormulaVal", thread_count=self.threads))
        return raw

    def _to_bytes(self, model: Any) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.cbm"
            model.save_model(str(file), format="cbm")
            return file.read_bytes()

    def _from_bytes(self, content: bytes) -> Any:
        model = self._import().CatBoost()
        model.load_model(blob=content)
        return model


class LightGBM(Boosted):
    r"""LightGBM as a map: eight cross-fitted models, averaged, then quadratic or structured matrix scaling.

    See `CatBoost` for how the folds, the warm start and the last step work. The trees have 50 leaves of at least 40
    rows, a learning rate of 0.04, and see three quarters of the rows each.

    Parameters
    ----------
    trees : int, optional
        Largest number of trees; if None, 1000, or 10 warm-started. 100 rounds without gain stop it.
    warm_started, folds, seed, threads, input, laplace, clip
        As for `CatBoost`.

    Attributes
    ----------
    models_, step_
        As for `CatBoost`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> LightGBM(warm_started=True, folds=2).fit(p, y).predict_proba([0.5])[:, 1].round(1)
    array([0.3])
    """

    _trees = (1000, 10)
    _patience = 100
    _library = "lightgbm"

    def _train(self, train: TrainingRows, held: TrainingRows, classes: int) -> Any:
        library = self._import()
        options: dict[str, Any] = {"objective": "binary"}
        if classes > 2:
            options = {"objective": "multiclass", "num_class": classes}
        options |= {
            "learning_rate": 0.04,
            "bagging_fraction": 0.75,
            "bagging_freq": 1,
            "num_leaves": 50,
            "min_data_in_leaf": 40,
            "min_sum_hessian_in_leaf": 1e-7,
            "seed": self.seed,
            "num_threads": self.threads,
            "force_col_wise": True,
            "deterministic": True,
            "verbosity": -1,
        }
        first, second = (
            library.Dataset(part.features, label=part.codes, weight=part.weight, init_score=part.start)
            for part in (train, held)
        )
        second.reference = first
        stop = library.early_stopping(self._patience, verbose=False)
        booster = library.train(options, first, self._size, valid_sets=[second], callbacks=[stop])
        best = booster.best_iteration or None
        return library.Booster(model_str=booster.model_to_string(num_iteration=best))

    def _raw(self, model: Any, features: Floats) -> Floats:
        raw: Floats = np.asarray(model.predict(features, raw_score=True, num_threads=self.threads))
        return raw

    def _to_bytes(self, model: Any) -> bytes:
        text: str = model.model_to_string()
        return text.encode()

    def _from_bytes(self, content: bytes) -> Any:
        return self._import().Booster(model_str=content.decode())
