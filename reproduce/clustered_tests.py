"""Level and power of the test of clustered rows, `ClusteredScore`, in calibrated and shifted worlds.

Rows of a cluster are correlated: u = Phi(sqrt(r) a + sqrt(1 - r) e), with a common to the cluster, is uniform
for every row, and y = [u < p] is calibrated. "Hotelling" is the same statistic with the degrees of freedom of equal
normal clusters, G - 2, and without the lower bound of the p-value.

    python -m reproduce.clustered_tests [samples of each world]

writes reproduce/results/clustered_tests.csv.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import expit, fdtrc, ndtr

import calibrant as cal
from calibrant.inference.calibration_tests import ClusteredScore

OUTPUT = Path(__file__).parent / "results" / "clustered_tests.csv"
CLUSTERS = (8, 12, 20, 40, 100, 300)
#: Means of the log odds: about 50, 14 and 3 % events.
MEANS = (0.0, -2.2, -4.0)
#: Shares of the variance of the luck that the rows of a cluster have in common.
SHARED = (0.05, 0.5, 1.0)
#: Mean number of rows of a cluster.
ROWS = 15
SEED = 20_261


def sample(
    rng: np.random.Generator, clusters: int, *, uneven: bool, within: bool, mean: float, shared: float, shift: float
) -> cal.Binary:
    """Rows in clusters; scores vary within the clusters, or only between them."""
    size = np.full(clusters, ROWS)
    if uneven:
        size = np.maximum(1, np.rint(ROWS * np.exp(rng.normal(-0.5, 1.0, clusters)))).astype(int)
    cluster = np.repeat(np.arange(clusters), size)
    z = mean + (rng.standard_normal(len(cluster)) if within else rng.standard_normal(clusters)[cluster])
    common = np.sqrt(shared) * rng.standard_normal(clusters)[cluster]
    luck = ndtr(common + np.sqrt(1 - shared) * rng.standard_normal(len(cluster)))
    return cal.Binary(luck < expit(z + shift), expit(z), group=cluster)


def cells(samples: int) -> Iterator[dict[str, object]]:
    """One row per world: the shares of samples that are rejected at 5 %."""
    for shift, within, clusters, uneven, mean, shared in product(
        (0.0, -0.7), (True, False), CLUSTERS, (False, True), MEANS, SHARED
    ):
        p_values = []
        for repeat in range(samples):
            rng = np.random.default_rng([SEED, clusters, repeat])
            data = sample(rng, clusters, uneven=uneven, within=within, mean=mean, shared=shared, shift=shift)
            found = ClusteredScore().test(data)
            p_values.append((found.p_value, fdtrc(2, clusters - 2, found.statistic)))
        own, hotelling = (np.array(p_values) < 0.05).mean(axis=0)
        yield {
            "shift": shift, "clusters": clusters, "sizes": "uneven" if uneven else "equal",
            "scores": "within clusters" if within else "between clusters", "mean log odds": mean, "shared": shared,
            "samples": samples, "ClusteredScore": round(float(own), 4), "Hotelling": round(float(hotelling), 4),
        }  # fmt: skip


def main() -> None:
    """Write the table."""
    rows = list(cells(int((*sys.argv[1:], "500")[0])))
    with open(OUTPUT, "w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    for shift in (0.0, -0.7):
        for clusters in CLUSTERS:
            some = [row for row in rows if row["shift"] == shift and row["clusters"] == clusters]
            for name in ("ClusteredScore", "Hotelling"):
                rates = np.array([row[name] for row in some])
                print(f"shift {shift}, {clusters} clusters, {name}: mean {rates.mean():.3f}, most {rates.max():.3f}")


if __name__ == "__main__":
    main()
