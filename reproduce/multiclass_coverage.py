"""Do multiclass tests, intervals and comparisons hold? Measured in the worlds of `multiclass_worlds`.

``python -m reproduce.multiclass_coverage`` writes reproduce/results/multiclass_coverage.csv, multiclass_tests.csv and
multiclass.md. Cells that a CSV holds already are not measured again; remove it to begin again. ``--samples`` multiplies
the number of samples per cell, ``--only`` restricts it to one part.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.inference import ClasswiseInversion, LearnedTest, PairedCrossFits, SequentialBound, VectorTest
from reproduce.multiclass_worlds import ERRORS, ClassWorld, scaled, softmax

RESULTS = Path(__file__).with_name("results")
INTERVALS, TESTS = RESULTS / "multiclass_coverage.csv", RESULTS / "multiclass_tests.csv"
INTERVAL_COLUMNS = ["target", "world", "n", "truth", "samples", "covered", "low_above", "high_below", "width", "tuned"]
TEST_COLUMNS = ["test", "world", "n", "samples", "rejected", "tuned"]
#: Draws of the tests where power is measured.
DRAWS = 199
#: Errors of the classwise cells: law of the scores, number of classes, rows, error, size.
CLASSWISE = [
    ("peaked", 3, 300, "temperature", 0.3),
    ("peaked", 3, 1000, "bend", 0.8),
    ("peaked", 3, 1000, "off-diagonal", 0.3),
    ("peaked", 10, 1000, "calibrated", 0.0),
    ("peaked", 10, 1000, "temperature", 0.2),
    ("peaked", 10, 1000, "prior", 0.4),
    ("peaked", 10, 1000, "one class", 0.6),
    ("peaked", 10, 1000, "second", 0.5),
    ("peaked", 10, 1000, "halves", 0.8),
    ("peaked", 10, 5000, "swap", 0.9),
    ("peaked", 10, 5000, "bend", 0.8),
    ("peaked", 10, 5000, "noise", 0.1),
    ("peaked", 100, 2000, "calibrated", 0.0),
    ("peaked", 100, 2000, "temperature", 0.2),
    ("peaked", 100, 2000, "one class", 1.0),
    ("rounded", 3, 1000, "calibrated", 0.0),
    ("rounded", 3, 1000, "temperature", 0.3),
    ("rare", 3, 1000, "calibrated", 0.0),
    ("rare", 3, 1000, "prior", 0.4),
    ("rare", 3, 1000, "temperature", 0.2),
]
#: Cells of the lower bound of whole vectors.
BOUNDS = [
    ("peaked", 3, 300, "calibrated", 0.0),
    ("peaked", 3, 1000, "temperature", 0.2),
    ("peaked", 3, 1000, "interaction", 0.6),
    ("peaked", 10, 1000, "calibrated", 0.0),
    ("peaked", 10, 2000, "temperature", 0.2),
    ("rounded", 3, 1000, "temperature", 0.3),
    ("rare", 3, 1000, "calibrated", 0.0),
    ("rare", 3, 1000, "prior", 0.4),
]
#: Calibrated worlds in which the level of tests is measured: law of the scores, number of classes, rows, samples.
LEVELS = [
    ("peaked", 3, 200, 1000),
    ("rounded", 3, 200, 1000),
    ("rare", 3, 200, 1000),
    ("peaked", 10, 1000, 1000),
    ("peaked", 100, 2000, 400),
]
#: Temperatures of two models that see independent views of the same labels.
PAIRS = [(1.0, 1.0), (1.3, 1.3), (1.3, 1.0), (1.5, 1.2)]

Row = dict[str, Any]


def coverage_row(target: str, world: str, n: int, truth: float, found: list[Any], tuned: bool) -> Row:
    """One line of the table of intervals."""
    low, high = (np.array([getattr(one, end) for one in found]) for end in ("low", "high"))
    above, below = low > truth + 1e-12, high < truth - 1e-12
    width = float((high - low).mean()) if np.isfinite(high).all() else float(low.mean())
    values = (len(found), 1 - float((above | below).mean()), float(above.mean()), float(below.mean()), width)
    return dict(zip(INTERVAL_COLUMNS, (target, world, n, f"{truth:.5f}", *values, tuned), strict=True))


def classwise_rows(world: ClassWorld, n: int, samples: int) -> Iterator[Row]:
    for norm in (1, 2):
        found = [ClasswiseInversion(seed=k).interval(world.sample(n, [11, k]), norm=norm) for k in range(samples)]
        truth = world.classwise_error(norm) if world.size else 0.0
        yield coverage_row(f"classwise L{norm}", world.name, n, truth, found, world.tuned)


def bound_rows(world: ClassWorld, n: int, samples: int) -> Iterator[Row]:
    """For these the column `width` holds the mean bound."""
    for norm in (1, 2):
        for exact in (True, False):
            made = [SequentialBound(exact, seed=k) for k in range(samples)]
            found = [one.interval(world.sample(n, [12, k]), norm=norm) for k, one in enumerate(made)]
            name = f"whole vector L{norm}, lower bound, {'exact' if exact else 'normal'}"
            truth = world.vector_error(norm) if world.size else 0.0
            yield coverage_row(name, world.name, n, truth, found, world.tuned)


def views(temperatures: tuple[float, float], n: int, seed: Any) -> list[tuple[cal.Multiclass, Any]]:
    """Two models that see independent views of the same labels, with tempered posteriors and the true ones."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    made = []
    for temperature in temperatures:
        seen = rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[y]
        made.append((cal.Multiclass(y, softmax(1.5 * temperature * seen)), softmax(1.5 * seen)))
    return made


