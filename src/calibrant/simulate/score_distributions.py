"""Distributions of scores on [0, 1], drawn and integrated on log odds.

Integrands may have kinks and steps: Gauss-Lobatto panels are halved where they disagree with their halves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats, log_complement, log_odds, log_probability

#: Tails lighter than exp(-REACH) are left out of integrals. Derived: exp(-42) = 6e-19 is lost in double precision.
_REACH = 42.0


class Scores(ABC):
    """A distribution of scores in [0, 1], drawn and integrated on log-odds, where scores next to 1 remain distinct.

    Examples
    --------
    >>> class Fixed(Scores):
    ...     def draw(self, rng, size):
    ...         return np.zeros(size)
    ...
    ...     def expect(self, function):
    ...         return float(function(np.zeros(1))[0])
    >>> from calibrant.simulate import World
    >>> World(Fixed(), lambda score: 0.8 * score, name="one half").true_error()
    0.09999999999999998
    """

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Log-odds of independent scores; an atom at 0 or 1 is minus or plus infinity."""

    @abstractmethod
    def expect(self, function: Callable[[Floats], Floats]) -> float:
        """Expectation of a vectorised function of the log-odds."""

    def support(self) -> Floats:
        """Log-odds that cover the scores, for maxima and pictures."""
        return np.linspace(-_REACH, _REACH, 100_001)


@dataclass(frozen=True)
class BetaScores(Scores):
    r"""Scores from a Beta distribution, :math:`\propto s^{a-1}(1-s)^{b-1}`.

    Confident networks look like BetaScores(2.8, 0.05): a quarter of such scores are 1 in double precision, yet they
    differ, so draws and integrals use log-odds.

    >>> round(BetaScores(2, 1).expect(lambda z: 1 / (1 + np.exp(-z))), 6)
    0.666667
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        if not (self.a > 0 and self.b > 0 and np.isfinite(self.a + self.b)):
            fail(f"BetaScores needs two positive numbers, got a={self.a!r}, b={self.b!r}.", ValueError)

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """log(G_a / G_b) of two gamma variables, with log G_a = log G_{a+1} - E / a so that nothing underflows."""
        ratio = rng.standard_gamma(self.a + 1, size)
        ratio /= rng.standard_gamma(self.b + 1, size)
        z = np.log(ratio, out=ratio)
        z -= rng.standard_exponential(size) / self.a
        z += rng.standard_exponential(size) / self.b
        return z

    def expect(self, function: Callable[[Floats], Floats]) -> float:
        """By quadrature; on log-odds the density is smooth and falls off exponentially on both sides."""
        from scipy.special import betaln

        constant = betaln(self.a, self.b)

        def weighted(z: Floats) -> Floats:
            return function(z) * np.exp(self.a * log_probability(z) + self.b * log_complement(z) - constant)

        return integral(weighted, graded(-_REACH / self.a - _REACH, _REACH / self.b + _REACH))


@dataclass(frozen=True)
class UniformScores(BetaScores):
    """Uniformly distributed scores: BetaScores(1, 1).

    Examples
    --------
    >>> round(UniformScores().expect(lambda z: 1 / (1 + np.exp(-z))), 6)
    0.5
    """

    a: float = field(default=1.0, init=False, repr=False)
    b: float = field(default=1.0, init=False, repr=False)


@dataclass(frozen=True)
class LogitMixtureScores(Scores):
    """Log-odds from a mixture of Gaussians.

    >>> LogitMixtureScores(means=(-1, 3), sds=(1, 2), weights=(0.3, 0.7))
    LogitMixtureScores(means=(-1, 3), sds=(1, 2), weights=(0.3, 0.7))
    """

    means: Sequence[float]
    sds: Sequence[float]
    weights: Sequence[float] = (1.0,)

    def __post_init__(self) -> None:
        for name in ("means", "sds", "weights"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        sizes = {len(self.means), len(self.sds), len(self.weights)}
        if len(sizes) != 1 or min(self.sds) <= 0 or min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-9:
            message = f"LogitMixtureScores needs as many means, positive sds and weights that sum to 1, got {self!r}."
            raise ValueError(message)

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """A part by its weight, then a Gaussian."""
        part = rng.choice(len(self.weights), size=size, p=np.array(self.weights))
        return np.asarray(np.array(self.means)[part] + np.array(self.sds)[part] * rng.standard_normal(size))

    def expect(self, function: Callable[[Floats], Floats]) -> float:
        """Part by part, each over ten standard deviations."""
        return sum(
            weight * normal_mean(lambda x, m=mean, s=sd: function(m + s * x))  # type: ignore[misc]
            for mean, sd, weight in zip(self.means, self.sds, self.weights, strict=True)
        )

    def density(self, z: Floats) -> Floats:
        """Density of the log-odds."""
        x = (z[..., None] - np.array(self.means)) / np.array(self.sds)
        return np.exp(-(x**2) / 2) @ (np.array(self.weights) / (np.array(self.sds) * np.sqrt(2 * np.pi)))

    def below(self, z: Floats) -> Floats:
        """Distribution function of the log-odds; infinite z are allowed."""
        from scipy.special import ndtr

        return ndtr((z[:, None] - np.array(self.means)) / np.array(self.sds)) @ np.array(self.weights)


@dataclass(frozen=True, eq=False)
class EmpiricalScores(Scores):
    """The scores of a sample, drawn again with replacement.

    >>> EmpiricalScores([0.1, 0.7, 0.7])
    <EmpiricalScores of 3 scores>
    """

    scores: ArrayLike

    def __post_init__(self) -> None:
        known = validation.probabilities("scores", self.scores).astype(np.float64)
        object.__setattr__(self, "scores", known)

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Rows with replacement."""
        z = self.support()
        return z[rng.integers(len(z), size=size)]

    def expect(self, function: Callable[[Floats], Floats]) -> float:
        """The mean over the sample."""
        return float(np.mean(function(self.support())))

    def support(self) -> Floats:
        """The sample itself."""
        return log_odds(self.scores)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(np.asarray(self.scores))} scores>"


