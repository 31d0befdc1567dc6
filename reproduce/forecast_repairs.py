"""Do intervals of few clusters cover, do repairs leave calibrated ensembles alone, and do shifts by horizon help?

``python -m reproduce.forecast_repairs`` writes reproduce/results/forecast_repairs.md; what its CSV files hold already
is not measured again. Its samples are others than those on which the methods were developed.
"""

from __future__ import annotations

import platform
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

import calibrant as cal
from calibrant import recalibrate
from reproduce.resumable import Row, asked_samples, markdown, measured

RESULTS = Path(__file__).with_name("results")
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
#: Clusters, rows of each, correlation of their errors, factor of the errors, bend of the factor in log sigma, design.
CLUSTERS = (
    (6, 20, 0.5, 1.0, 0.0, "equal"),
    (10, 100, 0.5, 1.0, 0.0, "equal"),
    (10, 20, 0.9, 1.0, 0.0, "equal"),
    (8, 20, 0.5, 1.3, 0.0, "equal"),
    (10, 3, 0.5, 1.0, 0.0, "equal"),
    (15, 20, 0.5, 1.0, 0.0, "uneven"),
    (10, 30, 0.5, 1.0, 0.4, "equal"),
    (25, 20, 0.5, 1.2, 0.4, "uneven"),
    (10, 30, 0.5, 1.0, 0.0, "heavy tails"),
    (10, 30, 0.5, 1.0, 0.0, "own spreads"),
    (60, 20, 0.5, 1.0, 0.4, "equal"),
    (10, 50, 0.5, 1.0, 0.0, "quantiles"),
    (10, 50, 0.5, 1.0, 0.0, "ensemble"),
)
ESTIMATORS = {
    "coverage": cal.coverage,
    "scale factor": cal.scale_factor,
    "ENCE": cal.ence,
    "interval error": cal.interval_error,
    "PIT error": cal.pit_error,
}


#: What has a known truth: quantiles have no spread, and coverage of mixed heavy tails is not that of normal errors.
KNOWN = {"quantiles": ("coverage", "interval error", "PIT error"), "heavy tails": ("scale factor", "ENCE")}


def clustered(rng: np.random.Generator, design: tuple[Any, ...]) -> Any:
    """Forecasts whose rows share a spread and part of their error within clusters; at least 6 effective clusters."""
    clusters, rows, alike, factor, bend, kind = design
    size = np.full(clusters, rows)
    while kind == "uneven":
        size = np.maximum(np.rint(rows * rng.lognormal(-0.5, 1, clusters)), 1).astype(int)
        if size.sum() ** 2 / (size @ size) >= 6:
            break
    group = np.repeat(np.arange(clusters), size)
    place = rng.normal(size=len(group)) if kind == "own spreads" else rng.normal(size=clusters)[group]
    own = rng.standard_t(5, len(group)) * np.sqrt(0.6) if kind == "heavy tails" else rng.normal(size=len(group))
    z = np.sqrt(alike) * rng.normal(size=clusters)[group] + np.sqrt(1 - alike) * own
    std = np.exp(0.5 * place)
    y = std * factor * np.exp(bend * (np.abs(place) - 0.8)) * z
    if kind == "quantiles":
        return cal.Quantiles(y, LEVELS, std[:, None] * ndtri(LEVELS), group=group)
    if kind == "ensemble":
        return cal.Samples(y, std[:, None] * rng.normal(size=(len(y), 8)), group=group)
    return cal.Gaussian(y, 0 * std, std, group=group)


def cluster_truth(factor: float, bend: float) -> dict[str, float]:
    """The true values for normal errors, over the distribution of the spreads."""
    ratio = factor * np.exp(bend * (np.abs(ndtri((np.arange(5000) + 0.5) / 5000)) - 0.8))
    inside = np.array([np.mean(2 * ndtr(ndtri((1 + p) / 2) / ratio) - 1) - p for p in (np.arange(400) + 0.5) / 400])
    below = np.array([np.mean(ndtr(z / ratio)) - ndtr(z) for z in np.linspace(-4, 4, 161)])
    return {
        "coverage": float(np.mean(2 * ndtr(ndtri(0.95) / ratio) - 1)),
        "scale factor": float(np.sqrt(np.mean(ratio**2))),
        "ENCE": float(np.mean(np.abs(ratio - 1))),
        "interval error": float(np.abs(inside).mean()),
        "PIT error": float(np.abs(below).max()),
    }


