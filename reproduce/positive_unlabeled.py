"""Estimating Expected Calibration Error for Positive-Unlabeled Learning (2025): figures 1 to 3.

    python -m reproduce.positive_unlabeled               # all of it, some minutes on one core
    python -m reproduce.positive_unlabeled --quick       # few trials, briefly trained models

Writes positive_unlabeled.md, .csv and three figures. With --cache, finished parts are not made again.
"""

from __future__ import annotations

import argparse
import csv
import platform
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import scipy
import torch

import calibrant as cal
from calibrant import simulate
from reproduce import data, positive_unlabeled_figures
from reproduce import positive_unlabeled_models as models
from reproduce.sections import kept

RESULTS = Path(__file__).with_name("results")
SIZES = (10, 30, 100, 300, 1000, 3000, 10_000)

#: Mean |bias| of a run of the specification at SIZES, 100 trials, equal widths.
ANCHORS = {
    ("less", "P=N, U=inf"): (0.1395, 0.0727, 0.0399, 0.0213, 0.0080, 0.0043, 0.0018),
    ("less", "P=inf, U=N"): (0.1168, 0.0672, 0.0357, 0.0188, 0.0093, 0.0052, 0.0028),
    ("less", "P=N, U=10N"): (0.1497, 0.0790, 0.0387, 0.0213, 0.0097, 0.0044, 0.0020),
    ("less", "ECE, n=N"): (0.0827, 0.0481, 0.0226, 0.0140, 0.0070, 0.0049, 0.0023),
    ("better", "P=N, U=inf"): (0.1686, 0.1017, 0.0690, 0.0431, 0.0226, 0.0130, 0.0056),
    ("better", "P=inf, U=N"): (0.1563, 0.1028, 0.0565, 0.0324, 0.0187, 0.0107, 0.0051),
    ("better", "P=N, U=10N"): (0.1860, 0.1133, 0.0614, 0.0435, 0.0242, 0.0132, 0.0057),
    ("better", "ECE, n=N"): (0.1278, 0.0841, 0.0386, 0.0243, 0.0103, 0.0057, 0.0026),
    ("calibrated", "P=N, U=10N"): (0.1922, 0.1289, 0.0856, 0.0639, 0.0426, 0.0292, 0.0201),
}
ARMS = ("P=N, U=inf", "P=inf, U=N", "P=N, U=10N", "ECE, n=N")
#: The two arms with samples on both sides, in bins of equal mass (Appendix I of the paper).
EQUAL_MASS = ("P=N, U=10N, equal mass", "ECE, n=N, equal mass")
FLOOR_ANCHORS = {
    ("less", 100): (0.048, 0.041, 0.039, 0.046),
    ("less", 1000): (0.037, 0.014, 0.008, 0.010),
    ("better", 100): (0.082, 0.067, 0.071, 0.068),
    ("better", 1000): (0.059, 0.030, 0.024, 0.023),
}
PRIOR_ANCHORS = {"less": (-0.031, -0.018, 0.002, 0.024, 0.049), "better": (0.012, 0.002, 0.006, 0.026, 0.050)}
HEADER = ["figure", "world", "arm", "n", "mean_abs", "standard_error", "p05", "p95", "mean_signed", "trials"]
TRUE_ERRORS = {"less": 0.0744433, "better": 0.0234589, "calibrated": 0.0}


def synthetic(b0: float, b1: float) -> simulate.LogitMixtureWorld:
    return simulate.LogitMixtureWorld(
        0.5, simulate.LogitMixtureScores((b0 + b1,), (b1,)), simulate.LogitMixtureScores((b0 - b1,), (b1,))
    )


WORLDS = {"less": synthetic(-0.5, 1.5), "better": synthetic(-0.2, 1.9), "calibrated": synthetic(0.0, 2.0)}


def bins(world: simulate.LogitMixtureWorld, n_positive: float, n_unlabeled: float) -> int:
    return cal.pu.PaperBins().resolve(world.prior**2 / n_positive + 1 / n_unlabeled, n_unlabeled).n_bins


