"""What a multiclass map sees of a row: entries, the features that all classes share, and their information matrix.

Entries and features are made from predicted probabilities alone. Up to 40 classes are entries themselves. Of more
classes, the 16 leading ones of each row are entries of their own, and the others are pooled into bands of ranks that
double: a thousand classes are 22 entries. Few classes have a dense information matrix. For many classes, only the
two-by-two block of each class (intercept and slope) and its coupling to the shared features are kept, so that equations
are solved by the Schur complement of the shared part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.sparse import csr_array

from calibrant.numerics.arrays import Codes, Floats, Reals, Singles, log_softmax, row_sum
from calibrant.numerics.rows import row_blocks
from calibrant.numerics.smoothers import kernel_basis, matern

#: Up to this many classes all are entries; with more, this many leading ones are, and bands of ranks. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
FEW_CLASSES, LEADING = 40, 16
#: One minus the top confidence is not taken to be smaller than this. Derived: fewer than 1e8 rows cannot show a
#: smaller one.
LEAST_DOUBT = 1e-9


def compressed_logs(z: Floats, rows: float) -> Reals:
    """Log probabilities, below 1/(4 rows) compressed: so few cannot tell smaller ones apart, but order is kept."""
    limit = np.log(4.0 * rows)
    return log_softmax(np.where(z < -limit, -limit - np.log1p(np.maximum(-z - limit, 0)), z))


@dataclass(frozen=True, eq=False)
class Entries:
    """Rows of class probabilities, with compressed logs, and what stands for each of them in a likelihood.

    `doubt` is log(1 - top confidence), in double precision. `index`, (n, M), is the class of each entry, leading class
    first and K for a band; None where the entries are the classes. `log_mass` is the log probability of an entry,
    `representative` that of the mean of its classes.
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
    doublings = int(np.ceil(np.log2(classes / LEADING)))
    return [*(LEADING << np.arange(doublings)).tolist(), classes]


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


@dataclass(frozen=True, eq=False)
class DenseInformation:
    """The covariance of the features under the fitted probabilities, without the prior."""

    matrix: Floats

    @classmethod
    def of(cls, shared: Singles, slope: Singles, mean: Reals, weight: Reals) -> Self:
        """Information from rows whose entries are all the classes."""
        k, p = shared.shape[1:]
        weighted = mean * weight[:, None]
        between, coupling = _centred(shared, slope, mean, weighted)
        h = np.empty((p + 2 * k, p + 2 * k))
        h[:p, :p] = between
        h[p:, :p] = np.concatenate([np.einsum("nkp->kp", part) for part in coupling])
        h[:p, p:] = h[p:, :p].T
        own = (np.hstack([mean, mean * slope]) * np.sqrt(weight)[:, None]).astype(np.float64)
        h[p:, p:] = -(own.T @ own)
        c, tilted = np.arange(k), weighted * slope
        h[p + c, p + c] += weighted.sum(axis=0)
        h[p + k + c, p + c] += tilted.sum(axis=0)
        h[p + c, p + k + c] += tilted.sum(axis=0)
        h[p + k + c, p + k + c] += np.einsum("nk,nk->k", tilted, slope)
        return cls(h)

    def factor(self, precision: Floats) -> DenseFactor:
        """Cholesky factor with the precisions added, lifted where rounding has left less than a positive matrix."""
        lift = 0.0
        while True:
            upper, failed = dpotrf(self.matrix + np.diag(precision + lift), lower=0)
            if not failed:
                return DenseFactor(upper)
            lift = max(10 * lift, 1e-7 * float(np.abs(np.diag(self.matrix)).max()) + 1e-12)


@dataclass(frozen=True, eq=False)
class DenseFactor:
    """A Cholesky factor."""

    upper: Floats

    def solve(self, gradient: Floats) -> Floats:
        """The Newton step."""
        return np.asarray(dpotrs(self.upper, gradient, lower=0)[0])

    def variances(self) -> Floats:
        """The diagonal of the inverse."""
        return np.asarray(dpotri(self.upper, lower=0)[0].diagonal())


@dataclass(frozen=True, eq=False)
class ClassBlocks:
    """Shared part (P, P), coupling (2 K, P), and (3, K): intercept, intercept by slope, slope of each class."""

    shared: Floats
    coupling: Floats
    blocks: Floats

    @classmethod
    def of(
        cls, shared: Singles, slope: Singles, index: NDArray[np.int32], classes: int, mean: Reals, weight: Reals
    ) -> Self:
        """Information from rows whose entries are leading classes and bands."""
        flat = index.ravel()
        weighted = mean * weight[:, None]
        between, parts = _centred(shared, slope, mean, weighted)
        by_class = csr_array(
            (np.ones(flat.size, np.float32), (flat, np.arange(flat.size))), shape=(classes + 1, flat.size)
        )
        coupling = np.vstack([(by_class @ part.reshape(flat.size, -1))[:classes] for part in parts])
        spread = weighted * (1 - mean)
        blocks = [
            np.bincount(flat, values.ravel(), classes + 1)[:classes]
            for values in (spread, spread * slope, spread * slope * slope)
        ]
        return cls(between.astype(np.float64), coupling.astype(np.float64), np.stack(blocks))

    def factor(self, precision: Floats) -> SchurFactor:
        """Inverses of the blocks and of the Schur complement of the shared part."""
        p, k = len(self.shared), self.blocks.shape[1]
        first, cross, last = self.blocks[0] + precision[p : p + k], self.blocks[1], self.blocks[2] + precision[p + k :]
        determinant = first * last - cross**2
        inverse = np.stack([last, -cross, first]) / determinant
        reduced = _times_blocks(inverse, self.coupling)
        complement = self.shared + np.diag(precision[:p]) - self.coupling.T @ reduced
        return SchurFactor(np.linalg.inv(complement).astype(np.float64), reduced, inverse)


