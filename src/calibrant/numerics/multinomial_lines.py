"""Multinomial logistic regression with one intercept and one slope per class: its likelihood along each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Codes, Floats

#: Newton steps, and halvings of each.
STEPS, HALVINGS = 60, 30

#: A gradient per unit of weight below which a fit has converged.
TOLERANCE = 1e-9

#: Curvatures per unit of weight below this are none; a class of one row in a million has more.
FLAT = 3e-8

#: Standardised slopes beyond this are infinite: outcomes are separated.
FARTHEST = 60.0


@dataclass(frozen=True, eq=False)
class MultinomialLines:
    r"""Rows with K - 1 variables x and an outcome 0 .. K - 1, under

    .. math:: \log \frac{P(Y = k)}{P(Y = 0)} = a_k + b_k x_k, \qquad k = 1, \dots, K - 1.

    Parameters are the intercepts and then the slopes, 2 (K - 1) of them.

    Attributes
    ----------
    x : array (n, K - 1)
    codes : array (n,)
    weight : array (n,)
    """

    x: Floats
    codes: Codes
    weight: Floats

    @property
    def lines(self) -> int:
        """K - 1."""
        return self.x.shape[1]

    def chances(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Fitted probabilities of the classes 1 .. K - 1, and the loss of all rows."""
        eta = parameters[: self.lines] + parameters[self.lines :] * self.x
        top = np.maximum(eta.max(axis=1), 0.0)
        powers = np.exp(eta - top[:, None])
        total = powers.sum(axis=1) + np.exp(-top)
        own = np.where(self.codes > 0, eta[np.arange(len(eta)), np.maximum(self.codes, 1) - 1], 0.0)
        return powers / total[:, None], self.weight @ (np.log(total) + top - own)

    def residuals(self, parameters: Floats) -> Floats:
        """The gradient of each row's log likelihood, (n, 2 (K - 1)), without its weight."""
        chance, _ = self.chances(parameters)
        gap = (self.codes[:, None] == np.arange(1, self.lines + 1)) - chance
        return np.concatenate([gap, gap * self.x], axis=1)

    def information(self, parameters: Floats) -> Floats:
        """The Hessian of the loss."""
        chance, _ = self.chances(parameters)
        both = np.concatenate([chance, chance * self.x], axis=1)
        found: Floats = -(both * self.weight[:, None]).T @ both
        k = np.arange(self.lines)
        mean, square = (np.asarray(self.weight @ (chance * self.x**power)) for power in (1, 2))
        found[k, k] += self.weight @ chance
        found[k, k + self.lines] += mean
        found[k + self.lines, k] += mean
        found[k + self.lines, k + self.lines] += square
        return found

    def fit(self, start: Floats, free: NDArray[np.bool_]) -> tuple[Floats, float, bool]:
        """The most likely values of the free parameters, the loss there, and whether they were found."""
        at = start.copy()
        loss = float(self.chances(at)[1])
        total = float(self.weight.sum())
        for _ in range(STEPS):
            gradient = (self.weight @ self.residuals(at))[free]
            if not len(gradient) or np.abs(gradient).max() <= TOLERANCE * total:
                return at, loss, self._determined(at, free)
            step = np.linalg.lstsq(self.information(at)[np.ix_(free, free)], gradient, rcond=1e-12)[0]
            for _ in range(HALVINGS):
                following = at.copy()
                following[free] += step
                lower = float(self.chances(following)[1])
                if lower <= loss + 1e-12 * abs(loss):
                    break
                step = step / 2
            at, loss = following, lower
            if np.abs(at[self.lines :] * self.x.std(axis=0)).max() > FARTHEST:
                return at, loss, False
        return at, loss, bool(np.abs((self.weight @ self.residuals(at))[free]).max() <= 1e-5 * total)

    def _determined(self, at: Floats, free: NDArray[np.bool_]) -> bool:
        """Whether the loss is curved in every direction; where outcomes are separated, it is flat in one."""
        scale = np.concatenate([np.ones(self.lines), np.maximum(self.x.std(axis=0), 1e-300)])[free]
        curved = self.information(at)[np.ix_(free, free)] / np.outer(scale, scale) / float(self.weight.sum())
        return not len(scale) or bool(np.linalg.eigvalsh(curved)[0] > FLAT)

    def limits(
        self, best: Floats, free: NDArray[np.bool_], which: int, rise: float, step: float
    ) -> tuple[float, float]:
        """Where the profile loss of one parameter is `rise` above its minimum; infinite where that is far away."""
        lowest = float(self.chances(best)[1])
        others = free.copy()
        others[which] = False
        return tuple(self._edge(best, others, which, lowest + rise, side * step) for side in (-1.0, 1.0))  # type: ignore[return-value]

    def _moved(self, start: Floats, which: int, value: float) -> Floats:
        """The same parameters with another value of one; a line of another slope turns about where its class varies."""
        moved = start.copy()
        moved[which] = value
        if which >= self.lines:
            k = which - self.lines
            chance = self.chances(start)[0][:, k]
            varies = self.weight * chance * (1 - chance)
            middle = varies @ self.x[:, k] / max(float(varies.sum()), 1e-300)
            moved[k] += (start[which] - value) * float(middle)
        return moved

    def _edge(self, best: Floats, others: NDArray[np.bool_], which: int, limit: float, step: float) -> float:
        from scipy.optimize import brentq

        warm = best.copy()
        known = {float(best[which]): float(self.chances(best)[1]) - limit}

        # Each point is fitted once: from another start, a fit that runs off to infinity ends at a slightly other loss.
        def excess(value: float) -> float:
            nonlocal warm
            if value not in known:
                warm, loss, found = self.fit(self._moved(warm, which, value), others)
                if not found:
                    again, other, _ = self.fit(self._moved(best, which, value), others)
                    warm, loss = (again, other) if other < loss else (warm, loss)
                known[value] = loss - limit
            return known[value]

        near, far = float(best[which]), float(best[which]) + step
        for _ in range(40):
            if excess(far) > 0:
                return float(brentq(excess, near, far, xtol=1e-8 * max(1.0, abs(far)), rtol=1e-10))
            near, far, step = far, far + 2 * step, 2 * step
        return float(np.sign(step) * np.inf)
