"""Local corrections: do the nearest training rows hold more of a class than the fitted map expects?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels import Floats

#: Numbers of neighbours that are looked at, and rows among which they are sought.
SIZES, REFERENCES = (10, 40), 3750
#: Neighbours kept per row, so that enough are left when those of the held-out fold are taken away.
KEPT = 64
#: Prior rows added to observed and expected counts, with the fitted probabilities of the row itself.
PRIOR_ROWS = 2.0
#: Up to this many classes a tree finds neighbours faster than all distances do.
TREE_CLASSES = 6


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest reference rows of each row, nearest first, itself left out; made from stated probabilities."""

    index: NDArray[np.intp]

    @classmethod
    def of(cls, z: Floats) -> Neighbours:
        """Neighbours in centred log probabilities, among at most `REFERENCES` rows."""
        n = len(z)
        x = (z - z.mean(axis=1, keepdims=True)).astype(np.float32)
        references = np.arange(n) if n <= REFERENCES else np.random.default_rng(0).permutation(n)[:REFERENCES]
        kept = min(KEPT, len(references) - 1)
        search = _by_tree if z.shape[1] <= TREE_CLASSES else _by_distances
        found = references[search(x, x[references], kept + 1)]
        itself = found == np.arange(n)[:, None]
        itself[~itself.any(axis=1), -1] = True
        return cls(found[~itself].reshape(n, kept))

    def adjacency(self, train: NDArray[np.intp], size: int) -> Any:
        """Sparse (n, n) matrix of ones at the `size` nearest neighbours that are training rows."""
        from scipy.sparse import csr_array

        n = len(self.index)
        usable = np.zeros(n, dtype=bool)
        usable[train] = True
        chosen = usable[self.index]
        chosen &= np.cumsum(chosen, axis=1) <= size
        ends = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])
        columns = self.index[chosen]
        return csr_array((np.ones(len(columns)), columns, ends), shape=(n, n))


def local_correction(
    near: Neighbours,
    logs: Floats,
    labels: NDArray[np.intp],
    weight: Floats,
    train: NDArray[np.intp],
    own: NDArray[np.intp],
) -> Floats:
    """Log probabilities of the rows `own`, corrected by the outcomes of their neighbours among the rows `train`."""
    ratios = np.stack([_log_ratio(near.adjacency(train, size), logs, labels, weight) for size in SIZES], axis=2)
    b = positive_coefficients(ratios[train], logs[train], labels[train], weight[train])
    if not b.any():
        return logs[own]
    corrected = logs[own] + ratios[own] @ b
    corrected -= corrected.max(axis=1, keepdims=True)
    return corrected - np.log(np.exp(corrected).sum(axis=1, keepdims=True))


def positive_coefficients(x: Floats, offset: Floats, labels: NDArray[np.intp], weight: Floats) -> Floats:
    """Ridged conditional logit in few features; those that come out negative are noise and are dropped."""
    b = np.zeros(x.shape[2])
    active = list(range(x.shape[2]))
    while active:
        found = _coefficients(x[:, :, active], offset, labels, weight)
        if (found >= 0).all():
            b[active] = found
            break
        active = [j for j, value in zip(active, found, strict=True) if value > 0]
    return b


def _coefficients(x: Floats, offset: Floats, labels: NDArray[np.intp], weight: Floats, *, updates: int = 3) -> Floats:
    n, k, p = x.shape
    flat, rows = x.reshape(n * k, p), np.arange(n)
    observed = weight @ x[rows, labels]
    b, precision = np.zeros(p), np.ones(p)
    for update in range(updates):
        for _ in range(8 if update == 0 else 2):
            logits = offset + (flat @ b).reshape(n, k)
            mean = np.exp(logits - logits.max(axis=1, keepdims=True))
            mean *= (weight / mean.sum(axis=1))[:, None]
            px = x * mean[:, :, None]
            centre = px.sum(axis=1)
            hessian = px.reshape(n * k, p).T @ flat - (centre / weight[:, None]).T @ centre + np.diag(precision)
            gradient = observed - centre.sum(axis=0) - precision * b
            step = np.linalg.solve(hessian, gradient)
            if gradient @ step < 1e-3:
                break
            b = b + step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-9))
        effective = 1 - precision * np.diag(np.linalg.inv(hessian))
        precision = np.clip((effective + 0.05) / (b**2 + 0.005), 0.1, 1e4)
    return b


def _log_ratio(adjacency: Any, logs: Floats, labels: NDArray[np.intp], weight: Floats) -> Floats:
    """Log of (observed + prior) / (expected + prior) class counts among the neighbours."""
    p = np.exp(logs)
    surplus = -p * weight[:, None]
    surplus[np.arange(len(labels)), labels] += weight
    expected = adjacency @ (p * weight[:, None])
    prior = PRIOR_ROWS * p + 1e-9
    ratio: Floats = np.log1p(np.maximum((adjacency @ surplus) / (expected + prior), -1 + 1e-9))
    return ratio


def _by_tree(x: NDArray[np.float32], references: NDArray[np.float32], size: int) -> NDArray[np.intp]:
    from scipy.spatial import cKDTree

    found: NDArray[np.intp] = cKDTree(references).query(x, k=size)[1]
    return found


def _by_distances(x: NDArray[np.float32], references: NDArray[np.float32], size: int) -> NDArray[np.intp]:
    """All distances, block by block."""
    result = np.empty((len(x), size), dtype=np.intp)
    squares = np.einsum("rk,rk->r", references, references)
    for start in range(0, len(x), 512):
        distance = squares - 2 * (x[start : start + 512] @ references.T)
        part = np.argpartition(distance, min(size, distance.shape[1] - 1), axis=1)[:, :size]
        order = np.argsort(np.take_along_axis(distance, part, axis=1), axis=1)
        result[start : start + 512] = np.take_along_axis(part, order, axis=1)
    return result
