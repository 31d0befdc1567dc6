"""Do intervals cover and do tests hold their level? Measured in the ten published worlds and their calibrated twins.

``python -m reproduce.coverage --blocks 3 --jobs 2`` adds to reproduce/results/coverage.csv what it does not hold
yet, in blocks of 100 repeats, and writes coverage.md.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.simulate import PAPER_WORLDS, Clipped, Power, Uniform, World, estimates

RESULTS = Path(__file__).with_name("results")
PAGE = Path(__file__).parents[1] / "docs/inference.md"
START, END = "<!-- coverage: written by reproduce/coverage.py -->", "<!-- end of coverage -->"
SIZES = (200, 1000, 5000)
NORMS = (1.0, 2.0)
DRAWS = 299
#: Repeats per block, and how many of them (one in so many) try the dearer methods too.
BLOCK, PART = 100, 3

TESTS = {
    "MultiScale": cal.MultiScale(n=DRAWS),
    "KolmogorovSmirnov": cal.KolmogorovSmirnov(n=DRAWS),
    "Spiegelhalter": cal.Spiegelhalter(),
    "HosmerLemeshow": cal.HosmerLemeshow(),
    "KernelTest": cal.KernelTest(n=DRAWS),
    "Cox": cal.Cox(),
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
        for norm, true, found in zip(NORMS, truth, cal.Inversion(DRAWS, k).intervals(data, norms=NORMS), strict=True):
            note(f"cover L{norm:g}", true in found)
            note(f"above L{norm:g}", true > found.high)
            note(f"width L{norm:g}", found.high - found.low)
        if not truth[0]:
            note("size MultiScale", cal.calibration_test(data, method=TESTS["MultiScale"]).p_value <= 0.05)
        if block > 0:  # the first block says enough of the other methods
            continue
        band = cal.inference.isotonic_band(data)
        for norm, true in zip(NORMS, truth, strict=True):
            note(f"band upper L{norm:g}", true <= band.error(norm)[1])
            note(f"band lower L{norm:g}", true >= band.error(norm)[0])
            note(f"band width L{norm:g}", band.error(norm)[1] - band.error(norm)[0])
        if k % PART == 0:
            _dearer(data, truth, k, note)
    oracle = _oracle_widths(world, n) if block == 0 else {}
    means = {key: float(np.mean(values)) for key, values in rows.items()}
    return {"world": name, "n": n, "block": block, "L1": truth[0], "L2": truth[1], **means, **oracle}


def _dearer(data: cal.Binary, truth: list[float], k: int, note: object) -> None:
    lower = cal.Inversion(DRAWS, k, side="lower").intervals(data, norms=NORMS)
    for norm, true, found in zip(NORMS, truth, lower, strict=True):
        note(f"lower L{norm:g}", true >= found.low)  # type: ignore[operator]
    split = cal.interval(cal.calibration_error, data, method=cal.SplitLowerBound(seed=k)).interval
    note("split lower L1", truth[0] >= split.low)  # type: ignore[operator,union-attr]
    if not truth[0]:
        for name in ("KolmogorovSmirnov", "Spiegelhalter", "HosmerLemeshow", "KernelTest", "Cox"):
            note(f"size {name}", cal.calibration_test(data, method=TESTS[name]).p_value <= 0.05)  # type: ignore[operator]


def _oracle_widths(world: World, n: int) -> dict[str, float]:
    """Central 95 % range of the debiased estimate: the interval of one who knows its sampling distribution."""
    from functools import partial

    wanted = {f"oracle width L{norm:g}": Clipped(partial(cal.debiased_ece, norm=norm)) for norm in NORMS}
    found = estimates(wanted, world, n, repeats=500)
    return {name: float(np.diff(np.quantile(values, [0.025, 0.975]))[0]) for name, values in found.items()}


def power_task(task: tuple[str, int, float, int]) -> dict[str, object]:
    """Miss rate of one test in the setting of Figure 5: uniform scores, chance c^d."""
    from scipy.optimize import brentq

    name, n, error, repeats = task
    d = brentq(lambda d: World(Uniform(), Power(d)).true_error(2) - error, 1.001, 3)
    world = World(Uniform(), Power(d))
    seeds = np.random.SeedSequence(5, spawn_key=(n,)).spawn(repeats)
    misses = [cal.calibration_test(world.sample(n, seed=seed), method=TESTS[name]).p_value > 0.05 for seed in seeds]
    return {"test": name, "n": n, "error": error, "repeats": repeats, "miss": float(np.mean(misses))}


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    cells_path, power_path = RESULTS / "coverage.csv", RESULTS / "coverage_power.csv"
    cells, powers = read_csv(cells_path), read_csv(power_path)
    done = {(line["world"], line["n"], line["block"]) for line in cells}
    known = {(line["test"], line["n"]) for line in powers}
    settings = [(name, n, error) for name in TESTS for n, error in ((1000, 0.05), (5000, 0.02))]
    every = [(name, n, block) for block in range(options.blocks) for n in SIZES for name in the_worlds()]
    with ProcessPoolExecutor(options.jobs) as pool:
        for line in pool.map(power_task, [(*s, 4 * BLOCK) for s in settings if s[:2] not in known]):
            powers.append(line)
            write_csv(power_path, powers)
        for line in pool.map(cell, [task for task in every if task not in done]):
            cells.append(line)
            write_csv(cells_path, cells)
            print(line["world"], line["n"], line["block"], line["cover L1"], line["cover L2"], flush=True)
    publish(read_csv(cells_path), read_csv(power_path))


def publish(cells: list[dict[str, object]], powers: list[dict[str, object]]) -> None:
    """Write the report, and its summary into the page of the documentation."""
    from reproduce.coverage_report import report, short

    head = f"{date.today().isoformat()}, Python {platform.python_version()}, NumPy {np.__version__}."
    write(RESULTS / "coverage.md", report(cells, powers, head))
    before, rest = PAGE.read_text(encoding="utf8").split(START)
    write(PAGE, "\n".join([before + START, *short(cells), END + rest.split(END)[1]]))


if __name__ == "__main__":
    main()
