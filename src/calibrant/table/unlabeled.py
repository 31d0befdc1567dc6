"""What a table of positive-unlabeled rows says about each bin: error mass, its variance, and impossible rates."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.table.bintable import BinTable

#: A rate above 1 is called impossible where its one-sided p-value, times the number of bins, is below this.
IMPOSSIBLE = 1e-3


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
        if table.prior is None:
            message = "This needs positive-unlabeled data: a PositiveUnlabeled task or a table of one."
            raise ValueError(message)
        observed, total = float(table.observed.sum()), table.total
        scale = table.observed_scale
        return cls(
            prior=scale * observed / total,
            positive=table.observed / observed,
            share=table.share,
            predicted=table.predicted / total,
            predicted_squares=table.predicted_squares / total,
            product=table.product * (scale / total if table.nested else 0.0),
            n_positive=observed**2 / float(table.observed_squares.sum()),
            n_unlabeled=total**2 / float(table.weight_squares.sum()),
            frequency=1 / scale if table.nested else None,
            known_frequency=table.label_frequency is not None,
        )

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
            message = "This table was made without squares; make it by BinTable.of(data, bins)."
            raise ValueError(message)
        q = self.positive if positive is None else positive
        rows = np.diag(self.predicted_squares) - np.outer(self.predicted, self.predicted)
        labels = np.diag(q) - np.outer(q, q)
        few, many = max(self.n_positive - 1, 1.0), max(self.n_unlabeled - 1, 1.0)
        if self.frequency is None:
            return self.prior**2 * labels / few + rows / many
        if self.known_frequency:  # psi = (s / c - f) 1_b
            mass = self.prior * q
            second = np.diag(mass / self.frequency - 2 * self.product + self.predicted_squares)
            gap = mass - self.predicted
            return (second - np.outer(gap, gap)) / many
        # psi = (s / c) (1_b - P_b) - f 1_b with c = mean(s) / prior
        cross = np.diag(self.product) - np.outer(q, self.product)
        return (self.prior / self.frequency * labels - cross - cross.T + rows) / many

    def null_covariance(self) -> Floats:
        """The covariance of the D_b if the model is calibrated: positives are spread as the predictions say.

        Bins that hold no labelled positive by chance would otherwise seem to be known exactly.
        """
        null = self.predicted / self.predicted.sum()
        return replace(self, product=self.predicted_squares).covariance(null)

    def log_rate_error(self) -> tuple[Floats, Floats]:
        """Logarithm of the rate and its standard error, with half a row added to each count so that none is empty."""
        positive = (self.positive * self.n_positive + 0.5) / (self.n_positive + 1)
        share = (self.share * self.n_unlabeled + 0.5) / (self.n_unlabeled + 1)
        variance = (1 - positive) / (self.n_positive * positive) + (1 - share) / (self.n_unlabeled * share)
        return np.log(self.prior * positive / share), np.sqrt(variance)


def largest_prior(table: BinTable, *, level: float = 1 - IMPOSSIBLE) -> float:
    r"""The largest prior that the bins allow, :math:`\min_b u_b / P_b`, at the upper end of its confidence interval.

    No bin can hold more positives than rows. The interval is one-sided at `level` for all bins together (Bonferroni).
    """
    from scipy.special import ndtri

    gaps = Gaps.of(table)
    log_rate, error = gaps.log_rate_error()
    reach = ndtri(1 - (1 - level) / len(table))
    return float(min(1.0, gaps.prior * np.exp((reach * error - log_rate).min())))


def warn_of_impossible_rates(table: BinTable) -> None:
    """Warn where a bin would hold significantly more positives than rows."""
    gaps = Gaps.of(table)
    if not (gaps.prior * gaps.positive > gaps.share).any():
        return
    largest = largest_prior(table)
    if largest < gaps.prior:
        message = (
            f"The prior {gaps.prior:.4g} is larger than the data allow: some bin would hold more positives than rows. "
            f"The largest prior consistent with the bins is {largest:.4g}; or the labelled positives are not a random "
            "sample of all positives."
        )
        warnings.warn(message, UserWarning, stacklevel=4)
