"""Worlds of predicted spreads: predicted and true standard deviations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.data.forecasts import Gaussian
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator
from calibrant.simulate.score_distributions import normal_mean
from calibrant.simulate.worlds import Seed


class Spreads(ABC):
    """A distribution of predicted standard deviations.

    Examples
    --------
    >>> class Fixed(Spreads):
    ...     def draw(self, rng, n):
    ...         return np.full(n, 2.0)
    ...
    ...     def expect(self, function):
    ...         return float(function(np.array([2.0]))[0])
    >>> RegressionWorld(Fixed(), Scaled(1.5), name="two").true_error()
    0.5
    """

    @abstractmethod
    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Independent spreads."""

    @abstractmethod
    def expect(self, function: Callable[[Floats], Floats]) -> float:
        """Expectation of a vectorised function of the spread."""


@dataclass(frozen=True)
class LogNormalSpreads(Spreads):
    """Spreads whose logarithm is Gaussian about log `median` with standard deviation `sd`.

    Examples
    --------
    >>> round(LogNormalSpreads(median=1, sd=0.5).expect(lambda sigma: sigma), 4)  # exp(0.5² / 2)
    1.1331
    """

    median: float = 1.0
    sd: float = 0.5

    def __post_init__(self) -> None:
        if not (self.median > 0 and self.sd > 0):
            fail(f"LogNormalSpreads needs a positive median and sd, got {self.median!r} and {self.sd!r}.", ValueError)

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Log-normal draws."""
        return self.median * np.exp(self.sd * rng.standard_normal(n))

    def expect(self, function: Callable[[Floats], Floats]) -> float:
        """By quadrature."""
        return normal_mean(lambda x: function(self.median * np.exp(self.sd * x)))


@dataclass(frozen=True)
class Scaled:
    """The true spread is the predicted one times a factor: above 1 the model is overconfident.

    >>> Scaled(1.5)(np.array([2.0]))
    array([3.])
    """

    factor: float

    def __call__(self, sigma: Floats) -> Floats:
        """Factor times sigma."""
        return self.factor * sigma


@dataclass(frozen=True)
class RegressionWorld:
    """Predicted standard deviations and the true ones behind them.

    Parameters
    ----------
    spreads : LogNormalSpreads, or another `Spreads`
    curve : callable
        The true standard deviation where the predicted one is sigma, e.g. `Scaled(1.2)`, or any vectorised function.
    tails : float, optional
        Degrees of freedom of Student errors (above 2), scaled to the true spread; None is Gaussian.
    name : str
        As for `World`.

    Examples
    --------
    >>> world = RegressionWorld(LogNormalSpreads(), Scaled(1.2))
    >>> round(world.true_error("ence"), 4)
    0.2
    >>> world.sample(50)
    <Gaussian, n=50>
    """

    spreads: Spreads
    curve: Callable[[Any], Any] = Scaled(1.0)
    tails: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.tails is not None and not self.tails > 2:
            fail(f"tails must exceed 2 degrees of freedom, so that the spread exists, got {self.tails!r}.", ValueError)
        if not self.name:
            object.__setattr__(self, "name", f"{self.spreads!r}, {self.curve!r}, tails={self.tails!r}")

    def true_error(self, norm: Literal["ence", "uce"] | float = "ence") -> float:
        r"""The error that bins of spread estimate, in the limit of narrow bins.

        .. math:: \mathrm{ENCE} = \mathrm E\,\frac{\lvert\sigma - c(\sigma)\rvert}{\sigma}, \qquad
                  \mathrm{UCE} = \mathrm E\lvert\sigma^2 - c(\sigma)^2\rvert

        A number q is the norm of the relative gap, whose first power is ``"ence"``.
        """
        if norm == "uce":
            return self.spreads.expect(lambda s: np.abs(s**2 - self._truth(s) ** 2))
        if isinstance(norm, str) and norm != "ence":
            fail(f"norm must be 'ence' or 'uce', got {norm!r}.", ValueError)
        power = 1.0 if isinstance(norm, str) else float(norm)
        return self.spreads.expect(lambda s: (np.abs(s - self._truth(s)) / s) ** power) ** (1 / power)

    def sample(self, n: int, seed: Seed = 0) -> Gaussian:
        """`n` independent rows with standard Gaussian means."""
        rng = generator(seed, "regression world")
        sigma, mean = self.spreads.draw(rng, n), rng.standard_normal(n)
        if self.tails is None:
            noise = rng.standard_normal(n)
        else:
            noise = rng.standard_t(self.tails, n) * np.sqrt(1 - 2 / self.tails)
        return Gaussian(mean + self._truth(sigma) * noise, mean, sigma)

    def _truth(self, sigma: Floats) -> Floats:
        return np.asarray(self.curve(sigma), dtype=np.float64)
