"""Do intervals cover and do tests hold their level? Measured in worlds of known error, published and rough ones.

``python -m reproduce.coverage --jobs 2`` writes reproduce/results/coverage.md and the page of the documentation. What
the CSV files in reproduce/results hold already is not measured again: remove one to begin again. The worlds take about
three CPU hours by default; ``--blocks`` asks for fewer or more samples, ``--worlds`` for the worlds whose names contain
a text, ``--sizes`` for some numbers of rows, ``--only`` for one of the files, and ``--report`` measures nothing.
"""

from __future__ import annotations

import argparse
import platform
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from reproduce.coverage_designs import ClusteredWorld, WeightedWorld, compare_task, comparisons, designs
from reproduce.coverage_estimators import estimator_task, estimators_and_worlds
from reproduce.coverage_files import Line, read_csv, write, write_csv
from reproduce.coverage_methods import method_task
from reproduce.coverage_pairs import pair_task, pair_tasks
from reproduce.coverage_tests import power_task, power_worlds, size_task, test_names
from reproduce.coverage_worlds import PublishedWorld, ScoreWorld, calibrated, published, rough, unseen

RESULTS = Path(__file__).with_name("results")
PAGE = Path(__file__).parents[1] / "docs/evidence/coverage.md"
AnyWorld = PublishedWorld | ScoreWorld | ClusteredWorld | WeightedWorld
NORMS = (1.0, 2.0)
DRAWS = 299
BLOCKS = 4
#: Sizes in the order in which they are measured.
ORDER = (1000, 20_000, 200, 100_000, 20, 50, 100, 5000, 60, 300, 2000)
#: One in this many samples also gets both one-sided bounds, and an estimate with its own interval.
ONE_SIDED, ESTIMATES = 5, 25


@cache
def the_worlds() -> dict[str, AnyWorld]:
    groups: list[Sequence[AnyWorld]] = [rough(), unseen(), calibrated(), designs(), published()]
    return {world.name: world for group in groups for world in group}


def block_size(n: int) -> int:
    """Samples per block, fewer where each takes longer."""
    return 250 if n <= 2000 else 100 if n <= 5000 else 50 if n <= 20_000 else 25


def seeds(name: str, n: int, block: int, size: int) -> list[np.random.SeedSequence]:
    """Independent samples for each world, size and block, whatever else is measured."""
    return np.random.SeedSequence(17, spawn_key=(zlib.crc32(name.encode()), n, block)).spawn(size)


def cell_task(task: tuple[str, int, int]) -> list[Line]:
    """All measurements of the default interval in one world, at one size: one line per norm."""
    name, n, block = task
    world = the_worlds()[name]
    found: dict[float, dict[str, list[float]]] = {norm: {} for norm in NORMS}
    for k, seed in enumerate(seeds(name, n, block, block_size(n))):
        data = world.sample(n, np.random.default_rng(seed))
        started = time.process_time()
        both = cal.inference.Inversion(DRAWS, k).intervals(data, norms=NORMS)
        spent = time.process_time() - started
        sides = [
            cal.inference.Inversion(DRAWS, k, side=side).intervals(data, norms=NORMS)
            for side in (("lower", "upper") if k % ONE_SIDED == 0 else ())
        ]
        for j, norm in enumerate(NORMS):
            truth = world.true_error(norm)
            values: dict[str, float] = {
                "covered": truth in both[j],
                "low_above": both[j].low > truth,
                "high_below": both[j].high < truth,
                "zero_excluded": both[j].low > 0,
                "width": both[j].high - both[j].low,
                "cpu": spent,
            }
            if sides:
                values |= {"lower_above": sides[0][j].low > truth, "upper_below": sides[1][j].high < truth}
            if k % ESTIMATES == 0:
                values["outside"] = _outside(data, norm)
            for key, value in values.items():
                found[norm].setdefault(key, []).append(float(value))
    head = {"world": name, "n": n, "block": block}
    return [
        {
            **head,
            "target": f"L{norm:g}",
            "tuned": int(world.tuned),
            "promised": int(world.promised(n)),
            "truth": world.true_error(norm),
            "samples": block_size(n),
            **{key: float(np.mean(values)) for key, values in found[norm].items()},
        }
        for norm in NORMS
    ]


