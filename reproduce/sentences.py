"""Are the sentences of reports right? Verdicts in worlds of known truth, and how often calibrated models are accused.

Every world has a truth that a reader could be told: nothing is wrong; all probabilities are too high; the scores run
backwards; one group is off; wide forecasts are too narrow. A report is right if its state, its direction and its words
fit the truth. Where something is wrong it is wrong by so much that a test of this very fault would see it in nearly
every sample. Calibrated worlds are drawn many times: a report may accuse them in 5 % of samples.

    python -m reproduce.sentences [samples of a calibrated world] [samples of a wrong one]

writes reproduce/results/sentences.csv; what the file holds already is not measured again. `python -m
reproduce.sentences summary` writes sentences.md from it.

A report without groups or time accuses where the test does. `python -m reproduce.sentences tests [samples]` asks this
test alone, in many more samples of the calibrated worlds of binary data and forecasts.
"""

from __future__ import annotations

import csv
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import expit, logit

import calibrant as cal
from calibrant.data.forecasts import Forecast
from calibrant.reporting.verdicts.evidence import VerdictTest
from reproduce.resumable import measured as measured_cells

OUTPUT = Path(__file__).parent / "results" / "sentences.csv"
SUMMARY = OUTPUT.with_suffix(".md")
TESTS = OUTPUT.with_name("sentences_tests.csv")
SEED = 77_000
Made = tuple[Any, dict[str, Any]]


@dataclass(frozen=True, eq=False)
class World:
    """How to draw data, and what a report may say of them.

    `directions` are those allowed; `words` must stand in the verdict (one of each tuple), `never` must not; `flagged`
    are the groups that are wrong, where there are some.
    """

    name: str
    make: Callable[[np.random.Generator], Made]
    directions: tuple[str | None, ...] = ()
    words: tuple[tuple[str, ...], ...] = ()
    never: tuple[str, ...] = ()
    flagged: frozenset[str] | None = None

    @property
    def calibrated(self) -> bool:
        """Whether nothing is wrong."""
        return not self.directions

    def accused(self, found: cal.Report) -> bool:
        """Whether the report says that something is wrong."""
        return found.verdict.state in ("not calibrated", "small")

    def right(self, found: cal.Report) -> bool:
        """Whether the report says what is true."""
        if self.calibrated:
            return not self.accused(found)
        said = " ".join((found.verdict.sentence, found.verdict.second, found.verdict.what_to_do))
        groups = {row.name for section in found.groups for row in section.rows if row.flagged}
        return (
            self.accused(found)
            and found.verdict.direction in self.directions
            and all(any(word in said for word in some) for some in self.words)
            and not any(word in found.verdict.sentence for word in self.never)
            and (self.flagged is None or groups == self.flagged)
        )


def scores(rng: np.random.Generator, shape: str, n: int) -> np.ndarray:
    """Predicted log odds."""
    if shape == "few levels":
        return logit(rng.choice([0.05, 0.2, 0.4, 0.7, 0.9], n))
    if shape == "two digits":
        return logit(np.clip(rng.beta(1, 3, n).round(2), 0.01, 0.99))
    if shape == "two modes":
        return logit(np.where(rng.random(n) < 0.6, rng.uniform(0.05, 0.1, n), rng.uniform(0.8, 0.9, n)))
    if shape == "spike at a half":
        return np.where(rng.random(n) < 0.3, 0.0, rng.normal(0.0, 1.5, n))
    if shape == "uniform":
        return logit(rng.uniform(0.001, 0.999, n))
    base = {"half": 0.5, "tenth": 0.1, "rare": 0.01, "most": 0.9}[shape]
    return rng.normal(logit(base), 1.0, n)


