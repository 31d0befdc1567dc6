"""Neighbouring scores pooled into cells, simulated noise of their outcomes, and fits of their gaps.

Frequent scores keep cells of their own. Noise is drawn from the counts of independent rows, or by random signs of
clusters. The gap is fitted by least squares on hat functions, at a resolution that the data choose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics import inversion
from calibrant.numerics.arrays import Floats
from calibrant.numerics.inversion import HatFit, Numbers
from calibrant.numerics.random_draws import BinomialDraws, generator, independent_counts

Flags = NDArray[np.bool_]

#: Least and largest number of cells of a fine division. Test: tests/inference/inversion/test_binary_constants.py.
FEWEST, MOST = 4, 1024


@dataclass(frozen=True, eq=False)
class PooledCells:
    r"""Neighbouring scores pooled into cells of equal width in *position*, which lies in [0, 1].

    The position of a score is the mean of its rank and of its rank among the standard deviations
    :math:`\sqrt{p(1-p)}` of the outcomes, both scaled to [0, 1]. A score that holds the share of a whole cell is a cell
    of its own.

    `effective_n` is Kish's, divided by the design effect of clusters, and `count` its part of each cell. An `atom` is
    one score so frequent that every fit gives it a coefficient of its own; in a `single` score nothing can hide.
    `number` tells to which cell each of the cells belongs that these were made of.
    """

    n: int
    effective_n: float
    count: Floats
    share: Floats
    predicted: Floats
    observed: Floats
    position: Floats
    atom: Flags
    single: Flags
    number: Numbers

    @classmethod
    def of(cls, sums: Floats, size: int, *, distinct: float | None = None, design_effect: float = 1.0) -> PooledCells:
        """From count, weight, squared weight, predicted and observed sums of many cells in the order of their scores.

        Up to `distinct` scores (by default, `size`), each is a cell of its own.
        """
        rows, weight, squares = sums[:3]
        total = float(weight.sum())
        effective_n = total**2 / float(squares.sum()) / design_effect
        share, repeated = weight / total, rows > 1
        atom = repeated & (share >= 1 / (2 * inversion.knots_for(effective_n)))
        position = _position(share, sums[3] / weight, ~atom)
        alone = repeated & (share >= 1 / size)
        if len(rows) <= (size if distinct is None else distinct):
            alone[:] = True
        starts = inversion.pool_starts(position, inversion.whole_knots(size * float(share[~atom].sum())), alone)
        pooled = np.add.reduceat(sums[1:5], starts, axis=1)
        return cls(
            n=round(float(rows.sum())),
            effective_n=effective_n,
            count=pooled[0] ** 2 / pooled[1] / design_effect,
            share=pooled[0] / total,
            predicted=pooled[2] / pooled[0],
            observed=pooled[3] / pooled[0],
            position=np.add.reduceat(weight * position, starts) / pooled[0],
            atom=atom[starts],
            single=np.diff(starts, append=len(rows)) == 1,
            number=inversion.pool_numbers(starts, len(rows)),
        )

    @classmethod
    def fine(cls, sums: Floats, *, design_effect: float = 1.0) -> PooledCells:
        """About the square root of n cells, each of as many rows; scores that repeat are cells of their own."""
        effective_n = float(sums[1].sum()) ** 2 / float(sums[2].sum()) / design_effect
        size = int(np.clip(round(np.sqrt(effective_n)), FEWEST, MOST))
        distinct = min(4.0 * size, float(sums[0].sum()) / 3)
        return cls.of(sums, size, distinct=distinct, design_effect=design_effect)

    @property
    def gap(self) -> Floats:
        """Mean score less mean outcome, per cell."""
        return self.predicted - self.observed

    def hat_fit(self, knots: float) -> HatFit:
        """The fit of a value per cell with this many knots; atoms keep their values."""
        return HatFit.of(self.position, self.share, ~self.atom, knots)

    def merged(self, size: int) -> PooledCells:
        """At most about `size` cells, for what varies slowly; atoms stay alone."""
        if len(self.share) <= size:
            return self
        starts = inversion.pool_starts(self.position, size, self.atom)
        share = np.add.reduceat(self.share, starts)

        def mean(values: Floats) -> Floats:
            return np.asarray(np.add.reduceat(self.share * values, starts) / share)

        return PooledCells(
            n=self.n,
            effective_n=self.effective_n,
            count=share**2 / np.add.reduceat(self.share**2 / self.count, starts),
            share=share,
            predicted=mean(self.predicted),
            observed=mean(self.observed),
            position=mean(self.position),
            atom=self.atom[starts],
            single=(np.diff(starts, append=len(self.share)) == 1) & self.single[starts],
            number=inversion.pool_numbers(starts, len(self.share)),
        )

    def outcomes(self, probability: Floats, draws: int, rng: np.random.Generator) -> Floats:
        """Mean outcomes of simulated samples with this probability per cell, one per column: binomial, rescaled."""
        whole = np.maximum(np.floor(self.count + 1e-9), 1.0)
        drawn = independent_counts(whole.astype(np.int64), probability, draws, rng)
        drawn /= whole[:, None]
        scale = np.sqrt(whole / self.count)[:, None]
        if not np.all(scale == 1):
            drawn = probability[:, None] + (drawn - probability[:, None]) * scale
        return drawn


def _position(share: Floats, predicted: Floats, free: Flags) -> Floats:
    """Mean of rank and of rank among standard deviations, both between 0 and 1, of non-atomic cells."""
    position = np.zeros_like(share)
    if free.any():
        own, chance = share[free], np.clip(predicted[free], 0.0, 1.0)
        weights = own, own * np.sqrt(chance * (1 - chance))
        ranks = [inversion.unit_scaled(inversion.mid_ranks(weight)) for weight in weights]
        position[free] = (ranks[0] + ranks[1]) / 2
    return position


#: Where fewer events or non-events are expected in a cell, their number is drawn from its binomial distribution.
#: Test: tests/inference/inversion/test_binary_constants.py.
FEW_EVENTS = 20.0

#: Simulated numbers at a time.
#: Speed: few enough for the cache; no result depends on it.
AT_ONCE = 16_000

#: Where fewer rows are expected in a cell, their number is drawn from the Poisson distribution.
#: Test: tests/inference/inversion/test_binary_constants.py.
FEW_ROWS = 30.0


@dataclass(frozen=True, eq=False)
class RowNoise:
    """Noise of independent rows.

    The number of events of a cell is binomial where few events or non-events are expected, else normal. A fractional
    effective count is rounded down and the noise rescaled.
    """

    cells: PooledCells
    draws: int
    seed: int

    def outcomes(self, probability: Floats) -> Floats:
        """Probability less simulated mean outcome, per cell and sample; of several rows of probabilities in turn."""
        cells, rows = len(self.cells.count), probability.size // len(self.cells.count)
        probability, count = probability.ravel(), np.tile(self.cells.count, rows)
        few = count * np.minimum(probability, 1 - probability) < FEW_EVENTS
        if few.all():
            noise = self._few(probability, count, np.tile(np.arange(cells), rows))
        else:
            normal = self._normal if rows == 1 else np.tile(self._normal, (rows, 1))
            noise = normal * np.sqrt(probability * (1 - probability) / count)[:, None]
            if few.any():
                noise[few] = self._few(probability[few], count[few], np.flatnonzero(few) % cells)
        return noise if rows == 1 else noise.reshape(rows, cells, -1).swapaxes(0, 1).reshape(cells, -1)

    def _few(self, probability: Floats, count: Floats, cell: Numbers) -> Floats:
        """The noise of binomial counts in these cells."""
        whole = np.maximum(np.floor(count + 1e-9), 1.0)
        scale = np.sqrt(whole / count)
        drawn = self._binomial.counts(whole.astype(np.int64), probability, cell)
        drawn *= (-scale / whole)[:, None]
        drawn += (scale * probability)[:, None]
        return drawn

    @cached_property
    def shares(self) -> Floats:
        """Sampling errors of the shares: Poisson counts, or normal ones where many rows are expected."""
        rng, n = generator(self.seed, "shares of cells"), self.cells.effective_n
        expected = (self.cells.share * n)[:, None]
        size = (len(expected), self.draws)
        few = expected[:, 0] < FEW_ROWS
        noise = rng.standard_normal(size)
        noise *= np.sqrt(expected)
        noise[few] = rng.poisson(expected[few], (int(few.sum()), self.draws)) - expected[few]
        noise -= noise.sum(axis=0) * self.cells.share[:, None]
        noise /= n
        return noise

    @cached_property
    def _normal(self) -> Floats:
        return generator(self.seed, "normal noise of cells").standard_normal((len(self.cells.share), self.draws))

    @cached_property
    def _binomial(self) -> BinomialDraws:
        return BinomialDraws.of(len(self.cells.share), self.draws, generator(self.seed, "events of cells"))


@dataclass(frozen=True, eq=False)
class ClusterNoise:
    """Noise of whole clusters: their sums of residuals with random signs, scaled by √(G / (G - 1)).

    G is the effective number of clusters. Correlation between regions of the scores is kept. `weight` and `events`
    (clusters by cells) are shares of the total weight.
    """

    cells: PooledCells
    draws: int
    seed: int
    weight: Floats
    events: Floats

    def outcomes(self, probability: Floats) -> Floats:
        """Probability less simulated mean outcome, per cell and sample; of several rows of probabilities in turn."""
        residuals = ((self.weight * own - self.events) / self.cells.share for own in np.atleast_2d(probability))
        return np.concatenate([residual.T @ self.signs for residual in residuals], axis=1)

    @cached_property
    def shares(self) -> Floats:
        """Sampling errors of the shares of the cells, per cell and sample."""
        return np.asarray((self.weight - self.weight.sum(axis=1, keepdims=True) * self.cells.share).T @ self.signs)

    @cached_property
    def signs(self) -> Floats:
        """Random signs, scaled, per cluster and sample."""
        rng = generator(self.seed, "signs of clusters")
        signs = np.where(rng.random((len(self.weight), self.draws)) < 0.5, -1.0, 1.0)
        return signs * np.sqrt(self.effective_clusters / max(self.effective_clusters - 1, 1.0))

    @cached_property
    def effective_clusters(self) -> float:
        """Kish's effective number of clusters."""
        return effective_clusters(self.weight.sum(axis=1))


