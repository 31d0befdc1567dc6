"""Parametric multiclass maps: vector, matrix, Dirichlet and structured scaling, and ensemble temperature scaling.

All but the last are the softmax of an affine function of the log probabilities of all classes, fitted by penalised log
loss; they differ in the shape of the matrix and in what is penalised. The last is a mixture.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import nnls

from calibrant.data.validation import fail
from calibrant.numerics.arrays import LOG_FLOOR, Codes, Floats, floored_log, log_softmax, softmax
from calibrant.numerics.logistic.multinomial import AffineLogLoss, MatrixLogLoss, Penalty, VectorLogLoss, minimise
from calibrant.recalibrate import expressions
from calibrant.recalibrate.base import Recalibrator, fitted, predicted
from calibrant.recalibrate.export import predicted_expressions
from calibrant.recalibrate.expressions import Expression, ScoreExpressions
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.logistic import Temperature

#: Cost of the squares of parameters that the method leaves free. It gives separable data a finite optimum and
#: moves any other by far less than its standard error.
#: Test: tests/recalibrate/test_multiclass_scaling.py::test_separable_rows_pay_the_ridge.
RIDGE = 1e-9

#: Mean log loss that may be left to gain without a warning. Derived: far below any standard error of a mean log loss.
_UNNOTICED = 1e-8


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
        problem = self._loss(np.ascontiguousarray(z.T), codes, weight, self._penalty(z.shape[1]))
        # To the rounding of the mean log loss; a thousand parameters or more are content with less.
        found = minimise(problem, tolerance=1e-14 if problem.cost.size < 1000 else 1e-10)
        if found.left > _UNNOTICED:
            from sklearn.exceptions import ConvergenceWarning

            message = (
                f"{type(self).__name__} stopped after {found.evaluations} evaluations, with a gradient of "
                f"{found.gradient:.1e}: {problem.cost.size:,} parameters are many for {len(z):,} rows; consider "
                "StructuredMatrixScaling or StructuredVectorScaling."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        self.objective_ = found.value
        self._keep(found.theta.reshape(problem.cost.shape))

    def _predict(self, scores: Scores) -> Floats:
        return softmax(self._logits(self._inputs(scores)))

    def _expressions(self, scores: ScoreExpressions) -> list[Expression]:
        return expressions.softmax(self._logit_expressions(self._input_expressions(scores)))

    def _fit_inputs(self, scores: Scores, codes: Codes, weight: Floats | None) -> Floats:
        """Fit the step before the affine map, if there is one, and apply it."""
        return self._inputs(scores)

    def _inputs(self, scores: Scores) -> Floats:
        """What the affine map is applied to, (n, K)."""
        return normalised_logs(scores)

    def _input_expressions(self, scores: ScoreExpressions) -> list[Expression]:
        """The same as expressions."""
        return normalised_log_expressions(scores)

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
    def _logit_expressions(self, z: list[Expression]) -> list[Expression]:
        """The same as expressions."""


class VectorMap(AffineMap):
    """A slope and an intercept per class."""

    _loss = VectorLogLoss
    scale_: Floats

    def _keep(self, theta: Floats) -> None:
        self.scale_, self.intercept_ = 1 + theta[:, 0], theta[:, 1].copy()

    def _logits(self, z: Floats) -> Floats:
        return z * self.scale_ + self.intercept_

    def _logit_expressions(self, z: list[Expression]) -> list[Expression]:
        rows = zip(z, self.scale_, self.intercept_, strict=True)
        return [float(constant) + float(slope) * log for log, slope, constant in rows]


class MatrixMap(AffineMap):
    """A full matrix and an intercept per class."""

    _loss = MatrixLogLoss
    matrix_: Floats

    def _keep(self, theta: Floats) -> None:
        self.matrix_, self.intercept_ = theta[:, :-1] + np.eye(len(theta)), theta[:, -1].copy()

    def _logits(self, z: Floats) -> Floats:
        return z @ self.matrix_.T + self.intercept_

    def _logit_expressions(self, z: list[Expression]) -> list[Expression]:
        rows = zip(self.matrix_, self.intercept_, strict=True)
        return [float(constant) + expressions.mixture(slopes, z) for slopes, constant in rows]


def normalised_logs(scores: Scores) -> Floats:
    """Log probabilities whose exponentials sum to 1, floored at -87.3, (n, K)."""
    z = scores.log_probabilities
    return np.maximum(log_softmax(z), LOG_FLOOR) if scores.logits else z


def normalised_log_expressions(scores: ScoreExpressions) -> list[Expression]:
    """The same as expressions."""
    logs = scores.log_probabilities
    if not scores.logits:
        return logs
    return [expressions.within(log, LOG_FLOOR, np.inf) for log in expressions.log_softmax(logs)]


@dataclass(kw_only=True, eq=False, repr=False)
class _Structured(AffineMap):
    """Base of the maps that start from temperature scaling and pay for every step away from it."""

    lambda_intercept: float = 1.0
    lambda_diagonal: float = 1.0
    rho: float = 1.0
    tau: float = 1.0

    def _fit_inputs(self, scores: Scores, codes: Codes, weight: Floats | None) -> Floats:
        first = Scores(normalised_logs(scores), logits=True)
        self.temperature_ = fitted(Temperature(laplace=1.0), first, codes, weight)
        return floored_log(predicted(self.temperature_, first))

    def _inputs(self, scores: Scores) -> Floats:
        return floored_log(predicted(self.temperature_, Scores(normalised_logs(scores), logits=True)))

    def _input_expressions(self, scores: ScoreExpressions) -> list[Expression]:
        first = ScoreExpressions(tuple(normalised_log_expressions(scores)), logits=True, exact=False)
        return [expressions.floored_log(p) for p in predicted_expressions(self.temperature_, first)]

    def _penalty(self, classes: int) -> Penalty:
        sizes = {
            "lambda_intercept": classes,
            "lambda_diagonal": classes,
            "lambda_off_diagonal": classes * (classes - 1),
        }
        strengths = {name: getattr(self, name, 0.0) for name in sizes}
        _require_strengths(strengths)
        scale = {name: size**self.rho / self.weight_**self.tau for name, size in sizes.items()}
        return Penalty(*(max(strengths[name] * scale[name], RIDGE) for name in sizes))


class VectorScaling(VectorMap):
    r"""Vector scaling: each log probability gets its own slope and intercept.

    .. math:: q = \mathrm{softmax}(s \odot \log p + b)

    Fitted by maximum likelihood, with a ridge of 1e-9 towards the identity.

    Attributes
    ----------
    scale_, intercept_ : arrays of shape (K,)
    objective_ : float
        Mean log loss of the fit, with what the ridge costs.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), On Calibration of Modern Neural Networks.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.1, 0.2, 0.7]] * 5
    >>> VectorScaling().fit(p, [0, 1, 1, 2] * 5).predict_proba(p[:1]).round(3)
    array([[0.5, 0.5, 0. ]])
    """


class MatrixScaling(MatrixMap):
    r"""Matrix scaling: multinomial logistic regression on the log probabilities.

    .. math:: q = \mathrm{softmax}(M \log p + b)

    Fitted by maximum likelihood, with a ridge of 1e-9 towards the identity. With K (K + 1) parameters it overfits
    quickly: on public benchmarks it does worse than leaving scores unchanged, where `StructuredMatrixScaling` wins.

    Attributes
    ----------
    matrix_ : array of shape (K, K)
    intercept_ : array of shape (K,)
    objective_ : float
        Mean log loss of the fit, with what the ridge costs.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), On Calibration of Modern Neural Networks.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.1, 0.2, 0.7]] * 5
    >>> MatrixScaling().fit(p, [0, 1, 1, 2] * 5).predict_proba(p[:1]).round(3)
    array([[0.5, 0.5, 0. ]])
    """


@dataclass(kw_only=True, eq=False, repr=False)
class Dirichlet(MatrixMap):
    r"""Recalibration map, Dirichlet: matrix scaling of log probabilities, penalised off the diagonal (ODIR).

    .. math:: q = \mathrm{softmax}(M \log p + b), \quad
              \text{penalty}\;\; \frac{\lambda}{K (K-1)} \sum_{k \ne j} M_{kj}^2 + \frac{\mu}{K} \sum_k b_k^2

    The map that is right where the scores of each class follow a Dirichlet distribution. The diagonal is free,
    but for a ridge of 1e-9 towards 1.

    Parameters
    ----------
    lambda_off_diagonal : float
        λ. The paper tunes it by cross-validation; 1e-3 is in the middle of its grid.
    lambda_intercept : float
        μ.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    matrix_ : array of shape (K, K)
    intercept_ : array of shape (K,)
    objective_ : float
        Mean log loss of the fit plus the penalty.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach (2019), Beyond temperature scaling.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.1, 0.2, 0.7]] * 5
    >>> Dirichlet().fit(p, [0, 1, 1, 2] * 5).predict_proba(p[:1]).round(2)
    array([[0.5, 0.5, 0. ]])
    """

    lambda_off_diagonal: float = 1e-3
    lambda_intercept: float = 1e-3

    def _penalty(self, classes: int) -> Penalty:
        strengths = {"lambda_off_diagonal": self.lambda_off_diagonal, "lambda_intercept": self.lambda_intercept}
        _require_strengths(strengths)
        off_diagonal = self.lambda_off_diagonal / (classes * (classes - 1))
        return Penalty(max(self.lambda_intercept / classes, RIDGE), RIDGE, max(off_diagonal, RIDGE))


class StructuredVectorScaling(_Structured, VectorMap):
    r"""Structured vector scaling (SVS): temperature scaling, then a penalised slope and intercept per class.

    With z the log probabilities after temperature scaling and Laplace's rule, and n the effective number of rows,

    .. math:: q = \mathrm{softmax}(z + d \odot z + b), \quad
              \text{penalty}\;\; \frac{K^\rho}{n^\tau}\Bigl(\lambda_b \|b\|^2 + \lambda_d \|d\|^2\Bigr)

    Second on public benchmarks of multiclass maps, first with very many classes.

    Parameters
    ----------
    lambda_intercept, lambda_diagonal, rho, tau : float
        Strengths and exponents of the penalty.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    temperature_ : Temperature
        The fitted first step.
    scale_, intercept_ : arrays of shape (K,)
        1 + d, and b.
    objective_ : float
        Mean log loss of the fit plus the penalty.

    References
    ----------
    Berta, Holzmüller, Jordan, Bach (2026), Structured Matrix Scaling for Multi-Class Calibration.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.1, 0.2, 0.7]] * 50
    >>> StructuredVectorScaling().fit(p, [0, 1, 1, 2] * 50).predict_proba(p[:1]).round(2)
    array([[0.55, 0.43, 0.02]])
    """


@dataclass(kw_only=True, eq=False, repr=False)
class StructuredMatrixScaling(_Structured, MatrixMap):
    r"""Structured matrix scaling (SMS): temperature scaling, then a matrix penalised most off the diagonal.

    With z the log probabilities after temperature scaling and Laplace's rule, and n the effective number of rows,

    .. math:: q = \mathrm{softmax}(z + W z + b), \quad
              \text{penalty}\;\; \frac{K^\rho}{n^\tau}\Bigl(\lambda_b \|b\|^2 + \lambda_d \sum_k W_{kk}^2\Bigr)
              + \frac{(K (K-1))^\rho}{n^\tau} \lambda_o \sum_{k \ne j} W_{kj}^2

    First on public benchmarks of multiclass maps.

    Parameters
    ----------
    lambda_intercept, lambda_diagonal, lambda_off_diagonal, rho, tau : float
        Strengths and exponents of the penalty.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    temperature_ : Temperature
        The fitted first step.
    matrix_ : array of shape (K, K)
        I + W.
    intercept_ : array of shape (K,)
    objective_ : float
        Mean log loss of the fit plus the penalty.

    References
    ----------
    Berta, Holzmüller, Jordan, Bach (2026), Structured Matrix Scaling for Multi-Class Calibration.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.1, 0.2, 0.7]] * 50
    >>> StructuredMatrixScaling().fit(p, [0, 1, 1, 2] * 50).predict_proba(p[:1]).round(2)
    array([[0.5 , 0.49, 0.01]])
    """

    lambda_off_diagonal: float = 1.0


def _require_strengths(strengths: dict[str, float]) -> None:
    for name, value in strengths.items():
        if not 0 <= value < np.inf:
            fail(f"{name} must be a number of at least 0, got {value!r}.", ValueError)


class EnsembleTemperature(Recalibrator):
    r"""Ensemble temperature scaling (ETS): a mixture of tempered, predicted and uniform probabilities.

    .. math:: q = w_1\, \mathrm{softmax}(\log p / T) + w_2\, p + w_3 / K, \qquad w \ge 0,\; w_1 + w_2 + w_3 = 1

    T minimises the log loss first, then the weights do, exactly: that is a convex problem. The order of the
    classes in a row never changes, so accuracy is kept. Never worse than temperature scaling on the rows fitted.

    Attributes
    ----------
    temperature_ : Temperature
        The fitted first step.
    weights_ : array of shape (3,)
        Weights of the tempered, the predicted and the uniform probabilities.

    References
    ----------
    Zhang, Kailkhura, Han (2020), Mix-n-Match: Ensemble and Compositional Methods for Uncertainty Calibration.

    Examples
    --------
    >>> p = [[0.98, 0.01, 0.01]] * 10 + [[0.4, 0.35, 0.25]] * 10
    >>> y = [0] * 9 + [1] + [0] * 6 + [1] * 3 + [2]
    >>> EnsembleTemperature().fit(p, y).weights_.round(3)
    array([0.   , 0.893, 0.107])
    """

    temperature_: Temperature
    weights_: Floats

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        self.temperature_ = fitted(Temperature(), scores, codes, weight)
        rows = np.arange(len(codes))
        given = np.stack([part[rows, codes] for part in self._parts(scores)], axis=1)
        share = np.full(len(codes), 1 / len(codes)) if weight is None else weight / weight.sum()
        self.weights_ = mixture_weights(given, share)

    def _predict(self, scores: Scores) -> Floats:
        first, second, third = (weight * part for weight, part in zip(self.weights_, self._parts(scores), strict=True))
        return first + second + third

    def _expressions(self, scores: ScoreExpressions) -> list[Expression]:
        uniform = expressions.number(1 / scores.classes)
        pairs = zip(predicted_expressions(self.temperature_, scores), scores.probabilities, strict=True)
        return [expressions.mixture(self.weights_, [tempered, given, uniform]) for tempered, given in pairs]

    def _parts(self, scores: Scores) -> tuple[Floats, Floats, Floats]:
        given = scores.probabilities
        return predicted(self.temperature_, scores), given, np.full_like(given, 1 / given.shape[1])


def mixture_weights(given: Floats, share: Floats) -> Floats:
    r"""The convex weights w that maximise :math:`\sum_i s_i \log \sum_j w_j g_{ij}`; the shares s sum to 1.

    The same w minimise :math:`-\sum_i s_i \log (g w)_i + \sum_j w_j` over w >= 0 alone, which sequential quadratic
    programming does in a few steps (Kim, Carbonetto, Stephens, Anitescu, 2020).
    """

    def cost(w: Floats) -> float:
        mixed = given @ w
        return float("inf") if mixed.min() <= 0 else float(w.sum() - share @ np.log(mixed))

    w = np.full(given.shape[1], 1 / given.shape[1])
    value = cost(w)
    for _ in range(100):  # a few are enough
        ratio = given / (given @ w)[:, None]
        slope = 1 - share @ ratio
        if slope.min() > -1e-12 and float(np.abs(w @ slope)) < 1e-12:
            break
        hessian = (ratio * share[:, None]).T @ ratio
        hessian[np.diag_indices_from(hessian)] += 1e-12 * np.trace(hessian)
        factor = np.linalg.cholesky(hessian).T
        target, _ = nnls(factor, np.linalg.solve(factor.T, hessian @ w - slope))
        trials = (w + (target - w) * 0.5**halving for halving in range(30))  # to the rounding of the weights
        lower = next(((one, found) for one in trials if (found := cost(one)) < value), None)
        if lower is None:
            break
        w, value = lower
    w = np.where(w < 1e-12, 0.0, w)
    return w / w.sum()
