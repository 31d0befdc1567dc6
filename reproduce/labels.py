"""Coverage and width of intervals from few gold labels and a judge, and of performance without labels.

Worlds of known truth: judges that are good, useless, inverted, perfect, biased for one model or missing for some rows;
rare errors; whole questions labelled; labels drawn with known, unequal probabilities; confidences in waves and of few
levels. "gold" is the same interval of the labelled rows alone. ppi++ (ppi-python) and CBPE (NannyML) are run on the
same samples where they are installed.

    python -m reproduce.labels [samples of each cell] [means|errors|none|level ...] [worlds ...] [from=first seed]

writes reproduce/results/labels.md after every world; cells that were measured before with more samples are kept.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrant as cal

OUTPUT = Path(__file__).parent / "results" / "labels.md"
KEPT = Path(__file__).parent / "results" / "labels.json"
#: Worlds, and the numbers of gold labels of 2,000 rows (4,000 with rare errors); worst first.
MEANS = {
    "rare errors": (50, 200), "whole questions": (60, 200), "useless judge": (50, 200),
    "unequal probabilities": (60, 200),
    "biased for one model": (50, 200), "right in 90 %": (50, 200), "inverted": (50, 200), "perfect": (50, 200),
    "scores 1 to 5": (50, 200), "few levels, verdicts missing": (50, 200), "three judges": (50, 200),
    "uneven questions, rows labelled": (60, 200), "wave": (50, 200),
}  # fmt: skip
ERRORS = {
    "rare errors": (200,), "whole questions": (200,), "unequal probabilities": (200,), "useless judge": (200,),
    "right in 90 %": (50, 200, 1000), "calibrated, right in 90 %": (200,), "wave": (200,),
    "few levels, verdicts missing": (200,), "perfect": (200,), "calibrated, rare errors": (200,),
    "calibrated, whole questions": (200,), "wave of few levels": (200,), "uneven questions, rows labelled": (200,),
}  # fmt: skip


def agreeing(y: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """A judge who is right in this share of the rows."""
    return np.where(rng.random(len(y)) < share, y, 1 - y)


def drawn(name: str, n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Rows of a world: confidence p, chance h, outcome y, judge, and what it has of group, by and probability."""
    more: dict[str, Any] = {}
    p = rng.beta(4, 2, n)
    h = expit(0.6 * logit(p))
    if name.endswith("rare errors"):
        p = rng.beta(30, 1, n)
        h = 1 - 0.6 * (1 - p)
    elif name.endswith("whole questions"):
        group, by = np.arange(n) // 4, np.arange(n) % 4
        luck, skill = rng.normal(0, 1.5, n // 4)[group], np.array([0.2, 0.6, 1.0, 1.4])[by]
        h = expit(skill + luck)
        p = expit(0.8 + 0.7 * (skill + 0.6 * luck) + rng.normal(0, 0.4, n))
        more = {"group": group, "by": by}
    elif name == "uneven questions, rows labelled":
        group = np.searchsorted(np.cumsum(np.exp(rng.normal(0, 1, n // 5))), rng.random(n) * n / 5)
        luck = rng.normal(0, 1, group.max() + 1)[group]
        h = expit(0.5 + luck)
        p = expit(0.5 + 0.5 * luck + rng.normal(0, 0.5, n))
        more = {"group": group}
    elif name.startswith("wave"):
        p = rng.integers(1, 20, n) / 20 if name == "wave of few levels" else rng.random(n)
        h = np.clip(p + 0.12 * np.sin(6 * np.pi * p), 0, 1)
    elif name == "few levels, verdicts missing":
        p = rng.choice([0.5, 0.7, 0.9, 0.95, 1.0], n)
        h = np.array([0.5, 0.6, 0.75, 0.9, 0.9])[np.searchsorted([0.5, 0.7, 0.9, 0.95, 1.0], p)]
    if name == "calibrated, whole questions":  # the judge, not the answers, errs by question
        more = {"group": np.arange(n) // 4, "by": np.arange(n) % 4}
        p = expit(np.array([0.2, 0.6, 1.0, 1.4])[more["by"]] + rng.normal(0, 1, n // 4)[more["group"]])
    h = p if name.startswith("calibrated") else h
    y = (rng.random(n) < h) * 1.0
    return {"p": p, "h": h, "y": y, "judge": judged(name, y, rng, more), "more": more}


def judged(name: str, y: np.ndarray, rng: np.random.Generator, more: dict[str, Any]) -> np.ndarray:
    """The scores of the judge, or judges, of a world."""
    n = len(y)
    if name.endswith("rare errors"):
        return np.where(y == 1, rng.random(n) < 0.97, rng.random(n) >= 0.80) * 1.0
    if name.endswith("whole questions"):
        return np.where(rng.random(n // 4)[more["group"]] < 0.1, 1 - y, y)
    if name == "useless judge":
        return rng.random(n)
    if name == "inverted":
        return 1 - agreeing(y, 0.9, rng)
    if name == "perfect":
        return y.copy()
    if name == "biased for one model":
        more["by"] = rng.integers(0, 4, n)
        lenient = np.where(y == 1, rng.random(n) < 0.98, rng.random(n) >= 0.4)
        return np.where(more["by"] == 3, lenient, agreeing(y, 0.9, rng)) * 1.0
    if name == "scores 1 to 5":
        return np.clip(np.round(rng.normal(2.2 + 2 * y, 0.9)), 1, 5)
    if name.endswith("unequal probabilities"):
        score = np.clip(rng.normal(0.4 + 0.35 * y, 0.2), 0, 1)
        more["chance"] = 0.15 + 0.85 * (score < 0.5)
        return score
    if name == "few levels, verdicts missing":
        return np.where(rng.random(n) < 0.3, np.nan, agreeing(y, 0.9, rng))
    if name == "three judges":
        return np.column_stack([agreeing(y, share, rng) for share in (0.6, 0.75, 0.85)])
    return agreeing(y, 0.9, rng)


def sampled(name: str, labels: int, seed: int) -> tuple[cal.Judged, np.ndarray]:
    """Judged data of a world with about that many labels, and all outcomes."""
    rng = np.random.default_rng([seed, labels, sum(map(ord, name))])
    n = 8000 if labels >= 1000 else 4000 if name.endswith("rare errors") else 2000
    world = drawn(name, n, rng)
    more, y, weight = world["more"], world["y"], None
    if (chance := more.pop("chance", None)) is not None:
        chance = np.minimum(chance * labels / chance.sum(), 1)
        known, weight = rng.random(n) < chance, 1 / chance
    elif name.endswith("whole questions"):
        known = np.isin(more["group"], rng.choice(n // 4, labels // 4, replace=False))
    else:
        known = np.isin(np.arange(n), rng.choice(n, labels, replace=False))
    return cal.Judged(np.where(known, y, np.nan), world["p"], judge=world["judge"], weight=weight, **more), y


@cache
def truth(name: str) -> dict[str, float]:
    """What the intervals are for, from two million rows."""
    rows = drawn(name, 2_000_000, np.random.default_rng(99))
    p, h = rows["p"], rows["h"]
    found = {"accuracy": h.mean(), "O:E": h.mean() / p.mean()}
    inside = p < 1
    line = cal.calibration_slope(rows["y"][inside], p[inside])
    if name in ("whole questions", "uneven questions, rows labelled"):  # h depends on more than p
        order = np.argsort(p)
        p, h = (values[order].reshape(500, -1).mean(axis=1) for values in (p, h))
    return found | {"L1": np.abs(p - h).mean(), "L2": np.sqrt(((p - h) ** 2).mean()), "slope": float(line)}


MEASURES: dict[str, Callable[..., Any]] = {
    "accuracy": cal.accuracy, "O:E": cal.observed_expected, "slope": cal.calibration_slope,
    "L1": cal.averaged_error, "L2": partial(cal.averaged_error, norm=2),
}  # fmt: skip


def ppi(data: cal.Judged) -> tuple[float, float] | None:
    """The interval of the mean by ppi++, of a single judge without missing verdicts."""
    try:
        from ppi_py import ppi_mean_ci
    except ImportError:
        return None
    score = data.scores[:, -1]
    if np.isnan(score).any():
        return None
    known = data.known
    weight = data.label_weight[known] if data.sampled else None
    low, high = ppi_mean_ci(data.gold[known], score[known], score[~known], alpha=0.05, w=weight)
    return float(low[0]), float(high[0])


def cell(name: str, labels: int, seeds: range, measures: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Coverage and width of a world, by measure."""
    found: dict[str, list[tuple[float, ...]]] = {measure: [] for measure in measures}
    for seed in seeds:
        data, _ = sampled(name, labels, seed)
        for measure in measures:
            target = truth(name)[measure]
            own = cal.interval(MEASURES[measure], data).interval
            alone = cal.interval(MEASURES[measure], data.labelled()).interval
            peer = ppi(data) if measure == "accuracy" else None
            line = [target in own, target < own.low, own.high - own.low, target in alone, alone.high - alone.low]
            line += [np.nan, np.nan] if peer is None else [peer[0] <= target <= peer[1], peer[1] - peer[0]]
            found[measure].append(tuple(map(float, line)))
    for measure, lines in found.items():
        table = np.array(lines)
        finite = np.isfinite(table[:, [2, 4]]).all(axis=1)
        width, alone = (float(table[finite, k].mean()) for k in (2, 4))
        yield {
            "world": name, "labels": labels, "measure": measure, "samples": len(seeds), "first": seeds.start,
            "cover": float(table[:, 0].mean()), "low above": float(table[:, 1].mean()), "width": width,
            "gold cover": float(table[:, 3].mean()), "ratio": width / alone,
            "ppi cover": float(table[:, 5].mean()), "ppi ratio": float(table[:, 6].mean()) / alone,
        }  # fmt: skip


def shifted(name: str, seed: int) -> tuple[dict[str, Any], np.ndarray]:
    """A reference, new scores and options; and the outcomes of the new rows."""
    rng = np.random.default_rng([seed, 5, sum(map(ord, name))])
    many = {"no shift, small reference": (500, 5000), "periods": (6000, 1000)}
    n, k = next((size for key, size in many.items() if name.startswith(key)), (3000, 1000))
    told = name.endswith(", told")

    def curve(z: np.ndarray) -> np.ndarray:
        return expit(0.7 * z - 0.2)

    z, new = rng.normal(0, 1.5, n), rng.normal(0, 1.5, k)
    options: dict[str, Any] = {}
    chance, chance_new = curve(z), curve(new)
    if name == "scores move":
        new = rng.normal(1, 1, k)
        chance_new = curve(new)
    elif name == "concept drift of -0.6":
        chance_new = expit(logit(chance_new) - 0.6)
    elif name.startswith("periods"):
        period = rng.integers(0, 12, n)
        chance = expit(logit(chance) + rng.normal(0, 0.25, 12)[period])
        chance_new = expit(logit(chance_new) + rng.normal(0, 0.25))
        options = {"period": period} if told else {}
    elif name.startswith("hidden column"):
        x, x_new = rng.normal(0, 1, n), rng.normal(0.8, 1, k)
        chance, chance_new = expit(logit(chance) + 0.8 * x), expit(logit(chance_new) + 0.8 * x_new)
        options = {"x": (x, x_new)} if told else {}
    y = rng.random(n) < chance
    if name.startswith("label shift"):
        pool = rng.normal(0, 1.5, 20 * k)
        hit = rng.random(20 * k) < curve(pool)
        share = rng.random(k) < 0.2
        new = np.where(share, rng.choice(pool[hit], k), rng.choice(pool[~hit], k))
        seen, options = share, {"shift": "label"} if told else {}
    else:
        seen = rng.random(k) < chance_new
    return {"reference": cal.Binary(y, expit(z)), "p": expit(new), **options}, seen


SHIFTS = (
    "concept drift of -0.6", "label shift", "hidden column", "periods", "no shift, small reference", "no shift",
    "scores move",
    "label shift, told", "hidden column, told", "periods, told",
)  # fmt: skip


def observed(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """What was observed on the new rows."""
    data = cal.Binary(y, p)
    return {
        "accuracy": float(cal.accuracy(data)), "brier": float(cal.brier(data)), "auc": float(cal.auc(data)),
        "observed_expected": float(cal.observed_expected(data)), "rate": float(y.mean()),
    }  # fmt: skip


def cbpe(reference: cal.Binary, p: np.ndarray) -> dict[str, tuple[float, float]] | None:
    """Accuracy and AUC by NannyML's CBPE: estimate and sampling error."""
    try:
        import nannyml
        import pandas as pd
    except ImportError:
        return None
    names = {"y_true": "y", "y_pred": "yes", "y_pred_proba": "p"}
    frame = pd.DataFrame({"p": reference.y_prob, "yes": (reference.y_prob >= 0.5) * 1, "y": reference.y_true * 1})
    new = pd.DataFrame({"p": p, "yes": (p >= 0.5) * 1})
    model = nannyml.CBPE(
        problem_type="classification_binary", metrics=["accuracy", "roc_auc"], chunk_size=len(p), **names
    )
    table = model.fit(frame).estimate(new).filter(period="analysis").to_df()
    return {
        own: (float(table[(its, "value")].iloc[0]), float(table[(its, "sampling_error")].iloc[0]))
        for own, its in (("accuracy", "accuracy"), ("auc", "roc_auc"))
    }


def without(name: str, seeds: range, peers: int) -> dict[str, Any]:
    """Coverage of the world, and of CBPE in some of the samples."""
    hits: dict[str, list[bool]] = {}
    for seed in seeds:
        options, y = shifted(name, seed)
        found = cal.without_labels(**options)
        seen = observed(options["p"], y)
        for measure, value in seen.items():
            hits.setdefault(measure, []).append(value in found[measure].interval)
        if found.test is not None and found.prior is not None:
            hits.setdefault("share", []).append(0.2 in found.prior.interval)
            hits.setdefault("test rejects", []).append(found.test.p_value < 0.05)
        if seed - seeds.start < peers and (other := cbpe(options["reference"], options["p"])) is not None:
            for measure, (value, error) in other.items():
                for width in (1.96, 3):
                    inside = abs(value - seen[measure]) <= width * error
                    hits.setdefault(f"CBPE {measure} {width:g}", []).append(inside)
    return {
        "world": name,
        "samples": len(seeds),
        "first": seeds.start,
        **{key: float(np.mean(values)) for key, values in hits.items()},
    }


def share(value: float) -> str:
    """A share in percent; nothing where it was not measured."""
    return "" if np.isnan(value) else f"{100 * value:.1f}"


def judged_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The cells, worst coverage first."""
    head = (
        "measure | world | gold labels | samples | cover % | low end above % | width ÷ gold alone | gold alone cover %"
    )
    yield f"| {head} | ppi++ cover % | ppi++ width ÷ gold |"
    yield "|-|-|-|-|-|-|-|-|-|-|"
    for row in sorted(rows, key=lambda row: row["cover"]):
        ratio = "" if np.isnan(row["ppi ratio"]) else f"{row['ppi ratio']:.2f}"
        cells = [row["measure"], row["world"], str(row["labels"]), str(row["samples"])]
        cells += [
            share(row["cover"]),
            share(row["low above"]),
            f"{row['ratio']:.2f}",
            share(row["gold cover"]),
            share(row["ppi cover"]),
            ratio,
        ]
        yield f"| {' | '.join(cells)} |"


def without_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Coverage where the assumption does not hold, and where it does."""
    names = ("accuracy", "brier", "auc", "observed_expected", "rate", "share", "test rejects")
    peers = ("CBPE accuracy 1.96", "CBPE accuracy 3", "CBPE auc 1.96", "CBPE auc 3")
    yield f"| world | {' | '.join((*names, *peers))} |"
    yield f"|-|{'-|' * len((*names, *peers))}"
    for row in rows:
        yield f"| {row['world']} | {' | '.join(share(row.get(name, np.nan)) for name in (*names, *peers))} |"


#: Calibrated worlds of the test: independent rows, clusters, and labels drawn with unequal probabilities.
LEVELS = ("calibrated, right in 90 %", "calibrated, whole questions", "calibrated, unequal probabilities")


def level(name: str, seeds: range) -> dict[str, Any]:
    """How often the test rejects calibrated confidences of 200 gold labels, by significance and by deciding part."""
    found = [cal.calibration_test(sampled(name, 200, seed)[0]) for seed in seeds]
    p_value = np.array([one.p_value for one in found])
    parts = {
        part: float(np.mean([one.p_value <= 0.05 and one.decided.name == part for one in found]))
        for part in ("level", "slope", "shape")
    }
    rejects = {f"rejects {alpha:g}": float((p_value <= alpha).mean()) for alpha in (0.01, 0.05, 0.1)}
    return {"world": name, "labels": 200, "samples": len(seeds), "first": seeds.start, **rejects, **parts}


def level_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The worlds, most rejections first."""
    names = ("rejects 0.01", "rejects 0.05", "rejects 0.1", "level", "slope", "shape")
    yield "| world | gold labels | samples | p ≤ .01 % | p ≤ .05 % | p ≤ .1 % | by level % | by slope % | by shape % |"
    yield "|-|-|-|-|-|-|-|-|-|"
    for row in sorted(rows, key=lambda row: -row["rejects 0.05"]):
        cells = [row["world"], str(row["labels"]), str(row["samples"]), *(share(row[name]) for name in names)]
        yield f"| {' | '.join(cells)} |"


def measured(kind: str, seeds: range, only: list[str]) -> Iterator[list[dict[str, Any]]]:
    """The cells of one kind, world by world."""
    if kind == "none":
        for name in SHIFTS:
            if name in only or not only:
                yield [without(name, seeds, 25)]
        return
    if kind == "level":
        for name in LEVELS:
            if name in only or not only:
                yield [level(name, seeds)]
        return
    measures = ("accuracy", "O:E", "slope") if kind == "means" else ("L1", "L2")
    for name, all_labels in (MEANS if kind == "means" else ERRORS).items():
        for labels in all_labels if name in only or not only else ():
            yield list(cell(name, labels, seeds, measures))


def keep(found: dict[str, list[dict[str, Any]]], kind: str, rows: list[dict[str, Any]]) -> None:
    """Put new cells in the place of the same ones of fewer samples, and write everything."""
    cells = {(row["world"], row.get("labels"), row.get("measure")): row for row in found.get(kind, [])}
    for row in rows:
        key = (row["world"], row.get("labels"), row.get("measure"))
        if key not in cells or cells[key]["samples"] <= row["samples"]:
            cells[key] = row
    found[kind] = list(cells.values())
    KEPT.write_text(json.dumps(found), encoding="utf8")
    OUTPUT.write_text(page(found), encoding="utf8")


def main() -> None:
    """Measure what is asked for, beside what was measured before."""
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    found = json.loads(KEPT.read_text(encoding="utf8")) if KEPT.exists() else {}
    every = ["means", "errors", "none", "level"]
    kinds = [kind for kind in every if kind in sys.argv[2:]] or every
    first = sum(int(word.removeprefix("from=")) for word in sys.argv[2:] if word.startswith("from="))
    worlds = [name for name in sys.argv[2:] if name not in kinds and not name.startswith("from=")]
    for kind in kinds:
        for rows in measured(kind, range(first, first + samples), worlds):
            keep(found, kind, rows)


def page(found: dict[str, list[dict[str, Any]]]) -> str:
    """The tables."""
    versions = f"calibrant {cal.__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    about = (
        f"{time.strftime('%Y-%m-%d')}, {versions}; 95 % intervals (of 500 samples a true 95 % shows as 93.1 to 96.9). "
        "Worst first. Peers: ppi-python 0.2.3 (ppi++) on the same samples, NannyML 0.13.1 (CBPE, estimate ± 1.96 and ± "
        "3 of its sampling errors) on 25 of them, where columns are filled."
    )
    lines = ["# Few gold labels, or none", "", about, "", "## Accuracy, O:E ratio and slope", ""]
    lines += [*judged_table(found.get("means", [])), "", "## Calibration errors", ""]
    lines += [*judged_table(found.get("errors", [])), "", "## Without labels", ""]
    lines += ["Share of samples in % whose interval holds what was observed.", ""]
    lines += [*without_table(found.get("none", [])), "", "## Level of the test of calibration", ""]
    lines += ["Share of calibrated samples in % that `calibration_test` rejects, and which part decided at .05.", ""]
    lines += [*level_table(found.get("level", [])), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
