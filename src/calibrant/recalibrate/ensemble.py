"""Ensemble temperature scaling: a mixture of tempered, predicted and uniform probabilities."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Codes, Floats
from calibrant.recalibrate.base import Recalibrator
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.logistic import Temperature
from calibrant.recalibrate.sql import predicted_sql
from calibrant.recalibrate.sql_scores import SqlScores
from calibrant.recalibrate.wrappers import fitted, predicted

_STEPS, _HALVINGS = 100, 30


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
        tempered, given, uniform = self._parts(scores)
        first, second, third = self.weights_
        return first * tempered + second * given + third * uniform

    def _sql(self, scores: SqlScores) -> list[str]:
        uniform = scores.dialect.number(1 / scores.classes)
        pairs = zip(predicted_sql(self.temperature_, scores), scores.probabilities, strict=True)
        return [scores.dialect.mixture(self.weights_, [tempered, given, uniform]) for tempered, given in pairs]

    def _parts(self, scores: Scores) -> tuple[Floats, Floats, Floats]:
        given = scores.probabilities
        return predicted(self.temperature_, scores), given, np.full_like(given, 1 / given.shape[1])


def mixture_weights(given: Floats, share: Floats) -> Floats:
    r"""The convex weights w that maximise :math:`\sum_i s_i \log \sum_j w_j g_{ij}`.

    The same w minimise :math:`-\sum_i s_i \log (g w)_i + \sum_j w_j` over w >= 0 alone, which sequential quadratic
    programming does in a few steps (Kim, Carbonetto, Stephens, Anitescu, 2020).

    Parameters
    ----------
    given : array of shape (n, m)
        The probability each of m parts gave to the observed class.
    share : array of shape (n,)
        Weights of the rows, which sum to 1.
    """
    from scipy.optimize import nnls

    w = np.full(given.shape[1], 1 / given.shape[1])
    value = _cost(given, share, w)
    for _ in range(_STEPS):
        ratio = given / (given @ w)[:, None]
        slope = 1 - share @ ratio
        if slope.min() > -1e-12 and float(np.abs(w @ slope)) < 1e-12:
            break
        hessian = (ratio * share[:, None]).T @ ratio
        hessian[np.diag_indices_from(hessian)] += 1e-12 * np.trace(hessian)
        factor = np.linalg.cholesky(hessian).T
        target, _ = nnls(factor, np.linalg.solve(factor.T, hessian @ w - slope))
        found = _searched(given, share, w, value, target - w)
        if found is None:
            break
        w, value = found
    w = np.where(w < 1e-12, 0.0, w)
    weights: Floats = w / w.sum()
    return weights


def _cost(given: Floats, share: Floats, w: Floats) -> float:
    mixed = given @ w
    return float("inf") if mixed.min() <= 0 else float(w.sum() - share @ np.log(mixed))


def _searched(given: Floats, share: Floats, w: Floats, value: float, step: Floats) -> tuple[Floats, float] | None:
    """The first of the halved steps that lowers the cost."""
    for halving in range(_HALVINGS):
        trial = w + step * 0.5**halving
        found = _cost(given, share, trial)
        if found < value:
            return trial, found
    return None
