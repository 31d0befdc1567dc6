r"""The variational estimator of the calibration error, of labelled and of positive-unlabeled rows.

.. math:: \mathrm{CE}_d(f) = E\,d\bigl(f(X), E[Y|f(X)]\bigr) = \mathrm{risk}(f) - \min_g \mathrm{risk}(g\circ f)

for a risk that belongs to the distance d. A map fitted on other rows is at best the minimum, so the difference of the
two risks out of fold has an expectation of at most the calibration error, in any norm and any number of classes.
Without labels of negatives, the unbiased risk of positive and unlabeled rows replaces the risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Column, Columns, Predictions
from calibrant.data.validation import fail
from calibrant.estimators.cross_fitting import Norm, checked_norm, finite_norm, function_gradient, norm_label
from calibrant.estimators.proper_scores import Score, log_loss, log_provenance
from calibrant.estimators.variational_engine import Bound, Settings, TopLabel, Variational
from calibrant.numerics.arrays import Floats, clipped_log_odds, expit
from calibrant.numerics.logistic.binary import affine, positive_unlabeled_fit
from calibrant.numerics.random_draws import fold_of_rows, generator
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates, takes_columns
from calibrant.table.bintable import BinTable

Source = Predictions | BinTable | Sequence[BinTable] | Column
"""Predictions, a fine table, a list of fine tables (one per fold), or y_true."""


@estimates("true error")
def variational_error(
    data: Source = None,
    y_prob: Column = None,
    *,
    norm: Norm = 1,
    recalibrator: Any = None,
    folds: int = 5,
    repeats: int | None = None,
    seed: int = 0,
    top_label: TopLabel = False,
    bound: Bound | None = None,
    floor: float = 0.0,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Variational (cross-fitted) calibration error in any norm: a lower bound in expectation.

    .. math:: \widehat{CE}_p = \frac1W\sum_i w_i \langle u_p(g_i - f_i), y_i - f_i\rangle

    where f_i is the predicted and g_i the recalibrated probability of row i by a map fitted without its fold, y_i the
    outcome (one-hot for multiclass data), and u_p(d) the gradient of the p-norm at d. The squared and the KL error
    are differences of Brier and log scores. The result may be negative by chance; use `.clipped` to clip it at zero.

    The target in the norm p is :math:`(E|f - E[Y|f]|^p)^{1/p}` for one probability (binary predictions, top labels), as
    for `ece`, and :math:`E\lVert f - E[Y|f]\rVert_p`, the mean length of a vector, for multiclass data. So for one
    probability the norm is that of the whole function, with :math:`u_p(d)_i = \operatorname{sign}(d_i)
    |d_i|^{p-1} / (\mathrm{mean}|d|^p)^{(p-1)/p}`, mean over the fold. The paper uses the length of each row there too,
    which for one number is the L1 error for every p: ``norm=1`` here.

    Parameters
    ----------
    data : Binary, Multiclass, PositiveUnlabeled, fine BinTable, list of fine BinTables (one per fold), or y_true
        Rows of one `group` stay in one fold. The rows of a single table are divided into folds at random.
    norm : float >= 1, inf, "squared", "kl", or Distance
        inf for multiclass data only; for one probability see `mce`. "kl" is infinite where an outcome of predicted
        probability 0 was observed, unless `floor` is set; ``details`` then counts these rows and names the first.
    recalibrator : object with fit and predict_proba, optional
        A map of `calibrant.recalibrate` or any scikit-learn classifier, cloned for every fold and fed with the
        predicted probabilities (one column for binary). By default a fast average of smoothers of the logit (binary)
        or a conditional logit with local corrections (multiclass data), tuned inside the training folds.
    folds : int
        Number of folds. They are not stratified, because that would break the bound.
    repeats : int, optional
        Number of divisions into folds to average over; by default 3 for at most 2,000,000 probabilities of three or
        more classes, else 1. The order of the rows never matters.
    seed : int
        Decides the folds.
    top_label : False, "reduced" or "full"
        For multiclass data: the confidence of the predicted class against its accuracy, given the confidence
        alone ("reduced", the classical confidence calibration) or given the whole vector ("full", at least as
        large).
    bound : SplitSampleBound or CrossFittedBound, optional
        Add a lower confidence bound as `.interval`.
    floor : float in [0, 0.5)
        For "kl": predicted and recalibrated probabilities are moved into [floor, 1 - floor] before logarithms are
        taken, multiclass rows then divided by their sum; see `log_loss`. The estimate is then that of the KL
        error of these predictions, and `method` and `details` name the floor.

    Returns
    -------
    Estimate
        With `details`: "standard_error" (plain; near calibration the spread is up to 1.5 times as large, since folds
        share training rows) and, for binary tasks and top labels, "overconfidence" and "underconfidence".

    References
    ----------
    Berta, Braun, Holzmüller, Bach, Jordan (2026), A Variational Estimator for Calibration Errors, Propositions 1, 2.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> error = variational_error(rng.random(2000) < p**2, p)  # the true error is 1/6
    >>> error
    <Variational error (L1) 0.16..., n=2_000, 5 folds, averaged smoothers>
    >>> round(error.details["standard_error"], 3)
    0.008
    """
    settings = Settings(recalibrator, folds, repeats, seed, top_label, bound, floor)
    norm = checked_norm(norm)
    settings.require_log_score(used=norm == "kl", where="norm='kl'")
    if isinstance(data, PositiveUnlabeled) and bound is None:
        return pu_variational_error(data, norm, settings)
    return Variational.of(data, y_prob, settings).error(norm)


