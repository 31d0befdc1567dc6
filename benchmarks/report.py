"""The command line on ten million rows: processor seconds and the most memory it ever held."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cal
from benchmarks.measuring import write_results

ROWS, PART = 10**7, 10**6

CHILD = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def write_rows(path: Path) -> None:
    rng = np.random.default_rng(0)
    schema = pa.schema([("y", pa.int8()), ("p", pa.float32()), ("country", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(ROWS // PART):
            p = rng.random(PART, dtype=np.float32)
            y = (rng.random(PART) < p**1.2).astype(np.int8)
            country = np.array(["at", "de", "fr", "it"])[rng.integers(0, 4, PART)]
            writer.write_table(pa.table([y, p, country], schema=schema))


def measured(*arguments: str) -> tuple[float, float]:
    """Processor seconds and megabytes of `calibrant` with these arguments, in a process of its own."""
    command = [sys.executable, "-c", CHILD, sys.executable, "-m", "calibrant", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory


def main() -> None:
    lines = [
        f"A Parquet file of {ROWS:.0e} rows. The bar is 1 GB of memory.",
        "",
        "| command | CPU s | peak MB |",
        "|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.parquet"
        write_rows(file)
        for arguments in (
            ("measure", str(file)),
            ("test", str(file)),
            ("report", str(file), "-o", str(Path(folder) / "report.html")),
            ("report", str(file), "--by", "country", "-o", str(Path(folder) / "groups.html")),
        ):
            seconds, memory = measured(*arguments)
            shown = " ".join(Path(word).name for word in arguments)
            lines.append(f"| `calibrant {shown}` | {seconds:.1f} | {memory:.0f} |")
    title = "The command line on a large file"
    write_results("report", title, "python -m benchmarks.report", lines, calibrant=cal.__version__)


if __name__ == "__main__":
    main()
