"""Which of two models has the larger calibration error? From the rows of both, and the noise that they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Binary
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.binary_error.fine_sample import FineSample
from calibrant.inference.binary_error.inversion import Inversion, Limits
from calibrant.inference.binary_error.pooled_cells import PooledCells
from calibrant.inference.paired.squared_errors import Resolutions, of_errors
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.numerics.inverted_path import ALPHA_SHARE

#: Level at which the limits of each model are simulated; for other levels their distances are scaled by normal
#: quantiles, so that interval and p-value agree at every level.
LEVEL = 0.95


@dataclass(frozen=True)
class PairedGaps:
    r"""The difference of two true calibration errors, with the noise that both models share.

    *L2 and squared errors.* Rows are divided into cells of neighbouring scores, for each model by its own. With
    residuals r = s - y, the mean of the products of residuals of different rows (clusters, where there is a group) of a
    cell is an estimate of its squared gap without bias, so that

    .. math:: D = Q_a - Q_b, \qquad Q = \sum_j w_j \, \overline{r_i r_{i'}}

    is one of the difference of squared errors, whatever the curves are. Its variance is that of a U-statistic, from the
    rows in pairs: what both models share cancels, all noise but that of the difference of their Brier scores if they
    rank the rows alike. There are 2√n cells, and up to four times as many as long as that raises the variance by no
    more than a quarter. The p-value is that of D. The difference of the errors is D / (θ_a + θ_b): its interval allows
    for all sums θ_a² + θ_b² within three standard errors. It is extended away from zero by what cells half the size
    show.

    *Other norms* have no estimate without bias. Each model has an estimate θ̂ whose median is the error of its fitted
    gap, and the limits l and u of `Inversion`, which need no smooth gap; h is the upper limit of the error of the
    fitted gap alone. They are combined as the limits of a difference of correlated estimates are (MOVER, method of
    variance estimates recovery), except for the misfit u - h that the data may hide, which is added in full,

    .. math:: L = \hat\theta_a - \hat\theta_b - \sqrt{(\hat\theta_a - l_a)^2 + (h_b - \hat\theta_b)^2
              - 2 r (\hat\theta_a - l_a)(h_b - \hat\theta_b)} - (u_b - h_b),

    and U likewise. If zero is not excluded for a, L is at most -u_b; if it is not for b, U is at least u_a. The
    correlation r is that of the contributions of rows (clusters) to the two errors,
    :math:`f(s)(s - y - \hat g(s)) + |\hat g(s)|^q` with :math:`f = q|\hat g|^{q-1}` times the sign of ĝ, or times ĝ
    divided by its standard error where that is less than one. The p-value is the largest at which the interval contains
    0. This finds differences much later than L2 does.

    Three tenths of the risk are reserved for the approximations.

    Parameters
    ----------
    draws : int
        Number of simulated samples; L2 needs none.
    seed : int

    References
    ----------
    Hoeffding (1948), A class of statistics with asymptotically normal distribution, for D.
    Zou (2007), Toward using confidence intervals to compare correlations, for the limits.

    Notes
    -----
    A bootstrap of a debiased error varies about a value that noise made larger: it calls equal models different in 0.17
    of samples at the 5 % level. Size and coverage of this method are in docs/inference.md.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> y = rng.random(4000) < p
    >>> found = PairedGaps().difference(cal.Binary(y, p**2), cal.Binary(y, p), norm=1, level=0.95)
    >>> found.low < 1 / 6 < found.high, found.p_value < 0.001  # the true errors are 1/6 and 0
    (True, True)
    """

    draws: int = 299
    seed: int = 0

    def __post_init__(self) -> None:
        validation.seed(self.seed)
        validation.whole("draws", self.draws, minimum=2)

    def difference(self, a: Binary, b: Binary, *, norm: float, level: float, squared: bool = False) -> Difference:
        """The error of `a` less that of `b` in the norm, or of their powers."""
        from scipy.special import ndtr, ndtri

        samples = _samples(a, b)
        if norm == 2:
            return self._of_squares(*samples, level=level, squared=squared)
        first, second = (_Model.of(sample, self, norm) for sample in samples)
        power = norm if squared else 1.0
        value = first.estimate**power - second.estimate**power
        shared = _correlation(first.contributions, second.contributions)
        a_down, a_up, a_hidden = first.reach(power)
        b_down, b_up, b_hidden = second.reach(power)
        down, up = _combined(a_down, b_up, shared) + b_hidden, _combined(a_up, b_down, shared) + a_hidden
        if first.low == 0:  # if a may be calibrated, b may be worse by all that its own limit allows
            down = max(down, second.high**power + value)
        if second.low == 0:
            up = max(up, first.high**power - value)
        unit = -float(ndtri(ALPHA_SHARE * (1 - LEVEL) / 2))
        scale = -float(ndtri(ALPHA_SHARE * (1 - level) / 2)) / unit
        towards_zero = down if value > 0 else up
        distance = unit * abs(value) / max(towards_zero, 1e-300) if value else 0.0
        p_value = min(1.0, 2 * float(ndtr(-distance)) / ALPHA_SHARE)
        return Difference(value, value - scale * down, value + scale * up, p_value)

    def _of_squares(self, a: Sample, b: Sample, *, level: float, squared: bool) -> Difference:
        """From the difference of squared errors, which has no bias and needs no simulation."""
        from scipy.special import stdtr, stdtrit

        limits = [Limits.of(FineSample.of_sample(one), self._inversion, norms=(2.0,), level=LEVEL) for one in (a, b)]
        power = 2 if squared else 1
        largest = [_largest_error(one.sample.cells) ** power for one in limits]
        if limits[0].silent:  # too few clusters to say anything
            return Difference(0.0, -largest[1], largest[0], 1.0)
        found = Resolutions.of(a, b, effective_n=min(one.sample.cells.effective_n for one in limits))
        chosen = found.chosen
        low, high = found.interval(-float(stdtrit(found.freedom, ALPHA_SHARE * (1 - level) / 2)), squared=squared)
        difference, total = chosen.value
        value = float(difference if squared else of_errors(difference, total))
        distance = abs(float(difference)) / max(chosen.error, 1e-300)
        p_value = min(1.0, 2 * float(stdtr(found.freedom, -distance)) / ALPHA_SHARE)
        value, low, high = (min(max(end, -largest[1]), largest[0]) for end in (value, low, high))
        return Difference(value, low, high, p_value)

    @property
    def _inversion(self) -> Inversion:
        return Inversion(self.draws, self.seed)


@dataclass(frozen=True)
class Difference:
    """A difference, the ends of its interval, and the p-value against no difference."""

    value: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, eq=False)
class _Model:
    """Estimate and limits of the error of one model, and what each cluster contributes to it."""

    estimate: float
    low: float
    fitted_high: float
    high: float
    contributions: Floats

    @classmethod
    def of(cls, sample: Sample, method: PairedGaps, norm: float) -> _Model:
        limits = Limits.of(FineSample.of_sample(sample), method._inversion, norms=(norm,), level=LEVEL)
        low, high = limits.lower(norm), limits.upper(norm)
        estimate = min(max(0.0 if limits.silent else limits.middle(norm), low), high)
        fitted_high = high if limits.silent else min(max(limits.fitted_upper(norm), estimate), high)
        return cls(estimate, low, fitted_high, high, _contributions(sample, limits, norm))

    def reach(self, power: float) -> tuple[float, float, float]:
        """Distances, of powers: down to the lower limit, up to that of the fitted gap, and from there up by misfit."""
        low, middle, fitted, high = (end**power for end in (self.low, self.estimate, self.fitted_high, self.high))
        return middle - low, fitted - middle, high - fitted


def _samples(a: Binary, b: Binary) -> tuple[Sample, Sample]:
    """The rows of both models, which have the same weights and clusters."""
    weights = [np.ones(len(data)) if data.weight is None else data.weight for data in (a, b)]
    if not (np.array_equal(*weights) and np.array_equal(a.group, b.group)):  # type: ignore[arg-type]
        message = "Two models are compared on the same rows: give both the same weight= and the same group=."
        raise InvalidPredictions(message)
    return Sample.of_rows(a), Sample.of_rows(b)


def _contributions(sample: Sample, limits: Limits, norm: float) -> Floats:
    """What each cluster adds to the power of the error, to first order."""
    cells, gap, sigma = limits.sample.cells, limits.resolution.gap, limits.resolution.sigma
    error = np.sqrt(np.maximum(limits.resolution.fit.variance(sigma**2 / cells.count), 1e-300))
    slope = norm * np.abs(gap) ** (norm - 1) * np.clip(gap / error, -1.0, 1.0)
    size = np.abs(gap) ** norm
    cell = cells.number[sample.cell]
    by_row = slope[cell] * (sample.residual - gap[cell]) + (size - float(cells.share @ size))[cell]
    return sample.by_cluster((sample.row_share * by_row)[:, None])[:, 0]


def _largest_error(cells: PooledCells) -> float:
    """The L2 error if all outcomes were on the other side."""
    return float(np.sqrt(cells.share @ np.maximum(cells.predicted, 1 - cells.predicted) ** 2))


def _correlation(a: Floats, b: Floats) -> float:
    lengths = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float(a @ b) / lengths if lengths > 0 else 0.0


def _combined(one: float, other: float, correlation: float) -> float:
    """Distance of a limit of a difference, from those of its two parts."""
    return float(np.sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0)))
