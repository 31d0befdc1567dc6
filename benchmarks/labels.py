"""Processor time of all operations on judged answers, on confidences and without labels, by number of rows.

    python -m benchmarks.labels

writes benchmarks/results/labels.md.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal

OUTPUT = Path(__file__).parent / "results" / "labels.md"
ROWS, LABELS = (10_000, 100_000, 1_000_000), 500


def judged(n: int, seed: int = 0, *, clustered: bool) -> cal.Judged:
    """Answers of four models with a judge of 90 %."""
    rng = np.random.default_rng(seed)
    p = rng.beta(4, 2, n)
    y = (rng.random(n) < p) * 1.0
    chosen = np.random.default_rng(5).choice(n, LABELS, replace=False)
    gold = np.where(np.isin(np.arange(n), chosen), y, np.nan)
    judge = np.where(rng.random(n) < 0.9, y, 1 - y)
    return cal.Judged(
        gold, p, judge=judge, group=np.arange(n) // 4 if clustered else None, by={"model": np.arange(n) % 4}
    )


def milliseconds(work: Callable[[], Any], runs: int) -> float:
    """The least processor time of these runs."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def answers(n: int, *, clustered: bool, seed: int) -> cal.Confidence:
    """Answers of a model with its confidence."""
    rng = np.random.default_rng(seed)
    p = rng.beta(4, 2, n)
    return cal.Confidence(rng.random(n) < p**1.3, p, group=np.arange(n) // 4 if clustered else None)


ESTIMATORS = {
    "accuracy": cal.accuracy,
    "O:E ratio": cal.observed_expected,
    "slope": cal.calibration_slope,
    "L1 error": cal.averaged_error,
}


def operations() -> Iterator[tuple[str, Callable[[int], Any]]]:
    """Every operation, as a function of the number of rows."""
    for clustered in (False, True):
        few, sure = partial(judged, clustered=clustered), partial(answers, clustered=clustered, seed=0)
        other, also = partial(answers, clustered=clustered, seed=1), ", in groups of 4" if clustered else ""
        for name, e in ESTIMATORS.items():
            yield f"judged: {name}{also}", lambda n, e=e, few=few: cal.interval(e, few(n))
            yield f"judged: {name} of 4 models{also}", lambda n, e=e, few=few: cal.by_group(e, few(n))
            yield f"judged: comparison of the {name}{also}", lambda n, e=e, few=few: cal.compare(e, few(n), few(n, 1))
        yield f"judged: test{also}", lambda n, few=few: cal.calibration_test(few(n))
        yield f"judged: next labels{also}", lambda n, few=few: few(n).next_labels(100)
        yield f"judged: error of the judge{also}", lambda n, few=few: cal.interval(cal.averaged_error, few(n).judge())
        for name, e in (ESTIMATORS | {"Brier score": cal.brier, "log loss": cal.log_loss, "AUC": cal.auc}).items():
            yield f"confidence: {name}{also}", lambda n, e=e, sure=sure: cal.interval(e, sure(n))
            yield (
                f"confidence: comparison of the {name}{also}",
                lambda n, e=e, sure=sure, other=other: cal.compare(e, sure(n), other(n)),
            )
        yield f"confidence: test{also}", lambda n, sure=sure: cal.calibration_test(sure(n))
        yield f"confidence: risk and coverage{also}", lambda n, sure=sure: cal.risk_coverage(sure(n))
    rng = np.random.default_rng(0)
    p, x, period = rng.random(10_000), rng.normal(size=10_000), np.arange(10_000) % 12
    reference = cal.Binary(rng.random(10_000) < p, p)

    def without(n: int, **more: Any) -> Any:
        return cal.without_labels(reference, rng.random(n), **more)

    yield "without labels (reference of 10,000)", without
    yield "without labels, label shift", partial(without, shift="label")
    yield "without labels, a column", lambda n: without(n, x=(x, rng.normal(size=n)))
    yield "without labels, periods", partial(without, period=period)


def main() -> None:
    """Write the table."""
    lines = ["| what | " + " | ".join(f"{n:,} rows" for n in ROWS) + " |", "|-|" + "-|" * len(ROWS)]
    for name, work in operations():
        cells = [f"{milliseconds(partial(work, n), 7 if n == ROWS[0] else 2):.0f}" for n in ROWS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    versions = f"calibrant {cal.__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    head = f"Processor time in milliseconds, data made and checked included; {LABELS} gold labels. {versions}, "
    head += f"{time.strftime('%Y-%m-%d')}."
    OUTPUT.write_text("\n".join(["# Few gold labels, or none", "", head, "", *lines, ""]), encoding="utf8")


if __name__ == "__main__":
    main()
