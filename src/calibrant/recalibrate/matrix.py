"""Maps that are affine functions of the log probabilities of all classes: vector, matrix and Dirichlet scaling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.multinomial_loss import Penalty
from calibrant.numerics.special import floored_log
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.logistic import Temperature
from calibrant.recalibrate.matrix_base import (
    RIDGE,
    AffineMap,
    MatrixMap,
    VectorMap,
    normalised_logs,
    normalised_logs_sql,
)
from calibrant.recalibrate.sql import predicted_sql
from calibrant.recalibrate.sql_scores import SqlScores
from calibrant.recalibrate.wrappers import fitted, predicted


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

    def _inputs_sql(self, scores: SqlScores) -> list[str]:
        first = SqlScores(tuple(normalised_logs_sql(scores)), logits=True, dialect=scores.dialect, exact=False)
        return [scores.dialect.floored_log(p) for p in predicted_sql(self.temperature_, first)]

    def _penalty(self, classes: int) -> Penalty:
        strengths = {
            "lambda_intercept": self.lambda_intercept,
            "lambda_diagonal": self.lambda_diagonal,
            "lambda_off_diagonal": getattr(self, "lambda_off_diagonal", 0.0),
        }
        _require_strengths(strengths)
        pairs = classes * (classes - 1)
        sizes = (classes, classes, pairs)
        costs = [
            max(strength * size**self.rho / self.weight_**self.tau, RIDGE)
            for strength, size in zip(strengths.values(), sizes, strict=True)
        ]
        return Penalty(*costs)


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
    soon: on public benchmarks it loses to leaving scores alone, where `StructuredMatrixScaling` wins.

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
    r"""Dirichlet calibration: matrix scaling of log probabilities, penalised off the diagonal (ODIR).

    .. math:: q = \mathrm{softmax}(M \log p + b), \quad
              \text{penalty}\;\; \frac{\lambda}{K (K-1)} \sum_{k \ne j} M_{kj}^2 + \frac{\mu}{K} \sum_k b_k^2

    The map that is right where the scores of each class follow a Dirichlet distribution. The diagonal is free,
    but for a ridge of 1e-9 towards 1.

    Parameters
    ----------
    lambda_off_diagonal : float
        λ. The paper tunes it by cross-validation; 1e-3 is a middle of its grid.
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
    r"""Structured matrix scaling (SMS): temperature scaling, then a matrix that pays most off the diagonal.

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
            message = f"{name} must be a number of at least 0, got {value!r}."
            raise ValueError(message)
