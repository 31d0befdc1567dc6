"""Two models on the same rows in rough worlds: is the difference of their true errors covered, are equal ones equal?

Twins are two models of one world whose scores are independent given the outcome, except for a share of equal ones:
their errors are equal. A bent model knows the true chance c and predicts c + k c (1 - c), where k makes its error a
multiple of that of the first: 1 for equal errors of different curves, 0 for a calibrated model.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from reproduce.coverage_designs import ClusteredWorld, WeightedWorld, designs
from reproduce.coverage_files import Line
from reproduce.coverage_worlds import ScoreWorld, calibrated, rough, unseen

Floats = NDArray[np.float64]

#: Points by which expectations over a world are taken, and scores are drawn given the outcome.
POINTS = 2**17
SIZES = (200, 1000, 5000, 20_000)
#: Samples per block, and where each takes longer.
SAMPLES, FEWER_SAMPLES = 50, 20
#: Sizes of designs, which count clusters or weighted rows.
DESIGN_SIZES = {"uneven clusters": (60, 300), "log-normal weights": (2000,)}
#: The L1 error is compared by simulation, which takes longer: fewer worlds.
L1_WORLDS = ("sawtooth, 5 teeth", "step at an atom", "two populations, change of sign", "uniform, calibrated")

TWINS = (
    "uniform, calibrated",
    "1 % events, calibrated",
    "11 atoms, calibrated",
    "a quarter at 0.5, chance 0.7",
    "wrong in the top 2 %",
    "0.2 % events, half the risk",
    "sawtooth, 5 teeth",
    "20 levels, a random gap at each",
    "two populations, change of sign",
)
BENT = (
    "three steps",
    "ten stairs",
    "wave, 6 periods",
    "wrong in the top 2 %",
    "sawtooth, 5 teeth",
    "bump at 0.5",
    "chirp",
    "two populations, change of sign",
    "2 % at 0.25, chance 0.6",
    "one-sided dip at 0.9",
    "step at an atom",
    "20 levels, a random gap at each",
    "5 % events, wave in log-odds",
    "beta(0.3, 0.3), 2 % of labels flipped",
    "1 % events, twice the risk",
)
#: Worlds on which settings of the comparison were chosen.
TUNED = (*TWINS[:5], *BENT[:4], "1 % events, twice the risk")


@dataclass(frozen=True)
class Pair:
    """A world whose model is the first, and the second model: a twin, or one that is bent by a multiple of its error.

    Attributes
    ----------
    alike : float
        Share of rows at which twins have equal scores.
    multiple : float or None
        None for twins.
    """

    world: ScoreWorld | ClusteredWorld | WeightedWorld
    sizes: tuple[int, ...]
    alike: float = 0.0
    multiple: float | None = None

    @property
    def name(self) -> str:
        """What the two models are."""
        if self.multiple is None:
            return f"{self.world.name}: twins" + (f", {self.alike:.0%} equal" if self.alike else "")
        return f"{self.world.name}: against " + ("equal error" if self.multiple else "the truth")

    @cached_property
    def population(self) -> tuple[Floats, Floats]:
        """Scores of equal mass and their chances."""
        score = np.asarray(self.world.score((np.arange(POINTS) + 0.5) / POINTS))
        return score, np.clip(self.world.chance(score), 0.0, 1.0)

    @cache  # noqa: B019 - pairs live as long as the program
    def bend(self, norm: float) -> float:
        """k, which is at most 1, so that bent scores rise with the chance and each has one chance."""
        score, chance = self.population
        found = (self.multiple or 0.0) * _norm(score - chance, norm) / _norm(chance * (1 - chance), norm)
        if found > 1:
            message = f"No bent model has the error of {self.world.name!r}."
            raise ValueError(message)
        return found

    def difference(self, norm: float) -> float:
        """That of the true errors."""
        score, chance = self.population
        if self.multiple is None:
            return 0.0
        return _norm(score - chance, norm) - _norm(self.bend(norm) * chance * (1 - chance), norm)

    def sample(self, n: int, norm: float, rng: np.random.Generator) -> tuple[cal.Binary, cal.Binary]:
        """Both models on n rows (clusters)."""
        if self.multiple is None:
            return self._twins(n, rng)
        first = self.world.sample(n, rng)
        chance = np.clip(self.world.chance(first.y_prob), 0.0, 1.0)
        bent = chance + self.bend(norm) * chance * (1 - chance)
        return first, cal.Binary(first.y_true, bent, weight=first.weight, group=first.group)

    def _twins(self, n: int, rng: np.random.Generator) -> tuple[cal.Binary, cal.Binary]:
        score, chance = self.population
        mass = np.stack([np.cumsum(1 - chance), np.cumsum(chance)])
        y = (rng.random(n) < chance.mean()).astype(int)
        drawn = [np.where(y, *(np.searchsorted(line, line[-1] * rng.random(n)) for line in mass[::-1])) for _ in "ab"]
        a, b = (score[np.minimum(one, POINTS - 1)] for one in drawn)
        return cal.Binary(y, a), cal.Binary(y, np.where(rng.random(n) < self.alike, a, b))


@cache
def pairs() -> dict[str, Pair]:
    """All pairs by their names."""
    worlds = {world.name: world for world in [*rough(), *unseen(), *calibrated()]}
    found = [Pair(worlds[name], SIZES, alike) for name in TWINS for alike in (0.0, 0.9)]
    found += [Pair(worlds[name], SIZES, multiple=multiple) for multiple in (1.0, 0.0) for name in BENT]
    for world in designs():
        sizes = next((sizes for words, sizes in DESIGN_SIZES.items() if world.name.startswith(words)), ())
        if sizes and world.temperature != 1:
            found += [Pair(world, sizes, multiple=multiple) for multiple in (1.0, 0.0)]
    return {pair.name: pair for pair in found}


def pair_tasks(sizes: list[int], blocks: int) -> list[tuple[str, str, int, int]]:
    """Name, target, size and block: L2 in all worlds, L1 in some, up to 5000 rows."""
    return [
        (name, f"L{norm}", n, block)
        for block in range(blocks)
        for n in (*SIZES, *DESIGN_SIZES["uneven clusters"], *DESIGN_SIZES["log-normal weights"])
        for norm in (2, 1)
        for name, pair in pairs().items()
        if n in pair.sizes and n in sizes and pair.world.promised(n)
        if norm == 2 or (pair.world.name in L1_WORLDS and 1000 <= n <= 5000)
    ]


def pair_task(task: tuple[str, str, int, int]) -> list[Line]:
    """How often the difference is covered, and how often it is significant."""
    name, target, n, block = task
    pair, norm = pairs()[name], float(target[1])
    samples = SAMPLES if n <= 5000 else min(SAMPLES, FEWER_SAMPLES)
    truth, found = pair.difference(norm), []
    for k, seed in enumerate(
        np.random.SeedSequence(16, spawn_key=(zlib.crc32(name.encode()), n, block)).spawn(samples)
    ):
        a, b = pair.sample(n, norm, np.random.default_rng(seed))
        one = cal.inference.PairedGaps(seed=k).difference(a, b, norm=norm, level=0.95)
        low, high = one.low > truth + 1e-12, one.high < truth - 1e-12
        found.append([not (low or high), low, high, one.p_value <= 0.05, one.high - one.low])
    means = np.mean(np.array(found, dtype=float), axis=0)
    keys = ("cover", "low_above", "high_below", "significant", "width")
    head = {"models": name, "target": target, "n": n, "block": block, "samples": samples}
    tuned = int(pair.world.name in TUNED)
    return [{**head, "tuned": tuned, "difference": truth, **dict(zip(keys, map(float, means), strict=True))}]


def _norm(gap: Floats, norm: float) -> float:
    return float(np.mean(np.abs(gap) ** norm) ** (1 / norm))
