"""The risks of `calibrant.pu.risks` for training in PyTorch: pip install 'calibrant[torch]'."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from calibrant.pu.risks import Loss


def upu_loss(positive: Any, unlabeled: Any, *, prior: float, loss: Loss = "logistic") -> Any:
    """UPU of two tensors of logits; see `calibrant.pu.upu_risk`."""
    gain, rest = _parts(positive, unlabeled, prior, loss)
    return prior * gain + rest


def nnpu_loss(
    positive: Any, unlabeled: Any, *, prior: float, loss: Loss = "sigmoid", beta: float = 0.0, gamma: float = 1.0
) -> Any:
    """NnPU of a mini-batch, with the authors' gradient.

    Where the part r of the negatives falls below -beta the value is that of nnPU but the gradient is that of -gamma r:
    it steps back from overfitting instead of standing still.
    """
    gain, rest = _parts(positive, unlabeled, prior, loss)
    return _corrected(prior * gain, rest, 1.0, beta, gamma)


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
    """Imbalanced nnPU of a mini-batch; see `calibrant.pu.imbalanced_nnpu_risk` for what it does to calibration."""
    gain, rest = _parts(positive, unlabeled, prior, loss)
    return _corrected(target_prior * gain, rest, (1 - target_prior) / (1 - prior), beta, gamma)


def _parts(positive: Any, unlabeled: Any, prior: float, loss: Loss) -> tuple[Any, Any]:
    """Mean loss of the positives, and the part of the negatives."""
    of = F.softplus if loss == "logistic" else torch.sigmoid
    return of(-positive).mean(), of(unlabeled).mean() - prior * of(positive).mean()


def _corrected(gain: Any, rest: Any, factor: float, beta: float, gamma: float) -> Any:
    if rest.item() >= -beta:
        return gain + factor * rest
    shown = gain.detach() - factor * beta
    step = -gamma * factor * rest
    return shown + step - step.detach()
