"""How far shared draws move the mean absolute bias of Figure 4 and its t-test.

    python -m reproduce.bias_draws [--repeats 1000]

The published code of the figure (caltrain) starts the same random numbers again for each network and each size, so that
samples of n rows begin those of 2n, and the networks share their seeds: the 70 biases err together, and neither their
mean nor the t-test averages that out. Here the samples are drawn as published, with its seed 47. Resampling the
repeats, all 70 cells of one repeat together, gives the spread of the printed numbers over such sets of draws, around
the biases of independent samples in results/bias/figure4.csv. Writes results/bias/figure4_draws.csv.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant import simulate as sim
from reproduce.bias_anchors import SIZES
from reproduce.bias_grid import ESTIMATORS
from reproduce.drift import rows_of

FOLDER = Path(__file__).with_name("results") / "bias"
NAMES = ("em_debias", "em_sweep")
#: The seed of the published samples, and the largest number that seeds the next one.
SEED, NEXT = 47, 10_000_000
#: Sets of draws by resampling.
SETS = 4000


def published_sample(world: sim.World, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Outcomes, scores, and the seed of the next sample; the first random number of a row is for a share of ones."""
    random = np.random.RandomState(seed)
    following, uniform, beta = int(NEXT * random.random_sample()), random.random_sample, random.beta
    a, b = world.scores.a, world.scores.b
    rows = np.array([(uniform(), beta(a, b), uniform()) for _ in range(n)])
    score = np.minimum(rows[:, 1], 1 - 1e-16)
    return rows[:, 2] < world.curve(score), score, following


def estimates(world: sim.World, repeats: int) -> np.ndarray:
    """Errors in percent, (estimators, repeats, sizes)."""
    found, seed = np.empty((len(NAMES), repeats, len(SIZES))), SEED
    for repeat in range(repeats):
        y, score, seed = published_sample(world, SIZES[-1], seed)
        for s, n in enumerate(SIZES):
            data = cal.Binary(y[:n], score[:n])
            found[:, repeat, s] = [100 * float(ESTIMATORS[name](data)) for name in NAMES]
    return found


def numbers(bias: np.ndarray) -> np.ndarray:
    """Both mean absolute biases and the paired t-statistic, from biases (2, ..., cells)."""
    size = np.abs(bias)
    away = size[0] - size[1]
    t = away.mean(axis=-1) / away.std(axis=-1, ddof=1) * np.sqrt(away.shape[-1])
    return np.stack([*size.mean(axis=-1), t])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    repeats = parser.parse_args().repeats
    stored = {(row["estimator"], row["world"], int(row["n"])): row for row in rows_of(FOLDER / "figure4.csv")}
    worlds = sim.PAPER_WORLDS
    single = np.concatenate([estimates(world, repeats) for world in worlds.values()], axis=2)
    truth = np.repeat([100 * world.true_error(2) for world in worlds.values()], len(SIZES))
    expected = np.array(
        [[100 * float(stored[name, world, n]["bias"]) for world in worlds for n in SIZES] for name in NAMES]
    )
    rng = np.random.default_rng(1)
    moves = single - single.mean(axis=1, keepdims=True)
    sets = np.stack([moves[:, rng.integers(0, repeats, repeats)].mean(axis=1) for _ in range(SETS)], axis=1)
    over = numbers(expected[:, None] + sets)
    lines = zip(
        ("em_debias", "em_sweep", "t"), numbers(expected), numbers(single.mean(axis=1) - truth), over, strict=True
    )
    with (FOLDER / "figure4_draws.csv").open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file)
        writer.writerow(["number", "independent", "published_draws", "mean", "sd", "low", "high"])
        for name, alone, drawn, values in lines:
            low, high = np.quantile(values, [0.025, 0.975])
            writer.writerow([name, *(f"{v:.4f}" for v in (alone, drawn, values.mean(), values.std(), low, high))])


if __name__ == "__main__":
    main()
