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
from calibrant.inference.sample import Sample, cluster_labels, cluster_repeats, row_clusters
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import all_alike, effective_n, weighted_rows
from calibrant.results.estimate import Estimate, Interval
from calibrant.table.bintable import BinTable

#: More independent binary rows are resampled as a table, which takes the same time for any number of them.
#: Test: tests/inference/test_bootstrap.py::test_very_many_rows_are_resampled_as_a_table.
MOST_ROWS = 1 << 20

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
    nominal coverage: `Inversion` is the default for calibration errors. The bootstrap is the default for scores of
    forecasts and of several classes. Scores that are a mean over rows are resampled from the rows' losses, which are
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
            fail(
                f"kind must be 'basic' or 'bias-corrected' (percentile intervals do not cover), got {self.kind!r}.",
                ValueError,
            )

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
        sample = None if isinstance(data, Multiclass | Quantiles) else to_resample(data)
        center = None if sample is None else of_table(estimator, sample.coarse)
        if sample is not None and center is not None:
            return whole, of_resamples(estimator, sample.resample(self.draws, rng)) + whole - center
        if isinstance(data, BinTable):
            fail(
                f"{estimator!r} does not take tables, so it cannot be bootstrapped from a table; pass the predictions.",
                TypeError,
            )
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


def require_two_rows(data: Predictions | BinTable) -> None:
    """Raise an error if fewer than two rows (or groups) count, by their weights: resamples of one show no noise."""
    if isinstance(data, BinTable):
        size, unit = data.population.effective_n, "rows"
    else:
        labels, unit = row_clusters(data, len(data)), "rows" if data.group is None else "groups"
        mass = data.weight if labels is None else np.bincount(labels, data.weight).astype(np.float64)
        size = effective_n(mass, len(data))
    if size < 2 * (1 - 1e-9):
        fail(f"A bootstrap interval needs at least two {unit} that count; by their weights, these are {size:.3g}.")


def to_resample(data: Predictions | BinTable) -> Sample:
    """What to resample: cells and outcomes if binary rows are independent and unweighted, else clusters."""
    plain = isinstance(data, BinTable) or (isinstance(data, Binary) and all_alike(data.weight) and data.group is None)
    return Sample.of(data, needed_by="The bootstrap") if plain else Sample.of_clusters(data)  # type: ignore[arg-type]


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


def row_losses(found: float, data: Predictions, *, finite: bool = True) -> Floats | None:
    """The losses whose mean an estimate is; None where it is no mean over rows, or where a table serves better.

    Infinite ones raise an error, unless they need not be `finite`.
    """
    target = found.target if isinstance(found, Estimate) else None
    if target is None or target.losses is None or not isinstance(data, Forecast | Binary | Multiclass):
        return None
    if isinstance(data, Binary) and data.group is None and all_alike(data.weight) and len(data) > MOST_ROWS:
        return None
    losses = np.asarray(target.losses(data), dtype=np.float64)
    if finite and not np.isfinite(losses).all():
        first = int(np.flatnonzero(~np.isfinite(losses))[0])
        fail(
            f"The loss of {int((~np.isfinite(losses)).sum())} rows is infinite (first at row {first}), so their mean "
            "has no interval; bound it by a floor, e.g. functools.partial(log_loss, floor=1e-6)."
        )
    return losses


def resampled_means(losses: Floats, data: Predictions, draws: int, rng: np.random.Generator) -> Floats:
    """Weighted means of the losses of resampled clusters; the predictions are not evaluated again."""
    if data.weight is not None and not data.weight.all():
        some = weighted_rows(data.weight)  # a resample of rows of weight 0 has no mean
        losses, data = losses.reshape(len(data), -1)[some].ravel(), data.take(some)
    labels = cluster_labels(data, len(data))
    return repeated_means(losses, data, labels, cluster_repeats(int(labels.max()) + 1, draws, rng))


def repeated_means(losses: Floats, data: Predictions, labels: NDArray[np.intp], repeats: Floats) -> Floats:
    """Weighted means of the losses if each cluster of rows occurs as often as a row of `repeats` says."""
    labels = np.repeat(labels, len(losses) // len(labels))
    given = data.flat_weight if isinstance(data, Forecast) else data.weight
    weight = np.ones(len(losses)) if given is None else given
    total, mass = np.bincount(labels, weight * losses), np.bincount(labels, weight)
    return np.asarray((repeats @ total) / (repeats @ mass))


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
    order, starts = np.argsort(labels, kind="stable"), np.searchsorted(np.sort(labels), np.arange(labels.max() + 2))
    for repeats in cluster_repeats(int(labels.max()) + 1, draws, rng):
        again = np.repeat(repeats.astype(np.intp), np.diff(starts))
        yield copies(data, np.repeat(order, again))


def copies(data: Predictions, rows: NDArray[np.intp]) -> Predictions:
    """These rows, with repeats; copies of a multiclass row are one group, so that folds keep them together."""
    some = data.take(rows)
    if isinstance(data, Multiclass) and data.group is None:
        some.group = rows
    return some
