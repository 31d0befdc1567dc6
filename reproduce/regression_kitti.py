"""Table 1 of the regression paper on KITTI: boxes of a public detector, spreads learned here, split by sequence.

26,782 car detections of PointRCNN on the 21 tracking sequences, matched to the labels (`../shared/data/regression`).
It is not the paper's R-FCN, and has presumably seen KITTI; its boxes are frozen, and a network learns their spread from
what the detector gives (box, score, depth). As in the paper tx and ty are differences of centres in widths and heights,
tw and th log ratios of sizes. Whole sequences are used to train, to recalibrate or to judge, in three rotations.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

import calibrant as cal
from reproduce.regression_boxes import OUTPUTS, PAPER, unit_spread
from reproduce.regression_networks import Training, std_of, trained_spread

ROTATIONS = 3


class Frozen(nn.Module):
    """The mean of the errors of boxes that are frozen: none."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Zeros for every row."""
        return torch.zeros(len(x), len(OUTPUTS))


def boxes(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of the detections, standardised, errors (tx, ty, tw, th), and their sequences."""
    with np.load(path) as stored:
        p, t = stored["predicted"].astype(float), stored["truth"].astype(float)
        extra = [stored["score"].astype(float), np.log(np.maximum(stored["depth"], 0.5))]
        sequence = stored["sequence"].astype(int)
    width, height = p[:, 2] - p[:, 0], p[:, 3] - p[:, 1]
    errors = [
        (t[:, 0] + t[:, 2] - p[:, 0] - p[:, 2]) / (2 * width),
        (t[:, 1] + t[:, 3] - p[:, 1] - p[:, 3]) / (2 * height),
        np.log((t[:, 2] - t[:, 0]) / width),
        np.log((t[:, 3] - t[:, 1]) / height),
    ]
    features = np.stack([p[:, 0], p[:, 1], p[:, 2], p[:, 3], np.log(width), np.log(height), *extra], axis=1)
    return (features - features.mean(axis=0)) / features.std(axis=0), np.stack(errors, axis=1), sequence


def forecasts(path: Path, training: Training) -> list[dict[str, list[cal.Gaussian]]]:
    """For each rotation the forecasts that recalibrate and those that judge, of the trained and of a random spread."""
    x, y, sequence = boxes(path)
    found = []
    for rotation in range(ROTATIONS):
        torch.manual_seed(rotation)
        part = (sequence + rotation) % ROTATIONS
        learn = part == 0
        random = unit_spread(_branch(x.shape[1]), x[learn])
        sets = {"random": [_forecast(random, x[part == k], y[part == k]) for k in (1, 2)]}
        spread = trained_spread(_branch(x.shape[1]), Frozen(), x[learn], y[learn], training)
        sets["trained"] = [_forecast(spread, x[part == k], y[part == k]) for k in (1, 2)]
        found.append(sets)
    return found


def _branch(inputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, len(OUTPUTS)))


def _forecast(spread: nn.Module, x: np.ndarray, y: np.ndarray) -> cal.Gaussian:
    return cal.Gaussian(y, np.zeros_like(y), std_of(spread, x))


def lines(found: list[dict[str, list[cal.Gaussian]]], table: list[dict[str, object]]) -> list[str]:
    """The table beside the paper's: means over the rotations, and in brackets their range."""
    text = [
        "Means over three rotations of the sequences (least and largest of them).",
        "",
        "| output | spread | s | ENCE before | ENCE after | equation 8, after | C_v | paper: before, after, C_v |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in ("trained", "random"):
        for number, name in enumerate(OUTPUTS):
            seen = []
            for sets in found:
                fit, judge = (each.outputs[number] for each in sets[kind])
                scaling = cal.recalibrate.StdScaling().fit(fit)
                after = cal.ence(scaling.transform(judge))
                s, dispersion = float(scaling.scale_[0]), float(cal.std_dispersion(judge))
                seen.append([s, float(cal.ence(judge)), float(after), after.details["mean_over_bins"], dispersion])
            low, mean, high = (f(np.array(seen), axis=0) for f in (np.min, np.mean, np.max))
            shares = [f"{m:.1%} ({a:.1%} to {b:.1%})" for a, m, b in list(zip(low, mean, high, strict=True))[1:4]]
            before, after_paper, variation = PAPER[name]
            paper = f"{before} %, {after_paper} %, {variation}" if kind == "trained" else ""
            text.append(f"| {name} | {kind} | {mean[0]:.2f} | {' | '.join(shares)} | {mean[4]:.2f} | {paper} |")
            for map_, value in (("none", mean[1]), ("StdScaling", mean[2])):
                table.append({"experiment": "KITTI", "case": f"{name} {kind}", "map": map_, "ence_10": float(value)})
            table.append({"experiment": "KITTI C_v", "case": f"{name} {kind}", "map": "none", "ence_10": mean[4]})
    return text
