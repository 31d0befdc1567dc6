"""The default recalibration: an average of several maps that few rows cannot mislead far; or a choice, or a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from calibrant.data import validation
from calibrant.data.predictions import Binary, Multiclass
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.random_draws import fold_counts, fold_of_rows
from calibrant.numerics.rows import importance_weights, weighted_rows
from calibrant.numerics.rows import mean_and_error as clustered_mean
from calibrant.recalibrate import model_averaging as averaging
from calibrant.recalibrate.base import Identity, OneVsRest, Recalibrator, Sample, fitted, predicted
from calibrant.recalibrate.bayesian_average import BayesianAverage
from calibrant.recalibrate.export import predicted_expressions
from calibrant.recalibrate.expressions import Expression, ScoreExpressions, all_at_least, mixture
from calibrant.recalibrate.expressions import kept_from_certainty as kept_inside
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.recalibrate.logistic import Beta, Platt, Quadratic, Spline, Temperature
from calibrant.recalibrate.model_averaging import HeldOut, Loss
from calibrant.recalibrate.multiclass_scaling import StructuredMatrixScaling, StructuredVectorScaling
from calibrant.recalibrate.nonparametric import Isotonic
from calibrant.recalibrate.variational_maps import ConditionalLogit
from calibrant.results.estimate import Estimate
from calibrant.table.bintable import BinTable, number_of_rows

Combine = Literal["average", "choose", "stack"]
_LOSS_NAMES: dict[Loss, str] = {"log_loss": "log loss", "brier": "Brier score"}

#: Where rows times squared classes are more than this, one fold is held out instead of each in turn.
#: Test: tests/recalibrate/test_auto.py::test_a_thousand_rows_of_a_thousand_classes_hold_out_one_fold.
_WORK = 1e9

#: Beyond this many classes one map per class costs more than all other candidates, and is left out by default.
#: Test: tests/recalibrate/test_auto.py::test_one_map_per_class_is_tried_for_at_most_thirty_classes.
_ONE_VS_REST_CLASSES = 30

#: With fewer rows `ConditionalLogit` is left out by default: two rows would move a probability by .29. With 50 rows,
#: having it among the candidates costs none of 23 files of predictions more than .4 % of log loss, with 100 rows 1.9 %.
#: Test: tests/recalibrate/test_auto.py::test_fifty_rows_are_enough_for_the_conditional_logit.
_LOCAL_ROWS = 50

#: Probabilities that are mixed at once.
#: Speed: 32 MB of doubles at a time; no result depends on it.
_CHUNK = 1 << 22


@dataclass(kw_only=True, eq=False, repr=False)
class Auto(Recalibrator):
    r"""The recommended recalibration map: an average of maps that changes predictions only as far as the data support.

    Each candidate is fitted on all folds but one and scored on the remaining fold. The candidates in use are then
    fitted on all rows.

    - `combine="average"`: candidates are weighted by their prior (0.3 for the identity, the others share the rest)
      times their cross-validated likelihood,

      .. math:: q = \sum_m w_m q_m, \qquad w_m \propto \pi_m \exp \sum_i \log q_m^{(-i)}(y_i).

      For binary outcomes the default is `BayesianAverage`, which does so with marginal likelihoods. Few rows leave
      much weight on the identity, and **a map fitted to n rows never predicts 0 or 1**: no probability falls below
      :math:`\min(p, \tfrac{1}{2(n+1)})` or rises above :math:`\max(p, 1 - \tfrac{1}{2(n+1)})`, where p was predicted.
    - `combine="choose"` selects the candidate with the lowest mean loss.
    - `combine="stack"` finds the mixture, with weights on the simplex, that has the lowest loss.

    Maps are never compared by calibration errors, which do not notice information that a map destroys.

    Parameters
    ----------
    candidates : sequence of Recalibrator, optional
        `Identity` is always among them. By default, for binary outcomes, `BayesianAverage` (averaged), or temperature,
        Platt, beta, quadratic and spline maps (chosen or stacked); for more classes temperature, structured vector and
        matrix scaling, `ConditionalLogit`, one-vs-rest isotonic, and one-vs-rest `BayesianAverage` (averaged) or beta
        (chosen or stacked).
    combine : {"average", "choose", "stack"}
    loss : {"log_loss", "brier"}
        What is compared and reported. Averages always weigh by likelihood.
    cautious : bool
        Keep the predictions unless the choice or stack improves on them by more than one standard error. Not needed
        for averages.
    folds : int
        Shuffled, not stratified. With n rows, K classes and n K² > 1e9 only the first is held out.
    seed : int
        Of the folds.
    exportable : bool
        Exclude default candidates that `to_sql` and `to_onnx` cannot write: `ConditionalLogit`.
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
        The maps in use, and their weights.
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
    exportable: bool = False

    def fit_table(self, table: BinTable) -> Self:
        """Fit to a binary table. Folds are drawn from the counts of the cells, which must be whole numbers."""
        sample, fold = _table_folds(table, self.folds, self.seed)
        self._set_one_event(float(sample[2].sum()))
        self._select(*sample, fold)
        return self

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        fold = fold_of_rows(len(scores), [1] * self.folds, seed=validation.seed(self.seed))
        self._select(scores, codes, weight, fold)

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
        name, n = f"Gain in {_LOSS_NAMES[self.loss]}", round(self.weight_)
        return averaging.held_out_estimate(self.gain_, self.gain_se_, name=name, folds=self.folds, n=n, level=level)

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
        before, after = tried.probabilities[0], self._out_of_fold(tried, shares)
        self.gain_, error = averaging.gain_and_error(before, after, tried.codes, tried.mass, self.loss)
        self.gain_se_ = error * float(np.sqrt(1 + parts / (self.folds - 1)))

    def _shares(self, tried: HeldOut) -> Floats:
        """Weights of the candidates."""
        number, given = len(tried.probabilities), self._given(tried.probabilities[0].shape[1])
        if given is not None:
            return given
        if self.combine == "average":
            return averaging.posterior_weights(averaging.prior_weights(number), -tried.losses("log_loss") @ tried.mass)
        losses = tried.losses(self.loss)
        if self.combine == "stack":
            shares = averaging.stacking_weights(tried.probabilities, tried.codes, tried.mass, self.loss)
        else:
            shares = np.eye(number)[int(np.argmin(losses @ tried.mass))]
        mixture = averaging.row_losses(tried.mixture(shares), tried.codes, self.loss)
        gain, error = averaging.mean_and_error(losses[0] - mixture, tried.mass)
        return np.eye(number)[0] if self.cautious and not gain > error else shares

    def _given(self, classes: int) -> Floats | None:
        """Weights that the data do not decide: the identity is a member of the binary Bayesian average."""
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

    def _expressions(self, scores: ScoreExpressions) -> list[Expression]:
        if self.candidates is None and any(isinstance(inner, ConditionalLogit) for inner in self.maps_):
            remedy = "fit Auto(exportable=True) or another map"
            fail(f"Auto uses ConditionalLogit here, which cannot be written as SQL or ONNX: {remedy}.", TypeError)
        parts = [predicted_expressions(inner, scores) for inner in self.maps_]
        mixed = [mixture(self.weights_, column) for column in zip(*parts, strict=True)]
        mixed = parts[0] if len(parts) == 1 else mixed
        if self.combine != "average":
            return mixed
        floor = averaging.certainty_floor(self.weight_)
        if scores.classes > 2:
            return all_at_least(mixed, scores.probabilities, floor)
        q = kept_inside(mixed[1], scores.probability, floor)
        return [1.0 - q, q]

    def _bounded(self, q: Floats, p: Floats) -> Floats:
        """An average never makes certain; a map that was asked for is taken as it is."""
        return averaging.kept_from_certainty(q, p, self.weight_) if self.combine == "average" else q

    def _templates(self, scores: Scores) -> list[Recalibrator]:
        """The candidates, the identity first; notes the default ones that are left out."""
        default, reasons = self.candidates is None, dict[type[Recalibrator], str]()
        chosen = default_candidates(scores.classes, self.combine) if self.candidates is None else self.candidates
        if default and scores.classes > _ONE_VS_REST_CLASSES:
            limit = f"one map per class is tried for at most {_ONE_VS_REST_CLASSES} classes"
            reasons[OneVsRest] = f"{limit}, here are {scores.classes:,}"
        if default and len(scores) < _LOCAL_ROWS:
            reasons[ConditionalLogit] = f"it needs at least {_LOCAL_ROWS} rows, here are {len(scores)}"
        if default and self.exportable:
            reasons[ConditionalLogit] = "it cannot be written as SQL or ONNX (exportable=True)"
        out = [(repr(template), reasons[type(template)]) for template in chosen if type(template) in reasons]
        self.left_out_ = [{"name": name, "reason": reason} for name, reason in out]
        return [Identity(), *(clone(one) for one in chosen if type(one) not in {Identity, *reasons})]

    def _check(self) -> None:
        if self.loss not in ("log_loss", "brier"):
            allowed = "'log_loss' or 'brier' (a calibration error cannot choose)"
            fail(f"loss must be {allowed}, got {self.loss!r}.", ValueError)
        if self.combine not in ("average", "choose", "stack"):
            fail(f"combine must be 'average', 'choose' or 'stack', got {self.combine!r}.", ValueError)
        if self.folds < 2:
            fail(f"folds must be at least 2, got {self.folds!r}.", ValueError)


