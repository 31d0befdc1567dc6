"""Boosted trees (CatBoost, LightGBM) as maps: cross-fitted models, averaged, and a smooth map on top."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.data import validation
from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.random_draws import fold_of_rows
from calibrant.numerics.rows import effective_n
from calibrant.numerics.special import LOG_FLOOR, expit, softmax
from calibrant.recalibrate.base import Recalibrator
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.logistic import Quadratic
from calibrant.recalibrate.multiclass_scaling import StructuredMatrixScaling, normalised_logs
from calibrant.recalibrate.wrappers import event_or_classes, fitted, library_of, predicted


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What trees are fitted to."""

    #: Probability of the event, (n, 1), or of all classes, and the log odds or log probabilities trees are added to.
    features: Floats
    start: Floats | None
    codes: Codes
    weight: Floats | None

    def take(self, rows: Any) -> TrainingRows:
        """Some of the rows."""
        start = None if self.start is None else self.start[rows]
        weight = None if self.weight is None else self.weight[rows]
        return TrainingRows(self.features[rows], start, self.codes[rows], weight)

    @property
    def learnable(self) -> bool:
        """Whether there are two classes, two points, and more than one row that weighs anything."""
        several = effective_n(self.weight, len(self.codes)) >= 2
        return several and len(np.unique(self.codes)) > 1 and bool(np.ptp(self.features, axis=0).any())

    def with_all_classes(self, classes: int) -> TrainingRows:
        """The same, and a row of negligible weight for each class that has none: CatBoost drops such classes."""
        missing = np.setdiff1d(np.arange(classes), self.codes)
        if not len(missing):
            return self
        again = self.take(np.concatenate([np.arange(len(self.features)), np.zeros(len(missing), np.intp)]))
        weight = np.ones(len(again.features)) if again.weight is None else again.weight
        weight[-len(missing) :] = 1e-6 * weight.mean()
        codes = np.concatenate([self.codes, missing])
        return TrainingRows(again.features, again.start, codes, weight)


@dataclass(kw_only=True, eq=False, repr=False)
class Boosted(Recalibrator):
    """Base of the boosted maps: folds, the average, and the smooth map."""

    #: How many trees, plain and warm-started, and the rounds without gain that stop them.
    _trees: ClassVar[tuple[int, int]]
    _patience: ClassVar[int]
    _library: ClassVar[str]

    warm_started: bool = True
    trees: int | None = None
    folds: int = 8
    seed: int = 0
    threads: int = 1

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        validation.seed(self.seed)
        for name, value, minimum in (("folds", self.folds, 2), ("trees", self.trees, 1)):
            if value is not None and value < minimum:
                validation.fail(f"{name} must be at least {minimum}, got {value!r}.", ValueError)
        self._import()
        rows = TrainingRows(event_or_classes(scores), self._start(scores), codes, weight)
        counts = np.bincount(codes, weights=weight, minlength=scores.classes)
        self.rates_ = (counts + 1) / (counts.sum() + len(counts))
        out = np.empty((len(scores), scores.classes))
        self.models_ = []
        for train, held in _train_and_held_out(len(codes), self.folds, self.seed):
            part = rows.take(train)
            model = self._train(part, rows.take(held), scores.classes) if part.learnable else None
            self.models_.append(model)
            out[held] = self._probabilities(model, scores.take(held))
        template = Quadratic(laplace=1.0) if scores.classes == 2 else StructuredMatrixScaling(laplace=1.0)
        self.step_ = fitted(template, Scores(out, logits=False), codes, weight)

    def _predict(self, scores: Scores) -> Floats:
        mean = np.zeros((len(scores), scores.classes))
        for model in self.models_:
            mean += self._probabilities(model, scores)
        return predicted(self.step_, Scores(mean / len(self.models_), logits=False))

    def _probabilities(self, model: Any, scores: Scores) -> Floats:
        """Probabilities of one model; a fold with nothing to learn has none and changes nothing."""
        if model is None:
            return scores.probabilities if self.warm_started else np.tile(self.rates_, (len(scores), 1))
        raw, start = self._raw(model, event_or_classes(scores)), self._start(scores)
        raw = raw if start is None else raw + start
        if scores.classes > 2:
            return softmax(raw)
        p = expit(raw)
        return np.stack([1 - p, p], axis=1)

    def _start(self, scores: Scores) -> Floats | None:
        if not self.warm_started:
            return None
        return normalised_logs(scores) if scores.classes > 2 else np.clip(scores.log_odds, LOG_FLOOR, -LOG_FLOOR)

    @property
    def _size(self) -> int:
        """Largest number of trees."""
        return self._trees[self.warm_started] if self.trees is None else self.trees

    def _import(self) -> Any:
        return library_of(self, self._library, extra="boost")

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        if "models_" in state:  # else a template within another map, not fitted itself
            state["models_"] = [None if model is None else self._to_bytes(model) for model in self.models_]
        return state

    def _restore(self, state: dict[str, Any]) -> Self:
        if "models_" in state:
            models = [None if model is None else self._from_bytes(model) for model in state["models_"]]
            state = {**state, "models_": models}
        return super()._restore(state)

    @abstractmethod
    def _train(self, train: TrainingRows, held: TrainingRows, classes: int) -> Any:
        """A model fitted to `train`, with the number of trees that has the lowest loss on `held`."""

    @abstractmethod
    def _raw(self, model: Any, features: Floats) -> Floats:
        """What the trees add up to, (n,) or (n, K)."""

    @abstractmethod
    def _to_bytes(self, model: Any) -> bytes:
        """The model in the format of its library."""

    @abstractmethod
    def _from_bytes(self, content: bytes) -> Any:
        """The model back."""