@takes_columns
def variational_errors(
    data: Source = None,
    y_prob: Column = None,
    *,
    norms: Sequence[Norm],
    recalibrator: Any = None,
    folds: int = 5,
    repeats: int | None = None,
    seed: int = 0,
    top_label: TopLabel = False,
    bound: Bound | None = None,
    floor: float = 0.0,
    **columns: Unpack[Columns],
) -> list[Estimate]:
    """Variational calibration errors in several norms, all from one set of maps; see `variational_error`.

    `floor` concerns "kl" alone.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> for error in variational_errors(rng.random(2000) < p**2, p, norms=[1, "squared", "kl"]):
    ...     print(error)
    0.16...
    0.03...
    0.09...
    """
    wanted = [checked_norm(norm) for norm in norms]
    settings = Settings(recalibrator, folds, repeats, seed, top_label, bound, floor)
    settings.require_log_score(used="kl" in wanted, where="'kl' among the norms")
    fitted = Variational.of(data, y_prob, settings)
    return [fitted.error(norm) for norm in wanted]


@estimates("over- or underconfidence")
def overconfidence(
    data: Source = None,
    y_prob: Column = None,
    *,
    norm: Norm = 1,
    recalibrator: Any = None,
    folds: int = 5,
    repeats: int | None = None,
    seed: int = 0,
    top_label: Literal["reduced", "full"] = "reduced",
    around_half: bool = False,
    bound: Bound | None = None,
    floor: float = 0.0,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""The part of the calibration error that comes from predictions too far from 1/2.

    .. math:: E\bigl[1\{E[Y|f] \text{ is on the side of } \tfrac12 \text{ seen from } f\}\; d(f, E[Y|f])\bigr]

    For multiclass data this refers to the predicted class: its accuracy is below its confidence. Together with
    `underconfidence` (same options) it gives `variational_error` exactly. A predicted probability of exactly 1/2
    cannot be overconfident: its error counts as underconfidence. In a norm p > 1 the part is that of
    :math:`E|f - E[Y|f]|^p`, divided by the (p - 1)-th power of the whole error.

    Parameters
    ----------
    around_half : bool
        Use the definition of Berta et al. (2026), Appendix C, for multiclass data too: in the loss, g is replaced by

        .. math:: g^{over} = \min(g, f) \text{ if } f > \tfrac12, \quad \max(g, f) \text{ if } f < \tfrac12, \quad
                  \tfrac12 \text{ if } f = \tfrac12

        (max and min exchanged for underconfidence), with f the confidence of the predicted class. A confidence of .3
        where the accuracy is .2 is then underconfident, as it is for one of two classes; predictions of exactly 1/2
        count for neither side, which is all that changes for binary predictions.

    The other options are those of `variational_error`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(0.5, 0.5, 5000)
    >>> rate = 1 / (1 + ((1 - p) / p) ** 0.4)  # the true probability: nearer to 1/2
    >>> y = rng.random(5000) < rate
    >>> print(f"{overconfidence(y, p):.3f} {underconfidence(y, p):.3f}")
    0.121 -0.000
    """
    settings = Settings(recalibrator, folds, repeats, seed, top_label, bound, floor, around_half)
    return _side("over", data, y_prob, norm, settings)


@estimates("over- or underconfidence")
def underconfidence(
    data: Source = None,
    y_prob: Column = None,
    *,
    norm: Norm = 1,
    recalibrator: Any = None,
    folds: int = 5,
    repeats: int | None = None,
    seed: int = 0,
    top_label: Literal["reduced", "full"] = "reduced",
    around_half: bool = False,
    bound: Bound | None = None,
    floor: float = 0.0,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""The part of the calibration error that comes from predictions too near to 1/2; see `overconfidence`.

    .. math:: E\bigl[1\{E[Y|f] \text{ is not on the side of } \tfrac12 \text{ seen from } f\}\; d(f, E[Y|f])\bigr]

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> rate = 1 / (1 + ((1 - p) / p) ** 2)  # the true probability: farther from 1/2
    >>> y = rng.random(5000) < rate
    >>> bool(underconfidence(y, p) > 0.08), bool(overconfidence(y, p) < 0.01)
    (True, True)
    """
    settings = Settings(recalibrator, folds, repeats, seed, top_label, bound, floor, around_half)
    return _side("under", data, y_prob, norm, settings)


@estimates("refinement")
def refinement(
    data: Source = None,
    y_prob: Column = None,
    *,
    score: Score = "brier",
    recalibrator: Any = None,
    folds: int = 5,
    repeats: int | None = None,
    seed: int = 0,
    floor: float = 0.0,
    **columns: Unpack[Columns],
) -> Estimate:
    r"""Mean score after recalibration, :math:`\widehat{risk}(g\circ f)`, out of fold.

    An upper bound of the refinement in expectation. Score = calibration error + refinement, exactly. `floor` bounds
    log scores, as in `log_loss`; the other options are those of `variational_error`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> refinement(rng.random(2000) < p**2, p)  # the true one is 1/3 - 1/5
    <Refinement (brier) 0.1..., n=2_000, 5 folds, averaged smoothers>
    """
    settings = Settings(recalibrator, folds, repeats, seed, floor=floor)
    settings.require_log_score(used=score == "log_loss", where="score='log_loss'")
    return Variational.of(data, y_prob, settings).refinement(score)


def _side(which: Literal["over", "under"], data: Source, y_prob: Column, norm: Norm, settings: Settings) -> Estimate:
    """The part of the error that lies on one side."""
    norm = checked_norm(norm)
    settings.require_log_score(used=norm == "kl", where="norm='kl'")
    return Variational.of(data, y_prob, settings).part(norm, which)


def pu_variational_error(data: PositiveUnlabeled, norm: Any, settings: Settings) -> Estimate:
    r"""Variational calibration error from positives and unlabeled rows: a lower bound in expectation.

    .. math:: \text{L1: } \pi\,\mathrm{mean}_P\, s - \mathrm{mean}_U\, s f, \quad s = \operatorname{sign}(g - f),
              \qquad \text{squared: } \mathrm{mean}_U(f^2 - g^2) - 2\pi\,\mathrm{mean}_P(f - g)

    with :math:`s\,|g - f|^{p-1} / (\mathrm{mean}_U |g - f|^p)^{(p-1)/p}` in place of s for the Lp error,
    and the difference of log losses (with the floor) for "kl", where f is the predicted and g the recalibrated
    probability by a map fitted without the row's fold. The recalibrator is fitted to a `PositiveUnlabeled`; by default
    `PUPlatt`.
    """
    if not (norm in ("squared", "kl") or isinstance(norm, int | float)):
        allowed = "a number of at least 1, 'squared' or 'kl' on positive-unlabeled data"
        fail(f"norm must be {allowed}, got {norm!r}.", ValueError)
    repeats = settings.repeats or 1
    value, error = np.mean([_cross_fitted(data, norm, settings, repeat) for repeat in range(repeats)], axis=0)
    map_name = "PUPlatt" if settings.recalibrator is None else type(settings.recalibrator).__name__
    words, more = f"{settings.folds} folds{f' x {repeats}' if repeats > 1 else ''}, {map_name}", dict[str, Any]()
    if norm == "kl":
        words, more = log_provenance(words, settings.floor, infinite=0 if np.isfinite(value) else None)
    name, details = f"Variational error ({norm_label(norm)})", {"standard_error": float(error), **more}
    return Estimate(float(value), name=name, method=words, n=len(data), details=details)


def _cross_fitted(data: PositiveUnlabeled, norm: Any, settings: Settings, repeat: int) -> tuple[float, float]:
    """Value and standard error from one division into folds."""
    from sklearn.base import clone

    positive, unlabeled = _folds(data, settings.folds, generator(settings.seed, "folds of positives", repeat))
    recalibrated = [np.empty(len(side)) for side in (data.positive, data.unlabeled)]
    for fold in range(settings.folds):
        fresh = _Platt() if settings.recalibrator is None else clone(settings.recalibrator)
        fitted = fresh.fit(_without(data, positive != fold, unlabeled != fold))
        for out, side, where in zip(recalibrated, (data.positive, data.unlabeled), (positive, unlabeled), strict=True):
            if (where == fold).any():
                out[where == fold] = fitted.predict_proba(side[where == fold])[:, 1]
    if norm == "kl":
        sides = recalibrated[0], _rest(data, recalibrated[1])
        after = PositiveUnlabeled(*sides, prior=data.prior, scenario=data.scenario)
        if data.weight is not None:
            after._attach(data.weight, None)
        gain = log_loss(data, floor=settings.floor) - log_loss(after, floor=settings.floor)
        return float(gain), float("nan")
    return _mean_and_error(data, *_contributions(data, recalibrated, norm))


def _contributions(data: PositiveUnlabeled, recalibrated: list[Floats], norm: Any) -> tuple[Floats, Floats]:
    """Contribution of each positive (to be multiplied by the prior) and of each unlabeled row."""
    f_p, f_u = (side.astype(np.float64, copy=False) for side in (data.positive, data.unlabeled))
    if norm == "squared":
        return -2 * (f_p - recalibrated[0]), f_u**2 - recalibrated[1] ** 2
    # Positives have no weight in the norm: the rows of the population are the unlabeled ones.
    weight = np.concatenate([np.zeros(len(f_p)), _shares(len(f_u), data.unlabeled_weight)])
    gap, one_fold = np.concatenate([recalibrated[0] - f_p, recalibrated[1] - f_u]), np.zeros(len(weight), np.intp)
    slope = function_gradient(gap, finite_norm(norm), weight, one_fold)
    return slope[: len(f_p)], -slope[len(f_p) :] * f_u


def _mean_and_error(data: PositiveUnlabeled, of_p: Floats, of_u: Floats) -> tuple[float, float]:
    w_p, w_u = _shares(len(of_p), data.positive_weight), _shares(len(of_u), data.unlabeled_weight)
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
        fail(
            f"Cross-fitting needs positives in at least two folds, got {split} positives in {folds} folds.", ValueError
        )
    return fold[:split], fold if data.nested else fold[split:]


def _without(data: PositiveUnlabeled, positive: NDArray[np.bool_], unlabeled: NDArray[np.bool_]) -> PositiveUnlabeled:
    rest, weight = _rest(data, unlabeled), None
    if data.weight is not None:
        weight = np.concatenate([data.positive_weight[positive], _rest(data, data.unlabeled_weight)[rest]])
    sides = data.positive[positive], _rest(data, data.unlabeled)[rest]
    return PositiveUnlabeled(*sides, prior=data.prior, scenario=data.scenario, weight=weight)


def _rest(data: PositiveUnlabeled, values: NDArray[Any]) -> NDArray[Any]:
    """The rows that are not labelled: all of the unlabeled sample, or what follows the positives in a single one."""
    return values[len(data.positive) :] if data.nested else values


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