def covered(clusters: int, rows: int, alike: float, factor: float, bend: float, kind: str, samples: int) -> Row:
    """The share of samples in which each interval holds the truth."""
    truth = cluster_truth(factor, bend)
    if kind == "ensemble":
        truth["coverage"] = 7 / 9  # the range of 8 draws is narrower than 90 %
    found: dict[str, list[bool]] = {name: [] for name in ESTIMATORS}
    for k in range(samples):
        data = clustered(np.random.default_rng([4711, clusters, rows, k]), (clusters, rows, alike, factor, bend, kind))
        for name, estimator in ESTIMATORS.items():
            if name in KNOWN.get(kind, ESTIMATORS):
                one = cal.interval(estimator, data).interval
                found[name].append(one is not None and one.low - 1e-9 <= truth[name] <= one.high + 1e-9)
    shares = {name: round(float(np.mean(hits)), 3) if hits else "" for name, hits in found.items()}
    return {**shares, "least": min(value for value in shares.values() if value != "")}


#: Law, spread of the draws over the true one, draws, rows of the fit.
ENSEMBLES = tuple(
    (law, spread, draws, rows)
    for law, spread in (("normal", 1.0), ("exponential", 1.0), ("normal", 0.7), ("t4", 0.7), ("gamma", 0.7))
    for draws in (5, 20)
    for rows in ((200, 2000) if spread == 1 else (2000,))
)
MAPS = {
    "ExchangeableStretch": recalibrate.ExchangeableStretch,
    "StdScaling": recalibrate.StdScaling,
    "AutoForecast": recalibrate.AutoForecast,
}


def ensemble(rng: np.random.Generator, law: str, spread: float, draws: int, rows: int) -> cal.Samples:
    """An outcome and draws of one law about 0, with spreads that differ between rows."""
    size = (rows, draws + 1)
    values = {
        "normal": lambda: rng.normal(size=size),
        "exponential": lambda: rng.exponential(size=size) - 1,
        "gamma": lambda: rng.gamma(4, size=size) / 2 - 2,
        "t4": lambda: rng.standard_t(4, size),
    }[law]() * rng.lognormal(0, 0.5, rows)[:, None]
    return cal.Samples(values[:, 0], spread * values[:, 1:])


def rejected(law: str, spread: float, draws: int, rows: int, samples: int) -> Row:
    """The share of fits after which the default test rejects 1000 fresh rows at 5 %, and the mean coverage gap."""
    names = ("untouched", *MAPS)
    hits: dict[str, list[bool]] = {name: [] for name in names}
    gaps = []
    for k in range(samples):
        rng = np.random.default_rng([4712, draws, rows, k])
        train, fresh = ensemble(rng, law, spread, draws, rows), ensemble(rng, law, spread, draws, 1000)
        for name in names:
            fixed = fresh if name == "untouched" else MAPS[name]().fit(train).transform(fresh)
            hits[name].append(cal.calibration_test(fixed).p_value < 0.05)
            if name == "AutoForecast":
                gaps.append(float(cal.coverage(fixed, nominal=0.99)) - (draws - 1) / (draws + 1))
    shares = {name: round(float(np.mean(some)), 3) for name, some in hits.items()}
    return {**shares, "coverage gap": round(float(np.mean(gaps)), 4)}


#: What differs between 14 horizons, and rows of each.
HORIZONS = (("calibrated", 30), ("calibrated", 120), ("trend", 120), ("one bad", 120), ("common", 120), ("trend", 500))


