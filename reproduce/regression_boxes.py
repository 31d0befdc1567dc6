"""Bounding boxes: find a handwritten digit on a cluttered canvas, and say how uncertain each coordinate is.

No public file has the paper's KITTI boxes with their standard deviations, so a real localisation task is made here:
scikit-learn's digits, stretched, placed on 32 x 32 canvases among fragments of other digits and noise. As in the
paper the network is trained on one population and recalibrated and judged on another (here: more clutter).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import calibrant as cal
from reproduce.regression_networks import Training, applied, convolutional, std_of, trained_mean, trained_spread

SIZE, ANCHOR = 32, 14.0
OUTPUTS = ("tx", "ty", "tw", "th")
#: Table 1 of the paper: ENCE before and after STD scaling in percent, and c_v.
PAPER = {"tx": (17.2, 8.3, 0.38), "ty": (25.0, 4.7, 0.31), "tw": (24.7, 8.4, 0.36), "th": (12.5, 5.7, 0.25)}


@dataclass(frozen=True)
class BoxRow:
    """One line of the table: a coordinate, its factor, and what was measured before and after."""

    output: str
    scale: float
    before: cal.Estimate
    after: cal.Estimate
    dispersion: float
    interval_after: float


def canvases(n: int, *, clutter: float, seed: int, digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of shape (n, 1, 32, 32), and the boxes as (tx, ty, tw, th) relative to a centred anchor."""
    rng = np.random.default_rng(seed)
    pictures = np.zeros((n, SIZE, SIZE), np.float32)
    boxes = np.zeros((n, 4), np.float32)
    for row in range(n):
        for _ in range(rng.poisson(3 * clutter)):
            part = digits[rng.integers(len(digits))][rng.integers(0, 4) :, rng.integers(0, 4) :]
            _paste(pictures[row], part * rng.uniform(0.2, 0.7), *rng.integers(-2, SIZE - 4, 2))
        width, height = rng.integers(8, 23, 2)
        left, top = rng.integers(0, SIZE - width + 1), rng.integers(0, SIZE - height + 1)
        picture = _stretched(digits[rng.integers(len(digits))], width, height)
        _paste(pictures[row], picture * rng.uniform(0.5, 1.0), left, top)
        pictures[row] += rng.normal(size=(SIZE, SIZE)) * rng.uniform(0.02, 0.35) * clutter
        boxes[row] = (
            (left + width / 2 - SIZE / 2) / ANCHOR,
            (top + height / 2 - SIZE / 2) / ANCHOR,
            np.log(width / ANCHOR),
            np.log(height / ANCHOR),
        )
    return pictures[:, None], boxes


def box_forecasts(*, n: int, training: Training) -> dict[str, list[cal.Gaussian]]:
    """Forecasts of the recalibration and of the test set, with the trained and with the random spread."""
    torch.manual_seed(0)
    digits = load_digits().images / 16
    own, other = digits[:1200], digits[1200:]
    x, y = canvases(n, clutter=1.0, seed=1, digits=own)
    recalibration = canvases(n // 3, clutter=1.3, seed=2, digits=other)
    test = canvases(n // 2, clutter=1.3, seed=3, digits=other)
    mean = trained_mean(convolutional(4), x, y, training)
    random = unit_spread(convolutional(4), x)
    before = [_forecast(mean, random, *rows) for rows in (recalibration, test)]
    spread = trained_spread(convolutional(4), mean, x, y, training)
    after = [_forecast(mean, spread, *rows) for rows in (recalibration, test)]
    return {"trained": after, "random": before}


def unit_spread(branch: nn.Module, x: np.ndarray) -> nn.Module:
    """An untrained branch whose log variances are stretched to a spread of 1: random, but not constant."""
    stated = applied(branch, x[:2000])
    last = branch[-1]
    with torch.no_grad():
        factor = torch.from_numpy(1 / stated.std(axis=0)).float()
        last.weight *= factor[:, None]
        last.bias.copy_((last.bias - torch.from_numpy(stated.mean(axis=0)).float()) * factor)
    return branch


def _forecast(mean, spread, x: np.ndarray, y: np.ndarray) -> cal.Gaussian:
    return cal.Gaussian(y.astype(np.float64), applied(mean, x), std_of(spread, x))


def rows_of(recalibration: cal.Gaussian, test: cal.Gaussian) -> list[BoxRow]:
    """One line of the table for each coordinate."""
    rows = []
    for name, fit, judge in zip(OUTPUTS, recalibration.outputs, test.outputs, strict=True):
        scaling = cal.recalibrate.StdScaling().fit(fit)
        kuleshov = cal.recalibrate.CdfIsotonic().fit(fit).transform(judge)
        rows.append(
            BoxRow(
                name,
                float(scaling.scale_[0]),
                cal.ence(judge),
                cal.ence(scaling.transform(judge)),
                float(cal.std_dispersion(judge)),
                float(cal.quantile_error(kuleshov)),
            )
        )
    return rows


def _stretched(picture: np.ndarray, width: int, height: int) -> np.ndarray:
    """Nearest neighbours, cropped to the ink so that the box is tight."""
    ink_rows, ink_columns = np.flatnonzero(picture.any(axis=1)), np.flatnonzero(picture.any(axis=0))
    tight = picture[ink_rows[0] : ink_rows[-1] + 1, ink_columns[0] : ink_columns[-1] + 1]
    rows = np.arange(height) * tight.shape[0] // height
    return tight[rows][:, np.arange(width) * tight.shape[1] // width]


def _paste(canvas: np.ndarray, picture: np.ndarray, left: int, top: int) -> None:
    """Draw over the canvas, cut at its edges."""
    rows = slice(max(top, 0), min(top + picture.shape[0], SIZE))
    columns = slice(max(left, 0), min(left + picture.shape[1], SIZE))
    inside = picture[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
    canvas[rows, columns] = np.maximum(canvas[rows, columns], inside)
