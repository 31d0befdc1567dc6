"""Tables 2, 3 and 4: worlds fitted to real predictions, and what single precision and bootstraps did to them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from calibrant import simulate as sim
from calibrant.numerics.arrays import log_odds
from calibrant.simulate.world_fit import CurveFit, fit_curves
from reproduce import bias_anchors as anchors
from reproduce.bias_grid import ESTIMATORS

#: Where the published fits put a score of 1.
LAST = float(log_odds(1 - 2.0**-53))
#: The unit of single precision near logits of 16 to 32 and of 32 to 64: minus the log of a score is a multiple of it.
UNITS = (2.0**-19, 2.0**-18)
#: Rows of the validation folds by data set; the paper's are not public but for densenet40_c10.
FOLD_ROWS = {"c10": 5000, "c100": 5000, "imgnet": 25_000}
REFITS = 30


def softmax_top(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True)).max(axis=1)


def softmax_top_by_log_sum_exp(logits: np.ndarray) -> np.ndarray:
    """As the softmax of older SciPy, whose rounding shows in the paper's fits."""
    top = logits.max(axis=1, keepdims=True)
    total = np.log(np.exp(logits - top).sum(axis=1, keepdims=True)) + top
    return np.minimum(np.exp(logits - total).max(axis=1), 1)


def rounded_by_log_sum_exp(score: np.ndarray, unit: float) -> np.ndarray:
    """Scores as the softmax of older SciPy rounds them where the top logit has this unit in single precision."""
    loss = -np.log(score.astype(np.float64))
    return np.minimum(np.exp(-unit * np.round(loss / unit)).astype(np.float32), 1)


def densenet(folder: Path, fold: str) -> tuple[np.ndarray, np.ndarray]:
    """Logits and whether the top one is right."""
    stored = np.load(folder / "kangsepp_densenet40_cifar10.npz")
    logits = stored[f"logits_{fold}"]
    return logits, (logits.argmax(axis=1) == stored[f"labels_{fold}"]).astype(np.int8)


