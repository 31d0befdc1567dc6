"""The default recalibration: an average of several maps that few rows cannot mislead far; or a choice, or a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from calibrant.data import validation
from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.random_draws import fold_counts, fold_of_rows
from calibrant.recalibrate.base import Identity, Recalibrator
from calibrant.recalibrate.bayesian_average import BayesianAverage
from calibrant.recalibrate.export import predicted_sql
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.recalibrate.isotonic import Isotonic
from calibrant.recalibrate.logistic import Beta, Platt, Quadratic, Temperature
from calibrant.recalibrate.model_averaging import (
    HeldOut,
    Loss,
    certainty_floor,
    gain_and_error,
    gain_estimate,
    impossible_seen,
    kept_from_certainty,
    mean_and_error,
    posterior_weights,
    prior_weights,
    row_losses,
    stacking_weights,
)
from calibrant.recalibrate.multiclass_scaling import StructuredMatrixScaling, StructuredVectorScaling
from calibrant.recalibrate.spline import Spline
from calibrant.recalibrate.sql_expressions import SqlScores
from calibrant.recalibrate.wrappers import OneVsRest, fitted, predicted
from calibrant.results.estimate import Estimate
from calibrant.table.bintable import BinTable

Combine = Literal["average", "choose", "stack"]

#: Where rows times squared classes are more than this, one fold is held out instead of each in turn.
_WORK = 1e9

#: Beyond this many classes one map per class costs more than all other candidates, and is left out by default.
_ONE_VS_REST_CLASSES = 30

#: Probabilities that are mixed at once.
_CHUNK = 1 << 22


@dataclass(kw_only=True, eq=False, repr=False)
class Auto(Recalibrator):
    r"""The recalibration to use without further thought: an average of maps that starts from no change.

    Each candidate is fitted on all folds but one and scored on that one, and all that are used are then fitted on all
    rows.

    - `combine="average"`: candidates count by their prior weight (0.3 for the identity, the others share the rest)
      times their cross-validated likelihood,

      .. math:: q = \sum_m w_m q_m, \qquad w_m \propto \pi_m \exp \sum_i \log q_m^{(-i)}(y_i).

      For one event the default is `BayesianAverage`, which does the same with marginal likelihoods. Few rows leave much
      weight on the identity, and **n rows never make certain**: no probability falls below
      :math:`\min(p, \tfrac{1}{2(n+1)})` or rises above :math:`\max(p, 1 - \tfrac{1}{2(n+1)})`, where p was predicted.
    - `combine="choose"` takes the candidate with the lowest mean loss.
    - `combine="stack"` takes the mixture, weights on the simplex, with the lowest loss.

    Calibration errors are never used to compare: they do not see the information a map destroys.

    Parameters
    ----------
    candidates : sequence of Recalibrator, optional
        `Identity` is always among them. By default, for one event, `BayesianAverage` (averaged), or temperature, Platt,
        beta, quadratic and spline maps (chosen or stacked); for more classes temperature, structured vector and matrix
        scaling, one-vs-rest isotonic, and one-vs-rest `BayesianAverage` (averaged) or beta (chosen or stacked).
    combine : {"average", "choose", "stack"}
    loss : {"log_loss", "brier"}
        What is compared and reported. Averages always weigh by likelihood.
    cautious : bool
        Keep the predictions as they are unless the choice or stack beats them by more than one standard error. An
        average has no need of it.
    folds : int
        Shuffled, not stratified. With n rows, K classes and n K² > 1e9 only the first is held out.
    seed : int
        Of the folds.
    input, laplace, clip
        As for all maps: see `Recalibrator`; those of the candidates are not used, but for their `laplace`.

    Attributes
    ----------
    results_ : list of dict
        One row per candidate, best first: its `name`, cross-validated `loss` with `loss_se`, its `gain` over the
        identity with the standard error `gain_se` of the paired difference, its `weight` in the result, and its
        `brier_gain` with `brier_gain_se`. The log loss is infinite, and so may be the gain, where an outcome of
        predicted probability 0 was observed; the Brier score is not.
    left_out_ : list of dict
        Default candidates that were not tried: `name` and `reason`.
    maps_, weights_ : list of Recalibrator, array
        What is used, and how much of each.
    changed_ : bool
        Whether anything but the identity is used.
    gain_, gain_se_ : float
        Cross-validated gain of the result over the identity: see `expected_gain`.

    References
    ----------
    Hoeting, Madigan, Raftery, Volinsky (1999), Bayesian Model Averaging. Yao, Vehtari, Simpson, Gelman (2018), Using
    Stacking to Average Bayesian Predictive Distributions.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2  # too high by far
    >>> auto = Auto().fit(p, y)
    >>> auto.results_[0]["gain"] > 5 * auto.results_[0]["gain_se"]
    True
    >>> auto.predict_proba([0.5])[:, 1].round(1)
    array([0.2])
    >>> auto.expected_gain().interval.low > 0.05
    True
    """

    _may_be_infinite = frozenset({"results_", "gain_", "gain_se_"})

    candidates: Sequence[Recalibrator] | None = field(default=None, kw_only=False)
    loss: Loss = "log_loss"
    combine: Combine = "average"
    cautious: bool = True
    folds: int = 5
    seed: int = 0

    def fit_table(self, table: BinTable) -> Self:
        """Fit to a table of one event. Folds are drawn from the counts of the cells, which must be whole numbers."""
        cells = BinomialCells.of_table(table)
        zeros, ones = cells.weight - cells.positive, cells.positive
        if not (np.allclose(zeros, np.round(zeros), atol=1e-6) and np.allclose(ones, np.round(ones), atol=1e-6)):
            message = (
                "Auto draws its folds from the rows of each cell, so the table must hold whole counts (no weights)."
            )
            raise ValueError(message)
        self._set_one_event(cells.total)
        counts = fold_counts(np.stack([zeros, ones]), [1] * self.folds, seed=validation.seed(self.seed))
        fold, outcome, cell = np.nonzero(counts)
        self._select(cells.scores.take(cell), outcome, counts[fold, outcome, cell], fold)
        return self

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        self._select(
            scores, codes, weight, fold_of_rows(len(scores), [1] * self.folds, seed=validation.seed(self.seed))
        )

    def expected_gain(self, *, level: float = 0.95) -> Estimate:
        r"""How much less loss a new row has after the map than before, by cross-validation of the whole procedure.

        Rows of a fold are predicted by maps, and mixed with weights, that were found without them. The variance of the
        mean is at least what it would be if the probabilities before or after the map were true, so that outcomes
        which were not seen count, and is multiplied by :math:`1 + J/(F - 1)`, where J of F folds were held out: the
        maps of different folds share most of their rows.

        Returns
        -------
        Estimate
            With an interval; negative where the map is expected to hurt.

        References
        ----------
        Nadeau, Bengio (2003), Inference for the Generalization Error.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(300)
        >>> gain = Auto().fit(p, rng.random(300) < p).expected_gain()
        >>> 0 in gain.interval
        True
        """
        check_is_fitted(self)
        name = "log loss" if self.loss == "log_loss" else "Brier score"
        return gain_estimate(self.gain_, self.gain_se_, loss=name, folds=self.folds, n=round(self.weight_), level=level)

    def _select(self, scores: Scores, codes: Codes, weight: Floats | None, fold: Codes) -> None:
        self._check()
        templates = self._templates(scores)
        parts = self.folds if len(scores) * scores.classes**2 <= _WORK else 1
        given = self._given(scores.classes)
        tried = HeldOut.of(templates, scores, codes, weight, fold, parts=parts, whole=given is not None)
        shares = self._shares(tried)
        used = np.flatnonzero(shares)
        self.maps_ = [tried.maps[m] if tried.maps else fitted(templates[m], scores, codes, weight) for m in used]
        self.weights_ = shares[used] / shares[used].sum()
        self.changed_ = bool(shares[0] < 1)
        self.results_ = _results(templates, tried, shares, self.loss)
        gain, error = gain_and_error(
            tried.probabilities[0], self._out_of_fold(tried, shares), tried.codes, tried.mass, self.loss
        )
        self.gain_, self.gain_se_ = gain, error * float(np.sqrt(1 + parts / (self.folds - 1)))

    def _shares(self, tried: HeldOut) -> Floats:
        """Weights of the candidates."""
        number, given = len(tried.probabilities), self._given(tried.probabilities[0].shape[1])
        if given is not None:
            return given
        if self.combine == "average":
            return posterior_weights(prior_weights(number), -tried.losses("log_loss") @ tried.mass)
        losses = tried.losses(self.loss)
        if self.combine == "stack":
            shares = stacking_weights(tried.probabilities, tried.codes, tried.mass, self.loss)
        else:
            shares = np.eye(number)[int(np.argmin(losses @ tried.mass))]
        mixture = row_losses(tried.mixture(shares), tried.codes, self.loss)
        gain, error = mean_and_error(losses[0] - mixture, tried.mass)
        return np.eye(number)[0] if self.cautious and not gain > error else shares

    def _given(self, classes: int) -> Floats | None:
        """Weights that the data do not decide: the identity is a member of the Bayesian average of one event."""
        only = self.combine == "average" and self.candidates is None and classes == 2
        return np.array([0.0, 1.0]) if only else None

    def _out_of_fold(self, tried: HeldOut, shares: Floats) -> Floats:
        """What the result would have predicted for the rows held out, mixed with weights found without them."""
        folds = np.unique(tried.fold)
        if len(folds) == 1 or self._given(tried.probabilities[0].shape[1]) is not None:
            return self._bounded(tried.mixture(shares), tried.probabilities[0])
        mixed = np.empty_like(tried.probabilities[0])
        for number in folds:
            here = tried.fold == number
            held, own = tried.take(here), self._shares(tried.take(~here))
            mixed[here] = self._bounded(held.mixture(own), held.probabilities[0])
        return mixed

    def _predict(self, scores: Scores) -> Floats:
        mixture = np.zeros((len(scores), scores.classes))
        step = max(_CHUNK // scores.classes, 1)
        for start in range(0, len(scores), step):
            some, here = scores.take(slice(start, start + step)), slice(start, start + step)
            for share, inner in zip(self.weights_, self.maps_, strict=True):
                mixture[here] += share * predicted(inner, some)
            mixture[here] = self._bounded(mixture[here], some.probabilities)
        return mixture

    def _sql(self, scores: SqlScores) -> list[str]:
        parts = [predicted_sql(inner, scores) for inner in self.maps_]
        mixed = [scores.dialect.mixture(self.weights_, column) for column in zip(*parts, strict=True)]
        mixed = parts[0] if len(parts) == 1 else mixed
        if self.combine != "average":
            return mixed
        floor = certainty_floor(self.weight_)
        if scores.classes > 2:
            return scores.dialect.all_at_least(mixed, scores.probabilities, floor)
        return scores.dialect.two_classes(scores.dialect.kept_from_certainty(mixed[1], scores.probability, floor))

    def _bounded(self, q: Floats, p: Floats) -> Floats:
        """An average never makes certain; a map that was asked for is taken as it is."""
        return kept_from_certainty(q, p, self.weight_) if self.combine == "average" else q

    def _templates(self, scores: Scores) -> list[Recalibrator]:
        """The candidates, the identity first; notes the default ones that are left out."""
        self.left_out_: list[dict[str, str]] = []
        chosen = default_candidates(scores.classes, self.combine) if self.candidates is None else list(self.candidates)
        if self.candidates is None and scores.classes > _ONE_VS_REST_CLASSES:
            slow = [template for template in chosen if isinstance(template, OneVsRest)]
            chosen = [template for template in chosen if not isinstance(template, OneVsRest)]
            reason = (
                f"one map per class is tried for at most {_ONE_VS_REST_CLASSES} classes, here are {scores.classes:,}"
            )
            self.left_out_ = [{"name": repr(template), "reason": reason} for template in slow]
        return [Identity(), *(clone(template) for template in chosen if not isinstance(template, Identity))]

    def _check(self) -> None:
        if self.loss not in ("log_loss", "brier"):
            message = f"loss must be 'log_loss' or 'brier' (a calibration error cannot choose), got {self.loss!r}."
            raise ValueError(message)
        if self.combine not in ("average", "choose", "stack"):
            message = f"combine must be 'average', 'choose' or 'stack', got {self.combine!r}."
            raise ValueError(message)
        if self.folds < 2:
            message = f"folds must be at least 2, got {self.folds!r}."
            raise ValueError(message)


def default_candidates(classes: int, combine: Combine) -> list[Recalibrator]:
    """The maps that `Auto` tries by default. Those it averages are shrunk or smoothed: few rows flatter others."""
    if classes == 2:
        averaged = combine == "average"
        return [BayesianAverage()] if averaged else [Temperature(), Platt(), Beta(), Quadratic(), Spline()]
    structured: list[Recalibrator] = [Temperature(laplace=1.0), StructuredVectorScaling(), StructuredMatrixScaling()]
    return [*structured, OneVsRest(BayesianAverage() if combine == "average" else Beta()), OneVsRest(Isotonic())]


def _results(templates: list[Recalibrator], tried: HeldOut, shares: Floats, loss: Loss) -> list[dict[str, Any]]:
    rows, losses, briers = [], tried.losses(loss), tried.losses("brier")
    infinite = [loss == "log_loss" and impossible_seen(p, tried.codes) for p in tried.probabilities]
    for m, (template, share) in enumerate(zip(templates, shares, strict=True)):
        mean, mean_se = mean_and_error(losses[m], tried.mass)
        gain, gain_se = mean_and_error(losses[0] - losses[m], tried.mass)
        if infinite[m]:
            mean = mean_se = np.inf
        if m > 0 and (infinite[0] or infinite[m]):  # of two infinite losses none is known to be larger
            gain, gain_se = np.inf if not infinite[m] else -np.inf if not infinite[0] else 0.0, np.inf
        row = {"loss": mean, "loss_se": mean_se, "gain": gain, "gain_se": gain_se, "weight": float(share)}
        row["brier_gain"], row["brier_gain_se"] = mean_and_error(briers[0] - briers[m], tried.mass)
        rows.append({"name": repr(template), **row})
    return sorted(rows, key=lambda row: float(row["loss"]))
