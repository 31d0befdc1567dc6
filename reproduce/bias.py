"""Roelofs, Cain, Shlens, Mozer (2022), Mitigating Bias in Calibration Error Estimation: tables and figures.

    python -m reproduce.bias               # all of it, a few minutes on two cores
    python -m reproduce.bias --quick       # few repeats, a minute

Writes reproduce/results/bias.md, and figures and numbers under reproduce/results/bias/.
"""

from __future__ import annotations

import argparse
import platform
import resource
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import scipy
from scipy import stats

import calibrant as cal
from calibrant import simulate as sim
from reproduce import bias_anchors as anchors
from reproduce import bias_choice, bias_curves, bias_figures, bias_fits, bias_grid, data
from reproduce.drift import rows_of
from reproduce.sections import kept

RESULTS = Path(__file__).with_name("results")


def cpu_seconds() -> float:
    """Of this process and of those it started."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def true_errors() -> list[str]:
    lines = ["| network | L2 anchor | ours | L1 anchor | ours |", "|---|---|---|---|---|"]
    for (name, second), first in zip(anchors.TRUE_ERROR_L2.items(), anchors.TRUE_ERROR_L1, strict=True):
        world = sim.PAPER_WORLDS[name]
        ours = 100 * world.true_error(2), 100 * world.true_error(1)
        lines.append(f"| {name} | {second:.3f} | {ours[0]:.4f} | {first:.3f} | {ours[1]:.4f} |")
    return [
        *lines,
        "",
        "Percent. The L1 anchors of three fits are up to 0.003 higher, because they keep 1 - s "
        "above 1e-16 "
        "in the curve; ours is the exact integral on log-odds.",
    ]


def figure_4(figures: Path, options: argparse.Namespace) -> list[str]:
    table, lines = grid(4, list(sim.PAPER_WORLDS.values()), anchors.FIGURE_4, figures, options)
    return [*lines, "", *absolute_bias(table), "", "![Figure 4](bias/figure4.png)"]


def figure_6(figures: Path, options: argparse.Namespace) -> list[str]:
    worlds = [world.calibrated() for world in sim.PAPER_WORLDS.values()]
    _, lines = grid(6, worlds, anchors.FIGURE_6, figures, options)
    return [
        *lines,
        "",
        "![Figure 6](bias/figure6.png)",
        "",
        "**Artefact.** The paper finds KDE the least biased estimator of calibrated models and the worst "
        "elsewhere. With "
        "the root that an L2 norm has, neither holds here. The published KDE function returns the squared error for "
        "order 2; values of about 0.5 % under calibration and a few percent where the error is 10 to 20 are what one "
        "gets without the root. The bandwidth here is that of all scores; the published function uses those of correct "
        "rows.",
    ]


def grid(
    number: int, worlds: list[sim.World], expected: dict, figures: Path, options: argparse.Namespace
) -> tuple[sim.BiasTable, list[str]]:
    before = cpu_seconds()
    table, clock = bias_grid.run(worlds, repeats=options.repeats, processes=options.processes, cache=options.cache)
    used = cpu_seconds() - before
    table.to_csv(figures / f"figure{number}.csv")
    bias_grid.draw(table, figures / f"figure{number}.png", f"Figure {number}")
    size = f"10 fits x 7 sizes x 7 estimators x {options.repeats:,} repeats"
    taken = f"{clock:.0f} s by the clock, {used:.0f} s of processor time"
    return table, [
        f"{size}; {options.processes} processes, {taken}. Bias in percent [distance from the anchor in standard "
        "errors].",
        *bias_grid.lines(table, expected),
    ]


def absolute_bias(table: sim.BiasTable) -> list[str]:
    ours = table.mean_absolute_bias()
    lines = ["| mean absolute bias, percent | paper | anchor | ours |", "|---|---|---|---|"]
    for name, value in ours.items():
        paper, anchor = anchors.MEAN_ABSOLUTE_BIAS.get(name, (None, None))
        cells = ["" if x is None else f"{x:.3f}" for x in (paper, anchor)]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} | {100 * value:.3f} |")
    pairs = [
        (abs(a.bias), abs(b.bias))
        for a, b in zip(table.select(estimator="em_debias"), table.select(estimator="em_sweep"), strict=True)
    ]
    test = stats.ttest_rel(*zip(*pairs, strict=True))
    large = [
        100 * np.mean([abs(r.bias) for r in table.select(estimator=e) if r.n >= 800]) for e in ("em_debias", "em_sweep")
    ]
    return [
        *lines,
        "",
        f"Paired t-test of em_debias against em_sweep: t = {test.statistic:.2f}, p = {test.pvalue:.1g} (paper "
        f"5.10, < 1e-5; "
        f"anchor 4.31, 5e-5). For n >= 800 alone the means are {large[0]:.3f} and {large[1]:.3f}: the advantage of the "
        "sweep is nearly all at the two smallest sizes.",
        *shared_draws(),
    ]


def shared_draws() -> list[str]:
    """What random numbers that networks and sizes share do to these numbers, where that was measured."""
    rows = rows_of(RESULTS / "bias" / "figure4_draws.csv")
    if not rows:
        return []
    text = (
        "The published code draws the samples of all networks and sizes from the same random numbers, so that their "
        "biases err together (`python -m reproduce.bias_draws`, 1,000 repeats; em_debias is ours, the published code "
        "has none). These draws give the paper's numbers to within 0.006, 0.001 and 0.1; its coefficients are printed "
        "with two digits. Mean, standard deviation and 95 % range are over such sets of draws."
    )
    lines = ["", text, "", "| number | independent | published draws | mean | sd | range |", "|---" * 6 + "|"]
    for row in rows:
        cells = (row[column] for column in ("number", "independent", "published_draws", "mean", "sd"))
        lines.append(f"| {' | '.join(cells)} | {row['low']} to {row['high']} |")
    return lines


def section(options: argparse.Namespace, title: str, make: Callable[..., list[str]], *arguments: object) -> list[str]:
    """A part of the report; with a cache, a finished one is not made again."""
    return kept(options.cache, f"{title} {options.repeats}", lambda: ["", f"## {title}", "", *make(*arguments)])


def report(options: argparse.Namespace, figures: Path) -> list[str]:
    folder, many = data.folder("classification"), options.repeats
    parts = [
        ("True errors (Tables 2 and 3)", true_errors),
        ("Figure 1", bias_figures.figure_1, figures, 1000 * many),
        ("Figures 1, 2a, 3a and 3b: the worlds", bias_curves.worlds, figures),
        ("Figure 2b", bias_figures.figure_2, figures, many),
        ("Figure 4: published fits", figure_4, figures, options),
        ("Figure 6: calibrated models", figure_6, figures, options),
        ("Figures 4 and 6: the published KDE curve", bias_grid.published_kde_lines, figures),
        ("Figure 5", bias_figures.figure_5, figures, many),
        ("Figure 13", bias_figures.figure_13, figures, many),
        ("Figure 14", bias_figures.figure_14, figures, many),
        (
            "Figures 7 to 12: bias and spread by number of bins",
            bias_curves.figures_7_to_12,
            figures,
            max(many // 5, 20),
        ),
    ]
    if folder is not None:
        parts += [
            ("Table 2: fitted scores", bias_fits.table_2, folder),
            ("Table 3: fitted curves", bias_fits.table_3, folder),
            ("Table 4 and Figure 3c", bias_fits.table_4, folder, figures, many),
            ("Table 1: which recalibrator?", bias_choice.table_1, folder, figures),
        ]
    lines = [line for title, *rest in parts if options.only in title for line in section(options, title, *rest)]
    if folder is None:
        lines += ["", "## Tables 1 to 4 and Figure 3", "", data.missing("classification")]
    return lines


def replaced(page: str, lines: list[str]) -> list[str]:
    """The lines of a page in which parts that were made again replace those of the same title."""
    fresh = _parts("\n".join(lines))
    parts = {**_parts(page), **{title: text for title, text in fresh.items() if title}}
    return "\n\n".join(part.strip("\n") for part in parts.values()).split("\n")


def _parts(page: str) -> dict[str, str]:
    """The parts of a page by their titles; what comes before the first has none."""
    first, *parts = f"\n{page}".split("\n## ")
    return {"": first, **{part.partition("\n")[0]: f"## {part}" for part in parts}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="50 repeats")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=None, help="folder of finished cells and parts")
    parser.add_argument("--only", default="", help="make only the parts whose title holds this again")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of bias.md and bias/")
    options = parser.parse_args()
    options.repeats = 50 if options.quick else options.repeats
    figures = options.out / "bias"
    figures.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    lines = report(options, figures)
    head = [
        "# Bias by construction (Roelofs et al. 2022)",
        "",
        f"{date.today().isoformat()}, Python {platform.python_version()}, NumPy {np.__version__}, SciPy "
        f"{scipy.__version__}, "
        f"calibrant {cal.__version__}. `python -m reproduce.bias{' --quick' if options.quick else ''}`, "
        f"{time.perf_counter() - start:.0f} s by the clock, {cpu_seconds():.0f} s of processor time.",
        "",
        "Anchors are those of an independent simulation, the paper's where it prints a number. Distances in "
        "brackets are in "
        "standard errors of the difference. All errors are L2, in percent, as in the paper.",
    ]
    path = options.out / "bias.md"
    if options.only and path.exists():  # the other parts stay
        head, lines = [], replaced(path.read_text(encoding="utf8"), lines)
        first = next(k for k, line in enumerate(lines) if line.startswith("## "))
        lines[first:first] = [f"Made again on {date.today().isoformat()}: {options.only}.", ""]
    temporary = path.with_suffix(".tmp")
    temporary.write_text("\n".join([*head, *lines]) + "\n", encoding="utf8")
    temporary.replace(path)
    sys.stderr.write(f"{path}\n")


if __name__ == "__main__":
    main()
