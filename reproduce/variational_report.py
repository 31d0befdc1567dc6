"""Tables and figures of the reproduction of the variational estimator, from its stored results."""

from __future__ import annotations

import platform
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import scipy

import calibrant as cal
from calibrant._atomic_write import replacing
from reproduce import data, variational_figures
from reproduce.published import table_1_lines
from reproduce.variational_worlds import (
    BINARY,
    FIGURE_1,
    FIGURE_3,
    MULTICLASS,
    OTHERS,
    TABLE_1_ROWS,
    TABLE_2,
    multiclass_truth,
    other_truth,
)

PUBLISHED_TABLE_1 = {
    "TabICLv2": (71.6, 57.5, 72.7, 66.7),
    "RealTabPFN-2.5": (70.5, 52.8, 72.5, 59.5),
    "WS CatBoost": (72.9, 59.4, 61.9, 60.5),
    "WS LightGBM": (70.3, 58.1, 59.5, 54.2),
    "CatBoost": (70.3, 36.1, 71.7, 40.7),
    "LightGBM": (65.7, 29.2, 68.3, 33.8),
    "Nadaraya-Watson": (52.4, 36.6, 67.9, 39.8),
    "TS": (60.5, 57.4, 37.5, 32.6),
    "Isotonic": (66.2, 42.2, 42.7, 21.1),
    "PartitionWise": (62.0, 23.4, 54.3, 10.9),
}