def estimate(world: simulate.LogitMixtureWorld, rng: np.random.Generator, arm: str, n: int) -> float:
    """One trial of an arm of figure 1; infinite samples are integrals."""
    cut = cal.EqualMass if arm.endswith("equal mass") else cal.EqualWidth
    if arm.startswith("ECE"):
        return float(cal.ece(world.labelled(rng, n), bins=cut(int(np.ceil(n ** (1 / 3) - 1e-9)))))
    if arm.startswith("P=N, U=10N"):
        return pu_ece(world, rng, n, 10 * n, world.prior, cut)
    few, many = (n, np.inf) if arm == "P=N, U=inf" else (np.inf, n)
    wide = cal.EqualWidth(bins(world, few, many))
    positive, predicted = world.masses(wide.edges)
    if arm == "P=N, U=inf":
        positive = np.bincount(wide.index(world.positives(rng, n)), minlength=wide.n_bins) / n
    else:
        p = world.labelled(rng, n).y_prob
        predicted = np.bincount(wide.index(p), p, wide.n_bins) / n
    return float(np.abs(world.prior * positive - predicted).sum())


def pu_ece(
    world: simulate.LogitMixtureWorld,
    rng: np.random.Generator,
    n_p: int,
    n_u: int,
    prior: float,
    cut: type[cal.EqualWidth] | type[cal.EqualMass] = cal.EqualWidth,
) -> float:
    """With the bins of the true prior, so that a wrong one changes nothing else."""
    data = world.sample(n_p, n_u, rng)
    wrong = cal.PositiveUnlabeled(data.positive, data.unlabeled, prior=prior)
    return float(cal.ece(wrong, bins=cut(bins(world, n_p, n_u))))


def repeated(trials: int, once: Callable[[np.random.Generator], float]) -> np.ndarray:
    return np.array([once(np.random.default_rng([7, trial])) for trial in range(trials)])


def figure_1(name: str, world: simulate.LogitMixtureWorld, trials: int, rows: list[list[object]]) -> list[str]:
    truth = world.true_error()
    lines = [f"| {name} | " + " | ".join(str(n) for n in SIZES) + " | slope |", "|---" * (len(SIZES) + 2) + "|"]
    for arm in (*ARMS, *EQUAL_MASS):
        errors = [repeated(trials, lambda rng, n=n, arm=arm: estimate(world, rng, arm, n)) - truth for n in SIZES]
        sizes = [float(np.abs(e).mean()) for e in errors]
        for n, e in zip(SIZES, errors, strict=True):
            low, high = np.quantile(np.abs(e), [0.05, 0.95])
            error = np.abs(e).std() / np.sqrt(trials)
            rows.append([1, name, arm, n, np.abs(e).mean(), error, low, high, e.mean(), trials])
        slope = np.polyfit(np.log(SIZES), np.log(sizes), 1)[0]
        lines.append(f"| {arm} | " + " | ".join(f"{s:.4f}" for s in sizes) + f" | {slope:.3f} |")
        anchor = ANCHORS.get((name, arm))
        if anchor:
            away = [
                abs(s - a) / (np.abs(e).std() * np.sqrt(2 / trials))
                for s, a, e in zip(sizes, anchor, errors, strict=True)
            ]
            slope = np.polyfit(np.log(SIZES), np.log(anchor), 1)[0]
            lines.append("| *anchor* | " + " | ".join(f"*{a:.4f}*" for a in anchor) + f" | *{slope:.3f}* |")
            lines.append("| *difference in SE* | " + " | ".join(f"*{a:.1f}*" for a in away) + " | |")
    return [*lines, ""]


def figure_2(name: str, world: simulate.LogitMixtureWorld, trials: int, rows: list[list[object]]) -> list[str]:
    truth, lines = world.true_error(), []
    for n_p in (100, 1000):
        sizes = []
        for n_u in (100, 1000, 10_000, 100_000):
            e = repeated(trials, lambda rng, p=n_p, u=n_u: pu_ece(world, rng, p, u, world.prior)) - truth
            sizes.append(float(np.abs(e).mean()))
            low, high = np.quantile(np.abs(e), [0.05, 0.95])
            error = np.abs(e).std() / np.sqrt(trials)
            rows.append([2, name, f"P={n_p}, U=N", n_u, sizes[-1], error, low, high, e.mean(), trials])
        anchor = FLOOR_ANCHORS.get((name, n_p), ("",) * 4)
        cells = " | ".join(f"{s:.4f}" + (f" *({a:.3f})*" if a else "") for s, a in zip(sizes, anchor, strict=True))
        lines.append(f"| {name} | {n_p} | {cells} |")
    return lines


#: Errors of the prior in Figure 3.
FACTORS = (0.90, 0.95, 1.00, 1.05, 1.10)


