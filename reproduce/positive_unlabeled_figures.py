"""Figures 1 to 3 of the PU-ECE paper, from the rows of positive_unlabeled.csv."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from reproduce.variational_figures import pyplot

Rows = list[list[Any]]

#: What the worlds of the paper are, where their names do not say it.
TITLES = {"less": "less calibrated (error 0.074)", "better": "better calibrated (error 0.023)"}


def stored_rows(path: Path) -> Rows:
    """The rows of the CSV file, as they were measured."""
    with path.open(newline="", encoding="utf8") as file:
        _, *rows = csv.reader(file)
    return [[int(r[0]), r[1], r[2], int(r[3]), *(float(c) if c else "" for c in r[4:])] for r in rows]


def draw_all(rows: Rows, folder: Path, priors: dict[str, float]) -> list[str]:
    """Draw the three figures; the names of the files. Bounds of Figure 3 need the prior of each world."""
    names = []
    for number in (1, 2):
        figure, axes = _panels([row for row in rows if row[0] == number])
        for ax, (world, own) in axes:
            _lines_with_bands(ax, own)
            # Figure 2: the limit of infinitely many unlabeled rows is not drawn as a line: its curves end there
            sizes = np.array(sorted({row[3] for row in own}), float)
            ax.plot(sizes, 0.4 * sizes ** (-1 / 3), "k--", linewidth=0.8, label="N^(-1/3)")
            ax.set(title=TITLES.get(world, world), xlabel="N", xscale="log", yscale="log")
        _finish(axes, "|PU-ECE - TCE|, mean and 90 % band")
        names.append(_saved(figure, folder / f"positive_unlabeled_figure{number}.png"))
    figure, axes = _panels([row for row in rows if row[0] == 3])
    for ax, (world, own) in axes:
        for number, arm in enumerate(dict.fromkeys(row[2] for row in own)):
            some, factor = [row for row in own if row[2] == arm], float(arm.removeprefix("prior x "))
            sizes, mean = [row[3] for row in some], np.array([row[4] for row in some])
            error = np.array([row[5] for row in some])
            (line,) = ax.plot(sizes, mean, marker="o", markersize=2.5, color=f"C{number}", label=f"{factor - 1:+.0%}")
            ax.fill_between(sizes, np.maximum(mean - error, 1e-5), mean + error, color=line.get_color(), alpha=0.2)
        for part, style in ((0.05, ":"), (0.10, "--")):
            ax.axhline(part * priors[world], color="0.4", linestyle=style, linewidth=0.8, label=f"bound, {part:.0%}")
        ax.set(title=TITLES.get(world, world), xlabel="N", xscale="log", yscale="log")
    _finish(axes, "|PU-ECE - TCE|, mean and standard error")
    names.append(_saved(figure, folder / "positive_unlabeled_figure3.png"))
    return names


def _panels(rows: Rows) -> tuple[Any, list[tuple[Any, tuple[str, Rows]]]]:
    worlds = list(dict.fromkeys(row[1] for row in rows))
    figure, axes = pyplot().subplots(
        1, len(worlds), figsize=(3.2 * len(worlds), 3.4), sharey=True, squeeze=False, layout="constrained"
    )
    return figure, [(ax, (w, [r for r in rows if r[1] == w])) for ax, w in zip(axes[0], worlds, strict=True)]


def _lines_with_bands(ax: Any, rows: Rows) -> None:
    """One line per arm; the band where the quantiles were kept."""
    for arm in dict.fromkeys(row[2] for row in rows):
        own = [row for row in rows if row[2] == arm]
        sizes = [row[3] for row in own]
        style = "--" if arm.endswith("equal mass") else "-"
        (line,) = ax.plot(sizes, [row[4] for row in own], style, marker="o", markersize=2.5, label=arm)
        if all(row[6] != "" for row in own):
            low, high = (np.maximum([row[at] for row in own], 1e-5) for at in (6, 7))
            ax.fill_between(sizes, low, high, color=line.get_color(), alpha=0.12, linewidth=0)


def _finish(axes: list[Any], label: str, *, legend: bool = True) -> None:
    first = axes[0][0]
    first.set_ylabel(label)
    if legend:
        first.legend(fontsize=5.5)


def _saved(figure: Any, path: Path) -> str:
    figure.savefig(path, dpi=90, metadata={"Software": None})
    pyplot().close(figure)
    return path.name
