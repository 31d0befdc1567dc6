"""Cells of a simulation that are measured once and kept in a CSV file: what is there already is not measured again."""

from __future__ import annotations

import argparse
import csv
import platform
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal

Row = dict[str, Any]


def measured(
    path: Path, tasks: Iterable[tuple[Any, ...]], keys: tuple[str, ...], measure: Callable[..., Row]
) -> list[Row]:
    """The rows of `path`, after those tasks that are missing were measured and appended one by one."""
    found: list[Row] = []
    if path.exists():
        with path.open(newline="") as file:
            found = list(csv.DictReader(file))
    done = {tuple(row[key] for key in keys) for row in found}
    for task in tasks:
        if tuple(map(str, task)) in done:
            continue
        row = {**dict(zip(keys, task, strict=True)), **measure(*task)}
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            if not file.tell():
                writer.writeheader()
            writer.writerow(row)
        found.append(row)
    return found


def made_with() -> str:
    """The date and the versions, for the first line of a page."""
    import scipy

    python, versions = platform.python_version(), (np.__version__, scipy.__version__, cal.__version__)
    return "{}, Python {}, NumPy {}, SciPy {}, calibrant {}.".format(date.today(), python, *versions)


def asked_samples(description: str | None) -> int:
    """The number of samples per cell that the command line asks for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--samples", type=int, default=100, help="per cell; 0 only writes the page")
    return int(parser.parse_args().samples)


def coverage(truth: float, intervals: list[Any]) -> Row:
    """How often the interval covers, how often each end is on the wrong side, and its median width."""
    return {"truth": round(truth, 5), **coverage_at_once([(one.low, one.high, truth) for one in intervals])}


def coverage_at_once(bands: list[tuple[Any, Any, Any]]) -> Row:
    """The same of bands (low ends, high ends and truths, each a number or an array), which hold at all points or not.

    The width is the median over bands of the mean over points.
    """
    above, below = (
        np.array([np.any(np.asarray(one[k]) * sign > np.asarray(one[2]) * sign) for one in bands])
        for k, sign in ((0, 1), (1, -1))
    )
    width = np.median([np.mean(np.asarray(high) - np.asarray(low)) for low, high, _ in bands])
    return {
        "covered": round(float(np.mean(~(above | below))), 4),
        "low_above": round(float(np.mean(above)), 4),
        "high_below": round(float(np.mean(below)), 4),
        "width": round(float(width), 5),
    }


def markdown(rows: list[Row], columns: tuple[str, ...], worst_first: str | None = None) -> str:
    """A table of these columns, with the lowest values of one of them first."""
    if worst_first is not None:
        rows = sorted(rows, key=lambda row: float(row[worst_first]))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return (
        "\n".join([*lines, *("| " + " | ".join(str(row[column]) for column in columns) + " |" for row in rows)]) + "\n"
    )
