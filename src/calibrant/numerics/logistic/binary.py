"""Binary logistic regression by Newton's method on cells, and profile likelihoods of slope and intercept.

Fits have a small ridge and may have a penalty, so that separable outcomes have a solution as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from calibrant.numerics.arrays import CHUNK, Floats, expit, softplus
from calibrant.numerics.logistic.stacked import Fit, crossing, minimum

#: Ridge per unit of weight, on standardised features, towards the starting map: separable data then have a finite
#: optimum (probabilities of about 1e-8 from 0 and 1). Derived: it moves no other coefficient by more than about 1e-9,
#: which is below the solver's tolerance.
RIDGE = 1e-9


def logistic_fit(
    design: Floats,
    *,
    weight: Floats,
    positive: Floats,
    start: Floats,
    offset: Floats | None = None,
    penalty: Floats | None = None,
    ridge: float = RIDGE,
) -> Fit:
    r"""Minimise the penalised logistic loss over cells.

    .. math:: \sum_i \bigl[w_i \log(1 + e^{\eta_i}) - s_i \eta_i\bigr] + \tfrac12 \beta^T P \beta
              + \tfrac{\varrho W}{2} \lVert S(\beta - \beta_0)\rVert^2, \qquad \eta = X\beta + o

    where w and s are the weight of a cell and of its positives, S the root mean squares of the columns of X and
    :math:`\beta_0` the start. Steps are halved until the loss falls, so the method converges from anywhere.
    """
    total = float(weight.sum())
    scale = np.sqrt((weight @ design**2) / total)
    pull = ridge * total * np.where(scale > 0, scale, 1.0) ** 2
    fixed = np.diag(pull) if penalty is None else np.diag(pull) + penalty

    def cost(beta: Floats) -> float:
        away = 0.5 * float(pull @ (beta - start) ** 2)
        return away if penalty is None else away + 0.5 * float(beta @ penalty @ beta)

    def derivatives(beta: Floats) -> tuple[float, Floats, Floats]:
        loss, gradient, curvature = _derivatives(design, weight, positive, offset, beta)
        slope = pull * (beta - start) + (0.0 if penalty is None else penalty @ beta)
        return loss + cost(beta), gradient + slope, curvature + fixed

    found = minimum(derivatives, start, total)
    return replace(found, loss=found.loss - cost(found.coefficients))


def nonnegative_logistic_fit(
    design: Floats, *, weight: Floats, positive: Floats, start: Floats, ridge: float = RIDGE
) -> Floats:
    """Coefficients of `logistic_fit` with all but the last of at least 0.

    The loss is convex, so its minimum is the smallest of those on the faces (some coefficients zero) that keep the
    bounds.
    """
    best, smallest = np.zeros(len(start)), np.inf
    for bounded in product([True, False], repeat=len(start) - 1):
        used = np.array([*bounded, True])
        fit = logistic_fit(design[:, used], weight=weight, positive=positive, start=start[used], ridge=ridge)
        if (fit.coefficients[:-1] >= 0).all() and fit.loss < smallest:
            best, smallest = np.zeros(len(start)), fit.loss
            best[used] = fit.coefficients
        if all(bounded) and np.isfinite(smallest):
            break  # the free optimum keeps the bounds
    return best


def positive_unlabeled_fit(
    positive: Floats,
    unlabeled: Floats,
    *,
    positive_mass: Floats,
    unlabeled_mass: Floats,
    start: Floats,
    ridge: float,
    nonnegative: bool = False,
) -> Floats:
    r"""Coefficients that minimise the unbiased risk of positives and unlabeled rows, with a ridge towards the start.

    .. math:: \sum_U m_i \log(1 + e^{\eta_i}) - \sum_P m_i \eta_i, \qquad \eta = X\beta

    `positive` and `unlabeled` are the designs of the two samples; masses add up to the prior on the positives and to
    1 on the unlabeled rows. With `nonnegative`, all coefficients but the last are at least 0.
    """
    design = np.concatenate([unlabeled, positive])
    weight = np.concatenate([unlabeled_mass, np.zeros(len(positive))])
    mass = np.concatenate([np.zeros(len(unlabeled)), positive_mass])
    if nonnegative:
        return nonnegative_logistic_fit(design, weight=weight, positive=mass, start=start, ridge=ridge)
    return logistic_fit(design, weight=weight, positive=mass, start=start, ridge=ridge).coefficients


def affine(x: Floats) -> Floats:
    """The design of a line in x: a column of ones, and x."""
    return np.stack([np.ones(len(x)), x], axis=1)


def _derivatives(
    design: Floats, weight: Floats, positive: Floats, offset: Floats | None, beta: Floats
) -> tuple[float, Floats, Floats]:
    """Loss, gradient and curvature of the unpenalised total loss, in one pass over chunks that fit the cache."""
    size = design.shape[1]
    loss, gradient, curvature = 0.0, np.zeros(size), np.zeros((size, size))
    rows = max(CHUNK // max(size, 1), 1024)
    for start in range(0, len(design), rows):
        part = slice(start, start + rows)
        features, w, s = design[part], weight[part], positive[part]
        eta = features @ beta
        if offset is not None:
            eta += offset[part]
        p = expit(eta)
        loss += float(w @ softplus(eta, p) - s @ eta)
        gradient += features.T @ (w * p - s)
        curvature += (features.T * (w * p * (1 - p))) @ features
    return loss, gradient, curvature


#: A step of Newton's method for the intercept as small as this is the last. Derived: what it leaves is at most half
#: its square, 5e-15, since the third derivative of the loss is nowhere larger than the second.
NEAR = 1e-7


@dataclass(frozen=True, eq=False)
class LogisticLine:
    r"""Cells of a rising variable z with weights w, of which s are events, under logit P(Y = 1) = a + b z.

    .. math:: \ell(a, b) = \sum_i \bigl[s_i (a + b z_i) - w_i \log(1 + e^{a + b z_i})\bigr]
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
        return float(self.weight @ softplus(eta) - self.events @ eta)

    def intercept(self, slope: float, *, events: float | None = None, start: float | None = None) -> float:
        """The most likely intercept for this slope, or the one for this many expected events; from a guess."""
        total, wanted = float(self.weight.sum()), float(self.events.sum() if events is None else events)
        if wanted <= 0 or wanted >= total:
            return -np.inf if wanted <= 0 else np.inf
        along = slope * self.z
        middle = float(np.log(wanted / (total - wanted)))
        low, high = middle - float(along.max()), middle - float(along.min())
        at = middle - float(self.weight @ along) / total if start is None else min(max(start, low), high)
        for _ in range(100):
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
        return self._fit

    @cached_property
    def _fit(self) -> tuple[float, float]:
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
        away = self.z - np.average(self.z, weights=self.weight)
        spread = float(np.sqrt(np.average(away**2, weights=self.weight)))
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

        low = -np.inf if direction < 0 else crossing(excess, best, -1 / spread)
        high = np.inf if direction > 0 else crossing(excess, best, 1 / spread)
        return low, high

    def curvature(self, intercept: float, slope: float) -> Floats:
        """The information about intercept and slope, the Hessian of the loss."""
        design, chance = affine(self.z), expit(intercept + slope * self.z)
        return np.asarray((design * (self.weight * chance * (1 - chance))[:, None]).T @ design)