def _train_and_held_out(n: int, number: int, seed: int) -> Iterator[tuple[Codes, Codes]]:
    """Rows to train on and rows held out, fold by fold; a single row is both."""
    fold = fold_of_rows(n, [1] * min(number, n), seed=seed)
    for k in range(int(fold.max()) + 1):
        held = fold == k
        yield np.flatnonzero(~held if n > 1 else held), np.flatnonzero(held)


class CatBoost(Boosted):
    r"""CatBoost as a map: eight cross-fitted models, averaged, then quadratic or structured matrix scaling.

    The rows are shuffled into eight folds. Each fold stops the model fitted to the others where the loss on the fold is
    lowest; the held-out probabilities fit the last step, a quadratic map (two classes) or structured matrix scaling
    (more) with Laplace's rule. The mean of the eight probabilities of a new score goes through the last step.

    Trees are added to the log odds (or log probabilities) of the scores, and ten are enough: the map starts from the
    identity. With `warm_started=False` they start from a constant, with the probabilities as features: 300 trees must
    learn the identity first, which takes many times as long.

    Parameters
    ----------
    warm_started : bool
        Whether trees are added to the scores.
    trees : int, optional
        Largest number of trees; if None, 10, or 300 without a warm start. All else is CatBoost's default: depth 6,
        learning rate by the number of rows and trees; 200 rounds without gain stop it.
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
    Berta, Holzmüller, Jordan, Bach (2025), Rethinking Early Stopping: Refine, Then Calibrate. Berta, Braun, Holzmüller,
    Bach, Jordan (2026), A Variational Estimator for Calibration Errors, which recommends the warm start.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> CatBoost(folds=2).fit(p, y).predict_proba([0.5])[:, 1].round(1)
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
        return np.asarray(model.predict(features, prediction_type="RawFormulaVal", thread_count=self.threads))

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
        Largest number of trees; if None, 10, or 1000 without a warm start. 100 rounds without gain stop it.
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
    >>> LightGBM(folds=2).fit(p, y).predict_proba([0.5])[:, 1].round(1)
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
        return library.Booster(model_str=booster.model_to_string(num_iteration=booster.best_iteration or None))

    def _raw(self, model: Any, features: Floats) -> Floats:
        return np.asarray(model.predict(features, raw_score=True, num_threads=self.threads))

    def _to_bytes(self, model: Any) -> bytes:
        return model.model_to_string().encode()

    def _from_bytes(self, content: bytes) -> Any:
        return self._import().Booster(model_str=content.decode())
