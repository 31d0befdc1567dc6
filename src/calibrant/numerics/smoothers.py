r"""One-dimensional smoothers of a binary outcome: an average of penalised logistic splines, and loess.

Every member of the average models the logit of the outcome as the predicted logit plus a smooth correction,

.. math:: \operatorname{logit} g = z + \Phi b, \qquad b \sim N(0, \operatorname{diag}(1/\lambda)),

with corrections from none to affine functions and splines of several length scales. Members are weighted by the mean of
two softmaxes, of their marginal likelihoods and of their leave-one-out likelihoods; an isotonic member, for steps, is
weighted by its cross-fitted likelihood. All fits use at most a few hundred bins of the score, so their cost does not
grow with the number of rows, and all folds are fitted together. Bins, ranks and scales depend on the scores only: the
map applied to a fold never sees the labels of that fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.acceleration import compiled
from calibrant.numerics.arrays import Floats, clipped_log_odds, expit, log_softmax
from calibrant.numerics.logistic.stacked import LogisticFits, logistic_fits, unfitted
from calibrant.numerics.sorting import SortedRows, positives_between

#: Quantile bins of the score, and bins of equal width on the logit scale; fewer distinct scores are not binned. Test:
#: tests/numerics/test_smoothers.py::test_curves_fitted_with_these_constants.
QUANTILE_BINS, LOGIT_BINS = 100, 60
_Kernel = Callable[[Floats, float], Floats]
Criterion = Literal["evidence", "held_out"]

#: Logarithm of the smallest normal number, used in place of log 0. Derived: IEEE 754.
_LOG_TINY = float(np.log(np.finfo(np.float64).tiny))
#: Members with less weight than this are left out of predictions. Speed: most members have none; each moves
#: probabilities by less than 1e-3 times their spread.
MIN_WEIGHT = 1e-3
#: Points of the quadrature over the posterior of a member. Derived: log odds are right to .001 for variances up to 4,
#: as tests/numerics/test_smoothers.py::test_the_mean_of_a_probability_is_that_of_fine_quadrature checks.
QUADRATURE = 11
#: A bin with less weight than this is empty up to rounding. Derived: that of differences of sums of up to 1e6 rows.
EMPTY = 1e-9
#: Prior standard deviations of the coefficients, for corrections with few and with many coefficients. Test:
#: tests/numerics/test_smoothers.py::test_curves_fitted_with_these_constants.
COARSE_SCALES, FINE_SCALES = (0.1, 0.4, 1.6), (0.2, 0.6, 1.8)


@dataclass(frozen=True, eq=False)
class LogitBins:
    """Scores cut into bins without looking at outcomes: bin b holds raw logits in (edges[b - 1], edges[b]].

    Logits are clipped to ± `limit`, log(4 n), beyond which n rows cannot tell a probability from 0 or 1. `logit` is the
    mean of these in each bin, `mass` its weight, and an `atom` a bin of one distinct score.
    """

    edges: Floats
    limit: float
    logit: Floats
    mass: Floats
    atom: NDArray[np.bool_]

    @classmethod
    def of(cls, raw: Floats, mass: Floats) -> LogitBins:
        """Bins of the raw logits `raw` with weights `mass`."""
        values, inverse = np.unique(raw, return_inverse=True)
        pooled = _sums(inverse, mass, len(values))
        values, mass = values[pooled > 0], pooled[pooled > 0]
        limit = float(np.log(4 * max(mass.sum(), 1.0)))
        clipped = np.clip(values, -limit, limit)
        if len(values) <= QUANTILE_BINS + LOGIT_BINS:
            edges = values[:-1]
        else:
            running = np.cumsum(mass)
            at = np.searchsorted(running, running[-1] * np.arange(1, QUANTILE_BINS) / QUANTILE_BINS)
            even = np.linspace(clipped[0], clipped[-1], LOGIT_BINS + 1)[1:-1]
            edges = np.union1d(values[at], even)
        index = np.searchsorted(edges, values, side="left")
        used, index = np.unique(index, return_inverse=True)
        edges, index = edges[used[:-1]], index.reshape(-1)
        weight = _sums(index, mass, len(used))
        return cls(edges, limit, _sums(index, mass * clipped, len(used)) / weight, weight, np.bincount(index) == 1)

    def __len__(self) -> int:
        return len(self.logit)

    def index(self, raw: Floats) -> NDArray[np.intp]:
        """Bin number of each raw logit."""
        return np.searchsorted(self.edges, raw, side="left")

    @property
    def rank(self) -> Floats:
        """Middle rank of each bin, in (0, 1)."""
        return (np.cumsum(self.mass) - self.mass / 2) / self.mass.sum()

    @property
    def blend(self) -> Floats:
        """Mean of rank and scaled logit: neither dense tails nor a dense middle are stretched too far."""
        span = self.logit[-1] - self.logit[0]
        return 0.5 * self.rank + 0.5 * (self.logit - self.logit[0]) / max(span, 1e-9)


def families(bins: LogitBins) -> list[tuple[Floats, Floats]]:
    """The corrections that are averaged, from stiff to flexible: bases, each with the precisions of its members."""
    z = bins.logit
    scale = max(float(np.sqrt(np.average(z**2, weights=bins.mass))), 0.5)
    slope = z / scale
    bend = (np.logaddexp(0, z) + np.logaddexp(0, -z) - 2 * np.log(2)) / scale
    square = slope**2 / max(1.0, float(np.abs(slope).max()) / 2)
    one = np.ones_like(z)
    found = [_coarse(np.column_stack([one, slope])), _coarse(np.column_stack([one, slope, bend, square]))]
    trend = np.column_stack([one, slope, bend])
    if len(bins) >= 6:
        found += [
            _fine(trend, kernel_basis(bins.blend, matern, length, knots))
            for length, knots in ((0.5, 9), (0.15, 16), (0.05, 32))
        ]
        found.append(_fine(trend, kernel_basis(bins.rank, exponential, 0.3, 24)))
    atoms = np.flatnonzero(bins.atom & (bins.mass >= max(8, 0.01 * bins.mass.sum())))
    if 2 <= len(atoms) <= 60:
        found.append(_fine(trend, np.eye(len(bins))[:, atoms]))
    return found


@dataclass(frozen=True, eq=False)
class SmootherAverage:
    """Fitted members per data set (fold): how each shifts the logit of a bin, and its weight."""

    bins: LogitBins
    shift: Floats
    weight: Floats
    steps: Floats
    steps_weight: Floats

    @classmethod
    def fit(cls, bins: LogitBins, ones: Floats, zeros: Floats, targets: Sequence[int]) -> SmootherAverage:
        """Fit one average per target to all folds but the target, from outcomes 1 and 0 counted by fold and bin."""
        positive, negative = ones.sum(axis=0) - ones[targets], zeros.sum(axis=0) - zeros[targets]
        fits = member_fits(bins, positive, negative)
        by_evidence, _ = member_weights(fits, "evidence")
        by_held_out, smooth = member_weights(fits, "held_out")
        weight = (by_evidence + by_held_out) / 2
        eta = np.concatenate([fit.eta for fit in fits], axis=1)
        variance = np.concatenate([fit.variance for fit in fits], axis=1)
        steps, likelihood = _isotonic(bins, ones, zeros, targets)
        lead = np.clip(likelihood - smooth, -500, 500)
        used = weight >= MIN_WEIGHT  # the others are never predicted
        eta[used] = log_odds_of_mean(eta[used], np.broadcast_to(variance, eta.shape)[used])
        return cls(bins, eta - bins.logit, weight, steps, expit(lead))

    def predict(self, data_set: int, raw: Floats) -> Floats:
        """Recalibrated probabilities of raw logits by the map fitted on one data set."""
        index = self.bins.index(raw)
        z = np.clip(raw, -self.bins.limit, self.bins.limit)
        weight = np.where(self.weight[data_set] >= MIN_WEIGHT, self.weight[data_set], 0.0)
        smooth = np.zeros(len(raw))
        for member in np.flatnonzero(weight):
            smooth += weight[member] * expit(z + self.shift[data_set, member][index])
        share = float(self.steps_weight[data_set])
        if share < MIN_WEIGHT:
            return smooth / weight.sum()
        return (1 - share) * smooth / weight.sum() + share * self.steps[data_set][index]


def cross_fitted(
    score: Floats, fold: NDArray[np.intp], positive: Floats, negative: Floats, *, targets: Sequence[int] | None = None
) -> Floats:
    """Recalibrated probability of every entry, which stands for rows of one score, by the map without its fold.

    `positive` and `negative` count its rows. Entries of folds that are no target are used for fitting only.
    """
    raw = raw_logit(score)
    bins = LogitBins.of(raw, positive + negative)
    index, m, k = bins.index(raw), len(bins), int(fold.max()) + 1
    flat = fold * m + index
    ones = _sums(flat, positive, k * m).reshape(k, m)
    zeros = _sums(flat, negative, k * m).reshape(k, m)
    wanted = list(range(k) if targets is None else targets)
    average = SmootherAverage.fit(bins, ones, zeros, wanted)
    mapped = score.copy()
    for i, target in enumerate(wanted):
        mapped[fold == target] = average.predict(i, raw[fold == target])
    return mapped


def log_odds_of_mean(mean: Floats, variance: Floats) -> Floats:
    r"""Log odds of E expit(x) for normal x, by Gauss-Hermite quadrature."""
    place, share = np.polynomial.hermite_e.hermegauss(QUADRATURE)
    spread, up, down = np.sqrt(variance), np.zeros_like(mean), np.zeros_like(mean)
    for at, weight in zip(place, share / share.sum(), strict=True):
        odds = mean + at * spread
        up += weight * expit(odds)
        down += weight * expit(-odds)
    return np.asarray(np.log(up) - np.log(down))


def raw_logit(score: Floats) -> Floats:
    """Log-odds of probabilities; those of 0 and 1 are finite, and more extreme than all others."""
    return clipped_log_odds(score, floor=_LOG_TINY)


def _sums(index: NDArray[np.intp], values: Floats, size: int) -> Floats:
    return np.bincount(index, values, size).astype(np.float64, copy=False)


def member_fits(bins: LogitBins, positive: Floats, negative: Floats) -> list[LogisticFits]:
    """All members fitted to the outcomes (data sets, bins): the predictions as they are, then each family."""
    fits, start = [unfitted(bins.logit, positive, negative)], None
    for basis, precision in families(bins):
        fits.append(logistic_fits(basis, bins.logit, positive, negative, precision, start=start))
        start = fits[1].coefficients[:, -1]  # all bases begin with those of the affine family, the first
    return fits


def member_curves(fits: list[LogisticFits]) -> tuple[Floats, Floats]:
    """Probabilities that all members give to the bins, and the sampling variances of their log odds."""
    logits = np.concatenate([fit.eta for fit in fits], axis=1)
    return expit(logits), np.concatenate([fit.sampling_variance for fit in fits], axis=1)


def member_weights(fits: list[LogisticFits], by: Criterion) -> tuple[Floats, Floats]:
    """Weights of the members by their evidence or held-out likelihood, and the log of their prior-weighted sum.

    Families have equal prior weight, however many penalties they have.
    """
    prior = np.concatenate([np.full(fit.evidence.shape[1], -np.log(fit.evidence.shape[1])) for fit in fits])
    score = np.concatenate([getattr(fit, by) for fit in fits], axis=1) + prior
    logs = log_softmax(score)
    return np.exp(logs), score[:, 0] - logs[:, 0]


def _isotonic(bins: LogitBins, ones: Floats, zeros: Floats, targets: Sequence[int]) -> tuple[Floats, Floats]:
    """Isotonic fit to all folds but each target, and its cross-fitted log-likelihood on these folds."""
    if len(ones) < 3:  # a single training fold cannot be cross-fitted
        return np.empty((len(targets), len(bins))), np.full(len(targets), -np.inf)
    predicted, all_ones, all_zeros = expit(bins.logit), ones.sum(axis=0), zeros.sum(axis=0)

    @cache
    def without(folds: frozenset[int]) -> Floats:
        out = list(folds)
        return _steps(predicted, all_ones - ones[out].sum(axis=0), all_zeros - zeros[out].sum(axis=0))

    likelihood = np.zeros(len(targets))
    for i, target in enumerate(targets):
        for part in (k for k in range(len(ones)) if k != target):
            g = without(frozenset((target, part)))
            likelihood[i] += ones[part] @ np.log(g) + zeros[part] @ np.log1p(-g)
    return np.stack([without(frozenset((target,))) for target in targets]), likelihood


def _steps(predicted: Floats, ones: Floats, zeros: Floats) -> Floats:
    """Isotonic regression, each block with one row of its mean predicted probability added."""
    from scipy.optimize import isotonic_regression

    total = ones + zeros
    some = np.flatnonzero(total > EMPTY)
    if len(some) == 0:
        return predicted
    weight = total[some]
    blocks = isotonic_regression(ones[some] / weight, weights=weight).blocks[:-1]
    weight, observed, prior = np.add.reduceat([weight, ones[some], weight * predicted[some]], blocks, axis=1)
    level = (observed + prior / weight) / (weight + 1)
    block = np.searchsorted(some[blocks], np.arange(len(predicted)), side="right") - 1
    return level[np.maximum(block, 0)]


def _coarse(basis: Floats) -> tuple[Floats, Floats]:
    scales = np.array(COARSE_SCALES)
    return basis, np.ones(basis.shape[1]) / scales[:, None] ** 2


def _fine(trend: Floats, basis: Floats) -> tuple[Floats, Floats]:
    scales = np.array(FINE_SCALES)[:, None]
    trend_precision = np.ones(trend.shape[1]) / np.maximum(scales, 0.4) ** 2
    return np.hstack([trend, basis]), np.hstack([trend_precision, np.ones(basis.shape[1]) / scales**2])


def kernel_basis(x: Floats, kernel: _Kernel, length: float, knots: int) -> Floats:
    """Nyström basis: a Gaussian process with this kernel has independent unit coefficients in it.

    Its knots are equally spaced, or the points themselves where these are fewer.
    """
    at = np.linspace(x[0], x[-1], knots) if knots < len(x) else x
    # For matrices as small as these, BLAS's solver of triangular systems spends its time on starting threads.
    return np.asarray(np.linalg.solve(nystrom_root(at, kernel, length), kernel(at[:, None] - x, length)).T)


def nystrom_root(knots: Floats, kernel: _Kernel, length: float) -> Floats:
    """Cholesky factor of the covariance of the process at the knots."""
    return np.asarray(np.linalg.cholesky(kernel(knots[:, None] - knots, length) + 1e-8 * np.eye(len(knots))))


def matern(distance: Floats, length: float) -> Floats:
    """Matérn kernel of smoothness 3/2."""
    a = np.sqrt(3) * np.abs(distance) / length
    return (1 + a) * np.exp(-a)


def exponential(distance: Floats, length: float) -> Floats:
    """Kernel of the Ornstein-Uhlenbeck process: rough paths."""
    return np.exp(-np.abs(distance) / length)


def loess(x: Floats, y: Floats, weight: Floats, *, span: float = 0.75, degree: int = 2) -> Floats:
    r"""Fitted values at each x of weighted polynomials around it (Cleveland, Devlin 1988, Locally Weighted Regression).

    The window around a point holds the share `span` of the weight nearest to it; inside, weights are tricube, (1 - |d /
    h|³)³. The cost is the square of the number of points.
    """
    distance = np.abs(x[:, None] - x)
    order = np.argsort(distance, axis=1)
    reached = np.cumsum(weight[order], axis=1) >= span * weight.sum() * (1 - 1e-12)
    last = np.take_along_axis(order, reached.argmax(axis=1)[:, None], axis=1)
    width = np.take_along_axis(distance, last, axis=1)
    width = np.where(width > 0, width, 1.0)  # ties fill the window: all of them are at distance zero
    u = (x - x[:, None]) / width
    local = weight * np.clip(1 - np.abs(u) ** 3, 0.0, None) ** 3
    moments = np.stack([(local * u**power).sum(axis=1) for power in range(2 * degree + 1)])
    sides = np.stack([(local * u**power) @ y for power in range(degree + 1)], axis=1)
    rows = np.arange(degree + 1)
    matrix = np.moveaxis(moments[rows[:, None] + rows], -1, 0)
    return np.einsum("ij,ij->i", np.linalg.pinv(matrix, hermitian=True)[:, 0], sides)


def isotonic_blocks(rows: SortedRows) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Isotonic regression of plain binary rows: first row, number of rows and positives of each block."""
    ends = rows.ends
    fast = compiled(len(rows), saves=6.0)
    if fast is not None:
        size, merged = (len(rows), np.zeros(1, np.intp)) if ends is None else (len(ends), ends)
        counted, ones, starts = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.intp)
        number = int(fast.isotonic_blocks(rows.rows.observed, merged, ends is not None, counted, ones, starts))
        return starts[:number].copy(), counted[:number].astype(np.float64), ones[:number].astype(np.float64)
    if ends is None:
        observed = rows.rows.observed
        rises = observed[1:] > observed[:-1]  # every run of ones followed by zeros ends in one block
        starts = np.concatenate([[0], np.flatnonzero(rises) + 1])
        weight = np.diff(starts, append=len(rows)).astype(np.float64)
    else:
        starts = np.concatenate([[0], ends[:-1]])
        weight = np.diff(ends, prepend=0).astype(np.float64)
    positives = positives_between(rows.rows.observed, np.append(starts[1:], len(rows))).astype(np.float64)
    blocks, weight, positives = pool_adjacent_violators(weight, positives)
    return starts[blocks], weight, positives


def pool_adjacent_violators(weight: Floats, observed: Floats) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Isotonic regression of observed / weight: starts, weight and observed sum of its blocks.

    Every maximal run of block means that do not rise ends up in one block, so whole runs are pooled at once; a few such
    rounds leave little for the sequential algorithm.
    """
    starts = np.arange(len(weight))
    for _ in range(12):
        mean = observed / weight
        rises = mean[1:] > mean[:-1]
        if rises.all():
            return starts, weight, observed
        keep = np.concatenate([[0], np.flatnonzero(rises) + 1])
        starts = starts[keep]
        weight, observed = np.add.reduceat(weight, keep), np.add.reduceat(observed, keep)
    from scipy.optimize import isotonic_regression

    blocks = isotonic_regression(observed / weight, weights=weight).blocks[:-1]
    return starts[blocks], np.add.reduceat(weight, blocks), np.add.reduceat(observed, blocks)
