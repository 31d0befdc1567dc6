"""Does the audit by features keep its promises, and what does it find?

``python -m reproduce.audit`` writes reproduce/results/audit.md; what its CSV files hold already is not measured again.
Everything is measured through `cal.audit` and `cal.recalibrate.FeatureMap`. Worlds of calibrated models, of planted
errors, and of planted segments have features of every kind. No constant was chosen on worlds of this file but those of
the specification, which are marked (T).
"""

from __future__ import annotations

import platform
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr

import calibrant as cal
from calibrant.inference.feature_audit import _lower_bound
from reproduce.resumable import Row, asked_samples, markdown, measured

RESULTS = Path(__file__).with_name("results")
Features = dict[str, Any]

COUNTRIES = ["FR", "DE", "US", "UK", "ES", "IT", "NL", "PL"]


def base(n: int, rng: np.random.Generator, *, noise: int = 0, heavy: bool = False) -> tuple[Features, np.ndarray]:
    """Eleven features of several kinds, and scores that use three of them."""
    draw = (lambda: rng.standard_t(1.5, n)) if heavy else (lambda: rng.normal(size=n))
    X: Features = {f"x{j}": draw() for j in range(8)}
    X["country"] = rng.choice(COUNTRIES, n, p=[0.1, 0.15, 0.3, 0.15, 0.1, 0.1, 0.05, 0.05])
    X["device"] = rng.choice(["mobile", "desktop", "tablet"], n, p=[0.5, 0.4, 0.1])
    X["age"] = rng.integers(18, 80, n)
    X |= {f"noise{j}": rng.normal(size=n) for j in range(noise)}
    line = 0.8 * np.clip(X["x0"], -4, 4) + 0.5 * np.clip(X["x1"], -4, 4) + 0.02 * (X["age"] - 48)
    return X, expit(line - 0.8)


def clusters(X: Features, rng: np.random.Generator, low: int, high: int) -> np.ndarray:
    """Numbers of clusters; some features are made constant there."""
    n = len(X["x2"])
    unit = np.repeat(np.arange(n), rng.integers(low, high + 1, n))[:n]
    first = np.unique(unit, return_index=True)[1]
    X["country"], X["x2"] = X["country"][first][unit], X["x2"][first][unit]
    return unit


def sharing_luck(p: np.ndarray, unit: np.ndarray, rng: np.random.Generator, share: float) -> np.ndarray:
    """Outcomes of these probabilities that depend on each other within clusters."""
    n = len(p)
    luck = np.sqrt(share) * rng.normal(size=n)[unit] + np.sqrt(1 - share) * rng.normal(size=n)
    return ndtr(luck) < p


def calibrated(name: str, n: int, rng: np.random.Generator) -> tuple[Any, Features]:
    """Predictions that are the probabilities of the outcomes, and features."""
    X, p = base(n, rng, noise=30 if name == "30 noise features" else 0, heavy=name == "heavy tails (T)")
    weight = unit = None
    if name == "0.5 % events (T)":
        p = expit(logit(p) + np.log(0.005) + 0.2)
    elif name == "high cardinality, missing (T)":
        X["zip"] = np.array([f"z{k}" for k in rng.zipf(1.3, n) % 5000])
        X["x2"] = np.where(rng.random(n) < 0.2, np.nan, X["x2"])
    elif name == "tied scores (T)":
        p = np.clip(np.round(p, 1), 0.05, 0.95)
    elif name == "log-normal weights (T)":
        weight = np.exp(rng.normal(size=n))
    elif name == "scores near 0 and 1 (T)":
        p = np.where(rng.random(n) < 0.5, p * 1e-3, 1 - p * 1e-3)
    elif name == "ugly columns":
        X = {"same": np.zeros(n), "spike": np.where(rng.random(n) < 0.9, 0.0, np.exp(5 * rng.normal(size=n)))}
        X |= {"twin": X["spike"] * 2, "gone": np.full(n, np.nan), "id": np.array([f"r{k}" for k in range(n)])}
        flag = rng.choice(np.array([True, False, None], dtype=object), n)
        X |= {"flag": flag, "step": np.floor(10 * p), "wave": np.sin(20 * p)}
    y = rng.random(n) < p
    if name == "clusters of 1 to 15 (T)":
        unit = clusters(X, rng, 1, 15)
        y = sharing_luck(p, unit, rng, 0.3)
    elif name == "clusters of 2 to 16, half alike":
        unit = clusters(X, rng, 2, 16)
        y = sharing_luck(p, unit, rng, 0.5)
    elif name == "clusters, 2 % events":
        p = p * 0.06
        unit = clusters(X, rng, 1, 15)
        y = sharing_luck(p, unit, rng, 0.3)
    if name == "coverage of a Gaussian":
        std = np.exp(0.5 * X["x0"])
        return cal.Gaussian(X["x1"] + std * rng.normal(size=n), X["x1"], std), X
    if name == "three classes":
        P = rng.dirichlet([2, 1, 0.5], n)
        return cal.Multiclass((rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1), P), X
    return cal.Binary(y, p, weight=weight, group=unit), X


