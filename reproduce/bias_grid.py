"""Figures 4 and 6: the bias of seven estimators on ten networks at seven sizes."""

from __future__ import annotations

import csv
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant import simulate as sim
from reproduce import bias_anchors as anchors

WIDTH = cal.EqualWidth(15)
ESTIMATORS = {
    "ew_bin": partial(cal.ece, bins=WIDTH, norm=2),
    "em_bin": partial(cal.ece, norm=2),
    "ew_debias": cal.results.Clipped(partial(cal.debiased_ece, bins=WIDTH, norm=2)),
    "em_debias": cal.results.Clipped(partial(cal.debiased_ece, norm=2)),
    "ew_sweep": partial(cal.sweep_ece, bins=cal.EqualWidth, norm=2),
    "em_sweep": partial(cal.sweep_ece, norm=2),
    "kde": partial(cal.kde_ece, norm=2),
}
#: The name of the curve that the published function of the KDE estimator draws. Derived: it returns the square.
PUBLISHED_KDE = "kde, squared (published)"


def run(worlds: list[sim.World], *, repeats: int, processes: int, cache: Path | None) -> tuple[sim.BiasTable, float]:
    """The table and the seconds it took by the clock."""
    start = time.perf_counter()
    table = sim.bias_table(
        ESTIMATORS, worlds, anchors.SIZES, repeats=repeats, processes=processes, cache=cache, progress=None
    )
    return table, time.perf_counter() - start


def group(name: str) -> str:
    return name.removesuffix(", calibrated").rsplit("_", 1)[1]


def means(table: sim.BiasTable) -> dict[tuple[str, str, int], tuple[float, float]]:
    """Bias in percent and its standard error, per data set, estimator and size."""
    cells: dict[tuple[str, str, int], list[sim.Bias]] = {}
    for row in table:
        cells.setdefault((group(row.world), row.estimator, row.n), []).append(row)
    return {
        key: (
            100 * float(np.mean([row.bias for row in rows])),
            100 * float(np.sqrt(sum(row.bias_se**2 for row in rows))) / len(rows),
        )
        for key, rows in cells.items()
    }


def deviations(
    table: sim.BiasTable, expected: dict[str, dict[str, tuple[float, ...]]]
) -> dict[tuple[str, str, int], float]:
    """(ours - anchor) in standard errors; the anchor's own error follows from its repeats, and it is rounded."""
    found = {}
    for (data, name, n), (value, error) in means(table).items():
        if name not in expected[data]:
            continue
        anchor = expected[data][name][anchors.SIZES.index(n)]
        repeats = next(row.repeats for row in table if row.n == n)
        spread = np.sqrt(error**2 * (1 + repeats / anchors.REPEATS[n]) + 0.005**2 / 3)
        found[data, name, n] = (value - anchor) / spread
    return found


def lines(table: sim.BiasTable, expected: dict[str, dict[str, tuple[float, ...]]]) -> list[str]:
    """A table of biases: ours, and in brackets the distance from the anchor in standard errors."""
    found, away = means(table), deviations(table, expected)
    text = []
    for data, title in anchors.GROUPS.items():
        text += ["", f"| {title} | " + " | ".join(f"n = {n:,}" for n in anchors.SIZES) + " |", "|---" * 8 + "|"]
        for name in ESTIMATORS:
            cells = []
            for n in anchors.SIZES:
                value, error = found[data, name, n]
                note = f" [{away[data, name, n]:+.1f}]" if (data, name, n) in away else f" ± {error:.2f}"
                cells.append(f"{value:+.2f}{note}")
            text.append(f"| {name} | " + " | ".join(cells) + " |")
    distances = np.array(list(away.values()))
    text += [
        "",
        f"{len(distances)} cells: the distances have mean {distances.mean():+.2f} and standard deviation "
        f"{distances.std():.2f} (1 if both simulations are right), the largest is {np.abs(distances).max():.2f}; "
        f"{int((np.abs(distances) > 3).sum())} exceed 3.",
    ]
    return text


def draw(table: sim.BiasTable, path: Path, title: str) -> None:
    """One panel per data set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained", sharey=True)
    for ax, (data, name) in zip(axes, anchors.GROUPS.items(), strict=True):
        part = sim.BiasTable(tuple(row for row in with_published_kde(table) if group(row.world) == data))
        part.plot(ax=ax)
        ax.set_title(name)
        lines, names = ax.get_legend_handles_labels()
        ax.get_legend().remove()
        if ax is not axes[0]:
            ax.set_ylabel("")
    figure.legend(lines, names, loc="outside lower center", ncols=len(names), fontsize="small")
    figure.suptitle(title)
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)


def with_published_kde(table: sim.BiasTable) -> sim.BiasTable:
    """The table, and the KDE curve of Figures 4 and 6: the published function returns the square of ours.

    The mean of the square is the squared mean plus the variance; its spread is that of a linear approximation.
    """
    squared = []
    for row in table.select(estimator="kde"):
        mean, factor = row.mean**2 + row.sd**2, 2 * abs(row.mean)
        known = {"mean": mean, "bias": mean - row.truth, "bias_se": factor * row.bias_se, "sd": factor * row.sd}
        squared.append(replace(row, estimator=PUBLISHED_KDE, **known))
    return sim.BiasTable((*table.rows, *squared))


def stored(path: Path) -> sim.BiasTable:
    """A table as `BiasTable.to_csv` wrote it."""
    with path.open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    words, whole = ("estimator", "world"), ("n", "repeats")
    return sim.BiasTable(
        tuple(
            sim.Bias(**{k: v if k in words else int(v) if k in whole else float(v) for k, v in row.items()})  # type: ignore[arg-type]
            for row in rows
        )
    )


def published_kde_lines(folder: Path) -> list[str]:
    """The KDE curve of Figures 4 and 6 in numbers."""
    lines = [
        "The published KDE function returns the squared error for order 2. The mean of the square is the squared mean "
        "plus the variance of our estimates, so its curve follows from the stored moments and is drawn in both figures "
        f'as "{PUBLISHED_KDE}"; bias in percent of the L2 error.',
        "",
    ]
    for number in (4, 6):
        found = means(with_published_kde(stored(folder / f"figure{number}.csv")))
        sizes = sorted({n for _, name, n in found if name == "kde"})
        lines += [f"| Figure {number}, KDE | " + " | ".join(f"n = {n:,}" for n in sizes) + " |"]
        lines += ["|---" * (len(sizes) + 1) + "|"]
        for data, title in anchors.GROUPS.items():
            for name, words in (("kde", "root (ours)"), (PUBLISHED_KDE, "squared (published)")):
                cells = (f"{found[data, name, n][0]:+.2f}" for n in sizes)
                lines.append(f"| {title}, {words} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines
