"""Processor time of intervals from few gold labels and a judge, and of performance without labels, by number of rows.

    python -m benchmarks.labels

writes benchmarks/results/labels.md.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal

OUTPUT = Path(__file__).parent / "results" / "labels.md"
ROWS, LABELS = (10_000, 100_000, 1_000_000), 500


def judged(n: int, *, clustered: bool) -> cal.Judged:
    """Answers with a judge of 90 %."""
    rng = np.random.default_rng(0)
    p = rng.beta(4, 2, n)
    y = (rng.random(n) < p) * 1.0
    gold = np.where(np.isin(np.arange(n), rng.choice(n, LABELS, replace=False)), y, np.nan)
    judge = np.where(rng.random(n) < 0.9, y, 1 - y)
    return cal.Judged(gold, p, judge=judge, group=np.arange(n) // 4 if clustered else None)


def milliseconds(work: Callable[[], Any]) -> float:
    """The least processor time of three runs."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def main() -> None:
    """Write the table."""
    lines = ["| what | " + " | ".join(f"{n:,} rows" for n in ROWS) + " |", "|-|" + "-|" * len(ROWS)]
    calls = {
        "accuracy": cal.accuracy,
        "O:E ratio": cal.observed_expected,
        "slope": cal.calibration_slope,
        "L1 error": cal.averaged_error,
    }
    for clustered in (False, True):
        for name, estimator in calls.items():
            cells = [
                f"{milliseconds(lambda n=n, e=estimator, c=clustered: cal.interval(e, judged(n, clustered=c))):.0f}"
                for n in ROWS
            ]
            lines.append(f"| {name}{', in groups of 4' if clustered else ''} | {' | '.join(cells)} |")
    rng = np.random.default_rng(0)
    p = rng.random(10_000)
    reference = cal.Binary(rng.random(10_000) < p, p)
    for name, options in (("without labels", {}), ("without labels, label shift", {"shift": "label"})):
        cells = [
            f"{milliseconds(lambda n=n, o=options: cal.without_labels(reference, rng.random(n), **o)):.0f}"
            for n in ROWS
        ]
        lines.append(f"| {name} (reference of 10,000) | {' | '.join(cells)} |")
    versions = f"calibrant {cal.__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    head = f"Processor time in milliseconds, data made and checked included; {LABELS} gold labels. {versions}, "
    head += f"{time.strftime('%Y-%m-%d')}."
    OUTPUT.write_text("\n".join(["# Few gold labels, or none", "", head, "", *lines, ""]), encoding="utf8")


if __name__ == "__main__":
    main()
