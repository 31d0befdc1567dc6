"""Coverage of the intervals of the gain that reports give for recalibration maps, in worlds of known truth.

The truth is the relative fall of the expected log loss by the map fitted to all rows, in the population. "named" is the
map that the report names first, chosen by its rules from the same rows.

    python -m reproduce.report_gains [samples at 200 rows] [samples at 2000 rows]

writes reproduce/results/report_gains.csv.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import expit, ndtri

import calibrant as cal
from calibrant import recalibrate
from calibrant.reporting.part import Part
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.reporting.sections.recalibration import recalibration_section

OUTPUT = Path(__file__).parent / "results" / "report_gains.csv"
WORLDS = {
    "calibrated": lambda z: z,
    "slightly off": lambda z: 0.9 * z - 0.05,
    "too extreme": lambda z: 0.6 * z,
    "shifted": lambda z: z - 0.5,
    "wavy": lambda z: z + 0.7 * np.sin(2 * z),
}
#: Means of the log odds of the scores: about 35 % and 8 % events.
MEANS = (-0.8, -3.0)
#: Not the seeds that the constant of the interval was chosen with.
SEED = 20_260

_NORMAL = ndtri((np.arange(2000) + 0.5) / 2000)


def expected_loss(q: np.ndarray, truth: np.ndarray) -> float:
    """Of predictions q at scores whose true probabilities are known."""
    return float(-(truth * np.log(q) + (1 - truth) * np.log1p(-q)).mean())


def cells(samples: dict[int, int]) -> Iterator[dict[str, object]]:
    """One row per size, world, base rate and map."""
    for n, repeats in samples.items():
        for mean in MEANS:
            for name, curve in WORLDS.items():
                grid = mean + 1.3 * _NORMAL
                scores, truth = expit(grid), expit(curve(grid))
                covered: dict[str, list[bool]] = {}
                helps: dict[str, list[bool]] = {}
                for repeat in range(repeats):
                    rng = np.random.default_rng([SEED, n, repeat])
                    z = mean + 1.3 * rng.standard_normal(n)
                    data = cal.Binary(rng.random(n) < expit(curve(z)), expit(z))
                    try:
                        maps = recalibration_section(Part(data, repeat)).maps
                    except CannotBuild:
                        continue
                    for place, row in enumerate(maps):
                        fitted = getattr(recalibrate, row.name)().fit(data)
                        after = expected_loss(fitted.predict_proba(scores)[:, 1], truth)
                        gain = 1 - after / expected_loss(scores, truth)
                        for key in (row.name, *(["named"] if place == 0 else [])):
                            covered.setdefault(key, []).append(row.gain.low <= gain <= row.gain.high)
                            helps.setdefault(key, []).append(row.gain.low > 0)
                for key, values in covered.items():
                    yield {
                        "n": n, "mean log odds": mean, "world": name, "map": key, "samples": len(values),
                        "coverage": round(float(np.mean(values)), 3), "helps": round(float(np.mean(helps[key])), 3),
                    }  # fmt: skip


def main() -> None:
    """Write the table."""
    few, many = (int(text) for text in (*sys.argv[1:], "100", "40")[:2])
    rows = []
    for row in cells({200: few, 2000: many}):
        rows.append(row)
        print(*row.values(), flush=True)
    with open(OUTPUT, "w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