#: Noise of simulated samples, one column per sample, with random numbers common to all calls.
CellNoise = RowNoise | ClusterNoise


def simulated_gaps(noise: CellNoise, gaps: Floats, probability: Floats) -> Iterator[Floats]:
    """True gaps plus noise, per cell and sample: rows of gaps and probabilities in turn, some of them at a time."""
    several = max(1, AT_ONCE // (gaps.shape[1] * noise.draws))
    for start in range(0, len(gaps), several):
        some = slice(start, start + several)
        drawn, gap = noise.outcomes(probability[some]), gaps[some].T
        drawn += gap if gap.shape[1] == 1 else np.repeat(gap, noise.draws, axis=1)
        yield drawn


def effective_clusters(weight: Floats) -> float:
    """Kish's effective number of clusters of these weights."""
    return float(weight.sum() ** 2 / (weight**2).sum())


#: With fewer clusters of rows, or fewer effective ones, nothing is claimed: their signs have too few patterns for a
#: test at the usual levels. Test: tests/inference/inversion/test_binary_constants.py.
FEWEST_CLUSTERS, FEWEST_EFFECTIVE = 5, 2.0


def too_few_clusters(weight: Floats) -> bool:
    """Whether clusters of these weights are too few, or too few of similar size, to say anything."""
    return len(weight) < FEWEST_CLUSTERS or effective_clusters(weight) < FEWEST_EFFECTIVE


#: More clusters are united at random: sums of independent clusters are independent.
#: Test: tests/inference/inversion/test_binary_constants.py.
MOST_CLUSTERS = 512

#: A cluster of a twentieth of all rows or more counts as correlated, even if its residuals do not show it.
#: Test: tests/inference/inversion/test_binary_constants.py.
LEAST_DESIGN_EFFECT = 1 / 20


@dataclass(frozen=True, eq=False)
class FineSample:
    """Fine cells and, if rows come in clusters, the share of each cluster in the weight and the events of each cell."""

    cells: PooledCells
    weight: Floats | None = None
    events: Floats | None = None

    @classmethod
    def of_rows(cls, sums: Floats) -> FineSample:
        """From sums of the finest cells, of independent rows."""
        return cls(PooledCells.fine(sums))

    @classmethod
    def of_clusters(
        cls, sums: Floats, cell: Numbers, share: Floats, predicted: Floats, observed: Floats, label: Numbers
    ) -> FineSample:
        """From sums of the finest cells, and of each row its cell, share, score, outcome and cluster."""
        clusters = int(label.max()) + 1
        if clusters > MOST_CLUSTERS:
            label = generator(0, "clusters put together").integers(0, MOST_CLUSTERS, clusters)[label]
            clusters = MOST_CLUSTERS
        residual = predicted - observed
        residual = share * (residual - float(share @ residual))
        effect = max(1.0, _ratio(label, residual), LEAST_DESIGN_EFFECT * _ratio(label, share))
        cells = PooledCells.fine(sums, design_effect=effect)
        size = len(cells.share)
        pair = label * size + cells.number[cell]
        weight, events = (
            np.bincount(pair, values, clusters * size).astype(np.float64).reshape(clusters, size)
            for values in (share, share * observed)
        )
        present = weight.any(axis=1)
        return cls(cells, weight[present], events[present])

    @property
    def clusters(self) -> int | None:
        """The number of clusters; None if rows are independent."""
        return None if self.weight is None else len(self.weight)

    def noise(self, draws: int, seed: int) -> CellNoise:
        """The noise of this many simulated samples."""
        if self.weight is None or self.events is None:
            return RowNoise(self.cells, draws, seed)
        return ClusterNoise(self.cells, draws, seed, self.weight, self.events)

    def merged(self, size: int) -> FineSample:
        """The sample in at most about `size` cells, for what varies slowly."""
        cells = self.cells.merged(size)
        if cells is self.cells:
            return self
        if self.weight is None or self.events is None:
            return replace(self, cells=cells)
        starts = np.flatnonzero(np.diff(cells.number, prepend=-1))
        return FineSample(
            cells, np.add.reduceat(self.weight, starts, axis=1), np.add.reduceat(self.events, starts, axis=1)
        )


def _ratio(label: NDArray[np.intp], by_row: Floats) -> float:
    """The variance of sums over clusters relative to that of independent rows."""
    return float((np.bincount(label, by_row) ** 2).sum()) / max(float((by_row**2).sum()), 1e-300)


def ladder(cells: PooledCells) -> list[HatFit]:
    """Fits of doubled and redoubled numbers of knots, from the usual number up to a knot for each cell."""
    knots = inversion.knots_for(cells.effective_n)
    fits = [cells.hat_fit(knots)]
    while not fits[-1].identity:
        fits.append(cells.hat_fit(knots * 2 ** len(fits)))
    return fits


#: Standard deviations by which a finer fit must differ from a coarser one, beyond what noise explains.
#: Test: tests/inference/inversion/test_binary_constants.py.
VISIBLE = 2.5

#: Variances of outcomes are at least this part of their mean.
#: Test: tests/inference/inversion/test_binary_constants.py.
VARIANCE_FLOOR = 0.01


@dataclass(frozen=True, eq=False)
class Resolution:
    """Fits of the gap at rising resolution, and the first that no finer one contradicts.

    `sigma` is the standard deviation of one outcome of each cell.
    """

    cells: PooledCells
    fits: list[HatFit]
    gaps: list[Floats]
    chosen: int
    sigma: Floats

    @classmethod
    def of(cls, cells: PooledCells, noise: CellNoise) -> Resolution:
        """Compare all pairs of fits by the squared norm of their difference, weighted by share / sigma."""
        fits = ladder(cells)
        gaps = [fit(cells.gap) for fit in fits]
        probability = np.clip(cells.predicted - gaps[0], 0.0, 1.0)
        variance = np.maximum(probability * (1 - probability), cells.predicted * (1 - cells.predicted))
        sigma = np.sqrt(np.maximum(variance, max(VARIANCE_FLOOR * float(cells.share @ variance), 1e-12)))
        if len(fits) == 1:
            return cls(cells, fits, gaps, 0, sigma)
        drawn = noise.outcomes(probability)
        simulated = [fit(drawn) for fit in fits]
        weight = cells.share / sigma

        def contradicts(fine: int, coarse: int) -> bool:
            noises = weight @ (simulated[fine] - simulated[coarse]) ** 2
            excess = float(weight @ (gaps[fine] - gaps[coarse]) ** 2) - float(noises.mean())
            spread = float(noises.std())
            return spread > 0 and excess / spread >= VISIBLE

        chosen = 0
        while any(contradicts(fine, chosen) for fine in range(chosen + 1, len(fits))):
            chosen += 1
        return cls(cells, fits, gaps, chosen, sigma)

    @property
    def fit(self) -> HatFit:
        """The chosen fit."""
        return self.fits[self.chosen]

    @property
    def gap(self) -> Floats:
        """The gap by the chosen fit."""
        return self.gaps[self.chosen]

    def p_value_of_zero(self, noise: CellNoise) -> float:
        """The rank of the largest standardised norm at any resolution among those of calibrated samples."""
        share, drawn = self.cells.share, noise.outcomes(self.cells.predicted)
        simulated = np.stack([share @ fit(drawn) ** 2 for fit in self.fits])
        mean, spread = simulated.mean(axis=1), np.maximum(simulated.std(axis=1), 1e-300)
        seen = max((np.array([share @ gap**2 for gap in self.gaps]) - mean) / spread)
        largest = ((simulated - mean[:, None]) / spread[:, None]).max(axis=0)
        return float(1 + np.count_nonzero(largest >= seen - 1e-9)) / (1 + noise.draws)
