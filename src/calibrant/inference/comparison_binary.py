"""The difference of two binary models' true calibration errors on the same rows, and its interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from calibrant.data import validation
from calibrant.data.predictions import Binary, Predictions
from calibrant.data.validation import fail
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.numerics.binary_inversion import Limits
from calibrant.numerics.cells import PooledCells, effective_clusters
from calibrant.numerics.inversion import ALPHA_SHARE, Numbers

#: Ranges of scores in which the variance of the residuals is compared with the predicted one: in single cells, of a few
#: rows, the larger of the two is too large by chance. Test: tests/inference/inversion/test_binary_constants.py.
RANGES = 10


@dataclass(frozen=True, eq=False)
class SquaredGap:
    r"""The squared L2 error in cells, from products of residuals of different clusters (rows, without a group).

    With shares W_j of the weight, sums R_gj of weighted residuals of cluster g and weights W_gj,

    .. math:: Q = \sum_j W_j \frac{(\sum_g R_{gj})^2 - \sum_g R_{gj}^2}{W_j^2 - \sum_g W_{gj}^2}

    has the expectation :math:`\sum_j W_j \bar g_j^2`, \bar g_j being the mean gap of the cell, for every n. `factor`
    multiplies products of residuals. `noise` (clusters and rows, cells) are sums of weighted residuals about the mean
    gap and, where predictions have more variance than residuals show, the rest, row by row. `contributions` are what
    each adds to Q, to first order, given the residuals of all others.
    """

    square: float
    factor: Floats
    noise: Any
    contributions: Floats
    rows: int

    @classmethod
    def in_cells(cls, sample: Sample, predicted: Floats, size: int) -> SquaredGap:
        """In about `size` cells of `predicted`, the mean of both: models that rank rows alike get the same cells."""
        sums = np.array(sample.table.sums[:5], dtype=np.float64)
        sums[3] = np.bincount(sample.cell, sample.row_share * predicted, sums.shape[1]) * float(sums[1].sum())
        pooled = PooledCells.of(sums, size, distinct=min(4.0 * size, float(sums[0].sum()) / 3))
        return cls.of(sample, predicted * (1 - predicted), pooled.number[sample.cell])

    @classmethod
    def of(cls, sample: Sample, spread: Floats, cell: Numbers) -> SquaredGap:
        """From the cell of each row."""
        weight, residual = sample.row_share, sample.residual
        shares, sums = (_by_cluster(sample, cell, values) for values in (weight, weight * residual))
        share, total = _column_sums(shares), _column_sums(sums)
        pairs = share**2 - _column_sums(shares * shares)
        several = pairs > 1e-9 * share**2
        factor = np.where(several, share / np.where(several, pairs, 1.0), 0.0)
        gap = total / share
        apart = residual - gap[cell]
        scale = np.where(several, share * factor, 1.0)
        seen, predicted = (np.bincount(cell, weight * values) for values in (apart**2 * scale[cell], spread))
        unseen = weight * np.sqrt(spread * _unseen(share, seen, predicted)[cell])
        noise = _stacked(_by_cluster(sample, cell, weight * apart * np.sqrt(scale)[cell]), unseen, cell)
        own = _stacked(sums, weight * residual, cell)
        contributions = 2 * (noise @ (factor * total) - (noise * own) @ factor)
        contributions[: sample.clusters] += shares @ (gap**2 - float(share @ gap**2))
        square = float(factor @ (total**2 - _column_sums(sums * sums)))
        contributions *= np.sqrt(sample.clusters / max(sample.clusters - 1, 1))
        return cls(square, factor, noise, contributions, len(cell))

    def apart(self, *, first: bool) -> SquaredGap:
        """The same with variance beyond that of the residuals in rows of its own, shared with no other model."""
        from scipy.sparse import csr_array, vstack

        cells, clusters = self.noise.shape[1], self.noise.shape[0] - self.rows
        place = clusters + self.rows if first else clusters
        empty = csr_array((self.rows, cells))
        noise = vstack([self.noise[:place], empty, self.noise[place:]], format="csr")
        return replace(self, noise=noise, contributions=np.insert(self.contributions, place, np.zeros(self.rows)))

    def shared_noise(self, other: SquaredGap) -> float:
        """The covariance of both squares if gaps are zero; noise of the gaps adds twice it to that of contributions."""
        products = (self.noise.T @ other.noise).tocoo()
        squares, (i, j) = products.data**2, products.coords
        own = ((one.noise * one.noise) @ one.factor for one in (self, other))
        return 2 * (float(np.sum(self.factor[i] * other.factor[j] * squares)) - float(np.prod([*own], axis=0).sum()))


def _unseen(share: Floats, seen: Any, predicted: Any) -> Floats:
    """The part of the predicted variance that residuals do not show, in ranges of scores; 0 where they show it all."""
    position = (np.cumsum(share) - share / 2) / share.sum()
    part = np.minimum((position * RANGES).astype(np.intp), RANGES - 1)
    residual, outcome = (np.bincount(part, values, RANGES) for values in (seen, predicted))
    return np.asarray(np.maximum(0.0, 1 - residual / np.maximum(outcome, 1e-300))[part])


def _stacked(sums: Any, values: Floats, cell: Numbers) -> Any:
    """Sums over clusters and cells, and below them a value of each row in its cell."""
    from scipy.sparse import csr_array, vstack

    rows = csr_array((values, cell, np.arange(len(cell) + 1)), shape=(len(cell), sums.shape[1]))
    return vstack([sums, rows], format="csr")


def _by_cluster(sample: Sample, cell: Numbers, values: Floats) -> Any:
    """Sums of a value per row over clusters and cells."""
    from scipy.sparse import csr_array

    shape = (sample.clusters, int(cell.max()) + 1)
    if sample.clusters == len(cell):  # one row each, in their order
        return csr_array((values, cell, np.arange(len(cell) + 1)), shape=shape)
    return csr_array((values, (sample.cluster, cell)), shape=shape)


def _column_sums(matrix: Any) -> Floats:
    return np.asarray(matrix.sum(axis=0), dtype=np.float64)


#: Cells are this many times the root of n. The usual √n lose so much of a stair to cells that are cut by its steps that
#: equal models were called different in .12 of samples, 2√n half as much.
#: Test: tests/inference/inversion/test_binary_constants.py.
FINENESS = 2.0

#: Resolutions at most, each twice as fine as the one before; rows per cell at least, in the mean; cells at least.
#: Test: tests/inference/inversion/test_binary_constants.py.
RUNGS, LEAST_ROWS, LEAST_CELLS = 3, 6.0, 4

#: A finer resolution is preferred as long as it makes the variance of the difference no larger than this.
#: Test: tests/inference/inversion/test_binary_constants.py.
PRICE = 1.25

#: Standard deviations of the sum, given the difference, that are allowed for; and differences that are tried.
#: Test: tests/inference/inversion/test_binary_constants.py.
REACH, STEPS = 3.0, 33

#: From the squared errors of both models to their difference and sum. Derived: the rows are (a - b) and (a + b).
_TURN = np.array([[1.0, -1.0], [1.0, 1.0]])


@dataclass(frozen=True, eq=False)
class SquaredErrors:
    """Difference and sum of the squared L2 errors of two models, and their covariance."""

    value: Floats
    covariance: Floats

    @classmethod
    def of(cls, a: SquaredGap, b: SquaredGap) -> SquaredErrors:
        """The variance of a U-statistic: that of the contributions less twice the noise of the gaps, and that noise."""
        both = np.stack([a.contributions, b.contributions])
        contributed = both @ both.T
        cross = a.shared_noise(b)
        noise = np.array([[a.shared_noise(a), cross], [cross, b.shared_noise(b)]])
        degenerate, linear = (_TURN @ part @ _TURN.T for part in (noise, contributed - 2 * noise))
        variance = np.maximum(np.diag(degenerate), 0.0) + np.maximum(np.diag(linear), 0.0)
        most = np.sqrt(variance[0] * variance[1])
        shared = float(np.clip(degenerate[0, 1] + linear[0, 1], -most, most))
        covariance = np.array([[variance[0], shared], [shared, variance[1]]])
        return cls(_TURN @ np.array([a.square, b.square]), covariance)

    def with_total_of(self, coarser: SquaredErrors) -> SquaredErrors:
        """The same difference, with the sum of a coarser resolution, where its noise is smaller."""
        variance, total = self.covariance[0, 0], coarser.covariance[1, 1]
        most = np.sqrt(variance * total)
        shared = float(np.clip(coarser.covariance[0, 1], -most, most))
        value = np.array([self.value[0], coarser.value[1]])
        return SquaredErrors(value, np.array([[variance, shared], [shared, total]]))

    @property
    def error(self) -> float:
        """The standard error of the difference."""
        return float(np.sqrt(self.covariance[0, 0]))

    def interval(self, reach: float, *, squared: bool) -> tuple[float, float]:
        """The difference of errors, or of their squares, up to so many standard errors of the difference of squares."""
        difference = self.value[0] + reach * self.error * np.linspace(-1, 1, STEPS)
        if squared:
            return float(difference[0]), float(difference[-1])
        slope = self.covariance[0, 1] / max(self.covariance[0, 0], 1e-300)
        left = np.sqrt(max(self.covariance[1, 1] - slope * self.covariance[0, 1], 0.0))
        middle = self.value[1] + slope * (difference - self.value[0])
        found = np.stack([of_errors(difference, middle + side * REACH * left) for side in (-1, 1)])
        return float(found.min()), float(found.max())


def of_errors(difference: Floats, total: Floats) -> Floats:
    """√A - √B = (A - B) / (√A + √B) from A - B and A + B; an estimate B below zero counts as none: √(A - B)."""
    roots = sum(np.sqrt(np.maximum(square, 0.0)) for square in (total + difference, total - difference)) / np.sqrt(2)
    return np.asarray(difference / np.maximum(np.maximum(roots, np.sqrt(np.abs(difference))), 1e-150))


@dataclass(frozen=True, eq=False)
class Resolutions:
    """Squared errors at rising resolution, and the degrees of freedom of their standard errors."""

    found: list[SquaredErrors]
    freedom: float

    @classmethod
    def of(cls, a: Sample, b: Sample, *, effective_n: float) -> Resolutions:
        """Of two models on the same rows, the effective number of which says how fine cells can be."""
        same = np.array_equal(a.rows.observed, b.rows.observed)
        predicted = [one.rows.predicted.astype(np.float64) for one in (a, b)]
        if same:
            predicted = [(predicted[0] + predicted[1]) / 2] * 2
        models = list(zip((a, b), predicted, strict=True))
        most = max(LEAST_CELLS, effective_n / LEAST_ROWS)
        first = min(most, max(LEAST_CELLS, FINENESS * np.sqrt(effective_n)))
        sizes = [round(first * 2**k) for k in range(RUNGS) if k == 0 or first * 2**k <= most]
        gaps = ([SquaredGap.in_cells(*model, size) for model in models] for size in sizes)
        if not same:  # their outcomes are different events of the same rows
            gaps = ([x.apart(first=True), y.apart(first=False)] for x, y in gaps)
        found = [SquaredErrors.of(x, y) for x, y in gaps]
        freedom = effective_clusters(a.by_cluster(a.row_share[:, None])[:, 0]) - 1
        return cls([one.with_total_of(found[0]) for one in found], freedom)

    @cached_property
    def _number(self) -> int:
        limit = PRICE * self.found[0].covariance[0, 0]
        return int(np.cumprod([one.covariance[0, 0] <= limit for one in self.found]).sum()) - 1

    @property
    def chosen(self) -> SquaredErrors:
        """The finest resolution before the price in noise is too high."""
        return self.found[self._number]

    def interval(self, reach: float, *, squared: bool) -> tuple[float, float]:
        """That of the chosen resolution, extended away from zero by that of the next finer one."""
        nearby = self.found[self._number : self._number + 2]
        ends = np.array([one.interval(reach, squared=squared) for one in nearby])
        low, high = ends[0]
        return float(min(ends[:, 0]) if low <= 0 else low), float(max(ends[:, 1]) if high >= 0 else high)


#: Level at which the limits of each model are simulated; for other levels their distances are scaled by normal
#: quantiles, so that interval and p-value agree at every level.
#: Test: tests/inference/inversion/test_binary_constants.py.
LEVEL = 0.95


@dataclass(frozen=True)
class PairedGaps(validation.Simulated):
    r"""The difference of two true calibration errors, with the noise that both models share.

    *L2 and squared errors.* Rows are divided into cells of neighbouring scores, for each model by its own scores. With
    residuals r = s - y, the mean of the products of residuals of different rows (clusters, where there is a group) of a
    cell is an unbiased estimate of its squared gap, so that

    .. math:: D = Q_a - Q_b, \qquad Q = \sum_j w_j \, \overline{r_i r_{i'}}

    is an unbiased estimate of the difference of squared errors, whatever the curves are. Its variance is that of a
    U-statistic, from the rows in pairs. Noise that both models share cancels: if they rank the rows alike, all of it
    but that of the difference of their Brier scores. There are 2√n cells, and up to four times as many as long as that
    raises the variance by no more than a quarter. The p-value is that of D. The difference of the errors is D / (θ_a +
    θ_b): its interval allows for all sums θ_a² + θ_b² within three standard errors. It is extended away from zero by
    what cells half the size show.

    *Other norms* have no unbiased estimate. Each model has an estimate θ̂ whose median is the error of its fitted gap,
    and the limits l and u of `Inversion`, which do not assume a smooth gap; h is the upper limit of the error of the
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
    of samples at the 5 % level. Size and coverage of this method are in docs/evidence/coverage.md.

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

    least_draws = 2

    draws: int = 299
    seed: int = 0

    def difference(self, a: Binary, b: Binary, *, norm: float, level: float, squared: bool = False) -> Difference:
        """The error of `a` less that of `b` in the norm, or of their powers."""
        require_same_weights(a, b)
        samples = Sample.of_rows(a), Sample.of_rows(b)
        if norm == 2:
            return self._of_squares(*samples, level=level, squared=squared)
        first, second = (_Model.of(sample, self, norm) for sample in samples)
        power = norm if squared else 1.0
        value = first.estimate**power - second.estimate**power
        one, other = first.contributions, second.contributions
        lengths = float(np.sqrt((one**2).sum() * (other**2).sum()))
        shared = float(one @ other) / lengths if lengths > 0 else 0.0
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
        limits = [Limits.of(one.fine(), self.draws, self.seed, norms=(2.0,), level=LEVEL) for one in (a, b)]
        power = 2 if squared else 1
        cells = [one.sample.cells for one in limits]
        gaps = [np.maximum(one.predicted, 1 - one.predicted) for one in cells]  # if all outcomes were on the other side
        largest = [float(np.sqrt(one.share @ gap**2)) ** power for one, gap in zip(cells, gaps, strict=True)]
        if limits[0].silent:  # too few clusters to say anything
            return Difference(0.0, -largest[1], largest[0], 1.0)
        found = Resolutions.of(a, b, effective_n=min(one.effective_n for one in cells))
        chosen = found.chosen
        low, high = found.interval(-float(stdtrit(found.freedom, ALPHA_SHARE * (1 - level) / 2)), squared=squared)
        difference, total = chosen.value
        value = float(difference if squared else of_errors(difference, total))
        distance = abs(float(difference)) / max(chosen.error, 1e-300)
        p_value = min(1.0, 2 * float(stdtr(found.freedom, -distance)) / ALPHA_SHARE)
        value, low, high = (min(max(end, -largest[1]), largest[0]) for end in (value, low, high))
        return Difference(value, low, high, p_value)


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
        limits = Limits.of(sample.fine(), method.draws, method.seed, norms=(norm,), level=LEVEL)
        low, high = limits.lower(norm), limits.upper(norm)
        estimate = min(max(0.0 if limits.silent else limits.middle(norm), low), high)
        fitted_high = high if limits.silent else min(max(limits.fitted_upper(norm), estimate), high)
        return cls(estimate, low, fitted_high, high, _contributions(sample, limits, norm))

    def reach(self, power: float) -> tuple[float, float, float]:
        """Distances, of powers: down to the lower limit, up to that of the fitted gap, and from there up by misfit."""
        low, middle, fitted, high = (end**power for end in (self.low, self.estimate, self.fitted_high, self.high))
        return middle - low, fitted - middle, high - fitted


def require_same_weights(a: Predictions, b: Predictions) -> None:
    """Refuse two models on the same rows whose weights, but for their unit, or groups differ."""
    shares = [
        np.full(len(data), 1 / len(data)) if data.weight is None else data.weight / data.weight.sum() for data in (a, b)
    ]
    if not (np.allclose(shares[0], shares[1], rtol=1e-9, atol=0) and np.array_equal(a.group, b.group)):  # type: ignore[arg-type]
        fail("Two models are compared on the same rows: give both the same weight= and the same group=.")


def _contributions(sample: Sample, limits: Limits, norm: float) -> Floats:
    """What each cluster adds to the power of the error, to first order."""
    cells, gap, sigma = limits.sample.cells, limits.resolution.gap, limits.resolution.sigma
    error = np.sqrt(np.maximum(limits.resolution.fit.variance(sigma**2 / cells.count), 1e-300))
    slope = norm * np.abs(gap) ** (norm - 1) * np.clip(gap / error, -1.0, 1.0)
    size = np.abs(gap) ** norm
    cell = cells.number[sample.cell]
    by_row = slope[cell] * (sample.residual - gap[cell]) + (size - float(cells.share @ size))[cell]
    return sample.by_cluster((sample.row_share * by_row)[:, None])[:, 0]


def _combined(one: float, other: float, correlation: float) -> float:
    """Distance of a limit of a difference, from those of its two parts."""
    return float(np.sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0)))
