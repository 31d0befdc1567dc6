"""A full matrix on the log probabilities, for confusions between classes that no shared feature can express."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Codes, Floats, Reals, Singles
from calibrant.numerics.special import softmax

#: The first precision, as a share of the mean information. It is weak on purpose: from a strong start the marginal
#: likelihood sticks there and misses signal, from a weak one it still shrinks to nothing on calibrated rows.
WEAK_START = 0.02
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
