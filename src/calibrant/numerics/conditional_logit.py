r"""The fast map for several classes: a conditional logit, a matrix residual and a local correction.

.. math:: \log g_c = z_c + x_c(z)^\top b + (W z)_c + \gamma^\top r_c(z) - \text{normaliser}

with z the predicted log probabilities and three stages, each ridged by its own marginal likelihood:

A. features x_c that all classes share (the logit of class c, smooth functions of it, its interaction with the top
   confidence, whether c is on top), and an intercept and a slope per class: this module;
B. a full matrix W, for confusions between classes: `matrix_residual`;
C. the log ratio r_c of observed to expected class counts among the nearest training rows: `neighbours`.

Every stage can shrink to nothing, so that calibrated predictions stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.matrix_residual import ResidualMatrix
from calibrant.numerics.neighbours import Neighbours, local_correction
from calibrant.numerics.smoothers import kernel_basis, matern
from calibrant.numerics.special import log_softmax, row_max, row_sum

#: Smooth functions of a class's own logit and of the top confidence: number and length scale.
OWN, TOP = (9, 0.4), (4, 0.7)
#: First precision of the blocks: logit, its smooth functions, interactions, top class, class intercepts, slopes.
FIRST_PRECISION = np.array([0.3, 8.0, 40.0, 20.0, 20.0, 40.0])
#: Newton stops when a step promises less than this in log-likelihood.
DECREMENT = 0.02
#: Rows times classes beyond which the information matrix is estimated from part of the rows.
INFORMATION_SIZE = 30_000
_GRID = 201


def cross_fitted(
    predicted: Floats,
    fold: NDArray[np.intp],
    labels: NDArray[np.intp],
    weight: Floats,
    *,
    targets: Sequence[int] | None = None,
) -> Floats:
    """Recalibrated probabilities of every row by the map that was fitted without its fold.

    Rows of folds that are no target keep their predicted probabilities. Neighbours are found once for all folds,
    from the predicted probabilities alone.
    """
    z = compressed_logs(np.log(np.maximum(predicted, np.finfo(np.float64).tiny)), len(predicted))
    near = Neighbours.of(z)
    result = predicted.copy()
    for k in range(int(fold.max()) + 1) if targets is None else targets:
        own = fold == k
        train = np.flatnonzero(~own)
        model = TwoStages.fit(z[train], labels[train], weight[train])
        logs = np.empty_like(z)
        logs[train] = model.fitted
        logs[own] = model.predict(z[own])
        result[own] = np.exp(local_correction(near, logs, labels, weight, train, np.flatnonzero(own)))
    return result


def compressed_logs(z: Floats, rows: int) -> Floats:
    """Log probabilities, below 1/(4 rows) compressed: so few cannot tell smaller ones apart, but order is kept."""
    limit = np.log(4.0 * rows)
    return log_softmax(np.where(z < -limit, -limit - np.log1p(np.maximum(-z - limit, 0)), z))


@dataclass(frozen=True, eq=False)
class TwoStages:
    """Stages A and B, fitted."""

    features: SharedFeatures
    coefficients: Floats
    matrix: ResidualMatrix
    fitted: Floats

    @classmethod
    def fit(cls, z: Floats, labels: NDArray[np.intp], weight: Floats, *, rounds: int = 2) -> TwoStages:
        """Fit the two stages alternately, each with the other as offset."""
        features = SharedFeatures.of(z)
        design = features.design(z)
        ridge = _Ridge(design, labels, weight)
        matrix = ResidualMatrix.of(z, labels, weight)
        residual = np.zeros_like(z)
        for turn in range(rounds):
            shared = ridge.fit(z + residual, updates=4 if turn == 0 else 2)
            residual = matrix.fit(z + shared, updates=4 if turn == 0 else 2)
        return cls(features, ridge.b, matrix, log_softmax(z + shared + residual))

    def predict(self, z: Floats) -> Floats:
        """Recalibrated log probabilities."""
        return log_softmax(z + self.features.design(z).linear(self.coefficients) + self.matrix.predict(z))


@dataclass(frozen=True, eq=False)
class SharedFeatures:
    """Scales and grids of the features, made from log probabilities alone."""

    quantiles: Floats
    top_range: Floats
    scale: float
    own_table: Floats
    top_table: Floats

    @classmethod
    def of(cls, z: Floats) -> SharedFeatures:
        """Features scaled to these rows."""
        logit = _logit_of_logs(z)
        some = logit.ravel()[:: logit.size // 50_000 + 1]
        quantiles = np.quantile(some, np.linspace(0, 1, 65)) + 1e-9 * np.arange(65)
        scale = max(float(np.sqrt(np.mean((z - row_sum(z) / z.shape[1]) ** 2))), 0.3)
        return cls.with_scales(quantiles, np.quantile(_log_doubt(z), [0.02, 0.98]), scale)

    @classmethod
    def with_scales(cls, quantiles: Floats, top_range: Floats, scale: float) -> SharedFeatures:
        """Features of known scales: quantiles of the class logits, range of log(1 - top), spread of the logs."""
        at = np.linspace(0, 1, _GRID)
        tables = (kernel_basis(at, matern, length, knots) for knots, length in (OWN, TOP))
        return cls(quantiles, top_range, scale, *tables)

    def design(self, z: Floats) -> Design:
        """The features of these rows."""
        n, k = z.shape
        rows, order = np.arange(n), np.argsort(z, axis=1)
        logit, q = _logit_of_logs(z), self.quantiles
        place = np.interp(logit, q, np.linspace(0, 1, len(q))) / 2
        place += np.clip((logit - q[0]) / (q[-1] - q[0] + 1e-9), 0, 1) / 2
        low, high = self.top_range
        doubt = np.clip((_log_doubt(z) - low) / (high - low + 1e-9), 0, 1)
        top = self.top_table[np.rint(doubt * (_GRID - 1)).astype(np.intp)]
        slope = z / self.scale
        a, b = self.own_table.shape[1], top.shape[1]
        x = np.zeros((n, k, 2 + a + 2 * b))
        x[:, :, 0] = slope
        x[:, :, 1 : 1 + a] = self.own_table[np.rint(place * (_GRID - 1)).astype(np.intp)]
        x[:, :, 1 + a : 1 + a + b] = slope[:, :, None] * top[:, None, :]
        x[rows, order[:, -1], 1 + a + b : 1 + a + 2 * b] = top
        x[rows, order[:, -2], 1 + a + 2 * b] = 1.0
        block = np.repeat(np.arange(6), [1, a, b, b + 1, k, k])
        return Design(x, slope, block)


@dataclass(frozen=True, eq=False)
class Design:
    """Features shared by the classes, dense, and one intercept and slope per class, kept implicit."""

    shared: Floats
    slope: Floats
    block: NDArray[np.intp]

    def linear(self, b: Floats) -> Floats:
        """Contribution of every class in every row."""
        n, k, p = self.shared.shape
        result = (self.shared.reshape(n * k, p) @ b[:p]).reshape(n, k)
        result += b[p : p + k]
        result += self.slope * b[p + k :]
        return result

    def take(self, rows: Any) -> Design:
        """Some of the rows."""
        return Design(self.shared[rows], self.slope[rows], self.block)

    def totals(self, q: Floats) -> Floats:
        """Sum of q times each feature."""
        p = self.shared.shape[2]
        shared = self.shared.reshape(-1, p).T @ q.ravel()
        return np.concatenate([shared, np.ones(len(q)) @ q, np.einsum("nk,nk->k", q, self.slope)])

    def hessian(self, mean: Floats, weight: Floats) -> Floats:
        """Information of the coefficients: the covariance of the features under the fitted probabilities."""
        n, k, p = self.shared.shape
        root = np.sqrt(weight)[:, None]
        weighted = mean * weight[:, None]
        px = self.shared * weighted[:, :, None]
        centre = np.einsum("nk,nkp->np", mean, self.shared) * root
        mean_slope = mean * self.slope
        h = np.empty((p + 2 * k, p + 2 * k))
        h[:p, :p] = px.reshape(n * k, p).T @ self.shared.reshape(n * k, p) - centre.T @ centre
        classes = np.hstack([mean, mean_slope]) * root
        inner = np.vstack([np.einsum("nkp->kp", px), np.einsum("nk,nkp->kp", self.slope, px)])
        h[p:, :p] = inner - classes.T @ centre
        h[:p, p:] = h[p:, :p].T
        h[p:, p:] = -(classes.T @ classes)
        c = np.arange(k)
        own = weighted * self.slope
        h[p + c, p + c] += weighted.sum(axis=0)
        h[p + k + c, p + c] += own.sum(axis=0)
        h[p + c, p + k + c] += own.sum(axis=0)
        h[p + k + c, p + k + c] += np.einsum("nk,nk->k", own, self.slope)
        return h


class _Ridge:
    """Penalised conditional logit whose precisions per block are set by their marginal likelihood."""

    def __init__(self, design: Design, labels: NDArray[np.intp], weight: Floats) -> None:
        self.design, self.labels, self.weight = design, labels, weight
        self.rows = np.arange(len(labels))
        self.precision = FIRST_PRECISION[design.block]
        self.b = np.zeros(len(design.block))
        outcome = np.zeros(design.slope.shape)
        outcome[self.rows, labels] = weight
        self.observed = design.totals(outcome)
        self.eta: Floats = np.zeros(0)
        self.information: Floats = np.zeros(0)

    def fit(self, offset: Floats, *, updates: int) -> Floats:
        """Coefficients by Newton, then precisions, a few times; the contribution to the logits.

        After the first convergence the information matrix is kept: precisions move the optimum only a little.
        """
        fresh = not self.information.size
        self.eta = offset + self.design.linear(self.b)
        for update in range(updates):
            factor = self._newton(offset, steps=8 if update == 0 else 2, refresh=update == 0, repeat=fresh)
            if self._update_precision(factor) < 0.3:
                break
        return self.eta - offset

    def _newton(self, offset: Floats, *, steps: int, refresh: bool, repeat: bool) -> Floats:
        from scipy.linalg import cho_factor, cho_solve

        factor: Floats = np.zeros(0)
        for step_number in range(steps):
            logs = log_softmax(self.eta)
            mean = np.exp(logs)
            if refresh and (repeat or step_number == 0):
                self.information = self._information(mean)
            gradient = self.observed - self.design.totals(mean * self.weight[:, None]) - self.precision * self.b
            factor = cho_factor(self.information + np.diag(self.precision), lower=False, check_finite=False)[0]
            step = cho_solve((factor, False), gradient, check_finite=False)
            gain = float(gradient @ step)
            if gain < DECREMENT:
                break
            before = self._objective(logs, self.b)
            move, length = self.design.linear(step), 1.0
            while gain > 1 and length > 1e-3:
                trial = log_softmax(self.eta + length * move)
                if self._objective(trial, self.b + length * step) >= before:
                    break
                length /= 2
            self.b, self.eta = self.b + length * step, self.eta + length * move
        return factor

    def _information(self, mean: Floats) -> Floats:
        """From every so many rows where there are many: gradients are exact, so the optimum is as well."""
        every = mean.size // INFORMATION_SIZE + 1
        return every * self.design.take(slice(None, None, every)).hessian(mean[::every], self.weight[::every])

    def _objective(self, logs: Floats, b: Floats) -> float:
        return float(self.weight @ logs[self.rows, self.labels]) - 0.5 * float(self.precision @ b**2)

    def _update_precision(self, factor: Floats) -> float:
        """Fixed point of the evidence per block; how much it moved, counted in effective parameters."""
        from scipy.linalg.lapack import dpotri

        variance = dpotri(factor, lower=0)[0].diagonal()
        moved = 0.0
        for j in range(len(FIRST_PRECISION)):
            block = self.design.block == j
            old = self.precision[block][0]
            effective = max(float(block.sum() - old * variance[block].sum()), 1e-3)
            new = float(np.clip((effective + 0.1) / (float(self.b[block] @ self.b[block]) + 0.01), 0.05, 1e5))
            moved = max(moved, abs(np.log(new / old)) * effective)
            self.precision[block] = new
        return moved


def _logit_of_logs(z: Floats) -> Floats:
    return z - np.log1p(-np.minimum(np.exp(z), 1 - 1e-9))


def _log_doubt(z: Floats) -> Floats:
    """Logarithm of one minus the top confidence."""
    return np.log1p(-np.minimum(np.exp(row_max(z)[:, 0]), 1 - 1e-9))
