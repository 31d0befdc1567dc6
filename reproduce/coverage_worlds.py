"""The worlds of `reproduce.coverage`: scores, true chances, and whether a setting of the method was chosen on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, logit, ndtri, stdtrit

import calibrant as cal
from calibrant.simulate import PAPER_WORLDS

Floats = NDArray[np.float64]
Map = Callable[[Floats], Floats]

SIZES = (20, 50, 100, 200, 1000, 5000, 20_000, 100_000)
PUBLISHED_SIZES = (200, 1000, 5000, 20_000)
#: Equally spaced points by which expectations over a world are taken.
_POINTS = 2**18
#: Published worlds on which settings of the method were chosen.
_TUNED_PUBLISHED = ("resnet110_c10", "densenet161_imgnet")
#: Calibrated twins on which the part of the risk for chosen shapes was set.
_TUNED_TWINS = ("resnet110_SD_c10, calibrated", "resnet_wide32_c100, calibrated")


@dataclass(frozen=True)
class ScoreWorld:
    """Scores and the true chance at each.

    Attributes
    ----------
    score : callable
        From uniform numbers to scores; need not rise.
    chance : callable
        From scores to the chance of the event.
    tuned : bool
        Whether a setting of the method was chosen on this world.
    periods : float
        How often the gap oscillates over the scores: nothing is promised below 16 periods² rows.
    """

    name: str
    score: Map
    chance: Map
    tuned: bool = False
    periods: float = 0.0
    sizes: tuple[int, ...] = SIZES

    def sample(self, n: int, rng: np.random.Generator) -> cal.Binary:
        """`n` independent rows."""
        score = self.score(rng.random(n))
        return cal.Binary(rng.random(n) < self.chance(score), score)

    def population(self, points: int = _POINTS) -> tuple[Floats, Floats]:
        """Scores of equal mass, rising, and their chances."""
        score = np.sort(self.score((np.arange(points) + 0.5) / points))
        return score, np.clip(self.chance(score), 0.0, 1.0)

    def true_error(self, norm: float) -> float:
        """The true error in this norm."""
        return _true_errors(self)[norm]

    def promised(self, n: int) -> bool:
        """Whether the gap is slow enough to be seen in n rows."""
        return n >= 16 * self.periods**2


@cache
def _true_errors(world: ScoreWorld) -> dict[float, float]:
    score, chance = world.population()
    gap = np.abs(score - chance)
    return {norm: float(np.mean(gap**norm) ** (1 / norm)) for norm in (1.0, 2.0)}


@dataclass(frozen=True)
class PublishedWorld:
    """A published world or its calibrated twin; its error is known by quadrature."""

    world: cal.simulate.World
    tuned: bool
    sizes: tuple[int, ...] = PUBLISHED_SIZES

    @property
    def name(self) -> str:
        """The name of the world."""
        return self.world.name

    def sample(self, n: int, rng: np.random.Generator) -> cal.Binary:
        """`n` independent rows."""
        score, outcome = self.world.draw(rng, n)
        return cal.Binary(outcome, score)

    def true_error(self, norm: float) -> float:
        """The true error in this norm."""
        return self.world.true_error(norm)

    def promised(self, n: int) -> bool:
        """Always: the gap is smooth."""
        return True


def published() -> list[PublishedWorld]:
    return [
        PublishedWorld(twin, name in _TUNED_PUBLISHED or twin.name in _TUNED_TWINS)
        for name, world in PAPER_WORLDS.items()
        for twin in (world, world.calibrated())
    ]


def _uniform(u: Floats) -> Floats:
    return u


def _same(p: Floats) -> Floats:
    return p


def _beta(a: float, b: float) -> Map:
    return lambda u: betaincinv(a, b, u)


def _normal_odds(mean: float, sd: float) -> Map:
    return lambda u: expit(mean + sd * ndtri(u))


def _atoms(values: list[float], weights: list[float]) -> Map:
    ends = np.cumsum(weights) / np.sum(weights)
    return lambda u: np.array(values)[np.minimum(np.searchsorted(ends, u, side="right"), len(values) - 1)]


def _either(share: float, first: Map, second: Map) -> Map:
    """A share of the scores from one law, the rest from another."""

    def mixed(u: Floats) -> Floats:
        score = np.empty_like(u)
        low = u < share
        score[low] = first(u[low] / share)
        score[~low] = second((u[~low] - share) / (1 - share))
        return score

    return mixed


def _at(value: float) -> Map:
    return lambda u: np.full_like(u, value)


def _wave(size: float, periods: float) -> Map:
    return lambda p: p + size * np.sin(2 * np.pi * periods * p)


def _square_wave(size: float, periods: float) -> Map:
    return lambda p: np.clip(p + size * np.where((p * periods) % 1 < 0.5, 1, -1), 0, 1)


def _tempered(temperature: float) -> Map:
    def chance(p: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return expit(logit(p) / temperature)

    return chance


_ELEVEN = _atoms([k / 10 for k in range(11)], [3, 4, 5, 6, 8, 10, 8, 9, 14, 20, 13])
_FIVE = _atoms([0.5, 0.7, 0.8, 0.9, 0.95], [10, 15, 25, 35, 15])
_SPIKE = _either(0.25, _at(0.5), _uniform)
_NEAR_HALF = lambda u: 0.5 + 0.01 * ndtri(u)  # noqa: E731
_BIMODAL = _either(0.5, _beta(2, 12), _beta(12, 2))
_RARE, _VERY_RARE = _normal_odds(-5.2, 1.2), _normal_odds(-7.0, 1.2)


def _zigzag(size: float, steps: int) -> Map:
    return lambda p: np.clip(p + size * np.where(np.round(p * steps) % 2 == 0, 1.0, -1.0), 0, 1)


def _three_steps(p: Floats) -> Floats:
    return np.where(p < 0.3, 0.2, np.where(p < 0.7, 0.55, 0.8))


def _hook(p: Floats) -> Floats:
    bumps = 0.06 * np.exp(-(((p - 0.15) / 0.08) ** 2)) - 0.15 * np.exp(-(((p - 0.85) / 0.05) ** 2))
    return np.clip(p + bumps, 0, 1)


def rough() -> list[ScoreWorld]:
    """Worlds of the study that led to the method; its settings were chosen on those marked as tuned."""

    def tuned(name: str, score: Map, chance: Map, periods: float = 0.0) -> ScoreWorld:
        return ScoreWorld(name, score, chance, tuned=True, periods=periods)

    return [
        tuned("scores of 0.1 %, true chance 5 %", _VERY_RARE, lambda p: np.full_like(p, 0.05)),
        tuned("scores of 0.1 %, true chance 1 %", _VERY_RARE, lambda p: np.full_like(p, 0.01)),
        tuned("hard scores, 5 % wrong", lambda u: np.where(u < 0.5, 1.0, 0.0), lambda p: 0.05 + 0.9 * p),
        tuned("wave, 6 periods", _uniform, _wave(0.08, 6), 6),
        tuned("wave, 3 periods", _uniform, _wave(0.08, 3), 3),
        tuned("three steps", _uniform, _three_steps),
        tuned("ten stairs", _uniform, lambda p: (np.floor(p * 10) + 0.5) / 10, 10),
        tuned("wrong in the top 2 %", _uniform, lambda p: np.where(p > 0.98, 0.7, p)),
        tuned("a quarter at 0.5, chance 0.7", _SPIKE, lambda p: np.where(p == 0.5, 0.7, p)),
        tuned("5 atoms, 0.12 too high", _FIVE, lambda p: p - 0.12),
        tuned("11 atoms, slope 0.7", _ELEVEN, lambda p: 0.5 + 0.7 * (p - 0.5)),
        tuned("11 atoms, zigzag", _ELEVEN, _zigzag(0.1, 10)),
        tuned("101 atoms, zigzag", lambda u: np.round(u, 2), _zigzag(0.06, 100)),
        tuned("near 0.5, slope 6", _NEAR_HALF, lambda p: np.clip(0.5 + 6 * (p - 0.5), 0, 1)),
        tuned("near 0.5, 0.05 too high", _NEAR_HALF, lambda p: np.clip(p - 0.05, 0, 1)),
        tuned("0.2 % events, twice the risk", _VERY_RARE, lambda p: np.minimum(2 * p, 1)),
        tuned("1 % events, half the risk", _RARE, lambda p: p / 2),
        tuned("two modes with hooks", _BIMODAL, _hook),
        tuned("beta(2, 2), p^1.5", _beta(2, 2), lambda p: p**1.5),
        tuned("faint square wave, 8 periods", _uniform, _square_wave(0.05, 8), 8),
        tuned("faint square wave, 17 periods", _uniform, _square_wave(0.03, 17), 17),
        ScoreWorld("0.2 % events, half the risk", _VERY_RARE, lambda p: p / 2),
        ScoreWorld("1 % events, twice the risk", _RARE, lambda p: np.minimum(2 * p, 1)),
        ScoreWorld("sawtooth, 5 teeth", _uniform, lambda p: np.clip(p + 0.12 * ((p * 5) % 1 - 0.5), 0, 1), periods=5),
        ScoreWorld("bump at 0.5", _uniform, lambda p: np.clip(p + 0.25 * np.exp(-(((p - 0.5) / 0.015) ** 2)), 0, 1)),
        ScoreWorld("chirp", _uniform, lambda p: np.clip(p + 0.07 * np.sin(20 * np.pi * p**2), 0, 1), periods=10),
        ScoreWorld(
            "two populations, change of sign",
            _either(0.7, _beta(1.2, 8), _beta(6, 3)),
            lambda p: np.clip(p + 0.1 * np.sign(0.35 - p) * np.minimum(1, 4 * p * (1 - p)), 0, 1),
        ),
        ScoreWorld("faint wave, 6 periods", _uniform, _wave(0.03, 6), periods=6),
        ScoreWorld(
            "faint wave, 10 periods",
            _uniform,
            lambda p: p + 0.04 * np.sin(20 * np.pi * p) * np.minimum(1, 20 * np.minimum(p, 1 - p)),
            periods=10,
        ),
        ScoreWorld(
            "2 % at 0.25, chance 0.6", _either(0.02, _at(0.25), _beta(2, 3)), lambda p: np.where(p == 0.25, 0.6, p)
        ),
    ]


def calibrated() -> list[ScoreWorld]:
    """Calibrated models with scores of many kinds."""
    laws = {
        "uniform": _uniform,
        "5 atoms": _FIVE,
        "11 atoms": _ELEVEN,
        "a quarter at 0.5": _SPIKE,
        "near 0.5": _NEAR_HALF,
        "0.2 % events": _VERY_RARE,
        "1 % events": _RARE,
        "two modes": _BIMODAL,
        "beta(2, 2)": _beta(2, 2),
    }
    return [ScoreWorld(f"{name}, calibrated", law, _same, tuned=True) for name, law in laws.items()]


_TWENTY = lambda u: (np.floor(u * 20) + 0.5) / 20  # noqa: E731
_LEVEL_GAPS = np.random.default_rng(20).normal(0.0, 0.06, 20)
_MIXED = _either(0.4, _atoms([0.1, 0.3, 0.6, 0.9], [1, 1, 1, 1]), _beta(2, 5))
_HEAVY = lambda u: expit(1.5 * stdtrit(2.0, u))  # noqa: E731
_FIVE_PERCENT = _normal_odds(-3.3, 1.0)
_AT_A_STEP = _either(0.3, _at(0.4), _uniform)


def _dip(p: Floats) -> Floats:
    return p - 0.3 * np.where(p < 0.9, np.exp((np.minimum(p, 0.9) - 0.9) / 0.03), np.exp(-(p - 0.9) / 0.008))


def _mixed_chance(p: Floats) -> Floats:
    return np.select([p == 0.1, p == 0.3, p == 0.6, p == 0.9], [0.18, 0.22, 0.68, 0.82], p)


#: Scores of 20 to 90 % in 2 % of the rows and below 2 % in the others. By rank and spread of outcomes, which is how
#: cells are cut, the high ones take 5.5 % of the room, so that one period among them counts as 18.
_TOP_ROOM = 0.055
_MOSTLY_LOW = _either(0.98, lambda u: 0.02 * u, lambda u: 0.2 + 0.7 * u)


def _wave_among_high(periods: float) -> ScoreWorld:
    def chance(p: Floats) -> Floats:
        return np.where(p < 0.2, p, p + 0.2 * np.sin(2 * np.pi * periods * (p - 0.2) / 0.7) * (p < 0.9))

    name = f"high scores in 2 %, wave of {periods:g} period{'s' * (periods != 1)} among them"
    return ScoreWorld(name, _MOSTLY_LOW, chance, periods=periods / _TOP_ROOM)


def unseen() -> list[ScoreWorld]:
    """Worlds written after the method, on which nothing was chosen."""
    return [
        ScoreWorld("atoms with gaps among calibrated scores", _MIXED, _mixed_chance),
        ScoreWorld("heavy-tailed log-odds, temperature 1.5", _HEAVY, _tempered(1.5)),
        ScoreWorld("one-sided dip at 0.9", _uniform, _dip),
        ScoreWorld("step at an atom", _AT_A_STEP, lambda p: np.clip(np.where(p < 0.4, p - 0.05, p + 0.1), 0, 1)),
        ScoreWorld(
            "beta(0.5, 0.5), reversed in the middle",
            _beta(0.5, 0.5),
            lambda p: np.where(np.abs(p - 0.4) < 0.1, 0.8 - p, p),
        ),
        ScoreWorld(
            "20 levels, a random gap at each",
            _TWENTY,
            lambda p: np.clip(p + _LEVEL_GAPS[np.minimum((p * 20).astype(int), 19)], 0, 1),
        ),
        ScoreWorld(
            "5 % events, wave in log-odds", _FIVE_PERCENT, lambda p: expit(logit(p) + 0.5 * np.sin(4 * logit(p)))
        ),
        ScoreWorld("beta(0.3, 0.3), 2 % of labels flipped", _beta(0.3, 0.3), lambda p: 0.02 + 0.96 * p),
        ScoreWorld("wave, 40 periods", _uniform, _wave(0.05, 40), periods=40),
        _wave_among_high(1),
        _wave_among_high(2),
        ScoreWorld("uniform, timid (temperature 0.7)", _uniform, _tempered(0.7)),
        ScoreWorld(
            "30 % of scores are 1, of which 5 % are wrong",
            _either(0.3, _at(1.0), _beta(2.0, 0.2)),
            lambda p: np.where(p == 1, 0.95, _tempered(1.25)(p)),
        ),
        ScoreWorld("atoms among other scores, calibrated", _MIXED, _same),
        ScoreWorld("heavy-tailed log-odds, calibrated", _HEAVY, _same),
        ScoreWorld("beta(0.3, 0.3), calibrated", _beta(0.3, 0.3), _same),
        ScoreWorld("20 levels, calibrated", _TWENTY, _same),
        ScoreWorld("5 % events, calibrated", _FIVE_PERCENT, _same),
    ]