@dataclass(frozen=True, eq=False)
class SchurFactor:
    """The inverse in parts: of the Schur complement, of the blocks, and the blocks' inverse times the coupling."""

    complement: Floats
    reduced: Floats
    inverse: Floats

    def solve(self, gradient: Floats) -> Floats:
        """The Newton step."""
        p = len(self.complement)
        step = self.complement @ (gradient[:p] - self.reduced.T @ gradient[p:])
        own = _times_blocks(self.inverse, gradient[p:, None])[:, 0]
        return np.concatenate([step, own - self.reduced @ step])

    def variances(self) -> Floats:
        """The diagonal of the inverse."""
        through = np.einsum("kp,pq,kq->k", self.reduced, self.complement, self.reduced, optimize=True)
        own = np.concatenate([self.inverse[0], self.inverse[2]]) + through
        return np.concatenate([np.diag(self.complement), own])


Information = DenseInformation | ClassBlocks
Factor = DenseFactor | SchurFactor


def _centred(shared: Singles, slope: Singles, mean: Reals, weighted: Reals) -> tuple[Reals, tuple[Reals, Reals]]:
    """Information of the shared features, and what each entry adds to their coupling with intercepts and with slopes.

    Features are centred row by row first: a difference of sums would lose digits in single precision.
    """
    p = shared.shape[2]
    gap = shared - np.einsum("nk,nkp->np", mean, shared)[:, None, :]
    scaled = gap * weighted[:, :, None]
    between = scaled.reshape(-1, p).T @ gap.reshape(-1, p)
    return between, (scaled, np.multiply(scaled, slope[:, :, None], out=gap))


def _times_blocks(blocks: Floats, values: Floats) -> Floats:
    """Symmetric two-by-two blocks (3, K) times values (2 K, P)."""
    k = blocks.shape[1]
    first, cross, last = blocks[:, :, None]
    upper, lower = values[:k], values[k:]
    return np.concatenate([first * upper + cross * lower, cross * upper + last * lower])


#: Smooth functions of a class's own logit and of the top confidence: number and length scale. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
OWN, TOP = (9, 0.4), (4, 0.7)
#: Number of the shared features. Derived: slope, functions of the own logit, interactions, top class, second class.
SHARED = 2 + OWN[0] + 2 * TOP[0]
#: Entries beyond which the information matrix is estimated from part of the rows, for few and for many classes. Speed:
#: benchmarks/variational.py; gradients are of all rows, and so is the optimum.
INFORMATION_SIZE = 30_000, 100_000
#: Points at which the smooth functions are tabulated, and quantiles that scale them. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
_GRID, _KNOTS = 201, 65
_OWN_TABLE, _TOP_TABLE = (
    kernel_basis(np.linspace(0, 1, _GRID), matern, length, knots).astype(np.float32) for knots, length in (OWN, TOP)
)


@dataclass(frozen=True, eq=False)
class SharedFeatures:
    """Scales of the features, made from predicted probabilities alone.

    Quantiles are those of the logits of all entries; log(1 - top confidence) is told apart within `top_range`; `scale`
    is the spread of the log probabilities around the mean of their row.
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
    """Features shared by the classes, (n, M, 19), and one intercept and slope per class, kept implicit.

    The slopes are applied to `slope`; `index` is the class of each entry, as in `Entries`.
    """

    shared: Singles
    slope: Singles
    index: NDArray[np.int32] | None
    classes: int

    @property
    def blocks(self) -> list[int]:
        """Sizes of blocks: slope, own logit, interactions, top classes, class intercepts, class slopes."""
        return [1, OWN[0], TOP[0], TOP[0] + 1, self.classes, self.classes]

    @property
    def leading(self) -> NDArray[np.int32]:
        """Class of each entry where leading classes and bands are the entries."""
        assert self.index is not None
        return self.index

    def linear(self, b: Floats) -> Reals:
        """Contribution of every entry in every row."""
        (n, m, p), k = self.shared.shape, self.classes
        single = b.astype(np.float32)
        result, own = (self.shared.reshape(n * m, p) @ single[:p]).reshape(n, m), single[p:].reshape(2, k)
        if self.index is not None:  # bands have none of their own
            own = np.pad(own, ((0, 0), (0, 1)))[:, self.index]
        result += own[0]
        result += self.slope * own[1]
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
    first = 0 if entries.index is not None else z.argmax(axis=1)
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
