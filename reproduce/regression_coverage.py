"""Do the intervals and tests of predicted spreads hold? Measured in worlds of known error.

``python -m reproduce.regression_coverage`` writes reproduce/results/regression_coverage.md; what its CSV files hold
already is not measured again. Worlds marked "unseen" were not used to choose any constant.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.inference import LogScale, MeanSquaredZ, PairedFits, PitInversion, SpreadInversion
from calibrant.numerics.arrays import Floats
from calibrant.results import Target
from reproduce.resumable import Row, asked_samples, coverage, markdown, measured

RESULTS = Path(__file__).with_name("results")
SIZES = (100, 1000, 10_000)
NOISE: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "t5": lambda rng, n: rng.standard_t(5, n) * np.sqrt(0.6),
    "skewed": lambda rng, n: rng.exponential(size=n) - 1,
    "t3": lambda rng, n: rng.standard_t(3, n) / np.sqrt(3),
}
#: The true spread over the predicted one, as a function of sigma; sigma is log-normal with median 1 and log sd 0.5.
RATIOS: dict[str, Callable[[Floats], Floats]] = {
    "calibrated": np.ones_like,
    "factor 1.1": lambda sigma: np.full_like(sigma, 1.1),
    "factor 1.3": lambda sigma: np.full_like(sigma, 1.3),
    "factor 0.8": lambda sigma: np.full_like(sigma, 0.8),
    "sigma^-0.3": lambda sigma: sigma**-0.3,
    "step": lambda sigma: np.where(sigma > 1, 1.2, 0.9),
    "u-shaped": lambda sigma: 0.9 + 0.3 * np.log(sigma) ** 2,
    "wave, unseen": lambda sigma: 1 + 0.2 * np.sin(4 * np.log(sigma)),
    "top tenth": lambda sigma: np.where(sigma > 1.9, 1.5, 1.0),
    "bottom fifth, unseen": lambda sigma: np.where(sigma < 0.65, 0.7, 1.0),
    "falling step, unseen": lambda sigma: np.where(sigma < 0.8, 1.15, 0.85),
    "largest spreads, unseen": lambda sigma: 0.95 + 0.4 * np.maximum(np.log(sigma), 0) ** 2,
}
#: Rows that repeat a spread, that come in clusters with a common factor, or that have weights.
DESIGNS = ("seven spreads", "clusters of five", "weights 1 and 4")
LEVELS = np.exp(np.linspace(-0.9, 0.9, 7))
TARGETS = {
    "ence": Target("relative spread error", 1),
    "debiased_ence": Target("relative spread error", 2),
    "uce": Target("variance error"),
}


def forecasts(rng: np.random.Generator, n: int, noise: str, ratio: str) -> cal.Gaussian:
    """A sample of a world."""
    sigma = np.exp(0.5 * rng.standard_normal(n))
    return cal.Gaussian(RATIOS[ratio](sigma) * sigma * NOISE[noise](rng, n), np.zeros(n), sigma)


def designed(rng: np.random.Generator, n: int, noise: str, ratio: str, design: str) -> cal.Gaussian:
    """A sample of a world with one of the designs; clusters share a factor of the variance, on average 1."""
    sigma, zeros = np.exp(0.5 * rng.standard_normal(n)), np.zeros(n)
    if design == "seven spreads":
        sigma = nearest_level(sigma)
    group = np.arange(n) // 5 if design == "clusters of five" else None
    common = 1.0 if group is None else np.sqrt(rng.gamma(4.0, 0.25, n // 5 + 1)[group])
    weight = np.where(rng.random(n) < 0.5, 1.0, 4.0) if design == "weights 1 and 4" else None
    error = RATIOS[ratio](sigma) * sigma * common * NOISE[noise](rng, n)
    return cal.Gaussian(error, zeros, sigma, weight=weight, group=group)


def nearest_level(sigma: Floats) -> Floats:
    """One of seven spreads."""
    return LEVELS[np.abs(np.log(sigma)[:, None] - np.log(LEVELS)).argmin(axis=1)]


def true_error(ratio: str, target: str, design: str = "") -> float:
    """By quadrature over the normal quantiles of log sigma."""
    from scipy.special import ndtri

    sigma = np.exp(0.5 * ndtri((np.arange(400_000) + 0.5) / 400_000))
    sigma = nearest_level(sigma) if design == "seven spreads" else sigma
    r = RATIOS[ratio](sigma)
    if target == "uce":
        return float(np.mean(sigma**2 * np.abs(r**2 - 1)))
    norm = float(TARGETS[target].norm)
    return float(np.mean(np.abs(r - 1) ** norm) ** (1 / norm))


def spread_cell(target: str, ratio: str, noise: str, n: int, samples: int) -> Row:
    """Coverage of the interval for the true error."""
    found = [
        SpreadInversion(seed=k).interval(forecasts(np.random.default_rng([20, n, k]), n, noise, ratio), TARGETS[target])
        for k in range(samples)
    ]
    flagged = np.mean(["tails too heavy" in one.assumption for one in found])
    return {**coverage(true_error(ratio, target), found), "flagged": round(float(flagged), 3)}


def design_cell(target: str, design: str, ratio: str, noise: str, n: int, samples: int) -> Row:
    """Coverage of the interval for the true error, for rows that are not all different or not independent."""
    found = []
    for k in range(samples):
        data = designed(np.random.default_rng([24, n, k]), n, noise, ratio, design)
        found.append(SpreadInversion(seed=k).interval(data, TARGETS[target]))
    return coverage(true_error(ratio, target, design), found)


def scale_cell(noise: str, n: int, samples: int) -> Row:
    """Level of the test of the mean squared z, and coverage of the interval of the factor 1.2."""
    rng = np.random.default_rng([21, n])
    rejected, found = [], []
    for _ in range(samples):
        data = forecasts(rng, n, noise, "calibrated")
        rejected.append(MeanSquaredZ().test(data).p_value <= 0.05)
        wide = cal.Gaussian(1.2 * data.y_true, data.mean, data.std)
        found.append(LogScale().interval(wide, Target("scale factor")))
    return {"level": round(float(np.mean(rejected)), 4), **coverage(1.2, found)}


def pit_cell(factor: float, n: int, samples: int) -> Row:
    """Coverage of the interval of the interval error."""
    from scipy.special import ndtr, ndtri

    levels = (np.arange(20_000) + 0.5) / 20_000
    truth = float(np.mean(np.abs(2 * ndtr(ndtri((1 + levels) / 2) / factor) - 1 - levels)))
    rng, found = np.random.default_rng([22, n]), []
    for k in range(samples):
        data = cal.Gaussian(factor * rng.standard_normal(n), np.zeros(n), np.ones(n))
        found.append(cal.interval(cal.interval_error, data, method=PitInversion(seed=k)).interval)
    return coverage(truth, found)


def compare_cell(models: str, noise: str, n: int, samples: int) -> Row:
    """How often two models of equal ENCE are called different; each sees one of the two factors of the spread."""
    factors = {"calibrated": (1.0, 1.0), "both 1.3": (1.3, 1.3), "1.3 and 0.7": (1.3, 0.7)}[models]
    alarms = []
    for k in range(samples):
        rng = np.random.default_rng([23, n, k])
        parts = np.exp(0.4 * rng.standard_normal((2, n)))
        y = parts.prod(axis=0) * NOISE[noise](rng, n)
        a, b = (
            cal.Gaussian(y, np.zeros(n), part * np.exp(0.16) / factor)
            for part, factor in zip(parts, factors, strict=True)
        )
        alarms.append(PairedFits(199, k).difference(a, b, TARGETS["ence"], level=0.95).p_value <= 0.05)
    return {"called_different": round(float(np.mean(alarms)), 4)}


KEYS = {
    "coverage": ("target", "ratio", "noise", "n", "samples"),
    "designs": ("target", "design", "ratio", "noise", "n", "samples"),
    "scale": ("noise", "n", "samples"),
    "pit": ("factor", "n", "samples"),
    "compare": ("models", "noise", "n", "samples"),
}
CELLS = {"coverage": spread_cell, "designs": design_cell, "scale": scale_cell, "pit": pit_cell, "compare": compare_cell}


def tasks(samples: int) -> dict[str, list[tuple[Any, ...]]]:
    """What is measured, part by part."""
    heavy = [("ence", ratio, "t3", n, samples) for ratio, n in product(("calibrated", "factor 1.3"), SIZES)]
    light = product(TARGETS, RATIOS, ("normal", "t5", "skewed"), SIZES, (samples,))
    models = ("calibrated", "both 1.3", "1.3 and 0.7")
    return {
        "coverage": [*heavy, *light],
        "designs": [
            *product(
                TARGETS, DESIGNS, ("calibrated", "factor 1.3", "falling step, unseen"), ("normal",), (1000,), (samples,)
            ),
            *product(("ence",), DESIGNS, ("calibrated", "factor 1.3"), ("t5",), (100, 1000), (samples,)),
        ],
        "scale": [*product(NOISE, (100, 1000), (10 * samples,)), *product(NOISE, (10_000,), (2 * samples,))],
        "pit": [*product((1.0, 1.1, 1.3, 0.8), SIZES, (samples,))],
        "compare": [*product(models, ("normal", "t5", "skewed"), (300, 2000), (4 * samples,))],
    }


def rows(part: str, wanted: list[tuple[Any, ...]]) -> list[Row]:
    """What was measured of a part, after what is wanted and missing was added."""
    return measured(RESULTS / f"regression_{part}.csv", wanted, KEYS[part], CELLS[part])


def write_page() -> None:
    """The page of all that was measured so far."""
    ends = ("truth", "covered", "low_above", "high_below", "width")
    (RESULTS / "regression_coverage.md").write_text(
        "# Intervals and tests of predicted spreads\n\nNominal 95 %; the lowest coverage first. Intervals measured in "
        "300 samples are older than the rule that a sparse hypothesis is only tried if the fit allows it (19 November "
        "2026). That rule raises most lower ends and hardly changes upper ends.\n\n"
        + markdown(rows("coverage", []), (*KEYS["coverage"], *ends, "flagged"), "covered")
        + "\nSpreads that repeat, clusters and weights.\n\n"
        + markdown(rows("designs", []), (*KEYS["designs"], *ends), "covered")
        + "\nTest of the mean squared z at 5 %, and the interval of a scale factor of 1.2.\n\n"
        + markdown(rows("scale", []), (*KEYS["scale"], "level", *ends[1:]))
        + "\nInterval error (L1), all levels, by the ratio of true to stated width of the errors.\n\n"
        + markdown(rows("pit", []), (*KEYS["pit"], *ends), "covered")
        + "\nTwo models of equal ENCE: how often `compare` calls them different at 5 %.\n\n"
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
