"""How maps are averaged: held-out predictions and losses, the weight of each map, and a floor near 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri

from calibrant.data.validation import fail
from calibrant.numerics.acceleration import one_blas_thread
from calibrant.numerics.arrays import Codes, Floats, softmax
from calibrant.recalibrate.base import Identity, Recalibrator, Sample, fitted_each, predicted
from calibrant.recalibrate.inputs import Scores
from calibrant.results.estimate import Estimate, Interval
from calibrant.results.target import Target

#: Prior weight of leaving the predictions as they are; the other maps share the rest. Test:
#: tests/recalibrate/test_model_averaging.py::test_the_identity_has_its_prior_and_the_others_share_the_rest.
IDENTITY_PRIOR = 0.3

#: Maps of less posterior weight are left out of the mixture. Speed: they cost time; each moves probabilities by less
#: than 1e-4.
_LEAST_SHARE = 1e-4

Loss = Literal["log_loss", "brier"]


def prior_weights(number: int) -> Floats:
    """Prior weights of the identity, which comes first, and the other maps."""
    rest = (1 - IDENTITY_PRIOR) / max(number - 1, 1)
    return np.array([IDENTITY_PRIOR, *[rest] * (number - 1)]) if number > 1 else np.ones(1)


def posterior_weights(prior: Floats, log_likelihood: Floats) -> Floats:
    """Prior weights times likelihoods, those that do not matter cut off, normalised."""
    with np.errstate(divide="ignore"):
        share = softmax((np.log(prior) + log_likelihood)[None])[0]
    share = np.where(share >= _LEAST_SHARE, share, 0.0)
    return np.asarray(share / share.sum())


def stacking_weights(held_out: Sequence[Floats], codes: Codes, mass: Floats, loss: Loss) -> Floats:
    """The point of the simplex whose mixture of held-out probabilities has the lowest mean loss (a convex problem)."""
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

    simplex = {"type": "eq", "fun": lambda a: a.sum() - 1, "jac": np.ones_like}
    setting: dict[str, Any] = {"bounds": [(0.0, 1.0)] * number, "options": {"ftol": 1e-12, "maxiter": 500}}
    start = np.full(number, 1 / number)
    found = minimize(objective, start, jac=True, method="SLSQP", constraints=[simplex], **setting)
    weights = np.where(found.x > 1e-6, found.x, 0.0)
    return weights / weights.sum()


def certainty_floor(n: float) -> float:
    """The probability below which n rows cannot show an event to be: one half over n + 1."""
    return 0.5 / (n + 1)


def kept_from_certainty(q: Floats, p: Floats, n: float) -> Floats:
    r"""Probabilities q (n, K), none of them below :math:`\min(p, \tfrac{1}{2(n+1)})`, what that takes from the others.

    n rows cannot show that an event is rarer than that; where it was predicted to be, the prediction may stay. No
    probability is then above :math:`\max(p, 1 - \tfrac{1}{2(n+1)})` either, because its complement is not below.
    """
    least = np.minimum(p, certainty_floor(n))
    low = np.flatnonzero((q < least).any(axis=1))
    if not len(low):
        return q
    least, spare = least[low], np.maximum(q[low] - least[low], 0.0)
    result = q.copy()
    result[low] = least + spare * ((1 - least.sum(axis=1)) / spare.sum(axis=1))[:, None]
    return result


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows with what each of several maps, (n, K) each, predicts for them when it was fitted without their fold."""

    probabilities: list[Floats]
    codes: Codes
    #: How many rows each counts for.
    mass: Floats
    fold: Codes
    #: Fitted to all rows; none unless they were asked for.
    maps: list[Recalibrator] = field(default_factory=list)

    @classmethod
    @one_blas_thread
    def of(
        cls,
        templates: Sequence[Recalibrator],
        scores: Scores,
        codes: Codes,
        weight: Floats | None,
        fold: Codes,
        *,
        parts: int,
        whole: bool = False,
    ) -> HeldOut:
        """Fit every map without each of the first `parts` folds, and predict these; with `whole`, to all rows too."""
        rows = np.flatnonzero(fold < parts)
        mass = np.ones(len(rows)) if weight is None else weight[rows]
        found, maps = [], list[Recalibrator]()
        for template in templates:
            p, fitted = _predicted_out_of_fold(template, (scores, codes, weight), fold, rows, whole=whole)
            found.append(p)
            maps += fitted
        return cls(found, codes[rows], mass, fold[rows], maps)

    def take(self, rows: Any) -> HeldOut:
        """Some of the rows."""
        chosen = [p[rows] for p in self.probabilities]
        return HeldOut(chosen, self.codes[rows], self.mass[rows], self.fold[rows])

    def losses(self, loss: Loss) -> Floats:
        """Loss of each map and row, (maps, n)."""
        return np.stack([row_losses(p, self.codes, loss) for p in self.probabilities])

    def mixture(self, shares: Floats) -> Floats:
        """Probabilities of the mixture of the maps, (n, K)."""
        mixed = np.zeros_like(self.probabilities[0])
        for share, p in zip(shares, self.probabilities, strict=True):
            if share:
                mixed += share * p
        return mixed


