r"""The variational estimator: how much would recalibration lower the risk, on rows the map has not seen?

.. math:: \mathrm{CE}_d(f) = E\,d\bigl(f(X), E[Y|f(X)]\bigr) = \mathrm{risk}(f) - \min_g \mathrm{risk}(g\circ f)

for a risk that belongs to the distance d. A map fitted on other rows is at best the minimum, so the difference of the
two risks out of fold has an expectation of at most the calibration error, in any norm and any number of classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from numpy.typing import ArrayLike

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Multiclass, Predictions
from calibrant.estimators import variational_norms as norms_
from calibrant.estimators.averaged import averaged_error
from calibrant.estimators.lower_bound import Bound
from calibrant.estimators.proper_scores import Score
from calibrant.estimators.variational_engine import Settings, TopLabel, Variational
from calibrant.estimators.variational_norms import Norm
from calibrant.estimators.variational_unlabeled import pu_calibration_error
from calibrant.results.estimate import Estimate
from calibrant.results.target import Target, estimates
from calibrant.table.bintable import BinTable

Source = Predictions | BinTable | Sequence[BinTable] | ArrayLike
"""Predictions, a fine table, a list of fine tables (one per fold), or y_true."""


@estimates("true error")
def calibration_error(
    data: Source,
    y_prob: ArrayLike | None = None,
    /,
    *,
    norm: Norm = 1,
    method: Literal["cross-fitted", "averaged"] = "cross-fitted",
    recalibrator: Any = None,
    folds: int = 5,
    repeats: int = 1,
    seed: int = 0,
    top_label: TopLabel = False,
    bound: Bound | None = None,
    floor: float = 0.0,
) -> Estimate:
    r"""Variational (cross-fitted) calibration error in any norm: a lower bound in expectation.

    .. math:: \widehat{CE}_p = \frac1W\sum_i w_i \langle u_p(g_i - f_i), y_i - f_i\rangle

    where f_i is the predicted and g_i the recalibrated probability of row i by a map fitted without its fold, y_i the
    outcome (one-hot for several classes), and u_p(d) the gradient of the p-norm at d. The squared and the KL error
    are differences of Brier and log scores. Noise may carry the result below zero; it is not clipped (`.clipped`
    is). For binary predictions the distance is that of the single numbers P(Y = 1), the same for every p.

    Parameters
    ----------
    data : Binary, Multiclass, PositiveUnlabeled, fine BinTable, list of fine BinTables (one per fold), or y_true
        Rows of one `group` stay in one fold. The rows of a single table are divided into folds at random.
    norm : float >= 1, inf, "squared", "kl", or Distance
        "kl" is infinite where an outcome of predicted probability 0 was observed: nothing is clipped unless `floor`
        says so. ``details`` then counts these rows and names the first.
    method : {"cross-fitted", "averaged"}
        "averaged" is `averaged_error`: no bound but less bias, for binary predictions, their fine tables and top labels
        in a finite norm. It takes none of the options below but ``top_label="reduced"``.
    recalibrator : object with fit and predict_proba, optional
        A map of `calibrant.recalibrate` or any scikit-learn classifier, cloned for every fold and fed with the
        predicted probabilities (one column for binary). By default a fast average of smoothers of the logit (binary)
        or a conditional logit with local corrections (several classes), tuned inside the training folds.
    folds, repeats : int
        Number of folds, and of divisions into folds to average over. Folds are not stratified: that would break
        the bound.
    seed : int
        Decides the folds.
    top_label : False, "reduced" or "full"
        For several classes: the confidence of the predicted class against its accuracy, given the confidence
        alone ("reduced", the classical confidence calibration) or given the whole vector ("full", at least as
        large).
    bound : SplitSampleBound or CrossFittedBound, optional
        Add a lower confidence bound as `.interval`.
    floor : float in [0, 0.5)
        For "kl": predicted and recalibrated probabilities are moved into [floor, 1 - floor] before logarithms are
        taken, rows of several classes then divided by their sum; see `log_loss`. The estimate is then that of the KL
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
    >>> error = calibration_error(rng.random(2000) < p**2, p)  # the true error is 1/6
    >>> error
    <Calibration error (L1) 0.16..., n=2_000, 5 folds, averaged smoothers>
    >>> round(error.details["standard_error"], 3)
    0.008
    """
    settings = Settings(recalibrator, folds, repeats, seed, top_label, bound, floor)
    if method == "averaged":
        return _averaged(data, y_prob, norm, settings)
    if method != "cross-fitted":
        message = f"method must be 'cross-fitted' or 'averaged', got {method!r}."
        raise ValueError(message)
    norm = norms_.checked(norm)
    settings.require_log_score(used=norm == "kl", where="norm='kl'")
    if isinstance(data, PositiveUnlabeled) and bound is None:
        return pu_calibration_error(data, norm, settings)
    return Variational.of(data, y_prob, settings).error(norm)


def _averaged(data: Any, y_prob: ArrayLike | None, norm: Norm, settings: Settings) -> Estimate:
    plain = replace(settings, top_label=False, seed=0) == Settings()
    if not plain or isinstance(norm, str | norms_.Distance) or settings.top_label == "full":
        message = (
            "method='averaged' needs a finite norm, and takes neither recalibrator, folds, repeats, bound, floor nor "
            "top_label='full'; leave them out or use method='cross-fitted'."
        )
        raise ValueError(message)
    one = data.top_label() if settings.top_label and isinstance(data, Multiclass) else data
    return averaged_error(one, y_prob, norm=norm)


def calibration_errors(
    data: Source,
    y_prob: ArrayLike | None = None,
    /,
    *,
    norms: Sequence[Norm],
    recalibrator: Any = None,
    folds: int = 5,
    repeats: int = 1,
    seed: int = 0,
    top_label: TopLabel = False,
    bound: Bound | None = None,
    floor: float = 0.0,
) -> list[Estimate]:
    """Variational calibration errors in several norms, all from one set of maps; see `calibration_error`.

    `floor` concerns "kl" alone.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> for error in calibration_errors(rng.random(2000) < p**2, p, norms=[1, "squared", "kl"]):
    ...     print(error)
    0.16...
    0.03...
    0.09...
    """
    wanted = [norms_.checked(norm) for norm in norms]
    settings = Settings(recalibrator, folds, repeats, seed, top_label, bound, floor)
    settings.require_log_score(used="kl" in wanted, where="'kl' among the norms")
    fitted = Variational.of(data, y_prob, settings)
    return [fitted.error(norm).with_target(Target("true error", norm)) for norm in wanted]


@estimates("over- or underconfidence")
def overconfidence(
    data: Source,
    y_prob: ArrayLike | None = None,
    /,
    *,
    norm: Norm = 1,
    recalibrator: Any = None,
    folds: int = 5,
    repeats: int = 1,
    seed: int = 0,
    top_label: Literal["reduced", "full"] = "reduced",
    bound: Bound | None = None,
    floor: float = 0.0,
) -> Estimate:
    r"""The part of the calibration error that comes from predictions too far from 1/2.

    .. math:: E\bigl[1\{E[Y|f] \text{ is nearer to } \tfrac12 \text{ than } f\}\; d(f, E[Y|f])\bigr]

    For several classes the predicted class is meant: its accuracy is below its confidence. Together with
    `underconfidence` (same options) it gives `calibration_error` exactly. A predicted probability of exactly 1/2
    cannot be overconfident: its error counts as underconfidence.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(0.5, 0.5, 5000)
    >>> rate = 1 / (1 + ((1 - p) / p) ** 0.4)  # the true probability: nearer to 1/2
    >>> y = rng.random(5000) < rate
    >>> print(f"{overconfidence(y, p):.3f} {underconfidence(y, p):.3f}")
    0.121 -0.001
    """
    return _side("over", data, y_prob, norm, Settings(recalibrator, folds, repeats, seed, top_label, bound, floor))


@estimates("over- or underconfidence")
def underconfidence(
    data: Source,
    y_prob: ArrayLike | None = None,
    /,
    *,
    norm: Norm = 1,
    recalibrator: Any = None,
    folds: int = 5,
    repeats: int = 1,
    seed: int = 0,
    top_label: Literal["reduced", "full"] = "reduced",
    bound: Bound | None = None,
    floor: float = 0.0,
) -> Estimate:
    r"""The part of the calibration error that comes from predictions too near to 1/2; see `overconfidence`.

    .. math:: E\bigl[1\{E[Y|f] \text{ is not nearer to } \tfrac12 \text{ than } f\}\; d(f, E[Y|f])\bigr]

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
    return _side("under", data, y_prob, norm, Settings(recalibrator, folds, repeats, seed, top_label, bound, floor))


@estimates("refinement")
def refinement(
    data: Source,
    y_prob: ArrayLike | None = None,
    /,
    *,
    score: Score = "brier",
    recalibrator: Any = None,
    folds: int = 5,
    repeats: int = 1,
    seed: int = 0,
    floor: float = 0.0,
) -> Estimate:
    r"""Mean score after recalibration, :math:`\widehat{risk}(g\circ f)`, out of fold.

    An upper bound of the refinement in expectation. Score = calibration error + refinement, exactly. `floor` bounds
    log scores, as in `log_loss`; the other options are those of `calibration_error`.

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


def _side(
    which: Literal["over", "under"], data: Source, y_prob: ArrayLike | None, norm: Norm, settings: Settings
) -> Estimate:
    """The part of the error that lies on one side."""
    norm = norms_.checked(norm)
    settings.require_log_score(used=norm == "kl", where="norm='kl'")
    return Variational.of(data, y_prob, settings).part(norm, which)
