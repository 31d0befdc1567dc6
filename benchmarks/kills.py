"""Kill processes while they write: is the file they replace the old one or the new one, whole, every time?

Run with python -m benchmarks.kills [number]; writes benchmarks/results/kills.md. Each kind of file (a map, a boosted
map, a file of tables, a table with recalibrated columns) is written over and over by a process of its own, which is
killed (SIGKILL) at a random moment; the file is then loaded and must be one of the two that were written in turn. One
kind reads standard input and is told to end (SIGTERM, SIGHUP): its copy of standard input must then be gone.
"""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

#: Seconds until a kill, at most.
LONGEST = 0.3
RESULTS = Path(__file__).parent / "results" / "kills.md"

#: What each process sets up: `write(which)` writes file number 0 or 1 to `path`. Then it writes them in turn for ever.
SETUP = """
import itertools, sys
from pathlib import Path
import numpy as np
import calibrant as cal
path = Path(sys.argv[1])
rng = np.random.default_rng(0)
p = rng.random(4000)
y = [rng.random(4000) < p**2, rng.random(4000) < p**3]
"""
#: For each line on standard input a child is forked that writes the two files in turn until it is killed.
LOOP = """
import os, signal
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` ignores it
asked = sys.stdin
write(0)
print("written", flush=True)
asked.readline()
write(1)
print("written", flush=True)
while asked.readline():
    child = os.fork()
    if not child:
        for which in itertools.cycle((0, 1)):
            write(which)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("killed", flush=True)
write(0)
"""
WRITERS = {
    "save": "maps = [cal.recalibrate.Isotonic().fit(p, one) for one in y]\ndef write(k): maps[k].save(path)\n",
    "save of a boosted map": (
        "maps = [cal.recalibrate.CatBoost(trees=20, folds=3).fit(p, one) for one in y]\n"
        "def write(k): maps[k].save(path)\n"
    ),
    "save_tables": (
        "tables = [{g: cal.BinTable.of(cal.Binary(one, p), cal.table.HybridGrid()) for g in 'abcdef'} for one in y]\n"
        "def write(k): cal.table.save_tables(tables[k], path)\n"
    ),
    "apply": (
        "from calibrant.cli.apply import apply_to_file\n"
        "from calibrant.cli.columns import Columns\n"
        "import pyarrow as pa, pyarrow.parquet as pq\n"
        "source = str(path.parent / 'source.parquet')\n"
        "pq.write_table(pa.table({'id': np.arange(200_000), 'p': rng.random(200_000)}), source)\n"
        "maps = [cal.recalibrate.Platt().fit(p, one) for one in y]\n"
        "def write(k): apply_to_file(maps[k], source, path, Columns(prob=('p',)), suffix='_new')\n"
    ),
}
WRITERS["apply to standard input"] = WRITERS["apply"].replace(
    "apply_to_file(maps[k], source,",
    "sys.stdin = open(source); apply_to_file(maps[k], '-',",
)
ENDINGS = {"save": ".json", "save of a boosted map": ".json", "save_tables": ".parquet"}
#: How processes are ended, in turn; SIGKILL unless said here.
SIGNALS = {"apply to standard input": (signal.SIGTERM, signal.SIGHUP)}
#: What is counted of the copies of standard input.
COPIES = "copies of standard input left"


def fingerprint(kind: str, path: Path) -> tuple[float, ...]:
    """A few numbers of a file, for which all of it must be read."""
    import calibrant as cal

    if kind == "save_tables":
        return tuple(float(table.sums.sum()) for table in cal.table.load_tables(path).values())
    if kind.startswith("apply"):
        import pyarrow.parquet as pq

        return tuple(float(np.sum(pq.read_table(path)[name])) for name in ("id", "p", "p_new"))
    return tuple(cal.recalibrate.load(path).predict_proba(np.linspace(0, 1, 9))[:, 1].tolist())


def killed(kind: str, folder: Path, number: int, rng: np.random.Generator) -> Counter[str]:
    """How often the file was whole, and what else was in the folder, after `number` kills."""
    path = folder / f"written{ENDINGS.get(kind, '.parquet')}"
    (temporary := folder / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    signals = SIGNALS.get(kind, (signal.SIGKILL,))
    found: Counter[str] = Counter()
    known: set[tuple[float, ...]] = set()
    command = [sys.executable, "-c", SETUP + WRITERS[kind] + LOOP, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:

        def ask() -> str:
            print(file=process.stdin, flush=True)
            return process.stdout.readline()  # type: ignore[union-attr]

        process.stdout.readline()  # type: ignore[union-attr]
        known.add(fingerprint(kind, path))
        ask()
        known.add(fingerprint(kind, path))
        for turn in range(number):
            child = int(ask())
            time.sleep(float(rng.uniform(0, LONGEST)))
            os.kill(child, signals[turn % len(signals)])
            process.stdout.readline()  # type: ignore[union-attr]
            try:
                found["whole" if fingerprint(kind, path) in known else "another"] += 1
            except Exception as error:
                found[f"broken: {type(error).__name__}"] += 1
            found["with a part left behind"] += bool(list(folder.glob(".*.part")))
            found[COPIES] += len(list(temporary.glob("*/standard-input*")))
        process.communicate()
    found["parts after the next write"] = len(list(folder.glob(".*.part")))
    return found


def main(number: int = 200, say: Callable[[str], None] = print) -> dict[str, Counter[str]]:
    rng = np.random.default_rng(0)
    each = -(-number // len(WRITERS))
    results = {}
    for kind in WRITERS:
        with tempfile.TemporaryDirectory() as folder:
            results[kind] = killed(kind, Path(folder), each, rng)
        say(f"{kind}: {dict(results[kind])}")
    return results


def write_results(results: dict[str, Counter[str]]) -> None:
    columns = ("whole", "with a part left behind", "parts after the next write", COPIES)
    lines = [
        f"| {kind} | {sum(found[key] for key in found if key not in columns[1:])} | "
        + " | ".join(str(found[column]) for column in columns)
        + " |"
        for kind, found in results.items()
    ]
    text = f"""# Kills while files are written

A process writes two files in turn over the same name and is killed (SIGKILL) within {LONGEST} s; the file must then be
one of the two, whole. A killed process leaves its temporary file; the next write of the same name removes it. The one
that reads standard input is told to end (SIGTERM, SIGHUP) and leaves no copy of it.

| what is written | kills | whole file | temporary file left | left after the next write | copies of standard input |
|---|---|---|---|---|---|
{chr(10).join(lines)}

{datetime.date.today()}, python -m benchmarks.kills.
"""
    RESULTS.write_text(text)


if __name__ == "__main__":
    write_results(main(*map(int, sys.argv[1:])))
