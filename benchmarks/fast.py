"""Loops over rows, in NumPy and compiled, as multiples of reading or sorting the same arrays in the same run.

python -m benchmarks.fast [rows]        needs calibrant[fast]; CALIBRANT_FAST is set by the script
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numba
import numpy as np
from sklearn.calibration import calibration_curve

import calibrant as cal
from benchmarks.measuring import run_peer, write_results
from calibrant.data.validation import SUM_TOLERANCE
from calibrant.numerics import acceleration as switch
from calibrant.numerics.binned_sums import checked_class_sums
from calibrant.numerics.logistic.multinomial import Penalty, VectorLogLoss, _softmax_derivatives
from calibrant.table.binning import HybridGrid, LogGrid
from calibrant.table.bintable import cut_rows

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


def matrix_lines(scores: int = 10**7) -> list[str]:
    """Check and top label, and classwise sums with the check, of matrices with this many scores."""
    top_bars = {10: (3.0, 6.0), 100: (2.1, 2.5), 1000: (1.6, 1.6)}
    class_bars = {10: (8.0, 16.0), 100: (3.0, 6.0), 1000: (2.3, 2.5)}
    rng = np.random.default_rng(0)

    def row(p: np.ndarray, y: np.ndarray) -> str:
        p.setflags(write=False)
        y.setflags(write=False)
        classes, single = p.shape[1], p.dtype == np.float32
        found = least({"read": p.sum, **both(lambda: cal.Multiclass(y, p).top_label())})
        sums = {
            "sums": fast("on", lambda: checked_class_sums(p, y, 15, SUM_TOLERANCE)),
            "classwise": fast("on", lambda: cal.classwise(partial(cal.ece, bins=FIFTEEN), y, p)),
        }
        found |= least(sums) | least(
            {"loop": fast("off", lambda: cal.classwise(partial(cal.ece, bins=FIFTEEN), y, p))}, 1
        )
        reads = {name: time / found["read"] for name, time in found.items()}
        cells = f"{reads['NumPy']:.1f} | {held(reads['compiled'], top_bars[classes][single])}"
        cells += (
            f" | {reads['loop']:.1f} | {held(reads['sums'], class_bars[classes][single])} | {reads['classwise']:.2f}"
        )
        return f"| {classes} | {len(p):.0e} | {p.dtype.str[1:]} | {cells} |"

    lines = [
        "",
        "## Matrices of class probabilities",
        "",
        "Multiples of `P.sum()`. Check and top label: `Multiclass(y, P).top_label()`, bars for K = 10, 100, 1000: 3, "
        "2.1, 1.6 (float32 6, 2.5, 1.6). P is read-only: of one that can be written to, `Multiclass` also makes a "
        "copy. Classwise: check and sums of all classes in 15 bins of equal width, bars 8, 3, 2.3 (16, 6, 2.5), and "
        "the whole of `classwise(ece, y, P)` in these bins.",
        "",
        "| K | rows | P | top label, NumPy | compiled | classwise ECE, NumPy | sums, compiled | ECE, compiled |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for classes in (10, 100, 1000):
        n = scores // classes
        whole, y = rng.dirichlet(np.full(classes, 0.3), n), rng.integers(0, classes, n)
        lines += [row(whole.astype(dtype), y) for dtype in ("f8", "f4")]
    return lines


def softmax_lines(scores: int = 4_000_000) -> list[str]:
    """One evaluation of the objectives of temperature and vector scaling."""
    rng = np.random.default_rng(0)
    lines = [
        "",
        "## Objectives of recalibration maps",
        "",
        "One evaluation in double precision, as multiples of reading the logits: slope and two more derivatives by the "
        "temperature (bar 2.2, set for single precision); value and gradient of vector scaling (bar 5, likewise).",
        "",
        "| K | rows | temperature, NumPy | compiled | vector scaling, NumPy | compiled |",
        "|---|---|---|---|---|---|",
    ]
    for classes in (10, 100, 1000):
        n = scores // classes
        logits = 3 * rng.normal(size=(n, classes))
        codes = (0.6 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        chosen, by_class = logits[np.arange(n), codes], np.ascontiguousarray(logits.T)
        loss = VectorLogLoss(by_class, codes, None, Penalty(1e-9, 1e-9, 1e-9))
        actions = {"read": logits.sum}
        for way, setting in (("NumPy", "off"), ("compiled", "on")):
            os.environ["CALIBRANT_FAST"] = setting
            derivatives = _softmax_derivatives(logits, chosen, None)
            actions[f"temperature {way}"] = fast(setting, lambda d=derivatives: d(0.7))
            actions[f"vector {way}"] = fast(setting, partial(loss.evaluate, np.full((classes, 2), 0.1)))
        found = least(actions, 3)
        reads = {name: time / found["read"] for name, time in found.items()}
        cells = f"{reads['temperature NumPy']:.1f} | {held(reads['temperature compiled'], 2.2)}"
        cells += f" | {reads['vector NumPy']:.1f} | {held(reads['vector compiled'], 5.0)}"
        lines.append(f"| {classes} | {n:_} | {cells} |")
    return lines


TORCHMETRICS = """
import json, sys, time, warnings
import numpy as np, torch
from torchmetrics.classification import BinaryCalibrationError
from torchmetrics.functional.classification import binary_calibration_error
warnings.simplefilter("ignore")
torch.set_num_threads(1)
n, found = int(sys.argv[1]), {}
rng = np.random.default_rng(0)
score = rng.random(n, dtype=np.float32) ** 2
p, y = torch.from_numpy(score), torch.from_numpy((rng.random(n) < score).astype(np.int32))
def metric(batch):
    kept = BinaryCalibrationError(n_bins=15)
    for i in range(0, n, batch):
        kept.update(p[i : i + batch], y[i : i + batch])
    kept.compute()
