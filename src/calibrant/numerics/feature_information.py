"""Information matrices of a conditional logit with shared features and an intercept and a slope per class.

Few classes have a dense one. Of many classes only the two-by-two block of each and its coupling to the shared features
are kept, so that equations are solved by the Schur complement of the shared part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats, Reals, Singles


class Factor(Protocol):
    """A factorised information matrix with prior precisions on its diagonal."""

    def solve(self, gradient: Floats) -> Floats:
        """The Newton step."""

    def variances(self) -> Floats:
        """The diagonal of the inverse."""


class Information(Protocol):
    """An information matrix without the prior."""

    def factor(self, precision: Floats) -> Factor:
        """Add the precisions and factorise."""


@dataclass(frozen=True, eq=False)
class DenseInformation:
    """The covariance of the features under the fitted probabilities."""

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
        from scipy.linalg.lapack import dpotrf

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
        from scipy.linalg import cho_solve

        step: Floats = cho_solve((self.upper, False), gradient, check_finite=False)
        return step

    def variances(self) -> Floats:
        """The diagonal of the inverse."""
        from scipy.linalg.lapack import dpotri

        inverse: Floats = dpotri(self.upper, lower=0)[0]
        return inverse.diagonal()


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
        from scipy.sparse import csr_array

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


def _centred(shared: Singles, slope: Singles, mean: Reals, weighted: Reals) -> tuple[Reals, tuple[Reals, Reals]]:
    """Information of the shared features, and what each entry adds to their coupling with intercepts and with slopes.

    Features are centred row by row first: a difference of sums would lose in single precision what is small beside the
    features themselves.
    """
    p = shared.shape[2]
    gap = shared - np.einsum("nk,nkp->np", mean, shared)[:, None, :]
    scaled = gap * weighted[:, :, None]
    between = scaled.reshape(-1, p).T @ gap.reshape(-1, p)
    return between, (scaled, scaled * slope[:, :, None])


def _times_blocks(blocks: Floats, values: Floats) -> Floats:
    """Symmetric two-by-two blocks (3, K) times values (2 K, P)."""
    k = blocks.shape[1]
    first, cross, last = blocks[:, :, None]
    upper, lower = values[:k], values[k:]
    return np.concatenate([first * upper + cross * lower, cross * upper + last * lower])
