"""Figures 1, 2, 5, 13 and 14: simulated, compared with the anchors, drawn, and written as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq

import calibrant as cal
from calibrant import simulate as sim
from calibrant.estimators.binned import largest_rising
from calibrant.numerics.equal_mass import SortedSamples
from reproduce import bias_anchors as anchors
from reproduce.bias_grid import ESTIMATORS


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([[f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows])


def canvas(columns: int, width: float = 4.0) -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(1, columns, figsize=(width * columns, 3.2), layout="constrained", squeeze=False)


def save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=90, metadata={"Software": None} if path.suffix == ".png" else {"Date": None})
    plt.close(figure)


def logistic(c: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(5 - 10 * c))


def figure_1(folder: Path, repeats: int) -> list[str]:
    world = sim.World(sim.BetaScores(2.8, 0.05), name="figure 1")
    values = 100 * sim.estimates({"": ESTIMATORS["ew_bin"]}, world, 200, repeats=repeats)[""]
    found = sim.Bias.of(values, 0.0, estimator="ew_bin", world=world.name, n=200)
    figure, axes = canvas(1, 4.5)
    counts, edges, _ = axes[0, 0].hist(values, bins=60, color="#0072B2")
    axes[0, 0].axvline(0.0, color="black", linestyle="--")
    axes[0, 0].set(xlabel="ECE, 15 equal-width bins, percent", ylabel="samples", title="A calibrated model, n = 200")
    save(figure, folder / "figure1.svg")
    write_csv(folder / "figure1.csv", ["from", "to", "samples"], list(zip(edges[:-1], edges[1:], counts, strict=True)))
    ratio = np.sqrt(1 + repeats / anchors.FIGURE_1["repeats"])
    lines = [f"{repeats:,} samples of 200 rows from a calibrated model, Beta(2.8, 0.05).", ""]
    lines += ["| percent | anchor | ours | distance, standard errors |", "|---|---|---|---|"]
    for name, value, error in (("mean", found.mean, found.bias_se), ("sd", found.sd, found.sd_se)):
        anchor = anchors.FIGURE_1[name]
        lines.append(
            f"| {name} | {anchor:.3f} | {value:.3f} ± {error:.3f} | {(value - anchor) / (error * ratio):+.1f} |"
        )
    return [*lines, "", "![Figure 1](bias/figure1.svg)"]


def figure_2(folder: Path, repeats: int) -> list[str]:
    world = sim.World(sim.BetaScores(1.1, 0.1), sim.PowerCurve(2), name="figure 2")
    binning = {"ew": cal.EqualWidth, "em": cal.EqualMass}
    estimators = {
        f"{kind} {b}": partial(cal.ece, bins=make(b), norm=2)
        for kind, make in binning.items()
        for b in (2, 4, 8, 16, 32, 64)
    }
    estimators |= {"ew sweep": ESTIMATORS["ew_sweep"], "em sweep": ESTIMATORS["em_sweep"]}
    table = sim.bias_table(estimators, [world], anchors.FIGURE_2_SIZES, repeats=repeats)
    table.to_csv(folder / "figure2.csv")
    figure, axes = canvas(2)
    for ax, kind in zip(axes[0], binning, strict=True):
        sim.BiasTable(tuple(row for row in table if row.estimator.startswith(kind))).plot(ax=ax)
    save(figure, folder / "figure2.png")
    lines = [
        f"Beta(1.1, 0.1), curve c², true error {100 * world.true_error(2):.3f} % (anchor 8.463): bias in percent "
        "[distance from the anchor, whose 150 repeats are most of the error].",
        "",
        "| bins | " + " | ".join(f"n = {n:,}" for n in anchors.FIGURE_2_SIZES) + " |",
        "|---" * 7 + "|",
    ]
    for name in estimators:
        kind, b = name.split()
        expected = anchors.FIGURE_2.get((kind, int(b)) if b.isdigit() else ("", 0))
        cells = []
        for at, n in enumerate(anchors.FIGURE_2_SIZES):
            (row,) = table.select(estimator=name, n=n)
            spread = 100 * row.bias_se * np.sqrt(1 + repeats / 150)
            note = f" [{(100 * row.bias - expected[at]) / spread:+.1f}]" if expected else ""
            cells.append(f"{100 * row.bias:+.2f}{note}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, "", "![Figure 2](bias/figure2.png)"]


def power_world(percent: float) -> sim.World:
    """Uniform scores and the power of them that has this error."""
    error = lambda d: 100 * sim.World(sim.UniformScores(), sim.PowerCurve(d)).true_error(2) - percent  # noqa: E731
    return sim.World(sim.UniformScores(), sim.PowerCurve(brentq(error, 1.0, 40.0)), name=f"figure 5, {percent}")


def figure_5(folder: Path, repeats: int) -> list[str]:
    estimators = {
        "ew_bin": ESTIMATORS["ew_bin"],
        "em_sweep": ESTIMATORS["em_sweep"],
        "em_debias": partial(cal.debiased_ece, norm=2),
    }
    percents, sizes = (1, 2, 3, 5, 7, 10, 15), (200, 500, 1000, 2000, 5000, 10000)
    misses: dict[tuple[int, int, str], float] = {}
    for n in sizes:
        null = sim.estimates(estimators, sim.World(sim.UniformScores(), name="figure 5, null"), n, repeats=repeats)
        limits = {name: np.quantile(values, 0.95) for name, values in null.items()}
        for percent in percents:
            values = sim.estimates(estimators, power_world(percent), n, repeats=repeats)
            misses |= {(n, percent, name): float(np.mean(values[name] <= limits[name])) for name in estimators}
    write_csv(folder / "figure5.csv", ["n", "percent", "estimator", "miss_rate"], [(*k, v) for k, v in misses.items()])
    figure, axes = canvas(2)
    for ax, name in zip(axes[0], ("ew_bin", "em_sweep"), strict=True):
        image = ax.imshow([[misses[n, p, name] for p in percents] for n in sizes], origin="lower", vmin=0, vmax=1)
        ax.set(xticks=range(len(percents)), xticklabels=percents, yticks=range(len(sizes)), yticklabels=sizes)
        ax.set(xlabel="true error, percent", ylabel="n", title=f"miss rate, {name}")
    figure.colorbar(image, ax=axes)
    save(figure, folder / "figure5.png")
    lines = [
        f"Miss rates at 5 % false alarms, {repeats:,} repeats: ours (anchor) [distance in standard errors, in "
        f"which the "
        "error of both thresholds is counted].",
        "",
        "| n | true error | ew_bin | em_sweep | em_debias, not clipped |",
        "|---|---|---|---|---|",
    ]
    for (n, percent), (*expected, count) in anchors.FIGURE_5.items():
        cells = [f"{n:,}", f"{percent} %"]
        for name, anchor in zip(estimators, expected, strict=True):
            rate = misses[n, percent, name]
            spread = miss_error(rate, repeats) + miss_error(anchor, count)
            cells.append(f"{rate:.3f} ({anchor:.3f}) [{(rate - anchor) / np.sqrt(spread):+.1f}]")
        lines.append("| " + " | ".join(cells) + " |")
    worst = {name: misses[10000, 2, name] for name in ("ew_bin", "em_sweep")}
    lines += [
        "",
        f"An error of 2 % is missed at n = 10,000 in {worst['ew_bin']:.0%} of samples by ew_bin and in "
        f"{worst['em_sweep']:.0%} by em_sweep; one of 10 % at n = 500 in {misses[500, 10, 'ew_bin']:.0%} and "
        f"{misses[500, 10, 'em_sweep']:.0%} (section 7.2).",
    ]
    return [*lines, "", "![Figure 5](bias/figure5.png)"]


def miss_error(rate: float, repeats: int) -> float:
    """Variance of a miss rate whose threshold was itself estimated at the 5 % point from as many samples.

    To first order the threshold moves the miss rate by the ratio of the two densities times the error of its level,
    taken as that of normal distributions of equal spread.
    """
    from scipy.stats import norm

    rate = min(max(rate, 0.5 / repeats), 1 - 0.5 / repeats)
    ratio = norm.pdf(norm.ppf(rate)) / norm.pdf(norm.ppf(0.95))
    return rate * (1 - rate) / repeats + ratio**2 * 0.05 * 0.95 / repeats


def figure_13(folder: Path, repeats: int) -> list[str]:
    estimators = {name: ESTIMATORS[name] for name in ("ew_bin", "em_sweep")}
    kinds = {"Uniform": sim.UniformScores(), "Beta(1.1, 0.1)": sim.BetaScores(1.1, 0.1)}
    powers = sorted({1.0, 1.2, *np.linspace(1, 10, 19).tolist()})
    found: dict[tuple[str, int, float], dict[str, sim.Bias]] = {}
    for kind, scores in kinds.items():
        for n in (200, 5000):
            for d in powers:
                world = sim.World(scores, sim.PowerCurve(d), name=f"figure 13, {kind}, {d}")
                values = sim.estimates(estimators, world, n, repeats=repeats)
                found[kind, n, d] = {
                    name: sim.Bias.of(values[name], world.true_error(2), estimator=name, world=world.name, n=n)
                    for name in estimators
                }
    rows = [(kind, n, d, name, b.truth, b.mean, b.sd) for (kind, n, d), e in found.items() for name, b in e.items()]
    write_csv(folder / "figure13.csv", ["scores", "n", "d", "estimator", "true_error", "mean", "sd"], rows)
    figure, axes = canvas(2)
    for ax, name in zip(axes[0], estimators, strict=True):
        ax.plot([0, 50], [0, 50], color="0.6", linestyle="--")
        for kind in kinds:
            for n in (200, 5000):
                line = [found[kind, n, d][name] for d in powers]
                ax.plot([100 * b.truth for b in line], [100 * b.mean for b in line], label=f"{kind}, n = {n}")
        ax.set(xlabel="true error, percent", ylabel="mean estimate, percent", title=name)
    axes[0, 0].legend(fontsize="small")
    save(figure, folder / "figure13.svg")
    lines = [
        f"Mean estimate in percent, {repeats:,} repeats: ours (anchor) [distance in standard errors, if the anchors "
        f"have {anchors.FIGURE_13_REPEATS} repeats, as those of Figure 2; theirs are not recorded].",
        "",
        "| scores | n | true error | ew_bin | em_sweep |",
        "|---|---|---|---|---|",
    ]
    for key, expected in anchors.FIGURE_13.items():
        each = found[key]
        cells = [key[0], f"{key[1]:,}", f"{100 * each['ew_bin'].truth:.2f} %"]
        for name, anchor in zip(estimators, expected, strict=True):
            spread = 100 * each[name].bias_se * np.sqrt(1 + repeats / anchors.FIGURE_13_REPEATS)
            away = (100 * each[name].mean - anchor) / spread
            cells.append(f"{100 * each[name].mean:.2f} ({anchor:.2f}) [{away:+.1f}]")
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, "", "![Figure 13](bias/figure13.svg)"]


def figure_14(folder: Path, repeats: int) -> list[str]:
    worlds = {"uncalibrated": sim.World(sim.UniformScores(), logistic), "calibrated": sim.World(sim.UniformScores())}
    numbers = range(1, 31)
    estimators = {str(b): partial(cal.ece, bins=cal.EqualMass(b), norm=2) for b in numbers}
    figure, axes = canvas(2)
    rows, lines = [], ["| world | n | mean b*, anchor | ours | least-bias b |", "|---|---|---|---|---|"]
    for ax, (kind, world) in zip(axes[0], worlds.items(), strict=True):
        for n in anchors.FIGURE_14:
            chosen = sweep_bins(world, n, repeats)
            values = sim.estimates(estimators, world, n, repeats=repeats // 5)
            curve = [100 * values[str(b)].mean() for b in numbers]
            rows += [(kind, n, b, value) for b, value in zip(numbers, curve, strict=True)]
            (line,) = ax.plot(numbers, curve, label=f"n = {n:,}")
            ax.axvline(chosen.mean(), color=line.get_color(), linestyle=":")
            best = int(np.argmin(np.abs(np.array(curve) - 100 * world.true_error(2)))) + 1
            error = chosen.std() / np.sqrt(repeats)
            anchor = anchors.FIGURE_14[n][kind == "calibrated"]
            lines.append(f"| {kind} | {n:,} | {anchor} | {chosen.mean():.2f} ± {error:.2f} | {best} |")
        ax.axhline(100 * world.true_error(2), color="0.6", linestyle="--")
        ax.set(xlabel="bins", ylabel="ECE of equal mass, percent", title=kind)
    axes[0, 0].legend(fontsize="small")
    save(figure, folder / "figure14.svg")
    write_csv(folder / "figure14.csv", ["world", "n", "bins", "mean_percent"], rows)
    lines.append("")
    lines.append(
        f"True error of logistic(10c - 5): {100 * worlds['uncalibrated'].true_error(2):.3f} % (anchor 12.633)."
    )
    return [*lines, "", "![Figure 14](bias/figure14.svg)"]


def sweep_bins(world: sim.World, n: int, repeats: int) -> np.ndarray:
    rng = np.random.default_rng(14)
    parts = [
        largest_rising(SortedSamples.of(*world.draw(rng, (min(100, repeats), n))), cal.EqualMass)
        for _ in range(max(repeats // 100, 1))
    ]
    return np.concatenate(parts)
