"""How finely the gap must be fitted: the smallest number of knots whose misfit is not seen at any finer resolution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.inference.binary_error.cell_noise import CellNoise
from calibrant.inference.binary_error.hat_fit import HatFit, ladder
from calibrant.inference.binary_error.pooled_cells import PooledCells
from calibrant.numerics.arrays import Floats

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
