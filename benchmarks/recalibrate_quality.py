"""Log loss and Brier score after each map on real predictions: fitted on one half, scored on the other, five seeds.

`python -m benchmarks.recalibrate_quality [binary] [several] [many]`: binary predictions, of up to 20 classes, of
100 classes; each writes a table of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measuring import write_results
from calibrant import recalibrate as rc
from calibrant.recalibrate.model_averaging import row_losses

SEEDS = 5
#: Rows per data set at most, so that the whole table takes minutes.
ROWS = 8_000

Rows = tuple[str, np.ndarray, np.ndarray]


def folder() -> Path:
    root = Path(__file__).parents[1]
    places = [os.environ.get("CALIBRANT_SHARED_DATA", ""), root / "../shared/data", root / "../../shared/data"]
    return next(Path(place) for place in places if str(place) and Path(place).is_dir()) / "classification"


def data_sets() -> Iterator[Rows]:
    """Name, probabilities (n,) or (n, K), and labels of every file; top labels are events of their own."""
    for file in sorted(folder().glob("*.npz")):
        arrays = np.load(file)
        name = file.stem
        if "logits" in arrays or "logits_test" in arrays:
            logits = arrays["logits" if "logits" in arrays else "logits_test"].astype(np.float64)
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            labels = arrays["labels" if "labels" in arrays else "labels_test"]
            yield name, p / p.sum(axis=1, keepdims=True), labels.astype(int)
        elif "probs" in arrays:
            p, labels = arrays["probs"].astype(np.float64), arrays["labels"].astype(int)
            p /= p.sum(axis=1, keepdims=True)
            yield name, p[:, 1] if p.shape[1] == 2 else p, labels
        elif "prob" in arrays:
            yield name, arrays["prob"], arrays["labels"].astype(int)
        else:
            correct = arrays["correct"] if "correct" in arrays else arrays["pred"] == arrays["labels"]
            known = correct <= 1
            yield name, np.clip(arrays["conf"][known], 0, 1), correct[known].astype(int)


def binary_maps() -> dict[str, rc.Recalibrator]:
    names = (
        "Identity",
        "Temperature",
        "Platt",
        "Beta",
        "Quadratic",
        "Spline",
        "Smoothed",
        "Isotonic",
        "CentredIsotonic",
    )
    names += ("Histogram", "BayesianBinning", "VennAbers", "ScalingBinning")
    maps = {name: getattr(rc, name)() for name in names}
    return maps | {"Auto": rc.Auto(), "Auto, stacked": rc.Auto(combine="stack")}


def multiclass_maps(classes: int) -> dict[str, rc.Recalibrator]:
    maps: dict[str, rc.Recalibrator] = {"Identity": rc.Identity(), "Temperature": rc.Temperature(laplace=1.0)}
    names = ["EnsembleTemperature", "VectorScaling", "StructuredVectorScaling"]
    names += ["StructuredMatrixScaling", "Dirichlet"] if classes <= 20 else []
    maps |= {name: getattr(rc, name)() for name in names if name in rc.__all__}
    maps |= {f"OneVsRest({name})": rc.OneVsRest(getattr(rc, name)()) for name in ("Beta", "Isotonic", "Quadratic")}
    return maps | {"Auto": rc.Auto()}


def losses(p: np.ndarray, y: np.ndarray, maps: dict[str, rc.Recalibrator]) -> dict[str, np.ndarray]:
    """Mean log loss, mean Brier score and the error of the paired log-loss difference to identity, per seed."""
    found: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in maps}
    for seed in range(SEEDS):
        order = np.random.default_rng(seed).permutation(len(y))[:ROWS]
        fit, test = order[: len(order) // 2], order[len(order) // 2 :]
        reference = np.zeros(len(test))
        for name, template in maps.items():
            q = template.fit(p[fit], y[fit], classes=np.arange(max(p.shape[1:] or (2,)))).predict_proba(p[test])
            log_losses, brier = row_losses(q, y[test], "log_loss"), row_losses(q, y[test], "brier")
            reference = log_losses if name == "Identity" else reference
            worse = log_losses - reference
            found[name].append((log_losses.mean(), brier.mean(), worse.mean(), worse.std() / np.sqrt(len(test))))
    return {name: np.array(rows) for name, rows in found.items()}


def summary(results: list[tuple[str, dict[str, np.ndarray]]], title: str) -> list[str]:
    """Averages over data sets, and how each map compares with the best single map of its data set."""
    names = list(results[0][1])
    single = [name for name in names if not name.startswith("Auto")]
    lines = [
        f"## {title}",
        "",
        "| map | log loss | Brier | log loss over best single map, % | times best | worse than identity by > 1 SE |",
        "|-|-|-|-|-|-|",
    ]
    usable = [own for _, own in results if set(names) <= set(own)]
    best = np.array([min(own[name][:, 0].mean() for name in single) for own in usable])
    for name in names:
        log_loss = np.array([own[name][:, 0].mean() for own in usable])
        brier = np.mean([own[name][:, 1].mean() for own in usable])
        above = 100 * np.mean(log_loss / best - 1)
        wins = int(np.sum(log_loss <= best + 1e-12)) if name in single else ""
        worse = sum(own[name][:, 2].mean() > own[name][:, 3].mean() for own in usable)
        lines.append(
            f"| {name} | {log_loss.mean():.4f} | {brier:.4f} | {above:.2f} | {wins} | {worse} of {len(usable)} |"
        )
    return [*lines, ""]


def detail(results: list[tuple[str, dict[str, np.ndarray]]], column: int, title: str) -> list[str]:
    names = list(results[0][1])
    lines = [f"### {title}", "", "| data | " + " | ".join(names) + " |", "|-|" + "-|" * len(names)]
    for data, own in results:
        means = {name: own[name][:, column].mean() for name in names if name in own}
        least = min(means.values())
        cells = [f"**{means[n]:.4f}**" if means[n] == least else f"{means[n]:.4f}" for n in names]
        lines.append(f"| {data} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def group_of(p: np.ndarray) -> str:
    return "binary" if p.ndim == 1 else "several" if p.shape[1] <= 20 else "many"


def quality_lines(group: str) -> list[str]:
    results = []
    for name, p, y in data_sets():
        if group_of(p) == group:
            results.append((name, losses(p, y, binary_maps() if p.ndim == 1 else multiclass_maps(p.shape[1]))))
            print(name, flush=True)
    title = f"{len(results)} data sets of at most {ROWS} rows, {SEEDS} seeds, one half fitted, the other scored"
    return summary(results, title) + detail(results, 0, "Log loss") + detail(results, 1, "Brier score")


def main() -> None:
    titles = {"binary": "one event", "several": "up to 20 classes", "many": "100 classes"}
    for group in sys.argv[1:] or titles:
        title = f"Recalibration maps on real predictions: {titles[group]}"
        command = f"python -m benchmarks.recalibrate_quality {group}"
        write_results(f"recalibrate_{group}", title, command, quality_lines(group))


if __name__ == "__main__":
    main()
