"""What the columns of a table mean: labelled rows, predicted spreads, or positive and unlabeled rows.

An estimator asks the task of a table what is predicted and observed per bin, and with what variance. Positive-unlabeled
tables also tell which share of positives is too large to be possible.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.data.forecasts import Distribution, Gaussian, Samples
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Predictions
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import Mass, variance_of_mean

if TYPE_CHECKING:
    from calibrant.table.bintable import BinTable


class Task:
    """The questions an estimator may ask, with the answers of tasks whose rows have an outcome each."""

    #: The task in words.
    name: ClassVar[str]
    #: The part of the total weight by which the weight of an outcome may miss zero.
    rounding: ClassVar[float] = 0.0

    def observed_scale(self, observed: float, total: float) -> float:
        """Factor of the observed column, of which `observed` is the sum, as `total` is of the weights."""
        return 1.0

    def mass_variance(self, population: Mass, positives: Mass) -> float:
        """Variance of the error mass of a bin that holds all (1 / n), which decides the number of `PaperBins`."""
        return 1 / population.effective_n

    def gap_variance(self, table: BinTable) -> Floats:
        """Variance of each bin's error mass, its share times its gap; NaN where one row does not tell."""
        filled = np.where(table.weight > 0, table.weight, np.nan)
        square = table.observed_squares / filled
        return variance_of_mean(table.observed_mean, square, table.effective_count) * table.share**2

    def mean_score(self, table: BinTable) -> Floats:
        """Mean score of all rows of each cell."""
        return table.predicted_mean

    def shared_mass(self, table: BinTable) -> Floats:
        """Weighted sum of prediction times outcome over the rows of each cell that have both."""
        return table.product

    def most_bins(self, table: BinTable) -> int:
        """The largest number of bins that a sweep tries: a bin per row."""
        return table.n

    def of_part(self, table: BinTable, part: BinTable) -> Task:
        """The task of `part`, some of the bins of `table`."""
        return self

    def warn(self, table: BinTable) -> None:
        """Warn of what cannot be."""


def task_of(data: Predictions | BinTable) -> Task:
    """The task of predictions or of a table of them."""
    if not isinstance(data, Predictions):
        return data.task
    if isinstance(data, PositiveUnlabeled):
        known = data.label_frequency is not None
        return Unlabeled(None if known else data.prior, data.label_frequency, data.nested)
    return Spread() if isinstance(data, Gaussian | Distribution | Samples) else Labelled()


@dataclass(frozen=True)
class Labelled(Task):
    """Probabilities and outcomes: `predicted` sums probabilities, `observed` sums outcomes of 0 and 1.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.EqualWidth(2)).task
    Labelled()
    """

    name: ClassVar[str] = "labelled"


@dataclass(frozen=True)
class Spread(Task):
    """Predicted spreads: `predicted` sums their squares, `observed` squared errors.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.BinTable.of(cal.Gaussian([0.3, -1.2], mean=[0.0, 0.0], std=[0.5, 1.0]), cal.EqualMass(2)).task
    Spread()
    """

    name: ClassVar[str] = "spread"


#: A rate above 1 is called impossible where its one-sided p-value, times the number of bins, is below this.
#: Test: tests/table/test_task.py::test_the_largest_prior_is_the_smallest_upper_end_over_the_bins.
IMPOSSIBLE = 1e-3