def top_label(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    stored = np.load(folder / f"toplabel_kangsepp_{name}.npz")
    return stored["conf"], (stored["pred"] == stored["labels"]).astype(np.int8)


def table_2(folder: Path) -> list[str]:
    logits, _ = densenet(folder, "test")
    double = np.sort(logits.astype(np.float64), axis=1)
    exact = double[:, -1] - np.logaddexp.reduce(double[:, :-1], axis=1)
    kinds = {
        "float32, log-sum-exp (the paper's)": log_odds(softmax_top_by_log_sum_exp(logits).astype(np.float64)),
        "float32, exp / sum": log_odds(softmax_top(logits).astype(np.float64)),
        "float64, exp / sum": log_odds(softmax_top(logits.astype(np.float64))),
        "log-odds from the logits": exact,
    }
    lines = [
        "| network | scores | exactly 1 | Beta, printed | Beta, ours |",
        "|---|---|---|---|---|",
    ]
    for kind, z in kinds.items():
        beta = sim.fit_beta(np.minimum(z, LAST)) if np.isinf(z).any() else sim.fit_beta(z)
        printed = "1.9824, 0.0397" if "paper" in kind else ""
        ones = f"{np.mean(np.isinf(z)):.1%}"
        lines.append(f"| densenet40_c10 | {kind} | {ones} | {printed} | {beta.a:.4f}, {beta.b:.4f} |")
    for name in list(anchors.TABLE_2)[1:]:
        confidence, _ = top_label(folder, name)
        z = log_odds(confidence.astype(np.float64))
        beta = sim.fit_beta(np.minimum(z, LAST))
        a, b = anchors.TABLE_2[name]
        ones = f"{np.mean(np.isinf(z)):.1%}"
        lines.append(f"| {name} | float32, stored | {ones} | {a}, {b} | {beta.a:.4f}, {beta.b:.4f} |")
        for unit in UNITS:
            z = log_odds(rounded_by_log_sum_exp(confidence, unit).astype(np.float64))
            beta = sim.fit_beta(np.minimum(z, LAST))
            kind, ones = f"the same, rounded to 2^{np.log2(unit):.0f}", f"{np.mean(np.isinf(z)):.1%}"
            lines.append(f"| {name} | {kind} | {ones} | {a}, {b} | {beta.a:.4f}, {beta.b:.4f} |")
    return [
        *lines,
        "",
        "**Artefact.** The printed Beta of densenet40_c10 is that of float32 scores, of which 64 % are 1 and "
        "were moved to "
        "1 - 1e-16. The same logits in double precision give another, and the log-odds, which need no such "
        "repair, a third.",
        "",
        "Log-sum-exp in single precision rounds minus the log of a score to a multiple of 2^-19 where the top logit is "
        "between 16 and 32, and of 2^-18 from 32 to 64, so that scores nearer to 1 become 1. Top logits of the public "
        "DenseNet have quartiles 21, 29 and 38. Of the other three networks only scores are public, stored with less "
        "rounding; rounded so, their Beta fits approach the printed ones or enclose them.",
    ]


def coefficients(fit: CurveFit) -> str:
    """The free coefficients of a curve, as the paper prints them."""
    return ", ".join(f"{getattr(fit.curve, term):.2f}" for term in ("b0", "b1") if term in fit.terms)


def table_3(folder: Path) -> list[str]:
    logits, hit = densenet(folder, "test")
    fits = {"densenet40_c10": sim.fit_world(hit, softmax_top_by_log_sum_exp(logits))}
    for name in list(anchors.TABLE_3)[1:]:
        confidence, right = top_label(folder, name)
        fits[name] = sim.fit_world(right, confidence)
    lines = [
        "| network | printed best (AIC) | exact AIC of it | exact rank | exact best (AIC) "
        "| rounded to 2^-19, 2^-18 | b0, b1 printed | ours |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, (best, aic, b0, b1) in anchors.TABLE_3.items():
        curves = fits[name].curves
        rank = [curve.name for curve in curves].index(best)
        same = curves[rank]
        printed = ", ".join(f"{value:.2f}" for value in (b0, b1) if value is not None)
        ours, rounded = coefficients(same), ""
        if name != "densenet40_c10":
            confidence, right = top_label(folder, name)
            scores = [rounded_by_log_sum_exp(confidence, unit) for unit in UNITS]
            again = [{fit.name: fit for fit in sim.fit_world(right, score).curves}[best] for score in scores]
            rounded = "; ".join(coefficients(fit) for fit in again)
        lines.append(
            f"| {name} | {best} ({aic:.2f}) | {same.aic:.2f} | {rank + 1} | {curves[0].name} ({curves[0].aic:.2f}) "
            f"| {rounded} | {printed} | {ours} |"
        )
    constant = {curve.name: curve.aic for curve in fits["densenet40_c10"].curves if curve.name.endswith("_b0")}
    printed = ", ".join(f"{value:.2f}" for value in anchors.CONSTANT_AIC.values())
    exact = ", ".join(f"{constant[name]:.2f}" for name in anchors.CONSTANT_AIC)
    return [
        *lines,
        "",
        "Curves are fitted to scores below 1, as in the paper. For densenet40_c10 the scores are those of the "
        "first line of "
        "Table 2; for the others stored float32 scores, whose rounding differs from the paper's. The rounding that "
        "explains Table 2 moves the curve of resnet110_c10 away from the printed one: how scores of 1 enter "
        "the paper's curves is not known.",
        "",
        f"**Artefact.** The printed AIC are means over ten bootstrap samples, each model on samples of its own. "
        f"The four "
        f"models with only b0 are one and the same constant, yet are printed as {printed}; exact: {exact}. Differences "
        "of some tens between models are noise, and so is the choice of the best.",
    ]


def rounding_range(world: sim.World, estimator: Any, repeats: int) -> tuple[float, float]:
    """The least and the largest mean estimate where each coefficient is off by half a unit of its second decimal.

    A coefficient of 0 is none: the fit has only the other. The worlds share their name and so their random numbers.
    """
    curve = world.curve
    shifts = [(0.0,) if value == 0 else (-0.005, 0.005) for value in (curve.b0, curve.b1)]
    found = []
    for first, second in product(*shifts):
        moved = replace(world, curve=replace(curve, b0=curve.b0 + first, b1=curve.b1 + second))
        found.append(sim.bias(estimator, moved, 1000, repeats=repeats).mean)
    return min(found), max(found)


def refitted(world: sim.World, rows: int, estimator: Any, repeats: int) -> tuple[float, float]:
    """Mean and standard deviation of the mean estimate where the curve is fitted again to a fold of this world.

    Folds are samples of the world; scores that single precision makes 1 are left out of the fit, as in the paper.
    """
    curve, found = world.curve, []
    terms = "_".join(["", *(name for name in ("b0", "b1") if getattr(curve, name) != 0)])
    for fold in range(REFITS):
        sample = world.sample(rows, seed=fold)
        z = log_odds(sample.y_prob)
        inside = z < -np.log(UNITS[0])
        fits = {fit.name: fit.curve for fit in fit_curves(z[inside], sample.y_true[inside])}
        found.append(sim.bias(estimator, replace(world, curve=fits[curve.family + terms]), 1000, repeats=repeats).mean)
    return float(np.mean(found)), float(np.std(found, ddof=1))


def table_4(folder: Path, figures: Path, repeats: int) -> list[str]:
    """Real error on the validation fold against samples of 1000 of the fitted world, as the paper does it."""
    logits, hit = densenet(folder, "val")
    score = softmax_top_by_log_sum_exp(logits)
    ew_bin = ESTIMATORS["ew_bin"]
    real = 100 * float(ew_bin(cal.Binary(hit, score)))
    refit = {curve.name: curve.curve for curve in sim.fit_world(hit, score).curves}
    published = sim.World(sim.BetaScores(1.9824, 0.0397), refit["logit_logflip_b1"], name="table 4")
    found = sim.bias(ew_bin, published, 1000, repeats=repeats)
    printed = anchors.TABLE_4["densenet40_c10"]
    rows, away, inside = [], [], 0
    for name, (_, theirs) in anchors.TABLE_4.items():
        made = sim.bias(ew_bin, sim.PAPER_WORLDS[name], 1000, repeats=repeats)
        low, high = rounding_range(sim.PAPER_WORLDS[name], ew_bin, repeats)
        means = f"{100 * made.mean:.2f} ± {100 * made.bias_se:.2f} | {100 * low:.2f} to {100 * high:.2f}"
        again = refitted(sim.PAPER_WORLDS[name], FOLD_ROWS[name.rpartition("_")[2]], ew_bin, max(repeats // 5, 10))
        means += " | {:.2f} ± {:.2f}".format(*(100 * value for value in again))
        inside += low <= theirs / 100 <= high
        away.append((theirs / 100 - again[0]) / again[1])
        rows.append(f"| {name} | {theirs:.2f} | {means} |")
    lines = [
        "Samples of 1,000 rows of the ten printed fits (Tables 2 and 3); the paper averages 1,000 samples and does not "
        "state their size. Coefficients of the curves are printed with two decimals; the fourth column is what all "
        f"coefficients that are printed so have. It holds {inside} of the ten printed numbers. No other size does "
        "better: with 300 samples each, 500 to 25,000 rows give 10.0 to 8.2 for resnet110_c10 (8.42 is that of 5,000), "
        "9.0 to "
        "6.8 for resnet110_SD_c10 (of 600) and 17.7 to 16.3 for resnet110_SD_c100 (15.78 is that of none). For "
        "densenet40_c10 the printed number is that of the curve fitted again to the validation fold (below). The last "
        f"column is the mean and the standard deviation over {REFITS} such folds, drawn from the printed fit: 5,000 "
        f"rows, 25,000 of ImageNet. Printed numbers are at most {np.max(np.abs(away)):.1f} such deviations away, and "
        f"{np.sqrt(np.mean(np.square(away))):.1f} on root mean square, where chance has 1.",
        "",
        "| network | printed: simulated, percent | ours | with coefficients within their rounding "
        "| curve refitted to a fold: mean ± sd |",
        "|---|---|---|---|---|",
        *rows,
        "",
        "| densenet40_c10 | printed | ours |",
        "|---|---|---|",
        f"| ECE_bin of the validation fold, percent | {printed[0]:.2f} | {real:.3f} |",
        f"| mean ECE_bin of simulated samples, percent | {printed[1]:.2f} | {100 * found.mean:.2f} ± "
        f"{100 * found.bias_se:.2f} |",
        "",
        "Figure 3c with exact fits and samples of the size of the data:",
        "",
        "| network | real, percent | simulated | sd of one sample |",
        "|---|---|---|---|",
    ]
    seen = []
    for name in ("resnet110_c10", "densenet40_c10", "resnet110_c100", "densenet40_c100", "resnet50_birds"):
        confidence, right = top_label(folder, name)
        good = sim.fit_world(right, confidence).goodness(repeats=max(repeats // 10, 20))
        seen.append(good)
        lines.append(f"| {name} | {100 * good.real:.2f} | {100 * good.simulated:.2f} | {100 * good.simulated_sd:.2f} |")
    from calibrant.plot.validation import goodness_points
    from reproduce.bias_figures import canvas, save

    figure, axes = canvas(1)
    goodness_points(seen, ax=axes[0, 0])
    save(figure, figures / "figure3c.svg")
    lines += [
        "",
        "**resnet110_c10**: of the three points between real and simulated error, most are due to the Beta law: the "
        "stored scores with the fitted curve give 7.20. The law is fitted to float32 scores of which 29 % are 1. The "
        "paper's own row has the same sign (6.67 real, 8.42 simulated).",
    ]
    return [*lines, "", "![Figure 3c](bias/figure3c.svg)"]
