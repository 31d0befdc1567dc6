"""What the inversion for binary predictions fits: fine cells, hat functions of the position, and simulated noise.

The gap is fitted by least squares on hat functions, at a resolution that the data choose; frequent scores have
coefficients of their own. Noise is drawn from the counts of independent rows, or by random signs of clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary, Predictions
from calibrant.inference.sample import Numbers, PooledCells, Sample, knots_for
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import BinomialDraws, generator
from calibrant.table.bintable import BinTable

#: Where fewer events or non-events are expected in a cell, their number is drawn from its binomial distribution.
FEW_EVENTS = 20.0

#: Simulated numbers at a time, few enough for the cache.
AT_ONCE = 30_000

#: Where fewer rows are expected in a cell, their number is drawn from the Poisson distribution.
FEW_ROWS = 30.0


class CellNoise(Protocol):
    """Noise of simulated samples, one column per sample, with random numbers common to all calls."""

    @property
    def draws(self) -> int:
        """The number of samples."""

    def outcomes(self, probability: Floats) -> Floats:
        """Probability less simulated mean outcome, per cell and sample; of several rows of probabilities in turn."""

    @property
    def shares(self) -> Floats:
        """Sampling errors of the shares of the cells, per cell and sample."""


@dataclass(frozen=True, eq=False)
class RowNoise:
    """Noise of independent rows.

    Decided cell by cell, the number of events is binomial where few events or non-events are expected, and normal
    elsewhere. A fractional effective count is rounded down and the noise rescaled.
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
        noise = rng.standard_normal(size) * np.sqrt(expected)
        noise[few] = rng.poisson(expected[few], (int(few.sum()), self.draws)) - expected[few]
        return np.asarray((noise - noise.sum(axis=0) * self.cells.share[:, None]) / n)

    @cached_property
    def _normal(self) -> Floats:
        return generator(self.seed, "normal noise of cells").standard_normal((len(self.cells.share), self.draws))

    @cached_property
    def _binomial(self) -> BinomialDraws:
        return BinomialDraws.of(len(self.cells.share), self.draws, generator(self.seed, "events of cells"))


