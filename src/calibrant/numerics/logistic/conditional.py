"""Conditional logit in features that the classes share, ridged by its marginal likelihood, block by block."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Codes, Floats, Reals, Singles
from calibrant.numerics.multiclass_features import Design, Factor, Information
from calibrant.numerics.special import log_softmax

#: First precision of the blocks: slope, functions of the own logit, interactions, top classes, class intercepts, class
#: slopes. Test: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
FIRST_PRECISION = np.array([0.3, 8.0, 40.0, 20.0, 20.0, 40.0])
#: Newton's method stops when a step promises less than this in log-likelihood. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
DECREMENT = 0.02
#: Precisions have settled when they move by less than this, counted in effective parameters. Test:
#: tests/numerics/test_multiclass_map.py::test_shares_recovered_with_these_constants.
_SETTLED = 0.3


class ConditionalLogit:
    """Penalised conditional logit whose precisions per block are set by their marginal likelihood.

    `position` is the entry of each row that was observed; weights add up to the effective number of rows.
    """

    def __init__(self, design: Design, position: Codes, weight: Singles) -> None:
        self.design, self.position, self.weight = design, position, weight
        self.rows = np.arange(len(position))
        self.block = design.block
        self.precision = FIRST_PRECISION[self.block]
        self.b = np.zeros(len(self.block))
        outcome = np.zeros(design.slope.shape, np.float32)
        outcome[self.rows, position] = weight
        self.observed = design.totals(outcome)
        self.information: Information | None = None

    def start_from(self, other: ConditionalLogit) -> None:
        """Begin where another fit ended."""
        self.b, self.precision = other.b.copy(), other.precision.copy()

    def fit(self, offset: Reals, *, updates: int) -> Reals:
        """Coefficients by Newton, then precisions, a few times; the contribution to the logits.

        After the first convergence the information matrix is kept: precisions move the optimum only a little.
        """
        fresh, self.eta = self.information is None, offset + self.design.linear(self.b)
        for update in range(updates):
            refreshes = 0 if update else 2 if fresh else 1
            factor = self._newton(steps=2 if update else 8, refreshes=refreshes)
            if self._update_precision(factor) < _SETTLED:
                break
        contribution: Reals = self.eta - offset
        return contribution

    def _newton(self, *, steps: int, refreshes: int) -> Factor:
        """Newton steps from where the fit is; the first `refreshes` of them renew the information matrix."""
        logs = log_softmax(self.eta)
        for number in range(steps):
            mean = np.exp(logs)
            if self.information is None or number < refreshes:
                self.information = self.design.information(mean, self.weight)
            gradient = self.observed - self.design.totals(mean * self.weight[:, None]) - self.precision * self.b
            factor = self.information.factor(self.precision)
            step = factor.solve(gradient)
            gain = float(gradient @ step)
            if not gain >= DECREMENT:
                break
            logs = self._move(logs, step, gain)
        return factor

    def _move(self, logs: Reals, step: Floats, gain: float) -> Reals:
        """Take the step, halved until the objective does not fall; a value that is not a number is a failure.

        A step of little gain is not looked at. The log probabilities after the step.
        """
        move, length, before = self.design.linear(step), 1.0, self._objective(logs, self.b) if gain > 1 else -np.inf
        while True:
            b, eta = self.b + length * step, self.eta + np.float32(length) * move
            logs = log_softmax(eta)
            if length <= 1e-3 or gain <= 1 or self._objective(logs, b) >= before:
                self.b, self.eta = b, eta
                return logs
            length /= 2

    def _objective(self, logs: Reals, b: Floats) -> float:
        hit = logs[self.rows, self.position].astype(np.float64)
        return float(hit @ self.weight) - 0.5 * float(self.precision @ b**2)

    def _update_precision(self, factor: Factor) -> float:
        """Fixed point of the evidence per block; how much it moved, counted in effective parameters."""
        variance, moved = factor.variances(), 0.0
        for j in range(len(FIRST_PRECISION)):
            block = self.block == j
            old = self.precision[block][0]
            effective = max(float(block.sum() - old * variance[block].sum()), 1e-3)
            new = float(np.clip((effective + 0.1) / (float(self.b[block] @ self.b[block]) + 0.01), 0.05, 1e5))
            moved = max(moved, abs(np.log(new / old)) * effective)
            self.precision[block] = new
        return moved
