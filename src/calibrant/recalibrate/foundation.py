"""Tabular foundation models as maps: they learn from rows in their context, so fitting only stores the rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from calibrant.data.validation import fail
from calibrant.numerics.arrays import Codes, Floats
from calibrant.recalibrate.base import Recalibrator
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.wrappers import event_or_classes, library_of, with_missing_classes


@dataclass(kw_only=True, eq=False, repr=False)
class _InContext(Recalibrator):
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
        self.rows_, self.codes_ = _repeated(event_or_classes(scores), codes, weight)
        self._network = self._fitted_network()

    def _predict(self, scores: Scores) -> Floats:
        if not hasattr(self, "_network"):  # the map comes from a file
            self._network = self._fitted_network()
        p = np.ones((len(scores), 1))
        if self._network is not None:
            p = np.asarray(self._network.predict_proba(event_or_classes(scores)), dtype=np.float64)
        return with_missing_classes(p, np.unique(self.codes_), len(self.classes_), self.weight_)

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
        library, weights = library_of(self, self._library, extra="foundation"), self._weights()
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
