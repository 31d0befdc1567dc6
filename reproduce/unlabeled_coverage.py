"""Do intervals from positive-unlabeled data cover? Measured in worlds of known error.

``python -m reproduce.unlabeled_coverage`` writes reproduce/results/unlabeled_coverage.md; what its CSV files hold
already is not measured again. Worlds marked "unseen" were not used to choose any constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit

import calibrant as cal
from calibrant.inference import PairedFits
from calibrant.numerics.arrays import Floats
from calibrant.pu import DebiasedDelta, PUInversion
from calibrant.results import Target
from reproduce.resumable import Row, asked_samples, coverage, markdown, measured

RESULTS = Path(__file__).with_name("results")
SIZES = ((100, 1000), (1000, 10_000), (5000, 20_000))
#: Intercept and slope of the score in x, and the prior; x is normal about 1 for positives and about -1 for negatives.
#: The limit by the mean gap was introduced because of intervals that were too wide in the last of them.
WORLDS = {
    "calibrated": (0.0, 2.0, 0.5),
    "too low and flat": (-0.5, 1.5, 0.5),
    "nearly right": (-0.2, 1.9, 0.5),
    "overconfident": (0.0, 4.0, 0.5),
    "calibrated, prior 0.2, unseen": (float(np.log(0.25)), 2.0, 0.2),
    "too high, prior 0.2": (0.0, 2.0, 0.2),
}
DESIGNS = ("two samples", "single sample, prior known", "single sample, frequency known")
#: Quantiles of the scores that stand for their distribution in a sum.
QUANTILES = 200_000


@dataclass(frozen=True)
class Curve:
    """Scores with a beta distribution (rounded to 0.1, or shared by a cluster of rows), and their calibration curve."""

    shape: tuple[float, float]
    rate: Callable[[Floats], Floats]
    rounded: bool = False
    cluster: int = 1

    def scores(self, uniform: Floats) -> Floats:
        """The scores at these quantiles, each as often as a cluster has rows."""
        found = np.asarray(betaincinv(*self.shape, uniform))
        return np.repeat(found.round(1) if self.rounded else found, self.cluster)

    @cached_property
    def all_scores(self) -> Floats:
        """Scores that stand for the population."""
        return self.scores((np.arange(QUANTILES) + 0.5) / QUANTILES)

    @cached_property
    def prior(self) -> float:
        """The share of positives."""
        return float(self.rate(self.all_scores).mean())

    def drawn(self, rng: np.random.Generator, rows: int) -> tuple[Floats, NDArray[np.bool_]]:
        """Scores of rows of the population, and whether they are positive; clusters are whole."""
        score = self.scores(rng.random(-(-rows // self.cluster)))
        return score, rng.random(len(score)) < self.rate(score)


#: The noise of a single sample with known label frequency was corrected because of the last of them.
CURVES = {
    "step at 0.6, unseen": Curve((1, 1), lambda f: np.minimum(f + 0.1 * (f > 0.6), 1.0)),
    "gap changes sign, unseen": Curve((2, 2), lambda f: f + 0.1 * np.sin(3 * np.pi * f)),
    "too high, rounded to 0.1, unseen": Curve((2, 2), lambda f: f**1.3, rounded=True),
    "calibrated, prior 0.05, unseen": Curve((1, 19), lambda f: f),
    "too low, clusters of 4, unseen": Curve((2, 2), lambda f: f**0.8, cluster=4),
    "too high, prior 0.05": Curve((1, 9), lambda f: f / 2),
}


def score(world: str, x: Floats) -> Floats:
    """The score at x."""
    intercept, slope, _ = WORLDS[world]
    return expit(intercept + slope * x)


@cache
def true_error(world: str) -> float:
    """By a sum over a grid of x, or over quantiles of the score."""
    if world in CURVES:
        scores = CURVES[world].all_scores
        return float(np.abs(CURVES[world].rate(scores) - scores).mean())
    prior, x = WORLDS[world][2], np.linspace(-8, 8, 200_001)
    of_positives, of_negatives = prior * np.exp(-((x - 1) ** 2) / 2), (1 - prior) * np.exp(-((x + 1) ** 2) / 2)
    density = of_positives + of_negatives
    return float((density * np.abs(score(world, x) - of_positives / density)).sum() / density.sum())


def sample(rng: np.random.Generator, world: str, design: str, n_positive: int, n_unlabeled: int) -> Any:
    """Two samples of these sizes, or one of `n_unlabeled` rows of which a fifth of the positives are labelled."""
    if world in CURVES:
        return curve_sample(rng, world, design, n_positive, n_unlabeled)
    prior = WORLDS[world][2]
    y = rng.random(n_unlabeled) < prior
    everybody = score(world, rng.standard_normal(n_unlabeled) + 2 * y - 1)
    if design == "two samples":
        return cal.PositiveUnlabeled(score(world, rng.normal(1, 1, n_positive)), everybody, prior=prior)
    return labelled_sample(rng, design, prior, everybody, y)


def labelled_sample(
    rng: np.random.Generator, design: str, prior: float, score: Floats, y: NDArray[np.bool_], group: Any = None
) -> Any:
    """A single sample in which a fifth of the positives are labelled."""
    known = {"prior": prior} if design.endswith("prior known") else {"label_frequency": 0.2}
    labelled = y & (rng.random(len(y)) < 0.2)
    return cal.PositiveUnlabeled.from_labels(labelled, score, scenario="single-sample", group=group, **known)


def curve_sample(rng: np.random.Generator, world: str, design: str, n_positive: int, n_unlabeled: int) -> Any:
    """The same from a calibration curve, with the clusters of the rows."""
    curve = CURVES[world]
    everybody, y = curve.drawn(rng, n_unlabeled)
    group = np.arange(n_unlabeled) // curve.cluster
    if design != "two samples":
        return labelled_sample(rng, design, curve.prior, everybody, y, group if curve.cluster > 1 else None)
    more, positive = curve.drawn(rng, round(2 * n_positive / curve.prior))
    known = np.flatnonzero(positive)[:n_positive]
    groups = np.concatenate([n_unlabeled + known // curve.cluster, group])
    return cal.PositiveUnlabeled(more[known], everybody, prior=curve.prior, group=groups if curve.cluster > 1 else None)


def cell(world: str, design: str, n_positive: int, n_unlabeled: int, samples: int) -> Row:
    """Coverage and width of the default interval, and of the former default for the binned error."""
    found, former = [], []
    for k in range(samples):
        data = sample(np.random.default_rng([30, n_unlabeled, k]), world, design, n_positive, n_unlabeled)
        found.append(PUInversion(seed=k).interval(data))
        former.append(DebiasedDelta().interval(data))
    old = coverage(true_error(world), former)
    both = coverage(true_error(world), found)
    ratio = round(both["width"] / old["width"], 3) if old["width"] else ""
    return {**both, "former_covered": old["covered"], "width_over_former": ratio}


def prior_cell(world: str, error: float, samples: int) -> Row:
    """Coverage if the prior that is given misses the true one by a normal error of known size."""
    found = []
    for k in range(samples):
        rng = np.random.default_rng([31, k])
        data = sample(rng, world, "two samples", 1000, 10_000)
        stated = float(np.clip(data.prior + error * rng.standard_normal(), 0.01, 0.99))
        wrong = cal.PositiveUnlabeled(data.positive, data.unlabeled, prior=stated)
        found.append(PUInversion(seed=k, prior_error=error).interval(wrong))
    return coverage(true_error(world), found)


def compare_cell(models: str, n_positive: int, n_unlabeled: int, samples: int) -> Row:
    """How often two models of equal error are called different; each sees one of two features."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    power, alarms = {"calibrated": 1.0, "both p^1.4": 1.4}[models], []
    for k in range(samples):
        rng = np.random.default_rng([32, n_positive, k])
        unlabeled, positive = rng.standard_normal((2, n_unlabeled)), rng.standard_normal((2, 6 * n_positive))
        positive = positive[:, rng.random(6 * n_positive) < expit(positive.sum(axis=0))][:, :n_positive]

        def predicted(x: Floats) -> Floats:
            return np.asarray((expit(x[:, None] + nodes) @ (weights / weights.sum())) ** power)

        a, b = (cal.PositiveUnlabeled(predicted(positive[j]), predicted(unlabeled[j]), prior=0.5) for j in (0, 1))
        alarms.append(PairedFits(199, k).difference(a, b, Target("true error", 1), level=0.95).p_value <= 0.05)
    return {"called_different": round(float(np.mean(alarms)), 4)}


