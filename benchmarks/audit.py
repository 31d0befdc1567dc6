"""Processor seconds and memory of the audit by rows and features.

``python -m benchmarks.audit`` writes benchmarks/results/audit.md. Seconds are of one core; memory is the peak of the
process less what it held before
the call. Bars: 1e6 rows and 20 features in 30 s and 1 GB beyond the data, 1e4 rows in 1.5 s.
"""

from __future__ import annotations

import platform
import resource
import time
from datetime import date
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.special import expit

import calibrant as cal

RESULTS = Path(__file__).with_name("results")


def features(n: int, d: int, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Numbers, a few categories, one of a thousand values; two segments of 5 points."""
    X: dict[str, np.ndarray] = {f"x{j}": rng.normal(size=n) for j in range(d - 4)}
    X["country"] = rng.choice(["FR", "DE", "US", "UK"], n, p=[0.1, 0.2, 0.4, 0.3])
    X["device"] = rng.choice(["mobile", "desktop"], n)
    X["age"] = rng.integers(18, 80, n)
    X["zip"] = np.array([f"z{k}" for k in range(1000)])[rng.integers(0, 1000, n)]
    p = expit(0.8 * X["x0"] + 0.5 * X["x1"] - 0.8)
    gap = 0.05 * ((X["country"] == "FR") & (X["device"] == "mobile")) - 0.05 * ((X["age"] >= 60) & (X["x2"] >= 1))
    return X, p, (rng.random(n) < np.clip(p + gap, 0.002, 0.998)).astype(np.int8)


def measured(n: int, d: int) -> dict[str, str]:
    """Seconds of each part, and memory."""
    X, p, y = features(n, d, np.random.default_rng(n))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock = [time.process_time()]
    found = cal.audit(y, p, X)
    for part in ("test", "error", "segments", "features"):
        clock.append(time.process_time())
        getattr(found, part)
    clock.append(time.process_time())
    found.repair()
    clock.append(time.process_time())
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    seconds = [f"{b - a:.2f}" for a, b in pairwise(clock)]
    print(found)
    return {
        "rows": f"{n:,}",
        "features": str(d),
        "seconds": f"{clock[-1] - clock[0]:.2f}",
        "prepare / test / error / segments / features / repair": " / ".join(seconds),
        "GB beyond the data": f"{peak:.2f}",
    }


def main() -> None:
    """Write the page."""
    cal.audit([0, 1] * 20, [0.4, 0.6] * 20, {"a": np.arange(40)}).repair()  # what is loaded at first use
    rows = [measured(*size) for size in ((300, 60), (10_000, 20), (100_000, 20), (1_000_000, 20))]
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row[name] for name in head) + " |" for row in rows]
    made = f"{date.today().isoformat()}, Python {platform.python_version()}, NumPy {np.__version__}, one core"
    text = f"# The audit by features: time and memory\n\n{made}. `python -m benchmarks.audit`\n\n" + "\n".join(lines)
    (RESULTS / "audit.md").write_text(text + "\n", encoding="utf8")
    print(text)


if __name__ == "__main__":
    main()
