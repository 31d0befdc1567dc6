"""The default test of binary predictions: level, slope and shape in one p-value, the shape at many scales."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.inference.multiplicity import cauchy_combined, equal_tails, rank_p, rank_p_values
from calibrant.inference.sample import (
    CLUSTERED_LEVEL_SHARE,
    LEAST_CLUSTERS,
    LEVEL_SHARE,
    SLOPE_SHARE,
    EventRate,
    Sample,
    require_clusters,
    uncertain,
)
from calibrant.inference.validation_intervals import SlopeStatement
from calibrant.numerics.arrays import Floats
from calibrant.numerics.cells import FineSample, PooledCells, effective_clusters
from calibrant.numerics.confidence_limits import mid_p_value
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import accumulate_rows
from calibrant.results.estimate import Component, Significance
from calibrant.table.bintable import BinTable

Places = NDArray[np.intp]

#: Log-odds are clipped to this.
#: Derived: the probability of larger ones is 1 in double precision, 1 / (1 + exp(-36)) = 1 - 2e-16.
LIMIT = 36.0

#: Smaller variances, below that of one row in 1e15, count as this one: the prediction is certain.
#: Derived: the square of 1e-15, about the rounding of a share.
_MIN_VARIANCE = 1e-30

#: Simulated outcomes of cells that are worked on at once.
#: Speed: they take 1 MB and stay in the cache; no result depends on it.
_AT_ONCE = 1 << 17

#: Up to this many scores with weights are simulated one by one: the sum of few rows of unequal weights has longer tails
#: than that of as many rows as they are worth. With more, a cell holds 16 rows or more.
#: Test: tests/inference/test_multiscale.py::test_few_rows_of_unequal_weights_are_simulated_one_by_one.
_WEIGHTED = 4096


@dataclass(frozen=True)
class MultiScale(validation.Simulated):
    r"""Adaptive test of calibration: many p-values combined, and made exact by simulation under the null hypothesis.

    The statistics are the mean gap; the score statistics for the log-odds (slope) and for both together; the largest
    running gap; and for 2, 4, ..., 128 bins of equal mass two sums of squares, with v the variance of a bin's mean
    outcome:

    .. math:: S_B = \sum_b s_b (\bar p_b - \bar y_b)^2, \qquad
              C_B = \sum_b (\bar p_b - \bar y_b)^2 / v_b, \qquad v_b = \frac{\overline{p(1-p)}_b}{n_b}.

    S detects errors where most rows are, the standardised C those where the model is confident.

    Outcomes are simulated as Y ~ Bernoulli(p), cell by cell, and all statistics are computed for each sample. Their
    p-values, at most 0.9, are combined by :math:`\sum_j \omega_j \cot(\pi p_j)` (Cauchy combination), with weights ω of
    1 for the running gap and for mean and slope together, 1/2 for each of these two alone, 0.1 for each S and 0.15 for
    each C; the rank of that sum among those of the simulated samples is the p-value of the *shape*. The p-values of the
    mean (mid-P) and of the slope have equal tails, since seeing no event where five were expected is not the same
    evidence as seeing ten.

    **One error budget.** The *level* (the mean gap) has a quarter of alpha to itself, the *slope* a tenth, and the
    shape the rest:

    .. math:: q = \min\Bigl(\frac{p_\text{shape}}{0.65}, \frac{p_\text{level}}{0.25}, \frac{p_\text{slope}}{0.1}\Bigr)

    and the p-value is the rank of q among those of the simulated samples, which gives the shape what the others leave.
    It is exact at every n (slightly too large where scores were pooled into cells). It is at most 4 times the p-value
    of the mean gap (`sample.EventRate`, that of O:E and intercept) and 10 times that of the slope
    (`ProfileLikelihood`): the test rejects at alpha whenever O:E excludes 1 at level 1 - alpha/4, or the slope at
    1 - alpha/10. `Significance.components` holds the three p-values with their shares, `decided` the one that
    counts: the smallest p-value among those that reject at 5 %.

    **Clusters.** With a `group`, the sums of residuals of whole clusters (in at most 128 cells) get random signs
    instead of simulated outcomes, and level and shape have half of alpha each. A second simulation, of calibrated
    outcomes with the design effect of the clusters, must reject too: few events lie in few clusters, whose sums are not
    symmetric. The design effect is that of the sums; where fewer than ten events or non-events would then count, that
    of rows as alike as they look (as in `ClusteredScore`). That is approximate. Fewer than two effective clusters give
    a p-value of 1.

    Parameters
    ----------
    draws : int
        Number of simulated samples.
    seed : int

    References
    ----------
    Liu, Xie (2020), Cauchy combination test, for the sum: the smallest p-value alone has less power. Its power and
    that of the classical tests are in docs/evidence/coverage.md.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> data = cal.Binary(rng.random(1000) < 0.5 + 0.6 * (p - 0.5), p)
    >>> cal.calibration_test(data, method=cal.inference.MultiScale()).p_value < 0.05
    True
    """

    draws: int = 999
    seed: int = 0

    def test(self, data: Predictions | BinTable) -> Significance:
        """The p-value; the statistic is the smallest single p-value."""
        sample = Sample.with_clusters(data, needed_by="MultiScale")
        if not sample.independent:
            require_clusters(sample.clusters, needed_by="MultiScale")
        return self._of_parts(sample, EventRate.of(sample), _slope(sample))

    def rejects(self, sample: Sample, rate: EventRate, alpha: float) -> bool:
        """Whether the p-value is below alpha; nothing is simulated where the slope says so."""
        slope = _slope(sample)
        if slope is not None and slope.p_value / SLOPE_SHARE < alpha:
            return True
        return self._of_parts(sample, rate, slope).p_value < alpha

    def _of_parts(self, sample: Sample, rate: EventRate, slope: SlopeStatement | None) -> Significance:
        if sample.independent:
            cells, rng = sample.pooled(256, facing=True), generator(self.seed, "multiscale test")
            smallest, shape, p = _of_rows(cells, _drawn_rows(sample, cells, self.draws, rng))
        elif rate.silent:
            smallest, shape, p = 1.0, 1.0, 1.0
        else:
            smallest, shape, p = _of_clusters(sample, self.draws, self.seed)
        parts = (
            Component("level", rate.p_value, rate.share, rate.direction),
            Component("slope", 1.0 if slope is None else slope.p_value, SLOPE_SHARE, slope.direction if slope else 0),
            Component("shape", shape, 1 - rate.share - (SLOPE_SHARE if sample.independent else 0.0)),
        )
        p = min(1.0, p, *(part.p_value / part.share for part in parts))
        one_score = len(sample.table) == 1  # whose errors have no shape but that of the level
        n, decided = round(float(sample.table.count.sum())), parts[0] if one_score else deciding(parts)
        return Significance(smallest, p, method=repr(self), n=n, draws=self.draws, components=parts, decided=decided)


#: The significance level at which a component is said to have decided. Derived: the usual one; no p-value uses it.
_USUAL = 0.05

#: Cells in which clusters are compared, at most. Derived: one for each of the bins of `MultiScale`.
_CLUSTER_CELLS = 128

#: Larger p-values of signs are not checked against outcomes of calibrated predictions, as both must reject.
#: Derived: no level above 80 % is asked for.
_HOPELESS = 0.2


def deciding(parts: tuple[Component, ...]) -> Component:
    """The component that decided: the smallest p-value among those that reject by themselves, or the closest to it."""
    reject = [part for part in parts if part.p_value <= _USUAL * part.share]
    return min(reject, key=lambda part: part.p_value) if reject else min(parts, key=lambda p: p.p_value / p.share)


def _slope(sample: Sample) -> SlopeStatement | None:
    """What is said of the slope; None where all scores are 0 and 1, or clusters are few."""
    few = not sample.independent and sample.clusters < LEAST_CLUSTERS
    return None if few or not uncertain(sample.table.predicted_mean).any() else SlopeStatement.of(sample)


def _of_rows(cells: PooledCells, samples: Iterable[Floats]) -> tuple[float, float, float]:
    """The smallest single p-value, that of the shape, and that of the family, of the first of the samples."""
    found = signed_statistics(cells, samples)
    tails = _tails(found)
    mean = float(cells.share @ cells.predicted)
    total = _variance(cells).sum()
    if 0 < mean < 1 and total > 0:  # the number of events, which has few values
        rows = mean * (1 - mean) / total
        rate, place = np.unique(np.round(mean - found[:, 0] * np.sqrt(total), 12), return_inverse=True)
        tails[:, 0] = mid_p_value(np.clip(rate, 0.0, 1.0) * rows, rows, mean)[place]
    return _ranked(tails, (1 - LEVEL_SHARE - SLOPE_SHARE, LEVEL_SHARE, SLOPE_SHARE))


def _of_clusters(sample: Sample, draws: int, seed: int) -> tuple[float, float, float]:
    """The same of clusters: the larger of the p-values of random signs and of calibrated outcomes."""
    fine, rng = sample.fine(facing=True).merged(_CLUSTER_CELLS), generator(seed, "multiscale test, clusters")
    cells, weight = fine.cells, fine.weight
    # Sums whose mean is zero are as likely with either sign: of calibrated rows, without the correction for a mean.
    exact = 1.0 if weight is None else np.sqrt(1 - 1 / effective_clusters(weight.sum(axis=1)))
    drawn = np.concatenate([cells.gap[:, None], exact * fine.noise(draws, seed).outcomes(cells.predicted)], axis=1)
    shares = (1 - CLUSTERED_LEVEL_SHARE, CLUSTERED_LEVEL_SHARE)
    smallest, shape, p = _ranked(_tails(signed_statistics(cells, [cells.predicted[:, None] - drawn])), shares)
    if p > _HOPELESS:
        return smallest, shape, p
    likely = _cells_that_count(sample, fine)
    _, other, by_model = _ranked(_tails(signed_statistics(likely, with_drawn(likely, draws, rng))), shares)
    return smallest, max(shape, other), max(p, by_model)


def _cells_that_count(sample: Sample, fine: FineSample) -> PooledCells:
    """Cells of as many rows as count by the sums of clusters; if few have events, by how alike their rows look.

    Counts are whole, so that data without an event are the same as a simulated sample without one.
    """
    counting = min(sample.few_counting, fine.cells.effective_n)
    if np.isinf(sample.few_counting):
        return fine.cells
    cells = fine.merged(int(np.clip(counting, 2, _CLUSTER_CELLS))).cells
    count = np.maximum(np.round(cells.count * counting / cells.effective_n), 1.0)
    return replace(cells, count=count, effective_n=counting)


def _tails(found: Floats) -> Floats:
    """P-values of each line among all: of the first two columns with equal tails, of the others of large values."""
    return np.concatenate([equal_tails(found[:, :2]), rank_p_values(found[:, 2:])], axis=1)


def _ranked(tails: Floats, shares: tuple[float, ...]) -> tuple[float, float, float]:
    """Of the first line: the smallest p-value, the rank of the combination, and the rank of the family."""
    combined = cauchy_combined(tails, weights(tails.shape[1]))
    shape = rank_p_values(-combined[:, None])
    family = np.min(np.concatenate([shape, tails[:, : len(shares) - 1]], axis=1) / np.array(shares), axis=1)
    return float(tails[0].min()), float(shape[0, 0]), float(rank_p(family[0], family[1:]))


def _drawn_rows(sample: Sample, cells: PooledCells, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
    """The same as `with_drawn`; rows of unequal weights are drawn one by one where they are few."""
    table = sample.table
    if len(table) > _WEIGHTED or sample.effective_n > (1 - 1e-9) * float(table.count.sum()):
        yield from with_drawn(cells, draws, rng)
        return
    rows, starts = sample.pooled(len(table), facing=True), np.flatnonzero(np.diff(cells.number, prepend=-1))
    for outcomes in with_drawn(rows, draws, rng):
        yield np.add.reduceat(rows.share[:, None] * outcomes, starts) / cells.share[:, None]


def with_drawn(cells: PooledCells, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
    """The observed mean outcomes of cells (first column) and those of samples of the predictions, some at a time."""
    chance, step = np.clip(cells.predicted, 0.0, 1.0), max(1, _AT_ONCE // len(cells.share))
    for start in range(0, draws + 1, step):
        outcomes = cells.outcomes(chance, min(step, draws + 1 - start), rng)
        if start == 0:
            outcomes[:, 0] = cells.observed
        yield outcomes


def statistics(cells: PooledCells, samples: Iterable[Floats]) -> Floats:
    """One column per statistic, positive and large where the gap is large; one row per sample of outcomes."""
    found = signed_statistics(cells, samples)
    found[:, :2] **= 2
    return found


def signed_statistics(cells: PooledCells, samples: Iterable[Floats]) -> Floats:
    """The same with the signs of mean and slope, roots of the first two columns; `samples` are overwritten."""
    variance = _variance(cells)
    with np.errstate(divide="ignore"):
        odds = np.log(cells.predicted) - np.log1p(-cells.predicted)
    odds = np.clip(odds, -LIMIT, LIMIT)
    total = max(float(variance.sum()), 1e-300)
    odds = odds - float(variance @ odds) / total
    along = max(float(variance @ odds**2), 1e-300)
    ends, first, factors = _bins_of_cells(cells, variance)
    found = []
    for observed in samples:
        residual = np.subtract(cells.predicted[:, None], observed, out=observed)
        residual *= cells.share[:, None]
        slope = (odds @ residual) / np.sqrt(along)
        running = accumulate_rows(residual)
        mean = running[-1] / np.sqrt(total)
        largest = np.maximum(running.max(axis=0), -running.min(axis=0)) ** 2
        gaps = running.take(ends, axis=0)
        later = gaps[first]
        np.subtract(gaps[1:], gaps[:-1], out=gaps[1:])
        gaps[first] = later
        gaps *= gaps
        found.append(np.vstack([mean, slope, mean**2 + slope**2, largest, factors.T @ gaps]))
    return np.ascontiguousarray(np.concatenate(found, axis=1).T)


def _variance(cells: PooledCells) -> Floats:
    """Of the share of events of each cell, if the predictions are right."""
    return cells.share**2 * cells.predicted * (1 - cells.predicted) / cells.count


def weights(columns: int) -> Floats:
    """The weight of each of the statistics in their combination."""
    return np.concatenate([[0.5, 0.5, 1.0, 1.0], np.tile([0.1, 0.15], (columns - 4) // 2)])


def _bins_of_cells(cells: PooledCells, variance: Floats) -> tuple[Places, Places, Floats]:
    """The last cells of 2, 4, ..., 128 bins of about equal mass, the first bin of each number, and their factors."""
    middle = np.cumsum(cells.share) - cells.share / 2
    levels, bins = [], 2
    while bins <= min(128, cells.effective_n / 4):
        number = (middle * bins).astype(np.intp)
        levels.append(np.append(0, 1 + np.flatnonzero(number[1:] != number[:-1])))
        bins *= 2
    sizes = [len(starts) for starts in levels]
    first = np.cumsum([0, *sizes])
    factors = np.zeros((int(first[-1]), 2 * len(levels)))
    for k, starts in enumerate(levels):
        rows = slice(first[k], first[k + 1])
        factors[rows, 2 * k] = 1 / np.add.reduceat(cells.share, starts)
        factors[rows, 2 * k + 1] = 1 / np.maximum(np.add.reduceat(variance, starts), _MIN_VARIANCE)
    ends = [np.append(starts[1:], len(middle)) - 1 for starts in levels]
    return np.concatenate([np.zeros(0, np.intp), *ends]), first[:-1], factors
