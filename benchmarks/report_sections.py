"""CPU time of each section of a report on one event, next to the interval and the test of the verdict.

    OMP_NUM_THREADS=1 python -m benchmarks.report_sections [rows ...]

prints milliseconds, the least of several runs, and their share of the interval of the headline in the same run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.reporting.evidence import Part
from calibrant.reporting.sections.recalibration import recalibrated
from calibrant.reporting.sections.reliability import bin_counts, reliability_section

RUNS = 5


def world(n: int) -> cal.Binary:
    """Scores with 17 % events that are too extreme and too high."""
    rng = np.random.default_rng(0)
    z = rng.normal(-2, 1.5, n)
    return cal.Binary(rng.random(n) < 1 / (1 + np.exp(0.3 - 0.8 * z)), 1 / (1 + np.exp(-z)))


def least(make: Callable[[Part], Any], data: cal.Binary) -> float:
    """CPU milliseconds of the fastest run, on a part whose table is made."""
    found = []
    for _ in range(RUNS + 1):
        part = Part(data)
        _ = part.cells
        start = time.process_time()
        make(part)
        found.append(time.process_time() - start)
    return 1000 * min(found[1:])


def main() -> None:
    """Print a table for each number of rows."""
    sections: dict[str, Callable[[Part], Any]] = {
        "headline": lambda part: part.headline,
        "test": lambda part: part.test,
        "reliability": reliability_section,
        "recalibration": recalibrated,
        "bin counts": bin_counts,
    }
    for n in [int(text) for text in sys.argv[1:]] or [10_000, 1_000_000]:
        data = world(n)
        times = {name: least(make, data) for name, make in sections.items()}
        for name, milliseconds in times.items():
            print(f"{n:>9,} rows  {name:<14} {milliseconds:8.1f} ms  {milliseconds / times['headline']:6.2f}")
        whole = sum(times[name] for name in ("reliability", "recalibration", "bin counts"))
        print(f"{n:>9,} rows  {'all sections':<14} {whole:8.1f} ms  {whole / times['headline']:6.2f}")


if __name__ == "__main__":
    main()