def quantiles(rng: np.random.Generator, world: str, rows: int) -> cal.Quantiles:
    """Five quantiles of 14 horizons whose errors are too large or too small by a factor."""
    factor = {
        "calibrated": np.ones(14),
        "trend": np.linspace(0.8, 1.4, 14),
        "one bad": np.where(np.arange(14) == 5, 1.5, 1.0),
        "common": np.full(14, 1.2),
    }[world]
    horizon, spread = np.tile(np.arange(14), rows), rng.lognormal(0, 0.5, 14 * rows)
    y = spread * factor[horizon] * rng.normal(size=len(horizon))
    return cal.Quantiles(y, LEVELS, spread[:, None] * ndtri(LEVELS), group=horizon)


def shifted(world: str, rows: int, samples: int) -> Row:
    """Change of the pinball loss on fresh rows, the largest gap of coverage, and how often tests reject."""
    change, before, after, any_group, trend, named = [], [], [], [], [], []
    for k in range(samples):
        rng = np.random.default_rng([4713, rows, k])
        train, fresh = quantiles(rng, world, rows), quantiles(rng, world, 2000)
        fixed = recalibrate.GroupShift().fit(train).transform(fresh)
        change.append(100 * (float(cal.pinball(fixed)) / float(cal.pinball(fresh)) - 1))
        for found, data in ((before, fresh), (after, fixed)):
            inside = (data.values[:, 0] <= data.y_true) & (data.y_true <= data.values[:, -1])
            found.append(np.abs(np.bincount(data.group, inside) / 2000 - 0.9).max())
        tested = cal.by_group(partial(cal.coverage, nominal=0.9), train)
        any_group.append(tested.worst.p_value < 0.05)
        trend.append(tested.trend is not None and tested.trend.p_value < 0.05)
        named.append([row.group for row in tested.rows if row.adjusted < 0.05] == [5])
    return {
        "loss change %": round(float(np.mean(change)), 3),
        "worst %": round(float(np.max(change)), 3),
        "gap before": round(float(np.mean(before)), 3),
        "gap after": round(float(np.mean(after)), 3),
        "a group rejected": round(float(np.mean(any_group)), 3),
        "trend rejected": round(float(np.mean(trend)), 3),
        "only the sixth": round(float(np.mean(named)), 3),
    }


def main() -> None:
    """Measure what is missing and write the page."""
    samples = asked_samples(__doc__)
    parts = {
        "groups": (
            shifted,
            [(*one, max(samples // 4, 1)) for one in HORIZONS],
            ("world", "rows", "samples"),
            "gap after",
        ),
        "ensembles": (
            rejected,
            [(*one, max(samples // 2, 1)) for one in ENSEMBLES],
            ("law", "spread", "draws", "rows", "samples"),
            "untouched",
        ),
        "clusters": (
            covered,
            [(*one, samples) for one in CLUSTERS],
            ("clusters", "rows", "correlation", "factor", "bend", "design", "samples"),
            "least",
        ),
    }
    words = {
        "groups": "Quantiles by horizon: `GroupShift` on fresh rows, `by_group` at 5 % (14 horizons)",
        "ensembles": "Ensembles: share of fits after which the default test rejects 1000 fresh rows at 5 %",
        "clusters": "Few clusters: share of 95 % intervals that hold the truth, worst first",
    }
    pages = [
        f"# Repairs of forecasts, and intervals of few clusters\n\n{time.strftime('%d %B %Y')}, Python "
        f"{platform.python_version()}, NumPy {np.__version__}, calibrant {cal.__version__}.\n"
    ]
    for name in ("clusters", "ensembles", "groups"):
        measure, tasks, keys, order = parts[name]
        found = measured(RESULTS / f"forecast_repairs_{name}.csv", tasks if samples else [], keys, measure)
        columns = tuple(found[0]) if found else keys
        worst = order if name == "clusters" else None
        pages.append(f"## {words[name]}\n\n{markdown(found, columns, worst_first=worst)}")
    (RESULTS / "forecast_repairs.md").write_text("\n".join(pages), encoding="utf8")


if __name__ == "__main__":
    main()
