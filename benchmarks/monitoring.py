"""The monitor against other detectors of change on the same streams: false alarms, days until the alarm, time, size."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

import calibrant as cal
from benchmarks.measuring import cpu_seconds, run_peer, write_results

STREAMS, CHANGE, AFTER, ROWS = 20, 150, 250, 100

#: Streams of 100 rows a day whose true log odds change on day 150; run by this process and by the peers' alike.
WORLD = """
import numpy as np
def drift(kind, x, group):
    if kind == "shift +0.3": return x + 0.3
    if kind == "slope 0.7": return 0.7 * (x + 1.5) - 1.5
    if kind == "top 5 % of scores -1": return x - 1.0 * (x > 0.474)
    if kind == "one group of ten +0.6": return x + 0.6 * (group == 3)
    return x
def stream(kind, seed, days, change, rows):
    rng = np.random.default_rng([60, seed])
    for day in range(days):
        x, group = rng.normal(-1.5, 1.2, rows), rng.integers(0, 10, rows)
        true = drift(kind, x, group) if day >= change else x
        yield (rng.random(rows) < 1 / (1 + np.exp(-true))).astype(int), 1 / (1 + np.exp(-x)), group
"""
PEER = (
    WORLD
    + """
import json, sys
import river
from river import drift as detectors
kind, streams, change, after, rows = json.loads(sys.argv[1])
made = {
    "ADWIN on residuals": (detectors.ADWIN, lambda y, p: y - p),
    "ADWIN on squared errors": (detectors.ADWIN, lambda y, p: (y - p) ** 2),
    "Page-Hinkley on residuals": (detectors.PageHinkley, lambda y, p: y - p),
}
found = {name: [] for name in made}
for seed in range(streams):
    watching = {name: (make(), value) for name, (make, value) in made.items()}
    for day, (y, p, _) in enumerate(stream(kind, seed, change + after, change, rows)):
        for name, (detector, value) in list(watching.items()):
            for one in value(y, p):
                detector.update(float(one))
                if detector.drift_detected:
                    found[name].append(day); del watching[name]
                    break
        if not watching: break
    for name in watching: found[name].append(None)
print(json.dumps({"version": river.__version__, "alarms": found}))
"""
)
KINDS = ("calibrated", "shift +0.3", "slope 0.7", "top 5 % of scores -1", "one group of ten +0.6")

names: dict[str, object] = {}
exec(WORLD, names)


def ours(kind: str, *, tolerance: float, by: bool) -> list[int | None]:
    """The day of each stream's first alarm."""
    alarms: list[int | None] = []
    for seed in range(STREAMS):
        monitor, alarm = cal.Monitor(tolerance=tolerance), None
        rows = names["stream"](kind, seed, CHANGE + AFTER, CHANGE, ROWS)  # type: ignore[operator]
        for day, (y, p, group) in enumerate(rows):
            if monitor.update(y, p, time=day, group=group if by else None).alarm:
                alarm = day
                break
        alarms.append(alarm)
    return alarms


def cell(alarms: list[int | None]) -> str:
    """Median days from the change to the alarm, the share found, and the share of alarms before the change."""
    early = sum(day is not None and day < CHANGE for day in alarms)
    days = [np.inf if day is None else day - CHANGE + 1 for day in alarms if day is None or day >= CHANGE]
    found = np.isfinite(days).mean() if days else 0.0
    median = f"{np.median(days):.0f}" if days and np.isfinite(np.median(days)) else f"over {AFTER}"
    return f"{median} ({found:.0%}; {early / len(alarms):.0%})"


def cost_lines() -> list[str]:
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-rng.normal(-1.5, 1.2, 10**6)))
    y = rng.random(10**6) < p
    monitor = cal.Monitor()
    for day in range(365):
        monitor.update(y[1000 * day : 1000 * (day + 1)], p[1000 * day : 1000 * (day + 1)], time=day)
    daily = cpu_seconds(lambda: monitor.update(y[:1000], p[:1000], time=365), 9)
    whole = cpu_seconds(lambda: cal.Monitor().update(y, p), 3)
    read = cpu_seconds(lambda: (p.sum(), y.sum()))
    groups = cal.Monitor()
    for day in range(30):
        some = slice(10_000 * day, 10_000 * (day + 1))
        groups.update(y[some], p[some], time=day, group=np.arange(10_000) % 1000)
    with tempfile.TemporaryDirectory() as folder:
        sizes = []
        for one in (monitor, groups):
            one.save(Path(folder) / "state.json")
            sizes.append((Path(folder) / "state.json").stat().st_size)
    return [
        "| what | measured | bar |",
        "|---|---|---|",
        f"| 1e6 rows in one delivery, CPU s (times reading them) | {whole:.2f} ({whole / read:.0f}) | 0.5 |",
        f"| a delivery of 1,000 rows after a year, CPU ms | {1000 * daily:.1f} | 5 |",
        f"| state after a year, kB | {sizes[0] / 1000:.0f} | 100 |",
        f"| state for each of 1,000 groups after 30 days of 10 rows each, kB | {(sizes[1] - sizes[0]) / 1e6:.1f} | 5 |",
    ]


def main() -> None:
    columns: dict[str, dict[str, str]] = {}
    version = "not installed"
    for kind in KINDS:
        columns.setdefault("monitor, tolerance 0", {})[kind] = cell(ours(kind, tolerance=0.0, by=False))
        columns.setdefault("monitor, tolerance 0.1", {})[kind] = cell(ours(kind, tolerance=0.1, by=False))
        if "group" in kind or kind == "calibrated":
            columns.setdefault("monitor, tolerance 0, by group", {})[kind] = cell(ours(kind, tolerance=0.0, by=True))
        peer = run_peer(PEER, json.dumps([kind, STREAMS, CHANGE, AFTER, ROWS]))
        if peer is not None:
            version = str(peer["version"])
            for name, alarms in peer["alarms"].items():  # type: ignore[attr-defined]
                columns.setdefault(name, {})[kind] = cell(alarms)
    lines = [
        f"{STREAMS} streams of {ROWS} rows a day, a change on day {CHANGE}. Each cell: median days to the alarm (share "
        f"found within {AFTER} days; share of false alarms before the change). Detectors of river with their defaults.",
        "",
        "| detector | " + " | ".join(KINDS) + " |",
        "|---|" + "---|" * len(KINDS),
        *(f"| {name} | " + " | ".join(found.get(kind, "") for kind in KINDS) + " |" for name, found in columns.items()),
        "",
        *cost_lines(),
    ]
    write_results(
        "monitoring", "The monitor against other detectors", "make bench TOPICS=monitoring", lines, river=version
    )


if __name__ == "__main__":
    main()
