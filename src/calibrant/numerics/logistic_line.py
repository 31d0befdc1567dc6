"""The logistic regression of outcomes on one variable: its likelihood along the slope and along the intercept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.numerics.logistic import affine, logistic_fit
from calibrant.numerics.special import expit

#: Steps of Newton's method for the intercept, which halves a bracket where it would leave it.
STEPS = 100
#: A step of Newton's method as small as this is the last: what it leaves is at most half its square, since the third
#: derivative of the loss is nowhere larger than the second.
NEAR = 1e-7


@dataclass(frozen=True, eq=False)
class LogisticLine:
    r"""Cells of a variable z with weights w, of which s are events, under logit P(Y = 1) = a + b z.

    .. math:: \ell(a, b) = \sum_i \bigl[s_i (a + b z_i) - w_i \log(1 + e^{a + b z_i})\bigr]

    Attributes
    ----------
    z : array, ascending
    weight, events : arrays
    """

    z: Floats
    weight: Floats
    events: Floats

    @property
    def only_outcome(self) -> int | None:
        """0 or 1 if no other outcome was observed, else None."""
        total, events = float(self.weight.sum()), float(self.events.sum())
        return 0 if events <= 0 else 1 if events >= total else None

    @property
    def separation(self) -> int:
        """1 if no non-event lies above an event, -1 if none lies below one, else 0; ties are allowed."""
        events, others = self.z[self.events > 0], self.z[self.weight - self.events > 0]
        if not len(events) or not len(others) or self.z[0] == self.z[-1]:
            return 0
        if others[-1] <= events[0]:
            return 1
        return -1 if events[-1] <= others[0] else 0

    def loss(self, intercept: float, slope: float) -> float:
        """Minus the log likelihood."""
        eta = intercept + slope * self.z
        return float(self.weight @ np.logaddexp(0.0, eta) - self.events @ eta)

    def intercept(self, slope: float, *, events: float | None = None, start: float | None = None) -> float:
        """The most likely intercept for this slope: as many events are expected as observed, or as given.

        `start` is a guess, which saves steps.
        """
        total, wanted = float(self.weight.sum()), float(self.events.sum() if events is None else events)
        if wanted <= 0 or wanted >= total:
            return -np.inf if wanted <= 0 else np.inf
        along = slope * self.z
        middle = float(np.log(wanted / (total - wanted)))
        low, high = middle - float(along.max()), middle - float(along.min())
        at = middle - float(self.weight @ along) / total if start is None else min(max(start, low), high)
        for _ in range(STEPS):
            chance = expit(at + along)
            excess = float(self.weight @ chance) - wanted
            low, high = (low, at) if excess > 0 else (at, high)
            curvature = float(self.weight @ (chance * (1 - chance)))
            step = at - excess / curvature if curvature > 0 else np.nan
            inside = low < step < high
            following = step if inside else (low + high) / 2
            near, at = abs(following - at) <= (NEAR if inside else 1e-13 * max(1.0, abs(at))), following
            if near:
                break
        return float(at)

    def profile_loss(self, slope: float) -> float:
        """The smallest loss with this slope."""
        return self.loss(self.intercept(slope), slope)

    def fit(self) -> tuple[float, float]:
        """The most likely intercept and slope, which must exist: both outcomes, no separation, and two values of z."""
        start = np.array([0.0, 1.0])
        found = logistic_fit(affine(self.z), weight=self.weight, positive=self.events, start=start, ridge=0.0)
        return float(found.coefficients[0]), float(found.coefficients[1])

    def smallest_loss(self) -> float:
        """The infimum of the loss; where the outcomes are separated, only a tie between both still costs."""
        if self.only_outcome is not None:
            return 0.0
        if self.z[0] == self.z[-1] or not self.separation:
            return self.profile_loss(0.0) if self.z[0] == self.z[-1] else self.loss(*self.fit())
        s, w = self.events, self.weight
        tied = (s > 0) & (s < w)
        s, w = s[tied], w[tied]
        return float(-(s * np.log(s / w) + (w - s) * np.log1p(-s / w)).sum())

    def slope_limits(self, rise: float) -> tuple[float, float]:
        """The slopes at which the profile loss is `rise` above its infimum; infinite where it never is."""
        if self.only_outcome is not None or self.z[0] == self.z[-1]:
            return -np.inf, np.inf
        limit, direction = self.smallest_loss() + rise, self.separation
        spread = float(
            np.sqrt(np.average((self.z - np.average(self.z, weights=self.weight)) ** 2, weights=self.weight))
        )
        if direction:
            best = direction / spread  # a point inside the limits: far enough in the direction of the separation
            while self.profile_loss(best) >= limit:
                best *= 2
        else:
            best = self.fit()[1]

        guess = None

        def excess(slope: float) -> float:
            nonlocal guess
            guess = self.intercept(slope, start=guess)
            return self.loss(guess, slope) - limit

        low = -np.inf if direction < 0 else _edge(excess, best, -1 / spread)
        high = np.inf if direction > 0 else _edge(excess, best, 1 / spread)
        return low, high

    def curvature(self, intercept: float, slope: float) -> Floats:
        """The information about intercept and slope, the Hessian of the loss."""
        design, chance = affine(self.z), expit(intercept + slope * self.z)
        return np.asarray((design * (self.weight * chance * (1 - chance))[:, None]).T @ design)


def _edge(excess: Callable[[float], float], inside: float, step: float) -> float:
    """Where a convex function crosses zero, going from `inside`, where it is negative, in the direction of `step`."""
    from scipy.optimize import brentq

    near, far = inside, inside + step
    while excess(far) <= 0:
        near, far, step = far, far + 2 * step, 2 * step
    return float(brentq(excess, near, far, rtol=1e-10))