def default_candidates(classes: int, combine: Combine) -> list[Recalibrator]:
    """The maps that `Auto` tries by default. Those it averages are shrunk or smoothed: few rows flatter others."""
    if classes == 2:
        averaged = combine == "average"
        return [BayesianAverage()] if averaged else [Temperature(), Platt(), Beta(), Quadratic(), Spline()]
    structured = [Temperature(laplace=1.0), StructuredVectorScaling(), StructuredMatrixScaling(), ConditionalLogit()]
    return [*structured, OneVsRest(BayesianAverage() if combine == "average" else Beta()), OneVsRest(Isotonic())]


def _results(templates: list[Recalibrator], tried: HeldOut, shares: Floats, loss: Loss) -> list[dict[str, Any]]:
    rows, losses, briers = [], tried.losses(loss), tried.losses("brier")
    infinite = [loss == "log_loss" and averaging.impossible_seen(p, tried.codes) for p in tried.probabilities]
    for m, (template, share) in enumerate(zip(templates, shares, strict=True)):
        mean, mean_se = averaging.mean_and_error(losses[m], tried.mass)
        gain, gain_se = averaging.mean_and_error(losses[0] - losses[m], tried.mass)
        if infinite[m]:
            mean = mean_se = np.inf
        if m > 0 and (infinite[0] or infinite[m]):  # of two infinite losses none is known to be larger
            gain, gain_se = np.inf if not infinite[m] else -np.inf if not infinite[0] else 0.0, np.inf
        row = {"loss": mean, "loss_se": mean_se, "gain": gain, "gain_se": gain_se, "weight": float(share)}
        row["brier_gain"], row["brier_gain_se"] = averaging.mean_and_error(briers[0] - briers[m], tried.mass)
        rows.append({"name": repr(template), **row})
    return sorted(rows, key=lambda row: float(row["loss"]))


