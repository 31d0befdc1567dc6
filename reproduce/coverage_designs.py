"""Coverage beyond the published worlds: clusters, weights, worlds of other shapes, and two models on the same rows."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.simulate import (
    PAPER_WORLDS,
    BetaScores,
    Glm,
    LogitMixtureScores,
    PowerCurve,
    ShiftCurve,
    TemperatureCurve,
    UniformScores,
    WavyCurve,
    World,
)
from calibrant.simulate.calibration_curves import Blend, WithEnds
from calibrant.simulate.score_distributions import WithAtoms

SAMPLES, DRAWS = 300, 299
CLUSTERS, PER_CLUSTER, WEIGHTED_ROWS = 400, 5, 2000
COMPARED_ROWS = 1000
SHARPER = {"different": 1.1, "second calibrated": 1.0}
COMPARED = {
    "Brier score": cal.brier,
    "debiased L1": partial(cal.debiased_ece, norm=1),
    "debiased L2": partial(cal.debiased_ece, norm=2),
    "debiased L2, by bootstrap": partial(cal.debiased_ece, norm=2),
}
BOOTSTRAPPED = ("Brier score", "debiased L2, by bootstrap")
WORLDS = ("resnet110_c10", "resnet110_SD_c100", "resnet152_imgnet")


def designs() -> list[tuple[str, str]]:
    names = [name for world in WORLDS for name in (world, f"{world}, calibrated")]
    return [(design, name) for design in ("clusters", "weights") for name in names]


def design_task(task: tuple[str, str]) -> dict[str, object]:
    """Coverage of the default, and of what takes rows for independent and equal."""
    design, name = task
    base = PAPER_WORLDS[name.removesuffix(", calibrated")]
    world = base.calibrated() if name.endswith("calibrated") else base
    truth, hits = world.true_error(2), {"default": [], "independent rows": [], "width": []}
    for k in range(SAMPLES):
        rng = np.random.default_rng([9, k])
        data = clustered(world, rng) if design == "clusters" else weighted(world, rng)
        found = cal.inference.Inversion(DRAWS, k).interval(data, norm=2)
        plain = cal.inference.Inversion(DRAWS, k).interval(cal.Binary(data.y_true, data.y_prob), norm=2)
        hits["default"].append(truth in found)
        hits["independent rows"].append(truth in plain)
        hits["width"].append(found.high - found.low)
    return {"design": design, "world": name, **{key: float(np.mean(values)) for key, values in hits.items()}}


def clustered(world: World, rng: np.random.Generator) -> cal.Binary:
    """Rows of a cluster share their score, and half of the clusters share the outcome too."""
    score, outcome = world.draw(rng, CLUSTERS)
    score, once = np.repeat(score, PER_CLUSTER), np.repeat(outcome, PER_CLUSTER)
    together = np.repeat(rng.random(CLUSTERS) < 0.5, PER_CLUSTER)
    chance = np.asarray(world.curve(score))
    each = (rng.random(len(score)) < chance).astype(np.int8)
    return cal.Binary(np.where(together, once, each), score, group=np.repeat(np.arange(CLUSTERS), PER_CLUSTER))


def weighted(world: World, rng: np.random.Generator) -> cal.Binary:
    """Low scores are sampled three times as often as high ones, and weighted back."""
    score, outcome = world.draw(rng, 4 * WEIGHTED_ROWS)
    share = np.where(score < np.median(score), 0.75, 0.25)
    kept = np.flatnonzero(rng.random(len(score)) < share)[:WEIGHTED_ROWS]
    return cal.Binary(outcome[kept], score[kept], weight=1 / share[kept])


def other_worlds() -> dict[str, World]:
    """Worlds that were not used for tuning."""
    mixture = LogitMixtureScores((-2.0, 2.5), (1.0, 1.5), (0.6, 0.4))
    atoms = WithAtoms(BetaScores(2.0, 0.2), at_one=0.3)
    return {
        "uniform, temperature 1.5": World(UniformScores(), TemperatureCurve(1.5)),
        "uniform, timid (temperature 0.7)": World(UniformScores(), TemperatureCurve(0.7)),
        "uniform, c^1.2": World(UniformScores(), PowerCurve(1.2)),
        "two groups of scores, shifted by 0.05": World(mixture, ShiftCurve(0.05)),
        "two groups of scores, temperature 2": World(mixture, TemperatureCurve(2.0)),
        "rare events, twice the stated risk": World(BetaScores(0.8, 12.0), lambda score: 2 * score),
        "rare events, calibrated": World(BetaScores(0.8, 12.0)),
        "30 % of scores are 1, of which 5 % are wrong": World(
            atoms, WithEnds(Glm("logit_logit", 0.0, 0.8), at_one=0.95)
        ),
        "uniform, wavy (half size)": World(UniformScores(), Blend(WavyCurve(), 0.5)),
    }


def elsewhere_task(task: tuple[str, int]) -> dict[str, object]:
    """Coverage of the default intervals and lower bounds."""
    name, n = task
    world = other_worlds()[name]
    truth = [world.true_error(norm) for norm in (1.0, 2.0)]
    hits: dict[str, list[bool]] = {}
    for k, seed in enumerate(np.random.SeedSequence(10, spawn_key=(n,)).spawn(SAMPLES)):
        data = world.sample(n, seed=seed)
        default = cal.inference.Inversion(DRAWS, k).intervals(data, norms=(1.0, 2.0))
        lower = cal.inference.Inversion(DRAWS, k, side="lower").intervals(data, norms=(1.0, 2.0))
        for norm, true, both, one in zip(("L1", "L2"), truth, default, lower, strict=True):
            hits.setdefault(f"cover {norm}", []).append(true in both)
            hits.setdefault(f"lower {norm}", []).append(true in one)
    return {"world": name, "n": n, "L2": truth[1], **{key: float(np.mean(values)) for key, values in hits.items()}}


def comparisons() -> list[tuple[str, str]]:
    return [(estimator, models) for models in ("equal", *SHARPER) for estimator in COMPARED]


def compare_task(task: tuple[str, str]) -> dict[str, object]:
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
    return {"estimator": name, "models": models, "difference": truth, **means}


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
