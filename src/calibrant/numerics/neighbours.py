"""Local corrections: whether the nearest training rows hold more of a class than the fitted map expects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.special import log_softmax, row_sum, softmax

#: Numbers of neighbours used, and the number of rows searched for them.
SIZES, REFERENCES = (10, 40), 3750
#: Neighbours kept per row, so that enough are left when those of the held-out fold are taken away.
KEPT = 64
#: Prior rows added to observed and expected counts, with the fitted probabilities of the row itself.
PRIOR_ROWS = 2.0
#: Up to this many classes a tree finds neighbours faster than all distances do.
TREE_CLASSES = 6


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest reference rows of each row, nearest first, itself left out; made from predicted probabilities.

    Attributes
    ----------
    index : array (n, kept)
        Row numbers of the neighbours.
    references : array
        The rows that were searched.
    """

    index: NDArray[np.intp]
    references: NDArray[np.intp]

    @classmethod
    def of(cls, z: Floats) -> Neighbours:
        """Neighbours in centred log probabilities, among at most `REFERENCES` rows."""
        n = len(z)
        x = _centred(z)
        references = np.arange(n) if n <= REFERENCES else np.random.default_rng(0).permutation(n)[:REFERENCES]
        kept = min(KEPT, len(references) - 1)
        found = references[_nearest(x, x[references], kept + 1)]
        itself = found == np.arange(n)[:, None]
        itself[~itself.any(axis=1), -1] = True
        return cls(found[~itself].reshape(n, kept), references)

    @classmethod
    def of_new(cls, z: Floats, known: Floats) -> Neighbours:
        """Neighbours of new rows among all `known` ones."""
        size = min(max(SIZES), len(known))
        return cls(_nearest(_centred(z), _centred(known), size).reshape(len(z), size), np.arange(len(known)))

    def log_ratios(self, usable: NDArray[np.bool_], surplus: Floats, expected: Floats, p: Floats) -> Floats:
        """Log of (observed + prior) / (expected + prior) class counts among the usable neighbours: (n, k, sizes).

        `surplus` and `expected` hold observed less expected, and expected counts of every row that may be one.
        """
        from scipy.sparse import csr_array

        prior = PRIOR_ROWS * p + 1e-9
        chosen = usable[self.index]
        place = np.cumsum(chosen, axis=1)
        ratios = []
        for size in SIZES:
            near = chosen & (place <= size)
            columns = self.index[near]
            ends = np.concatenate([[0], np.cumsum(near.sum(axis=1))])
            adjacency = csr_array((np.ones(len(columns)), columns, ends), shape=(len(near), len(usable)))
            ratio = (adjacency @ surplus) / (adjacency @ expected + prior)
            ratios.append(np.log1p(np.maximum(ratio, -1 + 1e-9)))
        return np.stack(ratios, axis=2)


def local_correction(
    near: Neighbours,
    logs: Floats,
    labels: NDArray[np.intp],
    weight: Floats,
    train: NDArray[np.intp],
    own: NDArray[np.intp],
) -> Floats:
    """Log probabilities of the rows `own`, corrected by the outcomes of their neighbours among the rows `train`."""
    usable = np.zeros(len(logs), dtype=bool)
    usable[train] = True
    surplus, expected = counts(logs, labels, weight)
    ratios = near.log_ratios(usable, surplus, expected, np.exp(logs))
    b = positive_coefficients(ratios[train], logs[train], labels[train], weight[train])
    return corrected(logs[own], ratios[own], b)


def counts(logs: Floats, labels: NDArray[np.intp], weight: Floats) -> tuple[Floats, Floats]:
    """Observed less expected, and expected class counts of each row under the fitted log probabilities."""
    expected = np.exp(logs) * weight[:, None]
    surplus = -expected
    surplus[np.arange(len(labels)), labels] += weight
    return surplus, expected


def corrected(logs: Floats, ratios: Floats, b: Floats) -> Floats:
    """Log probabilities with the local correction added."""
    if not b.any():
        return logs
    return log_softmax(logs + ratios @ b)


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
            mean = softmax(offset + (flat @ b).reshape(n, k)) * weight[:, None]
            px = x * mean[:, :, None]
            centre = np.einsum("nkp->np", px)
            hessian = px.reshape(n * k, p).T @ flat - (centre / weight[:, None]).T @ centre + np.diag(precision)
            gradient = observed - centre.sum(axis=0) - precision * b
            step = np.linalg.solve(hessian, gradient)
            if gradient @ step < 1e-3:
                break
            b = b + step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-9))
        effective = 1 - precision * np.diag(np.linalg.inv(hessian))
        precision = np.clip((effective + 0.05) / (b**2 + 0.005), 0.1, 1e4)
    return b


def _centred(z: Floats) -> NDArray[np.float32]:
    return (z - row_sum(z) / z.shape[1]).astype(np.float32)


def _nearest(x: NDArray[np.float32], references: NDArray[np.float32], size: int) -> NDArray[np.intp]:
    search = _by_tree if x.shape[1] <= TREE_CLASSES else _by_distances
    return search(x, references, size)


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