def _table_folds(table: BinTable, folds: int, seed: int) -> tuple[tuple[Scores, Codes, Floats], Codes]:
    """Scores, outcomes and counts of a binary table, one entry per cell, outcome and fold; and their folds."""
    cells = BinomialCells.of_table(table)
    counts = np.stack([cells.weight - cells.positive, cells.positive])
    if not np.allclose(counts, np.round(counts), atol=1e-6):
        fail(
            "Folds are drawn from the rows of each cell, so the table must hold whole counts (no weights).", ValueError
        )
    counts = fold_counts(counts, [1] * folds, seed=validation.seed(seed))
    fold, outcome, cell = np.nonzero(counts)
    return (cells.scores.take(cell), outcome, counts[fold, outcome, cell]), fold


@dataclass(frozen=True)
class Gain:
    """What a recalibration map gains on rows it was not fitted on: see `gain`.

    Attributes
    ----------
    before, after : Estimate
        Mean loss of the predictions as they are, and of the cross-fitted map.
    gain : Estimate
        `before` less `after`: positive where the map helps.
    map : str
        The map.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = gain(cal.Binary([0, 1, 0, 1, 1, 0], [0.2, 0.6, 0.4, 0.9, 0.5, 0.3]), cal.recalibrate.Temperature())
    >>> bool(found.before > 0), found.map
    (True, 'Temperature()')
    """

    before: Estimate
    after: Estimate
    gain: Estimate
    map: str

    def __str__(self) -> str:
        losses = f"{self.before:.4f} before, {self.after:.4f} after {self.map}"
        return f"{self.before.name} of {self.before.n:,} rows: {losses}; gain {self.gain:.4f} {self.gain.interval}"


