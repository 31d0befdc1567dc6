r"""Worlds of known error beyond one probability: multiclass, forecasts, positive and unlabeled rows.

In mixtures of positive and unlabeled rows, conditioning on the score is conditioning on the logit h,
since the sigmoid rises, and with class densities g1, g0

.. math:: \mathrm{TCE}^q = \int \Bigl\lvert \frac{\pi g_1(h)}{g(h)} - \sigma(h)\Bigr\rvert^q g(h)\, dh,
          \qquad g = \pi g_1 + (1 - \pi) g_0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.forecasts import Gaussian
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Multiclass
from calibrant.data.validation import fail
from calibrant.estimators.binned import check_norm
from calibrant.numerics.arrays import Floats, expit, log_odds, log_softmax
from calibrant.numerics.random_draws import generator, scikit_learn_seed
from calibrant.simulate.score_distributions import LogitMixtureScores, normal_mean
from calibrant.simulate.worlds import Curve, IdentityCurve, Seed, TemperatureCurve, World

#: Draws behind a true error, and bins behind that of the top label (each the mean of noise-free gaps).
#: Derived: a gap of at most 0.2 standard deviations has a standard error of 0.2 / 2^9.5 = 3e-4; bins are a thousandth.
#: Test: tests/simulate/test_task_worlds.py::test_true_errors_are_the_same_on_every_day.
_DRAWS, _BINS = 1 << 19, 1 << 10


@dataclass(frozen=True)
class DirichletScores:
    """Vectors of class probabilities, drawn as logarithms so that small ones keep their digits.

    >>> np.exp(DirichletScores([0.5, 0.5, 0.5]).draw(np.random.default_rng(0), 2)).sum(axis=1)
    array([1., 1.])
    """

    alpha: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", tuple(float(a) for a in self.alpha))
        if len(self.alpha) < 2 or min(self.alpha) <= 0:
            fail(f"DirichletScores needs at least two positive numbers, got {list(self.alpha)}.", ValueError)

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Log-probabilities, one row each."""
        alpha, size = np.array(self.alpha), (n, len(self.alpha))
        logs = np.log(rng.standard_gamma(alpha + 1, size)) - rng.standard_exponential(size) / alpha
        return log_softmax(logs)


@dataclass(frozen=True)
class MulticlassWorld:
    """Predicted class probabilities and the true ones behind them.

    Parameters
    ----------
    scores : DirichletScores
    curve : IdentityCurve, TemperatureCurve or callable
        ``TemperatureCurve(t)`` is softmax(log p / t); a callable maps predicted to true probabilities, both (n, K).
    name : str
        As for `World`.

    Examples
    --------
    >>> world = MulticlassWorld(DirichletScores([0.5] * 3), TemperatureCurve(1 / 0.3))
    >>> round(world.true_error(2), 3)
    0.276
    >>> world.sample(100)
    <Multiclass, n=100>
    """

    scores: DirichletScores
    curve: IdentityCurve | TemperatureCurve | Callable[[Any], Any] = field(default_factory=IdentityCurve)
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", f"{self.scores!r}, {self.curve!r}")

    def true_probabilities(self, log_probabilities: Floats) -> Floats:
        """The true probability of each class."""
        if isinstance(self.curve, IdentityCurve):
            return np.exp(log_probabilities)
        if isinstance(self.curve, TemperatureCurve):
            return np.exp(log_softmax(log_probabilities / self.curve.t))
        values = np.asarray(self.curve(np.exp(log_probabilities)), dtype=np.float64)
        return values / values.sum(axis=1, keepdims=True)

    def true_error(
        self, norm: float | Literal["squared", "kl"] = 1, *, of: Literal["vector", "top_label"] = "vector"
    ) -> float:
        r"""The true calibration error of the whole vector, or that of the confidence in the predicted class.

        .. math:: \mathrm E\lVert P - c(P)\rVert_q, \qquad
                  \bigl(\mathrm E\lvert M - \mathrm E[Y = \hat k \mid M]\rvert^q\bigr)^{1/q}

        ``"squared"`` and ``"kl"`` as for `World`. By 2^19 draws: exact to about 3e-4.
        """
        return _true_error(self, norm, of)

    def sample(self, n: int, seed: Seed = 0) -> Multiclass:
        """`n` independent rows."""
        rng = generator(seed, "multiclass world")
        logs = self.scores.draw(rng, n)
        running = np.cumsum(self.true_probabilities(logs), axis=1)
        label = (rng.random((n, 1)) * running[:, -1:] >= running[:, :-1]).sum(axis=1)
        return Multiclass(label, np.exp(logs))


