"""Does one page contradict itself? Test, O:E, slope, L1 and L2 of binary predictions, before and after one budget.

    python -m reproduce.coherence [--before path/to/older/src] [--parts level power coverage pages ties] [--part-of 1.0]

measures level and power of the default test, coverage of L1 and L2, contradictions between what a page shows, and how
ends move with the seed, with exchanged outcomes and with renamed clusters; with `--before`, the same samples also with
an older source tree. It writes reproduce/results/coherence.csv and coherence.md.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

import calibrant as cal
from reproduce import coverage_designs, coverage_worlds

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator], cal.Binary]
RESULTS = Path(__file__).parent / "results"
PARTS = ("level", "power", "coverage", "pages", "ties")
ALPHA = 0.05


def rows(scores: Callable[[np.random.Generator, int], Floats], chance: Callable[[Floats], Floats], n: int) -> Draw:
    """Independent rows."""

    def draw(rng: np.random.Generator) -> cal.Binary:
        p = scores(rng, n)
        return cal.Binary(rng.random(n) < np.clip(chance(p), 0, 1), p)

    return draw


def clusters(sizes: list[int], shift: float = 0.0, mean: float = 0.0, shared: float = 0.3) -> Draw:
    """Rows of a cluster are correlated; log odds are wrong by `shift`."""

    def draw(rng: np.random.Generator) -> cal.Binary:
        cluster = np.repeat(np.arange(len(sizes)), sizes)
        z = mean + rng.standard_normal(len(cluster))
        common = np.sqrt(shared) * rng.standard_normal(len(sizes))[cluster]
        luck = ndtr(common + np.sqrt(1 - shared) * rng.standard_normal(len(cluster)))
        return cal.Binary(luck < expit(z + shift), expit(z), group=cluster)

    return draw


def weighted(draw: Draw) -> Draw:
    """With log-normal weights."""

    def with_weights(rng: np.random.Generator) -> cal.Binary:
        data = draw(rng)
        return cal.Binary(data.y_true, data.y_prob, weight=np.exp(rng.standard_normal(len(data))))

    return with_weights


def _same(p: Floats) -> Floats:
    return p


def _beta(a: float, b: float) -> Callable[[np.random.Generator, int], Floats]:
    return lambda rng, n: rng.beta(a, b, n)


def _odds(mean: float, sd: float = 1.0) -> Callable[[np.random.Generator, int], Floats]:
    return lambda rng, n: expit(rng.normal(mean, sd, n))


def _llm(rng: np.random.Generator, n: int) -> Floats:
    return rng.choice([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0], n, p=[0.03, 0.05, 0.12, 0.2, 0.3, 0.25, 0.05])


def _digits(rng: np.random.Generator, n: int) -> Floats:
    return np.round(rng.beta(1.2, 2, n), 2)


def _modes(rng: np.random.Generator, n: int) -> Floats:
    return np.where(rng.random(n) < 0.5, 0.01, 0.9) + 0.005 * rng.random(n)


def _tempered(slope: float) -> Callable[[Floats], Floats]:
    return lambda p: expit(slope * np.log(np.clip(p, 1e-12, 1) / np.clip(1 - p, 1e-12, 1)))


#: Sizes of clusters of the review: equal, uneven, dominating.
SIZES = {
    "12 of 30": [30] * 12,
    "40 of 30": [30] * 40,
    "300 of 5": [5] * 300,
    "33, largest 400": [400, 200, 100, *[20] * 30],
    "203, three of 300": [300] * 3 + [1] * 200,
    "one of 600, 40 of 20": [600] + [20] * 40,
    "one of 2,000, 15 of 5": [2000] + [5] * 15,
}

LEVEL: dict[str, Draw] = {
    "rare 0.18 %, n=3,000": rows(_odds(-6.8), _same, 3000),
    "rare 0.1 %, n=3,000": rows(_odds(-7.4), _same, 3000),
    "rare turned, n=3,000": rows(lambda rng, n: 1 - _odds(-6.8)(rng, n), _same, 3000),
    "near 0, n=1,000": rows(_beta(0.3, 20), _same, 1000),
    "few levels (LLM), n=300": rows(_llm, _same, 300),
    "two digits, n=1,000": rows(_digits, _same, 1000),
    "one score, n=40": rows(lambda rng, n: np.full(n, 0.3), _same, 40),
    "two modes, n=1,000": rows(_modes, _same, 1000),
    "beta(0.8, 1.6), n=2,000": rows(_beta(0.8, 1.6), _same, 2000),
    "beta(2, 5), n=60": rows(_beta(2, 5), _same, 60),
    "log-normal weights, n=1,000": weighted(rows(_beta(1, 2), _same, 1000)),
    "rare with weights, n=3,000": weighted(rows(_odds(-5.5), _same, 3000)),
    **{f"clusters {name}": clusters(sizes) for name, sizes in SIZES.items()},
    **{
        f"clusters {name}, 4 % events": clusters(SIZES[name], mean=-3.7)
        for name in ("12 of 30", "40 of 30", "300 of 5", "33, largest 400")
    },
    **{
        f"clusters {name}, a tenth of luck shared": clusters(SIZES[name], shared=0.1)
        for name in ("12 of 30", "33, largest 400", "203, three of 300", "one of 600, 40 of 20")
    },
    **{
        f"clusters {name}, 4 % events, most luck shared": clusters(SIZES[name], mean=-3.7, shared=0.7)
        for name in ("12 of 30", "33, largest 400", "203, three of 300", "one of 600, 40 of 20")
    },
    "clusters 12 of 30, all luck shared": clusters([30] * 12, shared=0.95),
    "clusters 20 of 40, 1 % events": clusters([40] * 20, mean=-5.2, shared=0.5),
}

POWER: dict[str, Draw] = {
    "rare, risk 4 times too high, n=5,000": rows(_odds(-6.8), lambda p: p / 4, 5000),
    "rare, no event possible, n=3,000": rows(_odds(-6.8), lambda p: 0 * p, 3000),
    "rare, risk half of the truth, n=5,000": rows(_odds(-6.8), lambda p: 2 * p, 5000),
    "3 points too high, n=1,000": rows(_beta(1, 1), lambda p: p - 0.03, 1000),
    "0.6 points too high, n=30,000": rows(_beta(1, 2), lambda p: p - 0.006, 30_000),
    "2 points too low, n=1,000": rows(_beta(1, 3), lambda p: p + 0.02, 1000),
    "slope 0.85, n=2,000": rows(_odds(0, 1.2), _tempered(0.85), 2000),
    "slope 0.75, n=1,000": rows(_odds(-1, 1.2), _tempered(0.75), 1000),
    "slope 1.3, n=1,000": rows(_odds(0, 1), _tempered(1.3), 1000),
    "wave, 2 periods, n=1,000": rows(_beta(1, 1), lambda p: p + 0.07 * np.sin(4 * np.pi * p) * 4 * p * (1 - p), 1000),
    "wave, 6 periods, n=3,000": rows(_beta(1, 1), lambda p: p + 0.08 * np.sin(12 * np.pi * p) * 4 * p * (1 - p), 3000),
    "wave, 20 periods, n=10,000": rows(_beta(1, 1), lambda p: p + 0.32 * np.sin(40 * np.pi * p) * p * (1 - p), 10_000),
    "quadratic, n=1,000": rows(_beta(1, 1), lambda p: p + 0.22 * p * (1 - p) * (1 - 2 * p), 1000),
    "bump at 0.5, n=2,000": rows(_beta(1, 1), lambda p: p + 0.12 * np.exp(-(((p - 0.5) / 0.04) ** 2)), 2000),
    "jump at 0.8, n=1,000": rows(_beta(1, 1), lambda p: np.where(p > 0.8, p - 0.08, p), 1000),
    "top 1 %, n=3,000": rows(_beta(1, 1), lambda p: np.where(p > 0.99, 0.85, p), 3000),
    "few levels (LLM), 4 points too high, n=300": rows(_llm, lambda p: p - 0.05, 300),
    "zigzag of 101 levels, n=3,000": rows(_digits, lambda p: p + 0.06 * (-1) ** np.round(100 * p), 3000),
    "weights, slope 0.8, n=2,000": weighted(rows(_odds(0, 1.2), _tempered(0.8), 2000)),
    **{f"clusters {name}, shift 0.5": clusters(sizes, 0.5) for name, sizes in SIZES.items()},
    **{
        f"clusters {name}, a tenth of luck shared, shift 0.5": clusters(SIZES[name], 0.5, shared=0.1)
        for name in ("12 of 30", "33, largest 400", "203, three of 300", "one of 600, 40 of 20")
    },
    "clusters 40 of 30, slope 0.6": lambda rng: _sloped(rng, [30] * 40),
    "clusters 12 of 30, 4 % events, half the risk": clusters([30] * 12, 0.8, -3.7),
}  # fmt: skip


def _sloped(rng: np.random.Generator, sizes: list[int]) -> cal.Binary:
    data = clusters(sizes)(rng)
    odds = np.log(data.y_prob / (1 - data.y_prob))
    return cal.Binary(data.y_true, expit(odds / 0.6), group=data.group)


#: Pages: the worlds of the review, calibrated and not.
PAGES: dict[str, Draw] = {
    "rare, risk 4 times too high, n=5,000": POWER["rare, risk 4 times too high, n=5,000"],
    "0.6 points too high, n=30,000": POWER["0.6 points too high, n=30,000"],
    "rare calibrated, n=3,000": LEVEL["rare 0.18 %, n=3,000"],
    "slope 0.85, n=2,000": POWER["slope 0.85, n=2,000"],
    "wave, 20 periods, n=10,000": POWER["wave, 20 periods, n=10,000"],
    "few levels (LLM), 4 points too high, n=300": POWER["few levels (LLM), 4 points too high, n=300"],
    "clusters 12 of 30, shift 0.5": clusters(SIZES["12 of 30"], 0.5),
    "clusters 300 of 5, shift 0.1": clusters(SIZES["300 of 5"], 0.1),
    "clusters 203, three of 300, shift 0.5": clusters(SIZES["203, three of 300"], 0.5),
    "clusters one of 2,000, 15 of 5, calibrated": clusters(SIZES["one of 2,000, 15 of 5"]),
    "beta(0.8, 1.6) calibrated, n=2,000": LEVEL["beta(0.8, 1.6), n=2,000"],
}

TIES: dict[str, Draw] = {
    "few levels (LLM), 8 points too high, n=300": rows(_llm, lambda p: p - 0.08, 300),
    "jump at 0.8, n=1,000": rows(_beta(1, 1), lambda p: np.where(p > 0.8, p - 0.15, p), 1000),
    "slope 0.7, n=1,500": rows(_odds(0, 1.2), _tempered(0.7), 1500),
    "two modes, 9 points, n=30,000": rows(_modes, lambda p: np.where(p > 0.5, p - 0.17, p), 30_000),
    "two modes, 9 points, n=3,000": rows(_modes, lambda p: np.where(p > 0.5, p - 0.17, p), 3000),
    "wave, 6 periods, n=3,000": POWER["wave, 6 periods, n=3,000"],
    "rare, twice the risk, n=20,000": rows(_odds(-5), lambda p: p / 2, 20_000),
    "clusters 40 of 30, shift 0.7": clusters([30] * 40, 0.7),
    "clusters 300 of 5, shift 0.5": clusters([5] * 300, 0.5),
}

#: Worst cells of reproduce/results/coverage.csv, waves, jumps, rare events, atoms, clusters, weights, calibrated.
COVERAGE = [
    ("densenet40_c100", 5_000),
    ("101 atoms, zigzag", 5_000),
    ("5 % events, wave in log-odds", 5_000),
    ("0.2 % events, twice the risk", 20_000),
    ("5 atoms, 0.12 too high", 1_000),
    ("hard scores, 5 % wrong", 5_000),
    ("wrong in the top 2 %", 5_000),
    ("one-sided dip at 0.9", 20_000),
    ("1 % events, twice the risk", 5_000),
    ("11 atoms, zigzag", 1_000),
    ("30 % of scores are 1, of which 5 % are wrong", 1_000),
    ("a quarter at 0.5, chance 0.7", 1_000),
    ("wave, 3 periods", 5_000),
    ("wave, 6 periods", 5_000),
    ("near 0.5, 0.05 too high", 5_000),
    ("near 0.5, slope 6", 1_000),
    ("atoms with gaps among calibrated scores", 5_000),
    ("uniform, timid (temperature 0.7)", 1_000),
    ("three steps", 1_000),
    ("ten stairs", 5_000),
    ("sawtooth, 5 teeth", 1_000),
    ("chirp", 5_000),
    ("bump at 0.5", 1_000),
    ("two modes with hooks", 1_000),
    ("beta(2, 2), p^1.5", 200),
    ("faint wave, 6 periods", 5_000),
    ("faint square wave, 8 periods", 5_000),
    ("20 levels, a random gap at each", 1_000),
    ("2 % at 0.25, chance 0.6", 1_000),
    ("1 % events, half the risk", 1_000),
    ("scores of 0.1 %, true chance 1 %", 1_000),
    ("beta(0.3, 0.3), 2 % of labels flipped", 1_000),
    ("two populations, change of sign", 1_000),
    ("uniform, calibrated", 1_000),
    ("5 atoms, calibrated", 1_000),
    ("11 atoms, calibrated", 5_000),
    ("1 % events, calibrated", 5_000),
    ("beta(2, 2), calibrated", 200),
    ("20 levels, calibrated", 5_000),
    ("two modes, calibrated", 1_000),
    ("uneven clusters, independent scores, calibrated", 1_000),
    ("uneven clusters, correlated scores, temperature 1.8", 1_000),
    ("uneven clusters, independent scores, temperature 1.8", 1_000),
    ("log-normal weights, temperature 1.8", 1_000),
    ("log-normal weights, calibrated", 1_000),
    ("informative weights, temperature 1.8", 1_000),
]

#: Samples of each world.
SAMPLES = {"level": 500, "power": 200, "coverage": 100, "pages": 60, "ties": 4}
SEEDS = 12


def rng_of(part: str, world: str, k: int) -> np.random.Generator:
    """The generator of one sample."""
    return np.random.default_rng([2026, zlib.crc32(f"{part} {world}".encode()), k])


def both(data: cal.Binary, seed: int = 0) -> list[float]:
    """Low and high of L1, low and high of L2."""
    found = cal.inference.Inversion(seed=seed).intervals(data, norms=(1.0, 2.0))
    return [float(end) for one in found for end in (one.low, one.high)]


def measured_tests(part: str, samples: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Shares of samples in which the default test rejects."""
    for world, draw in (LEVEL if part == "level" else POWER).items():
        p = [cal.calibration_test(draw(rng_of(part, world, k))).p_value for k in range(samples)]
        yield world, {"rejected": float(np.mean(np.array(p) <= ALPHA))}


