"""Level and power of the tests of calibration, in the published worlds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.simulate import PAPER_WORLDS, Blend, PowerCurve, UniformScores, World
from calibrant.simulate.worlds import as_curve
from reproduce.coverage_files import Line

DRAWS = 299
#: Samples for the level of the default test and of the others, for the power in the setting of Figure 5, and for that
#: in the published worlds.
SIZE_SAMPLES, OTHER_SIZE_SAMPLES, FIGURE_SAMPLES, WORLD_SAMPLES = 4000, 1000, 1000, 400
#: How far the published worlds are off where power is measured: squared gap over variance, summed over the rows.
SIGNAL = 14.0


def _tests() -> dict[str, Any]:
    return {
        "MultiScale": cal.inference.MultiScale(draws=DRAWS),
        "KolmogorovSmirnov": cal.inference.KolmogorovSmirnov(draws=DRAWS),
        "Spiegelhalter": cal.inference.Spiegelhalter(),
        "HosmerLemeshow": cal.inference.HosmerLemeshow(),
        "KernelTest": cal.inference.KernelTest(draws=DRAWS),
        "Cox": cal.inference.Cox(),
    }


def test_names() -> list[str]:
    return list(_tests())


def seeded(test: str, seed: int) -> Any:
    """The test with draws of its own: with the same draws for every sample, their luck would be that of them all."""
    method = _tests()[test]
    return replace(method, seed=seed) if hasattr(method, "seed") else method


def size_task(task: tuple[str, int]) -> list[Line]:
    """How often each test rejects a calibrated world; the default is tried on more samples than the others."""
    name, n = task
    names = [twin for name in PAPER_WORLDS for twin in (name, f"{name}, calibrated")]
    world = PAPER_WORLDS[name.removesuffix(", calibrated")].calibrated()
    seeds = np.random.SeedSequence(6, spawn_key=(n, names.index(name))).spawn(SIZE_SAMPLES)
    rejected: dict[str, list[bool]] = {test: [] for test in test_names()}
    for k, seed in enumerate(seeds):
        data = world.sample(n, seed=seed)
        for test in test_names() if k < OTHER_SIZE_SAMPLES else ["MultiScale"]:
            rejected[test].append(cal.calibration_test(data, method=seeded(test, k)).p_value <= 0.05)
    return [{"world": name, "n": n, **{test: float(np.mean(values)) for test, values in rejected.items()}}]


@cache
def power_worlds() -> dict[tuple[str, int], World]:
    """The setting of Figure 5 (uniform scores, chance c^d), and published worlds whose gap is shrunk."""
    from scipy.optimize import brentq

    worlds: dict[tuple[str, int], World] = {}
    for n, error in ((1000, 0.05), (5000, 0.02)):
        d = brentq(lambda d, error=error: World(UniformScores(), PowerCurve(d)).true_error(2) - error, 1.001, 3)
        worlds[f"Figure 5, error {error:.0%}", n] = World(UniformScores(), PowerCurve(d))
    for name, world in PAPER_WORLDS.items():
        for n in (1000, 5000):
            worlds[name, n] = _shrunk(world, n)
    return worlds


def _shrunk(world: World, n: int) -> World:
    signal = n * world.expect(lambda score, chance: (score - chance) ** 2 / np.maximum(score * (1 - score), 1e-4))
    part = min(1.0, float(np.sqrt(SIGNAL / signal)))
    return World(world.scores, Blend(as_curve(world.curve), part), world.name)


def power_task(task: tuple[str, str, int]) -> list[Line]:
    """Miss rate of one test."""
    test, setting, n = task
    world = power_worlds()[setting, n]
    repeats = FIGURE_SAMPLES if setting.startswith("Figure") else WORLD_SAMPLES
    seeds = np.random.SeedSequence(12, spawn_key=(n,)).spawn(repeats)
    samples = (world.sample(n, seed=seed) for seed in seeds)
    misses = [cal.calibration_test(data, method=seeded(test, k)).p_value > 0.05 for k, data in enumerate(samples)]
    return [{"test": test, "setting": setting, "n": n, "repeats": repeats, "miss": float(np.mean(misses))}]
