"""Interval for the true calibration error from positive-unlabeled data, by inverting a test of a fitted gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.validation import fail
from calibrant.numerics import inversion as engine
from calibrant.numerics.arrays import EXACT_ROWS, Floats
from calibrant.numerics.random_draws import generator
from calibrant.results.estimate import Interval
from calibrant.results.target import Target
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable, require_fine
from calibrant.table.task import Gaps, Unlabeled

#: Multiples of a shape that are tested; priors of an interval that are tried; positives whose counts are normal.
#: Test: tests/inference/inversion/test_binary_constants.py.
STEPS, PRIORS, NORMAL_POSITIVES = 10, 5, 3000

#: Signs of the gap are in doubt where it is less than this many standard errors from zero.
#: Test: tests/inference/inversion/test_binary_constants.py.
DOUBT = 0.75


@dataclass(frozen=True)
class PUInversion(validation.Simulated):
    r"""Interval by test inversion for the true calibration error, from positive-unlabeled data.

    The target is :math:`(\mathrm E|f - P(Y=1 \mid f)|^q)^{1/q}` of the population, the same for `ece`, `sweep_ece`,
    `debiased_ece` and `variational_error`; not the error of a binned model. The gap is fitted by
    least squares to the error masses :math:`\pi q_c - F_c` of pooled scores, piecewise linear in the mean of rank and
    score. For multiples t of a smoother fit the noise of both samples (of the one sample) is simulated as it would be
    if that were the truth, and the interval holds the errors under which the observed norm is not extreme. Its upper
    end also covers a gap that is linear in the score. Its lower end is at least a lower limit of the mean gap
    \|π - E f\|, which no error is below; of the risk (1 - level)/2 of that end, 0.7 is left to the test and 0.3 to
    this limit.

    Parameters
    ----------
    draws : int
        Number of simulated samples per multiple; more are drawn if `level` needs them.
    seed : int
    prior_error : float
        Standard error of the prior (of the prior implied by a known label frequency): 0 takes it as known.
    prior_interval : (low, high), optional
        The interval in which the prior is known to lie, instead of a standard error: the result is then the union of
        the intervals for five priors in it.

    Notes
    -----
    Measured coverage and widths are in docs/evidence/unlabeled.md. With a known prior and few labelled rows the upper
    end is wide if the gap has one sign at all scores. A gap that oscillates faster than the spacing of the knots is
    smoothed. Rows in clusters (`group`) count less, by their design effect.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> data = cal.PositiveUnlabeled(rng.beta(2, 1, 1000), rng.random(10_000), prior=0.4)  # the true error is 0.1
    >>> found, less_sure = (cal.interval(cal.ece, data, method=PUInversion(prior_error=e)).interval for e in (0, 0.02))
    >>> str(found.target), 0.1 in found, less_sure.high - less_sure.low > found.high - found.low
    ('true error (L1)', True, True)
    """

    serves: ClassVar[str] = "positives"
    least_draws = 2

    draws: int = 299
    seed: int = 0
    prior_error: float = 0.0
    prior_interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.prior_error < 1:
            fail(f"prior_error must be a standard error in [0, 1), got {self.prior_error!r}.", ValueError)
        if self.prior_interval is not None:
            low, high = (validation.fraction("prior_interval", end) for end in self.prior_interval)
            if low > high:
                fail(f"prior_interval must rise, got {self.prior_interval!r}.", ValueError)

    def interval(self, data: PositiveUnlabeled | BinTable, *, norm: Any = 1, level: float = 0.95) -> Interval:
        """The interval for the true L_norm error, or its square."""
        level = validation.fraction("level", level)
        power = 2 if norm == "squared" else 1
        exponent = 2.0 if norm == "squared" else norm
        if not isinstance(exponent, int | float) or not 1 <= exponent < np.inf:
            fail(f"PUInversion is for errors in a finite norm of at least 1 (or 'squared'), got norm={norm!r}.")
        table = fine_cells(data, needed_by="PUInversion")
        effect, mean_effect = (1.0, 1.0) if isinstance(data, BinTable) else design_effects(data, table)
        pooled = (PooledScores.of(one, effect) for one in self._priors(table))
        ends = [_Trials.of(scores, float(exponent), level, self).ends() for scores in pooled]
        limit = mean_gap_limit(
            Gaps.of(table),
            risk=(1 - level) / 2 - engine.tail_risk(level),
            design_effect=mean_effect,
            prior_error=self.prior_error,
            prior_interval=self.prior_interval,
        )
        lowest = max(min(low for low, _ in ends), limit)
        prior = f"a prior with standard error {self.prior_error:g}" if self.prior_error else "a known prior"
        if self.prior_interval is not None:
            prior = "a prior between {:g} and {:g}".format(*self.prior_interval)
        return Interval(
            float(lowest) ** power,
            float(max(lowest, *(high for _, high in ends))) ** power,
            level=level,
            method=repr(self),
            assumption=f"positives labelled at random; independent rows; a gap smooth in the score; {prior}",
            target=Target("true error", norm),
        )

    def _priors(self, table: BinTable) -> Iterator[BinTable]:
        """The table with each of the priors."""
        if self.prior_interval is None:
            yield table
            return
        task = table.task
        if not isinstance(task, Unlabeled) or task.prior is None:
            fail("prior_interval needs data with a prior; these have a label_frequency. Use prior_error.")
        for prior in np.linspace(*self.prior_interval, PRIORS):
            yield replace(table, task=replace(task, prior=float(prior)))


@dataclass(frozen=True, eq=False)
class _Trials:
    """The fitted gap, and the law of its norm under hypotheses."""

    scores: PooledScores
    half: Floats
    norm: float
    level: float
    method: PUInversion

    @classmethod
    def of(cls, scores: PooledScores, norm: float, level: float, method: PUInversion) -> _Trials:
        return cls(
            scores, engine.orthonormal_hats(scores.position, scores.gaps.share, knots_of(scores)), norm, level, method
        )

    def ends(self) -> tuple[float, float]:
        """Both ends of the interval."""
        gaps, share = self.scores.gaps, self.scores.gaps.share
        gap, smooth, straight = (half @ (half.T @ gaps.gap) for half in (self.half, *shapes(self.scores)))
        observed, paths = self._size(gap), list(self._paths(gap, (smooth, straight)))
        if not paths:
            return 0.0, 0.0
        low = paths[0].lower_end(observed)
        high = max(*(path.upper_end(observed) for path in paths), self._convex_limit(smooth))
        power = np.abs(smooth) ** self.norm
        return engine.widened(low, high, power, share, self.norm, gaps.n_unlabeled, self.level)

    def _convex_limit(self, smooth: Floats) -> float:
        """Upper limit of the norm by its convexity.

        The norm of a gap g is d·g in its own dual direction d, and so at most d·h plus the error of d·h, where h is the
        fit. The signs of d are those of h and, at a one-sided risk of 1 - level, those of h shifted by `DOUBT` standard
        errors: with a known prior a fit that has one sign by chance would seem to be as precise as the mean.
        """
        few, share, score = shapes(self.scores)[0], self.scores.gaps.share, self.scores.score
        errors = self._noise(score + smooth) @ (self.half.T @ (share[:, None] * few)) @ few.T
        doubt = DOUBT * errors.std(axis=0)
        sure, one_sided = float(ndtri(1 - engine.tail_risk(self.level))), float(ndtri(self.level))
        limits = []
        for gap, reach in ((smooth, sure), (smooth - doubt, one_sided), (smooth + doubt, one_sided)):
            direction = share * np.sign(gap) * (np.abs(gap) / max(self._size(gap), 1e-12)) ** (self.norm - 1)
            error = (self._noise(score + gap) @ (self.half.T @ direction)).std()
            limits.append(float(direction @ smooth + reach * error))
        return max(limits)

    def _paths(self, gap: Floats, directions: tuple[Floats, ...]) -> Iterator[engine.Path]:
        """Along multiples of each shape, from none to well beyond what the data allow."""
        share = self.scores.gaps.share
        noise = float(np.sqrt((self._noise(self.scores.score) ** 2).sum(axis=1).mean()))
        length = float(np.sqrt(share @ gap**2)) + 4 * noise
        for shape in directions:
            size = float(np.sqrt(share @ shape**2))
            if size >= 1e-12:
                gaps = engine.multiples_to(length, size, STEPS)[:, None] * shape
                yield engine.Path.along(gaps, self._simulated, engine.tail_risk(self.level))

    def _simulated(self, gap: Floats) -> tuple[float, Floats]:
        """The true error under a gap, and the norms of fits to simulated samples."""
        score, share = self.scores.score, self.scores.gaps.share
        rate = np.clip(score + gap, 0.0, 1.0)
        fits = self.half.T @ (share * (rate - score)) + self._noise(rate)
        return self._size(rate - score), self._size(fits @ self.half.T)

    @cached_property
    def _draws(self) -> int:
        return engine.enough_draws(self.method.draws, engine.tail_risk(self.level))

    @cached_property
    def _normal_draws(self) -> tuple[Floats, Floats]:
        rng = generator(self.method.seed, "positive-unlabeled inversion")
        return rng.standard_normal((self._draws, self.half.shape[1])), rng.standard_normal((self._draws, 1))

    def _size(self, gaps: Floats) -> Any:
        return (np.abs(gaps) ** self.norm @ self.scores.gaps.share) ** (1 / self.norm)

    def _noise(self, rate: Floats) -> Floats:
        """Simulated errors of the coordinates of the fit if `rate` is the chance of a positive, from common draws."""
        gaps, half, seed = self.scores.gaps, self.half, self.method.seed
        normal, prior_draws = self._normal_draws
        positive = self.scores.positives(rate)
        uncertain = self.method.prior_error * prior_draws * (positive @ half)
        if gaps.frequency is not None or gaps.n_positive >= NORMAL_POSITIVES:
            prior = float(gaps.share @ np.clip(rate, 0.0, 1.0)) if gaps.known_frequency else gaps.prior
            law = replace(gaps, prior=prior, product=prior * positive * self.scores.score)
            return normal @ _root(half.T @ law.covariance(positive) @ half).T + uncertain
        rows = np.diag(gaps.predicted_squares) - np.outer(gaps.predicted, gaps.predicted)
        unlabeled = normal @ _root(half.T @ rows @ half / max(gaps.n_unlabeled - 1, 1.0)).T
        count = max(round(gaps.n_positive), 1)
        rng = generator(seed, "labelled positives")
        labelled = rng.multinomial(count, positive / positive.sum(), self._draws) / count
        return unlabeled + gaps.prior * (labelled - positive) @ half + uncertain


def knots_of(scores: PooledScores) -> int:
    """The number of knots of the fit."""
    return engine.whole_knots(engine.knots_for(scores.information))


def shapes(scores: PooledScores) -> tuple[Floats, Floats]:
    """Orthonormal functions for the smoother fit and for the linear one."""
    few = engine.whole_knots(engine.SHAPE_KNOTS * knots_of(scores))
    return tuple(engine.orthonormal_hats(scores.position, scores.gaps.share, knots) for knots in (few, 2))  # type: ignore[return-value]


def design_effects(data: PositiveUnlabeled, table: BinTable) -> tuple[float, float]:
    """How much larger clusters make the variance of the fitted coordinates, and (at least as much) of the mean gap."""
    if data.group is None:
        return 1.0, 1.0
    scores = PooledScores.of(table)
    half = engine.orthonormal_hats(scores.position, scores.gaps.share, knots_of(scores))
    labels = np.unique(data.group, return_inverse=True)[1].reshape(-1)
    fit, mean = (
        _cluster_ratio(row_influence(data, scores, table, functions)[0], labels)
        for functions in (half, np.ones((len(half), 1)))
    )
    return fit, max(fit, mean)


def _cluster_ratio(influence: Floats, labels: NDArray[np.intp]) -> float:
    """Sum of squares over clusters relative to that over rows, at least 1."""
    rows = float((influence**2).sum())
    clusters = float(sum((np.bincount(labels, column) ** 2).sum() for column in influence.T))
    return max(clusters / rows, 1.0) if rows > 0 else 1.0


def row_influence(
    data: PositiveUnlabeled, scores: PooledScores, table: BinTable, half: Floats
) -> tuple[Floats, NDArray[np.intp]]:
    """What each row (positives, then the others) adds to the coordinates of the fit, and the pool of each row."""
    gaps, split = scores.gaps, len(data.positive)
    others = data.unlabeled[split:] if data.nested else data.unlabeled
    score = np.concatenate([data.positive, others]).astype(np.float64)
    pool = scores.pool[np.clip(np.searchsorted(table.high, score), 0, len(table) - 1)]
    weight = np.ones(len(score)) if data.weight is None else data.weight
    positive, population = weight.copy(), weight.copy()
    positive[split:] = 0.0
    population[: 0 if data.nested else split] = 0.0
    positive, population = positive / positive.sum(), population / population.sum()
    mean = 0.0 if gaps.known_frequency else gaps.positive @ half
    expected = gaps.predicted @ half - (gaps.prior * (gaps.positive @ half) if gaps.known_frequency else 0.0)
    labelled = gaps.prior * positive[:, None] * (half[pool] - mean)
    return labelled - population[:, None] * (score[:, None] * half[pool] - expected), pool


def _root(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 0.0))


#: Most cells into which neighbouring scores are pooled. Test: tests/inference/inversion/test_binary_constants.py.
CELLS = 96


def fine_cells(data: PositiveUnlabeled | BinTable, *, needed_by: str) -> BinTable:
    """The fine table of `data`, on a grid where there are many rows."""
    if isinstance(data, BinTable):
        require_fine(data, needed_by=needed_by)
        return data
    return BinTable.of(data, Distinct() if len(data) <= EXACT_ROWS else HybridGrid())


@dataclass(frozen=True, eq=False)
class PooledScores:
    r"""Unlabeled rows pooled in the mean of rank and score, with the positives that fall into each pool.

    The error mass of a pool is :math:`\pi q - F`: q is its share of the positives, F the mean of its scores over all
    rows.
    """

    gaps: Gaps
    #: Place in [0, 1] and mean score of the unlabeled rows of each pool.
    position: Floats
    score: Floats
    #: The pool of each cell of the fine table.
    pool: NDArray[np.intp]

    @classmethod
    def of(cls, table: BinTable, design_effect: float = 1.0) -> PooledScores:
        """From a fine table; clusters divide the numbers of rows by their design effect."""
        whole = Gaps.of(table)
        some = whole.share > 0
        share, mass = whole.share[some], whole.predicted[some]
        position = (engine.unit_scaled(engine.mid_ranks(share)) + engine.unit_scaled(mass / share)) / 2
        starts = engine.pool_starts(position, CELLS)
        pool_of_filled = engine.pool_numbers(starts, len(position))
        pool = pool_of_filled[np.maximum(np.cumsum(some) - 1, 0)]  # positives between two pools belong to the lower
        size = len(starts)
        pooled = replace(
            whole.joined(pool, size),
            n_positive=whole.n_positive / design_effect,
            n_unlabeled=whole.n_unlabeled / design_effect,
        )
        middle = np.bincount(pool_of_filled, share * position, size) / pooled.share
        return cls(pooled, middle, pooled.predicted / pooled.share, pool)

    @property
    def information(self) -> float:
        """1 / (π²/n_P + 1/n_U), or c² n for a single sample: the rows that the number of knots follows."""
        gaps = self.gaps
        if gaps.frequency is not None:
            return gaps.frequency**2 * gaps.n_unlabeled
        return 1 / (gaps.prior**2 / gaps.n_positive + 1 / gaps.n_unlabeled)

    def positives(self, rate: Floats) -> Floats:
        """The share of the positives in each pool if this is the chance of a positive."""
        mass = self.gaps.share * np.clip(rate, 0.0, 1.0)
        total = float(mass.sum())
        return mass / total if total > 0 else self.gaps.share


#: Share of the risk at which zero is excluded. Test: tests/inference/inversion/test_binary_constants.py.
ZERO_SHARE = 1 / 3


def mean_gap_limit(
    gaps: Gaps,
    *,
    risk: float,
    design_effect: float = 1.0,
    prior_error: float = 0.0,
    prior_interval: tuple[float, float] | None = None,
) -> float:
    r"""Lower confidence limit of \|π - E f\|, which no calibration error in a norm of at least 1 is below (Jensen).

    The mean gap D has variance Var f / n where the prior is known, and Var(s/c - f) / n where the label frequency c is;
    the square of `prior_error` is added. With t = \|D\| / SE the limit is

    .. math:: \mathrm{SE} \cdot (t + T^{-1}(\text{risk} - T(-t)))

    where T is Student's distribution function with n - 1 degrees of freedom; it is 0 unless D differs from 0 in a
    two-sided test at a third of `risk`, as another test of the same data excludes zero too. Of the priors of
    `prior_interval` the one nearest to the mean score is taken.
    """
    whole = gaps.joined(np.zeros(len(gaps.share), dtype=np.intp), 1)
    score, rows = float(whole.predicted[0]), whole.n_unlabeled / design_effect
    prior = gaps.prior if prior_interval is None else float(np.clip(score, *prior_interval))
    error = float(np.hypot(np.sqrt(design_effect * _variance(whole)), prior_error))
    distance, freedom = abs(prior - score), max(rows - 1, 1.0)
    if error == 0:
        return distance
    tail = float(stdtr(freedom, -distance / error))
    if tail > ZERO_SHARE * risk / 2:
        return 0.0
    return distance + error * float(stdtrit(freedom, risk - tail))


def _variance(whole: Gaps) -> float:
    """Variance of the mean gap as estimated, or if its expectation were zero (few labelled by chance): the larger."""
    calibrated = replace(whole, prior=float(whole.predicted[0]), product=whole.predicted_squares)
    return max(float(whole.variance[0]), float(calibrated.variance[0]), 0.0)