def measured_coverage(samples: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Misses below and above, mean widths and mean lower ends."""
    every = [
        *coverage_worlds.rough(),
        *coverage_worlds.calibrated(),
        *coverage_worlds.unseen(),
        *coverage_designs.designs(),
    ]
    named = {one.name: one for one in [*every, *coverage_worlds.published()]}
    for name, n in COVERAGE:
        world: Any = named[name]
        truth = np.array([world.true_error(1.0), world.true_error(2.0)])
        begin = time.process_time()
        ends = np.array([both(world.sample(n, rng_of("coverage", name, k))) for k in range(samples)])
        spent = (time.process_time() - begin) / samples
        low, high = ends[:, ::2], ends[:, 1::2]
        found = {"milliseconds": 1000 * spent}
        for k, norm in enumerate(("L1", "L2")):
            found[f"{norm} low misses"] = float(np.mean(low[:, k] > truth[k] + 1e-12))
            found[f"{norm} high misses"] = float(np.mean(high[:, k] < truth[k] - 1e-12))
            found[f"{norm} width"] = float(np.mean(high[:, k] - low[:, k]))
            found[f"{norm} low"] = float(np.mean(low[:, k]))
            found[f"{norm} zero excluded"] = float(np.mean(low[:, k] > 0))
        yield f"{name}, n={n:,}", found


def page(data: cal.Binary) -> dict[str, float]:
    """What a page shows, and which of its lines contradict each other; 1 for each that does."""
    share = 0.25 if data.group is None else 0.5
    test = cal.calibration_test(data).p_value <= ALPHA
    low1, _, low2, _ = both(data)
    ratio = cal.interval(cal.observed_expected, data, level=1 - share * ALPHA).interval
    slope = cal.interval(cal.calibration_slope, data, level=1 - ALPHA / 10).interval
    usual = cal.interval(cal.observed_expected, data).interval
    mean = float(np.average(data.y_prob, weights=data.weight))
    gap = max(mean * (ratio.low - 1), mean * (1 - ratio.high), 0.0)
    return {
        "O:E at its share excludes 1, test silent": float(not ratio.low <= 1 <= ratio.high and not test),
        "slope at its share excludes 1, test silent": float(not slope.low <= 1 <= slope.high and not test),
        "L1 or L2 excludes 0, test silent": float(max(low1, low2) > 0 and not test),
        "L1 or L2 below the mean gap": float(gap > min(low1, low2) + 1e-12),
        "test rejects": float(test),
        "L1 excludes 0": float(low1 > 0),
        "O:E at 95 % excludes 1": float(not usual.low <= 1 <= usual.high),
    }


def measured_pages(samples: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Shares of pages."""
    for world, draw in PAGES.items():
        found = [page(draw(rng_of("pages", world, k))) for k in range(samples)]
        yield world, {key: float(np.mean([one[key] for one in found])) for key in found[0]}


def turned(data: cal.Binary) -> cal.Binary:
    """Events exchanged for non-events."""
    return cal.Binary(1 - data.y_true, 1 - data.y_prob, weight=data.weight, group=data.group)


def renamed(data: cal.Binary, rng: np.random.Generator) -> cal.Binary:
    """Clusters with other names."""
    names = rng.permutation(int(np.max(data.group)) + 1) if data.group is not None else None
    return cal.Binary(data.y_true, data.y_prob, group=None if names is None else names[data.group])


def measured_ties(samples: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Standard deviation and range over seeds, and differences if turned or renamed, in parts of the width."""
    for world, draw in TIES.items():
        found: dict[str, list[float]] = {}
        for k in range(samples):
            rng = rng_of("ties", world, k)
            data = draw(rng)
            ends = np.array([both(data, seed) for seed in range(SEEDS)])
            width = np.repeat([(ends[:, 1] - ends[:, 0]).mean(), (ends[:, 3] - ends[:, 2]).mean()], 2)
            other = np.abs(np.array(both(turned(data))) - ends[0]) / width
            names = np.abs(np.array(both(renamed(data, rng))) - ends[0]) / width
            for j, end in enumerate(("L1 low", "L1 high", "L2 low", "L2 high")):
                found.setdefault(f"{end} sd", []).append(float(ends[:, j].std() / width[j]))
                found.setdefault(f"{end} range", []).append(float(np.ptp(ends[:, j]) / width[j]))
                found.setdefault(f"{end} turned", []).append(float(other[j]))
                found.setdefault(f"{end} renamed", []).append(float(names[j]))
        yield world, {key: max(values) for key, values in found.items()}


def measured(part: str, part_of: float) -> Iterator[tuple[str, dict[str, float]]]:
    """One part of the study."""
    samples = max(1, round(SAMPLES[part] * (part_of if part != "ties" else 1)))
    if part in ("level", "power"):
        yield from measured_tests(part, samples)
    else:
        yield from {"coverage": measured_coverage, "pages": measured_pages, "ties": measured_ties}[part](samples)


def run(
    parts: list[str], source: Path | None, part_of: float, worlds: list[str] | None
) -> dict[str, dict[str, dict[str, float]]]:
    """All parts with one source tree, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        here = Path(__file__).parent.parent
        places = [str(here / "src" if source is None else source), str(here)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
        command = [
            sys.executable,
            "-m",
            "reproduce.coherence",
            "--write",
            str(path),
            "--part-of",
            str(part_of),
            "--parts",
            *parts,
            *(["--worlds", *worlds] if worlds else []),
        ]
        subprocess.run(command, check=True, env=environment, cwd=here)
        found: dict[str, dict[str, dict[str, float]]] = json.loads(path.read_text(encoding="utf8"))
    return found


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--part-of", type=float, default=1.0)
    parser.add_argument("--worlds", nargs="+", help="of the level and the power; all of them by default")
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    if asked.worlds:
        for some in (LEVEL, POWER):
            for name in set(some) - set(asked.worlds):
                del some[name]
    if asked.write is not None:
        found = {part: dict(measured(part, asked.part_of)) for part in asked.parts}
        asked.write.write_text(json.dumps(found), encoding="utf8")
        return
    for part in asked.parts:
        after = run([part], None, asked.part_of, asked.worlds)
        before = run([part], asked.before, asked.part_of, asked.worlds) if asked.before is not None else {}
        keep(part, before.get(part, {}), after[part], asked.part_of)
    report()


def keep(part: str, before: dict[str, dict[str, float]], after: dict[str, dict[str, float]], part_of: float) -> None:
    """Replace the lines of one part in the file, or those of the worlds that were measured."""
    path = RESULTS / "coherence.csv"
    old = []
    if path.exists():
        with open(path, newline="", encoding="utf8") as file:
            old = [line for line in csv.DictReader(file) if line["part"] != part or line["world"] not in after]
    samples = max(1, round(SAMPLES[part] * (part_of if part != "ties" else 1)))
    for world, found in after.items():
        for quantity, value in found.items():
            earlier = before.get(world, {}).get(quantity)
            old.append({
                "part": part, "world": world, "quantity": quantity, "samples": str(samples),
                "before": "" if earlier is None else f"{earlier:.5g}", "after": f"{value:.5g}",
            })  # fmt: skip
    old.sort(key=lambda line: PARTS.index(line["part"]))
    with open(path, "w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, ["part", "world", "quantity", "samples", "before", "after"])
        writer.writeheader()
        writer.writerows(old)


def report() -> None:
    """Write the tables, worst worlds first."""
    with open(RESULTS / "coherence.csv", newline="", encoding="utf8") as file:
        lines = list(csv.DictReader(file))
    day = f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}"
    text = [
        "# One page, one inference: binary predictions", "",
        f"`python -m reproduce.coherence`, {day}, calibrant {cal.__version__}, NumPy {np.__version__}. Each cell is",
        "before → after the lines of a page shared one error budget, on the same samples; worst worlds first.",
        "All numbers are in coherence.csv. Coverage and contradictions of pages were measured before the design effect",
        "of clusters was changed; a cell without an arrow was measured without the earlier state.", "",
    ]  # fmt: skip
    for part in PARTS:
        some = [line for line in lines if line["part"] == part]
        if some:
            text += _table(part, some)
    (RESULTS / "coherence.md").write_text("\n".join(text) + "\n", encoding="utf8")


TITLES = {
    "level": "Level of the default test at 5 %, calibrated worlds",
    "power": "Power of the default test at 5 %",
    "coverage": "L1 and L2: ends on the wrong side of the truth, mean widths",
    "pages": "Pages: shares with a contradiction, and what they show",
    "ties": "Ends over 12 seeds, with exchanged outcomes and with renamed clusters, in parts of the width",
}


#: What was asked beside a table, and found.
NOTES = {
    "power": (
        "A prototype of this test was said to reject a rare risk 4 times too high in 0.66 of 150 samples, and 12",
        "clusters of 30 in 0.68 of 300. On the 1,000 samples of this table it rejects in 0.630 and 0.590, this test",
        "in 0.627 and 0.653. Three changes were measured in 29 other calibrated and 28 other wrong worlds, 100 to 600",
        "samples each. A mean of e-values in the place of the smallest p-value gained at most 0.05 with rare risks",
        "and lost up to 0.07 with waves. Signs of clusters alone, where ten events count, gained 0.00 to 0.17, but",
        "rejected up to 0.077 of calibrated samples. Ties that the next component breaks gained at most 0.02 with",
        "rare risks, and 0.004 elsewhere.",
    ),
}


def _table(part: str, lines: list[dict[str, str]]) -> list[str]:
    worlds = list(dict.fromkeys(line["world"] for line in lines))
    names = list(dict.fromkeys(line["quantity"] for line in lines))
    cells = {(line["world"], line["quantity"]): (line["before"], line["after"]) for line in lines}

    def worst(world: str) -> float:
        change = [float(b or 0) for _, b in (cells[world, name] for name in names)]
        if part == "power":
            return float(cells[world, "rejected"][1]) - float(cells[world, "rejected"][0] or 0)
        if part == "coverage":
            return -max(v for name, v in zip(names, change, strict=True) if "misses" in name)
        return -max(change[: 4 if part == "pages" else len(change)])

    def shown(pair: tuple[str, str]) -> str:
        short = [f"{float(one):.3g}" if one else "" for one in pair]
        return " → ".join(short) if short[0] else short[1]

    samples = {line["world"]: line["samples"] for line in lines}
    head = [f"## {TITLES[part]}", "", *NOTES.get(part, ())]
    head += [""] if part in NOTES else []
    table = ["| world | samples | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for world in sorted(worlds, key=worst):
        found = " | ".join(shown(cells[world, name]) for name in names)
        table.append(f"| {world} | {samples[world]} | {found} |")
    return [*head, *table, ""]


if __name__ == "__main__":
    main()
