r"""Worlds for positive-unlabeled estimators: a binary world observed without negatives, and normal mixtures of logits.

The sigmoid rises, so conditioning on the score is conditioning on the logit h, and with class densities g1, g0

.. math:: \mathrm{TCE}^q = \int \Bigl\lvert \frac{\pi g_1(h)}{g(h)} - \sigma(h)\Bigr\rvert^q g(h)\, dh,
          \qquad g = \pi g_1 + (1 - \pi) g_0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator, scikit_learn_seed
from calibrant.numerics.special import expit, log_odds
from calibrant.simulate.calibration_curves import Curve
from calibrant.simulate.score_distributions import LogitMixtureScores
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
