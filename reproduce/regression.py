"""The experiments of Evaluating and Calibrating Uncertainty Prediction in Regression Tasks (Levi et al.).

    python -m reproduce.regression [--quick] [--out reproduce/results] [--cache FOLDER]

Writes regression.md, regression.csv and the figures. Needs torch. With a cache, finished sections are not made again.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import scipy
import torch
from scipy import stats

import calibrant as cal
from reproduce import data, regression_boxes, regression_figures, regression_kitti, regression_real
from reproduce.regression_networks import Training, applied, dense, std_of, trained_mean, trained_spread
from reproduce.sections import kept

#: Lines of the report, and rows of the CSV file.
Section = tuple[list[str], list[dict[str, object]]]
RESULTS = Path(__file__).with_name("results")
RECALIBRATION = 6000
BINS = (10, 20, 50, 100)


def population(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """X is uniform on [0.1, 1], y is normal with mean x and standard deviation x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.1, 1, n)
    return x, x + x * rng.normal(size=n)


def synthetic_sets(n: int, training: Training) -> dict[str, list[cal.Gaussian]]:
    """Recalibration and test set of the random, the learned and the true spread, all around the learned mean."""
    torch.manual_seed(0)
    x, y = population(n, 0)
    mean = trained_mean(dense(1, 1), x[:, None], y[:, None], training)
    spread = trained_spread(dense(1, 1), mean, x[:, None], y[:, None], training)
    sets: dict[str, list[cal.Gaussian]] = {"random": [], "learned": [], "true": []}
    for seed, size in ((1, RECALIBRATION), (2, n)):
        x, y = population(size, seed)
        center = applied(mean, x[:, None])[:, 0]
        noise = np.random.default_rng(seed + 10).uniform(1, 10, size)
        sets["random"].append(cal.Gaussian(y, center, noise))
        sets["learned"].append(cal.Gaussian(y, center, std_of(spread, x[:, None])[:, 0]))
        sets["true"].append(cal.Gaussian(y, x, x))
    return sets


def synthetic_lines(
    sets: dict[str, list[cal.Gaussian]], table: list[dict[str, object]], experiment: str = "synthetic"
) -> list[str]:
    heads = " | ".join(f"ENCE, {bins} bins" for bins in BINS)
    lines = [
        f"| spread | map | {heads} | calibrated, 10 bins | C_v | C_v of the variance | quantile error |",
        "|---|---|" + "---|" * (len(BINS) + 4),
    ]
    maps = {
        "none": None,
        "StdScaling": cal.recalibrate.StdScaling(),
        "CdfIsotonic (Kuleshov)": cal.recalibrate.CdfIsotonic(),
        "VarianceIsotonic": cal.recalibrate.VarianceIsotonic(),
    }
    for name, (train, test) in sets.items():
        for label, kind in maps.items():
            fixed = test if kind is None else kind.fit(train).transform(test)
            values = [cal.ence(fixed, bins=cal.EqualMass(bins)) for bins in BINS]
            dispersion, error = cal.std_dispersion(fixed), cal.quantile_error(fixed)
            null = values[0].details["null"]["mean"]
            cells = " | ".join(f"{value:.4f}" for value in values)
            variance = dispersion.details["variance_dispersion"]
            lines.append(
                f"| {name} | {label} | {cells} | {null:.4f} | {dispersion:.3f} | {variance:.3f} | {error:.4f} |"
            )
            table.append({"experiment": experiment, "case": name, "map": label, "ence_10": values[0].value})
    return lines


