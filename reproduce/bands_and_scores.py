"""Bands at jumps, scores of few events, costs, comparisons and sample sizes, in worlds of known truth.

``python -m reproduce.bands_and_scores`` writes reproduce/results/bands_and_scores.md; what its CSV files hold already
is not measured again, and of each cell the page shows the measurement with the most samples. ``--parts few_events``
measures these alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.inference import miscalibration_cost
from calibrant.simulate.sample_sizes import rows_to_rule_out
from reproduce.resumable import Row, made_with, markdown, measured

RESULTS = Path(__file__).with_name("results")
Draw = Callable[[np.random.Generator, int], Any]
Curve = Callable[[Any], Any]

#: Rising curves with and without jumps, of uniform scores.
CURVES: dict[str, Curve] = {
    "one jump": lambda p: np.where(p < 0.5, 0.2, 0.7),
    "three steps": lambda p: np.select([p < 0.25, p < 0.5, p < 0.75], [0.1, 0.3, 0.6], 0.9),
    "twenty steps": lambda p: np.floor(20 * p) / 20,
    "rare jump": lambda p: np.where(p < 0.9, 0.001, 0.03),
    "smooth": lambda p: p**2,
    "calibrated": lambda p: p,
}
#: Distributions of rare scores, and the curve on log odds: intercept and slope.
RARE: dict[str, tuple[Draw, float, float]] = {
    "calibrated": (lambda rng, n: expit(rng.normal(-5.5, 1.0, n)), 0.0, 1.0),
    "near 0, slope 0.5": (lambda rng, n: expit(rng.normal(-7.0, 2.0, n)), -2.0, 0.5),
    "twice too low": (lambda rng, n: expit(rng.normal(-6.0, 1.5, n)), 0.7, 1.0),
    "two modes": (lambda rng, n: np.where(rng.random(n) < 0.98, 0.001, 0.4) * rng.uniform(0.8, 1.2, n), 0.0, 1.0),
    "AUC 0.98": (lambda rng, n: expit(np.where(rng.random(n) < 0.99, -9.0, 0.0) + rng.normal(0, 0.7, n)), 0.0, 1.0),
    "heavy tails": (lambda rng, n: expit(np.clip(-6.5 + 0.8 * rng.standard_t(3, n), -16, 3)), 0.3, 0.8),
    "no ranking": (lambda rng, n: np.full(n, 0.004) * rng.uniform(0.99, 1.01, n), 0.0, 1.0),
}
LOSSES = {"auc": cal.auc, "brier": cal.brier, "log_loss": cal.log_loss}


def band(world: str, n: int, samples: int) -> Row:
    """How often the confidence band of a reliability curve misses the true curve at any of its points."""
    missed, width = 0, []
    for k in range(samples):
        rng = np.random.default_rng([1, n, k, *world.encode()])
        p = rng.random(n)
        curve = cal.reliability_curve(rng.random(n) < CURVES[world](p), p, draws=2)
        truth = CURVES[world](curve.predicted)
        missed += bool(((truth < curve.confidence_low) | (truth > curve.confidence_high)).any())
        width.append(float((curve.confidence_high - curve.confidence_low).mean()))
    return {"missed": missed / samples, "mean_width": float(np.mean(width))}


def _rows(rng: np.random.Generator, world: str, n: int, kind: str) -> tuple[cal.Binary, Any]:
    """A sample, independent, weighted or in clusters, and the true probabilities of its rows."""
    draw, intercept, slope = RARE[world]
    p = draw(rng, n)
    z = intercept + slope * logit(p)
    if kind == "clustered":  # clusters of 20 whose log odds differ with a standard deviation of 0.7
        group = np.arange(n) // 20
        nodes, mass = np.polynomial.hermite_e.hermegauss(15)
        truth = expit(z[:, None] + 0.7 * nodes) @ (mass / mass.sum())
        seen = expit(z + 0.7 * rng.normal(size=group[-1] + 1)[group])
        return cal.Binary(rng.random(n) < seen, p, group=group), truth
    weight = rng.choice([1.0, 4.0], n) if kind == "weighted" else None
    truth = expit(z)
    return cal.Binary(rng.random(n) < truth, p, weight=weight), truth


def _truth(world: str, kind: str) -> dict[str, float]:
    """The population's AUC, Brier score and log loss, from a million scores."""
    data, c = _rows(np.random.default_rng(0), world, 1_000_000, kind)
    p = data.y_prob
    order = np.argsort(p)
    positive, negative = c[order], 1 - c[order]
    below = np.cumsum(negative) - negative / 2
    return {
        "rate": float(c.mean()),
        "auc": float(positive @ below / positive.sum() / negative.sum()),
        "brier": float(np.mean(c * (1 - p) ** 2 + (1 - c) * p**2)),
        "log_loss": float(np.mean(-c * np.log(p) - (1 - c) * np.log1p(-p))),
    }