def gain(
    data: Binary | Multiclass | BinTable,
    map: Recalibrator | None = None,
    *,
    score: Loss = "log_loss",
    folds: int = 5,
    seed: int = 0,
    level: float = 0.95,
) -> Gain:
    r"""Estimate how much a recalibration map lowers the mean loss of rows that it was not fitted on.

    .. math:: \hat g = \frac{\sum_i w_i (\ell_i - \ell'_i)}{\sum_i w_i}, \qquad
              s^2 = \Bigl(1 + \frac{F}{F - 1}\Bigr) \max(s_1, s_2, s_3)^2

    :math:`\ell_i` is the loss of row i as predicted, :math:`\ell'_i` that of the map fitted to the other F - 1 folds.
    :math:`s_1` is the standard error of the paired mean, over rows or over clusters (`group`); :math:`s_2` and
    :math:`s_3` are what it would be if the probabilities before or after the map were true, since outcomes that were
    not seen count too. The factor allows for maps of different folds sharing most of their rows. The interval is
    :math:`\hat g \pm z s`. Rows of a cluster stay in one fold. The loss is the one that `map` is judged by, not the one
    that it is fitted with.

    Parameters
    ----------
    data : Binary, Multiclass, or BinTable of whole counts
    map : Recalibrator, optional
        Cloned for each fold; `Auto()` by default. For forecasts see `AutoForecast.expected_gain`.
    score : {"log_loss", "brier"}
        The log loss is infinite where an outcome of predicted probability 0 was observed.
    folds : int
        Shuffled, not stratified. With n rows, K classes and n K² > 1e9 only the first is held out.
    seed : int
        Of the folds.
    level : float
        Confidence of the intervals.

    References
    ----------
    Nadeau, Bengio (2003), Inference for the Generalization Error.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = gain(cal.Binary(rng.random(2000) < p**2, p), cal.recalibrate.Platt())
    >>> print(found)
    Log loss of 2,000 rows: 0.4902 before, 0.3959 after Platt(); gain 0.0943 [0.05995, 0.1286]
    >>> found.gain.interval.low > 0
    True
    """
    map = Auto() if map is None else map
    if not isinstance(map, Recalibrator):
        fail(f"map must be a recalibration map of probabilities, e.g. Platt(); got {map!r}.", TypeError)
    if score not in _LOSS_NAMES:
        fail(f"score must be 'log_loss' or 'brier', got {score!r}.", ValueError)
    validation.whole("folds", folds, minimum=2)
    sample, cluster, fold = _in_folds(data, folds, seed)
    if len(np.unique(fold)) < 2:
        why = "there is one row, or all rows are of one group"
        fail(f"A map cannot be judged on rows it was not fitted on: {why}.", ValueError)
    parts = folds if len(fold) * sample[0].classes ** 2 <= _WORK else 1
    tried = HeldOut.of([Identity(), map], *sample, fold, parts=parts)
    unit = None if cluster is None else cluster[fold < parts]
    sharing = float(np.sqrt(1 + parts / (folds - 1)))

    def estimate(name: str, found: tuple[float, float], times: float) -> Estimate:
        n = number_of_rows(data)
        return averaging.held_out_estimate(found[0], found[1] * times, name=name, folds=folds, n=n, level=level)

    before, after = (_mean_loss(p, tried, score, unit) for p in tried.probabilities)
    loss, paired = _LOSS_NAMES[score].capitalize(), _paired_gain(tried, score, unit)
    improved = estimate(f"Gain in {_LOSS_NAMES[score]}", paired, sharing)
    return Gain(estimate(loss, before, 1.0), estimate(loss, after, sharing), improved, repr(map))


def _in_folds(data: Binary | Multiclass | BinTable, folds: int, seed: int) -> tuple[Sample, NDArray[Any] | None, Codes]:
    """What maps are fitted to, the clusters of the rows, and their folds."""
    if isinstance(data, BinTable):
        cells, fold = _table_folds(data, folds, seed)
        return cells, None, fold
    if not isinstance(data, Binary | Multiclass):
        fail(f"gain takes Binary, Multiclass or a BinTable, got {type(data).__name__}.", TypeError)
    rows = slice(None) if data.weight is None else weighted_rows(data.weight)
    weight = None if data.weight is None else importance_weights(data.weight[rows])
    cluster = None if data.group is None else data.group[rows]
    scores, codes = Scores(data.y_prob[rows], logits=False), data.y_true[rows].astype(np.intp)
    fold = fold_of_rows(len(codes), [1] * folds, seed=validation.seed(seed), cluster=cluster)
    return (scores, codes, weight), cluster, fold


def _mean_loss(p: Floats, tried: HeldOut, loss: Loss, cluster: NDArray[Any] | None) -> tuple[float, float]:
    """The mean loss and its standard error; infinite where an outcome of probability 0 was observed."""
    if loss == "log_loss" and averaging.impossible_seen(p, tried.codes):
        return np.inf, np.inf
    return _clustered(averaging.row_losses(p, tried.codes, loss), tried.mass, cluster)


def _paired_gain(tried: HeldOut, loss: Loss, cluster: NDArray[Any] | None) -> tuple[float, float]:
    """The mean of loss before less loss after, and its standard error."""
    before, after = tried.probabilities
    if loss == "log_loss" and averaging.impossible_seen(after, tried.codes):
        return (0.0 if averaging.impossible_seen(before, tried.codes) else -np.inf), np.inf
    gain, error = averaging.gain_and_error(before, after, tried.codes, tried.mass, loss)
    difference = averaging.row_losses(before, tried.codes, loss) - averaging.row_losses(after, tried.codes, loss)
    return gain, max(error, _clustered(difference, tried.mass, cluster)[1])


def _clustered(values: Floats, mass: Floats, cluster: NDArray[Any] | None) -> tuple[float, float]:
    """The mean and its standard error, over clusters where there are some; `mass` may count rows."""
    return averaging.mean_and_error(values, mass) if cluster is None else clustered_mean(values, mass, cluster)
