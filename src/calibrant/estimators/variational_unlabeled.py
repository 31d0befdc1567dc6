"""The variational estimator on positive-unlabeled data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.estimators.log_scores import log_provenance
from calibrant.estimators.proper_scores import log_loss
from calibrant.estimators.variational_engine import Settings
from calibrant.estimators.variational_norms import label
from calibrant.numerics.arrays import Floats
from calibrant.numerics.folds import fold_of_rows
from calibrant.numerics.logistic import affine, positive_unlabeled_fit
from calibrant.numerics.special import clipped_log_odds, expit
from calibrant.results.estimate import Estimate


def pu_calibration_error(data: PositiveUnlabeled, norm: Any, settings: Settings) -> Estimate:
    r"""Variational calibration error from positives and unlabeled rows: a lower bound in expectation.

    .. math:: \text{L1: } \pi\,\mathrm{mean}_P\, s - \mathrm{mean}_U\, s f, \quad s = \operatorname{sign}(g - f),
              \qquad \text{squared: } \mathrm{mean}_U(f^2 - g^2) - 2\pi\,\mathrm{mean}_P(f - g)

    and the difference of log losses (with the floor) for "kl", where f is the predicted and g the recalibrated
    probability by a map fitted without the row's fold. The recalibrator is fitted to a `PositiveUnlabeled`; by default
    `PUPlatt`.
    """
    if not (norm in ("squared", "kl") or isinstance(norm, int | float)):
        message = f"norm must be a number of at least 1, 'squared' or 'kl' on positive-unlabeled data, got {norm!r}."
        raise ValueError(message)
    repeats = settings.repeats
    found = [_cross_fitted(data, norm, settings, repeat) for repeat in range(repeats)]
    value, error = np.mean(found, axis=0)
    words = f"{settings.folds} folds{f' x {repeats}' if repeats > 1 else ''}, {_name(settings.recalibrator)}"
    details: dict[str, Any] = {}
    if norm == "kl":
        words, details = log_provenance(words, settings.floor, infinite=0 if np.isfinite(value) else None)
    return Estimate(
        float(value),
        name=f"Calibration error ({label(norm)})",
        method=words,
        n=len(data),
        details={"standard_error": float(error), **details},
    )


def _cross_fitted(data: PositiveUnlabeled, norm: Any, settings: Settings, repeat: int) -> tuple[float, float]:
    """Value and standard error from one division into folds."""
    positive, unlabeled = _folds(data, settings.folds, np.random.default_rng([settings.seed, repeat]))
    recalibrated = [np.empty(len(side)) for side in (data.positive, data.unlabeled)]
    for fold in range(settings.folds):
        fitted = _fitted(settings.recalibrator, _without(data, positive != fold, unlabeled != fold))
        for out, side, where in zip(recalibrated, (data.positive, data.unlabeled), (positive, unlabeled), strict=True):
            if (where == fold).any():
                out[where == fold] = fitted.predict_proba(side[where == fold])[:, 1]
    if norm == "kl":
        after = PositiveUnlabeled(
            recalibrated[0], _rest(data, recalibrated[1]), prior=data.prior, scenario=data.scenario
        )
        if data.weight is not None:
            after._attach(data.weight, None)
        gain = log_loss(data, floor=settings.floor) - log_loss(after, floor=settings.floor)
        return float(gain), float("nan")
    return _mean_and_error(data, *_contributions(data, recalibrated, squared=norm == "squared"))


def _contributions(data: PositiveUnlabeled, recalibrated: list[Floats], *, squared: bool) -> tuple[Floats, Floats]:
    """Contribution of each positive (to be multiplied by the prior) and of each unlabeled row."""
    f_p, f_u = (side.astype(np.float64, copy=False) for side in (data.positive, data.unlabeled))
    if squared:
        return -2 * (f_p - recalibrated[0]), f_u**2 - recalibrated[1] ** 2
    return np.sign(recalibrated[0] - f_p), -np.sign(recalibrated[1] - f_u) * f_u


def _mean_and_error(data: PositiveUnlabeled, of_p: Floats, of_u: Floats) -> tuple[float, float]:
    w_p, w_u = (
        np.full(len(values), 1 / len(values)) if weight is None else weight / weight.sum()
        for values, weight in ((of_p, data.positive_weight), (of_u, data.unlabeled_weight))
    )
    first, second = float(w_p @ of_p), float(w_u @ of_u)
    noise_p, noise_u = data.prior * w_p * (of_p - first), w_u * (of_u - second)
    if data.nested:  # the labelled rows are the first of all rows
        noise_u[: len(of_p)] += noise_p
        noise_p = np.zeros(1)
    return data.prior * first + second, float(np.sqrt(noise_p @ noise_p + noise_u @ noise_u))


def _folds(data: PositiveUnlabeled, folds: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Fold of each positive and of each unlabeled row. Groups stay together, and so does a row that is both."""
    split = len(data.positive)
    if data.group is not None or data.nested:
        fold = fold_of_rows(len(data), [1] * folds, seed=rng, cluster=data.group)
    else:
        fold = np.concatenate([fold_of_rows(size, [1] * folds, seed=rng) for size in (split, len(data.unlabeled))])
    if min(len(np.unique(fold[:split])), len(np.unique(fold))) < 2:
        message = f"Cross-fitting needs positives in at least two folds, got {split} positives in {folds} folds."
        raise ValueError(message)
    return fold[:split], fold if data.nested else fold[split:]


def _without(data: PositiveUnlabeled, positive: NDArray[np.bool_], unlabeled: NDArray[np.bool_]) -> PositiveUnlabeled:
    rest = _rest(data, unlabeled)
    weight = None
    if data.weight is not None:
        weight = np.concatenate([data.positive_weight[positive], _rest(data, data.unlabeled_weight)[rest]])
    return PositiveUnlabeled(
        data.positive[positive],
        _rest(data, data.unlabeled)[rest],
        prior=data.prior,
        scenario=data.scenario,
        weight=weight,
    )


def _rest(data: PositiveUnlabeled, values: NDArray[Any]) -> NDArray[Any]:
    """The rows that are not labelled: all of the unlabeled sample, or what follows the positives in a single one."""
    return values[len(data.positive) :] if data.nested else values


def _fitted(recalibrator: Any, data: PositiveUnlabeled) -> Any:
    from sklearn.base import clone

    return (_Platt() if recalibrator is None else clone(recalibrator)).fit(data)


class _Platt:
    """Platt scaling of the unbiased risk mean_U softplus(z) - prior mean_P z; `PUPlatt` is the same as a public map."""

    def fit(self, data: PositiveUnlabeled) -> _Platt:
        self.coefficients = positive_unlabeled_fit(
            affine(clipped_log_odds(data.positive)),
            affine(clipped_log_odds(data.unlabeled)),
            positive_mass=data.prior * _shares(len(data.positive), data.positive_weight),
            unlabeled_mass=_shares(len(data.unlabeled), data.unlabeled_weight),
            start=np.array([0.0, 1.0]),
            ridge=1 / len(data.positive),
        )
        return self

    def predict_proba(self, scores: Floats) -> Floats:
        p = expit(affine(clipped_log_odds(scores)) @ self.coefficients)
        return np.stack([1 - p, p], axis=1)


def _shares(size: int, weight: Floats | None) -> Floats:
    return np.full(size, 1 / size) if weight is None else weight / weight.sum()


def _name(recalibrator: Any) -> str:
    return "PUPlatt" if recalibrator is None else type(recalibrator).__name__