def few_events(world: str, kind: str, events: int, samples: int) -> Row:
    """Misses on both sides of samples with a few expected events; errors count as failures."""
    truth = _truth(world, kind)
    n = max(round(events / truth["rate"]), 40)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in LOSSES}
    failed = 0
    for k in range(samples):
        data, _ = _rows(np.random.default_rng([2, events, k, *world.encode()]), world, n, kind)
        for name, estimator in LOSSES.items():
            if name == "auc" and data.y_true.min() == data.y_true.max():
                continue
            try:
                ends = cal.interval(estimator, data).interval
            except ValueError:
                failed += 1
                continue
            if ends is not None:
                found[name].append((ends.low, ends.high))
    line: Row = {"rows": n, "failed": failed}
    for name, ends in found.items():
        low, high = np.array(ends).T
        inside = (low <= truth[name]) & (truth[name] <= high)
        line[name] = round(float(inside.mean()), 3)
        line[f"{name} too low"] = round(float((high < truth[name]).mean()), 3)
    return line


def cost(world: str, n: int, samples: int) -> Row:
    """Misses of the cost of miscalibration at seven thresholds (the worst), and its width by the largest true cost."""
    at, p = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9]), (np.arange(100_000) + 0.5) / 100_000
    c = CURVES[world](p)
    truth = np.array([np.mean(np.abs(c - t) / (1 - t) * ((p >= t) != (c >= t))) for t in at])
    low, high, width, negative = np.zeros(len(at)), np.zeros(len(at)), [], 0
    for k in range(samples):
        rng = np.random.default_rng([3, n, k, *world.encode()])
        q = rng.random(n)
        found = miscalibration_cost(rng.random(n) < CURVES[world](q), q, thresholds=at)
        low += found.low > truth + 1e-9
        high += found.high < truth - 1e-9
        width.append(found.high - found.low)
        negative += int((found.low < 0).sum())
    return {
        "low_missed": float(low.max() / samples),
        "high_missed": float(high.max() / samples),
        "negative_ends": negative,
        "width_at_0.5": float(np.mean(width, axis=0)[4]),
        "largest_width": float(np.mean(width, axis=0).max()),
        "largest_cost": float(truth.max()),
    }


def _models(rng: np.random.Generator, world: str, n: int) -> tuple[list[cal.Binary], dict[float, float]]:
    """Two models on the same rows, and the difference of their true errors by norm."""
    x = rng.normal(size=n)
    weight = rng.choice([1.0, 3.0], n) if "weighted" in world else None
    group = np.arange(n) // 10 if "clustered" in world else None
    shock = 0.0 if group is None else 0.5 * rng.normal(size=group[-1] + 1)[group]
    true = expit(x / np.sqrt(1 + 0.25 * 0.36 * (group is not None)))  # shrunk as the shocks flatten the curve
    y = rng.random(n) < expit(x + shock)
    scores = {
        "equal": (expit(0.6 * x), expit(1.7 * x)),
        "different": (expit(1.8 * x), true),
        "both calibrated": (true, np.full(n, 0.5)),
    }[world.split(",")[0]]
    known = 0.0 if world.startswith("both calibrated") else 1.0  # a constant is calibrated if it is the mean
    errors = {q: [known * float(np.mean(np.abs(p - true) ** q) ** (1 / q)) for p in scores] for q in (1.0, 2.0)}
    return [cal.Binary(y, p, weight=weight, group=group) for p in scores], {q: a - b for q, (a, b) in errors.items()}