KEYS = {
    "coverage": ("world", "design", "n_positive", "n_unlabeled", "samples"),
    "prior": ("world", "prior_error", "samples"),
    "compare": ("models", "n_positive", "n_unlabeled", "samples"),
}
CELLS = {"coverage": cell, "prior": prior_cell, "compare": compare_cell}


def tasks(samples: int) -> dict[str, list[tuple[Any, ...]]]:
    """What is measured, part by part; half as many samples of the largest size."""
    return {
        "coverage": [
            (world, design, *size, samples if size in SIZES[:2] else (samples + 1) // 2)
            for size, world, design in product(SIZES, chain(WORLDS, CURVES), DESIGNS)
        ],
        "prior": [*product(("calibrated", "too low and flat", "too high, prior 0.2"), (0.02,), (samples,))],
        "compare": [(models, *size, samples) for models in ("calibrated", "both p^1.4") for size in SIZES[:2]],
    }


def rows(part: str, wanted: list[tuple[Any, ...]]) -> list[Row]:
    """What was measured of a part, after what is wanted and missing was added."""
    return measured(RESULTS / f"unlabeled_{part}.csv", wanted, KEYS[part], CELLS[part])


def write_page() -> None:
    """The page of all that was measured so far."""
    ends = ("truth", "covered", "low_above", "high_below", "width")
    (RESULTS / "unlabeled_coverage.md").write_text(
        "# Intervals from positive-unlabeled data\n\nNominal 95 %, L1, true error; the lowest coverage first. The "
        'former default is `DebiasedDelta`. No constant was chosen in worlds marked "unseen"; the samples of all '
        "worlds are other than those used to choose. Rows in clusters are measured with their clusters, which "
        "`DebiasedDelta` ignores.\n\n"
        + markdown(rows("coverage", []), (*KEYS["coverage"], *ends, "former_covered", "width_over_former"), "covered")
        + "\nA prior known with a standard error (1000 positives, 10,000 unlabeled rows).\n\n"
        + markdown(rows("prior", []), (*KEYS["prior"], *ends))
        + "\nTwo models of equal error: how often `compare` calls them different at 5 %.\n\n"
        + markdown(rows("compare", []), (*KEYS["compare"], "called_different"))
    )


def main() -> None:
    """Measure what is missing and write the page."""
    samples = asked_samples(__doc__)
    for part, wanted in tasks(samples).items() if samples else ():
        rows(part, wanted)
    write_page()


if __name__ == "__main__":
    main()
