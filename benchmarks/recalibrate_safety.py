"""How much can a map fitted to few rows hurt? Regret and harm in log loss, on real predictions and in worlds.

`python -m benchmarks.recalibrate_safety [--samples 4] [--maps Platt Smoothed ...]`: maps are fitted to 20 .. 5000 rows
and scored on the rest (real predictions) or by the true probabilities of fresh scores (worlds). Regret is the mean log
loss less that of the best of the identity and all single maps in the same cell (data and n); harm is the log loss of
one sample less that of the identity. Probabilities are cut at 1e-6. `Auto` is `BayesianAverage` for binary data.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measuring import write_results
from benchmarks.recalibrate_quality import data_sets
from calibrant import recalibrate as rc

SIZES = (20, 50, 100, 300, 1000, 5000)
#: How many times as many samples are drawn of few rows, whose results vary most.
TIMES = {20: 4, 50: 2, 100: 2}
SINGLE = ("Identity", "Temperature", "Platt", "Beta", "Isotonic", "VennAbers", "Spline", "Smoothed")
FLOOR = 1e-6

Draw = Callable[[np.random.Generator, int], np.ndarray]
Curve = Callable[[np.ndarray], np.ndarray]
Case = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]


def expit(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def logit(p: np.ndarray) -> np.ndarray:
    return np.log(p) - np.log1p(-p)


def uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.random(n)


def beta(a: float, b: float) -> Draw:
    return lambda rng, n: rng.beta(a, b, n)


def normal_logits(mean: float, spread: float) -> Draw:
    return lambda rng, n: expit(rng.normal(mean, spread, n))


def rounded(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.round(rng.random(n), 1)


def tempered(t: float) -> Curve:
    return lambda p: expit(logit(np.clip(p, 1e-12, 1 - 1e-12)) / t)


def steps(p: np.ndarray) -> np.ndarray:
    return np.where(p < 0.3, 0.2, np.where(p < 0.7, 0.55, 0.8))


#: Rows that a map is scored on at most: more would cost time, and regrets are differences on the same rows.
TEST_ROWS = 10_000

#: Score distribution and true curve. The prior weights of `BayesianAverage` and the standard deviations of a slope
#: alone were chosen on these worlds and all files, with other seeds.
WORLDS: dict[str, tuple[Draw, Curve]] = {
    "uniform, calibrated": (uniform, lambda p: p),
    "uniform, p^1.5": (uniform, lambda p: p**1.5),
    "uniform, wave": (uniform, lambda p: p + 0.08 * np.sin(6 * np.pi * p) * (p > 1 / 6)),
    "uniform, three steps": (uniform, steps),
    "uniform, reversed": (uniform, lambda p: 1 - p),
    "rounded to tenths, shrunk to the middle": (rounded, lambda p: 0.5 + 0.7 * (p - 0.5)),
    "beta(2, 2), temperature 2": (beta(2, 2), tempered(2.0)),
    "beta(2, 2), temperature 0.6": (beta(2, 2), tempered(0.6)),
    "beta(6, 2), shifted by -1": (beta(6, 2), lambda p: expit(logit(p) - 1)),
    "beta(.5, .5), calibrated": (beta(0.5, 0.5), lambda p: p),
    "beta(.5, .5), temperature 3": (beta(0.5, 0.5), tempered(3.0)),
    "1 % events, calibrated": (normal_logits(-5.2, 1.2), lambda p: p),
    "1 % events, half as many": (normal_logits(-5.2, 1.2), lambda p: p / 2),
    "1 % events, twice as many": (normal_logits(-5.2, 1.2), lambda p: np.minimum(2 * p, 1)),
    "0.1 % events, calibrated": (normal_logits(-7.6, 1.2), lambda p: p),
    "heavy tails, calibrated": (lambda rng, n: expit(2 * rng.standard_t(2, n)), lambda p: p),
    "heavy tails, temperature 1.5": (lambda rng, n: expit(2 * rng.standard_t(2, n)), tempered(1.5)),
    "confident network, 8 % of the certain wrong": (
        normal_logits(4, 2),
        lambda p: np.where(p > 0.99, 0.92, np.minimum(p, 0.92)),
    ),
    "narrow, slope 3": (
        lambda rng, n: 0.3 + 0.02 * rng.standard_normal(n),
        lambda p: np.clip(0.3 + 3 * (p - 0.3), 0, 1),
    ),
    "bimodal with a hook": (
        lambda rng, n: np.where(rng.random(n) < 0.5, rng.beta(2, 12, n), rng.beta(12, 2, n)),
        lambda p: np.clip(p - 0.15 * np.exp(-(((p - 0.85) / 0.05) ** 2)), 0, 1),
    ),
}

#: Worlds on which nothing was chosen.
NEW_WORLDS: dict[str, tuple[Draw, Curve]] = {
    "beta(1, 3), calibrated": (beta(1, 3), lambda p: p),
    "beta(1, 3), temperature 1.7": (beta(1, 3), tempered(1.7)),
    "beta(3, 1), shifted by 0.7": (beta(3, 1), lambda p: expit(logit(p) + 0.7)),
    "5 % events, temperature 2": (normal_logits(-3.5, 1.5), tempered(2.0)),
    "5 % events, calibrated": (normal_logits(-3.5, 1.5), lambda p: p),
    "confident on both sides, 5 % wrong": (normal_logits(0, 6), lambda p: 0.05 + 0.9 * p),
    "uniform, only ranks": (uniform, lambda p: 0.2 + 0.6 * (p > 0.6)),
    "no information": (normal_logits(0, 1.5), lambda p: np.full_like(p, 0.35)),
    "rounded to tenths, calibrated": (rounded, lambda p: p),
    "asymmetric bend": (beta(2, 3), lambda p: np.where(p < 0.4, p, 0.4 + 0.5 * (p - 0.4))),
}


def of_world(draw: Draw, curve: Curve) -> Case:
    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        p, new = draw(rng, n), draw(rng, TEST_ROWS)
        return p, (rng.random(n) < curve(p)).astype(int), new, curve(new)

    return sample


def of_rows(p: np.ndarray, y: np.ndarray) -> Case:
    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        order = rng.permutation(len(y))
        fit, rest = order[:n], order[n : n + TEST_ROWS]
        return p[fit], y[fit], p[rest], y[rest].astype(float)

    return sample


def cases() -> Iterator[tuple[str, str, Case, int]]:
    """Kind, name, how to sample, and the number of rows there are."""
    for name, p, y in data_sets():
        if p.ndim == 1:
            yield "files", name, of_rows(p, y), len(y)
        else:
            yield "files", f"{name}, top label", of_rows(p.max(axis=1), (p.argmax(axis=1) == y).astype(int)), len(y)
    for kind, worlds in (("worlds", WORLDS), ("new worlds", NEW_WORLDS)):
        for name, (draw, curve) in worlds.items():
            yield kind, name, of_world(draw, curve), 1 << 60


def log_loss(chance: np.ndarray, q: np.ndarray) -> float:
    q = np.clip(q, FLOOR, 1 - FLOOR)
    return float(-np.mean(chance * np.log(q) + (1 - chance) * np.log1p(-q)))


def measured(case: Case, n: int, samples: int, maps: dict[str, rc.Recalibrator], seed: int) -> np.ndarray:
    """Log loss per sample and map."""
    found = np.empty((samples, len(maps)))
    for k in range(samples):
        p, y, new, chance = case(np.random.default_rng([seed, n, k]), n)
        for j, template in enumerate(maps.values()):
            q = template.fit(p, y, classes=[0, 1]).predict_proba(new)[:, 1]
            found[k, j] = log_loss(chance, q)
    return found


def standard_error(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def summary(kind: str, cells: dict[tuple[str, int], np.ndarray], names: list[str]) -> list[str]:
    """Mean regret by n, worst cell, harm."""
    single = [names.index(name) for name in SINGLE if name in names]
    lines = [
        f"## {kind}: {len({name for name, _ in cells})} of them",
        "",
        "| map | " + " | ".join(f"n = {n}" for n in SIZES) + " | mean regret | worst cell | harm of a sample, worst "
        "| mean harm at n >= 50, worst | share worse by > .01 |",
        "|-|" + "-|" * (len(SIZES) + 5),
    ]
    for j, name in enumerate(names):
        regret = {cell: own[:, j].mean() - own[:, single].mean(axis=0).min() for cell, own in cells.items()}
        harm = {cell: own[:, j] - own[:, names.index("Identity")] for cell, own in cells.items()}
        by_n = [1e4 * np.mean([r for (_, m), r in regret.items() if m == n]) for n in SIZES]
        worst = max(regret, key=lambda cell: regret[cell])
        best = single[int(cells[worst][:, single].mean(axis=0).argmin())]
        error = standard_error(cells[worst][:, j] - cells[worst][:, best])
        sample = max(harm, key=lambda cell: harm[cell].max())
        large = {cell: h.mean() for cell, h in harm.items() if cell[1] >= 50}
        at = max(large, key=lambda cell: large[cell])
        share = np.mean([np.mean(h > 0.01) for h in harm.values()])
        lines.append(
            f"| {name} | "
            + " | ".join(f"{value:.0f}" for value in by_n)
            + f" | {np.mean(list(regret.values())):.4f} | {regret[worst]:.3f} ± {error:.3f} ({worst[0]}, {worst[1]}) "
            f"| {harm[sample].max():.3f} ({sample[0]}, {sample[1]}) "
            f"| {large[at]:.4f} ± {standard_error(harm[at]):.4f} ({at[0]}, {at[1]}) | {share:.3f} |"
        )
    return [*lines, "", "Regret by n in units of 1e-4.", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--maps", nargs="*", default=[*SINGLE, "BayesianAverage"])
    parser.add_argument("--kinds", nargs="*", default=["files", "worlds", "new worlds"])
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    maps = {name: getattr(rc, name)() for name in options.maps}
    cells: dict[str, dict[tuple[str, int], np.ndarray]] = {kind: {} for kind in options.kinds}
    for kind, name, case, rows in cases():
        if kind in cells:
            for n in options.sizes:
                if rows >= n + 200:
                    samples = options.samples * TIMES.get(n, 1)
                    cells[kind][name, n] = measured(case, n, samples, maps, options.seed)
            print(kind, name, flush=True)
    lines = [
        f"{options.samples} samples per cell, four times as many at n = 20 and twice as many at 50 and 100, where "
        "results vary most; worst cells with their standard errors. The harm of a sample is the largest of all "
        "samples, which grows with their number. The mean harm is the largest of some 200 means of few samples: chance "
        "makes it larger than what another sample of that cell should be expected to have. The prior of "
        "`BayesianAverage` was chosen with other seeds on all files and the 20 worlds; on the ten new worlds nothing "
        "was chosen.",
        "",
        *(line for kind in options.kinds for line in summary(kind, cells[kind], list(maps))),
    ]
    if options.no_write:
        print("\n".join(lines))
    else:
        command = f"python -m benchmarks.recalibrate_safety --samples {options.samples} --seed {options.seed}"
        write_results("recalibrate_safety", "Harm and regret of maps fitted to few rows", command, lines)


if __name__ == "__main__":
    main()