@lru_cache(maxsize=256)
def _true_error(world: MulticlassWorld, norm: Any, of: str) -> float:
    rng, step = generator(0, "true error of a multiclass world"), 1 << 17
    logs = [world.scores.draw(rng, step) for _ in range(_DRAWS // step)]
    if of == "top_label":
        return _top_label_error(world, logs, check_norm(norm))
    return float(np.mean([_vector_errors(world, part, norm).mean() for part in logs]))


def _vector_errors(world: MulticlassWorld, logs: Floats, norm: Any) -> Floats:
    truth = world.true_probabilities(logs)
    if norm == "kl":
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(truth > 0, truth * (np.log(truth) - logs), 0.0).sum(axis=1))
    gap = np.abs(np.exp(logs) - truth)
    if norm == "squared":
        return np.asarray((gap**2).sum(axis=1))
    return np.asarray(np.linalg.norm(gap, ord=check_norm(norm), axis=1))


def _top_label_error(world: MulticlassWorld, parts: list[Floats], norm: float) -> float:
    """Gaps averaged over draws of like confidence: what is left is the error of the confidence alone."""
    confidence, gap = [], []
    for logs in parts:
        best = logs.argmax(axis=1)[:, None]
        top = np.exp(np.take_along_axis(logs, best, axis=1)[:, 0])
        confidence.append(top)
        gap.append(top - np.take_along_axis(world.true_probabilities(logs), best, axis=1)[:, 0])
    order = np.argsort(np.concatenate(confidence))
    means = np.abs(np.concatenate(gap)[order].reshape(_BINS, -1).mean(axis=1))
    return float(means.max() if np.isinf(norm) else np.mean(means**norm) ** (1 / norm))


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
        rng = generator(seed, "positive-unlabeled world")
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


@dataclass(frozen=True)
class LogitMixtureWorld:
    """A population whose logits are normal mixtures within each class; its calibration error is known.

    >>> positive, negative = LogitMixtureScores((1.0,), (1.5,)), LogitMixtureScores((-2.0,), (1.5,))
    >>> world = LogitMixtureWorld(0.5, positive, negative)
    >>> round(world.true_error(), 6)
    0.074443
    """

    prior: float
    positive: LogitMixtureScores
    negative: LogitMixtureScores

    def true_error(self, norm: float = 1) -> float:
        """The calibration error of the whole population."""
        return World(self._population, _Posterior(self), "logit mixture").true_error(norm)

    def masses(self, edges: Floats) -> tuple[Floats, Floats]:
        """P_b and F_b of infinitely many rows: positives' share, and E[f 1_b], per bin of the score."""
        ends = log_odds(edges)
        means, sds = np.array(self._population.means), np.array(self._population.sds)
        inner = np.clip(ends, (means - 10 * sds).min(), (means + 10 * sds).max())
        h = inner[:-1, None] + np.diff(inner)[:, None] * np.linspace(0, 1, 200)  # the edges lie on the grid
        predicted: Any = np.trapezoid(expit(h) * self._population.density(h), h, axis=1)
        return np.diff(self.positive.below(ends)), predicted

    def positives(self, rng: np.random.Generator, n: int) -> Floats:
        """Scores of `n` positives."""
        return expit(self.positive.draw(rng, n))

    def labelled(self, rng: np.random.Generator, n: int) -> Binary:
        """`n` rows of the population, with labels."""
        y = rng.random(n) < self.prior
        h = np.where(y, self.positive.draw(rng, n), self.negative.draw(rng, n))
        return Binary(y, expit(h))

    def sample(self, n_positive: int, n_unlabeled: int, seed: int | np.random.Generator = 0) -> PositiveUnlabeled:
        """Independent samples of positives and of unlabeled rows, with the true prior."""
        rng = generator(seed, "logit mixture")
        return PositiveUnlabeled(
            self.positives(rng, n_positive), self.labelled(rng, n_unlabeled).y_prob, prior=self.prior
        )

    @property
    def _population(self) -> LogitMixtureScores:
        """The logits of both classes together."""
        sides = ((self.prior, self.positive), (1 - self.prior, self.negative))
        weights = tuple(share * weight for share, side in sides for weight in side.weights)
        return LogitMixtureScores(
            (*self.positive.means, *self.negative.means), (*self.positive.sds, *self.negative.sds), weights
        )


@dataclass(frozen=True)
class _Posterior(Curve):
    """The probability of the positive class at each logit, by Bayes' rule."""

    world: LogitMixtureWorld

    def at(self, z: Floats) -> Floats:
        """Density of positives over that of all rows."""
        first, every = self.world.prior * self.world.positive.density(z), self.world._population.density(z)
        return np.divide(first, every, out=np.zeros_like(first), where=every > 0)


def fit_logit_mixture(
    data: Binary | ArrayLike, logits: ArrayLike | None = None, /, *, components: int = 10, seed: int = 0
) -> LogitMixtureWorld:
    """Fit a normal mixture to the logits of each class, with the number of components of least BIC.

    Parameters
    ----------
    data : Binary, or labels with `logits` second
        Logits are better: saturated sigmoids have none.
    components : int
        Most components per class.
    seed : int
        Random state of the fits.

    References
    ----------
    Estimating Expected Calibration Error for Positive-Unlabeled Learning (2025), section 5.1 and appendix E.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(4000) < 0.5
    >>> fitted = fit_logit_mixture(y, rng.normal(np.where(y, 1.0, -2.0), 1.5), components=3)
    >>> len(fitted.positive.means), len(fitted.negative.means), round(fitted.true_error(), 2)
    (1, 1, 0.08)
    """
    validation.seed(seed)
    if isinstance(data, Binary):
        p = data.y_prob.astype(np.float64)
        validation.require("y_prob", p, (p > 0) & (p < 1), "must lie inside (0, 1) to have a logit")
        y, h = data.y_true == 1, log_odds(p)
    elif logits is None:
        fail("fit_logit_mixture needs Binary predictions, or labels and logits.")
    else:
        validation.require_aligned(y_true=data, logits=logits)
        h = validation.column("logits", logits).astype(np.float64)
        y = validation.binary_labels("y_true", data, length=len(h)) == 1
    if y.all() or not y.any():
        fail("fit_logit_mixture needs rows of both classes.")
    return LogitMixtureWorld(float(y.mean()), _fitted(h[y], components, seed), _fitted(h[~y], components, seed))


def _fitted(h: Floats, components: int, seed: int) -> LogitMixtureScores:
    from sklearn.mixture import GaussianMixture

    most = min(components, len(np.unique(h)))
    fits = [
        GaussianMixture(k, random_state=scikit_learn_seed(seed, "mixture of logits"), max_iter=500).fit(h[:, None])
        for k in range(1, most + 1)
    ]
    best = min(fits, key=lambda fit: fit.bic(h[:, None]))
    columns = (best.means_[:, 0], np.sqrt(best.covariances_[:, 0, 0]), best.weights_)
    return LogitMixtureScores(*(column.tolist() for column in columns))
