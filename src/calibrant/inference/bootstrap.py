"""Bootstrap intervals from resampled tables. There is no percentile interval: near calibration it does not cover."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from calibrant.data import validation
from calibrant.data.forecasts import Forecast, Quantiles
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.inference.sample import Sample, cluster_labels, cluster_repeats, require_two_rows, row_losses
from calibrant.numerics.arrays import Floats, expit, log_odds
from calibrant.numerics.logistic.binary import logistic_fit
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import all_alike, weighted_rows
from calibrant.results.estimate import Estimate, Interval
from calibrant.table.bintable import BinTable

#: The last step of Newton's method for resampled slopes, and how many there may be.
#: Derived: the error that such a step leaves is about its square, 1e-8, a millionth of what resamples differ by; ten
#: doublings of the digits are more than a fit that exists needs.
SMALL_STEP, MOST_STEPS = 1e-4, 10

Kind = Literal["basic", "bias-corrected"]


@dataclass(frozen=True)
class Bootstrap(validation.Simulated):
    r"""Bootstrap interval: estimates of resampled tables, reflected at the estimate.

    "basic" is :math:`[2\hat\theta - Q_{1-\alpha/2},\; 2\hat\theta - Q_{\alpha/2}]`; "bias-corrected" is
    :math:`2\hat\theta - \overline{\theta^*} \pm z\,\mathrm{sd}(\theta^*)`, with θ* the estimates of the resamples.
    Counts of cells and outcomes are multinomial, so a resample costs the same for a billion rows as for a thousand.
    Weighted rows are divided into 1024 random clusters, and rows with a `group` into their groups; whole clusters are
    resampled.

    The bias of a binned calibration error differs from that of its resamples, and near zero neither kind has its
    nominal coverage, so `Inversion` is the default for calibration errors. The bootstrap is the default for scores of
    forecasts and of multiclass data. Scores that are a mean over rows are resampled from the rows' losses, which are
    computed once; independent rows are divided into clusters for that as well.

    Parameters
    ----------
    draws : int
        Number of resamples.
    seed : int
    kind : {"basic", "bias-corrected"}

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.Binary([0, 1, 1, 0] * 50, [0.1, 0.6, 0.9, 0.3] * 50)
    >>> cal.interval(cal.brier, data, method=Bootstrap(199, seed=1)).interval.method
    "Bootstrap(draws=199, seed=1, kind='basic')"
    """

    serves: ClassVar[str] = "any estimate"
    least_draws = 2

    draws: int = 999
    seed: int = 0
    kind: Kind = "basic"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in get_args(Kind):
            known = "'basic' or 'bias-corrected' (percentile intervals do not cover)"
            fail(f"kind must be {known}, got {self.kind!r}.", ValueError)

    def interval(
        self, estimator: Callable[[Any], float], data: Predictions | BinTable, *, level: float = 0.95
    ) -> Interval:
        """The interval around the estimate of `data`."""
        level = validation.fraction("level", level)
        require_two_rows(data)
        center, drawn = self.resampled(estimator, data)
        low, high = reflected(center, drawn, level, self.kind)
        unit = "clusters" if getattr(data, "group", None) is not None else "rows"
        words = f"independent {unit}; the target is the expected estimate"
        return Interval(low, high, level=level, method=repr(self), assumption=words)

    def resampled(self, estimator: Callable[[Any], float], data: Predictions | BinTable) -> tuple[float, Floats]:
        """The estimate, and the estimates of the resamples, shifted so that they are centred at it."""
        rng = generator(self.seed, "bootstrap")
        found = estimator(data)
        whole = float(found)
        if isinstance(data, Predictions) and (losses := row_losses(found, data)) is not None:
            return whole, resampled_means(losses, data, self.draws, rng)
        sample = None
        if isinstance(data, BinTable) or (isinstance(data, Binary) and all_alike(data.weight) and data.group is None):
            sample = Sample.of(data, needed_by="The bootstrap")  # cells and outcomes
        elif not isinstance(data, Multiclass | Quantiles):
            sample = Sample.of_clusters(data)
        center = None if sample is None else of_table(estimator, sample.coarse)
        if sample is not None and center is not None:
            return whole, of_resamples(estimator, sample.resample(self.draws, rng)) + whole - center
        if isinstance(data, BinTable):
            instead = "so it cannot be bootstrapped from a table; pass the predictions"
            fail(f"{estimator!r} does not take tables, {instead}.", TypeError)
        return whole, of_resamples(estimator, resampled_rows(data, self.draws, rng))


@dataclass(frozen=True)
class Clustered(Bootstrap):
    """`Bootstrap` that requires `group`: whole clusters of rows are resampled.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.Binary([0, 1, 1, 0] * 50, [0.1, 0.6, 0.9, 0.3] * 50, group=np.repeat(range(20), 10))
    >>> cal.interval(cal.brier, data, method=Clustered(199)).interval.assumption
    'independent clusters; the target is the expected estimate'
    """

    def resampled(self, estimator: Callable[[Any], float], data: Predictions | BinTable) -> tuple[float, Floats]:
        """As for `Bootstrap`."""
        if getattr(data, "group", None) is None:
            fail("Clustered needs predictions with group=..., the ids of rows that belong together.")
        return super().resampled(estimator, data)


def of_resamples(estimator: Callable[[Any], float], resamples: Iterable[Any]) -> Floats:
    """The estimates of resamples of data that have an estimate themselves."""
    drawn = []
    for number, rows in enumerate(resamples, 1):
        try:
            drawn.append(float(estimator(rows)))
        except ValueError as error:
            message = (
                f"There is an estimate, but resample {number} of the rows has none ({str(error).rstrip('.')}): it drew "
                "none of a few rare rows, such as events. These are too few for an interval or a comparison by "
                "resampling: collect more of them, or report the estimate alone."
            )
            raise InvalidPredictions(message) from error
    return np.array(drawn)


def of_table(estimator: Callable[[Any], float], table: BinTable) -> float | None:
    """The estimate of a table; None if the estimator takes only rows."""
    try:
        return float(estimator(table))
    except (TypeError, ValueError, AttributeError):
        return None


def resampled_means(losses: Floats, data: Predictions, draws: int, rng: np.random.Generator) -> Floats:
    """Weighted means of the losses of resampled clusters; the predictions are not evaluated again."""
    if data.weight is not None and not data.weight.all():
        some = weighted_rows(data.weight)  # a resample of rows of weight 0 has no mean
        losses, data = losses.reshape(len(data), -1)[some].ravel(), data.take(some)
    labels = cluster_labels(data, len(data))
    weight = _row_weights(data, len(losses))
    return _repeated_ratios(weight * losses, weight, labels, cluster_repeats(int(labels.max()) + 1, draws, rng))


def _row_weights(data: Predictions, rows: int) -> Floats:
    given = data.flat_weight if isinstance(data, Forecast) else data.weight
    return np.ones(rows) if given is None else given


def _repeated_ratios(above: Floats, below: Floats, labels: NDArray[np.intp], repeats: Floats) -> Floats:
    """Ratios of the sums of two columns, of which each row has one or more entries."""
    labels = np.repeat(labels, len(above) // len(labels))
    total, mass = (repeats @ np.bincount(labels, column) for column in (above, below))
    if not mass.all():
        number = int(np.flatnonzero(mass == 0)[0]) + 1
        fail(f"Resample {number} of the rows has none that count, so it has no mean: these are too few for resampling.")
    return np.asarray(total / mass)


def of_repeats(
    estimator: Callable[[Any], float], found: Estimate, data: Predictions, labels: NDArray[np.intp], repeats: Floats
) -> Floats:
    """The estimates if each cluster of rows occurs as often as a row of `repeats` says, centred at that of `data`."""
    columns = _summed(found, data)
    if columns is not None:
        return _repeated_ratios(*columns, labels, repeats)
    sample = Sample.of_clusters(data, cluster=labels) if isinstance(data, Binary) else None
    center = None if sample is None else of_table(estimator, sample.coarse)
    if sample is None or center is None:
        rows = (np.repeat(np.arange(len(data)), line[labels].astype(np.intp)) for line in repeats)
        return of_resamples(estimator, (copies(data, some) for some in rows))
    at_once = None if found.target is None else _AT_ONCE.get(found.target.quantity)
    if at_once is not None:
        p, outcomes = sample.coarse.predicted_mean, sample.coarse.outcome_weights
        whole, drawn = (at_once(p, *some) for some in ([x[None] for x in outcomes], sample.repeated_outcomes(repeats)))
        if whole is not None and drawn is not None and np.isclose(whole[0], center, rtol=1e-6, atol=0):
            return drawn + float(found) - whole[0]
    return of_resamples(estimator, sample.repeated(repeats)) + float(found) - center


def _summed(found: Estimate, data: Predictions) -> tuple[Floats, Floats] | None:
    """Two columns whose sums have the ratio that was found; None if it is no such ratio of these rows."""
    from calibrant.estimators.proper_scores import right_answers

    above, quantity = row_losses(found, data), "" if found.target is None else found.target.quantity
    below: Any = 1.0
    if above is None and quantity == "accuracy":
        above = right_answers(data).astype(np.float64)
    if above is None and quantity == "observed to expected ratio" and isinstance(data, Binary):
        above, below = data.y_true.astype(np.float64), data.y_prob
    if above is None:
        return None
    weight = _row_weights(data, len(above))
    columns = weight * above, weight * below
    value, total = float(columns[0].sum()), float(columns[1].sum())
    return columns if total > 0 and np.isclose(value / total, found, rtol=1e-6, atol=1e-12) else None


def _areas(p: Floats, one: Floats, zero: Floats) -> Floats | None:
    """Areas under the ROC curves of tables, one per row; None if one of them has no area."""
    pairs = one.sum(axis=1) * zero.sum(axis=1)
    below = np.cumsum(zero, axis=1)
    below -= zero / 2
    return np.asarray(np.einsum("dc,dc->d", one, below) / pairs) if pairs.all() else None


def _slopes(p: Floats, one: Floats, zero: Floats) -> Floats | None:
    """Calibration slopes of tables, one per row, by Newton's method from that of their sum; None if one has none."""
    inside = (p > 0) & (p < 1)
    z, one, both = log_odds(p[inside]), one[:, inside], (one + zero)[:, inside]
    powers = np.stack([z**0, z, z**2], axis=1)
    events, sums = one @ powers[:, :2], one.sum(axis=0)
    fit = logistic_fit(powers[:, :2], weight=both.sum(axis=0), positive=sums, start=np.array([0.0, 1.0]))
    line = np.tile(fit.coefficients, (len(one), 1))
    chance = expit(powers[:, :2] @ fit.coefficients)
    for _ in range(MOST_STEPS):
        expected = both * chance
        excess = events - expected @ powers[:, :2]
        a, b, c = ((expected - expected * chance) @ powers).T
        determinant = a * c - b * b
        if not (determinant > 1e-9 * a * c).all():
            return None
        step = np.stack([c * excess[:, 0] - b * excess[:, 1], a * excess[:, 1] - b * excess[:, 0]], axis=1)
        step /= determinant[:, None]
        line += step
        if np.abs(step).max() < SMALL_STEP:
            return line[:, 1]
        chance = expit(line[:, :1] + line[:, 1:] * z)
    return None