def comparison(world: str, n: int, samples: int) -> Row:
    """How often zero is excluded and the true difference missed, in L1 and L2, with the truth of 200,000 rows."""
    truth = _models(np.random.default_rng(0), world, 200_000)[1]
    line: Row = {}
    for norm in (1.0, 2.0):
        excluded, missed = 0, 0
        for k in range(samples):
            (a, b), _ = _models(np.random.default_rng([4, n, k, *world.encode()]), world, n)
            found = cal.compare(partial(cal.ece, norm=norm), a, b)
            excluded += found.p_value <= 0.05
            missed += not found.interval.low <= truth[norm] <= found.interval.high
        line |= {f"L{norm:g} difference": round(truth[norm], 4), f"L{norm:g} rejected": excluded / samples}
        line[f"L{norm:g} missed"] = missed / samples
    return line


#: The probability of the event where x is positive, of y ~ Bernoulli(expit(x)) with x standard normal.
_HALF = 0.67486


def three_models(n: int, samples: int) -> Row:
    """The share of samples in which any of two comparisons among three calibrated models is significant."""
    any_false = 0
    for k in range(samples):
        rng = np.random.default_rng([5, n, k])
        x = rng.normal(size=n)
        y = rng.random(n) < expit(x)
        models = {"a": expit(x), "b": np.full(n, 0.5), "c": np.where(x > 0, _HALF, 1 - _HALF)}
        found = cal.compare_many(partial(cal.ece, norm=2), {name: cal.Binary(y, p) for name, p in models.items()})
        any_false += min(one.adjusted for one in found) <= 0.05
    return {"any_rejected": any_false / samples}


SCORES: dict[str, Draw] = {
    "beta(2, 2)": lambda rng, n: rng.beta(2.0, 2.0, n),
    "beta(0.6, 1.4)": lambda rng, n: rng.beta(0.6, 1.4, n),
    "five levels": lambda rng, n: rng.choice([0.1, 0.3, 0.5, 0.8, 0.95], n),
    "two digits": lambda rng, n: np.round(rng.beta(1.0, 2.0, n), 2),
    "two modes": lambda rng, n: np.where(rng.random(n) < 0.5, 0.01, 0.9) + 0.005 * rng.random(n),
    "rare": lambda rng, n: expit(rng.normal(-4.0, 1.0, n)),
}


def ruled_out(scores: str, share: float, samples: int) -> Row:
    """Of four fresh samples of each such number, the share whose interval ends below this share of the base rate.

    Clustered rows are told no number.
    """
    reached, rows = [], []
    for k in range(samples):
        rng = np.random.default_rng([66, round(100 * share), k, *scores.encode()])
        p = SCORES[scores](rng, (400, 3000)[k % 2])
        error = share * min(float(p.mean()), 1 - float(p.mean()))
        n = rows_to_rule_out(error, cal.Binary(rng.random(len(p)) < p, p), seed=k) or 1
        rows.append(n)
        for _ in range(4):
            q = SCORES[scores](rng, n)
            ends = cal.interval(cal.ece, cal.Binary(rng.random(n) < q, q)).interval
            reached.append(ends is not None and ends.high < error)
    return {
        "median_rows": float(np.median(rows)),
        "rows_sd": round(float(np.std(np.log(rows))), 2),
        "reached": float(np.mean(reached)),
    }


def planned(by: str, samples: int) -> Row:
    """Power of the test, or of the interval, at the size that `sample_size` gives for 0.8, on fresh samples."""
    world = cal.simulate.World(cal.simulate.BetaScores(2, 5), cal.simulate.TemperatureCurve(1.5))
    size = cal.sample_size(cal.ece, world, power=0.8, by=by, runs=100)  # type: ignore[arg-type]
    fresh = [world.sample(size.n, seed=10_000 + k) for k in range(samples)]
    tests = [cal.calibration_test(data).p_value <= 0.05 for data in fresh]
    ends = [cal.interval(cal.ece, data).interval for data in fresh]
    excluded = [one is not None and one.low > 0 for one in ends]
    return {"rows": size.n, "test_rejects": float(np.mean(tests)), "interval_excludes_0": float(np.mean(excluded))}


