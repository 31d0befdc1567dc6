"""Processor time of the numbers for validations and decisions, as a multiple of sorting as many scores.

``python -m benchmarks.decisions`` writes benchmarks/results/decisions.md. `np.sort` of the same scores is measured
before and after each action in the same run, so that a busy machine slows both; the bar is 10 sorts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

import calibrant as cal
from benchmarks.measuring import cpu_seconds, write_results

#: Sorts that items may cost.
BAR = 10
REPEATS = 7


def actions(y: np.ndarray, p: np.ndarray) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each from arrays, with its interval."""
    for name in ("observed_expected", "calibration_intercept", "calibration_slope", "ici", "kuiper_error", "ks_error"):
        estimator = getattr(cal, name, None) or getattr(cal.estimators, name)
        yield f"`{name}`", lambda e=estimator: e(y, p)
        if name not in ("kuiper_error", "ks_error"):
            yield f"`interval({name})`", lambda e=estimator: cal.interval(e, cal.Binary(y, p))
    yield "`risk_coverage`", lambda: cal.risk_coverage(y, p)
    yield '`risk_coverage`, `band="simultaneous"`', lambda: cal.risk_coverage(y, p, band="simultaneous")
    yield "`net_benefit`", lambda: cal.net_benefit(y, p)


def main(rows: int) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(-1, 1.2, rows)
    p = 1 / (1 + np.exp(-z))
    y = rng.random(rows) < 1 / (1 + np.exp(-0.8 * z))
    lines = [
        f"{rows:,} rows; least processor time of {REPEATS} runs by that of `np.sort` around them. The bar is {BAR}.",
        "",
        "| | sorts | ms |",
        "|-|-|-|",
    ]
    for words, action in actions(y, p):
        action()
        before = cpu_seconds(lambda: np.sort(p), REPEATS)
        seconds = cpu_seconds(action, REPEATS)
        sort = max(before, cpu_seconds(lambda: np.sort(p), REPEATS))
        lines.append(f"| {words} | {seconds / sort:.1f} | {1e3 * seconds:.0f} |")
    write_results("decisions", "Validations and decisions, in sorts", "python -m benchmarks.decisions", lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    main(parser.parse_args().rows)