@dataclass(frozen=True)
class Unlabeled(Task):
    """Labelled positives and unlabeled rows: no row has an outcome of its own.

    `weight`, `predicted` and their squares are sums over the unlabeled rows; `observed`, `product` and
    `observed_squares` (there: of squared weights) are sums over the labelled positives. The observed column is scaled
    so that the positives stand for all positives of the population.

    Attributes
    ----------
    prior : float or None
        Share of positives among the rows of the table; None where `label_frequency` is known, which implies it.
    label_frequency : float or None
        Share of the positives that are labelled (single sample only).
    nested : bool
        Whether the labelled rows are among the unlabeled ones: one sample, not two.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.8, 0.9], [0.1, 0.4, 0.8, 0.7], prior=0.4)
    >>> cal.BinTable.of(data, cal.EqualWidth(2)).task
    Unlabeled(prior=0.4, label_frequency=None, nested=False)
    """

    name: ClassVar[str] = "positive-unlabeled"
    #: Outcome weights are differences here, which may miss zero by this part of the total weight.
    rounding: ClassVar[float] = 1e-12

    prior: float | None
    label_frequency: float | None = None
    nested: bool = False

    def __post_init__(self) -> None:
        if (self.prior is None) == (self.label_frequency is None):
            fail(f"Unlabeled needs either the prior or the label_frequency, got {self!r}.", ValueError)

    def observed_scale(self, observed: float, total: float) -> float:
        """One over the label frequency; where the prior is known, what gives the positives its share of the weight."""
        if self.prior is None:
            return 1 / (self.label_frequency or 1.0)
        return self.prior * total / observed if observed else 1.0

    def mass_variance(self, population: Mass, positives: Mass) -> float:
        """prior² / n_P + 1 / n_U; 1 / (c² n) for a single sample with label frequency c."""
        scale = self.observed_scale(positives.total, population.total)
        if self.nested:
            return scale**2 / population.effective_n
        share = scale * positives.total / population.total
        return share**2 / positives.effective_n + 1 / population.effective_n

    def gap_variance(self, table: BinTable) -> Floats:
        """Variance that the samples give to each error mass; see `Gaps`."""
        return Gaps.of(table).variance

    def mean_score(self, table: BinTable) -> Floats:
        """Mean score per cell, of unlabeled rows and labelled positives together."""
        return (table.predicted + table.product) / (table.weight + table.observed)

    def shared_mass(self, table: BinTable) -> Floats:
        """Zero: the rows that are observed are not the rows that are predicted."""
        return np.zeros(len(table))

    def most_bins(self, table: BinTable) -> int:
        """The number of cells that hold unlabeled rows."""
        return int((table.weight > 0).sum())

    def of_part(self, table: BinTable, part: BinTable) -> Unlabeled:
        """The same with the prior of some of the bins."""
        if self.prior is None or not part.weight.any():
            return self
        return replace(self, prior=table.observed_scale * float(part.observed.sum()) / part.total)

    def warn(self, table: BinTable) -> None:
        """Warn where a bin would hold significantly more positives than rows."""
        gaps = Gaps.of(table)
        if not (gaps.prior * gaps.positive > gaps.share).any():
            return
        largest = largest_prior(table)
        if largest < gaps.prior:
            message = (
                f"The prior {gaps.prior:.4g} is larger than the data allow: some bin would hold more positives than "
                f"rows. The largest prior consistent with the bins is {largest:.4g}; or the labelled positives are not "
                "a random sample of all positives."
            )
            warnings.warn(message, UserWarning, stacklevel=5)