def pair_rows(temperatures: tuple[float, float], n: int, samples: int) -> Iterator[Row]:
    large = views(temperatures, 400_000, 1)
    for norm in (1, "kl"):
        errors = [_distance(data.y_prob, truth, norm) for data, truth in large]
        found = []
        for k in range(samples):
            (a, _), (b, _) = views(temperatures, n, [13, k])
            found.append(PairedCrossFits().difference(a, b, norm=norm, level=0.95))
        name = f"views K=3 sharpened {temperatures[0]:g}, {temperatures[1]:g}"
        truth = errors[0] - errors[1] if temperatures[0] != temperatures[1] else 0.0
        row = coverage_row(f"difference {norm if norm == 'kl' else 'L1'}", name, n, truth, found, tuned=False)
        yield row
        called = float(np.mean([not one.low <= 0 <= one.high for one in found]))
        yield {**row, "target": row["target"] + ", called different", "covered": called}


def _distance(p: Any, truth: Any, norm: Any) -> float:
    if norm == "kl":
        return float((truth * np.log(truth / p)).sum(axis=1).mean())
    return float(np.abs(p - truth).sum(axis=1).mean())


def rejected_row(test: str, world: ClassWorld, n: int, rejected: list[bool]) -> Row:
    values = (test, world.name, n, len(rejected), float(np.mean(rejected)), world.tuned)
    return dict(zip(TEST_COLUMNS, values, strict=True))


def vector_test(world: ClassWorld, n: int, samples: int) -> Row:
    rejected = [VectorTest(DRAWS, k).test(world.sample(n, [14, k])).p_value <= 0.05 for k in range(samples)]
    return rejected_row("VectorTest", world, n, rejected)


def learned_test(world: ClassWorld, n: int, samples: int) -> Row:
    rejected = [LearnedTest(DRAWS, seed=k).test(world.sample(n, [14, k])).p_value <= 0.05 for k in range(samples)]
    return rejected_row("LearnedTest", world, n, rejected)


def class_test(world: ClassWorld, n: int, samples: int, *, wrong: tuple[int, ...]) -> Row:
    """Calibrated worlds: any class reported. Others: the wrong class reported."""
    found = [cal.by_class(world.sample(n, [15, k]), draws=DRAWS, seed=k).found() for k in range(samples)]
    hit = [any(k in labels for k in wrong) if wrong else bool(labels) for labels in found]
    return rejected_row("by_class, any class" if not wrong else "by_class, the wrong class", world, n, hit)