def moments(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard error of the mean."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


@cache
def truth_of(world: str, k: int, norm: float) -> float:
    """The true error of a multiclass world, drawn once."""
    return multiclass_truth(world, k, norm)


def distance(ours: np.ndarray, theirs: float, error: float) -> float:
    """Difference of two means in units of the standard error of their difference."""
    mean, own = moments(ours)
    return (mean - theirs) / np.hypot(own, error)


def figure1(store) -> list[str]:
    lines = [
        "## Figure 1: binary, L1",
        "",
        "Mean (published in brackets); z compares the cross-fitted isotonic values, in joint standard errors.",
        "",
        "| world | n | truth | isotonic, cross-fitted | z | isotonic in sample | ECE, 15 bins | default map |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (world, n), (iso, error, inside, binned) in FIGURE_1.items():
        own = {"part": "figure1", "world": world, "n": n}
        values = {m: store.values(method=m, **own) for m in ("isotonic", "isotonic in sample", "ECE 15", "default")}
        if not len(values["isotonic"]):
            continue
        mean, sem = moments(values["isotonic"])
        lines.append(
            f"| {world} | {n} | {BINARY[world][1][0]:.4f} | {mean:.4f} ± {sem:.4f} ({iso:.4f} ± {error:.4f}) "
            f"| {distance(values['isotonic'], iso, error):+.1f} "
            f"| {values['isotonic in sample'].mean():.4f} ({inside:.4f}) "
            f"| {values['ECE 15'].mean():.4f} ({binned:.4f}) | {values['default'].mean():.4f} |"
        )
    return [*lines, ""]


def figure3(store) -> list[str]:
    lines = [
        "## Figure 3: multiclass, L2",
        "",
        "| classes | world | n | truth | isotonic, cross-fitted | z | in sample | k-means bins | TS | default map |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (k, world, n), (iso, error, inside, binned) in FIGURE_3.items():
        own = {"part": "figure3", "world": world, "n": n, "classes": k}
        names = ("isotonic", "isotonic in sample", "k-means 15", "TS", "default")
        values = {m: store.values(method=m, **own) for m in names}
        if not len(values["isotonic"]):
            continue
        mean, sem = moments(values["isotonic"])
        lines.append(
            f"| {k} | {world} | {n} | {truth_of(world, k, 2):.4f} "
            f"| {mean:.4f} ± {sem:.4f} ({iso:.4f} ± {error:.4f}) | {distance(values['isotonic'], iso, error):+.1f} "
            f"| {values['isotonic in sample'].mean():.4f} ({inside:.4f}) "
            f"| {values['k-means 15'].mean():.4f} ({binned:.4f}) | {values['TS'].mean():.4f} "
            f"| {values['default'].mean():.4f} |"
        )
    return [*lines, ""]


def table2(store) -> list[str]:
    lines = [
        "## Table 2: over- and underconfidence, L1, n = 5000",
        "",
        "Published values (WS CatBoost) in brackets, and z.",
        "",
        "| map | world | truth | overconfidence | underconfidence | total |",
        "|---|---|---|---|---|---|",
    ]
    for part, name in (("table2", "default"), ("table2_catboost", "WS CatBoost, the paper's")):
        for world, published in TABLE_2.items():
            cells = []
            for norm, (theirs, error) in zip(("overconfidence", "underconfidence", "total"), published, strict=True):
                values = store.values(part=part, world=world, norm=norm)
                if len(values) < 2:
                    break
                mean, sem = moments(values)
                away = distance(values, theirs, error)
                cells.append(f"{mean:.4f} ± {sem:.4f} ({theirs:.4f} ± {error:.4f}; {away:+.1f})")
            else:
                lines.append(f"| {name} | {world} | {BINARY[world][1][0]:.4f} | {' | '.join(cells)} |")
    return [*lines, "", "![Figure 2](variational_figure2.png)", "", "Figure 2: the three curves of Table 2.", ""]


def bound(store) -> list[str]:
    lines = [
        "## Lower bound over all synthetic worlds, default map",
        "",
        "Mean estimate less truth in standard errors of the mean (at most +2 wanted), and the standard deviation",
        "over samples in units of the plain standard error (what `CrossFittedBound` inflates by), and how often the",
        "bound of level 95 % lay above the truth (5 % promised).",
        "",
        "| classes | world | n | repeats | norm | truth | mean | (mean - truth) / SE | sd / plain SE | bound fails |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    worst, inflation = -np.inf, []
    for n in (200, 300, 1000, 3000, 5000):
        for k, world, norm, truth in _bound_cases():
            own = {"part": "bound", "world": world, "n": n, "classes": k, "norm": norm}
            values = store.values(**own)
            if len(values) < 3:
                continue
            mean, sem = moments(values)
            errors = store.values("error", **own)
            z, ratio = (mean - truth) / sem, values.std(ddof=1) / errors.mean()
            fails = np.mean(values - 1.645 * cal.estimators.CrossFittedBound().inflation * errors > truth)
            worst = max(worst, z)
            if len(values) >= 50 and norm == "L1" and k == 2:
                inflation.append(ratio)
            lines.append(
                f"| {k} | {world} | {n} | {len(values)} | {norm} | {truth:.5f} | {mean:.5f} | {z:+.1f} | {ratio:.2f} "
                f"| {fails:.1%} |"
            )
    if inflation:
        largest = max(inflation)
        lines += ["", f"Largest (mean - truth) / SE: {worst:+.2f}. Largest sd / plain SE (L1, binary): {largest:.2f}."]
    return [*lines, ""]


def _bound_cases():
    for world, (_, truths) in BINARY.items():
        for norm, truth in zip(("L1", "squared", "KL"), truths, strict=True):
            yield 2, world, norm, truth
    for k in (3, 10):
        for world in MULTICLASS:
            for norm, p in (("L1", 1), ("L2", 2)):
                yield k, world, norm, truth_of(world, k, p)
    for world, (k, _) in OTHERS.items():
        for norm in ("L1", "squared", "KL") if k == 2 else ("L1", "L2"):
            yield k, world, norm, other_truth(world, norm)


def table1(store) -> list[str]:
    rows = [row for row in store.rows if row["part"] == "table1"]
    if not rows:
        return ["## Table 1", "", data.missing("classification"), ""]
    lines = [
        "## Table 1 on real predictions (TabRepo's are not here)",
        "",
        "Mean per cent of the largest estimate of the maps (published, on TabRepo with ten maps, in brackets: "
        "other data, so only the order compares). TabICLv2 and RealTabPFN-2.5 did not run: no weights here.",
        "",
        "| map | binary L1 | binary squared | multiclass L2 | multiclass squared | CPU s per 1000 rows |",
        "|---|---|---|---|---|---|",
    ]
    methods = sorted(dict.fromkeys(row["method"] for row in rows), key=lambda method: method != "default")
    for method in methods:
        published = [f" ({value})" for value in PUBLISHED_TABLE_1.get(method, ())] or [""] * 4
        wanted = (("binary", "L1"), ("binary", "squared"), ("several", "L2"), ("several", "squared"))
        cells = [f"{_share(rows, method, *which)}{theirs}" for which, theirs in zip(wanted, published, strict=True)]
        pace = np.mean([1000 * row["seconds"] / float(row["n"]) for row in rows if row["method"] == method])
        lines.append(f"| {method} | {' | '.join(cells)} | {pace:.3f} |")
    cases = {(row["world"], row["classes"]) for row in rows}
    binary = sum(str(k) == "2" for _, k in cases)
    repeats = 1 + max(int(row["repeat"]) for row in rows)
    once = "; boosting without a warm start in the first repeat only" if repeats > 1 else ""
    said = f"{binary} binary and {len(cases) - binary} multiclass cases, at most {TABLE_1_ROWS:,} rows of each"
    return [*lines, "", f"{said}, repeats: {repeats}{once}.", "", *table_1_lines()]


def _share(rows: list[dict], method: str, kind: str, norm: str) -> str:
    best: dict[tuple[str, str], dict[str, float]] = {}
    primary = "L1" if kind == "binary" else "L2"
    for row in rows:
        if (str(row["classes"]) == "2") == (kind == "binary"):
            best.setdefault((row["world"], row["norm"]), {}).setdefault(row["method"], []).append(row["value"])
    shares = []
    for (world, found_norm), values in best.items():
        means = {m: max(float(np.mean(v)), 0) for m, v in values.items()}
        largest = max(means.values())
        keep = max(float(np.mean(v)) for v in best[world, primary].values()) > 0.02
        if found_norm == norm and keep and largest > 0 and method in means:
            shares.append(100 * means[method] / largest)
    return f"{np.mean(shares):.1f} ± {np.std(shares) / np.sqrt(len(shares)):.1f}" if shares else "not run"


def write(store, out: Path, effort: str, note: str = "") -> None:
    """Write variational.md and the figures; a note says what was measured when, if not all of it in one run."""
    lines = [
        "# Berta et al. (2026), A Variational Estimator for Calibration Errors",
        "",
        f"{date.today().isoformat()}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, calibrant {cal.__version__}. `python -m reproduce.variational --effort {effort}`",
        "",
    ]
    if note:
        lines += [note, ""]
    if effort == "short":
        lines += ["Stored cells were kept, some of them of earlier days; `make reproduce` starts from nothing.", ""]
    for part in (figure1, table2, figure3, bound, table1):
        lines += part(store)
    figures = variational_figures.draw_all(store, out)
    lines += [f"![{name}]({name})" for name in figures if "figure2" not in name]
    with replacing(out / "variational.md") as place:
        place.write_text("\n".join(lines).rstrip() + "\n", encoding="utf8")
