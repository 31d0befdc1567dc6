"""From the files of public repositories to the arrays that the reproductions read; one function per kind of file.

Each takes the paths of the source files, in the order in which `data_sources.csv` names them, and returns the arrays.
"""

from __future__ import annotations

import csv
import hashlib
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


def columns(path: Path) -> dict[str, list[str]]:
    """A CSV file with a header, by column."""
    with path.open(newline="", encoding="utf8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[at] for row in rows] for at, name in enumerate(header)}


def top_labels(paths: list[Path]) -> Arrays:
    """True label, predicted label and confidence."""
    held = columns(paths[0])
    return {
        "conf": np.array(held["confidence"], np.float32),
        "pred": np.array(held["pred_label"], np.int16),
        "labels": np.array(held["true_label"], np.int16),
    }


def vectors_and_labels(paths: list[Path]) -> Arrays:
    """Rows of class probabilities without a header, and a file of labels that count from 1."""
    probabilities, labels = (np.loadtxt(path, delimiter=",", dtype=np.float64) for path in paths)
    return {"probs": probabilities.astype(np.float32), "labels": (labels - 1).astype(np.int16)}


def games(paths: list[Path]) -> Arrays:
    """The chance that the first team wins, whether it did (a drawn game is not won), and the season."""
    held = columns(paths[0])
    return {
        "prob": np.array(held["prob1"], np.float64).astype(np.float32),
        "labels": (np.array(held["prob1_outcome"], np.float64) == 1).astype(np.uint8),
        "season": np.array(held["season"], np.int16),
    }


def features_and_target(paths: list[Path]) -> Arrays:
    """A table of numbers, and the columns of it that are features and target."""
    held = features_in_double(paths)
    return {**held, "X": held["X"].astype(np.float32)}


def features_in_double(paths: list[Path]) -> Arrays:
    """As `features_and_target`, for features with more digits than single precision has."""
    table, features, target = (np.loadtxt(path) for path in paths)
    return {"X": table[:, features.astype(int)], "target": table[:, int(target)]}


def errors_and_uncertainty(paths: list[Path]) -> Arrays:
    """Errors E with their uncertainty uE; rows whose uncertainty is nothing beside the errors are dropped."""
    held = {name: np.array(values, np.float64) for name, values in columns(paths[0]).items()}
    keep = held["uE"] > 1e-6 * held["E"].std(ddof=1)
    return {"y": held["E"][keep], "mu": np.zeros(keep.sum()), "sigma": held["uE"][keep], "x": held["X"][keep]}


def ensemble_variances(paths: list[Path]) -> Arrays:
    """Energies, predictions, and variances of an ensemble; the total is the predicted variance."""
    held = columns(paths[0])
    target = next(name for name in held if name.startswith("E"))
    numbers = {name: np.array(values, np.float64) for name, values in held.items() if name not in {"index", "formula"}}
    return {
        "y": numbers[target],
        "mu": numbers["prediction"],
        "sigma": np.sqrt(numbers["uncertainty_total"]),
        "var_aleatoric": numbers["uncertainty_aleatoric"],
        "var_epistemic": numbers["uncertainty_epistemic"],
    }


def log_p(paths: list[Path]) -> Arrays:
    """Partition coefficients with predicted standard deviations."""
    held = columns(paths[0])
    return {
        "y": np.array(held["logP"], np.float64),
        "mu": np.array(held["y_pred"], np.float64),
        "sigma": np.array(held["uq"], np.float64),
    }


def log_p_by_size(paths: list[Path]) -> Arrays:
    """The same, of models trained on samples of nine sizes."""
    held = columns(paths[0])
    sizes = [int(name.removeprefix("uq_")) for name in held if name.startswith("uq_")]

    def stacked(kind: str) -> np.ndarray:
        return np.stack([np.array(held[f"{kind}_{n}"], np.float64) for n in sizes], axis=1).astype(np.float32)

    y = np.array(held["logP"], np.float64)
    return {"y": y, "mu": stacked("y_pred"), "sigma": stacked("uq"), "train_size": np.array(sizes, np.int64)}


class _ArraysOnly(pickle.Unpickler):
    """Reads pickles of plain arrays; anything else in the file is refused before it is made."""

    ALLOWED = frozenset({"_reconstruct", "ndarray", "dtype", "scalar", "_frombuffer"})

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "numpy" and name in self.ALLOWED:
            return super().find_class(module.replace("numpy.core", "numpy._core"), name)
        message = f"The pickle asks for {module}.{name}; only arrays are read."
        raise pickle.UnpicklingError(message)


def arrays_only(stream: io.BytesIO) -> Any:
    """What a pickle of arrays, tuples and lists holds."""
    return _ArraysOnly(stream).load()


def pickled_arrays(path: Path) -> Any:
    """The same, of a file."""
    return arrays_only(io.BytesIO(path.read_bytes()))


def pickled_logits(paths: list[Path]) -> Arrays:
    """Logits and labels, in a pickle of a pair of arrays."""
    logits, labels = pickled_arrays(paths[0])
    return {"logits": np.asarray(logits, np.float32), "labels": np.asarray(labels).ravel().astype(np.int16)}


def pickled_folds(paths: list[Path]) -> Arrays:
    """Logits and labels of a validation and a test fold, in a pickle of two pairs."""
    (logits_val, labels_val), (logits_test, labels_test) = pickled_arrays(paths[0])
    return {
        "logits_val": np.asarray(logits_val, np.float32),
        "labels_val": np.asarray(labels_val).ravel().astype(np.int16),
        "logits_test": np.asarray(logits_test, np.float32),
        "labels_test": np.asarray(labels_test).ravel().astype(np.int16),
    }


CONVERTERS: dict[str, Callable[[list[Path]], Arrays]] = {
    function.__name__: function
    for function in (
        top_labels,
        vectors_and_labels,
        games,
        features_and_target,
        features_in_double,
        errors_and_uncertainty,
        ensemble_variances,
        log_p,
        log_p_by_size,
        pickled_logits,
        pickled_folds,
    )
}


def digest(arrays: Arrays) -> str:
    """SHA-256 of names, types, shapes and values: what a file holds, however it was compressed."""
    state = hashlib.sha256()
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        state.update(f"{name} {values.dtype.str} {values.shape}\n".encode())
        state.update(values.tobytes())
    return state.hexdigest()
