"""PU-ECE at 1e6 positives and 1e7 unlabeled rows, against reading the two arrays and against one sort."""

from __future__ import annotations

import numpy as np

import calibrant as cal
from benchmarks.measuring import cpu_seconds, write_results

POSITIVE, UNLABELED = 10**6, 10**7
REPEATS = 9


def main() -> None:
    rng = np.random.default_rng(0)
    positive, unlabeled = rng.beta(2, 1, POSITIVE), rng.random(UNLABELED)
    data = cal.PositiveUnlabeled(positive, unlabeled, prior=0.5)
    read = cpu_seconds(lambda: (positive.sum(), unlabeled.sum()), repeats=REPEATS)
    extremes = cpu_seconds(lambda: (positive.min(), positive.max(), unlabeled.min(), unlabeled.max()))
    sort = cpu_seconds(lambda: np.sort(unlabeled), repeats=2)
    table = cal.BinTable.of(data, cal.EqualWidth(15))
    cases = {
        "`ece`, 15 bins of equal width (bar: 9)": lambda: cal.ece(data, bins=cal.EqualWidth(15)),
        "`ece`, `PaperBins()`": lambda: cal.ece(data, bins=cal.pu.PaperBins()),
        "the same table with squares, for intervals and tests": lambda: cal.BinTable.of(data, cal.EqualWidth(15)),
        "`PositiveUnlabeled(...)`, checks of the rows": lambda: cal.PositiveUnlabeled(positive, unlabeled, prior=0.5),
        "`ece`, 15 bins of equal mass": lambda: cal.ece(data, bins=cal.EqualMass(15)),
        "`interval(ece)` on the table": lambda: cal.interval(cal.ece, table),
        "`calibration_test` on the table": lambda: cal.calibration_test(table),
        "`pu.prior_band` on the table": lambda: cal.pu.prior_band(table, 0.45, 0.55),
    }
    lines = [
        f"{POSITIVE:.0e} positives and {UNLABELED:.0e} unlabeled rows, float64. One read is `positive.sum() + "
        f"unlabeled.sum()`, {1000 * read:.1f} ms of processor time; reading for the extremes of both takes "
        f"{extremes / read:.2f} of it, `np.sort` of the unlabeled rows {sort / read:.0f}.",
        "",
        "| | CPU s | x one read | x extremes | x sort |",
        "|---|---|---|---|---|",
    ]
    for name, action in cases.items():
        seconds = cpu_seconds(action, repeats=REPEATS)
        lines.append(
            f"| {name} | {seconds:.4f} | {seconds / read:.1f} | {seconds / extremes:.1f} | {seconds / sort:.2f} |"
        )
    lines += [
        "",
        "Of the time of equal-width bins, about half is `np.bincount` (of counts, two rows a step, and of sums); the "
        "rest finds the bins.",
    ]
    write_results("positive_unlabeled", "PU-ECE", "python -m benchmarks.positive_unlabeled", lines)


if __name__ == "__main__":
    main()
