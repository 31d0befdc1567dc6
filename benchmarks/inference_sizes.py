"""Processor time of intervals and tests at the sizes they are used at, next to their bars.

``python -m benchmarks.inference_sizes`` writes benchmarks/results/inference_sizes.md. With ``--quick`` the actions that
take many seconds (100 classes, 5,000 groups) are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

import calibrant as cal
from benchmarks.measuring import cpu_seconds, write_results

Action = Callable[[], object]
#: Rows and milliseconds; those of 3,000 and 30,000 rows lie between the others, to show that there is no hump.
BARS = {1000: 60, 3000: 67, 10_000: 80, 30_000: 100, 100_000: 120}


def worlds(n: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Scores and chances: confident, wavy, and rare events with the wrong and the right risk."""
    rng = np.random.default_rng(0)
    confident, uniform, rare = rng.beta(2, 0.5, n), rng.random(n), rng.beta(0.5, 250, n)
    yield "confident", confident, confident**1.3
    yield "wavy", uniform, uniform + 0.08 * np.sin(12 * np.pi * uniform)
    yield "0.2 % events, twice the risk", rare, np.minimum(2 * rare, 1)
    yield "0.2 % events, calibrated", rare, rare


def drawn(score: np.ndarray, chance: np.ndarray) -> cal.Binary:
    return cal.Binary(np.random.default_rng(1).random(len(score)) < chance, score)


def binary() -> Iterator[tuple[str, float, Action]]:
    for n, bar in BARS.items():
        for name, score, chance in worlds(n):
            data = drawn(score, chance)
            yield (
                f"`interval(ece)`, {n:,} rows, {name}",
                bar,
                lambda d=data: cal.interval(cal.ece, cal.Binary(d.y_true, d.y_prob)),
            )
    for name, score, chance in worlds(10**6):
        table = cal.BinTable.of(drawn(score, chance), cal.table.HybridGrid())
        yield f"`interval(ece)`, fine table of 1e6 rows, {name}", 200, lambda t=table: cal.interval(cal.ece, t)


def several(quick: bool) -> Iterator[tuple[str, float, Action]]:
    rng = np.random.default_rng(0)
    for classes, bar in ((10, 1000), (100, 10_000)):
        if quick and classes > 10:
            continue
        p = rng.dirichlet(np.full(classes, 0.5), 10_000)
        y = (rng.random((10_000, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(max=classes - 1)
        data = cal.Multiclass(y, p)
        yield f"`calibration_test`, {classes} classes, 10,000 rows", bar, lambda d=data: cal.calibration_test(d)


def others(quick: bool) -> Iterator[tuple[str, float, Action]]:
    rng = np.random.default_rng(0)
    std = rng.lognormal(0, 0.5, 10_000)
    forecast = cal.Gaussian(1.1 * std * rng.standard_normal(10_000), np.zeros(10_000), std)
    yield "`interval(ence)`, 10,000 rows", 100, lambda: cal.interval(cal.ence, forecast)
    name, score, chance = next(worlds(1000))
    yield f"`advise`, 1000 rows, {name}", 2000, lambda: cal.simulate.advise(drawn(score, chance))
    if not quick:
        p, group = rng.random(10**6), np.repeat(np.arange(5000), 200)
        y = rng.random(10**6) < p
        yield "`by_group(ece)`, 5,000 groups of 200 rows", 20_000, lambda: cal.by_group(cal.ece, y, p, by=group)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    lines = ["Least of several runs, one BLAS thread; imports are not counted.", "", "| | CPU ms | bar |", "|-|-|-|"]
    for words, bar, action in (*binary(), *several(quick), *others(quick)):
        first = cpu_seconds(action, 1)
        seconds = min(first, cpu_seconds(action, 5)) if first < 1 else first
        lines.append(f"| {words} | {1e3 * seconds:.0f} | {bar:.0f} |")
        print(lines[-1], flush=True)
    write_results(
        "inference_sizes", "Intervals and tests at usual sizes", "python -m benchmarks.inference_sizes", lines
    )


if __name__ == "__main__":
    main()
