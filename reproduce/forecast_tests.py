"""Level, power and named direction of the default test of forecasts, `ForecastTest`, and of `Moments`.

Calibrated worlds have gamma spreads, levels and numbers of draws that were not used to set a constant. The worlds of
power have lognormal spreads (standard deviation of the logarithm 0.5), so that they compare with the chi-square of
counts, the chi-square test of mean z² and Anderson-Darling. Each cell has random numbers of its own. What the CSV files
hold is not measured again.

    python -m reproduce.forecast_tests [--samples 1000]

writes reproduce/results/forecast_tests*.csv and forecast_tests.md.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from scipy import stats

import calibrant as cal
from calibrant.inference import ForecastTest, Moments
from calibrant.inference.forecast_tests import component_in_words
from calibrant.numerics.arrays import Floats
from reproduce.resumable import Row, asked_samples, measured

RESULTS = Path(__file__).parent / "results"
Rng = np.random.Generator
LEVELS = {
    "1": [0.4],
    "2": [0.1, 0.9],
    "3": [0.05, 0.5, 0.95],
    "5": [0.05, 0.25, 0.5, 0.75, 0.95],
    "7": [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98],
    "13": [0.01, 0.03, 0.08, 0.15, 0.25, 0.4, 0.5, 0.6, 0.75, 0.85, 0.92, 0.97, 0.99],
    "15": [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99],
    "23": [0.01, 0.025, *np.arange(0.05, 0.96, 0.05).round(2).tolist(), 0.975, 0.99],
}
LAWS: dict[str, Callable[[Rng, Any], Floats]] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "t3": lambda rng, size: rng.standard_t(3, size),
    "exponential": lambda rng, size: rng.exponential(size=size),
    "lognormal": lambda rng, size: rng.lognormal(size=size),
}


def gamma_spread(rng: Rng, n: int) -> Floats:
    """Spreads of the calibrated worlds."""
    return rng.gamma(2.0, size=n) + 0.1


def calibrated(kind: str, rng: Rng, n: int) -> Any:
    """Forecasts from which the outcomes are drawn."""
    s = gamma_spread(rng, n)
    what, _, more = kind.partition(" ")
    if what == "quantiles":
        return cal.Quantiles(s * rng.normal(size=n), LEVELS[more], s[:, None] * stats.norm.ppf(LEVELS[more]))
    if what == "draws":
        size, law = more.split()
        return cal.Samples(s * LAWS[law](rng, n), s[:, None] * LAWS[law](rng, (n, int(size))))
    if what == "gaussian":
        weight = rng.exponential(size=n) if more == "weighted" else None
        s = np.ones(n) if more == "constant" else s
        return cal.Gaussian(s * rng.normal(size=n), np.zeros(n), s, weight=weight)
    if what == "law":
        law = stats.t(4, scale=s) if more == "t4" else stats.gamma(2, scale=s)
        return cal.Distribution(law.rvs(size=n, random_state=rng), law)
    return calibrated_counts(kind, rng, n)


def calibrated_counts(kind: str, rng: Rng, n: int) -> Any:
    """Counts: draws, quantiles, or the distribution itself; "equal" rates are the same in all rows."""
    what, law, mean = kind.split()[:3]
    rate = float(mean) * (np.ones(n) if kind.endswith("equal") else gamma_spread(rng, n) / 2.1)
    dist = stats.nbinom(0.6, 0.6 / (0.6 + rate)) if law == "negbin" else stats.poisson(rate)
    y = dist.rvs(size=n, random_state=rng).astype(float)
    if what == "counted":
        return cal.Distribution(y, dist)
    if what == "tied-draws":
        return cal.Samples(y, np.stack([dist.rvs(size=n, random_state=rng) for _ in range(int(kind.split()[3]))], 1))
    levels = LEVELS[kind.split()[3]]
    return cal.Quantiles(y, levels, np.stack([dist.ppf(q) for q in levels], axis=1))


def own_numbers(samples: int, *cell: Any) -> Iterator[Rng]:
    """A generator for each sample of a cell; no two cells share random numbers."""
    return (np.random.default_rng([20_261_123, k, *repr(cell).encode()]) for k in range(samples))


def level_cell(kind: str, n: int, samples: int) -> Row:
    """How often calibrated forecasts are rejected."""
    rngs = own_numbers(samples, kind, n)
    p = np.array([cal.calibration_test(calibrated(kind, rng, n)).p_value for rng in rngs])
    return {"at 5 %": round(float(np.mean(p <= 0.05)), 4), "at 1 %": round(float(np.mean(p <= 0.01)), 4)}


FAULTS = {
    "factor": lambda rng, s, v: v * rng.normal(size=len(s)),
    "bias": lambda rng, s, v: v + rng.normal(size=len(s)),
    "widest third": lambda rng, s, v: np.where(s > np.quantile(s, 2 / 3), v, 1.0) * rng.normal(size=len(s)),
    "skewed": lambda rng, s, v: (rng.gamma(v, size=len(s)) - v) / np.sqrt(v),
    "student": lambda rng, s, v: rng.standard_t(v, len(s)) * np.sqrt((v - 2) / v),
}
WORDS = {
    "factor": "too narrow",
    "bias": "too low",
    "widest third": "wide forecasts too narrow relative to narrow ones",
    "skewed": "too little skewed to the right",
    "student": "tails too light",
}


def faulty(kind: str, rng: Rng, n: int, fault: str, value: float) -> Any:
    """Forecasts of the wrong bias, spread or shape."""
    s = np.exp(0.5 * rng.normal(size=n))
    y = s * FAULTS[fault](rng, s, value)
    what, _, more = kind.partition(" ")
    if what == "quantiles":
        return cal.Quantiles(y, LEVELS[more], s[:, None] * stats.norm.ppf(LEVELS[more]))
    return (
        cal.Gaussian(y, np.zeros(n), s)
        if what == "gaussian"
        else cal.Samples(y, s[:, None] * rng.normal(size=(n, int(more))))
    )


def others_reject(data: Any) -> tuple[bool, ...]:
    """The chi-square of counts, and of Gaussian also that of z² and Anderson-Darling."""
    low, high = data.pit()
    n = len(low)
    if isinstance(data, cal.Gaussian):
        bins = int(np.clip(n // 10, 4, 10))
        counts, chance = (
            np.bincount(np.minimum((low * bins).astype(int), bins - 1), minlength=bins),
            np.full(bins, 1 / bins),
        )
        u, square, i = np.clip(np.sort(low), 1e-15, 1 - 1e-15), float((data.z() ** 2).sum()), np.arange(1, n + 1)
        distance = -n - float(np.mean((2 * i - 1) * (np.log(u) + np.log1p(-u[::-1]))))
        more: tuple[bool, ...] = (
            2 * min(stats.chi2.cdf(square, n), stats.chi2.sf(square, n)) <= 0.05,
            distance > 2.492,
        )
    else:
        edges = np.unique(np.concatenate([low, high]).round(12))
        counts, chance = np.bincount(np.searchsorted(edges, low.round(12)), minlength=len(edges) - 1), np.diff(edges)
        more = ()
    square = float(((counts - n * chance) ** 2 / (n * chance)).sum())
    return (stats.chi2.sf(square, len(chance) - 1) <= 0.05, *more)


def power_cell(kind: str, n: int, fault: str, value: float, samples: int) -> Row:
    """How often the fault is found, how often its direction is named, and the power of other tests."""
    found, right, others = [], [], []
    for rng in own_numbers(samples, kind, n, fault, value):
        data = faulty(kind, rng, n, fault, value)
        test = cal.calibration_test(data)
        found.append(test.p_value <= 0.05)
        if found[-1] and test.decided is not None:
            right.append(component_in_words(test.decided) == WORDS[fault])
        others.append(others_reject(data))
    rates = [round(float(x), 3) for x in np.mean(others, axis=0)] + ["", ""]
    return {
        "found": round(float(np.mean(found)), 3), "named": round(float(np.mean(right)), 3) if right else "",
        "chi-square": rates[0], "mean z2": rates[1], "Anderson-Darling": rates[2],
    }  # fmt: skip


def clustered(kind: str, rng: Rng, design: str, rho: float, fault: str, value: float) -> Any:
    """Rows whose errors have the correlation `rho` within clusters (or between the outputs of a row)."""
    clusters, rows, how = [*design.split(), ""][:3]
    size = np.full(int(clusters), int(rows))
    if how == "uneven":
        size = np.maximum(1, np.rint(int(rows) * rng.lognormal(-0.5, 1.0, len(size)))).astype(int)
    g = np.repeat(np.arange(len(size)), size)
    s = gamma_spread(rng, len(g)) if how == "own" else gamma_spread(rng, len(size))[g]
    error = np.sqrt(rho) * rng.normal(size=len(size))[g] + np.sqrt(1 - rho) * rng.normal(size=len(g))
    error = value * error if fault == "factor" else error + value
    if kind == "outputs":
        shape = (len(size), int(rows))
        return cal.Gaussian((s * error).reshape(shape), np.zeros(shape), s.reshape(shape))
    if kind == "gaussian":
        return cal.Gaussian(s * error, np.zeros(len(g)), s, group=g)
    if kind == "draws":
        return cal.Samples(s * error, s[:, None] * rng.normal(size=(len(g), 9)), group=g)
    if kind == "poisson":
        return cal.Distribution(stats.poisson.ppf(stats.norm.cdf(error), s), stats.poisson(s), group=g)
    return cal.Quantiles(s * error, LEVELS[kind], s[:, None] * stats.norm.ppf(LEVELS[kind]), group=g)


def cluster_cell(kind: str, design: str, rho: float, fault: str, value: float, samples: int) -> Row:
    """Rejections among the samples with at least 12 effective clusters, and how many samples were refused."""
    p, right = [], []
    for rng in own_numbers(samples, kind, design, rho, fault, value):
        test = cal.calibration_test(clustered(kind, rng, design, rho, fault, value))
        p.append(test.p_value)
        if test.p_value <= 0.05 and test.decided is not None:
            right.append(component_in_words(test.decided) == WORDS[fault])
    tested = np.array(p)[~np.isnan(p)]
    return {
        "rejected": round(float(np.mean(tested <= 0.05)), 4) if len(tested) else "",
        "named": round(float(np.mean(right)), 3) if right else "",
        "refused": round(1 - len(tested) / samples, 3),
    }  # fmt: skip


def order_cell(world: str, n: int, samples: int) -> Row:
    """How often neighbours are called dependent."""
    warned = []
    for rng in own_numbers(samples, world, n):
        name, _, value = world.partition(" ")
        z = rng.normal(size=n)
        if name == "autoregression":
            for i in range(1, n):
                z[i] = float(value) * z[i - 1] + np.sqrt(1 - float(value) ** 2) * z[i]
        if name == "spreads":  # calibrated on average over blocks whose true spreads are shared
            z = z * np.repeat(np.exp(0.5 * rng.normal(size=n // 20 + 1)), 20)[:n]
        warned.append(
            "warning" in cal.calibration_test(cal.Gaussian(z, np.zeros(n), np.ones(n)), method=ForecastTest(99)).details
        )
    return {"warned": round(float(np.mean(warned)), 3)}


def moments_cell(law: str, n: int, samples: int) -> Row:
    """Level of `Moments` for errors of mean 0 and variance 1 of any law."""
    p = []
    for rng in own_numbers(samples, law, n):
        e = {
            "normal": lambda r: r.normal(size=n), "t5": lambda r: r.standard_t(5, n) * 0.6**0.5,
            "gamma 4": lambda r: (r.gamma(4.0, size=n) - 4) / 2, "uniform": lambda r: r.uniform(-(3**0.5), 3**0.5, n),
        }[law](rng)  # fmt: skip
        s = gamma_spread(rng, n)
        p.append(cal.calibration_test(cal.Gaussian(s * e, np.zeros(n), s), method=Moments()).p_value)
    return {"at 5 %": round(float(np.mean(np.array(p) <= 0.05)), 4)}


KEYS = {
    "level": ("kind", "n", "samples"),
    "power": ("kind", "n", "fault", "value", "samples"),
    "clusters": ("kind", "design", "rho", "fault", "value", "samples"),
    "order": ("world", "n", "samples"),
    "moments": ("law", "n", "samples"),
}
CELLS: dict[str, Callable[..., Row]] = {
    "level": level_cell, "power": power_cell, "clusters": cluster_cell, "order": order_cell, "moments": moments_cell,
}  # fmt: skip


#: Cells that were above 0.06 in 1,000 samples, measured in four times as many, with these among them.
AGAIN = (
    ("quantiles 13", 200), ("quantiles 7", 200), ("quantiles 23", 20), ("draws 60 lognormal", 60),
    ("gaussian constant", 1000), ("quantiles 23", 1000), ("draws 9 t3", 1000), ("law t4", 1000),
    ("gaussian weighted", 60), ("law t4", 5000),
)  # fmt: skip


def tasks(samples: int) -> dict[str, list[tuple[Any, ...]]]:
    """What is measured, part by part; what costs more than some milliseconds in a quarter of the samples."""
    quick = [f"quantiles {q}" for q in ("1", "2", "3", "7", "13", "23")]
    quick += ["draws 4 normal", "draws 9 t3", "draws 12 exponential", "draws 30 normal", "draws 60 lognormal"]
    quick += ["gaussian", "gaussian constant", "law t4", "law gamma"]
    counts = ["counted poisson 2", "counted poisson 0.3", "counted negbin 3", "counted poisson 2 equal"]
    ties = ["tied-draws poisson 1 20", "tied-draws poisson 0.3 6", "tied-draws negbin 4 12"]
    tied_quantiles = ["tied-quantiles poisson 2 5", "tied-quantiles poisson 20 15", "tied-quantiles poisson 0.3 3"]
    faults = [
        *((300, "factor", v) for v in (1.1, 1.2, 1.3)), (300, "bias", 0.2), (100, "bias", 0.2),
        (300, "widest third", 1.3), (300, "skewed", 4.0), (300, "student", 5.0), (1000, "factor", 1.1),
        (1000, "bias", 0.1), (1000, "widest third", 1.3),
    ]  # fmt: skip
    kinds = ("quantiles 3", "quantiles 5", "quantiles 15", "draws 5", "draws 20", "draws 50", "gaussian")
    null = ("factor", 1.0)
    few = samples // 4
    designs = dict.fromkeys((
        ("gaussian", "12 20", 0.5), ("3", "12 20", 0.5), ("draws", "12 20", 0.5), ("7", "20 15 uneven", 0.5),
        ("gaussian", "20 15 uneven", 0.9), ("poisson", "30 10 uneven", 0.5), ("outputs", "40 5", 0.9),
        ("2", "300 3 uneven", 0.9),
        *product(("gaussian", "3", "7"), ("12 20", "20 15 uneven"), (0.5, 0.9)),
        *product(("draws", "poisson"), ("12 20", "30 10 uneven"), (0.5,)),
        *product(("gaussian", "7"), ("12 20 own", "150 4"), (0.0,)),
        *product(("outputs",), ("200 5", "300 3"), (0.9,)),
        ("gaussian", "300 3 uneven", 0.9),
    ))  # fmt: skip
    faulty_clusters = product(("gaussian", "5"), ("12 20", "20 20", "50 20"), (0.5,))
    wrong = (("factor", 1.3), ("factor", 1.5), ("bias", 0.5))
    return {
        "level": [
            *product(quick, (20, 60, 200, 1000, 5000), (samples,)),
            *product([*tied_quantiles, *ties, *counts], (40,), (few,)),
            *product([*tied_quantiles, *ties], (300,), (few,)),
            ("gaussian weighted", 60, samples),
            ("counted poisson 2", 300, few),
            *((*cell, 4 * samples) for cell in AGAIN),
        ],
        "clusters": [
            *((*one, *null, few) for one in designs),
            *((*one, *fault, few // 4) for one in faulty_clusters for fault in wrong),
        ],
        "power": [(kind, *fault, samples // 2) for kind in kinds for fault in faults],
        "order": [
            *product(("independent", *(f"autoregression {r}" for r in (0.2, 0.5, 0.9))), (50, 200, 1000), (few,)),
            ("spreads", 1000, few),
        ],
        "moments": [*product(("normal", "t5", "gamma 4", "uniform"), (50, 300, 2000), (few,))],
    }  # fmt: skip


#: Power of the prototype from which this test was built, in 60 to 100 samples: 3 and 5 quantiles, 5, 20 and 50 draws,
#: Gaussian; then 15 quantiles.
PROTOTYPE: dict[tuple[int, str, float], tuple[float, ...]] = {
    (300, "factor", 1.1): (0.37, 0.48, 0.13, 0.38, 0.42, 0.58),
    (300, "factor", 1.2): (0.92, 0.93, 0.47, 0.92, 0.93, 0.99),
    (300, "factor", 1.3): (1.0, 1.0, 0.83, 1.0, 1.0, 1.0),
    (300, "bias", 0.2): (0.85, 0.85, 0.72, 0.83, 0.83, 0.86),
    (300, "widest third", 1.3): (0.58, 0.55, 0.12, 0.42, 0.63, 0.85),
    (300, "skewed", 4.0): (1.0, 1.0, 0.25, 0.95, 1.0, 1.0),
    (300, "student", 5.0): (0.03, 0.38, 0.13, 0.35, 0.50, 0.81),
    (1000, "factor", 1.1): (0.93, 0.93, 0.45, 0.88, 0.92, 0.96, 0.97),
    (1000, "bias", 0.1): (0.68, 0.62, 0.52, 0.73, 0.67, 0.77, 0.65),
    (1000, "widest third", 1.3): (0.98, 1.0, 0.53, 0.98, 1.0, 1.0, 1.0),
}
KINDS = ("quantiles 3", "quantiles 5", "draws 5", "draws 20", "draws 50", "gaussian", "quantiles 15")
#: A cell misses if its power is lower than that of the prototype by more than this.
ALLOWED = 0.03


def against_the_prototype() -> str:
    """The cells whose power is more than 0.03 below that of the prototype, as Markdown."""
    found = {(row["kind"], int(row["n"]), row["fault"], float(row["value"])): row for row in rows("power", [])}
    cells = [(kind, at, was) for at, all_of in PROTOTYPE.items() for kind, was in zip(KINDS, all_of, strict=False)]
    known = [(kind, at, was, float(found[kind, *at]["found"])) for kind, at, was in cells if (kind, *at) in found]
    missed = sorted((now - was, kind, at, was, now) for kind, at, was, now in known if now < was - ALLOWED - 1e-9)
    lines = [
        f"| {kind} | {n} | {fault} {value} | {was} | {now} | {gap:.3f} |"
        for gap, kind, (n, fault, value), was, now in missed
    ]
    better = sum(now > was + ALLOWED for *_, was, now in known)
    start = (
        f"Of {len(known)} cells that the prototype has in 60 to 100 samples (standard error up to 0.065), {better} are "
        f"better by more than {ALLOWED}, and {len(missed)} worse:"
    )
    head = ["| kind | n | fault | prototype | found | difference |", "|---|---|---|---|---|---|"]
    return "\n".join([start, "", *head, *lines]) + "\n"


def rows(part: str, wanted: list[tuple[Any, ...]]) -> list[Row]:
    """What was measured of a part, after what is wanted and missing was added."""
    return measured(RESULTS / f"forecast_tests_{part}.csv", wanted, KEYS[part], CELLS[part])


def table(part: str, by: Callable[[Row], Any]) -> str:
    """All rows of a part as Markdown, those of the largest `by` first."""
    found = sorted(rows(part, []), key=by, reverse=True)
    if not found:
        return "Not measured yet.\n"
    names = list(found[0])
    lines = [f"| {' | '.join(str(row[name]) for name in names)} |" for row in found]
    return "\n".join([f"| {' | '.join(names)} |", "|" + "---|" * len(names), *lines]) + "\n"


def chance_of(rates: list[float], samples: int) -> str:
    """Whether the cells vary more than ranks in this many samples do."""
    if not rates:
        return ""
    variance = 0.05 * 0.95 * (1 / samples + 1 / 4000)
    square = float(((np.array(rates) - 0.05) ** 2).sum() / variance)
    p = float(stats.chi2.sf(square, len(rates)))
    return (
        f" The {len(rates)} cells without ties in {samples:,} samples have a chi-square about 0.05 of {square:.0f} "
        f"(p = {p:.2f}): {'no more than chance' if p > 0.01 else 'more than chance'}."
    )


def write_page() -> None:
    """The page of all that was measured so far, worst cells first."""
    level = [row for row in rows("level", []) if not row["kind"].startswith(("counted", "tied"))]
    common = Counter(int(row["samples"]) for row in level).most_common(1)[0][0]
    rates = [float(row["at 5 %"]) for row in level if int(row["samples"]) == common]
    chance = chance_of(rates, common)
    so_far = ", ".join(
        f"{len(rows(part, []))} of {len(wanted)} cells of {part}" for part, wanted in tasks(1000).items()
    )
    python = ".".join(map(str, sys.version_info[:3]))
    versions = f"Python {python}, NumPy {np.__version__}, SciPy {scipy.__version__}, calibrant {cal.__version__}"
    text = f"""# The default test of forecasts

