"""The benchmark models of the PU-ECE paper, trained from positives and unlabeled rows: logits and labels of test rows.

MNIST is the paper's network. CIFAR-10 and DDI are smaller stand-ins, because ResNet-18 and R-BERT do not fit a short
run on a processor: a network on HOG and colour features, and a linear model on n-grams.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from reproduce.positive_unlabeled_losses import imbalanced_nnpu_loss, nnpu_loss


def unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


@dataclass(frozen=True, eq=False)
class Trained:
    """Logits and true labels of test rows."""

    name: str
    model: str
    prior: float
    logits: np.ndarray
    labels: np.ndarray

    @property
    def accuracy(self) -> float:
        """Share of test rows on the right side of 1/2."""
        return float(np.mean((self.logits > 0) == self.labels))


def mnist(folder: Path, *, quick: bool) -> Trained:
    """784-100-100-1, nnPU, sigmoid loss, 10,000 positives (digits 5 to 9), all 60,000 rows unlabeled."""

    def images(name: str) -> np.ndarray:
        raw = np.frombuffer(unpacked(folder / "mnist" / f"{name}-images-idx3-ubyte.gz"), np.uint8)
        return raw[16:].reshape(-1, 784).astype(np.float32) / 255

    def digits(name: str) -> np.ndarray:
        raw = np.frombuffer(unpacked(folder / "mnist" / f"{name}-labels-idx1-ubyte.gz"), np.uint8)
        return raw[8:] >= 5

    train, labels = images("train"), digits("train")
    network = perceptron(784)
    logits = fitted(
        network,
        train,
        labels,
        images("t10k"),
        n_positive=10_000,
        loss=lambda p, u: nnpu_loss(p, u, prior=float(labels.mean())),
        steps=60 if quick else 1500,
    )
    return Trained("MNIST", "MLP 784-100-100-1, nnPU, sigmoid loss", float(labels.mean()), logits, digits("t10k"))


def cifar10(folder: Path, *, quick: bool) -> Trained:
    """A network on HOG and colour features; vehicles are positive; nnPU, sigmoid loss, 10,000 positives."""
    stored = np.load(folder / "cifar10" / "cifar10_hog_pca80.npz")
    train, test = (stored[f"X_{part}"].astype(np.float32) for part in ("train", "test"))
    labels, truth = (np.isin(stored[f"y_{part}"], [0, 1, 8, 9]) for part in ("train", "test"))
    centre, spread = train.mean(axis=0), train.std(axis=0)
    logits = fitted(
        perceptron(80),
        (train - centre) / spread,
        labels,
        (test - centre) / spread,
        n_positive=10_000,
        loss=lambda p, u: nnpu_loss(p, u, prior=float(labels.mean())),
        steps=60 if quick else 1500,
    )
    return Trained(
        "CIFAR-10", "MLP 80-100-100-1 on HOG features, nnPU, sigmoid loss", float(labels.mean()), logits, truth
    )


def ddi(folder: Path, *, quick: bool) -> Trained:
    """A linear model on word n-grams around the two drugs; imbalanced nnPU, logistic loss, 2,000 positives."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, labels = sentences(folder, "train")
    test, truth = sentences(folder, "test")
    words = TfidfVectorizer(ngram_range=(1, 3), min_df=5, sublinear_tf=True, max_features=8000, token_pattern=r"\w+")
    train = words.fit_transform(texts).astype(np.float32)
    prior = float(labels.mean())
    torch.manual_seed(0)
    network = torch.nn.Linear(train.shape[1], 1)
    logits = fitted(
        network,
        train,
        labels,
        words.transform(test).astype(np.float32),
        n_positive=2000,
        loss=lambda p, u: imbalanced_nnpu_loss(p, u, prior=prior, loss="logistic"),
        steps=30 if quick else 600,
        rate=0.02,
    )
    return Trained("DDI", "linear on word 1-3-grams, imbalanced nnPU, logistic loss", prior, logits, truth)


def sentences(folder: Path, part: str) -> tuple[list[str], np.ndarray]:
    """Sentences with the two drugs in question marked, and whether an interaction is stated."""

    def rows(kind: str) -> list[dict[str, str]]:
        text = unpacked(folder / "ddi" / f"{part}_{kind}.tsv.gz").decode()
        return list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))

    of = {row["sentence_id"]: row["text"] for row in rows("sentences")}
    texts, labels = [], []
    for row in rows("pairs"):
        text = of[row["sentence_id"]]
        marks = sorted(
            (
                (int(row[f"{e}_offset"].split("-")[0]), row[f"{e}_text"], name)
                for e, name in (("e1", "DRUGA"), ("e2", "DRUGB"))
            ),
            reverse=True,
        )
        for start, word, name in marks:
            text = f"{text[:start]} {name} {text[start + len(word) :]}"
        between = text.split("DRUGA")[-1].split("DRUGB")[0]
        texts.append(text + " " + " ".join(f"mid_{word}" for word in between.split()))
        labels.append(row["ddi"] == "1")
    return texts, np.array(labels)


def perceptron(inputs: int) -> torch.nn.Module:
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(nn.Linear(inputs, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 1))


def fitted(
    network: torch.nn.Module,
    train: object,
    labels: np.ndarray,
    test: object,
    *,
    n_positive: int,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    steps: int,
    rate: float = 1e-3,
) -> np.ndarray:
    """Logits of test rows after `steps` of Adam on 100 positives and 600 unlabeled rows each."""
    torch.set_num_threads(1)  # sums in another order give other weights
    rng = np.random.default_rng(0)
    positives = rng.choice(np.flatnonzero(labels), n_positive, replace=False)
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)

    def outputs(rows: object) -> torch.Tensor:
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        return network(torch.from_numpy(dense))[:, 0]

    for _ in range(steps):
        optimiser.zero_grad()
        p, u = rng.choice(positives, 100), rng.choice(len(labels), 600)
        loss(outputs(train[p]), outputs(train[u])).backward()
        optimiser.step()
    with torch.no_grad():
        return outputs(test).numpy().astype(np.float64)
