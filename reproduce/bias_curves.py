"""Figures 1 (left), 2a, 3a, 3b and 7 to 12: the worlds themselves, and bias and spread by size and number of bins."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant import simulate as sim
from reproduce import bias_anchors as anchors
from reproduce.bias_figures import canvas, save

#: Figures 7 to 9 (bias) and 10 to 12 (spread) are of these three fits.
FITS = ("resnet110_c10", "resnet_wide32_c100", "resnet152_imgnet")
NUMBERS = (2, 4, 8, 16, 32, 64)
SIZES = anchors.FIGURE_2_SIZES
COLOURS = {"c10": "#0072B2", "c100": "#D55E00", "imgnet": "#009E73"}


def worlds(folder: Path) -> list[str]:
    """A sample of Figure 1, the density and curve of Figure 2a, and those of the ten fits (Figures 3a and 3b)."""
    one_sample(folder)
    two_curves(folder)
    ten_fits(folder)
    return [
        "![Figure 1, left](bias/figure1_left.svg)",
        "",
        "Figure 1, left: one sample of 200 rows of the calibrated model in 15 bins of equal width.",
        "",
        "![Figure 2a](bias/figure2a.svg)",
        "",
        "![Figures 3a and 3b](bias/figure3ab.svg)",
        "",
        "Figures 3a and 3b: the Beta densities of Table 2 and the best curves of Table 3 as printed. The logits of six "
        "of the ten networks are not public, so their fits cannot be made again here:",
        "",
        "| network | predictions at hand | in Tables 2 to 4 |",
        "|---|---|---|",
        *(
            f"| {name} | {at_hand(name)} | {'fitted again' if name in anchors.TABLE_2 else 'printed fit only'} |"
            for name in sim.PAPER_WORLDS
        ),
    ]


def at_hand(name: str) -> str:
    if name == "densenet40_c10":
        return "logits of validation and test fold"
    return "top labels of the test fold, single precision" if name in anchors.TABLE_2 else "none"


def one_sample(folder: Path) -> None:
    score, hit = sim.World(sim.BetaScores(2.8, 0.05), name="figure 1").draw(np.random.default_rng(1), 200)
    table = cal.BinTable.of(cal.Binary(hit, score), cal.EqualWidth(15)).filled()
    figure, axes = canvas(1, 3.6)
    ax = axes[0, 0]
    ax.plot([0, 1], [0, 1], color="0.6", linestyle="--")
    ax.bar(table.predicted_mean, table.observed_mean, width=0.05, color="#0072B2", alpha=0.7)
    found = 100 * float(cal.ece(hit, score, bins=cal.EqualWidth(15), norm=2))
    ax.set(xlabel="mean predicted", ylabel="share observed", title=f"calibrated, n = 200: ECE_bin {found:.1f} %")
    save(figure, folder / "figure1_left.svg")


def density(a: float, b: float, at: np.ndarray) -> np.ndarray:
    from scipy.stats import beta

    return np.asarray(beta(a, b).pdf(at))


def two_curves(folder: Path) -> None:
    grid = np.linspace(0.001, 0.999, 999)
    figure, axes = canvas(2, 3.4)
    for a, b in ((2.8, 0.05), (1.1, 0.1)):
        axes[0, 0].semilogy(grid, density(a, b, grid), label=f"Beta({a}, {b})")
    axes[0, 0].set(xlabel="score", ylabel="density")
    axes[0, 0].legend(fontsize="small")
    axes[0, 1].plot(grid, grid, color="0.6", linestyle="--")
    axes[0, 1].plot(grid, grid**2, label="c²")
    axes[0, 1].set(xlabel="score", ylabel="chance of being right")
    axes[0, 1].legend(fontsize="small")
    save(figure, folder / "figure2a.svg")


def ten_fits(folder: Path) -> None:
    grid = np.linspace(0.002, 0.998, 499)
    figure, axes = canvas(2, 4.2)
    for name, world in sim.PAPER_WORLDS.items():
        colour = COLOURS[name.rsplit("_", 1)[1]]
        axes[0, 0].semilogy(grid, density(world.scores.a, world.scores.b, grid), color=colour, linewidth=1)
        axes[0, 1].plot(grid, world.curve.at(np.log(grid / (1 - grid))), color=colour, linewidth=1)
    axes[0, 0].set(xlabel="score", ylabel="density")
    axes[0, 1].plot(grid, grid, color="0.6", linestyle="--")
    axes[0, 1].set(xlabel="score", ylabel="chance of being right")
    for data, title in anchors.GROUPS.items():
        axes[0, 0].plot([], [], color=COLOURS[data], label=title)
    axes[0, 0].legend(fontsize="small")
    save(figure, folder / "figure3ab.svg")


def figures_7_to_12(folder: Path, repeats: int) -> list[str]:
    """Bias and standard deviation of plain and debiased errors, in both kinds of bins, and of the sweeps."""
    estimators = {}
    for kind, make in (("ew", cal.EqualWidth), ("em", cal.EqualMass)):
        for b in NUMBERS:
            estimators[f"{kind} bin {b}"] = partial(cal.ece, bins=make(b), norm=2)
            estimators[f"{kind} debias {b}"] = cal.results.Clipped(partial(cal.debiased_ece, bins=make(b), norm=2))
        estimators[f"{kind} sweep"] = partial(cal.sweep_ece, bins=make, norm=2)
    fits = [sim.PAPER_WORLDS[name] for name in FITS]
    table = sim.bias_table(estimators, fits, SIZES, repeats=repeats)
    table.to_csv(folder / "figures7to12.csv")
    lines = [
        f"{repeats:,} repeats. Bias, and standard deviation, in percent at n = 800; all sizes are in "
        "`bias/figures7to12.csv`.",
        "",
        "| fit | estimator | " + " | ".join(f"{b} bins" for b in NUMBERS) + " | sweep |",
        "|---" * (len(NUMBERS) + 3) + "|",
    ]
    for number, world in enumerate(FITS):
        for kind in ("ew", "em"):
            for what in ("bin", "debias"):
                names = [f"{kind} {what} {b}" for b in NUMBERS] + ([f"{kind} sweep"] if what == "bin" else [])
                cells = [next(iter(table.select(estimator=name, world=world, n=800))) for name in names]
                text = [f"{100 * row.bias:+.2f}, {100 * row.sd:.2f}" for row in cells]
                lines.append(f"| {world} | {kind}_{what} | " + " | ".join(text + [""] * (what == "debias")) + " |")
        for first, column in ((7, "bias"), (10, "sd")):
            heat(table.select(world=world), column, folder / f"figure{first + number}.png")
    return [*lines, "", *(f"![Figure {number}](bias/figure{number}.png)" for number in range(7, 13))]


def heat(table: sim.BiasTable, column: str, path: Path) -> None:
    """Left equal width, right equal mass; plain above, debiased below; sizes by numbers of bins, the sweep last."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(8, 6), layout="constrained")
    limit = max(100 * abs(getattr(row, column)) for row in table)
    style = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit} if column == "bias" else {"vmin": 0, "vmax": limit}
    for line, what in zip(axes, ("bin", "debias"), strict=True):
        names = [*(f"{what} {b}" for b in NUMBERS), "sweep"]
        for ax, kind in zip(line, ("ew", "em"), strict=True):
            values = [
                [100 * getattr(next(iter(table.select(estimator=f"{kind} {name}", n=n))), column) for name in names]
                for n in SIZES
            ]
            image = ax.imshow(values, origin="lower", **style)
            labels = [name.removeprefix(f"{what} ") for name in names]
            ax.set(xticks=range(len(names)), xticklabels=labels, yticks=range(len(SIZES)), yticklabels=SIZES)
            ax.set(xlabel="bins", ylabel="n", title=f"{kind}_{what}")
    label = "bias, percent" if column == "bias" else "standard deviation, percent"
    figure.colorbar(image, ax=axes, label=label)
    figure.suptitle(next(iter(table)).world)
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)
