"""The small networks of the regression experiments: a mean trained first and frozen, then a branch for the spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


@dataclass(frozen=True)
class Training:
    """How long and how hard: passes over the data, rows per step, step size, and "adam" or "sgd".

    Adam follows a cycle of step sizes up to `rate`; SGD has the paper's momentum of 0.9 and a constant rate.
    """

    epochs: int = 8
    batch: int = 512
    rate: float = 2e-3
    optimiser: str = "adam"


def dense(inputs: int, outputs: int, width: int = 64) -> nn.Module:
    """Four layers with ReLU between them."""
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, outputs),
    )


def convolutional(outputs: int, *, widen: int = 1) -> nn.Module:
    """Three strided convolutions and two dense layers, for canvases of 32 x 32."""
    return nn.Sequential(
        nn.Conv2d(1, 16 * widen, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16 * widen, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16, 64),
        nn.ReLU(),
        nn.Linear(64, outputs),
    )


def trained_mean(network: nn.Module, x: np.ndarray, y: np.ndarray, training: Training) -> nn.Module:
    """Stage one: the mean, by smooth L1 loss."""
    loss = nn.SmoothL1Loss()
    _train(network, x, y, training, lambda batch, target: loss(network(batch), target))
    return network


def trained_spread(spread: nn.Module, mean: nn.Module, x: np.ndarray, y: np.ndarray, training: Training) -> nn.Module:
    """Stage two: the log variance, by Gaussian likelihood, with the mean frozen."""
    for weights in mean.parameters():
        weights.requires_grad_(False)

    def loss(batch: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        log_variance = spread(batch).clamp(-12, 6)
        return (log_variance + (target - mean(batch)) ** 2 * torch.exp(-log_variance)).mean() / 2

    _train(spread, x, y, training, loss)
    return spread


@torch.no_grad()
def applied(network: nn.Module, x: np.ndarray) -> np.ndarray:
    """The network's output for all rows, in double precision."""
    parts = torch.from_numpy(x.astype(np.float32)).split(2048)
    return torch.cat([network(part) for part in parts]).double().numpy()


def std_of(network: nn.Module, x: np.ndarray) -> np.ndarray:
    """Standard deviations of a branch that states log variances."""
    return np.exp(np.clip(applied(network, x), -12, 6) / 2)


def _train(network: nn.Module, x: np.ndarray, y: np.ndarray, training: Training, loss) -> None:
    inputs, targets = torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y.astype(np.float32))
    steps = training.epochs * -(-len(inputs) // training.batch)
    if training.optimiser == "sgd":
        optimiser = torch.optim.SGD(network.parameters(), lr=training.rate, momentum=0.9)
        schedule = torch.optim.lr_scheduler.ConstantLR(optimiser, factor=1.0)
    else:
        optimiser = torch.optim.Adam(network.parameters(), lr=training.rate)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=training.rate, total_steps=steps)
    generator = torch.Generator().manual_seed(0)
    for _ in range(training.epochs):
        for rows in torch.randperm(len(inputs), generator=generator).split(training.batch):
            optimiser.zero_grad()
            loss(inputs[rows], targets[rows]).backward()
            optimiser.step()
            schedule.step()
