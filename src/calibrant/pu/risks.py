"""Risks that train a classifier from positives and unlabeled rows.

In NumPy, for evaluation and small models; `calibrant.pu.torch_risks` has the same risks as differentiable losses.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.numerics.arrays import Floats

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