def _outside(data: cal.Binary, norm: float) -> bool:
    """Whether the cross-fitted estimate lies outside its own interval."""
    found = cal.interval(partial(cal.averaged_error, norm=norm), data)
    assert found.interval is not None
    return found.clipped not in found.interval


def oracle_task(task: tuple[str, int]) -> list[Line]:
    """Central 95 % range of the debiased estimate: the width for one who knows its sampling distribution."""
    name, n = task
    samples = 400 if n <= 5000 else 100
    values = np.empty((samples, len(NORMS)))
    for k, seed in enumerate(seeds(name, n, 10**6, samples)):
        data = the_worlds()[name].sample(n, np.random.default_rng(seed)).sorted_once()
        values[k] = [cal.debiased_ece(data, norm=norm).clipped for norm in NORMS]
    widths = np.diff(np.quantile(values, [0.025, 0.975], axis=0), axis=0)[0]
    return [{"world": name, "n": n, "samples": samples, "oracle L1": widths[0], "oracle L2": widths[1]}]


def measure(pool: Executor, what: Callable[[Any], list[Line]], tasks: list[Any], known: Path) -> None:
    """Do the tasks whose result the file does not hold yet; each result is written as soon as it is there."""
    lines = read_csv(known)
    seen = {tuple(line.values())[: len(tasks[0])] for line in lines} if tasks else set()
    for some in pool.map(what, [task for task in tasks if task not in seen]):
        lines += some
        write_csv(known, lines)
        print(*[value for line in some for value in list(line.values())[:12]], flush=True)


def jobs(worlds: str, sizes: list[int], blocks: int) -> dict[str, tuple[Callable[[Any], list[Line]], list[Any]]]:
    """What each file holds: the task and its arguments."""
    chosen = [world for world in the_worlds().values() if any(part in world.name for part in worlds.split(";"))]
    cells = [(world.name, n) for n in ORDER for world in chosen if n in world.sizes and n in sizes]
    plain = [(world.name, n) for world in published() for n in world.sizes if n <= 5000]
    null = [(world.name, n) for world in published() for n in (200, 1000, 5000) if world.true_error(1) == 0]
    return {
        "coverage": (cell_task, [(*cell, block) for block in range(blocks) for cell in cells]),
        "coverage_oracle": (oracle_task, cells),
        "coverage_estimators": (
            estimator_task,
            [(*what, block) for block in range(blocks) for what in estimators_and_worlds() if what[2] in sizes],
        ),
        "coverage_methods": (method_task, plain),
        "coverage_power": (power_task, [(test, *setting) for setting in power_worlds() for test in test_names()]),
        "coverage_size": (size_task, null),
        "coverage_compare": (compare_task, comparisons()),
        "coverage_pairs": (pair_task, pair_tasks(sizes, blocks)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--worlds", default="", help="texts, separated by semicolons")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(ORDER))
    parser.add_argument("--only", help="one of the files, such as coverage_oracle")
    parser.add_argument("--into", help="another name for that file")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if not options.report:
        with ProcessPoolExecutor(options.jobs) as pool:
            for name, (what, tasks) in jobs(options.worlds, options.sizes, options.blocks).items():
                if options.only in (None, name):
                    measure(pool, what, tasks, RESULTS / f"{options.into or name}.csv")
    if options.into is None:
        publish()


def publish() -> None:
    """Write the report, and its summaries into the page of the documentation."""
    from reproduce.coverage_report import marked_parts, report

    paths = [*RESULTS.glob("*coverage*.csv"), RESULTS / "regression_designs.csv"]
    tables = {path.stem: read_csv(path) for path in paths}
    head = f"{date.today().isoformat()}, Python {platform.python_version()}, NumPy {np.__version__}."
    write(RESULTS / "coverage.md", report(tables, head))
    page = PAGE.read_text(encoding="utf8")
    for name, lines in marked_parts(tables).items():
        start, end = f"<!-- {name}: written by reproduce/coverage.py -->", f"<!-- end of {name} -->"
        before, rest = page.split(start)
        page = "\n".join([before + start, *lines, end + rest.split(end)[1]])
    write(PAGE, page)


if __name__ == "__main__":
    main()