def bounded(batch):
    for i in range(0, n, batch):
        binary_calibration_error(p[i : i + batch], y[i : i + batch], n_bins=15)
for batch in (1000, 10000, 100000):
    for name, action in (("metric", metric), ("bounded", bounded)):
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            action(batch)
            best = min(best, time.process_time() - start)
        found[f"{name} {batch}"] = best / n * 1e9
print(json.dumps(found))
"""


def stream_lines(n: int = 2_000_000) -> list[str]:
    rng = np.random.default_rng(0)
    p = rng.random(n, dtype=np.float32) ** 2
    y = (rng.random(n) < p).astype(np.int32)
    peer = run_peer(TORCHMETRICS, str(n))
    lines = [
        "",
        "## Streams",
        "",
        f"`StreamingTable(grid=...).update` of {n:.0e} rows in batches, then `table()`; ns per row, float32 and int32. "
        "torchmetrics: its metric, which keeps all rows, with one compute at the end, and its function batch by batch. "
        "Bars: compiled fixed bins 10 x as fast as the faster of these, the fine table 4 x.",
        "",
        "| rows each | 15 bins, NumPy | compiled | fine table, NumPy | compiled | torchmetrics metric | function |",
        "|---|---|---|---|---|---|---|",
    ]

    def stream(batch: int, cells: cal.EqualWidth | HybridGrid) -> None:
        table = cal.scale.StreamingTable(grid=cells)
        for start in range(0, n, batch):
            table.update(y[start : start + batch], p[start : start + batch])
        table.table()

    for batch in (1_000, 10_000, 100_000):
        theirs = [] if peer is None else [float(str(peer[f"{name} {batch}"])) for name in ("metric", "bounded")]
        cells = []
        for kind, factor in ((FIFTEEN, 10), (HybridGrid(), 4)):
            found = least(both(lambda b=batch, k=kind: stream(b, k)), 3)
            plain, quick = (1e9 * found[way] / n for way in ("NumPy", "compiled"))
            cells += [f"{plain:.1f}", held(quick, min(theirs, default=np.inf) / factor)]
        cells += [f"{time:.0f}" for time in theirs] or ["not installed", "not installed"]
        lines.append(f"| {batch:_} | {' | '.join(cells)} |")
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
    lines += [*matrix_lines(n), *softmax_lines(), *stream_lines(), *start_lines()]
    lines = [f"Load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; a busy machine adds.", "", *lines]
    write_results("fast", "Loops over rows", "python -m benchmarks.fast", lines, numba=numba.__version__)


if __name__ == "__main__":
    main()
