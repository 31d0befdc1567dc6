"""The page of a report: processor seconds to make it in a fresh process, after the report itself, and its size."""

from __future__ import annotations

import subprocess
import sys

import calibrant as cal
from benchmarks.measuring import write_results

#: Each makes a report named `found`; rows, groups and periods as in everyday use.
REPORTS = {
    "binary, 10 000 rows, 9 groups, 12 months": """
p = rng.beta(0.6, 12, 10_000)
y = rng.random(10_000) < 0.8 * p
found = cal.report(cal.Binary(y, p), by=rng.integers(0, 9, 10_000), time=rng.integers(0, 12, 10_000), threshold=0.1)
""",
    "binary, 10 000 rows, 60 groups": """
p = rng.random(10_000)
found = cal.report(cal.Binary(rng.random(10_000) < p**1.2, p), by=rng.integers(0, 60, 10_000))
""",
    "7 classes, 6 000 rows": """
p = rng.dirichlet(0.5 * np.ones(7), 6000)
found = cal.report(cal.Multiclass(rng.integers(0, 7, 6000), p))
""",
    "forecasts, 4 000 rows": """
sigma = np.exp(0.5 * rng.standard_normal(4000))
found = cal.report(cal.Gaussian(1.3 * sigma * rng.standard_normal(4000), np.zeros(4000), sigma))
""",
    "positive-unlabeled, 5 000 rows": """
found = cal.report(cal.PositiveUnlabeled(rng.beta(3, 1, 500), rng.random(4500), prior=0.4))
""",
}
CHILD = """
import time
import numpy as np
import calibrant as cal
rng = np.random.default_rng(0)
{make}
start = time.process_time()
html = found.to_html()
print(time.process_time() - start, len(html.encode()))
"""


def measured(make: str) -> tuple[float, int]:
    done = subprocess.run([sys.executable, "-c", CHILD.format(make=make)], capture_output=True, text=True, check=True)
    seconds, size = done.stdout.split()
    return float(seconds), int(size)


def main() -> None:
    lines = [
        "The first page of a fresh process, imports of the page included. The bars are 0.3 s and 400 KB.",
        "",
        "| report | CPU s | KB |",
        "|---|---|---|",
    ]
    for name, make in REPORTS.items():
        seconds, size = min(measured(make) for _ in range(3))
        lines.append(f"| {name} | {seconds:.2f} | {size / 1000:.0f} |")
    write_results("page", "The page of a report", "python -m benchmarks.page", lines, calibrant=cal.__version__)


if __name__ == "__main__":
    main()
