"""Bootstrap intervals on the table. The percentile interval is not offered: near calibration it misses the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from calibrant.data import validation
from calibrant.data.distributions import Quantiles
from calibrant.data.predictions import Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.resampling import cluster_labels, cluster_times, source
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Interval
from calibrant.table.bintable import BinTable

Kind = Literal["basic", "bias-corrected"]


@dataclass(frozen=True)
class Bootstrap:
    r"""Estimates of tables drawn again from the table, reflected at the estimate.

    "basic" is :math:`[2\hat\theta - Q_{1-\alpha/2},\; 2\hat\theta - Q_{\alpha/2}]`; "bias-corrected" is
    :math:`2\hat\theta - \overline{\theta^*} \pm z\,\mathrm{sd}(\theta^*)`, with θ* the estimates of the drawn tables.
    Counts of cells and outcomes are multinomial, so a draw costs the same for a billion rows as for a thousand;
    weighted rows are dealt into 1024 random clusters, and rows with a `group` into their own, which are drawn whole.

    For a calibration error the bias of a binned estimate is not that of its draws, and near zero neither kind covers
    as stated: there `Inversion` is the default. For scores (Brier, log loss, CRPS), AUC and errors of
    predicted spreads the bootstrap is.

    Parameters
    ----------
    n : int
        Number of draws.
    seed : int
    kind : {"basic", "bias-corrected"}
    """

    n: int = 999
    seed: int = 0
    kind: Kind = "basic"

    def __post_init__(self) -> None:
        validation.whole("n", self.n, minimum=2)
        if self.kind not in get_args(Kind):
            message = f"kind must be 'basic' or 'bias-corrected' (percentile intervals miss), got {self.kind!r}."
            raise ValueError(message)

    def interval(
        self, estimator: Callable[[Any], float], data: Predictions | BinTable, *, level: float = 0.95
    ) -> Interval:
        """The interval around the estimate of `data`."""
        level = validation.fraction("level", level)
        center, draws = self.draws(estimator, data)
        low, high = reflected(center, draws, level, self.kind)
        return Interval(low, high, level=level, method=repr(self), assumption=self._assumption(data))

    def draws(self, estimator: Callable[[Any], float], data: Predictions | BinTable) -> tuple[float, Floats]:
        """The estimate, and the estimates of the drawn samples moved so that they vary about it."""
        rng = np.random.default_rng(self.seed)
        whole = float(estimator(data))
        cells = None if isinstance(data, Multiclass | Quantiles) else source(data)
        try:
            center = None if cells is None else float(estimator(cells.table))
        except (TypeError, ValueError, AttributeError):  # an estimator of rows
            center = None
        if cells is not None and center is not None:
            return whole, np.array([float(estimator(table)) for table in cells.tables(self.n, rng)]) + whole - center
        if isinstance(data, BinTable):
            message = f"{estimator!r} does not take tables, so its table cannot be drawn again; give the predictions."
            raise TypeError(message)
        return whole, np.array([float(estimator(sample)) for sample in drawn_rows(data, self.n, rng)])

    def _assumption(self, data: Any) -> str:
        unit = "clusters" if getattr(data, "group", None) is not None else "rows"
        return f"independent {unit}; the target is what the estimator tends to"


@dataclass(frozen=True)
class Clustered(Bootstrap):
    """`Bootstrap` that insists on `group`: clusters of rows are drawn whole."""

    def draws(self, estimator: Callable[[Any], float], data: Predictions | BinTable) -> tuple[float, Floats]:
        """As for `Bootstrap`."""
        if getattr(data, "group", None) is None:
            message = "Clustered needs predictions with group=..., the ids of rows that belong together."
            raise InvalidPredictions(message)
        return super().draws(estimator, data)


def reflected(center: float, draws: Floats, level: float, kind: Kind) -> tuple[float, float]:
    """Both ends, by the kind."""
    from scipy.special import ndtri

    if kind == "basic":
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
        return 2 * center - float(high), 2 * center - float(low)
    middle = 2 * center - float(draws.mean())
    reach = float(ndtri((1 + level) / 2)) * float(draws.std(ddof=1))
    return middle - reach, middle + reach


def drawn_rows(data: Predictions, size: int, rng: np.random.Generator) -> Iterator[Any]:
    """Samples of rows (of clusters, where there is a group), for estimators that take no table."""
    labels = cluster_labels(data, len(data)) if data.group is not None else np.arange(len(data))
    order, starts = np.argsort(labels, kind="stable"), np.searchsorted(np.sort(labels), np.arange(labels.max() + 2))
    for times in cluster_times(int(labels.max()) + 1, size, rng):
        again = np.repeat(times.astype(np.intp), np.diff(starts))
        yield data.take(np.repeat(order, again))
