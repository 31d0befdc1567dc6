"""Logistic regression from positives and unlabeled rows, without a deep learning framework."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y

from calibrant.data import validation
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Floats
from calibrant.numerics.special import expit


class PULogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Logistic regression that minimises the unbiased risk uPU, which is convex for a linear model.

    .. math:: \mathrm{mean}_U \log(1 + e^{h}) - \pi\,\mathrm{mean}_P\, h + \tfrac\varrho2 \lVert w\rVert^2,
              \qquad h = w^T x + b

    Parameters
    ----------
    prior : float
        Share of positives π in the population.
    ridge : float
        ϱ, on features in units of their standard deviation (over all rows); the intercept is not penalised.
    scenario : {"case-control", "single-sample"}
        Whether the unlabeled rows are a sample of the population, or only all rows together are.
    max_iter : int
        Maximum number of L-BFGS iterations.

    Attributes
    ----------
    coef_ : array of shape (1, features)
    intercept_ : array of shape (1,)
    classes_ : array (0, 1)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(3000) < 0.3
    >>> X = rng.normal(size=(3000, 2)) + 2 * y[:, None]
    >>> labelled = y & (rng.random(3000) < 0.5)
    >>> model = PULogistic(prior=0.3, scenario="single-sample").fit(X, labelled)
    >>> round(model.score(X, y), 2)
    0.93
    """

    coef_: Floats
    intercept_: Floats
    classes_: NDArray[Any]

    def __init__(
        self,
        *,
        prior: float = 0.5,
        ridge: float = 1e-3,
        scenario: Literal["case-control", "single-sample"] = "case-control",
        max_iter: int = 500,
    ) -> None:
        self.prior = prior
        self.ridge = ridge
        self.scenario = scenario
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to features (dense or sparse) and labels: 1 for labelled positives, 0 or -1 for all other rows."""
        X, y = check_X_y(X, y, accept_sparse="csr", dtype=np.float64)
        validation.fraction("prior", self.prior)
        labels = np.unique(y)
        known = y == 1
        if not set(labels.tolist()) <= {-1, 0, 1} or len(labels) != 2 or not known.any():
            message = (
                f"y must be 1 for labelled positives and 0 (or -1) for all other rows, got the values {labels[:5]}."
            )
            raise InvalidPredictions(message)
        rows = np.ones(len(y), dtype=bool) if self.scenario == "single-sample" else ~known
        scale = _spread(X)
        mean_positive = np.asarray(X[known].mean(axis=0)).ravel() / scale
        population = X[rows]

        def risk(w: Floats) -> tuple[float, Floats]:
            h = population @ (w[:-1] / scale) + w[-1]
            probability = expit(h)
            value = np.logaddexp(0.0, h).mean() - self.prior * (mean_positive @ w[:-1] + w[-1])
            slope = (population.T @ probability) / (scale * len(h)) - self.prior * mean_positive
            penalty = self.ridge / 2 * float(w[:-1] @ w[:-1])
            return value + penalty, np.append(slope + self.ridge * w[:-1], probability.mean() - self.prior)

        start = np.append(np.zeros(X.shape[1]), np.log(self.prior / (1 - self.prior)))
        found = minimize(risk, start, jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter})
        self.coef_, self.intercept_ = (found.x[:-1] / scale)[None, :], found.x[-1:]
        self.classes_, self.n_features_in_ = np.array([0, 1]), X.shape[1]
        return self

    def decision_function(self, X: Any) -> Floats:
        """Logits."""
        check_is_fitted(self)
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
        logits: Floats = np.asarray(X @ self.coef_[0] + self.intercept_[0])
        return logits

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the negative and the positive class."""
        p = expit(self.decision_function(X))
        return np.stack([1 - p, p], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """1 where the positive class is more probable."""
        return (self.decision_function(X) > 0).astype(np.intp)


def _spread(X: Any) -> Floats:
    """Standard deviation of each column, 1 where it is constant. Not centred, so sparse columns stay sparse."""
    if issparse(X):
        variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - np.asarray(X.mean(axis=0)).ravel() ** 2
    else:
        variance = X.var(axis=0)
    spread: Floats = np.sqrt(np.maximum(variance, 0.0))
    spread[spread == 0] = 1.0
    return spread
