r"""Worlds for positive-unlabeled estimators: a binary world observed without negatives, and normal mixtures of logits.

The calibration error of a mixture of logits is an integral. The sigmoid rises, so conditioning on the score is
conditioning on the logit h, and with class densities g1, g0

.. math:: \mathrm{TCE}^q = \int \Bigl\lvert \frac{\pi g_1(h)}{g(h)} - \sigma(h)\Bigr\rvert^q g(h)\, dh,
          \qquad g = \pi g_1 + (1 - \pi) g_0.

Features need no density. Fitting a mixture takes true labels: it is for judging estimators, not for use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator, scikit_learn_seed
from calibrant.numerics.special import expit
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
class NormalComponents:
    """A mixture of normal distributions of the logit.

    Examples
    --------
    >>> NormalComponents(weights=(0.5, 0.5), means=(-1.0, 1.0), stds=(1.0, 1.0)).below(np.array([0.0]))
    array([0.5])
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]
    stds: tuple[float, ...]

    def density(self, h: Floats) -> Floats:
        """Density at each h."""
        z = (h[:, None] - np.array(self.means)) / np.array(self.stds)
        peaks = np.array(self.weights) / (np.array(self.stds) * np.sqrt(2 * np.pi))
        return np.exp(-(z**2) / 2) @ peaks

    def below(self, h: Floats) -> Floats:
        """Distribution function; infinite h is allowed."""
        from scipy.special import ndtr

        return ndtr((h[:, None] - np.array(self.means)) / np.array(self.stds)) @ np.array(self.weights)

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """`n` logits."""
        part = rng.choice(len(self.weights), size=n, p=np.array(self.weights) / np.sum(self.weights))
        return rng.normal(np.array(self.means)[part], np.array(self.stds)[part])


@dataclass(frozen=True)
class LogitMixtureWorld:
    """A population whose logits are normal mixtures within each class; its calibration error is known.

    >>> positive, negative = NormalComponents((1.0,), (1.0,), (1.5,)), NormalComponents((1.0,), (-2.0,), (1.5,))
    >>> world = LogitMixtureWorld(0.5, positive, negative)
    >>> round(world.true_error(), 6)
    0.074443
    """

    prior: float
    positive: NormalComponents
    negative: NormalComponents

    def true_error(self, norm: float = 1, *, points: int = 200_001) -> float:
        """The calibration error, by the trapezoid rule."""
        h = np.linspace(*self._span(), points)
        first, all_ = self.prior * self.positive.density(h), self._density(h)
        score = expit(h)
        if norm == 1:
            return float(np.trapezoid(np.abs(first - score * all_), h))
        rate = np.divide(first, all_, out=np.zeros_like(first), where=all_ > 0)
        return float(np.trapezoid(np.abs(rate - score) ** norm * all_, h) ** (1 / norm))

    def masses(self, edges: Floats, *, points: int = 200) -> tuple[Floats, Floats]:
        """P_b and F_b of infinitely many rows: positives' share, and E[f 1_b], per bin of the score."""
        with np.errstate(divide="ignore"):
            inner = np.log(edges) - np.log1p(-edges)
        low, high = self._span()
        inner = np.clip(inner, low, high)
        place = np.linspace(0, 1, points)
        h = inner[:-1, None] + np.diff(inner)[:, None] * place  # the edges lie on the grid
        values = expit(h) * self._density(h.ravel()).reshape(h.shape)
        return np.diff(self.positive.below(inner)), np.trapezoid(values, h, axis=1)

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

    def _density(self, h: Floats) -> Floats:
        return self.prior * self.positive.density(h) + (1 - self.prior) * self.negative.density(h)

    def _span(self) -> tuple[float, float]:
        """Ten standard deviations around every component."""
        means = np.array(self.positive.means + self.negative.means)
        stds = np.array(self.positive.stds + self.negative.stds)
        return float((means - 10 * stds).min()), float((means + 10 * stds).max())


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
        y, h = data.y_true == 1, np.log(p) - np.log1p(-p)
    elif logits is None:
        message = "fit_logit_mixture needs Binary predictions, or labels and logits."
        raise InvalidPredictions(message)
    else:
        validation.require_aligned(y_true=data, logits=logits)
        h = validation.column("logits", logits).astype(np.float64)
        y = validation.binary_labels("y_true", data, length=len(h)) == 1
    if y.all() or not y.any():
        message = "fit_logit_mixture needs rows of both classes."
        raise InvalidPredictions(message)
    return LogitMixtureWorld(float(y.mean()), _fitted(h[y], components, seed), _fitted(h[~y], components, seed))


def _fitted(h: Floats, components: int, seed: int) -> NormalComponents:
    from sklearn.mixture import GaussianMixture

    most = min(components, len(np.unique(h)))
    fits = [
        GaussianMixture(k, random_state=scikit_learn_seed(seed, "mixture of logits"), max_iter=500).fit(h[:, None])
        for k in range(1, most + 1)
    ]
    best = min(fits, key=lambda fit: fit.bic(h[:, None]))
    columns = (best.weights_, best.means_[:, 0], np.sqrt(best.covariances_[:, 0, 0]))
    return NormalComponents(*(tuple(float(value) for value in column) for column in columns))