def counterexample_lines(n: int) -> list[str]:
    """Forecasts whose scale is independent of the outcome, and which are perfectly quantile-calibrated."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)
    lines = [
        "| forecast | quantile error | calibrated: 97.5 % | KS p-value | ENCE, 20 bins | after StdScaling |",
        "|---|---|---|---|---|---|",
    ]
    for nu in (1, 3, 5, 10):
        scale = np.sqrt(rng.chisquare(nu, n) / nu)
        data = cal.Distribution(y, stats.t(nu, scale=scale))
        error, p_value = cal.quantile_error(data), cal.pit_error(data).details["p_value"]
        name, spreads = ("Cauchy(0, γ)", "no variance | ") if nu == 1 else (f"t_{nu}(0, γ)", "")
        if nu > 1:
            pairs = data.rows()
            twin = cal.Gaussian(y, np.zeros(n), pairs.key)  # ENCE sees only mean and spread
            scaled = cal.recalibrate.StdScaling().fit(twin).transform(twin)
            spreads = " | ".join(f"{cal.ence(task, bins=cal.EqualMass(20)):.3f}" for task in (twin, scaled))
        high = error.details["null"]["high"]
        lines.append(f"| {name} | {error:.4f} | {high:.4f} | {p_value:.2f} | {spreads} |")
    return lines


def box_lines(boxes: dict[str, list[cal.Gaussian]], table: list[dict[str, object]]) -> list[str]:
    lines = [
        "| output | spread | s | ENCE before | ENCE after | calibrated: mean (97.5 %) | C_v | quantile error after "
        "CdfIsotonic | paper: before, after, C_v |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, sets in boxes.items():
        for row in regression_boxes.rows_of(*sets):
            null = row.after.details["null"]
            before, after, variation = regression_boxes.PAPER[row.output]
            paper = f"{before} %, {after} %, {variation}" if kind == "trained" else ""
            lines.append(
                f"| {row.output} | {kind} | {row.scale:.3g} | {row.before:.1%} | {row.after:.1%} "
                f"| {null['mean']:.1%} ({null['high']:.1%}) | {row.dispersion:.2f} | {row.interval_after:.4f} "
                f"| {paper} |"
            )
            case = f"{row.output} {kind}"
            table.append({"experiment": "boxes", "case": case, "map": "none", "ence_10": row.before.value})
            table.append({"experiment": "boxes", "case": case, "map": "StdScaling", "ence_10": row.after.value})
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a minute instead of ten: smaller sets, few epochs")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--cache", type=Path, default=None, help="folder of finished sections")
    asked = parser.parse_args()
    start = time.process_time()
    asked.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    sections, table = {}, []
    for title, make in parts(asked.out, quick=asked.quick).items():
        lines, rows = kept(asked.cache, title, make)
        sections[title] = lines
        table += rows
    write(asked.out, sections, table, quick=asked.quick, seconds=time.process_time() - start)


def parts(out: Path, *, quick: bool) -> dict[str, Callable[[], Section]]:
    """What makes each section: its lines and its rows of the CSV file; figures are drawn on the way."""
    n, boxes, epochs = (3000, 600, 2) if quick else (50_000, 12_000, 12)
    training = Training(epochs=2 if quick else 8)
    found: dict[str, Callable[[], Section]] = {
        f"Synthetic regression (section 4.1, T = {n:,}, recalibration on {RECALIBRATION:,})": lambda: synthetic(
            n, training, out
        ),
        "The same with the paper's optimiser (SGD, rate 0.001, momentum 0.9)": lambda: by_sgd(n, quick=quick),
        "Quantile-calibrated forecasts whose spread is noise (section 2)": lambda: (counterexample_lines(4 * n), []),
        f"Bounding boxes of {boxes:,} canvases made here: KITTI, COCO and R-FCN with predicted spreads are not public "
        "(section 4.2, table 1)": lambda: box_section(boxes, Training(epochs, batch=128, rate=3e-3), out),
    }
    folder = data.folder("regression")
    if folder is None:
        return found | {"Stored predictions of others, QM9, COVID-19, UCI": lambda: ([data.missing("regression")], [])}
    real = regression_real
    kitti = folder / "kitti_pointrcnn_cars.npz"
    title = "KITTI boxes of PointRCNN, spreads learned here, split by sequence (section 4.2, table 1)"
    found[title] = lambda: kitti_section(kitti, Training(2 if quick else 20, batch=128, rate=3e-3), out)
    return found | {
        "Stored predictions of others": lambda: (real.stored_lines(folder), []),
        "QM9: maps fitted on the validation set, judged on the test set": lambda: (real.qm9_lines(folder), []),
        "COVID-19 forecasts": lambda: (real.covid_lines(folder), []),
        "UCI data, models trained here": lambda: (real.uci_lines(folder, rows=900 if quick else 9000), []),
    }


def synthetic(n: int, training: Training, out: Path) -> Section:
    table: list[dict[str, object]] = []
    sets = synthetic_sets(n, training)
    lines = [
        "Paper: random spread, ENCE 84.3 % before and 52.5 % after STD scaling (exact limits for many bins:",
        "84.44 % and 51.95 %). Its c_v of 0.79 is that of the variances; equation 9 gives 0.47.",
        "",
        *synthetic_lines(sets, table),
        "",
        *(f"![{name}]({name})" for name in regression_figures.synthetic_figures(sets, out)),
    ]
    return lines, table


def by_sgd(n: int, *, quick: bool) -> Section:
    """The paper does not print how many passes it trains for; as many as bring the loss to rest here."""
    training = Training(epochs=2 if quick else 60, batch=32, rate=1e-3, optimiser="sgd")
    sets = synthetic_sets(n, training)
    table: list[dict[str, object]] = []
    lines = synthetic_lines({name: sets[name] for name in ("random", "learned")}, table, "synthetic, SGD")
    return [f"{training.epochs} passes, batches of {training.batch} rows.", "", *lines], table


def box_section(canvases: int, training: Training, out: Path) -> Section:
    table: list[dict[str, object]] = []
    boxes = regression_boxes.box_forecasts(n=canvases, training=training)
    lines = box_lines(boxes, table)
    return [*lines, "", *(f"![{name}]({name})" for name in regression_figures.box_figures(boxes, out))], table


def kitti_section(path: Path, training: Training, out: Path) -> Section:
    if not path.exists():
        return [data.missing("regression")], []
    table: list[dict[str, object]] = []
    found = regression_kitti.forecasts(path, training)
    lines = regression_kitti.lines(found, table)
    drawn = regression_figures.box_figures(found[0], out, "kitti_figure")
    return [*lines, "", "Figures 1, 4 and 5, first rotation:", "", *(f"![{name}]({name})" for name in drawn)], table


def write(
    out: Path, sections: dict[str, list[str]], table: list[dict[str, object]], *, quick: bool, seconds: float
) -> None:
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    command = "python -m reproduce.regression" + (" --quick" if quick else "")
    head = [
        "# Evaluating and Calibrating Uncertainty Prediction in Regression Tasks",
        "",
        f"{date.today().isoformat()}, calibrant {cal.__version__}, {versions}, torch {torch.__version__}. `{command}`",
        f"took {seconds:.0f} s of processor time. Networks are trained with Adam where SGD is not named.",
    ]
    body = [line for title, lines in sections.items() for line in ("", f"## {title}", "", *lines)]
    target, temporary = out / "regression.md", out / ".regression.md.new"
    temporary.write_text("\n".join([*head, *body]) + "\n", encoding="utf8")
    os.replace(temporary, target)
    with open(out / "regression.csv", "w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, ["experiment", "case", "map", "ence_10"])
        writer.writeheader()
        writer.writerows(table)
    print(target.read_text(encoding="utf8"))


if __name__ == "__main__":
    main()
