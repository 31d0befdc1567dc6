"""Do intervals cover and do tests hold their level? Measured in the ten published worlds and their calibrated twins.

``python -m reproduce.coverage --jobs 2`` writes reproduce/results/coverage.md and the page of the documentation. What
reproduce/results/coverage*.csv hold already is not measured again: remove them to begin anew (two CPU hours), or ask
for more ``--blocks`` of 100 samples.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.results import Clipped
from calibrant.simulate import PAPER_WORLDS, Blend, PowerCurve, UniformScores, World, estimates
from calibrant.simulate.calibration_curves import as_curve
from reproduce.coverage_designs import compare_task, comparisons, design_task, designs, elsewhere_task, other_worlds

RESULTS = Path(__file__).with_name("results")
PAGE = Path(__file__).parents[1] / "docs/inference.md"
SIZES = (200, 1000, 5000)
NORMS = (1.0, 2.0)
DRAWS = 299
#: Samples per block; one in so many of them also tries the dearer methods; samples for the size of the default test
#: and of the others, for the power in the setting of Figure 5, and for that in the published worlds.
BLOCK, PART, SIZE_SAMPLES, OTHER_SIZE_SAMPLES, FIGURE_SAMPLES, WORLD_SAMPLES = 100, 4, 4000, 1000, 1000, 400
#: How far the published worlds are off where power is measured: squared gap over variance, summed over the rows.
SIGNAL = 14.0

TESTS = {
    "MultiScale": cal.inference.MultiScale(draws=DRAWS),
    "KolmogorovSmirnov": cal.inference.KolmogorovSmirnov(draws=DRAWS),
    "Spiegelhalter": cal.inference.Spiegelhalter(),
    "HosmerLemeshow": cal.inference.HosmerLemeshow(),
    "KernelTest": cal.inference.KernelTest(draws=DRAWS),
    "Cox": cal.inference.Cox(),
}


def the_worlds() -> dict[str, World]:
    pairs = [(world, world.calibrated()) for world in PAPER_WORLDS.values()]
    return {world.name: world for pair in pairs for world in pair}


def cell(task: tuple[str, int, int]) -> dict[str, object]:
    """All measurements of one world and size."""
    name, n, block = task
    world = the_worlds()[name]
    truth = [world.true_error(norm) for norm in NORMS]
    seeds = np.random.SeedSequence(8, spawn_key=(n, list(the_worlds()).index(name), block)).spawn(BLOCK)
    rows: dict[str, list[float]] = {}

    def note(key: str, value: float) -> None:
        rows.setdefault(key, []).append(float(value))

    for k, seed in enumerate(seeds):
        data = world.sample(n, seed=seed)
        draws = BLOCK * block + k
        default = cal.inference.Inversion(DRAWS, draws).intervals(data, norms=NORMS)
        lower = cal.inference.Inversion(DRAWS, draws, side="lower").intervals(data, norms=NORMS)
        for norm, true, both, one in zip(NORMS, truth, default, lower, strict=True):
            note(f"cover L{norm:g}", true in both)
            note(f"width L{norm:g}", both.high - both.low)
            note(f"lower L{norm:g}", true in one)
        note("chi-square cover L2", truth[1] in cal.inference.ChiSquareMixture().interval(data, norm=2))
        band = cal.inference.isotonic_band(data)
        for norm, true in zip(NORMS, truth, strict=True):
            low, high = band.error(norm)
            note(f"band upper L{norm:g}", true <= high)
            note(f"band lower L{norm:g}", true >= low)
            note(f"band width L{norm:g}", high - low)
        if k % PART == 0:
            split = cal.interval(cal.calibration_error, data, method=cal.inference.SplitLowerBound(seed=draws)).interval
            note("split lower L1", split is not None and truth[0] >= split.low)
        if k % PART == 0 and n == 1000 and block < 1:
            _bootstraps(data, truth, draws, note)
    oracle = _oracle_widths(world, n) if block == 0 else {}
    means = {key: float(np.mean(values)) for key, values in rows.items()}
    return {"world": name, "n": n, "block": block, "L1": truth[0], "L2": truth[1], **means, **oracle}


def _bootstraps(data: cal.Binary, truth: list[float], seed: int, note: Callable[[str, float], None]) -> None:
    """What is customary elsewhere: resampling an estimate whose bias is not that of its resamples."""
    for kind in ("basic", "bias-corrected"):
        method = cal.Bootstrap(199, seed, kind=kind)
        for words, norm, true in (("L1", 1, truth[0]), ("L2", 2, truth[1])):
            found = cal.interval(partial(cal.debiased_ece, norm=norm), data, method=method).interval
            note(f"{kind} bootstrap cover {words}", found is not None and true in found)


def size_task(task: tuple[str, int]) -> dict[str, object]:
    """How often each test rejects a calibrated world; the default is tried on more samples than the others."""
    name, n = task
    world = the_worlds()[name]
    seeds = np.random.SeedSequence(6, spawn_key=(n, list(the_worlds()).index(name))).spawn(SIZE_SAMPLES)
    rejected: dict[str, list[bool]] = {test: [] for test in TESTS}
    for k, seed in enumerate(seeds):
        data = world.sample(n, seed=seed)
        for test in TESTS if k < OTHER_SIZE_SAMPLES else ["MultiScale"]:
            rejected[test].append(cal.calibration_test(data, method=seeded(test, k)).p_value <= 0.05)
    return {"world": name, "n": n, **{test: float(np.mean(values)) for test, values in rejected.items()}}


def seeded(test: str, seed: int) -> Any:
    """The test with draws of its own: with the same draws for every sample, their luck would be that of them all."""
    method = TESTS[test]
    return replace(method, seed=seed) if hasattr(method, "seed") else method


def _oracle_widths(world: World, n: int) -> dict[str, float]:
    """Central 95 % range of the debiased estimate: the interval of one who knows its sampling distribution."""
    wanted = {f"oracle width L{norm:g}": Clipped(partial(cal.debiased_ece, norm=norm)) for norm in NORMS}
    found = estimates(wanted, world, n, repeats=1000)
    return {name: float(np.diff(np.quantile(values, [0.025, 0.975]))[0]) for name, values in found.items()}


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


def power_task(task: tuple[str, str, int]) -> dict[str, object]:
    """Miss rate of one test."""
    test, setting, n = task
    world = power_worlds()[setting, n]
    repeats = FIGURE_SAMPLES if setting.startswith("Figure") else WORLD_SAMPLES
    seeds = np.random.SeedSequence(12, spawn_key=(n,)).spawn(repeats)
    samples = (world.sample(n, seed=seed) for seed in seeds)
    misses = [cal.calibration_test(data, method=seeded(test, k)).p_value > 0.05 for k, data in enumerate(samples)]
    return {"test": test, "setting": setting, "n": n, "repeats": repeats, "miss": float(np.mean(misses))}


def write(path: Path, text: str) -> None:
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text, encoding="utf8")
    os.replace(part, path)


def write_csv(path: Path, lines: list[dict[str, object]]) -> None:
    columns = list(dict.fromkeys(key for line in lines for key in line))
    part = path.with_suffix(".csv.part")
    with part.open("w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows({key: f"{v:.5g}" if isinstance(v, float) else v for key, v in line.items()} for line in lines)
    os.replace(part, path)


def read_csv(path: Path) -> list[dict[str, object]]:
    if not path.exists():
        return []
    with path.open(encoding="utf8") as file:
        return [{k: _number(v) for k, v in line.items() if v != ""} for line in csv.DictReader(file)]


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def measure(pool: Executor, what: Callable[[Any], dict[str, object]], tasks: list[Any], known: Path) -> None:
    """Do the tasks whose result the file does not hold yet; each result is written as soon as it is there."""
    lines = read_csv(known)
    seen = {tuple(line.values())[: len(tasks[0])] for line in lines}
    for line in pool.map(what, [task for task in tasks if task not in seen]):
        lines.append(line)
        write_csv(known, lines)
        print(*list(line.values())[:5], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    cells = [(name, n, block) for block in range(options.blocks) for n in SIZES for name in the_worlds()]
    jobs = {
        "coverage": (cell, cells),
        "coverage_power": (power_task, [(test, *setting) for setting in power_worlds() for test in TESTS]),
        "coverage_size": (size_task, [(w, n) for n in SIZES for w in the_worlds() if w.endswith("calibrated")]),
        "coverage_designs": (design_task, designs()),
        "coverage_compare": (compare_task, comparisons()),
        "coverage_elsewhere": (elsewhere_task, [(name, n) for n in SIZES for name in other_worlds()]),
    }
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, (what, tasks) in jobs.items():
            measure(pool, what, tasks, RESULTS / f"{name}.csv")
    publish()


def publish() -> None:
    """Write the report, and its summaries into the page of the documentation."""
    from reproduce.coverage_report import report, short, tests

    tables = {path.stem: read_csv(path) for path in RESULTS.glob("coverage*.csv")}
    head = f"{date.today().isoformat()}, Python {platform.python_version()}, NumPy {np.__version__}."
    write(RESULTS / "coverage.md", report(tables, head))
    page = PAGE.read_text(encoding="utf8")
    for name, lines in (("coverage", short(tables)), ("tests", tests(tables))):
        start, end = f"<!-- {name}: written by reproduce/coverage.py -->", f"<!-- end of {name} -->"
        before, rest = page.split(start)
        page = "\n".join([before + start, *lines, end + rest.split(end)[1]])
    write(PAGE, page)


if __name__ == "__main__":
    main()