CALIBRATED = (
    "tied scores (T)",
    "log-normal weights (T)",
    "heavy tails (T)",
    "clusters of 2 to 16, half alike",
    "clusters of 1 to 15 (T)",
    "clusters, 2 % events",
    "high cardinality, missing (T)",
    "ugly columns",
    "plain (T)",
    "coverage of a Gaussian",
    "scores near 0 and 1 (T)",
    "0.5 % events (T)",
    "three classes",
    "30 noise features",
)


def level(name: str, n: int, samples: int) -> Row:
    """How often a calibrated model is rejected, gets a segment, or a positive bound."""
    p_values, shown, bounds = [], [], 0
    for sample in range(samples):
        rng = np.random.default_rng([11, sample, n, CALIBRATED.index(name)])
        data, X = calibrated(name, n, rng)
        found = cal.audit(data, X, seed=sample)
        p_values.append(found.test.p_value)
        shown.append(len(found.segments))
        one = next(iter(found.parts.values()), found)  # multiclass: the error is that of the top label
        bounds += one.test.p_value <= one.alpha and _lower_bound(one.rows, one._forward, one.alpha) > 0
    p = np.array(p_values)
    return {
        "rejected at 5 %": round(float(np.mean(p <= 0.05)), 4),
        "at 1 %": round(float(np.mean(p <= 0.01)), 4),
        "any segment": round(float(np.mean(np.array(shown) > 0)), 4),
        "positive bound": round(bounds / samples, 4),
    }


