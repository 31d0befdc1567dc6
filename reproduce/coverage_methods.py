"""Intervals that are not the default: bounds that assume less, and what is customary elsewhere."""

from __future__ import annotations

from functools import partial

import numpy as np

import calibrant as cal
from calibrant.simulate import PAPER_WORLDS
from reproduce.coverage_files import Line

SAMPLES = 1000
#: One in this many samples also tries the slower methods; the second number of samples in all try the bootstrap.
PART, BOOTSTRAPPED = 4, 100


def method_task(task: tuple[str, int]) -> list[Line]:
    """Share of samples in which each bound or interval holds, in a published world or its calibrated twin."""
    name, n = task
    base = PAPER_WORLDS[name.removesuffix(", calibrated")]
    world = base.calibrated() if name.endswith("calibrated") else base
    truth = {norm: world.true_error(norm) for norm in (1.0, 2.0)}
    names = [twin for name in PAPER_WORLDS for twin in (name, f"{name}, calibrated")]
    rows: dict[str, list[float]] = {}
    for k, seed in enumerate(np.random.SeedSequence(8, spawn_key=(n, names.index(name))).spawn(SAMPLES)):
        data = world.sample(n, seed=seed)
        found = {"chi-square cover L2": truth[2.0] in cal.inference.ChiSquareMixture().interval(data, norm=2)}
        band = cal.inference.isotonic_band(data)
        for norm, true in truth.items():
            low, high = band.error(norm)
            found |= {f"band upper L{norm:g}": true <= high, f"band lower L{norm:g}": true >= low}
            found |= {f"band width L{norm:g}": high - low}
        if k % PART == 0:
            split = cal.interval(cal.variational_error, data, method=cal.inference.SplitLowerBound(seed=k)).interval
            found["split lower L1"] = split is not None and truth[1.0] >= split.low
        if k % PART == 0 and n == 1000 and k < BOOTSTRAPPED:
            found |= _bootstraps(data, truth, k)
        for key, value in found.items():
            rows.setdefault(key, []).append(float(value))
    return [{"world": name, "n": n, "samples": SAMPLES, **{key: float(np.mean(v)) for key, v in rows.items()}}]


def _bootstraps(data: cal.Binary, truth: dict[float, float], seed: int) -> dict[str, bool]:
    """What is customary elsewhere: resampling an estimate whose bias is not that of its resamples."""
    found = {}
    for kind in ("basic", "bias-corrected"):
        method = cal.Bootstrap(199, seed, kind=kind)
        for norm, true in truth.items():
            interval = cal.interval(partial(cal.debiased_ece, norm=norm), data, method=method).interval
            found[f"{kind} bootstrap cover L{norm:g}"] = interval is not None and true in interval
    return found
