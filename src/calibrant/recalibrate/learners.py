"""Learners of other libraries as maps: boosted trees (CatBoost, LightGBM) and tabular foundation models.

Boosted trees are cross-fitted models, averaged, with a smooth map on top. Foundation models learn from rows in their
context, so fitting only stores the rows.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.data import validation
from calibrant.data.validation import fail
from calibrant.numerics.arrays import LOG_FLOOR, Codes, Floats, expit, softmax
from calibrant.numerics.random_draws import fold_of_rows
from calibrant.numerics.rows import effective_n
from calibrant.recalibrate import base
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.logistic import Quadratic
from calibrant.recalibrate.multiclass_scaling import StructuredMatrixScaling, normalised_logs


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
class Boosted(base.Recalibrator):
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
                fail(f"{name} must be at least {minimum}, got {value!r}.", ValueError)
        self._import()
        rows = TrainingRows(base.event_or_classes(scores), self._start(scores), codes, weight)
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
        self.step_ = base.fitted(template, Scores(out, logits=False), codes, weight)

    def _predict(self, scores: Scores) -> Floats:
        mean = np.zeros((len(scores), scores.classes))
        for model in self.models_:
            mean += self._probabilities(model, scores)
        return base.predicted(self.step_, Scores(mean / len(self.models_), logits=False))

    def _probabilities(self, model: Any, scores: Scores) -> Floats:
        """Probabilities of one model; a fold with nothing to learn has none and changes nothing."""
        if model is None:
            return scores.probabilities if self.warm_started else np.tile(self.rates_, (len(scores), 1))
        raw, start = self._raw(model, base.event_or_classes(scores)), self._start(scores)
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
        return base.library_of(self, self._library, extra="boost")

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


@dataclass(kw_only=True, eq=False, repr=False)
class _InContext(base.Recalibrator):
    """Base of the in-context maps: the rows are the parameters, the weights of the network are read from a file."""

    _library: ClassVar[str]
    #: Repository of the weights, and the licence that must be accepted first.
    _repository: ClassVar[str]
    _licence: ClassVar[str] = ""
    _can_be_tried = False

    checkpoint: str
    model_path: str | None = None
    download: bool = False
    device: str | None = None
    seed: int = 0

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        self.rows_, self.codes_ = _repeated(base.event_or_classes(scores), codes, weight)
        self._network = self._fitted_network()

    def _predict(self, scores: Scores) -> Floats:
        if not hasattr(self, "_network"):  # the map comes from a file
            self._network = self._fitted_network()
        p = np.ones((len(scores), 1))
        if self._network is not None:
            p = np.asarray(self._network.predict_proba(base.event_or_classes(scores)), dtype=np.float64)
        return base.with_missing_classes(p, np.unique(self.codes_), len(self.classes_), self.weight_)

    def _params(self) -> dict[str, Any]:
        """Without the place of the weights: it is of this machine, and a file must not choose what is executed."""
        return {**super()._params(), "model_path": None, "download": False}

    def _use_weights(self, model_path: str | None, *, download: bool) -> None:
        if self.model_path is not None or self.download:
            message = "it names a file of weights or a download; only the caller of load() may, by its arguments"
            raise ValueError(message)
        if not isinstance(self.checkpoint, str) or Path(self.checkpoint).name != self.checkpoint:
            fail(f"checkpoint must be the name of a file, got {self.checkpoint!r}", ValueError)
        self.model_path, self.download = model_path, download

    def _fitted_network(self) -> Any:
        """The network with the rows in its context; None where they hold one class only."""
        library, weights = base.library_of(self, self._library, extra="foundation"), self._weights()
        if len(np.unique(self.codes_)) < 2:
            return None
        return self._classifier(library, weights).fit(self.rows_, self.codes_)

    def _weights(self) -> Path | None:
        """The file of weights; None leaves it to the library to download them."""
        found = self._cached() if self.model_path is None else Path(self.model_path)
        if found is not None and found.exists():
            return found
        if self.download:
            return None if self.model_path is None else found
        name = type(self).__name__
        where = self._cache() if self.model_path is None else str(self.model_path)
        message = (
            f"{name} needs the weights of its network, which are not at {where}. Download the file {self.checkpoint} "
            f"from the Hugging Face repository {self._repository}{self._licence} and pass its path: "
            f"{name}(model_path='.../{self.checkpoint}'), or for a saved map load(..., model_path=...). Or let the "
            f"library fetch it: {name}(download=True), or load(..., download=True)."
        )
        raise FileNotFoundError(message)

    @abstractmethod
    def _cache(self) -> str:
        """Where the library looks for weights by default."""

    @abstractmethod
    def _cached(self) -> Path | None:
        """The weights there, if they are."""

    @abstractmethod
    def _classifier(self, library: Any, weights: Path | None) -> Any:
        """The network as a scikit-learn classifier."""


@dataclass(kw_only=True, eq=False, repr=False)
class TabICL(_InContext):
    """TabICL as a map: a pretrained transformer that reads the scores and outcomes and predicts in one pass.

    Parameters
    ----------
    checkpoint : str
        File name of the weights, of those in the repository jingang/TabICL.
    model_path : str, optional
        Path of that file. If None, the cache of `huggingface_hub` is searched.
    download : bool
        Whether the library may download the weights. Otherwise it is an error if they are missing.
    device : str, optional
        A device by its name in PyTorch; if None, the library chooses.
    seed : int
        Seed of the ensemble.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    rows_, codes_ : arrays
        The probabilities and class numbers given as context. The network takes no weights: those in the ratio of
        whole numbers repeat rows, others are refused.

    Notes
    -----
    A class without rows keeps its column, with the probability 1 / (n + K). `save` writes the
    rows, neither the network nor where it is: pass that to `load` as `model_path` or `download`.

    References
    ----------
    Qu, Holzmüller, Varoquaux, Le Morvan (2025), TabICL: A Tabular Foundation Model for In-Context Learning on
    Large Data; (2026), TabICLv2: A Better, Faster, Scalable, and Open Tabular Foundation Model, for the checkpoint.

    Examples
    --------
    >>> tabicl = TabICL(model_path="weights/tabicl-classifier-v2-20260212.ckpt")
    >>> tabicl.fit([0.2, 0.4, 0.6, 0.9], [0, 0, 1, 1]).predict_proba([0.7])  # doctest: +SKIP
    """

    _library = "tabicl"
    _repository = "jingang/TabICL"

    checkpoint: str = "tabicl-classifier-v2-20260212.ckpt"

    def _cache(self) -> str:
        return str(import_module("huggingface_hub.constants").HF_HUB_CACHE)

    def _cached(self) -> Path | None:
        found = import_module("huggingface_hub").try_to_load_from_cache(self._repository, self.checkpoint)
        return Path(found) if isinstance(found, str) else None

    def _classifier(self, library: Any, weights: Path | None) -> Any:
        return library.TabICLClassifier(
            model_path=weights,
            checkpoint_version=self.checkpoint,
            allow_auto_download=self.download,
            device=self.device,
            random_state=self.seed,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class TabPFN(_InContext):
    """TabPFN as a map: a pretrained transformer that reads the scores and outcomes and predicts in one pass.

    Parameters
    ----------
    checkpoint : str
        File name of the weights, of those in the repository Prior-Labs/tabpfn_2_5; their licence must be accepted.
    model_path : str, optional
        Path of that file. If None, the cache of `tabpfn` is searched (TABPFN_MODEL_CACHE_DIR names it).
    download, device, seed, input, laplace, clip
        As for `TabICL`.

    Attributes
    ----------
    rows_, codes_ : arrays
        As for `TabICL`, whose notes also apply. The network was trained for ten classes.

    References
    ----------
    Hollmann, Müller, Purucker, Krishnakumar, Körfer, Hoo, Schirrmeister, Hutter (2025), Accurate predictions on
    small data with a tabular foundation model.

    Examples
    --------
    >>> tabpfn = TabPFN(model_path="weights/tabpfn-v2.5-classifier-v2.5_default.ckpt")
    >>> tabpfn.fit([0.2, 0.4, 0.6, 0.9], [0, 0, 1, 1]).predict_proba([0.7])  # doctest: +SKIP
    """

    _library = "tabpfn"
    _repository = "Prior-Labs/tabpfn_2_5"
    _licence = " (accept its licence there first)"

    checkpoint: str = "tabpfn-v2.5-classifier-v2.5_default.ckpt"

    def _cache(self) -> str:
        return str(import_module("tabpfn.model_loading").get_cache_dir())

    def _cached(self) -> Path | None:
        return Path(self._cache()) / self.checkpoint

    def _classifier(self, library: Any, weights: Path | None) -> Any:
        return library.TabPFNClassifier(
            model_path=self._cached() if weights is None else weights,
            device="auto" if self.device is None else self.device,
            ignore_pretraining_limits=True,
            random_state=self.seed,
        )


def _repeated(rows: Floats, codes: Codes, weight: Floats | None) -> tuple[Floats, Codes]:
    """Rows as often as their weights say, which must be in the ratio of small whole numbers."""
    if weight is None:
        return rows, codes
    for times in range(1, 101):
        exact = times * (weight / weight.min())
        counts = np.rint(exact).astype(np.intp)
        if np.allclose(counts, exact, rtol=1e-9, atol=0):
            return np.repeat(rows, counts, axis=0), np.repeat(codes, counts)
    message = (
        "sample_weight must hold whole numbers here, up to a common factor: a foundation model can only be shown a row "
        "again."
    )
    raise ValueError(message)
