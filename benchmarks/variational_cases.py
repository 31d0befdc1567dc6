"""Real predictions for the benchmark of the variational estimator, read from ../shared/data."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]


def data_folder() -> Path:
    """The folder of real predictions beside the project, or where CALIBRANT_SHARED_DATA says."""
    places = [os.environ.get("CALIBRANT_SHARED_DATA", ""), ROOT / "../shared/data", ROOT / "../../shared/data"]
    for place in places:
        if str(place) and (Path(place) / "classification").is_dir():
            return (Path(place) / "classification").resolve()
    message = "The real predictions are not here; set CALIBRANT_SHARED_DATA to their folder."
    raise SystemExit(message)


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def vectors(file: Path) -> tuple[np.ndarray, np.ndarray] | None:
    """Class probabilities and labels of a file that has them."""
    held = np.load(file)
    if "probs" in held:
        p = held["probs"].astype(float)
    elif "logits" in held:
        p = softmax(held["logits"].astype(float))
    elif "logits_test" in held:
        return softmax(held["logits_test"].astype(float)), held["labels_test"].astype(int)
    else:
        return None
    return p / p.sum(axis=1, keepdims=True), held["labels"].astype(int)


def subset(name: str, p: np.ndarray, y: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A random part, the same on every machine."""
    chosen = np.random.default_rng(zlib.crc32(name.encode())).permutation(len(y))[:rows]
    return p[chosen], y[chosen]


def binary_cases(rows: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, P(Y = 1) and outcome: binary models, detections, language models, and top labels of all vectors."""
    for file in sorted(data_folder().glob("*.npz")):
        held = np.load(file)
        if "prob" in held:
            p, y = held["prob"].astype(float), held["labels"].astype(int)
        elif file.stem == "llm_mcq_msp":
            yield from _language_models(held, rows)
            continue
        elif "conf" in held:
            p = held["conf"].astype(float)
            y = held["correct"].astype(int) if "correct" in held else (held["pred"] == held["labels"]).astype(int)
        else:
            found = vectors(file)
            if found is None:
                continue
            v, labels = found
            best = v.argmax(axis=1)
            p, y = (v[:, 1], labels) if v.shape[1] == 2 else (v.max(axis=1), (best == labels).astype(int))
        yield file.stem, *subset(file.stem, p, y, rows)


def _language_models(held: np.lib.npyio.NpzFile, rows: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for m, model in enumerate(held["model_names"]):
        d = m % len(held["dataset_names"])
        own = (held["model"] == m) & (held["dataset"] == d) & (held["prompt"] == 0) & (held["correct"] < 2)
        name = f"llm_{model}_{held['dataset_names'][d]}"
        yield name, *subset(name, held["conf"][own].astype(float), held["correct"][own].astype(int), rows)


def multiclass_cases(rows: int, large: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, vectors and labels: every file of 3 to 20 classes, three of them in 3 superclasses, three also large."""
    for file in sorted(data_folder().glob("*.npz")):
        found = vectors(file)
        if found is None or not 3 <= found[0].shape[1] <= 20:
            continue
        v, labels = found
        yield file.stem, *subset(file.stem, v, labels, rows)
        if file.stem in ("cy_cifar10_resnet20", "netcal_lenet_5_cifar_10", "pycalib_mnist_AdaBoost"):
            group = np.arange(10) % 3
            merged = np.stack([v[:, group == k].sum(axis=1) for k in range(3)], axis=1)
            yield f"{file.stem}_in_3", *subset(file.stem, merged, group[labels], rows)
            if large > rows:
                yield f"{file.stem}_large", *subset(file.stem, v, labels, large)
