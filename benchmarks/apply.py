"""`calibrant apply` on a Parquet file of ten columns, against DuckDB copying the same file: time and memory.

Run with python -m benchmarks.apply [rows]; writes benchmarks/results/apply.md.
"""

from __future__ import annotations

import datetime
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "apply.md"
COLUMNS = """i AS id, random() AS p, (random() < 0.5)::TINYINT AS y, random() AS x, random()::FLOAT AS single,
    'user-' || (i % 100000) AS name, ['at', 'de', 'dk', 'se'][1 + (i % 4)::INT] AS country,
    TIMESTAMP '2026-01-01' + INTERVAL (i) SECOND AS at, (random() * 1000)::DECIMAL(10, 2) AS amount,
    i % 3 = 0 AS flag"""
COPY = "import duckdb, sys\nduckdb.sql(f\"COPY (SELECT * FROM '{sys.argv[1]}') TO '{sys.argv[2]}'\")"
#: A process says its own peak, of which the system's account of children also holds that of its parent.
PEAK = """import atexit, pathlib, sys
def peak():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    print("peak", next(line.split()[1] for line in lines if line.startswith("VmHWM")))
atexit.register(peak)
"""
APPLY = "from calibrant.cli import main\nmain()"


def measured(code: str, *arguments: str) -> tuple[float, float, float]:
    """Seconds on the clock and of the processor, and megabytes at most, of a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", PEAK + code, *arguments], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = int(done.stdout.split("peak")[-1]) / 1024
    return time.perf_counter() - start, cpu, peak


def main(rows: int = 10_000_000, repeats: int = 3) -> None:
    import duckdb
    import pyarrow

    import calibrant as cal

    lines = []
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        p = rng.random(2000)
        cal.recalibrate.Beta().fit(p, rng.random(2000) < p**2).save(f"{folder}/map.json")
        for size in (122_880, 1_048_576):
            groups, option = f"{size:,} rows a group", f", ROW_GROUP_SIZE {size}"
            source = f"{folder}/scores.parquet"
            duckdb.sql(f"COPY (SELECT {COLUMNS} FROM range({rows}) t(i)) TO '{source}' (FORMAT parquet{option})")
            found: dict[str, list[tuple[float, float, float]]] = {"copy": [], "apply": []}
            for _ in range(repeats):  # in turn, so that other load falls on both
                found["copy"].append(measured(COPY, source, f"{folder}/copy.parquet"))
                apply = (
                    "apply",
                    f"{folder}/map.json",
                    source,
                    "--prob",
                    "p",
                    "-o",
                    f"{folder}/fixed.parquet",
                    "--force",
                )
                found["apply"].append(measured(APPLY, *apply))
            best = {name: np.min(runs, axis=0) for name, runs in found.items()}
            clock, cpu, _ = best["apply"] / best["copy"]
            lines.append(
                f"| {groups} | {best['copy'][0]:.1f} s ({best['copy'][1]:.1f} s) | {best['apply'][0]:.1f} s "
                f"({best['apply'][1]:.1f} s) | {clock:.2f} ({cpu:.2f}) | {best['copy'][2]:.0f} MB | "
                f"{best['apply'][2]:.0f} MB |"
            )
            print(lines[-1], flush=True)
    versions = f"DuckDB {duckdb.__version__}, pyarrow {pyarrow.__version__}, Python {platform.python_version()}"
    text = f"""# Recalibrating a file

`calibrant apply` reads a Parquet file of {rows:,} rows and ten columns (numbers, text, times, decimals), maps one
column of probabilities, and writes all columns and the new one; DuckDB copies the same file. Each is a process of its
own, start of the interpreter included; the best of {repeats} runs in turn; seconds on the clock, those of the processor
in brackets.

| file | copy by DuckDB | apply | ratio | memory of the copy | memory of apply |
|---|---|---|---|---|---|
{chr(10).join(lines)}

{datetime.date.today()}, {versions}. Required: at most 3 times as long as the copy, and 500 MB.
"""
    RESULTS.write_text(text)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
