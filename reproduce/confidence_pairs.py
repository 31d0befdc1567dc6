"""Does `compare` of two models that answered the same questions hold its level, and does its interval cover?

``python -m reproduce.confidence_pairs --samples 500`` writes reproduce/results/confidence_pairs.md, with the lowest
coverage first; cells that its CSV file holds with as many samples are not measured again. Every model is right or
wrong by itself: both share the difficulty of the questions, which moves their confidences, and given these the outcomes
depend on each other through a normal copula. In clusters (passages of 4 questions) both are shared by the questions of
a passage as well. The chance of being right is a known curve of the confidence, so that the true error is a mean over
confidences.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.special import expit, logit, ndtr

import calibrant as cal
from calibrant.numerics.arrays import Floats
from reproduce.resumable import Row, asked_samples, coverage, made_with, markdown, measured

RESULTS = Path(__file__).with_name("results")
Curve = Callable[[Floats], Floats]


def _inside(p: Floats) -> Floats:
    return np.clip(p, 1e-9, 1 - 1e-9)


#: The chance of being right at a confidence.
CHANCES: dict[str, Curve] = {
    "calibrated": lambda c: c,
    "over": lambda c: expit(0.5 * logit(_inside(c))),
    "under": lambda c: expit(1.8 * logit(_inside(c))),
    "too high": lambda c: np.clip(c - 0.12, 0.0, 1.0),
    "waves": lambda c: np.clip(c + 0.1 * np.sin(18 * c), 0.0, 1.0),
    "jump": lambda c: np.where(c > 0.7, c - 0.2, c),
}
#: What the confidence is made of: as it is; as models say it, in few levels; one in five at exactly 1.
SHAPES: dict[str, Curve] = {
    "continuous": lambda c: c,
    "few levels": lambda c: np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0])[
        np.searchsorted([0.55, 0.65, 0.75, 0.85, 0.93, 0.98], c)
    ],
    "spike at 1": lambda c: np.where(c > 0.9, 1.0, c),
}
#: Both models: chance, mean of the log odds of the confidence, and shape.
Model = tuple[str, float, str]
WORLDS: dict[str, tuple[Model, Model]] = {
    "both calibrated": (("calibrated", 1.0, "continuous"), ("calibrated", 1.0, "continuous")),
    "both calibrated, other accuracy": (("calibrated", 2.0, "continuous"), ("calibrated", 0.0, "continuous")),
    "both over-confident": (("over", 1.0, "continuous"), ("over", 1.0, "continuous")),
    "both too high, few levels": (("too high", 1.5, "few levels"), ("too high", 1.5, "few levels")),
    "both right nearly always": (("calibrated", 4.0, "continuous"), ("calibrated", 4.0, "continuous")),
    "over-confident and calibrated": (("over", 1.5, "continuous"), ("calibrated", 0.5, "continuous")),
    "over- and under-confident": (("over", 1.0, "continuous"), ("under", 1.0, "continuous")),
    "too high, few levels, and over-confident": (("too high", 1.5, "few levels"), ("over", 1.0, "continuous")),
    "spike at 1 and calibrated": (("too high", 1.5, "spike at 1"), ("calibrated", 1.5, "continuous")),
    "waves and calibrated": (("waves", 0.5, "continuous"), ("calibrated", 0.5, "continuous")),
    "jump and over-confident": (("jump", 1.0, "continuous"), ("over", 1.0, "continuous")),
    "right nearly always, over-confident": (("over", 4.0, "continuous"), ("calibrated", 4.0, "continuous")),
}
#: Rows, questions per passage, and the correlation of the outcomes' normal variables.
DESIGNS = ((300, 1, 0.5), (1000, 4, 0.5), (1000, 1, 0.9))
KEYS = ("world", "norm", "n", "passage", "correlation", "samples")
#: Standard deviations of the log odds of the confidence that are shared by all models, and a model's own.
SHARED, OWN = 1.0, 0.8


@cache
def true_error(model: Model, norm: float) -> float:
    """By a fine grid of quantiles of the confidence."""
    chance, mean, shape = model
    at = np.linspace(-8, 8, 400_001)
    confidence = SHAPES[shape](expit(mean + np.hypot(SHARED, OWN) * at))
    weight = np.exp(-(at**2) / 2)
    gap = np.abs(confidence - CHANCES[chance](confidence)) ** norm
    return float((weight @ gap / weight.sum()) ** (1 / norm))


def answers(rng: np.random.Generator, world: str, n: int, passage: int, correlation: float) -> list[cal.Confidence]:
    """What both models answered."""
    cluster = np.arange(n) // passage

    def normal(within: float) -> Floats:
        """Standard normal, with this correlation within a passage."""
        return np.sqrt(within) * rng.normal(size=n)[cluster] + np.sqrt(1 - within) * rng.normal(size=n)

    within = 0.5 if passage > 1 else 0.0
    difficulty, luck = normal(within), normal(within)
    found = []
    for chance, mean, shape in WORLDS[world]:
        confidence = SHAPES[shape](expit(mean + SHARED * difficulty + OWN * normal(within)))
        uniform = ndtr(np.sqrt(correlation) * luck + np.sqrt(1 - correlation) * normal(within))
        group = cluster if passage > 1 else None
        found.append(cal.Confidence(uniform < CHANCES[chance](confidence), confidence, group=group))
    return found


def cell(world: str, norm: int, n: int, passage: int, correlation: float, samples: int) -> Row:
    """Coverage of the difference of the true errors, and how often no difference is rejected."""
    measure = partial(cal.averaged_error, norm=norm)
    found = []
    for k in range(samples):
        rng = np.random.default_rng([37, n, passage, round(100 * correlation), k])
        found.append(cal.compare(measure, *answers(rng, world, n, passage, correlation)))
    first, second = (true_error(model, float(norm)) for model in WORLDS[world])
    rejected = np.mean([one.p_value < 0.05 for one in found])
    return {**coverage(first - second, [one.interval for one in found]), "rejected": round(float(rejected), 4)}


def page(rows: list[Row]) -> str:
    """How many cells cover, and all of them."""
    least, most = (end(int(row["samples"]) for row in rows) for end in (min, max))
    below = [row for row in rows if float(row["covered"]) < 0.93]
    equal = max(float(row["rejected"]) for row in rows if float(row["truth"]) == 0)
    return (
        "# Two models on the same questions: does the difference of their calibration errors cover?\n\n"
        f"{made_with()} `python -m reproduce.confidence_pairs`.\n\n"
        f"95 % intervals of `compare` of two `Confidence` in {len(rows)} cells of known truth, {least} to {most} "
        f"samples each; coverage is below 0.93 in {len(below)} of them. By chance it varies with a standard deviation "
        f"of {(0.95 * 0.05 / least) ** 0.5:.3f} or less. Where both errors are the same, no difference is rejected at "
        f"5 % in at most {equal:.3f} of samples. `passage`: questions per cluster; `correlation`: of the normal "
        "variables behind both outcomes, given the confidences. Nothing was chosen in these samples.\n\n"
    ) + markdown(rows, (*KEYS, "truth", "covered", "low_above", "high_below", "width", "rejected"), "covered")


def main() -> None:
    """Measure what is missing and write the page."""
    samples = asked_samples(__doc__)
    hardest_first = list(WORLDS)[::-1]
    tasks = [(world, norm, *design, samples) for design in DESIGNS for world in hardest_first for norm in (2, 1)]
    path = RESULTS / "confidence_pairs.csv"
    with path.open(newline="") as file:  # a cell with more samples is not measured again with fewer
        known = {tuple(row[key] for key in KEYS[:-1]) for row in csv.DictReader(file) if int(row["samples"]) >= samples}
    tasks = [task for task in tasks if tuple(map(str, task[:-1])) not in known]
    rows = measured(path, tasks if samples else [], KEYS, cell)
    (RESULTS / "confidence_pairs.md").write_text(page(rows), encoding="utf8")


if __name__ == "__main__":
    main()
