"""Rows that are not independent and equal: clusters and weights. And two models on the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

import calibrant as cal
from reproduce.coverage_files import Line

Floats = NDArray[np.float64]

#: Most rows of a cluster; the sizes are log-uniform from 1.
LARGEST_CLUSTER = 100
#: A row takes the fate of its cluster with this probability, so that residuals of equal scores correlate by its square.
SHARED = 0.5
#: Standard deviation of the log-odds of clustered and weighted scores.
SPREAD = 1.5

SAMPLES, DRAWS, COMPARED_ROWS = 300, 299, 1000
SHARPER = {"different": 1.1, "second calibrated": 1.0}
COMPARED = {
    "Brier score": cal.brier,
    "debiased L1": partial(cal.debiased_ece, norm=1),
    "debiased L2": partial(cal.debiased_ece, norm=2),
    "debiased L2, by bootstrap": partial(cal.debiased_ece, norm=2),
}
BOOTSTRAPPED = ("Brier score", "debiased L2, by bootstrap")


@dataclass(frozen=True)
class _Tempered:
    """Normal log-odds, whose true chance is tempered; the tuned ones are those of the study that led to the method."""

    name: str
    temperature: float
    tuned: bool
    sizes: tuple[int, ...]

    @staticmethod
    def score(u: Floats) -> Floats:
        return expit(SPREAD * ndtri(u))

    def chance(self, score: Floats) -> Floats:
        return score if self.temperature == 1 else expit(logit(score) / self.temperature)

    def true_error(self, norm: float) -> float:
        score = self.score((np.arange(2**18) + 0.5) / 2**18)
        return float(np.mean(np.abs(score - self.chance(score)) ** norm) ** (1 / norm))

    def promised(self, n: int) -> bool:
        return True


@dataclass(frozen=True)
class ClusteredWorld(_Tempered):
    """Clusters of very different sizes; n counts clusters. Scores correlate within a cluster by `correlation`."""

    correlation: float = 0.0

    def sample(self, n: int, rng: np.random.Generator) -> cal.Binary:
        """A sample of this design."""
        sizes = np.floor(np.exp(rng.random(n) * np.log(LARGEST_CLUSTER + 1))).astype(int)
        group = np.repeat(np.arange(n), sizes)
        rows = len(group)
        shared = np.sqrt(self.correlation) * rng.standard_normal(n)[group]
        z = SPREAD * (shared + np.sqrt(1 - self.correlation) * rng.standard_normal(rows))
        fate = np.where(rng.random(rows) < SHARED, rng.random(n)[group], rng.random(rows))
        return cal.Binary(fate < expit(z / self.temperature), expit(z), group=group)


@dataclass(frozen=True)
class WeightedWorld(_Tempered):
    """Log-normal weights, or rows sampled more often where the score is low and weighted back."""

    informative: bool = False

    def sample(self, n: int, rng: np.random.Generator) -> cal.Binary:
        """A sample of this design."""
        if not self.informative:
            z = SPREAD * rng.standard_normal(n)
            weight = np.exp(1.5 * rng.standard_normal(n))
        else:
            many = SPREAD * rng.standard_normal(8 * n)
            kept = rng.random(8 * n) < 1.05 - expit(2 * many)
            z = many[kept][:n]
            weight = 1 / (1.05 - expit(2 * z))
        return cal.Binary(rng.random(n) < expit(z / self.temperature), expit(z), weight=weight)


def designs() -> list[ClusteredWorld | WeightedWorld]:
    worlds: list[ClusteredWorld | WeightedWorld] = []
    for temperature, words in ((1.0, "calibrated"), (1.8, "temperature 1.8")):
        for correlation, scores in ((0.0, "independent"), (0.5, "correlated")):
            name = f"uneven clusters, {scores} scores, {words}"
            worlds.append(ClusteredWorld(name, temperature, True, (20, 60, 300), correlation))
        worlds.append(WeightedWorld(f"log-normal weights, {words}", temperature, True, (200, 2000)))
        worlds.append(WeightedWorld(f"informative weights, {words}", temperature, True, (200, 2000), informative=True))
    return worlds


def comparisons() -> list[tuple[str, str]]:
    return [(estimator, models) for models in ("equal", *SHARPER) for estimator in COMPARED]


def compare_task(task: tuple[str, str]) -> list[Line]:
    """Two models with the same rows: how often their difference is covered, and significant."""
    name, models = task
    covered, called = [], []
    truth = 0.0 if models == "equal" else _difference(name, SHARPER[models])
    for k in range(SAMPLES):
        a, b = two_models(np.random.default_rng([21, k]), COMPARED_ROWS, models)
        bootstrap = cal.Bootstrap(199, k, kind="bias-corrected")
        found = cal.compare(
            COMPARED[name], a, b, method=bootstrap if name in BOOTSTRAPPED else cal.inference.PairedGaps(DRAWS, k)
        )
        covered.append(found.interval.low <= truth <= found.interval.high)
        called.append(found.p_value <= 0.05)
    means = {"cover": float(np.mean(covered)), "significant": float(np.mean(called))}
    return [{"estimator": name, "models": models, "difference": truth, **means}]


def two_models(rng: np.random.Generator, n: int, models: str) -> tuple[cal.Binary, cal.Binary]:
    """Outcomes of chance σ(u + v). Equal models see u or v, both overconfident; others see u, the first is worse."""
    u, v = rng.standard_normal((2, n))
    y = rng.random(n) < expit(u + v)
    seen, sharper = (v, 1.4) if models == "equal" else (u, SHARPER[models])
    return cal.Binary(y, expit(1.4 * _honest(u))), cal.Binary(y, expit(sharper * _honest(seen)))


def _honest(u: np.ndarray) -> np.ndarray:
    """Log-odds of the chance given u alone."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    return logit(expit(u[:, None] + nodes) @ weights / weights.sum())


def _difference(name: str, sharper: float) -> float:
    """The true difference between the models that see u, by quadrature."""
    u = np.linspace(-8, 8, 4001)
    share = np.exp(-(u**2) / 2) / np.exp(-(u**2) / 2).sum()
    honest = expit(_honest(u))
    gaps = [expit(factor * _honest(u)) - honest for factor in (1.4, sharper)]
    first, second = (float(share @ np.abs(gap) ** (1 if name == "debiased L1" else 2)) for gap in gaps)
    return float(np.sqrt(first) - np.sqrt(second)) if name.startswith("debiased L2") else first - second