@dataclass(frozen=True, eq=False)
class ClusterNoise:
    """Noise of whole clusters: their sums of residuals with random signs.

    Under calibration this is exact for clusters whose sums are symmetric, whatever their sizes, and correlation between
    regions of the scores is kept. The signs are scaled by √(G / (G - 1)), G being the effective number of clusters.

    Attributes
    ----------
    weight, events : array of (clusters, cells)
        Shares of the total weight, and of the total weight of events.
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


#: More clusters are united at random: sums of independent clusters are independent.
MOST_CLUSTERS = 512

#: A cluster of a twentieth of all rows or more counts as correlated, even if its residuals do not show it.
LEAST_DESIGN_EFFECT = 1 / 20


@dataclass(frozen=True, eq=False)
class FineSample:
    """Fine cells and, if rows come in clusters, the share of each cluster in the weight and the events of each cell."""

    cells: PooledCells
    weight: Floats | None = None
    events: Floats | None = None

    @classmethod
    def of(cls, data: Predictions | BinTable, *, needed_by: str) -> FineSample:
        """Binary predictions or a fine table of them."""
        checked = Sample.of(data, needed_by=needed_by)
        grouped = isinstance(data, Binary) and data.group is not None
        return cls.of_sample(Sample.of_rows(data) if grouped else checked)  # type: ignore[arg-type]

    @classmethod
    def of_sample(cls, sample: Sample) -> FineSample:
        """A sample of independent rows, or of clusters of them."""
        label, clusters = sample.cluster, sample.clusters
        if label is None or clusters == len(label):
            return cls(PooledCells.fine(sample.table.sums))
        if clusters > MOST_CLUSTERS:
            clusters = MOST_CLUSTERS
            label = generator(0, "clusters put together").integers(0, clusters, sample.clusters)[label]
        share = sample.row_share
        residual = share * (sample.residual - float(share @ sample.residual))
        effect = max(
            1.0,
            _ratio(label, residual),
            LEAST_DESIGN_EFFECT * _ratio(label, share),
        )
        cells = PooledCells.fine(sample.table.sums, design_effect=effect)
        size = len(cells.share)
        pair, observed = label * size + cells.number[sample.cell], sample.rows.observed
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


#: Knots of the shape along which errors are tested, as a fraction of those of the fit.
SHAPE_KNOTS = 0.6

#: Added to the diagonal of the normal equations, as a share of its mean: knots may have no cell near them.
RIDGE = 1e-9

#: Up to this many entries of the matrix of cells by knots, products with all of it take less time than those with its
#: two entries per cell and a banded solution, which goes through the columns one by one.
DENSE = 10_000


@dataclass(frozen=True, eq=False)
class HatFit:
    """The projection of a value per cell on piecewise linear functions of the position; big atoms are left as they are.

    With many cells the normal equations are solved in bands, so that a fit costs as much as a pass over the cells,
    whatever the number of knots; with few, functions that are orthonormal under the shares need none. Once there are as
    many knots as cells the fit is the identity.

    Attributes
    ----------
    knots : float
        As asked for, before the share of the atoms is deducted.
    free : array of int
        The cells that are no atoms.
    """

    knots: float
    free: Numbers
    basis: Any = None
    weighted: Any = None
    factor: Floats | None = None

    @classmethod
    def of(cls, cells: PooledCells, knots: float) -> HatFit:
        """The fit with equally spaced knots, in number reduced by the share of the atoms."""
        free = np.flatnonzero(~cells.atom)
        share, size = cells.share[free], max(2, round(knots * float(cells.share[free].sum())))
        if len(free) <= size:
            return cls(knots, free)
        place = cells.position[free] * (size - 1)
        left = np.minimum(place.astype(np.intp), size - 2)
        made = _orthonormal if len(free) * size <= DENSE else _banded
        return cls(knots, free, *made(share, left, place - left, size))

    @property
    def identity(self) -> bool:
        """Whether nothing is smoothed."""
        return self.basis is None

    def __call__(self, values: Floats) -> Floats:
        """Fitted values of one value per cell, or of many columns of them."""
        if self.identity:
            return values
        if len(self.free) == len(values):
            return np.asarray(self.basis @ self._coefficients(values))
        fitted = values.copy()
        fitted[self.free] = self.basis @ self._coefficients(values[self.free])
        return fitted

    def _coefficients(self, values: Floats) -> Floats:
        """Those of the basis that fit these values of the free cells best."""
        sums = self.weighted @ values
        if self.factor is None:
            return np.asarray(sums)
        from scipy.linalg import cho_solve_banded

        return np.asarray(cho_solve_banded((self.factor, False), sums, check_finite=False))

    def variance(self, variance: Floats) -> Floats:
        """Variance of the fitted values, given the independent variances of the values."""
        return variance if self.identity else np.asarray(self(np.eye(len(variance))) ** 2 @ variance)


def ladder(cells: PooledCells) -> list[HatFit]:
    """Fits of doubled and redoubled numbers of knots, from the usual number up to a knot for each cell."""
    knots = knots_for(cells.effective_n)
    fits = [HatFit.of(cells, knots)]
    while not fits[-1].identity:
        fits.append(HatFit.of(cells, knots * 2 ** len(fits)))
    return fits


def _orthonormal(share: Floats, left: Numbers, right: Floats, size: int) -> tuple[Floats, Floats]:
    """A basis of the hat functions that is orthonormal under the shares, and what gives its coefficients."""
    row, hats = np.arange(len(share)), np.zeros((len(share), size))
    hats[row, left], hats[row, left + 1] = 1 - right, right
    products = hats.T @ (share[:, None] * hats)
    products.flat[:: size + 1] += RIDGE * np.trace(products) / size
    basis = hats @ np.linalg.inv(np.linalg.cholesky(products)).T
    return basis, np.ascontiguousarray((share[:, None] * basis).T)


def _banded(share: Floats, left: Numbers, right: Floats, size: int) -> tuple[Any, Any, Floats]:
    """The hat functions, their transpose times the shares, and the factor of the normal equations in two bands."""
    from scipy.linalg import cholesky_banded
    from scipy.sparse import csc_array, csr_array

    values = np.stack([1 - right, right], axis=1)
    columns, starts = (left[:, None] + np.arange(2)).ravel(), np.arange(0, 2 * len(share) + 1, 2)
    basis = csr_array((values.ravel(), columns, starts), shape=(len(share), size))
    weighted = csc_array(((share[:, None] * values).ravel(), columns, starts), shape=(size, len(share)))
    diagonal = np.bincount(columns, (share[:, None] * values**2).ravel(), size)
    beside = np.bincount(left, share * right * (1 - right), size)
    bands = np.stack([np.roll(beside, 1), diagonal + RIDGE * diagonal.mean()])
    return basis, weighted, cholesky_banded(bands, check_finite=False)


#: Standard deviations by which a finer fit must differ from a coarser one, beyond what noise explains.
VISIBLE = 2.5

#: Variances of outcomes are at least this part of their mean.
VARIANCE_FLOOR = 0.01


@dataclass(frozen=True, eq=False)
class Resolution:
    """Fits of the gap at rising resolution, and which of them was chosen.

    Attributes
    ----------
    fits, gaps
        The fits, and the fitted gaps.
    chosen : int
        The first that no finer one contradicts.
    sigma : array
        Standard deviation of one outcome, per cell.
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

        def contradicted(coarse: int) -> bool:
            finer = range(coarse + 1, len(fits))
            return any(
                _excess(
                    float(weight @ (gaps[fine] - gaps[coarse]) ** 2),
                    weight @ (simulated[fine] - simulated[coarse]) ** 2,
                )
                >= VISIBLE
                for fine in finer
            )

        chosen = next((k for k in range(len(fits) - 1) if not contradicted(k)), len(fits) - 1)
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
        """The rank of the largest standardised norm at any resolution among those of calibrated samples.

        A fine resolution is chosen when its norm looks large; this test allows for having looked at all of them.
        """
        share, drawn = self.cells.share, noise.outcomes(self.cells.predicted)
        simulated = np.stack([share @ fit(drawn) ** 2 for fit in self.fits])
        mean, spread = simulated.mean(axis=1), np.maximum(simulated.std(axis=1), 1e-300)
        seen = max((np.array([share @ gap**2 for gap in self.gaps]) - mean) / spread)
        largest = ((simulated - mean[:, None]) / spread[:, None]).max(axis=0)
        return float(1 + np.count_nonzero(largest >= seen - 1e-9)) / (1 + noise.draws)


def _excess(observed: float, simulated: Floats) -> float:
    """By how many standard deviations the observed value exceeds the simulated ones."""
    spread = float(simulated.std())
    return (observed - float(simulated.mean())) / spread if spread > 0 else 0.0