def jobs(factor: float) -> Iterator[tuple[str, Path, Callable[[], list[Row]]]]:
    """Every cell: its key, the file it belongs to, and how it is measured."""

    def number(samples: int) -> int:
        return max(2, round(samples * factor))

    for law, k, n, error, size in CLASSWISE:
        world = ClassWorld(law, k, error, size)
        run = partial(classwise_rows, world, n, number(200 if k <= 10 else 60))
        yield f"classwise {world.name} {n}", INTERVALS, lambda run=run: list(run())
    for law, k, n, samples in LEVELS:
        world = ClassWorld(law, k)
        yield f"level {world.name}", TESTS, lambda w=world, n=n, s=samples: [vector_test(w, n, number(s))]
        run_class = partial(class_test, world, n, number(samples // 2), wrong=())
        yield f"classes {world.name}", TESTS, lambda run=run_class: [run()]
    for k, n, signal, samples in ((3, 1000, 30, 200), (10, 1000, 30, 200), (100, 2000, 60, 50)):
        for error in ERRORS:
            if error == "calibrated":
                continue
            make = partial(scaled, "peaked", k, error, n, signal)
            run_test = partial(vector_test, n=n, samples=number(samples))
            yield f"power K={k} {error}", TESTS, lambda run=run_test, make=make: [run(make())]
    for temperatures in PAIRS:
        run = partial(pair_rows, temperatures, 1000, number(150))
        yield f"pair {temperatures}", INTERVALS, lambda run=run: list(run())
    for law, k, n, error, size in BOUNDS:
        world = ClassWorld(law, k, error, size)
        run = partial(bound_rows, world, n, number(100))
        yield f"bound {world.name}", INTERVALS, lambda run=run: list(run())
    for k, n in ((10, 2000), (100, 5000)):
        world = ClassWorld("peaked", k, "one class", 1.0)
        run_class = partial(class_test, world, n, number(40), wrong=(1,))
        yield f"classes {world.name}", TESTS, lambda run=run_class: [run()]
    for k, error in ((3, "calibrated"), (3, "interaction"), (10, "temperature"), (10, "interaction")):
        make = partial(scaled, "peaked", k, error, 1000, 60)
        yield f"learned K={k} {error}", TESTS, lambda make=make: [learned_test(make(), 1000, number(60))]


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, key: str, rows: list[Row]) -> None:
    new = not path.exists()
    columns = ["cell", *(INTERVAL_COLUMNS if path == INTERVALS else TEST_COLUMNS)]
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows({"cell": key, **{k: _short(v) for k, v in row.items()}} for row in rows)


def _short(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def report() -> str:
    """Both tables, the worst cells first."""
    intervals = sorted(read(INTERVALS), key=lambda row: ("called" in row["target"], float(row["covered"])))
    lines = [
        "# Multiclass: coverage, level and power",
        "",
        "Made by `python -m reproduce.multiclass_coverage`; worlds in reproduce/multiclass_worlds.py. Nominal level",
        "0.95, tests at 5 %. Worlds marked *tuned* were used to choose constants, the others were not. For lower",
        "bounds `width` is the mean bound; for rows *called different* `covered` is the share of intervals without 0.",
        "",
        "| " + " | ".join(INTERVAL_COLUMNS) + " |",
        "|" + "-|" * len(INTERVAL_COLUMNS),
        *("| " + " | ".join(row[name] for name in INTERVAL_COLUMNS) + " |" for row in intervals),
        "",
        f"Tests ({DRAWS} draws); power at a signal of 30 (60 for 100 classes), see `scaled`.",
        "",
        "| " + " | ".join(TEST_COLUMNS) + " |",
        "|" + "-|" * len(TEST_COLUMNS),
        *("| " + " | ".join(row[name] for name in TEST_COLUMNS) + " |" for row in read(TESTS)),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=float, default=1.0, help="factor on the number of samples per cell")
    parser.add_argument("--only", default="", help="only cells whose key begins so, e.g. classwise")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    done = {row["cell"] for path in (INTERVALS, TESTS) for row in read(path)}
    for key, path, run in jobs(options.samples):
        if key not in done and key.startswith(options.only):
            append(path, key, run())
            (RESULTS / "multiclass.md").write_text(report())
            print(key, flush=True)


if __name__ == "__main__":
    main()