def _predicted_out_of_fold(
    template: Recalibrator, sample: Sample, fold: Codes, rows: Codes, *, whole: bool
) -> tuple[Floats, list[Recalibrator]]:
    """Probabilities of the rows, and with `whole` the map fitted to all of the sample."""
    scores = sample[0]
    p, held_out = scores.take(rows).probabilities, fold[rows]
    single = bool((fold == fold[0]).all())  # as of one row: without that fold there is nothing to learn from
    numbers = [] if isinstance(template, Identity) or single else np.unique(held_out).tolist()
    samples = (_part(sample, np.flatnonzero(fold != number)) for number in numbers)
    fits = fitted_each(template, chain(samples, [sample] if whole else []))
    for number in numbers:
        here = held_out == number
        p[here] = predicted(next(fits), scores.take(rows[here]))
    return p, list(fits)


def _part(sample: Sample, rows: Codes) -> Sample:
    scores, codes, weight = sample
    return scores.take(rows), codes[rows], None if weight is None else weight[rows]


def row_losses(p: Floats, codes: Codes, loss: Loss) -> Floats:
    """Loss of each row: minus the log of the probability of the observed class, or the squared distance to it."""
    return _losses(p, p[np.arange(len(p)), codes][:, None], loss)[:, 0]


def impossible_seen(p: Floats, codes: Codes) -> bool:
    """Whether an outcome of predicted probability 0 was observed, so that the log loss is infinite."""
    return bool((p[np.arange(len(p)), codes] == 0).any())


def mean_and_error(values: Floats, mass: Floats) -> tuple[float, float]:
    """Mean over rows that count `mass` times each, and its standard error."""
    total = float(mass.sum())
    mean = float(values @ mass) / total
    return mean, float(np.sqrt((values - mean) ** 2 @ mass)) / total


def gain_and_error(before: Floats, after: Floats, codes: Codes, mass: Floats, loss: Loss) -> tuple[float, float]:
    """Mean loss of `before` less that of `after`, and a standard error that knows of outcomes not seen.

    Both are infinite if the log loss of `before` is and that of `after` is not.
    Twenty rows without an event have almost the same gain each, but one event among them would have changed it. The
    variance is therefore at least what it would be if either probabilities were true.
    """
    if loss == "log_loss" and impossible_seen(before, codes) and not impossible_seen(after, codes):
        return float("inf"), float("inf")
    gain, error = mean_and_error(row_losses(before, codes, loss) - row_losses(after, codes, loss), mass)
    by_outcome = _losses(before, before, loss) - _losses(after, after, loss)
    errors = [error]
    for p in (before, after):
        mean = np.einsum("ij,ij->i", p, by_outcome)
        variance = np.einsum("ij,ij->i", p, (by_outcome - mean[:, None]) ** 2)
        errors.append(float(np.sqrt(variance @ mass)) / float(mass.sum()))
    return gain, max(errors)


def _losses(p: Floats, hit: Floats, loss: Loss) -> Floats:
    """Loss of each row for each class that might be observed, of probability `hit`, (n, k)."""
    if loss == "brier":
        squares = np.einsum("ij,ij->i", p, p)[:, None] - 2 * hit + 1
        return squares / 2 if p.shape[1] == 2 else squares
    return -np.log(np.maximum(hit, np.finfo(np.float64).tiny))


def held_out_estimate(value: float, error: float, *, name: str, folds: int, n: int, level: float) -> Estimate:
    """A mean loss, or a gain in it, by cross-validation, with its normal interval."""
    if not 0 < level < 1:
        fail(f"level must lie between 0 and 1, got {level!r}.", ValueError)
    # An outcome of probability 0 has occurred: there is no doubt that the mean loss is infinite.
    reach = 0.0 if np.isinf(value) else float(ndtri((1 + level) / 2)) * error
    method, target = f"{folds}-fold cross-validation", Target("mean score")
    likeness = "independent rows, new ones like these"
    interval = Interval(value - reach, value + reach, level=level, method=method, target=target, assumption=likeness)
    return Estimate(value, name=name, method=method, n=n, target=target, interval=interval)
