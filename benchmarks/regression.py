"""Regression metrics against uncertainty-toolbox and netcal, and against the cost of one argsort, in one run."""

from __future__ import annotations

import tracemalloc

import numpy as np

import calibrant as cal
from benchmarks.measuring import cpu_seconds, run_peer, write_results

MIDDLE, LARGE = 10**5, 10**6

ROWS = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
from importlib.metadata import version
import numpy as np
rng = np.random.default_rng(0)
mean = rng.normal(size={n}); std = rng.lognormal(0, 0.5, {n}); y = mean + 1.3 * std * rng.normal(size={n})
base = min((lambda s: (np.argsort(std), time.process_time() - s)[1])(time.process_time()) for _ in range(7))
"""
TOOLBOX = (
    ROWS
    + """
import uncertainty_toolbox as uct
start = time.process_time()
uct.get_all_metrics(mean, std, y, verbose=False)
print(json.dumps(dict(ratio=(time.process_time() - start) / base, version=version("uncertainty-toolbox"))))
"""
)
NETCAL = (
    ROWS
    + """
from netcal.regression import IsotonicRegression
import resource
start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fitted = IsotonicRegression(); fitted.fit((mean[:, None], std[:, None]), y[:, None])
fitted.transform((mean[:, None], std[:, None]))
memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
print(json.dumps(dict(ratio=(time.process_time() - start) / base, memory=memory, version=version("netcal"))))
"""
)

METRICS = {
    "ence": cal.ence,
    "uce": cal.uce,
    "debiased_ence": cal.debiased_ence,
    "sweep_ence": cal.sweep_ence,
    "mean_squared_z": cal.mean_squared_z,
    "std_dispersion": cal.std_dispersion,
    "interval_error": cal.interval_error,
    "interval_error, norm 2": lambda data: cal.interval_error(data, norm=2),
    "quantile_error": cal.quantile_error,
    "pit_error": cal.pit_error,
    "coverage": cal.coverage,
    "interval_score": cal.interval_score,
    "nll": cal.nll,
    "crps": cal.crps,
    "pinball": cal.pinball,
    "sharpness": cal.estimators.sharpness,
    "spread_curve": cal.spread_curve,
    "interval_curve": cal.interval_curve,
    "pit_histogram": cal.estimators.pit_histogram,
    "ence_curve": cal.estimators.ence_curve,
}


def rows(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=n), rng.lognormal(0, 0.5, n)
    return mean + 1.3 * std * rng.normal(size=n), mean, std


def all_metrics_lines() -> list[str]:
    y, mean, std = rows(MIDDLE)
    sort = cpu_seconds(lambda: np.argsort(std), 15)
    data = cal.Gaussian(y, mean, std)
    times = {name: cpu_seconds(lambda metric=metric: metric(data), 5) / sort for name, metric in METRICS.items()}
    total = cpu_seconds(lambda: [metric(cal.Gaussian(y, mean, std)) for metric in METRICS.values()], 5) / sort
    peer = run_peer(TOOLBOX.format(n=MIDDLE))
    lines = [
        f"All metrics and curves, n = {MIDDLE:.0e}; times as multiples of one `np.argsort(std)` ({sort * 1e3:.1f} ms).",
        "",
        "| what | time | slower than Calibrant |",
        "|---|---|---|",
        f"| Calibrant, {len(METRICS)} metrics and curves, each with its null reference | {total:.1f} | |",
    ]
    if peer is None:
        lines.append("| uncertainty-toolbox | not installed here | |")
    else:
        ratio = float(peer["ratio"])
        label = f"uncertainty-toolbox {peer['version']} `get_all_metrics` (bar 100 x)"
        lines.append(f"| {label} | {ratio:.0f} | {ratio / total:.0f} x |")
    lines += ["", "One by one: " + ", ".join(f"{name} {value:.1f}" for name, value in times.items()) + "."]
    return lines


def ence_lines() -> list[str]:
    y, mean, std = rows(LARGE)
    sort = cpu_seconds(lambda: np.argsort(std), 9)
    data = cal.Gaussian(y, mean, std)
    ready, whole = cpu_seconds(lambda: cal.ence(data), 9), cpu_seconds(lambda: cal.ence(y, mean, std), 9)
    return [
        "",
        f"`ence`, n = {LARGE:.0e}: {ready / sort:.2f} x one `np.argsort(std)` ({sort * 1e3:.0f} ms); from raw arrays, "
        f"checks and all, {whole / sort:.2f} x (bar: at most 2).",
    ]


def isotonic_lines() -> list[str]:
    lines = [
        "",
        "`CdfIsotonic().fit(data).transform(data)`, then the new mean and std; extra memory at its highest.",
        "",
        "| package | n | time / argsort | memory | bytes per row |",
        "|---|---|---|---|---|",
    ]
    for n in (MIDDLE, LARGE):
        y, mean, std = rows(n)
        data, sort = cal.Gaussian(y, mean, std), cpu_seconds(lambda std=std: np.argsort(std), 5)

        def recalibrated(data: cal.Gaussian = data) -> object:
            fixed = cal.recalibrate.CdfIsotonic().fit(data).transform(data)
            return fixed.mean, fixed.std

        time = cpu_seconds(recalibrated, 3) / sort
        tracemalloc.start()
        recalibrated()
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        lines.append(f"| Calibrant | {n:.0e} | {time:.1f} | {memory / 1e6:.0f} MB | {memory / n:.0f} |")
    peer = run_peer(NETCAL.format(n=10**4))
    if peer is not None:
        memory = float(peer["memory"])
        row = f"{memory:.0f} MB | {memory * 1e6 / 1e4:.0f}"
        lines.append(f"| netcal {peer['version']} `IsotonicRegression` | 1e+04 | {float(peer['ratio']):.0f} | {row} |")
    return lines


if __name__ == "__main__":
    write_results(
        "regression",
        "Regression metrics",
        "python -m benchmarks.regression",
        [*all_metrics_lines(), *ence_lines(), *isotonic_lines()],
        calibrant=cal.__version__,
    )
