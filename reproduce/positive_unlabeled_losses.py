"""The risks of `positive_unlabeled_training` for training in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from reproduce.positive_unlabeled_training import Loss


def upu_loss(positive: Any, unlabeled: Any, *, prior: float, loss: Loss = "logistic") -> Any:
    """The risk uPU of two tensors of logits; see `upu_risk`."""
    positive_risk, negative_risk = _parts(positive, unlabeled, prior, loss)
    return prior * positive_risk + negative_risk


def nnpu_loss(
    positive: Any, unlabeled: Any, *, prior: float, loss: Loss = "sigmoid", beta: float = 0.0, gamma: float = 1.0
) -> Any:
    """The risk nnPU of a mini-batch, with the authors' gradient.

    Where the estimated risk r on the negatives falls below -beta, the value is that of nnPU but the gradient is that of
    -gamma r: the step undoes overfitting, where a gradient of zero would leave it.
    """
    positive_risk, negative_risk = _parts(positive, unlabeled, prior, loss)
    return _corrected(prior * positive_risk, negative_risk, 1.0, beta, gamma)


def imbalanced_nnpu_loss(
    positive: Any,
    unlabeled: Any,
    *,
    prior: float,
    target_prior: float = 0.5,
    loss: Loss = "sigmoid",
    beta: float = 0.0,
    gamma: float = 1.0,
) -> Any:
    """Imbalanced nnPU of a mini-batch; see `imbalanced_nnpu_risk` for what it does to calibration."""
    positive_risk, negative_risk = _parts(positive, unlabeled, prior, loss)
    return _corrected(target_prior * positive_risk, negative_risk, (1 - target_prior) / (1 - prior), beta, gamma)


def _parts(positive: Any, unlabeled: Any, prior: float, loss: Loss) -> tuple[Any, Any]:
    """Mean loss of the positives as positives, and the estimated risk on the negatives."""
    of = F.softplus if loss == "logistic" else torch.sigmoid
    return of(-positive).mean(), of(unlabeled).mean() - prior * of(positive).mean()


def _corrected(positive_risk: Any, negative_risk: Any, factor: float, beta: float, gamma: float) -> Any:
    if negative_risk.item() >= -beta:
        return positive_risk + factor * negative_risk
    value = positive_risk.detach() - factor * beta
    step = -gamma * factor * negative_risk
    return value + step - step.detach()
