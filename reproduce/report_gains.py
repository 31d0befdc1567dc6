"""Coverage of the intervals of the gain that reports give for recalibration maps, in worlds of known truth.

The truth is the relative fall of the expected log loss by the map fitted to all rows, in the population. "named" is the
map that the report names first, chosen by its rules from the same rows. The number of standard deviations of the excess
loss of a fitted map that is added to the noise of the held-out rows, `gains.FIT_ERRORS`, was chosen in the worlds
marked "choosing"; the others report what it does.

    python -m reproduce.report_gains [samples of each world]

writes reproduce/results/report_gains.csv; what the file holds already is not measured again.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, ndtr, ndtri

import calibrant as cal
from calibrant import recalibrate
from calibrant.recalibrate.held_out_gains import FIT_ERRORS, gain_parts, with_fit_error
from calibrant.reporting.contents import CannotBuild
from calibrant.reporting.evidence import Part
from calibrant.reporting.sections.recalibration import candidates, held_out_of, ranked, require_enough

Row = dict[str, Any]

OUTPUT = Path(__file__).parent / "results" / "report_gains.csv"
#: True log odds by predicted ones; the first three choose the constant.
WORLDS = {
    "calibrated": lambda z: z,
    "too extreme": lambda z: 0.6 * z,
    "wavy": lambda z: z + 0.7 * np.sin(2 * z),
    "slightly off": lambda z: 0.9 * z - 0.05,
    "shifted": lambda z: z - 0.5,
    "bent": lambda z: z - 0.12 * z * z,
}
CHOOSING = ("calibrated", "too extreme", "wavy")


class Design(NamedTuple):
    """Rows, the mean of their log odds (about 35 % and 8 % events), and the rows of a cluster."""

    n: int
    mean: float
    cluster: int = 1


DESIGNS = (Design(200, -0.8), Design(1000, -0.8, cluster=10), Design(2000, -0.8), Design(1000, -3.0))
#: Of the luck of the rows of a cluster, the share of the variance that they have in common.
SHARED = 0.3
#: Constants tried, and the present one.
CONSTANTS = sorted({0.0, 1.0, 1.5, 2.0, 2.5, 3.0, FIT_ERRORS})
SEED = 20_262

_NORMAL = ndtri((np.arange(2000) + 0.5) / 2000)


class Sample(NamedTuple):
    """One map in one sample: the parts of its interval, and the true gain."""

    share: float
    error: float
    excess: float
    truth: float


def expected_loss(q: np.ndarray, truth: np.ndarray) -> float:
    """Of predictions q at scores whose true probabilities are known."""
    return float(-(truth * np.log(q) + (1 - truth) * np.log1p(-q)).mean())


def drawn(design: Design, world: str, repeat: int) -> cal.Binary:
    """One sample; the rows of a cluster are correlated."""
    rng = np.random.default_rng([SEED, design.n, design.cluster, repeat])
    z = design.mean + 1.3 * rng.standard_normal(design.n)
    luck, group = rng.random(design.n), None
    if design.cluster > 1:
        group = np.arange(design.n) // design.cluster
        common = rng.standard_normal(int(group[-1]) + 1)[group]
        luck = ndtr(np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * rng.standard_normal(design.n))
    return cal.Binary(luck < expit(WORLDS[world](z)), expit(z), group=group)


def judged(design: Design, world: str, repeat: int) -> dict[str, Sample]:
    """Every map, and the one that a report would name; none where there are too few events."""
    data = drawn(design, world, repeat)
    part = Part(data, repeat)
    try:
        require_enough(part)
    except CannotBuild:
        return {}
    grid = design.mean + 1.3 * _NORMAL
    scores, truth = expit(grid), expit(WORLDS[world](grid))
    before, held = expected_loss(scores, truth), held_out_of(part)
    made = candidates(part, held, "log loss")
    found = {}
    for one in made:
        fitted = getattr(recalibrate, one.name)().fit(data)
        parts = gain_parts(
            held.entries, held.score, one.predicted, "log loss", parameters=one.parameters, size=held.size
        )
        found[one.name] = Sample(*parts, 1 - expected_loss(fitted.predict_proba(scores)[:, 1], truth) / before)
    order = ranked(made, lambda a, b: held.error_of_difference(a.predicted, b.predicted, "log loss"))
    return {**found, "named": found[order[0][0].name]}


def cell(design: Design, world: str, samples: int) -> Iterator[Row]:
    """One row per map and constant."""
    some = [judged(design, world, repeat) for repeat in range(samples)]
    for name in next((one for one in some if one), {}):
        values = [one[name] for one in some if one]
        for multiple in CONSTANTS:
            ends = [with_fit_error(*value[:3], fit_errors=multiple) for value in values]
            covered = [end.low <= one.truth <= end.high for end, one in zip(ends, values, strict=True)]
            yield {
                "n": design.n, "rows of a cluster": design.cluster, "mean log odds": design.mean, "world": world,
                "worlds for": "choosing" if world in CHOOSING else "reporting", "map": name, "constant": multiple,
                "samples": len(values), "coverage": round(float(np.mean(covered)), 3),
                "helps": round(float(np.mean([end.low > 0 for end in ends])), 3),
            }  # fmt: skip


def measured(samples: int) -> list[Row]:
    """Every cell; those that the file holds already are not measured again."""
    rows: list[Row] = []
    if OUTPUT.exists():
        with OUTPUT.open(newline="", encoding="utf8") as file:
            rows = list(csv.DictReader(file))
    done = {(row["n"], row["rows of a cluster"], row["mean log odds"], row["world"]) for row in rows}
    for design, world in product(DESIGNS, WORLDS):
        if (str(design.n), str(design.cluster), str(design.mean), world) in done:
            continue
        found = list(cell(design, world, samples))
        with OUTPUT.open("a", newline="", encoding="utf8") as file:
            writer = csv.DictWriter(file, list(found[0]))
            if not file.tell():
                writer.writeheader()
            writer.writerows(found)
        rows += found
    return rows


def main() -> None:
    """Measure what is missing, and sum it up."""
    rows = measured(int((*sys.argv[1:], "100")[0]))
    for purpose, multiple, named in product(("choosing", "reporting"), CONSTANTS, (True, False)):
        found = np.array([
            float(row["coverage"]) for row in rows
            if row["worlds for"] == purpose and float(row["constant"]) == multiple and (row["map"] == "named") == named
        ])  # fmt: skip
        what = "the named map" if named else "every map"
        print(f"{purpose}, constant {multiple}, {what}: mean {found.mean():.3f}, least {found.min():.3f}")


if __name__ == "__main__":
    main()
