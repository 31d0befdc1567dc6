r"""The objective of all affine maps of log probabilities: penalised multinomial log loss with its derivatives.

With the log probabilities z of a row of outcome c and weight w, the map is softmax(z + A z + b), where A is a
matrix or a diagonal, and the objective is

.. math:: \frac{1}{W}\sum_i w_i\,\bigl[-\log \mathrm{softmax}(z_i + A z_i + b)_{c_i}\bigr]
          + \lambda_b \|b\|^2 + \lambda_d \sum_k A_{kk}^2 + \lambda_o \sum_{k \ne j} A_{kj}^2,
          \qquad W = \sum_i w_i.

Arrays are held class by row, (K, n): sums over classes then run along long rows, twice as fast as across short ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.switch import compiled

#: Numbers worked on at once, so that a pass stays in the cache.
_BLOCK = 1 << 16

#: The most parameters of a dense preconditioner; more get one block per class, and more classes than `_BLOCKS` only
#: a diagonal.
_DENSE, _BLOCKS = 700, 200

#: Rows a dense preconditioner and one of blocks are built from, and either when it is rebuilt.
_DENSE_ROWS, _BLOCK_ROWS, _THOROUGH_ROWS = 2500, 800, 20_000


@dataclass(frozen=True)
class Penalty:
    """What the squares of the parameters cost: no factor 1/2."""

    intercept: float
    diagonal: float
    off_diagonal: float

    def of_matrix(self, classes: int) -> Floats:
        """The cost of each parameter of [A, b], where A is any matrix: (K, K + 1)."""
        cost = np.full((classes, classes + 1), self.off_diagonal)
        np.fill_diagonal(cost, self.diagonal)
        cost[:, -1] = self.intercept
        return cost


class AffineLogLoss(ABC):
    """Penalised log loss of an affine map of log probabilities; what depends on its shape is left to subclasses.

    Parameters
    ----------
    z : array of shape (K, n)
        Log probabilities, class by row.
    codes : array of shape (n,)
        Outcomes.
    weight : array of shape (n,), optional
        Row weights.
    penalty : Penalty
        Cost of the parameters.
    """

    def __init__(self, z: Floats, codes: Codes, weight: Floats | None, penalty: Penalty) -> None:
        self.z = z
        self.classes, n = z.shape
        self.share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
        self.cost = self._costs(penalty)
        size = max(_BLOCK // self.classes, 64)
        self._blocks = [slice(start, min(start + size, n)) for start in range(0, n, size)]
        self._p = np.empty_like(z)  # probabilities times the share of the row, at the last evaluated point
        observed = np.zeros_like(z)
        observed[codes, np.arange(n)] = self.share
        self._chosen = float(np.einsum("kn,kn->", observed, z))
        self._observed = self._pull(observed, slice(None))

    @property
    def start(self) -> Floats:
        """No change: A = 0, b = 0."""
        return np.zeros(self.cost.size)

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Value and gradient at `theta`."""
        theta = theta.reshape(self.cost.shape)
        total, pulled = self._normaliser(theta)
        gradient = 2 * self.cost * theta - self._observed + pulled
        value = total - self._chosen - float(np.vdot(theta, self._observed)) + float(np.vdot(self.cost, theta**2))
        return value, gradient.ravel()

    def hessian_times(self, direction: Floats) -> Floats:
        """Hessian at the last evaluated point, times a direction."""
        direction = direction.reshape(self.cost.shape)
        product = 2 * self.cost * direction
        for rows in self._blocks:
            p = self._p[:, rows]
            change = self._push(direction, rows)
            mean = np.einsum("kn,kn->n", p, change)
            mean /= self.share[rows]
            change -= mean
            change *= p
            product += self._pull(change, rows)
        return product.ravel()

    def preconditioner(self, *, thorough: bool = False) -> Callable[[Floats], Floats]:
        """An approximation of the inverse Hessian at the last evaluated point, from some rows or more of them."""
        dense = self.cost.size <= _DENSE
        sample = _THOROUGH_ROWS if thorough else _DENSE_ROWS if dense else _BLOCK_ROWS
        rows = slice(None, None, max(self.z.shape[1] // sample, 1))
        share = self.share[rows]
        scale = 1 / share.sum()
        p, share = self._p[:, rows] * scale, share * scale
        if dense:
            inverse = _inverse(self._dense(p, share, rows) + np.diag(2 * self.cost.ravel()))
            return lambda gradient: inverse @ gradient
        return self._structured(p, share, rows)

    def _normaliser(self, theta: Floats) -> tuple[float, Floats]:
        """The logs of the normalising sums of all rows, by their share, and its gradient; keeps the probabilities."""
        total, gradient = 0.0, np.zeros(self.cost.shape)
        for rows in self._blocks:
            part, pulled = self._of_rows(theta, rows)
            total += part
            gradient += pulled
        return total, gradient

    def _of_rows(self, theta: Floats, rows: slice) -> tuple[float, Floats]:
        """The same of some rows."""
        share = self.share[rows]
        p = self._push(theta, rows)
        p += self.z[:, rows]
        top = p.max(axis=0)
        p -= top
        np.exp(p, out=p)
        sums = p.sum(axis=0)
        p *= share / sums
        self._p[:, rows] = p
        return float(share @ (np.log(sums) + top)), self._pull(p, rows)

    @abstractmethod
    def _costs(self, penalty: Penalty) -> Floats:
        """Cost of each parameter, in the shape of the parameters."""

    @abstractmethod
    def _push(self, theta: Floats, rows: slice) -> Floats:
        """A z + b for some rows, as a new array (K, m)."""

    @abstractmethod
    def _pull(self, weights: Floats, rows: slice) -> Floats:
        """The transpose of `_push`: from (K, m) to the shape of the parameters."""

    @abstractmethod
    def _dense(self, p: Floats, share: Floats, rows: slice) -> Floats:
        """Hessian of the log loss from some rows; `p` holds their probabilities times their share."""

    @abstractmethod
    def _structured(self, p: Floats, share: Floats, rows: slice) -> Callable[[Floats], Floats]:
        """A preconditioner that ignores the curvature between classes."""


class MatrixLogLoss(AffineLogLoss):
    """A is any matrix; the parameters are [A, b], of shape (K, K + 1)."""

    def __init__(self, z: Floats, codes: Codes, weight: Floats | None, penalty: Penalty) -> None:
        self._x = np.concatenate([z, np.ones((1, z.shape[1]))])
        super().__init__(z, codes, weight, penalty)

    def _costs(self, penalty: Penalty) -> Floats:
        return penalty.of_matrix(self.classes)

    def _push(self, theta: Floats, rows: slice) -> Floats:
        return theta @ self._x[:, rows]

    def _pull(self, weights: Floats, rows: slice) -> Floats:
        return weights @ self._x[:, rows].T

    def _dense(self, p: Floats, share: Floats, rows: slice) -> Floats:
        x, width = self._x[:, rows], self.classes + 1
        spread = p[:, None, :] * x[None]
        flat = (spread / np.sqrt(share)).reshape(-1, x.shape[1])
        hessian = -(flat @ flat.T)
        for k in range(self.classes):
            block = slice(k * width, (k + 1) * width)
            hessian[block, block] += spread[k] @ x.T
        return hessian

    def _structured(self, p: Floats, share: Floats, rows: slice) -> Callable[[Floats], Floats]:
        x, curvature = self._x[:, rows], p * (1 - p / share)
        if self.classes > _BLOCKS:
            diagonal = (curvature @ (x**2).T + 2 * self.cost).ravel()
            return lambda gradient: gradient / np.maximum(diagonal, np.finfo(np.float64).tiny)
        blocks = np.empty((self.classes, len(x), len(x)))
        for k in range(self.classes):
            rooted = x * np.sqrt(curvature[k])
            blocks[k] = _inverse(rooted @ rooted.T + np.diag(2 * self.cost[k]))
        return lambda gradient: (blocks @ gradient.reshape(*self.cost.shape, 1)).ravel()


class VectorLogLoss(AffineLogLoss):
    """A is a diagonal; the parameters are [diagonal, b], of shape (2, K)."""

    def _costs(self, penalty: Penalty) -> Floats:
        return np.repeat([[penalty.diagonal], [penalty.intercept]], self.classes, axis=1)

    def _normaliser(self, theta: Floats) -> tuple[float, Floats]:
        plain = self.z.flags.c_contiguous and self.z.dtype == np.float64
        fast = compiled(self.z.size, saves=40.0) if plain else None
        if fast is None:
            return super()._normaliser(theta)
        slope, intercept, pulled = 1 + theta[0], theta[1].copy(), np.zeros(self.cost.shape)
        safe = bool(np.max(np.abs(slope) * self._largest + np.abs(intercept)) < 300)
        return float(fast.vector_scaling(self.z, slope, intercept, self.share, safe, self._p, pulled)), pulled

    @cached_property
    def _largest(self) -> float:
        """The largest size of a log probability."""
        return max(abs(float(self.z.max())), abs(float(self.z.min())))

    def _push(self, theta: Floats, rows: slice) -> Floats:
        logits = self.z[:, rows] * theta[0][:, None]
        logits += theta[1][:, None]
        return logits

    def _pull(self, weights: Floats, rows: slice) -> Floats:
        return np.stack([np.einsum("kn,kn->k", weights, self.z[:, rows]), weights.sum(axis=1)])

    def _dense(self, p: Floats, share: Floats, rows: slice) -> Floats:
        z, size = self.z[:, rows], self.classes
        spread = np.concatenate([p * z, p])
        flat = spread / np.sqrt(share)
        hessian = -(flat @ flat.T)
        first, second = np.arange(size), np.arange(size, 2 * size)
        cross = spread[:size].sum(axis=1)
        hessian[first, first] += np.einsum("kn,kn->k", spread[:size], z)
        hessian[second, second] += p.sum(axis=1)
        hessian[first, second] += cross
        hessian[second, first] += cross
        return hessian

    def _structured(self, p: Floats, share: Floats, rows: slice) -> Callable[[Floats], Floats]:
        z, curvature = self.z[:, rows], p * (1 - p / share)
        moments = [np.einsum("kn,kn->k", curvature, z**power) for power in (2, 1, 0)]
        blocks = np.empty((self.classes, 2, 2))
        blocks[:, 0, 0] = moments[0] + 2 * self.cost[0]
        blocks[:, 0, 1] = blocks[:, 1, 0] = moments[1]
        blocks[:, 1, 1] = moments[2] + 2 * self.cost[1]
        inverse = np.stack([_inverse(block) for block in blocks])
        return lambda gradient: (inverse @ gradient.reshape(2, -1).T[..., None])[..., 0].T.ravel()


def _inverse(matrix: Floats) -> Floats:
    """Inverse of a positive definite matrix, lifted where rounding has made it less than that."""
    from scipy.linalg import lapack

    lift = np.finfo(np.float64).eps * float(np.trace(matrix)) + np.finfo(np.float64).tiny
    for _ in range(40):
        factor, failed = lapack.dpotrf(matrix + lift * np.eye(len(matrix)), lower=1)
        if not failed:
            inverse, _ = lapack.dpotri(factor, lower=1)
            return np.tril(inverse) + np.tril(inverse, -1).T
        lift *= 10
    return np.diag(1 / np.maximum(np.diag(matrix), lift))
