"""Coverage of the intervals of `ks_error`, `smooth_ece`, `kernel_error` and `mce`, each for its own target."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np

import calibrant as cal
from calibrant.estimators import GaussianKernel, LaplaceKernel
from reproduce.coverage_designs import ClusteredWorld, designs
from reproduce.coverage_files import Line
from reproduce.coverage_worlds import ScoreWorld, calibrated, rough, unseen

SAMPLES = 100
ESTIMATORS: dict[str, Callable[[cal.Binary], cal.Estimate]] = {
    "ks_error": cal.ks_error,
    "smooth_ece": cal.smooth_ece,
    "smooth_ece(sigma=0.05)": partial(cal.smooth_ece, sigma=0.05),
    "kernel_error(LaplaceKernel(0.2))": partial(cal.kernel_error, kernel=LaplaceKernel(0.2)),
    "kernel_error(GaussianKernel(0.1))": partial(cal.kernel_error, kernel=GaussianKernel(0.1)),
    "mce": cal.mce,
}
SIZES = (50, 200, 1000, 20_000)
WORLDS = (
    *("wave, 6 periods", "three steps", "wrong in the top 2 %", "a quarter at 0.5, chance 0.7", "11 atoms, zigzag"),
    *("1 % events, half the risk", "beta(2, 2), p^1.5", "two populations, change of sign", "uniform, calibrated"),
    *("1 % events, twice the risk", "heavy-tailed log-odds, temperature 1.5", "20 levels, a random gap at each"),
    *("5 atoms, calibrated", "0.2 % events, calibrated", "1 % events, calibrated", "two modes, calibrated"),
    *("beta(0.3, 0.3), calibrated", "5 % events, wave in log-odds"),
    *("scores of 0.1 %, true chance 5 %", "scores of 0.1 %, true chance 1 %", "hard scores, 5 % wrong"),
)


def _score_worlds() -> dict[str, ScoreWorld]:
    return {world.name: world for world in (*rough(), *unseen(), *calibrated()) if world.name in WORLDS}


def _clustered() -> dict[str, ClusteredWorld]:
    return {world.name: world for world in designs() if isinstance(world, ClusteredWorld)}


def estimators_and_worlds() -> list[tuple[str, str, int]]:
    plain = [(name, world, n) for n in SIZES for world in WORLDS for name in ESTIMATORS]
    grouped = [(name, world, n) for n in (20, 60) for world in _clustered() for name in ESTIMATORS if name != "mce"]
    return plain + grouped


def estimator_task(task: tuple[str, str, int, int]) -> list[Line]:
    """How often the default interval of one estimator holds the population value of that estimator."""
    name, where, n, block = task
    world, truth = {**_score_worlds(), **_clustered()}[where], population_value(name, where)
    estimator, found = ESTIMATORS[name], []
    seeds = np.random.SeedSequence(4, spawn_key=(zlib.crc32(f"{name} {where}".encode()), n, block)).spawn(SAMPLES)
    for k, seed in enumerate(seeds):
        data = world.sample(n, np.random.default_rng(seed))
        started = time.process_time()
        estimate = cal.interval(estimator, data, method=None if name == "mce" else cal.inference.NormBand(seed=k))
        spent, limits = time.process_time() - started, estimate.interval
        assert limits is not None
        found.append([truth in limits, limits.low > truth, limits.high < truth, limits.low > 0])
        found[-1] += [limits.high - limits.low, estimate.clipped not in limits, spent]
    columns = ("covered", "low_above", "high_below", "zero_excluded", "width", "outside", "cpu")
    means = dict(zip(columns, map(float, np.mean(found, axis=0)), strict=True))
    head = {"target": name, "world": where, "n": n, "block": block, "tuned": 0, "promised": 1}
    return [{**head, "truth": truth, "samples": SAMPLES, **means}]


@cache
def population_value(name: str, where: str) -> float:
    """The estimator's value for the whole world: each score once with and once without the event, by their chances."""
    world = {**_score_worlds(), **_clustered()}[where]
    if isinstance(world, ClusteredWorld):
        world = replace(_score_worlds()["uniform, calibrated"], score=world.score, chance=world.chance)
    score, chance = world.population(2**12 if name.startswith("kernel_error") else 2**18)  # pairs of all of them
    if name == "mce" or np.array_equal(score, chance):
        return float(np.abs(score - chance).max())
    whole = cal.Binary(np.repeat([0, 1], len(score)), np.tile(score, 2), weight=np.concatenate([1 - chance, chance]))
    options = {"unbiased": False} if name.startswith("kernel_error") else {}
    return max(float(ESTIMATORS[name](whole, **options)), 0.0)
