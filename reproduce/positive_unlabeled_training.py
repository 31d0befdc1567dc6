"""Training a classifier from positives and unlabeled rows: unbiased and non-negative risks, logistic regression.

The risks are in NumPy, for evaluation and small models; `positive_unlabeled_losses` has them as losses of PyTorch.
"""

from __future__ import annotations

from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y

from calibrant.data import validation
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Floats, expit

Loss = Literal["logistic", "sigmoid"]


def upu_risk(positive: ArrayLike, unlabeled: ArrayLike, *, prior: float, loss: Loss = "logistic") -> float:
    r"""Unbiased risk of a classifier from positives and unlabeled rows, uPU.

    .. math:: \pi R_P^+ - \pi R_P^- + R_U^-, \qquad R_P^\pm = \mathrm{mean}_P\, \ell(h, \pm), \;
              R_U^- = \mathrm{mean}_U\, \ell(h, -)

    with the logistic loss log(1 + exp(∓h)) or the sigmoid loss 1 / (1 + exp(±h)) of the logit h. It may be negative.

    Parameters
    ----------
    positive, unlabeled : array-like
        Logits of labelled positives and of unlabeled rows.
    prior : float
        Share of positives π.
    loss : {"logistic", "sigmoid"}
        Only the logistic loss is proper: training with the sigmoid loss makes models over-confident.

    References
    ----------
    du Plessis, Niu, Sugiyama (2015), Convex Formulation for Learning from Positive and Unlabeled Data.

    Examples
    --------
    >>> round(upu_risk([2.0, 1.0], [1.5, -1.0, -2.0], prior=0.4), 4)
    0.1139
    """
    positive_risk, positive_as_negative, unlabeled_risk = _parts(positive, unlabeled, prior, loss)
    return prior * positive_risk + (unlabeled_risk - prior * positive_as_negative)


def nnpu_risk(positive: ArrayLike, unlabeled: ArrayLike, *, prior: float, loss: Loss = "sigmoid") -> float:
    r"""Non-negative risk, nnPU: :math:`\pi R_P^+ + \max(0, R_U^- - \pi R_P^-)`.

    The true risk on the negatives cannot be negative; its estimate becomes negative when a flexible model overfits.

    References
    ----------
    Kiryo, Niu, du Plessis, Sugiyama (2017), Positive-Unlabeled Learning with Non-Negative Risk Estimator.

    Examples
    --------
    >>> round(nnpu_risk([2.0, 1.0], [1.5, -1.0, -2.0], prior=0.4), 4)
    0.1572
    """
    positive_risk, positive_as_negative, unlabeled_risk = _parts(positive, unlabeled, prior, loss)
    return prior * positive_risk + max(0.0, unlabeled_risk - prior * positive_as_negative)


def imbalanced_nnpu_risk(
    positive: ArrayLike, unlabeled: ArrayLike, *, prior: float, target_prior: float = 0.5, loss: Loss = "sigmoid"
) -> float:
    r"""Imbalanced nnPU: the risk of a population with another share of positives π'.

    .. math:: \pi' R_P^+ + \frac{1 - \pi'}{1 - \pi} \max(0, R_U^- - \pi R_P^-)

    A model trained with it predicts the posterior of that other population: it is miscalibrated by construction, and
    `calibrant.pu.prior_shift(p, from_prior=0.5, to_prior=prior)` is the exact correction.

    References
    ----------
    Su, Chen, Xu (2021), Positive-Unlabeled Learning from Imbalanced Data.

    Examples
    --------
    >>> round(imbalanced_nnpu_risk([2.0, 1.0], [1.5, -1.0, -2.0], prior=0.1), 4)
    0.2755
    """
    positive_risk, positive_as_negative, unlabeled_risk = _parts(positive, unlabeled, prior, loss)
    share = validation.fraction("target_prior", target_prior)
    return share * positive_risk + (1 - share) / (1 - prior) * max(0.0, unlabeled_risk - prior * positive_as_negative)


def _parts(positive: ArrayLike, unlabeled: ArrayLike, prior: float, loss: Loss) -> tuple[float, float, float]:
    """R_P^+, R_P^- and R_U^-."""
    validation.fraction("prior", prior)
    if loss not in get_args(Loss):
        message = f"loss must be 'logistic' or 'sigmoid', got {loss!r}."
        raise ValueError(message)
    p, u = (
        validation.column(name, values).astype(np.float64)
        for name, values in (("positive", positive), ("unlabeled", unlabeled))
    )
    return float(_loss(-p, loss).mean()), float(_loss(p, loss).mean()), float(_loss(u, loss).mean())


def _loss(z: Floats, loss: Loss) -> Floats:
    """The loss of a negative at logit z; that of a positive is the loss at -z."""
    if loss == "logistic":
        return np.logaddexp(0.0, z)
    return np.exp(-np.logaddexp(0.0, -z))


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
