"""Features of a class that all classes share, with an intercept and a slope per class, and their information matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Codes, Floats, Reals, Singles
from calibrant.numerics.class_entries import Entries
from calibrant.numerics.feature_information import ClassBlocks, DenseInformation, Information
from calibrant.numerics.smoothers import kernel_basis, matern

#: Smooth functions of a class's own logit and of the top confidence: number and length scale.
OWN, TOP = (9, 0.4), (4, 0.7)
#: Number of the shared features: slope, functions of the own logit, interactions, top class, second class.
SHARED = 2 + OWN[0] + 2 * TOP[0]
#: Entries beyond which the information matrix is estimated from part of the rows, for few and for many classes.
INFORMATION_SIZE = 30_000, 100_000
_GRID, _KNOTS = 201, 65
_OWN_TABLE, _TOP_TABLE = (
    kernel_basis(np.linspace(0, 1, _GRID), matern, length, knots).astype(np.float32) for knots, length in (OWN, TOP)
)


@dataclass(frozen=True, eq=False)
class SharedFeatures:
    """Scales of the features, made from predicted probabilities alone.

    Attributes
    ----------
    quantiles : array (65,)
        Of the logits of all entries.
    top_range : array (2,)
        Between which log(1 - top confidence) is told apart.
    scale : float
        Spread of the log probabilities around the mean of their row.
    """

    quantiles: Floats
    top_range: Floats
    scale: float

    @classmethod
    def of(cls, entries: Entries) -> SharedFeatures:
        """Features scaled to these rows."""
        logit = _logits(entries)
        some = logit.ravel()[:: logit.size // 50_000 + 1].astype(np.float64)
        quantiles = np.quantile(some, np.linspace(0, 1, _KNOTS)) + 1e-9 * np.arange(_KNOTS)
        z = entries.representative
        spread = np.sqrt(np.mean((z - z.mean(axis=1, keepdims=True)) ** 2, dtype=np.float64))
        return cls(quantiles, np.quantile(entries.doubt, [0.02, 0.98]), max(float(spread), 0.3))

    def of_own(self, logit: Reals) -> Reals:
        """The smooth functions of class logits: (..., 9)."""
        q = self.quantiles
        place = np.interp(logit, q, np.linspace(0, 1, len(q)))
        place += np.clip((logit - q[0]) / (q[-1] - q[0] + 1e-6), 0, 1)
        return _OWN_TABLE[np.rint(place * ((_GRID - 1) / 2)).astype(np.intp)]

    def of_top(self, doubt: Floats) -> Reals:
        """The smooth functions of the top confidence: (n, 4)."""
        low, high = self.top_range
        place = np.clip((doubt - low) / (high - low + 1e-6), 0, 1)
        return _TOP_TABLE[np.rint(place * (_GRID - 1)).astype(np.intp)]

    def design(self, entries: Entries) -> Design:
        """The features of these rows."""
        z, rows = entries.representative, np.arange(len(entries.doubt))
        slope, top = z / np.float32(self.scale), self.of_top(entries.doubt)
        a, b = OWN[0], TOP[0]
        x = np.zeros((*z.shape, SHARED), np.float32)
        x[:, :, 0] = slope
        x[:, :, 1 : 1 + a] = self.of_own(_logits(entries))
        x[:, :, 1 + a : 1 + a + b] = slope[:, :, None] * top[:, None, :]
        first, second = _two_leading(entries)
        x[rows, first, 1 + a + b : 1 + a + 2 * b] = top
        x[rows, second, 1 + a + 2 * b] = 1.0
        return Design(x, slope, entries.index, entries.classes)


@dataclass(frozen=True, eq=False)
class Design:
    """Features shared by the classes, dense, and one intercept and slope per class, kept implicit.

    Attributes
    ----------
    shared : array (n, M, 19)
    slope : array (n, M)
        What the slopes of the classes are applied to.
    index : array (n, M) or None
        Class of each entry, K for those that have no class of their own; None where the entries are the classes.
    classes : int
    """

    shared: Singles
    slope: Singles
    index: NDArray[np.int32] | None
    classes: int

    @property
    def block(self) -> Codes:
        """Block of each coefficient: slope, own logit, interactions, top classes, class intercepts, class slopes."""
        return np.repeat(np.arange(6), [1, OWN[0], TOP[0], TOP[0] + 1, self.classes, self.classes])

    @property
    def leading(self) -> NDArray[np.int32]:
        """Class of each entry where leading classes and bands are the entries."""
        if self.index is None:
            message = "The entries are the classes."
            raise TypeError(message)
        return self.index

    def linear(self, b: Floats) -> Reals:
        """Contribution of every entry in every row."""
        (n, m, p), k = self.shared.shape, self.classes
        single = b.astype(np.float32)
        result = (self.shared.reshape(n * m, p) @ single[:p]).reshape(n, m)
        if self.index is None:
            result += single[p : p + k]
            result += self.slope * single[p + k :]
        else:
            result += np.append(single[p : p + k], np.float32(0))[self.index]
            result += self.slope * np.append(single[p + k :], np.float32(0))[self.index]
        return result

    def take(self, rows: Any) -> Design:
        """Some of the rows."""
        index = None if self.index is None else self.index[rows]
        return Design(self.shared[rows], self.slope[rows], index, self.classes)

    def totals(self, q: Reals) -> Floats:
        """Sum of q times each feature."""
        shared = self.shared.reshape(-1, self.shared.shape[2]).T @ q.ravel()
        return np.concatenate([shared.astype(np.float64), self._by_class(q), self._by_class(q * self.slope)])

    def information(self, mean: Reals, weight: Singles) -> Information:
        """Information of the coefficients at fitted probabilities, where there are many rows from part of them.

        Gradients are exact, so the optimum is as well.
        """
        every = mean.size // INFORMATION_SIZE[self.index is not None] + 1
        part, mean, weight = self.take(slice(None, None, every)), mean[::every], weight[::every] * np.float32(every)
        if part.index is None:
            return DenseInformation.of(part.shared, part.slope, mean, weight)
        return ClassBlocks.of(part.shared, part.slope, part.index, self.classes, mean, weight)

    def _by_class(self, q: Reals) -> Floats:
        if self.index is None:
            return np.ones(len(q)) @ q.astype(np.float64)  # a product is several times faster than a sum by columns
        sums = np.bincount(self.index.ravel(), q.ravel(), self.classes + 1)[: self.classes]
        return sums.astype(np.float64, copy=False)


def log_odds_of_logs(z: Reals) -> Reals:
    """Log odds of probabilities given as logarithms."""
    return z - np.log1p(-np.minimum(np.exp(z), z.dtype.type(1 - 1e-6)))


def _logits(entries: Entries) -> Reals:
    """Log odds of the entries, those of the leading class by its doubt."""
    z, rows = entries.representative, np.arange(len(entries.doubt))
    logit = log_odds_of_logs(z)
    first = np.zeros(len(z), np.intp) if entries.index is not None else z.argmax(axis=1)
    logit[rows, first] = z[rows, first] - entries.doubt
    return logit


def _two_leading(entries: Entries) -> tuple[Codes, Codes]:
    """Entries of the two leading classes."""
    z = entries.representative
    n, size = z.shape
    if entries.index is not None:
        return np.zeros(n, np.intp), np.ones(n, np.intp)
    two = np.argpartition(z, size - 2, axis=1)[:, -2:]
    values = np.take_along_axis(z, two, axis=1)
    order = np.where((values[:, 0] > values[:, 1])[:, None], two, two[:, ::-1])
    return order[:, 0], order[:, 1]
