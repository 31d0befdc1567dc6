"""Which estimator is nearest to the truth, in worlds other than the published ones.

    python -m reproduce.choose [--repeats 200] [--processes 1] [--cache folder]

Writes reproduce/results/choose.md and choose.csv: the table of docs/choose.md. Interrupted runs go on where they
stopped when a cache is given.
"""

from __future__ import annotations

import argparse
import platform
from datetime import date
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.results import Clipped
from calibrant.simulate import (
    BetaScores,
    Bias,
    BiasTable,
    PowerCurve,
    TemperatureCurve,
    UniformScores,
    WavyCurve,
    World,
    bias_table,
)

SIZES = [200, 1000, 5000]
RESULTS = Path(__file__).with_name("results")

ESTIMATORS = {
    "averaged": cal.averaged_error,
    "debiased": Clipped(cal.debiased_ece),
    "sweep": cal.sweep_ece,
    "ECE, equal mass": cal.ece,
}

UNIFORM, CONFIDENT, RARE = UniformScores(), BetaScores(2.0, 0.2), BetaScores(0.5, 40.0)

#: Miscalibrated in ways that the published worlds are not, but for the first three, which are smooth.
MISCALIBRATED = {
    "power 1.3": World(UNIFORM, PowerCurve(1.3)),
    "too confident, T = 1.5": World(CONFIDENT, TemperatureCurve(1.5)),
    "rare events, twice as many": World(RARE, lambda p: np.minimum(2 * p, 1.0)),
    "wave, five periods": World(UNIFORM, WavyCurve()),
    "one step": World(UNIFORM, lambda p: np.where(p < 0.5, 0.25, 0.75)),
    "wrong only above 0.95": World(UNIFORM, lambda p: np.where(p > 0.95, 0.6, p)),
}
CALIBRATED = {
    "uniform, calibrated": World(UNIFORM),
    "confident, calibrated": World(CONFIDENT),
    "rare events, calibrated": World(RARE),
}


def cell(found: Bias) -> str:
    return f"{100 * found.bias:+.2f} / {100 * found.rmse:.2f}"


def tables(found: BiasTable) -> list[str]:
    """Bias and rmse of each estimator, the least rmse of each line in bold."""
    lines = [
        "| world | true | n | " + " | ".join(ESTIMATORS) + " |",
        "|---|---|---|" + "---|" * len(ESTIMATORS),
    ]
    for world in [*MISCALIBRATED, *CALIBRATED]:
        for n in SIZES:
            own = {row.estimator: row for row in found.select(world=world, n=n)}
            best = min(own.values(), key=lambda row: row.rmse)
            cells = [f"**{cell(own[name])}**" if own[name] is best else cell(own[name]) for name in ESTIMATORS]
            lines.append(f"| {world} | {100 * best.truth:.2f} | {n:,} | " + " | ".join(cells) + " |")
    return lines


def wins(found: BiasTable, worlds: dict[str, World]) -> str:
    """In how many cells the averaged error has a lower rmse than the better of debiased and sweep."""
    count = total = 0
    for world in worlds:
        for n in SIZES:
            rmse = {row.estimator: row.rmse for row in found.select(world=world, n=n)}
            count += rmse["averaged"] < min(rmse["debiased"], rmse["sweep"])
            total += 1
    return f"{count} of {total}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--cache", default=None)
    options = parser.parse_args()
    worlds = {name: World(world.scores, world.curve, name) for name, world in (MISCALIBRATED | CALIBRATED).items()}
    found = bias_table(
        ESTIMATORS, worlds, SIZES, repeats=options.repeats, processes=options.processes, cache=options.cache
    )
    lines = [
        "# Which estimator, outside the published worlds: bias / rmse of the L1 error in percent",
        "",
        f"{date.today().isoformat()}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"calibrant {cal.__version__}. `python -m reproduce.choose`, {options.repeats} repeats.",
        "",
        *tables(found),
        "",
        "The averaged error has a lower rmse than the better of debiased (clipped at 0) and sweep in "
        f"{wins(found, MISCALIBRATED)} miscalibrated and in {wins(found, CALIBRATED)} calibrated cells.",
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "choose.md").write_text("\n".join(lines) + "\n", encoding="utf8")
    found.to_csv(RESULTS / "choose.csv")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