@dataclass(frozen=True, eq=False)
class Gaps:
    r"""Error mass per bin of a positive-unlabeled table, and its covariance.

    .. math:: D_b = \pi P_b - F_b, \qquad
              \operatorname{Var} D_b = \frac{\pi^2 P_b (1 - P_b)}{n_P - 1} + \frac{F^{(2)}_b - F_b^2}{n_U - 1}

    where P_b is the share of the positives in bin b, F_b and F⁽²⁾_b the means of 1_b f and 1_b f² over the unlabeled
    rows, π the prior, and the n are Kish's effective numbers where rows are weighted. PU-ECE is the sum of \|D_b\|.

    A single sample (labelled rows among the unlabeled ones) has D_b = mean of (s/c - f) 1_b with label indicator s and
    label frequency c, and so another variance; where the prior is known and not c, c = mean(s) / π is an estimate
    and its noise is taken into account.

    Attributes
    ----------
    prior : float
    positive, share, predicted, predicted_squares : array
        P_b, the share u_b of the unlabeled rows, F_b and F⁽²⁾_b.
    product : array
        Mean over the unlabeled rows of s f 1_b / c (single sample), else zero.
    n_positive, n_unlabeled : float
        Effective numbers of rows.
    frequency : float or None
        Label frequency c of a single sample; None for two samples.
    known_frequency : bool
        Whether c was given (otherwise the prior was).

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.7, 0.8, 0.4, 0.9], [0.1, 0.2, 0.3, 0.5, 0.8, 0.9], prior=0.5)
    >>> Gaps.of(cal.BinTable.of(data, cal.EqualWidth(2))).gap.round(4)
    array([-0.0583,  0.0917])
    """

    prior: float
    positive: Floats
    share: Floats
    predicted: Floats
    predicted_squares: Floats
    product: Floats
    n_positive: float
    n_unlabeled: float
    frequency: float | None = None
    known_frequency: bool = False

    @classmethod
    def of(cls, table: BinTable) -> Gaps:
        """The gaps of the bins of `table`."""
        task = table.task
        if not isinstance(task, Unlabeled):
            fail("This needs positive-unlabeled data: a PositiveUnlabeled task or a table of one.", ValueError)
        observed, total = float(table.observed.sum()), table.total
        scale = table.observed_scale
        return cls(
            prior=scale * observed / total,
            positive=table.observed / observed,
            share=table.share,
            predicted=table.predicted / total,
            predicted_squares=table.predicted_squares / total,
            product=table.product * (scale / total if task.nested else 0.0),
            n_positive=table.positives.effective_n,
            n_unlabeled=table.population.effective_n,
            frequency=1 / scale if task.nested else None,
            known_frequency=task.label_frequency is not None,
        )

    def joined(self, into: NDArray[np.intp], size: int) -> Gaps:
        """The gaps of `size` larger bins; `into` is the number of the one that each bin becomes a part of."""
        names = ("positive", "share", "predicted", "predicted_squares", "product")
        sums = {name: np.bincount(into, getattr(self, name), size).astype(np.float64) for name in names}
        return replace(self, **sums)  # type: ignore[arg-type]  # arrays, all of them

    @property
    def gap(self) -> Floats:
        """D_b."""
        return self.prior * self.positive - self.predicted

    @property
    def rate(self) -> Floats:
        """Implied share of positives per bin, π P_b / u_b; NaN without unlabeled rows. It can exceed 1."""
        mass = self.prior * self.positive
        return np.divide(mass, self.share, out=np.full(len(mass), np.nan), where=self.share > 0)

    @property
    def variance(self) -> Floats:
        """Estimated variance of each D_b."""
        return np.diag(self.covariance()).copy()

    def covariance(self, positive: Floats | None = None) -> Floats:
        """Estimated covariance of the D_b; `positive` replaces P_b, e.g. by what the null hypothesis says."""
        if np.isnan(self.predicted_squares).any():
            fail("This table was made without squares; make it by BinTable.of(data, bins).", ValueError)
        q = self.positive if positive is None else positive
        found = self._of_two_samples(q) if self.frequency is None else self._of_one_sample(q, self.frequency)
        np.fill_diagonal(found, np.maximum(np.diag(found), 0.0))  # of a variance of zero, rounding leaves either sign
        return found

    def _of_two_samples(self, q: Floats) -> Floats:
        few, many = max(self.n_positive - 1, 1.0), max(self.n_unlabeled - 1, 1.0)
        return self.prior**2 * _multinomial(q) / few + self._of_rows() / many

    def _of_one_sample(self, q: Floats, frequency: float) -> Floats:
        """Covariance of the mean of psi. Labelled rows are rows of their bin: no bin has more of them than rows."""
        labelled = np.minimum(frequency * self.prior * q, self.share)
        least = np.maximum(self.predicted - self.share + labelled, 0.0)  # scores lie between 0 and 1
        product = np.clip(frequency * self.product, least, np.minimum(self.predicted, labelled)) / frequency
        mass, many = labelled / frequency, max(self.n_unlabeled - 1, 1.0)
        if self.known_frequency:  # psi = (s / c - f) 1_b
            gap = mass - self.predicted
            second = np.diag(mass / frequency - 2 * product + self.predicted_squares)
            return np.asarray((second - np.outer(gap, gap)) / many)
        # psi = (s / c) (1_b - P_b) - f 1_b with c = mean(s) / prior
        prior = float(mass.sum())
        q = mass / prior
        cross = np.diag(product) - np.outer(q, product)
        return np.asarray((prior / frequency * _multinomial(q) - cross - cross.T + self._of_rows()) / many)

    def _of_rows(self) -> Floats:
        """Covariance of f 1_b of a row."""
        return np.asarray(np.diag(self.predicted_squares) - np.outer(self.predicted, self.predicted))

    def null_covariance(self) -> Floats:
        """The covariance of the D_b if the model is calibrated: positives are spread as the predictions say.

        Bins that hold no labelled positive by chance would otherwise seem to be known exactly; with a known label
        frequency, so would a sample that holds few of them. In a single sample the probability that a row is labelled
        is proportional to its score.
        """
        total = float(self.predicted.sum())
        if total == 0:
            return self.covariance(self.share)
        prior = max(self.prior, total) if self.known_frequency else self.prior
        return replace(self, prior=prior, product=self.predicted_squares * (prior / total)).covariance(
            self.predicted / total
        )

    def log_rate_error(self) -> tuple[Floats, Floats]:
        """Logarithm of the rate and its standard error, with half a row added to each count so that none is empty."""
        positive = (self.positive * self.n_positive + 0.5) / (self.n_positive + 1)
        share = (self.share * self.n_unlabeled + 0.5) / (self.n_unlabeled + 1)
        variance = (1 - positive) / (self.n_positive * positive) + (1 - share) / (self.n_unlabeled * share)
        return np.log(self.prior * positive / share), np.sqrt(variance)


def _multinomial(share: Floats) -> Floats:
    """Covariance of the bin of one row."""
    return np.asarray(np.diag(share) - np.outer(share, share))


def largest_prior(table: BinTable, *, level: float = 1 - IMPOSSIBLE) -> float:
    r"""The largest prior that the bins allow, :math:`\min_b u_b / P_b`, at the upper end of its confidence interval.

    No bin can hold more positives than rows. The interval is one-sided at `level` for all bins together (Bonferroni).

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> data = cal.PositiveUnlabeled(rng.beta(2, 1, 1000), rng.random(10_000), prior=0.4)  # the truth allows 0.53
    >>> round(largest_prior(cal.BinTable.of(data, cal.EqualMass(10))), 2)
    0.74
    """
    from scipy.special import ndtri

    gaps = Gaps.of(table)
    log_rate, error = gaps.log_rate_error()
    reach = ndtri(1 - (1 - level) / len(table))
    return float(min(1.0, gaps.prior * np.exp((reach * error - log_rate).min())))
