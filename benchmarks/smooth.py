"""Errors without bins against the authors' package relplot, in time and where it is wrong, in one run."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np

import calibrant as cal
from benchmarks.measuring import cpu_seconds, run_peer, write_results

LARGE = 10**7

#: Both sides draw the same rows; a tenth of the "ends" sample lies at exactly 0 and as much at exactly 1.
SAMPLE = """
import numpy as np

def sample(kind, n):
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 0.5, n)
    if kind == "ends":
        u = rng.random(n)
        p[u < 0.1], p[u > 0.9] = 0.0, 1.0
    if kind == "skewed":
        p = rng.beta(0.05, 0.05, n)
    if kind == "interior":
        p = 0.25 + 0.5 * p
    return (rng.random(n) < 0.05 + 0.85 * p).astype(np.int8), p
"""

PEER = (
    SAMPLE
    + """
import json, sys, time
from importlib.metadata import version
from relplot.metrics import smECE, smECE_sigma

y, p = sample("smooth", int(sys.argv[1]))
read = min((lambda start: (p.sum(), y.sum(), time.process_time() - start)[2])(time.process_time()) for _ in range(5))
times = []
for _ in range(2):
    start = time.process_time(); smECE(p, y); times.append(time.process_time() - start)
values = {}
for kind, sigma in json.loads(sys.argv[2]):
    y, p = sample(kind, 4000)
    values[f"{kind} {sigma}"] = float(smECE_sigma(p, y, sigma))
print(json.dumps(dict(ratio=min(times) / read, seconds=min(times), values=values, version=version("relplot"))))
"""
)

CASES = [("interior", 0.01), ("interior", 0.05), ("ends", 0.01), ("ends", 0.05), ("skewed", 0.01), ("skewed", 0.05)]


def drawn(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    space: dict[str, object] = {}
    exec(SAMPLE, space)
    return space["sample"](kind, n)  # type: ignore[operator]


def by_integration(y: np.ndarray, p: np.ndarray, sigma: float) -> float:
    """The smECE of a fixed width by its definition: all images of all scores, 20 001 nodes."""
    t, smoothed = np.linspace(0, 1, 20_001), np.zeros(20_001)
    scores, where = np.unique(p, return_inverse=True)
    residual = np.bincount(where, y - p)
    for score, r in zip(scores, residual, strict=True):
        for image in (score, -score, 2 - score):
            low, high = np.searchsorted(t, [image - 9 * sigma, image + 9 * sigma])
            smoothed[low:high] += r * np.exp(-((t[low:high] - image) ** 2) / (2 * sigma**2))
    return float(np.trapezoid(np.abs(smoothed), t) / (np.sqrt(2 * np.pi) * sigma * len(p)))


def time_lines(peer: dict | None) -> list[str]:
    y, p = drawn("smooth", LARGE)
    read = cpu_seconds(lambda: (p.sum(), y.sum()))
    lines = [
        "## Time at 1e7 rows",
        "",
        "| | CPU s | x reading the rows | times as fast as relplot's smECE (bar: 20) | extra memory MB |",
        "|-|-|-|-|-|",
    ]
    for estimator in (cal.smooth_ece, cal.kde_ece):
        seconds = cpu_seconds(lambda estimator=estimator: estimator(y, p))
        tracemalloc.start()
        estimator(y, p)
        memory = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        faster = "peer absent" if peer is None else f"{peer['seconds'] / seconds:.0f}"
        lines.append(f"| `{estimator.__name__}` | {seconds:.3f} | {seconds / read:.0f} | {faster} | {memory:.0f} |")
    seconds = cpu_seconds(lambda: cal.kernel_error(y, p), 1)
    lines.append(f"| `kernel_error` (binary, Laplace, all pairs) | {seconds:.2f} | {seconds / read:.0f} | | |")
    if peer is not None:
        lines.append(f"| relplot `smECE` | {peer['seconds']:.2f} | {peer['ratio']:.0f} | 1 | |")
    return lines


def truth_lines(peer: dict | None) -> list[str]:
    lines = [
        "## smECE at a fixed width, 4000 rows",
        "",
        "A tenth of the scores of `ends` are exactly 0 and a tenth exactly 1; those of `skewed` are Beta(0.05, 0.05).",
        "",
        "| scores | sigma | by integration | `smooth_ece`, off by | relplot, off by |",
        "|-|-|-|-|-|",
    ]
    for kind, sigma in CASES:
        y, p = drawn(kind, 4000)
        truth = by_integration(y, p, sigma)
        ours = cal.smooth_ece(y, p, sigma=sigma) - truth
        theirs = "peer absent" if peer is None else f"{peer['values'][f'{kind} {sigma}'] - truth:+.1e}"
        lines.append(f"| {kind} | {sigma} | {truth:.6f} | {ours:+.1e} | {theirs} |")
    return lines


def main() -> None:
    peer = run_peer(PEER, str(LARGE), json.dumps(CASES))
    versions = {} if peer is None else {"relplot": str(peer["version"])}
    lines = [*time_lines(peer), "", *truth_lines(peer)]
    write_results("smooth", "Errors without bins", "python -m benchmarks.smooth", lines, **versions)


if __name__ == "__main__":
    main()
