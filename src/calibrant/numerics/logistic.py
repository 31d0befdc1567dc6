"""Newton's method for logistic regression on cells, with a ridge and an optional penalty."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from calibrant.numerics.arrays import CHUNK, Floats
from calibrant.numerics.special import expit

#: Ridge per unit of weight, on standardised features, towards the starting map. It moves no coefficient by more
#: than about 1e-9, and gives separable data a finite optimum (probabilities of about 1e-8 from 0 and 1).
RIDGE = 1e-9


#: Below this predicted decrease of the mean loss two losses differ by less than their rounding, and Newton's method
#: squares what is left: the last two steps are taken unseen.
UNSEEN = 1e-13


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients at the optimum, with the curvature (Hessian of the total loss, penalty included) there."""

    coefficients: Floats
    curvature: Floats
    loss: float


def logistic_fit(
    design: Floats,
    *,
    weight: Floats,
    positive: Floats,
    start: Floats,
    begin: Floats | None = None,
    offset: Floats | None = None,
    penalty: Floats | None = None,
    ridge: float = RIDGE,
) -> Fit:
    r"""Minimise the penalised logistic loss over cells.

    .. math:: \sum_i \bigl[w_i \log(1 + e^{\eta_i}) - s_i \eta_i\bigr] + \tfrac12 \beta^T P \beta
              + \tfrac{\varrho W}{2} \lVert S(\beta - \beta_0)\rVert^2, \qquad \eta = X\beta + o

    where w and s are the weight of a cell and of its positives, S the root mean squares of the columns of X and
    :math:`\beta_0` the start. Steps are halved until the loss falls, so the method converges from anywhere; it
    begins at `begin`, or at the start.
    """
    total = float(weight.sum())
    scale = np.sqrt((weight @ design**2) / total)
    scale[scale == 0] = 1.0
    pull = np.diag(ridge * total * scale**2)
    fixed = pull if penalty is None else pull + penalty
    beta = (start if begin is None else begin).astype(np.float64)
    loss, gradient, curvature = _derivatives(design, weight, positive, offset, beta)
    unseen = 0
    for _ in range(200):
        slope = gradient + pull @ (beta - start) + (0.0 if penalty is None else penalty @ beta)
        step = _solve(curvature + fixed, slope)
        decrease = float(slope @ step)
        if decrease <= UNSEEN * total:
            unseen += 1
            beta = beta - step
            if unseen == 2:
                break
            loss, gradient, curvature = _derivatives(design, weight, positive, offset, beta)
            continue
        before = loss + _penalty(beta, start, pull, penalty)
        factor = 1.0
        while factor > 1e-10:
            trial = beta - factor * step
            values = _derivatives(design, weight, positive, offset, trial)
            if values[0] + _penalty(trial, start, pull, penalty) < before - 1e-4 * factor * decrease:
                break
            factor /= 2
        else:
            break  # rounding: no step improves any more
        beta, (loss, gradient, curvature) = trial, values
    return Fit(beta, curvature + fixed, loss)


def nonnegative_logistic_fit(
    design: Floats, *, weight: Floats, positive: Floats, start: Floats, ridge: float = RIDGE
) -> Floats:
    """Coefficients of `logistic_fit` with all but the last of at least 0.

    The bounds are met exactly: the loss is convex, so its minimum under them is the smallest of the minima on the
    faces (some coefficients zero) that keep the bounds.
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
        loss += float(w @ np.logaddexp(0.0, eta) - s @ eta)
        gradient += features.T @ (w * p - s)
        curvature += (features.T * (w * p * (1 - p))) @ features
    return loss, gradient, curvature


def _penalty(beta: Floats, start: Floats, pull: Floats, penalty: Floats | None) -> float:
    away = beta - start
    value = 0.5 * float(away @ pull @ away)
    return value if penalty is None else value + 0.5 * float(beta @ penalty @ beta)


def _solve(matrix: Floats, vector: Floats) -> Floats:
    """Newton's step, with the matrix scaled to a diagonal of ones, which the ridge then keeps away from singular."""
    scale = np.sqrt(np.diag(matrix))
    scale[scale == 0] = 1.0
    scaled = matrix / (scale[:, None] * scale)
    scaled.flat[:: len(scaled) + 1] += 1e-12
    step: Floats = np.linalg.solve(scaled, vector / scale) / scale
    return step
