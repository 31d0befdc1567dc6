"""Loops over rows, in NumPy and compiled, as multiples of reading or sorting the same arrays in the same run.

python -m benchmarks.fast [rows]        needs calibrant[fast]; CALIBRANT_FAST is set by the script
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

import numba
import numpy as np
from sklearn.calibration import calibration_curve

import calibrant as cal
from benchmarks.peers import write_results
from calibrant.numerics import switch
from calibrant.table.binning import HybridGrid, LogGrid
from calibrant.table.from_rows import cut_rows

ROUNDS = 7
FIFTEEN = cal.EqualWidth(15)


def fast(setting: str, action: Callable[[], object]) -> Callable[[], object]:
    """The action with the compiled loops on or off."""

    def run() -> object:
        os.environ["CALIBRANT_FAST"] = setting
        return action()

    return run


def least(
    actions: dict[str, Callable[[], object]], rounds: int = ROUNDS, clock: Callable[[], float] = time.process_time
):
    """The least time of each action, taken in turns, since other work shares the machine."""
    best = dict.fromkeys(actions, np.inf)
    for action in actions.values():
        action()
    for _ in range(rounds):
        for name, action in actions.items():
            start = clock()
            action()
            best[name] = min(best[name], clock() - start)
    return best


def scores(kind: str, n: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = (rng.random(n) if kind == "uniform" else rng.beta(1.1, 0.1, n)).astype(dtype)
    return p, rng.random(n) < p


def held(value: float, bar: float) -> str:
    return f"{value:.2f}" if value <= bar else f"**{value:.2f}**"


def both(action: Callable[[], object]) -> dict[str, Callable[[], object]]:
    return {"NumPy": fast("off", action), "compiled": fast("on", action)}


def grid(row: Callable[[str, str], list[str]]) -> list[str]:
    """The lines of uniform and skewed scores, in double and single precision."""
    return [line for kind in ("uniform", "skewed") for dtype in ("f8", "f4") for line in row(kind, dtype)]


def equal_width_lines(n: int) -> list[str]:
    def compared(kind: str, dtype: str, p: np.ndarray, y: np.ndarray) -> str:
        found = least({"read": lambda: (p.sum(), y.sum()), **both(lambda: cal.ece(y, p, bins=FIFTEEN))})
        curve = least({"curve": lambda: calibration_curve(y, p, n_bins=15)}, 1)["curve"]
        bars = {"NumPy": 10.0, "compiled": 5.5} if dtype == "f4" else {"NumPy": 8.0, "compiled": 4.0}
        cells = [held(found[way] / found["read"], bar) for way, bar in bars.items()]
        cells += [f"{curve / found[way]:.1f} x" for way in bars]
        return f"| {kind} | {dtype} | {y.dtype.str[1:]} | {' | '.join(cells)} |"

    def row(kind: str, dtype: str) -> list[str]:
        p, outcome = scores(kind, n, dtype)
        return [compared(kind, dtype, p, outcome.astype(label)) for label in ("i1", "i8")]

    return [
        f"## ECE of {n:.0e} rows, 15 bins of equal width, checks included",
        "",
        "Multiples of `p.sum() + y.sum()`; bars 8 (float32 10) in NumPy and 4 (5.5) compiled; times as fast as "
        "scikit-learn's `calibration_curve`, bar 7 compiled. What misses its bar is bold.",
        "",
        "| scores | p | y | NumPy | compiled | scikit-learn slower, NumPy | compiled |",
        "|---|---|---|---|---|---|---|",
        *grid(row),
        "",
        *thread_lines(n),
    ]


def thread_lines(n: int) -> list[str]:
    """Wall time of two threads; meaningful where nobody else uses the second processor."""
    p, outcome = scores("skewed", n, "f8")
    y, limit = outcome.astype("i1"), switch.thread_limit
    wall = {}
    for threads in (1, 2):
        switch.thread_limit = lambda t=threads: t
        action = fast("on", lambda: cal.ece(y, p, bins=FIFTEEN))
        wall[threads] = least({"ece": action}, 2 * ROUNDS, time.perf_counter)["ece"]
    switch.thread_limit = limit
    return [f"Two threads take {held(wall[2] / wall[1], 0.75)} of the wall time of one (bar 0.75)."]


def table_lines(n: int) -> list[str]:
    def row(kind: str, dtype: str) -> list[str]:
        p, outcome = scores(kind, n, dtype)
        data = cal.Binary(outcome, p)
        read = {"read": lambda: (p.sum(), data.y_true.sum())}
        found = least({**read, **both(lambda: cal.BinTable.of(data, HybridGrid()))}, 3)
        cells = (held(found["NumPy"] / found["read"], 20), held(found["compiled"] / found["read"], 13.5))
        return [f"| hybrid grid, {kind} {dtype} | {' | '.join(cells)} | 20, 13.5 |"]

    return [
        "",
        f"## Other tables of {n:.0e} rows",
        "",
        "Multiples of reading the columns, int8 labels. The bars are for NumPy and compiled.",
        "",
        "| table | NumPy | compiled | bars |",
        "|---|---|---|---|",
        *grid(row),
        unlabeled_line(n),
        spread_line(n // 4),
    ]


def unlabeled_line(n: int) -> str:
    p, _ = scores("skewed", n, "f8")
    data = cal.PositiveUnlabeled(p[: n // 10], p, prior=0.5)
    read = {"read": lambda: (p[: n // 10].sum(), p.sum())}
    found = least({**read, **both(lambda: cal.ece(data, bins=FIFTEEN))})
    cells = (f"{found['NumPy'] / found['read']:.2f}", held(found["compiled"] / found["read"], 4.5))
    return f"| positive-unlabeled, 15 bins of equal width, skewed f8 | {' | '.join(cells)} | , 4.5 |"


def spread_line(n: int) -> str:
    rng = np.random.default_rng(0)
    std = rng.lognormal(size=n)
    rows = cal.Gaussian(std * rng.normal(size=n), np.zeros(n), std).rows()
    read = {"read": lambda: (rows.key.sum(), rows.observed.sum())}
    found = least({**read, **both(lambda: cut_rows((rows,), LogGrid()))}, 3)
    cells = (f"{found['NumPy'] / found['read']:.2f}", held(found["compiled"] / found["read"], 5.5))
    return f"| spreads and squared errors on LogGrid, {n:.1e} rows | {' | '.join(cells)} | , 5.5 |"


def sorting_lines(n: int) -> list[str]:
    def row(kind: str, dtype: str) -> list[str]:
        p, outcome = scores(kind, n, dtype)
        y, single = outcome.astype("i1"), dtype == "f4"
        cases = {
            "ks": (lambda: cal.ks_error(y, p), 1.0 if single else 0.5),
            "ece": (lambda: cal.ece(y, p), 1.4 if single else 0.8),
            "debiased": (lambda: cal.debiased_ece(y, p), 1.4 if single else 0.8),
            "sweep": (lambda: cal.sweep_ece(y, p), 1.7),
            "corp": (lambda: cal.decompose(y, p), 3.2 if single else 2.4),
        }
        actions: dict[str, Callable[[], object]] = {"sort": lambda: np.sort(p)}
        for name, (action, _) in cases.items():
            actions |= {f"{name} {way}": run for way, run in both(action).items()}
        found, cells = least(actions), []
        for name, (_, bar) in cases.items():
            plain, quick = (found[f"{name} {way}"] / found["sort"] for way in ("NumPy", "compiled"))
            cells.append(f"{held(plain, 1.8 if name == 'ks' else np.inf)} / {held(quick, bar)}")
        return [f"| {kind} | {dtype} | {' | '.join(cells)} |"]

    return [
        "",
        f"## Estimators that need an order, {n:.0e} rows",
        "",
        "Multiples of `np.sort(p)`, checks included; NumPy / compiled. Compiled bars (float64 / float32): `ks_error` "
        "0.5 / 1.0, `ece` and `debiased_ece` 0.8 / 1.4, `sweep_ece` 1.7, `decompose` 2.4 / 3.2; NumPy `ks_error` 1.8.",
        "",
        "| scores | p | `ks_error` | `ece` | `debiased_ece` | `sweep_ece` | `decompose` |",
        "|---|---|---|---|---|---|---|",
        *grid(row),
    ]


def matrix_lines() -> list[str]:
    bars = {(10, "f8"): 3.0, (100, "f8"): 2.1, (1000, "f8"): 1.6, (10, "f4"): 6.0, (100, "f4"): 2.5, (1000, "f4"): 1.6}
    rng = np.random.default_rng(0)

    def row(classes: int, p: np.ndarray, y: np.ndarray) -> str:
        p.setflags(write=False)
        y.setflags(write=False)
        found = least({"read": p.sum, **both(lambda: cal.Multiclass(y, p).top_label())})
        dtype = p.dtype.str[1:]
        cells = (f"{found['NumPy'] / found['read']:.1f}", held(found["compiled"] / found["read"], bars[classes, dtype]))
        return f"| {classes} | {len(p):.0e} | {dtype} | {' | '.join(cells)} |"

    lines = [
        "",
        "## Check and top label of a matrix of class probabilities",
        "",
        "`Multiclass(y, P).top_label()` as multiples of `P.sum()`. P is read-only: of one that can be written to, "
        "`Multiclass` also makes a copy. Bars for K = 10, 100, 1000: 3, 2.1, 1.6 (float32 6, 2.5, 1.6).",
        "",
        "| K | rows | P | NumPy | compiled |",
        "|---|---|---|---|---|",
    ]
    for classes, n in ((10, 1_000_000), (100, 200_000), (1000, 20_000)):
        whole, y = rng.dirichlet(np.full(classes, 0.3), n), rng.integers(0, classes, n)
        lines += [row(classes, whole.astype(dtype), y) for dtype in ("f8", "f4")]
    return lines


def stream_lines(n: int = 2_000_000) -> list[str]:
    rng = np.random.default_rng(0)
    p = rng.random(n, dtype=np.float32) ** 2
    y = (rng.random(n) < p).astype(np.int32)
    lines = [
        "",
        "## Streams",
        "",
        f"`StreamingTable().update` of {n:.0e} rows in batches, then `table()`; ns per row, float32 and int32.",
        "",
        "| rows per update | NumPy | compiled |",
        "|---|---|---|",
    ]

    def stream(batch: int) -> None:
        table = cal.scale.StreamingTable()
        for start in range(0, n, batch):
            table.update(y[start : start + batch], p[start : start + batch])
        table.table()

    for batch in (1_000, 10_000, 100_000):
        found = least(both(lambda b=batch: stream(b)), 3)
        lines.append(f"| {batch:_} | {found['NumPy'] / n * 1e9:.1f} | {found['compiled'] / n * 1e9:.1f} |")
    return lines


def start_lines() -> list[str]:
    def cost(code: str, **environment: str) -> float:
        script = f"import time; s = time.process_time(); {code}; print(time.process_time() - s)"
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **environment},
        )
        return float(done.stdout)

    call = "import calibrant as cal; cal.ece(np.ones(9, int), np.ones(9), bins=cal.EqualWidth(15))"
    warm = [
        cost(f"import numpy as np; {call}", CALIBRANT_FAST=setting)
        for setting in ("off", "on", "on", "off", "on", "off")
    ]
    extra = min(warm[1], warm[2], warm[4]) - min(warm[0], warm[3], warm[5])
    everything = min(cost("import calibrant as cal; cal.warm_up()", CALIBRANT_FAST="on") for _ in range(2))
    return [
        "",
        "## Starting",
        "",
        f"The first compiled call of a process costs {extra:.2f} CPU s more than without (bar 0.8), with its kernels "
        f"on disk; `warm_up()` takes {everything:.1f} s then.",
    ]


def main() -> None:
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7
    os.environ["CALIBRANT_FAST"] = "on"
    cal.warm_up()
    lines = [*equal_width_lines(n), *table_lines(n), *sorting_lines(min(n, 10**6))]
    lines += [*matrix_lines(), *stream_lines(), *start_lines()]
    write_results("fast", "Loops over rows", "python -m benchmarks.fast", lines, numba=numba.__version__)


if __name__ == "__main__":
    main()
