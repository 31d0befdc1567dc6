"""Lower limit of the L1 error without smoothness: a held-out mean of gaps times signs fitted on the other rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant.inference.binary_error.cell_noise import FEW_EVENTS, CellNoise, ClusterNoise
from calibrant.inference.binary_error.pooled_cells import Numbers
from calibrant.inference.binary_error.smooth_part import SmoothPart
from calibrant.numerics.arrays import Floats
from calibrant.numerics.binomial_draws import BinomialDraws

#: Folds that the rows of each cell (or whole clusters) are divided into.
FOLDS = 5

#: If the noise changes by more than this factor from one multiple to the next, the step between them is halved, so
#: many times at most.
STEADY, HALVINGS = 1.5, 3

#: Part of the risk at which zero is rejected along a shape that was chosen because it shows more than the usual one.
CHOSEN_SHAPE = 1 / 3

#: A lower limit below this is rounding: the observed value and a quantile of the simulated ones can be the same number.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class DualBound:
    r"""Lower limit by duality: :math:`E[f(S)(S - Y)] \le E|S - h(S)|` for every function with :math:`|f| \le 1`.

    f is the fitted gap of the other folds divided by its standard error, cut to [-1, 1], and ψ the sum over folds of
    its mean product with the gaps held out. The distribution of ψ is simulated, cross-fitting included, at three
    multiples of the shape: f taken as fixed would understate it. The limit is the mean of ψ at the multiple at which
    the observed ψ is a high quantile.

    A shape that was chosen because it shows a larger gap than the usual one has been selected by what it is then used
    to test: it must reject zero at a third of the risk, or zero would be excluded too often.
    """

    part: SmoothPart
    seed: int

    def limit(self) -> float:
        """The lower limit, 0 where it is positive by rounding alone."""
        found = self._limit()
        return found if found > ROUNDING else 0.0

    def _limit(self) -> float:
        """The limit from simulations at the first, the middle and the last multiple of the shape."""
        part, observed, multiples = self.part, self.observed(), self.part.along_shape.multiples
        if part.size == 0:
            return 0.0
        tried = multiples[[0, len(multiples) // 2, -1]]
        if tried[0] == 0 and observed <= self._highest_of_zero():
            return 0.0
        means, tops = self._trials(tried)
        after = _step(tops, observed)
        for _ in range(HALVINGS):
            if _steady(means, tops, after):
                break
            between = (tried[after - 1 : after] + tried[after]) / 2  # the noise depends on the multiple: halve the step
            new = (between, *self._trials(between))
            tried, means, tops = (np.insert(*pair) for pair in zip((tried, means, tops), [after] * 3, new, strict=True))
            after = _step(tops, observed)
        if not _steady(means, tops, after):  # a jump to the observed value
            return float(means[after - 1])
        rise = tops[after] - tops[after - 1]
        along = (observed - tops[after - 1]) / rise if rise > 0 else 0.0
        return float(means[after - 1] + along * (means[after] - means[after - 1]))

    def _highest_of_zero(self) -> float:
        """What ψ must exceed for zero error to be rejected."""
        risk = self.part.risk * (CHOSEN_SHAPE if self.part.shape_is_chosen else 1.0)
        return float(np.quantile(self._of_zero, 1 - risk, method="weibull"))

    @cached_property
    def _of_zero(self) -> Floats:
        """ψ of calibrated samples."""
        predicted = self.part.cells.predicted
        return self.statistic(self.simulated(np.zeros_like(predicted), predicted))

    def _trials(self, multiples: Floats) -> tuple[Floats, Floats]:
        """Mean and high quantile of ψ for multiples of the shape."""
        part, means, spreads = self.part, [], []
        for multiple in multiples:
            probability = np.clip(part.cells.predicted - multiple * part.shape.gap, 0.0, 1.0)
            gap = part.cells.predicted - probability
            drawn = self.statistic(self.simulated(gap, part.noisy(probability))) if multiple > 0 else self._of_zero
            means.append(float(drawn.mean()) if multiple > 0 else 0.0)
            spreads.append(drawn - means[-1] + np.abs(gap) @ part.noise.shares)
        tops = np.quantile(spreads, 1 - part.risk, axis=1, method="weibull")
        return np.array(means), np.asarray(means + tops)

    def statistic(self, sums: Floats) -> Floats:
        """ψ from the sums of gaps per fold, cell and sample; what is held out counts as no gap in the fit."""
        total, rows, psi = sums.sum(axis=0), self._rows, np.zeros(sums.shape[2])
        for own in sums:  # fold by fold, in little memory, takes half the time
            direction = self.part.shape.fit((total - own) * (1 / rows)[:, None])
            direction *= (1 / self._error)[:, None]
            np.clip(direction, -1.0, 1.0, out=direction)
            direction *= own
            psi += (self.part.cells.share / rows) @ direction
        return psi

    def observed(self) -> float:
        """ψ of the sample, its rows dealt to the folds at random."""
        cells, rows = self.part.cells, self._rows
        if isinstance(self._noise, ClusterNoise):
            residual = (self._noise.weight * cells.predicted - self._noise.events) / cells.share * rows
            sums = np.stack([residual[self._fold == fold].sum(axis=0) for fold in range(FOLDS)])
            return float(self.statistic(sums[:, :, None])[0])
        rng, left = np.random.default_rng([self.seed, 5]), rows.copy()
        events = np.clip(np.round(cells.observed * rows), 0, rows).astype(np.int64)
        expected, remaining, dealt = events / rows, events.copy(), []
        for size in self._sizes:
            taken = rng.hypergeometric(remaining, left - remaining, size)
            left, remaining = left - size, remaining - taken
            dealt.append(size * cells.gap - (taken - size * expected))
        return float(self.statistic(np.stack(dealt)[:, :, None])[0])

    def simulated(self, gap: Floats, probability: Floats) -> Floats:
        """Sums of gaps per fold, cell and sample, for this true gap and the noise of this probability."""
        noise, rows = self._noise, self._rows
        if isinstance(noise, ClusterNoise):
            share = self.part.cells.share
            residual = (noise.weight * probability - noise.events) / share * rows
            mean = noise.weight / share * rows * gap
            folds = [self._fold == fold for fold in range(FOLDS)]
            return np.stack([residual[own].T @ noise.signs[own] + mean[own].sum(axis=0)[:, None] for own in folds])
        scale, mean = np.sqrt(rows / self.part.cells.count), self._sizes * gap
        drawn = self._normal * (scale * np.sqrt(self._sizes * (probability * (1 - probability))))[:, :, None]
        drawn += mean[:, :, None]
        few = rows * np.minimum(probability, 1 - probability) < FEW_EVENTS
        if few.any():
            size, chance, own = self._sizes[:, few], probability[few], scale[few]
            events = self._binomial.counts(size.ravel(), np.tile(chance, FOLDS), np.tile(few, FOLDS))
            events = events.reshape(*size.shape, noise.draws)
            events *= -own[:, None]
            events += (own * size * chance + mean[:, few])[:, :, None]
            drawn[:, few] = events
        return drawn

    @property
    def _noise(self) -> CellNoise:
        return self.part.noise

    @cached_property
    def _rows(self) -> Numbers:
        """Whole numbers of rows per cell."""
        return np.maximum(np.round(self.part.cells.count), 1).astype(np.int64)

    @cached_property
    def _sizes(self) -> Numbers:
        """Rows per fold and cell, as even as possible."""
        rank = np.argsort(np.random.default_rng([self.seed, 4]).random((len(self._rows), FOLDS)), axis=1).T
        return np.asarray(self._rows // FOLDS + (rank < self._rows % FOLDS))

    @cached_property
    def _fold(self) -> Numbers:
        """The fold of each cluster."""
        clusters = len(self._noise.weight) if isinstance(self._noise, ClusterNoise) else 0
        return np.random.default_rng([self.seed, 4]).permutation(clusters) % FOLDS

    @cached_property
    def _normal(self) -> Floats:
        size = (FOLDS, len(self._rows), self._noise.draws)
        return np.random.default_rng([self.seed, 6]).standard_normal(size)

    @cached_property
    def _binomial(self) -> BinomialDraws:
        return BinomialDraws.of(FOLDS * len(self._rows), self._noise.draws, np.random.default_rng([self.seed, 7]))

    @cached_property
    def _error(self) -> Floats:
        """Standard error of the fitted gap, per cell."""
        cells = self.part.cells
        probability = np.clip(cells.predicted - self.part.fitted, 0.0, 1.0)
        variance = np.maximum(probability * (1 - probability), 0.1 * cells.predicted * (1 - cells.predicted))
        return np.sqrt(np.maximum(self.part.shape.fit.variance(variance / cells.count), 1e-300))


def _step(tops: Floats, observed: float) -> int:
    """The end of the step in which rising quantiles reach the observed value; the last one if none does."""
    return int(np.clip(np.searchsorted(np.maximum.accumulate(tops), observed - 1e-12), 1, len(tops) - 1))


def _steady(means: Floats, tops: Floats, after: int) -> bool:
    """Whether the noise hardly changes in a step, so that quantiles lie on a straight line."""
    before, behind = tops[after - 1] - means[after - 1], tops[after] - means[after]
    return bool(max(before, behind) <= STEADY * min(before, behind))
