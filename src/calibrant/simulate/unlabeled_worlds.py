"""Worlds of which positive and unlabeled rows are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.numerics.arrays import Floats
from calibrant.simulate.worlds import Seed, World


@dataclass(frozen=True)
class PUWorld:
    """A binary world observed through labelled positives, unlabeled rows, and the true prior.

    Parameters
    ----------
    world : World
        Scores and the true probabilities behind them.
    labelled : float in (0, 1)
        The share of labelled positives among the rows of a sample.

    Examples
    --------
    >>> from calibrant.simulate import UniformScores, PowerCurve
    >>> pu = PUWorld(World(UniformScores(), PowerCurve(2)))
    >>> round(pu.prior, 6), pu.sample(100)
    (0.333333, <PositiveUnlabeled, n=100>)
    """

    world: World
    labelled: float = 0.5

    def __post_init__(self) -> None:
        validation.fraction("labelled", self.labelled)

    @property
    def name(self) -> str:
        """That of the world, and the share of labelled rows."""
        return f"{self.world.name}, positive-unlabeled {self.labelled:g}"

    @property
    def prior(self) -> float:
        """The true share of positives."""
        return self.world.expect(lambda score, chance: chance)

    def true_error(self, norm: Any = 1) -> float:
        """That of the world: labels are hidden, not changed."""
        return self.world.true_error(norm)

    def sample(self, n: int, seed: Seed = 0) -> PositiveUnlabeled:
        """`n` rows in all: independent samples of positives and of unlabeled rows, with the true prior."""
        rng = np.random.default_rng(seed)
        positives = min(max(round(n * self.labelled), 1), n - 1)
        unlabeled, _ = self.world.draw(rng, n - positives)
        return PositiveUnlabeled(self._positives(rng, positives), unlabeled, prior=self.prior)

    def _positives(self, rng: np.random.Generator, n: int) -> Floats:
        found: list[Floats] = []
        missing = n
        while missing > 0:
            score, outcome = self.world.draw(rng, max(int(1.2 * missing / self.prior), 16))
            hits = score[outcome == 1][:missing]
            found.append(hits)
            missing -= len(hits)
        return np.concatenate(found)