def binary(
    shape: str, n: int, truth: Callable[[np.ndarray], np.ndarray], *, clusters: int = 0, weights: bool = False
) -> Callable[[np.random.Generator], Made]:
    """Probabilities of an event; `truth` gives the true probability from predicted log odds."""

    def make(rng: np.random.Generator) -> Made:
        z = scores(rng, shape, n)
        group = np.arange(n) // clusters if clusters else None
        luck = rng.normal(size=n)
        if group is not None:
            luck = np.sqrt(0.5) * (luck + rng.normal(size=group.max() + 1)[group])
        y = stats.norm.cdf(luck) < truth(z)
        weight = np.exp(rng.normal(0, 0.5, n)) if weights else None
        return cal.Binary(y, expit(z), weight=weight, group=group), {}

    return make


def shift(by: float) -> Callable[[np.ndarray], np.ndarray]:
    """All log odds moved."""
    return lambda z: expit(z + by)


def slope(factor: float) -> Callable[[np.ndarray], np.ndarray]:
    """Log odds times a factor about a centre at which totals agree."""

    def truth(z: np.ndarray) -> np.ndarray:
        low, high = -20.0, 20.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if expit(middle + factor * z).sum() < expit(z).sum() else (low, middle)
        return expit(low + factor * z)

    return truth


def wave(z: np.ndarray) -> np.ndarray:
    """Five periods over the scores, which no logistic map removes."""
    p = expit(z)
    return np.clip(p + 0.12 * np.sin(10 * np.pi * p), 0, 1)


def steps(size: float) -> Callable[[np.ndarray], np.ndarray]:
    """Jumps up and down at every fifth, of which no logistic map removes more than a little."""
    return lambda z: np.clip(expit(z) + size * np.where((5 * expit(z)).astype(int) % 2, -1, 1), 0, 1)


def spike(risk: float) -> Callable[[np.ndarray], np.ndarray]:
    """Another risk where a half is predicted, and there alone."""
    return lambda z: np.where(z == 0, risk, expit(z))


def grouped(n: int, groups: int, wrong: dict[int, float]) -> Callable[[np.random.Generator], Made]:
    """Equal groups, calibrated but for some whose log odds are moved."""

    def make(rng: np.random.Generator) -> Made:
        z, group = rng.normal(-0.8, 1.0, n), np.arange(n) % groups
        moved = np.array([wrong.get(k, 0.0) for k in range(groups)])[group]
        names = np.array([f"group {k}" for k in range(groups)])[group]
        return cal.Binary(rng.random(n) < expit(z + moved), expit(z)), {"by": {"region": names}}

    return make


def over_time(n: int, change: float) -> Callable[[np.random.Generator], Made]:
    """Twelve months; the log odds are moved from the ninth on."""

    def make(rng: np.random.Generator) -> Made:
        z, month = rng.normal(-0.8, 1.0, n), np.arange(n) * 12 // n
        return cal.Binary(rng.random(n) < expit(z + change * (month >= 8)), expit(z)), {"time": {"month": month + 1}}

    return make


