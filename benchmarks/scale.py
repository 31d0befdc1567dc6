"""Scale: the fine table against the pure scan, Spark SQL and torchmetrics, each pair in one run.

    python benchmarks/scale.py --rows 1e8 --spark-rows 1e7 --peers /path/to/python-with-torchmetrics

Writes benchmarks/results/scale.md. Ratios of CPU seconds are what counts: wall times depend on who else is there.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SCAN = "import duckdb; duckdb.connect().execute('select sum(p), sum(y) from read_parquet(?)', [{path!r}]).fetchall()"
TABLE = "from calibrant.scale import bin_table; bin_table({path!r}, y_true='y', y_prob='p').save({out!r})"
#: The high-water mark of this program alone; ru_maxrss would include the parent before exec.
RSS = "; print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"

REPORT = "import calibrant as cal; found = cal.report(cal.BinTable.load({table!r}))"
PAGE = REPORT + "; found.save({page!r})"

SPARK_SQL = """
SELECT CAST(floor(p * 32768D + (ln((p + 8.533047625744066D-17) / ((1 - p) + 8.533047625744066D-17))
       * 442.810810810368D - 16384D)) AS SMALLINT) AS cell,
       count(*), sum(p), sum(y), sum(p * p), sum(p * y), min(p), max(p)
FROM (SELECT CAST(p AS DOUBLE) AS p, CAST(y AS DOUBLE) AS y FROM rows WHERE p >= 0 AND p <= 1 AND y IN (0, 1))
GROUP BY 1
"""

TORCHMETRICS = """
import sys, time, warnings; warnings.simplefilter("ignore")
import torch; torch.set_num_threads(1)
from torchmetrics.classification import BinaryCalibrationError
n, batch, repeat = map(int, sys.argv[1:])
torch.manual_seed(0); p = torch.rand(n) ** 2; y = (torch.rand(n) < p).int()
best = float("inf")
for _ in range(repeat):
    start = time.process_time()
    metric = BinaryCalibrationError(n_bins=15, norm="l1")
    for i in range(0, n, batch): metric.update(p[i:i + batch], y[i:i + batch])
    metric.compute()
    best = min(best, time.process_time() - start)
print(best)
"""

OURS = """
import sys, time
import numpy as np, calibrant as cal
from calibrant.scale import StreamingTable
n, batch, repeat = map(int, sys.argv[1:])
rng = np.random.default_rng(0); p = rng.random(n, dtype=np.float32) ** 2; y = (rng.random(n) < p).astype(np.int32)
best = float("inf")
for _ in range(repeat):
    start = time.process_time()
    stream = StreamingTable()
    for i in range(0, n, batch): stream.update(y[i:i + batch], p[i:i + batch])
    cal.ece(stream.table())
    best = min(best, time.process_time() - start)
print(best)
"""


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=float, default=1e8)
    options.add_argument("--spark-rows", type=float, default=1e7)
    options.add_argument("--stream-rows", type=float, default=1e7)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--peers", default="")
    options.add_argument("--out", default=str(HERE / "results" / "scale.md"))
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows, table = f"{folder}/rows.parquet", f"{folder}/table.parquet"
        write_rows(rows, int(given.rows))
        section, seconds = scan_section(rows, table, int(given.rows), given.repeat)
        sections = [section, report_section(table, f"{folder}/report.html", seconds, given.repeat)]
        if given.peers:
            sections.append(streaming_section(given.peers, int(given.stream_rows), given.repeat))
        if given.spark_rows:
            small = f"{folder}/small.parquet"
            write_rows(small, int(given.spark_rows))
            sections.append(spark_section(small, int(given.spark_rows), given.repeat))
    Path(given.out).write_text("\n".join([heading(), *sections]), encoding="utf8")


def write_rows(path: str, n: int) -> None:
    """Skewed scores in single precision, calibrated but for a wave; outcomes as int8."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    rng = np.random.default_rng(0)
    with ParquetWriter(path, pa.schema({"p": pa.float32(), "y": pa.int8()})) as writer:
        for start in range(0, n, 5_000_000):
            p = rng.beta(0.6, 2.4, min(5_000_000, n - start)).astype(np.float32)
            y = (rng.random(len(p)) < p + 0.03 * np.sin(12 * p) * p * (1 - p)).astype(np.int8)
            writer.write_table(pa.table({"p": p, "y": y}), row_group_size=1_000_000)


def heading() -> str:
    names = ("calibrant", "numpy", "duckdb", "narwhals", "pyarrow", "pyspark")
    found = ", ".join(f"{name} {_version(name)}" for name in names)
    return (
        f"# Scale\n\n{date.today()}, Python {sys.version.split()[0]}, {os.cpu_count()} cores that other work shares; "
        f"{found}.\nLoad average {os.getloadavg()[1]:.0f} at the end; contention for caches slows sorting and grouping "
        "more than scanning.\nMade by `python benchmarks/scale.py`. Minima of several runs; CPU seconds of whole "
        "processes.\n"
    )


