"""What maps share that are affine functions of the log probabilities of all classes: the fit and the softmax."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.matrix_descent import descend
from calibrant.numerics.multinomial_loss import AffineLogLoss, MatrixLogLoss, Penalty, VectorLogLoss
from calibrant.numerics.special import LOG_FLOOR, log_softmax, softmax
from calibrant.numerics.truncated_newton import minimise
from calibrant.recalibrate.base import Recalibrator
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.sql_scores import SqlScores

#: Cost of the squares of parameters that the method leaves free. It gives separable data a finite optimum and
#: moves any other by far less than its standard error.
RIDGE = 1e-9

#: How close to its minimum the objective comes: many parameters are content with less.
_CLOSE, _CLOSE_ENOUGH, _MANY = 1e-12, 5e-11, 1000

#: Many parameters whose squares all cost at least this are fitted in single precision, to within the second number of
#: the minimum. Log losses of other rows differ by far more.
_STRONG, _SINGLE = 1e-5, 1e-6


class AffineMap(Recalibrator):
    """Base: log probabilities in, softmax of an affine function of them out.

    Log probabilities are normalised and floored at -87.3 (the logarithm of the smallest float32), so logits and
    their softmax give the same map, and a probability of exactly 0 or a logit of any size is a finite number.
    """

    _loss: ClassVar[type[AffineLogLoss]]
    intercept_: Floats
    objective_: float

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        z = self._fit_inputs(scores, codes, weight)
        if self._fit_many(z, codes, weight):
            return
        problem = self._loss(np.ascontiguousarray(z.T), codes, weight, self._penalty(z.shape[1]))
        tolerance = _CLOSE if problem.cost.size < _MANY else _CLOSE_ENOUGH
        found = minimise(problem, problem.start, tolerance=tolerance)
        if not found.converged:
            from sklearn.exceptions import ConvergenceWarning

            message = (
                f"{type(self).__name__} stopped after {found.products} products, with a gradient of "
                f"{found.gradient:.1e}: {problem.cost.size:,} parameters are many for {len(z):,} rows; consider "
                "StructuredMatrixScaling or StructuredVectorScaling."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        self.objective_ = found.value
        self._keep(found.theta.reshape(problem.cost.shape))

    def _fit_many(self, z: Floats, codes: Codes, weight: Floats | None) -> bool:
        """Fit very many parameters in a faster way, where there is one; whether that succeeded."""
        return False

    def _predict(self, scores: Scores) -> Floats:
        return softmax(self._logits(self._inputs(scores)))

    def _sql(self, scores: SqlScores) -> list[str]:
        return scores.dialect.softmax(self._logits_sql(scores, self._inputs_sql(scores)))

    def _fit_inputs(self, scores: Scores, codes: Codes, weight: Floats | None) -> Floats:
        """Fit the step before the affine map, if there is one, and apply it."""
        return self._inputs(scores)

    def _inputs(self, scores: Scores) -> Floats:
        """What the affine map is applied to, (n, K)."""
        return normalised_logs(scores)

    def _inputs_sql(self, scores: SqlScores) -> list[str]:
        """The same as expressions."""
        return normalised_logs_sql(scores)

    def _penalty(self, classes: int) -> Penalty:
        """Cost of the parameters: free, but for the ridge."""
        return Penalty(RIDGE, RIDGE, RIDGE)

    @abstractmethod
    def _keep(self, theta: Floats) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _logits(self, z: Floats) -> Floats:
        """The affine map."""

    @abstractmethod
    def _logits_sql(self, scores: SqlScores, z: list[str]) -> list[str]:
        """The same as expressions."""


class VectorMap(AffineMap):
    """A slope and an intercept per class."""

    _loss = VectorLogLoss
    scale_: Floats

    def _keep(self, theta: Floats) -> None:
        self.scale_, self.intercept_ = 1 + theta[0], theta[1].copy()

    def _logits(self, z: Floats) -> Floats:
        return z * self.scale_ + self.intercept_

    def _logits_sql(self, scores: SqlScores, z: list[str]) -> list[str]:
        rows = zip(z, self.scale_, self.intercept_, strict=True)
        return [scores.dialect.affine([log], [slope], constant) for log, slope, constant in rows]


class MatrixMap(AffineMap):
    """A full matrix and an intercept per class."""

    _loss = MatrixLogLoss
    matrix_: Floats

    def _fit_many(self, z: Floats, codes: Codes, weight: Floats | None) -> bool:
        cost = self._penalty(z.shape[1]).of_matrix(z.shape[1])
        if cost.size < _MANY or cost.min() < _STRONG:
            return False
        found = descend(z, codes, weight, cost, tolerance=_SINGLE)
        if found.gap <= _SINGLE:
            self.objective_ = found.value
            self._keep(found.theta)
        return found.gap <= _SINGLE

    def _keep(self, theta: Floats) -> None:
        self.matrix_, self.intercept_ = theta[:, :-1] + np.eye(len(theta)), theta[:, -1].copy()

    def _logits(self, z: Floats) -> Floats:
        return z @ self.matrix_.T + self.intercept_

    def _logits_sql(self, scores: SqlScores, z: list[str]) -> list[str]:
        rows = zip(self.matrix_, self.intercept_, strict=True)
        return [scores.dialect.affine(z, slopes, constant) for slopes, constant in rows]


def normalised_logs(scores: Scores) -> Floats:
    """Log probabilities whose exponentials sum to 1, floored at -87.3, (n, K)."""
    z = scores.log_probabilities
    if not scores.logits:
        return z
    return np.maximum(log_softmax(z), LOG_FLOOR)


def normalised_logs_sql(scores: SqlScores) -> list[str]:
    """The same as expressions."""
    logs = scores.log_probabilities
    if not scores.logits:
        return logs
    return [scores.dialect.at_least(log, LOG_FLOOR) for log in scores.dialect.log_softmax(logs)]