def moved(p: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Probabilities moved by a gap, within 0.002 and 0.998."""
    return np.clip(p + gap, 0.002, 0.998)


def wrong(name: str, n: int, rng: np.random.Generator) -> tuple[Features, np.ndarray, np.ndarray]:
    """Features, scores and true probabilities."""
    X, p = base(n, rng)
    if name == "+-10 points in (a, b = 0)":
        X |= {"a": rng.integers(0, 2, n), "b": rng.integers(0, 2, n)}
        true = moved(p, 0.1 * np.where(X["b"] == 0, np.where(X["a"] == 1, 1, -1), 0))
    elif name == "bump in age and x5":
        true = moved(p, -0.2 * np.exp(-(((X["age"] - 35) / 8) ** 2) - ((X["x5"] - 0.7) / 0.6) ** 2))
    elif name == "missing x2 off by 10 (8 %)":
        gone = rng.random(n) < 0.08
        X["x2"] = np.where(gone, np.nan, X["x2"])
        true = moved(p, 0.1 * gone)
    elif name == "60 zip codes, sd 7 points":
        code = rng.integers(0, 60, n)
        X["zip"] = np.array([f"z{k:02d}" for k in range(60)])[code]
        true = moved(p, (0.07 * rng.normal(size=60))[code])
    elif name == "three conditions, 20 points":
        true = moved(p, 0.2 * ((X["age"] < 40) & (X["x4"] > 0) & (X["country"] == "US")))
    elif name == "slope 0.55 in 30 % of rows":
        true = expit(np.where(np.isin(X["country"], ["DE", "UK"]), 0.55, 1.0) * logit(p))
    elif name == "wave in x3":
        true = moved(p, 0.06 * np.sign(np.sin(6 * X["x3"])))
    elif name in CLUSTERED:
        X["unit"] = clusters(X, rng, 1, 15)
        true = moved(p, 0.1 * (np.isin(X["country"], ["FR", "UK"]) & (X["x2"] < 1)))
    elif name == "weights, 10 points for tablets":
        true = moved(p, -0.1 * (X["device"] == "tablet"))
    elif name == "weights, tied scores, jumps in x4":
        p = np.clip(np.round(p, 1), 0.05, 0.95)
        true = moved(p, np.select([X["x4"] < -1, X["x4"] > 1], [-0.12, 0.08]))
    elif name == "2 % events, three times as many over 65":
        p = p * 0.06
        true = expit(logit(p) + np.log(3) * (X["age"] > 65))
    elif name == "0.5 % events, six times as many on tablets":
        p = expit(logit(p) + np.log(0.005) + 0.2)
        true = expit(logit(p) + np.log(6) * (X["device"] == "tablet"))
    elif name == "2,000 zip codes, half of them off by 8":
        code = rng.zipf(1.3, n) % 2000
        X["zip"] = np.array([f"z{k}" for k in range(2000)])[code]
        true = moved(p, 0.08 * (np.sin(code**2) > 0))
    else:
        true = p
    return X, p, true


def observed(name: str, X: Features, p: np.ndarray, true: np.ndarray, rng: np.random.Generator) -> cal.Binary:
    """Outcomes of true probabilities, with the weights or clusters of the world."""
    if name in CLUSTERED:
        unit = X.pop("unit")
        return cal.Binary(sharing_luck(true, unit, rng, 0.3), p, group=unit)
    y = rng.random(len(p)) < true
    return cal.Binary(y, p, weight=np.exp(rng.normal(size=len(p))) if name.startswith("weights") else None)


WRONG = (
    "+-10 points in (a, b = 0)",
    "bump in age and x5",
    "missing x2 off by 10 (8 %)",
    "60 zip codes, sd 7 points",
    "three conditions, 20 points",
    "slope 0.55 in 30 % of rows",
    "wave in x3",
)


CLUSTERED = ("clusters, 10 points in two countries",)
#: Worlds of the bound: what was planted, and kinds of data where it could fail.
BOUNDED = (
    *WRONG,
    CLUSTERED[0],
    "weights, 10 points for tablets",
    "weights, tied scores, jumps in x4",
    "2 % events, three times as many over 65",
    "0.5 % events, six times as many on tablets",
    "2,000 zip codes, half of them off by 8",
    "calibrated",
)


def power(name: str, n: int, samples: int) -> Row:
    """How often an error is found, and how much of it; the bound against the truth: the mean |gap| of these rows."""
    found = []
    for sample in range(samples):
        rng = np.random.default_rng([12, sample, n, BOUNDED.index(name)])
        X, p, true = wrong(name, n, rng)
        data = observed(name, X, p, true, rng)
        audit = cal.audit(data, X, seed=sample)
        truth, l1 = float(np.average(np.abs(true - p), weights=data.weight)), audit.error.l1
        bound = 0.0 if l1.interval is None else l1.interval.low
        search = cal.by_group(cal.ece, data, by=X, depth=2, quantiles=4, intervals=1).search
        numbers = [truth, float(l1), float(audit.error.l1_score), bound, bound > truth]
        found.append([audit.test.p_value <= 0.05, search is not None and search.significant > 0, *numbers])
    rejected, grouped, truth, l1, score, bound, above = np.mean(found, axis=0)
    error = float(np.std([row[3] - row[2] for row in found]) / np.sqrt(samples))
    return {
        "rejected": round(float(rejected), 3),
        "by_group": round(float(grouped), 3),
        "truth, points": round(100 * float(truth), 2),
        "estimate": round(100 * float(l1), 2),
        "its se": round(100 * error, 2),
        "score alone": round(100 * float(score), 2),
        "bound": round(100 * float(bound), 2),
        "bound above truth": round(float(above), 4),
    }


def planted(n: int, number: int, rng: np.random.Generator) -> tuple[Features, np.ndarray, np.ndarray, list[Any]]:
    """Segments of one or two conditions, 1 to 10 % of the rows, that are off by 5 to 20 points.

    Two may share a fifth of the rows of the smaller one: conditions on different features always meet, so that ten
    segments without a common row hardly exist.
    """
    X, p = base(n, rng)
    gap, masks = np.zeros(n), list[tuple[np.ndarray, float]]()
    while len(masks) < number:
        inside = np.ones(n, dtype=bool)
        for name in rng.choice(list(X), int(rng.integers(1, 3)), replace=False):
            column = X[name]
            if column.dtype.kind == "U":
                inside &= column == rng.choice(column)
            else:
                low = rng.uniform(0, 0.7)
                ends = np.quantile(column, [low, min(low + rng.uniform(0.1, 0.4), 1.0)])
                inside &= (column >= ends[0]) & (column < ends[1])
        size = float(rng.choice([0.05, 0.1, 0.15, 0.2]) * rng.choice([-1, 1]))
        apart = all((inside & other).sum() <= 0.2 * min(inside.sum(), other.sum()) for other, _ in masks)
        if 0.01 <= inside.mean() <= 0.1 and apart:
            gap[inside] += size
            masks.append((inside, size))
    return X, p, moved(p, gap), masks


def recovered(number: int, n: int, samples: int) -> Row:
    """False segments, found ones by the z that the true segment has on all rows, and coverage of the intervals."""
    false, shown, covered, hits = 0, 0, 0, {"5 to 8": [], "8 to 12": [], "above 12": []}
    for sample in range(samples):
        rng = np.random.default_rng([13, sample, n, number])
        X, p, true, masks = planted(n, number, rng)
        y = (rng.random(n) < true).astype(int)
        segments = cal.audit(y, p, X, seed=sample).segments
        inside = [one.mask(X, p) for one in segments]
        gaps = [float((true - p)[rows].mean()) for rows in inside]
        wrong_sign = [gap * (one.observed - one.predicted) <= 0 for gap, one in zip(gaps, segments, strict=True)]
        false, shown = false + any(wrong_sign), shown + len(segments)
        rates = [float(true[rows].mean()) for rows in inside]
        covered += sum(rate in one.interval for rate, one in zip(rates, segments, strict=True))
        for mask, _ in masks:
            z = abs(float((y - p)[mask].sum())) / np.sqrt(float((p * (1 - p))[mask].sum()))
            hit = any((mask & rows).sum() >= 0.5 * (mask | rows).sum() for rows in inside)
            band = "above 12" if z > 12 else "8 to 12" if z > 8 else "5 to 8" if z > 5 else None
            if band:
                hits[band].append(hit)
    row: Row = {"any false": round(false / samples, 4), "shown": round(shown / samples, 2)}
    row |= {f"found, z {band}": f"{np.mean(some):.2f} of {len(some)}" if some else "-" for band, some in hits.items()}
    return row | {"interval covers": f"{covered / max(shown, 1):.3f} of {shown}"}


REPAIRED = ("calibrated", *WRONG)


def repaired(name: str, n: int, samples: int) -> Row:
    """Exact excess log loss of the map and of `Auto`, in thousandths."""
    excess = []
    for sample in range(samples):
        rng = np.random.default_rng([14, sample, n, REPAIRED.index(name)])
        X, p, true = wrong(name, n, rng)
        y = (rng.random(n) < true).astype(int)
        test = np.random.default_rng([15, sample, n, REPAIRED.index(name)])
        Z, q, rate = wrong(name, 20_000, test) if name != "60 zip codes, sd 7 points" else (X, p, true)
        maps = [cal.recalibrate.FeatureMap(seed=sample).fit(p, y, features=X).predict_proba(q, Z)[:, 1]]
        maps += [cal.recalibrate.Auto().fit(p, y).predict_proba(q)[:, 1], q]
        losses = [-(rate * np.log(r) + (1 - rate) * np.log(1 - r)).mean() for r in [*maps, rate]]
        excess.append([1000 * (loss - losses[-1]) for loss in losses[:-1]])
    features, auto, before = np.mean(excess, axis=0)
    worse = float(np.mean([row[0] > row[1] + 0.5 for row in excess]))
    return {
        "as they are": round(float(before), 2),
        "Auto": round(float(auto), 2),
        "FeatureMap": round(float(features), 2),
        "worse than Auto by 0.5": round(worse, 4),
    }


#: The column that puts the worst rows of a table first.
WORST = {
    "level": "rejected at 5 %",
    "power": "bound above truth",
    "repair": "worse than Auto by 0.5",
    "segments": "any false",
}


def main() -> None:
    """Measure what is missing and write the page."""
    samples = asked_samples(__doc__)
    cells = [(name, n, 5 * samples) for n in (300, 3000) for name in CALIBRATED]
    cells += [(name, 30_000, 3 * samples // 2) for name in CALIBRATED]
    errors = [(name, n, samples) for n in (3000, 10_000) for name in BOUNDED]
    keys = ("world", "rows", "samples")
    tables: list[tuple[str, str, Any, Any]] = [
        ("Segments planted and found", "segments", [(k, 10_000, samples) for k in (0, 1, 3, 10)], recovered),
        ("Errors and how much of them is found", "power", errors, power),
        ("Calibrated models", "level", cells, level),
        ("Excess log loss, thousandths", "repair", [(name, 3000, samples) for name in REPAIRED], repaired),
    ]
    parts = []
    for title, name, tasks, measure in tables:
        found = measured(RESULTS / f"audit_{name}.csv", tasks if samples else [], keys, measure)
        column = WORST.get(name)
        if column:
            found = sorted(found, key=lambda row: -float(row[column]))
        parts.append(f"## {title}\n\n{markdown(found, tuple(found[0])) if found else 'Not measured yet.'}")
    made = f"{date.today().isoformat()}, Python {platform.python_version()}, NumPy {np.__version__}"
    head = f"# The audit by features: error rates, power and repair\n\n{made}. "
    head += "`python -m reproduce.audit --samples 200`\n\n"
    head += (
        "Worst first. Worlds that are missing were not measured yet; real data: benchmarks/results/audit_repair.md.\n\n"
    )
    (RESULTS / "audit.md").write_text(head + "\n".join(parts), encoding="utf8")


if __name__ == "__main__":
    main()