def classes(n: int, k: int, *, sharp: float = 1.0, tilt: float = 0.0) -> Callable[[np.random.Generator], Made]:
    """Vectors that are too sharp by a factor, and a first class whose log odds are moved."""

    def make(rng: np.random.Generator) -> Made:
        z = 1.5 * rng.standard_normal((n, k))
        true = z + tilt * (np.arange(k) == 0)
        both = [np.exp(one) / np.exp(one).sum(axis=1, keepdims=True) for one in (true, sharp * z)]
        y = (rng.random((n, 1)) > both[0].cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
        return cal.Multiclass(y, both[1]), {}

    return make


LEVELS = {3: [0.05, 0.5, 0.95], 9: [0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95]}


def forecast(
    kind: str, n: int, *, factor: float = 1.0, bias: float = 0.0, wide: float = 1.0, clusters: int = 0, law: str = ""
) -> Callable[[np.random.Generator], Made]:
    """Predicted distributions: errors are `factor` times the spread (`wide` in the wider half), plus a bias."""

    def make(rng: np.random.Generator) -> Made:
        std, mean = np.exp(0.5 * rng.standard_normal(n)), rng.normal(0, 2, n)
        group = np.arange(n) // clusters if clusters else None
        own = rng.standard_normal(n)
        if group is not None:
            own = np.sqrt(0.5) * (own + rng.standard_normal(group.max() + 1)[group])
        if law:
            freedom = int(law[1:])
            own = stats.t(freedom).ppf(stats.norm.cdf(own)) * np.sqrt(1 - 2 / freedom)
        size = factor * np.where(std > np.median(std), wide, 1.0)
        y = mean + std * (size * own + bias)
        if kind == "gaussian":
            return cal.Gaussian(y, mean, std, group=group), {}
        if kind == "distribution":
            return cal.Distribution(y, stats.norm(mean, std)), {}
        if kind.startswith("draws"):
            m = int(kind.split()[1])
            return cal.Samples(y, mean[:, None] + std[:, None] * rng.standard_normal((n, m)), group=group), {}
        levels = np.array(LEVELS[int(kind.split()[1])])
        return cal.Quantiles(y, levels, mean[:, None] + std[:, None] * stats.norm.ppf(levels), group=group), {}

    return make


def unlabeled(positives: int, power: float) -> Callable[[np.random.Generator], Made]:
    """Scores of unlabeled rows follow Beta(1, 4); predictions are a power of the truth."""

    def make(rng: np.random.Generator) -> Made:
        u = rng.beta(1, 4, 40 * positives)
        labelled = u[rng.random(len(u)) < u][:positives]
        return cal.PositiveUnlabeled(labelled**power, rng.beta(1, 4, 4 * positives) ** power, prior=0.2), {}

    return make


def calibrated_worlds() -> Iterator[World]:
    """Nothing is wrong."""
    right = shift(0.0)
    for shape, n in (("half", 500), ("tenth", 2000), ("rare", 4000), ("few levels", 600), ("two digits", 1000)):
        yield World(f"calibrated, {shape}, n = {n}", binary(shape, n, right))
    yield World("calibrated, two modes, n = 3000", binary("two modes", 3000, right))
    yield World("calibrated, 12 clusters of 30", binary("half", 360, right, clusters=30))
    yield World("calibrated, 200 clusters of 5", binary("tenth", 1000, right, clusters=5))
    yield World("calibrated, weights", binary("tenth", 1500, right, weights=True))
    yield World("calibrated, 8 groups", grouped(3000, 8, {}))
    yield World("calibrated, 40 groups", grouped(4000, 40, {}))
    yield World("calibrated, over time", over_time(3000, 0.0))
    yield World("calibrated, 4 classes", classes(600, 4))
    for kind, n in (("gaussian", 300), ("quantiles 3", 300), ("quantiles 9", 120), ("draws 5", 300), ("draws 20", 300)):
        yield World(f"calibrated, {kind}, n = {n}", forecast(kind, n))
    yield World("calibrated, gaussian, 50 clusters of 20", forecast("gaussian", 1000, clusters=20))
    yield World("calibrated, quantiles 9, 40 clusters of 10", forecast("quantiles 9", 400, clusters=10))
    yield World("calibrated, distribution, n = 300", forecast("distribution", 300))
    yield World("calibrated, positive-unlabeled", unlabeled(300, 1.0))


#: Rows of binary worlds; faults shrink with their root, so that each is seen in nearly every sample.
SIZES = (600, 2000, 8000)


def wrong_worlds() -> Iterator[World]:
    """One fault each."""
    yield from _wrong_levels()
    yield from _wrong_shapes()
    yield from _wrong_parts()
    yield from _wrong_forecasts()
    yield from _wrong_where_rules_were_not_chosen()


def _wrong_levels() -> Iterator[World]:
    for shape, n, side in product(("half", "tenth", "few levels", "two digits", "two modes", "most"), SIZES, (-1, 1)):
        by = 7 * side / np.sqrt(n * {"half": 0.2, "tenth": 0.08, "most": 0.08}.get(shape, 0.13))
        word, other = ("too high", "too low") if side < 0 else ("too low", "too high")
        yield World(
            f"{word} by {abs(by):.2f}, {shape}, n = {n}", binary(shape, n, shift(by)), (word,), never=(f"are {other}",)
        )
    for times in (0.25, 3.0):
        word = "too high" if times < 1 else "too low"
        yield World(f"rare, {times:g} times the risk", binary("rare", 10_000, shift(np.log(times))), (word,))
    for sizes, side in product((5, 20), (-1, 1)):
        word = "too high" if side < 0 else "too low"
        made = binary("half", 2000, shift(side * (0.6 if sizes == 5 else 1.0)), clusters=sizes)
        yield World(f"{word}, clusters of {sizes}", made, (word,))
    for side in (-1, 1):
        word = "too high" if side < 0 else "too low"
        yield World(f"{word}, weights", binary("tenth", 3000, shift(0.6 * side), weights=True), (word,))


def _wrong_shapes() -> Iterator[World]:
    for shape, n, factor in product(("half", "tenth", "two modes"), (2000, 8000), (0.5, 0.65, 1.6, 2.0)):
        if n < 8000 and (shape == "tenth" or abs(np.log(factor)) < 0.6):
            continue
        word, other = ("too extreme", "too moderate") if factor < 1 else ("too moderate", "too extreme")
        yield World(f"slope {factor:g}, {shape}, n = {n}", binary(shape, n, slope(factor)), (word,), never=(other,))
    never = ("too extreme", "too moderate", "are too high", "are too low")
    for n in (3000, 8000, 20_000):
        made = binary("uniform", n, wave)
        yield World(f"wave, n = {n}", made, ("mixed",), never=never)
    for shape, n in product(("half", "tenth", "two modes", "few levels"), (1000, 5000)):
        backwards = (("run backwards",),)
        yield World(f"reversed, {shape}, n = {n}", binary(shape, n, slope(-1.0)), ("backwards",), backwards)
        none = (("no information",),)
        yield World(f"random, {shape}, n = {n}", binary(shape, n, slope(0.0)), ("uninformative",), none)


def _wrong_parts() -> Iterator[World]:
    any_side = ("too high", "too low", "mixed", "too moderate", "too extreme")
    for groups, by in product((4, 8, 20), (-1.2, 1.2)):
        wrong = {1: by * (1.0 if groups < 20 else 1.5)}
        names = frozenset({"group 1"})
        named = (("group 1",),)
        yield World(
            f"one of {groups} groups, {by:+g}", grouped(600 * groups, groups, wrong), any_side, named, flagged=names
        )
    for by in (-0.8, 0.8):
        opposite = grouped(4800, 6, {1: by, 4: -by})
        yield World(f"two groups apart, {by:+g}", opposite, any_side, flagged=frozenset({"group 1", "group 4"}))
        for n in (4000, 12_000):
            yield World(f"drift {by:+g}, n = {n}", over_time(n, by), any_side, (("changed from 9 on",),))
    for k, n in product((3, 10), (1000, 3000)):
        yield World(f"{k} classes too sharp, n = {n}", classes(n, k, sharp=1.6), ("over-confident",))
        yield World(f"{k} classes too flat, n = {n}", classes(n, k, sharp=0.6), ("under-confident",))
    for k in (3, 10):
        sides = ("too low", "under-confident", "over-confident", "mixed")
        yield World(f"one of {k} classes", classes(4000, k, tilt=1.0), sides, (("class 0 is",),))
    for power in (0.6, 1.7):
        word = "too high" if power < 1 else "too low"
        yield World(f"positive-unlabeled, {word}", unlabeled(600, power), (word,))


def _wrong_forecasts() -> Iterator[World]:
    kinds = ("gaussian", "quantiles 3", "quantiles 9", "draws 5", "draws 20", "distribution")
    for kind, n, factor in product(kinds, (300, 1000), (0.7, 1.45)):
        word = "too narrow" if factor > 1 else "too wide"
        yield World(f"{kind}, spread {word}, n = {n}", forecast(kind, n, factor=factor), (word,))
    for kind, bias in product(kinds, (-0.4, 0.4)):
        word = "too low" if bias > 0 else "too high"
        yield World(f"{kind}, {word}, n = 400", forecast(kind, 400, bias=bias), ("shifted",), ((f"are {word}",),))
    for kind in ("gaussian", "quantiles 9", "draws 20", "distribution"):
        made = forecast(kind, 2000, factor=0.85, wide=1.65)
        words = (("ide forecasts are too narrow",),)
        yield World(f"{kind}, wide ones too narrow", made, ("mixed",), words)
    for kind in ("gaussian", "distribution"):
        yield World(
            f"{kind}, heavy tails", forecast(kind, 1000, law="t3"), ("mixed",), (("ails are too light", "evenly"),)
        )
    for factor in (0.55, 1.7):
        word = "too narrow" if factor > 1 else "too wide"
        made = forecast("gaussian", 1000, factor=factor, clusters=10)
        yield World(f"gaussian, clusters of 10, {word}", made, (word,))


def _wrong_where_rules_were_not_chosen() -> Iterator[World]:
    """Written after every rule of the verdict, which none of them has changed."""
    any_side = ("too high", "too low", "mixed", "too moderate", "too extreme", "over-confident", "under-confident")
    for n, size in product((1500, 6000), (0.12, 0.2)):
        jumps = binary("uniform", n, steps(size))
        yield World(f"jumps of {size:g}, n = {n}", jumps, any_side, never=("backwards",))
    for n, risk in product((1000, 5000), (0.25, 0.75)):
        word, other = ("too high", "too low") if risk < 0.5 else ("too low", "too high")
        made = binary("spike at a half", n, spike(risk))
        yield World(f"spike, {word}, n = {n}", made, (word, "mixed"), never=(f"are {other}",))
    for n, side in product((150, 300), (-1, 1)):
        word = "too high" if side < 0 else "too low"
        yield World(f"{word} by far, n = {n}", binary("half", n, shift(1.5 * side)), (word,))
    for side in (-1, 1):
        word = "too high" if side < 0 else "too low"
        both = binary("tenth", 4000, shift(0.9 * side), clusters=8, weights=True)
        yield World(f"{word}, weights and clusters of 8", both, (word,))
        yield World(f"positive-unlabeled by far, {word}", unlabeled(250, 0.45 if side < 0 else 2.4), (word,))
    for k, sharp in product((5, 30), (0.5, 1.9)):
        word = "over-confident" if sharp > 1 else "under-confident"
        yield World(f"{k} classes by {sharp:g}", classes(2500, k, sharp=sharp), (word,))
    for kind, bias in product(("gaussian", "quantiles 9", "draws 20"), (-0.7, 0.7)):
        word = "too low" if bias > 0 else "too high"
        made = forecast(kind, 600, bias=bias, clusters=6)
        yield World(f"{kind}, {word}, clusters of 6", made, ("shifted",), ((f"are {word}",),))
    for kind, factor in product(("quantiles 9", "draws 20"), (0.55, 1.8)):
        word = "too narrow" if factor > 1 else "too wide"
        yield World(f"{kind}, {word}, clusters of 4", forecast(kind, 800, factor=factor, clusters=4), (word,))
    for kind, factor in product(("gaussian", "distribution", "quantiles 3"), (0.6, 1.7)):
        word, other = ("too narrow", "too wide") if factor > 1 else ("too wide", "too narrow")
        made = forecast(kind, 800, factor=factor, law="t5")
        yield World(f"{kind}, {word}, t5 errors", made, (word, "mixed"), never=(other,))


def worlds() -> list[World]:
    """All of them."""
    return [*wrong_worlds(), *calibrated_worlds()]


def measured(world: World, samples: int) -> dict[str, Any]:
    """How often the report of a world was right, and the first sentence that was not."""
    right, wrong = 0, ""
    for repeat in range(samples):
        rng = np.random.default_rng([SEED, repeat, *world.name.encode()])
        data, options = world.make(rng)
        found = cal.report(data, **options)
        if world.right(found):
            right += 1
        elif not wrong:
            wrong = f"{repeat}: {found.verdict}"
    kind = "calibrated" if world.calibrated else "wrong"
    return {"world": world.name, "kind": kind, "samples": samples, "right": right, "first mistake": wrong}


def measured_tests(name: str, samples: int) -> dict[str, Any]:
    """How often the test accuses a calibrated world, in samples that no report was made of."""
    world, accused = next(world for world in calibrated_worlds() if world.name == name), 0
    for repeat in range(samples):
        data, options = world.make(np.random.default_rng([SEED + 1, repeat, *name.encode()]))
        if options or not isinstance(data, cal.Binary | Forecast):
            return {}
        accused += VerdictTest("test", cal.calibration_test(data).p_value).rejects
    return {"accused": accused}


def main(arguments: list[str]) -> None:
    """Measure what is missing, and sum it up."""
    if arguments[:1] == ["tests"]:
        names = [
            world.name
            for world in calibrated_worlds()
            if measured_tests(world.name, 1)  # of binary rows and forecasts alone
        ]
        samples = int((*arguments[1:], "1000")[0])
        measured_cells(TESTS, [(name, samples) for name in names], ("world", "samples"), measured_tests)
    elif arguments[:1] != ["summary"]:
        calm, wrong = (int(text) for text in (*arguments, *("200", "5")[len(arguments) :]))
        done = {row["world"] for row in known()}
        for world in worlds():
            if world.name in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row = measured(world, calm if world.calibrated else wrong)
            with OUTPUT.open("a", newline="", encoding="utf8") as file:
                writer = csv.DictWriter(file, list(row))
                if not file.tell():
                    writer.writeheader()
                writer.writerow(row)
    SUMMARY.write_text(summary(known(), known(TESTS)), encoding="utf8")
    print(SUMMARY.read_text(encoding="utf8"))


def known(path: Path = OUTPUT) -> list[dict[str, str]]:
    """What was measured before."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf8") as file:
        return list(csv.DictReader(file))


def _made() -> str:
    return (
        f"{date.today().isoformat()}, Python {platform.python_version()}, NumPy {np.__version__}. "
        "`python -m reproduce.sentences`."
    )


def summary(rows: list[dict[str, str]], tests: list[dict[str, str]]) -> str:
    """Worst worlds first."""

    def share(row: dict[str, str]) -> float:
        return int(row["right"]) / int(row["samples"])

    calm = sorted((row for row in rows if row["kind"] == "calibrated"), key=share)
    wrong = sorted((row for row in rows if row["kind"] == "wrong"), key=share)
    lines = ["# Sentences of reports in worlds of known truth", "", _made(), ""]
    reports = sum(int(row["samples"]) for row in wrong)
    said = sum(int(row["right"]) for row in wrong)
    lines += [
        f"Wrong worlds: {said} of {reports} reports right ({100 * said / max(reports, 1):.1f} %), "
        f"{sum(share(row) > 0.5 for row in wrong)} of {len(wrong)} worlds by the majority of their samples. "
        f"Calibrated worlds: accused in at most {100 * (1 - min(map(share, calm), default=1)):.1f} % of samples of one "
        f"world, {100 * (1 - np.mean([share(row) for row in calm])):.1f} % on average.",
        "",
        "| calibrated world | samples | accused |",
        "|---|---|---|",
        *(f"| {row['world']} | {row['samples']} | {100 * (1 - share(row)):.1f} % |" for row in calm),
        "",
        "The test that decides these sentences, in other samples of worlds without groups and time:",
        "",
        "| calibrated world | samples | accused |",
        "|---|---|---|",
        *(
            f"| {row['world']} | {row['samples']} | {100 * int(row['accused']) / int(row['samples']):.1f} % |"
            for row in sorted(tests, key=lambda row: -int(row["accused"]) / int(row["samples"]))
        ),
        "",
        "| world | samples | right | a sentence that was not |",
        "|---|---|---|---|",
        *(f"| {row['world']} | {row['samples']} | {row['right']} | {row['first mistake']} |" for row in wrong),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