def figure_3(name: str, world: simulate.LogitMixtureWorld, trials: int, rows: list[list[object]]) -> str:
    truth, cells = world.true_error(), []
    anchor = PRIOR_ANCHORS.get(name, ("",) * 5)
    for factor, a in zip(FACTORS, anchor, strict=True):
        for n in SIZES[2:]:
            e = repeated(trials, lambda rng, f=factor, n=n: pu_ece(world, rng, n, 10 * n, f * world.prior)) - truth
            error = e.std() / np.sqrt(trials)
            rows.append([3, name, f"prior x {factor:.2f}", n, np.abs(e).mean(), error, "", "", e.mean(), trials])
        cells.append(f"{e.mean():+.4f}" + (f" *({a:+.3f})*" if a != "" else ""))
    bound = 0.1 * world.prior
    return f"| {name} | " + " | ".join(cells) + f" | {bound:.3f}, {bound / 2:.3f} |"


def against_sizes(rows: list[list[object]], priors: dict[str, float]) -> list[str]:
    """Figure 3 itself: the total bias against N, with the bound of Theorem 2 for each error of the prior."""
    sizes = SIZES[2:]
    lines = ["| world | prior | " + " | ".join(f"N = {n:,}" for n in sizes) + " | bound | the shift at the last N |"]
    lines.append("|---" * (len(sizes) + 4) + "|")
    value = {(row[1], row[2], row[3]): row for row in rows if row[0] == 3}
    for world, prior in priors.items():
        for factor in FACTORS:
            own = [value[world, f"prior x {factor:.2f}", n] for n in sizes]
            shift = float(own[-1][8]) - float(value[world, "prior x 1.00", sizes[-1]][8])  # type: ignore[arg-type]
            cells = " | ".join(f"{row[4]:.4f}" for row in own)
            lines.append(f"| {world} | {factor - 1:+.0%} | {cells} | {abs(factor - 1) * prior:.4f} | {shift:+.4f} |")
    return lines


def trained_world(train: Callable[..., models.Trained], folder: Path, *, quick: bool) -> dict[str, object]:
    """A model trained from positives and unlabeled rows, the mixture fitted to its logits, and their lines."""
    model, components = train(folder, quick=quick), 4 if quick else 10
    world = simulate.fit_logit_mixture(model.labels, model.logits, components=components)
    lines = [summary(model, world)]
    if model.name == "DDI":
        shift = np.log(world.prior / (1 - world.prior))
        name = "the same, moved from 1/2 by `prior_shift`"
        moved = models.Trained("DDI, prior shifted", name, 0.0, model.logits + shift, model.labels)
        lines.append(summary(moved, simulate.fit_logit_mixture(moved.labels, moved.logits, components=components)))
    sides = [[side.means, side.sds, side.weights] for side in (world.positive, world.negative)]
    return {"name": model.name, "prior": world.prior, "sides": sides, "lines": lines}


def trained_worlds(cache: Path | None, *, quick: bool) -> tuple[dict[str, simulate.LogitMixtureWorld], list[str]]:
    folder = data.folder("pu")
    if folder is None:
        return {}, [f"{data.missing('pu')} The trained models were left out."]
    lines = [
        "| data | model | test accuracy | components | TCE of the mixture | ECE, all labels | PU-ECE, all positives | "
        "PU-Platt: TCE after |",
        "|---|---|---|---|---|---|---|---|",
    ]
    worlds = {}
    for train in (models.mnist, models.cifar10, models.ddi):
        made = kept(cache, train.__name__, lambda train=train: trained_world(train, folder, quick=quick))
        sides = [simulate.LogitMixtureScores(*side) for side in made["sides"]]
        worlds[made["name"]] = simulate.LogitMixtureWorld(made["prior"], *sides)
        lines += made["lines"]
    return worlds, lines


def summary(model: models.Trained, world: simulate.LogitMixtureWorld) -> str:
    p = 1 / (1 + np.exp(-model.logits))
    known = model.labels
    cut = cal.EqualWidth(bins(world, known.sum(), len(known)))
    full = cal.ece(known, p, bins=cut)
    same = cal.ece(cal.PositiveUnlabeled(p[known], p, prior=float(known.mean())), bins=cut)
    platt = cal.pu.PUPlatt().fit(world.sample(1000, 10_000, 1))
    a, b = platt.coefficients_

    def moved(side: simulate.LogitMixtureScores) -> simulate.LogitMixtureScores:
        return simulate.LogitMixtureScores(
            [a + b * m for m in side.means], [abs(b) * s for s in side.sds], side.weights
        )

    after = simulate.LogitMixtureWorld(world.prior, moved(world.positive), moved(world.negative)).true_error()
    parts = f"{len(world.positive.means)}/{len(world.negative.means)}"
    return (
        f"| {model.name} | {model.model} | {model.accuracy:.4f} | {parts} | {world.true_error():.4f} | {full:.4f} | "
        f"{same:.4f} | {after:.4f} |"
    )


