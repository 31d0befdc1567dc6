"""Estimators on many samples at once against a Python loop over the same samples, in one run."""

from __future__ import annotations

from functools import partial

import numpy as np

import calibrant as cal
from benchmarks.measuring import cpu_seconds, write_results
from calibrant import simulate as sim
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.results.target import batched, name_of
from calibrant.simulate import estimation_bias

SIZES = (200, 400, 800, 1600, 3200, 6400, 12800)
LOOPED = 10

ESTIMATORS = [
    partial(cal.ece, bins=cal.EqualWidth(15), norm=2),
    partial(cal.ece, norm=2),
    partial(cal.debiased_ece, bins=cal.EqualWidth(15), norm=2),
    partial(cal.debiased_ece, norm=2),
    partial(cal.sweep_ece, bins=cal.EqualWidth, norm=2),
    partial(cal.sweep_ece, norm=2),
    partial(cal.kde_ece, norm=2),
]


def microseconds(n: int) -> dict[str, tuple[float, float]]:
    """Processor time per sample of each estimator, at once and in a loop; sorting has a line of its own."""
    repeats = min(1000, estimation_bias._BATCH // n)  # as simulations do
    scores, outcomes = sim.PAPER_WORLDS["resnet110_c100"].draw(np.random.default_rng(0), (repeats, n))
    samples = [cal.Binary(y, p) for y, p in zip(outcomes[:LOOPED], scores[:LOOPED], strict=True)]
    times = {"sort": (1e6 * cpu_seconds(lambda: SortedSamples.of(scores, outcomes), 3) / repeats, 0.0)}
    sorted_samples = SortedSamples.of(scores, outcomes)
    for estimator in ESTIMATORS:
        at_once = batched(estimator)
        together = cpu_seconds(lambda at_once=at_once: at_once(sorted_samples), 3) / repeats
        looped = cpu_seconds(lambda estimator=estimator: [estimator(sample) for sample in samples], 3) / LOOPED
        times[name_of(estimator)] = (1e6 * together, 1e6 * looped)
    return times


def main() -> None:
    times = {n: microseconds(n) for n in SIZES}
    lines = [
        "Processor time per sample, world resnet110_c100. A cell is `time at once (times as fast as the loop)`; the",
        "loop gets its samples ready-made. `ece` at once needs the sort of the first line, which all binned "
        "ones share.",
        "",
        "| microseconds | " + " | ".join(f"n = {n:,}" for n in SIZES) + " |",
        "|---" * (len(SIZES) + 1) + "|",
        "| sorting all samples, once | " + " | ".join(f"{times[n]['sort'][0]:.1f}" for n in SIZES) + " |",
    ]
    for name in map(name_of, ESTIMATORS):
        cells = [f"{times[n][name][0]:.1f} ({times[n][name][1] / times[n][name][0]:.0f} x)" for n in SIZES]
        lines.append(f"| `{name.replace('calibrant.table.binning.', '')}` | " + " | ".join(cells) + " |")
    binned = [name_of(estimator) for estimator in ESTIMATORS[:-1]]
    ratios = []
    for n in SIZES:
        together = times[n]["sort"][0] + sum(times[n][name][0] for name in binned)
        ratios.append(sum(times[n][name][1] for name in binned) / together)
    lines.append("| the six binned ones, with the sort | " + " | ".join(f"{ratio:.0f} x" for ratio in ratios) + " |")
    own = [times[n][binned[1]][1] / (times[n]["sort"][0] + times[n][binned[1]][0]) for n in SIZES]
    lines.append("| `ece` of equal mass alone, with the sort | " + " | ".join(f"{ratio:.0f} x" for ratio in own) + " |")
    lines += [
        "",
        "Bar: 20 x a Python loop over `ece`. Where n is large the loop spends its time sorting too, which no "
        "batch beats.",
    ]
    write_results("simulate", "Simulation", "python -m benchmarks.simulate", lines, calibrant=cal.__version__)


if __name__ == "__main__":
    main()
