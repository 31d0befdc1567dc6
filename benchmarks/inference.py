"""Time of intervals and tests at a million rows, in units of one sort of the scores."""

from __future__ import annotations

from functools import partial

import numpy as np

import calibrant as cal
from benchmarks.measuring import cpu_seconds, write_results
from calibrant.simulate import PAPER_WORLDS, PowerCurve, UniformScores, World

ROWS = 10**6


def lines_of(world: World) -> list[str]:
    data = world.sample(ROWS)
    table = cal.BinTable.of(data, cal.table.HybridGrid())
    sort = cpu_seconds(lambda: np.sort(data.y_prob), 9)
    argsort = cpu_seconds(lambda: np.argsort(data.y_prob), 5)
    actions = {
        "one `np.sort` of the scores": lambda: np.sort(data.y_prob),
        "`Inversion(draws=1000)`, rows": lambda: cal.inference.Inversion(1000).interval(data, norm=1),
        "`Inversion(draws=1000)`, fine table": lambda: cal.inference.Inversion(1000).interval(table, norm=1),
        "`interval(ece)`: 15 equal-width bins and the interval": lambda: cal.interval(
            partial(cal.ece, bins=cal.EqualWidth(15)), data, method=cal.inference.Inversion(1000)
        ),
        "`interval(ece)`: 15 equal-mass bins and the interval": lambda: cal.interval(
            cal.ece, data, method=cal.inference.Inversion(1000)
        ),
        "`IsotonicBand`, rows": lambda: cal.inference.IsotonicBand().interval(data),
        "`ChiSquareMixture`, fine table": lambda: cal.inference.ChiSquareMixture().interval(table),
        "`Bootstrap(draws=1000)` of the Brier score, fine table": lambda: cal.Bootstrap(1000).interval(
            cal.brier, table
        ),
        "`calibration_test` (MultiScale, 999 draws), rows": lambda: cal.calibration_test(data),
    }
    lines = [
        f"Sort {1e3 * sort:.0f} ms, argsort {1e3 * argsort:.0f} ms.",
        "",
        "| | CPU ms | x sort | bar |",
        "|-|-|-|-|",
    ]
    for words, action in actions.items():
        seconds = cpu_seconds(action, 3)
        bar = "3" if "Inversion" in words or "interval(ece)" in words else ""
        lines.append(f"| {words} | {1e3 * seconds:.0f} | {seconds / sort:.1f} | {bar} |")
    return lines


def main() -> None:
    lines = []
    for words, world in (
        ("UniformScores scores", World(UniformScores(), PowerCurve(1.5))),
        ("Scores of a network on CIFAR-10", PAPER_WORLDS["resnet110_c10"]),
    ):
        lines += [f"## {words}, 1e6 rows", "", *lines_of(world), ""]
    write_results("inference", "Intervals and tests at a million rows", "python -m benchmarks.inference", lines)


if __name__ == "__main__":
    main()