def scan_section(path: str, out: str, n: int, repeat: int) -> tuple[str, float]:
    found: dict[str, list[tuple[float, float]]] = {"scan": [], "table": []}
    for _ in range(repeat):
        found["scan"].append(measured(SCAN.format(path=path)))
        found["table"].append(measured(TABLE.format(path=path, out=out)))
    scan, table = (min(seconds for seconds, _ in found[name]) for name in ("scan", "table"))
    start = min(measured("import duckdb")[0] for _ in range(repeat))
    peak = max(memory for _, memory in found["table"])
    size = Path(path).stat().st_size / 1e6
    text = (
        f"\n## Fine table with DuckDB: {n:_} rows, Parquet of {size:.0f} MB (float32 p, int8 y)\n\n"
        f"| | CPU s | x scan | bar | peak MB | bar |\n|-|-|-|-|-|-|\n"
        f"| scan `sum(p), sum(y)` | {scan:.2f} | 1 | | {max(memory for _, memory in found['scan']):.0f} | |\n"
        f"| `bin_table(path)`, all sums, lowest and highest score | {table:.2f} | {table / scan:.1f} | 9 | {peak:.0f} "
        f"| 400 |\n\nWhole processes, start-up and imports included in both (importing DuckDB alone: {start:.2f} s).\n"
    )
    return text, table


def report_section(path: str, page: str, seconds: float, repeat: int) -> str:
    """The whole report in a process of its own, then every public function that takes this table, in turn."""
    import calibrant as cal

    table = cal.BinTable.load(path)
    whole = {
        name: min(measured(code.format(table=path, page=page))[0] for _ in range(repeat))
        for name, code in (("report", REPORT), ("page", PAGE))
    }
    lines = [
        f"| reading the table, `report` with all estimators, interval, test | {whole['report']:.2f} | {seconds:.2f} |",
        f"| the same and its page as HTML | {whole['page']:.2f} | {seconds:.2f} |",
    ]
    bound = table.error_bound(cal.EqualMass(15))
    return (
        f"\n## From the table ({len(table):_} cells) to results\n\nThe bound on the ECE in 15 bins of equal mass is "
        f"{bound:.1e}.\n\n| whole processes, imports included | CPU s | bar: the pass above |\n|-|-|-|\n"
        + "\n".join(lines)
        + "\n\nOne by one, in one process after the imports; first calls.\n\n| | CPU s |\n|-|-|\n"
        + "\n".join(f"| `{name}` | {spent:.3f} |" for name, spent in one_by_one(table))
        + "\n"
    )


def one_by_one(table: object) -> list[tuple[str, float]]:
    """CPU seconds of every public function that takes this table, and their sum."""
    import calibrant as cal
    import calibrant.inference
    import calibrant.recalibrate  # so that imports are not counted

    work = {
        name: getattr(cal, name)
        for name in cal.__all__
        if name.islower() and name not in {"report", "assert_calibrated"} and callable(getattr(cal, name))
    }
    work["interval(ece)"] = lambda given: cal.interval(cal.ece, given)
    work["interval(variational_error)"] = lambda given: cal.interval(cal.variational_error, given)
    lines = []
    for name, function in work.items():
        start = time.process_time()
        try:
            function(table)
        except (TypeError, ValueError):  # it wants more, or another kind of table
            continue
        lines.append((name, time.process_time() - start))
    return [*lines, ("sum", sum(spent for _, spent in lines))]


def streaming_section(peers: str, n: int, repeat: int) -> str:
    lines = []
    for batch in (1_000, 10_000, 100_000):
        theirs, ours = [], []
        for _ in range(2):
            theirs.append(printed([peers, "-c", TORCHMETRICS, str(n), str(batch), str(repeat)]))
            ours.append(printed([sys.executable, "-c", OURS, str(n), str(batch), str(repeat)]))
        a, b = min(theirs) * 1e9 / n, min(ours) * 1e9 / n
        lines.append(f"| {batch:_} | {a:.1f} | {b:.1f} | {a / b:.1f} | 5 |")
    return (
        f"\n## StreamingTable against torchmetrics: {n:_} rows, update of all batches, then one result\n\n"
        "ns per row; `BinaryCalibrationError` of torchmetrics with its defaults and 15 bins. Minima of two processes "
        f"each, in turn, with {repeat} runs.\n\n"
        "| rows per update | torchmetrics | `StreamingTable` | ratio | bar |\n"
        "|-|-|-|-|-|\n"
        + "\n".join(lines)
        + "\n\nOne thread each, CPU time. torchmetrics keeps all rows; the stream keeps its cells and a buffer of 2^23 "
        "rows.\n"
    )


def spark_section(path: str, n: int, repeat: int) -> str:
    from pyspark.sql import SparkSession

    from calibrant.scale import bin_table

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    frame = spark.read.parquet(path)
    frame.createOrReplaceTempView("rows")
    machine = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    theirs, ours = [], []
    for _ in range(repeat + 1):
        theirs.append(cpu_of(machine, lambda: spark.sql(SPARK_SQL).toArrow()))
        ours.append(cpu_of(machine, lambda: bin_table(frame, y_true="y", y_prob="p")))
    spark.stop()
    a, b = min(theirs[1:]), min(ours[1:])
    return (
        f"\n## Spark `local[2]`: {n:_} rows\n\n| | CPU s (JVM and Python) | ratio | bar |\n|-|-|-|-|\n"
        f"| the same aggregation in Spark SQL | {a:.2f} | 1 | |\n| `bin_table(frame)` | {b:.2f} | {b / a:.2f} | 1.3 |\n"
    )


def measured(code: str) -> tuple[float, float]:
    """CPU seconds of a fresh process and its children, and its peak memory in MB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = printed([sys.executable, "-c", code + RSS])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak / 1024


def printed(command: list[str]) -> float:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout.split()[-1])


def cpu_of(process: int, work: object) -> float:
    def spent() -> float:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()

    start = spent()
    work()  # type: ignore[operator]
    return spent() - start


def _version(name: str) -> str:
    try:
        return version(name)
    except ImportError:
        import calibrant

        return calibrant.__version__


if __name__ == "__main__":
    main()
