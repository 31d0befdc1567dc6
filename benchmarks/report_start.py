"""The command line on ten thousand rows: processor seconds of a fresh process, most of them imports.

    OMP_NUM_THREADS=1 python -m benchmarks.report_start

takes the median of several runs. Bytecode is compiled before, as it is after an installation.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

import calibrant as cal
from benchmarks.measuring import write_results
from benchmarks.report import measured
from benchmarks.report_sections import world

ROWS, RUNS = 10_000, 5


def write_files(folder: Path) -> None:
    data = world(ROWS)
    table = pa.table({"y": data.y_true.astype(np.int8), "p": data.y_prob})
    csv.write_csv(table, folder / "scores.csv")
    parquet.write_table(table, folder / "scores.parquet")


def commands(folder: Path) -> dict[tuple[str, ...], float]:
    """The arguments of each command, and the processor seconds it may take."""
    reports = {("report", str(folder / f"scores.{kind}"), "-o", str(folder / f"{kind}.html"), "--force"): 2.5
               for kind in ("csv", "parquet")}  # fmt: skip
    return {("--help",): 0.4, **reports}


def main() -> None:
    lines = [
        f"Processor seconds of a fresh process: median of {RUNS} runs, and the least. Files of {ROWS:,} rows.",
        "",
        "| command | median s | least s | bar s |",
        "|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        write_files(Path(folder))
        for arguments, bar in commands(Path(folder)).items():
            seconds = [measured(*arguments)[0] for _ in range(RUNS + 1)][1:]
            shown = " ".join(Path(word).name for word in arguments)
            lines.append(f"| `calibrant {shown}` | {statistics.median(seconds):.2f} | {min(seconds):.2f} | {bar} |")
    title = "The command line in a fresh process"
    write_results("report_start", title, "python -m benchmarks.report_start", lines, calibrant=cal.__version__)


if __name__ == "__main__":
    main()