{datetime.now(tz=UTC):%Y-%m-%d}, {versions}. `python -m reproduce.forecast_tests`.

Every cell has random numbers of its own, other than those of earlier runs. The test simulates its null distribution
with one seed, so that the level of a cell is that of a rank among 3,999 samples: 0.05 with a standard error of 0.0034,
beside that of the samples of the table, 0.0069 of 1,000 and 0.0138 of 250.{chance}

Measured so far: {so_far}.

## Level at 5 %

Without ties and in {common:,} samples, {min(rates):.3f} to {max(rates):.3f}, mean {np.mean(rates):.4f} over
{len(rates)} cells. Gamma spreads.

{table("level", lambda row: float(row["at 5 %"]))}
## Clusters and several outputs

A factor of 1.0 is calibrated. A design is the number of clusters, the rows of each, and how they differ; the rows of a
cluster share their spread, unless it is their own.

{table("clusters", lambda row: (float(row["value"]) == 1.0, float(row["rejected"] or 0)))}
## Power

Named: the share of rejections in which the component that decided is the fault.

{table("power", lambda row: -float(row["found"]))}
{against_the_prototype()}
## Warnings that neighbouring rows depend on each other

{table("order", lambda row: float(row["warned"]))}
## Level of `Moments` at 5 %

{table("moments", lambda row: float(row["at 5 %"]))}"""
    (RESULTS / "forecast_tests.md").write_text(text, encoding="utf8")


def main() -> None:
    """Measure what is missing and write the page."""
    samples = asked_samples(__doc__)
    for part, wanted in tasks(samples).items() if samples else ():
        rows(part, wanted)
    write_page()


if __name__ == "__main__":
    main()
