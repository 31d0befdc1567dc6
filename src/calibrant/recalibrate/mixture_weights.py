"""How much of each map goes into a mixture, and how far a mixture may go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from calibrant.numerics.arrays import Codes, Floats

#: Prior weight of leaving the predictions as they are; the other maps share the rest.
IDENTITY_PRIOR = 0.3

#: Maps of less posterior weight are left out of the mixture: they cost time and change nothing.
_LEAST_SHARE = 1e-4


def prior_weights(number: int) -> Floats:
    """Prior weights of the identity, which comes first, and the other maps."""
    if number == 1:
        return np.ones(1)
    rest = np.full(number - 1, (1 - IDENTITY_PRIOR) / (number - 1))
    return np.concatenate([[IDENTITY_PRIOR], rest])


def posterior_weights(prior: Floats, log_likelihood: Floats) -> Floats:
    """Prior weights times likelihoods, those that do not matter cut off, normalised."""
    with np.errstate(divide="ignore"):
        score = np.log(prior) + log_likelihood
    share = np.exp(score - score.max())
    share = np.where(share >= _LEAST_SHARE * share.sum(), share, 0.0)
    return np.asarray(share / share.sum())


def stacking_weights(
    held_out: Sequence[Floats], codes: Codes, mass: Floats, loss: Literal["log_loss", "brier"]
) -> Floats:
    """The point of the simplex whose mixture of held-out probabilities has the lowest mean loss (a convex problem)."""
    from scipy.optimize import minimize

    number, share = len(held_out), mass / mass.sum()
    if loss == "brier":
        gaps = np.stack(held_out)
        gaps[:, np.arange(len(codes)), codes] -= 1
        gram = np.einsum("aik,bik,i->ab", gaps, gaps, share, optimize=True)

        def objective(a: Floats) -> tuple[float, Floats]:
            return float(a @ gram @ a), 2 * gram @ a
    else:
        hits = np.stack([p[np.arange(len(codes)), codes] for p in held_out])

        def objective(a: Floats) -> tuple[float, Floats]:
            mixed = np.maximum(a @ hits, np.finfo(np.float64).tiny)
            return float(-share @ np.log(mixed)), -(hits @ (share / mixed))

    found = minimize(
        objective,
        np.full(number, 1 / number),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * number,
        constraints=[{"type": "eq", "fun": lambda a: a.sum() - 1, "jac": np.ones_like}],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    weights = np.where(found.x > 1e-6, found.x, 0.0)
    normalised: Floats = weights / weights.sum()
    return normalised


def certainty_floor(n: float) -> float:
    """The probability below which n rows cannot show an event to be: one half over n + 1."""
    return 0.5 / (n + 1)


def kept_from_certainty(q: Floats, p: Floats, n: float) -> Floats:
    r"""Probabilities q (n, K), none of them below :math:`\min(p, \tfrac{1}{2(n+1)})`, what that takes from the others.

    n rows cannot show that an event is rarer than that; where it was predicted to be, the prediction may stay. No
    probability is then above :math:`\max(p, 1 - \tfrac{1}{2(n+1)})` either, because its complement is not below.

    >>> kept_from_certainty(np.array([[1.0, 0.0]]), np.array([[0.7, 0.3]]), 4)
    array([[0.9, 0.1]])
    """
    least = np.minimum(p, certainty_floor(n))
    low = np.flatnonzero((q < least).any(axis=1))
    if not len(low):
        return q
    least, spare = least[low], np.maximum(q[low] - least[low], 0.0)
    result = q.copy()
    result[low] = least + spare * ((1 - least.sum(axis=1)) / spare.sum(axis=1))[:, None]
    return result