#: Cells of `few_events` that looked worst in 200 samples, and are measured with five times as many.
WORST = [
    ("twice too low", "weighted", 7),
    ("near 0, slope 0.5", "weighted", 11),
    ("near 0, slope 0.5", "independent", 7),
    ("near 0, slope 0.5", "clustered", 7),
    ("no ranking", "independent", 11),
    ("calibrated", "weighted", 7),
    ("heavy tails", "weighted", 11),
    ("two modes", "weighted", 3),
]


def main() -> None:
    """Measure what is missing and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100, help="per cell; 0 only writes the page")
    parser.add_argument("--parts", nargs="+", help="few_events, band, cost, ...; all of them by default")
    asked = parser.parse_args()
    samples = asked.samples
    parts: list[tuple[str, str, Any, tuple[str, ...], list[tuple[Any, ...]]]] = [
        (
            "Intervals of scores with few expected events",
            "few_events",
            few_events,
            ("world", "kind", "events", "samples"),
            [
                (world, kind, events, samples)
                for kind in ("independent", "weighted", "clustered")
                for world in RARE
                for events in (3, 7, 11)
            ]
            + [(*cell, 5 * samples) for cell in WORST],
        ),
        (
            "Confidence bands of reliability curves",
            "band",
            band,
            ("world", "rows", "samples"),
            [
                (world, n, max(samples // share, 1))
                for n, share in ((20_000, 2), (100_000, 5), (1_000_000, 12))
                for world in CURVES
            ],
        ),
        (
            "Cost of miscalibration",
            "cost",
            cost,
            ("world", "rows", "samples"),
            [(world, n, max(samples // 5, 1)) for n in (300, 3000) for world in CURVES],
        ),
        (
            "Comparisons of two calibration errors",
            "comparison",
            comparison,
            ("world", "rows", "samples"),
            [
                (f"{world}{kind}", n, samples)
                for n in (500, 2000)
                for world in ("equal", "different", "both calibrated")
                for kind in ("", ", weighted", ", clustered")
            ],
        ),
        ("Three models", "three_models", three_models, ("rows", "samples"), [(n, samples) for n in (500, 2000)]),
        (
            "Rows that rule out an error, of calibrated models",
            "ruled_out",
            ruled_out,
            ("scores", "share", "samples"),
            [(name, share, max(samples // 8, 1)) for name in SCORES for share in (0.1, 0.3)],
        ),
        ("Sample sizes", "planned", planned, ("by", "samples"), [(by, samples) for by in ("test", "interval")]),
    ]
    pages = ["# Bands, scores of few events, costs, comparisons and sample sizes\n"]
    pages.append(
        f"\n{made_with()} `python -m reproduce.bands_and_scores`; on a busy machine, see the numbers of samples.\n"
    )
    for title, name, function, keys, tasks in parts:
        wanted = tasks if samples and (asked.parts is None or name in asked.parts) else []
        found = _with_most_samples(measured(RESULTS / f"bands_and_scores_{name}.csv", wanted, keys, function), keys)
        columns = tuple(dict.fromkeys(key for line in found for key in line))
        pages.append(f"\n## {title}\n\n{cleandoc(function.__doc__ or '')}\n\n{markdown(found, columns)}")
    (RESULTS / "bands_and_scores.md").write_text("".join(pages), encoding="utf8")


def _with_most_samples(lines: list[Row], keys: tuple[str, ...]) -> list[Row]:
    """Of each cell the line with the most samples; the later of two with as many."""
    best: dict[tuple[str, ...], Row] = {}
    for line in lines:
        cell = tuple(str(line[key]) for key in keys if key != "samples")
        if cell not in best or int(line["samples"]) >= int(best[cell]["samples"]):
            best[cell] = line
    return list(best.values())


if __name__ == "__main__":
    main()
