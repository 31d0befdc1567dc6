"""Penalised matrices on log probabilities, which correct confusions between classes.

`ResidualMatrix`, for few classes, is a full matrix with one precision chosen by marginal likelihood. `LeadingMatrix`,
for many classes, leads from a few principal scores to the leading classes of each row. For its many parameters the
marginal likelihood misjudges the shrinkage, so the precision is chosen on rows that no part of the map has seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Codes, Floats, Reals, Singles
from calibrant.numerics.multiclass_features import LEADING
from calibrant.numerics.special import log_softmax, row_max, row_sum, softmax

#: Precisions that are tried, strong to weak. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
PRECISIONS = 4000.0 / 2.5 ** np.arange(7)
#: Steps of L-BFGS of each trial, and of the final fits. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
TRIAL_ITERATIONS, FINAL_ITERATIONS = 5, 6
#: Trials end after two losses in a row, or one of this many units of log-likelihood. Speed:
#: benchmarks/variational_many.py; losses grow from there on.
_GREAT_LOSS = 8.0
#: Up to this many classes all logits are formed and the leading ones taken; with more they are formed one by one.
#: Speed: benchmarks/variational_many.py; no result depends on it.
_ALL_AT_ONCE = 200
#: Rows that are worked on at once. Speed: benchmarks/variational_many.py; no result depends on it.
_ROWS = 4096


@dataclass(eq=False)
class LeadingMatrix:
    """Ridged (r, K) matrix from r inputs to the leading classes of each row.

    Attributes
    ----------
    inputs : array (n, r)
    index : array (n, M)
        Class of each entry, leading classes first.
    position : array (n,)
        Entry that was observed.
    weight : array (n,)
        Weights that add up to the effective number of rows.
    classes : int
    precision : float
        Zero where the matrix is not used.
    matrix : array (r, K)
    """

    inputs: Singles
    index: NDArray[np.int32]
    position: Codes
    weight: Singles
    classes: int
    precision: float = 0.0

    def __post_init__(self) -> None:
        self.matrix = np.zeros((self.inputs.shape[1], self.classes))

    def choose_precision(self, offset: Reals, train: Codes, judge: Codes) -> None:
        """The precision that, fitted to the rows `train`, predicts the rows `judge` best; 0 if none gains.

        The offset must be that of a map which has not seen the rows `judge` either, or the choice is biased.
        """
        fitted, held = self._take(train), self._take(judge)
        information, best, losses = fitted._information(offset[train]), held._log_likelihood(offset[judge]), 0
        for precision in PRECISIONS:
            fitted.precision = float(precision)
            fitted._optimise(offset[train], information, TRIAL_ITERATIONS)
            now = held._log_likelihood(offset[judge] + leading_logits(held.inputs, fitted.matrix, held.index))
            if now > best:
                best, losses = now, 0
                self.precision, self.matrix = float(precision), fitted.matrix
            else:
                losses += 1
            if losses == 2 or now < best - _GREAT_LOSS:
                break

    def fit(self, offset: Reals) -> Reals:
        """The matrix at the chosen precision; its contribution to the logits of the entries."""
        if not self.precision:
            return np.zeros_like(offset)
        self._optimise(offset, self._information(offset), FINAL_ITERATIONS)
        return leading_logits(self.inputs, self.matrix, self.index)

    def _take(self, rows: Codes) -> LeadingMatrix:
        return LeadingMatrix(self.inputs[rows], self.index[rows], self.position[rows], self.weight[rows], self.classes)

    def _log_likelihood(self, logits: Reals) -> float:
        logs = log_softmax(logits)[np.arange(len(logits)), self.position]
        return float(logs.astype(np.float64) @ self.weight)

    def _information(self, offset: Reals) -> Floats:
        """The diagonal of the information matrix, (r, K)."""
        p = np.exp(log_softmax(offset))
        return np.maximum(self._pulled(p * (1 - p) * self.weight[:, None], self.inputs**2), 1e-9)

    def _pulled(self, q: Reals, inputs: Reals) -> Floats:
        """Sums over rows of inputs times q of the leading classes, by class: (r, K)."""
        from scipy.sparse import csr_array

        n = len(q)
        leading, ends = np.ascontiguousarray(self.index[:, :LEADING]), np.arange(0, n * LEADING + 1, LEADING)
        by_class = csr_array((q[:, :LEADING].ravel(), leading.ravel(), ends), shape=(n, self.classes))
        return np.asarray(by_class.T @ inputs, dtype=np.float64).T

    def _optimise(self, offset: Reals, information: Floats, iterations: int) -> None:
        from scipy.optimize import minimize

        rows, shape = np.arange(len(offset)), self.matrix.shape
        outcome = np.zeros_like(offset)
        outcome[rows, self.position] = self.weight
        observed, unit = self._pulled(outcome, self.inputs), 1 / np.sqrt(information + self.precision)

        def objective(x: Floats) -> tuple[float, Floats]:
            matrix = x.reshape(shape) * unit
            logits = offset + leading_logits(self.inputs, matrix, self.index)
            logits -= row_max(logits)
            hit = logits[rows, self.position].astype(np.float64)
            p = np.exp(logits, out=logits)
            total = row_sum(p)
            loss = float(self.weight @ (np.log(total[:, 0], dtype=np.float64) - hit))
            p *= self.weight[:, None] / total
            gradient = self._pulled(p, self.inputs) - observed + self.precision * matrix
            return loss + 0.5 * self.precision * float((matrix**2).sum()), (gradient * unit).ravel()

        options = {"maxiter": iterations, "maxcor": 8, "ftol": 1e-6, "gtol": 2e-2}
        found = minimize(objective, (self.matrix / unit).ravel(), jac=True, method="L-BFGS-B", options=options)
        self.matrix = found.x.reshape(shape) * unit


def leading_logits(inputs: Reals, matrix: Floats, index: NDArray[np.int32]) -> Reals:
    """Inputs times the columns of the matrix that belong to the leading classes; zero for the other entries."""
    result = np.zeros(index.shape, np.float32)
    leading = index[:, :LEADING]
    if matrix.shape[1] <= _ALL_AT_ONCE:
        result[:, :LEADING] = np.take_along_axis(inputs @ matrix.astype(np.float32), leading, axis=1)
        return result
    columns = np.ascontiguousarray(matrix.T, np.float32)
    for start in range(0, len(inputs), _ROWS):
        rows = slice(start, start + _ROWS)
        result[rows, :LEADING] = np.einsum("nr,nmr->nm", inputs[rows], columns[leading[rows]])
    return result


#: The first precision, as a share of the mean information. It is weak on purpose: from a strong start the marginal
#: likelihood sticks there and misses signal, from a weak one it still shrinks to nothing on calibrated rows. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
WEAK_START = 0.02
#: Steps of L-BFGS between two precisions. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
ITERATIONS = 12


class ResidualMatrix:
    """Ridged k x k matrix on standardised log probabilities, one precision by marginal likelihood.

    The information matrix is taken as a Kronecker product of that of the classes and that of the inputs, which is
    what preconditions the optimiser and gives the effective number of parameters.

    Parameters
    ----------
    inputs : array (n, k)
        Standardised log probabilities.
    labels : array (n,)
    weight : array (n,)
        Weights that add up to the effective number of rows.
    """

    def __init__(self, inputs: Singles, labels: Codes, weight: Singles) -> None:
        self.inputs, self.labels, self.weight, self.rows = inputs, labels, weight, np.arange(len(labels))
        self.columns = np.ascontiguousarray(inputs.T)
        outcome = np.zeros(inputs.shape, np.float32)
        outcome[self.rows, labels] = weight
        self.observed = (inputs.T @ outcome).astype(np.float64)
        values, self.axes = np.linalg.eigh(((inputs * weight[:, None]).T @ inputs).astype(np.float64))
        self.spread = np.maximum(values, 1e-9)
        self.precision = 0.0
        self.matrix = np.zeros((inputs.shape[1],) * 2)

    def fit(self, offset: Reals, *, updates: int) -> Reals:
        """Fit the matrix and its precision alternately; the contribution to the logits."""
        p = softmax(offset)
        weighted = p * self.weight[:, None]
        curvature = np.diag(weighted.sum(axis=0, dtype=np.float64)) - weighted.T @ p
        values, turn = np.linalg.eigh(curvature / self.weight.sum(dtype=np.float64))
        information = self.spread[:, None] * np.maximum(values, 1e-12)
        if not self.precision:
            self.precision = float(information.mean()) * WEAK_START
        for _ in range(updates):
            self.matrix = self._optimum(offset, information, turn)
            old, size = self.precision, float((self.matrix**2).sum())
            effective = float((information / (information + old)).sum())
            moved = ((effective + 0.5) / (old * size + 0.5)) ** 1.5
            self.precision = float(np.clip(old * moved, 1e-2, 1e7))
            if abs(np.log(self.precision / old)) < 0.2:
                break
        return self.inputs @ self.matrix.astype(np.float32)

    def _optimum(self, offset: Reals, information: Floats, turn: Floats) -> Floats:
        from scipy.optimize import minimize

        unit = 1 / np.sqrt(information + self.precision)
        shape = self.matrix.shape
        offset = np.ascontiguousarray(offset.T)  # what is done per row is faster with rows as columns

        def objective(x: Floats) -> tuple[float, Floats]:
            matrix = self.axes @ (x.reshape(shape) * unit) @ turn.T
            logits = offset + matrix.T.astype(np.float32) @ self.columns
            logits -= logits.max(axis=0)
            hit = logits[self.labels, self.rows].astype(np.float64)
            p = np.exp(logits, out=logits)
            total = p.sum(axis=0)
            loss = float(self.weight @ (np.log(total, dtype=np.float64) - hit))
            p *= self.weight / total
            gradient = self.columns @ p.T - self.observed + self.precision * matrix
            loss += 0.5 * self.precision * float((matrix**2).sum())
            return loss, ((self.axes.T @ gradient @ turn) * unit).ravel()

        start = ((self.axes.T @ self.matrix @ turn) / unit).ravel()
        options = {"maxiter": ITERATIONS, "maxcor": 8, "ftol": 1e-5, "gtol": 2e-2}
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        result: Floats = self.axes @ (found.x.reshape(shape) * unit) @ turn.T
        return result