#: Estimates of many tables at once, by target.
_AT_ONCE = {"ranking": _areas, "calibration slope": _slopes}


def reflected(center: float, drawn: Floats, level: float, kind: Kind) -> tuple[float, float]:
    """Both ends of the interval of this kind."""
    if kind == "basic":
        low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
        return 2 * center - float(high), 2 * center - float(low)
    middle = 2 * center - float(drawn.mean())
    reach = float(ndtri((1 + level) / 2)) * float(drawn.std(ddof=1))
    return middle - reach, middle + reach


def resampled_rows(data: Predictions, draws: int, rng: np.random.Generator) -> Iterator[Any]:
    """Resamples of rows (of clusters, if there is a group), for estimators that do not take tables."""
    labels = cluster_labels(data, len(data)) if data.group is not None else np.arange(len(data))
    order, size = np.argsort(labels, kind="stable"), np.bincount(labels)
    for repeats in cluster_repeats(len(size), draws, rng):
        yield copies(data, np.repeat(order, np.repeat(repeats.astype(np.intp), size)))


def copies(data: Predictions, rows: NDArray[np.intp]) -> Predictions:
    """These rows, with repeats; copies of a multiclass row are one group, so that folds keep them together."""
    some = data.take(rows)
    if isinstance(data, Multiclass) and data.group is None:
        some.group = rows
    return some
