"""What the columns of a table mean. Estimators ask the table's task instead of telling tasks apart themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from calibrant.data.distributions import Distribution
from calibrant.data.forecasts import Gaussian, Samples
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Predictions
from calibrant.numerics.arrays import Floats
from calibrant.numerics.weights import Mass, variance_of_mean
from calibrant.table.unlabeled import Unlabeled

if TYPE_CHECKING:
    from calibrant.table.bintable import BinTable


class Task(Protocol):
    """The questions an estimator may ask."""

    @property
    def name(self) -> str:
        """The task in words."""

    @property
    def rounding(self) -> float:
        """The part of the total weight by which the weight of an outcome may miss zero."""

    def observed_scale(self, observed: float, total: float) -> float:
        """Factor of the observed column, of which `observed` is the sum, as `total` is of the weights."""

    def mass_variance(self, population: Mass, positives: Mass) -> float:
        """Variance of the error mass of a bin that holds everything, which decides the number of `PaperBins`."""

    def gap_variance(self, table: BinTable) -> Floats:
        """Variance of each bin's error mass, its share times its gap; NaN where one row does not tell."""

    def mean_score(self, table: BinTable) -> Floats:
        """Mean score of all rows of each cell."""

    def shared_mass(self, table: BinTable) -> Floats:
        """Weighted sum of prediction times outcome over the rows of each cell that have both."""

    def most_bins(self, table: BinTable) -> int:
        """The largest number of bins that a sweep tries."""

    def of_part(self, table: BinTable, part: BinTable) -> Task:
        """The task of `part`, some of the bins of `table`."""

    def warn(self, table: BinTable) -> None:
        """Warn of what cannot be."""


class _Outcomes:
    """Tasks whose rows have an outcome each."""

    rounding: ClassVar[float] = 0.0

    def observed_scale(self, observed: float, total: float) -> float:
        """One: what is observed is what is weighed."""
        return 1.0

    def mass_variance(self, population: Mass, positives: Mass) -> float:
        """1 / n, with Kish's effective n where rows are weighted."""
        return 1 / population.effective_n

    def gap_variance(self, table: BinTable) -> Floats:
        """Estimated variance of the mean outcome, times the squared share of the bin; NaN for a single row."""
        filled = np.where(table.weight > 0, table.weight, np.nan)
        square = table.observed_squares / filled
        return variance_of_mean(table.observed_mean, square, table.effective_count) * table.share**2

    def mean_score(self, table: BinTable) -> Floats:
        """Mean prediction."""
        return table.predicted_mean

    def shared_mass(self, table: BinTable) -> Floats:
        """The column itself."""
        return table.product

    def most_bins(self, table: BinTable) -> int:
        """A bin per row."""
        return table.n

    def of_part(self, table: BinTable, part: BinTable) -> Any:
        """The same."""
        return self

    def warn(self, table: BinTable) -> None:
        """Nothing is impossible."""


@dataclass(frozen=True)
class Labelled(_Outcomes):
    """Probabilities and outcomes: `predicted` sums probabilities, `observed` sums outcomes of 0 and 1.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.EqualWidth(2)).task
    Labelled()
    """

    name: ClassVar[str] = "labelled"


@dataclass(frozen=True)
class Spread(_Outcomes):
    """Predicted spreads: `predicted` sums their squares, `observed` squared errors.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.BinTable.of(cal.Gaussian([0.3, -1.2], mean=[0.0, 0.0], std=[0.5, 1.0]), cal.EqualMass(2)).task
    Spread()
    """

    name: ClassVar[str] = "spread"


def task_of(data: Predictions | BinTable) -> Task:
    """The task of predictions or of a table of them.

    >>> from calibrant import Binary
    >>> task_of(Binary([0, 1], [0.2, 0.7]))
    Labelled()
    """
    if not isinstance(data, Predictions):
        return data.task
    if isinstance(data, PositiveUnlabeled):
        known = data.label_frequency is not None
        return Unlabeled(None if known else data.prior, data.label_frequency, data.nested)
    return Spread() if isinstance(data, Gaussian | Distribution | Samples) else Labelled()