class FixedScores(EmpiricalScores):
    """The scores of a sample, the same in every simulated one: only the outcomes are random.

    >>> scores = FixedScores([0.7, 0.1])
    >>> scores, scores.draw(np.random.default_rng(0), (3, 2)).shape
    (<FixedScores of 2 scores>, (3, 2))
    """

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """The same scores for every sample, whose size must be theirs."""
        z = self.support()
        shape = (size,) if isinstance(size, int) else size
        if shape[-1] != len(z):
            fail(f"FixedScores gives samples of {len(z)} rows, got {shape[-1]}; use EmpiricalScores.", ValueError)
        return np.broadcast_to(z, shape).copy()


@dataclass(frozen=True)
class WithAtoms(Scores):
    """A distribution with some of its mass moved to exactly 0 and exactly 1, as rounding and clipping do.

    >>> WithAtoms(BetaScores(2.7, 0.06), at_one=0.08).expect(lambda z: z == np.inf)
    0.08
    """

    base: Scores
    at_zero: float = 0.0
    at_one: float = 0.0

    def __post_init__(self) -> None:
        if not (self.at_zero >= 0 and self.at_one >= 0 and self.at_zero + self.at_one <= 1):
            fail(f"Atoms must be shares of the mass, got at_zero={self.at_zero!r}, at_one={self.at_one!r}.", ValueError)

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Draws from the base, some of them moved to the atoms."""
        z = self.base.draw(rng, size)
        place = rng.random(size)
        z[place < self.at_zero] = -np.inf
        z[place >= 1 - self.at_one] = np.inf
        return z

    def expect(self, function: Callable[[Floats], Floats]) -> float:
        """The base and both ends, each by its share."""
        ends = function(np.array([-np.inf, np.inf]))
        inside = 1 - self.at_zero - self.at_one
        total = inside * self.base.expect(function) if inside > 0 else 0.0
        return float(
            total + (self.at_zero * ends[0] if self.at_zero else 0.0) + (self.at_one * ends[1] if self.at_one else 0.0)
        )

    def support(self) -> Floats:
        """That of the base, and the atoms."""
        ends = [-np.inf] * (self.at_zero > 0), [np.inf] * (self.at_one > 0)
        return np.concatenate([ends[0], self.base.support(), ends[1]])


def _lobatto(n: int) -> tuple[Floats, Floats]:
    """Nodes and weights of the Gauss-Lobatto rule on [-1, 1], which is exact for polynomials up to degree 2n - 3."""
    basis = np.polynomial.legendre.Legendre.basis(n - 1)
    nodes = np.concatenate([[-1.0], basis.deriv().roots(), [1.0]])
    return nodes, 2 / (n * (n - 1) * basis(nodes) ** 2)


#: Nodes at both ends and in the middle: without them, a kink or step next to one of these goes unnoticed.
_NODES, _WEIGHTS = _lobatto(11)

#: Halvings of a panel: enough to shrink a step to nothing. Derived: 2^-60 of a panel is lost in double precision.
_ROUNDS = 60


def integral(function: Callable[[Floats], Floats], panels: Floats, *, tolerance: float = 1e-12) -> float:
    """Integral of a vectorised `function` over neighbouring `panels` (rising edges), to about `tolerance` a panel."""
    left, right = panels[:-1], panels[1:]
    whole, total = _panel_integrals(function, left, right), 0.0
    for _ in range(_ROUNDS):
        middle = (left + right) / 2
        first, second = _panel_integrals(function, left, middle), _panel_integrals(function, middle, right)
        bad = np.abs(first + second - whole) > tolerance
        total += float((first + second)[~bad].sum())
        if not bad.any():
            return total
        left, right = np.concatenate([left[bad], middle[bad]]), np.concatenate([middle[bad], right[bad]])
        whole = np.concatenate([first[bad], second[bad]])
    return total + float(whole.sum())


def normal_mean(function: Callable[[Floats], Floats]) -> float:
    """Expectation of a vectorised function of a standard normal variable, over ten standard deviations."""
    return integral(lambda x: function(x) * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), np.linspace(-10, 10, 41))


def graded(low: float, high: float, *, panels: int = 64) -> Floats:
    """Edges from low < 0 to high > 0 that are dense about 0 and spread out in the tails, as log-odds are."""
    return np.sinh(np.linspace(np.arcsinh(low), np.arcsinh(high), panels + 1))


def _panel_integrals(function: Callable[[Floats], Floats], left: Floats, right: Floats) -> Floats:
    half = (right - left) / 2
    at = (left + right)[:, None] / 2 + half[:, None] * _NODES
    values = function(at.ravel()).reshape(at.shape)
    return np.asarray(half * (values @ _WEIGHTS))
