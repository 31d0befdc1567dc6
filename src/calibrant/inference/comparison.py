"""Is model A better calibrated than model B? Paired differences on the same rows, for every task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant.data import validation
from calibrant.data.forecasts import Distribution, Forecast
from calibrant.data.judged import Judged
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Confidence, Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.estimators.cross_fitting import Norm, checked_norm, multiclass_rows, recalibrated
from calibrant.inference.bootstrap import Bootstrap, of_repeats, reflected
from calibrant.inference.comparison_binary import Difference, PairedGaps, require_same_weights
from calibrant.inference.comparison_fits import PairedFits
from calibrant.inference.intervals import as_estimate, bootstrap_target, is_true_error, require_target
from calibrant.inference.judged import judged_difference, judged_interval
from calibrant.inference.multiplicity import holm
from calibrant.inference.sample import MOST_CLUSTERS, cluster_labels, cluster_repeats
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import mean_and_error
from calibrant.results.estimate import Estimate, Interval, printable
from calibrant.results.target import SPREAD_ERRORS, Target, name_of

#: Standard errors are multiplied by this, since folds share training rows; see `CrossFittedBound`.
#: Test: tests/inference/inversion/test_binary_constants.py.
INFLATION = 1.5


@dataclass(frozen=True)
class PairedCrossFits:
    r"""The difference of two calibration errors of whole vectors, row by row, in any norm.

    Each model gets its cross-fitted map with the same folds, and each row the contribution of `variational_error`
    under both models, c_a and c_b. With d = c_a - c_b,

    .. math:: \bar d \pm z\, 1.5\, \frac{\mathrm{sd}(d)}{\sqrt n}.

    Noise that both models share cancels. The factor 1.5 allows for folds that share training rows (it is the measured
    one of `CrossFittedBound`). The maps find only part of both errors, more of it the better the map; a model whose
    error is hard to find looks better than it is.

    Parameters
    ----------
    folds : int
    seed : int
        Decides the folds.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> y = (rng.random((1000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    >>> sharper = cal.Multiclass(y, p**3 / (p**3).sum(axis=1, keepdims=True))
    >>> found = cal.compare(cal.variational_error, sharper, cal.Multiclass(y, p))
    >>> found.difference > 0.2, found.p_value < 0.001
    (True, True)
    """

    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        validation.seed(self.seed)
        validation.whole("folds", self.folds, minimum=2)

    def difference(self, a: Multiclass, b: Multiclass, *, norm: Norm, level: float) -> Difference:
        """The error of `a` less that of `b`."""
        norm = checked_norm(norm)
        split = (multiclass_rows(data, [1.0] * self.folds, [self.seed, 0], order=np.arange(len(a))) for data in (a, b))
        rows = [recalibrated(one, None) for one in split]
        first, second = (one.contributions(norm) for one in rows)
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            fail("An outcome of predicted probability 0 was observed, so that a log score is infinite: no difference.")
        value, error = mean_and_error(first - second, rows[0].weight, rows[0].cluster)
        reach = float(ndtri((1 + level) / 2)) * INFLATION * error
        p_value = float(2 * ndtr(-abs(value) / (INFLATION * error))) if error > 0 else 1.0
        return Difference(value, value - reach, value + reach, p_value)


Estimator = Callable[[Any], float]
Method = Bootstrap | PairedGaps | PairedFits | PairedCrossFits


#: Quantities that are called by the name of their estimator: every estimator of them is another score.
_OWN_NAME = ("mean score", "ranking", "expected estimate")


@dataclass(frozen=True)
class Comparison:
    """The difference between two models on the same rows; where an error is estimated, between their true errors.

    Where both predict the same for all rows, it is zero, without uncertainty.

    Attributes
    ----------
    estimator, a, b : str
        Names.
    value_a, value_b : float
        The estimates of both models alone.
    quantity : str
        What differs by `difference`, for example "true error (L1)".
    difference : float
        The estimated difference in `quantity`. With `PairedGaps` it is that of the true errors, whichever of their
        estimators is given; with `Bootstrap` it is value_a - value_b less its bias over draws. Negative where A is
        better.
    interval : Interval
        For the difference; its target is the quantity.
    note : str
        Where `difference` and value_a - value_b have opposite signs, the reason; else empty.
    p_value, adjusted : float
        Two-sided, against no difference; `adjusted` allows for all comparisons made together (Holm).

    Examples
    --------
    >>> import calibrant as cal
    >>> y = [0, 1, 0, 1, 1] * 100
    >>> found = compare(cal.brier, cal.Binary(y, [0.1, 0.8, 0.2, 0.9, 0.7] * 100), cal.Binary(y, [0.5] * 500))
    >>> f"{found.a} - {found.b} = {found.value_a - found.value_b:.3f}", found.to_dict()["estimator"]
    ('a - b = -0.212', 'brier')
    >>> compare(cal.ece, cal.Binary(y, [0.1, 0.8, 0.2, 0.9, 0.7] * 100), cal.Binary(y, [0.5] * 500)).quantity
    'true error (L1)'
    """

    estimator: str
    a: str
    b: str
    value_a: float
    value_b: float
    difference: float
    interval: Interval
    p_value: float
    adjusted: float

    @property
    def quantity(self) -> str:
        """What differs: the target of the interval, or the score that the estimator is."""
        target = self.interval.target
        return self.estimator if target is None or target.quantity in _OWN_NAME else str(target)

    @property
    def note(self) -> str:
        """Why the estimates of both models alone differ the other way, where they do."""
        apart = self.value_a - self.value_b
        if not apart * self.difference < 0:
            return ""
        return (
            f"The estimates of each model alone differ the other way ({apart:+.4g}): each has a bias of its own, which "
            f"the difference of the {self.quantity} does not have."
        )

    def __repr__(self) -> str:
        return (
            f"<{self.quantity}: {printable(self.a)} - {printable(self.b)} = {self.difference:.4g} {self.interval} "
            f"at {self.interval.level:.0%}, p = {self.adjusted:.4g}{', see note' if self.note else ''}>"
        )

    def __str__(self) -> str:
        return f"{self!r}\n{self.note}" if self.note else repr(self)

    def _repr_html_(self) -> str:
        from calibrant.reporting.notebook import comparison_html

        return comparison_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {**asdict(self), "interval": self.interval.to_dict(), "quantity": self.quantity, "note": self.note}


def compare(
    estimator: Estimator, a: Predictions, b: Predictions, *, level: float = 0.95, method: Method | None = None
) -> Comparison:
    """Paired difference between two models, of the true errors or of scores, with interval and p-value.

    The comparison is paired, by row or by cluster if `a` has a group, so noise that both models share cancels. As in
    `interval`, calibration errors are compared by their *true* size, whichever estimator is given.
    `Comparison.quantity` names what is compared; `Comparison.note` says so if the biased estimates differ the other
    way. For binary models the test has much more power in L2 (``norm=2``) than in L1, see `PairedGaps`.

    Parameters
    ----------
    estimator : callable
        Any estimator of this package, `functools.partial` of one, or a function that returns the `Estimate` of one.
        Your own need ``method=Bootstrap()`` or a declared target, see `calibrant.results.estimates`.
    a, b : Predictions
        The same rows in the same order, predicted by two models. Two `Confidence` hold the answers of two models to
        the same questions, each with its own outcomes; all other data need the same outcomes.
    level : float in (0, 1)
    method : PairedGaps, PairedFits, PairedCrossFits or Bootstrap, optional
        By default `PairedGaps` for calibration errors of binary predictions in a finite norm and of top labels,
        `PairedFits` for those of positive-unlabeled predictions and for errors of predicted spreads (`ence`, `uce`,
        ...), `PairedCrossFits` for those of multiclass vectors, and the bias-corrected bootstrap for
        everything else.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> found = compare(cal.brier, cal.Binary(y, p), cal.Binary(y, p**2))
    >>> found.difference < 0, found.p_value < 0.01
    (True, True)
    """
    return compare_many(estimator, {"a": a, "b": b}, reference="b", level=level, method=method)[0]


def compare_many(
    estimator: Estimator,
    models: Mapping[str, Predictions],
    *,
    reference: str | None = None,
    level: float = 0.95,
    method: Method | None = None,
) -> list[Comparison]:
    """Compare every model with a reference, with p-values adjusted for all comparisons (Holm 1979).

    Parameters
    ----------
    estimator, level, method
        As for `compare`. Intervals are simultaneous by Bonferroni: each has level 1 - (1 - level) / comparisons.
    models : mapping of names to Predictions
        The same rows in the same order.
    reference : str, optional
        The model the others are compared with; by default the first.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> models = {"true": cal.Binary(y, p), "squared": cal.Binary(y, p**2), "half": cal.Binary(y, p / 2)}
    >>> [found.a for found in compare_many(cal.brier, models)]
    ['squared', 'half']
    """
    level = validation.fraction("level", level)
    if len(models) < 2:
        fail(f"A comparison needs at least two models, got {len(models)}.", ValueError)
    base = next(iter(models)) if reference is None else reference
    if base not in models:
        fail(f"reference must be one of {', '.join(models)}, got {base!r}.", ValueError)
    same = _of_same_rows(models).items()
    models = {name: data.sorted_once() if isinstance(data, Binary) else data for name, data in same}
    others = [name for name in models if name != base]
    wide = 1 - (1 - level) / len(others)
    judged = {name: data for name, data in models.items() if isinstance(data, Judged)}
    estimates = {name: judged_interval(estimator, data, level=wide, method=method) for name, data in judged.items()}
    estimates |= {name: as_estimate(estimator, data) for name, data in models.items() if name not in judged}
    values, target = {name: float(value) for name, value in estimates.items()}, estimates[base].target
    if isinstance(models[base], Multiclass) and not isinstance(method, Bootstrap):
        models = _of_classes(estimator, estimates[base], models)
    chosen = _default(estimator, target, models[base]) if method is None else method
    if judged:
        found = [judged_difference(judged[name], judged[base], estimates[name], estimates[base]) for name in others]
    elif not isinstance(chosen, Bootstrap):
        found = [_of_true_errors(estimator, target, models[name], models[base], wide, chosen) for name in others]
    else:
        draws = _paired_draws(estimator, models, estimates, chosen)
        found = [
            _of_draws(values[name] - values[base], draws[name] - draws[base], wide, chosen, target) for name in others
        ]
    for k, name in enumerate(others):
        if _identical(models[name], models[base]):
            found[k] = 0.0, replace(found[k][1], low=0.0, high=0.0), 1.0
    adjusted = holm([p_value for _, _, p_value in found])
    return [
        Comparison(name_of(estimator), name, base, values[name], values[base], middle, interval, p_value, all_p)
        for name, (middle, interval, p_value), all_p in zip(others, found, adjusted, strict=True)
    ]


def _of_classes(estimator: Estimator, estimate: Estimate, models: Mapping[str, Predictions]) -> dict[str, Predictions]:
    """What is compared of multiclass models: themselves, or the confidence in their top labels."""
    target = estimate.target
    if target is not None and target.of == "confidence":
        return {name: data.top_label() if isinstance(data, Multiclass) else data for name, data in models.items()}
    whole = is_true_error(target) and target.of == "vector"
    if whole or (target is not None and target.quantity in ("mean score", "accuracy")):
        return dict(models)
    message = (
        f"No comparison of {name_of(estimator)} between multiclass models is known to hold its level. Use "
        "variational_error (whole vectors, or top_label='reduced'), a score such as brier, or one class: "
        "compare(ece, a.one_vs_rest()[label], b.one_vs_rest()[label])."
    )
    raise InvalidPredictions(message)


def _default(estimator: Estimator, target: Target | None, data: Predictions) -> Method:
    wanted = require_target(estimator, target)
    if isinstance(data, Multiclass):
        return PairedCrossFits() if is_true_error(target) else Bootstrap(kind="bias-corrected")
    for method in (PairedGaps(), PairedFits()):
        if _knows(method, wanted, data):
            return method
    return Bootstrap(kind="bias-corrected")


def _knows(method: PairedGaps | PairedFits, target: Target, data: Predictions) -> bool:
    """Whether the method compares errors of this kind."""
    if isinstance(data, Forecast):
        return isinstance(method, PairedFits) and target.quantity in SPREAD_ERRORS
    finite = target.norm == "squared" or (isinstance(target.norm, float) and np.isfinite(target.norm))
    kind = Binary if isinstance(method, PairedGaps) else PositiveUnlabeled
    return finite and is_true_error(target) and isinstance(data, kind)


def _of_true_errors(
    estimator: Estimator,
    target: Target | None,
    a: Predictions,
    b: Predictions,
    level: float,
    method: PairedGaps | PairedFits | PairedCrossFits,
) -> tuple[float, Interval, float]:
    if isinstance(method, PairedCrossFits):
        if not is_true_error(target) or not (isinstance(a, Multiclass) and isinstance(b, Multiclass)):
            instead = f"use Bootstrap() for {name_of(estimator)}"
            fail(f"PairedCrossFits compares calibration errors of multiclass data; {instead}.", TypeError)
        target = Target("true error", target.norm)
        found = method.difference(a, b, norm=target.norm, level=level)
        words = "independent rows (or clusters); errors that the maps find equally well; approximate"
    elif target is None or not _knows(method, target, a) or not _knows(method, target, b):
        fail(
            "PairedGaps compares calibration errors in a finite norm of binary predictions, PairedFits those of "
            f"positive-unlabeled predictions and of predicted spreads; use Bootstrap() for {name_of(estimator)}.",
            TypeError,
        )
    elif isinstance(method, PairedFits):
        found = method.difference(a, b, target, level=level)
        words = "independent rows (or clusters); gaps that are smooth in the score; approximate"
    elif isinstance(a, Binary) and isinstance(b, Binary):
        squared = target.norm == "squared"
        found = method.difference(a, b, norm=2.0 if squared else target.norm, level=level, squared=squared)
        words = "independent rows (or clusters); no structure finer than the cells of Inversion(); approximate"
    interval = Interval(found.low, found.high, level=level, method=repr(method), assumption=words, target=target)
    return found.value, interval, found.p_value


def _of_draws(
    value: float, draws: Floats, level: float, method: Bootstrap, target: Target | None
) -> tuple[float, Interval, float]:
    middle, sd = 2 * value - float(draws.mean()), float(draws.std(ddof=1))
    low, high = reflected(value, draws, level, method.kind)
    p_value = float(2 * ndtr(-abs(middle) / sd)) if sd > 0 else float(middle == 0)
    words = "rows (or clusters) resampled in pairs; approximate where both errors are near zero"
    target = bootstrap_target(target)
    return middle, Interval(low, high, level=level, method=repr(method), assumption=words, target=target), p_value


def _paired_draws(
    estimator: Estimator, models: Mapping[str, Predictions], estimates: Mapping[str, Estimate], method: Bootstrap
) -> dict[str, Floats]:
    """Estimates of all models on the same resamples of clusters."""
    first = next(iter(models.values()))
    labels = cluster_labels(first, len(first))
    number = int(labels.max()) + 1
    if number > MOST_CLUSTERS:  # united at random, as many as independent rows are divided into
        labels, number = generator(0, "united clusters").permutation(number)[labels] % MOST_CLUSTERS, MOST_CLUSTERS
    repeats = cluster_repeats(number, method.draws, generator(method.seed, "paired bootstrap"))
    return {name: of_repeats(estimator, estimates[name], data, labels, repeats) for name, data in models.items()}


def _of_same_rows(models: Mapping[str, Predictions]) -> dict[str, Predictions]:
    """The models, whose rows must be the same; multiclass models have their columns in the same order."""
    remedy = "so that row i of both is the same case, or make both from arrays (to_numpy()) to pair them by position"
    validation.require_same_index(((name, data._index) for name, data in models.items()), remedy=remedy)
    (base, first), *others = models.items()
    found: dict[str, Predictions] = {base: first}
    for name, data in others:
        if isinstance(data, Multiclass) and isinstance(first, Multiclass) and set(data.classes) == set(first.classes):
            data = data.in_order_of(first.classes)
        found[name] = data
        what = _difference(first, data)
        if what:
            fail(f"All models must predict the same rows in the same order, but {name!r} has other {what}.")
        require_same_weights(first, data)
    return found


def _identical(a: Predictions, b: Predictions) -> bool:
    """Whether two models predict the same for all rows, so that their errors are the same, whatever they are."""
    if isinstance(a, Distribution) and isinstance(b, Distribution):
        return a.dist is b.dist
    names = (*a.columns, "levels", "positive", "unlabeled", "label_frequency")
    return all(np.array_equal(getattr(a, name, None), getattr(b, name, None)) for name in names)  # type: ignore[arg-type]


def _difference(first: Predictions, data: Predictions) -> str:
    """What shows that two models do not predict the same rows; empty if nothing does."""
    if type(data) is not type(first):
        return f"predictions: {data!r}, not {first!r}"
    if len(data) != len(first):
        return f"rows: {len(data):_}, not {len(first):_}"
    for what in ("classes", "prior"):
        other, own = getattr(data, what, None), getattr(first, what, None)
        if other != own:
            return f"{what}: {other}, not {own}"
    if isinstance(data, PositiveUnlabeled) and isinstance(first, PositiveUnlabeled):
        positives = len(data.positive), len(first.positive)
        return "" if positives[0] == positives[1] else f"positives: {positives[0]:_}, not {positives[1]:_}"
    if isinstance(data, Confidence):  # each model is right or wrong about the same question in its own way
        return ""
    outcomes: Any = [getattr(model, "y_true", None) for model in (data, first)]
    if np.array_equal(*outcomes):
        return ""
    differs = (outcomes[0] != outcomes[1]).reshape(len(data), -1).any(axis=1)
    return f"outcomes in {differs.sum():_} of {len(data):_} rows (first: row {int(np.argmax(differs))})"