def measured(
    name: str, world: simulate.LogitMixtureWorld, trials: int, cache: Path | None
) -> tuple[list[str], list[str], str, list[list[object]]]:
    """Lines of the three figures and rows of the CSV file, of one world."""

    def make() -> tuple[list[str], list[str], str, list[list[object]]]:
        rows: list[list[object]] = []
        first = figure_1(name, world, trials, rows)
        second = figure_2(name, world, trials, rows)
        third = figure_3(name, world, max(trials // 5, 2), rows)
        return first, second, third, [[float(c) if isinstance(c, np.floating) else c for c in row] for row in rows]

    return kept(cache, f"{name}, {trials} trials", make)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, default=RESULTS)
    parser.add_argument("--cache", type=Path, default=None, help="folder of finished parts")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    started, trials = time.process_time(), 10 if options.quick else 100
    options.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", UserWarning)  # ten positives often seem to contradict the prior
    worlds = WORLDS
    fitted, model_lines = trained_worlds(options.cache, quick=options.quick)
    found = [measured(name, world, trials, options.cache) for name, world in (worlds | fitted).items()]
    first, second = ([line for each in found for line in each[at]] for at in (0, 1))
    priors = {name: world.prior for name, world in (worlds | fitted).items()}
    third, rows = [each[2] for each in found], [row for each in found for row in each[3]]
    text = [
        "# PU-ECE: figures 1 to 3",
        "",
        f"{date.today()}, Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, torch "
        f"{torch.__version__}, {trials} trials, {time.process_time() - started:.0f} CPU seconds. "
        "`python -m reproduce.positive_unlabeled`",
        "",
        "The paper's bin rule is `PaperBins()`, in bins of equal width where nothing else is said: "
        "`ece(PositiveUnlabeled)` without `bins=` takes 15 bins of equal mass and is not the paper's number.",
        "",
        "Numbers in italics are anchors: our own first run of the published settings (the paper shows curves only).",
        "",
        "## True calibration errors",
        "",
        "| world | ours | anchor |",
        "|---|---|---|",
        *(f"| {name} | {worlds[name].true_error():.7f} | {value} |" for name, value in TRUE_ERRORS.items()),
        "",
        "## Models trained from positives and unlabeled rows",
        "",
        *model_lines,
        "",
        "Samples below are drawn from the mixtures, whose error is known. CIFAR-10 and DDI are not the paper's models: "
        "ResNet-18 and R-BERT are replaced as the table says.",
        "",
        "## Figure 1: mean |PU-ECE - TCE|, bins by `PaperBins()`",
        "",
        *first,
        "The slope is steeper than -1/3 where the error is above zero: the bound's rate is the worst case, which the "
        "calibrated world attains.",
        "",
        "## Figure 2: the floor that few positives leave",
        "",
        "| world | positives | U = 100 | 1,000 | 10,000 | 100,000 |",
        "|---|---|---|---|---|---|",
        *second,
        "",
        "## Figure 3: PU-ECE - TCE with a wrong prior, 10,000 positives and 100,000 unlabeled rows",
        "",
        "| world | -10 % | -5 % | 0 | +5 % | +10 % | bounds of Theorem 2 |",
        "|---|---|---|---|---|---|---|",
        *third,
        "",
        "Total bias, mean |PU-ECE - TCE|, against N, with N positives and 10 N unlabeled rows. The bound of Theorem 2 "
        "is one of the *shift* that a wrong prior causes (last column), not of the total bias, which exceeds it "
        "wherever the bias with the right prior is large: at small N, and in the calibrated world at every N here.",
        "",
        *against_sizes(rows, priors),
        "",
        *(f"![{name}]({name})" for name in positive_unlabeled_figures.draw_all(rows, options.folder, priors)),
        "",
    ]
    (options.folder / "positive_unlabeled.md").write_text("\n".join(text), encoding="utf8")
    with (options.folder / "positive_unlabeled.csv").open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["figure", "world", "arm", "n", "mean_abs", "standard_error", "p05", "p95", "mean_signed", "trials"]
        )
        writer.writerows([f"{c:.6g}" if isinstance(c, float) else c for c in row] for row in rows)


if __name__ == "__main__":
    main()
