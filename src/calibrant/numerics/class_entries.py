"""Rows of class probabilities as a bounded number of entries, made from predicted probabilities alone.

Few classes are entries themselves. Of many classes, the leading ones of each row are entries of their own, and the
others are pooled into bands of ranks that double: a thousand classes are 22 entries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Codes, Floats, Reals, Singles, row_blocks
from calibrant.numerics.special import log_softmax, row_sum

#: Up to this many classes all are entries; with more, the leading ones are, and bands of ranks.
FEW_CLASSES, LEADING = 40, 16
#: One minus the top confidence is not taken to be smaller than this.
LEAST_DOUBT = 1e-9


def compressed_logs(z: Floats, rows: float) -> Reals:
    """Log probabilities, below 1/(4 rows) compressed: so few cannot tell smaller ones apart, but order is kept."""
    limit = np.log(4.0 * rows)
    return log_softmax(np.where(z < -limit, -limit - np.log1p(np.maximum(-z - limit, 0)), z))


@dataclass(frozen=True, eq=False)
class Entries:
    """Rows of class probabilities and what stands for each of them in a likelihood.

    Attributes
    ----------
    logs : array (n, K)
        Compressed log probabilities of all classes.
    doubt : array (n,)
        Logarithm of one minus the top confidence, summed over the other classes in double precision: single precision
        would lose it where the top confidence is near 1.
    index : array (n, M) or None
        Class of each entry, leading class first; K for a band. None where the entries are the classes.
    log_mass : array (n, M)
        Logarithm of the probability of the entry.
    representative : array (n, M)
        Logarithm of the mean probability of the classes of the entry.
    """

    logs: Singles
    doubt: Floats
    index: NDArray[np.int32] | None
    log_mass: Singles
    representative: Singles

    @classmethod
    def of(cls, predicted: Reals, rows: float, *, logits: bool = False) -> Entries:
        """Entries of probabilities (or logits), with log probabilities compressed as for `rows` of them."""
        n, classes = predicted.shape
        logs, doubt = np.empty((n, classes), np.float32), np.empty(n)
        for block in row_blocks(n, classes):
            part = predicted[block].astype(np.float64)
            raw = log_softmax(part) if logits else np.log(np.maximum(part, np.finfo(np.float64).tiny))
            z = compressed_logs(raw, rows)
            logs[block] = z
            p = np.exp(z)
            p[np.arange(len(p)), p.argmax(axis=1)] = 0
            doubt[block] = np.log(np.maximum(row_sum(p)[:, 0], LEAST_DOUBT))
        if classes <= FEW_CLASSES:
            return cls(logs, doubt, None, logs, logs)
        return cls(logs, doubt, *_leading_and_bands(logs))

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.logs.shape[1]

    def take(self, rows: Codes | slice) -> Entries:
        """Some of the rows."""
        logs = self.logs[rows]
        if self.index is None:
            return Entries(logs, self.doubt[rows], None, logs, logs)
        return Entries(logs, self.doubt[rows], self.index[rows], self.log_mass[rows], self.representative[rows])

    def positions(self, labels: Codes) -> Codes:
        """The entry that holds the label of each row."""
        if self.index is None:
            return labels
        result = np.empty(len(labels), np.intp)
        first = _band_ends(self.classes)[:-1]
        for block in row_blocks(*self.logs.shape):
            logs, label = self.logs[block], labels[block, None]
            above = (logs > np.take_along_axis(logs, label, axis=1)).sum(axis=1)
            band = LEADING - 1 + np.searchsorted(first, np.maximum(above, LEADING), side="right")
            leading = self.index[block, :LEADING] == label
            result[block] = np.where(leading.any(axis=1), leading.argmax(axis=1), band)
        return result


def _band_ends(classes: int) -> list[int]:
    """Ranks at which bands begin, and the number of classes."""
    ends = [LEADING]
    while ends[-1] < classes:
        ends.append(min(2 * ends[-1], classes))
    return ends


def _leading_and_bands(logs: Singles) -> tuple[NDArray[np.int32], Singles, Singles]:
    """Class, log mass and representative log probability of each entry."""
    n, classes = logs.shape
    ends = _band_ends(classes)
    size = LEADING + len(ends) - 1
    index = np.full((n, size), classes, np.int32)
    mass, representative = np.empty((n, size), np.float32), np.empty((n, size), np.float32)
    counts = np.log(np.diff(ends)).astype(np.float32)
    for block in row_blocks(n, classes):
        part = logs[block]
        leading = np.argpartition(part, classes - LEADING, axis=1)[:, classes - LEADING :]
        order = np.argsort(-np.take_along_axis(part, leading, axis=1), axis=1, kind="stable")
        index[block, :LEADING] = leading = np.take_along_axis(leading, order, axis=1)
        mass[block, :LEADING] = representative[block, :LEADING] = np.take_along_axis(part, leading, axis=1)
        falling = -np.sort(-part, axis=1)
        bands = np.log(np.add.reduceat(np.exp(falling), ends[:-1], axis=1))
        mass[block, LEADING:], representative[block, LEADING:] = bands, bands - counts
    return index, mass, representative
